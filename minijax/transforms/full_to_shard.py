"""The two borders of a manual region as operations: `full_to_shard` and `shard_to_full`.

Between them a program works on a device's block of a value.  GSPMD has a custom call for each
border.  Shardy has one operation for both, so there `tiling.vtile_manual` makes them together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minijax.core import config
from minijax.core.aval import ShapedArray
from minijax.core.errors import error
from minijax.core.meshes import AbstractMesh, MeshAxes
from minijax.core.primitive import Primitive
from minijax.core.specs import PartitionSpec
from minijax.interpreters import assignment, hlo_build, manual_regions
from minijax.interpreters.device_axes import PartitionAxes
from minijax.interpreters.manual_regions import Border
from minijax.interpreters.tangents import jvp_of_unary_linear
from minijax.sharding import hlo as sharding_hlo
from minijax.sharding import rules
from minijax.sharding.named import named
from minijax.transforms import tiling

Axes = tuple[tuple[Any, int], ...]


class _BorderOfRegion(Primitive):
    """One border of a region that is written per device of `manual_axes` of `mesh`.

    `axes` are pairs of a mesh axis and the dimension that it splits.  Its transpose would have to
    know which values the devices share, which the operation does not; `shard_map` does.
    """

    jvp = jvp_of_unary_linear
    shard = rules.elementwise

    def impl(self, *args: Any, **params: Any) -> Any:
        del args, params
        error(
            ValueError,
            self.name,
            "a device's block is no array of its own.",
            fix="call it inside jit, where shard_to_full follows full_to_shard",
        )

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], *, axes: Axes, **params: Any
    ) -> tuple[Any, Any]:
        (d,) = dims
        shifted = tuple((name, dim + (dim >= d)) for name, dim in axes)
        return self.bind(args[0], axes=shifted, **params), d


rules.constrains_results.set(False, _BorderOfRegion)


@assignment.names_placement.rule(_BorderOfRegion)
def _names_placement_of__border_of_region(
    primitive: _BorderOfRegion, *, mesh: Any, **_: Any
) -> Any:
    return None if isinstance(mesh, AbstractMesh) else named(mesh, PartitionSpec())


class FullToShard(_BorderOfRegion):
    """A device's block of a whole value.

    Shapes: x: T[s] -> T[s, each dimension in `axes` as many times shorter as its axis is long].
    """

    name = "full_to_shard"

    def abstract_eval(self, x: ShapedArray, *, axes: Axes, mesh: MeshAxes, **_: Any) -> ShapedArray:
        return tiling.tile_aval_nd(mesh.shape, dict(axes), x).aval

    def lower(self, ctx: Any, x: Any, **params: Any) -> Any:
        inner = _inside(self.name, ctx, params["mesh"], params["manual_axes"])
        border = _border(params["axes"], ctx.avals_in[0], ctx.avals_out[0])
        return manual_regions.full_to_shard(ctx, inner, x, border)


class ShardToFull(_BorderOfRegion):
    """The whole value whose blocks devices hold.

    Shapes: x: T[s] -> T[s, each dimension in `axes` as many times longer as its axis is long].
    """

    name = "shard_to_full"

    def abstract_eval(self, x: ShapedArray, *, axes: Axes, mesh: MeshAxes, **_: Any) -> ShapedArray:
        return tiling.untile_aval_nd(mesh.shape, dict(axes), x).aval

    def lower(self, ctx: Any, x: Any, **params: Any) -> Any:
        inner = _inside(self.name, ctx, params["mesh"], params["manual_axes"])
        border = _border(params["axes"], ctx.avals_out[0], ctx.avals_in[0])
        return manual_regions.shard_to_full(ctx, inner, x, border)


full_to_shard_p = FullToShard()
shard_to_full_p = ShardToFull()


def manual_proto(aval: Any, manual_axes: Any, mesh: MeshAxes) -> Any:
    """XLA's message for blocks of a type inside a region that is written per device of some axes.

    No dimension is cut; then come a group of the other axes, in the mesh's order, and one of the
    manual axes, sorted by name.

    Source:     mirrors jax.interpreters.pxla.manual_proto, which JAX has since dropped.

    Example:
        >>> from minijax.experimental import pxla
        >>> mesh = jax.make_mesh((2, 4), ("x", "y"))
        >>> proto = pxla.manual_proto(jax.typeof(jnp.zeros((8, 8))), {"y"}, mesh)
        >>> proto.tile_assignment_dimensions
        [1, 1, 2, 4]
    """
    return sharding_hlo.manual_proto(mesh, frozenset(manual_axes), aval.ndim)


def full_to_shard(x: Any, axes: Mapping[Any, int], mesh: MeshAxes, manual_axes: Any) -> Any:
    """A device's block of `x`, inside a program that GSPMD partitions.

    Args:
        x: a whole array.
        axes: which dimension each of some manual mesh axes splits.
        mesh: the mesh.
        manual_axes: the axes that what follows is written per device of.

    Source:     mirrors jax.interpreters.pxla's full_to_shard_p, which JAX has since dropped.

    Raises:
        ValueError: an axis is not manual, a dimension is not divisible, or nothing is traced.
        NotImplementedError: Shardy partitions the program.

    Example:
        >>> from minijax.experimental import pxla
        >>> mesh = jax.make_mesh((8,), ("x",))
        >>> block = lambda x: pxla.full_to_shard(x, {"x": 0}, mesh, {"x"})
        >>> jax.eval_shape(block, jnp.arange(16))
        ShapeDtypeStruct(shape=(2,), dtype=int32)
    """
    return _bind(full_to_shard_p, x, axes, mesh, manual_axes)


def shard_to_full(x: Any, axes: Mapping[Any, int], mesh: MeshAxes, manual_axes: Any) -> Any:
    """The whole array of which each device holds the block `x`: undoes `full_to_shard`.

    Source:     mirrors jax.interpreters.pxla's shard_to_full_p, which JAX has since dropped.

    Raises:
        ValueError: an axis is not manual, or nothing is traced.
        NotImplementedError: Shardy partitions the program.

    Example:
        >>> from minijax.experimental import pxla
        >>> mesh = jax.make_mesh((8,), ("x",))
        >>> whole = lambda x: pxla.shard_to_full(x, {"x": 0}, mesh, {"x"})
        >>> jax.eval_shape(whole, jnp.arange(2))
        ShapeDtypeStruct(shape=(16,), dtype=int32)
    """
    return _bind(shard_to_full_p, x, axes, mesh, manual_axes)


def _bind(
    primitive: Primitive, x: Any, axes: Mapping[Any, int], mesh: MeshAxes, manual_axes: Any
) -> Any:
    manual = frozenset(manual_axes)
    strange = [name for name in axes if name not in manual]
    if strange or not manual <= set(mesh.axis_names):
        error(
            ValueError,
            primitive.name,
            "axes must be among manual_axes, and these among the mesh's.",
            got=f"axes {dict(axes)}, manual_axes {sorted(manual, key=str)}, {mesh}",
        )
    return primitive.bind(x, axes=tuple(axes.items()), mesh=mesh, manual_axes=manual)


def _inside(name: str, ctx: Any, mesh: MeshAxes, manual_axes: frozenset[Any]) -> PartitionAxes:
    if config.use_shardy_partitioner.value:
        error(
            NotImplementedError,
            name,
            "Shardy has one operation for both borders of a manual region.",
            fix="shard_map, or vtile_manual, which make them together; or "
            "minijax.config.update('use_shardy_partitioner', False)",
        )
    return PartitionAxes(mesh, ctx.module.device_axes.manual | manual_axes)


def _border(axes: Axes, whole: Any, block: Any) -> Border:
    spec = tiling.spec_of(dict(axes))
    return Border(spec, whole.ndim, hlo_build.type_of(whole), hlo_build.type_of(block))
