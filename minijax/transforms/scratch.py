"""Scratch memory: references and semaphores that live during one call.

On a device, kinds of memory differ in size and speed; here a `MemorySpace` only names one.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from minijax.core import axes, dtypes
from minijax.core.aval import Shape
from minijax.core.errors import error
from minijax.core.trace import current
from minijax.interpreters import casts, eager
from minijax.lax import creation, references, semaphores
from minijax.lax.semaphores import SemaphoreArray, SemaphoreType

R = TypeVar("R")


class MemorySpace(enum.Enum):
    """Kinds of memory: `VMEM(shape, dtype)` is the type of scratch memory of one kind.

    Source:     mirrors jax.experimental.pallas.tpu.MemorySpace (0.10).

    Example:
        >>> from minijax.experimental import pallas as pl
        >>> from minijax.experimental.pallas import tpu as pltpu
        >>> pl.run_scoped(lambda x: x[...], pltpu.SMEM((2,), jnp.float32))
        Array([nan, nan], dtype=float32)
    """

    ANY = "any"
    VMEM = "vmem"
    SMEM = "smem"
    HBM = "hbm"
    SEMAPHORE = "semaphore_mem"

    def __call__(self, shape: Sequence[int], dtype: Any) -> MemoryRef:
        """The type of a reference to an array in this memory."""
        return MemoryRef(tuple(shape), dtypes.canonicalize_dtype(dtype), self)


class MemoryRef(NamedTuple):
    """The type of a reference to an array of some shape and dtype.

    `varying` are the mesh axes over which what is written may differ; None: all in scope.

    Source:     mirrors jax.experimental.pallas.MemoryRef (0.10).

    Example:
        >>> from minijax.experimental.pallas import tpu as pltpu
        >>> scratch = pltpu.VMEM((2, 3), jnp.float32)
        >>> scratch.shape, scratch.dtype, scratch.memory_space.name
        ((2, 3), dtype('float32'), 'VMEM')
    """

    shape: Shape
    dtype: Any
    memory_space: MemorySpace
    varying: frozenset[Any] | None = None


def run_scoped(f: Callable[..., R], *types: Any, collective_axes: Any = (), **kw_types: Any) -> R:
    """Calls `f` with new references and semaphores, which live until it returns.

    What references hold at first is undefined.  The simulation makes that show: floats are NaN,
    integers the least of their dtype, booleans True.

    Derivative: that of `f`.
    Source:     mirrors jax.experimental.pallas.run_scoped (0.10).

    Args:
        f: a function of references, which may return arrays.
        types: what to make: `VMEM(shape, dtype)` or anything else with a shape and a dtype for a
            reference, a member of `SemaphoreType`, or that called with a shape, for semaphores.
        collective_axes: must be (): each core that calls this has memory of its own.
        kw_types: the same, for keyword arguments.

    Returns:
        What `f` returns.

    Raises:
        TypeError: `f` cannot be called, or a type is none.
        NotImplementedError: `collective_axes` is given.

    Example:
        >>> from minijax.experimental import pallas as pl
        >>> from minijax.experimental.pallas import tpu as pltpu
        >>> def square(x):
        ...     x[...] = jnp.arange(3)
        ...     return x[...] * x[...]
        >>> pl.run_scoped(square, pltpu.VMEM((3,), jnp.int32))
        Array([0, 1, 4], dtype=int32)
    """
    eager.check_callable("run_scoped", f)
    if collective_axes != ():
        error(
            NotImplementedError,
            "run_scoped",
            "collective_axes must be (): a core's scratch memory is its own.",
            got=repr(collective_axes),
            fix="call run_scoped around core_map: what it makes is seen by all cores",
        )
    args = [_made(t, f"types[{i}]") for i, t in enumerate(types)]
    kwargs = {name: _made(t, name) for name, t in kw_types.items()}
    result = f(*args, **kwargs)
    for ref in (*args, *kwargs.values()):
        references.freeze_p.bind(ref)
    return result


def with_scoped(
    *types: Any, collective_axes: Any = (), **kw_types: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the function gets scratch references after its own arguments.

    Source: mirrors jax.experimental.pallas.with_scoped (0.10).

    Args:
        types: as of `run_scoped`.
        collective_axes: must be ().
        kw_types: as of `run_scoped`.

    Example:
        >>> from minijax.experimental import pallas as pl
        >>> from minijax.experimental.pallas import tpu as pltpu
        >>> @pl.with_scoped(pltpu.SMEM((), jnp.int32))
        ... def doubled(x, scratch):
        ...     scratch[...] = x
        ...     return scratch[...] + scratch[...]
        >>> doubled(jnp.int32(4))
        Array(8, dtype=int32)
    """

    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(f)
        def call(*args: Any, **kwargs: Any) -> Any:
            return run_scoped(
                functools.partial(f, *args, **kwargs),
                *types,
                collective_axes=collective_axes,
                **kw_types,
            )

        return call

    return decorate


def _made(kind: Any, argument: str) -> Any:
    """A new reference, or semaphore, of the type that an argument is."""
    if isinstance(kind, SemaphoreType):
        return semaphores.make(kind)
    if isinstance(kind, SemaphoreArray):
        return semaphores.make(*kind)
    is_array = hasattr(kind, "shape") and hasattr(kind, "dtype")
    if not is_array or dtypes.is_extended(kind.dtype):
        error(
            TypeError,
            "run_scoped",
            f"{argument} is no type of scratch memory.",
            got=f"{kind!r} of type {type(kind).__name__}",
            expected="VMEM(shape, dtype), ShapeDtypeStruct(shape, dtype), or a SemaphoreType",
        )
    return new_scratch(kind)


def new_scratch(kind: Any) -> Any:
    """A new reference of the shape and dtype of `kind`, to what its memory happens to hold."""
    over = getattr(kind, "varying", None)
    if over is None:
        over = frozenset(axes.typed_among([axis.name for axis in axes.in_scope()]))
    value = _undefined(tuple(kind.shape), kind.dtype)
    return references.new_ref(casts.varied(current.value, value, over))


def _undefined(shape: Shape, dtype: Any) -> Any:
    if dtypes.issubdtype(dtype, np.inexact):
        return creation.full(shape, np.nan, dtype)
    if dtypes.issubdtype(dtype, np.bool_):
        return creation.full(shape, True, dtype)
    return creation.full(shape, dtypes.iinfo(dtype).min, dtype)
