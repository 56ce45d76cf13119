"""`odeint` follows solutions that are known, and its adjoint their derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, linalg

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental.ode import odeint
from tests.experimental.example_libraries import recorded, samples

pytestmark = pytest.mark.feature("EX-10")


@pytest.mark.parametrize("name", samples.SOLUTIONS)
def test_solution_equals_that_of_jax(name: str) -> None:
    # Steps differ; what a tolerance of 0.001 lets pass does too.
    rtol, atol = (2e-3, 1e-3) if "coarse" in name else (2e-5, 2e-6)
    recorded.check("solutions", name, rtol=rtol, atol=atol)


@pytest.mark.turns(3)
@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), size=st.integers(1, 4))
def test_linear_equations_are_solved_as_by_exponentials(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    matrix, start = rng.normal(size=(size, size)), rng.normal(size=size)
    times = np.cumsum(rng.uniform(0, 1, 4))

    with jax.enable_x64(True):
        found = odeint(lambda y, t: matrix @ y, start, times)

    expected = [linalg.expm(matrix * (t - times[0])) @ start for t in times]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def stiff(y, t, mu):
    """Van der Pol's equation."""
    return jnp.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])


@pytest.mark.slow
def test_solution_equals_that_of_scipy() -> None:
    times = np.linspace(0, 10, 21)

    with jax.enable_x64(True):
        found = jax.jit(odeint, static_argnums=0)(stiff, np.array([2.0, 0.0]), times, 3.0)

    expected = integrate.solve_ivp(
        lambda t, y: [y[1], 3.0 * (1 - y[0] ** 2) * y[1] - y[0]],
        (0, 10),
        [2.0, 0.0],
        "DOP853",
        times,
        rtol=1e-11,
        atol=1e-11,
    )
    np.testing.assert_allclose(found, expected.y.T, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_gradients_equal_differences() -> None:
    def loss(start, times, mu):
        return jnp.sum(
            jnp.sin(odeint(stiff, start, times, mu)) * jnp.arange(1.0, 7.0).reshape(3, 2)
        )

    with jax.enable_x64(True):
        args = (jnp.array([1.0, -0.5]), jnp.array([0.0, 0.7, 1.9]), jnp.array(1.2))
        jax.test_util.check_grads(loss, args, order=1, modes=["rev"], rtol=1e-5, atol=1e-6)


@pytest.mark.turns(3)
def test_second_derivative_is_exact() -> None:
    def last(rate):
        return odeint(lambda y, t: rate * y * t, 1.0, jnp.array([0.0, 1.0]))[-1]

    # The solution is exp(rate / 2).
    np.testing.assert_allclose(jax.grad(jax.grad(last))(0.5), np.exp(0.25) / 4, rtol=1e-5)


def test_closed_over_values_are_differentiated_and_batched() -> None:
    times = jnp.array([0.0, 1.0])

    def last(rate, count):
        return odeint(lambda y, t: -rate * count * y, 1.0, times)[-1]

    rates, counts = np.array([0.5, 1.0, 2.0], np.float32), np.array([1, 2, 1])
    found = jax.vmap(jax.grad(last))(rates, counts)

    np.testing.assert_allclose(found, -counts * np.exp(-rates * counts), rtol=1e-5)


def test_trees_keep_their_form_and_dtypes() -> None:
    start = {"a": np.ones((2, 3), np.float32), "b": (np.complex64(1j), 2)}

    found = odeint(lambda y, t: jax.tree.map(lambda x: -x, y), start, np.array([0, 1, 2]))

    assert jax.tree.map(lambda x: (x.shape, x.dtype.name), found) == {
        "a": ((3, 2, 3), "float32"),
        "b": (((3,), "complex64"), ((3,), "float32")),
    }
    np.testing.assert_allclose(found["b"][1], 2 * np.exp(-np.arange(3.0)), rtol=1e-5)


def test_arguments_may_be_trees_with_integers() -> None:
    def last(params):
        slope = lambda y, t, params: -params["rate"] * params["n"] * y
        return odeint(slope, 1.0, np.array([0.0, 1.0]), params)[-1]

    found = jax.grad(last, allow_int=True)({"rate": 0.5, "n": 2})

    np.testing.assert_allclose(found["rate"], -2 * np.exp(-1), rtol=1e-5)
    assert found["n"].dtype == jax.float0


def test_what_is_out_of_reach_is_nan() -> None:
    blown_up = odeint(lambda y, t: y * y, 1.0, jnp.array([0.0, 0.5, 2.0]))
    few_steps = odeint(lambda y, t: -y, 1.0, jnp.array([0.0, 1e-3, 9.0]), mxstep=3)

    np.testing.assert_allclose(blown_up, [1.0, 2.0, np.nan], rtol=1e-5)
    assert np.isnan(few_steps).tolist() == [False, False, True]


def test_repeated_times_and_single_ones() -> None:
    slope = lambda y, t: -y

    np.testing.assert_array_equal(odeint(slope, 3.0, np.array([1.0])), [3.0])
    found = odeint(slope, 1.0, np.array([0.0, 0.0, 1.0, 1.0]))
    np.testing.assert_allclose(found, np.exp([0.0, 0.0, -1.0, -1.0]), rtol=1e-5)
    assert odeint(lambda y, t: {}, {}, np.array([0.0, 1.0])) == {}


def test_works_under_strict_promotion() -> None:
    with jax.numpy_dtype_promotion("strict"):
        found = jax.grad(lambda y: odeint(lambda y, t: -y, y, jnp.array([0.0, 1.0]))[-1])(1.0)

    np.testing.assert_allclose(found, np.exp(-1), rtol=1e-5)


TIMES = np.array([0.0, 1.0])
BAD = {
    "func is no function": (lambda: odeint(3, 1.0, TIMES), TypeError, "func must be a function"),
    "another tree": (lambda: odeint(lambda y, t: (y,), 1.0, TIMES), TypeError, "another tree"),
    "another shape": (
        lambda: odeint(lambda y, t: jnp.ones(2), 1.0, TIMES),
        TypeError,
        r"another type[\s\S]*slope: f32\[2\]   state: f32\[\]",
    ),
    "complex slope": (
        lambda: odeint(lambda y, t: 1j * y, 1.0, TIMES),
        TypeError,
        "complex if the slope is",
    ),
    "scalar time": (lambda: odeint(lambda y, t: y, 1.0, 2.0), ValueError, "array of one dimension"),
    "no times": (lambda: odeint(lambda y, t: y, 1.0, TIMES[:0]), ValueError, "one dimension"),
    "complex times": (lambda: odeint(lambda y, t: y, 1.0, TIMES * 1j), TypeError, "must be real"),
    "times that decrease": (
        lambda: odeint(lambda y, t: y, 1.0, -TIMES),
        ValueError,
        r"times must increase[\s\S]*func\(y, -t\)",
    ),
    "a negative tolerance": (
        lambda: odeint(lambda y, t: y, 1.0, TIMES, rtol=-1.0),
        ValueError,
        "rtol must not be negative",
    ),
    "a traced tolerance": (
        lambda: jax.jit(lambda r: odeint(lambda y, t: y, 1.0, TIMES, rtol=r))(0.1),
        TypeError,
        "rtol must be a known number",
    ),
    "text as a state": (
        lambda: odeint(lambda y, t: y, "one", TIMES),
        TypeError,
        "arrays or numbers",
    ),
    "text as an argument": (
        lambda: odeint(lambda y, t, a: y, 1.0, TIMES, "one"),
        TypeError,
        "arrays or numbers",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_named(case: str) -> None:
    call, kind, text = BAD[case]

    with pytest.raises(kind, match=rf"(?s)experimental\.ode\.odeint: .*{text}.*test_odeint\.py"):
        call()
