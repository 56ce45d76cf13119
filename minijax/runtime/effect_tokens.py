"""Tokens outside of programs, which order the effects of one program after those of another.

A program takes the last token of each of its ordered effects and leaves the next one.  Every
program with an effect also leaves a token that is ready when it is done, for `effects_barrier`.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
from collections import deque
from typing import Any

import numpy as np
from jaxlib import _jax

from minijax.core import native
from minijax.core.aval import ShapedArray
from minijax.runtime import in_flight, placement

TOKEN = ShapedArray((0,), np.dtype(np.bool_))
"""The type of the arrays that stand for tokens outside programs."""

# How many programs with effects run ahead of the one that waits for them.
_MOST_PENDING = 64


class _LastTokens(threading.local):
    """The last token of each ordered effect on some devices; effects of threads are unrelated."""

    def __init__(self) -> None:
        self.of: dict[tuple[Any, Any], Any] = {}


_last = _LastTokens()
_pending: deque[Any] = deque()
_untold: deque[in_flight.Failure] = deque(maxlen=_MOST_PENDING)


def take(effect: Any, devices: tuple[_jax.Device, ...]) -> Any:
    """The token that the next program with an ordered effect takes.

    On several devices it says for each what has happened there.

    Raises:
        Exception: a callback of an earlier program has failed since, and nobody was told.
    """
    token = _last.of.get((effect, devices))
    if token is not None and native.is_ready(token):
        # What comes after a failure starts anew: it must not fail for ever.
        del _last.of[effect, devices]
        failure = in_flight.failure_of(token)
        if failure is not None:
            token = None
            if not failure.has_surfaced:
                raise failure.surface()
    if token is None:
        host = np.zeros(TOKEN.shape, TOKEN.dtype)
        everywhere = placement.on_all(devices, TOKEN.ndim)
        token = placement.put_host_value(host, TOKEN, everywhere, committed=False)
    return token


def leave(effect: Any, devices: tuple[_jax.Device, ...], token: _jax.Array) -> None:
    """Makes `token` the last one of an ordered effect."""
    _last.of[effect, devices] = token


def wait_for(effect: Any) -> None:
    """Waits until all programs of this thread with an ordered effect are done."""
    for own, devices in list(_last.of):
        if own == effect:
            in_flight.wait(_last.of[own, devices])


def add_pending(token: _jax.Array) -> None:
    """Remembers the token that says when a program with effects is done."""
    _pending.append(token)
    # While functions are called, one may be of the program that calls what runs this one.
    if len(_pending) > _MOST_PENDING and not in_flight.calls:
        _wait(len(_pending) - _MOST_PENDING)


def _wait(count: int) -> None:
    """Waits for the oldest programs, whichever thread has called them."""
    with contextlib.suppress(IndexError):
        for _ in range(count):
            failure = in_flight.failure_of(_pending.popleft())
            if failure is not None:
                _untold.append(failure)


@atexit.register
def effects_barrier() -> None:
    """Waits until the effects of all programs called so far have happened.

    Raises:
        Exception: a callback has failed; the exception is the one that it has raised.
        RuntimeError: a callback asks, and the program that calls it may have effects.

    Example:
        >>> seen = []
        >>> jax.jit(lambda x: jax.debug.callback(seen.append, x))(1)
        >>> jax.effects_barrier()
        >>> len(seen)
        1
    """
    if in_flight.inside.call in in_flight.calls:
        in_flight.refuse_to_wait()
    _wait(len(_pending))
    failures = [_untold.popleft() for _ in range(len(_untold))]
    for failure in failures:
        if not failure.has_surfaced:
            raise failure.surface()


# Before the effects of what they have called are waited for.
atexit.register(in_flight.end_threads)
