"""All that depends on the version of jaxlib, in one place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxlib import _jax, version

JAXLIB = tuple(int(part) for part in version.__version__.split(".")[:3] if part.isdigit())
_BEFORE_0_11 = JAXLIB < (0, 11)

ONE_OP_OPTIONS: Mapping[str, Any] = {"xla_cpu_use_fusion_emitters": False} if _BEFORE_0_11 else {}
"""Options that compile small programs faster: a single operation gains nothing from fusion, and
takes half the time without it.  Later versions of XLA have no such choice."""

UNOPTIMIZED: Mapping[str, Any] = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
}
"""Options that compile any program faster, to slower code."""


def result_handler(aval: Any, sharding: Any, committed: bool) -> Any:
    """What makes an array of type `aval` of an executable's result."""
    try:
        return _jax.array_result_handler(aval, sharding, committed, True)
    except TypeError:
        # Newer versions never check what they are told, so there is nothing to skip.
        return _jax.array_result_handler(aval, sharding, committed)
