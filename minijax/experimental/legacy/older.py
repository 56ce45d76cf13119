"""`smap`, `shard_map`, arrays and borders of manual regions as earlier versions of JAX had them.

Input: a program that was written for these.  Output: the operations and arrays of today.

`full_to_shard` and `shard_to_full` are the two borders of a manual region, between which a program
works on a device's block of a value.  GSPMD has a custom call for each; Shardy has one operation
for both, so there `tiling.vtile_manual` makes them together.  Arrays are made of values and
devices, or of pieces in order of their devices.  `smap` is `shard_map` over one axis of the mesh
in force, with positions in place of specs; the other axes stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar, overload

import minijax.transforms.per_device.shard_map
from minijax.core import config, tree
from minijax.core.aval import ShapedArray, aval_of
from minijax.core.errors import error, warn
from minijax.core.meshes import MeshAxes, PartitionSpec
from minijax.core.operators import Values
from minijax.core.primitive import Batched, Primitive
from minijax.experimental.legacy import tiling
from minijax.interpreters import flattening
from minijax.interpreters.jvp import jvp_of_linear
from minijax.interpreters.structural import new_axis
from minijax.lowering import device_assignment, regions, relocation, stablehlo
from minijax.lowering.device_axes import PartitionAxes
from minijax.lowering.regions import Border
from minijax.runtime import client, profiling
from minijax.runtime.array import Array, array_from_host, is_array
from minijax.runtime.pmap_sharding import PmapSharding
from minijax.sharding import hlo, rules
from minijax.sharding import hlo as sharding_hlo
from minijax.sharding.base import Sharding
from minijax.sharding.mesh import mesh_stack
from minijax.sharding.named import NamedSharding, SingleDeviceSharding
from minijax.sharding.older import ShardingSpec, create_pmap_sharding_spec, pmap_sharding_spec
from minijax.transforms.device_put import put
from minijax.transforms.global_arrays import make_array_from_single_device_arrays
from minijax.transforms.per_device.primitive import placement_of_mesh
from minijax.transforms.per_device.shard_map import INFER

if TYPE_CHECKING:
    from minijax.lowering.stablehlo import LoweringContext

Axes = tuple[tuple[Any, int], ...]


class _BorderOfRegion(Primitive):
    """One border of a region that is written per device of `manual_axes` of `mesh`.

    `axes` are pairs of a mesh axis and the dimension that it splits.  Its transpose would have to
    know which values the devices share, which the operation does not; `shard_map` does.
    """

    jvp = jvp_of_linear
    shard = rules.elementwise
    # Whether whole values become blocks.
    inwards: ClassVar[bool]

    def impl(self, *args: Any, **params: Any) -> Any:
        del args, params
        fix = "call it inside jit, where shard_to_full follows full_to_shard"
        error(ValueError, self.name, "a device's block is no array of its own.", fix=fix)

    def batch(
        self, size: int, args: Values, dims: Sequence[int], *, axes: Axes, **params: Any
    ) -> Batched:
        (d,) = dims
        shifted = tuple((name, dim + (dim >= d)) for name, dim in axes)
        return self.bind(args[0], axes=shifted, **params), d

    def lower(
        self,
        ctx: LoweringContext,
        x: Any,
        *,
        axes: Axes,
        mesh: MeshAxes,
        manual_axes: frozenset[Any],
    ) -> Any:
        inner = _inside(self.name, ctx, mesh, manual_axes)
        avals = ctx.avals_in[0], ctx.avals_out[0]
        whole, block = avals if self.inwards else avals[::-1]
        spec = tiling.spec_of(dict(axes))
        border = Border(spec, whole.ndim, stablehlo.type_of(whole), stablehlo.type_of(block))
        return regions.crossed(ctx, inner, x, border, inwards=self.inwards)


rules.constrains_results.set(False, _BorderOfRegion)
device_assignment.names_placement.rule(_BorderOfRegion)(placement_of_mesh)


class FullToShard(_BorderOfRegion):
    """A device's block of a whole value.

    Shapes: x: T[s] -> T[s, each dimension in `axes` as many times shorter as its axis is long].
    """

    name = "full_to_shard"
    inwards = True

    def abstract_eval(self, x: ShapedArray, *, axes: Axes, mesh: MeshAxes, **_: Any) -> ShapedArray:
        return tiling.tile_aval_nd(mesh.shape, dict(axes), x).aval


class ShardToFull(_BorderOfRegion):
    """The whole value whose blocks devices hold.

    Shapes: x: T[s] -> T[s, each dimension in `axes` as many times longer as its axis is long].
    """

    name = "shard_to_full"
    inwards = False

    def abstract_eval(self, x: ShapedArray, *, axes: Axes, mesh: MeshAxes, **_: Any) -> ShapedArray:
        return tiling.untile_aval_nd(mesh.shape, dict(axes), x).aval


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


def full_to_shard(x: object, axes: Mapping[Any, int], mesh: MeshAxes, manual_axes: object) -> Any:
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


def shard_to_full(x: object, axes: Mapping[Any, int], mesh: MeshAxes, manual_axes: object) -> Any:
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
        problem = "axes must be among manual_axes, and these among the mesh's."
        got = f"axes {dict(axes)}, manual_axes {sorted(manual, key=str)}, {mesh}"
        error(ValueError, primitive.name, problem, got=got)
    return primitive.bind(x, axes=tuple(axes.items()), mesh=mesh, manual_axes=manual)


def _inside(name: str, ctx: Any, mesh: MeshAxes, manual_axes: frozenset[Any]) -> PartitionAxes:
    if config.use_shardy_partitioner.value:
        problem = "Shardy has one operation for both borders of a manual region."
        fix = (
            "shard_map, or vtile_manual, which make them together; or "
            "minijax.config.update('use_shardy_partitioner', False)"
        )
        error(NotImplementedError, name, problem, fix=fix)
    return PartitionAxes(mesh, ctx.module.device_axes.manual | manual_axes)


def device_put(x: Any, devices: Sequence[Any], replicate: bool = False) -> list[Array]:
    """Arrays on one device each, in order of the devices.

    Args:
        x: a sequence of values, one for each device; a single value if `replicate`.
        devices: the devices.
        replicate: whether all of `x` goes to every device.

    Shapes:     x: T[len(devices), s] -> T[s], for each device; T[s] -> T[s] if `replicate`.
    Source:     mirrors jax.interpreters.pxla.device_put, which JAX has since dropped.

    Raises:
        ValueError: there are not as many values as devices.

    Example:
        >>> from minijax.experimental import pxla
        >>> pieces = pxla.device_put(np.arange(4).reshape(2, 2), jax.devices()[:2])
        >>> [(piece.tolist(), piece.device) for piece in pieces]
        [([0, 1], CpuDevice(id=0)), ([2, 3], CpuDevice(id=1))]
    """
    if not replicate and len(x) != len(devices):
        problem = "the numbers of values and of devices differ."
        got = f"{len(x)} values, {len(devices)} devices"
        expected = "one value for each device"
        fix = "replicate=True for one value on all devices"
        error(ValueError, "device_put", problem, got=got, expected=expected, fix=fix)
    values = [x] * len(devices) if replicate else x
    with profiling.TraceAnnotation("replicate" if replicate else "place pieces"):
        return [
            put(value, SingleDeviceSharding(device))
            for value, device in zip(values, devices, strict=True)
        ]


def make_sharded_device_array(
    aval: ShapedArray,
    sharding_spec: ShardingSpec | None,
    device_buffers: Sequence[Array],
    indices: object = None,
) -> Array:
    """One array of its pieces, each on a device of its own.

    Inside `with mesh:` the array's sharding is a `NamedSharding` on that mesh, otherwise a
    `PmapSharding`.

    Args:
        aval: the type of the whole.
        sharding_spec: how it is cut; None for one slice along the first dimension each.
        device_buffers: the pieces, in the order that the spec gives them.
        indices: not needed: the spec says which part each piece is.

    Shapes:     device_buffers: the pieces' -> aval.shape.
    Source:     mirrors jax.interpreters.pxla.make_sharded_device_array, which JAX has since
                dropped.

    Raises:
        ValueError: the pieces do not fit the spec, or no spec on the mesh cuts like it.

    Example:
        >>> import warnings
        >>> from minijax.experimental import pxla
        >>> pieces = pxla.device_put(np.arange(4).reshape(2, 2), jax.devices()[:2])
        >>> with warnings.catch_warnings(action="ignore"):
        ...     pxla.make_sharded_device_array(jax.typeof(jnp.zeros((2, 2), int)), None, pieces)
        Array([[0, 1],
               [2, 3]], dtype=int32)
    """
    problem = "the function is deprecated."
    fix = "minijax.make_array_from_single_device_arrays(shape, sharding, arrays)"
    warn(DeprecationWarning, "make_sharded_device_array", problem, fix=fix)
    spec = create_pmap_sharding_spec(aval.shape) if sharding_spec is None else sharding_spec
    devices = [piece.device for piece in device_buffers]
    sharding: Sharding = PmapSharding(devices, spec)
    if mesh_stack.value:
        sharding = _on_mesh(sharding, mesh_stack.value[-1], aval)
    return make_array_from_single_device_arrays(aval.shape, sharding, list(device_buffers))


def replicate(
    val: Any,
    axis_size: int,
    nrep: int,
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    in_axis: int | None = 0,
) -> Array:
    """An array of copies of a value, one for each slice of a `pmap`.

    Shapes:     val: T[s] -> T[axis_size, s], with the new dimension at `in_axis`; T[s] where it is
        None: all devices then hold the value itself.
    Source:     mirrors jax.interpreters.pxla.replicate, which JAX has since dropped.

    Args:
        val: an array or a number.
        axis_size: the number of slices.
        nrep: the number of devices: a multiple of it, where each slice has several.
        devices: the devices; the first ones of this process by default.
        backend: the platform.
        in_axis: where the result has the dimension of slices.

    Raises:
        ValueError: there are fewer devices than `nrep`, or they are not a multiple of the slices.
    """
    found = client.local_devices(backend=backend) if devices is None else list(devices)
    if len(found) < nrep:
        problem = "there are fewer devices than copies are asked for."
        got = f"{len(found)} device(s): {', '.join(map(str, found))}"
        error(ValueError, "replicate", problem, got=got, expected=f"{nrep} devices")
    aval = aval_of(val)
    spec = pmap_sharding_spec(nrep, axis_size, aval.shape, in_axis)
    value = val if is_array(val) else array_from_host(val)
    if in_axis is not None:
        value = new_axis(value, axis_size, in_axis)
    return relocation.placed(value, PmapSharding(found[:nrep], spec))


def _on_mesh(sharding: Sharding, mesh: Any, aval: ShapedArray) -> NamedSharding:
    """The same placement, as a spec on a mesh says it.

    Raises:
        ValueError: there is none.
    """
    spec = (
        None
        if sharding.unstacked_dims
        else hlo.spec_of(sharding.to_hlo(aval.ndim), mesh, aval.ndim)
    )
    if spec is None or sharding.device_assignment != mesh.flat_devices:
        problem = "no spec on the mesh of `with mesh:` places the pieces so."
        got = f"{sharding}, inside {mesh}"
        fix = "call it outside of the mesh, or give pieces as a NamedSharding on it cuts"
        error(ValueError, "make_sharded_device_array", problem, got=got, fix=fix)
    return NamedSharding(mesh, spec)


class ShardedDeviceArray:
    """The class of arrays over several devices in earlier versions of JAX; it makes none.

    Source:     mirrors jax.interpreters.pxla.ShardedDeviceArray, which JAX has since dropped.

    Raises:
        RuntimeError: always: arrays are instances of `minijax.Array`.

    Example:
        >>> from minijax.experimental import pxla
        >>> isinstance(jnp.arange(3), pxla.ShardedDeviceArray)
        False
    """

    def __init__(self, *_: Any, **__: Any) -> None:
        problem = "the class is a name for older programs, of which there are no instances."
        expected = "isinstance(x, minijax.Array) in checks"
        fix = "minijax.make_array_from_single_device_arrays makes arrays of pieces"
        error(RuntimeError, "ShardedDeviceArray", problem, expected=expected, fix=fix)


P = ParamSpec("P")
R = TypeVar("R")


@overload
def smap(
    f: Callable[P, R], /, *, in_axes: object = ..., out_axes: object, axis_name: Hashable
) -> Callable[P, R]: ...
@overload
def smap(
    f: None = None, /, *, in_axes: object = ..., out_axes: object, axis_name: Hashable
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


@flattening.or_decorator
def smap(
    f: Callable[P, R], /, *, in_axes: object = INFER, out_axes: object, axis_name: Hashable
) -> Callable[P, R]:
    """Runs a function on each device along one mesh axis, as `vmap` maps over one dimension.

    Args:
        f: a function of trees of blocks; without it, the result is a decorator.
        in_axes: the dimension of each argument that is split over the axis, None for whole ones: an
            int for all, or a tuple with a tree prefix for each argument.  On an Explicit axis it
            may be omitted: types tell.
        out_axes: the same for the results: an int, None or a tree prefix.
        axis_name: an axis of the mesh in force.

    Raises:
        TypeError: `in_axes` or `out_axes` is something else, or `axis_name` is not one name.
        ValueError: a dimension is negative, there is no mesh, it has no such axis, or `shard_map`
            refuses the specs.

    Example:
        >>> with jax.set_mesh(jax.make_mesh((8,), ("x",))):
        ...     rows = jax.smap(lambda x: x.sum(axis=1), in_axes=0, out_axes=0, axis_name="x")
        ...     print(rows(jnp.ones((8, 3))))
        [3. 3. 3. 3. 3. 3. 3. 3.]
    """
    if isinstance(axis_name, (tuple, list, set, frozenset)):
        fix = "an smap for each axis, or shard_map"
        error(TypeError, "smap", "axis_name must be one name.", got=repr(axis_name), fix=fix)
    if isinstance(in_axes, (list, dict)):
        problem = "in_axes must be an int, None, or a tuple with an entry for each argument."
        error(TypeError, "smap", problem, got=f"{in_axes!r} of type {type(in_axes).__name__}")
    return minijax.transforms.per_device.shard_map.shard_map(
        f,
        in_specs=_specs("in_axes", in_axes, axis_name),
        out_specs=_specs("out_axes", out_axes, axis_name),
        axis_names={axis_name},
    )


def _specs(argument: str, axes: object, name: Hashable) -> Any:
    """The specs that dimensions stand for: `P(None, name)` for 1."""
    if axes is INFER:
        return INFER
    return tree.map(lambda axis: _spec(argument, axis, name), axes, is_leaf=tree.is_none)


def _spec(argument: str, axis: Any, name: Hashable) -> Any:
    if axis is None:
        return PartitionSpec()
    if not hasattr(axis, "__index__"):
        problem = f"{argument} must hold ints and None only."
        error(TypeError, "smap", problem, got=f"{axis!r} of type {type(axis).__name__}")
    if axis < 0:
        error(ValueError, "smap", f"{argument} must count from the first dimension.", got=str(axis))
    return PartitionSpec(*[None] * int(axis), name)


def shard_map(
    f: Callable[..., Any],
    mesh: MeshAxes,
    in_specs: object,
    out_specs: object,
    check_rep: bool = True,
    auto: frozenset[Any] = frozenset(),
) -> Callable[..., Any]:
    """As `minijax.shard_map`, with former arguments: `auto` are axes left to the compiler.

    Example:
        >>> from minijax.experimental.shard_map import shard_map
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> shard_map(lambda x: lax.psum(x, "x"), mesh, P("x"), P())(jnp.arange(8))
        Array([28], dtype=int32)
    """
    names = frozenset(mesh.axis_names) - frozenset(auto) if auto else frozenset()
    return minijax.transforms.per_device.shard_map.shard_map(
        f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, axis_names=names, check_vma=check_rep
    )
