"""Monitoring: events, durations and scalars that programs record, and their listeners.

Input: an event's name and what belongs to it.  Output: each registered listener is called with
these.

The compiler times its own steps with `timed`, which logs how long a step took and records it under
the name that JAX gives it.  The caches of these steps are declared here, too: of staged functions,
transformed jaxprs, StableHLO modules and executables.  `transfers` counts how arguments were
brought to where programs need them.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable

from minijax.core import config
from minijax.core.cache import Cache
from minijax.core.errors import error
from minijax.core.operators import Function

Listener = Function

_events: list[Listener] = []
_durations: list[Listener] = []
_spans: list[Listener] = []
_scalars: list[Listener] = []


def record_event(event: str, **kwargs: str | int) -> None:
    """Tells the listeners to events that one has happened.

    Args:
        event: its name, such as "/program/epoch".
        **kwargs: what listeners are told besides.

    Example:
        >>> from minijax import monitoring
        >>> heard = []
        >>> listener = lambda event, **details: heard.append((event, details))
        >>> monitoring.register_event_listener(listener)
        >>> monitoring.record_event("/program/epoch", number=3)
        >>> heard
        [('/program/epoch', {'number': 3})]
        >>> monitoring.unregister_event_listener(listener)
    """
    for listener in tuple(_events):
        listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tells the listeners to durations how many seconds something has taken.

    Example:
        >>> from minijax import monitoring
        >>> heard = []
        >>> listener = lambda *facts: heard.append(facts)
        >>> monitoring.register_event_duration_secs_listener(listener)
        >>> monitoring.record_event_duration_secs("/program/epoch", 2.5)
        >>> heard
        [('/program/epoch', 2.5)]
        >>> monitoring.unregister_event_duration_listener(listener)
    """
    for listener in tuple(_durations):
        listener(event, duration, **kwargs)


def record_event_time_span(
    event: str, start_time: float, end_time: float, **kwargs: str | int
) -> None:
    """Tells the listeners to time spans when something began and ended, in seconds since 1970.

    Example:
        >>> from minijax import monitoring
        >>> heard = []
        >>> listener = lambda *facts: heard.append(facts)
        >>> monitoring.register_event_time_span_listener(listener)
        >>> monitoring.record_event_time_span("/program/epoch", 10.0, 12.5)
        >>> heard
        [('/program/epoch', 10.0, 12.5)]
        >>> monitoring.unregister_event_time_span_listener(listener)
    """
    for listener in tuple(_spans):
        listener(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Tells the listeners to scalars a number.

    Example:
        >>> from minijax import monitoring
        >>> heard = []
        >>> listener = lambda *facts: heard.append(facts)
        >>> monitoring.register_scalar_listener(listener)
        >>> monitoring.record_scalar("/program/loss", 0.25)
        >>> heard
        [('/program/loss', 0.25)]
        >>> monitoring.unregister_scalar_listener(listener)
    """
    for listener in tuple(_scalars):
        listener(event, value, **kwargs)


def _add(listeners: list[Listener], callback: Listener) -> None:
    if not callable(callback):
        got = f"{callback!r} of type {type(callback).__name__}"
        expected = "a function of an event's name, its facts and its details"
        error(TypeError, "monitoring", "a listener must be callable.", got=got, expected=expected)
    listeners.append(callback)


def register_event_listener(callback: Listener) -> None:
    """Adds a function of an event's name and details, for `record_event`.

    Example:
        >>> from minijax import monitoring
        >>> heard = []
        >>> listener = lambda *facts: heard.append(facts)
        >>> monitoring.register_event_listener(listener)
        >>> monitoring.record_event("/program/epoch")
        >>> heard
        [('/program/epoch',)]
        >>> monitoring.unregister_event_listener(listener)
        >>> monitoring.record_event("/program/epoch")
        >>> len(heard)
        1
    """
    _add(_events, callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Adds a function of an event's name, seconds and details: how long the compiler's steps take.

    Example:
        >>> from minijax import monitoring
        >>> steps = []
        >>> def listener(event, seconds, **details):
        ...     steps.append(event.rpartition("/")[2])
        >>> monitoring.register_event_duration_secs_listener(listener)
        >>> _ = jax.jit(lambda x: x + 12345)(1)
        >>> steps
        ['jaxpr_trace_duration', 'jaxpr_to_mlir_module_duration', 'backend_compile_duration']
        >>> monitoring.unregister_event_duration_listener(listener)
    """
    _add(_durations, callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Adds a function of an event's name, begin, end and details, for time spans.

    Example:
        >>> from minijax import monitoring
        >>> heard = []
        >>> listener = lambda *facts: heard.append(facts)
        >>> monitoring.register_event_time_span_listener(listener)
        >>> monitoring.record_event_time_span("/program/epoch", 0.5, 0.75)
        >>> heard
        [('/program/epoch', 0.5, 0.75)]
        >>> monitoring.unregister_event_time_span_listener(listener)
    """
    _add(_spans, callback)


def register_scalar_listener(callback: Listener) -> None:
    """Adds a function of an event's name, number and details, for `record_scalar`.

    Example:
        >>> from minijax import monitoring
        >>> heard = []
        >>> listener = lambda *facts: heard.append(facts)
        >>> monitoring.register_scalar_listener(listener)
        >>> monitoring.record_scalar("/program/step", 7)
        >>> heard
        [('/program/step', 7)]
        >>> monitoring.unregister_scalar_listener(listener)
    """
    _add(_scalars, callback)


def unregister_event_listener(callback: Listener) -> None:
    """Removes what `register_event_listener` has added.

    Raises:
        AssertionError: it was not added.

    Example:
        >>> from minijax import monitoring
        >>> heard = []
        >>> listener = lambda *facts: heard.append(facts)
        >>> monitoring.register_event_listener(listener)
        >>> monitoring.record_event("/program/step")
        >>> heard
        [('/program/step',)]
        >>> monitoring.unregister_event_listener(listener)
        >>> monitoring.record_event("/program/step")
        >>> len(heard)
        1
    """
    _remove(_events, callback, "unregister_event_listener")


def unregister_event_duration_listener(callback: Listener) -> None:
    """Removes what `register_event_duration_secs_listener` has added.

    Raises:
        AssertionError: it was not added.

    Example:
        >>> from minijax import monitoring
        >>> heard = []
        >>> listener = lambda *facts: heard.append(facts)
        >>> monitoring.register_event_duration_secs_listener(listener)
        >>> monitoring.record_event_duration_secs("/program/step", 2.5)
        >>> heard
        [('/program/step', 2.5)]
        >>> monitoring.unregister_event_duration_listener(listener)
        >>> monitoring.record_event_duration_secs("/program/step", 2.5)
        >>> len(heard)
        1
    """
    _remove(_durations, callback, "unregister_event_duration_listener")


def unregister_event_time_span_listener(callback: Listener) -> None:
    """Removes what `register_event_time_span_listener` has added.

    Raises:
        AssertionError: it was not added.

    Example:
        >>> from minijax import monitoring
        >>> heard = []
        >>> listener = lambda *facts: heard.append(facts)
        >>> monitoring.register_event_time_span_listener(listener)
        >>> monitoring.record_event_time_span("/program/step", 10.0, 12.5)
        >>> heard
        [('/program/step', 10.0, 12.5)]
        >>> monitoring.unregister_event_time_span_listener(listener)
        >>> monitoring.record_event_time_span("/program/step", 0.0, 1.0)
        >>> len(heard)
        1
    """
    _remove(_spans, callback, "unregister_event_time_span_listener")


def unregister_scalar_listener(callback: Listener) -> None:
    """Removes what `register_scalar_listener` has added.

    Raises:
        AssertionError: it was not added.

    Example:
        >>> from minijax import monitoring
        >>> heard = []
        >>> listener = lambda *facts: heard.append(facts)
        >>> monitoring.register_scalar_listener(listener)
        >>> monitoring.record_scalar("/program/loss", 0.25)
        >>> heard
        [('/program/loss', 0.25)]
        >>> monitoring.unregister_scalar_listener(listener)
        >>> monitoring.record_scalar("/program/loss", 0.5)
        >>> len(heard)
        1
    """
    _remove(_scalars, callback, "unregister_scalar_listener")


def clear_event_listeners() -> None:
    """Removes all listeners of any kind.

    Example:
        >>> from minijax import monitoring
        >>> heard = []
        >>> listener = lambda *facts: heard.append(facts)
        >>> monitoring.register_event_listener(listener)
        >>> monitoring.clear_event_listeners()
        >>> monitoring.record_event("/program/epoch")
        >>> heard
        []
    """
    for listeners in (_events, _durations, _spans, _scalars):
        listeners.clear()


def has_listeners_to_steps() -> bool:
    """Whether anybody wants to know how long something takes."""
    return bool(_durations or _spans)


def _remove(listeners: list[Listener], callback: Listener, user: str) -> None:
    if callback not in listeners:
        problem = "the function does not listen."
        expected = f"one of {len(listeners)} functions that were registered"
        error(AssertionError, f"monitoring.{user}", problem, got=repr(callback), expected=expected)
    listeners.remove(callback)


logger = logging.getLogger("minijax")


tracing = Cache(
    "trace",
    "functions staged by `jit`, `pmap` and what is made of them",
    key="tree and types of the arguments, static values, settings, tracing context",
    owner="function",
    emptied=True,
)
transformed = Cache(
    "transform",
    "transformed jaxprs: jvp, batched, transposed, split, without dead code, ...",
    key="the transformation, which arguments it concerns, tracing context",
    owner="jaxpr",
)
lowering = Cache("lower", "StableHLO modules", key="abstract plan", owner="jaxpr")
compilation = Cache("compile", "executables", key="plan of the call", owner="jaxpr")

transfers: Counter[str] = Counter()
"""How often what was done to bring values where they are needed."""


listeners: list[Callable[[str, str, float], None]] = []
"""Called with an event key, the function's name and seconds, after each step of the compiler."""


class timed:  # noqa: N801  a context manager reads as a verb
    """Context manager: logs how long a step took, and tells the listeners."""

    __slots__ = ("_event", "_function", "_start", "_text")

    def __init__(self, event: str, text: str, function_name: str) -> None:
        self._event = event
        self._text = text
        self._function = function_name

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        seconds = time.perf_counter() - self._start
        if logger.isEnabledFor(logging.DEBUG) or config.log_compiles.value:
            level = logging.WARNING if config.log_compiles.value else logging.DEBUG
            text = "Finished %s of %s for jit in %.6f sec"
            logger.log(level, text, self._text, self._function, seconds)
        for listener in listeners:
            listener(self._event, self._function, seconds)
        if has_listeners_to_steps():
            _tell(self._event, self._function, seconds)


_JAX_EVENTS = {
    "trace": "/jax/core/compile/jaxpr_trace_duration",
    "jaxpr_to_module": "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "compile": "/jax/core/compile/backend_compile_duration",
}


def _tell(event: str, function: str, seconds: float) -> None:
    """Records how long a step took, under JAX's name of it."""
    known = _JAX_EVENTS.get(event)
    if known is not None:
        end = time.time()
        record_event_duration_secs(known, seconds, fun_name=function)
        record_event_time_span(known, end - seconds, end, fun_name=function)
