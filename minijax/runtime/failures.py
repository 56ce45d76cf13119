"""Exceptions of Python functions that compiled programs call.

XLA keeps no more than the text of an exception.  So the exception itself is kept here under a
number, and the text that XLA gets is that number: wherever the failure of a program surfaces, it
surfaces as the exception that the user's function has raised.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from types import TracebackType
from typing import Any

from jaxlib.xla_client import XlaRuntimeError

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


def keep(error: BaseException) -> RuntimeError:
    """Keeps an exception that a callback has raised; what to tell XLA in its place."""
    number = next(_numbers)
    traceback = error.__traceback__
    _kept[number] = Failure(error, None if traceback is None else traceback.tb_next)
    while len(_kept) > _MOST_KEPT:
        _kept.pop(next(iter(_kept)), None)
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
            raise
    # Outside of the handler, so that XLA's error does not become the context of the user's.
    raise failure.surface()


def failure_of(wait: Callable[[], Any]) -> Failure | None:
    """Waits, and gives the failure of the callback that has made waiting fail."""
    try:
        wait()
    except XlaRuntimeError as error:
        failure = behind(error)
        if failure is None:
            raise
        return failure
    return None
