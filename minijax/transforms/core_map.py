"""`core_map`: a program for one core, run on all cores of a mesh.

Input: a function without arguments or results, which changes references that it closes over.
Output: an equation that holds it as a jaxpr of those references and the number of the core.  The
kind of mesh chooses what becomes of that where references are discharged: simulated cores are the
steps of a loop, in order of their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from minijax.core import axes, config, refs, source, tree
from minijax.core.aval import shaped_array
from minijax.core.effects import Effect, control_flow_allowed_effects, lowerable_effects
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.primitive import Primitive
from minijax.interpreters import eager, flattening, passes, staging
from minijax.lax import references
from minijax.lax.control_flow import bodies, scanning
from minijax.lax.creation import iota
from minijax.sharding.mesh import TensorCoreMesh
from minijax.transforms import core_checks, scratch, shard_map
from minijax.transforms.simulation import InterpretParams


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

    def shard(self, avals: Sequence[Any], outs: Sequence[Any], **params: Any) -> list[Any]:
        return []

    def effects(self, *avals: Any, jaxpr: ClosedJaxpr, **params: Any) -> frozenset[Any]:
        return refs.effects_of_body(jaxpr.jaxpr) or _NOTHING_TOUCHED

    def lower(self, ctx: Any, *values: Any, jaxpr: ClosedJaxpr, **params: Any) -> Any:
        error(
            ValueError,
            "core_map",
            "the function writes no reference and has no other effect, so it does nothing.",
            got=str(jaxpr.jaxpr),
            fix="write results to a reference from outside: ref[...] = x",
            at="",
        )


refs.with_references.rule(CoreMap)(references.with_references)


@refs.discharge.rule(CoreMap)
def _discharge_of_core_map(
    primitive: CoreMap, *args: Any, jaxpr: ClosedJaxpr, mesh: Any, **params: Any
) -> Sequence[Any]:
    rule = discharge_rules.get(type(mesh))
    if rule is None:
        error(
            NotImplementedError,
            "core_map",
            "no rule tells what to do with a mesh of this type.",
            got=type(mesh).__name__,
            fix="a mesh of create_tensorcore_mesh",
        )
    return rule(args, jaxpr, mesh)


core_map_p = CoreMap()

DischargeRule = Callable[[Sequence[Any], ClosedJaxpr, Any], Sequence[Any]]


def _one_after_another(
    args: Sequence[Any], jaxpr: ClosedJaxpr, mesh: TensorCoreMesh
) -> Sequence[Any]:
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
    mesh: Any,
    *,
    compiler_params: Any = None,
    interpret: Any = False,
    debug: bool = False,
    cost_estimate: Any = None,
    name: str | None = None,
    metadata: dict[str, str] | None = None,
    scratch_shapes: Any = (),
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
    Source:     mirrors jax.experimental.pallas.core_map (0.10).

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
        TypeError: the function cannot be called, or `mesh` is no mesh of cores.
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


def check_mesh(name: str, mesh: Any) -> None:
    """Refuses what is no mesh of cores.

    Raises:
        TypeError: it is something else.
        NotImplementedError: programs for other cores are being staged already.
    """
    if type(mesh) not in discharge_rules:
        error(
            TypeError,
            name,
            "mesh must be a mesh of cores.",
            got=f"{mesh!r} of type {type(mesh).__name__}",
            fix="create_tensorcore_mesh('core'); shard_map runs functions on meshes of devices",
        )
    if axes.core_index() is not None:
        error(
            NotImplementedError,
            name,
            "the program of a core cannot run programs on cores.",
            got=repr(mesh),
        )


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

    def body(index: Any) -> list[Any]:
        with axes.core(axis_name, size, index):
            result = scratch.run_scoped(f, *args, **kwargs)
        if tree.leaves(result):
            error(
                ValueError,
                called,
                f"a function run by {user} must return None.",
                got=f"{type(result).__name__}: {result!r}",
                fix="write results to a reference from outside: ref[...] = x",
            )
        return []

    jaxpr, consts = staging.stage(body, [shaped_array((), np.dtype(np.int32))], info)
    closed = ClosedJaxpr(passes.close_over_constants(jaxpr))
    _check_no_communication(called, closed, axis_name)
    core_checks.check(called, closed, size, thoroughly=detect_races)
    if closed.effects and not any(map(refs.is_reference, consts)):
        _one_after_another(consts, closed, mesh)
        return
    core_map_p.bind_all(*consts, jaxpr=closed, mesh=mesh, name=called)


def _check_no_communication(name: str, closed: ClosedJaxpr, axis_name: Any) -> None:
    """Refuses collectives over the cores' axis: they share memory, and run one after the other."""
    found = axes.communication_over(closed.jaxpr, frozenset({axis_name}))
    if found is not None:
        error(
            ValueError,
            name,
            f"{found.primitive} cannot go over the axis {axis_name!r} of cores.",
            got=str(found),
            fix="write to a reference from outside of core_map, and combine the parts after it",
            at=source.summarize(found.source),
        )


def _shard_map_over_cores(
    f: Callable[..., Any], mesh: Any, in_specs: Any, out_specs: Any
) -> Callable[..., Any]:
    """`shard_map` of a function over cores: what `core_map` does, when it is called.

    Raises:
        ValueError: there are specs of arguments, or of results.
    """
    check_mesh("shard_map", mesh)
    for argument, given, wanted in (("in_specs", in_specs, ()), ("out_specs", out_specs, None)):
        if given != wanted:
            error(
                ValueError,
                "shard_map",
                f"over cores, {argument} must be {wanted!r}.",
                got=repr(given),
                fix="let the function read and write references that it closes over",
            )

    def call() -> None:
        run_on_cores("shard_map", f, mesh, detect_races=config.detect_core_races.value)

    return call


shard_map.other_meshes[TensorCoreMesh] = _shard_map_over_cores
