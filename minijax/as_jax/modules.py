"""Finds modules of JAX: those of minijax, and the package `jax`, which has JAX's version.

Input: the name that an `import` gives.  Output: a module of minijax, which keeps its own name and
spec, under the name that JAX gives it.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from minijax.core.deferral import ROOT
from minijax.core.errors import error

VERSION = "0.10.2"
"""The version of JAX whose interface it is."""

_JAX = "jax"
_HOMES = {_JAX: ROOT, "jax.interpreters": "minijax.extend"}
"""Packages of JAX, and where minijax has what is in them."""


class Jax(ModuleType):
    """The package `jax`: what minijax has, and JAX's version."""

    __version__ = VERSION
    __version_info__ = tuple(map(int, VERSION.split(".")))

    def __getattr__(self, name: str) -> Any:
        if f"{_JAX}.{name}" in _HOMES:
            return importlib.import_module(f"{_JAX}.{name}")
        return getattr(sys.modules[ROOT], name)

    def __dir__(self) -> list[str]:
        return dir(sys.modules[ROOT])


class _Distribution(importlib.metadata.Distribution):
    """What `importlib.metadata` is told of a package named jax."""

    def read_text(self, filename: str) -> str | None:
        text = f"Metadata-Version: 2.1\nName: {_JAX}\nVersion: {VERSION}\n"
        return text if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return path


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `jax` and what is in it, before all other finders, and loads minijax's modules."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """How to load a module of JAX, if minijax has one of that name."""
        if fullname == _JAX:
            return ModuleSpec(fullname, self, is_package=True)
        return ModuleSpec(fullname, self) if _home(fullname) is not None else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module of minijax, with the spec that it has as such."""
        if spec.name == _JAX:
            return Jax(_JAX, sys.modules[ROOT].__doc__)
        module = importlib.import_module(str(_home(spec.name)))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leaves the module as minijax has made it."""
        if module.__spec__ is not None and module.__spec__.loader_state is not None:
            module.__spec__ = module.__spec__.loader_state

    def find_distributions(
        self, context: importlib.metadata.DistributionFinder.Context | None = None
    ) -> Iterator[importlib.metadata.Distribution]:
        """The distribution named jax."""
        if context is None or context.name in (None, _JAX):
            yield _Distribution()


_finder = Finder()


def _home(name: str) -> str | None:
    """The module of minijax that stands for one of JAX; None if there is none."""
    known = max((path for path in _HOMES if f"{name}.".startswith(f"{path}.")), key=len, default="")
    if not known:
        return None
    home = _HOMES[known] + name[len(known) :]
    if home not in sys.modules:
        importlib.import_module(home.rpartition(".")[0])
        if importlib.util.find_spec(home) is None:
            return None
    return home


def install() -> None:
    """Makes `jax` mean minijax.

    Raises:
        ImportError: JAX itself is imported already.
    """
    there = sys.modules.get(_JAX)
    if there is not None and not isinstance(there, Jax):
        error(
            ImportError,
            "as_jax",
            "JAX itself has been imported in this process",
            got=f"jax {getattr(there, '__version__', '')} from {getattr(there, '__file__', '?')}",
            fix="import minijax.as_jax before anything that imports jax",
        )
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def uninstall() -> None:
    """Undoes `install`: what imports `jax` from now on gets what is installed by that name."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    if isinstance(sys.modules.get(_JAX), Jax):
        for name in [name for name in sys.modules if f"{name}.".startswith(f"{_JAX}.")]:
            del sys.modules[name]


install()
