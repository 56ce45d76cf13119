"""A window over multi-device programs in flight on host devices.

A client of n host devices has a pool of at least n threads.  Starting a program takes n of them,
each of which waits while its device has 32 programs in flight; running it takes n more, which
wait for one another.  Once threads that wait fill the pool nothing moves: collectives abort the
process, other programs hang.  So multi-device programs start one after the other, and only so
many before the oldest has finished: threads that start programs then never wait.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from typing import Any

from minijax.core.errors import error

# Below the 32 of XLA, with room for programs of single devices: decision 0008.
MOST_IN_FLIGHT = 24

# Reentrant, as handlers of signals and finalizers may run programs too.
lock = threading.RLock()
"""Held while a program waits for its turn and starts."""

memory_lock = threading.RLock()
"""Held while arguments are looked at and a program starts, and while memory is deleted."""

_running: deque[Any] = deque()


def admit() -> None:
    """Waits until another program may start; called with `lock` held."""
    while len(_running) >= MOST_IN_FLIGHT:
        # Whether that program has failed is for those to find out who use its results.
        with contextlib.suppress(RuntimeError):
            _running[0].block_until_ready()
        _running.popleft()


def started(token: Any) -> None:
    """Remembers a program that runs, by the token it ends with; called with `lock` held."""
    _running.append(token)


def wait_for_all() -> None:
    """Waits until no program is under way."""
    with lock:
        while _running:
            with contextlib.suppress(RuntimeError):
                _running[0].block_until_ready()
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
