"""Eigenvalues of Hermitian tridiagonal matrices, by bisection."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax.control_flow.looping import while_loop
from minijax.lax.control_flow.scanning import scan
from minijax.lax.linalg.eigh import eigh as eigh_decomposition
from minijax.numpy import promotion
from minijax.numpy.creation import asarray, full, zeros_like
from minijax.numpy.matrices import diag
from minijax.numpy.one_program import one_program
from minijax.numpy.padding import pad
from minijax.numpy.ranges import arange
from minijax.numpy.selection import where
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.linalg import operands

_NAME = "scipy.linalg.eigh_tridiagonal"


@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: Literal[False] = ...,
    select: str = ...,
    select_range: tuple[float, float] | None = ...,
    tol: float | None = ...,
    key: Any = ...,
) -> tuple[Array, Array]: ...
@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: Literal[True],
    select: str = ...,
    select_range: tuple[float, float] | None = ...,
    tol: float | None = ...,
    key: Any = ...,
) -> Array: ...
@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = ...,
    select: str = ...,
    select_range: tuple[float, float] | None = ...,
    tol: float | None = ...,
    key: Any = ...,
) -> Array | tuple[Array, Array]: ...


def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Any = None,
) -> Array | tuple[Array, Array]:
    """The eigenvalues, and eigenvectors, of a Hermitian tridiagonal matrix: (w, V), or w.

    Shapes:     d: T[n], e: T[n - 1] -> real T[k], T[n, k].
    Dtypes:     float32, float64, complex64, complex128, the same of both.
    Derivative: that of `eigh`, if eigenvectors are wanted; else none in reverse mode.
    Source:     mirrors jax.scipy.linalg.eigh_tridiagonal (0.10); Barth, Martin and Wilkinson, 1967.

    Args:
        d: the diagonal, whose real part is taken.
        e: what stands above the diagonal; below stands its conjugate.
        eigvals_only: whether the eigenvalues alone are wanted, which takes far less work.
        select: "a" for all; "i" for those with indices in `select_range`.
        select_range: the first and the last index.
        tol: the absolute error of eigenvalues allowed, where they alone are wanted; by default what
            rounding leaves.
        key: a random key; not needed.

    Raises:
        TypeError: the dtypes differ, or are neither float32, float64 nor complex.
        ValueError: the shapes do not fit together, or the selection is not known.
        NotImplementedError: `select` is "v".

    Example:
        >>> minijax.scipy.linalg.eigh_tridiagonal(jnp.array([1.0, 1.0]), jnp.array([2.0]))[0]
        Array([-1.,  3.], dtype=float32)
    """
    d, e = (asarray(promotion.check_array(_NAME, x, n)) for x, n in ((d, "d"), (e, "e")))
    _check_diagonals(d, e)
    first, last = _selected(d.shape[0], select, select_range)
    if eigvals_only:
        return _values(d, e, first=first, last=last, tol=tol)
    return _vectors(d, e, first=first, last=last)


def _check_diagonals(d: Any, e: Any) -> None:
    got = {"d": aval_of(d), "e": aval_of(e)}
    if d.ndim != 1 or e.shape != (max(d.shape[0] - 1, 0),):
        error(
            ValueError,
            _NAME,
            "the diagonals do not fit together.",
            got=got,
            expected="d: T[n], e: T[n - 1]",
        )
    if d.dtype != e.dtype or dtypes.real_dtype_of(d.dtype).name not in ("float32", "float64"):
        error(
            TypeError,
            _NAME,
            "there is no algorithm for these dtypes.",
            got=got,
            expected="float32, float64, complex64 or complex128, the same of both",
        )


def _selected(size: int, select: str, select_range: Any) -> tuple[int, int]:
    """The first index wanted, and the one after the last."""
    operands.check_choice("eigh_tridiagonal", "select", select, ("a", "i", "v"))
    if select == "v":
        error(
            NotImplementedError,
            _NAME,
            "values cannot be selected.",
            got="select: 'v'",
            fix="select='i'",
        )
    if select == "a":
        return 0, size
    if select_range is None or not 0 <= select_range[0] <= select_range[1] < size:
        error(
            ValueError,
            _NAME,
            "select_range is no range of indices.",
            got=f"select_range: {select_range}",
            expected=f"two indices in order, from 0 to {size - 1}",
        )
    return int(select_range[0]), int(select_range[1]) + 1


@one_program(static=("first", "last"))
def _vectors(d: Any, e: Any, first: int, last: int) -> tuple[Any, Any]:
    lower = e.conj() if e.dtype.kind == "c" else e
    vectors, values = eigh_decomposition(diag(d) + diag(lower, -1), symmetrize_input=False)
    return values[first:last], vectors[:, first:last]


@one_program(static=("first", "last", "tol"))
def _values(d: Any, e: Any, first: int, last: int, tol: float | None) -> Any:
    d, ends = d.real, pad(abs(e), (1, 1))
    if not d.shape[0]:
        return d
    # The circles of Gershgorin hold all eigenvalues: divided by the bound, these are at most 1.
    bound = (abs(d) + ends[:-1] + ends[1:]).max()
    scale = where(bound == 0, 1, bound)
    allowed: Any = float(dtypes.finfo(d.dtype).eps)
    if tol is not None:
        allowed = where(tol / scale > allowed, tol / scale, allowed)
    wanted = arange(first, last)
    rows = d / scale, (ends[:-1] / scale) ** 2

    def goes_on(state: tuple[Any, Any]) -> Any:
        low, high = state
        return (high - low > allowed).any()

    def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
        low, high = state
        middle = (low + high) / 2
        is_above = _count_below(*rows, middle) <= wanted
        return where(is_above, middle, low), where(is_above, high, middle)

    start = full(wanted.shape, 1 + allowed, d.dtype)
    low, high = while_loop(goes_on, step, (-start, start))
    return scale * (low + high) / 2


def _count_below(d: Any, squares: Any, x: Any) -> Any:
    """How many eigenvalues, of at most 1, are less than each of some numbers x.

    By Sylvester's law of inertia it is the number of negative pivots of T - x.
    """
    # No pivot is so small that dividing by it overflows.
    smallest = float(dtypes.finfo(d.dtype).tiny)

    def step(state: tuple[Any, Any], row: tuple[Any, Any]) -> tuple[tuple[Any, Any], None]:
        pivot, count = state
        diagonal, square = row
        pivot = diagonal - x - square / pivot
        pivot = where(abs(pivot) < smallest, -smallest, pivot)
        return (pivot, count + (pivot < 0)), None

    start = zeros_like(x) + 1, zeros_like(x, dtype=np.int32)
    (_, count), _ = scan(step, start, (d, squares))
    return count
