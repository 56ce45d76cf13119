"""Caches of functions of plain facts, such as specs and shapes: bounded, and emptied together.

Input: a function whose results follow from its arguments.  Output: the same, that remembers its
last results.  Meshes and devices among the arguments live on until `clear_caches`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

T = TypeVar("T")
_all: list[_lru_cache_wrapper[Any]] = []
_others: list[Callable[[], None]] = []
shown: dict[str, _lru_cache_wrapper[Any]] = {}
"""The caches that `cache_stats` shows, by what they hold."""


def remembered(most: int, name: str = "") -> Callable[[Callable[..., T]], _lru_cache_wrapper[T]]:
    """Decorator: the function's last results, `most` of them, are remembered.

    Args:
        most: how many.
        name: what they are, to be shown in `cache_stats`.
    """

    def decorate(function: Callable[..., T]) -> _lru_cache_wrapper[T]:
        cached = functools.lru_cache(most)(function)
        _all.append(cached)
        if name:
            shown[name] = cached
        return cached

    return decorate


def forgets(function: Callable[[], None]) -> Callable[[], None]:
    """Decorator: `clear` calls the function, which empties a cache of another kind."""
    _others.append(function)
    return function


def clear() -> None:
    """Forgets all that is remembered."""
    for cached in _all:
        cached.cache_clear()
    for forget in _others:
        forget()
