"""`x.at[index].set(y)` and its like: arrays with some elements replaced.

Input: an array, an index, values.  Output: a new array.  Regions that are known to be in range
and have no steps are written by `dynamic_update_slice`; all others are scattered.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import message
from minijax.core.trace import Tracer, current
from minijax.interpreters import eager
from minijax.lax import binary, convert, creation, scattering, choice, shape, slicing
from minijax.numpy import indexing
from minijax.numpy.indexing import At, Fixed, From, New, Picked, Range, Template
from minijax.numpy.one_program import native_program

_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "set": lambda old, new: new,
    "add": binary.add,
    "subtract": binary.sub,
    "multiply": binary.mul,
    "min": binary.min,
    "max": binary.max,
}
_SCATTER: dict[str, Callable[..., Any]] = {
    "set": scattering.scatter,
    "add": scattering.scatter_add,
    "subtract": scattering.scatter_sub,
    "multiply": scattering.scatter_mul,
    "min": scattering.scatter_min,
    "max": scattering.scatter_max,
}


class IndexUpdateHelper:
    """`x.at`: index it to get the methods that update.  Mirrors jax.numpy.ndarray.at (0.10)."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> IndexUpdateRef:
        return IndexUpdateRef(self.array, index)

    def __repr__(self) -> str:
        return f"IndexUpdateHelper({self.array!r})"


class IndexUpdateRef:
    """`x.at[index]`: each method returns a new array; `x` does not change.

    Keyword arguments of the methods: `indices_are_sorted` and `unique_indices`, promises that
    may speed a scatter; `mode`, what happens out of range: `"drop"` (the default), `"clip"`,
    `"promise_in_bounds"`; `wrap_negative_indices`, whether negative ones count from the end.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any) -> None:
        self.array = array
        self.index = index

    def set(self, values: Any, **options: Any) -> Any:
        """`x` with `x[index] = values`."""
        return _update(self.array, self.index, values, "set", options)

    def add(self, values: Any, **options: Any) -> Any:
        """`x` with `x[index] += values`; repeated positions add up."""
        return _update(self.array, self.index, values, "add", options)

    def subtract(self, values: Any, **options: Any) -> Any:
        """`x` with `x[index] -= values`; repeated positions add up."""
        return _update(self.array, self.index, values, "subtract", options)

    def multiply(self, values: Any, **options: Any) -> Any:
        """`x` with `x[index] *= values`; repeated positions multiply."""
        return _update(self.array, self.index, values, "multiply", options)

    mul = multiply

    def divide(self, values: Any, **options: Any) -> Any:
        """`x` with `x[index] /= values`."""
        ones = creation.full_like(self.array, 1)
        divisor = _update(ones, self.index, values, "multiply", options)
        return binary.div(self.array, divisor)

    def power(self, values: Any, **options: Any) -> Any:
        """`x` with `x[index] **= values`."""
        ones = creation.full_like(self.array, 1)
        return binary.pow(self.array, _update(ones, self.index, values, "multiply", options))

    def min(self, values: Any, **options: Any) -> Any:
        """`x` with `x[index]` replaced where `values` are smaller."""
        return _update(self.array, self.index, values, "min", options)

    def max(self, values: Any, **options: Any) -> Any:
        """`x` with `x[index]` replaced where `values` are larger."""
        return _update(self.array, self.index, values, "max", options)

    def apply(self, func: Callable[[Any], Any], **options: Any) -> Any:
        """`x` with `func` applied to `x[index]`."""
        return _update(self.array, self.index, func(self.get(mode="clip")), "set", options)

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        fill_value: Any = None,
        wrap_negative_indices: bool = True,
        out_sharding: Any = None,
    ) -> Any:
        """`x[index]`, with a choice of what happens out of range: `mode="fill"`, `"clip"`, …"""
        if mode is None and fill_value is None:
            return indexing.getitem(self.array, self.index)
        x, template, operands = indexing.parse(self.array, self.index, dynamic=False)
        if not any(type(e) in (Picked, At) for e in template):
            return indexing.take_template(x, template, operands)
        template, operands = _all_picked(template, operands)
        return indexing._gather(
            x,
            template,
            operands,
            mode=mode or "fill",
            fill_value=fill_value,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
        )

    def __repr__(self) -> str:
        return f"IndexUpdateRef({self.array!r}, {self.index!r})"


def at(x: Any) -> IndexUpdateHelper:
    """The helper behind the property `x.at`."""
    return IndexUpdateHelper(x)


def _all_picked(template: Template, operands: Sequence[Any]) -> tuple[Template, list[Any]]:
    """The same index with every single position as an array of rank 0."""
    out: list[Any] = []
    values: list[Any] = []
    for entry, value in indexing._with_operands(template, operands):
        if type(entry) is Fixed:
            out.append(Picked())
            values.append(np.int32(entry.position))
        elif type(entry) is At:
            out.append(Picked())
            values.append(value)
        else:
            out.append(entry)
            values += [value] if value is not None else []
    return tuple(out), values


def _update(x: Any, index: Any, values: Any, kind: str, options: dict[str, Any]) -> Any:
    _check_options(kind, options)
    if isinstance(values, (list, tuple)):
        values = np.asarray(values)
    masked = _masked(x, index, values, kind)
    if masked is not None:
        return masked
    x, template, operands = indexing.parse(x, index, dynamic=indexing.is_eager())
    if _out_of_range(aval_of(x).shape, index):
        options = {**options, "mode": options.get("mode")}
        if options["mode"] in (None, "drop", "fill"):
            return shape.copy(x) if isinstance(x, Tracer) else x
    settings = tuple(sorted(options.items()))
    if current.value is eager.EAGER:
        return _update_program(
            x, values, *operands, template=template, kind=kind, settings=settings
        )
    return _apply(x, values, *operands, template=template, kind=kind, settings=settings)


def _out_of_range(dims: Sequence[int], index: Any) -> bool:
    """Whether a known position of the index is out of range: then updates are dropped."""
    items = index if type(index) is tuple else (index,)
    if any(item is Ellipsis or item is None or not indexing.has_value(item) for item in items):
        items = tuple(i for i in items if indexing.has_value(i)) if len(items) == 1 else items
    position = 0
    for item in items:
        if item is Ellipsis:
            return False
        if isinstance(item, (int, np.integer)) and not isinstance(item, (bool, np.bool_)):
            if not -dims[position] <= item < dims[position]:
                return True
        position += item is not None
    return False


def _masked(x: Any, index: Any, values: Any, kind: str) -> Any:
    """The update under a traced mask of the array's shape and a value that broadcasts to it."""
    if not isinstance(index, Tracer) or index.dtype != dtypes.bool_ or index.concrete() is not None:
        return None
    if index.shape != aval_of(x).shape or aval_of(values).ndim:
        return None
    value = _as_dtype_of(values, x, kind)
    new = _COMBINE[kind](x, value)
    if aval_of(new).shape != aval_of(x).shape:
        new = shape.broadcast_in_dim(new, aval_of(x).shape, ())
    return choice.select_n(index, x, new)


def _check_options(kind: str, options: dict[str, Any]) -> None:
    known = {
        "indices_are_sorted",
        "unique_indices",
        "mode",
        "fill_value",
        "wrap_negative_indices",
        "out_sharding",
    }
    unknown = sorted(set(options) - known)
    if unknown:
        raise TypeError(
            message(
                f"at[...].{kind}",
                f"unknown keyword arguments {unknown}.",
                expected=f"some of {sorted(known)}",
            )
        )


def _as_dtype_of(values: Any, x: Any, kind: str) -> Any:
    """Values in the dtype of the array; a warning where that loses what they are."""
    dtype = aval_of(x).dtype
    given = aval_of(values)
    if given.dtype == dtype:
        return convert.convert_element_type(values, dtype) if given.weak_type else values
    if not given.weak_type or dtypes.lattice_result_type(x, values)[0] != dtype:
        joined = dtypes.lattice_result_type(x, values)[0]
        if joined != dtype:
            warnings.warn(
                message(
                    f"at[...].{kind}",
                    "the values are converted to the array's dtype, which loses something.",
                    got={"array": aval_of(x), "values": given},
                    fix="convert them with astype",
                ),
                FutureWarning,
                stacklevel=4,
            )
    return convert.convert_element_type(values, dtype)


def _apply(
    x: Any, values: Any, *operands: Any, template: Template, kind: str, settings: Any
) -> Any:
    """`x` updated at a parsed index."""
    options = dict(settings)
    values = _as_dtype_of(values, x, kind)
    entries = [e for e in template if type(e) is not New]
    in_range = all(
        type(e) in (Fixed, From)
        or (type(e) is Range and e.step == 1)
        or (type(e) is At and e.checked)
        for e in entries
    )
    values = _fit(x, values, template, operands)
    if in_range:
        return _write_region(x, values, template, entries, operands, kind)
    return _scatter(x, values, template, operands, kind, options)


_update_program = native_program(_apply, ("template", "kind", "settings"))


def _fit(x: Any, values: Any, template: Template, operands: Sequence[Any]) -> Any:
    """Values repeated to the shape of the selection, and without its new dimensions."""
    selected = selected_shape(x, template, operands)
    given = aval_of(values).shape
    while len(given) > len(selected) and given[0] == 1:
        values = shape.squeeze(values, (0,))
        given = given[1:]
    lead = len(selected) - len(given)
    fits = lead >= 0 and all(
        a in (1, b) for a, b in zip(given, selected[lead:], strict=True)
    )
    if not fits:
        raise ValueError(
            message(
                "at[...]",
                "the values do not fit the selection.",
                got={"values": aval_of(values), "selection": selected},
                expected="values that broadcast to the shape of x[index]",
            )
        )
    if given != selected:
        values = shape.broadcast_in_dim(
            values, selected, tuple(range(lead, len(selected)))
        )
    made = _made(template, operands)
    return shape.squeeze(values, made) if made else values


def _made(template: Template, operands: Sequence[Any]) -> tuple[int, ...]:
    if any(type(e) is Picked for e in template):
        return indexing.new_dimensions(template, indexing.layout_of(template, operands))
    kept = [e for e in template if type(e) not in (At, Fixed)]
    return tuple(i for i, e in enumerate(kept) if type(e) is New)


def selected_shape(x: Any, template: Template, operands: Sequence[Any]) -> tuple[int, ...]:
    """The shape of `x[index]` for a parsed index."""
    sizes = [e.size for e in template if type(e) in (Range, From)]  # type: ignore[union-attr]
    if any(type(e) is Picked for e in template):
        layout = indexing.layout_of(template, operands)
        sizes[layout.front : layout.front] = layout.block
    for position in _made(template, operands):
        sizes.insert(position, 1)
    return tuple(sizes)


def _write_region(
    x: Any,
    values: Any,
    template: Template,
    entries: Sequence[Any],
    operands: Sequence[Any],
    kind: str,
) -> Any:
    """Writes a box that is known to be in range."""
    dims = aval_of(x).shape
    given = iter(operands)
    starts, sizes = [], []
    for entry, n in zip(entries, dims, strict=True):
        if type(entry) in (At, From):
            starts.append(next(given))
            sizes.append(getattr(entry, "size", 1))
        elif type(entry) is Fixed:
            starts.append(entry.position)
            sizes.append(1 if n else 0)
        else:
            starts.append(entry.start)
            sizes.append(entry.size)
    if 0 in sizes:
        return x
    if aval_of(values).shape != tuple(sizes):
        values = shape.reshape(values, tuple(sizes))
    if kind != "set":
        old = slicing.dynamic_slice(x, starts, sizes, allow_negative_indices=False)
        values = _COMBINE[kind](old, values)
    return slicing.dynamic_update_slice(x, values, starts, allow_negative_indices=False)


def _scatter(
    x: Any,
    values: Any,
    template: Template,
    operands: Sequence[Any],
    kind: str,
    options: dict[str, Any],
) -> Any:
    """Scatters values: every dimension that is not whole is indexed by an array."""
    dims = aval_of(x).shape
    pairs = [(e, v) for e, v in indexing._with_operands(template, operands) if type(e) is not New]
    picked = any(type(e) is Picked for e, _ in pairs)
    layout = indexing.layout_of(template, operands) if picked else indexing.Layout((), (), 0)
    block = len(layout.block)
    columns, indexed, window = [], [], []
    ranges = [
        (d, e, v) for d, (e, v) in enumerate(pairs) if _is_partial(e, dims[d])
    ]
    lead = (*layout.block, *(e.size for _, e, _ in ranges))
    for d, (entry, value) in enumerate(pairs):
        if type(entry) in (Picked, At, Fixed):
            single = np.int32(entry.position) if type(entry) is Fixed else value
            own = aval_of(single).ndim
            column = _column(single, dims[d], lead, range(block - own, block))
        elif _is_partial(entry, dims[d]):
            axis = block + [r[0] for r in ranges].index(d)
            column = _column(_positions(entry, value), dims[d], lead, [axis])
        else:
            window.append(d)
            continue
        indexed.append(d)
        columns.append(column)
    index = columns[0] if len(columns) == 1 else shape.concatenate(columns, len(lead))
    values = _arrange(values, pairs, layout, [r[0] for r in ranges], window)
    numbers = scattering.ScatterDimensionNumbers(
        update_window_dims=tuple(range(len(lead), len(lead) + len(window))),
        inserted_window_dims=tuple(indexed),
        scatter_dims_to_operand_dims=tuple(indexed),
    )
    return _SCATTER[kind](
        x,
        index,
        values,
        numbers,
        indices_are_sorted=bool(options.get("indices_are_sorted", False)),
        unique_indices=bool(options.get("unique_indices", False)),
        mode=options.get("mode"),
    )


def _is_partial(entry: Any, size: int) -> bool:
    return type(entry) is From or (
        type(entry) is Range and (entry.size, entry.step) != (size, 1)
    )


def _positions(entry: Any, start: Any) -> Any:
    if type(entry) is From:
        offsets = np.arange(entry.size, dtype=np.int32)
        return binary.add(convert.convert_element_type(start, np.dtype(np.int32)), offsets)
    return (entry.start + entry.step * np.arange(entry.size)).astype(np.int32)


def _column(positions: Any, size: int, lead: tuple[int, ...], dims: Any) -> Any:
    """Positions as an array (*lead, 1), running along `dims` of it."""
    if aval_of(positions).dtype != np.int32:
        positions = convert.convert_element_type(positions, np.dtype(np.int32))
    positions = indexing.wrapped(positions, size)
    return shape.broadcast_in_dim(positions, (*lead, 1), tuple(dims))


def _arrange(
    values: Any, pairs: Any, layout: Any, ranges: Sequence[int], window: Sequence[int]
) -> Any:
    """Values of a selection with the block first, then partial, then whole dimensions."""
    block = len(layout.block)
    place: dict[int, int] = {}
    position = 0 if layout.front or not block else block
    for d, (entry, _) in enumerate(pairs):
        if block and layout.front and position == layout.front:
            position += block
        if type(entry) in (Range, From):
            place[d] = position
            position += 1
    first = [d for d in range(aval_of(values).ndim) if d not in place.values()]
    order = [*first, *(place[d] for d in ranges), *(place[d] for d in window)]
    return shape.transpose(values, order)


