"""Reductions over windows, and cumulative ones, which are made of them.

For a cumulative sum an array is cut into short blocks.  Reductions over windows as long as a block
find the results within blocks; the same over the blocks' totals finds what each block starts from.
On a CPU this is two to seven times as fast as one reduction over windows as long as the array.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from minijax.core import tree, vma
from minijax.core.aval import Shape, ShapedArray, aval_of
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Batched, Cotangents, Dual, Primitive, Tangents
from minijax.interpreters import structural
from minijax.interpreters.batching import batch_flat
from minijax.interpreters.jvp import UndefinedPrimal, jvp_flat
from minijax.interpreters.structural import broadcast_in_dim, full, instantiate
from minijax.lax import families, reduction, windows
from minijax.lax.binary import add, div, ge_p, le_p, max, min, mul, ne, select, sub
from minijax.lax.families import Avals, Values
from minijax.lax.families import operand as as_operand
from minijax.lax.padding import pad
from minijax.lax.shape import reshape, rev, split
from minijax.lax.unary import ceil, complex, exp, imag, log1p, real
from minijax.lax.windows import Window
from minijax.lowering.module import lower_function
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.sharding import rules


@dataclass(eq=False, repr=False)
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

    name: str = field()
    op: str
    _: KW_ONLY
    combine: Callable[[Any, Any], Any]
    identity: reduction.Identity
    accepts: families.Kinds
    select_prim: Primitive | None

    def __post_init__(self) -> None:
        super().__init__(self.name)

    def abstract_eval(self, x: ShapedArray, **params: Any) -> ShapedArray:
        families.check_dtype(self.name, "operand", x, self.accepts)
        window = Window(**params)
        windows.check_window("lax.reduce_window", x.shape, window)
        return x.with_shape(window.result_shape(x.shape))

    def shard(self, avals: Avals, outs: Avals, **params: Any) -> PartitionSpec:
        return rules.spec_of(avals[0])

    def lower(self, ctx: LoweringContext, x: Value, **params: Any) -> Any:
        dtype = ctx.avals_in[0].dtype
        return ctx.ops(
            "stablehlo.reduce_window",
            [x, ctx.constant(self.identity(dtype), dtype)],
            Window(**params).attributes(ctx),
            regions=[reduction.region_of_combiner(ctx, self.op, self.combine, dtype)],
        )[0]

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], **params: Any) -> Dual:
        (x,), (x_dot,) = primals, tangents
        out = self.bind(x, **params)
        if self.select_prim is None:
            return out, self.bind(x_dot, **params)
        window = Window(**params)
        if not window.is_dilated:
            return out, windows.select_and_gather_add_p.bind(
                x_dot, x, select_prim=self.select_prim, **params
            )
        init = self.identity(aval_of(x).dtype)
        function = windows.place_by_place(lambda a, b: [self.combine(a, b)], window)
        _, (out_dot,) = jvp_flat(lambda x: function(x, init), [x], [x_dot])
        return out, structural.instantiate(out_dot)

    def transpose(self, ct: Array, x: UndefinedPrimal, **params: Any) -> Cotangents:
        if self.select_prim is not None:
            self._missing("transposition: it is not linear (transpose)")
        return (_spread(ct, x.aval.shape, Window(**params)),)

    def batch(self, size: int, args: Values, dims: Sequence[int], **params: Any) -> Batched:
        window = Window(**params).with_batch(dims[0])
        return self.bind(args[0], **window._asdict()), dims[0]


def _spread(ct: Array, shape: Shape, window: Window) -> Any:
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
    identity=reduction.zero,
    accepts=families.NUMERIC,
    select_prim=None,
)
reduce_window_max_p = WindowReduction(
    "reduce_window_max",
    "stablehlo.maximum",
    combine=max,
    identity=reduction.lowest,
    accepts=families.ANY,
    select_prim=ge_p,
)
reduce_window_min_p = WindowReduction(
    "reduce_window_min",
    "stablehlo.minimum",
    combine=min,
    identity=reduction.highest,
    accepts=families.ANY,
    select_prim=le_p,
)
_SPECIAL = {"add": reduce_window_sum_p, "max": reduce_window_max_p, "min": reduce_window_min_p}


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
        operands, inits = reduction.halves(avals)
        reduction.check_reducer("lax.reduce_window", operands, inits, jaxpr)
        window = Window(**params)
        windows.check_window("lax.reduce_window", operands[0].shape, window)
        shape = window.result_shape(operands[0].shape)
        return [x.strip_weak_type().with_shape(shape) for x in operands]

    def lower(
        self, ctx: LoweringContext, *values: Value, jaxpr: ClosedJaxpr, **params: Any
    ) -> list[Any]:
        return ctx.ops(
            "stablehlo.reduce_window",
            values,
            Window(**params).attributes(ctx),
            regions=[reduction.region_of_jaxpr(ctx, jaxpr)],
        )

    def jvp(
        self, primals: Values, tangents: Tangents, *, jaxpr: ClosedJaxpr, **params: Any
    ) -> Dual:
        return jvp_flat(
            windows.place_by_place(reduction.elementwise(jaxpr), Window(**params)),
            primals,
            tangents,
        )

    def batch(
        self, size: int, args: Values, dims: Sequence[Any], *, jaxpr: ClosedJaxpr, **params: Any
    ) -> Batched:
        window = Window(**params)
        if any(d is not None for d in reduction.halves(dims)[1]):
            return batch_flat(
                windows.place_by_place(reduction.elementwise(jaxpr), window), size, args, dims
            )
        params = window.with_batch(0)._asdict()
        outs = self.bind(*reduction.with_leading_batch(size, args, dims), jaxpr=jaxpr, **params)
        return outs, [0] * len(outs)


reduce_window_p = ReduceWindow()


def reduce_window(
    operand: object,
    init_value: object,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Shape,
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Reduces the elements of each window by an associative function.

    Shapes:     operand: a tree of T_i[s] -> T_i[number of windows].
    Dtypes:     any.
    Derivative: a known operation has its own rule; any other is applied place by place.
    Lowers to:  stablehlo.reduce_window.

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
    reduction.check_same_structure(name, "init_value", init_structure, structure)
    arrays = [as_operand(x) for x in leaves]
    inits = [
        reduction.as_initial_value(x, like) for x, like in zip(init_leaves, arrays, strict=True)
    ]
    if any(aval_of(x).shape for x in inits):
        error(TypeError, name, "initial values must be scalars.", got=", ".join(map(str, inits)))
    shape = aval_of(arrays[0]).shape
    window = windows.window_of(
        name, shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    jaxpr = reduction.stage_reducer(name, computation, arrays, structure)
    primitive = _SPECIAL.get(reduction.monoid_of(jaxpr, inits) or "")
    if primitive is not None:
        outs = [primitive.bind(arrays[0], **window._asdict())]
    else:
        outs = reduce_window_p.bind(*arrays, *inits, jaxpr=jaxpr, **window._asdict())
    return tree.unflatten(structure, outs)


# The fastest of 8, 16, 32 and 64 on a CPU, for vectors as for matrices.
_BLOCK = 8


@dataclass(eq=False, repr=False)
class Cumulative(Primitive):
    """Combines each element with all before it along `axis`, or after it where `reverse`.

    Shapes: operand: T[s] -> T[s].

    Args:
        name: the primitive's name.
        combine: the function of `lax` that combines two elements.
        identity: the result of combining nothing.
        accepts: kinds of dtypes it takes.
        linear: whether the operation is linear.
    """

    batch = families.batch_along("axis")

    name: str = field()
    combine: Callable[[Any, Any], Any]
    identity: reduction.Identity
    _: KW_ONLY
    accepts: families.Kinds = families.NUMERIC
    linear: bool = False

    def __post_init__(self) -> None:
        super().__init__(self.name)

    def abstract_eval(self, x: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
        families.check_dtype(self.name, "operand", x, self.accepts)
        if not 0 <= axis < x.ndim:
            problem = f"axis {axis} is out of range."
            expected = f"an axis from 0 to {x.ndim - 1}"
            error(ValueError, f"lax.{self.name}", problem, got={"operand": x}, expected=expected)
        return x

    def shard(self, avals: Avals, outs: Avals, *, axis: int, reverse: bool) -> PartitionSpec:
        rules.check_unsharded(self, avals, (axis,))
        return rules.spec_of(avals[0])

    def lower(self, ctx: LoweringContext, x: Value, *, axis: int, reverse: bool) -> Any:
        if ctx.avals_in[0].size == 0:
            return x
        return lower_function(ctx, lambda x: [self._in_blocks(x, axis, reverse)], x)[0]

    def _in_blocks(self, x: Array, axis: int, reverse: bool) -> Any:
        shape, length = x.shape, x.shape[axis]
        if type(length) is not int or length <= _BLOCK:
            return self._over_windows(x, axis, reverse)
        blocks = -(-length // _BLOCK)
        missing = blocks * _BLOCK - length
        edges = [(0, 0, 0)] * len(shape)
        edges[axis] = (missing, 0, 0) if reverse else (0, missing, 0)
        identity = self.identity(x.dtype)
        before, after = shape[:axis], shape[axis + 1 :]
        cut = reshape(pad(x, identity, edges), (*before, blocks, _BLOCK, *after))
        inside = self._over_windows(cut, axis + 1, reverse)
        # The total of a block is where its results end; a block starts from the one before.
        last = 0 if reverse else _BLOCK - 1
        total = split(inside, (last, 1, _BLOCK - 1 - last), axis + 1)[1]
        totals = self._in_blocks(reshape(total, (*before, blocks, *after)), axis, reverse)
        edges[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
        start = pad(totals, identity, edges)
        kept = [d for d in range(len(shape) + 1) if d != axis + 1]
        whole = self.combine(broadcast_in_dim(start, inside.shape, kept), inside)
        whole = reshape(whole, (*before, blocks * _BLOCK, *after))
        edges[axis] = (-missing, 0, 0) if reverse else (0, -missing, 0)
        return pad(whole, identity, edges)

    def _over_windows(self, x: Array, axis: int, reverse: bool) -> Any:
        rank, length = x.ndim, x.shape[axis]
        window, padding = [1] * rank, [(0, 0)] * rank
        window[axis] = length
        padding[axis] = (0, length - 1) if reverse else (length - 1, 0)
        return reduce_window(x, self.identity(x.dtype), self.combine, tuple(window), None, padding)

    def jvp(
        self, primals: Sequence[Array], tangents: Sequence[Array], *, axis: int, reverse: bool
    ) -> Dual:
        (x,), (x_dot,) = primals, tangents
        out = self.bind(x, axis=axis, reverse=reverse)
        if self.linear:
            return out, self.bind(x_dot, axis=axis, reverse=reverse)

        def composed(x: Array) -> list[Any]:
            x = rev(x, (axis,)) if reverse else x
            (y,) = reduction.scan(lambda a, b: [self.combine(a, b)], [x], axis)
            return [rev(y, (axis,)) if reverse else y]

        _, (out_dot,) = jvp_flat(composed, [x], [x_dot])
        return out, instantiate(out_dot)

    def transpose(self, ct: Array, x: UndefinedPrimal, *, axis: int, reverse: bool) -> Cotangents:
        if not self.linear:
            self._missing("transposition: it is not linear (transpose)")
        return (self.bind(ct, axis=axis, reverse=not reverse),)


def _logaddexp(x: Array, y: Array) -> Any:
    """log(exp(x) + exp(y)) without overflow."""
    larger = max(x, y)
    difference = sub(min(x, y), larger)
    # Of equal infinities the difference is undefined; any finite one gives the right sum.
    undefined = ne(difference, difference)
    difference = select(undefined, full(difference.shape, 0, difference.dtype), difference)
    return add(larger, log1p(exp(difference)))


cumsum_p = Cumulative("cumsum", add, reduction.zero, linear=True)
vma.linear_in.set(((0,),), cumsum_p)
cumprod_p = Cumulative("cumprod", mul, reduction.one)
cummax_p = Cumulative("cummax", max, reduction.lowest)
cummin_p = Cumulative("cummin", min, reduction.highest)
cumlogsumexp_p = Cumulative("cumlogsumexp", _logaddexp, reduction.lowest, accepts=families.INEXACT)


def _accumulated(primitive: Cumulative, operand: object, axis: int, reverse: bool) -> Any:
    x = as_operand(operand)
    return primitive.bind(x, axis=operator.index(axis), reverse=bool(reverse))


def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The cumulative sum along `axis`, from the end where `reverse`.

    Shapes:     operand: T[s] -> T[s].
    Dtypes:     numeric.
    Derivative: transposes to the sum in the other direction.
    Lowers to:  stablehlo.reduce_window over blocks.

    Raises:
        ValueError: the axis is out of range.
        TypeError: the dtype is not numeric.

    Example:
        >>> lax.cumsum(jnp.array([1, 2, 3]))
        Array([1, 3, 6], dtype=int32)
        >>> lax.cumsum(jnp.array([1, 2, 3]), reverse=True)
        Array([6, 5, 3], dtype=int32)
    """
    return _accumulated(cumsum_p, operand, axis, reverse)


def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The cumulative product along `axis`, from the end where `reverse`.

    Shapes:     operand: T[s] -> T[s].
    Dtypes:     numeric.
    Derivative: exact also where elements are zero.
    Lowers to:  stablehlo.reduce_window over blocks.

    Raises:
        ValueError: the axis is out of range.
        TypeError: the dtype is not numeric.

    Example:
        >>> lax.cumprod(jnp.array([[1, 2], [3, 4]]), axis=1)
        Array([[ 1,  2],
               [ 3, 12]], dtype=int32)
    """
    return _accumulated(cumprod_p, operand, axis, reverse)


def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The cumulative maximum along `axis`, from the end where `reverse`.

    Shapes:     operand: T[s] -> T[s].
    Dtypes:     numeric.
    Derivative: equal elements share it.
    Lowers to:  stablehlo.reduce_window over blocks.

    Raises:
        ValueError: the axis is out of range.
        TypeError: the dtype is not numeric.

    Example:
        >>> lax.cummax(jnp.array([1, 5, 3, 7]))
        Array([1, 5, 5, 7], dtype=int32)
    """
    return _accumulated(cummax_p, operand, axis, reverse)


def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The cumulative minimum along `axis`, from the end where `reverse`.

    Shapes:     operand: T[s] -> T[s].
    Dtypes:     numeric.
    Derivative: equal elements share it.
    Lowers to:  stablehlo.reduce_window over blocks.

    Raises:
        ValueError: the axis is out of range.
        TypeError: the dtype is not numeric.

    Example:
        >>> lax.cummin(jnp.array([5, 7, 3, 4]))
        Array([5, 5, 3, 3], dtype=int32)
    """
    return _accumulated(cummin_p, operand, axis, reverse)


def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The cumulative log-sum-exp along `axis`, without overflow.

    Shapes:     operand: T[s] -> T[s].
    Dtypes:     inexact.
    Derivative: the softmax of the elements up to each one.
    Lowers to:  stablehlo.reduce_window over blocks.

    Raises:
        ValueError: the axis is out of range.
        TypeError: the dtype is not inexact.

    Example:
        >>> lax.cumlogsumexp(jnp.array([1000.0, 0.0]))
        Array([1000., 1000.], dtype=float32)
    """
    out = _accumulated(cumlogsumexp_p, operand, axis, reverse)
    return _principal(out) if out.dtype.kind == "c" else out


def _principal(x: Array) -> Any:
    """The logarithm of the same number whose imaginary part, an angle, lies in (-π, π]."""
    angle = imag(x)
    turns = ceil(div(sub(angle, math.pi), 2 * math.pi))
    return complex(real(x), sub(angle, mul(turns, 2 * math.pi)))
