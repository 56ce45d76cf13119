"""The late bindings between rooms: array operators, the eager trace, zeros, what placed types mean.

`core` leaves them open; `numpy/operators.py`, `lowering/eager.py`, `interpreters/structural.py`
and `sharding/rules.py` fill them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from minijax.core import aval, operators, trace
from minijax.core.operators import Aval, Operand, Param, Sharding


def fill_operators(functions: Mapping[str, object]) -> None:
    """Makes `functions` the operators and methods of arrays and tracers, by name."""
    for name, function in functions.items():
        setattr(operators.ArrayOperators, name, function)


def fill_eager_trace(eager: trace.Trace) -> None:
    """Makes `eager` the trace of every thread that is not tracing anything."""
    trace.current.set_global(eager)


def fill_whole_sharding(function: Callable[[int], Sharding]) -> None:
    """Makes `function` of a rank tell the sharding of values that nothing splits."""
    aval.whole_sharding = function


def fill_zeros(function: Callable[[Aval], Operand]) -> None:
    """Makes `function` of a type make a value of zeros."""
    aval.zeros = function


def fill_typing(
    in_force: Callable[[], trace.Typing],
    meet: Callable[[trace.Trace, Aval], None],
    meet_mapped: Callable[[Param, Aval, int], Param],
) -> None:
    """Makes these functions tell how traces type values that are placed on devices.

    Args:
        in_force: the typing of a trace that begins now.
        meet: called with a staging trace and a type that is not plain.
        meet_mapped: called with the kind of a batch and such a type, for the kind from then on.
    """
    trace.typing_in_force = in_force
    trace.meet = meet
    trace.meet_mapped = meet_mapped
