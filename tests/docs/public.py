"""What users can name: the public modules, and the functions and classes in them."""

import importlib
import importlib.util
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import minijax
import minijax.as_jax
from minijax.core.dtypes import ScalarType
from minijax.core.primitive import Primitive

_STATS = (
    "bernoulli",
    "beta",
    "betabinom",
    "binom",
    "cauchy",
    "chi2",
    "dirichlet",
    "expon",
    "gamma",
    "gennorm",
    "geom",
    "gumbel_l",
    "gumbel_r",
    "laplace",
    "logistic",
    "multinomial",
    "multivariate_normal",
    "nbinom",
    "norm",
    "pareto",
    "poisson",
    "t",
    "truncnorm",
    "uniform",
    "vonmises",
    "wrapcauchy",
)

DISTRIBUTIONS = tuple(f"minijax.scipy.stats.{name}" for name in _STATS)
"""Modules without a file, which `minijax.scipy.stats` makes of classes when it is imported."""

# What two modules share belongs to the first.
NAMES = (
    "minijax",
    "minijax.numpy",
    "minijax.numpy.linalg",
    "minijax.numpy.fft",
    "minijax.lax",
    "minijax.lax.linalg",
    "minijax.random",
    "minijax.nn",
    "minijax.nn.initializers",
    "minijax.tree",
    "minijax.tree_util",
    "minijax.debug",
    "minijax.scipy",
    "minijax.scipy.cluster.vq",
    "minijax.scipy.fft",
    "minijax.scipy.integrate",
    "minijax.scipy.interpolate",
    "minijax.scipy.linalg",
    "minijax.scipy.ndimage",
    "minijax.scipy.optimize",
    "minijax.scipy.signal",
    "minijax.scipy.sparse.linalg",
    "minijax.scipy.spatial.transform",
    "minijax.scipy.special",
    "minijax.scipy.stats",
    *DISTRIBUTIONS,
    "minijax.image",
    "minijax.ops",
    "minijax.flatten_util",
    "minijax.ffi",
    "minijax.dlpack",
    "minijax.sharding",
    "minijax.ad_checkpoint",
    "minijax.checkpoint_policies",
    "minijax.core",
    "minijax.custom_batching",
    "minijax.custom_derivatives",
    "minijax.distributed",
    "minijax.dtypes",
    "minijax.errors",
    "minijax.example_libraries",
    "minijax.example_libraries.optimizers",
    "minijax.example_libraries.stax",
    "minijax.experimental",
    "minijax.experimental.checkify",
    "minijax.experimental.compilation_cache",
    "minijax.experimental.compilation_cache.compilation_cache",
    "minijax.experimental.jet",
    "minijax.experimental.maps",
    "minijax.experimental.mesh_utils",
    "minijax.experimental.multihost_utils",
    "minijax.experimental.ode",
    "minijax.experimental.pallas",
    "minijax.experimental.pallas.tpu",
    "minijax.experimental.pjit",
    "minijax.experimental.pxla",
    "minijax.experimental.shard_map",
    "minijax.experimental.sparse",
    "minijax.explain",
    "minijax.extend",
    "minijax.extend.ad",
    "minijax.extend.backend",
    "minijax.extend.batching",
    "minijax.extend.core",
    "minijax.extend.core.primitives",
    "minijax.extend.hooks",
    "minijax.extend.mlir",
    "minijax.monitoring",
    "minijax.profiler",
    "minijax.ref",
    "minijax.stages",
    "minijax.test_util",
    "minijax.testing",
    "minijax.testing.laws",
    "minijax.testing.pictures",
    "minijax.testing.strategies",
    "minijax.typing",
)


def _exists(name: str) -> bool:
    parts = name.split(".")
    paths = [".".join(parts[:n]) for n in range(1, len(parts) + 1)]
    return all(importlib.util.find_spec(path) is not None for path in paths)


MODULES = [importlib.import_module(name) for name in NAMES if _exists(name)]
# One of them has made `jax` mean minijax, for programs.
minijax.as_jax.uninstall()


def every_module() -> list[str]:
    """Returns the names of all modules of the package, public or not, from its files."""
    root = Path(minijax.__file__).parent
    files = [*root.rglob("*.py"), *root.rglob("*.pyi")]
    paths = {path.relative_to(root.parent).with_suffix("") for path in files}
    return sorted({".".join(path.parts).removesuffix(".__init__") for path in paths})


def names(module: ModuleType) -> list[str]:
    """What tab completion shows of a module, but for the names that Python gives each one."""
    return [name for name in dir(module) if not name.startswith("_")]


def is_described(value: Any) -> bool:
    """Whether a value is a function or a class of ours, or is used by brackets as `r_` is.

    Errors, primitives and dtypes are described where they are used.
    """
    is_used = callable(value) or hasattr(type(value), "__getitem__")
    if not is_used or isinstance(value, Primitive | ScalarType | ModuleType):
        return False
    if inspect.isclass(value) and issubclass(value, BaseException):
        return False
    home = getattr(value, "__module__", None) or type(value).__module__
    return home.partition(".")[0] == "minijax"


def is_room(path: str) -> bool:
    """Whether a path is that of a public module, or leads to one."""
    return any(name == path or name.startswith(f"{path}.") for name in NAMES)


def described(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The functions and classes that a module shows, with their names."""
    for name in names(module):
        path = f"{module.__name__}.{name}"
        if not is_room(path) and is_described(getattr(module, name)):
            yield path, getattr(module, name)


def methods(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class."""
    if not inspect.isclass(value):
        return
    for attribute in sorted(vars(value)):
        found = inspect.getattr_static(value, attribute)
        if not attribute.startswith("_") and (callable(found) or isinstance(found, property)):
            yield f"{name}.{attribute}", found
