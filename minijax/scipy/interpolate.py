"""Functions through points of a grid.  Mirrors jax.scipy.interpolate."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes, source
from minijax.core.aval import aval_of
from minijax.numpy.creation import asarray
from minijax.numpy.elementary import clip
from minijax.numpy.joining import stack
from minijax.numpy.ordering import searchsorted
from minijax.numpy.promotion import check_array, check_choice, check_that
from minijax.numpy.selection import where
from minijax.numpy.shaping import array_argument, broadcast_arrays
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array

__all__ = ["RegularGridInterpolator"]

_NAME = "scipy.interpolate.RegularGridInterpolator"
_METHODS = ("linear", "nearest")


class RegularGridInterpolator:
    """Interpolator on a regular or rectilinear grid.

    Args:
        points: for each dimension of the grid its coordinates, ascending.
        values: the values at the grid's points; further dimensions belong to a value.
        method: "linear", or "nearest" for the value at the nearest point.
        bounds_error: must be False; an error cannot depend on an array's elements.
        fill_value: the value outside of the grid; None for extrapolation.

    Shapes:     points: one T[n] for each dimension, values: U[n1, n2, .., s]; called with
                V[t, dimensions] or one V[t] for each dimension -> W[t, s].
    Dtypes:     values promoted to inexact.
    Derivative: linear in the values; "linear" has one by points and coordinates too.
    Source:     mirrors jax.scipy.interpolate.RegularGridInterpolator (0.10).

    Raises:
        ValueError: points and values do not fit together, the method is not known, or the fill
            value does not fit the values.
        TypeError: an argument is not an array.
        NotImplementedError: `bounds_error` is True.

    Example:
        >>> grid = (np.float32([0, 1]), np.float32([0, 2]))
        >>> between = minijax.scipy.interpolate.RegularGridInterpolator(
        ...     grid, np.float32([[0, 2], [10, 12]])
        ... )
        >>> between(np.float32([[0.5, 1.0]]))
        Array([6.], dtype=float32)
    """

    def __init__(
        self,
        points: Sequence[Any],
        values: ArrayLike,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: ArrayLike | None = np.nan,
    ) -> None:
        check_choice(_NAME, "method", method, _METHODS)
        fits = not bounds_error
        problem = "an error cannot depend on the elements of arrays."
        fix = "bounds_error=False, and fill_value for what is outside"
        check_that(
            fits, _NAME, problem, error=NotImplementedError, got="bounds_error: True", fix=fix
        )
        values = array_argument(_NAME, values)
        grid = tuple(array_argument(_NAME, p) for p in points)
        fits = len(grid) <= values.ndim
        problem = "there are more arrays of points than dimensions."
        check_that(fits, _NAME, problem, points=f"{len(grid)} arrays", values=values)
        for d, p in enumerate(grid):
            fits = p.shape == (values.shape[d],)
            problem = "the points along a dimension are a vector, one for each value."
            check_that(fits, _NAME, problem, got={f"points[{d}]": p.aval, "values": values.aval})
        self.grid = grid
        self.values = values.astype(dtypes.to_inexact_dtype(values.dtype))
        self.method = method
        self.bounds_error = bounds_error
        self.fill_value = fill_value if fill_value is None else _fill(fill_value, self.values)

    def __call__(self, xi: ArrayLike | tuple[ArrayLike, ...], method: str | None = None) -> Array:
        """The values at coordinates: an array whose last dimension is the grid's, or a tuple."""
        method = self.method if method is None else method
        check_choice(_NAME, "method", method, _METHODS)
        places = self._places(xi)
        found = [self._cell(p, x) for p, x in zip(self.grid, places, strict=True)]
        value = self._nearest(found) if method == "nearest" else self._linear(found)
        if self.fill_value is None:
            return value
        is_outside: Any = False
        for p, x in zip(self.grid, places, strict=True):
            is_outside = is_outside | (x < p[0]) | (x > p[-1])
        return where(_spread(is_outside, value), self.fill_value, value)

    def _places(self, xi: ArrayLike | tuple[ArrayLike, ...]) -> list[Array]:
        """The coordinates along each dimension."""
        if isinstance(xi, tuple):
            xi = stack(broadcast_arrays(*xi), -1)
        xi = array_argument(_NAME, xi)
        if xi.ndim == 1:
            xi = xi[:, None] if len(self.grid) == 1 else xi[None]
        fits = xi.ndim != 0 and xi.shape[-1] == len(self.grid)
        problem = "coordinates need a number for each dimension of the grid."
        check_that(fits, _NAME, problem, xi=xi, dimensions=len(self.grid))
        return [xi[..., d] for d in range(len(self.grid))]

    @staticmethod
    def _cell(points: Array, x: Array) -> tuple[Array, Array]:
        """The number of the point before `x`, and how far `x` is on the way to the next one."""
        before = clip(searchsorted(points, x) - 1, 0, max(points.size - 2, 0))
        start, end = points[before], points[clip(before + 1, 0, points.size - 1)]
        width = end - start
        is_flat = width == 0
        return before, where(is_flat, 0, (x - start) / where(is_flat, 1, width))

    def _linear(self, cells: Sequence[tuple[Any, Any]]) -> Array:
        total: Any = 0
        for corner in itertools.product((0, 1), repeat=len(cells)):
            places = tuple(
                clip(before + step, 0, size - 1)
                for (before, _), step, size in zip(cells, corner, self.values.shape, strict=False)
            )
            value = self.values[places]
            for (_, share), step in zip(cells, corner, strict=True):
                value = value * _spread(share if step else 1 - share, value)
            total = total + value
        return total

    def _nearest(self, cells: Sequence[tuple[Any, Any]]) -> Array:
        return self.values[tuple(before + (share > 0.5) for before, share in cells)]


def _spread(weights: Array, values: Array) -> Array:
    """Weights with new dimensions for those that belong to a value."""
    return weights.reshape(weights.shape + (1,) * (values.ndim - weights.ndim))


def _fill(fill_value: ArrayLike, values: Array) -> Array:
    fill_value = asarray(check_array(_NAME, fill_value, "fill_value"))
    fits = np.can_cast(_kind(fill_value), _kind(values), casting="same_kind")
    problem = "the fill value does not fit the values."
    check_that(fits, _NAME, problem, fill_value=aval_of(fill_value), values=values)
    return fill_value.astype(values.dtype)


def _kind(x: ArrayLike) -> np.dtype[Any]:
    """A NumPy dtype of the same kind."""
    is_complex = dtypes.issubdtype(aval_of(x).dtype, np.complexfloating)
    return np.dtype(np.complex64 if is_complex else np.float32)


__dir__ = source.shown(globals())
