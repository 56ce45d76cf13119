"""Leaks: who still holds the tracers of a finished trace.

`interpreters/staging.py` asks here where `checking_leaks` is on.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

from minijax.core.errors import error
from minijax.core.trace import Trace, Tracer


def check_not_held(trace: Callable[[], Trace | None], function_name: str) -> None:
    """Refuses to go on while something still holds tracers of a finished trace.

    Raises:
        RuntimeError: somebody does; the text says who.
    """
    gc.collect()
    if trace() is None:
        return
    tracers = [x for x in gc.get_referrers(trace()) if isinstance(x, Tracer)]
    if not tracers:
        return
    found = [f"{tracer!r}, {tracer.origin()}: held by {_holders(tracer)}" for tracer in tracers]
    problem = f"{len(tracers)} traced value(s) outlive the function that made them."
    got = "\n".join(found[:5])
    fix = "return values instead of storing them in globals, attributes or closures"
    error(RuntimeError, function_name, problem, got=got, fix=fix, more="tracer, leak")


def _holders(tracer: Tracer) -> str:
    names = []
    for holder in gc.get_referrers(tracer):
        if isinstance(holder, dict):
            keys = [key for key, value in holder.items() if value is tracer]
            owner = next(
                (o for o in gc.get_referrers(holder) if getattr(o, "__dict__", None) is holder),
                None,
            )
            names += [f"{_name(owner)}{key!r}" for key in keys]
        elif isinstance(holder, (list, tuple, set)):
            names.append(f"a {type(holder).__name__} of {len(holder)}")
        elif type(holder).__name__ == "cell":
            names.append("the closure of a function")
    return ", ".join(names) or "an unknown object"


def _name(owner: object) -> str:
    if owner is None:
        return "a dict, under "
    return f"{getattr(owner, '__name__', type(owner).__name__)}, under "
