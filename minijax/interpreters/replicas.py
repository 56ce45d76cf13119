"""Replica mode: programs of which each device runs a copy, on its own pieces of the values.

Input: programs that map over devices.  Output: how many replicas they need, and where `jit` runs
those that it finds a map in.  `pmap` says itself where its own programs run.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

from minijax.core import meshes
from minijax.core.aval import ShapedArray
from minijax.core.cache import Cache
from minijax.core.errors import error, message
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, holders, jaxprs_in_params
from minijax.core.rules import Facts
from minijax.interpreters import assignment
from minijax.interpreters.assignment import Assignment
from minijax.interpreters.device_axes import ReplicaAxes
from minijax.runtime import client
from minijax.sharding.named import GSPMDSharding

_counts = Cache(
    "replicas",
    "how many replicas programs need",
    key="none",
    owner="jaxpr",
    counted=False,
)
device_count_param: Facts[str] = Facts("device_count_param", "")
"""The parameter that says over how many devices an operation maps, each of which runs a replica of
the program; "" if over none."""


class Replicas(NamedTuple):
    """How a program is copied; hashable.

    Attributes:
        number: the number of replicas.
        names: the axes over which the whole program is mapped, the outermost first.
        sizes: their sizes.
        shared: for each argument whether all replicas are given the same; empty if that is not
            known.
    """

    number: int
    names: tuple[Any, ...] = ()
    sizes: tuple[int, ...] = ()
    shared: tuple[bool, ...] = ()

    @property
    def axes(self) -> ReplicaAxes:
        """The axes, for collectives."""
        return ReplicaAxes(self.names, self.sizes, self.number)


def count(closed: ClosedJaxpr) -> int:
    """How many replicas a program needs: 1 if it maps over no devices."""
    found = _counts.find(closed)
    return int(_counts.keep(closed, None, count_in(closed.jaxpr)) if found is None else found)


def count_in(jaxpr: Jaxpr) -> int:
    """The largest number of replicas that an equation needs: sizes of nested maps multiply."""
    most = 1
    for eqn in holders(jaxpr):
        for inner in jaxprs_in_params(eqn.params):
            own = eqn.params.get(device_count_param.of(eqn.primitive), 1)
            most = max(most, own * count_in(inner))
    return most


def maps_devices(jaxpr: Jaxpr) -> bool:
    """Whether an equation maps over devices, also over one."""
    return any(
        device_count_param.of(eqn.primitive) or any(map(maps_devices, jaxprs_in_params(eqn.params)))
        for eqn in holders(jaxpr)
    )


def whole_aval(aval: ShapedArray, sharding: Any) -> ShapedArray:
    """The type of an array whose pieces are of type `aval`, but for the dimensions they lack."""
    gone = sharding.unstacked_dims
    if not gone:
        return aval
    factors = sharding.factors(aval.ndim)
    return aval.with_shape(tuple(factors[d] if d in gone else n for d, n in enumerate(aval.shape)))


def assignment_in_jit(closed: ClosedJaxpr, options: Any) -> Assignment:
    """Where a program runs that `jit` finds a map over devices in: all values are whole everywhere.

    Raises:
        ValueError: there are fewer devices than replicas, or the program is cut over a mesh, too.
        NotImplementedError: there are several processes.
    """
    needed = count(closed)
    name = options.name
    if client.process_count() > 1:
        error(
            NotImplementedError,
            name,
            "jit of pmap works in one process only.",
            got=f"{client.process_count()} processes",
            fix="call the mapped function outside of jit",
        )
    devices = client.local_devices()
    if needed > len(devices):
        error(
            ValueError,
            name,
            "a map inside needs more devices than there are.",
            got=f"{needed} replicas, {len(devices)} devices",
            expected=f"at most {len(devices)} replicas",
        )
    _check_not_cut(closed, options)
    warnings.warn(
        message(
            name,
            "jit of pmap copies all arguments and results to every device.",
            got=f"a function that maps over {needed} devices, inside jit",
            fix="leave jit away: pmap compiles what it maps",
        ),
        stacklevel=2,
    )
    chosen = tuple(devices[:needed])
    everywhere = GSPMDSharding.get_replicated(chosen)
    ins = (everywhere,) * len(closed.jaxpr.invars)
    outs = (everywhere,) * len(closed.jaxpr.outvars)
    return Assignment(chosen, ins, outs, None, True, None)


def _check_not_cut(closed: ClosedJaxpr, options: Any) -> None:
    """Refuses programs that are both copied and cut: XLA knows how to do one of them.

    Raises:
        ValueError: the program is cut over a mesh.
    """
    given = [s for s in (*options.in_shardings, *options.out_shardings) if s is not None]
    given += [found.sharding for found in assignment.shardings_inside(closed)]
    mesh = meshes.device_context.value
    if mesh is not None and mesh.size > 1:
        given.append(mesh)
    if given:
        error(
            ValueError,
            options.name,
            "pmap cannot be inside a program over a mesh of devices.",
            got=f"a map over {count(closed)} devices, and {given[0]}",
            fix="use shard_map or vmap in place of pmap, or call it outside of jit",
        )
