"""Arrays over several devices as earlier versions of JAX made them, for programs that still do.

Input: values and devices, or the pieces of an array in order of its devices.  Output: a flat list
of arrays on one device each, one array of pieces, or one of copies on the devices of a `pmap`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from minijax.core.aval import ShapedArray, aval_of
from minijax.core.errors import error, message
from minijax.interpreters import relocation
from minijax.interpreters.structural import new_axis
from minijax.runtime import client, profiling
from minijax.runtime.array import Array, array_from_host
from minijax.runtime.pmap_sharding import PmapSharding
from minijax.sharding import hlo
from minijax.sharding.base import Sharding
from minijax.sharding.mesh import mesh_stack
from minijax.sharding.named import NamedSharding, SingleDeviceSharding
from minijax.sharding.older import ShardingSpec, create_pmap_sharding_spec, pmap_sharding_spec
from minijax.transforms.device_put import put
from minijax.transforms.global_arrays import make_array_from_single_device_arrays


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
        error(
            ValueError,
            "device_put",
            "the numbers of values and of devices differ.",
            got=f"{len(x)} values, {len(devices)} devices",
            expected="one value for each device",
            fix="replicate=True for one value on all devices",
        )
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
    indices: Any = None,
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
    warnings.warn(
        message(
            "make_sharded_device_array",
            "the function is deprecated.",
            fix="minijax.make_array_from_single_device_arrays(shape, sharding, arrays)",
        ),
        DeprecationWarning,
        stacklevel=2,
    )
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
        ValueError: there are fewer devices than `nrep`, or they are no multiple of the slices.
    """
    found = client.local_devices(backend=backend) if devices is None else list(devices)
    if len(found) < nrep:
        error(
            ValueError,
            "replicate",
            "there are fewer devices than copies are asked for.",
            got=f"{len(found)} device(s): {', '.join(map(str, found))}",
            expected=f"{nrep} devices",
        )
    aval = aval_of(val)
    spec = pmap_sharding_spec(nrep, axis_size, aval.shape, in_axis)
    value = val if type.__instancecheck__(Array, val) else array_from_host(val)
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
        error(
            ValueError,
            "make_sharded_device_array",
            "no spec on the mesh of `with mesh:` places the pieces so.",
            got=f"{sharding}, inside {mesh}",
            fix="call it outside of the mesh, or give pieces as a NamedSharding on it cuts",
        )
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
        error(
            RuntimeError,
            "ShardedDeviceArray",
            "the class is a name for older programs, of which there are no instances.",
            expected="isinstance(x, minijax.Array) in checks",
            fix="minijax.make_array_from_single_device_arrays makes arrays of pieces",
        )
