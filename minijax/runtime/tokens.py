"""Tokens outside programs: what puts effects of one program after those of another.

A program takes the last token of each of its ordered effects and leaves the next one.  Every
program with an effect also leaves a token that says when it is done, for `effects_barrier`.
"""

from __future__ import annotations

import atexit
import threading
from collections import deque
from typing import Any

import numpy as np

from minijax.core.aval import ShapedArray
from minijax.runtime import failures, placement

TOKEN = ShapedArray((0,), np.dtype(np.bool_))
"""The type of the arrays that stand for tokens outside programs."""

# How many programs with effects run ahead of the one that waits for them.
_MOST_PENDING = 64


class _LastTokens(threading.local):
    """The last token of each ordered effect on each device; effects of threads are unrelated."""

    def __init__(self) -> None:
        self.of: dict[tuple[Any, Any], Any] = {}


_last = _LastTokens()
_pending: deque[Any] = deque()


def take(effect: Any, device: Any) -> Any:
    """The token that the next program with an ordered effect takes.

    Raises:
        Exception: a callback of an earlier program has failed since, and nobody was told.
    """
    token = _last.of.get((effect, device))
    if token is not None and token.is_ready():
        failure = failures.failure_of(token.block_until_ready)
        if failure is not None:
            # What comes after a failure starts anew: it must not fail for ever.
            token = _last.of.pop((effect, device)) and None
            if not failure.has_surfaced:
                raise failure.surface()
    if token is None:
        host = np.zeros(TOKEN.shape, TOKEN.dtype)
        token = placement.put_host_value(
            host, TOKEN, placement.native_sharding(device), committed=False
        )
    return token


def leave(effect: Any, device: Any, token: Any) -> None:
    """Makes `token` the last one of an ordered effect."""
    _last.of[effect, device] = token


def wait_for(effect: Any) -> None:
    """Waits until all programs of this thread with an ordered effect are done."""
    for own, device in list(_last.of):
        if own == effect:
            failures.surfacing(_last.of[own, device].block_until_ready)


def add_pending(token: Any) -> None:
    """Remembers the token that says when a program with effects is done."""
    _pending.append(token)
    if len(_pending) > _MOST_PENDING:
        _wait(1)


def _wait(count: int) -> None:
    """Waits for the oldest programs; raises the first failure that nobody was told of."""
    first = None
    for _ in range(count):
        try:
            token = _pending.popleft()
        except IndexError:
            break
        failure = failures.failure_of(token.block_until_ready)
        if first is None and failure is not None and not failure.has_surfaced:
            first = failure
    if first is not None:
        raise first.surface()


@atexit.register
def effects_barrier() -> None:
    """Waits until the effects of all programs called so far have happened.

    Raises:
        Exception: a callback has failed; the exception is the one that it has raised.

    Source: mirrors jax.effects_barrier (0.10).

    Example:
        >>> seen = []
        >>> jax.jit(lambda x: jax.debug.callback(seen.append, x))(1)
        >>> jax.effects_barrier()
        >>> len(seen)
        1
    """
    _wait(len(_pending))
