"""Reductions over windows: sums, extrema, and any associative function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core import tree
from minijax.core.aval import Shape, ShapedArray, aval_of
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Primitive
from minijax.interpreters import structural
from minijax.interpreters.batching import batch_flat
from minijax.interpreters.jvp import Zero, jvp_flat
from minijax.lax.binary import add, ge_p, le_p, max, min
from minijax.lax.families import ANY, NUMERIC, Kinds, check_dtype
from minijax.lax.families import operand as as_operand
from minijax.lax.padding import pad
from minijax.lax.reducers import (
    as_initial_value,
    check_reducer,
    check_same_structure,
    monoid_of,
    region_of_jaxpr,
    stage_reducer,
)
from minijax.lax.reduction import (
    Identity,
    elementwise,
    halves,
    highest,
    lowest,
    region_of_combiner,
    zero,
)
from minijax.lax.windows import (
    Window,
    check_window,
    place_by_place,
    select_and_gather_add_p,
    window_of,
)
from minijax.sharding import rules


class WindowReduction(Primitive):
    """Combines the elements of each window by one operation.

    Shapes: operand: T[s] -> T[number of windows].

    Args:
        name: the primitive's name.
        op: the StableHLO operation that combines two elements.
        combine: the function of `lax` that does.
        identity: the result of combining nothing, which padding has too.
        accepts: kinds of dtypes it takes.
        select_prim: the comparison by which a window's element is chosen; None for the sum.
    """

    def __init__(
        self,
        name: str,
        op: str,
        *,
        combine: Callable[[Any, Any], Any],
        identity: Identity,
        accepts: Kinds,
        select_prim: Primitive | None,
    ) -> None:
        super().__init__(name)
        self.op = op
        self.combine = combine
        self.identity = identity
        self.accepts = accepts
        self.select_prim = select_prim

    def abstract_eval(self, x: ShapedArray, **params: Any) -> ShapedArray:
        check_dtype(self.name, "operand", x, self.accepts)
        window = Window(**params)
        check_window("lax.reduce_window", x.shape, window)
        return x.with_shape(window.result_shape(x.shape))

    def shard(self, avals: Sequence[Any], outs: Sequence[Any], **params: Any) -> PartitionSpec:
        return rules.spec_of(avals[0])

    def lower(self, ctx: Any, x: Any, **params: Any) -> Any:
        dtype = ctx.avals_in[0].dtype
        return ctx.ops(
            "stablehlo.reduce_window",
            [x, ctx.constant(self.identity(dtype), dtype)],
            Window(**params).attributes(ctx),
            regions=[region_of_combiner(ctx, self.op, self.combine, dtype)],
        )[0]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        (x,), (x_dot,) = primals, tangents
        out = self.bind(x, **params)
        if type(x_dot) is Zero:
            return out, Zero.like(out)
        if self.select_prim is None:
            return out, self.bind(x_dot, **params)
        window = Window(**params)
        if not window.is_dilated:
            return out, select_and_gather_add_p.bind(
                x_dot, x, select_prim=self.select_prim, **params
            )
        init = self.identity(aval_of(x).dtype)
        function = place_by_place(lambda a, b: [self.combine(a, b)], window)
        _, (out_dot,) = jvp_flat(lambda x: function(x, init), [x], [x_dot])
        return out, structural.instantiate(out_dot)

    def transpose(self, ct: Any, x: Any, **params: Any) -> tuple[Any]:
        if self.select_prim is not None:
            self._missing("transposition: it is not linear (transpose)")
        return (_spread(ct, x.aval.shape, Window(**params)),)

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], **params: Any
    ) -> tuple[Any, int]:
        window = Window(**params).with_batch(dims[0])
        return self.bind(args[0], **window._asdict()), dims[0]


def _spread(ct: Any, shape: Shape, window: Window) -> Any:
    """The cotangent of the operand of a window sum: a window sum over the results' cotangents.

    Results become `window_strides` apart, windows start `base_dilation` apart, and edges are such
    that the first window ends at the first result that the operand's first element entered.
    """
    count, extent = aval_of(ct).shape, window.extent
    value = structural.full((), 0, aval_of(ct).dtype)
    if 0 in count or 0 in shape:
        return structural.full(shape, 0, aval_of(ct).dtype)
    config = []
    for d, (low, _) in enumerate(window.padding):
        before = extent[d] - 1 - low
        dilated = (count[d] - 1) * window.window_strides[d] + 1
        needed = (shape[d] - 1) * window.base_dilation[d] + extent[d]
        config.append((before, needed - before - dilated, window.window_strides[d] - 1))
    ones = (1,) * len(shape)
    flipped = Window(
        window_dimensions=window.window_dimensions,
        window_strides=window.base_dilation,
        padding=((0, 0),) * len(shape),
        base_dilation=ones,
        window_dilation=window.window_dilation,
    )
    return reduce_window_sum_p.bind(pad(ct, value, config), **flipped._asdict())


reduce_window_sum_p = WindowReduction(
    "reduce_window_sum",
    "stablehlo.add",
    combine=add,
    identity=zero,
    accepts=NUMERIC,
    select_prim=None,
)
reduce_window_max_p = WindowReduction(
    "reduce_window_max",
    "stablehlo.maximum",
    combine=max,
    identity=lowest,
    accepts=ANY,
    select_prim=ge_p,
)
reduce_window_min_p = WindowReduction(
    "reduce_window_min",
    "stablehlo.minimum",
    combine=min,
    identity=highest,
    accepts=ANY,
    select_prim=le_p,
)
_SPECIAL = {
    "add": reduce_window_sum_p,
    "max": reduce_window_max_p,
    "min": reduce_window_min_p,
}


class ReduceWindow(Primitive):
    """Combines the elements of each window by a function of the user, given as a jaxpr.

    Shapes: operands: T_i[s], then init_values: T_i[] -> T_i[number of windows].
    Not linear, hence no transpose: its derivative is that of a composition.
    """

    name = "reduce_window"
    multiple_results = True
    shard = rules.resized

    def abstract_eval(
        self, *avals: ShapedArray, jaxpr: ClosedJaxpr, **params: Any
    ) -> list[ShapedArray]:
        operands, inits = halves(avals)
        check_reducer("lax.reduce_window", operands, inits, jaxpr)
        window = Window(**params)
        check_window("lax.reduce_window", operands[0].shape, window)
        shape = window.result_shape(operands[0].shape)
        return [x.strip_weak_type().with_shape(shape) for x in operands]

    def lower(self, ctx: Any, *values: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
        return ctx.ops(
            "stablehlo.reduce_window",
            values,
            Window(**params).attributes(ctx),
            regions=[region_of_jaxpr(ctx, jaxpr)],
        )

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        jaxpr: ClosedJaxpr,
        **params: Any,
    ) -> tuple[list[Any], list[Any]]:
        if all(type(t) is Zero for t in tangents):
            outs = self.bind(*primals, jaxpr=jaxpr, **params)
            return outs, [Zero.like(x) for x in outs]
        return jvp_flat(place_by_place(elementwise(jaxpr), Window(**params)), primals, tangents)

    def batch(
        self,
        size: int,
        args: Sequence[Any],
        dims: Sequence[Any],
        *,
        jaxpr: ClosedJaxpr,
        **params: Any,
    ) -> tuple[list[Any], list[Any]]:
        (operands, inits), (operand_dims, init_dims) = halves(args), halves(dims)
        window = Window(**params)
        if any(d is not None for d in init_dims):
            return batch_flat(place_by_place(elementwise(jaxpr), window), size, args, dims)
        aligned = [
            structural.to_batch_dim(x, d, 0, size)
            for x, d in zip(operands, operand_dims, strict=True)
        ]
        outs = self.bind(*aligned, *inits, jaxpr=jaxpr, **window.with_batch(0)._asdict())
        return outs, [0] * len(outs)


reduce_window_p = ReduceWindow()


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Shape,
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Combines the elements of each window by an associative function.

    Shapes:     operand: a tree of T_i[s] -> T_i[number of windows].
    Dtypes:     any.
    Derivative: a known operation has its own rule; any other is applied place by place.
    Lowers to:  stablehlo.reduce_window.
    Source:     mirrors jax.lax.reduce_window.

    Args:
        operand: arrays of one shape.
        init_value: for each array a scalar, an identity of the computation; padding has it too.
        computation: takes two trees of scalars, and returns one.
        window_dimensions: the size of the window.
        window_strides: how far apart windows start; 1 by default.
        padding: what is put before and after, or "VALID", "SAME", "SAME_LOWER".
        base_dilation: how far apart the operand's elements are put; 1 by default.
        window_dilation: how far apart the window's elements are; 1 by default.

    Raises:
        TypeError: the window does not fit the operand.
        ValueError: trees or shapes do not fit together.
        RuntimeError: the name of the padding is not known.
        NotImplementedError: the computation uses values of a surrounding trace.

    Example:
        >>> lax.reduce_window(jnp.arange(6), 0, lax.add, (3,), window_strides=(1,), padding="VALID")
        Array([ 3,  6,  9, 12], dtype=int32)
        >>> lax.reduce_window(jnp.arange(6), 0, lax.max, (2,), window_strides=(2,), padding="VALID")
        Array([1, 3, 5], dtype=int32)
    """
    name = "lax.reduce_window"
    leaves, structure = tree.flatten(operand)
    init_leaves, init_structure = tree.flatten(init_value)
    check_same_structure(name, "init_value", init_structure, structure)
    arrays = [as_operand(x) for x in leaves]
    inits = [as_initial_value(x, like) for x, like in zip(init_leaves, arrays, strict=True)]
    if any(aval_of(x).shape for x in inits):
        error(TypeError, name, "initial values must be scalars.", got=", ".join(map(str, inits)))
    shape = aval_of(arrays[0]).shape
    window = window_of(
        name, shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    jaxpr = stage_reducer(name, computation, arrays, structure)
    primitive = _SPECIAL.get(monoid_of(jaxpr, inits) or "")
    if primitive is not None:
        outs = [primitive.bind(arrays[0], **window._asdict())]
    else:
        outs = reduce_window_p.bind(*arrays, *inits, jaxpr=jaxpr, **window._asdict())
    return tree.unflatten(structure, outs)
