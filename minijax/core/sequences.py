"""Lists that are split, merged and zipped with lengths checked, and marks of omitted arguments.

Mirrors what JAX's internals call `util`; nothing here knows about arrays.  Products of shapes are
`math.prod`: over no dimensions it is the int 1.  A `Mark` is the default of an argument for which
None is a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Self, TypeVar, overload

from minijax.core.errors import error


class Mark:
    """A value that says one thing by being there: the only instance of its class, as `text`."""

    text: ClassVar[str]
    _only: ClassVar[Any] = None

    def __new__(cls) -> Self:
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __repr__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()


class ByValue:
    """Equal to what is of the same class and has the same facts: those in its slots, or others."""

    __slots__ = ()

    def _facts(self) -> Any:
        names: tuple[str, ...] = self.__slots__
        return tuple(getattr(self, name) for name in names)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, type(self)) and bool(self._facts() == other._facts())
        )

    def __hash__(self) -> int:
        return hash(self._facts())


class Unspecified(Mark):
    """The default of arguments for which None is a value."""

    text = "<unspecified>"


UNSPECIFIED: Any = Unspecified()


T = TypeVar("T")
T1 = TypeVar("T1")
T2 = TypeVar("T2")
T3 = TypeVar("T3")


def _check_equal_lengths(name: str, lists: Sequence[Sequence[Any]]) -> None:
    lengths = [len(values) for values in lists]
    if len(set(lengths)) > 1:
        got = "lengths " + ", ".join(map(str, lengths))
        error(ValueError, name, "lengths differ.", got=got, expected="equal lengths")


@overload
def safe_zip(first: Iterable[T1], /) -> list[tuple[T1]]: ...
@overload
def safe_zip(first: Iterable[T1], second: Iterable[T2], /) -> list[tuple[T1, T2]]: ...
@overload
def safe_zip(
    first: Iterable[T1], second: Iterable[T2], third: Iterable[T3], /
) -> list[tuple[T1, T2, T3]]: ...
@overload
def safe_zip(*args: Iterable[Any]) -> list[tuple[Any, ...]]: ...
def safe_zip(*args: Iterable[Any]) -> list[tuple[Any, ...]]:
    """A list of tuples, like `zip`.

    Raises:
        ValueError: the lengths differ.
    """
    lists = [list(arg) for arg in args]
    _check_equal_lengths("safe_zip", lists)
    return list(zip(*lists, strict=True))


def safe_map(function: Callable[..., T], *args: Iterable[Any]) -> list[T]:
    """A list, like `map`.

    Raises:
        ValueError: the lengths differ.
    """
    lists = [list(arg) for arg in args]
    _check_equal_lengths("safe_map", lists)
    return list(map(function, *lists))


def unzip2(pairs: Iterable[tuple[T1, T2]]) -> tuple[tuple[T1, ...], tuple[T2, ...]]:
    """Two tuples from pairs; for no pairs, two empty ones."""
    columns: Any = tuple(zip(*pairs, strict=True))
    return columns or ((), ())


def unzip3(
    triples: Iterable[tuple[T1, T2, T3]],
) -> tuple[tuple[T1, ...], tuple[T2, ...], tuple[T3, ...]]:
    """Three tuples from triples; for no triples, three empty ones."""
    columns: Any = tuple(zip(*triples, strict=True))
    return columns or ((), (), ())


def partition_list(choose: Iterable[bool], values: Iterable[T]) -> tuple[list[T], list[T]]:
    """The values where `choose` is false, and those where it is true; `merge_lists` undoes it.

    Raises:
        ValueError: the lengths differ.
    """
    parts: tuple[list[T], list[T]] = ([], [])
    for chosen, value in safe_zip(choose, values):
        parts[bool(chosen)].append(value)
    return parts


def merge_lists(
    choose: Iterable[bool], where_false: Iterable[T], where_true: Iterable[T]
) -> list[T]:
    """One list that takes from `where_true` where `choose` is true, and else from `where_false`.

    Raises:
        ValueError: the lists do not have as many elements as `choose` asks for.
    """
    chosen = [bool(choice) for choice in choose]
    parts = (list(where_false), list(where_true))
    counts = (chosen.count(False), chosen.count(True))
    lengths = (len(parts[0]), len(parts[1]))
    if lengths != counts:
        problem = "the lists do not have the lengths that choose asks for."
        got = {"where_false": f"length {lengths[0]}", "where_true": f"length {lengths[1]}"}
        expected = f"lengths {counts[0]} and {counts[1]}"
        error(ValueError, "merge_lists", problem, got=got, expected=expected)
    sources = (iter(parts[0]), iter(parts[1]))
    return [next(sources[choice]) for choice in chosen]


def split_list(values: Sequence[T], lengths: Iterable[int]) -> list[list[T]]:
    """Consecutive pieces of the given lengths, and the rest, which may be empty.

    Raises:
        ValueError: a length is negative, or there are fewer values than the lengths ask for.
    """
    wanted = list(lengths)
    if any(length < 0 for length in wanted) or sum(wanted) > len(values):
        problem = "the pieces do not fit the list."
        got = {"lengths": wanted, "values": f"{len(values)} of them"}
        expected = "non-negative lengths, together at most the number of values"
        error(ValueError, "split_list", problem, got=got, expected=expected)
    pieces: list[list[T]] = []
    start = 0
    for length in wanted:
        pieces.append(list(values[start : start + length]))
        start += length
    return [*pieces, list(values[start:])]


def split_list_checked(values: Sequence[T], lengths: Iterable[int]) -> list[list[T]]:
    """Consecutive pieces of the given lengths, which use up the list.

    Raises:
        ValueError: the lengths do not add up to the number of values.
    """
    wanted = list(lengths)
    if sum(wanted) != len(values):
        problem = "the lengths do not add up to the number of values."
        got = {"lengths": wanted, "values": f"{len(values)} of them"}
        expected = f"lengths that sum to {len(values)}"
        error(ValueError, "split_list_checked", problem, got=got, expected=expected)
    return split_list(values, wanted)[:-1]


def _check_position(name: str, position: int, stop: int) -> None:
    if not 0 <= position < stop:
        problem = "the position is out of range."
        expected = f"0 <= position < {stop}"
        error(IndexError, name, problem, got={"position": position}, expected=expected)


def tuple_delete(values: Sequence[T], position: int) -> tuple[T, ...]:
    """The values without the one at `position`.

    Raises:
        IndexError: there is no such position.
    """
    _check_position("tuple_delete", position, len(values))
    return (*values[:position], *values[position + 1 :])


def tuple_insert(values: Sequence[T], position: int, value: T) -> tuple[T, ...]:
    """The values with `value` before the one at `position`; the end is a position, too.

    Raises:
        IndexError: there is no such position.
    """
    _check_position("tuple_insert", position, len(values) + 1)
    return (*values[:position], value, *values[position:])


def tuple_update(values: Sequence[T], position: int, value: T) -> tuple[T, ...]:
    """The values with `value` in place of the one at `position`.

    Raises:
        IndexError: there is no such position.
    """
    _check_position("tuple_update", position, len(values))
    return (*values[:position], value, *values[position + 1 :])
