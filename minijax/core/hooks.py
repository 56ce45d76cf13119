"""The late bindings between rooms: array operators, the eager trace, and whole shardings.

`core` leaves them open; `numpy/operators.py`, `interpreters/eager.py` and `sharding/rules.py` fill
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from minijax.core import aval, operators, trace


def fill_operators(functions: Mapping[str, Any]) -> None:
    """Makes `functions` the operators and methods of arrays and tracers, by name."""
    for name, function in functions.items():
        setattr(operators.ArrayOperators, name, function)


def fill_eager_trace(eager: trace.Trace) -> None:
    """Makes `eager` the trace of every thread that is not tracing anything."""
    trace.current.set_global(eager)


def fill_whole_sharding(function: Callable[[int], Any]) -> None:
    """Makes `function` of a rank tell the sharding of values that nothing splits."""
    aval.whole_sharding = function
