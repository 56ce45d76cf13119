"""The state language of kernels: scratch memory, semaphores, copies and cores, simulated.

Names of jax.experimental.pallas (0.10) for programs that change references: what a kernel for a
device with cores says beside its arithmetic.  On a host the cores run one after the other in a
compiled loop, and mistakes in the use of copies are found before.  There is no kernel compiler
here: no `pallas_call`, and no code for one kind of device.
"""

from minijax.experimental.pallas import tpu
from minijax.lax.reference_indexing import Slice, ds
from minijax.lax.reference_indexing import ds as dslice
from minijax.lax.semaphores import semaphore_read, semaphore_signal, semaphore_wait
from minijax.transforms.cores.core_map import (
    MemoryRef,
    MemorySpace,
    core_map,
    kernel,
    run_scoped,
    run_state,
    when,
    with_scoped,
)
from minijax.transforms.cores.pipeline import BlockSpec

ANY = MemorySpace.ANY

__all__ = [
    "ANY",
    "BlockSpec",
    "MemoryRef",
    "MemorySpace",
    "Slice",
    "core_map",
    "ds",
    "dslice",
    "kernel",
    "run_scoped",
    "run_state",
    "semaphore_read",
    "semaphore_signal",
    "semaphore_wait",
    "tpu",
    "when",
    "with_scoped",
]
