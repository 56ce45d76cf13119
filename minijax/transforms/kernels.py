"""Programs for cores as functions of arrays, and what is often written in them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from minijax.core import tree
from minijax.core.trace import Tracer
from minijax.interpreters import eager
from minijax.lax import references, semaphores
from minijax.lax.control_flow import branching
from minijax.lax.semaphores import SemaphoreType
from minijax.transforms import core_map, scratch
from minijax.transforms.scratch import MemorySpace


def kernel(
    body: Callable[..., None] | None = None,
    out_type: Any = (),
    *,
    mesh: Any,
    scratch_types: Any = (),
    compiler_params: Any = None,
    interpret: Any = False,
    cost_estimate: Any = None,
    debug: bool = False,
    name: str | None = None,
    metadata: dict[str, str] | None = None,
) -> Callable[..., Any]:
    """A program for cores as a function of arrays.

    Each core runs `body` with references to the arguments, then to the results, then to scratch
    memory of its own.

    Source: mirrors jax.experimental.pallas.kernel (0.10).

    Args:
        body: a function of references, which returns None; left away, the result is a decorator.
        out_type: shapes and dtypes of the results: one, or a tuple or list of those that `body`
            takes one by one.  What they hold at first is undefined.
        mesh: a mesh of cores.
        scratch_types: as of `core_map`.
        compiler_params: accepted for compatibility.
        interpret: as of `core_map`.
        cost_estimate: accepted for compatibility.
        debug: accepted for compatibility.
        name: what messages call the function.
        metadata: accepted for compatibility.

    Raises:
        TypeError: `body` cannot be called, or `mesh` is no mesh of cores.
        ValueError: `body` makes a mistake that `core_map` refuses.

    Example:
        >>> from minijax.experimental import pallas as pl
        >>> from minijax.experimental.pallas import tpu as pltpu
        >>> mesh = pltpu.create_tensorcore_mesh("core", num_cores=2)
        >>> @pl.kernel(out_type=minijax.ShapeDtypeStruct((2,), jnp.int32), mesh=mesh)
        ... def double(x, y):
        ...     core = lax.axis_index("core")
        ...     y[core] = 2 * x[core]
        >>> double(jnp.array([3, 4]))
        Array([6, 8], dtype=int32)
    """
    del compiler_params, cost_estimate, debug, metadata
    if body is None:
        return functools.partial(
            kernel,
            out_type=out_type,
            mesh=mesh,
            scratch_types=scratch_types,
            interpret=interpret,
            name=name,
        )
    eager.check_callable("kernel", body)
    map_over_cores = core_map.core_map(
        mesh, interpret=interpret, name=name, scratch_shapes=scratch_types
    )

    @functools.wraps(body)
    def call(*args: Any) -> Any:
        ins = tree.map(references.new_ref, args)
        outs = tree.map(scratch.new_scratch, out_type)
        each = outs if isinstance(out_type, (tuple, list)) else (outs,)
        map_over_cores(functools.partial(body, *ins, *each))
        return tree.map(references.freeze, outs)

    return call


def when(condition: Any, /) -> Callable[[Callable[[], None]], None]:
    """Runs a function where a condition holds; to be used as a decorator.

    Source: mirrors jax.experimental.pallas.when (0.10).

    Args:
        condition: a boolean, which may be traced.

    Example:
        >>> from minijax.experimental import pallas as pl
        >>> ref = minijax.new_ref(jnp.int32(1))
        >>> @pl.when(ref[...] > 0)
        ... def clear():
        ...     ref[...] = 0
        >>> ref[...]
        Array(0, dtype=int32)
    """

    def run(f: Callable[[], None]) -> None:
        if isinstance(condition, Tracer):
            branching.cond(condition, f, lambda: None)
        elif condition:
            f()

    return run


def prefetch_scalars(f: Callable[..., Any], *index_refs: Any) -> Any:
    """Calls `f` with copies of small references, in memory for scalars.

    An `index_map` that reads such a copy chooses the blocks of a pipeline by the data.

    Args:
        f: a function of references.
        index_refs: what to copy, such as references to arrays of block numbers.

    Source:     own; it stands for the scalar prefetch of jax.experimental.pallas.tpu's grids.

    Returns:
        What `f` returns.

    Example:
        >>> from minijax.experimental import pallas as pl
        >>> from minijax.experimental.pallas import tpu as pltpu
        >>> order = minijax.new_ref(jnp.array([2, 0, 1]))
        >>> x, y = minijax.new_ref(jnp.arange(3)), minijax.new_ref(jnp.zeros(3, int))
        >>> def permute(order):
        ...     def copy(a, b):
        ...         b[...] = a[...]
        ...     pltpu.emit_pipeline(
        ...         copy,
        ...         grid=(3,),
        ...         in_specs=[pl.BlockSpec((1,), lambda i: (order[i],))],
        ...         out_specs=[pl.BlockSpec((1,), lambda i: (i,))],
        ...     )(x, y)
        >>> pltpu.prefetch_scalars(permute, order)
        >>> y[...]
        Array([2, 0, 1], dtype=int32)
    """

    def run(*memory: Any) -> Any:
        copied, sems = memory[: len(index_refs)], memory[len(index_refs) :]
        copies = [
            semaphores.async_copy(src, dst, sem)
            for src, dst, sem in zip(index_refs, copied, sems, strict=True)
        ]
        for copy in copies:
            copy.wait()
        return f(*copied)

    types: Sequence[Any] = [MemorySpace.SMEM(ref.shape, ref.dtype) for ref in index_refs]
    return scratch.run_scoped(run, *types, *(SemaphoreType.DMA for _ in index_refs))
