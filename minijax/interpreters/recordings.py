"""Recordings: what a library function has staged once is written down again, not traced again.

Input: a call of a function of the library while a program is staged.  Output: its results.  The
equations that the call adds are remembered by the types of the arguments and all that is known of
them; a later call of the same kind adds copies of them.  Decision 0015.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import caches, config, source, tree
from minijax.core.jaxpr import Eqn, Literal, Var
from minijax.core.trace import Tracer
from minijax.interpreters import staging
from minijax.interpreters.staging import StagingTrace, StagingTracer

MOST = 4096
"""How many recordings are kept."""

_recordings: dict[Any, Recording | None] = {}
_PLAIN = (int, bool, str, type(None), np.dtype, type, enum.Enum)


class Recording(NamedTuple):
    """The equations of one call, in the variables of the trace that first made it.

    Attributes:
        parameters: the variables of the traced arguments, without repetition.
        constants: the variables of arrays that the equations take, and the arrays.
        eqns: the equations.
        outs: an atom for each result.
        out_tree: the tree of the results.
    """

    parameters: Sequence[Var]
    constants: Sequence[tuple[Var, Any]]
    eqns: Sequence[Eqn]
    outs: Sequence[Any]
    out_tree: Any


@caches.forgets
def _forget() -> None:
    _recordings.clear()


def call(
    trace: StagingTrace, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """The results of `function`, staged by `trace`, which is the current one."""
    leaves, structure = tree.flatten((args, kwargs))
    traced: list[StagingTracer] = []
    facts = _facts(trace, leaves, traced)
    if facts is None or not traced:
        return function(*args, **kwargs)
    key = (function, structure, facts, config.trace_context())
    recording = _recordings.get(key)
    if recording is not None:
        return _replayed(trace, recording, traced)
    start = len(trace.eqns)
    out = function(*args, **kwargs)
    # A call that cannot be recorded is noted too, as None: looking again would cost the same.
    if key not in _recordings:
        if len(_recordings) >= MOST:
            _recordings.clear()
        _recordings[key] = _recorded(trace, start, traced, out)
    return out


def _facts(
    trace: StagingTrace, leaves: Sequence[Any], traced: list[StagingTracer]
) -> tuple[Any, ...] | None:
    """All that a call can know of its arguments; None where that is too much to remember.

    The distinct tracers among them are appended to `traced`.
    """
    facts: list[Any] = []
    for leaf in leaves:
        kind = type(leaf)
        if kind is StagingTracer:
            if leaf.traced_by is not trace:
                return None
            # Whether two arguments are the same value is known, too.
            place = next((i for i, x in enumerate(traced) if x.variable is leaf.variable), None)
            if place is None:
                place = len(traced)
                traced.append(leaf)
            facts += (leaf.aval, place)
        elif kind is float:
            # Equal numbers may differ in their sign, and NaN equals nothing.
            facts += (kind, leaf.hex())
        elif isinstance(leaf, _PLAIN):
            facts += (kind, leaf)
        else:
            return None
    return tuple(facts)


def _recorded(
    trace: StagingTrace, start: int, traced: Sequence[StagingTracer], out: Any
) -> Recording | None:
    """What a call has added to `trace` from equation `start` on; None if that cannot be copied."""
    eqns = trace.eqns[start:]
    outs, out_tree = tree.flatten(out)
    if any(eqn.effects for eqn in eqns) or not all(type(x) is StagingTracer for x in outs):
        return None
    parameters = [tracer.variable for tracer in traced]
    known = {*parameters, *(v for eqn in eqns for v in eqn.outvars)}
    taken = {v for eqn in eqns for v in eqn.invars if type(v) is Var} - known
    constants = [(var, x) for var, x in trace.constants.values() if var in taken]
    is_whole = len(constants) == len(taken) and all(x.variable in known for x in outs)
    if not is_whole or any(isinstance(x, Tracer) for _, x in constants):
        return None
    return Recording(parameters, constants, eqns, [x.variable for x in outs], out_tree)


def _replayed(trace: StagingTrace, recording: Recording, traced: Sequence[StagingTracer]) -> Any:
    """Adds copies of the recorded equations to `trace`; the results."""
    new = dict(zip(recording.parameters, (x.variable for x in traced), strict=True))
    for var, constant in recording.constants:
        new[var] = trace.atom(constant)
    where = staging.origin.value or source.capture()
    scope = staging.scope.value
    add = trace.eqns.append
    for eqn in recording.eqns:
        outvars = [Var(v.aval) for v in eqn.outvars]
        invars = [v if type(v) is Literal else new[v] for v in eqn.invars]
        new.update(zip(eqn.outvars, outvars, strict=True))
        add(Eqn(invars, outvars, eqn.primitive, eqn.params, eqn.effects, where, scope))
    tracer = trace.tracer
    return tree.unflatten(recording.out_tree, [tracer(new[v]) for v in recording.outs])
