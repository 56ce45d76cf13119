"""What a report of a fault should say about where it happened."""

from __future__ import annotations

import os
import platform
import sys
from typing import Literal, overload

import numpy as np
from jaxlib import version

from minijax.runtime import client


@overload
def print_environment_info(return_string: Literal[True]) -> str: ...


@overload
def print_environment_info(return_string: Literal[False] = ...) -> None: ...


def print_environment_info(return_string: bool = False) -> str | None:
    """Prints versions, devices, the machine, and environment variables that matter.

    Args:
        return_string: whether to return the text instead of printing it.

    Source: mirrors jax.print_environment_info (0.10).

    Example:
        >>> jax.print_environment_info(return_string=True).splitlines()[0]
        'minijax: 0.1.0'
    """
    kinds = sorted({device.device_kind for device in client.devices()})
    variables = [
        f"{name}={value}"
        for name, value in sorted(os.environ.items())
        if name == "XLA_FLAGS" or name.startswith(("MINIJAX_", "TF_CPP_"))
    ]
    lines = [
        f"minijax: {sys.modules['minijax'].__version__}",
        f"jaxlib: {version.__version__}",
        f"numpy: {np.__version__}",
        f"python: {sys.version}",
        f"devices: {client.device_count()} ({', '.join(kinds)}), "
        f"{client.local_device_count()} of them here",
        f"processes: {client.process_count()}",
        f"platform: {platform.platform()}",
        *variables,
    ]
    text = "\n".join(lines)
    if return_string:
        return text
    print(text)  # noqa: T201  what it is for
    return None
