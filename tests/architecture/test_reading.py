"""The reading path of `docs/reading.md` is short, and traces do not name what hangs on them."""

import ast
import itertools
from pathlib import Path

import pytest

from tools import size

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.feature("HO-01")
def test_reading_path_is_short() -> None:
    path = size.Package(ROOT).reading_path
    assert path is not None
    assert 0 < len(path) <= 12
    assert sum(module.lines for module in path) <= 3000


@pytest.mark.feature("HO-01")
def test_files_of_the_reading_path_name_those_before_and_after() -> None:
    path = size.Package(ROOT).reading_path
    assert path is not None
    for before, after in itertools.pairwise(path):
        for module, other in ((before, after), (after, before)):
            name = other.path.removeprefix("minijax/")
            assert f"`{name}`" in (ast.get_docstring(module.source.tree) or ""), (module.path, name)


def test_derivatives_reach_few_files() -> None:
    assert len(size.Package(ROOT).reached_from("minijax.interpreters.jvp")) <= 20


def test_traces_do_not_name_what_hangs_on_them() -> None:
    others = {"casts", "named_batching", "placed_types", "references", "reshard"}
    package = size.Package(ROOT)
    for name in ("staging", "jvp", "partial_eval", "transpose", "batching"):
        own = set(package.imported_by(f"minijax.interpreters.{name}"))
        assert not {f"minijax.interpreters.{other}" for other in others} & own, name
        assert not any(m.startswith(("minijax.sharding", "minijax.core.refs")) for m in own), name


def test_types_and_modules_do_not_look_into_placements() -> None:
    package = size.Package(ROOT)
    names = ("core.aval", "core.trace", "core.primitive", "lowering.module")
    lines = [
        f"{module.path}: {line.strip()}"
        for module in (package.modules[f"minijax.{name}"] for name in names)
        for line in module.source.placement_lines
    ]
    assert len(lines) <= 15, lines
