"""Objects whose brackets build arrays: `mgrid`, `ogrid`, `r_`, `c_`.

The slices in the brackets are ranges: `0:5` counts, `0:1:5j` divides into five samples.
"""

from __future__ import annotations

from typing import Any

from minijax.core.errors import error
from minijax.numpy.creation import asarray
from minijax.numpy.joining import concatenate, stack
from minijax.numpy.matrices import meshgrid
from minijax.numpy.promotion import promote_dtypes
from minijax.numpy.ranges import arange, linspace
from minijax.numpy.shaping import expand_dims, moveaxis


def _range(item: slice, name: str) -> Any:
    start = 0 if item.start is None else item.start
    if item.stop is None:
        error(
            ValueError, f"numpy.{name}", "a range needs an end.", got=repr(item), fix=f"{name}[0:n]"
        )
    if isinstance(item.step, complex):
        return linspace(start, item.stop, int(abs(item.step)))
    return arange(start, item.stop, 1 if item.step is None else item.step)


class Grid:
    """`mgrid` and `ogrid`: the coordinates of all points of a grid, in full or broadcastable.

    Source:     mirrors jax.numpy.mgrid and jax.numpy.ogrid.

    Example:
        >>> jnp.mgrid[0:2, 0:3]
        Array([[[0, 0, 0],
                [1, 1, 1]],
        <BLANKLINE>
               [[0, 1, 2],
                [0, 1, 2]]], dtype=int32)
        >>> jnp.ogrid[0:1:5j]  # as `linspace` does
        Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """

    def __init__(self, name: str, *, sparse: bool) -> None:
        self.name = name
        self.sparse = sparse

    def __getitem__(self, key: slice | tuple[slice, ...]) -> Any:
        if isinstance(key, slice):
            return _range(key, self.name)
        ranges = promote_dtypes(self.name, *(_range(item, self.name) for item in key))
        grids = meshgrid(*ranges, indexing="ij", sparse=self.sparse)
        return grids if self.sparse else stack(grids)

    def __repr__(self) -> str:
        return f"minijax.numpy.{self.name}"


# Where a vector gets its second dimension.
_MATRICES = {"r": 0, "c": 1}


class Joiner:
    """`r_` and `c_`: what stands in the brackets, joined along one axis.

    A text in front, such as "0,2,1", names the axis, the least number of dimensions, and where
    dimensions of arrays with fewer go; "r" or "c" makes a vector a row or a column.

    Source:     mirrors jax.numpy.r_ and jax.numpy.c_.

    Example:
        >>> jnp.r_[0, 5:8, jnp.array([1, 2])]
        Array([0, 5, 6, 7, 1, 2], dtype=int32)
        >>> jnp.c_[jnp.array([1, 2]), jnp.array([3, 4])]
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """

    def __init__(self, name: str, axis: int, ndmin: int, place: int) -> None:
        self.name = name
        self.settings = axis, ndmin, place

    def __getitem__(self, key: Any) -> Any:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, ndmin, place = self.settings
        text = items.pop(0) if items and isinstance(items[0], str) else ""
        if text and text not in _MATRICES:
            axis, ndmin, place = self._parse(text)
        parts = []
        for item in items:
            part = _range(item, self.name) if isinstance(item, slice) else asarray(item)
            parts.append(self._raised(part, max(ndmin, 1), place))
        joined = concatenate(parts, axis)
        return (
            expand_dims(joined, _MATRICES[text])
            if text in _MATRICES and joined.ndim == 1
            else joined
        )

    def _parse(self, text: str) -> tuple[int, int, int]:
        try:
            numbers = [int(number) for number in text.split(",")]
        except ValueError:
            numbers = []
        if not 0 < len(numbers) <= 3:
            error(
                ValueError,
                f"numpy.{self.name}",
                "the directive is not understood.",
                got=repr(text),
                expected="up to three integers, such as '0,2,1', or 'r' or 'c' for a matrix",
            )
        return tuple((numbers + [1, -1][len(numbers) - 1 :])[:3])  # type: ignore[return-value]

    def _raised(self, x: Any, ndmin: int, place: int) -> Any:
        """`x` with new dimensions up to `ndmin`; its own ones start at `place`."""
        missing = ndmin - x.ndim
        if missing <= 0:
            return x
        own = place if place >= 0 else missing + 1 + place
        raised = expand_dims(x, tuple(range(missing)))
        return moveaxis(
            raised, tuple(range(missing, ndmin)), tuple(range(own, own + ndmin - missing))
        )

    def __repr__(self) -> str:
        return f"minijax.numpy.{self.name}"


mgrid = Grid("mgrid", sparse=False)
ogrid = Grid("ogrid", sparse=True)
r_ = Joiner("r_", 0, 1, -1)
c_ = Joiner("c_", -1, 2, 0)
