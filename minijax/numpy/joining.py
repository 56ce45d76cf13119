"""Functions that join arrays, split them, and put a border round them.

Input: arrays.  Output: one array of several, or several of one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core.aval import aval_of
from minijax.core.errors import message
from minijax.core.trace import Tracer
from minijax.lax import arguments, convert, shape, slicing
from minijax.numpy import shaping
from minijax.numpy.promotion import promote_dtypes
from minijax.numpy.shaping import check_arraylike


def _sequence(name: str, arrays: Any) -> list[Any]:
    """The arrays of a sequence, or the rows of one array."""
    if hasattr(arrays, "shape"):
        if aval_of(arrays).ndim == 0:
            raise ValueError(
                message(f"numpy.{name}", "cannot join a scalar.", got=str(aval_of(arrays)))
            )
        return unstack(arrays)
    if not isinstance(arrays, (list, tuple)):
        raise TypeError(
            message(
                f"numpy.{name}",
                "needs a sequence of arrays.",
                got=type(arrays).__name__,
            )
        )
    check_arraylike(name, *arrays)
    return list(arrays)


def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Any:
    """Arrays joined along an existing dimension; as vectors where `axis` is None.

    Shapes: T[s], T[t], … alike but along `axis` -> T[s with the sizes along axis added].
    Dtypes: promoted to a common one.
    Source: mirrors jax.numpy.concatenate (0.10).

    Raises:
        ValueError: there are no arrays, or they are scalars, or do not fit.
    """
    items = _sequence("concatenate", arrays)
    if not items:
        raise ValueError(message("numpy.concatenate", "needs at least one array."))
    if axis is None:
        items, axis = [shaping.ravel(x) for x in items], 0
    if any(aval_of(x).ndim == 0 for x in items):
        raise ValueError(
            message(
                "numpy.concatenate", "cannot join scalars.", fix="numpy.stack joins scalars"
            )
        )
    axis = arguments.canonicalize_axis(axis, aval_of(items[0]).ndim, "numpy.concatenate")
    if dtype is None:
        items = promote_dtypes("concatenate", *items)
    else:
        items = [convert.convert_element_type(x, dtype) for x in items]
    if len(items) == 1:
        return items[0] if hasattr(items[0], "aval") else shape.copy(items[0])
    return shape.concatenate(items, axis)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Any:
    """As `concatenate`.  Mirrors jax.numpy.concat (0.10)."""
    return concatenate(arrays, axis)


def stack(arrays: Any, axis: int = 0, out: None = None, dtype: Any = None) -> Any:
    """Arrays of one shape joined along a new dimension.  Mirrors jax.numpy.stack (0.10).

    Raises:
        ValueError: there are no arrays, or their shapes differ.
    """
    _refuse_out("stack", out)
    items = _sequence("stack", arrays)
    if not items:
        raise ValueError(message("numpy.stack", "needs at least one array."))
    dims = aval_of(items[0]).shape
    if any(aval_of(x).shape != dims for x in items):
        raise ValueError(
            message(
                "numpy.stack",
                "all arrays must have the same shape.",
                got=", ".join(str(aval_of(x)) for x in items),
            )
        )
    axis = arguments.canonicalize_axis(axis, len(dims) + 1, "numpy.stack")
    return concatenate([shape.expand_dims(x, (axis,)) for x in items], axis, dtype)


def _refuse_out(name: str, out: Any) -> None:
    if out is not None:
        raise NotImplementedError(
            message(f"numpy.{name}", "arrays cannot be written in place.", fix="drop out=")
        )


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The slices of an array along a dimension.  Mirrors jax.numpy.unstack (0.10)."""
    check_arraylike("unstack", x)
    rank = aval_of(x).ndim
    if rank == 0:
        raise ValueError(message("numpy.unstack", "a scalar has no dimension to unstack."))
    axis = arguments.canonicalize_axis(axis, rank, "numpy.unstack")
    return tuple(
        slicing.index_in_dim(x, i, axis, keepdims=False) for i in range(aval_of(x).shape[axis])
    )


def vstack(tup: Any, dtype: Any = None) -> Any:
    """Arrays joined as rows.  Mirrors jax.numpy.vstack (0.10)."""
    items = [shaping.atleast_2d(x) for x in _sequence("vstack", tup)]
    return concatenate(items, 0, dtype)


def hstack(tup: Any, dtype: Any = None) -> Any:
    """Arrays joined along dimension 1, vectors along 0.  Mirrors jax.numpy.hstack (0.10)."""
    items = [shaping.atleast_1d(x) for x in _sequence("hstack", tup)]
    return concatenate(items, 0 if aval_of(items[0]).ndim == 1 else 1, dtype)


def dstack(tup: Any, dtype: Any = None) -> Any:
    """Arrays joined along dimension 2.  Mirrors jax.numpy.dstack (0.10)."""
    return concatenate([shaping.atleast_3d(x) for x in _sequence("dstack", tup)], 2, dtype)


def column_stack(tup: Any) -> Any:
    """Vectors as columns, and matrices, side by side.  Mirrors jax.numpy.column_stack (0.10)."""
    items = [
        shaping.atleast_2d(x).T if aval_of(x).ndim < 2 else x
        for x in _sequence("column_stack", tup)
    ]
    return concatenate(items, 1)


def block(arrays: Any) -> Any:
    """An array from nested lists of blocks.  Mirrors jax.numpy.block (0.10)."""
    if not isinstance(arrays, list):
        return arrays if hasattr(arrays, "aval") else shape.copy(np.asarray(arrays))
    rank = max(_depth(arrays), _largest_rank(arrays))
    return _join_blocks(arrays, rank, _depth(arrays))


def _depth(arrays: Any) -> int:
    return 1 + max((_depth(x) for x in arrays), default=0) if isinstance(arrays, list) else 0


def _largest_rank(arrays: Any) -> int:
    if isinstance(arrays, list):
        return max(_largest_rank(x) for x in arrays)
    return int(aval_of(arrays).ndim)


def _join_blocks(arrays: Any, rank: int, depth: int) -> Any:
    if not isinstance(arrays, list):
        own = aval_of(arrays).ndim
        return shape.expand_dims(arrays, tuple(range(rank - own)))
    return concatenate([_join_blocks(x, rank, depth - 1) for x in arrays], rank - depth)


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """An array cut into equal parts, or before given positions.

    Source: mirrors jax.numpy.split (0.10).

    Raises:
        ValueError: the dimension does not divide.
    """
    return _split("split", ary, indices_or_sections, axis, uneven=False)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """As `split`; parts may differ by one.  Mirrors jax.numpy.array_split (0.10)."""
    return _split("array_split", ary, indices_or_sections, axis, uneven=True)


def _split(name: str, ary: Any, where: Any, axis: int, *, uneven: bool) -> list[Any]:
    check_arraylike(name, ary)
    axis = arguments.canonicalize_axis(axis, aval_of(ary).ndim, f"numpy.{name}")
    size = aval_of(ary).shape[axis]
    if isinstance(where, (tuple, list)) or (hasattr(where, "ndim") and where.ndim):
        cuts = [int(i) for i in where]
        bounds = [0, *(slice(i, None).indices(size)[0] for i in cuts), size]
    else:
        parts = operator.index(where)
        each, rest = divmod(size, parts)
        if rest and not uneven:
            raise ValueError(
                message(
                    f"numpy.{name}",
                    "the dimension cannot be cut into equal parts.",
                    got=f"size {size}, {parts} parts",
                    fix="numpy.array_split cuts unevenly",
                )
            )
        sizes = [each + 1] * rest + [each] * (parts - rest)
        bounds = [0, *(int(n) for n in np.cumsum(sizes))]
    return [
        slicing.slice_in_dim(ary, start, max(start, stop), axis=axis)
        for start, stop in zip(bounds, bounds[1:], strict=False)
    ]


def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """`split` along dimension 1, of vectors along 0.  Mirrors jax.numpy.hsplit (0.10)."""
    return split(ary, indices_or_sections, 0 if aval_of(ary).ndim == 1 else 1)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """`split` along dimension 0.  Mirrors jax.numpy.vsplit (0.10)."""
    return split(ary, indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """`split` along dimension 2.  Mirrors jax.numpy.dsplit (0.10)."""
    return split(ary, indices_or_sections, 2)


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """`arr` with `values` behind it.  Mirrors jax.numpy.append (0.10)."""
    if axis is None:
        return concatenate([shaping.ravel(arr), shaping.ravel(values)], 0)
    return concatenate([arr, values], axis)


def pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    """`array` with a border.

    Args:
        array: what is padded.
        pad_width: (before, after) for each dimension, or one for all, or one number.
        mode: "constant" (with `constant_values`), "edge", "reflect", "symmetric", "wrap", "empty",
            "linear_ramp" (with `end_values`), "maximum", "minimum", "mean".
        options: what the mode takes.

    Source: mirrors jax.numpy.pad (0.10).

    Raises:
        ValueError: a width is negative or does not fit.
        NotImplementedError: the mode is not known.
    """
    check_arraylike("pad", array)
    rank = aval_of(array).ndim
    widths = _widths(pad_width, rank)
    if mode == "constant":
        return _pad_constant(array, widths, options.pop("constant_values", 0))
    if mode == "empty":
        return _pad_constant(array, widths, 0)
    if mode in _BORDERS:
        for dim, (before, after) in enumerate(widths):
            array = _pad_by_position(array, dim, before, after, mode, options)
        return array
    if mode in _STATISTICS or mode == "linear_ramp":
        for dim, (before, after) in enumerate(widths):
            array = _pad_by_value(array, dim, before, after, mode, options)
        return array
    raise NotImplementedError(
        message(
            "numpy.pad",
            f"unknown mode {mode!r}.",
            expected="one of constant, empty, linear_ramp, "
            + ", ".join([*_BORDERS, *_STATISTICS]),
        )
    )


def _widths(pad_width: Any, rank: int) -> list[tuple[int, int]]:
    try:
        if isinstance(pad_width, dict):
            pairs = {d % rank: np.broadcast_to(w, 2) for d, w in pad_width.items()}
            table = np.array([pairs.get(d, (0, 0)) for d in range(rank)])
        else:
            given = np.asarray(pad_width)
            table = np.broadcast_to(given.reshape(-1, 1) if given.shape == (1,) else given, (rank, 2))
    except ValueError:
        raise ValueError(
            message(
                "numpy.pad",
                "pad_width does not fit the array.",
                got=repr(pad_width),
                expected=f"a number, a pair, or {rank} pairs",
            )
        ) from None
    if rank and (table < 0).any():
        raise ValueError(
            message("numpy.pad", "widths must not be negative.", got=repr(pad_width))
        )
    return [(int(before), int(after)) for before, after in table]


def _pad_constant(array: Any, widths: Any, values: Any) -> Any:
    dtype = aval_of(array).dtype
    traced = isinstance(values, Tracer) or hasattr(values, "aval")
    if traced and aval_of(values).ndim == 0:
        value = convert.convert_element_type(values, dtype)
        return shape.pad(array, value, [(b, a, 0) for b, a in widths])
    table = np.broadcast_to(np.asarray(values), (len(widths), 2)) if widths else np.zeros((0, 2))
    if (table == (table.flat[0] if table.size else 0)).all():
        value = np.asarray(table.flat[0] if table.size else 0).astype(dtype)[()]
        return shape.pad(array, value, [(b, a, 0) for b, a in widths])
    for dim, (before, after) in enumerate(widths):
        for width, value, sides in (
            (before, table[dim, 0], (before, 0, 0)),
            (after, table[dim, 1], (0, after, 0)),
        ):
            if width:
                config = [(0, 0, 0)] * len(widths)
                config[dim] = sides
                array = shape.pad(array, np.asarray(value).astype(dtype)[()], config)
    return array


def _edge(positions: Any, size: int, _: Any) -> Any:
    return np.clip(positions, 0, size - 1)


def _wrap(positions: Any, size: int, _: Any) -> Any:
    return positions % size


def _reflect(positions: Any, size: int, _: Any) -> Any:
    if size == 1:
        return np.zeros_like(positions)
    period = 2 * (size - 1)
    folded = positions % period
    return np.where(folded < size, folded, period - folded)


def _symmetric(positions: Any, size: int, _: Any) -> Any:
    folded = positions % (2 * size)
    return np.where(folded < size, folded, 2 * size - 1 - folded)


_BORDERS: dict[str, Callable[[Any, int, Any], Any]] = {
    "edge": _edge,
    "wrap": _wrap,
    "reflect": _reflect,
    "symmetric": _symmetric,
}
_STATISTICS = ("maximum", "minimum", "mean")


def _pad_by_position(
    array: Any, dim: int, before: int, after: int, mode: str, options: dict[str, Any]
) -> Any:
    """A border of the array's own elements."""
    if not before and not after:
        return array
    if options.get("reflect_type", "even") != "even":
        raise NotImplementedError(
            message("numpy.pad", "reflect_type 'odd' is not built.", expected="'even'")
        )
    size = aval_of(array).shape[dim]
    if size == 0:
        raise ValueError(
            message("numpy.pad", f"cannot pad the empty dimension {dim} with mode {mode!r}.")
        )
    positions = _BORDERS[mode](np.arange(-before, size + after), size, None)
    return shaping.slicing_take(array, positions.astype(np.int32), dim)


def _pad_by_value(
    array: Any, dim: int, before: int, after: int, mode: str, options: dict[str, Any]
) -> Any:
    """A border computed from the array: a statistic, or a ramp to an end value."""
    aval = aval_of(array)
    array = array if hasattr(array, "aval") else shape.copy(array)
    size = aval.shape[dim]
    parts = []
    for width, first, side in ((before, True, 0), (after, False, 1)):
        if not width:
            continue
        if mode == "linear_ramp":
            edge = slicing.slice_in_dim(array, 0 if first else size - 1, 1 if first else size, axis=dim)
            ends = np.broadcast_to(np.asarray(options.get("end_values", 0)), (aval.ndim, 2))
            steps = np.arange(width) / width
            steps = steps if first else 1 - (np.arange(width) + 1) / width
            ramp = steps.reshape([-1 if d == dim else 1 for d in range(aval.ndim)])
            border = ends[dim, side] + (edge - ends[dim, side]) * (
                ramp if first else ramp
            )
            border = border.astype(aval.dtype)
        else:
            reduce = {"maximum": "max", "minimum": "min", "mean": "mean"}[mode]
            border = getattr(array, reduce)(axis=dim, keepdims=True).astype(aval.dtype)
            border = shaping.broadcast_array(
                border, tuple(width if d == dim else n for d, n in enumerate(aval.shape))
            )
        parts.append((first, border))
    whole = [b for first, b in parts if first] + [array] + [b for first, b in parts if not first]
    return shape.concatenate(whole, dim) if len(whole) > 1 else array
