"""Records of eigenvalues, singular values, and of the forms on the way to them.

Eigenvectors and singular vectors are unique up to signs and phases alone, so that functions of
matrices stand for them, in which these cancel.  Where both sides call the same kernel of LAPACK the
results themselves are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

import minijax.numpy as jnp
from minijax import lax
from tests.lax.records import Arg, ErrorSample, Record
from tests.lax.records_linalg import each

_REAL = ("float32", "float64")
_COMPLEX = ("complex64", "complex128")
_LOOSE = {"float32": 1e-3, "complex64": 1e-3, "float64": 1e-9, "complex128": 1e-9}
_SQUARE = np.ones((3, 3), np.float32)
_HALF = jnp.ones((3, 3), "bfloat16")
_INTEGERS = np.ones((3, 3), np.int32)
_linalg = lax.linalg


def _adjoint(x: Any) -> Any:
    return x.conj().swapaxes(-1, -2)


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


def _composed(values: Any, left: Any, right: Any) -> Any:
    """The sum of sin(v) u wᴴ over the values v and the vectors u and w that belong to them."""
    return jnp.matmul(left * jnp.sin(values)[..., None, :], right, precision="highest")


def _eigh(x: Any, **options: Any) -> Any:
    vectors, values = _linalg.eigh(x, **options)
    return values, _composed(values, vectors, _adjoint(vectors))


def _numpy_eigh(x: Any) -> Any:
    values, vectors = np.linalg.eigh(x)
    return values, (vectors * np.sin(values)) @ _adjoint(vectors)


def _hermitian(x: Any) -> Any:
    return (x + _adjoint(x)) / 2


def _svd(x: Any, **options: Any) -> Any:
    u, values, vh = _linalg.svd(x, full_matrices=False, **options)
    return values, _composed(values, u, vh)


def _numpy_svd(x: Any) -> Any:
    u, values, vh = np.linalg.svd(x, full_matrices=False)
    return values, (u * np.sin(values)) @ vh


def _full_svd(x: Any) -> Any:
    u, values, vh = _linalg.svd(x)
    size = values.shape[-1]
    return _composed(values, u[:, :size], vh[:size]), u @ _adjoint(u), vh @ _adjoint(vh)


def _eig(x: Any) -> Any:
    """The sum of the eigenvalues, their sines with the projections onto their vectors."""
    values, left, right = _linalg.eig(x, enable_eigvec_derivs=True)
    scales = (left.conj() * right).sum(-2)
    return values.sum(-1), _composed(values, right / scales[..., None, :], _adjoint(left))


def _svd_record(case: str, shape: tuple[int, ...], **options: Any) -> Record:
    return _record(case, "svd", _svd, each(_numpy_svd, 2), (shape,), grad=(0,), **options)


def _refused(
    call: Callable[..., Any], args: tuple[Any, ...], error: type[Exception], match: str
) -> ErrorSample:
    return ErrorSample(call, args, error, match)


def _refusals(call: Callable[..., Any], argument: str) -> tuple[ErrorSample, ...]:
    """What every function of square matrices refuses."""
    return (
        _refused(call, (_SQUARE[0],), TypeError, f"{argument} is no matrix"),
        _refused(call, (_SQUARE[:2],), ValueError, f"matrices in {argument} are not square"),
        _refused(call, (_INTEGERS,), TypeError, "int32"),
        _refused(call, (_HALF,), NotImplementedError, "no kernel for bfloat16"),
        _refused(call, ([[1.0]],), TypeError, "list"),
    )


def _plain_eigh(x: Any) -> Any:
    return _linalg.eigh(x, symmetrize_input=False)


_EIGH_ERRORS = (
    *_refusals(_plain_eigh, "x"),
    *(
        _refused(lambda x, o=options: _linalg.eigh(x, **o), (_SQUARE,), error, match)
        for options, error, match in (
            ({"subset_by_index": (0, 4)}, ValueError, "no range of indices"),
            ({"subset_by_index": (0, 2)}, NotImplementedError, "computes a subset"),
            (
                {"implementation": _linalg.EighImplementation.JACOBI},
                NotImplementedError,
                "JACOBI is not available on cpu",
            ),
        )
    ),
)
_SVD_ERRORS = (
    _refused(_linalg.svd, (_SQUARE[0],), TypeError, "x is no matrix"),
    _refused(_linalg.svd, (_INTEGERS,), TypeError, "int32"),
    _refused(_linalg.svd, (_HALF,), NotImplementedError, "no kernel for bfloat16"),
    *(
        _refused(lambda x, o=options: _linalg.svd(x, **o), (_SQUARE,), error, match)
        for options, error, match in (
            ({"subset_by_index": (0, 2)}, ValueError, "makes no full matrices"),
            (
                {"subset_by_index": (0, 2), "full_matrices": False},
                NotImplementedError,
                "computes a subset",
            ),
            (
                {"algorithm": _linalg.SvdAlgorithm.POLAR},
                NotImplementedError,
                "POLAR is not available on cpu",
            ),
        )
    ),
)
_EIG_ERRORS = (
    *_refusals(_linalg.eig, "x"),
    _refused(
        lambda x: _linalg.eig(x, implementation=_linalg.EigImplementation.MAGMA),
        (_SQUARE,),
        ValueError,
        "MAGMA is not available on cpu",
    ),
)


def _lapack(name: str, **options: Any) -> Callable[..., Any]:
    """A routine of LAPACK through SciPy, without its status."""

    def call(x: Any) -> Any:
        (routine,) = scipy.linalg.get_lapack_funcs((name,), (x,))
        return tuple(routine(x, **options)[:-1])

    return each(call, 2)


def _tridiagonal(lower: bool, dtypes: tuple[str, ...], **options: Any) -> Record:
    letters = "he" if dtypes == _COMPLEX else "sy"
    return _record(
        "lower" if lower else "upper",
        "tridiagonal",
        lambda x: _linalg.tridiagonal(_hermitian(x), lower=lower),
        lambda x: _lapack(f"{letters}trd", lower=int(lower))(_hermitian(x)),
        ((2, 4, 4),),
        dtypes,
        **options,
    )


def _dense(dl: Any, d: Any, du: Any, b: Any) -> Any:
    return np.linalg.solve(np.diag(d + 8) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1), b)


def _tridiagonal_solve(case: str, dtypes: tuple[str, ...], **options: Any) -> Record:
    return _record(
        case,
        "tridiagonal_solve",
        lambda dl, d, du, b: _linalg.tridiagonal_solve(
            dl, d + np.asarray(8, d.dtype), du, b, perturb_singular=case == "perturbed"
        ),
        each(_dense, 1, 1, 1, 2),
        ((2, 4), (2, 4), (2, 4), (2, 4, 3)),
        dtypes,
        grad=(0, 1, 2, 3),
        **options,
    )


_solve = _linalg.tridiagonal_solve
_V, _B = np.ones(3, np.float32), np.ones((3, 2), np.float32)
_SOLVE_ERRORS = (
    _refused(_solve, (_V, _V, _V, _V), TypeError, "not batches of one shape"),
    _refused(_solve, (_V[1:], _V, _V, _B), TypeError, "do not fit together"),
    _refused(_solve, (_V, _V, _V, _B[1:]), TypeError, "do not fit together"),
    _refused(_solve, (_V, _V, _V, _B.astype("complex64")), TypeError, "different dtypes"),
    _refused(_solve, (*[_INTEGERS[0]] * 3, _INTEGERS), TypeError, "int32"),
    _refused(_solve, (*[_HALF[0]] * 3, _HALF), NotImplementedError, "no kernel for bfloat16"),
)

RECORDS = [
    _record(
        "", "eigh", _eigh, lambda x: each(_numpy_eigh, 2)(_hermitian(x)), ((2, 3, 3),), grad=(0,)
    ),
    _record(
        "upper_complex",
        "eigh",
        lambda x: _eigh(_hermitian(x), lower=False, symmetrize_input=False),
        lambda x: each(_numpy_eigh, 2)(_hermitian(x)),
        ((3, 3),),
        _COMPLEX,
        grad=(0,),
        order=1,
        errors=_EIGH_ERRORS,
    ),
    _svd_record("tall", (4, 3)),
    _svd_record("wide", (3, 4), order=1, dtypes=_COMPLEX),
    _record(
        "square_by_qr",
        "svd",
        lambda x: _svd(x, algorithm=_linalg.SvdAlgorithm.QR),
        _numpy_svd,
        ((3, 3),),
    ),
    _record(
        "values",
        "svd",
        lambda x: _linalg.svd(x, compute_uv=False),
        lambda x: np.linalg.svd(x, compute_uv=False),
        ((2, 3, 4),),
        _COMPLEX,
        grad=(0,),
    ),
    _record(
        "full",
        "svd",
        _full_svd,
        lambda x: (_numpy_svd(x)[1], np.eye(2), np.eye(4)),
        ((2, 4),),
        errors=_SVD_ERRORS,
    ),
    _record(
        "",
        "eig",
        _eig,
        each(lambda x: (np.complex128(np.trace(x)), scipy.linalg.sinm(x) + 0j), 2),
        ((2, 3, 3),),
        grad=(0,),
        order=1,
        errors=_EIG_ERRORS,
    ),
    _record(
        "vectors",
        "eig",
        lambda x: _linalg.eig(x, enable_eigvec_derivs=True),
        lambda x: scipy.linalg.eig(x, left=True),
        ((3, 3),),
        _COMPLEX,
        grad=(0,),
    ),
    _record(
        "values",
        "eig",
        lambda x: _linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False),
        lambda x: [scipy.linalg.eigvals(x).astype(np.result_type(x.dtype, "complex64"))],
        ((3, 3),),
        grad=(0,),
    ),
    _record(
        "",
        "schur",
        _linalg.schur,
        each(scipy.linalg.schur, 2),
        ((2, 3, 3),),
        errors=(
            *_refusals(_linalg.schur, "x"),
            _refused(
                lambda x: _linalg.schur(x, sort_eig_vals=True),
                (_SQUARE,),
                NotImplementedError,
                "cannot be sorted",
            ),
        ),
    ),
    _record(
        "form_alone",
        "schur",
        lambda x: _linalg.schur(x, compute_schur_vectors=False),
        lambda x: scipy.linalg.schur(x)[:1],
        ((3, 3),),
        _COMPLEX,
    ),
    _record(
        "",
        "hessenberg",
        _linalg.hessenberg,
        _lapack("gehrd"),
        ((2, 4, 4),),
        _REAL + _COMPLEX,
        errors=_refusals(_linalg.hessenberg, "a"),
    ),
    _tridiagonal(True, _REAL, errors=_refusals(_linalg.tridiagonal, "a")),
    _tridiagonal(False, _COMPLEX),
    _tridiagonal_solve("", _REAL, errors=_SOLVE_ERRORS),
    _tridiagonal_solve("complex", _COMPLEX, order=1),
    _tridiagonal_solve("perturbed", ("float32",), order=1),
]
