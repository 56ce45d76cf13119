"""Special matrices: those with a pattern of given elements, and those made of their size alone.

The elements of the latter are computed by NumPy, in 64 bits, and rounded once.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax.padding import pad
from minijax.numpy import promotion
from minijax.numpy.creation import asarray, dtype_argument, ones, zeros
from minijax.numpy.elementary import absolute, conjugate
from minijax.numpy.joining import concatenate
from minijax.numpy.promotion import check_that, one_program
from minijax.numpy.ranges import arange
from minijax.numpy.shaping import atleast_2d, broadcast_shapes, broadcast_to, flip
from minijax.runtime.annotations import ArrayLike, DTypeLike
from minijax.runtime.array import Array

_MODES = ("full", "valid", "same")


def _vectors(name: str, x: ArrayLike, argument: str, least: int = 0) -> Array:
    """An argument as vectors with at least so many elements; a number is a vector of one."""
    x = asarray(promotion.check_array(f"scipy.linalg.{name}", x, argument))
    x = x.reshape(1) if x.ndim == 0 else x
    fits = x.shape[-1] >= least
    problem = f"the vectors in {argument} are too short."
    expected = f"a last dimension of at least {least}"
    check_that(fits, f"scipy.linalg.{name}", problem, got={argument: aval_of(x)}, expected=expected)
    return x


def _check_is_no_number(name: str, x: ArrayLike, argument: str) -> None:
    aval = aval_of(promotion.check_array(f"scipy.linalg.{name}", x, argument))
    if not aval.ndim:
        error(ValueError, f"scipy.linalg.{name}", f"{argument} is no vector.", got={argument: aval})


def _batches(x: Array, y: Array) -> tuple[Array, Array]:
    """Vectors with leading dimensions of one shape."""
    batch = broadcast_shapes(x.shape[:-1], y.shape[:-1])
    first, second = (broadcast_to(v, (*batch, v.shape[-1])) for v in (x, y))
    return first, second


def _placed(values: Array, places: Array | np.ndarray[Any, Any]) -> Array:
    """The elements of vectors at the places that a matrix of indices names."""
    if not values.shape[-1]:
        return zeros((*values.shape[:-1], *places.shape), values.dtype)
    return values.at[..., places].get(mode="promise_in_bounds")


def _with_constants(x: Array) -> Array:
    """Vectors with a zero and a one in front, for matrices that hold these besides."""
    ends = [zeros((*x.shape[:-1], 1), x.dtype), ones((*x.shape[:-1], 1), x.dtype)]
    return concatenate([*ends, x], axis=-1)


@one_program()
def block_diag(*arrs: Any) -> Array:
    """Block diagonal matrix of the given arrays.

    Shapes:     arrs: T[m, n], T[k, l], ... -> T[m + k + ..., n + l + ...]; a vector is one row.
    Dtypes:     promoted.
    Derivative: linear.

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
        problem = "a block has more than two dimensions."
        fix = "vmap(block_diag) for batches of blocks"
        check_that(aval_of(x).ndim <= 2, name, problem, got={f"arrs[{i}]": aval_of(x)}, fix=fix)
        blocks.append(atleast_2d(x))
    width, before, rows = sum(x.shape[1] for x in blocks), 0, []
    for x in blocks:
        after = width - before - x.shape[1]
        rows.append(pad(x, np.zeros((), x.dtype), [(0, 0, 0), (before, after, 0)]))
        before += x.shape[1]
    return concatenate(rows, axis=0)


@one_program()
def circulant(c: ArrayLike) -> Array:
    """Circulant matrix: each column is the one before it, rotated down by one place.

    Shapes:     c: T[..., n] -> T[..., n, n].

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
    """Toeplitz matrix, which is constant along each diagonal.

    Shapes:     c: T[..., m], r: T[..., n] -> T[..., m, n].
    Dtypes:     promoted.

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
    """Hankel matrix, which is constant along each antidiagonal.

    Shapes:     c: T[..., m], r: T[..., n] -> T[..., m, n].
    Dtypes:     promoted.

    Args:
        c: the first columns.
        r: the last rows, whose first element is not read; zeros by default.

    Raises:
        ValueError: `c` or `r` is not a vector.

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
    """Companion matrix of a polynomial, whose roots are the eigenvalues of the matrix.

    Shapes:     a: T[..., n + 1] -> T[..., n, n].
    Dtypes:     floats and complex; integers become floats.

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
    """Fiedler companion matrix, which has five diagonals (Fiedler, 2003).

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
    """Convolution matrix: its product with a vector of length n is the convolution with `a`.

    Shapes:     a: T[..., m] -> T[..., k, n], where k is m + n - 1 if `mode` is "full", max(m, n)
                if "same", and the difference of both plus 1 if "valid".

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
    check_that(n >= 1, "scipy.linalg.convolution_matrix", "n must be positive.", n=n)
    promotion.check_choice("scipy.linalg.convolution_matrix", "mode", mode, _MODES)
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
    """Fiedler matrix: the distances between the elements of a vector.

    Shapes:     a: T[..., n] -> real T[..., n, n].

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
    """Leslie matrix: the growth of a population with age classes.

    Shapes:     f: T[..., n], s: T[..., n - 1] -> T[..., n, n].
    Dtypes:     promoted.

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
    fits = f.shape[-1] == s.shape[-1] + 1
    problem = "s must be shorter than f by one element."
    expected = "f: T[..., n], s: T[..., n - 1]"
    check_that(fits, "scipy.linalg.leslie", problem, f=aval_of(f), s=aval_of(s), expected=expected)
    f, s = _batches(*promotion.promote_dtypes("scipy.linalg.leslie", f, s))
    size = f.shape[-1]
    places = np.zeros((size, size), np.int32)
    places[0] = np.arange(2, size + 2)
    below = np.arange(size - 1)
    places[below + 1, below] = size + 2 + below
    return _placed(_with_constants(concatenate([f, s], axis=-1)), places)


_KINDS = (None, "symmetric", "lower", "upper")


def _size(name: str, n: int) -> int:
    try:
        return max(operator.index(n), 0)
    except TypeError:
        facts: dict[str, Any] = {"got": f"n: {n!r}", "expected": "how many rows", "fix": "int(n)"}
        error(TypeError, f"scipy.linalg.{name}", "n is no integer.", **facts, cause=None)


def _array(x: np.ndarray[Any, Any], dtype: DTypeLike | None = None) -> Array:
    return asarray(x.astype(dtypes.default_float_dtype() if dtype is None else dtype))


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """Matrix of the discrete Fourier transform, exp(-2πi j k / n).

    Shapes:     -> complex[n, n].

    Args:
        n: the length of the vectors that it transforms.
        scale: "sqrtn" divides by √n, "n" by n; None leaves it unscaled.
        dtype: a complex dtype; that of default precision if None.

    Raises:
        TypeError: n is not an integer.
        ValueError: the scale is not known, or the dtype is not complex.

    Example:
        >>> minijax.scipy.linalg.dft(2)
        Array([[ 1.+0.j,  1.+0.j],
               [ 1.+0.j, -1.+0.j]], dtype=complex64)
    """
    size = _size("dft", n)
    scales = {None: 1.0, "sqrtn": math.sqrt(size), "n": float(size)}
    promotion.check_choice("scipy.linalg.dft", "scale", scale, scales)
    dtype = dtype_argument("scipy.linalg.dft", dtype, dtypes.default_complex_dtype())
    if not dtypes.issubdtype(dtype, np.complexfloating):
        error(ValueError, "scipy.linalg.dft", "the dtype is not complex.", got=str(dtype))
    # Angles are taken modulo one turn before they are multiplied, where they are exact.
    turns = np.outer(np.arange(size), np.arange(size)) % max(size, 1)
    return _array(_roots_of_unity(size)[turns] / max(scales[scale], 1.0), dtype)


def _roots_of_unity(size: int) -> Any:
    """exp(-2πi k / n) for each k; multiples of a quarter turn are exact."""
    eighths = 8 * np.arange(size)
    quarter, rest = np.divmod(eighths + size, 2 * size) if size else (eighths, eighths)
    angles = 2 * np.pi * (rest - size) / (8 * max(size, 1))
    return np.exp(-1j * angles) * np.array([1, -1j, -1, 1j])[quarter % 4]


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Hadamard matrix in Sylvester's order: ones and minus ones, with orthogonal rows.

    Shapes:     -> dtype[n, n].

    Args:
        n: how many rows: a power of 2.
        dtype: the dtype.

    Raises:
        TypeError: n is not an integer.
        ValueError: n is not a power of 2.

    Example:
        >>> minijax.scipy.linalg.hadamard(2)
        Array([[ 1,  1],
               [ 1, -1]], dtype=int32)
    """
    size = _size("hadamard", n)
    fits = size >= 1 and not (size & (size - 1))
    problem = "n is no power of 2."
    check_that(fits, "scipy.linalg.hadamard", problem, got=f"n: {n}", expected="n > 0")
    matrix = np.ones((1, 1), np.int8)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return _array(matrix, dtype_argument("scipy.linalg.hadamard", dtype, dtypes.int32))


def helmert(n: int, full: bool = False) -> Array:
    """Helmert matrix: orthonormal rows that each compare an element with those before it.

    Shapes:     -> float[n - 1, n], or float[n, n] where `full`.

    Args:
        n: how many columns.
        full: whether the row of the mean is the first one.

    Raises:
        ValueError: n is not positive.

    Example:
        >>> minijax.scipy.linalg.helmert(2, full=True).round(2)
        Array([[ 0.71,  0.71],
               [ 0.71, -0.71]], dtype=float32)
    """
    if n < 1:
        error(ValueError, "scipy.linalg.helmert", "n is not positive.", got=f"n: {n}")
    row = np.arange(_size("helmert", n))
    below = np.tril(np.ones((len(row), len(row))), -1) - np.diag(row)
    below[0] = 1
    scales = np.sqrt(row * (row + 1.0))
    scales[0] = math.sqrt(len(row))
    matrix = below / scales[:, None]
    return _array(matrix if full else matrix[1:])


def hilbert(n: int) -> Array:
    """Hilbert matrix, 1 / (i + j + 1), which is ill-conditioned.

    Shapes:     -> float[n, n].

    Args:
        n: how many rows.

    Raises:
        TypeError: n is negative or not an integer.

    Example:
        >>> minijax.scipy.linalg.hilbert(2)
        Array([[1.        , 0.5       ],
               [0.5       , 0.33333334]], dtype=float32)
    """
    row = np.arange(_size("hilbert", n))
    if n < 0:
        error(TypeError, "scipy.linalg.hilbert", "n is negative.", got=f"n: {n}")
    return _array(1 / (row[:, None] + row + 1))


def invhilbert(n: int) -> Array:
    """Inverse of the Hilbert matrix, whose elements are integers.

    Shapes:     -> float[n, n].
    Source:     mirrors jax.scipy.linalg.invhilbert (0.10); Savage and Lukacs, 1954.

    Args:
        n: how many rows.

    Example:
        >>> minijax.scipy.linalg.invhilbert(2)
        Array([[ 4., -6.],
               [-6., 12.]], dtype=float32)
    """
    size = _size("invhilbert", n)
    row = np.arange(size, dtype=np.float64)
    # (-1)^i (n + i)! / (i!² (n - 1 - i)!), each from the one before it.
    ratios = -(size - row) * (size + row) / np.maximum(row, 1) ** 2
    ratios[:1] = size
    with np.errstate(over="ignore", invalid="ignore"):
        factors = np.cumprod(ratios)
        return _array(factors[:, None] * factors / (row[:, None] + row + 1))


def pascal(n: int, kind: str | None = None) -> Array:
    """Pascal matrix: binomial coefficients.

    Shapes:     -> float[n, n].

    Args:
        n: how many rows.
        kind: "symmetric", the coefficients C(i + j, i), which is meant by None; "lower", C(i, j);
            "upper", the transpose of that.

    Raises:
        ValueError: the kind is not known.

    Example:
        >>> minijax.scipy.linalg.pascal(3)
        Array([[1., 1., 1.],
               [1., 2., 3.],
               [1., 3., 6.]], dtype=float32)
    """
    return _array(_pascal("pascal", _size("pascal", n), kind))


def _pascal(name: str, size: int, kind: str | None) -> Any:
    promotion.check_choice(f"scipy.linalg.{name}", "kind", kind, _KINDS)
    matrix = np.ones((size, size))
    with np.errstate(over="ignore"):
        for i in range(1, size):
            # The sums of one row are the next.
            matrix[i] = np.cumsum(matrix[i - 1])
    if kind in (None, "symmetric"):
        return matrix
    row = np.arange(size)
    # C(i, j) stands on the antidiagonal i of the symmetric matrix.
    lower = np.where(row[:, None] >= row, matrix[row[:, None] - row, row], 0.0)
    return lower if kind == "lower" else lower.T


def invpascal(n: int, kind: str | None = None) -> Array:
    """Inverse of the Pascal matrix, whose elements are integers.

    Shapes:     -> float[n, n].

    Args:
        n: how many rows.
        kind: of which matrix, as in `pascal`.

    Raises:
        ValueError: the kind is not known.

    Example:
        >>> minijax.scipy.linalg.invpascal(2)
        Array([[ 2., -1.],
               [-1.,  1.]], dtype=float32)
    """
    size = _size("invpascal", n)
    row = np.arange(size)
    signs = (-1.0) ** (row[:, None] + row)
    if kind in ("lower", "upper"):
        return _array(_pascal("invpascal", size, kind) * signs)
    _pascal("invpascal", 0, kind)
    lower = _pascal("invpascal", size, "lower") * signs
    return _array(lower.T @ lower)
