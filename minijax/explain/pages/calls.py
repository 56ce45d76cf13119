"""The calls for which a function was traced: the keys of the cache, and where each one did not fit.

Input: a jitted function.  Output: for each remembered trace the parts of its key, compared with the
nearest earlier one, in the words of `explain.retraces`.  A call that the cache answers leaves
nothing; that of the page is shown nevertheless: its whole key fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core import history, tree_errors
from minijax.core.history import Memento, TraceRecord
from minijax.core.jaxpr import ClosedJaxpr
from minijax.explain import differences
from minijax.explain.differences import Change
from minijax.explain.report import Retrace

Data = dict[str, Any]
"""JSON."""

_MOST_PARTS = 64


def traces_of(function: Any) -> Sequence[TraceRecord]:
    """What is remembered of the traces of a function.

    Args:
        function: a jitted function.
    """
    record = getattr(getattr(function, "jit_function", None), "function_record", None)
    return [] if record is None else history.traces_like(record)


def calls_of(function: Any, before: Sequence[TraceRecord], closed: ClosedJaxpr) -> Data | None:
    """The keys of the calls of a function; None if there are fewer than two.

    Args:
        function: a jitted function.
        before: what was remembered of its traces before the page was made.
        closed: the program of the page.
    """
    traces = traces_of(function)
    calls = [_call(trace, traces[:i]) for i, trace in enumerate(traces)]
    answered = history.trace_of(closed)
    if any(trace is answered for trace in before):
        nearest = next(i for i, trace in enumerate(traces) if trace is answered)
        hit = {"at": "", "nearest": nearest, "differs": {}, "words": ""}
        calls.append(calls[nearest] | hit)
    if len(calls) < 2:
        return None
    return {"parts": list(dict.fromkeys(name for c in calls for name in c["key"])), "calls": calls}


def _call(trace: TraceRecord, earlier: Sequence[TraceRecord]) -> Data:
    """The key of a call, and how it differs from the nearest earlier one."""
    key = _key(trace)
    data: Data = {"at": trace.at, "nearest": None, "key": key, "differs": {}, "words": ""}
    if not earlier:
        return data
    old, changes = differences.nearest(trace, earlier)
    for change in changes[:_MOST_PARTS]:
        name = change.argument or str(change.cause)
        key.setdefault(name, change.after or str(change.cause))
        data["differs"].setdefault(name, _why(change))
    words = Retrace(trace.function.name, "traced", trace.at, old.at, trace.inside, tuple(changes))
    data["nearest"] = next(i for i, each in enumerate(earlier) if each is old)
    data["words"] = str(words)
    return data


def _why(change: Change) -> str:
    before = f", before: {change.before}" if change.before else ""
    return f"{change.cause}{before}; {change.remedy}"


def _key(trace: TraceRecord) -> dict[str, str]:
    """The types of traced arguments, and the values of static ones, by name and path."""
    found = {}
    for name, argument in differences.arguments_of(trace).items():
        value = argument.value
        if isinstance(value, Memento):
            found[name] = f"static {differences.text_of(value)}"
        else:
            paths = map(tree_errors.keystr, tree_errors.leaf_paths(value.tree))
            for path, aval, kind in zip(paths, value.avals, value.kinds, strict=True):
                leaf = value._replace(avals=(aval,), kinds=(kind,))
                found[name + path] = differences.leaf_text(leaf)
    return dict(list(found.items())[:_MOST_PARTS])
