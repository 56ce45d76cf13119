"""Windows that slide across an array, and the elements that they choose.

Reductions over windows are in `lax/window_reduction.py`; here is where windows lie, and what the
derivatives of their extrema need: `select_and_gather_add` carries to each window what lies at its
chosen element; `select_and_scatter_add`, its transpose, carries what each window has to that place.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import tree
from minijax.core.aval import MOST_BYTES, Shape, ShapedArray, aval_of, check_size, shaped_array
from minijax.core.errors import error
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Batched, Cotangents, Primitive
from minijax.interpreters import structural
from minijax.interpreters.jvp import UndefinedPrimal
from minijax.lax import reduction
from minijax.lax.families import Avals, BatchDims, Values, int_tuple, jvp_of_first, padtype_to_pads
from minijax.lax.families import operand as as_operand
from minijax.lax.padding import pad, unpad
from minijax.lowering.stablehlo import LoweringContext, Value, i64_matrix
from minijax.runtime.array import Array
from minijax.sharding import rules

Pads = tuple[tuple[int, int], ...]


class Window(NamedTuple):
    """Where windows lie: the parameters of all primitives of this file, under JAX's names.

    Attributes:
        window_dimensions: the size of the window.
        window_strides: how far apart windows start.
        padding: how much is put before and after the operand.
        base_dilation: the operand's elements are this far apart.
        window_dilation: the window's elements are this far apart.
    """

    window_dimensions: Shape
    window_strides: Shape
    padding: Pads
    base_dilation: Shape
    window_dilation: Shape

    @staticmethod
    def of(**params: Any) -> Window:
        """A window whose dilations are 1 where none are given."""
        ones = (1,) * len(params["window_dimensions"])
        given = {name: value for name, value in params.items() if value is not None}
        return Window(**{"base_dilation": ones, "window_dilation": ones, **given})

    @property
    def extent(self) -> Shape:
        """How many places of the dilated operand a window spans."""
        return tuple(
            (n - 1) * d + 1
            for n, d in zip(self.window_dimensions, self.window_dilation, strict=True)
        )

    @property
    def is_dilated(self) -> bool:
        """Whether the operand's or the window's elements are further apart than 1."""
        return any(d != 1 for d in (*self.base_dilation, *self.window_dilation))

    def padded_shape(self, shape: Shape) -> Shape:
        """The shape of a dilated and padded operand."""
        return tuple(
            low + (max((n - 1) * d + 1, 0) if n else 0) + high
            for n, d, (low, high) in zip(shape, self.base_dilation, self.padding, strict=True)
        )

    def result_shape(self, shape: Shape) -> Shape:
        """How many windows fit into an operand of `shape`."""
        sizes, extent, strides = self.padded_shape(shape), self.extent, self.window_strides
        if math.prod(map(max, sizes, extent, strides)) > MOST_BYTES:
            check_size("", map(max, sizes, extent, strides), np.dtype(np.int8))
        return tuple(
            max((size - reach) // stride + 1, 0)
            for size, reach, stride in zip(sizes, extent, strides, strict=True)
        )

    def with_batch(self, dim: int) -> Window:
        """The window for a batch along `dim`: one element of it at a time."""
        single: Window = Window((1,), (1,), ((0, 0),), (1,), (1,))
        pairs: Any = zip(self, single, strict=True)
        return Window(*((*values[:dim], *one, *values[dim:]) for values, one in pairs))

    def attributes(self, ctx: LoweringContext) -> dict[str, Any]:
        """The attributes of `stablehlo.reduce_window`."""
        return {
            "window_dimensions": ctx.i64_array(self.window_dimensions),
            "window_strides": ctx.i64_array(self.window_strides),
            "base_dilations": ctx.i64_array(self.base_dilation),
            "window_dilations": ctx.i64_array(self.window_dilation),
            "padding": i64_matrix(self.padding, 2),
        }

    def elements(self, padded: Any, shape: Shape) -> Iterator[Any]:
        """For each place in the window, the elements that all windows have there.

        Args:
            padded: the dilated and padded operand.
            shape: the operand's shape before.
        """
        count, sizes = self.result_shape(shape), aval_of(padded).shape
        for place in itertools.product(*map(range, self.window_dimensions)):
            config = []
            for d, k in enumerate(place):
                start, stride = k * self.window_dilation[d], self.window_strides[d]
                used = start + (count[d] - 1) * stride + 1 if count[d] else start
                config.append((start, sizes[d] - used, stride - 1))
            yield unpad(padded, count, tuple(config))

    def pad(self, x: Array, value: Any) -> Any:
        """`x` dilated and padded with a scalar."""
        config = [
            (low, high, d - 1)
            for (low, high), d in zip(self.padding, self.base_dilation, strict=True)
        ]
        return pad(x, value, config)


def check_window(name: str, shape: Shape, window: Window) -> None:
    """Refuses windows that do not fit an operand.

    Raises:
        TypeError: a parameter has not one positive number for each dimension.
    """
    for argument, values in window._asdict().items():
        small = argument != "padding" and min(values, default=1) < 1
        if small or len(values) != len(shape):
            problem = f"{argument} does not fit the operand."
            got = {"operand": f"of shape {shape}", argument: values}
            each = "pair" if argument == "padding" else "number of at least 1"
            error(TypeError, name, problem, got=got, expected=f"one {each} for each dimension")


def reduce_window_shape_tuple(
    operand_shape: Shape,
    window_dimensions: Shape,
    window_strides: Shape,
    padding: Sequence[tuple[int, int]],
    base_dilation: Shape | None = None,
    window_dilation: Shape | None = None,
) -> Shape:
    """The shape of the result of `reduce_window`.

    Example:
        >>> lax.reduce_window_shape_tuple((10, 10), (3, 3), (2, 2), [(1, 1), (0, 0)])
        (5, 4)
    """
    window = Window.of(
        window_dimensions=tuple(window_dimensions),
        window_strides=tuple(window_strides),
        padding=tuple((low, high) for low, high in padding),
        base_dilation=base_dilation and tuple(base_dilation),
        window_dilation=window_dilation and tuple(window_dilation),
    )
    return window.result_shape(tuple(operand_shape))


def place_by_place(combine: reduction.Combine, window: Window) -> Callable[..., list[Any]]:
    """A window reduction as a composition: one combination for each place in the window."""

    def function(*args: Any) -> list[Any]:
        operands, inits = reduction.halves(args)
        shape = aval_of(operands[0]).shape
        padded = [window.pad(x, init) for x, init in zip(operands, inits, strict=True)]
        count = window.result_shape(shape)
        results = [structural.broadcast_in_dim(init, count, ()) for init in inits]
        for elements in zip(*[window.elements(x, shape) for x in padded], strict=True):
            results = list(combine(*results, *elements))
        return results

    return function


def window_of(
    name: str,
    shape: Shape,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None,
    padding: str | Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Window:
    """The window that the arguments of a public function describe, for an operand of `shape`.

    Raises:
        TypeError: an argument is not made of integers.
        RuntimeError: the name of the padding is not known.
    """

    def ints(values: Sequence[int] | None, argument: str) -> Shape:
        return (1,) * len(shape) if values is None else int_tuple(values, name, argument)

    dims = ints(window_dimensions, "window_dimensions")
    strides = ints(window_strides, "window_strides")
    base = ints(base_dilation, "base_dilation")
    dilation = ints(window_dilation, "window_dilation")
    if isinstance(padding, str):
        unpadded = Window(dims, strides, ((0, 0),) * len(dims), base, dilation)
        check_window(name, shape, unpadded)
        padding = padtype_to_pads(unpadded.padded_shape(shape), unpadded.extent, strides, padding)
    pads = tuple(int_tuple(pair, name, "padding") for pair in padding)
    return Window(dims, strides, pads, base, dilation)  # type: ignore[arg-type]


_DIRECTIONS = {"ge": "GE", "le": "LE"}


def _identity_of(select_prim: Primitive, dtype: np.dtype[Any]) -> Any:
    return reduction.lowest(dtype) if select_prim.name == "ge" else reduction.highest(dtype)


def _check_shape(name: str, argument: str, found: ShapedArray, expected: Shape) -> None:
    if found.shape != expected:
        problem = f"{argument} does not fit the operand and its windows."
        error(TypeError, name, problem, got={argument: found}, expected=f"shape {expected}")


class _Selecting(Primitive):
    """Takes elements from where a comparison chooses one in each window of `x`, or adds them there.

    Linear in the first operand; the two of them are each other's transposes.
    """

    jvp = jvp_of_first

    def shard(self, avals: Avals, outs: Avals, **params: Any) -> PartitionSpec:
        return rules.join(self, avals, avals[0].ndim)

    def batch(
        self, size: int, args: Values, dims: BatchDims, *, select_prim: Primitive, **params: Any
    ) -> Batched:
        wide = Window.of(**params).with_batch(0)._asdict()
        aligned = structural.to_batch_dims(args, dims, 0, size)
        given = {name: wide[name] for name in params}
        return self.bind(*aligned, select_prim=select_prim, **given), 0


class SelectAndGatherAdd(_Selecting):
    """For each window, the element of `tangents` at the place of the operand's extremum.

    Shapes: tangents: T[s], operand: U[s] -> T[number of windows].  Linear in tangents.
    """

    name = "select_and_gather_add"

    def abstract_eval(
        self, tangents: ShapedArray, x: ShapedArray, *, select_prim: Primitive, **params: Any
    ) -> ShapedArray:
        window = Window(**params)
        check_window(self.name, x.shape, window)
        _check_shape(self.name, "tangents", tangents, x.shape)
        return tangents.with_shape(window.result_shape(x.shape))

    def lower(self, ctx: LoweringContext, tangents: Value, x: Value, **params: Any) -> Any:
        select_prim = params.pop("select_prim")
        tangent, value = (shaped_array((), aval.dtype) for aval in ctx.avals_in)
        kinds = [ctx.type_of(value), ctx.type_of(tangent)]
        count = ctx.avals_out[0].shape

        def choose(inner: LoweringContext, a: Value, s: Value, b: Value, t: Value) -> list[Any]:
            first = inner.compare(_DIRECTIONS[select_prim.name], a, b, value)
            return [
                inner.op("stablehlo.select", [first, *pair], None, kind)
                for pair, kind in zip(((a, b), (s, t)), kinds, strict=True)
            ]

        inits = [
            ctx.constant(_identity_of(select_prim, value.dtype), value.dtype),
            ctx.constant(0, tangent.dtype),
        ]
        return ctx.ops(
            "stablehlo.reduce_window",
            [x, tangents, *inits],
            Window(**params).attributes(ctx),
            types=[ctx.tensor_type(count, aval.dtype) for aval in (value, tangent)],
            regions=[(kinds * 2, choose)],
        )[1]

    def transpose(
        self, ct: Array, tangents: UndefinedPrimal, x: Array, **params: Any
    ) -> Cotangents:
        select_prim, window = params.pop("select_prim"), Window(**params)
        assert not window.is_dilated, "dilated extrema are differentiated place by place"
        out = select_and_scatter_add_p.bind(ct, x, select_prim=select_prim, **_undilated(window))
        return out, None


select_and_gather_add_p = SelectAndGatherAdd()


class SelectAndScatterAdd(_Selecting):
    """Adds what `source` has for each window to the place of the operand's extremum in it.

    Shapes: source: T[number of windows], operand: T[s] -> T[s].  Linear in source.
    """

    name = "select_and_scatter_add"

    def abstract_eval(
        self, source: ShapedArray, x: ShapedArray, *, select_prim: Primitive, **params: Any
    ) -> ShapedArray:
        window = Window.of(**params)
        check_window(self.name, x.shape, window)
        _check_shape(self.name, "source", source, window.result_shape(x.shape))
        return source.with_shape(x.shape)

    def lower(self, ctx: LoweringContext, source: Value, x: Value, **params: Any) -> Any:
        select_prim = params.pop("select_prim")
        dtype = ctx.avals_in[1].dtype
        value = shaped_array((), dtype)
        kind = ctx.type_of(value)

        def select(inner: LoweringContext, a: Value, b: Value) -> list[Any]:
            return [inner.compare(_DIRECTIONS[select_prim.name], a, b, value)]

        def scatter(inner: LoweringContext, a: Value, b: Value) -> list[Any]:
            return [inner.op("stablehlo.add", [a, b], None, kind)]

        regions = [([kind, kind], select), ([kind, kind], scatter)]
        operands = x, source, ctx.constant(0, dtype)
        return _scattered(ctx, operands, regions, Window.of(**params))

    def transpose(
        self, ct: Array, source: UndefinedPrimal, x: Array, *, select_prim: Primitive, **params: Any
    ) -> Cotangents:
        window = Window.of(**params)
        out = select_and_gather_add_p.bind(ct, x, select_prim=select_prim, **window._asdict())
        return out, None


select_and_scatter_add_p = SelectAndScatterAdd()


_UNDILATED = ("window_dimensions", "window_strides", "padding")


def _undilated(window: Window) -> dict[str, Any]:
    return {name: getattr(window, name) for name in _UNDILATED}


def _scattered(
    ctx: LoweringContext, operands: Sequence[Any], regions: Sequence[Any], window: Window
) -> Any:
    """What the windows' sources add up to.

    Where windows overlap, XLA forgets what they scatter over the border between two devices.
    """
    x, source, init = operands
    ndim = len(window.window_dimensions)
    pairs = zip(window.window_dimensions, window.window_strides, strict=True)
    overlapping = [d for d, (size, stride) in enumerate(pairs) if size > stride]
    whole = ctx.module.partitioning.whole_along
    if overlapping:
        x, source = (whole(ctx, operand, overlapping, ndim) for operand in (x, source))
    attributes = {name: window.attributes(ctx)[name] for name in _UNDILATED}
    operands = [x, source, init]
    found = ctx.ops("stablehlo.select_and_scatter", operands, attributes, regions=regions)[0]
    return whole(ctx, found, overlapping, ndim) if overlapping else found


class SelectAndScatter(Primitive):
    """`select_and_scatter_add` with any choice and any combination, given as jaxprs.

    Shapes: operand: T[s], source: T[number of windows], init_value: T[] -> T[s].
    No derivative is known for choices in general.
    """

    name = "select_and_scatter"
    shard = rules.resized

    def abstract_eval(
        self, x: ShapedArray, source: ShapedArray, init: ShapedArray, **params: Any
    ) -> ShapedArray:
        window = Window.of(**{name: params[name] for name in _UNDILATED})
        check_window(self.name, x.shape, window)
        _check_shape(self.name, "source", source, window.result_shape(x.shape))
        _check_shape(self.name, "init_value", init, ())
        return x.strip_weak_type()

    def lower(self, ctx: LoweringContext, *operands: Value, **params: Any) -> Any:
        jaxprs = params.pop("select_jaxpr"), params.pop("scatter_jaxpr")
        regions = [reduction.region_of_jaxpr(ctx, jaxpr) for jaxpr in jaxprs]
        return _scattered(ctx, operands, regions, Window.of(**params))

    def batch(self, size: int, args: Values, dims: BatchDims, **params: Any) -> Batched:
        x, source = structural.to_batch_dims(args[:2], dims[:2], 0, size)
        if dims[2] is not None:
            problem = "each example would have an initial value of its own."
            error(NotImplementedError, self.name, problem)
        window = Window.of(**{name: params.pop(name) for name in _UNDILATED}).with_batch(0)
        return self.bind(x, source, args[2], **params, **_undilated(window)), 0


select_and_scatter_p = SelectAndScatter()


def select_and_scatter(
    operand: Any,
    select: Callable[[Any, Any], Any],
    window_dimensions: Shape,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    source: Array,
    init_value: Any,
    scatter: Callable[[Any, Any], Any],
) -> Any:
    """Combines what `source` has for each window into the place of the element it selects.

    Shapes:     operand: T[s], source: T[number of windows], init_value: T[] -> T[s].
    Dtypes:     any, equal.
    Lowers to:  stablehlo.select_and_scatter.
    Source:     mirrors the primitive jax.lax.select_and_scatter_p.

    Args:
        operand: the array whose windows choose.
        select: whether the first of two scalars is chosen rather than the second.
        window_dimensions: the size of the window.
        window_strides: how far apart windows start.
        padding: what is put before and after, or "VALID", "SAME", "SAME_LOWER".
        source: what each window has to give.
        init_value: what places start with.
        scatter: combines what a place has with what it is given.

    Raises:
        TypeError: shapes or windows do not fit together.
    """
    name = "lax.select_and_scatter"
    x = as_operand(operand)
    window = window_of(name, aval_of(x).shape, window_dimensions, window_strides, padding)
    return select_and_scatter_p.bind(
        x,
        as_operand(source, x),
        reduction.as_initial_value(init_value, x),
        select_jaxpr=reduction.stage_reducer(name, select, [x], _LEAF),
        scatter_jaxpr=reduction.stage_reducer(name, scatter, [x], _LEAF),
        **_undilated(window),
    )


_, _LEAF = tree.flatten(0)
