"""The two late bindings between rooms: array operators, and the eager trace.

`core` leaves them open; `numpy/operators.py` and `interpreters/eager.py` fill them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minijax.core import operators, trace


def fill_operators(functions: Mapping[str, Any]) -> None:
    """Makes `functions` the operators and methods of arrays and tracers, by name."""
    for name, function in functions.items():
        setattr(operators.ArrayOperators, name, function)


def fill_eager_trace(eager: trace.Trace) -> None:
    """Makes `eager` the trace of every thread that is not tracing anything."""
    trace.current.set_global(eager)
