"""What C++ sees of a sharding: interned objects, compared by identity.

There is one for each placement and rank; the public description is kept on it as an attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib import _jax, xla_client

from minijax.core import dtypes
from minijax.core.aval import ShapedArray
from minijax.core.specs import PartitionSpec
from minijax.sharding import hlo, rules
from minijax.sharding.base import Sharding
from minijax.sharding.named import NamedSharding, named
from minijax.sharding.single_device import SingleDeviceSharding

SEMANTICS = xla_client.HostBufferSemantics
CopySemantics = xla_client.ArrayCopySemantics


class MeshPlacement(_jax.GSPMDSharding):  # type: ignore[misc]
    """What C++ sees of a placement on a mesh.

    A class of its own, as jaxlib takes equal tilings of `GSPMDSharding`s for equal: results of
    one mesh would then be described in terms of another.

    Attributes:
        public: the description that users gave or get.
        canonical: the same for all descriptions that differ in notation only.
        hlo: the tiling, in XLA's terms.
        devices: the devices, in order.
        device: None; placements on one device have theirs here.
    """

    public: Any
    canonical: Any
    hlo: Any
    devices: tuple[Any, ...]
    device: Any

    def _to_xla_hlo_sharding(self, ndim: int) -> Any:
        return self.hlo

    @property
    def memory_kind(self) -> str | None:
        """The kind of memory, or None for the devices' default."""
        return self.public.special_memory_kind  # type: ignore[no-any-return]


_on_device: dict[Any, Any] = {}
_on_mesh: dict[Any, MeshPlacement] = {}


def native_sharding(device: Any, memory_kind: str | None = None) -> Any:
    """The C++ sharding of whole arrays on one device."""
    key = (device, memory_kind)
    found = _on_device.get(key)
    if found is None:
        made = _jax.GSPMDSharding(
            xla_client.DeviceList((device,)), hlo.REPLICATED, memory_kind=memory_kind
        )
        made.public = made.canonical = SingleDeviceSharding(device, memory_kind=memory_kind)
        made.hlo = hlo.REPLICATED
        made.devices = (device,)
        made.device = device
        made.memory_kind = memory_kind
        found = _on_device.setdefault(key, made)
    return found


def native(sharding: Sharding, ndim: int) -> Any:
    """The C++ sharding of arrays of rank `ndim` that are placed as `sharding` says."""
    if isinstance(sharding, SingleDeviceSharding):
        return native_sharding(sharding.device, sharding.special_memory_kind)
    key = (sharding, ndim)
    found = _on_mesh.get(key)
    if found is None:
        found = _on_mesh.setdefault(key, _make(sharding, ndim))
    return found


def _make(sharding: Sharding, ndim: int) -> MeshPlacement:
    tiling = sharding.to_hlo(ndim)
    devices = sharding.device_assignment
    made = MeshPlacement(device_list(devices), tiling, memory_kind=sharding.special_memory_kind)
    made.public = sharding
    made.canonical = canonical(sharding, ndim)
    made.hlo = tiling
    made.devices = devices
    made.device = None
    return made


def canonical(sharding: Sharding, ndim: int) -> Sharding:
    """The one of all notations of a placement that has an entry for each dimension."""
    if not isinstance(sharding, NamedSharding):
        return sharding
    entries = [*sharding.spec, *[None] * (ndim - len(sharding.spec))]
    spec = PartitionSpec(*entries, unreduced=sharding.spec.unreduced)
    return named(sharding.mesh, spec, sharding.special_memory_kind)


_device_lists: dict[tuple[Any, ...], Any] = {}


def device_list(devices: tuple[Any, ...]) -> Any:
    """Jaxlib's list of devices; the same object each time."""
    found = _device_lists.get(devices)
    if found is None:
        found = _device_lists.setdefault(devices, xla_client.DeviceList(devices))
    return found


def typed(aval: ShapedArray, target: Any) -> ShapedArray:
    """The type of a value placed so: types show the part of a placement on Explicit axes."""
    public = target.public
    if isinstance(public, NamedSharding) and public.mesh.explicit_axes:
        found: ShapedArray = rules.typed_aval(aval, public)
        return found
    return aval if aval.sharding is None else aval.update(sharding=None)


def put_host_value(x: Any, aval: ShapedArray, placement: Any, *, committed: bool) -> Any:
    """Copies a NumPy array or scalar, already of the dtype of `aval`, to where it shall live."""
    if aval.dtype == dtypes.float0:
        raise TypeError("float0 values are not placed on devices")
    aval = typed(aval, placement)
    if placement.device is not None:
        return _put(aval, placement, [x], committed)
    value = np.asarray(x)
    sharding = placement.public
    pieces = [value[index] for index in sharding.indices(value.shape)]
    if pieces[0].size * len(pieces) == value.size > 0:
        return _put(aval, placement, pieces, committed)
    # One call cannot read the same host memory for two devices.
    local = aval.with_shape(pieces[0].shape)
    return assemble(
        aval,
        placement,
        [
            _put(local, native_sharding(device, sharding.special_memory_kind), [piece], True)
            for device, piece in zip(placement.devices, pieces, strict=True)
        ],
    )


def _put(aval: ShapedArray, placement: Any, pieces: Sequence[Any], committed: bool) -> Any:
    return _jax.batched_device_put(
        aval,
        placement,
        pieces,
        list(placement.devices),
        committed=committed,
        force_copy=False,
        host_buffer_semantics=SEMANTICS.IMMUTABLE_ONLY_DURING_CALL,
        enable_x64=True,
    )


def copy_buffer(buffer: Any, placement: Any) -> Any:
    """A buffer copied to other devices of the same client, cut in the same way."""
    return _jax.batched_copy_array_to_devices_with_sharding(
        [buffer],
        [device_list(placement.devices)],
        [placement],
        [CopySemantics.ALWAYS_COPY],
    )[0]


def retyped(buffer: Any, target: Any) -> Any:
    """The same memory, described as `target` says."""
    return buffer._rewrap_with_aval_and_sharding(typed(buffer.aval, target), target)


def assemble(aval: ShapedArray, placement: Any, pieces: Sequence[Any]) -> Any:
    """One buffer of those of single devices, in order of the devices."""
    return _jax.ArrayImpl(aval, placement, list(pieces), committed=True, _skip_checks=True)
