"""jaxlib's class of arrays, which carries the methods of `Array`.

jaxlib's call path takes and makes objects of this class, so an `Array` costs nothing on a call.

JAX puts methods of its own on the class.  Where a process loads both, whichever comes first, each
attribute of both asks the array whose it is: arrays carry the `aval` that they were made with.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
from collections.abc import Iterator, Mapping
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

from jaxlib import _jax

from minijax.core.aval import ShapedArray, aval_handlers
from minijax.core.errors import error

Buffer: Any = _jax.ArrayImpl

# What jaxlib itself knows, under names that stand for other functions of ours.
_block_until_ready = Buffer.block_until_ready
delete = Buffer.delete
is_ready = Buffer.is_ready
on_device_size_in_bytes = Buffer.on_device_size_in_bytes
unsafe_buffer_pointer = Buffer.unsafe_buffer_pointer

_aval: Any = Buffer.aval
_ABSENT = object()
_own: dict[str, Any] = {}
_other: dict[str, Any] = {}
_carried: dict[str, Any] = {}


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


def is_own(buffer: Any) -> bool:
    """Whether an array of jaxlib's class was made here, and not by JAX."""
    return type(buffer.aval) is ShapedArray


def _has_own(buffer: Any) -> bool:
    """The same where JAX is loaded.

    C++ keeps the types of pieces that it makes, and gives them to pieces of both libraries.
    """
    aval = _aval.fget(buffer)
    if type(aval) is not ShapedArray:
        return False
    if hasattr(buffer._sharding, "public"):
        return True
    others = sys.modules["jax.core"].ShapedArray
    _aval.fset(buffer, others(aval.shape, aval.dtype, weak_type=aval.weak_type))
    return False


class _Shared:
    """An attribute of the class of arrays that each library has its own of."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def _found(self, x: Any) -> Any:
        found = _other[self._name] if x is None or not _has_own(x) else _own[self._name]
        if found is _ABSENT:
            raise AttributeError(f"{Buffer.__name__!r} object has no attribute {self._name!r}")
        return found

    def __get__(self, x: Any, kind: Any = None) -> Any:
        found = self._found(x)
        return found.__get__(x, kind) if hasattr(found, "__get__") else found

    def __set__(self, x: Any, value: object) -> None:
        self._found(x).__set__(x, value)


def carry(attributes: Mapping[str, Any]) -> None:
    """Puts attributes on the class of arrays; those of JAX stay with the arrays of JAX."""
    for name, attribute in attributes.items():
        if name not in _own:
            _other[name] = getattr(Buffer, name, _ABSENT)
        _own[name] = attribute
        _put(name, _Shared(name) if _is_shared() else attribute)


def _put(name: str, attribute: Any) -> None:
    _carried[name] = attribute
    setattr(Buffer, name, attribute)


def _is_shared() -> bool:
    return "jax._src.array" in sys.modules


def share() -> None:
    """Gives both libraries their own of what JAX has put on the class by now."""
    if not _is_shared():
        return
    aval_handlers[Buffer] = _own_aval
    if "aval" not in _carried:
        carry({"aval": _aval})
    for name, carried in _carried.items():
        found = vars(Buffer)[name]
        if found is not carried:
            _other[name] = found
        if type(found) is not _Shared:
            _put(name, _Shared(name))


def _own_aval(x: Any) -> Any:
    found = x.aval
    if type(found) is not ShapedArray:
        problem = "an array of another library, which has devices of its own."
        got, fix = f"{found} of JAX", "numpy.asarray(x), or dlpack.from_dlpack(x)"
        error(TypeError, "", problem, got=got, fix=fix)
    return found


aval_handlers[Buffer] = _aval.fget
share()


class _Watch:
    """Looks at what each module of JAX has put on the class, as soon as it is imported."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != "jax" and not name.startswith("jax."):
            return None
        spec = PathFinder.find_spec(name, path, target)
        loader: Any = spec and spec.loader
        if loader is not None:
            execute = loader.exec_module

            def exec_module(module: Any) -> None:
                try:
                    execute(module)
                finally:
                    share()

            loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, _Watch)
