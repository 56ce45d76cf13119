"""Processes of which one does something else.

Run `python -m tests.runtime.processes.different REPORT CASE`.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import minijax as jax
from minijax import lax
from minijax.experimental import multihost_utils
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P
from tests.runtime.processes.part import refusal, take_part

ODD = 1


def mapped(function: Callable[[Any], Any], devices: Any = None) -> Callable[[Any], Any]:
    mesh = Mesh(np.array(jax.devices() if devices is None else devices), "x")
    return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=P("x"), out_specs=P()))


def facts() -> dict[str, Any]:
    case = CASES[sys.argv[2]]
    is_odd = jax.process_index() == ODD
    mesh = Mesh(np.array(jax.devices()), "x")
    x = jax.device_put(np.arange(24, dtype=np.float32), NamedSharding(mesh, P("x")))
    begin = time.monotonic()
    error = refusal(lambda: case(x, is_odd))
    return {
        "error": error,
        "seconds": time.monotonic() - begin,
        "again": refusal(lambda: value(mapped(total)(x))),
        "own": float(jax.numpy.arange(4.0).sum()),
        "piece": x.addressable_shards[0].data.tolist(),
    }


def value(x: Any) -> Any:
    return np.asarray(x).tolist()


def total(x: Any) -> Any:
    return lax.psum(x, "x")


def largest(x: Any) -> Any:
    return lax.pmax(x, "x")


def swapped(x: Any, is_odd: bool) -> Any:
    programs = [mapped(total), mapped(lambda x: lax.psum(2 * x, "x"))]
    return [value(program(x)) for program in (programs[::-1] if is_odd else programs)]


def other_collective(x: Any, is_odd: bool) -> Any:
    return value(mapped(lambda x: (lax.pmax if is_odd else lax.psum)(x, "x"))(x))


def other_constant(x: Any, is_odd: bool) -> Any:
    return value(jax.jit(lambda x: (x * (2 + is_odd)).sum())(x))


def other_shape(x: Any, is_odd: bool) -> Any:
    mesh = Mesh(np.array(jax.devices()), "x")
    many = jax.make_array_from_callback(
        (48,), NamedSharding(mesh, P("x")), lambda index: np.ones(48, np.float32)[index]
    )
    return value(mapped(total)(many if is_odd else x))


def other_order_later(x: Any, is_odd: bool) -> Any:
    add, most = mapped(total), mapped(largest)
    for _ in range(3):
        value(add(x)), value(most(x))
    for step in range(100_000):
        value((most if is_odd and step == 7 else add)(x))
    return "all done"


def other_map(x: Any, is_odd: bool) -> Any:
    function = largest if is_odd else total
    return jax.pmap(function, "x")(np.arange(2.0)).tolist()


def other_value_placed(x: Any, is_odd: bool) -> Any:
    if is_odd:
        return value(mapped(total)(x))
    return jax.device_put(np.ones(24), x.sharding)


def left_out(x: Any, is_odd: bool) -> Any:
    add = mapped(total)
    value(add(x))
    return "left out" if is_odd else value(add(x))


def waiting_crosswise(x: Any, is_odd: bool) -> Any:
    """Two processes of three wait for each other, in groups of two."""
    first, second, third = (jax.local_devices(process) for process in range(3))
    groups = [first + second, second + third, third + first]
    own = groups[jax.process_index()]
    mesh = Mesh(np.array(own), "x")
    y = jax.make_array_from_callback(
        (4,), NamedSharding(mesh, P("x")), lambda index: np.ones(4, np.float32)[index]
    )
    return value(mapped(total, own)(y))


def failing_callback(x: Any, is_odd: bool) -> Any:
    def host(x: Any) -> Any:
        if is_odd:
            raise ValueError("only here")
        return np.asarray(x)

    def function(x: Any) -> Any:
        return lax.psum(jax.pure_callback(host, jax.typeof(x), x), "x")

    return value(mapped(function)(x))


def barrier_left_out(x: Any, is_odd: bool) -> Any:
    if not is_odd:
        multihost_utils.sync_global_devices("begin")
    return value(mapped(total)(x))


CASES = {
    case.__name__: case
    for case in (
        swapped,
        other_collective,
        other_constant,
        other_shape,
        other_order_later,
        other_map,
        other_value_placed,
        left_out,
        waiting_crosswise,
        failing_callback,
        barrier_left_out,
    )
}


if __name__ == "__main__":
    take_part(facts)
