"""The late bindings between rooms: array operators, the eager trace, zeros, what placements mean.

`core` leaves them open; `numpy/operators.py`, `lowering/eager.py` and `interpreters/structural.py`
fill them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from minijax.core import aval, operators, trace, value_placement
from minijax.core.aval import AbstractValue


def fill_operators(functions: Mapping[str, object]) -> None:
    """Makes `functions` the operators and methods of arrays and tracers, by name."""
    for name, function in functions.items():
        setattr(operators.ArrayOperators, name, function)


def fill_eager_trace(eager: trace.Trace) -> None:
    """Makes `eager` the trace of every thread that is not tracing anything."""
    trace.current.set_global(eager)


def fill_zeros(function: Callable[[AbstractValue], Any]) -> None:
    """Makes `function` of a type make a value of zeros."""
    aval.zeros = function


def register_placement_semantics(semantics: trace.PlacementSemantics) -> None:
    """Registers the implementation of what placements mean to types and traces."""
    value_placement.semantics = trace.placement_semantics = semantics
