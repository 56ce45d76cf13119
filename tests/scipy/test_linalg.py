"""Linear algebra as SciPy has it, with SciPy as the oracle.

Each test compiles few programs: one for all cases of a function, where they allow it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import minijax
import minijax.numpy as jnp
from minijax.core.config import enable_x64
from minijax.scipy import linalg

_RNG = np.random.default_rng(0)
_REAL = _RNG.normal(size=(4, 4))
_COMPLEX = _RNG.normal(size=(4, 4)) + 1j * _RNG.normal(size=(4, 4))
_OTHER = _RNG.normal(size=(3, 3))
_RIGHT = _RNG.normal(size=(4, 3))
_VECTOR = _RNG.normal(size=4)
_SQUARES = (_REAL, _COMPLEX)


def _definite(x: Any) -> Any:
    return x @ x.conj().T + np.eye(len(x))


def _check(actual: Any, expected: Any, tolerance: float = 1e-9) -> None:
    for a, e in zip(minijax.tree.leaves(actual), minijax.tree.leaves(expected), strict=True):
        assert np.shape(a) == np.shape(e)
        np.testing.assert_allclose(a, e, rtol=tolerance, atol=tolerance)


def _compare(
    calls: Callable[[Any], Any], *args: Any, oracle: Any = scipy.linalg, tolerance: float = 1e-9
) -> None:
    """Compares what a function of a module of functions gives: ours, compiled, and the oracle's."""
    with enable_x64(True):
        actual = minijax.jit(lambda *args: calls(linalg, *args))(*args)
        _check(actual, calls(oracle, *args), tolerance)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_named_matrices_are_those_of_scipy(size: int) -> None:
    def named(module: Any) -> Any:
        functions = (module.dft, module.hilbert, module.invhilbert, module.helmert)
        kinds = ("symmetric", "lower", "upper")
        triangles = [f(size, k) for f in (module.pascal, module.invpascal) for k in kinds]
        scaled = [module.dft(size, scale) for scale in ("sqrtn", "n")]
        return [f(size) for f in functions], triangles, scaled, module.helmert(size, full=True)

    with enable_x64(True):
        _check(named(linalg), named(scipy.linalg), 1e-13)
        if size & (size - 1) == 0:
            _check(linalg.hadamard(size), scipy.linalg.hadamard(size))


@pytest.mark.feature("NP-01")
def test_dtypes_of_named_matrices_are_those_of_jax() -> None:
    assert {f(2).dtype.name for f in (linalg.hilbert, linalg.pascal, linalg.helmert)} == {"float32"}
    assert linalg.dft(2).dtype == np.complex64
    assert linalg.hadamard(2).dtype == np.int32
    assert linalg.hadamard(2, dtype="bfloat16").dtype == jnp.bfloat16
    with pytest.raises(TypeError, match=r"^scipy\.linalg\.hadamard: "):
        linalg.hadamard(2, dtype="no dtype")
    assert linalg.pascal(0).shape == linalg.dft(0).shape == (0, 0)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("size", [2, 3, 6, 7])
def test_patterns_are_those_of_scipy(size: int) -> None:
    v, w = _RNG.normal(size=size), _RNG.normal(size=3)

    def patterns(module: Any, v: Any, w: Any) -> Any:
        modes = ("full", "same", "valid")
        return (
            [f(v) for f in (module.circulant, module.companion, module.fiedler_companion)],
            [f(v) for f in (module.toeplitz, module.hankel, module.fiedler)],
            [f(v, w) for f in (module.toeplitz, module.hankel)],
            [module.convolution_matrix(v, n, mode) for mode in modes for n in (1, 4)],
            module.leslie(v, v[1:]),
            module.block_diag(v, module.circulant(w), 5.0),
        )

    _compare(patterns, v, w)


@pytest.mark.feature("NP-01")
def test_patterns_take_batches_and_keep_dtypes() -> None:
    x = np.arange(6).reshape(2, 3)
    for name in ("circulant", "toeplitz", "hankel", "fiedler"):
        function = getattr(linalg, name)
        assert np.array_equal(function(x), np.stack([function(row) for row in x]))
        assert function(x).dtype == np.int32
        assert function(x[:, :0]).shape == (2, 0, 0)
    assert linalg.companion(x + 1).dtype == np.float32
    assert linalg.leslie(x, x[:, 1:] / 2).dtype == np.float32
    assert linalg.block_diag().shape == (1, 0)
    assert linalg.circulant(2.0).weak_type
    assert not linalg.toeplitz(2.0).weak_type
    assert linalg.toeplitz(2.0, _REAL[0].astype(jnp.bfloat16)).dtype == jnp.bfloat16


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("x", _SQUARES, ids=["real", "complex"])
def test_factorizations_are_those_of_scipy(x: Any) -> None:
    def factorizations(module: Any, x: Any, p: Any) -> Any:
        tall, modes = x[:, :3], ("full", "economic", "r")
        return (
            [module.cholesky(p, lower=lower) for lower in (False, True)],
            [module.lu(part) for part in (tall, tall.T)],
            module.lu(x, permute_l=True),
            module.lu_factor(x),
            [module.qr(tall, mode=m, pivoting=p) for m in modes for p in (False, True)],
            module.svd(x, compute_uv=False),
            module.hessenberg(x, calc_q=True),
            [module.schur(x, output=output) for output in ("real", "complex")],
            module.eigh(p, eigvals_only=True),
            [module.det(x), module.inv(x)],
        )

    _compare(factorizations, x, _definite(x))


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("x", _SQUARES, ids=["real", "complex"])
def test_systems_are_solved_as_scipy_does(x: Any) -> None:
    def systems(module: Any, x: Any, p: Any, b: Any) -> Any:
        c, triangular, v = b[:3], module.solve_triangular, b[:, 0]
        return (
            [triangular(x, b, trans=t, lower=True, unit_diagonal=t == 1) for t in (0, 1, 2)],
            [triangular(x, v, trans=t) for t in ("N", "T", "C")],
            [module.lu_solve(module.lu_factor(x), r, trans=t) for t in (0, 1, 2) for r in (b, v)],
            [module.cho_solve(module.cho_factor(p, lower=w), b) for w in (False, True)],
            [module.solve(p, r, lower=True, assume_a="pos") for r in (b, v)],
            module.solve(x, b),
            module.qr_multiply(x[:, :3], b.T),
            module.qr_multiply(x[:, :3], v, conjugate=True, pivoting=True),
            [module.qr_multiply(x[:, :3], r, "left") for r in (c, c[0])],
        )

    _compare(systems, x, _definite(x), _RIGHT)


@pytest.mark.slow
@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("x", _SQUARES, ids=["real", "complex"])
def test_functions_of_matrices_are_those_of_scipy(x: Any) -> None:
    def functions(module: Any, x: Any, p: Any, y: Any, right: Any) -> Any:
        return (
            [module.expm(scale * x) for scale in (1e-3, 1.0, 20.0)],
            module.expm_frechet(x, p),
            module.sqrtm(x),
            module.solve_sylvester(x, y, right),
        )

    # SciPy mixes real and complex forms where the matrices are of different dtypes.
    _compare(functions, x, _definite(x), _OTHER.astype(x.dtype), _RIGHT, tolerance=1e-7)
    with enable_x64(True):
        eigen = linalg.solve_sylvester(x, _OTHER, _RIGHT, method="eigen")
        _check(x @ eigen + eigen @ _OTHER, _RIGHT.astype(x.dtype))
        _check(linalg.expm(x, upper_triangular=True), scipy.linalg.expm(np.triu(x)))
        value, error = linalg.funm(x, jnp.exp, disp=False)
        _check(value, scipy.linalg.expm(x).astype(complex), 1e-7)
        assert 0 < error < 1e-10


@pytest.mark.feature("NP-01")
def test_functions_of_defective_and_singular_matrices_are_defined() -> None:
    value, error = linalg.funm(jnp.eye(2), jnp.exp, disp=False)
    _check(value, np.exp(1) * np.eye(2), 1e-6)
    assert float(error) < 1e-6
    assert not np.asarray(linalg.sqrtm(jnp.zeros((2, 2)))).any()
    assert np.isnan(linalg.sqrtm(jnp.array([[0.0, 1.0], [0.0, 0.0]]))).all()
    # Negative eigenvalues of real matrices have roots on the positive imaginary axis.
    _check(linalg.sqrtm(jnp.diag(jnp.array([-4.0, 9.0]))), np.diag([2j, 3]), 1e-6)
    assert np.isnan(linalg.expm(1e6 * jnp.eye(2))).all()
    ones = np.ones((2, 2), np.float32)
    for method in ("schur", "eigen"):
        unsolvable = linalg.solve_sylvester(np.eye(2), -np.eye(2), ones, method=method)
        assert np.isnan(unsolvable).all()


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("x", _SQUARES, ids=["real", "complex"])
def test_polar_and_schur_forms_are_what_they_claim(x: Any) -> None:
    with enable_x64(True):
        for part in (x, x[:, :3], x[:3]):
            for side in ("right", "left"):
                expected = scipy.linalg.polar(part, side)
                _check(linalg.polar(part, side, method="svd"), expected)
        _check(linalg.polar(x[:, :3]), scipy.linalg.polar(x[:, :3]))
        _check(linalg.polar(x[:3], "left"), scipy.linalg.polar(x[:3], "left"))
        form, vectors = linalg.rsf2csf(*scipy.linalg.schur(x))
        _check(vectors @ form @ vectors.conj().T, x.astype(complex))
        assert not np.tril(form, -1).any()


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("size", [1, 2, 30])
def test_eigenvalues_of_tridiagonal_matrices_are_found(size: int) -> None:
    d, e = _RNG.normal(size=size), _RNG.normal(size=size - 1)
    dense = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
    values = np.linalg.eigvalsh(dense)
    with enable_x64(True):
        eigenvalues = minijax.jit(lambda d, e: linalg.eigh_tridiagonal(d, e, eigvals_only=True))
        for scale in (1.0, 1e200, 1e-200, 0.0):
            _check(np.asarray(eigenvalues(d * scale, e * scale)), values * scale, 1e-13)
        _check(np.asarray(eigenvalues(np.ones(size), 0 * e)), np.ones(size), 1e-13)
        found, vectors = linalg.eigh_tridiagonal(d, e)
        _check((vectors * found) @ vectors.T, dense)
        chosen = {"select": "i", "select_range": (size // 2, size - 1)}
        _check(linalg.eigh_tridiagonal(d, e, eigvals_only=True, **chosen), values[size // 2 :])
        shifted = e * np.exp(1j)
        found, vectors = linalg.eigh_tridiagonal(d + 0j, shifted)
        dense = np.diag(d) + np.diag(shifted, 1) + np.diag(shifted.conj(), -1)
        _check((vectors * found) @ vectors.conj().T, dense)


@pytest.mark.slow
@pytest.mark.feature("NP-01")
def test_batches_are_mapped() -> None:
    batch = np.stack([_REAL, _REAL.T]).astype(np.float32)

    def all_of(x: Any) -> Any:
        functions = (linalg.expm, linalg.sqrtm, linalg.lu, linalg.hessenberg, linalg.polar)
        return [f(x) for f in functions]

    one = minijax.jit(all_of)
    expected = minijax.tree.map(lambda *xs: np.stack(xs), *[one(x) for x in batch])
    _check(one(batch), expected, 1e-4)
    slopes = minijax.vjp(linalg.expm, batch[:0])[1](batch[:0])[0]
    assert linalg.expm(batch[:0]).shape == slopes.shape == (0, 4, 4)


@pytest.mark.slow
@pytest.mark.feature("NP-01")
def test_derivatives_match_finite_differences() -> None:
    def loss(x: Any) -> Any:
        p = x @ x.T + jnp.eye(4)
        solved = linalg.solve(p, x, assume_a="pos") + linalg.lu_solve(linalg.lu_factor(p), x)
        exponential = linalg.expm(x) + linalg.expm_frechet(x, p, compute_expm=False)
        return jnp.sum(jnp.sin(solved + exponential + linalg.polar(x, method="svd")[1]))

    step = 1e-6 * _RNG.normal(size=(4, 4))
    with enable_x64(True):
        value = minijax.jit(loss)
        expected = value(_REAL / 2 + step) - value(_REAL / 2 - step)
        slope = np.sum(2 * step * np.asarray(minijax.jit(minijax.grad(loss))(_REAL / 2)))
        np.testing.assert_allclose(slope, expected, rtol=1e-6)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("lower", [False, True])
def test_slope_of_a_definite_system_is_that_of_the_equation(lower: bool) -> None:
    x = (_REAL + 1j * _REAL[::-1]).astype(np.complex64) / 2
    p, b, p_dot = x @ x.conj().T + np.eye(4, dtype=x.dtype), x[:, :2], x[::-1]

    def solve(p: Any) -> Any:
        return linalg.solve(p, b, lower=lower, assume_a="pos")

    solved, slope = minijax.jvp(solve, (p,), (p_dot,))
    _check(slope, -np.linalg.solve(p, p_dot @ solved), 1e-4)
    (gradient,) = minijax.vjp(solve, p)[1](b)
    _check(np.sum(gradient * p_dot), np.sum(b * slope), 1e-4)


def test_batches_of_vectors_are_deprecated() -> None:
    a, b = np.stack([np.eye(3, dtype=np.float32)] * 2), np.ones((2, 3), np.float32)
    with pytest.warns(FutureWarning, match=r"solve_triangular: batches of vectors"):
        assert np.array_equal(linalg.solve_triangular(a, b), b)


_EYE = np.eye(3, dtype=np.float32)
_ONES = np.ones(3, np.float32)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: linalg.cholesky(_EYE[:2]), ValueError, "cholesky: a is no square matrix"),
        (lambda: linalg.expm(_ONES), ValueError, "expm: A is no square matrix"),
        (lambda: linalg.expm(_EYE.astype(jnp.bfloat16)), TypeError, "no approximant for bfloat16"),
        (lambda: linalg.solve(_EYE, _ONES, assume_a="sum"), ValueError, "unknown assume_a"),
        (lambda: linalg.solve_triangular(_EYE, _ONES[:2]), ValueError, "b does not fit"),
        (lambda: linalg.solve_triangular(_EYE, _ONES, trans=3), ValueError, "unknown trans"),
        (lambda: linalg.lu_solve((_EYE, _ONES), _ONES, "T"), ValueError, "unknown trans"),
        (lambda: linalg.qr(_EYE, mode="raw"), ValueError, "unknown mode"),
        (lambda: linalg.qr_multiply(_EYE, _ONES[:2]), ValueError, "c does not fit"),
        (lambda: linalg.polar(_EYE, "up"), ValueError, "unknown side"),
        (lambda: linalg.polar(_EYE[:2]), NotImplementedError, "right polar decomposition"),
        (lambda: linalg.eigh(_EYE, _EYE), NotImplementedError, "generalized problems"),
        (lambda: linalg.schur(_EYE, "float"), ValueError, "unknown output"),
        (lambda: linalg.rsf2csf(_EYE, np.eye(2)), ValueError, "different sizes"),
        (lambda: linalg.sqrtm(_EYE, 2), NotImplementedError, "no blocks"),
        (lambda: linalg.funm(_EYE[:2], jnp.exp), ValueError, "no square matrix"),
        (lambda: linalg.expm_frechet(_EYE, np.eye(2)), ValueError, "different shapes"),
        (lambda: linalg.solve_sylvester(_EYE, _EYE, _EYE[:2]), ValueError, "C does not fit"),
        (
            lambda: linalg.solve_sylvester(_EYE, _EYE, _EYE, method="qr"),
            ValueError,
            "unknown method",
        ),
        (lambda: linalg.block_diag(_EYE[None]), ValueError, "more than two dimensions"),
        (lambda: linalg.circulant([1, 2]), TypeError, "list"),
        (lambda: linalg.hankel(1.0), ValueError, "c is no vector"),
        (lambda: linalg.companion(_ONES[:1]), ValueError, "too short"),
        (lambda: linalg.leslie(_ONES, _ONES), ValueError, "shorter than f by one"),
        (lambda: linalg.convolution_matrix(_ONES, 0), ValueError, "n must be positive"),
        (lambda: linalg.convolution_matrix(_ONES, 2, "half"), ValueError, "unknown mode"),
        (lambda: linalg.dft(2, "x"), ValueError, "unknown scale"),
        (lambda: linalg.dft(2, dtype="float32"), ValueError, "dtype is not complex"),
        (lambda: linalg.convolution_matrix(2.0, 2), ValueError, "a is no vector"),
        (lambda: linalg.dft(2.5), TypeError, "n is no integer"),
        (lambda: linalg.hadamard(6), ValueError, "no power of 2"),
        (lambda: linalg.helmert(0), ValueError, "not positive"),
        (lambda: linalg.hilbert(-1), TypeError, "negative"),
        (lambda: linalg.pascal(2, "both"), ValueError, "unknown kind"),
        (lambda: linalg.eigh_tridiagonal(_ONES, _ONES), ValueError, "do not fit together"),
        (lambda: linalg.eigh_tridiagonal(_ONES, _ONES[:2] + 0j), TypeError, "no algorithm"),
        (
            lambda: linalg.eigh_tridiagonal(_ONES, _ONES[:2], select="v"),
            NotImplementedError,
            "cannot be selected",
        ),
        (
            lambda: linalg.eigh_tridiagonal(_ONES, _ONES[:2], select="i"),
            ValueError,
            "no range of indices",
        ),
    ],
)
def test_bad_arguments_are_refused(
    call: Callable[[], Any], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        call()
