"""`linear_call`: the user's transpose runs in place of the function's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.custom_derivatives import linear_call

pytestmark = pytest.mark.feature("AD-02")


def divided(x: Any, denominator: Any) -> Any:
    """x / denominator, with a transpose that is three times too small, to be told apart."""
    return linear_call(lambda d, x: x / d, lambda d, ct: ct / d / 3, denominator, x)


def test_call_computes_the_function() -> None:
    assert float(divided(3.0, 2.0)) == 1.5
    assert float(jax.jit(divided)(3.0, 2.0)) == 1.5


def test_reverse_mode_runs_the_transpose() -> None:
    np.testing.assert_allclose(jax.grad(divided)(1.0, 2.0), 1 / 6, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.grad(divided))(1.0, 2.0), 1 / 6, rtol=1e-6)
    (transposed,) = jax.linear_transpose(lambda x: divided(x, 2.0), 1.0)(1.0)
    np.testing.assert_allclose(transposed, 1 / 6, rtol=1e-6)


def test_forward_mode_runs_the_function() -> None:
    value, dot = jax.jvp(lambda x: divided(x, 2.0), (3.0,), (1.0,))
    assert (float(value), float(dot)) == (1.5, 0.5)


def test_transposing_twice_runs_the_function() -> None:
    def f(x: Any) -> Any:
        return jax.linear_transpose(
            lambda x: linear_call(
                lambda d, x: x * d,
                lambda d, ct: linear_call(lambda d, ct: ct * d, lambda d, x: 7 * x * d, d, ct),
                2.0,
                x,
            ),
            1.0,
        )(x)[0]

    assert float(f(1.0)) == 2.0
    assert float(jax.grad(f)(1.0)) == 14.0


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
def test_batch_agrees_with_calls_one_by_one(axes: tuple[int | None, int | None]) -> None:
    x, d = np.array([1.0, 2.0], np.float32), np.array([4.0, 8.0], np.float32)
    args = (x if axes[0] == 0 else 3.0, d if axes[1] == 0 else 2.0)
    one = [
        tuple(a[i] if axis == 0 else a for a, axis in zip(args, axes, strict=True)) for i in (0, 1)
    ]
    np.testing.assert_allclose(jax.vmap(divided, axes)(*args), [divided(*a) for a in one])
    slopes = jax.vmap(jax.grad(divided), axes)(*args)
    np.testing.assert_allclose(slopes, [jax.grad(divided)(*a) for a in one], rtol=1e-6)


def test_call_inside_a_scan_is_transposed() -> None:
    def f(x: Any) -> Any:
        return lax.scan(lambda c, d: (divided(c, d), None), x, jnp.array([2.0, 4.0]))[0]

    np.testing.assert_allclose(jax.grad(f)(1.0), 1 / 72, rtol=1e-6)


def test_trees_and_closures_are_passed_on() -> None:
    def f(x: Any, scale: Any) -> Any:
        return linear_call(
            lambda r, x: {"out": x["a"] * r[0] * lax.stop_gradient(scale)},
            lambda r, ct: {"a": ct["out"] * r[0] * lax.stop_gradient(scale)},
            (3.0,),
            {"a": x},
        )["out"]

    assert float(jax.grad(f)(1.0, 2.0)) == 6.0


def test_derivative_by_a_residual_is_refused() -> None:
    with pytest.raises(TypeError, match="differentiated by a residual"):
        jax.grad(divided, 1)(1.0, 2.0)


def test_transpose_of_other_types_is_refused() -> None:
    with pytest.raises(TypeError, match="must return the structure and types of linear_args"):
        linear_call(lambda _, x: x, lambda _, ct: (ct, ct), 1.0, 2.0)
