"""Public names are JAX's, as `benchmarks/jax_api.json` records them, or there is a reason."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


api = _load("api")


@pytest.fixture(scope="module")
def modules() -> dict[str, Any]:
    expected = json.loads(api.RECORDED.read_text(encoding="utf-8"))
    compared = api.compared(api.public_names("minijax"), expected)
    return {module.path: module for module in compared}


@pytest.fixture(scope="module")
def reasons() -> Any:
    return api.reasons_for_names()


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("path", api.DEMANDED)
def test_demanded_module_has_nearly_every_name(path: str, modules: dict[str, Any]) -> None:
    assert modules[path].share >= 0.98, modules[path].missing


@pytest.mark.feature("NP-08")
@pytest.mark.parametrize(
    "path",
    [
        *api.MODULES[:-1],
        *(f"({name})" for name in (*api.OBJECTS, "Tracer")),
        pytest.param(api.MODULES[-1], marks=pytest.mark.feature("UX-02")),
    ],
)
def test_module_lacks_nothing_without_a_reason(
    path: str, modules: dict[str, Any], reasons: Any
) -> None:
    module = modules.get(path) or api.Module(path, 0, [], {})
    missing = [name for name in module.missing if reasons.of(path, name, "missing") is None]
    narrower = {
        name: sides
        for name, sides in module.narrower.items()
        if reasons.of(path, name, "parameters") is None
    }
    assert (missing, narrower) == ([], {})


def test_no_reason_for_names_is_outdated(modules: dict[str, Any], reasons: Any) -> None:
    assert api.outdated(reasons, list(modules.values())) == []


@pytest.mark.parametrize(
    ("ours", "theirs", "takes"),
    [
        ("(x, y=1)", "(x)", True),
        ("(x, y)", "(x)", False),
        ("(y)", "(x)", False),
        ("(y, /)", "(x, /)", True),
        ("(x, *, y=1)", "(x, y=1)", False),
        ("(x, y=2)", "(x, y=1)", False),
        ("(x=0)", "(x)", True),
        ("(x, y, /, *, out=None)", "(*args, out=None)", True),
        ("(x, y)", "(*args, out=None)", False),
        ("(*args, **kwargs)", "(x, y)", True),
        ("(x)", "(x, _name='f')", True),
        ("(x, **more)", "(x, *, y=1, **kwargs)", True),
        ("(**more)", "(x, **kwargs)", False),
    ],
)
def test_comparison_of_parameters(ours: str, theirs: str, takes: bool) -> None:
    assert api._takes(ours, theirs) is takes
