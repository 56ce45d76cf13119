"""`make packages`: figures are compared, programs run, and each has figures that JAX gave."""

import json
import sys
from pathlib import Path

import pytest

from tools import packages

pytestmark = pytest.mark.feature("EC-03")


def test_every_program_has_recorded_figures() -> None:
    programs = {path.stem for path in packages.PROGRAMS.glob("*_*.py")}
    recorded = json.loads(packages.RECORDED.read_text())
    assert programs == set(recorded)
    used = " ".join(path.read_text() for path in packages.PROGRAMS.glob("*_*.py"))
    for package in (
        "optax", "equinox", "flax.linen", "nnx", "haiku", "diffrax", "numpyro", "chex", "blackjax",
        "einops", "jaxtyping", "orbax", "optimistix", "lineax",
    ):  # fmt: skip
        assert package in used
    for text in used.split("\n"):
        assert "minijax" not in text


@pytest.mark.parametrize(
    ("expected", "actual", "words"),
    [
        ({"a": [1.0, 2.0]}, {"a": [1.0, 2.0005]}, []),
        ({"a": [1.0, 2.0]}, {"a": [1.0, 2.1]}, ["a: 0.1 apart"]),
        ({"a": {"b": 1.0}}, {"a": {"b": 1.0}, "c": 2.0}, ["c is missing"]),
        ({"a": [1.0]}, {"a": [[1.0, 1.0]]}, ["a: 2 numbers, not 1"]),
        ({"a": float("nan")}, {"a": 1.0}, ["a: nan apart"]),
        ({"a": True}, {"a": True}, []),
    ],
)
def test_figures_that_differ_are_told(expected: object, actual: object, words: list[str]) -> None:
    assert packages.differences(expected, actual) == words


def test_a_program_runs_on_minijax_and_tells_how_it_fails(tmp_path: Path) -> None:
    good = tmp_path / "good_program.py"
    good.write_text(
        "import json, jax, os\n"
        'print(json.dumps({"figures": {"x": float(jax.numpy.ones(2).sum())}, "seconds": [1, 2]}))\n'
    )
    assert packages.run(good, sys.executable, as_jax=True) == ({"x": 2.0}, [1, 2])
    bad = tmp_path / "bad_program.py"
    bad.write_text("raise ValueError('wrong')\n")
    assert packages.run(bad, sys.executable, as_jax=True) == "ValueError: wrong"


def test_jax_borrows_the_packages(tmp_path: Path) -> None:
    (tmp_path / "borrowed.py").write_text("x = 3\n")
    program = tmp_path / "a_program.py"
    program.write_text(
        'import json, borrowed\nprint(json.dumps({"figures": borrowed.x, "seconds": [0, 0]}))\n'
    )
    program = program.rename(tmp_path.parent / "a_program.py")
    found = packages.run(program, sys.executable, as_jax=False, packages=str(tmp_path))
    assert isinstance(found, packages.Run)
    assert found.figures == 3
    assert Path(packages.site_packages(sys.executable)).is_dir()
