"""Every device sends a block to every other: `all_to_all` and `pswapaxes`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from minijax.core import variance
from minijax.core.aval import ManualAxisType, ShapedArray, aval_of
from minijax.core.primitive import Primitive
from minijax.core.specs import PartitionSpec
from minijax.interpreters import casts
from minijax.interpreters.structural import moveaxis, to_batch_dim
from minijax.interpreters.tangents import jvp_of_unary_linear
from minijax.lax.collectives import arguments
from minijax.lax.collectives.arguments import Application, Groups, Tree
from minijax.lax.shape import expand_dims, reshape
from minijax.sharding import rules


class AllToAll(Primitive):
    """Cuts dimension `split_axis` into a block for each device, and joins those received.

    Shapes: x: T[s] -> T[s with `split_axis` n times shorter and `concat_axis` n times longer].
    Linear in x.
    """

    name = "all_to_all"
    axis_params = ("axis_name",)
    communicates: ClassVar[bool] = True
    has_effects: ClassVar[bool] = True
    hidden_params = frozenset({"axis_size"})
    jvp = jvp_of_unary_linear

    def abstract_eval(
        self, x: ShapedArray, *, split_axis: int, concat_axis: int, axis_size: int, **_: Any
    ) -> ShapedArray:
        shape = list(x.shape)
        shape[split_axis] //= axis_size
        shape[concat_axis] *= axis_size
        return x.with_shape(tuple(shape)).strip_weak_type()

    def effects(self, *avals: Any, axis_name: Any, **_: Any) -> frozenset[Any]:
        return casts.named_effects(arguments.canonical_axes(self.name, axis_name))

    def vary(
        self, avals: Sequence[Any], outs: Sequence[Any], *, axis_name: Any, **_: Any
    ) -> ManualAxisType:
        axes = arguments.canonical_axes(self.name, axis_name)
        arguments.check_varying(self.name, avals[0], axes)
        return variance.of(avals[0])

    def shard(
        self,
        avals: Sequence[Any],
        outs: Sequence[Any],
        *,
        split_axis: int,
        concat_axis: int,
        **_: Any,
    ) -> PartitionSpec:
        if split_axis != concat_axis:
            rules.check_unsharded(self, avals, (split_axis, concat_axis))
        return rules.spec_of(avals[0])

    def lower(
        self,
        ctx: Any,
        x: Any,
        *,
        split_axis: int,
        concat_axis: int,
        axis_index_groups: Groups,
        axis_name: Any,
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
        self, ct: Any, x: Any, *, split_axis: int, concat_axis: int, **params: Any
    ) -> tuple[Any]:
        return (self.bind(ct, split_axis=concat_axis, concat_axis=split_axis, **params),)

    def batch(
        self,
        size: int,
        args: Sequence[Any],
        dims: Sequence[Any],
        *,
        split_axis: int,
        concat_axis: int,
        **params: Any,
    ) -> tuple[Any, int]:
        (x,), (b,) = args, dims
        out = self.bind(
            x,
            split_axis=split_axis + (split_axis >= b),
            concat_axis=concat_axis + (concat_axis >= b),
            **params,
        )
        return out, b

    def impl(self, x: Any, **params: Any) -> Any:
        raise RuntimeError(arguments.outside_text("lax.all_to_all"))

    def batch_axis(
        self,
        size: int,
        name: Any,
        args: Sequence[Any],
        dims: Sequence[Any],
        *,
        split_axis: int,
        concat_axis: int,
        axis_index_groups: Groups,
        axis_name: Any,
        axis_size: int,
        tiled: bool,
    ) -> tuple[Any, int]:
        arguments.refuse_groups_of_batch("lax.all_to_all", name, axis_index_groups)
        axes = arguments.canonical_axes(self.name, axis_name)
        around = arguments.around_batch("lax.all_to_all", name, axes)
        x = to_batch_dim(args[0], dims[0], 0, size)
        # The receivers in the batch become its second dimension, after the senders.
        at = split_axis + 1
        shape = aval_of(x).shape
        parts = (around.outer, size, around.inner * (shape[at] // axis_size))
        x = moveaxis(reshape(x, (*shape[:at], *parts, *shape[at + 1 :])), at + 1, 1)
        shape = aval_of(x).shape
        at += 1
        x = reshape(x, (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :]))
        if around.others:
            x = self.bind(
                x,
                split_axis=at,
                concat_axis=concat_axis + 2,
                axis_index_groups=None,
                axis_name=around.others,
                axis_size=around.outer * around.inner,
                tiled=tiled,
            )
        # Senders stand where their blocks are joined: those before the batch's, then its own.
        at = concat_axis + 2
        shape = aval_of(x).shape
        x = reshape(x, (*shape[:at], around.outer, shape[at] // around.outer, *shape[at + 1 :]))
        x = moveaxis(x, 0, at)
        shape = (*shape[1:at], shape[at] * size, *shape[at + 1 :])
        return reshape(x, shape), 0


all_to_all_p = AllToAll()


def all_to_all(
    x: Tree,
    axis_name: Any,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Tree:
    """Cuts an array into one block for each device, sends them there, and joins what is received.

    Shapes: T[s] -> T[s without `split_axis`, of the axes' size n, with a new dimension of size n at
        `concat_axis`]; `tiled`, `split_axis` is n times shorter and `concat_axis` n times longer.
    Types:  varying to varying.
    Source: mirrors jax.lax.all_to_all.

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
    return arguments.results(
        applications(
            x, axis_name, split_axis, concat_axis, axis_index_groups=axis_index_groups, tiled=tiled
        )
    )


def applications(
    x: Any,
    axis_name: Any,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """The applications, for each leaf, that `all_to_all` stands for."""
    name = "lax.all_to_all"
    axes = arguments.canonical_axes(name, axis_name)
    if not axes:
        return x
    groups = arguments.canonical_groups(name, axis_index_groups, axes)
    arguments.check_equal_groups(name, groups)
    size = arguments.group_size(name, axes, groups)

    def of_leaf(leaf: Any) -> Any:
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


def pswapaxes(x: Tree, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Tree:
    """Exchanges a dimension of an array with a named axis of the same size.

    Shapes: T[s] -> T[s]; `all_to_all` that cuts and joins the same dimension.
    Source: mirrors jax.lax.pswapaxes.

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
