"""Records of factorizations, of triangular systems and of reflections.

The oracles are NumPy and SciPy, matrix by matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

import minijax.numpy as jnp
from minijax import lax
from minijax.lax.linalg.factorizations import geqp3, geqrf
from minijax.lax.linalg.lu import triangular_solve
from tests.lax.records import Arg, ErrorSample, Record

_REAL = ("float32", "float64")
_COMPLEX = ("complex64", "complex128")
_LOOSE = {"float32": 2e-4, "complex64": 2e-4, "float64": 1e-10, "complex128": 1e-10}
_SQUARE = np.ones((3, 3), np.float32)
_TALL = np.ones((5, 3), np.float32)
_HALF = jnp.ones((3, 3), "bfloat16")
_INTEGERS = np.ones((3, 3), np.int32)


def each(function: Callable[..., Any], *cores: int) -> Callable[..., Any]:
    """`function` of every entry of a batch; of each argument the last `cores` are no batch."""

    def apply(*args: Any) -> Any:
        batch = args[0].shape[: args[0].ndim - cores[0]]
        rows = [function(*(x[i] for x in args)) for i in np.ndindex(*batch)]
        if not isinstance(rows[0], tuple):
            return np.stack(rows).reshape(*batch, *rows[0].shape)
        columns = zip(*rows, strict=True)
        return [np.stack(c).reshape(*batch, *c[0].shape) for c in columns]

    return apply


def definite(x: Any) -> Any:
    """x xᴴ + I, which is positive definite: for NumPy's arrays and ours."""
    return x @ x.conj().swapaxes(-1, -2) + np.eye(x.shape[-1], dtype=x.dtype)


def _dominant(x: Any) -> Any:
    """Matrices with a diagonal that outweighs the rest, so that systems are well conditioned."""
    return x + 8 * np.eye(x.shape[-1], dtype=x.dtype)


def _record(
    case: str,
    name: str,
    call: Callable[..., Any],
    oracle: Callable[..., Any],
    shapes: tuple[tuple[int, ...], ...],
    dtypes: tuple[str, ...] = _REAL,
    **options: Any,
) -> Record:
    args = tuple(map(Arg, shapes))
    return Record(name, call, oracle, args, dtypes, case, tolerance=_LOOSE, **options)


def _lu(x: Any) -> tuple[Any, ...]:
    factors, pivots = scipy.linalg.lu_factor(x)
    order = np.arange(x.shape[0])
    for i, j in enumerate(pivots):
        order[[i, j]] = order[[j, i]]
    return factors, pivots, order


def _qr(x: Any, *, full: bool, pivoting: bool) -> tuple[Any, ...]:
    mode = "full" if full else "economic"
    return tuple(scipy.linalg.qr(x, mode=mode, pivoting=pivoting))


def _qr_record(
    case: str, shape: tuple[int, ...], *, full: bool, pivoting: bool, **options: Any
) -> Record:
    return _record(
        case,
        "qr",
        lambda x: lax.linalg.qr(x, full_matrices=full, pivoting=pivoting),
        each(lambda x: _qr(x, full=full, pivoting=pivoting), 2),
        (shape,),
        grad=(0,),
        **options,
    )


def _reflections(a: Any, scales: Any) -> Any:
    """The product of the reflections I - t v vᴴ."""
    product = np.eye(a.shape[0], dtype=a.dtype)
    for i, t in enumerate(scales):
        v = np.concatenate([np.zeros(i), [1], a[i + 1 :, i]]).astype(a.dtype)
        product = product @ (np.eye(len(v)) - t * np.outer(v, v.conj()))
    return product


def _solve(case: str, dtypes: tuple[str, ...] = _REAL, **options: bool) -> Record:
    left = options.get("left_side", False)

    def oracle(a: Any, b: Any) -> Any:
        a = _dominant(a)
        triangle = np.tril(a) if options.get("lower") else np.triu(a)
        if options.get("unit_diagonal"):
            np.fill_diagonal(triangle, 1)
        triangle = triangle.conj() if options.get("conjugate_a") else triangle
        triangle = triangle.T if options.get("transpose_a") else triangle
        return np.linalg.solve(triangle, b) if left else np.linalg.solve(triangle.T, b.T).T

    return _record(
        case,
        "triangular_solve",
        lambda a, b: lax.linalg.triangular_solve(_dominant(a), b, **options),
        each(oracle, 2, 2),
        ((2, 3, 3), (2, 3, 4) if left else (2, 2, 3)),
        dtypes,
        grad=(0, 1),
    )


def _refused(
    call: Callable[..., Any],
    shapes: Any,
    error: type[Exception],
    match: str,
    dtype: str = "float32",
) -> ErrorSample:
    return ErrorSample(call, tuple(np.ones(s, dtype) for s in shapes), error, match)


_CHOLESKY_ERRORS = (
    ErrorSample(lax.linalg.cholesky, (1.0,), TypeError, "x is no matrix"),
    _refused(lax.linalg.cholesky, [(2, 3)], ValueError, "matrices in x are not square"),
    ErrorSample(lax.linalg.cholesky, (_HALF,), NotImplementedError, "no kernel for bfloat16"),
    ErrorSample(
        lambda x: lax.linalg.cholesky(x, symmetrize_input=False), (_INTEGERS,), TypeError, "int32"
    ),
)
_SOLVE_ERRORS = (
    _refused(triangular_solve, [(3, 3), (4, 4)], ValueError, "columns of b do not fit"),
    _refused(triangular_solve, [(3, 4), (3, 4)], ValueError, "matrices in a are not square"),
    _refused(triangular_solve, [(3,), (3,)], TypeError, "not batches of one shape"),
    _refused(triangular_solve, [(2, 3, 3), (3, 3, 3)], ValueError, "not batches of one shape"),
    _refused(triangular_solve, [(3, 3), (2, 3, 3)], TypeError, "not batches of one shape"),
    ErrorSample(triangular_solve, (_SQUARE, _HALF), TypeError, "different dtypes"),
    ErrorSample(triangular_solve, (_INTEGERS, _INTEGERS), TypeError, "int32"),
)
_LU_ERRORS = (
    _refused(lax.linalg.lu, [(3,)], TypeError, "x is no matrix"),
    ErrorSample(lax.linalg.lu, (_INTEGERS,), TypeError, "int32"),
    ErrorSample(lax.linalg.lu, (_HALF,), NotImplementedError, "no kernel for bfloat16"),
)
_PIVOT_ERRORS = tuple(
    ErrorSample(lambda p: lax.linalg.lu_pivots_to_permutation(p, 2), (pivots,), error, match)
    for pivots, error, match in (
        (np.zeros(2, np.float32), TypeError, "32-bit integers"),
        (np.int32(0), TypeError, "32-bit integers"),
        (np.zeros(3, np.int32), ValueError, "less than the number of pivots"),
    )
)
_QR_ERRORS = (
    _refused(lax.linalg.qr, [(3,)], TypeError, "x is no matrix"),
    ErrorSample(lax.linalg.qr, (_INTEGERS,), TypeError, "int32"),
    ErrorSample(lax.linalg.qr, (_HALF,), NotImplementedError, "no kernel for bfloat16"),
)
_product, _apply = lax.linalg.householder_product, lax.linalg.ormqr
_REFLECTION_ERRORS = (
    _refused(_product, [(3, 3), (4,)], ValueError, "more reflections than columns"),
    _refused(_product, [(3, 4), (3,)], ValueError, "more reflections than columns"),
    _refused(_product, [(3,), (3,)], TypeError, "not batches of one shape"),
    _refused(_product, [(3, 3), (3,)], TypeError, "int32", "int32"),
)
_APPLICATION_ERRORS = (
    _refused(_apply, [(5, 3), (3,), (4, 2)], ValueError, "do not fit together"),
    _refused(_apply, [(5, 3), (4,), (5, 2)], ValueError, "do not fit together"),
    _refused(_apply, [(5, 3), (3,), (2, 5, 2)], TypeError, "not batches of one shape"),
)
_multiply, _update = lax.linalg.symmetric_product, lax.linalg.cholesky_update
_PRODUCT_ERRORS = (
    _refused(_multiply, [(5, 3), (4, 4)], ValueError, "do not fit together"),
    _refused(_multiply, [(5, 3), (5, 5)], TypeError, "complex64", "complex64"),
)
_UPDATE_ERRORS = (
    _refused(_update, [(5, 5), (4,)], ValueError, "vector does not fit"),
    _refused(_update, [(5, 4), (4,)], ValueError, "not square"),
    _refused(_update, [(2, 5, 5), (2, 5)], TypeError, "one matrix and one vector"),
    _refused(_update, [(5, 5), (5,)], TypeError, "complex64", "complex64"),
)


def _updated(r: Any, w: Any) -> Any:
    r = np.triu(definite(r))
    return np.linalg.cholesky(r.T @ r + np.outer(w, w)).T


def _cholesky(case: str, dtypes: tuple[str, ...], **options: Any) -> Record:
    return _record(
        case,
        "cholesky",
        lambda x: lax.linalg.cholesky(definite(x)),
        lambda x: np.linalg.cholesky(definite(x)),
        ((2, 3, 3),),
        dtypes,
        grad=(0,),
        **options,
    )


RECORDS = [
    _cholesky("", _REAL, errors=_CHOLESKY_ERRORS),
    _cholesky("complex", _COMPLEX, order=1),
    _solve("right"),
    _solve("left", left_side=True, lower=True, unit_diagonal=True),
    _solve("transposed", left_side=True, transpose_a=True),
    _solve("adjoint", _COMPLEX, lower=True, transpose_a=True, conjugate_a=True),
    _solve("conjugated", _COMPLEX, left_side=True, conjugate_a=True, unit_diagonal=True),
    Record(
        name="triangular_solve",
        case="halves",
        call=lambda a, b: triangular_solve(a, b, left_side=True, lower=True),
        oracle=lambda a, b: np.linalg.solve(
            np.tril(a.astype("float64")), b.astype("float64")[:, None]
        )[:, 0],
        args=(Arg((3, 3), low=1, high=2), Arg((3,))),
        dtypes=("float16", "bfloat16"),
        tolerance={"float16": 4e-3, "bfloat16": 4e-2},
        errors=_SOLVE_ERRORS,
    ),
    _record("", "lu", lax.linalg.lu, each(_lu, 2), ((2, 3, 3),), grad=(0,), errors=_LU_ERRORS),
    _record("tall", "lu", lax.linalg.lu, each(_lu, 2), ((4, 3),), grad=(0,), order=1),
    _record("wide", "lu", lax.linalg.lu, each(_lu, 2), ((3, 4),), _COMPLEX, grad=(0,), order=1),
    Record(
        name="lu_pivots_to_permutation",
        call=lambda p: lax.linalg.lu_pivots_to_permutation(p, 5),
        oracle=each(lambda p: np.array([4, 3, 0, 1, 2]) if p[0] == 4 else np.arange(5), 1),
        args=(np.array([[4, 3, 4], [0, 1, 2]], np.int32),),
        batch=False,
        errors=_PIVOT_ERRORS,
    ),
    _qr_record("reduced", (2, 4, 3), full=False, pivoting=False, errors=_QR_ERRORS),
    _qr_record("wide", (3, 4), full=False, pivoting=True, order=1),
    _qr_record("full", (4, 2), full=True, pivoting=True, order=1, dtypes=_COMPLEX),
    _record(
        "",
        "geqrf",
        geqrf,
        each(lambda x: scipy.linalg.qr(x, mode="raw")[0], 2),
        ((2, 4, 3),),
    ),
    _record(
        "",
        "geqp3",
        lambda x: geqp3(x, np.zeros(3, np.int32))[:2],
        lambda x: [
            scipy.linalg.qr(x, mode="raw", pivoting=True)[0][0],
            scipy.linalg.qr(x, mode="raw", pivoting=True)[2],
        ],
        ((4, 3),),
    ),
    _record(
        "",
        "householder_product",
        _product,
        each(lambda a, t: _reflections(a, t)[:, : a.shape[1]], 2, 1),
        ((2, 4, 3), (2, 2)),
        _COMPLEX,
        errors=_REFLECTION_ERRORS,
    ),
    _record(
        "left",
        "ormqr",
        _apply,
        each(lambda a, t, c: _reflections(a, t) @ c, 2, 1, 2),
        ((2, 4, 3), (2, 3), (2, 4, 2)),
        errors=_APPLICATION_ERRORS,
    ),
    _record(
        "right_adjoint",
        "ormqr",
        lambda a, t, c: _apply(a, t, c, left=False, transpose=True),
        each(lambda a, t, c: c @ _reflections(a, t).conj().T, 2, 1, 2),
        ((3, 3), (3,), (2, 3)),
        _COMPLEX,
    ),
    _record(
        "",
        "symmetric_product",
        lambda a, c: _multiply(a, c, alpha=2, beta=0.5, symmetrize_output=True),
        lambda a, c: (
            2 * a @ a.swapaxes(-1, -2) + 0.5 * (np.tril(c) + np.tril(c, -1).swapaxes(-1, -2))
        ),
        ((2, 3, 4), (2, 3, 3)),
        errors=_PRODUCT_ERRORS,
    ),
    _record(
        "",
        "cholesky_update",
        lambda r, w: _update(jnp.triu(definite(r)), w),
        _updated,
        ((3, 3), (3,)),
        errors=_UPDATE_ERRORS,
    ),
]
