"""Copies of a value on the devices of a `pmap`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.interpreters import relocation
from minijax.interpreters.structural import new_axis
from minijax.runtime import client
from minijax.runtime.array import Array, array_from_host
from minijax.runtime.pmap_sharding import PmapSharding
from minijax.sharding.older import pmap_sharding_spec


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
