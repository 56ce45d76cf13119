"""Keeps the arrays of minijax and of JAX apart in a process that has loaded both.

Both libraries add their methods and properties to the same class, jaxlib's array. An array carries
the `aval` that it was made with. An attribute that both libraries define looks at the array's
`aval` to find out which library made it, and returns that library's attribute.

This module is imported as soon as both libraries are loaded, whichever comes first. After each
module of JAX that is imported later, it looks again for attributes that JAX has added.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

from minijax.core import native
from minijax.core.aval import ShapedArray, aval_handlers
from minijax.core.errors import error
from minijax.core.native import Buffer

_aval: Any = Buffer.aval
_of_jax: dict[str, Any] = {}


def _is_own(x: Any) -> bool:
    """Whether an array was made here.

    C++ keeps the types of pieces that it makes, and gives them to pieces of both libraries.
    """
    aval = _aval.fget(x)
    if type(aval) is not ShapedArray:
        return False
    if hasattr(x._sharding, "public"):
        return True
    make = sys.modules["jax.core"].ShapedArray
    _aval.fset(x, make(aval.shape, aval.dtype, weak_type=aval.weak_type))
    return False


class _Shared:
    """An attribute of the class of arrays that each library has its own of."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def _found(self, x: Any) -> Any:
        facts = native.carried if x is not None and _is_own(x) else _of_jax
        if self._name not in facts:
            raise AttributeError(f"{Buffer.__name__!r} object has no attribute {self._name!r}")
        return facts[self._name]

    def __get__(self, x: Any, kind: Any = None) -> Any:
        found = self._found(x)
        return found.__get__(x, kind) if hasattr(found, "__get__") else found

    def __set__(self, x: Any, value: object) -> None:
        self._found(x).__set__(x, value)


def share() -> None:
    """Gives each library its own of what JAX has put on the class by now."""
    if "jax._src.array" not in sys.modules:
        return
    aval_handlers[Buffer] = _own_aval
    if "aval" not in native.carried:
        native.carry({"aval": _aval})
    for name, own in native.carried.items():
        found = vars(Buffer)[name]
        if type(found) is _Shared:
            continue
        if found is not own:
            _of_jax[name] = found
        elif name in native.replaced:
            _of_jax[name] = native.replaced[name]
        setattr(Buffer, name, _Shared(name))


def _own_aval(x: Any) -> Any:
    found = x.aval
    if type(found) is not ShapedArray:
        problem = "an array of another library, which has devices of its own."
        got, fix = f"{found} of JAX", "numpy.asarray(x), or dlpack.from_dlpack(x)"
        error(TypeError, "", problem, got=got, fix=fix)
    return found


class _Watch:
    """Looks at what each module of JAX has put on the class, as soon as it is imported."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith("jax."):
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
share()
