"""jaxlib's classes that users meet, as type checkers and editors shall know them.

Input: nothing.  Output: the classes themselves.  jaxlib describes none of its compiled modules, so
the block that never runs declares what of each may be relied on.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from jaxlib import _jax

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    T = TypeVar("T")

    class Config(Generic[T]):
        """A state with a value of its own in each thread."""

        @property
        def value(self) -> T: ...
        def get_global(self) -> T: ...
        def set_global(self, value: T, /) -> None: ...
        def set_local(self, value: T, /) -> None: ...
        def swap_local(self, value: T, /) -> T: ...

    class JaxRuntimeError(RuntimeError):
        """What XLA raises while a program runs."""

    class Device:
        """A device that computes: a core of a processor, an accelerator."""

        @property
        def id(self) -> int: ...
        @property
        def process_index(self) -> int: ...
        @property
        def host_id(self) -> int: ...
        @property
        def platform(self) -> str: ...
        @property
        def device_kind(self) -> str: ...
        @property
        def client(self) -> Any: ...
        @property
        def local_hardware_id(self) -> int | None: ...
        def addressable_memories(self) -> list[Any]: ...
        def default_memory(self) -> Any: ...
        def memory(self, kind: str) -> Any: ...
        # Statistics and streams; on some platforms coordinates and numbers of cores.
        def __getattr__(self, name: str, /) -> Any: ...

    class PyTreeDef:
        """The structure of a tree: what is left of it without its leaves."""

        @property
        def num_leaves(self) -> int: ...
        @property
        def num_nodes(self) -> int: ...
        def unflatten(self, leaves: Iterable[Any], /) -> Any: ...
        def flatten_up_to(self, tree: object) -> list[Any]: ...
        def compose(self, inner: PyTreeDef, /) -> PyTreeDef: ...
        def children(self) -> list[PyTreeDef]: ...
        def node_data(self) -> tuple[type, Any] | None: ...
        @staticmethod
        def from_node_data_and_children(
            registry: Any, node_data: tuple[type, Any] | None, children: Iterable[PyTreeDef]
        ) -> PyTreeDef: ...
        def from_iterable_tree(self, subtrees: Any, /) -> Any: ...
        def walk(
            self,
            f_node: Callable[[Any, Any], Any],
            f_leaf: Callable[[Any], Any] | None,
            leaves: Iterable[Any],
            /,
        ) -> Any: ...
        def serialize_using_proto(self) -> bytes: ...
        @staticmethod
        def deserialize_using_proto(registry: Any, data: bytes) -> PyTreeDef: ...

    class Traceback:
        """Where an equation was made: the Python stack of that moment."""

        @property
        def frames(self) -> Sequence[Any]: ...

    class SequenceKey:
        """The place of a child in a list or tuple."""

        def __init__(self, idx: int) -> None: ...
        @property
        def idx(self) -> int: ...

    class DictKey:
        """The place of a child in a dict."""

        def __init__(self, key: Hashable) -> None: ...
        @property
        def key(self) -> Any: ...

    class GetAttrKey:
        """The place of a child in an object with fields."""

        def __init__(self, name: str) -> None: ...
        @property
        def name(self) -> str: ...

    class FlattenedIndexKey:
        """The place of a child in a node that names none."""

        def __init__(self, key: int) -> None: ...
        @property
        def key(self) -> int: ...
else:
    Config = _jax.config.Config
    JaxRuntimeError = _jax.JaxRuntimeError
    Device = _jax.Device
    PyTreeDef = _jax.pytree.PyTreeDef
    Traceback = _jax.Traceback
    SequenceKey = _jax.pytree.SequenceKey
    DictKey = _jax.pytree.DictKey
    GetAttrKey = _jax.pytree.GetAttrKey
    FlattenedIndexKey = _jax.pytree.FlattenedIndexKey
