"""Caches: what each holds, by which key and for how long is declared once, and listed here.

Input: tables in which a room looks up what it has made before.  Output: `Cache`s, which
`minijax.cache_stats` lists, `minijax.clear_caches` empties, and the page on the architecture
describes.  A table is a plain dict, so that a look-up costs what it costs in Python.
"""

from __future__ import annotations

import functools
import re
import sys
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class _Counts(NamedTuple):
    hits: int | None
    misses: int | None


class CacheInfo(_Counts):
    """The number of hits and misses of a cache, and its size.

    Attributes:
        hits: how many look-ups found an entry; None if the cache does not count.
        misses: how many look-ups found no entry; None if the cache does not count.
        size: how many entries the cache has; None if they are spread over their owners.
    """

    size: int | None

    def __new__(cls, hits: int | None, misses: int | None, size: int | None = None) -> CacheInfo:
        info = super().__new__(cls, hits, misses)
        info.size = size
        return info

    @property
    def is_counted(self) -> bool:
        """Whether the cache counts hits and misses, which can cost more than a look-up."""
        return self.hits is not None

    def __repr__(self) -> str:
        counts = f"hits={self.hits}, misses={self.misses}" if self.is_counted else "not counted"
        return f"CacheInfo({counts}{'' if self.size is None else f', size={self.size}'})"


CACHES: dict[str, Cache] = {}
"""All caches whose modules have been imported, by name."""


class Cache:
    """A declared cache: one kind of thing that is looked up before it is made again.

    Args:
        name: its name in `cache_stats`.
        holds: what is looked up.
        key: what it depends on.
        owner: with what its answers die: "process", "function", "jaxpr", or another noun.
        most: how many answers are kept, if they are bounded.
        emptied: whether `clear_caches` empties it.
        counted: whether hits and misses are counted.

    Attributes:
        module: the module that declares it.
    """

    def __init__(
        self,
        name: str,
        holds: str,
        *,
        key: str,
        owner: str = "process",
        most: int | None = None,
        emptied: bool = False,
        counted: bool = True,
    ) -> None:
        assert name not in CACHES, name
        self.name = name
        self.holds = holds
        self.key = key
        self.owner = owner
        self.most = most
        self.emptied = emptied
        self.counted = counted
        self.module: str = sys._getframe(1).f_globals["__name__"]
        self.hits = self.misses = 0
        self._tables: list[Any] = []
        self._functions: list[Any] = []
        self._native: list[Any] = []
        CACHES[name] = self

    @property
    def lives_as_long_as(self) -> str:
        """What the answers live as long as."""
        found = f"the {self.owner}" if self.most is None else f"the last {self.most:,}"
        return found + (", or until `clear_caches()`" if self.emptied else "")

    def table(self, made: object = None) -> Any:
        """A table of answers by key: a dict, or `made`, an empty mapping of another class."""
        table = {} if made is None else made
        self._tables.append(table)
        return table

    def by_owner(self) -> weakref.WeakKeyDictionary[Any, Any]:
        """A table of owners, each with its answer, or a dict of answers; it dies with its owner."""
        return self.table(weakref.WeakKeyDictionary())

    def interned(self) -> weakref.WeakValueDictionary[Any, Any]:
        """A table of objects by what they are made of, each there for as long as it is used."""
        return self.table(weakref.WeakValueDictionary())

    def function(self, function: Callable[P, T]) -> Callable[P, T]:
        """Decorator: the function's last results, `most` of them, are remembered."""
        cached = functools.lru_cache(self.most)(function)
        self._functions.append(cached)
        return cached  # type: ignore[return-value]  # typeshed forgets the parameters

    def native(self, table: object) -> Any:
        """A table of C++, which has methods `clear` and `size`."""
        self._native.append(table)
        return table

    def find(self, owner: Any, key: object = None) -> Any:
        """What `owner`, such as a closed jaxpr, has under this key; None for nothing."""
        return owner.cache.get((self, key))

    def keep(self, owner: Any, key: object, value: T) -> T:
        """Leaves `value` with its owner."""
        owner.cache[self, key] = value
        return value

    def of(self, owner: Any, key: object, make: Callable[[], T]) -> T:
        """What `owner` has under this key; `make` makes it once."""
        found: T | None = owner.cache.get((self, key))
        if found is not None:
            self.hits += 1
            return found
        self.misses += 1
        made: T = owner.cache.setdefault((self, key), make())
        return made

    def clear(self) -> None:
        """Forgets all answers but those that their owners hold."""
        for table in self._tables:
            if isinstance(table, weakref.WeakKeyDictionary):
                # Functions that are in use hold their own table.
                for answers in _held(table):
                    answers.clear()
            elif not isinstance(table, weakref.WeakValueDictionary):
                table.clear()
        for function in self._functions:
            function.cache_clear()
        for native in self._native:
            native.clear()

    def reset(self) -> None:
        """Counts from zero."""
        self.hits = self.misses = 0

    @property
    def info(self) -> CacheInfo:
        """Hits, misses and size."""
        found = [function.cache_info() for function in self._functions]
        sizes = [info.currsize for info in found]
        sizes += [*map(_size, self._tables), *(native.size() for native in self._native)]
        size = sum(sizes) if sizes else None
        if not self.counted:
            return CacheInfo(None, None, size)
        hits = self.hits + sum(info.hits for info in found)
        return CacheInfo(hits, self.misses + sum(info.misses for info in found), size)


def cached(
    name: str, *, key: str, most: int | None = None, emptied: bool = False
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorator: declares a cache of a function's results, which the first line of its text tells.

    Args:
        name: as for `Cache`, and so are the other arguments.
        key: what the results depend on.
        most: how many are kept.
        emptied: whether `clear_caches` empties it.
    """

    def declare(function: Callable[P, T]) -> Callable[P, T]:
        holds = re.split("[;:\n]", function.__doc__ or name)[0].rstrip(".")
        cache = Cache(name, holds[0].lower() + holds[1:], key=key, most=most, emptied=emptied)
        cache.module = function.__module__
        return cache.function(function)

    return declare


def _size(table: Any) -> int:
    if isinstance(table, weakref.WeakKeyDictionary):
        return sum(len(x) if isinstance(x, dict) else 1 for x in _held(table))
    return len(table)


def _held(table: weakref.WeakKeyDictionary[Any, Any]) -> list[Any]:
    """The answers of all owners; other threads may add some meanwhile, which `values` refuses."""
    return list(vars(table)["data"].values())


def cache_stats() -> dict[str, CacheInfo]:
    """Returns hits, misses and size of every cache, since the start or the last `clear_caches`.

    Calls that jaxlib's C++ call path answers look in none of these caches, and are not counted.
    Nor are look-ups in small tables on hot paths: hits and misses of these caches are None.

    Source:     minijax's own.

    Example:
        >>> before = jax.cache_stats()["compile"].misses
        >>> f = jax.jit(lambda x: x + 1)
        >>> _ = f(1), f(2)
        >>> jax.cache_stats()["compile"].misses - before
        1
        >>> jax.cache_stats()["types"].size > 0
        True
        >>> jax.cache_stats()["types of references"].hits is None
        True
    """
    return {name: cache.info for name, cache in list(CACHES.items())}


def clear() -> None:
    """Empties the caches that `clear_caches` empties, and counts from zero in all."""
    for cache in list(CACHES.values()):
        if cache.emptied:
            cache.clear()
        cache.reset()


def described() -> str:
    """The caches of the package as a table in Markdown, for the page on the architecture."""
    rows = [["name", "what it holds", "by", "lives as long as"], ["---"] * 4]
    own = [cache for cache in CACHES.values() if cache.module.startswith("minijax.")]
    for cache in sorted(own, key=lambda cache: (cache.owner == "process", cache.owner, cache.name)):
        rows.append([f"`{cache.name}`", cache.holds, cache.key, cache.lives_as_long_as])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
