"""The caches of the compiler's steps, and how long the steps take."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from minijax.core import config, monitoring
from minijax.core.cache import Cache

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
lowering = Cache(
    "lower",
    "StableHLO modules",
    key="options, platform, `Layout`, partitioner",
    owner="jaxpr",
)
compilation = Cache(
    "compile",
    "executables",
    key="options, device or `Assignment`, partitioner",
    owner="jaxpr",
)

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
