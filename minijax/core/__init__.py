"""The language: types, jaxprs, primitives and the tracing context.  Imports no other room.

What JAX shows as jax.core is found here too, and loaded when it is named.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minijax.core.aval import AbstractValue, ShapedArray
    from minijax.core.trace import Trace, Tracer

__all__ = [
    "AbstractValue",
    "ShapedArray",
    "Trace",
    "Tracer",
    "ensure_compile_time_eval",
    "eval_jaxpr",
]


def __getattr__(name: str) -> Any:
    """Loads what JAX shows here."""
    homes = {
        "AbstractValue": "core.aval",
        "ShapedArray": "core.aval",
        "Trace": "core.trace",
        "Tracer": "core.trace",
        "ensure_compile_time_eval": "transforms.tracing",
        "eval_jaxpr": "interpreters.evaluation",
    }
    if name not in homes:
        raise AttributeError(f"module 'minijax.core' has no attribute {name!r}")
    return getattr(importlib.import_module(f"minijax.{homes[name]}"), name)


def __dir__() -> list[str]:
    """The public names, without the modules that define the language."""
    return sorted(__all__)
