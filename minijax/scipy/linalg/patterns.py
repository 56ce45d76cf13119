"""Matrices whose elements are those of vectors, put in places that a pattern tells."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax.padding import pad
from minijax.numpy import promotion
from minijax.numpy.arithmetic import absolute
from minijax.numpy.creation import asarray, ones, zeros
from minijax.numpy.elementary import conjugate
from minijax.numpy.joining import concatenate
from minijax.numpy.one_program import one_program
from minijax.numpy.ranges import arange
from minijax.numpy.shaping import atleast_2d, broadcast_shapes, broadcast_to, flip
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array

_MODES = ("full", "valid", "same")


def _vectors(name: str, x: Any, argument: str, least: int = 0) -> Array:
    """An argument as vectors with at least so many elements; a number is a vector of one."""
    x = asarray(promotion.check_array(f"scipy.linalg.{name}", x, argument))
    x = x.reshape(1) if x.ndim == 0 else x
    if x.shape[-1] < least:
        error(
            ValueError,
            f"scipy.linalg.{name}",
            f"the vectors in {argument} are too short.",
            got={argument: aval_of(x)},
            expected=f"a last dimension of at least {least}",
        )
    return x


def _check_is_no_number(name: str, x: Any, argument: str) -> None:
    aval = aval_of(promotion.check_array(f"scipy.linalg.{name}", x, argument))
    if not aval.ndim:
        error(ValueError, f"scipy.linalg.{name}", f"{argument} is no vector.", got={argument: aval})


def _batches(x: Any, y: Any) -> tuple[Array, Array]:
    """Vectors with leading dimensions of one shape."""
    batch = broadcast_shapes(x.shape[:-1], y.shape[:-1])
    first, second = (broadcast_to(v, (*batch, v.shape[-1])) for v in (x, y))
    return first, second


def _placed(values: Any, places: Any) -> Any:
    """The elements of vectors at the places that a matrix of indices names."""
    if not values.shape[-1]:
        return zeros((*values.shape[:-1], *places.shape), values.dtype)
    return values.at[..., places].get(mode="promise_in_bounds")


def _with_constants(x: Any) -> Any:
    """Vectors with a zero and a one in front, for matrices that hold these besides."""
    ends = [zeros((*x.shape[:-1], 1), x.dtype), ones((*x.shape[:-1], 1), x.dtype)]
    return concatenate([*ends, x], axis=-1)


@one_program()
def block_diag(*arrs: Any) -> Array:
    """A matrix with others as blocks on its diagonal, and zeros elsewhere.

    Shapes:     arrs: T[m, n], T[k, l], ... -> T[m + k + ..., n + l + ...]; a vector is one row.
    Dtypes:     promoted.
    Derivative: linear.
    Source:     mirrors jax.scipy.linalg.block_diag (0.10).

    Args:
        *arrs: the blocks.

    Raises:
        ValueError: a block has more than two dimensions.

    Example:
        >>> minijax.scipy.linalg.block_diag(jnp.eye(2, dtype=int), 5)
        Array([[1, 0, 0],
               [0, 1, 0],
               [0, 0, 5]], dtype=int32)
    """
    name, blocks = "scipy.linalg.block_diag", []
    for i, x in enumerate(promotion.promote_dtypes(name, *(arrs or (zeros((1, 0)),)))):
        if aval_of(x).ndim > 2:
            error(
                ValueError,
                name,
                "a block has more than two dimensions.",
                got={f"arrs[{i}]": aval_of(x)},
                fix="vmap(block_diag) for batches of blocks",
            )
        blocks.append(atleast_2d(x))
    width, before, rows = sum(x.shape[1] for x in blocks), 0, []
    for x in blocks:
        after = width - before - x.shape[1]
        rows.append(pad(x, np.zeros((), x.dtype), [(0, 0, 0), (before, after, 0)]))
        before += x.shape[1]
    return concatenate(rows, axis=0)


@one_program()
def circulant(c: ArrayLike) -> Array:
    """Matrices of which each column is the one before it, moved down by one place.

    Shapes:     c: T[..., n] -> T[..., n, n].
    Source:     mirrors jax.scipy.linalg.circulant (0.10).

    Args:
        c: the first columns.

    Example:
        >>> minijax.scipy.linalg.circulant(jnp.array([1, 2, 3]))
        Array([[1, 3, 2],
               [2, 1, 3],
               [3, 2, 1]], dtype=int32)
    """
    c = _vectors("circulant", c, "c")
    size = c.shape[-1]
    row = arange(size)
    return _placed(c, (row[:, None] - row) % size if size else row[:, None] - row)


@one_program()
def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Matrices that are constant along each diagonal.

    Shapes:     c: T[..., m], r: T[..., n] -> T[..., m, n].
    Dtypes:     promoted.
    Source:     mirrors jax.scipy.linalg.toeplitz (0.10).

    Args:
        c: the first columns.
        r: the first rows, whose first element is not read; by default the conjugate of `c`.

    Example:
        >>> minijax.scipy.linalg.toeplitz(jnp.array([1, 2, 3]), jnp.array([0, 5, 6]))
        Array([[1, 5, 6],
               [2, 1, 5],
               [3, 2, 1]], dtype=int32)
    """
    c = _vectors("toeplitz", c, "c")
    r = conjugate(c) if r is None else _vectors("toeplitz", r, "r")
    c, r = map(promotion.strong, promotion.promote_dtypes("scipy.linalg.toeplitz", c, r))
    c, r = _batches(c, r)
    rows, columns = arange(c.shape[-1]), arange(r.shape[-1])
    diagonals = concatenate([flip(r[..., 1:], -1), c], axis=-1)
    return _placed(diagonals, rows[:, None] - columns + max(r.shape[-1] - 1, 0))


@one_program()
def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Matrices that are constant along each diagonal from the right to the left.

    Shapes:     c: T[..., m], r: T[..., n] -> T[..., m, n].
    Dtypes:     promoted.
    Source:     mirrors jax.scipy.linalg.hankel (0.10).

    Args:
        c: the first columns.
        r: the last rows, whose first element is not read; zeros by default.

    Raises:
        ValueError: `c` or `r` is no vector.

    Example:
        >>> minijax.scipy.linalg.hankel(jnp.array([1, 2, 3]))
        Array([[1, 2, 3],
               [2, 3, 0],
               [3, 0, 0]], dtype=int32)
    """
    for argument, x in (("c", c), ("r", r)):
        if x is not None:
            _check_is_no_number("hankel", x, argument)
    c = _vectors("hankel", c, "c")
    r = c * np.zeros((), c.dtype) if r is None else _vectors("hankel", r, "r")
    c, r = _batches(*promotion.promote_dtypes("scipy.linalg.hankel", c, r))
    rows, columns = arange(c.shape[-1]), arange(r.shape[-1])
    return _placed(concatenate([c, r[..., 1:]], axis=-1), rows[:, None] + columns)


@one_program()
def companion(a: ArrayLike) -> Array:
    """Matrices whose characteristic polynomials have given coefficients.

    Shapes:     a: T[..., n + 1] -> T[..., n, n].
    Dtypes:     floats and complex; integers become floats.
    Source:     mirrors jax.scipy.linalg.companion (0.10).

    Args:
        a: the coefficients, of the highest power first; that one is not zero.

    Raises:
        ValueError: there are fewer than two coefficients.

    Example:
        >>> minijax.scipy.linalg.companion(jnp.array([1, -3, 2]))
        Array([[ 3., -2.],
               [ 1.,  0.]], dtype=float32)
    """
    a = promotion.inexact("scipy.linalg.companion", _vectors("companion", a, "a", 2))
    size = a.shape[-1] - 1
    places = np.eye(size, k=-1, dtype=np.int32)
    places[0] = np.arange(2, size + 2)
    return _placed(_with_constants(-a[..., 1:] / a[..., :1]), places)


@one_program()
def fiedler_companion(a: ArrayLike) -> Array:
    """Companion matrices with five diagonals, after Fiedler (2003).

    Shapes:     a: T[..., n + 1] -> T[..., n, n].
    Dtypes:     floats and complex; integers become floats.
    Source:     mirrors jax.scipy.linalg.fiedler_companion (0.10); Fiedler, "A note on companion
                matrices", 2003.

    Args:
        a: the coefficients, of the highest power first; that one is not zero.

    Raises:
        ValueError: there is no coefficient.

    Example:
        >>> minijax.scipy.linalg.fiedler_companion(jnp.array([1, 2, 3, 4]))
        Array([[-2., -3.,  1.],
               [ 1.,  0.,  0.],
               [ 0., -4.,  0.]], dtype=float32)
    """
    a = _vectors("fiedler_companion", a, "a", 1)
    a = promotion.inexact("scipy.linalg.fiedler_companion", a)
    places = _places_of_fiedler(a.shape[-1] - 1)
    return _placed(_with_constants(-a[..., 1:] / a[..., :1]), places)


def _places_of_fiedler(size: int) -> Any:
    """Where zero, one and the coefficients stand, which are numbered from 2."""
    places = np.zeros((size, size), np.int32)
    even = np.arange(0, size, 2)
    places[:1, :1] = 2
    places[1:2, :1] = 1
    places[np.arange(3, size, 2), np.arange(1, size - 2, 2)] = 1
    for offset, rows, first in ((1, even, 3), (2, even, None), (-1, even[1:], 2)):
        inside = rows[rows + offset < size]
        places[inside, inside + offset] = 1 if first is None else inside + first
    return places


@one_program(static=("n", "mode"))
def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """Matrices by which vectors of length n are convolved with other vectors.

    Shapes:     a: T[..., m] -> T[..., k, n], where k is m + n - 1 if `mode` is "full", max(m, n)
                if "same", and the difference of both plus 1 if "valid".
    Source:     mirrors jax.scipy.linalg.convolution_matrix (0.10).

    Args:
        a: the vectors to convolve with.
        n: the length of those that the matrices are multiplied by.
        mode: "full", "same" or "valid", as `numpy.convolve` has it.

    Raises:
        ValueError: the mode is not known, or a length is zero.

    Example:
        >>> minijax.scipy.linalg.convolution_matrix(jnp.array([1, 2]), 2)
        Array([[1, 0],
               [2, 1],
               [0, 2]], dtype=int32)
    """
    if mode not in _MODES or n < 1:
        error(
            ValueError,
            "scipy.linalg.convolution_matrix",
            "the mode is not known." if n >= 1 else "n must be positive.",
            got=f"n: {n}, mode: {mode!r}",
            expected="n >= 1, and a mode of " + ", ".join(map(repr, _MODES)),
        )
    _check_is_no_number("convolution_matrix", a, "a")
    a = _vectors("convolution_matrix", a, "a", 1)
    size, columns = a.shape[-1], operator.index(n)
    trimmed = {"full": 0, "valid": min(size, columns) - 1, "same": None}[mode]
    left = (min(size, columns) - 1) // 2 if trimmed is None else trimmed
    right = min(size, columns) - 1 - left if trimmed is None else trimmed
    rows = arange(left, size + columns - 1 - right)
    edge = [(0, 0, 0)] * (a.ndim - 1) + [(columns - 1, columns - 1, 0)]
    padded = pad(a, np.zeros((), a.dtype), edge)
    return _placed(padded, rows[:, None] - arange(columns) + columns - 1)


@one_program()
def fiedler(a: ArrayLike) -> Array:
    """Matrices of the distances between the elements of vectors.

    Shapes:     a: T[..., n] -> real T[..., n, n].
    Source:     mirrors jax.scipy.linalg.fiedler (0.10).

    Args:
        a: vectors.

    Example:
        >>> minijax.scipy.linalg.fiedler(jnp.array([1, 4, 9]))
        Array([[0, 3, 8],
               [3, 0, 5],
               [8, 5, 0]], dtype=int32)
    """
    a = _vectors("fiedler", a, "a")
    return absolute(a[..., :, None] - a[..., None, :])


@one_program()
def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Leslie matrices: how a population with classes of age grows.

    Shapes:     f: T[..., n], s: T[..., n - 1] -> T[..., n, n].
    Dtypes:     promoted.
    Source:     mirrors jax.scipy.linalg.leslie (0.10).

    Args:
        f: how many children each class has: the first row.
        s: which share of each class lives on to the next: what stands below the diagonal.

    Raises:
        ValueError: f has fewer than two elements, or s is not shorter by one.

    Example:
        >>> minijax.scipy.linalg.leslie(jnp.array([1, 2, 3]), jnp.array([4, 5]))
        Array([[1, 2, 3],
               [4, 0, 0],
               [0, 5, 0]], dtype=int32)
    """
    f, s = _vectors("leslie", f, "f", 2), _vectors("leslie", s, "s")
    if f.shape[-1] != s.shape[-1] + 1:
        error(
            ValueError,
            "scipy.linalg.leslie",
            "s must be shorter than f by one element.",
            got={"f": aval_of(f), "s": aval_of(s)},
            expected="f: T[..., n], s: T[..., n - 1]",
        )
    f, s = _batches(*promotion.promote_dtypes("scipy.linalg.leslie", f, s))
    size = f.shape[-1]
    places = np.zeros((size, size), np.int32)
    places[0] = np.arange(2, size + 2)
    below = np.arange(size - 1)
    places[below + 1, below] = size + 2 + below
    return _placed(_with_constants(concatenate([f, s], axis=-1)), places)
