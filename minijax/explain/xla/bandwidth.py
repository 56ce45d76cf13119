"""How many bytes a second a device reads and writes: measured once."""

from __future__ import annotations

import time

import numpy as np

from minijax.core.cache import Cache
from minijax.core.native import Device
from minijax.lax.binary import mul
from minijax.transforms.device_put import device_put
from minijax.transforms.jit.jit import jit

_BYTES = 1 << 27
"""The size of the array: beyond what the caches of a processor hold."""

_TRIES = 5

_measured: dict[str, float] = Cache(
    "measured bandwidth", "how many bytes a second a device's memory moves", key="kind of device"
).table()


def bandwidth_of(device: Device) -> float:
    """Bytes a second that a device reads and writes as it scales a large array in its place.

    Of several tries the fastest counts.  Measured at the first call for each kind of device.
    """
    if device.device_kind not in _measured:
        scale = jit(lambda x: mul(x, np.float32(0.5)), donate_argnums=0)
        x = device_put(np.ones(_BYTES // 4, np.float32), device)
        times = []
        for _ in range(_TRIES + 1):
            begin = time.perf_counter()
            x = scale(x).block_until_ready()
            times.append(time.perf_counter() - begin)
        _measured[device.device_kind] = 2 * _BYTES / min(times[1:])
    return _measured[device.device_kind]
