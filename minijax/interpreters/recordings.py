"""Recordings: what a library function has staged once is written down again, not traced again.

Input: a call of a function of the library while a program is staged.  Output: its results.  The
equations that the call adds are remembered by the types of the arguments and all that is known of
them; a later call of the same kind adds copies of them.  Decision 0015.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import config, source, tree
from minijax.core.cache import Cache
from minijax.core.jaxpr import NO_EFFECTS, Atom, Eqn, Literal, Var
from minijax.core.native import PyTreeDef
from minijax.core.operators import Avals, Function
from minijax.core.primitive import Primitive
from minijax.core.trace import Params, Tracer
from minijax.interpreters import staging
from minijax.interpreters.staging import StagingTrace, StagingTracer

MOST = 4096
"""How many recordings are kept."""

_recordings: dict[Hashable, Recording | None] = Cache(
    "recorded calls",
    "what calls of library functions have staged",
    key="function, types and plain arguments, tracing context",
    most=MOST,
    emptied=True,
    counted=False,
).table()
_PLAIN = (int, bool, str, type(None), np.dtype, type, enum.Enum)


class Recording(NamedTuple):
    """The equations of one call.  Atoms go by number: traced arguments, fixed ones, results.

    Attributes:
        fixed: literals, and arrays that become constants of the jaxpr.
        steps: for each equation its primitive and parameters, the numbers of its operands, and
            the types of its results, which get the next numbers.
        outs: the number of each result.
        out_tree: the tree of the results.
    """

    fixed: Sequence[Any]
    steps: Sequence[tuple[Primitive, Params, Sequence[int], Avals]]
    outs: Sequence[int]
    out_tree: PyTreeDef


def call(
    trace: StagingTrace, function: Function, args: Sequence[object], kwargs: dict[str, Any]
) -> Any:
    """The results of `function`, staged by `trace`, which is the current one."""
    leaves, structure = tree.flatten((args, kwargs))
    traced: list[StagingTracer] = []
    facts = _facts(trace, leaves, traced)
    if facts is None:
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
) -> tuple[Hashable, ...] | None:
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
    trace: StagingTrace, start: int, traced: Sequence[StagingTracer], out: object
) -> Recording | None:
    """What a call has added to `trace` from equation `start` on; None if that cannot be copied."""
    eqns = trace.eqns[start:]
    outs, out_tree = tree.flatten(out)
    if any(eqn.effects for eqn in eqns) or not all(type(x) is StagingTracer for x in outs):
        return None
    numbers: dict[Atom, int] = {tracer.variable: i for i, tracer in enumerate(traced)}
    computed = {v for eqn in eqns for v in eqn.outvars}
    outer = [v for eqn in eqns for v in eqn.invars if v not in numbers and v not in computed]
    needed = list(dict.fromkeys(outer))
    # A large program has many constants, and most calls need none.
    constants: dict[Atom, Any] = (
        dict(trace.constants.values()) if any(type(v) is Var for v in needed) else {}
    )
    fixed = [v if type(v) is Literal else constants.get(v) for v in needed]
    if any(x is None or isinstance(x, Tracer) for x in fixed):
        return None
    numbers.update((v, len(traced) + i) for i, v in enumerate(needed))
    steps = []
    for eqn in eqns:
        places = [numbers[v] for v in eqn.invars]
        steps.append((eqn.primitive, eqn.params, places, [v.aval for v in eqn.outvars]))
        first = len(numbers)
        numbers.update((v, first + i) for i, v in enumerate(eqn.outvars))
    if not all(x.variable in numbers for x in outs):
        return None
    return Recording(fixed, steps, [numbers[x.variable] for x in outs], out_tree)


def _replayed(trace: StagingTrace, recording: Recording, traced: Sequence[StagingTracer]) -> Any:
    """Adds copies of the recorded equations to `trace`; the results."""
    atoms: list[Any] = [x.variable for x in traced]
    atoms += [x if type(x) is Literal else trace.atom(x) for x in recording.fixed]
    where = staging.origin.value or source.capture()
    scope = staging.scope.value
    add = trace.eqns.append
    for primitive, params, places, avals in recording.steps:
        outvars = [Var(aval) for aval in avals]
        add(Eqn([atoms[i] for i in places], outvars, primitive, params, NO_EFFECTS, where, scope))
        atoms += outvars
    tracer = trace.tracer
    return tree.unflatten(recording.out_tree, [tracer(atoms[i]) for i in recording.outs])
