"""Moving arrays between placements, outside compiled programs.

Input: an array and a sharding.  Output: the same values, placed so.  Between placements on the
same devices a compiled program moves them; else pieces are copied from device to device.
"""

from __future__ import annotations

from typing import Any

from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, Var
from minijax.interpreters import program
from minijax.runtime import placement, transfer
from minijax.runtime.array import Array, physical_aval, rewrapped
from minijax.sharding.base import Sharding

_identities: dict[Any, ClosedJaxpr] = {}


def placed(x: Array, sharding: Sharding) -> Array:
    """The array placed as `sharding` says, and committed there."""
    buffer = x.buffer
    if buffer.is_deleted():
        x.block_until_ready()  # raises, and says why
    source = buffer._sharding
    target = placement.native(sharding, buffer.aval.ndim)
    if source.device is None and source.devices == target.devices and source.hlo != target.hlo:
        return _by_program(x, sharding)
    found = transfer.moved(buffer, target)
    if found is buffer:
        found = placement.retyped(buffer, target)
    return rewrapped(found, x)


def _by_program(x: Array, sharding: Sharding) -> Array:
    aval = physical_aval(x.aval).update(sharding=None)
    identity = _identities.get(aval)
    if identity is None:
        var = Var(aval)
        identity = _identities.setdefault(aval, ClosedJaxpr(Jaxpr([], [var], [var], []), []))
    options = program.Options("device_put", out_shardings=(sharding,))
    plain = Array(x.buffer)
    (out,) = program.executable_for(identity, [plain], options)([plain])
    return rewrapped(out.buffer, x)
