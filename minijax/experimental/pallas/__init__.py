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
from minijax.transforms.core_map import core_map
from minijax.transforms.core_pipeline import BlockSpec
from minijax.transforms.kernels import kernel, when
from minijax.transforms.run_state import run_state
from minijax.transforms.scratch import MemoryRef, MemorySpace, run_scoped, with_scoped

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
