"""Examples with packages of JAX, each in a process of its own, where `jax` means minijax."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import children

PACKAGES = Path(__file__).parents[2] / "examples" / "packages"


def told_by(name: str) -> str:
    done = children.run(str(PACKAGES / name), devices=1, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "with the interface of JAX 0.10.2" in done.stdout
    return done.stdout


@pytest.mark.turns(3)
@pytest.mark.feature("EC-03")
@pytest.mark.slow
def test_patches_of_einops_read_nine_of_ten_digits() -> None:
    accuracy = re.search(r"([\d.]+)% of 450 digits", told_by("patches.py"))
    assert accuracy is not None
    assert float(accuracy[1]) > 90


@pytest.mark.feature("EC-03")
@pytest.mark.slow
def test_jaxtyping_follows_and_refuses() -> None:
    told = told_by("shapes.py")
    errors = re.search(r"is seen is ([\d.]+), of what is filtered ([\d.]+)", told)
    assert errors is not None
    assert float(errors[2]) < 0.8 * float(errors[1])
    assert "parameter 'motion'" in told
    assert "parameter 'seen'" in told
