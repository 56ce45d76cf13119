"""Compilation: from a StableHLO module to a loaded executable.  Step 6 of a call.

Input: an MLIR module and options.  Output: jaxlib's executable.  XLA also tells about a module
before it is compiled: its HLO and its estimated costs.

A back end may compile for itself: it has a method `compile_replicated(program)`, which is handed a
module with all that is needed to call it, a `ForeignProgram`, and returns a function of the
arguments.
"""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib import _jax, xla_client

from minijax.core import capabilities, config
from minijax.core.aval import ShapedArray
from minijax.core.errors import error, warn
from minijax.runtime import client, placement, program_store
from minijax.runtime.array import physical_aval
from minijax.runtime.execute import Executable
from minijax.runtime.transfer import InputsHandler, ResultsHandler


def computation(module: Any) -> Any:
    """An MLIR module as an XLA computation."""
    with io.BytesIO() as stream:
        module.operation.write_bytecode(stream)
        bytecode = stream.getvalue()
    return _jax.mlir.mlir_module_to_xla_computation(bytecode)


def hlo_text(module: Any) -> str:
    """An MLIR module as HLO text, not optimized."""
    return str(computation(module).as_hlo_text())


def module_costs(module: Any, client: _jax.Client) -> dict[str, float]:
    """XLA's estimate of operations and bytes of a module."""
    hlo = computation(module).get_hlo_module()
    return dict(_jax.hlo_module_cost_analysis(client, hlo))


Run = Callable[[Sequence[Any]], Sequence[Any]]


class ForeignProgram(NamedTuple):
    """What a back end is handed that compiles for itself.

    Attributes:
        name: what the program is called.
        module: the StableHLO module.
        options: jaxlib's compile options, with the devices.
        devices: where it shall run, in order.
        host_callbacks: Python functions that the module calls, by index.
        is_trivial: whether it computes nothing: its results are arguments and constants.
        in_indices: for each argument that it uses, the part of it that each device holds.
        place: makes C++ arrays, one for each parameter, of the arguments of a call.
        build: makes the results of a call of C++ arrays, or of lists of their pieces.
    """

    name: str
    module: Any
    options: Any
    devices: tuple[Any, ...]
    host_callbacks: tuple[Any, ...]
    is_trivial: bool
    in_indices: tuple[tuple[Any, ...], ...]
    place: InputsHandler
    build: ResultsHandler


def compiler_of(devices: tuple[Any, ...]) -> Callable[[ForeignProgram], Run] | None:
    """What compiles for devices whose back end does so for itself; None for others."""
    return getattr(client.get_device_backend(devices[0]), "compile_replicated", None)


def hand_over(
    compiler: Callable[[ForeignProgram], Run],
    executable: Executable,
    name: str,
    module: Any,
    options: _jax.CompileOptions,
    *,
    is_trivial: bool,
) -> None:
    """Has a back end compile a program, and an executable without a program run it.

    Args:
        compiler: the back end's `compile_replicated`.
        executable: all that is known about the program, but how to run it.
        name: what it is called.
        module: the StableHLO module.
        options: jaxlib's compile options.
        is_trivial: whether it computes nothing.
    """
    executable.foreign = compiler(
        ForeignProgram(
            name,
            module,
            options,
            executable.devices,
            executable.callbacks,
            is_trivial,
            tuple(map(_indices, executable.place.avals, executable.place.targets)),
            executable.place,
            executable.build,
        )
    )


def _indices(aval: ShapedArray, target: _jax.Sharding) -> tuple[Any, ...]:
    shape = physical_aval(aval).shape
    return tuple(place.slices for place in placement.places(target.public, shape))


logger = logging.getLogger("minijax")


def compile_module(
    module: Any,
    devices: tuple[Any, ...],
    options: _jax.CompileOptions,
    host_callbacks: Sequence[Any] = (),
    *,
    may_store: bool = True,
) -> tuple[Any, bytes | None]:
    """Compiles a module for one device, or for several: partitioned, or as so many replicas.

    Gives jaxlib's executable, and its code where it comes from a store of programs.

    Args:
        module: the MLIR module.
        devices: where it will run.
        options: what `options_for` gives.
        host_callbacks: Python functions that the module calls, by index.
        may_store: whether the program may come from a store of programs, and go into one.

    Raises:
        JaxRuntimeError: XLA does not know an option.
    """
    backend = client.get_device_backend(devices[0])
    try:
        return program_store.compile_or_get_cached(
            backend, module, devices, options, host_callbacks, may_store=may_store
        )
    except xla_client.XlaRuntimeError as caught:
        if "No such compile option" in str(caught):
            problem = "XLA does not know a compiler option."
            got = str(dict(options.env_option_overrides))
            expected = "fields of XLA's DebugOptions"
            error(
                xla_client.XlaRuntimeError,
                "compile",
                problem,
                got=got,
                expected=expected,
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
    use_shardy: bool = True,
) -> Any:
    """Jaxlib's options for the compilation of a module.

    Args:
        devices: where it will run.
        options: fields of XLA's DebugOptions by name.
        free: which parameters and which results GSPMD may place as it likes; Shardy reads that
            in the module.
        num_args: how many arguments the module's main function has.
        replicas: how many devices run a copy of the module.
        use_shardy: whether Shardy, and not GSPMD, partitions the module.
    """
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
        build.use_shardy_partitioner = use_shardy
        ins, outs = free
        build.allow_spmd_sharding_propagation_to_parameters = list(ins) or [False]
        build.allow_spmd_sharding_propagation_to_output = list(outs) or [False]
    set_efforts(build)
    build.optimization_level = _LEVELS[config.optimization_level.value]
    build.memory_fitting_level = _LEVELS[config.memory_fitting_level.value]
    overrides = client.expand_options(
        {
            **(client.UNOPTIMIZED if config.disable_most_optimizations.value else {}),
            **({} if config.compiler_enable_remat_pass.value else _WITHOUT_REMAT),
            **(options or {}),
        }
    )
    parts = overrides.get(_PARTS, 1)
    if not re.fullmatch(r"0*[1-9]\d{0,3}", str(parts)):
        error(ValueError, "compile", f"{_PARTS} must be from 1 to 9,999.", got=repr(parts))
    if overrides:
        compile_options.env_option_overrides = list(overrides.items())
    compile_options.parameter_is_tupled_arguments = needs_tuple_arguments(
        num_args, devices[0].platform
    )
    return compile_options


def set_efforts(build: _jax.ExecutableBuildOptions) -> None:
    """Sets the efforts that the user has chosen, or warns that this jaxlib has no such options."""
    efforts = {
        "exec_time_optimization_effort": config.exec_time_optimization_effort.value,
        "memory_fitting_effort": config.memory_fitting_effort.value,
    }
    if capabilities.has_compilation_efforts(build):
        for name, effort in efforts.items():
            setattr(build, name, effort)
        return
    for name, effort in efforts.items():
        if effort:
            level = name.replace("exec_time_", "").replace("effort", "level")
            problem = "has no effect: this version of jaxlib compiles by levels only."
            warn(UserWarning, name, problem, got=str(effort), fix=f"set {level}, such as 'O1'")


_PARTS = "xla_cpu_parallel_codegen_split_count"

_LEVELS = {"UNKNOWN": 0, "O0": 9, "O1": 19, "O2": 29, "O3": 39}
"""XLA's numbers for levels of optimization."""

_WITHOUT_REMAT = {"xla_disable_hlo_passes": "rematerialization"}
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
