"""Moving arrays between placements, outside compiled programs.

Input: an array and a sharding.  Output: the same values, placed so.  Between placements on the
same accelerators a compiled program moves them, also in another order of these; else pieces are
copied, see `runtime/transfer.py`.  Values on host devices that are cut otherwise pass through NumPy
in any order: their memory is the host's, and nothing has to be compiled.
"""

from __future__ import annotations

from typing import Any

from minijax.core import monitoring
from minijax.core.aval import ShapedArray
from minijax.core.cache import cached
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from minijax.interpreters.reshard import reshard_p
from minijax.lowering import program
from minijax.lowering.call_plan import ProgramOptions, RequestedPlacement
from minijax.runtime import agreement, client, in_flight, placement, transfer
from minijax.runtime.array import Array, is_array, physical_aval, pieces_of, rewrapped, to_numpy
from minijax.sharding import hlo
from minijax.sharding.base import Sharding
from minijax.sharding.hlo import Tiling
from minijax.sharding.named import GSPMDSharding, NamedSharding

# Where memory is the host's, its copies are faster than programs that devices wait in.  From rows
# to columns over eight devices in the opposite order, in milliseconds through the host and by a
# program: 0.2 and 1.1 for 64 x 64 numbers, 0.5 and 1.6 for 512 x 512, 5 and 9 for 2048 x 2048.
NEAR_THE_HOST = frozenset({"cpu"})


def placed(x: Array, sharding: Sharding, *, may_alias: bool = True) -> Array:
    """The array placed as `sharding` says, and committed there.

    Args:
        x: the array.
        sharding: where it is to be.
        may_alias: whether the result may have memory in common with `x`.
    """
    buffer = x.buffer
    in_flight.check_alive(buffer)
    source = buffer._sharding
    target = placement.native(sharding, buffer.aval.ndim)
    if client.peers() is not None:
        buffer = _among_processes(buffer, target)
        source = buffer._sharding
        x = x if buffer is x.buffer else rewrapped(buffer, x)
    elif _is_in_another_order(source, target):
        buffer = _reordered(buffer, target.devices)
        source, x = buffer._sharding, rewrapped(buffer, x)
    if _needs_program(source, target):
        found = _by_program(x, sharding, target)
    else:
        found = transfer.moved(buffer, target)
        if not may_alias and (found is buffer or placement.is_shared(found)):
            found = transfer.copied(found)
    if found._sharding.public != sharding or not found._committed:
        found = transfer.aliased(found, target)
    # Two arrays may not hold one buffer: where one is donated the other would not know.
    return x if found is buffer else rewrapped(found, x)


def beside(made: object, *values: Any) -> Any:
    """An array, moved to where the first of the values is that the user has placed.

    Traced values stay as they are.
    """
    if not is_array(made):
        return made
    where = transfer.placement_beside(made.shape, values)
    return made if where is None else placed(made, where)


def _among_processes(buffer: Any, target: Any) -> Any:
    """An array about to be moved, where that concerns several processes: checked.

    It is described in the order of the target's devices, if these are the same.

    Raises:
        ValueError: it shall go to one device, or the processes have different arrays to place.
        NotImplementedError: it shall go to other devices than those of all processes it is on.
    """
    source = buffer._sharding
    wanted = target.public
    if placement.is_readable(source.public):
        if source.public.is_fully_addressable and not wanted.is_fully_addressable:
            agreement.check_same("device_put", to_numpy(buffer), wanted)
        return buffer
    if set(source.devices) == set(target.devices):
        return _reordered(buffer, target.devices)
    error(
        ValueError if target.device is not None else NotImplementedError,
        "device_put",
        "other processes hold pieces of the array, which shall go to other devices.",
        got=f"{buffer.aval} with {source.public}, to {wanted}",
        expected="the devices that the array is on",
        fix="first replicate it: device_put(x, NamedSharding(mesh, P()))",
    )


def _reordered(buffer: Any, devices: tuple[Any, ...]) -> Any:
    """The same array in terms of its devices in another order."""
    source = buffer._sharding
    if source.devices == devices:
        return buffer
    order = [source.devices.index(device) for device in devices]
    ndim = buffer.aval.ndim
    factors, coordinates = source.public.tiling(ndim)
    tiling = hlo.of_tiling(Tiling(factors, coordinates[order]))
    found = GSPMDSharding(devices, tiling, memory_kind=source.memory)
    here = placement.local_places(source.public, buffer.aval.shape)
    pieces = {place.device: piece for place, piece in zip(here, pieces_of(buffer), strict=True)}
    own = [pieces[device] for device in devices if device in pieces]
    made = placement.assemble(buffer.aval, placement.native(found, ndim), own)
    placement.join(made, own)
    return made


def _is_in_another_order(source: Any, target: Any) -> bool:
    """Whether accelerators hold what they are to exchange, in terms of another order of them."""
    return (
        source.devices != target.devices
        and set(source.devices) == set(target.devices)
        and source.hlo != target.hlo
        and source.devices[0].platform not in NEAR_THE_HOST
        and not placement.is_unreduced(source.public)
    )


def _needs_program(source: Any, target: Any) -> bool:
    """Whether a compiled program moves values better than copies of pieces, or at all."""
    if source.device is not None or source.devices != target.devices or source.hlo == target.hlo:
        return False
    return (
        source.devices[0].platform not in NEAR_THE_HOST
        or not source.public.is_fully_addressable
        or placement.is_unreduced(source.public)
        or placement.is_unreduced(target.public)
    )


@cached("moves", key="type, placement", most=512, emptied=True)
def _identity(aval: ShapedArray, wanted: object = None) -> ClosedJaxpr:
    """The program that returns its argument at another place: resharded to `wanted`, if given."""
    var = out = Var(aval)
    eqns = []
    if wanted is not None:
        out = Var(aval)
        eqns.append(Eqn([var], [out], reshard_p, {"dst_sharding": wanted}))
    return ClosedJaxpr(Jaxpr([], [var], [out], eqns), [])


def _by_program(x: Array, sharding: Sharding, target: Any) -> Any:
    monitoring.transfers["by a program"] += 1
    # A sum that is still to be done is done by an operation, not by returning it.
    wanted = None
    if placement.is_unreduced(x.sharding) and isinstance(sharding, NamedSharding):
        wanted = sharding.abstract
    identity = _identity(physical_aval(x.aval).update(sharding=None), wanted)
    options, requested = ProgramOptions("device_put"), RequestedPlacement((), (sharding,))
    (out,) = program.executable_for(identity, [x.buffer], options, requested)([x.buffer])
    return placement.retyped(out.buffer, target)
