"""Minima of smooth functions: where they are, what ends the search, compiled and batched."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

import minijax
import minijax.numpy as jnp
from minijax.core.config import enable_x64
from minijax.scipy.optimize import OptimizeResults, minimize

LIMITED = "l-bfgs-experimental-do-not-rely-on-this"
METHODS = ("BFGS", LIMITED)


def rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def himmelblau(x):
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


@pytest.mark.slow
@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("method", METHODS)
def test_minima_of_curved_valleys_are_found_in_single_precision(method):
    found = minimize(rosenbrock, np.zeros(2, np.float32), method=method)
    assert isinstance(found, OptimizeResults)
    # Near the minimum the value may change by less than its rounding error (status 4) before the
    # gradient is small enough (status 0); which comes first depends on how XLA rounds.
    assert found.status in ((0, 4) if method == LIMITED else (0,))
    assert found.success == (found.status == 0)
    assert found.nfev == found.njev
    np.testing.assert_allclose(found.x, 1, rtol=1e-4)
    assert (found.hess_inv is None) == (method == LIMITED)
    found = minimize(himmelblau, np.float32([1, 1]), method=method)
    np.testing.assert_allclose(found.x, [3, 2], rtol=1e-4)


@pytest.mark.slow
def test_minima_agree_with_scipy_in_double_precision():
    start = np.array([-1.2, 1.0, 0.3, -0.7])
    expected = scipy.optimize.minimize(
        scipy.optimize.rosen, start, jac=scipy.optimize.rosen_der, method="BFGS"
    )
    with enable_x64(True):
        found = minimize(rosenbrock, start, method="BFGS")
        assert found.success
        np.testing.assert_allclose(found.x, expected.x, atol=1e-5)
        assert found.nfev < 2 * expected.nfev
        np.testing.assert_allclose(found.jac, 0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_search_can_be_compiled_batched_and_given_arguments(method):
    def solve(a):
        found = minimize(
            lambda x, a, b: jnp.sum((x - a) ** 4 + b * x**2), jnp.zeros(2), (a, 1.0), method=method
        )
        return found.x, found.success

    many, all_found = minijax.jit(minijax.vmap(solve))(np.float32([1, 2]))
    assert all_found.all()
    # 2 (x - a)³ + x = 0
    np.testing.assert_allclose(many[:, 0], [0.410245, 1.164878], rtol=1e-4)
    np.testing.assert_allclose(many[:, 1], many[:, 0], rtol=1e-5)


@pytest.mark.slow
def test_search_tells_what_ended_it():
    zero = np.zeros(2, np.float32)

    @minijax.jit
    def limited(options):
        found = minimize(rosenbrock, zero, method=LIMITED, options=options)
        return found.status, found.success

    ample = {"maxiter": 100, "maxfun": 100, "maxgrad": 100, "ftol": 0.0, "gtol": 1e-4}
    assert limited(ample) == (0, True)
    assert limited(ample | {"maxiter": 2}) == (1, False)
    assert limited(ample | {"maxfun": 2}) == (2, False)
    assert limited(ample | {"maxgrad": 2}) == (3, False)
    assert limited(ample | {"ftol": 1e3}) == (4, False)
    assert limited(ample | {"maxiter": 0, "gtol": 3.0}) == (0, True)

    @minijax.jit
    def line(factor):
        return minimize(lambda x: factor * jnp.sum(x), zero, method="BFGS", tol=1e-3)

    assert line(1.0).status == 5
    assert line(np.nan).status == 3
    assert line(1e-4).success


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"method": "CG"}, ValueError, "unknown method"),
        ({"method": "BFGS", "options": {"maxls": 3}}, TypeError, "no such option.*\n.*maxls"),
        ({"method": "BFGS", "options": {"norm": "fro"}}, ValueError, "norm of a vector"),
        ({"method": "BFGS", "args": 3.0}, TypeError, r"args=\(argument,\)"),
        ({"method": "BFGS", "x0": np.zeros((2, 2))}, TypeError, "ravel_pytree"),
        ({"method": "BFGS", "x0": np.zeros(2, int)}, TypeError, "a vector of floats"),
        ({"method": "BFGS", "fun": lambda x: x}, TypeError, "scalar"),
    ],
)
def test_search_refuses_bad_arguments(options, error, match):
    arguments = {"fun": jnp.sum, "x0": np.zeros(2, np.float32)} | options
    with pytest.raises(error, match=match):
        minimize(arguments.pop("fun"), arguments.pop("x0"), **arguments)
