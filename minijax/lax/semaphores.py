"""Semaphores, and copies from reference to reference that go on while the program does.

A semaphore is a count by which cores, and copies under way, tell that something is done: a
reference of a kind of its own.  The cores of a simulated mesh run one after the other, so a wait
never blocks: it finds what it waits for, or nothing ever will come.

A copy is started, then waited for.  It counts bytes on a semaphore when they have arrived; to wait
takes them from the count.  In the simulation the bytes arrive at once, and
`experimental/cores/checks.py` sees to it that nobody relies on that.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from minijax.core import printing, refs, vma
from minijax.core.aval import Shape, aval_of
from minijax.core.errors import error, message
from minijax.core.jaxpr import Eqn
from minijax.core.primitive import Dual, Primitive, Zero
from minijax.core.refs import Cell
from minijax.core.trace import Params, Tracer
from minijax.lax import creation, reference_indexing, references
from minijax.lax.creation import convert_element_type
from minijax.lax.families import Values, jvp_without_results, no_results
from minijax.lax.reference_indexing import Index, Point
from minijax.lax.references import View
from minijax.runtime.array import Array


class SemaphoreType(enum.Enum):
    """What a semaphore counts: signals, finished copies, or cores at a barrier.

    A member is the type of one semaphore; `SemaphoreType.DMA((2,))` is that of an array of them.

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


def place_of(ref: object) -> Place:
    """The place of a reference, or of a part of one."""
    if isinstance(ref, View):
        return Place(ref.root, *ref.located)
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


def places(args: Values, *indices: Index) -> list[Place]:
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
    ref = refs.root_of(sem)
    aval: Any = aval_of(ref) if refs.is_reference(ref) else None
    wanted = [kind.value for kind in kinds]
    if aval is None or aval.kind not in wanted:
        problem = "sem must be a semaphore" + (" of copies." if len(kinds) == 1 else ".")
        got = type(sem).__name__ if aval is None else str(aval)
        expected = " or ".join(f"SemaphoreType.{kind.name}" for kind in kinds)
        fix = f"run_scoped(f, SemaphoreType.{kinds[0].name}) gives f one"
        error(TypeError, name, problem, got=got, expected=expected, fix=fix)
    place = place_of(sem)
    if place.where.shape:
        problem = "sem is an array of semaphores."
        fix = "choose one: sem.at[i]"
        error(ValueError, name, problem, got=f"{aval} of shape {place.where.shape}", fix=fix)
    return place


def read_count(sem: Cell, index: Index, operands: Sequence[Any]) -> Any:
    """The count of a semaphore whose value is known."""
    return refs.discharge.of(references.get_p)(sem, *operands, index=index)


def change_count(sem: Cell, index: Index, operands: Sequence[Any], amount: object) -> None:
    """Adds to the count of a semaphore whose value is known."""
    refs.discharge.of(references.addupdate_p)(sem, amount, *operands, index=index)


def check_count(
    name: str, sem: Cell, index: Index, operands: Sequence[Any], amount: object, fix: str
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


def _refuse_batch(primitive: Primitive, *_: Any, **params: Any) -> NoReturn:
    problem = "there is no count for each example of a batch."
    fix = "vmap the program around core_map, or loop over the examples"
    error(NotImplementedError, primitive.name, problem, fix=fix)


class _OnSemaphore(Primitive):
    """What changes the count of a semaphore, and has no results."""

    multiple_results: ClassVar[bool] = True
    has_effects: ClassVar[bool] = True
    abstract_eval = no_results
    shard = no_results
    jvp = jvp_without_results
    batch = _refuse_batch


class Counting(_OnSemaphore):
    """A change of one semaphore's count by the operand `amount`.

    Args:
        name: the primitive's name.
        sign: 1, to add the amount; -1, to take it away once the count is as high.
    """

    def __init__(self, name: str, sign: int) -> None:
        super().__init__(name)
        self.sign = sign

    def effects(self, *avals: Any, **params: Any) -> frozenset[Any]:
        return frozenset({refs.AccumEffect(1)})


@refs.discharge.rule(Counting)
def _discharge_of_counting(
    primitive: Counting, amount: Array, sem: Cell, *operands: Any, index: Index
) -> list[Any]:
    if primitive.sign < 0:
        check_count(primitive.name, sem, index, operands, amount, SIGNAL_FIRST)
    change_count(sem, index, operands, amount * np.int32(primitive.sign))
    return []


SIGNAL_FIRST = "semaphore_signal(sem, n) first, on this core or on one of a lower number"

semaphore_signal_p = Counting("semaphore_signal", 1)
semaphore_wait_p = Counting("semaphore_wait", -1)

_COUNTERS = (SemaphoreType.REGULAR, SemaphoreType.BARRIER)


def semaphore_signal(
    sem_or_view: object,
    inc: object = 1,
    *,
    device_id: object = None,
    device_id_type: object = None,
    core_index: object = None,
) -> None:
    """Adds `inc` to the count of a semaphore.

    Args:
        sem_or_view: a semaphore, or `sem.at[i]` of an array of them.
        inc: an integer.
        device_id: must be None: one device is simulated.
        device_id_type: accepted for compatibility; means nothing without `device_id`.
        core_index: must be None: a semaphore made outside of `core_map` is that of all cores.

    Raises:
        TypeError: `sem_or_view` is not a semaphore, or `inc` is not an integer.
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
        problem = f"{which} must be None: semaphores of others cannot be reached."
        got = str(device_id if device_id is not None else core_index)
        fix = "make the semaphore outside of core_map: all cores see it"
        error(NotImplementedError, "semaphore_signal", problem, got=got, fix=fix)
    place = semaphore_place("semaphore_signal", sem_or_view, _COUNTERS)
    amount = _amount("semaphore_signal", "inc", inc)
    semaphore_signal_p.bind(amount, *place.flat, index=place.where)


def semaphore_wait(sem_or_view: object, value: object = 1, *, decrement: bool = True) -> None:
    """Waits until a semaphore counts `value`, and takes that from the count.

    Args:
        sem_or_view: a semaphore, or `sem.at[i]` of an array of them.
        value: an integer.
        decrement: whether the count goes down by it.

    Raises:
        TypeError: `sem_or_view` is not a semaphore, or `value` is not an integer.
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


def semaphore_read(sem_or_view: object) -> Any:
    """What a semaphore counts; of one for copies, the bytes that have arrived.

    Raises:
        TypeError: `sem_or_view` is not a semaphore.

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


def byte_count(dtype: np.dtype[Any], index: Index) -> int:
    """The bytes at an index of a reference."""
    return int(np.prod(index.shape, dtype=np.int64)) * int(dtype.itemsize)


class DmaStart(_OnSemaphore):
    """Starts to copy what is at one place to another; or to add it there."""

    name = "dma_start"

    def effects(
        self, *avals: Any, src_index: Index, dst_index: Index, sem_index: Index, add: bool
    ) -> frozenset[Any]:
        numbers = places(range(len(avals)), src_index, dst_index, sem_index)
        src, dst, sem = (place.ref for place in numbers)
        written = refs.AccumEffect(dst) if add else refs.WriteEffect(dst)
        return frozenset({refs.ReadEffect(src), written, refs.AccumEffect(sem)})

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Dual:
        self.bind(*primals, **params)
        src_index, dst_index, add = params["src_index"], params["dst_index"], params["add"]
        src, dst = places(primals, src_index, dst_index)
        src_dot, dst_dot = tangents[0], tangents[len(src.flat)]
        if type(dst_dot) is Zero and type(src_dot) is Zero:
            return [], []
        if type(src_dot) is Zero:
            dot = np.zeros(src_index.shape, dst_dot.aval.dtype)
        else:
            dot = references.get_p.bind(src_dot, *src.operands, index=src_index)
        if type(dst_dot) is Zero:
            references.refuse_differentiated(dst.ref, "written to")
        store = references.addupdate_p if add else references.swap_p
        store.bind(dst_dot, dot, *dst.operands, index=dst_index)
        return [], []


@printing.notation.rule(DmaStart)
def _notation_of_copy(primitive: Primitive, eqn: Eqn, name: Callable[[Any], str], outs: str) -> str:
    places = ("src_index", "dst_index", "sem_index")
    indices = [eqn.params[key] for key in places if key in eqn.params]
    verb = f"{primitive.name}(add)" if eqn.params.get("add") else primitive.name
    return notation(verb, eqn.invars, indices, name)


@refs.discharge.rule(DmaStart)
def _discharge_of_dma_start(
    primitive: DmaStart, *args: Any, src_index: Index, dst_index: Index, sem_index: Index, add: bool
) -> list[Any]:
    src, dst, sem = places(args, src_index, dst_index, sem_index)
    value = refs.discharge.of(references.get_p)(*src.flat, index=src_index)
    store = references.addupdate_p if add else references.swap_p
    refs.discharge.of(store)(dst.ref, value, *dst.operands, index=dst_index)
    size = np.int32(byte_count(dst.ref.aval.dtype, dst_index))
    change_count(sem.ref, sem_index, sem.operands, size)
    return []


@vma.agree.rule(DmaStart)
def _agree_of_dma_start(
    primitive: DmaStart, trace: object, args: Values, params: Params
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    src, dst = places(args, params["src_index"], params["dst_index"])
    operands = (*src.operands, *dst.operands)
    references.check_varies_less(primitive.name, dst.ref, src.ref, operands)
    return args, params


vma.vary.rule(DmaStart)(no_results)


class DmaWait(_OnSemaphore):
    """Waits until as many bytes have arrived as a copy to a place brings."""

    name = "dma_wait"

    def effects(self, *avals: Any, dst_index: Index, sem_index: Index) -> frozenset[Any]:
        dst, sem = places(range(len(avals)), dst_index, sem_index)
        return frozenset({refs.ReadEffect(dst.ref), refs.AccumEffect(sem.ref)})


printing.notation.rule(DmaWait)(_notation_of_copy)


@refs.discharge.rule(DmaWait)
def _discharge_of_dma_wait(
    primitive: DmaWait, *args: Any, dst_index: Index, sem_index: Index
) -> list[Any]:
    dst, sem = places(args, dst_index, sem_index)
    size = np.int32(byte_count(dst.ref.aval.dtype, dst_index))
    check_count("AsyncCopyDescriptor.wait", sem.ref, sem_index, sem.operands, size, START_FIRST)
    change_count(sem.ref, sem_index, sem.operands, -size)
    return []


START_FIRST = "start the copy once before each wait: async_copy(...), or .start()"

dma_start_p = DmaStart()
dma_wait_p = DmaWait()


class AsyncCopyDescriptor(NamedTuple):
    """A copy that can be started, and waited for.  Made by `make_async_copy`.

    Attributes:
        src: what is copied.
        dst: where to.
        sem: where its bytes are counted.
    """

    src: Place
    dst: Place
    sem: Place

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        """Starts the copy; until it is waited for, `dst` must not be used, nor `src` written."""
        del priority
        src, dst, sem = self
        dma_start_p.bind(
            *src.flat,
            *dst.flat,
            *sem.flat,
            src_index=src.where,
            dst_index=dst.where,
            sem_index=sem.where,
            add=add,
        )

    def wait(self) -> None:
        """Waits for as many bytes as the copy brings.

        Raises:
            ValueError: it is known that they will not come, since no copy was started, or it was
                waited for already.
        """
        _, dst, sem = self
        dma_wait_p.bind(*dst.flat, *sem.flat, dst_index=dst.where, sem_index=sem.where)


def make_async_copy(src_ref: object, dst_ref: object, sem: object) -> AsyncCopyDescriptor:
    """Describes a copy from one reference to another, without starting it.

    Args:
        src_ref: a reference, or a part of one: `ref.at[idx]`.
        dst_ref: the same, of the same shape and dtype.
        sem: a semaphore of type DMA, or `sem.at[i]` of an array of them.

    Raises:
        TypeError: `sem` is not such a semaphore.
        ValueError: `src_ref` or `dst_ref` is not a reference to an array, or they do not fit.

    Example:
        >>> from minijax.experimental import pallas as pl
        >>> from minijax.experimental.pallas import tpu as pltpu
        >>> x, y = minijax.new_ref(jnp.arange(3)), minijax.new_ref(jnp.zeros(3, int))
        >>> def copy(sem):
        ...     descriptor = pltpu.make_async_copy(x, y, sem)
        ...     descriptor.start()
        ...     descriptor.wait()
        >>> pl.run_scoped(copy, pltpu.SemaphoreType.DMA)
        >>> y[...]
        Array([0, 1, 2], dtype=int32)
    """
    return _described("make_async_copy", src_ref, dst_ref, sem)


def sync_copy(src_ref: object, dst_ref: object, *, add: bool = False) -> None:
    """Copies from one reference to another, and waits until that is done.

    Args:
        src_ref: a reference, or a part of one: `ref.at[idx]`.
        dst_ref: the same, of the same shape and dtype.
        add: whether the values are added to those at `dst_ref`.

    Raises:
        ValueError: `src_ref` or `dst_ref` is not a reference to an array, or they do not fit.

    Example:
        >>> from minijax.experimental.pallas import tpu as pltpu
        >>> x, y = minijax.new_ref(jnp.arange(3)), minijax.new_ref(jnp.ones(3, int))
        >>> pltpu.sync_copy(x, y, add=True)
        >>> y[...]
        Array([1, 2, 3], dtype=int32)
    """
    sem = make(SemaphoreType.DMA)
    copy = _described("sync_copy", src_ref, dst_ref, sem)
    copy.start(add=add)
    copy.wait()
    references.freeze_p.bind(sem)


def async_copy(
    src_ref: object, dst_ref: object, sem: object, *, priority: int = 0, add: bool = False
) -> AsyncCopyDescriptor:
    """Starts a copy from one reference to another, and describes it.

    Args:
        src_ref: a reference, or a part of one: `ref.at[idx]`.
        dst_ref: the same, of the same shape and dtype.
        sem: a semaphore of type DMA, or `sem.at[i]` of an array of them.
        priority: accepted for compatibility.
        add: whether the values are added to those at `dst_ref`.

    Raises:
        TypeError: `sem` is not such a semaphore.
        ValueError: `src_ref` or `dst_ref` is not a reference to an array, or they do not fit.

    Example:
        >>> from minijax.experimental import pallas as pl
        >>> from minijax.experimental.pallas import tpu as pltpu
        >>> x, y = minijax.new_ref(jnp.arange(4)), minijax.new_ref(jnp.zeros(2, int))
        >>> pl.run_scoped(
        ...     lambda sem: pltpu.async_copy(x.at[2:], y, sem).wait(), pltpu.SemaphoreType.DMA
        ... )
        >>> y[...]
        Array([2, 3], dtype=int32)
    """
    del priority
    descriptor = _described("async_copy", src_ref, dst_ref, sem)
    descriptor.start(add=add)
    return descriptor


def _described(name: str, src_ref: object, dst_ref: object, sem: object) -> AsyncCopyDescriptor:
    src, dst = _array_place(name, "src_ref", src_ref), _array_place(name, "dst_ref", dst_ref)
    shapes = {"src_ref": src.where.shape, "dst_ref": dst.where.shape}
    dtypes = {"src_ref": src.ref.aval.dtype, "dst_ref": dst.ref.aval.dtype}
    for what, facts in (("shape", shapes), ("dtype", dtypes)):
        if facts["src_ref"] != facts["dst_ref"]:
            problem = f"a copy does not change the {what}, but those of its ends differ."
            fix = "a part of the larger one: ref.at[idx]" if what == "shape" else None
            error(ValueError, name, problem, got=facts, fix=fix)
    return AsyncCopyDescriptor(src, dst, semaphore_place(name, sem, (SemaphoreType.DMA,)))


def _array_place(name: str, argument: str, ref: Any) -> Place:
    whole = refs.root_of(ref)
    aval: Any = aval_of(whole) if refs.is_reference(whole) else None
    if aval is None or aval.is_semaphore:
        got = str(aval_of(whole)) if refs.is_reference(whole) else type(ref).__name__
        fix = "new_ref(x) makes one of an array, run_scoped(f, VMEM(shape, dtype)) scratch"
        error(ValueError, name, f"{argument} must be a reference to an array.", got=got, fix=fix)
    return place_of(ref)
