"""Reductions over devices: `psum`, `pmean`, `pmax`, `pmin`, `pargmax`, `pargmin`."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np

from minijax.core import axes as core_axes
from minijax.core import dtypes, tree, vma
from minijax.core.aval import Shape, ShapedArray, aval_of
from minijax.core.errors import error
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Batched, Cotangents, Primitive
from minijax.core.trace import Tracer
from minijax.core.value_placement import manual_type
from minijax.interpreters import casts
from minijax.interpreters.jvp import UndefinedPrimal, jvp_of_linear
from minijax.interpreters.structural import broadcast_in_dim, check_axes, moveaxis, reduce_sum
from minijax.lax.binary import eq, select
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
from minijax.lax.creation import convert_element_type
from minijax.lax.families import Avals, BatchDims, Values
from minijax.lax.reduction import highest, lowest, reduce_max, reduce_min
from minijax.lax.shape import broadcast
from minijax.lax.shardings import by_keys, drops_nan
from minijax.lowering import module, stablehlo
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.array import Array
from minijax.sharding import rules


class AllReduce(Collective, Primitive):
    """Combines what the devices of the axes hold; all of them get the result.

    Shapes: x: T[s] -> T[s without the axes that are ints].  Axes that are ints are dimensions,
    which are reduced first.
    """

    axis_param = "axes"
    combiner: ClassVar[str] = ""

    def reduce(self, x: Array, dims: Shape) -> Any:
        """The reduction of an array over some of its dimensions."""
        raise NotImplementedError

    def repeated(self, x: Array, size: int) -> Any:
        """The combination of `size` equal values; the value itself where one of them is chosen."""
        return x

    def identity(self, dtype: np.dtype[Any]) -> Any:
        """What leaves the other operand as it is."""
        raise NotImplementedError

    def abstract_eval(
        self, x: ShapedArray, *, axes: Axes, axis_index_groups: Groups
    ) -> ShapedArray:
        dims = _dims(axes)
        check_axes(f"lax.{self.name}", x, dims)
        return x.with_shape(tuple(n for i, n in enumerate(x.shape) if i not in dims))

    def shard(
        self, avals: Avals, outs: Avals, *, axes: Axes, axis_index_groups: Groups
    ) -> PartitionSpec:
        return rules.dropped(rules.spec_of(avals[0]), _dims(axes))

    def lower(
        self, ctx: LoweringContext, x: Value, *, axes: Axes, axis_index_groups: Groups
    ) -> Any:
        is_complex = dtypes.issubdtype(ctx.avals_in[0].dtype, np.complexfloating)
        if is_complex and self.combiner != "stablehlo.add":
            # XLA does not order complex numbers.
            def gathered(v: Any) -> list[Any]:
                own = self.reduce(v, _dims(axes))
                names = arguments.named(axes)
                return [
                    self.reduce(all_gather(own, names, axis_index_groups=axis_index_groups), (0,))
                ]

            return module.lower_function(ctx, gathered, x)[0]
        if drops_nan(ctx, self.combiner, ctx.avals_in[0].dtype, ctx.module.devices):
            among = functools.partial(self.bind, axes=axes, axis_index_groups=axis_index_groups)
            return module.lower_function(ctx, lambda v: [by_keys(self.combiner, among, v)], x)[0]
        x = self.reduced(ctx, x, axes=axes)
        return self.exchange(ctx, x, axes=axes, axis_index_groups=axis_index_groups)

    def reduced(self, ctx: LoweringContext, x: Value, *, axes: Axes, **_: Any) -> Any:
        """The operand, reduced over its own dimensions."""
        dims = _dims(axes)
        if not dims:
            return x
        (aval,) = ctx.avals_in
        kept = tuple(n for i, n in enumerate(aval.shape) if i not in dims)
        wanted = [stablehlo.tensor_type(kept, aval.dtype)]
        return ctx.reduce(self.combiner, x, dims, self.identity(aval.dtype), wanted)

    def exchange(
        self, ctx: LoweringContext, x: Value, *, axes: Axes, axis_index_groups: Groups
    ) -> Any:
        """The operation itself, over named axes."""
        if axis_index_groups is not None and ctx.platform == "tpu":
            arguments.check_equal_groups(f"lax.{self.name}", axis_index_groups)
        names = arguments.named(axes)
        return casts.all_reduce(ctx, x, self.combiner, names, axis_index_groups, ctx.avals_out[0])

    def batch(
        self, size: int, args: Values, dims: Sequence[int], *, axes: Axes, axis_index_groups: Groups
    ) -> Batched:
        (x,), (dim,) = args, dims
        if _dims(axes):
            x, dim = moveaxis(x, dim, 0), 0
            axes = tuple(a + 1 if isinstance(a, int) else a for a in axes)
        return self.bind(x, axes=axes, axis_index_groups=axis_index_groups), dim

    def over(self, x: Array, axes: Axes) -> Any:
        """The reduction over dimensions and named axes, of which there may be none."""
        if not arguments.named(axes):
            return self.reduce(x, _dims(axes)) if axes else x
        return self.bind(x, axes=axes, axis_index_groups=None)


core_axes.crosses_processes.set(True, AllReduce)


core_axes.makes_equal.set(True, AllReduce)


@vma.vary.rule(AllReduce)
def _vary_of_all_reduce(
    primitive: AllReduce, avals: Avals, outs: Avals, *, axes: Axes, axis_index_groups: Groups
) -> Any:
    given = vma.of(avals[0])
    casts.refuse_kind(
        f"lax.{primitive.name}",
        avals[0],
        given.unreduced & frozenset(axes),
        "unreduced",
        "a whole value",
    )
    # Members of different groups get different results.
    kept = given.varying if axis_index_groups is not None else given.varying - frozenset(axes)
    return manual_type(kept, given.unreduced, given.reduced)


@core_axes.batch_axis.rule(AllReduce)
def _batch_axis_of_all_reduce(
    primitive: AllReduce,
    size: int,
    name: Hashable,
    args: Sequence[Array],
    dims: BatchDims,
    **params: Any,
) -> tuple[Any, None]:
    axes, groups = params["axes"], params["axis_index_groups"]
    arguments.refuse_groups_of_batch(f"lax.{primitive.name}", name, groups)
    (x,), (dim,) = args, dims
    if dim is None:
        rest = tuple(a for a in axes if a != name)
        return primitive.repeated(primitive.over(x, rest), size), None
    replaced = tuple(
        dim if a == name else a + (a >= dim) if isinstance(a, int) else a for a in axes
    )
    return primitive.over(x, replaced), None


def _dims(axes: Axes) -> Shape:
    return tuple(axis for axis in axes if isinstance(axis, int))


class PSum(AllReduce):
    """The sum; where vma is checked, `psum_invariant` stands in its place.

    Its transpose is itself, because it is read as a sum of which every device then holds a copy of
    its own.
    """

    name = "psum"
    combiner = "stablehlo.add"
    jvp = jvp_of_linear

    def reduce(self, x: Array, dims: Shape) -> Any:
        return reduce_sum(x, dims)

    def repeated(self, x: Array, size: int) -> Any:
        return x * np.asarray(size).astype(aval_of(x).dtype)[()]

    def identity(self, dtype: np.dtype[Any]) -> Any:
        return 0

    def transpose(
        self, ct: Array, x: UndefinedPrimal, *, axes: Axes, axis_index_groups: Groups
    ) -> Cotangents:
        dims = _dims(axes)
        if dims:
            kept = tuple(i for i in range(x.aval.ndim) if i not in dims)
            ct = broadcast_in_dim(ct, x.aval.shape, kept)
        names = arguments.named(axes)
        return (self.bind(ct, axes=names, axis_index_groups=axis_index_groups),)


class PMax(AllReduce):
    """The greatest value, element by element.  Has no derivative."""

    name = "pmax"
    combiner = "stablehlo.maximum"

    def reduce(self, x: Array, dims: Shape) -> Any:
        return reduce_max(x, dims)

    def identity(self, dtype: np.dtype[Any]) -> Any:
        return lowest(dtype)


class PMin(AllReduce):
    """The least value, element by element.  Has no derivative."""

    name = "pmin"
    combiner = "stablehlo.minimum"

    def reduce(self, x: Array, dims: Shape) -> Any:
        return reduce_min(x, dims)

    def identity(self, dtype: np.dtype[Any]) -> Any:
        return highest(dtype)


psum_p = PSum()
pmax_p = PMax()
pmin_p = PMin()


@arguments.applied
def psum(x: Tree, axis_name: AxisName, *, axis_index_groups: GroupsLike = None) -> Tree:
    """The sum of a tree of arrays over the devices, or examples, of named axes.

    Shapes: T[s] -> T[s]; bool becomes int32; axes that are ints are dimensions that are summed too.
    Types:  inside `shard_map`, what varies over the axes, or is unreduced over them, becomes the
        same everywhere; its transpose is then a cast.  Without `check_vma`, and in `vmap` and
        `pmap`, the transpose is `psum`.

    Args:
        x: a tree of arrays.  Python numbers and arrays that are not tracers are multiplied by the
            size of the axes, without communication.
        axis_name: a name, or a tuple of names, of axes of vmap, pmap or shard_map.
        axis_index_groups: lists of positions along the axis: the sum is taken within each group.

    Raises:
        NameError: a name is not in scope.
        ValueError: groups that do not hold each position once, or a reduced operand.
        NotImplementedError: groups where vma is checked, or along an axis of vmap.

    Example:
        >>> jax.vmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
        Array([0.25, 0.75], dtype=float32)
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> total = lambda x: lax.psum(x, "x")
        >>> jax.shard_map(total, mesh=mesh, in_specs=P("x"), out_specs=P())(jnp.arange(8))
        Array([28], dtype=int32)
    """
    axes = arguments.canonical_axes("lax.psum", axis_name)
    if not axes:
        return x
    size = arguments.axes_size("lax.psum", arguments.named(axes))
    groups = arguments.canonical_groups("lax.psum", axis_index_groups, axes)
    leaves, treedef = tree.flatten(x)
    if not any(isinstance(leaf, Tracer) for leaf in leaves):
        size = size if groups is None else len(groups[0])
        outs = [_times(leaf, size, _dims(axes)) for leaf in leaves]
    else:
        outs = [_sum(leaf, axes, groups) for leaf in leaves]
    return tree.unflatten(treedef, outs)


def _times(x: Array, size: int, dims: Shape) -> Any:
    """The sum of a constant over `size` devices."""
    if isinstance(x, (bool, np.bool_)):
        x = int(x)
    if isinstance(x, (int, float, complex)):
        return x * size
    if aval_of(x).dtype == np.bool_:
        x = convert_element_type(x, np.int32)
    if dims:
        ndim = aval_of(x).ndim
        canonical = [arguments.canonical_dim("lax.psum", "axis", d, ndim) for d in dims]
        x = reduce_sum(x, tuple(canonical))
    return x * np.asarray(size).astype(aval_of(x).dtype)[()]


def _sum(x: Array, axes: Axes, groups: Groups) -> Any:
    typed = core_axes.typed_among(arguments.named(axes))
    if typed:
        arguments.check_untyped_groups("lax.psum", groups, axes)
    axes = arguments.without_small(axes)
    if not axes:
        return x
    typed = tuple(a for a in typed if a in axes)
    arguments.check_summable("lax.psum", x, bools=True)
    if aval_of(x).dtype == np.bool_:
        x = convert_element_type(x, np.int32)
    if not typed:
        ndim = aval_of(x).ndim
        axes = tuple(
            arguments.canonical_dim("lax.psum", "axis", a, ndim) if isinstance(a, int) else a
            for a in axes
        )
        if not arguments.named(axes):
            return reduce_sum(x, axes)
        return Application(psum_p, x, {"axes": axes, "axis_index_groups": groups})
    if _dims(axes):
        problem = "axes that are dimensions cannot be mixed with mesh axes that types tell of."
        error(ValueError, "lax.psum", problem, got=f"axes {axes}", fix="x.sum(dims) first")
    kind = arguments.states("lax.psum", x, axes)
    if kind == "R":
        arguments.check_no_sums("lax.psum", x, typed, "lax.pcast(x, axis, to='varying') first")
    rest = tuple(a for a in axes if a not in typed)
    if rest:
        x = psum_p.bind(x, axes=rest, axis_index_groups=None)
    if kind == "U":
        return Application(casts.unreduced_psum_p, x, {"axes": typed})
    return Application(casts.psum_invariant_p, arguments.with_pvary(x, typed), {"axes": typed})


def unreduced_psum(x: Tree, axis_name: AxisName) -> Tree:
    """The sum of an unreduced array over mesh axes; the result is invarying.

    Shapes: T[s] -> T[s].
    Source: mirrors unreduced_psum of JAX (0.10), where it is not public.

    Raises:
        ValueError: the operand is not unreduced over all the axes.

    Example:
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> f = lambda x: lax.unreduced_psum(lax.pcast(x, "x", to="unreduced"), "x")
        >>> jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P())(jnp.arange(8.0))
        Array([28.], dtype=float32)
    """
    name = "lax.unreduced_psum"
    axes = arguments.canonical_axes(name, axis_name)
    if not axes:
        return x
    arguments.axes_size(name, arguments.named(axes))

    def of_leaf(leaf: Array) -> Any:
        casts.check_unreduced(name, aval_of(leaf), axes)
        return casts.unreduced_psum_p.bind(leaf, axes=axes)

    return arguments.map_leaves(of_leaf, x)


def pmean(x: Tree, axis_name: AxisName, *, axis_index_groups: GroupsLike = None) -> Tree:
    """The mean of a tree of arrays over the devices, or examples, of named axes.

    Shapes: T[s] -> T[s]; integers become floats.

    Args:
        x: a tree of arrays.
        axis_name: a name, or a tuple of names, of axes of vmap, pmap or shard_map.
        axis_index_groups: lists of positions along the axis, of one length: the mean is taken
            within each group.

    Raises:
        NameError: a name is not in scope.
        ValueError: groups of different sizes, or as in `psum`.

    Example:
        >>> jax.vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(jnp.array([1.0, 2.0, 6.0]))
        Array([-2., -1.,  3.], dtype=float32)
    """
    axes = arguments.canonical_axes("lax.pmean", axis_name)
    groups = arguments.canonical_groups("lax.pmean", axis_index_groups, axes)
    size = arguments.group_size("lax.pmean", arguments.named(axes), groups)
    leaves, treedef = tree.flatten(x)
    counts = [
        size * int(np.prod([np.shape(leaf)[d] for d in _dims(axes)], dtype=int)) for leaf in leaves
    ]
    sums = tree.leaves(psum(x, axis_name, axis_index_groups=axis_index_groups))
    return tree.unflatten(treedef, [s / n for s, n in zip(sums, counts, strict=True)])


def pmax(x: Tree, axis_name: AxisName, *, axis_index_groups: GroupsLike = None) -> Tree:
    """The maximum of a tree of arrays over the devices, or examples, of named axes.

    Shapes: T[s] -> T[s].
    Types:  inside `shard_map` the result is the same everywhere over the axes.

    Args:
        x: a tree of arrays.
        axis_name: a name, or a tuple of names, of axes of vmap, pmap or shard_map.
        axis_index_groups: lists of positions along the axis: each group has a maximum of its own.

    Raises:
        NameError: a name is not in scope.
        ValueError: groups that do not hold each position once, or an unreduced operand.

    Example:
        >>> jax.vmap(lambda x: lax.pmax(x, "i"), axis_name="i")(jnp.array([1, 7, 3]))
        Array([7, 7, 7], dtype=int32)
    """
    return combined(pmax_p, x, axis_name, axis_index_groups)


def pmin(x: Tree, axis_name: AxisName, *, axis_index_groups: GroupsLike = None) -> Tree:
    """The minimum of a tree of arrays over the devices, or examples, of named axes.

    Shapes:     T[s] -> T[s]; arguments, types and errors are those of `pmax`.

    Example:
        >>> jax.vmap(lambda x: lax.pmin(x, "i"), axis_name="i")(jnp.array([4, 7, 3]))
        Array([3, 3, 3], dtype=int32)
    """
    return combined(pmin_p, x, axis_name, axis_index_groups)


def combined(
    primitive: AllReduce, x: Tree, axis_name: AxisName, axis_index_groups: GroupsLike
) -> Tree:
    """What a member of the family gives for a tree of arrays, after the checks that all share.

    Args:
        primitive: the member.
        x: a tree of arrays.
        axis_name: a name, or names, of axes, as in `pmax`.
        axis_index_groups: groups of positions along the axis.
    """
    name = f"lax.{primitive.name}"
    axes = arguments.canonical_axes(name, axis_name)
    if not axes:
        return x
    arguments.axes_size(name, arguments.named(axes))
    groups = arguments.canonical_groups(name, axis_index_groups, axes)

    def of_leaf(leaf: Array) -> Any:
        arguments.check_summable(name, leaf, bools=True)
        typed = core_axes.typed_among(arguments.named(axes))
        if typed and _dims(axes):
            error(
                ValueError,
                name,
                "axes that are dimensions cannot be mixed with mesh axes where variance is "
                "checked.",
                got=f"axes {axes}",
            )
        arguments.check_no_sums(name, leaf, typed)
        ndim = aval_of(leaf).ndim
        own = tuple(
            arguments.canonical_dim(name, "axis", a, ndim) if isinstance(a, int) else a
            for a in axes
        )
        leaf = arguments.with_pvary(leaf, typed)
        if not arguments.named(own):
            return primitive.reduce(leaf, own)
        return primitive.bind(leaf, axes=own, axis_index_groups=groups)

    result: Tree = arguments.map_leaves(of_leaf, x)
    return result


def pargmax(x: Array, axis_name: AxisName) -> Array:
    """The index of the maximum along a named axis, for each element; the lowest index of ties.

    Shapes: T[s] -> int32[s].  Where the greatest value is NaN no position has it: 2**31 - 1.
    Source: mirrors pargmax of JAX (0.10), where it is not public.

    Args:
        x: an array.
        axis_name: one name of an axis of vmap, pmap or shard_map.

    Raises:
        TypeError: several names.
        NameError: the name is not in scope.

    Example:
        >>> jax.vmap(lambda x: lax.pargmax(x, "i"), axis_name="i")(jnp.array([1, 7, 3]))
        Array([1, 1, 1], dtype=int32)
    """
    return _position("lax.pargmax", pmax, x, axis_name)


def pargmin(x: Array, axis_name: AxisName) -> Array:
    """The index of the minimum along a named axis, for each element; the lowest index of ties.

    Shapes:     T[s] -> int32[s]; arguments and errors are those of `pargmax`.
    Source:     mirrors pargmin of JAX (0.10), where it is not public.

    Example:
        >>> jax.vmap(lambda x: lax.pargmin(x, "i"), axis_name="i")(jnp.array([[5, 2], [1, 3]]))
        Array([[1, 0],
               [1, 0]], dtype=int32)
    """
    return _position("lax.pargmin", pmin, x, axis_name)


def _position(name: str, extreme: Any, x: Array, axis_name: AxisName) -> Any:
    if isinstance(axis_name, (tuple, list)):
        fix = f"{name} for one axis after the other"
        error(TypeError, name, "axis_name must be one name.", got=repr(axis_name), fix=fix)

    def of_leaf(leaf: Array) -> Any:
        shape = aval_of(leaf).shape
        index = broadcast(axis_index(axis_name), shape)
        nobody = np.full(shape, np.iinfo(np.int32).max, np.int32)
        found = select(eq(leaf, _like(leaf, extreme(leaf, axis_name))), index, nobody)
        return pmin(found, axis_name)

    return arguments.map_leaves(of_leaf, x)


def _like(x: Array, y: Array) -> Any:
    return y if aval_of(x).dtype == aval_of(y).dtype else convert_element_type(y, aval_of(x).dtype)
