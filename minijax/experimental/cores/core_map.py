"""Programs for the cores of a device: `core_map`, kernels, scratch memory, `run_state`.

Input: a function without arguments or results, which changes references that it closes over.
Output: an equation that holds it as a jaxpr of those references and the number of the core.  The
kind of mesh chooses what becomes of that where references are discharged: simulated cores are the
steps of a loop, in order of their numbers.  `run_state` and kernels make functions of arrays of
functions of references; scratch memory lives during one call, and its `MemorySpace` is but a name.

What goes wrong on cores is found by `checks.py`; loops over blocks are in `pipeline.py`.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from minijax.core import axes, config, dtypes, refs, source, tree
from minijax.core.aval import Shape, shaped_array
from minijax.core.effects import Effect, control_flow_allowed_effects, lowerable_effects
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.operators import Avals, Values
from minijax.core.primitive import Primitive
from minijax.core.trace import Tracer, current
from minijax.experimental.cores import checks
from minijax.interpreters import casts, flattening, passes, staging
from minijax.lax import creation, references, semaphores
from minijax.lax.control_flow import bodies, branching, scanning
from minijax.lax.creation import iota
from minijax.lax.semaphores import SemaphoreArray, SemaphoreType
from minijax.lowering import eager
from minijax.runtime.annotations import ArrayLike
from minijax.sharding.mesh import TensorCoreMesh
from minijax.transforms.per_device import shard_map

if TYPE_CHECKING:
    from minijax.core.meshes import MeshAxes
    from minijax.lowering.stablehlo import LoweringContext


def run_state(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that puts arrays into references, runs `f` on them, and returns what they hold.

    Derivative: that of `f`, through what it reads and writes.
    Source:     mirrors run_state of JAX (0.10).

    Args:
        f: takes a tree of references, and returns None.

    Returns:
        A function from a tree of first values to the tree of last ones.  References in the tree
        are passed to `f` as they are, and live on.

    Raises:
        TypeError: `f` cannot be called.
        ValueError: `f` returns something; references must not escape.

    Example:
        >>> def count(ref):
        ...     ref[...] += 1
        >>> jax.ref.run_state(count)(jnp.array([10, 20]))
        Array([11, 21], dtype=int32)
    """
    eager.check_callable("run_state", f)
    name = flattening.function_name(f)

    @source.result_of(f)
    def run(state: object) -> Any:
        leaves, treedef = tree.flatten(state)
        made = [x if refs.is_reference(x) else references.new_ref(x) for x in leaves]
        result = f(tree.unflatten(treedef, made))
        if result is not None:
            problem = "a function run by run_state must return None."
            fix = "write results to one of the references"
            error(ValueError, name, problem, got=f"{type(result).__name__}: {result!r}", fix=fix)
        last = [
            references.get(ref) if ref is x else references.freeze(ref)
            for ref, x in zip(made, leaves, strict=True)
        ]
        return tree.unflatten(treedef, last)

    return run


R = TypeVar("R")


class MemorySpace(enum.Enum):
    """Kinds of memory: `VMEM(shape, dtype)` is the type of scratch memory of one kind.

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

    def __call__(self, shape: Sequence[int], dtype: object) -> MemoryRef:
        """The type of a reference to an array in this memory."""
        return MemoryRef(tuple(shape), dtypes.canonicalize_dtype(dtype), self)


ANY, VMEM, SMEM, HBM = MemorySpace.ANY, MemorySpace.VMEM, MemorySpace.SMEM, MemorySpace.HBM


class MemoryRef(NamedTuple):
    """The type of a reference to an array of some shape and dtype.

    `varying` are the mesh axes over which what is written may differ; None: all in scope.

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


def run_scoped(
    f: Callable[..., R], *types: Any, collective_axes: object = (), **kw_types: Any
) -> R:
    """Calls `f` with new references and semaphores, which live until it returns.

    What references hold at first is undefined.  The simulation makes that show: floats are NaN,
    integers the least of their dtype, booleans True.

    Derivative: that of `f`.

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
        problem = "collective_axes must be (): a core's scratch memory is its own."
        fix = "call run_scoped around core_map: what it makes is seen by all cores"
        error(NotImplementedError, "run_scoped", problem, got=repr(collective_axes), fix=fix)
    args = [_made(t, f"types[{i}]") for i, t in enumerate(types)]
    kwargs = {name: _made(t, name) for name, t in kw_types.items()}
    result = f(*args, **kwargs)
    for ref in (*args, *kwargs.values()):
        references.freeze_p.bind(ref)
    return result


def with_scoped(
    *types: Any, collective_axes: object = (), **kw_types: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the function gets scratch references after its own arguments.

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
        @source.result_of(f)
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
        problem = f"{argument} is no type of scratch memory."
        got = f"{kind!r} of type {type(kind).__name__}"
        expected = "VMEM(shape, dtype), ShapeDtypeStruct(shape, dtype), or a SemaphoreType"
        error(TypeError, "run_scoped", problem, got=got, expected=expected)
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


@dataclass(frozen=True, kw_only=True)
class InterpretParams:
    """How to simulate cores.

    Attributes:
        detect_races: whether `core_map` follows each core step by step before it runs, and refuses
            a program in which two write one place.
        num_cores_or_threads: how many cores a mesh has whose number is not given.

    Example:
        >>> from minijax.experimental.pallas import tpu as pltpu
        >>> pltpu.InterpretParams(num_cores_or_threads=2)
        InterpretParams(detect_races=False, num_cores_or_threads=2)
    """

    detect_races: bool = False
    num_cores_or_threads: int = 1


@contextmanager
def force_tpu_interpret_mode(params: InterpretParams | None = None) -> Iterator[None]:
    """Simulates the cores of programs in a `with` block in this way.

    Args:
        params: how; by default as `InterpretParams()` says.

    Example:
        >>> from minijax.experimental.pallas import tpu as pltpu
        >>> with pltpu.force_tpu_interpret_mode(pltpu.InterpretParams(num_cores_or_threads=4)):
        ...     print(pltpu.create_tensorcore_mesh("core"))
        TensorCoreMesh('core': 4)
    """
    chosen = params or InterpretParams()
    with (
        config.num_simulated_cores(chosen.num_cores_or_threads),
        config.detect_core_races(chosen.detect_races),
    ):
        yield


class _NothingTouched(Effect):
    """The cores do nothing that anybody could see; kept so that lowering can say so."""

    __slots__ = ()


_NOTHING_TOUCHED = frozenset({_NothingTouched()})
lowerable_effects.add_type(_NothingTouched)
control_flow_allowed_effects.add_type(_NothingTouched)


class CoreMap(Primitive):
    """Runs `jaxpr` on each core of `mesh`: it takes the operands, then the number of the core.

    Whoever needs values discharges it first, so it has no rules of its own for them.
    """

    name = "core_map"
    multiple_results: ClassVar[bool] = True
    has_effects: ClassVar[bool] = True

    def abstract_eval(self, *avals: Any, **params: Any) -> list[Any]:
        return []

    def shard(self, avals: Avals, outs: Avals, **params: Any) -> list[Any]:
        return []

    def effects(self, *avals: Any, jaxpr: ClosedJaxpr, **params: Any) -> frozenset[Any]:
        return refs.effects_of_body(jaxpr.jaxpr) or _NOTHING_TOUCHED

    def lower(self, ctx: LoweringContext, *values: Any, jaxpr: ClosedJaxpr, **params: Any) -> Any:
        problem = "the function writes no reference and has no other effect, so it does nothing."
        fix = "write results to a reference from outside: ref[...] = x"
        error(ValueError, "core_map", problem, got=str(jaxpr.jaxpr), fix=fix, at="")


refs.with_references.rule(CoreMap)(references.with_references)


@refs.discharge.rule(CoreMap)
def _discharge_of_core_map(
    primitive: CoreMap, *args: Any, jaxpr: ClosedJaxpr, mesh: MeshAxes, **params: Any
) -> Sequence[Any]:
    rule = discharge_rules.get(type(mesh))
    if rule is None:
        problem = "no rule tells what to do with a mesh of this type."
        fix = "a mesh of create_tensorcore_mesh"
        error(NotImplementedError, "core_map", problem, got=type(mesh).__name__, fix=fix)
    return rule(args, jaxpr, mesh)


core_map_p = CoreMap()

DischargeRule = Callable[[Sequence[Any], ClosedJaxpr, Any], Sequence[Any]]


def _one_after_another(args: Values, jaxpr: ClosedJaxpr, mesh: TensorCoreMesh) -> Values:
    (size,) = mesh.shape.values()
    return bodies.discharge_scan(
        scanning.scan_p,
        *args,
        iota(np.int32, size),
        jaxpr=jaxpr,
        length=size,
        reverse=False,
        unroll=1,
        num_consts=len(args),
        num_carry=0,
    )


discharge_rules: dict[type, DischargeRule] = {TensorCoreMesh: _one_after_another}
"""What the cores of a mesh do, by the type of the mesh: a function of the operands, references
among them as cells, of the jaxpr of one core, and of the mesh."""


def core_map(
    mesh: MeshAxes,
    *,
    compiler_params: object = None,
    interpret: object = False,
    debug: bool = False,
    cost_estimate: object = None,
    name: str | None = None,
    metadata: dict[str, str] | None = None,
    scratch_shapes: object = (),
) -> Callable[[Callable[..., None]], None]:
    """Runs a function on every core of a mesh, at once; to be used as a decorator.

    The function takes nothing and returns nothing: it reads and writes references that it closes
    over.  `lax.axis_index` of the mesh's axis is the number of the core, `lax.axis_size` how many
    there are.  The next statement begins when all cores are done.

    On a host the cores are simulated: they run one after the other in order of their numbers, in
    one compiled loop.  Programs that would go wrong on cores that run side by side are refused
    where that can be seen before they run: a copy's ends that are used before it was waited for, a
    wait that would never end; with `InterpretParams(detect_races=True)` or the setting
    `detect_core_races`, two cores that write one place, and all of it also inside of loops.

    Derivative: that of the function, through what it reads and writes.
    Lowers to:  stablehlo.while over the cores.

    Args:
        mesh: a mesh of cores, as `create_tensorcore_mesh` makes it.
        compiler_params: accepted for compatibility; there is nothing to compile for.
        interpret: `InterpretParams(detect_races=True)` follows each core step by step.
        debug: accepted for compatibility.
        cost_estimate: accepted for compatibility.
        name: what messages call the function.
        metadata: accepted for compatibility.
        scratch_shapes: types of scratch memory that the function takes as arguments: a tuple, or a
            dict for keyword arguments.  They are those of `run_scoped`.

    Raises:
        TypeError: the function cannot be called, or `mesh` is not a mesh of cores.
        ValueError: the function returns something, communicates over the cores' axis, or makes one
            of the mistakes above; or, where it is lowered, it touches nothing outside.

    Example:
        >>> from minijax.experimental import pallas as pl
        >>> from minijax.experimental.pallas import tpu as pltpu
        >>> ref = minijax.new_ref(jnp.zeros(4, int))
        >>> @pl.core_map(pltpu.create_tensorcore_mesh("core", num_cores=4))
        ... def number_cores():
        ...     core = lax.axis_index("core")
        ...     ref[core] = 10 * core
        >>> ref[...]
        Array([ 0, 10, 20, 30], dtype=int32)
    """
    del compiler_params, debug, cost_estimate, metadata
    check_mesh("core_map", mesh)
    races = config.detect_core_races.value
    if isinstance(interpret, InterpretParams):
        races |= interpret.detect_races

    def run(f: Callable[..., None]) -> None:
        eager.check_callable("core_map", f)
        run_on_cores("core_map", f, mesh, name, scratch_shapes, races)

    return run


def check_mesh(name: str, mesh: MeshAxes) -> None:
    """Refuses what is not a mesh of cores.

    Raises:
        TypeError: it is something else.
        NotImplementedError: programs for other cores are being staged already.
    """
    if type(mesh) not in discharge_rules:
        problem = "mesh must be a mesh of cores."
        fix = "create_tensorcore_mesh('core'); shard_map runs functions on meshes of devices"
        error(TypeError, name, problem, got=f"{mesh!r} of type {type(mesh).__name__}", fix=fix)
    if axes.core_index() is not None:
        problem = "the program of a core cannot run programs on cores."
        error(NotImplementedError, name, problem, got=repr(mesh))


def run_on_cores(
    user: str,
    f: Callable[..., None],
    mesh: Any,
    name: str | None = None,
    scratch_shapes: Any = (),
    detect_races: bool = False,
) -> None:
    """Stages a function for one core, and applies it on all of a mesh."""
    ((axis_name, size),) = mesh.shape.items()
    args, kwargs = tuple(scratch_shapes), {}
    if isinstance(scratch_shapes, dict):
        args, kwargs = (), scratch_shapes
    info = flattening.debug_info(user, f, tree.structure(((), {})))
    called = name or info.func_name

    def body(index: object) -> list[Any]:
        with axes.core(axis_name, size, index):
            result = run_scoped(f, *args, **kwargs)
        if tree.leaves(result):
            problem = f"a function run by {user} must return None."
            fix = "write results to a reference from outside: ref[...] = x"
            error(ValueError, called, problem, got=f"{type(result).__name__}: {result!r}", fix=fix)
        return []

    jaxpr, consts = staging.stage(body, [shaped_array((), np.dtype(np.int32))], info)
    closed = ClosedJaxpr(passes.close_over_constants(jaxpr))
    _check_no_communication(called, closed, axis_name)
    checks.check(called, closed, size, thoroughly=detect_races)
    if closed.effects and not any(map(refs.is_reference, consts)):
        _one_after_another(consts, closed, mesh)
        return
    core_map_p.bind_all(*consts, jaxpr=closed, mesh=mesh, name=called)


def _check_no_communication(name: str, closed: ClosedJaxpr, axis_name: Hashable) -> None:
    """Refuses collectives over the cores' axis: they share memory, and run one after the other."""
    found = axes.communication_over(closed.jaxpr, frozenset({axis_name}))
    if found is not None:
        problem = f"{found.primitive} cannot go over the axis {axis_name!r} of cores."
        fix = "write to a reference from outside of core_map, and combine the parts after it"
        error(ValueError, name, problem, got=str(found), fix=fix, at=source.summarize(found.source))


def _shard_map_over_cores(
    f: Callable[..., Any], mesh: MeshAxes, in_specs: object, out_specs: object
) -> Callable[..., Any]:
    """`shard_map` of a function over cores: what `core_map` does, when it is called.

    Raises:
        ValueError: there are specs of arguments, or of results.
    """
    check_mesh("shard_map", mesh)
    for argument, given, wanted in (("in_specs", in_specs, ()), ("out_specs", out_specs, None)):
        if given != wanted:
            problem = f"over cores, {argument} must be {wanted!r}."
            fix = "let the function read and write references that it closes over"
            error(ValueError, "shard_map", problem, got=repr(given), fix=fix)

    def call() -> None:
        run_on_cores("shard_map", f, mesh, detect_races=config.detect_core_races.value)

    return call


shard_map.other_meshes[TensorCoreMesh] = _shard_map_over_cores


def kernel(
    body: Callable[..., None] | None = None,
    out_type: object = (),
    *,
    mesh: MeshAxes,
    scratch_types: object = (),
    compiler_params: object = None,
    interpret: object = False,
    cost_estimate: object = None,
    debug: bool = False,
    name: str | None = None,
    metadata: dict[str, str] | None = None,
) -> Callable[..., Any]:
    """A program for cores as a function of arrays.

    Each core runs `body` with references to the arguments, then to the results, then to scratch
    memory of its own.

    Args:
        body: a function of references, which returns None; without it, the result is a decorator.
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
        TypeError: `body` cannot be called, or `mesh` is not a mesh of cores.
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
    map_over_cores = core_map(mesh, interpret=interpret, name=name, scratch_shapes=scratch_types)

    @source.result_of(body)
    def call(*args: Any) -> Any:
        ins = tree.map(references.new_ref, args)
        outs = tree.map(new_scratch, out_type)
        each = outs if isinstance(out_type, (tuple, list)) else (outs,)
        map_over_cores(functools.partial(body, *ins, *each))
        return tree.map(references.freeze, outs)

    return call


def when(condition: ArrayLike, /) -> Callable[[Callable[[], None]], None]:
    """Runs a function where a condition holds; to be used as a decorator.

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
    return run_scoped(run, *types, *(SemaphoreType.DMA for _ in index_refs))
