"""Shardings inside programs: propagation by dimension numbers, and `with_sharding_constraint`.

Input: types of operands, and dimension numbers.  Output: the specs of the results of products,
gathers and scatters, whose dimensions are matched by number.

`with_sharding_constraint` says where a value inside a program lives.  The primitive holds a
sharding; one on an abstract mesh names no devices, so that the program runs on any that its
arguments bring.

Devices of the host lose NaNs where they combine extrema, and the sign of zeros where one device
holds an element and the others add zeros.  What stands in for such a combination is at the end.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from minijax.core import dtypes, meshes, tree, tree_errors
from minijax.core.aval import AbstractValue, Shape, ShapedArray, aval_of
from minijax.core.errors import error
from minijax.core.meshes import UNCONSTRAINED, PartitionSpec, names_of
from minijax.core.primitive import Batched, Cotangents, Primitive
from minijax.core.trace import Tracer
from minijax.interpreters import named_batching
from minijax.interpreters.jvp import UndefinedPrimal, jvp_of_linear
from minijax.interpreters.structural import full
from minijax.lax import binary, creation
from minijax.lax.families import Avals, Values
from minijax.lax.gather_numbers import GatherDimensionNumbers, ScatterDimensionNumbers
from minijax.lowering import device_assignment, relocation
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.array import Array, array_from_host, is_array, physical_aval
from minijax.runtime.callbacks import types_of_bits
from minijax.sharding import contexts, hlo, rules
from minijax.sharding.base import Sharding
from minijax.sharding.named import GSPMDSharding, NamedSharding, has_open_dims, is_abstract

Dims = tuple[int, ...]
ProductNumbers = tuple[tuple[Dims, Dims], tuple[Dims, Dims]]


def product_spec(primitive: Primitive, avals: Avals, numbers: ProductNumbers) -> PartitionSpec:
    """The spec of a product: free dimensions keep their axes, summed ones need to be clear.

    Raises:
        ShardingTypeError: both sides of a sum are split, so that the result could be added up or
            not; or in different ways.
    """
    (left_sum, right_sum), (left_batch, right_batch) = numbers
    left, right = map(rules.spec_of, avals)
    for i, j in zip(left_sum, right_sum, strict=True):
        if left[i] is not None and right[j] is not None:
            _refuse_sum(primitive, avals, left[i], right[j])
    batch = [
        rules.join_entries(primitive, avals, dim, (left[i], right[j]))
        for dim, (i, j) in enumerate(zip(left_batch, right_batch, strict=True))
    ]
    free = [e for d, e in enumerate(left) if d not in left_sum and d not in left_batch]
    free += [e for d, e in enumerate(right) if d not in right_sum and d not in right_batch]
    _check_operands(primitive, avals)
    return PartitionSpec(*batch, *free)


def _refuse_sum(primitive: Primitive, avals: Avals, left: Array, right: Array) -> None:
    if left != right:
        raise rules.refusal(
            primitive.name,
            f"a summed dimension is split over {left!r} on the left and {right!r} on the right.",
            avals,
            fix=rules.RESHARD,
        )
    raise rules.refusal(
        primitive.name,
        f"both sides of a sum are split over {left!r}: it is ambiguous how the result shall be "
        "split, and whether its summands shall be added up.",
        avals,
        fix=f"{rules.OUT_SHARDING}, which may be unreduced over {left!r}",
    )


def _check_operands(primitive: Primitive, avals: Avals) -> None:
    for aval, other in (avals, reversed(avals)):
        spec = rules.spec_of(aval)
        if spec.unreduced:
            raise rules.refusal(
                primitive.name,
                "an operand is unreduced: devices hold summands of it.",
                avals,
                fix="add them up: reshard(x, spec) with a spec without unreduced",
            )
        if not spec.reduced <= set(rules.spec_of(other).names()):
            raise rules.refusal(
                primitive.name,
                "an operand is reduced over axes that do not split the other operand.",
                avals,
                fix=rules.RESHARD,
            )


def check_summands(
    primitive: Primitive, avals: Avals, numbers: ProductNumbers, wanted: PartitionSpec
) -> None:
    """Refuses a product that shall be unreduced over axes which do not split its sums.

    Raises:
        ShardingTypeError: an axis does not split both sides of a summed dimension.
    """
    _check_operands(primitive, avals)
    (left_sum, right_sum), _ = numbers
    left, right = map(rules.spec_of, avals)
    summed = {
        name
        for i, j in zip(left_sum, right_sum, strict=True)
        if left[i] == right[j]
        for name in names_of(left[i])
    }
    if not wanted.unreduced <= summed:
        raise rules.refusal(
            primitive.name,
            "the result can be unreduced only over axes that split both sides of a sum.",
            avals,
            got=f"out_sharding {wanted}",
            fix="leave other axes out of unreduced",
        )


def gathered_spec(
    primitive: Primitive, avals: Avals, numbers: GatherDimensionNumbers, slice_sizes: Shape
) -> PartitionSpec:
    """The spec of a gather: dimensions of the indices, and those of the operand taken whole.

    Raises:
        ShardingTypeError: the operand is split in a dimension of which parts are taken.
    """
    x, indices = avals
    source, places = map(rules.spec_of, avals)
    batching = dict(
        zip(numbers.start_indices_batching_dims, numbers.operand_batching_dims, strict=True)
    )
    instead = ", or x.at[index].get(out_sharding=spec)"
    _check_whole(primitive, avals, slice_sizes, numbers.operand_batching_dims, instead)
    gone = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    kept = iter([e for d, e in enumerate(source) if d not in gone])
    outer = iter(
        [
            rules.join_entries(
                primitive, avals, d, [places[d], source[batching[d]] if d in batching else None]
            )
            for d in range(indices.ndim - 1)
        ]
    )
    rank = x.ndim - len(gone) + indices.ndim - 1
    return PartitionSpec(*[next(kept if d in numbers.offset_dims else outer) for d in range(rank)])


def scattered_spec(
    primitive: Primitive, avals: Avals, numbers: ScatterDimensionNumbers, windows: Shape
) -> PartitionSpec:
    """The spec of a scatter: that of the operand, joined with whole windows of the updates.

    Raises:
        ShardingTypeError: the operand is split in a dimension of which parts are written.
    """
    x, _, updates = avals
    target, places, written = map(rules.spec_of, avals)
    instead = ", or x.at[index].set(y, out_sharding=spec) and the like"
    _check_whole(primitive, avals, windows, numbers.operand_batching_dims, instead)
    gone = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    outer = [d for d in range(updates.ndim) if d not in numbers.update_window_dims]
    sources: dict[int, list[Any]] = {d: [target[d]] for d in range(x.ndim)}
    kept = [d for d in range(x.ndim) if d not in gone]
    for d, u in zip(kept, numbers.update_window_dims, strict=True):
        if windows[d] == x.shape[d]:
            sources[d].append(written[u])
    for d, i in zip(
        numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True
    ):
        sources[d] += [places[i], written[outer[i]]]
    entries = [rules.join_entries(primitive, avals, d, found) for d, found in sources.items()]
    return PartitionSpec(*entries)


def _check_whole(
    primitive: Primitive, avals: Avals, sizes: Shape, along: Iterable[int], instead: str
) -> None:
    parts = [d for d, (n, size) in enumerate(zip(avals[0].shape, sizes, strict=True)) if n != size]
    dims = [d for d in parts if d not in along]
    rules.check_unsharded(primitive, avals[:1], dims, instead)


T = TypeVar("T")


class ShardingConstraint(Primitive):
    """Places `x` as `sharding` says; the values do not change.

    Shapes: x: T[s] -> T[s].  Linear in x.  Dimensions that are UNCONSTRAINED are left to the
    compiler, as are the batch dimensions that `vmap` adds without `spmd_axis_name`.
    """

    name = "sharding_constraint"
    jvp = jvp_of_linear
    shard = rules.elementwise

    def impl(self, x: Array, *, sharding: Sharding) -> Array:
        if not is_array(x):
            x = array_from_host(x, aval_of(x))
        return relocation.placed(x, _without_open_dims(x, _with_devices_of(x, sharding)))

    def abstract_eval(self, x: ShapedArray, *, sharding: Sharding) -> ShapedArray:
        return x

    def lower(self, ctx: LoweringContext, x: Value, *, sharding: Sharding) -> Any:
        return ctx.module.partitioning.constrained(
            ctx, x, sharding, physical_aval(ctx.avals_in[0]).ndim
        )

    def transpose(self, ct: Array, x: UndefinedPrimal, *, sharding: Sharding) -> Cotangents:
        return (self.bind(ct, sharding=sharding),)

    def batch(self, size: int, args: Values, dims: Sequence[int], *, sharding: Sharding) -> Batched:
        if isinstance(sharding, NamedSharding):
            wide = with_batch_dim(self.name, sharding, dims[0], UNCONSTRAINED)
            return self.bind(args[0], sharding=wide), dims[0]
        tiling = sharding.tiling(aval_of(args[0]).ndim - 1).with_whole_dim(dims[0])
        wider = GSPMDSharding(sharding.device_assignment, hlo.of_tiling(tiling))
        return self.bind(args[0], sharding=wider), dims[0]


dtypes.knows_extended.set(True, ShardingConstraint)
rules.constrains_results.set(False, ShardingConstraint)


@device_assignment.names_placement.rule(ShardingConstraint)
def _names_placement_of_sharding_constraint(primitive: ShardingConstraint, *, sharding: Any) -> Any:
    return sharding


sharding_constraint_p = ShardingConstraint()


def with_batch_dim(
    name: str, sharding: NamedSharding, dim: int, otherwise: object = None
) -> NamedSharding:
    """The placement of a batch along `dim`: over the axes that `vmap` was told, or `otherwise`.

    Raises:
        ValueError: `vmap` was told an axis that the mesh does not have, or that the spec uses.
    """
    axes = named_batching.spmd_axes()
    used = {*sharding.spec.names(), *sharding.spec.unreduced, *sharding.spec.reduced}
    for axis in axes:
        missing = axis not in sharding.mesh.axis_names
        if missing or axis in used:
            problem = "is no axis of the mesh" if missing else "splits another dimension already"
            error(
                ValueError,
                "vmap",
                f"spmd_axis_name: {axis!r} {problem} in a {name} inside.",
                got=f"{sharding.spec} on {sharding.mesh}",
                expected="an axis of the mesh that is free for the batch",
            )
    return sharding.with_spec(sharding.spec.inserted(dim, axes or otherwise))


def _with_devices_of(x: Array, sharding: Any) -> Sharding:
    """The placement outside of programs: on the array's own devices, if it names none."""
    if not is_abstract(sharding):
        return sharding
    own = x.sharding
    context = contexts.current_devices_mesh()
    if context is not None and not x.committed:
        return NamedSharding(context, sharding.spec, memory_kind=sharding.memory_kind)
    if not isinstance(own, NamedSharding):
        problem = "an abstract mesh takes its devices from the array, which has no mesh."
        got = f"{x.aval} with {own}"
        expected = "an array with a NamedSharding"
        fix = "place it first: minijax.device_put(x, NamedSharding(mesh, spec))"
        error(TypeError, "with_sharding_constraint", problem, got=got, expected=expected, fix=fix)
    if own.mesh.shape_tuple != sharding.mesh.shape_tuple:
        error(
            ValueError,
            "with_sharding_constraint",
            "the array's mesh has another shape than that of the constraint.",
            got=f"an array on {own.mesh}",
            expected=str(sharding.mesh),
        )
    return NamedSharding(own.mesh, sharding.spec, memory_kind=sharding.memory_kind)


def _without_open_dims(x: Array, sharding: Sharding) -> Sharding:
    """The placement outside of programs: open dimensions stay split as they are."""
    if not isinstance(sharding, NamedSharding) or not has_open_dims(sharding.spec):
        return sharding
    own = x.sharding
    used = frozenset(sharding.spec.names())
    given: Sequence[Any] = ((),) * x.ndim
    if isinstance(own, NamedSharding) and own.mesh is sharding.mesh:
        given = own.spec.dims(x.ndim)
    entries = [
        tuple(n for n in names if n not in used) if entry is UNCONSTRAINED else entry
        for names, entry in zip(given, sharding.spec, strict=False)
    ]
    while entries and not entries[-1]:
        entries.pop()
    return sharding.with_spec(sharding.spec.with_entries(entries))


def with_sharding_constraint(x: T, shardings: object) -> T:
    """Constrains the shardings of a tree of arrays; inside `jit` the compiler keeps to them.

    Args:
        x: a tree of arrays.
        shardings: a sharding, a `PartitionSpec` for the mesh in force, or a tree prefix of
            such; None leaves a part of the tree as it is.

    Raises:
        ValueError: a dimension cannot be cut into equal parts, or a spec is longer than the rank.
        RuntimeError: a `PartitionSpec` was given and there is no mesh.
        TypeError: a leaf of `shardings` is neither a sharding nor a spec.

    Example:
        >>> mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        >>> spread = jax.NamedSharding(mesh, jax.P("x"))
        >>> f = jax.jit(lambda x: lax.with_sharding_constraint(2 * x, spread))
        >>> f(jnp.arange(8)).sharding.spec
        P('x',)
    """
    leaves, treedef = tree.flatten(x)
    user = "with_sharding_constraint"
    prefix = tree.broadcast_prefix(
        shardings, x, is_leaf=tree.is_none, user=user, first="shardings", second="x"
    )
    outs = [
        _constrain(leaf, target, functools.partial(tree_errors.leaf_name, user, "x", treedef, i))
        for i, (leaf, target) in enumerate(zip(leaves, prefix, strict=True))
    ]
    return tree.unflatten(treedef, outs)


def _check_type(aval: AbstractValue, wanted: NamedSharding) -> None:
    if rules.shown(wanted, aval.ndim) != aval.split:
        error(
            AssertionError,
            "with_sharding_constraint",
            "the array is split otherwise; where types show shardings, constraints only "
            "assert them.",
            got=aval.str_short(),
            expected=str(wanted.spec),
            fix="sharding.reshard(x, spec) to split it so",
        )


def _check_not_manual(target: NamedSharding) -> None:
    manual = meshes.get_abstract_mesh().manual_axes
    named_axes = [name for name in target.spec.names() if name in manual]
    if named_axes:
        error(
            ValueError,
            "with_sharding_constraint",
            f"the function is written per device of {meshes.names_text(named_axes)}, along "
            "which nothing is left to split.",
            got=str(target.spec),
            expected="axes that shard_map leaves to the compiler",
        )


def _constrain(x: Array, target: object, what: Callable[[], str]) -> Any:
    if target is None:
        return x
    aval = aval_of(x)
    eager = not isinstance(x, Tracer)
    if isinstance(target, PartitionSpec):
        resolve = contexts.resolve if eager else contexts.resolve_for_tracing
        target = resolve(target, "with_sharding_constraint")
    elif not isinstance(target, Sharding):
        got = f"{target!r} of type {type(target).__name__}"
        expected = "a NamedSharding, or a PartitionSpec under a mesh"
        error(TypeError, "with_sharding_constraint", "not a placement.", got=got, expected=expected)
    if isinstance(target, NamedSharding):
        _check_not_manual(target)
    target.check_fits(aval.shape, what)
    if isinstance(target, NamedSharding) and target.mesh.are_all_axes_explicit:
        _check_type(aval, target)
        if target.mesh.abstract_mesh is meshes.get_abstract_mesh():
            return x
    if eager and is_abstract(target) and not is_array(x):
        error(
            ValueError,
            "with_sharding_constraint",
            "an abstract mesh takes its devices from the array, and this is none.",
            got=f"{type(x).__name__}: {aval}",
            fix="place it first: minijax.device_put(x, NamedSharding(mesh, spec))",
        )
    return sharding_constraint_p.bind(x, sharding=target)


# What chooses one of two elements, and which limit of the integers a NaN is there.
_EXTREMA = {"stablehlo.maximum": "max", "stablehlo.minimum": "min"}
_KEYS: dict[int, np.dtype[Any]] = {
    2: np.dtype(np.int16),
    4: np.dtype(np.int32),
    8: np.dtype(np.int64),
}


def drops_nan(ctx: LoweringContext, op: str, dtype: np.dtype[Any], devices: int) -> bool:
    """Whether devices that combine floats by `op` would lose NaNs: those of the host do."""
    is_extremum = op in _EXTREMA and dtypes.issubdtype(dtype, np.floating)
    return is_extremum and ctx.platform == "cpu" and devices > 1


def by_keys(op: str, function: Callable[..., Any], *floats: Any) -> Any:
    """An extremum of floats as that of integers of the same order, in which NaN is extreme.

    Args:
        op: the StableHLO operation that chooses one of two elements.
        function: what does so for arrays of integers.
        floats: its operands, of one dtype.
    """
    dtype = floats[0].dtype
    # The least floats differ in what they do with the sign; float32 holds all their values.
    wide = dtype if dtype.itemsize > 1 else np.dtype(np.float32)
    bits = _KEYS[wide.itemsize]
    limits = dtypes.iinfo(bits)
    last = getattr(limits, _EXTREMA[op])

    def same_order(x: Any) -> Any:
        # Magnitudes of negative numbers count down.  The map is its own inverse, and both limits
        # of the integers are NaNs.
        sign = binary.shift_right_arithmetic(x, np.asarray(8 * bits.itemsize - 1, bits)[()])
        return binary.bitwise_xor(x, binary.bitwise_and(sign, np.asarray(limits.max, bits)[()]))

    def key(x: Any) -> Any:
        x = creation.convert_element_type(x, wide)
        keys = same_order(creation.bitcast_convert_type(x, bits))
        return binary.select(binary.ne(x, x), full(keys.shape, last, bits), keys)

    chosen = same_order(function(*map(key, floats)))
    return creation.convert_element_type(creation.bitcast_convert_type(chosen, wide), dtype)


def chosen(ctx: LoweringContext, x: Value, choose: Callable[[Value, Any], Any]) -> Any:
    """Elements of the first operand that `choose(x, type)` takes: where devices do so, by bits.

    A device of the host that does not hold an element adds a zero, which makes 0.0 of -0.0.
    """
    operand, out = ctx.avals_in[0], ctx.avals_out[0]
    bits = types_of_bits(operand)
    # Terms of a sum are no bits: devices add them up later.
    is_sum = operand.split is not None and operand.split.spec.unreduced
    stays = ctx.platform != "cpu" or ctx.module.partitioning.partitions == 1 or is_sum
    if stays or operand.manual_axis_type.unreduced or bits == [operand]:
        return choose(x, None)
    parts = [x]
    if len(bits) == 2:
        part = ctx.type_of(operand.update(dtype=dtypes.finfo(operand.dtype).dtype))
        parts = [ctx.op(f"stablehlo.{name}", [x], None, part) for name in ("real", "imag")]
    given = [ctx.op("stablehlo.bitcast_convert", [x], None, ctx.type_of(bits[0])) for x in parts]
    there = ctx.type_of(types_of_bits(out)[0])
    return from_bits(ctx, [choose(x, there) for x in given], out)


def from_bits(ctx: LoweringContext, bits: Sequence[Value], aval: ShapedArray) -> Any:
    """The value that `types_of_bits` describes."""
    if bits[0].type == ctx.type_of(aval):
        return bits[0]
    part = ctx.type_of(aval.update(dtype=dtypes.finfo(aval.dtype).dtype))
    parts = [ctx.op("stablehlo.bitcast_convert", [x], None, part) for x in bits]
    whole = ctx.type_of(aval)
    return parts[0] if len(parts) == 1 else ctx.op("stablehlo.complex", parts, None, whole)
