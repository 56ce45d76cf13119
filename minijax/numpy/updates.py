"""`x.at[index].set(y)` and its like: arrays with some elements replaced.

Input: an array, an index, values.  Output: a new array.  A region that is known to be in range
and has no steps is written by `dynamic_update_slice`; all others are scattered.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from minijax.core import dtypes, source
from minijax.core.aval import Shape, aval_of
from minijax.core.errors import error, warn
from minijax.core.refs import AbstractRef
from minijax.core.trace import Tracer, current
from minijax.lax import binary, gather_numbers, gather_scatter, references, shape, slicing
from minijax.lax.creation import convert_element_type, convert_to_type
from minijax.lowering import eager
from minijax.numpy import creation, elementary, indexing, promotion
from minijax.numpy.indexing import (
    At,
    Fixed,
    From,
    Mode,
    New,
    Picked,
    Range,
    Template,
    Whole,
    Windows,
)
from minijax.numpy.promotion import native_program
from minijax.runtime.annotations import ArrayLike, ArrayOrLists, ShardingLike
from minijax.runtime.array import Array
from minijax.transforms import explicit

_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "set": lambda old, new: new,
    "add": binary.add,
    "subtract": binary.sub,
    "multiply": binary.mul,
    "min": binary.min,
    "max": binary.max,
}
_SCATTER: dict[str, Callable[..., Any]] = {
    "set": gather_scatter.scatter,
    "add": gather_scatter.scatter_add,
    "subtract": gather_scatter.scatter_sub,
    "multiply": gather_scatter.scatter_mul,
    "min": gather_scatter.scatter_min,
    "max": gather_scatter.scatter_max,
}
# Updates that are no scatters: of the whole array, by ones but for values at the index.
_BY_FACTORS: dict[str, Callable[[Any, Any], Any]] = {
    "divide": elementary.divide,
    "power": elementary.power,
}


class UpdateOptions(NamedTuple):
    """Options of the methods of `x.at[index]`."""

    indices_are_sorted: bool = False
    unique_indices: bool = False
    mode: Mode = None
    out_sharding: ShardingLike = None
    wrap_negative_indices: bool = True


@source.boundaries("__setitem__", "__call__")
class IndexUpdateHelper:
    """`x.at`: index it to get the methods that update.

    Source:     mirrors jax.Array.at.
    """

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> IndexUpdateRef:
        return IndexUpdateRef(self.array, index)

    def __setitem__(self, index: Any, value: object) -> None:
        self._refuse("arrays do not change")

    def __call__(self, *index: Any) -> None:
        self._refuse("x.at takes an index in brackets")

    def _refuse(self, problem: str) -> NoReturn:
        got = f"an array of type {aval_of(self.array)}"
        fix = "x = x.at[index].set(value)"
        error(TypeError, "ndarray.at", f"{problem}.", got=got, fix=fix)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.array!r})"


def _updating(declared: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: a method that updates, in place of a declaration with its name and docstring."""
    kind = declared.__name__

    def method(
        self: IndexUpdateRef,
        values: ArrayOrLists,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        out_sharding: ShardingLike = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        options = UpdateOptions(
            indices_are_sorted, unique_indices, mode, out_sharding, wrap_negative_indices
        )
        if out_sharding is None:
            return _update(self.array, self.index, values, kind, options)

        def update(x: Array, new: Array) -> Any:
            return _update(x, self.index, new, kind, options)

        return explicit.auto_axes(update, out_sharding=out_sharding)(self.array, values)

    method.__name__, method.__qualname__ = kind, declared.__qualname__
    method.__doc__ = declared.__doc__
    return source.boundary(method)


@source.boundaries("get", "apply")
class IndexUpdateRef:
    """`x.at[index]`: each method returns a new array; `x` does not change.

    Updates out of range are dropped.  All methods take `mode` ("drop", "clip",
    "promise_in_bounds"), `indices_are_sorted`, `unique_indices` and `wrap_negative_indices`.

    Example:
        >>> jnp.zeros(3).at[jnp.array([0, 7])].set(1.0)
        Array([1., 0., 0.], dtype=float32)
        >>> jnp.zeros(3).at[jnp.array([0, 7])].set(1.0, mode="clip")
        Array([1., 0., 1.], dtype=float32)
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Array, index: Any) -> None:
        self.array = array
        self.index = index

    @_updating
    def set(self, values: ArrayOrLists) -> Any:
        """`x` with `x[index] = values`.

        Example:
            >>> jnp.arange(4).at[1:3].set(9)
            Array([0, 9, 9, 3], dtype=int32)
        """

    @_updating
    def add(self, values: ArrayOrLists) -> Any:
        """`x` with `x[index] += values`; repeated positions add up.

        Example:
            >>> jnp.zeros(3).at[jnp.array([0, 2, 2])].add(1.0)
            Array([1., 0., 2.], dtype=float32)
        """

    @_updating
    def subtract(self, values: ArrayOrLists) -> Any:
        """`x` with `x[index] -= values`; repeated positions add up.

        Example:
            >>> jnp.zeros(3).at[jnp.array([0, 2, 2])].subtract(1.0)
            Array([-1.,  0., -2.], dtype=float32)
        """

    @_updating
    def multiply(self, values: ArrayOrLists) -> Any:
        """`x` with `x[index] *= values`; repeated positions multiply.

        Example:
            >>> jnp.arange(3).at[jnp.array([1, 2, 2])].multiply(10)
            Array([  0,  10, 200], dtype=int32)
        """

    mul = multiply

    @_updating
    def min(self, values: ArrayOrLists) -> Any:
        """`x` with `x[index]` replaced where `values` are smaller.

        Example:
            >>> jnp.array([1, 5, 9]).at[1:].min(6)
            Array([1, 5, 6], dtype=int32)
        """

    @_updating
    def max(self, values: ArrayOrLists) -> Any:
        """`x` with `x[index]` replaced where `values` are larger.

        Example:
            >>> jnp.array([1, 5, 9]).at[1:].max(6)
            Array([1, 6, 9], dtype=int32)
        """

    @_updating
    def divide(self, values: ArrayOrLists) -> Any:
        """`x` with `x[index] /= values`.

        Example:
            >>> jnp.array([1.0, 5.0, 9.0]).at[1:].divide(2.0)
            Array([1. , 2.5, 4.5], dtype=float32)
        """

    @_updating
    def power(self, values: ArrayOrLists) -> Any:
        """`x` with `x[index] **= values`.

        Example:
            >>> jnp.array([1.0, 5.0, 9.0]).at[1:].power(2.0)
            Array([ 1., 25., 81.], dtype=float32)
        """

    def apply(
        self,
        func: Callable[[Any], Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """Applies `func` to `x[index]`, once for each time that a position is repeated.

        Differentiable where no position can be repeated: without arrays in the index, or with
        `unique_indices=True`.

        Example:
            >>> jnp.array([1.0, 4.0, 9.0]).at[1:].apply(jnp.sqrt)
            Array([1., 2., 3.], dtype=float32)
        """
        options = UpdateOptions(
            indices_are_sorted, unique_indices, mode, None, wrap_negative_indices
        )
        x, template, operands = _parsed(self.array, self.index, options, dynamic=False)
        if unique_indices or not any(aval_of(v).ndim for v in operands):
            chosen = self.get(mode="clip", wrap_negative_indices=wrap_negative_indices)
            return self.set(func(chosen), **options._asdict())
        windows, settings = _windows(x, template, operands, options)
        if 0 in windows.shape or 0 in aval_of(x).shape:
            return self.array
        out = gather_scatter.scatter_apply(
            x, windows.starts, func, update_shape=windows.shape, **settings
        )
        return shape.reshape(out, aval_of(self.array).shape)

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        fill_value: ArrayLike | None = None,
        out_sharding: ShardingLike = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """Returns `x[index]`, with a choice of what happens to indices out of range.

        Args:
            indices_are_sorted: a promise.
            unique_indices: a promise.
            mode: "clip", "promise_in_bounds", or "fill", which reads `fill_value` there.
            fill_value: NaN, or the lowest or highest integer, unless given.
            out_sharding: of the result.
            wrap_negative_indices: whether negative positions count from the end.

        Example:
            >>> jnp.array([1, 2, 3]).at[jnp.array([0, 9])].get(mode="fill", fill_value=-1)
            Array([ 1, -1], dtype=int32)
        """
        if mode is None and wrap_negative_indices and out_sharding is None:
            return indexing.getitem(self.array, self.index)
        mode = mode or "promise_in_bounds"
        options = UpdateOptions(
            indices_are_sorted, unique_indices, mode, out_sharding, wrap_negative_indices
        )
        x, template, operands = _parsed(self.array, self.index, options)
        fill = static_fill_value(fill_value)
        read = functools.partial(_read, template=template, options=options, fill_value=fill)
        if out_sharding is not None:
            return explicit.auto_axes(read, out_sharding=out_sharding)(x, *operands)
        run = _read_program if current.value is eager.EAGER else _read
        return run(x, *operands, **read.keywords)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.array!r}, {self.index!r})"


@source.is_boundary
def at(x: Any) -> IndexUpdateHelper | references.Indexer:
    """Gives access to updates that return new arrays: `x.at[index].set(values)`, `.add`, ...

    Of a traced reference, `x.at[index]` is a part of it.

    Source:     mirrors jax.Array.at.

    Example:
        >>> x = jnp.array([10, 20, 30])
        >>> x.at[1].set(99)
        Array([10, 99, 30], dtype=int32)
        >>> x  # does not change
        Array([10, 20, 30], dtype=int32)
    """
    if type(getattr(x, "aval", None)) is AbstractRef:
        return references.Indexer(x)
    return IndexUpdateHelper(x)


def _read(
    x: Array,
    *operands: Any,
    template: Template,
    options: UpdateOptions,
    fill_value: ArrayLike | None,
) -> Any:
    if not any(type(entry) is Picked for entry in template.entries):
        return indexing.read(x, *operands, template=template)
    return indexing.gather(
        x,
        template,
        operands,
        mode=options.mode,
        fill_value=fill_value,
        wrap=options.wrap_negative_indices,
        indices_are_sorted=options.indices_are_sorted,
        unique_indices=options.unique_indices,
    )


_read_program = native_program(_read, ("template", "options", "fill_value"))


def _parsed(x: Array, index: Any, options: UpdateOptions, *, dynamic: bool | None = None) -> Any:
    """An index as `indexing.parse` has it; a number that must not wrap around is an operand."""
    if not options.wrap_negative_indices:
        items = index if type(index) is tuple else (index,)
        index = tuple(creation.asarray(i) if type(i) is int and i < 0 else i for i in items)
    return indexing.parse(x, index, dynamic=indexing.is_eager() if dynamic is None else dynamic)


def _update(x: Array, index: Any, values: Any, kind: str, options: UpdateOptions) -> Any:
    gather_numbers.GatherScatterMode.from_any(options.mode)
    if isinstance(values, (list, tuple)):
        values = creation.asarray(values)
    values = promotion.check_array(f"ndarray.at[...].{kind}", values, "values")
    wide = check_lossless(x, values, f"at[...].{kind}")
    if wide is not None and kind != "set" and kind not in _BY_FACTORS:
        # What is lost is lost of the result, not of the values.
        own = aval_of(x)
        out = _update(convert_element_type(x, wide), index, values, kind, options)
        return convert_to_type(out, own.dtype, own.weak_type)
    if kind in _BY_FACTORS:
        factors = _update(creation.ones_like(x), index, values, "multiply", options)
        return _BY_FACTORS[kind](x, factors)
    if _is_mask_of_equals(x, index, values):
        run = _masked_program if current.value is eager.EAGER else _masked
        return run(x, index, values, kind=kind)
    aval = aval_of(x)
    x, template, operands = _parsed(x, index, options)
    if options.mode is None:
        wrap = options.wrap_negative_indices
        indexing.assert_in_bounds(_SCATTER[kind].__name__, x, template, operands, wrap=wrap)
    run = _update_program if current.value is eager.EAGER else _updated
    out = run(x, values, *operands, template=template, kind=kind, options=options)
    return out if aval_of(out).shape == aval.shape else shape.reshape(out, aval.shape)


def check_lossless(x: ArrayLike, values: ArrayLike, name: str) -> Any:
    """Warns where values lose something by becoming of the dtype of `x`.

    Returns:
        The dtype in which nothing would be lost, in this case.
    """
    own, given = aval_of(x), aval_of(values)
    if own.dtype == given.dtype:
        return None
    wide = dtypes.lattice_result_type(own, given)[0]
    if wide == own.dtype:
        return None
    warn(
        FutureWarning,
        name,
        "the values are converted to the array's dtype, which loses something.",
        got={"array": own, "values": given},
        fix="convert them with astype",
    )
    return wide


def static_fill_value(value: ArrayLike | None) -> Any:
    """A fill value as part of a signature: NaN, which no signature would equal, is the default."""
    is_nan = value is not None and value != value  # noqa: PLR0124  only NaN differs from itself
    return None if is_nan else value


def _as_dtype_of(values: Array, x: Array) -> Any:
    return promotion.convert(values, aval_of(x).dtype, weak=False)


def _is_mask_of_equals(x: Array, index: Any, values: ArrayLike) -> bool:
    """Whether the index is a mask, and every place where it is true gets the same values."""
    if not isinstance(index, (Array, Tracer, np.ndarray)) or index.dtype != dtypes.bool_:
        return False
    if not index.ndim or aval_of(values).ndim > aval_of(x).ndim - index.ndim:
        return False
    indexing.check_mask(index.shape, aval_of(x))
    return index.shape == aval_of(x).shape[: index.ndim]


def _masked(x: Array, mask: Array, values: Array, *, kind: str) -> Any:
    """`x` updated where a mask over its leading dimensions holds."""
    dims = aval_of(x).shape
    rank = aval_of(mask).ndim
    values = _fitted(_as_dtype_of(values, x), dims[rank:], (), dims, range(rank, len(dims)))
    mask = shape.broadcast_in_dim(mask, dims, range(rank))
    return binary.select_n(mask, x, _COMBINE[kind](x, values))


_masked_program = native_program(_masked, ("kind",))


def _updated(
    x: Array, values: Array, *operands: Any, template: Template, kind: str, options: UpdateOptions
) -> Any:
    """`x` updated at a parsed index."""
    values = _as_dtype_of(values, x)
    if all(
        type(entry) is not Picked and (type(entry) is not Range or entry.step == 1)
        for entry in template.entries
    ):
        out = _write_box(x, values, template, operands, kind)
    else:
        out = _scatter(x, values, template, operands, kind, options)
    aval = aval_of(x)
    return out if aval_of(out) is aval else convert_to_type(out, aval.dtype, aval.weak_type)


_update_program = native_program(_updated, ("template", "kind", "options"))


def _fitted(
    values: Array, selected: Shape, made: Shape, target: Shape, places: Sequence[int]
) -> Any:
    """Values for a selection, repeated to another shape.

    Args:
        values: an array that broadcasts to the selection.
        selected: the shape of the selection without its new dimensions.
        made: where the new dimensions stand.
        target: the shape of the result.
        places: the dimension of the result for each dimension of `selected`.

    Raises:
        ValueError: the values do not broadcast to the selection.
    """
    whole = list(selected)
    for d in made:
        whole.insert(d, 1)
    given = aval_of(values).shape
    lead = len(whole) - len(given)
    if lead < 0 or any(m not in (1, n) for m, n in zip(given, whole[lead:], strict=True)):
        problem = "the values do not fit the selection."
        got = {"values": aval_of(values), "selection": tuple(whole)}
        expected = "values that broadcast to the shape of x[index]"
        error(ValueError, "numpy.ndarray.at[...]", problem, got=got, expected=expected)
    dropped = [d - lead for d in made if d >= lead]
    values = shape.squeeze(values, dropped) if dropped else values
    missing = len(selected) - aval_of(values).ndim
    return shape.broadcast_in_dim(values, target, places[missing:])


def _write_box(
    x: Array, values: Array, template: Template, operands: Sequence[Any], kind: str
) -> Any:
    """Writes a box that is known to be in range."""
    starts: list[Any] = []
    sizes: list[int] = []
    kept: list[int] = []
    dims = iter(aval_of(x).shape)
    for entry, operand in indexing.with_operands(template, operands):
        if type(entry) is New:
            continue
        size = next(dims)
        if isinstance(entry, (Whole, Range, From)):
            kept.append(len(starts))
            sizes.append(size if isinstance(entry, Whole) else entry.size)
        else:
            sizes.append(1)
        if isinstance(entry, (At, From)):
            starts.append(operand)
        elif type(entry) is Fixed:
            starts.append(entry.position)
        else:
            starts.append(entry.start if type(entry) is Range else 0)
    made = indexing.selection_dims(template, operands).made
    values = _fitted(values, tuple(sizes[d] for d in kept), made, tuple(sizes), kept)
    if 0 in sizes:
        return x
    if kind != "set":
        old = slicing.dynamic_slice(x, starts, sizes, allow_negative_indices=False)
        values = _COMBINE[kind](old, values)
    return slicing.dynamic_update_slice(x, values, starts, allow_negative_indices=False)


def _scatter(
    x: Array,
    values: Array,
    template: Template,
    operands: Sequence[Any],
    kind: str,
    options: UpdateOptions,
) -> Any:
    """Scatters values over windows of `x`."""
    windows, settings = _windows(x, template, operands, options)
    rank = len(windows.shape)
    values = _fitted(values, windows.shape, windows.made, windows.shape, range(rank))
    if 0 in windows.shape or 0 in aval_of(x).shape:
        return x
    return _SCATTER[kind](x, windows.starts, values, **settings)


def _windows(
    x: Array, template: Template, operands: Sequence[Any], options: UpdateOptions
) -> tuple[Windows, dict[str, Any]]:
    """The windows of `x` that an update writes, and the scatter's keyword arguments."""
    windows = indexing.windows_of(
        aval_of(x).shape, template, operands, wrap=options.wrap_negative_indices
    )
    # Single positions and rising ranges come in order, and only once.
    ordered = not any(
        aval_of(v).ndim if type(e) is Picked else type(e) is Range and e.step < 0
        for e, v in indexing.with_operands(template, operands)
    )
    return windows, {
        "dimension_numbers": gather_numbers.ScatterDimensionNumbers(
            update_window_dims=windows.offsets,
            inserted_window_dims=windows.collapsed,
            scatter_dims_to_operand_dims=windows.indexed,
        ),
        "indices_are_sorted": options.indices_are_sorted or ordered,
        "unique_indices": options.unique_indices or ordered,
        "mode": gather_numbers.GatherScatterMode.from_any(options.mode),
    }
