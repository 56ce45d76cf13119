"""Iterative solutions of linear systems: exact, preconditioned, of trees, differentiated."""

from __future__ import annotations

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.scipy.sparse.linalg import bicgstab, cg, gmres

RNG = np.random.default_rng(2)
N = 6
B = RNG.standard_normal(N).astype(np.float32)
ANY = (RNG.standard_normal((N, N)) + 4 * np.eye(N)).astype(np.float32)
POSITIVE = (ANY @ ANY.T / 4).astype(np.float32)
HERMITIAN = POSITIVE + 1j * np.triu(ANY, 1) / 4 - 1j * np.triu(ANY, 1).T / 4
SOLVERS = {
    "cg": (cg, POSITIVE, HERMITIAN),
    "bicgstab": (bicgstab, ANY, HERMITIAN @ HERMITIAN),
    "gmres": (gmres, ANY, ANY + 1j * ANY.T),
}


def assert_solves(actual, matrix, right):
    np.testing.assert_allclose(actual, np.linalg.solve(matrix, right), rtol=2e-3, atol=2e-4)


@pytest.mark.slow
@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("name", SOLVERS)
def test_systems_are_solved_in_every_form(name):
    solver, real, complex_ = SOLVERS[name]
    diagonal = 1 / np.diag(real)

    def compute(b):
        batch = minijax.vmap(lambda b: solver(real, b)[0])(jnp.stack([b, 2 * b]))
        guided, _ = solver(lambda x: real @ x, b, b, tol=1e-6, M=lambda x: diagonal * x)
        return batch[0], batch[1] / 2, guided

    for found in minijax.jit(compute)(B):
        assert_solves(found, real, B)
    right = (B + 1j * B[::-1]).astype(np.complex64)
    found, _ = solver(complex_.astype(np.complex64), right, tol=1e-6)
    assert_solves(found, complex_, right)
    tree, _ = solver(lambda t: {"a": real @ t["a"], "b": 2 * t["b"]}, {"a": B, "b": np.float32(3)})
    assert_solves(tree["a"], real, B)
    np.testing.assert_allclose(tree["b"], 1.5, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVERS)
def test_solutions_have_the_derivatives_of_exact_ones(name):
    solver, matrix, _ = SOLVERS[name]
    weights = np.arange(1.0, N + 1, dtype=np.float32)

    def loss(matrix, b):
        return jnp.sum(weights * solver(lambda x: matrix @ x, b, tol=1e-6)[0])

    by_matrix, by_right = minijax.jit(minijax.grad(loss, (0, 1)))(matrix, B)
    adjoint = np.linalg.solve(matrix.T, weights)
    solution = np.linalg.solve(matrix, B)
    np.testing.assert_allclose(by_right, adjoint, rtol=2e-3, atol=1e-3)
    expected = -np.outer(adjoint, solution)
    np.testing.assert_allclose(by_matrix, expected, rtol=5e-3, atol=1e-3)


@pytest.mark.slow
def test_minimal_residuals_shrink_with_every_direction():
    def residual(method, restart):
        x, info = gmres(ANY, B, restart=restart, maxiter=1, solve_method=method)
        assert info == 0
        return np.linalg.norm(B - ANY @ np.asarray(x))

    # What Krylov subspaces of growing dimension hold, by least squares in double precision.
    powers = [B.astype(np.float64)]
    for _ in range(3):
        powers.append(ANY @ powers[-1])
    for method, restart in (("batched", 3), ("incremental", 2)):
        images = ANY @ np.stack(powers[:restart], -1)
        best = images @ np.linalg.lstsq(images, B, rcond=None)[0]
        expected = np.linalg.norm(B - best)
        np.testing.assert_allclose(residual(method, restart), expected, rtol=1e-3)


def test_systems_that_are_solved_already_are_left_alone():
    for solver in (cg, bicgstab, gmres):
        limited = minijax.jit(lambda b, n, solve=solver: solve(POSITIVE, b, maxiter=n)[0])
        assert np.array_equal(limited(0 * B, 100), 0 * B)
        assert np.array_equal(limited(B, 0), 0 * B)
    assert cg(lambda x: 2 * x, 1.0)[0] == 0.5


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: cg([[1.0]], B), TypeError, "a function or a square matrix"),
        (lambda: gmres(ANY[:2], B), ValueError, "the matrix must be square"),
        (lambda: bicgstab(ANY, B, M=B), ValueError, "must be square.*\n.*M: "),
        (lambda: cg(POSITIVE, B, B[:2]), ValueError, "different shapes"),
        (lambda: cg(POSITIVE, B, (B,)), ValueError, "different trees"),
        (lambda: cg(POSITIVE, np.arange(N)), TypeError, "floats or complex"),
        (lambda: cg(lambda x: x[:2], B), ValueError, "matvec"),
        (lambda: gmres(ANY, B, restart=0), ValueError, "restart must be positive"),
        (lambda: gmres(ANY, B, solve_method="fast"), ValueError, "unknown solve_method"),
    ],
)
def test_solvers_refuse_bad_arguments(call, error, match):
    with pytest.raises(error, match=match):
        call()
