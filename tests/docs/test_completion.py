"""`dir(module)`, and so tab completion, shows what users call and nothing else."""

import importlib
import inspect
import json
from pathlib import Path
from types import ModuleType

import pytest

import minijax
from tests.docs import public

JAX = json.loads(Path(__file__).parents[2].joinpath("benchmarks/jax_api.json").read_text("utf-8"))

# Rooms that have more than the module of JAX that they stand for, or stand for none.
WIDER = frozenset(
    {
        "",
        "ad_checkpoint",
        "checkpoint_policies",
        "errors",
        "experimental",
        "explain",
        "experimental.compilation_cache",
        "experimental.compilation_cache.compilation_cache",
        "experimental.jet",
        "experimental.maps",
        "experimental.pallas",
        "experimental.pallas.tpu",
        "experimental.pjit",
        "experimental.pxla",
        "example_libraries",
        "example_libraries.optimizers",
        "example_libraries.stax",
        "experimental.shard_map",
        "experimental.sparse",
        "extend",
        "extend.ad",
        "extend.backend",
        "extend.batching",
        "extend.core.primitives",
        "extend.hooks",
        "extend.mlir",
        "lax",
        "sharding",
        "testing",
        "testing.laws",
        "testing.pictures",
        "testing.strategies",
    }
)
# What the others show beyond JAX's names.
OWN = {
    "custom_derivatives": ["linear_call_p"],
    "debug": ["log"],
    "distributed": ["main", "on_failure"],
    "extend.core": ["ShapedArray", "abstract_token"],
    "numpy": ["newaxis"],
    "ref": ["ds", "run_state"],
    "scipy": ["optimize", "spatial"],
}
BORROWED = ("__future__", "abc", "collections.abc", "functools", "importlib", "typing")

# A submodule becomes an attribute of its package once anyone imports it: here, all of them.
for _name in public.every_module():
    importlib.import_module(_name)

each_module = pytest.mark.parametrize("module", public.MODULES, ids=lambda m: m.__name__)


def _path(module: ModuleType) -> str:
    return module.__name__.removeprefix(minijax.__name__).lstrip(".")


def _is_foreign(module: ModuleType, name: str) -> bool:
    """Whether an undeclared name stands for a module, or for what Python's library has."""
    if name in getattr(module, "__all__", ()) or public.is_room(f"{module.__name__}.{name}"):
        return False
    value = getattr(module, name)
    home = getattr(value, "__module__", None) or type(value).__module__
    return inspect.ismodule(value) or home in BORROWED


@each_module
def test_module_shows_no_name_of_its_making(module: ModuleType) -> None:
    shown = public.names(module)

    assert "TYPE_CHECKING" not in shown
    assert [name for name in shown if _is_foreign(module, name)] == []


@each_module
def test_module_shows_all_that_it_declares(module: ModuleType) -> None:
    assert set(getattr(module, "__all__", ())) <= set(public.names(module))


@each_module
def test_module_shows_the_names_of_jax_that_it_has(module: ModuleType) -> None:
    expected = JAX.get(_path(module), {})
    present = [n for n in expected if n in vars(module) and not _is_foreign(module, n)]

    assert set(present) - set(public.names(module)) == set()


@pytest.mark.parametrize(
    "module", [m for m in public.MODULES if _path(m) not in WIDER], ids=lambda m: m.__name__
)
def test_module_shows_no_more_than_jax_but_what_is_recorded(module: ModuleType) -> None:
    path = _path(module)

    assert sorted(set(public.names(module)) - set(JAX[path])) == OWN.get(path, [])
