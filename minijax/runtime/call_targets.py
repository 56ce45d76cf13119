"""The table of foreign functions that compiled programs call by name.

Input: a name, a platform and the address of machine code, in a capsule.  XLA keeps the table for
the whole process; a function for a platform that has no client yet is kept until it has one.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from jaxlib import xla_client

LEGACY, TYPED = 0, 1
"""Versions of the interface between XLA and foreign functions, as the table numbers them."""

_KERNELS_OF_PLATFORM = {
    "cpu": ("jaxlib.lapack",),
    "cuda": ("jaxlib.gpu_solver", "jaxlib.gpu_linalg", "jaxlib.gpu_sparse"),
    "rocm": ("jaxlib.gpu_solver", "jaxlib.gpu_linalg", "jaxlib.gpu_sparse"),
}

_lock = threading.Lock()
_batch_partitionable: set[str] = set()
_with_kernels: set[str] = set()


def register(
    name: str,
    function: Any,
    platform: str = "cpu",
    api_version: int = TYPED,
    traits: int = 0,
) -> None:
    """Puts a function into the table.

    Args:
        name: what programs call.
        function: a capsule of its address, or a capsule for each stage of a call.
        platform: the back end it is for.
        api_version: `TYPED` or `LEGACY`.
        traits: bits of XLA's FFI traits.
    """
    xla_client.register_custom_call_target(
        name, function, platform, api_version, xla_client.CustomCallTargetTraits(traits)
    )


def register_type(name: str, declaration: Mapping[str, Any], platform: str = "cpu") -> None:
    """Makes a type known whose values stateful functions keep.

    Args:
        name: the type's name.
        declaration: capsules of its id (`type_id`) and of how to delete a value (`type_info`).
        platform: the back end it is for.
    """
    xla_client.register_custom_type(name, dict(declaration), platform)


def register_as_batch_partitionable(name: str) -> None:
    """Tells that a function works on the entries of leading dimensions one by one."""
    with _lock:
        if name not in _batch_partitionable:
            xla_client.register_custom_call_as_batch_partitionable(name)
            _batch_partitionable.add(name)


def is_batch_partitionable(name: str) -> bool:
    """Whether a function is known to work on the entries of leading dimensions one by one."""
    return name in _batch_partitionable


def provide_linear_algebra(platform: str) -> None:
    """Puts jaxlib's kernels of linear algebra for a platform into the table, the first time.

    Nothing happens on platforms for which this installation has none.
    """
    if platform in _with_kernels:
        return
    for module in map(importlib.import_module, _KERNELS_OF_PLATFORM.get(platform, ())):
        _provide(module)
        if platform == "cpu":
            # It looks for LAPACK among what SciPy brings, which takes a while.
            module._lapack.initialize()
    _with_kernels.add(platform)


def _provide(module: ModuleType) -> None:
    for table, functions in module.registrations().items():
        for name, function, version in functions:
            xla_client.register_custom_call_target(name, function, table, version)
    for name in module.batch_partitionable_targets():
        register_as_batch_partitionable(name)
