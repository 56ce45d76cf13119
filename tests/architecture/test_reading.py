"""The reading path of `docs/reading.md` is short, and traces do not name what hangs on them."""

from pathlib import Path

from tools import size

ROOT = Path(__file__).resolve().parents[2]


def test_reading_path_is_short() -> None:
    path = size.Package(ROOT).reading_path
    assert path is not None
    assert 0 < len(path) <= 12
    assert sum(module.lines for module in path) <= 3000


def test_derivatives_reach_few_files() -> None:
    assert len(size.Package(ROOT).reached_from("minijax.interpreters.jvp")) <= 20


def test_traces_do_not_name_what_hangs_on_them() -> None:
    others = {"casts", "named_batching", "placed_types", "references", "reshard"}
    package = size.Package(ROOT)
    for name in ("staging", "jvp", "partial_eval", "transpose", "batching"):
        own = set(package.imported_by(f"minijax.interpreters.{name}"))
        assert not {f"minijax.interpreters.{other}" for other in others} & own, name
        assert not any(m.startswith(("minijax.sharding", "minijax.core.refs")) for m in own), name
