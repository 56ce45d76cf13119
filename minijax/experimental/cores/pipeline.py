"""`emit_pipeline`: a loop over blocks of large references, which are copied while others are used.

Each operand has two buffers.  A step starts to copy the blocks that the next one needs, computes
on its own, and waits for the copies; results go back in the same way.  All of it is made of
`run_scoped` and `async_copy`.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from minijax.core import axes, tree, vma
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.core.operators import Values
from minijax.core.refs import root_of
from minijax.experimental.cores import core_map
from minijax.experimental.cores.core_map import MemoryRef, MemorySpace, when
from minijax.lax import binary, semaphores
from minijax.lax.collectives.arguments import axis_index
from minijax.lax.control_flow import looping
from minijax.lax.creation import convert_element_type
from minijax.lax.reference_indexing import ds
from minijax.lax.references import View
from minijax.lax.semaphores import SemaphoreType

NAME = "emit_pipeline"


class GridDimensionSemantics(enum.Enum):
    """Whether the steps along a dimension of a grid may be shared between cores.

    Example:
        >>> from minijax.experimental import pallas as pl
        >>> from minijax.experimental.pallas import tpu as pltpu
        >>> mesh = pltpu.create_tensorcore_mesh("core", num_cores=2)
        >>> blocks = pl.BlockSpec((2,), lambda i: (i,))
        >>> ref = minijax.new_ref(jnp.zeros(8, int))
        >>> def fill(out):
        ...     out[...] = jnp.full(2, 1 + lax.axis_index("core"))
        >>> @pl.core_map(mesh)
        ... def on_each_core():
        ...     pltpu.emit_pipeline(
        ...         fill,
        ...         grid=(4,),
        ...         out_specs=[blocks],
        ...         core_axis_name="core",
        ...         dimension_semantics=[pltpu.PARALLEL],
        ...     )(ref)
        >>> ref[...]
        Array([1, 1, 1, 1, 2, 2, 2, 2], dtype=int32)
    """

    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


PARALLEL, ARBITRARY = GridDimensionSemantics.PARALLEL, GridDimensionSemantics.ARBITRARY


@dataclass(frozen=True)
class BlockSpec:
    """How a grid goes through the blocks of an array.

    Attributes:
        block_shape: the size of a block along each dimension; None for one position of it, which
            is not a dimension of the block.  None for the whole array.
        index_map: from the indices of a step to the number of its block along each dimension; None
            for the first one.
        pipeline_mode: accepted for compatibility; there are two buffers.
        memory_space: `ANY` or `HBM` without a block_shape hands on the reference itself.

    Example:
        >>> from minijax.experimental import pallas as pl
        >>> from minijax.experimental.pallas import tpu as pltpu
        >>> x, y = minijax.new_ref(jnp.arange(6)), minijax.new_ref(jnp.zeros(3, int))
        >>> def add_pairs(pair, total):
        ...     total[...] = pair[...].sum()
        >>> two, one = pl.BlockSpec((2,), lambda i: (i,)), pl.BlockSpec((None,), lambda i: (i,))
        >>> pltpu.emit_pipeline(add_pairs, grid=(3,), in_specs=[two], out_specs=[one])(x, y)
        >>> y[...]
        Array([1, 5, 9], dtype=int32)
    """

    block_shape: Sequence[int | None] | None = None
    index_map: Callable[..., Any] | None = None
    pipeline_mode: Any = None
    memory_space: MemorySpace | None = field(default=None, kw_only=True)

    @property
    def is_reference(self) -> bool:
        """Whether the function gets the reference itself."""
        whole = self.block_shape is None and self.index_map is None
        return whole and self.memory_space in (MemorySpace.ANY, MemorySpace.HBM)


class _Operand(NamedTuple):
    """A reference, and how steps of the pipeline see it.

    Attributes:
        ref: the reference, or a part of one.
        sizes: for each dimension the size of a block, None for single positions.
        index_map: from the indices of a step to the number of the block along each dimension.
        buffers: two blocks.
        sems: a semaphore for each.
    """

    ref: Any
    sizes: tuple[int | None, ...]
    index_map: Callable[..., Any]
    buffers: Any = None
    sems: Any = None

    def block(self, indices: Sequence[Any]) -> tuple[Any, ...]:
        """The number of a step's block along each dimension."""
        found = self.index_map(*indices)
        return found if isinstance(found, tuple) else (found,)

    def part(self, block: Sequence[Any]) -> View:
        """A block of the reference."""
        places = zip(block, self.sizes, strict=True)
        index = tuple(
            b if size is None else ds(b if size == 1 else b * size, size) for b, size in places
        )
        return self.ref.at[index]

    def fetch(self, block: Sequence[Any], slot: object) -> semaphores.AsyncCopyDescriptor:
        """The copy of a block into a buffer."""
        return semaphores.make_async_copy(
            self.part(block), self.buffers.at[slot], self.sems.at[slot]
        )

    def store(self, block: Sequence[Any], slot: object) -> semaphores.AsyncCopyDescriptor:
        """The copy of a buffer to a block."""
        return semaphores.make_async_copy(
            self.buffers.at[slot], self.part(block), self.sems.at[slot]
        )


class _Grid(NamedTuple):
    """The steps of one core: `offset` is added to its indices along dimension `dim`."""

    sizes: tuple[Any, ...]
    dim: int
    offset: Any

    @property
    def count(self) -> Any:
        """How many steps there are."""
        return math.prod(self.sizes)

    def indices(self, step: Any) -> tuple[Any, ...]:
        """The indices of a step; the last one changes fastest."""
        found = []
        for dim in reversed(range(len(self.sizes))):
            index = step
            if dim:
                size = _like(self.sizes[dim])
                index, step = binary.rem(step, size), binary.div(step, size)
            found.append(index + self.offset if dim == self.dim else index)
        return tuple(reversed(found))


def emit_pipeline(
    body: Callable[..., None],
    *,
    grid: tuple[Any, ...],
    in_specs: object = (),
    out_specs: object = (),
    tiling: object = None,
    core_axis: object = None,
    core_axis_name: str | None = None,
    dimension_semantics: Sequence[GridDimensionSemantics] | None = None,
    trace_scopes: bool = True,
    no_pipelining: bool = False,
    _explicit_indices: bool = False,
) -> Callable[..., None]:
    """A function of references that runs `body` on their blocks, step by step over a grid.

    The blocks of the next step are copied while `body` works on its own.  A block that several
    steps in a row use is copied once, so a result may be summed up in place over such steps; what
    it holds at first is undefined.

    Shapes: sizes of blocks divide those of references.

    Args:
        body: takes a reference for each block of in_specs, then of out_specs, then the scratch
            references that the pipeline is called with; returns None.
        grid: the number of steps along each dimension; the last one changes fastest.
        in_specs: a `BlockSpec` for each reference that is read: a tree of them.
        out_specs: the same for those that are written.
        tiling: accepted for compatibility.
        core_axis: must be None: there are no dimensions of an outer grid.
        core_axis_name: the axis of cores that share the steps of a dimension; only inside
            `core_map`.
        dimension_semantics: for each dimension whether cores may share it: the first one that is
            PARALLEL and that they can share equally is.
        trace_scopes: accepted for compatibility.
        no_pipelining: accepted for compatibility.

    Returns:
        A function of references, `pipeline(*refs, scratches=())`.

    Raises:
        TypeError: a spec is not a `BlockSpec`.
        ValueError: a spec does not fit its reference, or the grid.
        NotImplementedError: cores are to share the grid, and no dimension allows it.

    Example:
        >>> from minijax.experimental import pallas as pl
        >>> from minijax.experimental.pallas import tpu as pltpu
        >>> def double(x, y):
        ...     y[...] = 2 * x[...]
        >>> blocks = pl.BlockSpec((2,), lambda i: (i,))
        >>> pipeline = pltpu.emit_pipeline(double, grid=(3,), in_specs=[blocks], out_specs=[blocks])
        >>> x, y = minijax.new_ref(jnp.arange(6)), minijax.new_ref(jnp.zeros(6, int))
        >>> pipeline(x, y)
        >>> y[...]
        Array([ 0,  2,  4,  6,  8, 10], dtype=int32)
    """
    del tiling, trace_scopes, no_pipelining
    if core_axis is not None:
        problem = "core_axis must be None: no grid is around the pipeline."
        fix = "core_axis_name='core', the axis of the mesh of core_map"
        error(NotImplementedError, NAME, problem, got=str(core_axis), fix=fix)
    ins, outs = _specs("in_specs", in_specs), _specs("out_specs", out_specs)
    described = _Pipeline(body, ins, outs, _explicit_indices)

    def pipeline(*refs: Any, scratches: Any = ()) -> None:
        own = _grid_of_core(tuple(grid), core_axis_name, dimension_semantics)
        described.run(own, refs, scratches)

    return pipeline


class _Pipeline(NamedTuple):
    """What to do in a step, on which blocks."""

    body: Callable[..., None]
    ins: list[BlockSpec]
    outs: list[BlockSpec]
    takes_indices: bool

    def run(self, grid: _Grid, refs: Sequence[Any], scratches: Sequence[Any]) -> None:
        """The loop over a grid, with buffers of its own."""
        specs = [*self.ins, *self.outs]
        if len(refs) != len(specs):
            problem = "each reference needs a spec."
            error(ValueError, NAME, problem, got={"references": len(refs), "specs": len(specs)})
        operands = [
            None if spec.is_reference else _operand(f"reference {i}", spec, ref)
            for i, (spec, ref) in enumerate(zip(specs, refs, strict=True))
        ]
        blocked = [x for x in operands if x is not None]
        reads = sum(x is not None for x in operands[: len(self.ins)])
        count = len(blocked)

        def call(indices: Sequence[Any], blocks: Values) -> None:
            given = iter(blocks)
            args = [r if x is None else next(given) for r, x in zip(refs, operands, strict=True)]
            self.body(*((indices,) if self.takes_indices else ()), *args, *scratches)

        def buffered(*memory: Any) -> None:
            full = [
                x._replace(buffers=buffers, sems=sems)
                for x, buffers, sems in zip(blocked, memory[:count], memory[count:], strict=True)
            ]
            _run(call, grid, full[:reads], full[reads:])

        types = [*map(_buffers, blocked), *(SemaphoreType.DMA((2,)) for _ in blocked)]
        core_map.run_scoped(buffered, *types)


def _run(
    call: Callable[[Sequence[Any], Sequence[Any]], None],
    grid: _Grid,
    ins: Sequence[_Operand],
    outs: Sequence[_Operand],
) -> None:
    """The loop over the steps.

    For each operand it carries how many blocks came before; whether that is odd tells the buffer.
    """
    if isinstance(grid.count, int) and grid.count == 0:
        return
    last = grid.count - 1
    first = grid.indices(np.int32(0))
    for x in ins:
        x.fetch(x.block(first), 0).start()
    for x in ins:
        x.fetch(x.block(first), 0).wait()

    def step(i: Any, befores: tuple[Any, ...]) -> tuple[Any, ...]:
        i = convert_element_type(i, np.int32)
        now, then = grid.indices(i), grid.indices(binary.min(i + 1, _like(last)))
        operands = (*ins, *outs)
        pairs = [(x.block(now), x.block(then)) for x in operands]
        moves = [_differ(*pair) for pair in pairs]
        slots = [before & 1 for before in befores]
        fetches = [
            (move, x.fetch(next_block, 1 - slot))
            for x, (_, next_block), move, slot in zip(ins, pairs, moves, slots, strict=False)
        ]
        for move, copy in fetches:
            when(move)(copy.start)
        call(now, [x.buffers.at[slot] for x, slot in zip(operands, slots, strict=True)])
        for move, copy in fetches:
            when(move)(copy.wait)
        late = slice(len(ins), None)
        for x, (block, _), move, slot, before in zip(
            outs, pairs[late], moves[late], slots[late], befores[late], strict=True
        ):
            ends = move | (i == last)
            # As many bytes as the block before brought, wherever it went.
            when(ends & (before > 0))(x.store(block, 1 - slot).wait)
            when(ends)(x.store(block, slot).start)
        return tuple(
            before + move.astype(np.int32) for before, move in zip(befores, moves, strict=True)
        )

    zeros = tuple(np.int32(0) for _ in (*ins, *outs))
    befores = looping.fori_loop(np.int32(0), _like(grid.count), step, zeros)
    end = grid.indices(_like(last))
    for x, before in zip(outs, befores[len(ins) :], strict=True):
        x.store(x.block(end), before & 1).wait()


def _like(count: Any) -> Any:
    """A number of steps in the dtype that steps have."""
    return np.int32(count) if isinstance(count, int) else convert_element_type(count, np.int32)


def _differ(block: Sequence[Any], other: Sequence[Any]) -> Any:
    """Whether two blocks are different ones."""
    found: Any = np.False_
    for one, two in zip(block, other, strict=True):
        if one is not two and not (isinstance(one, int) and one == two):
            found = binary.ne(one, two) if found is np.False_ else found | binary.ne(one, two)
    return found


def _specs(argument: str, specs: object) -> list[BlockSpec]:
    """The leaves of a tree of specs."""
    found: list[BlockSpec] = tree.leaves(specs, is_leaf=lambda x: isinstance(x, BlockSpec))
    for spec in found:
        if not isinstance(spec, BlockSpec):
            error(
                TypeError, NAME, f"{argument} holds something else than BlockSpecs.", got=repr(spec)
            )
    return found


def _operand(name: str, spec: BlockSpec, ref: Any) -> _Operand:
    """A reference as steps see it.

    Raises:
        ValueError: the spec has another rank, or blocks do not divide the reference.
    """
    shape = ref.shape
    sizes = shape if spec.block_shape is None else tuple(spec.block_shape)
    facts = {"block_shape": sizes, "reference": shape}
    if len(sizes) != len(shape):
        error(ValueError, NAME, f"the spec of {name} has another rank than it.", got=facts)
    if any(
        size is not None and (size < 1 or n % size) for size, n in zip(sizes, shape, strict=True)
    ):
        fix = "a block_shape of divisors, or pad the array"
        error(ValueError, NAME, f"blocks do not divide {name}.", got=facts, fix=fix)
    index_map = spec.index_map
    if index_map is None:
        first = (0,) * len(shape)
        return _Operand(ref, sizes, lambda *_: first)

    def checked(*indices: Any) -> Any:
        found = index_map(*indices)
        count = len(found) if isinstance(found, tuple) else 1
        if count != len(shape):
            problem = f"the index_map of {name} must return an index for each dimension."
            error(ValueError, NAME, problem, got={"indices": count, "reference": shape})
        return found

    return _Operand(ref, sizes, checked)


def _buffers(x: _Operand) -> Any:
    shape = (2, *(size for size in x.sizes if size is not None))
    whole = root_of(x.ref)
    varying = vma.of(aval_of(whole)).varying
    return MemoryRef(shape, whole.dtype, MemorySpace.VMEM, varying)


def _grid_of_core(
    grid: tuple[Any, ...], axis_name: str | None, semantics: Sequence[GridDimensionSemantics] | None
) -> _Grid:
    """The steps of this core."""
    if axis_name is None or (cores := axes.size(axis_name, NAME)) == 1:
        return _Grid(grid, -1, 0)
    shared = [
        dim
        for dim, kind in enumerate(semantics or ())
        if kind is not GridDimensionSemantics.ARBITRARY
        and isinstance(grid[dim], int)
        and grid[dim] % cores == 0
    ]
    if not shared:
        problem = f"no dimension of the grid can be shared equally by {cores} cores."
        got = {"grid": grid, "dimension_semantics": semantics}
        fix = "dimension_semantics=(PARALLEL, ...), for a dimension that they divide"
        error(NotImplementedError, NAME, problem, got=got, fix=fix)
    dim = shared[0]
    own = grid[dim] // cores
    sizes = (*grid[:dim], own, *grid[dim + 1 :])
    return _Grid(sizes, dim, axis_index(axis_name) * np.int32(own))
