"""jaxlib's classes that users meet, as type checkers and editors shall know them.

Input: nothing.  Output: the classes themselves.  jaxlib describes none of its compiled modules, so
the block that never runs declares what of each may be relied on.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Hashable, Iterator, Mapping
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
            registry: object, node_data: tuple[type, Any] | None, children: Iterable[PyTreeDef]
        ) -> PyTreeDef: ...
        def from_iterable_tree(self, subtrees: object, /) -> Any: ...
        def walk(
            self,
            f_node: Callable[[Any, Any], Any],
            f_leaf: Callable[[Any], Any] | None,
            leaves: Iterable[Any],
            /,
        ) -> Any: ...
        def serialize_using_proto(self) -> bytes: ...
        @staticmethod
        def deserialize_using_proto(registry: object, data: bytes) -> PyTreeDef: ...

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

Buffer: Any = _jax.ArrayImpl
"""The class of arrays, which jaxlib's call path takes and makes.

It carries the methods of `runtime/array.py`, so that an `Array` costs nothing on a call.  JAX puts
methods of its own on the class: where it is loaded too, `core/beside_jax.py` gives each library
its own.
"""

# What jaxlib itself knows, under names that stand for other functions of ours.
_block_until_ready = Buffer.block_until_ready
cuda_array_interface = Buffer.__cuda_array_interface__.fget
arrays_of = Buffer._arrays.fget
delete = Buffer.delete
is_ready = Buffer.is_ready
on_device_size_in_bytes = Buffer.on_device_size_in_bytes
unsafe_buffer_pointer = Buffer.unsafe_buffer_pointer

carried: dict[str, Any] = {}
"""The attributes that the class of arrays carries."""
replaced: dict[str, Any] = {}
"""What stood in the place of each, if anything."""


def carry(attributes: Mapping[str, Any]) -> None:
    """Puts attributes on the class of arrays."""
    for name, attribute in attributes.items():
        if name not in carried and hasattr(Buffer, name):
            replaced[name] = getattr(Buffer, name)
        carried[name] = attribute
        setattr(Buffer, name, attribute)


def block_until_ready(x: Any) -> None:
    """Waits for an array, or for the token that a program ends with."""
    if type(x) is Buffer:
        _block_until_ready(x)
    else:
        x.block_until_ready()


# Where CPython keeps the address of a type's functions of the buffer protocol.
_AS_BUFFER = 20 * ctypes.sizeof(ctypes.c_void_p)


def _function_of_the_buffer_protocol() -> Any:
    """The place of the address by which C++ exports the memory of arrays; None where unknown."""
    start, size = id(Buffer), type(Buffer).__basicsize__
    place = ctypes.c_void_p.from_address(start + _AS_BUFFER).value or 0
    # The functions of a class that is made while a program runs stand in the class itself.
    return ctypes.c_void_p.from_address(place) if start < place < start + size else None


_export = _function_of_the_buffer_protocol()
_exporting = None if _export is None else _export.value
_hiding = threading.Lock()
_hidden: set[object] = set()


@contextlib.contextmanager
def memory_hidden() -> Iterator[None]:
    """Meanwhile arrays do not speak the buffer protocol, and NumPy asks `__array__`.

    C++ exports memory after a wait that it does not ask us about, which may have no end.
    """
    call = object()
    with _hiding:
        _hidden.add(call)
        if _export is not None:
            _export.value = None
    try:
        yield
    finally:
        with _hiding:
            _hidden.remove(call)
            if _export is not None and not _hidden:
                _export.value = _exporting


def is_memory_hidden() -> bool:
    """Whether arrays do not speak the buffer protocol."""
    return bool(_hidden)
