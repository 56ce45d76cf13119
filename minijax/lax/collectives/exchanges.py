"""Every device sends a block to every other: `all_to_all`, `pswapaxes`, `ragged_all_to_all`.

Slices that `ragged_all_to_all` sends have lengths of their own.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NoReturn

import numpy as np

from minijax.core import axes as core_axes
from minijax.core import dtypes, printing, vma
from minijax.core.aval import AbstractValue, ShapedArray, aval_of
from minijax.core.errors import error
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Batched, Cotangents, Dual, Primitive, Tangents
from minijax.core.trace import current
from minijax.core.value_placement import ManualAxisType, manual_type
from minijax.interpreters import casts
from minijax.interpreters.jvp import UndefinedPrimal, is_linear, jvp_of_linear
from minijax.interpreters.structural import (
    instantiate,
    moveaxis,
    to_batch_dim,
    to_batch_dims,
    zeros,
)
from minijax.lax.binary import add, bitwise_and, clamp, eq, ge, lt, mul, select, sub
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
from minijax.lax.collectives.gathers import all_gather
from minijax.lax.creation import broadcasted_iota, convert_element_type, full, full_like, iota
from minijax.lax.families import Avals, BatchDims, Values
from minijax.lax.gather_numbers import ScatterDimensionNumbers
from minijax.lax.gather_scatter import scatter_add
from minijax.lax.reduction import reduce_max
from minijax.lax.shape import broadcast_in_dim, concatenate, expand_dims, reshape
from minijax.lax.slicing import dynamic_slice_in_dim, index_take, slice_in_dim
from minijax.lax.window_reduction import cumsum
from minijax.lowering import module, stablehlo
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.array import Array
from minijax.sharding import rules


class AllToAll(Collective, Primitive):
    """Cuts dimension `split_axis` into a block for each device, and joins those received.

    Shapes: x: T[s] -> T[s with `split_axis` n times shorter and `concat_axis` n times longer].
    Linear in x.
    """

    name = "all_to_all"
    jvp = jvp_of_linear

    def abstract_eval(
        self, x: ShapedArray, *, split_axis: int, concat_axis: int, axis_size: int, **_: Any
    ) -> ShapedArray:
        shape = list(x.shape)
        shape[split_axis] //= axis_size
        shape[concat_axis] *= axis_size
        return x.with_shape(tuple(shape)).strip_weak_type()

    def shard(
        self, avals: Avals, outs: Avals, *, split_axis: int, concat_axis: int, **_: Any
    ) -> PartitionSpec:
        if split_axis != concat_axis:
            rules.check_unsharded(self, avals, (split_axis, concat_axis))
        return rules.spec_of(avals[0])

    def lower(
        self,
        ctx: LoweringContext,
        x: Value,
        *,
        split_axis: int,
        concat_axis: int,
        axis_index_groups: Groups,
        axis_name: AxisName,
        axis_size: int,
        tiled: bool,
    ) -> Any:
        if axis_size == 1:
            return x
        devices = ctx.module.device_axes
        attributes = {
            "split_dimension": ctx.integer(split_axis),
            "concat_dimension": ctx.integer(concat_axis),
            "split_count": ctx.integer(axis_size),
            **devices.replica_groups(
                arguments.canonical_axes(self.name, axis_name), axis_index_groups
            ),
            **devices.channel(),
        }
        return ctx.ops("stablehlo.all_to_all", [x], attributes)[0]

    def transpose(
        self, ct: Array, x: UndefinedPrimal, *, split_axis: int, concat_axis: int, **params: Any
    ) -> Cotangents:
        return (self.bind(ct, split_axis=concat_axis, concat_axis=split_axis, **params),)

    def batch(self, size: int, args: Values, dims: BatchDims, **params: Any) -> Batched:
        (x,), (b,) = args, dims
        split_axis, concat_axis = params["split_axis"], params["concat_axis"]
        params["split_axis"] = split_axis + (split_axis >= b)
        params["concat_axis"] = concat_axis + (concat_axis >= b)
        return self.bind(x, **params), b

    def impl(self, x: Array, **params: Any) -> Any:
        raise RuntimeError(arguments.outside_text("lax.all_to_all"))


core_axes.crosses_processes.set(True, AllToAll)


printing.hidden_params.set(frozenset({"axis_size"}), AllToAll)


@core_axes.batch_axis.rule(AllToAll)
def _batch_axis_of_all_to_all(
    primitive: AllToAll, size: int, name: Hashable, args: Values, dims: BatchDims, **params: Any
) -> tuple[Any, int]:
    around = arguments.around_batch("lax.all_to_all", name, params)
    x = to_batch_dim(args[0], dims[0], 0, size)
    # The receivers in the batch become its second dimension, after the senders.
    at = params["split_axis"] + 1
    shape = aval_of(x).shape
    parts = (around.outer, size, around.inner * (shape[at] // params["axis_size"]))
    x = moveaxis(reshape(x, (*shape[:at], *parts, *shape[at + 1 :])), at + 1, 1)
    shape = aval_of(x).shape
    at += 1
    x = reshape(x, (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :]))
    concat_axis = params["concat_axis"] + 2
    if around.others:
        moved = {"split_axis": at, "concat_axis": concat_axis}
        x = primitive.bind(x, **params | around.params | moved)
    # Senders stand where their blocks are joined: those before the batch's, then its own.
    at = concat_axis
    shape = aval_of(x).shape
    x = reshape(x, (*shape[:at], around.outer, shape[at] // around.outer, *shape[at + 1 :]))
    x = moveaxis(x, 0, at)
    shape = (*shape[1:at], shape[at] * size, *shape[at + 1 :])
    return reshape(x, shape), 0


all_to_all_p = AllToAll()


@arguments.applied
def all_to_all(
    x: Tree,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: GroupsLike = None,
    tiled: bool = False,
) -> Tree:
    """Cuts an array into one block for each device, sends them there, and joins what is received.

    Shapes: T[s] -> T[s without `split_axis`, of the axes' size n, with a new dimension of size n at
        `concat_axis`]; `tiled`, `split_axis` is n times shorter and `concat_axis` n times longer.
    Types:  varying to varying.

    Args:
        x: a tree of arrays.
        axis_name: a name, or a tuple of names, of axes of vmap, pmap or shard_map.
        split_axis: the dimension that is cut; untiled, of the axes' size.
        concat_axis: where the blocks received are joined; untiled, a position among the dimensions
            that are left.
        axis_index_groups: lists of positions along the axis: blocks go within a group.
        tiled: whether both dimensions stay.

    Raises:
        NameError: a name is not in scope.
        ValueError: the dimension cannot be cut, is out of range, or groups have different sizes.

    Example:
        >>> turn = jax.vmap(lambda row: lax.all_to_all(row, "i", 0, 0), axis_name="i")
        >>> turn(jnp.array([[1, 2], [3, 4]]))
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    name = "lax.all_to_all"
    axes = arguments.canonical_axes(name, axis_name)
    if not axes:
        return x
    groups = arguments.canonical_groups(name, axis_index_groups, axes)
    size = arguments.group_size(name, axes, groups)

    def of_leaf(leaf: Array) -> Any:
        arguments.check_no_sums(name, leaf, axes)
        aval = aval_of(leaf)
        split = arguments.canonical_dim(name, "split_axis", split_axis, aval.ndim)
        concat = arguments.canonical_dim(name, "concat_axis", concat_axis, aval.ndim)
        arguments.check_block(name, "split_axis", aval, split, size, tiled=tiled)
        leaf = arguments.with_pvary(leaf, axes)
        params = {
            "axis_index_groups": groups,
            "axis_name": arguments.as_given(axis_name),
            "axis_size": size,
            "tiled": bool(tiled),
        }
        if tiled or split == concat:
            params |= {"split_axis": split, "concat_axis": concat}
            return Application(all_to_all_p, leaf, params)
        # A dimension of size 1 receives the stack; the dimension that is cut ends at size 1.
        at = concat + (split < concat)
        leaf = expand_dims(leaf, (at,))
        split += split >= at
        params |= {"split_axis": split, "concat_axis": at}
        return Application(all_to_all_p, leaf, params, (split,))

    return arguments.map_leaves(of_leaf, x)


def pswapaxes(
    x: Tree, axis_name: AxisName, axis: int, *, axis_index_groups: GroupsLike = None
) -> Tree:
    """Exchanges a dimension of an array with a named axis of the same size.

    Shapes: T[s] -> T[s]; `all_to_all` that cuts and joins the same dimension.

    Raises:
        NameError: a name is not in scope.
        ValueError: the dimension is not of the axis' size, or is out of range.

    Example:
        >>> swap = jax.vmap(lambda block: lax.pswapaxes(block, "i", 0), axis_name="i")
        >>> swap(jnp.array([[1, 2], [3, 4]]))
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


_SIZES = ("input_offsets", "send_sizes", "output_offsets", "recv_sizes")


class RaggedAllToAll(Collective, Primitive):
    """Overwrites rows of `output` by the slices of `operand` that the devices send to each other.

    Shapes: operand: T[n, s], output: T[m, s], and four of int[k]: where slices begin, how long they
    are, where they go on the receiver, how long those received are -> T[m, s].  Slices go in equal
    shares to the devices of a group, in its order.

    Linear in operand and output together.  The derivative by the operand counts an element once,
    to however many devices it is sent.
    """

    name = "ragged_all_to_all"

    def abstract_eval(
        self, operand: ShapedArray, output: ShapedArray, *sizes: ShapedArray, **params: Any
    ) -> ShapedArray:
        _check_arrays(operand, output)
        _check_sizes(sizes)
        return output.strip_weak_type()

    def shard(self, avals: Avals, outs: Avals, **params: Any) -> PartitionSpec:
        rules.check_unsharded(self, avals)
        return rules.spec_of(avals[1])

    def lower(
        self, ctx: LoweringContext, *values: Any, axis_name: Axes, axis_index_groups: Groups
    ) -> Any:
        arguments.check_equal_groups("lax.ragged_all_to_all", axis_index_groups)
        if ctx.platform not in arguments.GPUS:
            # XLA knows the instruction on GPUs and TPUs only.
            def composed(*args: Any) -> list[Any]:
                return [_composed(*args, axes=axis_name, groups=axis_index_groups)]

            return module.lower_function(ctx, composed, *values)[0]
        devices = ctx.module.device_axes
        config = devices.replica_groups(axis_name, axis_index_groups)
        if devices.channel():
            config["channel_id"] = ctx.integer(1)
        attributes = {
            "call_target_name": ctx.string(self.name),
            "api_version": stablehlo.integer(4, 32),
            "backend_config": stablehlo.dictionary(config),
        }
        return ctx.op("stablehlo.custom_call", values, attributes)

    def jvp(self, primals: Values, tangents: Tangents, **params: Any) -> Dual:
        out = self.bind(*primals, **params)
        dots = map(instantiate, tangents[:2])
        return out, self.bind(*dots, *primals[2:], **params)

    def transpose(
        self,
        ct: Array,
        operand: Array,
        output: Array,
        starts: Array,
        sizes: Any,
        targets: Array,
        received: Array,
        **params: Any,
    ) -> Cotangents:
        # Where on this device the slices went that the others sent.
        written = _exchanged(targets, **params)
        back: list[Any] = [None, None]
        if is_linear(operand):
            origins = _exchanged(starts, **params)
            wanted = operand.aval.cotangent_aval()
            back[0] = self.bind(ct, zeros(wanted), written, received, origins, sizes, **params)
        if is_linear(output):
            kept = _outside(written, received, aval_of(ct).shape[0])
            mask = broadcast_in_dim(kept, aval_of(ct).shape, (0,))
            back[1] = select(mask, ct, full_like(ct, 0))
        return (*back, None, None, None, None)

    def batch(
        self, size: int, args: Values, dims: BatchDims, *, axis_name: Axes, **params: Any
    ) -> Batched:
        arrays, numbers = args[:2], args[2:]
        if all(d is None for d in dims[2:]):
            # Slices are of rows, and a row may as well hold those of all examples.
            inner = [to_batch_dim(x, d, 1, size) for x, d in zip(arrays, dims, strict=False)]
            return self.bind(*inner, *numbers, axis_name=axis_name, **params), 1
        folded = [_folded(to_batch_dim(x, d, 0, size)) for x, d in zip(arrays, dims, strict=False)]
        columns = to_batch_dims(numbers, dims[2:], 0, size)
        rows = [aval_of(x).shape[0] // size for x in folded]
        shifts = [rows[0], 0, rows[1], 0]
        members = arguments.group_size(self.name, axis_name, params["axis_index_groups"])
        wide = [_by_device(x, s, members) for x, s in zip(columns, shifts, strict=True)]
        out = self.bind(*folded, *wide, axis_name=axis_name, **params)
        return reshape(out, (size, rows[1], *aval_of(out).shape[1:])), 0

    def impl(self, *args: Any, **params: Any) -> Any:
        raise RuntimeError(arguments.outside_text("lax.ragged_all_to_all"))


@vma.vary.rule(RaggedAllToAll)
def _vary_of_ragged_all_to_all(
    primitive: RaggedAllToAll, avals: Avals, outs: Avals, *, axis_name: Axes, **_: Any
) -> ManualAxisType:
    for aval in avals[:2]:
        arguments.check_varying(primitive.name, aval, axis_name)
    return manual_type(frozenset().union(*(vma.of(aval).varying for aval in avals)))


@core_axes.batch_axis.rule(RaggedAllToAll)
def _batch_axis_of_ragged_all_to_all(
    primitive: RaggedAllToAll, size: int, name: Hashable, *_: Any, **params: Any
) -> NoReturn:
    problem = "is not implemented along an axis of vmap."
    got = f"axis {name!r}, of vmap"
    fix = "shard_map or pmap over devices"
    error(NotImplementedError, "lax.ragged_all_to_all", problem, got=got, fix=fix)


ragged_all_to_all_p = RaggedAllToAll()


def _check_arrays(operand: AbstractValue, output: AbstractValue) -> None:
    fits = operand.ndim and operand.shape[1:] == output.shape[1:] and output.ndim == operand.ndim
    if not fits or operand.dtype != output.dtype:
        problem = "rows of operand do not fit into output."
        got = {"operand": operand, "output": output}
        expected = "one dtype, and equal dimensions but for the first"
        error(ValueError, "lax.ragged_all_to_all", problem, got=got, expected=expected)


def _check_sizes(sizes: Sequence[AbstractValue]) -> None:
    for name, aval in zip(_SIZES, sizes, strict=True):
        if not dtypes.issubdtype(aval.dtype, np.integer):
            error(
                ValueError, "lax.ragged_all_to_all", f"{name} must be integers.", got={name: aval}
            )
        if aval.ndim != 1 or not aval.size:
            problem = f"{name} must have one dimension, which is not empty."
            expected = "a number for each slice that is sent"
            error(ValueError, "lax.ragged_all_to_all", problem, got={name: aval}, expected=expected)
    if len({aval.shape for aval in sizes}) > 1:
        problem = "offsets and sizes must be of one length."
        got = dict(zip(_SIZES, sizes, strict=True))
        expected = "a number for each slice that is sent"
        error(ValueError, "lax.ragged_all_to_all", problem, got=got, expected=expected)


def _exchanged(numbers: Array, axis_name: Axes, axis_index_groups: Groups) -> Any:
    """What the other devices know about the slices that they have sent here."""
    return all_to_all(numbers, axis_name, 0, 0, axis_index_groups=axis_index_groups, tiled=True)


def _outside(starts: Array, sizes: Any, length: int) -> Any:
    """Which of `length` positions no interval covers: intervals may be empty, and overlap."""
    starts, sizes = (convert_element_type(x, np.int32) for x in (starts, sizes))
    ends = add(starts, sizes)
    count = aval_of(starts).shape[0]
    # One more interval is open from each start, one less from each end.
    changes = concatenate([full((count,), 1, np.int32), full((count,), -1, np.int32)], 0)
    positions = reshape(concatenate([starts, ends], 0), (2 * count, 1))
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    marks = scatter_add(full((length + 1,), 0, np.int32), positions, changes, numbers, mode="drop")
    return eq(cumsum(slice_in_dim(marks, 0, length)), full((length,), 0, np.int32))


def _folded(x: Array) -> Any:
    """A batch of rows as rows."""
    shape = aval_of(x).shape
    return reshape(x, (shape[0] * shape[1], *shape[2:]))


def _by_device(numbers: Array, shift: int, members: int) -> Any:
    """Numbers of a batch, (example, slice), as one row in which those for one device are adjacent.

    Those of example i are raised by i * `shift`.
    """
    size, count = aval_of(numbers).shape
    if shift:
        dtype = aval_of(numbers).dtype
        examples = mul(iota(dtype, size), np.asarray(shift, dtype)[()])
        numbers = add(numbers, broadcast_in_dim(examples, (size, count), (0,)))
    parts = reshape(numbers, (size, members, count // members))
    return reshape(moveaxis(parts, 0, 1), (size * count,))


def _composed(
    operand: Array,
    output: Array,
    starts: Array,
    sizes: Any,
    targets: Array,
    received: Array,
    *,
    axes: Axes,
    groups: Groups,
) -> Any:
    """The operation as a gather of everything, of which each device picks its rows."""
    length, rows = aval_of(output).shape[0], aval_of(operand).shape[0]
    if not length or not rows:
        return output
    everything = _folded(all_gather(operand, axes, axis_index_groups=groups))
    own = [_for_this_device(x, axes, groups) for x in (starts, sizes, targets)]
    senders, count = aval_of(own[0]).shape
    starts, sizes, targets = (reshape(x, (senders * count,)) for x in own)
    # Row p of the output is row p + shift of what all hold, if the slice covers it.
    first_rows = np.repeat(np.arange(senders, dtype=np.int32) * np.int32(rows), count)
    shifts = sub(add(starts, first_rows), targets)
    shape = (senders * count, length)
    row = broadcasted_iota(np.int32, shape, 1)
    order = broadcasted_iota(np.int32, shape, 0)
    begin, end, shift = (
        broadcast_in_dim(x, shape, (0,)) for x in (targets, add(targets, sizes), shifts)
    )
    covered = bitwise_and(ge(row, begin), lt(row, end))
    # Of slices that overlap, the last one is seen.
    nobody = full(shape, -1, np.int32)
    last = reduce_max(select(covered, order, nobody), (0,))
    is_last = eq(order, broadcast_in_dim(last, shape, (1,)))
    source = reduce_max(select(is_last, add(row, shift), nobody), (0,))
    source = clamp(np.int32(0), source, np.int32(aval_of(everything).shape[0] - 1))
    picked = index_take(everything, (source,), (0,))
    is_written = ge(last, full_like(last, 0))
    return select(broadcast_in_dim(is_written, aval_of(output).shape, (0,)), picked, output)


def _for_this_device(numbers: Array, axes: Axes, groups: Groups) -> Any:
    """Of what all devices say about their slices, (sender, slice), what concerns this one."""
    numbers = convert_element_type(numbers, np.int32)
    everything = all_gather(numbers, axes, axis_index_groups=groups)
    members, count = aval_of(everything).shape
    share = count // members
    start = mul(_position(axes, groups), np.int32(share))
    return dynamic_slice_in_dim(everything, start, share, 1)


def _position(axes: Axes, groups: Groups) -> Any:
    """Where this device is in its group."""
    index = axis_index(axes)
    if groups is None:
        return index
    positions = {member: i for group in groups for i, member in enumerate(group)}
    table = np.array([positions[i] for i in range(len(positions))], np.int32)
    mine = eq(iota(np.int32, len(table)), broadcast_in_dim(index, (len(table),), ()))
    return reduce_max(select(mine, table, np.zeros_like(table)), (0,))


def ragged_all_to_all(
    operand: Array,
    output: Array,
    input_offsets: Any,
    send_sizes: Any,
    output_offsets: Any,
    recv_sizes: Any,
    *,
    axis_name: AxisName,
    axis_index_groups: GroupsLike = None,
) -> Array:
    """Sends slices of rows, of lengths that are known at run time only, between all devices.

    Slice i of a device goes to device `i // (k // n)` of the n, k being how many there are: rows
    from `input_offsets[i]`, `send_sizes[i]` of them, to the rows of the receiver's output from
    `output_offsets[i]`.

    Shapes:     operand: T[n, s], output: T[m, s], the others int[k] -> T[m, s].
    Types:      operand and output vary over the axes, and so does the result.
    Derivative: linear in operand and output; what is written over has none.
    Lowers to:  a custom call on GPUs; elsewhere a gather, of which each device picks its rows.

    Args:
        operand: rows to send.
        output: rows that are overwritten where something is received.
        input_offsets: where in `operand` each slice begins.
        send_sizes: how long each slice is.
        output_offsets: where each slice goes on its receiver.
        recv_sizes: how long the slices are that this device receives, in the order of the senders:
            `all_to_all(send_sizes, tiled=True)`.
        axis_name: a name, or a tuple of names, of axes of pmap or shard_map.
        axis_index_groups: lists of positions along the axis: slices go within a group.

    Raises:
        NameError: a name is not in scope.
        ValueError: shapes or dtypes do not fit, numbers of slices cannot be shared by the devices
            equally, or groups have different sizes.
        NotImplementedError: along an axis of vmap.
        RuntimeError: outside of any map.

    Example:
        >>> def turn(x):
        ...     to, ones = jnp.arange(8), jnp.ones(8, jnp.int32)
        ...     place = jnp.full(8, lax.axis_index("x"))
        ...     return lax.ragged_all_to_all(x, 0 * x, to, ones, place, ones, axis_name="x")
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> out = jax.shard_map(turn, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(jnp.arange(64))
        >>> out[:8]
        Array([ 0,  8, 16, 24, 32, 40, 48, 56], dtype=int32)
    """
    name = "lax.ragged_all_to_all"
    axes = arguments.canonical_axes(name, axis_name)
    groups = arguments.canonical_groups(name, axis_index_groups, axes)
    members = arguments.group_size(name, axes, groups)
    args = (operand, output, input_offsets, send_sizes, output_offsets, recv_sizes)
    avals = list(map(aval_of, args))
    _check_arrays(*avals[:2])
    _check_sizes(avals[2:])
    if avals[2].size % members:
        problem = f"{avals[2].size} slices cannot be shared equally by {members} devices."
        got = dict(zip(_SIZES, avals[2:], strict=True))
        expected = f"a multiple of {members}: as many slices for each device"
        error(ValueError, name, problem, got=got, expected=expected)
    for x in args:
        arguments.check_no_sums(name, x, axes)
    over = frozenset(core_axes.typed_among(axes)).union(*(aval.vma for aval in avals))
    arrays = [casts.varied(current.value, x, over) for x in args[:2]] if over else args[:2]
    return ragged_all_to_all_p.bind(*arrays, *args[2:], axis_name=axes, axis_index_groups=groups)
