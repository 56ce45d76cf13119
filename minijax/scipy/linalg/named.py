"""Matrices that have names, made from their size alone.

Their elements are computed by NumPy, in 64 bits, and rounded once.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.errors import error
from minijax.numpy.creation import asarray, dtype_argument
from minijax.runtime.annotations import DTypeLike
from minijax.runtime.array import Array

_KINDS = ("symmetric", "lower", "upper")


def _size(name: str, n: int) -> int:
    try:
        return max(operator.index(n), 0)
    except TypeError:
        error(
            TypeError,
            f"scipy.linalg.{name}",
            "n is no integer.",
            got=f"n: {n!r}",
            expected="how many rows",
            fix="int(n)",
            cause=None,
        )


def _array(x: Any, dtype: Any = None) -> Any:
    return asarray(x.astype(dtypes.default_float_dtype() if dtype is None else dtype))


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """The matrix of the discrete Fourier transform: exp(-2πi j k / n).

    Shapes:     -> complex[n, n].
    Source:     mirrors jax.scipy.linalg.dft (0.10).

    Args:
        n: the length of the vectors that it transforms.
        scale: "sqrtn" divides by √n, "n" by n; None leaves it unscaled.
        dtype: a complex dtype; that of default precision if None.

    Raises:
        TypeError: n is no integer.
        ValueError: the scale is not known, or the dtype is not complex.

    Example:
        >>> minijax.scipy.linalg.dft(2)
        Array([[ 1.+0.j,  1.+0.j],
               [ 1.+0.j, -1.+0.j]], dtype=complex64)
    """
    size = _size("dft", n)
    scales = {None: 1.0, "sqrtn": math.sqrt(size), "n": float(size)}
    if scale not in scales:
        error(
            ValueError,
            "scipy.linalg.dft",
            "the scale is not known.",
            got=f"scale: {scale!r}",
            expected="None, 'sqrtn' or 'n'",
        )
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
    """The matrix of Hadamard in Sylvester's order: ones and minus ones, with orthogonal rows.

    Shapes:     -> dtype[n, n].
    Source:     mirrors jax.scipy.linalg.hadamard (0.10).

    Args:
        n: how many rows: a power of 2.
        dtype: the dtype.

    Raises:
        TypeError: n is no integer.
        ValueError: n is no power of 2.

    Example:
        >>> minijax.scipy.linalg.hadamard(2)
        Array([[ 1,  1],
               [ 1, -1]], dtype=int32)
    """
    size = _size("hadamard", n)
    if size < 1 or size & (size - 1):
        error(
            ValueError,
            "scipy.linalg.hadamard",
            "n is no power of 2.",
            got=f"n: {n}",
            expected="n > 0",
        )
    matrix = np.ones((1, 1), np.int8)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return _array(matrix, dtype_argument("scipy.linalg.hadamard", dtype, dtypes.int32))


def helmert(n: int, full: bool = False) -> Array:
    """The matrix of Helmert: orthonormal rows that each compare an element with those before it.

    Shapes:     -> float[n - 1, n], or float[n, n] where `full`.
    Source:     mirrors jax.scipy.linalg.helmert (0.10).

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
    """The matrix of Hilbert, 1 / (i + j + 1), which is hard to invert.

    Shapes:     -> float[n, n].
    Source:     mirrors jax.scipy.linalg.hilbert (0.10).

    Args:
        n: how many rows.

    Raises:
        TypeError: n is negative, or no integer.

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
    """The inverse of the matrix of Hilbert, whose elements are integers.

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
    """Pascal's triangle as a matrix: binomial coefficients.

    Shapes:     -> float[n, n].
    Source:     mirrors jax.scipy.linalg.pascal (0.10).

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
    if kind not in (None, *_KINDS):
        error(
            ValueError,
            f"scipy.linalg.{name}",
            "the kind is not known.",
            got=f"kind: {kind!r}",
            expected=" or ".join(map(repr, _KINDS)),
        )
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
    """The inverse of the matrix of binomial coefficients, whose elements are integers.

    Shapes:     -> float[n, n].
    Source:     mirrors jax.scipy.linalg.invpascal (0.10).

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
