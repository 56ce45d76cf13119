"""Names that packages need to be imported, and few programs use.

Types of values of users' own (`jax.experimental.hijax`) can be named and subclassed, not used; what
JAX knows of files and back ends is kept, and not read.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

from minijax.core import deferral, source, tree
from minijax.core.aval import AbstractValue
from minijax.core.errors import error
from minijax.runtime import client

Function = Callable[..., Any]

distributed = deferral.module("minijax.runtime.processes.distributed")


def _no_types_of_users(*_: object, **__: object) -> NoReturn:
    problem = "values whose types are users' own are not supported."
    error(NotImplementedError, "experimental.hijax", problem, fix="a pytree of arrays")


class NoPrimitive:
    """Stands for a primitive that no jaxpr of minijax has, in tables that packages keep.

    Attributes:
        name: what JAX calls it.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


call_p = NoPrimitive("call")
closed_call_p = NoPrimitive("closed_call")


class HiPrimitive:
    """An operation on values whose types are users' own; it cannot be called."""

    bind = _no_types_of_users

    def __init__(self, name: str) -> None:
        self.name = name


class VJPHiPrimitive:
    """An operation with a derivative of its own; none can be made."""

    __init__ = _no_types_of_users


class HiType(AbstractValue):
    """A type of users' own."""

    __slots__ = ()


class MutableHiType(HiType):
    """A type of users' own, of objects that change."""

    __slots__ = ()


class AvalQDD:
    """A type with what is known of an object's state."""

    __init__ = _no_types_of_users


class AvalMutableQDD(AvalQDD):
    """A type with the state of an object, which changes."""


class HiPspec:
    """How a value whose type is a user's own is split."""


class EArray:
    """An array whose dtype is a user's own, beside the one that holds its elements."""

    __init__ = _no_types_of_users


def cur_qdd(x: object) -> AvalQDD:
    """Refuses: no value has a state beside its type."""
    _no_types_of_users()


class aval_method:  # noqa: N801  a decorator
    """Says that values of a type have a method."""

    def __init__(self, fun: Function) -> None:
        self.fun = fun


class aval_property:  # noqa: N801  a decorator
    """Says that values of a type have a property."""

    def __init__(self, fget: Function) -> None:
        self.fget = fget


def register_hitype(val_cls: type, typeof_fn: Function) -> None:
    """Says which type values of a class have; no operation takes them."""


def colocated_cpu_devices(devices: object) -> NoReturn:
    """Refuses: there are no processes of Python on hosts of devices far away."""
    name = "experimental.colocated_python"
    problem = "there are no hosts beside this one."
    error(NotImplementedError, name, problem, fix="minijax.pure_callback, for Python in a program")


def colocated_python(fun: Function) -> Function:
    """A function that refuses its call; it can be defined."""
    return colocated_cpu_devices


colocated_python_class = colocated_python


class GlobalAsyncCheckpointManagerBase:
    """What managers of checkpoints are called in types."""


class GlobalAsyncCheckpointManager(GlobalAsyncCheckpointManagerBase):
    """A manager of checkpoints that flax has used before orbax."""

    def __init__(self, timeout_secs: int = 300) -> None:
        get_tensorstore_spec("")


def get_tensorstore_spec(ckpt_path: str, ocdbt: bool = False, **_: object) -> NoReturn:
    """Refuses: how one array is written is left to orbax."""
    name = "experimental.array_serialization"
    problem = "minijax does not write arrays to tensorstore by itself."
    error(NotImplementedError, name, problem, fix="orbax.checkpoint")


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether all processes should save at this step: never, as nobody announces their end."""
    return False


exclude_paths: list[str] = []


def register_exclusion(path: str) -> None:
    """Says that a file belongs to a package, not to a user's program."""
    exclude_paths.append(path)


def include_frame(frame: FrameType) -> bool:
    """Whether a frame is of a user's program: neither minijax's, nor of a package that said so."""
    file = frame.f_code.co_filename
    return not source.is_internal(file) and file not in exclude_paths


def api_boundary(fun: Function, **_: object) -> Function:
    """The function as it is."""
    return fun


class TreeRegistry:
    """Says of types whether they are nodes of trees, as `in` asks."""

    def __contains__(self, typ: type) -> bool:
        return tree.is_tree_node(typ)


registry = TreeRegistry()


class GlobalState:
    """What `jax.distributed` knows: which process this is, and its connection."""

    @property
    def process_id(self) -> int:
        """The number of this process."""
        return client.process_index()

    @property
    def num_processes(self) -> int:
        """How many processes there are."""
        return client.process_count()

    @property
    def client(self) -> Any:
        """The connection to the service by which processes have met; None without one."""
        return distributed.connection()


global_state = GlobalState()


class Backends:
    """Which back ends there are by name, if any has been made."""

    def __bool__(self) -> bool:
        return client.is_any_made()

    def get(self, platform: str, default: object = None) -> Any:
        """The back end of a platform."""
        return client.get_backend(platform) if self else default


backends = Backends()
