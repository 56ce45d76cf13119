"""Parts of a package that load when a program first names them (PEP 562).

A façade names them in a table, and repeats their imports for those who read types:

    if TYPE_CHECKING:
        from minijax.numpy.windows import hanning as hanning, kaiser as kaiser

    __getattr__ = deferral.attributes(__name__, names={"numpy.windows": "hanning kaiser"})

That keeps `import minijax` light: it loads what most programs use, and no more.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any

ROOT = "minijax"


Names = Mapping[str, str | Iterable[str]]
"""For each module, named from the root, those of its names that a package shows; a string parts
them by spaces."""

NO_NAMES: Names = MappingProxyType({})


def attributes(
    package: str, *, modules: Iterable[str] = (), names: Names = NO_NAMES
) -> Callable[[str], Any]:
    """The `__getattr__` of a package some of whose parts load when they are first named.

    Args:
        package: the name of the package.
        modules: its own modules that are reached as attributes.
        names: what it shows of other modules.
    """
    parts = frozenset(modules)
    homes = {name: module for module, found in names.items() for name in _each(found)}

    def load(name: str) -> Any:
        """Loads a part of the package when it is first named."""
        if name in homes:
            value = getattr(importlib.import_module(f"{ROOT}.{homes[name]}"), name)
        elif name in parts:
            value = importlib.import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    return load


def module(name: str) -> Any:
    """A stand-in for a module, which is imported when one of its attributes is asked for.

    For what one function in a hundred programs needs:

        if TYPE_CHECKING:
            import gzip
        else:
            gzip = deferral.module("gzip")
    """
    return _Deferred(name)


class _Deferred(ModuleType):
    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


def shown(package: str, *, modules: Iterable[str] = (), names: Names = NO_NAMES) -> list[str]:
    """The public names of a package: those it has, but for modules, and those that load later."""
    present = {
        name
        for name, value in vars(sys.modules[package]).items()
        if not (name.startswith("_") or name in _OF_THE_LANGUAGE or isinstance(value, ModuleType))
    }
    return sorted(present.union(modules, *map(_each, names.values())))


_OF_THE_LANGUAGE = frozenset({"TYPE_CHECKING", "annotations"})


def _each(names: str | Iterable[str]) -> Iterable[str]:
    return names.split() if isinstance(names, str) else names
