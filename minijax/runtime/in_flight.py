"""Programs in flight: how many may be, and the exceptions of Python functions that they call.

A client of n host devices has a pool of at least n threads.  Starting a program takes n of them,
each of which waits while its device has 32 programs in flight; running it takes n more, which wait
for one another.  Once threads that wait fill the pool nothing moves: collectives abort the process,
other programs hang.  So multi-device programs on host devices start one after the other, and only
so many before the oldest has finished: threads that start programs then never wait.

Of an exception that a Python callback raises, XLA keeps no more than the text.  So the exception
itself is kept here under a number, and the text that XLA gets is that number: wherever the failure
of a program surfaces, it surfaces as the exception that the user's function has raised.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any

from jaxlib import _jax
from jaxlib.xla_client import XlaRuntimeError

from minijax.core.errors import error
from minijax.runtime import watch

# Below the 32 of XLA, with room for programs of single devices: decision 0008.
MOST_IN_FLIGHT = 24

# Reentrant, as handlers of signals and finalizers may run programs too.
lock = threading.RLock()
"""Held while a program waits for its turn and starts."""

memory_lock = threading.RLock()
"""Held while arguments are looked at and a program starts, and while memory is deleted."""

_running: deque[Any] = deque()


def block(buffer: Any) -> None:
    """Waits for a C++ array.

    Raises:
        RuntimeError: its computation has failed.
    """
    watch.wait_for(buffer)
    buffer.block_until_ready()


def admit() -> None:
    """Waits until another program may start; called with `lock` held."""
    while len(_running) >= MOST_IN_FLIGHT:
        # Whether that program has failed is for those to find out who use its results.
        with contextlib.suppress(XlaRuntimeError):
            block(_running[0])
        _running.popleft()


def started(token: _jax.Array) -> None:
    """Remembers a program that runs, by the token it ends with; called with `lock` held."""
    _running.append(token)


def wait_for_all() -> None:
    """Waits until no program is under way."""
    with lock:
        while _running:
            with contextlib.suppress(XlaRuntimeError):
                block(_running[0])
            _running.popleft()


class _Inside(threading.local):
    callback = False


inside = _Inside()
"""Whether this thread runs a Python function that a multi-device program calls."""

_forked: set[int] = set()


def forked() -> None:
    """Called in a forked child, where the threads of the parent's pools are missing."""
    _forked.add(os.getpid())


def check_may_start() -> None:
    """Refuses multi-device programs that would wait for ever.

    Raises:
        RuntimeError: this is a forked child, or a callback of such a program.
    """
    if inside.callback:
        error(
            RuntimeError,
            "jit",
            "a callback of a program over several devices cannot run another one: each would "
            "wait for the other for ever.",
            fix="compute the value before and close over it, return the operands from the "
            "program, or compute with NumPy or on one device",
        )
    if _forked:
        error(
            RuntimeError,
            "jit",
            "this process was forked from one that had devices, whose threads are missing "
            "here: a program over several devices would wait for them for ever.",
            fix="start processes with multiprocessing's 'spawn' or 'forkserver', or fork "
            "before the first computation",
        )


_MARK = "minijax-callback-failure-"
_NUMBER_IN_TEXT = re.compile(_MARK + r"(\d+)")
# Exceptions hold the frames that raised them, and so the arrays in those.
_MOST_KEPT = 64


class Failure:
    """An exception of a Python function that a program has called.

    Attributes:
        error: the exception.
        traceback: its traceback, from the user's function inwards.
        has_surfaced: whether it was raised to the user.
    """

    __slots__ = ("error", "has_surfaced", "traceback")

    def __init__(self, error: BaseException, traceback: TracebackType | None) -> None:
        self.error = error
        self.traceback = traceback
        self.has_surfaced = False

    def surface(self) -> BaseException:
        """The exception, to be raised: each time with its own traceback alone."""
        self.has_surfaced = True
        return self.error.with_traceback(self.traceback)


_kept: dict[int, Failure] = {}
_numbers = itertools.count()
_keeping = threading.Lock()


def keep(error: BaseException) -> RuntimeError:
    """Keeps an exception that a callback has raised; what to tell XLA in its place."""
    number = next(_numbers)
    traceback = error.__traceback__
    with _keeping:
        _kept[number] = Failure(error, None if traceback is None else traceback.tb_next)
        while len(_kept) > _MOST_KEPT:
            del _kept[next(iter(_kept))]
    return RuntimeError(f"{_MARK}{number}")


def behind(error: Exception) -> Failure | None:
    """The failure that an error of XLA tells of, if a callback has caused it."""
    found = _NUMBER_IN_TEXT.search(str(error))
    return None if found is None else _kept.get(int(found.group(1)))


def surfacing(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`function(*args, **kwargs)`, where failures of callbacks are the exceptions they were."""
    try:
        return function(*args, **kwargs)
    except XlaRuntimeError as error:
        failure = behind(error)
        if failure is None:
            watch.explain(error)
            raise
    # Outside of the handler, so that XLA's error does not become the context of the user's.
    raise failure.surface()


def failure_of(buffer: Any) -> Failure | None:
    """Waits for a C++ array, and gives the failure of the callback that has made waiting fail."""
    try:
        block(buffer)
    except XlaRuntimeError as error:
        failure = behind(error)
        if failure is None:
            raise
        return failure
    return None
