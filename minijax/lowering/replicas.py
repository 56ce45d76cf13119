"""How many replicas a program needs.

An operation that maps over devices, such as `pmap`, needs a replica of the program on each of them:
a copy that runs on its own shards of the values.  The counts decide which programs `jit` runs as
replicas (`device_assignment.plan_call`) and how many devices `pmap` takes.
"""

from __future__ import annotations

import operator
from typing import Any

from minijax.core.aval import ShapedArray
from minijax.core.cache import Cache
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, holders, jaxprs_in_params
from minijax.core.rules import Facts

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


def count(closed: ClosedJaxpr) -> int:
    """Returns how many replicas a program needs: 1 if it maps over no devices."""
    replica_count = _counts.find(closed)
    if replica_count is None:
        replica_count = _counts.keep(closed, None, count_in(closed.jaxpr))
    return int(replica_count)


def count_in(jaxpr: Jaxpr) -> int:
    """Returns the largest number of replicas that an equation needs; nested maps multiply."""
    most = 1
    for eqn in holders(jaxpr):
        for inner in jaxprs_in_params(eqn.params):
            replica_count = eqn.params.get(device_count_param.of(eqn.primitive), 1)
            most = max(most, replica_count * count_in(inner))
    return most


def maps_devices(jaxpr: Jaxpr) -> bool:
    """Returns whether an equation maps over devices, even over one."""
    return any(
        device_count_param.of(eqn.primitive) or any(map(maps_devices, jaxprs_in_params(eqn.params)))
        for eqn in holders(jaxpr)
    )


def global_aval(aval: ShapedArray, sharding: Any) -> ShapedArray:
    """Returns the type of an array whose shards have type `aval`."""
    if sharding.is_fully_replicated:
        return aval
    return aval.with_shape(tuple(map(operator.mul, aval.shape, sharding.factors(aval.ndim))))
