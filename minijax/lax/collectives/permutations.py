"""Blocks go from device to device: `ppermute`, `pshuffle`, `pbroadcast`, `psend` and `precv`.

Of the last two, one sends and the other receives, each by an operation of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from minijax.core import axes as core_axes
from minijax.core import dtypes, vma
from minijax.core.aval import AbstractToken, ShapedArray, abstract_token, aval_of
from minijax.core.effects import SingleSideCollectiveEffect
from minijax.core.errors import error
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Cotangents, Primitive
from minijax.core.value_placement import NOT_MANUAL, ManualAxisType, manual_type
from minijax.interpreters import casts
from minijax.interpreters.jvp import UndefinedPrimal, jvp_of_linear
from minijax.interpreters.structural import broadcast_in_dim, to_batch_dim
from minijax.lax import unary
from minijax.lax.binary import ge, select
from minijax.lax.binary import max as maximum
from minijax.lax.collectives import arguments
from minijax.lax.collectives.arguments import (
    Application,
    Axes,
    AxisName,
    Collective,
    PermutationLike,
    Tree,
    axis_index,
)
from minijax.lax.collectives.gathers import all_gather_p
from minijax.lax.collectives.reductions import psum_p
from minijax.lax.creation import bitcast_convert_type_p, full_like
from minijax.lax.families import Avals, BatchDims, Values, batch_unary
from minijax.lax.shape import broadcast, concatenate
from minijax.lax.slicing import dynamic_index_in_dim, index_in_dim, index_take, slice_in_dim
from minijax.lowering import module, stablehlo
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.array import Array
from minijax.sharding import rules

Pairs = tuple[tuple[int, int], ...]


class PPermute(Collective, Primitive):
    """Sends the block of each source to its destination; who is none gets zeros.

    Shapes: x: T[s] -> T[s].  Linear in x.
    """

    name = "ppermute"
    has_effects = False
    jvp = jvp_of_linear
    batch = batch_unary
    shard = rules.elementwise

    def abstract_eval(self, x: ShapedArray, *, axis_name: Axes, perm: Pairs) -> ShapedArray:
        return x

    def lower(self, ctx: LoweringContext, x: Value, *, axis_name: Axes, perm: Pairs) -> Any:
        devices = ctx.module.device_axes
        pairs = arguments.pairs_of_devices(devices, axis_name, perm)
        attributes = {"source_target_pairs": stablehlo.dense(pairs), **devices.channel()}
        return ctx.op("stablehlo.collective_permute", [x], attributes)

    def impl(self, x: Array, **params: Any) -> Any:
        raise NotImplementedError(arguments.outside_text("lax.ppermute"))

    def transpose(self, ct: Array, x: UndefinedPrimal, *, perm: Pairs, **axes: Any) -> Cotangents:
        return (self.bind(ct, perm=tuple((d, s) for s, d in perm), **axes),)

    def _among_all(
        self, size: int, name: Hashable, args: Values, dims: BatchDims, axes: Axes, perm: Pairs
    ) -> Any:
        """Blocks that go between examples and devices: each device picks its own among all."""
        around = arguments.around_batch("lax.ppermute", name, {"axis_name": axes})
        total = around.outer * around.inner * size
        everything, _ = core_axes.batch_axis.of(all_gather_p)(
            size,
            name,
            args,
            dims,
            all_gather_dimension=0,
            axis_name=axes,
            axis_size=total,
            tiled=False,
            axis_index_groups=None,
        )
        sources = np.full(total, -1, np.int32)
        for s, d in perm:
            sources[d] = s
        # One row for each device, with the source for each of its examples.
        table = np.moveaxis(sources.reshape(around.outer, size, around.inner), 1, 2)
        row = axis_index(around.others)
        mine = dynamic_index_in_dim(table.reshape(-1, size), row, 0, keepdims=False)
        picked = index_take(everything, (maximum(mine, np.zeros(size, np.int32)),), (0,))
        is_destination = ge(mine, np.zeros(size, np.int32))
        mask = broadcast_in_dim(is_destination, aval_of(picked).shape, (0,))
        return select(mask, picked, full_like(picked, 0))


core_axes.crosses_processes.set(True, PPermute)


core_axes.waits_for_all.set(True, PPermute)


@core_axes.batch_axis.rule(PPermute)
def _batch_axis_of_ppermute(
    primitive: PPermute, size: int, name: Hashable, args: Values, dims: BatchDims, **params: Any
) -> tuple[Any, Any]:
    axis_name, perm = params["axis_name"], params["perm"]
    if len(axis_name) > 1:
        return primitive._among_all(size, name, args, dims, axis_name, perm), 0
    (x,), (b,) = args, dims
    if b is None and len(perm) == size:
        return x, None
    x = to_batch_dim(x, b, 0, size)
    source = {d: s for s, d in perm}
    runs = _runs([source.get(d) for d in range(size)])
    if len(runs) > _MOST_SLICES:
        return _taken(x, source), 0
    rows = [
        full_like(slice_in_dim(x, 0, length), 0)
        if start is None
        else slice_in_dim(x, start, start + length)
        for start, length in runs
    ]
    return concatenate(rows, 0), 0


_MOST_SLICES = 8
"""Permutations of examples in more runs of neighbours than this are gathered."""


def _runs(sources: Sequence[int | None]) -> list[tuple[int | None, int]]:
    """Positions as runs of neighbours: their starts, None for those without, and their lengths.

    A rotation has two of them.
    """
    runs: list[tuple[int | None, int]] = []
    for source in sources:
        if runs:
            start, length = runs[-1]
            follows = source is None if start is None else source == start + length
            if follows:
                runs[-1] = start, length + 1
                continue
        runs.append((source, 1))
    return runs


def _taken(x: Array, source: Mapping[int, int]) -> Any:
    """Rows of `x`, each from the place that `source` gives; zeros where it gives none."""
    size = aval_of(x).shape[0]
    places = np.array([source.get(d, 0) for d in range(size)], np.int32)
    moved = index_take(x, (places,), (0,))
    if len(source) == size:
        return moved
    known = np.array([d in source for d in range(size)])
    return select(broadcast_in_dim(known, aval_of(x).shape, (0,)), moved, full_like(x, 0))


class PBroadcast(Collective, Primitive):
    """All devices get the block of the one at position `source`.

    Shapes: x: T[s] -> T[s].  Linear in x.
    """

    name = "pbroadcast"
    has_effects = False
    jvp = jvp_of_linear
    batch = batch_unary
    shard = rules.elementwise

    def abstract_eval(self, x: ShapedArray, *, axis_name: AxisName, source: int) -> ShapedArray:
        return x

    def lower(self, ctx: LoweringContext, x: Value, *, axis_name: AxisName, source: int) -> Any:
        axes = arguments.canonical_axes(self.name, axis_name)
        if ctx.platform not in arguments.GPUS:
            # XLA knows the instruction on GPUs only.
            return module.lower_function(ctx, lambda v: [_summed_from(v, axes, source)], x)[0]
        devices = ctx.module.device_axes
        groups = [
            [group[source], *(m for m in group if m != group[source])]
            for group in devices.groups(axes)
        ]
        attributes = {
            "replica_groups": stablehlo.dense(np.array(groups, np.int64)),
            **devices.channel(),
        }
        return ctx.op("stablehlo.collective_broadcast", [x], attributes)

    def impl(self, x: Array, **params: Any) -> Any:
        raise NotImplementedError(arguments.outside_text("lax.pbroadcast"))

    def transpose(
        self, ct: Array, x: UndefinedPrimal, *, axis_name: AxisName, source: int
    ) -> Cotangents:
        axes = arguments.canonical_axes(self.name, axis_name)
        return (_only_at(_psum_varying(ct, axes), axes, source),)


core_axes.crosses_processes.set(True, PBroadcast)


core_axes.makes_equal.set(True, PBroadcast)


@core_axes.batch_axis.rule(PBroadcast)
def _batch_axis_of_pbroadcast(
    primitive: PBroadcast,
    size: int,
    name: Hashable,
    args: Sequence[Array],
    dims: BatchDims,
    **params: Any,
) -> tuple[Any, Any]:
    around = arguments.around_batch("lax.pbroadcast", name, params)
    sizes = (around.outer, size, around.inner)
    outer, example, inner = np.unravel_index(params["source"], sizes)
    (x,), (b,) = args, dims
    own = x if b is None else index_in_dim(x, int(example), b, keepdims=False)
    if around.others:
        at = int(outer) * around.inner + int(inner)
        own = primitive.bind(own, axis_name=around.others, source=at)
    return own, None


def _only_at(x: Array, axes: Axes, source: int) -> Any:
    """`x` on the device at position `source`, zeros on the others."""
    here = axis_index(axes) == np.int32(source)
    return select(broadcast(here, aval_of(x).shape), x, full_like(x, 0))


def _psum_varying(x: Array, axes: Axes) -> Any:
    """The sum over devices, of which the types say nothing new."""
    if not aval_of(x).vma:
        return psum_p.bind(x, axes=axes, axis_index_groups=None)
    return casts.pvary_p.bind(casts.psum_invariant_p.bind(x, axes=axes), axes=axes)


_BITS = {dtypes.bit_width(dtype): dtype for dtype in dtypes.UNSIGNED}
"""The integers of as many bits as floats have."""


def _summed_from(x: Array, axes: Axes, source: int) -> Any:
    """The block at position `source`, as a sum of integers: in one of floats -0.0 becomes 0.0."""
    dtype = aval_of(x).dtype
    if dtype == np.bool_:
        as_int = _summed_from(x.astype(np.int32), axes, source)
        return as_int != np.int32(0)
    if dtypes.issubdtype(dtype, np.complexfloating):
        parts = (_summed_from(part, axes, source) for part in (unary.real(x), unary.imag(x)))
        return unary.complex(*parts)
    if dtypes.issubdtype(dtype, np.floating):
        bits = bitcast_convert_type_p.bind(x, new_dtype=_BITS[dtypes.bit_width(dtype)])
        total = _summed_from(bits, axes, source)
        return bitcast_convert_type_p.bind(total, new_dtype=dtype)
    return _psum_varying(_only_at(x, axes, source), axes)


ppermute_p = PPermute()
pbroadcast_p = PBroadcast()


@arguments.applied
def ppermute(x: Tree, axis_name: AxisName, perm: PermutationLike) -> Tree:
    """Sends blocks between the devices, or examples, of a named axis.

    Shapes: T[s] -> T[s]; who is nobody's destination gets zeros.
    Types:  varying to varying.

    Args:
        x: a tree of arrays.
        axis_name: a name, or names, of axes of vmap, pmap or shard_map; of several axes, positions
            are counted in the order of the mesh, whatever the order of the names.
        perm: pairs (source, destination) of positions.

    Raises:
        NameError: a name is not in scope.
        ValueError: a position is out of range, or a source or destination is named twice.

    Example:
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> pass_on = lambda x: lax.ppermute(x, "x", [(i, i + 1) for i in range(7)])
        >>> jax.shard_map(pass_on, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(jnp.arange(8) + 1)
        Array([0, 1, 2, 3, 4, 5, 6, 7], dtype=int32)
    """
    name = "lax.ppermute"
    axes = arguments.in_mesh_order(arguments.canonical_axes(name, axis_name))
    size = arguments.axes_size(name, axes)
    pairs = arguments.permutation(name, perm, size)
    if not axes:
        return x if pairs else arguments.map_leaves(lambda leaf: full_like(leaf, 0), x)

    def of_leaf(leaf: Array) -> Any:
        arguments.check_no_sums(name, leaf, axes)
        leaf = arguments.with_pvary(leaf, axes)
        return Application(ppermute_p, leaf, {"axis_name": axes, "perm": pairs})

    return arguments.map_leaves(of_leaf, x)


def pshuffle(x: Tree, axis_name: AxisName, perm: Sequence[int]) -> Tree:
    """The device at position i gets the block of the device at position `perm[i]`.

    Shapes: T[s] -> T[s].

    Args:
        x: a tree of arrays.
        axis_name: a name, or names, of axes of vmap, pmap or shard_map.
        perm: a permutation of 0, 1, … ; devices beyond its length get zeros.

    Raises:
        ValueError: `perm` is not a permutation.
        NameError: a name is not in scope.

    Example:
        >>> shuffle = jax.vmap(lambda x: lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")
        >>> shuffle(jnp.array([10, 20, 30]))
        Array([30, 10, 20], dtype=int32)
    """
    sources = [int(i) for i in perm]
    if sorted(sources) != list(range(len(sources))):
        problem = "perm must be a permutation."
        expected = f"each of 0 … {len(sources) - 1} once" if sources else "positions"
        fix = "lax.ppermute for blocks that go nowhere"
        error(ValueError, "lax.pshuffle", problem, got=str(sources), expected=expected, fix=fix)
    return ppermute(x, axis_name, [(source, i) for i, source in enumerate(sources)])


@arguments.applied
def pbroadcast(x: Tree, axis_name: AxisName, source: int) -> Tree:
    """All devices, or examples, of a named axis get the block of the one at position `source`.

    Shapes: T[s] -> T[s].
    Types:  varying to varying; a value that is the same everywhere is refused.

    Args:
        x: a tree of arrays.
        axis_name: a name, or names, of axes of vmap, pmap or shard_map.
        source: a position along the axis.

    Raises:
        NameError: a name is not in scope.
        ValueError: `source` is out of range, or the operand does not vary over the axes.

    Example:
        >>> jax.vmap(lambda x: lax.pbroadcast(x, "i", 1), axis_name="i")(jnp.array([10, 20, 30]))
        Array([20, 20, 20], dtype=int32)
    """
    name = "lax.pbroadcast"
    axes = arguments.canonical_axes(name, axis_name)
    size = arguments.axes_size(name, axes)
    found = int(source)
    if not -size <= found < size:
        expected = f"a position from 0 to {size - 1} along {axes}"
        error(ValueError, name, "source is out of range.", got=str(source), expected=expected)
    if not axes:
        return x
    params = {"axis_name": arguments.as_given(axis_name), "source": found % size}

    def of_leaf(leaf: Array) -> Any:
        arguments.check_no_sums(name, leaf, axes)
        return Application(pbroadcast_p, leaf, params)

    return arguments.map_leaves(of_leaf, x)


class OneSided(Collective, Primitive):
    """One end of messages between devices.  It has neither derivative nor batch, and no results
    where there are no devices.
    """

    def effects(self, *avals: Any, **params: Any) -> frozenset[Any]:
        return super().effects(*avals, **params) | {SingleSideCollectiveEffect()}

    def attributes(self, ctx: LoweringContext, axes: Axes, perm: Pairs) -> dict[str, Any]:
        """Who sends to whom.

        Raises:
            NotImplementedError: the platform has no such operation, or devices are replicas.
        """
        if ctx.platform not in arguments.GPUS:
            problem = "is implemented for GPUs only."
            got = f"a program for {ctx.platform}"
            fix = "lax.ppermute, which all platforms have"
            error(NotImplementedError, f"lax.{self.name}", problem, got=got, fix=fix)
        devices = ctx.module.device_axes
        channel = devices.channel()
        if not channel:
            problem = "is implemented inside of shard_map only."
            fix = "shard_map in place of pmap, or lax.ppermute"
            error(NotImplementedError, f"lax.{self.name}", problem, fix=fix)
        found = {
            "source_target_pairs": stablehlo.dense(arguments.pairs_of_devices(devices, axes, perm)),
            **channel,
        }
        if not ctx.module.partitioning.with_shardy:
            found["mhlo.sharding"] = stablehlo.string("{manual}")
        return found


dtypes.knows_extended.set(True, OneSided)
rules.constrains_results.set(False, OneSided)


class PSend(OneSided):
    """Sends the block of each source to its destination, which must receive it.

    Shapes: x: T[s] -> a token.
    """

    name = "psend"

    def abstract_eval(self, x: ShapedArray, *, axis_name: Axes, perm: Pairs) -> AbstractToken:
        return abstract_token

    def shard(self, avals: Avals, outs: Avals, **params: Any) -> PartitionSpec:
        return PartitionSpec()

    def lower(self, ctx: LoweringContext, x: Value, *, axis_name: Axes, perm: Pairs) -> Any:
        attributes = self.attributes(ctx, axis_name, perm)
        token = ctx.op("stablehlo.create_token", [])
        return ctx.op("stablehlo.send", [x, token], attributes)


@vma.vary.rule(PSend)
def _vary_of_psend(
    primitive: PSend, avals: Avals, outs: Avals, *, axis_name: Axes, perm: Pairs
) -> ManualAxisType:
    arguments.check_varying(primitive.name, avals[0], axis_name)
    return NOT_MANUAL


class PRecv(OneSided):
    """Receives a block on each destination; comes after what the token stands for.

    Shapes: a token -> T[s], as `out_shape` says.
    """

    name = "precv"

    def abstract_eval(
        self, token: object, *, axis_name: Axes, out_shape: ShapedArray, perm: Pairs
    ) -> ShapedArray:
        if not isinstance(token, AbstractToken):
            error(TypeError, "lax.precv", "the first operand must be a token.", got=str(token))
        return out_shape

    def shard(self, avals: Avals, outs: Avals, **params: Any) -> PartitionSpec:
        return rules.spec_of(outs[0])

    def lower(
        self, ctx: LoweringContext, token: Value, *, axis_name: Axes, perm: Pairs, **_: Any
    ) -> Any:
        attributes = self.attributes(ctx, axis_name, perm)
        types = [stablehlo.type_of(aval) for aval in (*ctx.avals_out, abstract_token)]
        return ctx.ops("stablehlo.recv", [token], attributes, types)[0]


@vma.vary.rule(PRecv)
def _vary_of_precv(
    primitive: PRecv, avals: Avals, outs: Avals, *, axis_name: Axes, **_: Any
) -> ManualAxisType:
    return manual_type({*core_axes.typed_among(axis_name), *outs[0].vma})


psend_p = PSend()
precv_p = PRecv()


def psend(x: Array, axis_name: AxisName, perm: PermutationLike) -> Any:
    """Sends blocks between devices, which receive them by `precv`.

    Types:     the operand varies over the axes.
    Lowers to: stablehlo.send, on GPUs only.

    Args:
        x: an array.
        axis_name: a name, or names, of mesh axes of shard_map.
        perm: pairs (source, destination) of positions, counted in the order of the mesh.

    Returns:
        A token for `precv`.

    Raises:
        NameError: a name is not in scope.
        ValueError: a position is out of range, or a source or destination is named twice.
        NotImplementedError: when the program is lowered for another platform than a GPU.

    Example:
        >>> def pass_on(x):
        ...     return lax.precv(lax.psend(x, "x", [(0, 1)]), x, "x", [(0, 1)])
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> f = jax.shard_map(pass_on, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        >>> jax.eval_shape(f, jnp.ones(8)).shape
        (8,)
    """
    axes, pairs = _ends("lax.psend", axis_name, perm)
    arguments.check_no_sums("lax.psend", x, axes)
    return psend_p.bind(arguments.with_pvary(x, axes), axis_name=axes, perm=pairs)


def precv(token: Any, out_shape: Any, axis_name: AxisName, perm: PermutationLike) -> Any:
    """Receives the blocks that devices have sent by `psend`.

    Types:     the result varies over the axes, and over those that `out_shape` varies over.
    Lowers to: stablehlo.recv, on GPUs only.

    Args:
        token: what `psend` returned, or another token.
        out_shape: anything with the shape and dtype of what is received.
        axis_name: a name, or names, of mesh axes of shard_map.
        perm: pairs (source, destination) of positions, counted in the order of the mesh.

    Raises:
        NameError: a name is not in scope.
        TypeError: `token` is none.
        ValueError: a position is out of range, or a source or destination is named twice.
        NotImplementedError: when the program is lowered for another platform than a GPU.

    Example:
        >>> def receive(x):
        ...     return lax.precv(lax.create_token(), x, "x", [(0, 1)])
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> f = jax.shard_map(receive, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        >>> jax.eval_shape(f, jnp.ones(8)).shape
        (8,)
    """
    axes, pairs = _ends("lax.precv", axis_name, perm)
    aval = ShapedArray(out_shape.shape, out_shape.dtype)
    varying = getattr(getattr(out_shape, "aval", out_shape), "vma", None) or ()
    if core_axes.are_typed():
        aval = aval.with_manual_type(manual_type(varying))
    return precv_p.bind(token, axis_name=axes, out_shape=aval, perm=pairs)


def _ends(name: str, axis_name: AxisName, perm: PermutationLike) -> tuple[Axes, Pairs]:
    axes = arguments.in_mesh_order(arguments.canonical_axes(name, axis_name))
    return axes, arguments.permutation(name, perm, arguments.axes_size(name, axes))
