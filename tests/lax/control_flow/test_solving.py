"""`custom_root` and `custom_linear_solve`: implicit derivatives, whatever the solver does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax

pytestmark = pytest.mark.feature("AD-09")

MATRIX = np.array([[4.0, 1.0], [2.0, 3.0]], np.float32)
RIGHT = np.array([1.0, 2.0], np.float32)


def square_root(y: Any) -> Any:
    """The root of x² - y, by Newton's method."""

    def f(x: Any) -> Any:
        return x * x - y

    def solve(f: Any, guess: Any) -> Any:
        return lax.while_loop(lambda x: jnp.abs(f(x)) > 1e-5, lambda x: x - f(x) / (2 * x), guess)

    return lax.custom_root(f, 1.0, solve, lambda g, b: b / g(1.0))


def inverse(a: Any) -> Any:
    determinant = a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    return jnp.array([[a[1, 1], -a[0, 1]], [-a[1, 0], a[0, 0]]]) / determinant


def solved(a: Any, b: Any) -> Any:
    return lax.custom_linear_solve(
        lambda v: a @ v, b, lambda _, b: inverse(a) @ b, lambda _, b: inverse(a.T) @ b
    )


def squared_norm(a: Any, b: Any) -> Any:
    return (solved(a, b) ** 2).sum()


def squared_norm_by_inverse(a: Any, b: Any) -> Any:
    return ((inverse(a) @ b) ** 2).sum()


def test_root_of_a_while_loop_has_reverse_mode() -> None:
    np.testing.assert_allclose(jax.grad(square_root)(4.0), 0.25, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.grad(square_root))(9.0), 1 / 6, rtol=1e-5)


def test_root_has_a_second_derivative() -> None:
    np.testing.assert_allclose(jax.grad(jax.grad(square_root))(4.0), -1 / 32, rtol=1e-4)


def test_root_has_forward_mode() -> None:
    value, dot = jax.jvp(square_root, (4.0,), (2.0,))
    np.testing.assert_allclose((value, dot), (2.0, 0.5), rtol=1e-5)


def test_roots_of_a_batch_agree_with_roots_one_by_one() -> None:
    y = np.array([1.0, 4.0, 9.0], np.float32)
    np.testing.assert_allclose(jax.vmap(square_root)(y), np.sqrt(y), rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(jax.grad(square_root))(y), 0.5 / np.sqrt(y), rtol=1e-4)
    total = jax.grad(lambda y: jax.vmap(square_root)(y).sum())
    np.testing.assert_allclose(total(y), 0.5 / np.sqrt(y), rtol=1e-4)


def test_root_returns_auxiliary_results() -> None:
    def solve(f: Any, guess: Any) -> Any:
        return jnp.sqrt(4.0) + 0 * guess, {"steps": 3}

    root, aux = lax.custom_root(lambda x: x * x - 4.0, 1.0, solve, lambda g, b: b / g(1.0), True)
    assert (float(root), int(aux["steps"])) == (2.0, 3)


def test_linear_solve_solves() -> None:
    expected = np.linalg.solve(MATRIX, RIGHT)
    np.testing.assert_allclose(solved(MATRIX, RIGHT), expected, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(solved)(MATRIX, RIGHT), expected, rtol=1e-5)


@pytest.mark.parametrize("transform", [jax.grad, jax.jacfwd, jax.jacrev, jax.hessian])
@pytest.mark.parametrize("argnum", [0, 1])
def test_linear_solve_has_the_derivatives_of_the_inverse(transform: Any, argnum: int) -> None:
    found = transform(squared_norm, argnum)(MATRIX, RIGHT)
    expected = transform(squared_norm_by_inverse, argnum)(MATRIX, RIGHT)
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-5)


def test_linear_solve_of_a_batch_agrees_with_stacking() -> None:
    matrices = np.stack([MATRIX, MATRIX + np.eye(2, dtype=np.float32)])
    found = jax.vmap(jax.grad(squared_norm), (0, None))(matrices, RIGHT)
    expected = np.stack([jax.grad(squared_norm_by_inverse)(a, RIGHT) for a in matrices])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_symmetric_linear_solve_has_reverse_mode_without_a_transposed_solver() -> None:
    def f(b: Any) -> Any:
        x = lax.custom_linear_solve(lambda v: 2 * v, b, lambda _, b: b / 2, symmetric=True)
        return (x**2).sum()

    np.testing.assert_allclose(jax.grad(f)(RIGHT), RIGHT / 2)


def test_transposed_solver_gets_the_transposed_function() -> None:
    def apply(function: Any, b: Any) -> Any:
        return function(b)

    def f(b: Any) -> Any:
        return lax.custom_linear_solve(lambda v: MATRIX @ v, b, apply, apply)

    (transposed,) = jax.linear_transpose(f, RIGHT)(RIGHT)
    np.testing.assert_allclose(transposed, MATRIX.T @ RIGHT, rtol=1e-6)


def test_linear_solve_takes_trees() -> None:
    b = {"x": RIGHT, "y": np.float32(3)}
    x = lax.custom_linear_solve(
        lambda v: {"x": 2 * v["x"], "y": 3 * v["y"]},
        b,
        lambda _, b: {"x": b["x"] / 2, "y": b["y"] / 3},
    )
    np.testing.assert_allclose(x["x"], RIGHT / 2)
    assert float(x["y"]) == 1.0


def test_reverse_mode_without_transposed_solver_says_what_to_give() -> None:
    def f(b: Any) -> Any:
        return lax.custom_linear_solve(lambda v: 2 * v, b, lambda _, b: b / 2).sum()

    with pytest.raises(TypeError, match="give transpose_solve, or symmetric=True"):
        jax.grad(f)(RIGHT)


@pytest.mark.parametrize(
    ("call", "culprit"),
    [
        (lambda: lax.custom_linear_solve(lambda v: (v, v), RIGHT, lambda _, b: b), "matvec"),
        (lambda: lax.custom_linear_solve(lambda v: v, RIGHT, lambda _, b: b[:1]), "solve"),
        (
            lambda: lax.custom_linear_solve(
                lambda v: v, RIGHT, lambda _, b: b, lambda _, b: b.astype(jnp.int32)
            ),
            "transpose_solve",
        ),
        (lambda: lax.custom_root(lambda x: x[:1], RIGHT, lambda _, x: x, lambda _, y: y), "f"),
        (
            lambda: lax.custom_root(lambda x: x, RIGHT, lambda _, x: x, lambda _, y: y[:1]),
            "tangent_solve",
        ),
    ],
)
def test_functions_of_other_types_are_refused_by_name(call: Any, culprit: str) -> None:
    with pytest.raises(ValueError, match=f"the result of {culprit} must have the structure"):
        call()


def test_roots_and_solutions_inside_a_scan_are_differentiated() -> None:
    def total(y: Any) -> Any:
        def step(carry: Any, scale: Any) -> Any:
            root = square_root(carry * scale)
            return root, solved(MATRIX * scale, RIGHT * root).sum()

        last, sums = lax.scan(step, y, jnp.array([1.0, 2.0]))
        return last + sums.sum()

    def expected(y: Any) -> Any:
        first = jnp.sqrt(y)
        last = jnp.sqrt(2 * first)
        unit = jnp.asarray(np.linalg.solve(MATRIX, RIGHT)).sum()
        return last + unit * first + unit / 2 * last

    np.testing.assert_allclose(jax.grad(total)(3.0), jax.grad(expected)(3.0), rtol=1e-4)
    forward_over_reverse = jax.jvp(jax.grad(total), (3.0,), (1.0,))[1]
    second = jax.grad(jax.grad(expected))(3.0)
    np.testing.assert_allclose(forward_over_reverse, second, rtol=1e-3)
    batch = np.array([1.0, 3.0], np.float32)
    found = jax.jit(jax.vmap(jax.grad(total)))(batch)
    np.testing.assert_allclose(found, jax.vmap(jax.grad(expected))(batch), rtol=1e-4)
