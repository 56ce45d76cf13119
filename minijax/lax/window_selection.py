"""Windows that choose one of their elements: the derivatives of window extrema.

`select_and_gather_add` carries to each window what lies at its chosen element;
`select_and_scatter_add`, its transpose, carries what each window has to that place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core import tree
from minijax.core.aval import Shape, ShapedArray, aval_of, shaped_array
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.primitive import Primitive
from minijax.core.specs import PartitionSpec
from minijax.interpreters import structural
from minijax.interpreters.hlo_build import i64_matrix
from minijax.interpreters.tangents import Zero
from minijax.lax.families import operand as as_operand
from minijax.lax.reducers import as_initial_value, region_of_jaxpr, stage_reducer
from minijax.lax.reduction import highest, lowest
from minijax.lax.windows import Pads, Window, check_window, window_of
from minijax.sharding import rules

_DIRECTIONS = {"ge": "GE", "le": "LE"}


def _identity_of(select_prim: Primitive, dtype: Any) -> Any:
    return lowest(dtype) if select_prim.name == "ge" else highest(dtype)


def _check_shape(name: str, argument: str, found: ShapedArray, expected: Shape) -> None:
    if found.shape != expected:
        error(
            TypeError,
            name,
            f"{argument} does not fit the operand and its windows.",
            got={argument: found},
            expected=f"shape {expected}",
        )


class SelectAndGatherAdd(Primitive):
    """For each window, the element of `tangents` at the place of the operand's extremum.

    Shapes: tangents: T[s], operand: U[s] -> T[number of windows].  Linear in tangents.
    """

    name = "select_and_gather_add"
    fault_flow = "copies"

    def abstract_eval(
        self, tangents: ShapedArray, x: ShapedArray, *, select_prim: Primitive, **params: Any
    ) -> ShapedArray:
        window = Window(**params)
        check_window(self.name, x.shape, window)
        _check_shape(self.name, "tangents", tangents, x.shape)
        return tangents.with_shape(window.result_shape(x.shape))

    def shard(self, avals: Sequence[Any], outs: Sequence[Any], **params: Any) -> PartitionSpec:
        return rules.join(self, avals, avals[0].ndim)

    def lower(
        self, ctx: Any, tangents: Any, x: Any, *, select_prim: Primitive, **params: Any
    ) -> Any:
        tangent, value = (shaped_array((), aval.dtype) for aval in ctx.avals_in)
        kinds = [ctx.type_of(value), ctx.type_of(tangent)]
        count = ctx.avals_out[0].shape

        def choose(inner: Any, a: Any, s: Any, b: Any, t: Any) -> list[Any]:
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

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        out = self.bind(*primals, **params)
        if type(tangents[0]) is Zero:
            return out, Zero.like(out)
        # The place of an extremum is constant almost everywhere.
        return out, self.bind(tangents[0], primals[1], **params)

    def transpose(
        self, ct: Any, tangents: Any, x: Any, *, select_prim: Primitive, **params: Any
    ) -> tuple[Any, None]:
        window = Window(**params)
        assert not window.is_dilated, "dilated extrema are differentiated place by place"
        out = select_and_scatter_add_p.bind(
            ct,
            x,
            select_prim=select_prim,
            window_dimensions=window.window_dimensions,
            window_strides=window.window_strides,
            padding=window.padding,
        )
        return out, None

    def batch(
        self,
        size: int,
        args: Sequence[Any],
        dims: Sequence[Any],
        *,
        select_prim: Primitive,
        **params: Any,
    ) -> tuple[Any, int]:
        tangents, x = (
            structural.to_batch_dim(arg, d, 0, size) for arg, d in zip(args, dims, strict=True)
        )
        window = Window(**params).with_batch(0)
        return self.bind(tangents, x, select_prim=select_prim, **window._asdict()), 0


select_and_gather_add_p = SelectAndGatherAdd()


class SelectAndScatterAdd(Primitive):
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

    def shard(self, avals: Sequence[Any], outs: Sequence[Any], **params: Any) -> PartitionSpec:
        return rules.join(self, avals, avals[0].ndim)

    def lower(self, ctx: Any, source: Any, x: Any, *, select_prim: Primitive, **params: Any) -> Any:
        dtype = ctx.avals_in[1].dtype
        value = shaped_array((), dtype)
        kind = ctx.type_of(value)

        def select(inner: Any, a: Any, b: Any) -> list[Any]:
            return [inner.compare(_DIRECTIONS[select_prim.name], a, b, value)]

        def scatter(inner: Any, a: Any, b: Any) -> list[Any]:
            return [inner.op("stablehlo.add", [a, b], None, kind)]

        regions = [([kind, kind], select), ([kind, kind], scatter)]
        return _scattered(ctx, x, source, ctx.constant(0, dtype), regions, **params)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        out = self.bind(*primals, **params)
        if type(tangents[0]) is Zero:
            return out, Zero.like(out)
        return out, self.bind(tangents[0], primals[1], **params)

    def transpose(
        self, ct: Any, source: Any, x: Any, *, select_prim: Primitive, **params: Any
    ) -> tuple[Any, None]:
        window = Window.of(**params)
        out = select_and_gather_add_p.bind(ct, x, select_prim=select_prim, **window._asdict())
        return out, None

    def batch(
        self,
        size: int,
        args: Sequence[Any],
        dims: Sequence[Any],
        *,
        select_prim: Primitive,
        **params: Any,
    ) -> tuple[Any, int]:
        source, x = (
            structural.to_batch_dim(arg, d, 0, size) for arg, d in zip(args, dims, strict=True)
        )
        window = Window.of(**params).with_batch(0)
        return self.bind(source, x, select_prim=select_prim, **_undilated(window)), 0


select_and_scatter_add_p = SelectAndScatterAdd()


def _undilated(window: Window) -> dict[str, Any]:
    names = ("window_dimensions", "window_strides", "padding")
    return {name: getattr(window, name) for name in names}


def _scattered(
    ctx: Any,
    x: Any,
    source: Any,
    init: Any,
    regions: Sequence[Any],
    *,
    window_dimensions: Shape,
    window_strides: Shape,
    padding: Pads,
) -> Any:
    """What the windows' sources add up to.

    Where windows overlap, XLA forgets what they scatter over the border between two devices.
    """
    ndim = len(window_dimensions)
    pairs = zip(window_dimensions, window_strides, strict=True)
    overlapping = [d for d, (size, stride) in enumerate(pairs) if size > stride]
    whole = ctx.module.partitioning.whole_along
    if overlapping:
        x, source = (whole(ctx, operand, overlapping, ndim) for operand in (x, source))
    attributes = {
        "window_dimensions": ctx.i64_array(window_dimensions),
        "window_strides": ctx.i64_array(window_strides),
        "padding": i64_matrix(padding, 2),
    }
    operands = [x, source, init]
    found = ctx.ops("stablehlo.select_and_scatter", operands, attributes, regions=regions)[0]
    return whole(ctx, found, overlapping, ndim) if overlapping else found


class SelectAndScatter(Primitive):
    """`select_and_scatter_add` with any choice and any combination, given as jaxprs.

    Shapes: operand: T[s], source: T[number of windows], init_value: T[] -> T[s].
    No derivative is known for choices in general.
    """

    name = "select_and_scatter"
    fault_flow = "copies"
    without = frozenset({"jvp", "transpose"})
    shard = rules.resized

    def abstract_eval(
        self,
        x: ShapedArray,
        source: ShapedArray,
        init: ShapedArray,
        *,
        select_jaxpr: ClosedJaxpr,
        scatter_jaxpr: ClosedJaxpr,
        **params: Any,
    ) -> ShapedArray:
        window = Window.of(**params)
        check_window(self.name, x.shape, window)
        _check_shape(self.name, "source", source, window.result_shape(x.shape))
        _check_shape(self.name, "init_value", init, ())
        return x.strip_weak_type()

    def lower(
        self,
        ctx: Any,
        x: Any,
        source: Any,
        init: Any,
        *,
        select_jaxpr: ClosedJaxpr,
        scatter_jaxpr: ClosedJaxpr,
        **params: Any,
    ) -> Any:
        regions = [region_of_jaxpr(ctx, select_jaxpr), region_of_jaxpr(ctx, scatter_jaxpr)]
        return _scattered(ctx, x, source, init, regions, **params)

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], **params: Any
    ) -> tuple[Any, int]:
        x, source = (
            structural.to_batch_dim(arg, d, 0, size)
            for arg, d in zip(args[:2], dims[:2], strict=True)
        )
        if dims[2] is not None:
            error(
                NotImplementedError,
                self.name,
                "each example would have an initial value of its own.",
            )
        names = ("window_dimensions", "window_strides", "padding")
        window = Window.of(**{name: params.pop(name) for name in names}).with_batch(0)
        return self.bind(x, source, args[2], **params, **_undilated(window)), 0


select_and_scatter_p = SelectAndScatter()


def select_and_scatter(
    operand: Any,
    select: Callable[[Any, Any], Any],
    window_dimensions: Shape,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    source: Any,
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
        as_initial_value(init_value, x),
        select_jaxpr=stage_reducer(name, select, [x], _LEAF),
        scatter_jaxpr=stage_reducer(name, scatter, [x], _LEAF),
        **_undilated(window),
    )


_, _LEAF = tree.flatten(0)
