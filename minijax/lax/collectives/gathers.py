"""Gathers and scatters over devices, the transposes of each other: `all_gather`, `psum_scatter`.

A gather gives every device the blocks of all; a scatter adds up what all hold and leaves each
device its block of the sum.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from minijax.core import axes as core_axes
from minijax.core import vma
from minijax.core.aval import AbstractValue, ShapedArray, aval_of
from minijax.core.errors import error
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Batched, Cotangents, Primitive
from minijax.core.value_placement import ManualAxisType, manual_type
from minijax.interpreters import casts
from minijax.interpreters.jvp import UndefinedPrimal, jvp_of_linear
from minijax.interpreters.structural import moveaxis, reduce_sum, to_batch_dim
from minijax.lax.binary import mul
from minijax.lax.collectives import arguments
from minijax.lax.collectives.arguments import (
    Application,
    Axes,
    AxisName,
    Collective,
    Groups,
    GroupsLike,
    Tree,
    axis_index,
)
from minijax.lax.families import Avals, BatchDims, Values
from minijax.lax.shape import reshape, squeeze
from minijax.lax.slicing import dynamic_slice_in_dim
from minijax.lowering import stablehlo
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.array import Array
from minijax.sharding import rules


class Gather(Collective, Primitive):
    """The blocks of all devices of a group, along one dimension in the order of the group.

    Shapes: x: T[s] -> T[s], with a new dimension of size n, or `tiled` with one n times as long.
    Linear in x.
    """

    jvp = jvp_of_linear

    def abstract_eval(
        self, x: ShapedArray, *, all_gather_dimension: int, axis_size: int, tiled: bool, **_: Any
    ) -> ShapedArray:
        dim = all_gather_dimension
        if tiled:
            return x.with_shape((*x.shape[:dim], x.shape[dim] * axis_size, *x.shape[dim + 1 :]))
        return x.with_shape((*x.shape[:dim], axis_size, *x.shape[dim:]))

    def shard(
        self, avals: Avals, outs: Avals, *, all_gather_dimension: int, tiled: bool, **_: Any
    ) -> PartitionSpec:
        spec = rules.spec_of(avals[0])
        return spec if tiled else spec.inserted(all_gather_dimension)

    def lower(self, ctx: LoweringContext, x: Value, **params: Any) -> Any:
        (out,) = ctx.avals_out
        if not out.size:
            # StableHLO refuses blocks without elements.
            return ctx.full(out.shape, 0, out.dtype)
        return self.exchange(ctx, self.widened(ctx, x, **params), **params)

    def widened(
        self, ctx: LoweringContext, x: Value, *, all_gather_dimension: int, tiled: bool, **_: Any
    ) -> Any:
        """The operand with a dimension of size 1 where blocks are stacked."""
        if tiled:
            return x
        (aval,) = ctx.avals_in
        dim = all_gather_dimension
        shape = (*aval.shape[:dim], 1, *aval.shape[dim:])
        return ctx.broadcast(x, shape, aval.dtype, [d for d in range(len(shape)) if d != dim])

    def exchange(
        self,
        ctx: LoweringContext,
        x: Value,
        *,
        all_gather_dimension: int,
        axis_name: Axes,
        axis_index_groups: Groups = None,
        **_: Any,
    ) -> Any:
        """The operation itself, of which blocks are joined along a dimension that is there."""
        devices = ctx.module.device_axes
        attributes = {
            "all_gather_dim": ctx.integer(all_gather_dimension),
            **devices.replica_groups(axis_name, axis_index_groups),
            **devices.channel(),
            **devices.global_ids(),
        }
        return ctx.ops("stablehlo.all_gather", [x], attributes)[0]

    def batch(
        self,
        size: int,
        args: Values,
        dims: Sequence[int],
        *,
        all_gather_dimension: int,
        **params: Any,
    ) -> Batched:
        (x,), (b,) = args, dims
        dim = all_gather_dimension
        if params["tiled"]:
            shifted, out_dim = dim + (dim >= b), b
        else:
            # A new dimension at the batch's own place goes before it.
            shifted, out_dim = dim + (dim > b), b + (dim <= b)
        out = self.bind(x, all_gather_dimension=shifted, **params)
        return out, out_dim


core_axes.makes_equal.set(True, Gather)
rules.knows_sums.set(True, Gather)


@core_axes.batch_axis.rule(Gather)
def _batch_axis_of_gather(
    primitive: Gather, size: int, name: Hashable, args: Values, dims: BatchDims, **params: Any
) -> tuple[Any, None]:
    around = arguments.around_batch(f"lax.{primitive.name}", name, params)
    dim, tiled = params["all_gather_dimension"], params["tiled"]
    x = to_batch_dim(args[0], dims[0], dim, size)
    if around.others:
        x = primitive.bind(x, **params | around.params | {"tiled": False})
        shape = aval_of(x).shape
        x = reshape(x, (*shape[:dim], around.outer, around.inner, *shape[dim + 1 :]))
        shape = (*shape[:dim], params["axis_size"], *shape[dim + 2 :])
        x = reshape(moveaxis(x, dim + 2, dim + 1), shape)
    if tiled:
        shape = aval_of(x).shape
        x = reshape(x, (*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :]))
    return x, None


class AllGather(Gather):
    """V to V: for the types every device has a copy of its own.  Its transpose scatters sums."""

    name = "all_gather"

    def transpose(
        self, ct: Array, x: UndefinedPrimal, *, all_gather_dimension: int, **params: Any
    ) -> Cotangents:
        return (reduce_scatter_p.bind(ct, scatter_dimension=all_gather_dimension, **params),)


core_axes.crosses_processes.set(True, AllGather)


class AllGatherInvariant(Gather):
    """V to I: the types know that all devices hold the same.  Its transpose takes the own block."""

    name = "all_gather_invariant"

    def transpose(
        self,
        ct: Array,
        x: Array,
        *,
        all_gather_dimension: int,
        axis_name: Axes,
        axis_size: int,
        tiled: bool,
    ) -> Cotangents:
        dim = all_gather_dimension
        block = aval_of(ct).shape[dim] // axis_size
        start = axis_index(axis_name) * block
        own = dynamic_slice_in_dim(ct, start, block, dim)
        return (own if tiled else squeeze(own, (dim,)),)


@vma.vary.rule(AllGatherInvariant)
def _vary_of_all_gather_invariant(
    primitive: AllGatherInvariant, avals: Avals, outs: Avals, *, axis_name: Axes, **_: Any
) -> ManualAxisType:
    arguments.check_varying("all_gather_invariant", avals[0], axis_name)
    given = vma.of(avals[0])
    return manual_type(given.varying - frozenset(axis_name), given.unreduced, given.reduced)


class AllGatherReduced(Gather):
    """V to R: cotangents are summands, so that the transpose scatters their sums."""

    name = "all_gather_reduced"

    def transpose(
        self, ct: Array, x: UndefinedPrimal, *, all_gather_dimension: int, **params: Any
    ) -> Cotangents:
        return (
            unreduced_reduce_scatter_p.bind(ct, scatter_dimension=all_gather_dimension, **params),
        )


@vma.vary.rule(AllGatherReduced)
def _vary_of_all_gather_reduced(
    primitive: AllGatherReduced, avals: Avals, outs: Avals, *, axis_name: Axes, **_: Any
) -> ManualAxisType:
    given, named = vma.of(avals[0]), frozenset(axis_name)
    expected = f"a value that varies over {casts.axes_text(named)}"
    user = "lax.all_gather_reduced"
    casts.refuse_kind(user, avals[0], named & given.reduced, "reduced already", expected)
    casts.refuse_kind(user, avals[0], named - given.varying, "not varying", expected)
    return manual_type(given.varying - named, given.unreduced, given.reduced | named)


all_gather_p = AllGather()
all_gather_invariant_p = AllGatherInvariant()
all_gather_reduced_p = AllGatherReduced()


class Scatter(Collective, Primitive):
    """The sum of what the devices of a group hold; each keeps the block of its own position.

    Shapes: x: T[s] -> T[s without the dimension, of size n], or `tiled` with one n times as short.
    Linear in x.
    """

    jvp = jvp_of_linear

    def abstract_eval(
        self, x: ShapedArray, *, scatter_dimension: int, axis_size: int, tiled: bool, **_: Any
    ) -> ShapedArray:
        dim = scatter_dimension
        _check_block(x, dim, axis_size, tiled=tiled)
        if tiled:
            return x.with_shape((*x.shape[:dim], x.shape[dim] // axis_size, *x.shape[dim + 1 :]))
        return x.with_shape((*x.shape[:dim], *x.shape[dim + 1 :]))

    def shard(
        self, avals: Avals, outs: Avals, *, scatter_dimension: int, tiled: bool, **_: Any
    ) -> PartitionSpec:
        spec = rules.spec_of(avals[0])
        return spec if tiled else rules.dropped(spec, (scatter_dimension,))

    def lower(
        self,
        ctx: LoweringContext,
        x: Value,
        *,
        scatter_dimension: int,
        axis_name: Axes,
        axis_size: int,
        tiled: bool,
        axis_index_groups: Groups = None,
    ) -> Any:
        (aval,), (out,) = ctx.avals_in, ctx.avals_out
        if not out.size:
            return ctx.full(out.shape, 0, out.dtype)
        dim = scatter_dimension
        block = (*aval.shape[:dim], aval.shape[dim] // axis_size, *aval.shape[dim + 1 :])
        devices = ctx.module.device_axes
        scalar = stablehlo.tensor_type((), aval.dtype)
        found = ctx.ops(
            "stablehlo.reduce_scatter",
            [x],
            {
                "scatter_dimension": ctx.integer(dim),
                **devices.replica_groups(axis_name, axis_index_groups),
                **devices.channel(),
                **devices.global_ids(),
            },
            [stablehlo.tensor_type(block, aval.dtype)],
            [([scalar, scalar], lambda c, a, b: [c.op("stablehlo.add", [a, b], None, scalar)])],
        )[0]
        return found if tiled else ctx.reshape(found, out.shape, out.dtype)

    def batch(
        self, size: int, args: Values, dims: Sequence[int], *, scatter_dimension: int, **params: Any
    ) -> Batched:
        (x,), (b,) = args, dims
        dim = scatter_dimension + (scatter_dimension >= b)
        out = self.bind(x, scatter_dimension=dim, **params)
        return out, b - (not params["tiled"] and dim < b)


rules.knows_sums.set(True, Scatter)


@core_axes.batch_axis.rule(Scatter)
def _batch_axis_of_scatter(
    primitive: Scatter,
    size: int,
    name: Hashable,
    args: Sequence[Array],
    dims: BatchDims,
    **params: Any,
) -> tuple[Any, int]:
    around = arguments.around_batch("lax.psum_scatter", name, params)
    (x,), (b,) = args, dims
    copies = np.asarray(size).astype(aval_of(x).dtype)[()]
    x = mul(x, copies) if b is None else reduce_sum(x, (b,))
    dim, tiled, shape = params["scatter_dimension"], params["tiled"], aval_of(x).shape
    _check_block(aval_of(x), dim, params["axis_size"], tiled=tiled)
    block = shape[dim] // params["axis_size"]
    sizes = (around.outer, size, around.inner * block)
    x = moveaxis(reshape(x, (*shape[:dim], *sizes, *shape[dim + 1 :])), dim + 1, 0)
    kept = (around.outer * around.inner * block,) if tiled or around.others else ()
    x = reshape(x, (size, *shape[:dim], *kept, *shape[dim + 1 :]))
    if around.others:
        x = primitive.bind(x, **params | around.params | {"scatter_dimension": dim + 1})
    return x, 0


class ReduceScatter(Scatter):
    """V to V.  Its transpose gathers."""

    name = "reduce_scatter"

    def transpose(
        self, ct: Array, x: UndefinedPrimal, *, scatter_dimension: int, **params: Any
    ) -> Cotangents:
        return (all_gather_p.bind(ct, all_gather_dimension=scatter_dimension, **params),)


core_axes.crosses_processes.set(True, ReduceScatter)


class UnreducedReduceScatter(Scatter):
    """U to V: the summands of one value are added, and each device keeps a block."""

    name = "unreduced_reduce_scatter"

    def transpose(
        self, ct: Array, x: UndefinedPrimal, *, scatter_dimension: int, **params: Any
    ) -> Cotangents:
        return (all_gather_reduced_p.bind(ct, all_gather_dimension=scatter_dimension, **params),)


@vma.vary.rule(UnreducedReduceScatter)
def _vary_of_unreduced_reduce_scatter(
    primitive: UnreducedReduceScatter, avals: Avals, outs: Avals, *, axis_name: Axes, **_: Any
) -> ManualAxisType:
    casts.check_unreduced("lax.unreduced_psum_scatter", avals[0], axis_name)
    given, named = vma.of(avals[0]), frozenset(axis_name)
    return manual_type(given.varying | named, given.unreduced - named, given.reduced)


reduce_scatter_p = ReduceScatter()
unreduced_reduce_scatter_p = UnreducedReduceScatter()


_KINDS = ("varying", "invarying", "reduced")


@arguments.applied
def all_gather(
    x: Tree,
    axis_name: AxisName,
    *,
    axis_index_groups: GroupsLike = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Tree:
    """Gathers the arrays of all devices, or examples, of named axes, on each of them.

    Shapes: T[s] -> T[s] with a new dimension of the axes' size at `axis`; `tiled`, dimension `axis`
        is that many times as long.
    Types:  the operand varies over the axes; the result as `to` says.

    Args:
        x: a tree of arrays.
        axis_name: a name, or a tuple of names, of axes of vmap, pmap or shard_map.
        axis_index_groups: lists of positions along the axis: blocks are gathered within a group.
        axis: where the blocks go.
        tiled: whether they are joined along a dimension that is there, or stacked along a new one.
        to: "varying", "invarying" (its transpose takes the device's own block), or "reduced".

    Raises:
        NameError: a name is not in scope.
        ValueError: an unknown `to`, groups of different sizes, `axis` out of range, or an operand
            of the wrong kind.
        NotImplementedError: groups with another `to` than "varying".

    Example:
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> last = lambda x: x + lax.all_gather(x, "x", tiled=True)[-1]
        >>> jax.shard_map(last, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(jnp.arange(8))
        Array([ 7,  8,  9, 10, 11, 12, 13, 14], dtype=int32)
    """
    if to not in _KINDS:
        problem = "an unknown kind of result."
        expected = f"one of {', '.join(map(repr, _KINDS))}"
        error(ValueError, "lax.all_gather", problem, got=f"to={to!r}", expected=expected)
    name = {"varying": "lax.all_gather", "invarying": "lax.all_gather_invariant"}.get(
        to, "lax.all_gather_reduced"
    )
    axes = arguments.canonical_axes(name, axis_name)
    if not axes:
        return x
    groups = arguments.canonical_groups(name, axis_index_groups, axes)
    size = arguments.group_size(name, axes, groups)
    if groups is not None and to != "varying":
        error(
            NotImplementedError,
            name,
            f"axis_index_groups are not implemented for to={to!r}: what groups gather differs.",
            got=f"{[list(g) for g in groups]}",
            fix="to='varying'",
        )

    def of_leaf(leaf: Array) -> Any:
        ndim = aval_of(leaf).ndim
        dim = arguments.canonical_dim(name, "axis", axis, ndim + (not tiled))
        params = {
            "all_gather_dimension": dim,
            "axis_name": axes,
            "axis_size": size,
            "tiled": bool(tiled),
        }
        if to == "reduced":
            _check_typed(leaf, axes)
            return Application(all_gather_reduced_p, leaf, params)
        arguments.check_no_sums(name, leaf, axes)
        leaf = arguments.with_pvary(leaf, axes)
        # Where types do not tell, the cotangents of copies are parts, which must be added up.
        if to == "invarying" and core_axes.typed_among(axes):
            return Application(all_gather_invariant_p, leaf, params)
        return Application(all_gather_p, leaf, {**params, "axis_index_groups": groups})

    return arguments.map_leaves(of_leaf, x)


def _check_typed(x: Array, axes: Axes) -> None:
    if not core_axes.typed_among(axes):
        problem = "the operand does not vary over mesh axes, as far as types tell."
        got = f"{aval_of(x)}, axes {axes}"
        expected = f"a value that varies over {casts.axes_text(axes)}"
        fix = "call it inside shard_map with check_vma=True"
        error(ValueError, "lax.all_gather_reduced", problem, got=got, expected=expected, fix=fix)


def all_gather_invariant(
    x: Tree, axis_name: AxisName, *, axis: int = 0, tiled: bool = False
) -> Tree:
    """As `all_gather`, with a result that is invarying over the axes.

    Shapes: as `all_gather`.
    Source: mirrors all_gather_invariant of JAX (0.10), where it is not public.

    Example:
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> f = lambda x: lax.all_gather_invariant(x, "x", tiled=True)
        >>> jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P())(jnp.arange(8))
        Array([0, 1, 2, 3, 4, 5, 6, 7], dtype=int32)
    """
    return all_gather(x, axis_name, axis=axis, tiled=tiled, to="invarying")


def all_gather_reduced(x: Tree, axis_name: AxisName, *, axis: int = 0, tiled: bool = False) -> Tree:
    """As `all_gather`, with a result that is reduced over the axes: its cotangents are unreduced.

    Shapes: as `all_gather`.
    Source: mirrors all_gather_reduced of JAX (0.10), where it is not public.

    Raises:
        ValueError: the operand does not vary over the axes, or vma is not checked.

    Example:
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> def f(x):
        ...     print(jax.typeof(x), "->", jax.typeof(lax.all_gather_reduced(x, "x", tiled=True)))
        ...     return x
        >>> _ = jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(jnp.arange(8.0))
        f32[1]{V:x} -> f32[8]{R:x}
    """
    return all_gather(x, axis_name, axis=axis, tiled=tiled, to="reduced")


def _check_block(x: AbstractValue, dim: int, size: int, *, tiled: bool) -> None:
    arguments.check_block("lax.psum_scatter", "scatter_dimension", x, dim, size, tiled=tiled)


@arguments.applied
def psum_scatter(
    x: Tree,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: GroupsLike = None,
    tiled: bool = False,
) -> Tree:
    """Reduce-scatter: the sum over the devices, or examples, of named axes; each keeps one block.

    Shapes: T[s] -> T[s without dimension `scatter_dimension`, which must be of the axes' size];
        `tiled`, that dimension is as many times shorter.
    Types:  what varies, or is unreduced, over the axes becomes varying.

    Args:
        x: a tree of arrays.
        axis_name: a name, or a tuple of names, of axes of vmap, pmap or shard_map.
        scatter_dimension: which dimension is cut.
        axis_index_groups: lists of positions along the axis: each group has a sum of its own.
        tiled: whether blocks keep the dimension.

    Raises:
        NameError: a name is not in scope.
        ValueError: the dimension cannot be cut, groups of different sizes, or a reduced operand.
        TypeError: an array of bool.

    Example:
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> share = lambda x: lax.psum_scatter(lax.pcast(x, "x", to="varying"), "x", tiled=True)
        >>> jax.shard_map(share, mesh=mesh, in_specs=P(), out_specs=P("x"))(jnp.arange(8))
        Array([ 0,  8, 16, 24, 32, 40, 48, 56], dtype=int32)
    """
    name = "lax.psum_scatter"
    axes = arguments.without_small(arguments.canonical_axes(name, axis_name))
    if not axes:
        return x
    groups = arguments.canonical_groups(name, axis_index_groups, axes)
    size = arguments.group_size(name, axes, groups)

    def of_leaf(leaf: Array) -> Any:
        params = scatter_params(name, leaf, axes, size, scatter_dimension, tiled)
        typed = core_axes.typed_among(axes)
        if typed and arguments.states(name, leaf, axes) == "U":
            return Application(unreduced_reduce_scatter_p, leaf, params)
        arguments.check_no_sums(name, leaf, typed)
        leaf = arguments.with_pvary(leaf, axes)
        return Application(reduce_scatter_p, leaf, {**params, "axis_index_groups": groups})

    return arguments.map_leaves(of_leaf, x)


def scatter_params(
    name: str, x: Array, axes: Axes, size: int, dim: object, tiled: bool
) -> dict[str, Any]:
    """The parameters of a scatter of `x`.

    Raises:
        TypeError: `x` is of bool, or of random keys.
        ValueError: the dimension is out of range.
    """
    arguments.check_summable(name, x, bools=False)
    ndim = aval_of(x).ndim
    return {
        "scatter_dimension": arguments.canonical_dim(name, "scatter_dimension", dim, ndim),
        "axis_name": axes,
        "axis_size": size,
        "tiled": bool(tiled),
    }


def unreduced_psum_scatter(
    x: Tree, axis_name: AxisName, *, scatter_dimension: int = 0, tiled: bool = False
) -> Tree:
    """As `psum_scatter`, of values that are unreduced over the axes.

    Shapes: as `psum_scatter`.
    Source: mirrors unreduced_psum_scatter of JAX (0.10), where it is not public.

    Raises:
        ValueError: the operand is not unreduced over all the axes, or the dimension cannot be cut.

    Example:
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> def share(x):
        ...     summand = lax.pcast(x, "x", to="unreduced")
        ...     return lax.unreduced_psum_scatter(summand, "x", tiled=True)
        >>> jax.shard_map(share, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(jnp.ones(64))
        Array([8., 8., 8., 8., 8., 8., 8., 8.], dtype=float32)
    """
    name = "lax.unreduced_psum_scatter"
    axes = arguments.canonical_axes(name, axis_name)
    if not axes:
        return x
    size = arguments.axes_size(name, axes)

    def of_leaf(leaf: Array) -> Any:
        casts.check_unreduced(name, aval_of(leaf), axes)
        params = scatter_params(name, leaf, axes, size, scatter_dimension, tiled)
        return unreduced_reduce_scatter_p.bind(leaf, **params)

    return arguments.map_leaves(of_leaf, x)
