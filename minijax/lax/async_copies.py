"""Copies from reference to reference that go on while the program does: start, then wait.

A copy counts bytes on a semaphore when they have arrived; to wait takes them from the count.  In
the simulation the bytes arrive at once, and `transforms/core_checks.py` sees to it that nobody
relies on that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from minijax.core import refs
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.core.jaxpr import Eqn
from minijax.core.primitive import Primitive
from minijax.interpreters.tangents import Zero
from minijax.lax import reference_checks, references, semaphores
from minijax.lax.reference_indexing import Index
from minijax.lax.reference_views import View
from minijax.lax.semaphores import Place, SemaphoreType


def byte_count(dtype: Any, index: Index) -> int:
    """The bytes at an index of a reference."""
    return int(np.prod(index.shape, dtype=np.int64)) * int(dtype.itemsize)


class DmaStart(Primitive):
    """Starts to copy what is at one place to another; or to add it there."""

    name = "dma_start"
    multiple_results: ClassVar[bool] = True
    has_effects: ClassVar[bool] = True
    without = frozenset({"transpose", "lower"})

    def abstract_eval(self, *avals: Any, **params: Any) -> list[Any]:
        return []

    def agree(
        self, trace: Any, args: Sequence[Any], params: dict[str, Any]
    ) -> tuple[Sequence[Any], dict[str, Any]]:
        src, dst = semaphores.places(args, params["src_index"], params["dst_index"])
        operands = (*src.operands, *dst.operands)
        reference_checks.check_varies_less(self.name, dst.ref, src.ref, operands)
        return args, params

    def vary(self, avals: Sequence[Any], outs: Sequence[Any], **params: Any) -> list[Any]:
        return []

    def shard(self, avals: Sequence[Any], outs: Sequence[Any], **params: Any) -> list[Any]:
        return []

    def effects(
        self, *avals: Any, src_index: Index, dst_index: Index, sem_index: Index, add: bool
    ) -> frozenset[Any]:
        numbers = semaphores.places(range(len(avals)), src_index, dst_index, sem_index)
        src, dst, sem = (place.ref for place in numbers)
        written = refs.AccumEffect(dst) if add else refs.WriteEffect(dst)
        return frozenset({refs.ReadEffect(src), written, refs.AccumEffect(sem)})

    def notation(self, eqn: Eqn, name: Callable[[Any], str], outs: str) -> str:
        indices = [eqn.params[key] for key in ("src_index", "dst_index", "sem_index")]
        verb = f"{self.name}(add)" if eqn.params["add"] else self.name
        return semaphores.notation(verb, eqn.invars, indices, name)

    def discharge(
        self, *args: Any, src_index: Index, dst_index: Index, sem_index: Index, add: bool
    ) -> list[Any]:
        src, dst, sem = semaphores.places(args, src_index, dst_index, sem_index)
        value = references.get_p.discharge(*src.flat, index=src_index)
        store = references.addupdate_p if add else references.swap_p
        store.discharge(dst.ref, value, *dst.operands, index=dst_index)
        size = np.int32(byte_count(dst.ref.aval.dtype, dst_index))
        semaphores.change_count(sem.ref, sem_index, sem.operands, size)
        return []

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        src_index: Index,
        dst_index: Index,
        add: bool,
        **params: Any,
    ) -> tuple[list[Any], list[Any]]:
        indices = {"src_index": src_index, "dst_index": dst_index}
        self.bind(*primals, add=add, **indices, **params)
        src, dst = semaphores.places(primals, src_index, dst_index)
        src_dot, dst_dot = tangents[0], tangents[len(src.flat)]
        if type(dst_dot) is Zero and type(src_dot) is Zero:
            return [], []
        if type(src_dot) is Zero:
            dot = np.zeros(src_index.shape, dst_dot.aval.dtype)
        else:
            dot = references.get_p.bind(src_dot, *src.operands, index=src_index)
        if type(dst_dot) is Zero:
            reference_checks.refuse_differentiated(dst.ref, "written to")
        store = references.addupdate_p if add else references.swap_p
        store.bind(dst_dot, dot, *dst.operands, index=dst_index)
        return [], []

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], **params: Any
    ) -> tuple[list[Any], list[Any]]:
        raise semaphores.not_batched(self.name)


class DmaWait(Primitive):
    """Waits until as many bytes have arrived as a copy to a place brings."""

    name = "dma_wait"
    multiple_results: ClassVar[bool] = True
    has_effects: ClassVar[bool] = True
    without = frozenset({"transpose", "lower"})

    def abstract_eval(self, *avals: Any, **params: Any) -> list[Any]:
        return []

    def shard(self, avals: Sequence[Any], outs: Sequence[Any], **params: Any) -> list[Any]:
        return []

    def effects(self, *avals: Any, dst_index: Index, sem_index: Index) -> frozenset[Any]:
        dst, sem = semaphores.places(range(len(avals)), dst_index, sem_index)
        return frozenset({refs.ReadEffect(dst.ref), refs.AccumEffect(sem.ref)})

    def notation(self, eqn: Eqn, name: Callable[[Any], str], outs: str) -> str:
        indices = [eqn.params[key] for key in ("dst_index", "sem_index")]
        return semaphores.notation(self.name, eqn.invars, indices, name)

    def discharge(self, *args: Any, dst_index: Index, sem_index: Index) -> list[Any]:
        dst, sem = semaphores.places(args, dst_index, sem_index)
        size = np.int32(byte_count(dst.ref.aval.dtype, dst_index))
        semaphores.check_count(
            "AsyncCopyDescriptor.wait", sem.ref, sem_index, sem.operands, size, START_FIRST
        )
        semaphores.change_count(sem.ref, sem_index, sem.operands, -size)
        return []

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[list[Any], list[Any]]:
        self.bind(*primals, **params)
        return [], []

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], **params: Any
    ) -> tuple[list[Any], list[Any]]:
        raise semaphores.not_batched(self.name)


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


def make_async_copy(src_ref: Any, dst_ref: Any, sem: Any) -> AsyncCopyDescriptor:
    """Describes a copy from one reference to another, without starting it.

    Source: mirrors jax.experimental.pallas.tpu.make_async_copy (0.10).

    Args:
        src_ref: a reference, or a part of one: `ref.at[idx]`.
        dst_ref: the same, of the same shape and dtype.
        sem: a semaphore of type DMA, or `sem.at[i]` of an array of them.

    Raises:
        TypeError: `sem` is no such semaphore.
        ValueError: `src_ref` or `dst_ref` is no reference to an array, or they do not fit.

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


def sync_copy(src_ref: Any, dst_ref: Any, *, add: bool = False) -> None:
    """Copies from one reference to another, and waits until that is done.

    Source: mirrors jax.experimental.pallas.tpu.sync_copy (0.10).

    Args:
        src_ref: a reference, or a part of one: `ref.at[idx]`.
        dst_ref: the same, of the same shape and dtype.
        add: whether the values are added to those at `dst_ref`.

    Raises:
        ValueError: `src_ref` or `dst_ref` is no reference to an array, or they do not fit.

    Example:
        >>> from minijax.experimental.pallas import tpu as pltpu
        >>> x, y = minijax.new_ref(jnp.arange(3)), minijax.new_ref(jnp.ones(3, int))
        >>> pltpu.sync_copy(x, y, add=True)
        >>> y[...]
        Array([1, 2, 3], dtype=int32)
    """
    sem = semaphores.make(SemaphoreType.DMA)
    copy = _described("sync_copy", src_ref, dst_ref, sem)
    copy.start(add=add)
    copy.wait()
    references.freeze_p.bind(sem)


def async_copy(
    src_ref: Any, dst_ref: Any, sem: Any, *, priority: int = 0, add: bool = False
) -> AsyncCopyDescriptor:
    """Starts a copy from one reference to another, and describes it.

    Source: mirrors jax.experimental.pallas.tpu.async_copy (0.10).

    Args:
        src_ref: a reference, or a part of one: `ref.at[idx]`.
        dst_ref: the same, of the same shape and dtype.
        sem: a semaphore of type DMA, or `sem.at[i]` of an array of them.
        priority: accepted for compatibility.
        add: whether the values are added to those at `dst_ref`.

    Raises:
        TypeError: `sem` is no such semaphore.
        ValueError: `src_ref` or `dst_ref` is no reference to an array, or they do not fit.

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


def _described(name: str, src_ref: Any, dst_ref: Any, sem: Any) -> AsyncCopyDescriptor:
    src, dst = _array_place(name, "src_ref", src_ref), _array_place(name, "dst_ref", dst_ref)
    shapes = {"src_ref": src.where.shape, "dst_ref": dst.where.shape}
    dtypes = {"src_ref": src.ref.aval.dtype, "dst_ref": dst.ref.aval.dtype}
    for what, facts in (("shape", shapes), ("dtype", dtypes)):
        if facts["src_ref"] != facts["dst_ref"]:
            error(
                ValueError,
                name,
                f"a copy does not change the {what}, but those of its ends differ.",
                got=facts,
                fix="a part of the larger one: ref.at[idx]" if what == "shape" else None,
            )
    return AsyncCopyDescriptor(
        src, dst, semaphores.semaphore_place(name, sem, (SemaphoreType.DMA,))
    )


def _array_place(name: str, argument: str, ref: Any) -> Place:
    whole = ref.ref if isinstance(ref, View) else ref
    if not refs.is_reference(whole) or aval_of(whole).kind is not None:
        error(
            ValueError,
            name,
            f"{argument} must be a reference to an array.",
            got=str(aval_of(whole)) if refs.is_reference(whole) else type(ref).__name__,
            fix="new_ref(x) makes one of an array, run_scoped(f, VMEM(shape, dtype)) scratch",
        )
    return semaphores.place_of(ref)
