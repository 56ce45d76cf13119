import minijax.lax.reference_indexing
from minijax.experimental.pallas import tpu as tpu
from minijax.lax.reference_indexing import Slice as Slice, ds as ds
from minijax.lax.semaphores import (
    semaphore_read as semaphore_read,
    semaphore_signal as semaphore_signal,
    semaphore_wait as semaphore_wait,
)
from minijax.experimental.cores.core_map import (
    ANY as ANY,
    MemoryRef as MemoryRef,
    MemorySpace as MemorySpace,
    core_map as core_map,
    kernel as kernel,
    run_scoped as run_scoped,
    run_state as run_state,
    when as when,
    with_scoped as with_scoped,
)
from minijax.experimental.cores.pipeline import BlockSpec as BlockSpec

dslice = minijax.lax.reference_indexing.ds
