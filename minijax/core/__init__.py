"""The language: types, jaxprs, primitives and the tracing context.  Imports no other room.

What JAX shows as jax.core is found here too, and loaded when it is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minijax.core import deferral

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


__getattr__ = deferral.attributes(
    __name__,
    names={
        "core.aval": "AbstractValue ShapedArray",
        "core.trace": "Trace Tracer",
        "interpreters.evaluation": "eval_jaxpr",
        "transforms.tracing": "ensure_compile_time_eval",
    },
)


def __dir__() -> list[str]:
    """The public names, without the modules that define the language."""
    return sorted(__all__)
