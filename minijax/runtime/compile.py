"""Compilation: from a StableHLO module to a loaded executable.  Step 6 of the walk.

Input: an MLIR module and options.  Output: jaxlib's executable.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxlib import xla_client

from minijax.core import config
from minijax.core.errors import error
from minijax.runtime import client, program_store, versions

logger = logging.getLogger("minijax")


def compile_module(
    module: Any,
    devices: tuple[Any, ...],
    *,
    options: Mapping[str, Any] | None = None,
    host_callbacks: Sequence[Any] = (),
    free: tuple[Sequence[bool], Sequence[bool]] = ((), ()),
    num_args: int = 0,
    replicas: int = 1,
    may_store: bool = True,
) -> Any:
    """Compiles a module for one device, or for several: partitioned, or as so many replicas.

    Args:
        module: the MLIR module.
        devices: where it will run.
        options: fields of XLA's DebugOptions by name.
        host_callbacks: Python functions that the module calls, by index.
        free: which parameters and which results GSPMD may place as it likes; Shardy reads that
            in the module.
        num_args: how many arguments the module's main function has.
        replicas: how many devices run a copy of the module.
        may_store: whether the program may come from a store of programs, and go into one.

    Raises:
        ValueError: XLA does not know an option.
    """
    compile_options = options_for(
        devices, options=options, free=free, num_args=num_args, replicas=replicas
    )
    backend = client.get_device_backend(devices[0])
    try:
        return program_store.compile_or_get_cached(
            backend, module, devices, compile_options, host_callbacks, may_store=may_store
        )
    except xla_client.XlaRuntimeError as caught:
        if options and "No such compile option" in str(caught):
            error(
                ValueError,
                "compile",
                "XLA does not know a compiler option.",
                got=str(dict(options)),
                expected="fields of XLA's DebugOptions",
                cause=caught,
            )
        raise


def options_for(
    devices: tuple[Any, ...],
    *,
    options: Mapping[str, Any] | None = None,
    free: tuple[Sequence[bool], Sequence[bool]] = ((), ()),
    num_args: int = 0,
    replicas: int = 1,
) -> Any:
    """Jaxlib's options for the compilation of a module; arguments as of `compile_module`."""
    compile_options = xla_client.CompileOptions()
    build = compile_options.executable_build_options
    partitions = len(devices) // replicas
    # XLA ends the process where a program is both copied and cut.
    assert replicas == 1 or partitions == 1
    compile_options.num_replicas = build.num_replicas = replicas
    compile_options.num_partitions = build.num_partitions = partitions
    build.device_assignment = xla_client.DeviceAssignment.create(
        np.array([device.id for device in devices]).reshape(replicas, partitions)
    )
    if partitions > 1:
        build.use_spmd_partitioning = True
        build.use_shardy_partitioner = config.use_shardy_partitioner.value
        ins, outs = free
        build.allow_spmd_sharding_propagation_to_parameters = list(ins) or [False]
        build.allow_spmd_sharding_propagation_to_output = list(outs) or [False]
    overrides = {
        **(versions.UNOPTIMIZED if config.disable_most_optimizations.value else {}),
        **(options or {}),
    }
    if overrides:
        compile_options.env_option_overrides = list(overrides.items())
    compile_options.parameter_is_tupled_arguments = needs_tuple_arguments(
        num_args, devices[0].platform
    )
    return compile_options


_MOST_TPU_ARGUMENTS = 2000


def needs_tuple_arguments(num_args: int, platform: str) -> bool:
    """Whether arguments must be passed as one tuple: the parameters of a TPU are limited."""
    return platform == "tpu" and num_args > _MOST_TPU_ARGUMENTS


def parameter_tilings(loaded: Any, count: int) -> list[Any]:
    """How a compiled program cuts each of its `count` parameters."""
    return _tilings(loaded and loaded.get_parameter_shardings(), count)


def result_tilings(loaded: Any, count: int) -> list[Any]:
    """How a compiled program cuts each of its `count` results."""
    return _tilings(loaded and loaded.get_output_shardings(), count)


def _tilings(protos: Any, count: int) -> list[Any]:
    if not protos:
        return [xla_client.HloSharding.replicate()] * count
    tilings = list(map(xla_client.HloSharding.from_proto, protos))
    # XLA tells a tiling that all values share once only.
    return tilings * count if len(tilings) == 1 else tilings
