"""Semaphores: counts by which cores, and copies under way, tell that something is done.

A semaphore is a reference of a kind of its own, to a count.  The cores of a simulated mesh run one
after the other, so a wait never blocks: it finds what it waits for, or nothing ever will come.
`place_of` and the rules that primitives on references share serve `async_copies.py` too.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from minijax.core import refs
from minijax.core.aval import Shape, aval_of
from minijax.core.errors import error, message
from minijax.core.primitive import Primitive
from minijax.core.refs import AbstractRef, Cell
from minijax.core.trace import Tracer
from minijax.lax import creation, reference_indexing, references
from minijax.lax.convert import convert_element_type
from minijax.lax.reference_indexing import Index, Point
from minijax.lax.reference_views import View


class SemaphoreType(enum.Enum):
    """What a semaphore counts: signals, finished copies, or cores at a barrier.

    A member is the type of one semaphore; `SemaphoreType.DMA((2,))` is that of an array of them.

    Source:     mirrors jax.experimental.pallas.tpu.SemaphoreType (0.10).

    Example:
        >>> from minijax.experimental import pallas as pl
        >>> from minijax.experimental.pallas import tpu as pltpu
        >>> def signalled(semaphore):
        ...     pl.semaphore_signal(semaphore, 2)
        ...     return pl.semaphore_read(semaphore)
        >>> pl.run_scoped(signalled, pltpu.SemaphoreType.REGULAR)
        Array(2, dtype=int32)
    """

    REGULAR = "sem"
    DMA = "dma_sem"
    BARRIER = "barrier_sem"

    def __call__(self, shape: Sequence[int]) -> SemaphoreArray:
        """The type of an array of semaphores."""
        return SemaphoreArray(self, tuple(shape))


class SemaphoreArray(NamedTuple):
    """The type of an array of semaphores."""

    kind: SemaphoreType
    shape: Shape


def make(kind: SemaphoreType, shape: Shape = ()) -> Any:
    """New semaphores, which count nothing yet."""
    zero = creation.full(shape, 0, np.int32)
    return references.new_ref_p.bind(zero, is_tangent=False, memory_space=None, kind=kind.value)


class Place(NamedTuple):
    """A reference and an index of it: what an operation reads, writes or counts at."""

    ref: Any
    where: Index
    operands: tuple[Any, ...]

    @property
    def flat(self) -> tuple[Any, ...]:
        """The operands of an operation that this place gives."""
        return (self.ref, *self.operands)


def place_of(ref: Any) -> Place:
    """The place of a reference, or of a part of one."""
    if isinstance(ref, View):
        return Place(ref.ref, *ref.located)
    return Place(ref, reference_indexing.whole(aval_of(ref).shape), ())


def notation(
    verb: str, args: Sequence[Any], indices: Sequence[Index], name: Callable[[Any], str]
) -> str:
    """The text of an equation on places: `dma_start x[...] -> y[0] sem`."""
    *data, sem = (
        reference_indexing.place_text(place.ref, place.where, place.operands, name)
        for place in places(args, *indices)
    )
    return f"{verb} {' -> '.join(data)} {sem}"


def places(args: Sequence[Any], *indices: Index) -> list[Place]:
    """The places among the operands of an operation, which has parameters for their indices."""
    found = []
    start = 0
    for index in indices:
        end = start + 1 + _operand_count(index)
        found.append(Place(args[start], index, tuple(args[start + 1 : end])))
        start = end
    return found


def _operand_count(index: Index) -> int:
    return sum(type(e) is Point or e.start is None for e in index.entries)  # type: ignore[union-attr]


def semaphore_place(name: str, sem: Any, kinds: Sequence[SemaphoreType]) -> Place:
    """The place of one semaphore of certain kinds.

    Raises:
        TypeError: it is none, or of another kind.
        ValueError: it is an array of several.
    """
    ref = sem.ref if isinstance(sem, View) else sem
    aval = aval_of(ref) if refs.is_reference(ref) else None
    wanted = [kind.value for kind in kinds]
    if aval is None or aval.kind not in wanted:
        error(
            TypeError,
            name,
            "sem must be a semaphore" + (" of copies." if len(kinds) == 1 else "."),
            got=type(sem).__name__ if aval is None else str(aval),
            expected=" or ".join(f"SemaphoreType.{kind.name}" for kind in kinds),
            fix=f"run_scoped(f, SemaphoreType.{kinds[0].name}) gives f one",
        )
    place = place_of(sem)
    if place.where.shape:
        error(
            ValueError,
            name,
            "sem is an array of semaphores.",
            got=f"{aval} of shape {place.where.shape}",
            fix="choose one: sem.at[i]",
        )
    return place


def read_count(sem: Cell, index: Index, operands: Sequence[Any]) -> Any:
    """The count of a semaphore whose value is known."""
    return references.get_p.discharge(sem, *operands, index=index)


def change_count(sem: Cell, index: Index, operands: Sequence[Any], amount: Any) -> None:
    """Adds to the count of a semaphore whose value is known."""
    references.addupdate_p.discharge(sem, amount, *operands, index=index)


def check_count(
    name: str, sem: Cell, index: Index, operands: Sequence[Any], amount: Any, fix: str
) -> None:
    """Refuses to wait for what will not come, where counts are known.

    Raises:
        ValueError: the semaphore counts less than is waited for.
    """
    if any(isinstance(x, Tracer) for x in (sem.read(), amount, *operands)):
        return
    count = int(np.asarray(read_count(sem, index, operands)))
    if count < int(np.asarray(amount)):
        raise never(name, sem.aval, count, int(np.asarray(amount)), fix)


def never(name: str, aval: Any, count: int, amount: int, fix: str, at: str = "") -> ValueError:
    """The error for a wait that would never end."""
    return ValueError(
        message(
            name,
            "the wait would never end: the semaphore counts less than it waits for.",
            got={"semaphore": aval.str_short(), "count": count, "awaited": amount},
            fix=fix,
            at=at or None,
        )
    )


class _Counting(Primitive):
    """A change of one semaphore's count by the operand `amount`, of a sign that classes give."""

    multiple_results: ClassVar[bool] = True
    has_effects: ClassVar[bool] = True
    without = frozenset({"transpose", "lower"})
    sign: ClassVar[int]

    def abstract_eval(
        self, amount: Any, sem: AbstractRef, *operands: Any, index: Index
    ) -> list[Any]:
        return []

    def shard(self, avals: Sequence[Any], outs: Sequence[Any], **params: Any) -> list[Any]:
        return []

    def effects(self, *avals: Any, **params: Any) -> frozenset[Any]:
        return frozenset({refs.AccumEffect(1)})

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, index: Index
    ) -> tuple[list[Any], list[Any]]:
        return self.bind(*primals, index=index), []

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], *, index: Index
    ) -> tuple[list[Any], list[Any]]:
        raise not_batched(self.name)

    def _change(self, amount: Any, sem: Cell, operands: Sequence[Any], index: Index) -> list[Any]:
        change_count(sem, index, operands, amount * np.int32(self.sign))
        return []


def not_batched(name: str) -> NotImplementedError:
    """The error for counting on a semaphore inside of `vmap`."""
    return NotImplementedError(
        message(
            name,
            "there is no count for each example of a batch.",
            fix="vmap the program around core_map, or loop over the examples",
        )
    )


class SemaphoreSignal(_Counting):
    """Adds `amount` to the count of a semaphore."""

    name = "semaphore_signal"
    sign = 1

    def discharge(self, amount: Any, sem: Cell, *operands: Any, index: Index) -> list[Any]:
        return self._change(amount, sem, operands, index)


class SemaphoreWait(_Counting):
    """Takes `amount` from the count of a semaphore, once it is as high."""

    name = "semaphore_wait"
    sign = -1

    def discharge(self, amount: Any, sem: Cell, *operands: Any, index: Index) -> list[Any]:
        check_count("semaphore_wait", sem, index, operands, amount, SIGNAL_FIRST)
        return self._change(amount, sem, operands, index)


SIGNAL_FIRST = "semaphore_signal(sem, n) first, on this core or on one of a lower number"

semaphore_signal_p = SemaphoreSignal()
semaphore_wait_p = SemaphoreWait()

_COUNTERS = (SemaphoreType.REGULAR, SemaphoreType.BARRIER)


def semaphore_signal(
    sem_or_view: Any,
    inc: Any = 1,
    *,
    device_id: Any = None,
    device_id_type: Any = None,
    core_index: Any = None,
) -> None:
    """Adds `inc` to the count of a semaphore.

    Source: mirrors jax.experimental.pallas.semaphore_signal (0.10).

    Args:
        sem_or_view: a semaphore, or `sem.at[i]` of an array of them.
        inc: an integer.
        device_id: must be None: one device is simulated.
        device_id_type: accepted for compatibility; means nothing without `device_id`.
        core_index: must be None: a semaphore made outside of `core_map` is that of all cores.

    Raises:
        TypeError: `sem_or_view` is no semaphore, or `inc` no integer.
        NotImplementedError: a device or a core is given.

    Example:
        >>> from minijax.experimental import pallas as pl
        >>> from minijax.experimental.pallas import tpu as pltpu
        >>> def count(sem):
        ...     pl.semaphore_signal(sem, 3)
        ...     pl.semaphore_wait(sem, 1)
        ...     return pl.semaphore_read(sem)
        >>> pl.run_scoped(count, pltpu.SemaphoreType.REGULAR)
        Array(2, dtype=int32)
    """
    del device_id_type
    if device_id is not None or core_index is not None:
        which = "device_id" if device_id is not None else "core_index"
        error(
            NotImplementedError,
            "semaphore_signal",
            f"{which} must be None: semaphores of others cannot be reached.",
            got=str(device_id if device_id is not None else core_index),
            fix="make the semaphore outside of core_map: all cores see it",
        )
    place = semaphore_place("semaphore_signal", sem_or_view, _COUNTERS)
    amount = _amount("semaphore_signal", "inc", inc)
    semaphore_signal_p.bind(amount, *place.flat, index=place.where)


def semaphore_wait(sem_or_view: Any, value: Any = 1, *, decrement: bool = True) -> None:
    """Waits until a semaphore counts `value`, and takes that from the count.

    Source: mirrors jax.experimental.pallas.semaphore_wait (0.10).

    Args:
        sem_or_view: a semaphore, or `sem.at[i]` of an array of them.
        value: an integer.
        decrement: whether the count goes down by it.

    Raises:
        TypeError: `sem_or_view` is no semaphore, or `value` no integer.
        ValueError: the count is known, and lower: the wait would never end.

    Example:
        >>> from minijax.experimental import pallas as pl
        >>> from minijax.experimental.pallas import tpu as pltpu
        >>> def wait_twice(sem):
        ...     pl.semaphore_signal(sem, 2)
        ...     pl.semaphore_wait(sem, 2, decrement=False)
        ...     pl.semaphore_wait(sem, 2)
        ...     return pl.semaphore_read(sem)
        >>> pl.run_scoped(wait_twice, pltpu.SemaphoreType.REGULAR)
        Array(0, dtype=int32)
    """
    place = semaphore_place("semaphore_wait", sem_or_view, _COUNTERS)
    amount = _amount("semaphore_wait", "value", value)
    semaphore_wait_p.bind(amount, *place.flat, index=place.where)
    if not decrement:
        semaphore_signal_p.bind(amount, *place.flat, index=place.where)


def semaphore_read(sem_or_view: Any) -> Any:
    """What a semaphore counts; of one for copies, the bytes that have arrived.

    Source: mirrors jax.experimental.pallas.semaphore_read (0.10).

    Raises:
        TypeError: `sem_or_view` is no semaphore.

    Example:
        >>> from minijax.experimental import pallas as pl
        >>> from minijax.experimental.pallas import tpu as pltpu
        >>> pl.run_scoped(pl.semaphore_read, pltpu.SemaphoreType.REGULAR)
        Array(0, dtype=int32)
    """
    place = semaphore_place("semaphore_read", sem_or_view, tuple(SemaphoreType))
    return references.get_p.bind(*place.flat, index=place.where)


def _amount(name: str, argument: str, amount: Any) -> Any:
    aval = aval_of(amount)
    if aval.shape or not np.issubdtype(aval.dtype, np.integer):
        error(TypeError, name, f"{argument} must be an integer.", got=str(aval))
    is_known = isinstance(amount, (int, np.integer))
    return np.int32(amount) if is_known else convert_element_type(amount, np.int32)
