"""Meshes of cores, copies, semaphores and pipelines, under names of jax.experimental.pallas.tpu."""

from __future__ import annotations

from minijax.lax.semaphores import SemaphoreType, async_copy, make_async_copy, sync_copy
from minijax.sharding.mesh import create_tensorcore_mesh
from minijax.transforms.cores.core_map import (
    InterpretParams,
    MemorySpace,
    force_tpu_interpret_mode,
    prefetch_scalars,
)
from minijax.transforms.cores.pipeline import GridDimensionSemantics, emit_pipeline

ARBITRARY = GridDimensionSemantics.ARBITRARY
PARALLEL = GridDimensionSemantics.PARALLEL
HBM = MemorySpace.HBM
SMEM = MemorySpace.SMEM
VMEM = MemorySpace.VMEM

__all__ = [
    "ARBITRARY",
    "HBM",
    "PARALLEL",
    "SMEM",
    "VMEM",
    "GridDimensionSemantics",
    "InterpretParams",
    "MemorySpace",
    "SemaphoreType",
    "async_copy",
    "create_tensorcore_mesh",
    "emit_pipeline",
    "force_tpu_interpret_mode",
    "make_async_copy",
    "prefetch_scalars",
    "sync_copy",
]


def __dir__() -> list[str]:
    """The public names, without what the module is made of."""
    return sorted(__all__)
