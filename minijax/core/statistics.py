"""Counters of caches, and durations of the compiler's steps.

`minijax.cache_stats()` shows the counters.  Calls answered by the C++ path never reach a cache
of Python's and are not counted.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from minijax.core import caches, config, monitoring

logger = logging.getLogger("minijax")


class CacheInfo(NamedTuple):
    """How often a cache had the answer, and how often not."""

    hits: int
    misses: int


class CacheCounter:
    """Hits and misses of one kind of cache."""

    __slots__ = ("hits", "misses")

    def __init__(self, name: str) -> None:
        self.hits = 0
        self.misses = 0
        _counters[name] = self


_counters: dict[str, CacheCounter] = {}
tracing = CacheCounter("trace")
lowering = CacheCounter("lower")
compilation = CacheCounter("compile")
stored = CacheCounter("stored")
eager = CacheCounter("eager")
transformed = CacheCounter("transform")
meshes = CacheCounter("meshes")


transfers: Counter[str] = Counter()
"""How often what was done to bring values where they are needed."""


def cache_stats() -> dict[str, CacheInfo]:
    """Hits and misses of each kind of cache since the start or the last `clear_caches`.

    Source:     minijax's own.

    Example:
        >>> before = jax.cache_stats()["compile"].misses
        >>> f = jax.jit(lambda x: x + 1)
        >>> _ = f(1), f(2)
        >>> jax.cache_stats()["compile"].misses - before
        1
    """
    own = {name: CacheInfo(c.hits, c.misses) for name, c in _counters.items()}
    remembered = {name: f.cache_info() for name, f in caches.shown.items()}
    return own | {name: CacheInfo(c.hits, c.misses) for name, c in remembered.items()}


def reset() -> None:
    """Sets all counters to zero."""
    for counter in _counters.values():
        counter.hits = counter.misses = 0
    transfers.clear()


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

    def __exit__(self, *_: Any) -> None:
        seconds = time.perf_counter() - self._start
        if logger.isEnabledFor(logging.DEBUG) or config.log_compiles.value:
            level = logging.WARNING if config.log_compiles.value else logging.DEBUG
            text = "Finished %s of %s for jit in %.6f sec"
            logger.log(level, text, self._text, self._function, seconds)
        for listener in listeners:
            listener(self._event, self._function, seconds)
        if monitoring.has_listeners_to_steps():
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
        monitoring.record_event_duration_secs(known, seconds, fun_name=function)
        monitoring.record_event_time_span(known, end - seconds, end, fun_name=function)
