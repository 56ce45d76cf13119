"""All-reduce on a ring: devices talk to their neighbours only, and all end up with the sum.

Each device cuts its vector into as many parts as there are devices. On a first lap every part
collects summands from device to device, on a second one the sums are handed round. So a device
sends 2 (n - 1) / n of its vector, and no algorithm needs less: P. Patarasuk and X. Yuan, "Bandwidth
optimal all-reduce algorithms for clusters of workstations", 2009.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import minijax as jax
import placements
from minijax import lax
from minijax.sharding import NamedSharding
from minijax.sharding import PartitionSpec as P
from terminal import Panel, heading, paragraph, show

DEVICES = 8
LENGTH = 8192


class Result(NamedTuple):
    """The sums, one row from each device; and what each device sends, on the ring and otherwise."""

    sums: np.ndarray
    ring_bytes: int
    gather_bytes: int


def main() -> Result:
    """Adds up eight vectors on the ring, and compares with one device and with `psum`."""
    add_up, (vectors,) = workload()
    sums = np.asarray(add_up(vectors))
    np.testing.assert_allclose(sums, np.tile(np.sum(vectors, axis=0), (DEVICES, 1)), atol=1e-4)
    np.testing.assert_array_equal(sums, np.tile(sums[0], (DEVICES, 1)))

    laps = jax.testing.assert_collectives(add_up, exactly=True, collective_permute=2)(vectors)
    ring_bytes = sum(lap.bytes * (lap.times or 0) for lap in laps)
    gather_bytes = (DEVICES - 1) * sums[0].nbytes
    heading("All-reduce on a ring", f"{DEVICES} devices add up vectors of {LENGTH:,} numbers.")
    show(Panel("what each device sends in a step of a lap", placements.sent(laps)))
    paragraph(
        f"""Each lap takes {laps[0].times} steps, so a device sends {ring_bytes:,} bytes. Were it to
        send its vector to all others, that would be {gather_bytes:,}. All devices hold the same
        sums, to the last bit."""
    )
    return Result(sums, ring_bytes, gather_bytes)


def workload() -> tuple[Callable[..., jax.Array], tuple[jax.Array]]:
    """The program on all devices, and vectors [device, number] to add up."""
    mesh = jax.make_mesh((DEVICES,), ("ring",))
    values = np.random.default_rng(0).normal(size=(DEVICES, LENGTH)).astype(np.float32)
    # Types cannot tell that the results are the same everywhere, so each device returns its own.
    add_up = jax.shard_map(ring_sum, mesh=mesh, in_specs=P("ring"), out_specs=P("ring"))
    return jax.jit(add_up), (jax.device_put(values, NamedSharding(mesh, P("ring"))),)


def ring_sum(x: jax.Array) -> jax.Array:
    """The sum of the arrays of all devices, on each of them."""
    n, here = lax.axis_size("ring"), lax.axis_index("ring")
    onward = [(i, (i + 1) % n) for i in range(n)]

    def collect(step: jax.Array, parts: jax.Array) -> jax.Array:
        arrived = lax.ppermute(parts[(here - step) % n], "ring", onward)
        return parts.at[(here - step - 1) % n].add(arrived)

    def hand_round(step: jax.Array, parts: jax.Array) -> jax.Array:
        arrived = lax.ppermute(parts[(here - step + 1) % n], "ring", onward)
        return parts.at[(here - step) % n].set(arrived)

    parts = lax.fori_loop(0, n - 1, collect, x.reshape(n, -1))
    # The part that came last is complete, and it is the first one to hand on.
    return lax.fori_loop(0, n - 1, hand_round, parts).reshape(x.shape)


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", DEVICES)
    main()
