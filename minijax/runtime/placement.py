"""What C++ sees of a sharding: interned, exact `GSPMDSharding` objects.

jaxlib compares these by identity, so there is one for each device; the public description is
kept on it as an attribute.
"""

from __future__ import annotations

from typing import Any

from jaxlib import _jax, xla_client

from minijax.core import dtypes
from minijax.core.aval import ShapedArray
from minijax.sharding.single_device import SingleDeviceSharding

_native: dict[Any, Any] = {}

SEMANTICS = xla_client.HostBufferSemantics
CopySemantics = xla_client.ArrayCopySemantics


def native_sharding(device: Any, memory_kind: str | None = None) -> Any:
    """The C++ sharding of whole arrays on one device."""
    key = (device, memory_kind)
    found = _native.get(key)
    if found is None:
        made = _jax.GSPMDSharding(
            xla_client.DeviceList((device,)),
            xla_client.HloSharding.replicate(),
            memory_kind=memory_kind,
        )
        made.public = SingleDeviceSharding(device, memory_kind=memory_kind)
        made.device = device
        found = _native.setdefault(key, made)
    return found


def put_host_value(x: Any, aval: ShapedArray, device: Any, *, committed: bool) -> Any:
    """Copies a NumPy array or scalar, already of the dtype of `aval`, to a device."""
    if aval.dtype == dtypes.float0:
        raise TypeError("float0 values are not placed on devices")
    return _jax.batched_device_put(
        aval,
        native_sharding(device),
        [x],
        [device],
        committed=committed,
        force_copy=False,
        host_buffer_semantics=SEMANTICS.IMMUTABLE_ONLY_DURING_CALL,
        enable_x64=True,
    )


def copy_to_device(buffer: Any, device: Any) -> Any:
    """A buffer copied to another device of the same client; committed there."""
    return _jax.batched_copy_array_to_devices_with_sharding(
        [buffer],
        [xla_client.DeviceList((device,))],
        [native_sharding(device)],
        [CopySemantics.ALWAYS_COPY],
    )[0]
