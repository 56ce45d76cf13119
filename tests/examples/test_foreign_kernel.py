"""The example with kernels in C++: they compute what scikit-learn does, and learning succeeds."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.isotonic import isotonic_regression

import minijax as jax
import minijax.numpy as jnp

pytestmark = pytest.mark.turns(3)

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module, where the host is eight devices."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    with jax.cpu_devices(8):
        yield importlib.import_module("foreign_kernel")


@pytest.fixture
def compiled(example: Any) -> Any:
    """The module with its kernels."""
    if shutil.which("g++") is None:
        pytest.skip("no g++ to compile the kernels with")
    assert example.load_kernels()
    return example


@pytest.mark.slow
def test_weights_of_the_judges_are_found(compiled: Any) -> None:
    result = compiled.main()

    assert result.before < 0.6
    assert result.after > 0.94
    assert result.weights > 0.995


@pytest.mark.slow
def test_kernel_is_isotonic_regression_and_its_derivative(compiled: Any) -> None:
    rng = np.random.default_rng(0)
    y, ct = rng.normal(size=(2, 20, 9)).astype(np.float32)
    v, pull = jax.vjp(jax.vmap(compiled.isotonic), y)
    eps = 1e-3
    nearby = [compiled.isotonic(jnp.asarray(y + s * eps * ct)) for s in (1, -1)]

    exact = [isotonic_regression(row, increasing=False) for row in y]
    np.testing.assert_allclose(v, exact, atol=1e-5)
    # The derivative is symmetric, so pulling back is pushing forward; blocks may change nearby.
    along = (np.asarray(nearby[0]) - np.asarray(nearby[1])) / (2 * eps)
    error = np.abs(pull(jnp.asarray(ct))[0] - along).max(axis=-1)
    assert np.mean(error < 1e-2) > 0.9


def test_without_a_compiler_it_says_what_it_needs(
    example: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(example, "load_kernels", lambda: False)

    assert example.main() is None
    assert "There is no g++ here" in capsys.readouterr().out
