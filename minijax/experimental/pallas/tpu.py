"""Meshes of cores, copies, semaphores and pipelines, under names of jax.experimental.pallas.tpu."""

from minijax.core import deferral
from minijax.lax.semaphores import (
    SemaphoreType as SemaphoreType,
    async_copy as async_copy,
    make_async_copy as make_async_copy,
    sync_copy as sync_copy,
)
from minijax.sharding.mesh import create_tensorcore_mesh as create_tensorcore_mesh
from minijax.experimental.cores.core_map import (
    HBM as HBM,
    SMEM as SMEM,
    VMEM as VMEM,
    InterpretParams as InterpretParams,
    MemorySpace as MemorySpace,
    force_tpu_interpret_mode as force_tpu_interpret_mode,
    prefetch_scalars as prefetch_scalars,
)
from minijax.experimental.cores.pipeline import (
    ARBITRARY as ARBITRARY,
    PARALLEL as PARALLEL,
    GridDimensionSemantics as GridDimensionSemantics,
    emit_pipeline as emit_pipeline,
)

deferral.publish(globals())
