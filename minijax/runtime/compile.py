"""Compilation: from a StableHLO module to a loaded executable.  Step 6 of the walk.

Input: an MLIR module and options.  Output: jaxlib's executable.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxlib import xla_client

from minijax.core.errors import message

logger = logging.getLogger("minijax")


def compile_module(
    module: Any,
    device: Any,
    *,
    options: Mapping[str, Any] | None = None,
    host_callbacks: Sequence[Any] = (),
) -> Any:
    """Compiles a module for one device.

    Args:
        module: the MLIR module.
        device: where it will run.
        options: fields of XLA's DebugOptions by name.
        host_callbacks: Python functions that the module calls, by index.

    Raises:
        ValueError: XLA does not know an option.
    """
    compile_options = xla_client.CompileOptions()
    build = compile_options.executable_build_options
    compile_options.num_replicas = build.num_replicas = 1
    compile_options.num_partitions = build.num_partitions = 1
    build.device_assignment = xla_client.DeviceAssignment.create(np.array([[device.id]]))
    if options:
        compile_options.env_option_overrides = [(name, value) for name, value in options.items()]
    devices = xla_client.DeviceList((device,))
    extra = [list(host_callbacks)] if host_callbacks else []
    try:
        return device.client.compile_and_load(module, devices, compile_options, *extra)
    except xla_client.XlaRuntimeError as error:
        if options and "No such compile option" in str(error):
            raise ValueError(
                message(
                    "compile",
                    "XLA does not know a compiler option.",
                    got=str(dict(options)),
                    expected="fields of XLA's DebugOptions",
                )
            ) from error
        raise
