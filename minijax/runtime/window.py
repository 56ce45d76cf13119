"""A window over multi-device programs in flight on host devices.

XLA runs each device's part of such a program on a thread of one pool.  With too many programs
waiting for one another's collectives no thread is left, and the process aborts.  Programs with
collectives are therefore dispatched one after the other, and only so many before the oldest has
finished.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from typing import Any

from minijax.core import bootstrap

# What the pools bear with room to spare: measured, see docs/decisions/0008.
MOST_IN_FLIGHT = 32 if bootstrap.pools_are_sized else 4

lock = threading.Lock()
_running: deque[Any] = deque()


def admit() -> None:
    """Waits until another program may start; called with `lock` held."""
    while len(_running) >= MOST_IN_FLIGHT:
        # Whether that program has failed is for those to find out who use its results.
        with contextlib.suppress(RuntimeError):
            _running.popleft().block_until_ready()


def started(token: Any) -> None:
    """Remembers a program that runs, by the token it ends with; called with `lock` held."""
    _running.append(token)
