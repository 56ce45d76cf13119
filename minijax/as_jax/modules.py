"""Finds modules of JAX: those of minijax, and the package `jax`, which has JAX's version.

Input: the name that an `import` gives.  Output: a module of minijax, which keeps its own name and
spec, under the name that JAX gives it.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.metadata
import importlib.util
import operator
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from minijax.as_jax.version import VERSION
from minijax.as_jax.version import __version_info__ as version_info
from minijax.core import deferral
from minijax.core.config import Config, config
from minijax.core.deferral import ROOT
from minijax.core.errors import error
from minijax.core.trace import Trace, Tracer

_JAX = "jax"
_NAMES = f"{ROOT}.as_jax.names"
"""What else packages name: modules that minijax has not, and names that its modules lack."""

_HOMES = {
    _JAX: ROOT,
    "jax.interpreters": f"{_NAMES}.interpreters",
    **{f"jax.interpreters.{name}": f"{ROOT}.extend.{name}" for name in ("ad", "batching", "mlir")},
}
"""Packages of JAX, and where minijax has what is in them."""

_LACKING = {
    f"{ROOT}.core": f"{_NAMES}.core",
    f"{ROOT}.experimental": f"{_NAMES}.experimental",
    f"{ROOT}.experimental.multihost_utils": f"{_NAMES}.experimental.multihost_utils",
    f"{ROOT}.extend": f"{_NAMES}.extend",
    f"{ROOT}.extend.core": f"{_NAMES}.extend.core",
    f"{ROOT}.extend.core.primitives": f"{_NAMES}.extend.core.primitives",
    f"{ROOT}.extend.ad": f"{_NAMES}.extend.ad",
    f"{ROOT}.extend.batching": f"{_NAMES}.extend.batching",
    f"{ROOT}.extend.mlir": f"{_NAMES}.extend.mlir",
}
"""Modules that have more names while `jax` means minijax, and the modules that define these."""


def _heed_flags(self: Config) -> None:
    """Sets states as the command line says: `--jax_enable_x64=1`, or without a value."""
    for word in sys.argv[1:]:
        name, _, value = word.removeprefix("--").partition("=")
        if word.startswith("--jax_"):
            self.update(name, value or "1")


_ATTRIBUTES = (
    (Tracer, "_trace", property(operator.attrgetter("traced_by"))),
    (Trace, "main", property(lambda trace: trace)),
    (Config, "parse_flags_with_absl", _heed_flags),
)
"""Attributes that classes have meanwhile: equinox asks whose tracer a value is, suites of tests
parse flags."""


class Jax(ModuleType):
    """The package `jax`: what minijax has, and JAX's version."""

    __version__ = VERSION
    __version_info__ = version_info

    def __getattr__(self, name: str) -> Any:
        if hasattr(sys.modules[ROOT], name) and f"{_JAX}.{name}" not in _HOMES:
            return getattr(sys.modules[ROOT], name)
        more = importlib.import_module(_NAMES)
        try:
            return getattr(more if name in deferral.homes_of[_NAMES] else sys.modules[ROOT], name)
        except AttributeError as missing:
            missing.__traceback__ = None  # The user's line is the last one.
            raise

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
            _heed_environment()
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
    homes = (_HOMES[known] + name[len(known) :], _NAMES + name[len(_JAX) :])
    return next(filter(_exists, homes), None)


def _exists(module: str) -> bool:
    if module in sys.modules or module == ROOT:
        return True
    return _exists(module.rpartition(".")[0]) and importlib.util.find_spec(module) is not None


def _heed_environment() -> None:
    """Sets states as variables of JAX say; programs may set these until they import `jax`."""
    for state in config:
        text = os.environ.get(f"JAX_{state.name.upper()}")
        if text is not None and state.env_name not in os.environ:
            state.update(text)


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
    for cls, name, value in _ATTRIBUTES:
        setattr(cls, name, value)
    deferral.fallbacks.update(_LACKING)


def uninstall() -> None:
    """Undoes `install`: what imports `jax` from now on gets what is installed by that name."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    for cls, name, _ in _ATTRIBUTES if deferral.fallbacks else ():
        delattr(cls, name)
    deferral.fallbacks.clear()
    if isinstance(sys.modules.get(_JAX), Jax):
        for name in [name for name in sys.modules if f"{name}.".startswith(f"{_JAX}.")]:
            del sys.modules[name]


install()
