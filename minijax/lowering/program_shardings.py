"""The shardings of a compiled program: what each parameter and each result has in the end.

Input: jaxlib's executable, the lowered program, and the plan of the call.  Output: native shardings
of parameters and results.  Where the plan leaves a sharding open, XLA chose one, which is
translated into the terms of the program's arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from minijax.core import deferral, effects
from minijax.core.aval import AbstractValue, ShapedArray, aval_of
from minijax.core.errors import error
from minijax.core.operators import Avals
from minijax.lowering import replicas
from minijax.lowering.call_plan import CallPlan, OneDevice, Replicated
from minijax.runtime import compile, placement
from minijax.runtime.array import physical_aval
from minijax.runtime.pmap_sharding import PmapSharding
from minijax.sharding import hlo, named
from minijax.sharding.base import Sharding
from minijax.sharding.named import GSPMDSharding, NamedSharding, SingleDeviceSharding

if TYPE_CHECKING:
    from minijax.sharding import older
else:
    older = deferral.module("minijax.sharding.older")


def native_shardings(loaded: Any, lowered: Any, plan: CallPlan) -> tuple[list[Any], list[Any]]:
    """Returns the native shardings of a compiled program's parameters and of its results.

    Large constants are the first parameters.

    Args:
        loaded: jaxlib's executable; None if the back end compiles for itself.
        lowered: the lowered program.
        plan: the plan that it was compiled for.

    Raises:
        AssertionError: XLA did not partition a value as the program requires.
    """
    ins, outs = _native_shardings(loaded, lowered, plan)
    if plan.options.in_layouts or plan.options.out_layouts:
        return _with_layouts(loaded, lowered, ins, outs)
    return ins, outs


def _native_shardings(loaded: Any, lowered: Any, plan: CallPlan) -> tuple[list[Any], list[Any]]:
    jaxpr = lowered.jaxpr
    in_avals = [aval_of(c) for c in lowered.large_consts]
    in_avals += [_array_type(v.aval) for v in jaxpr.invars]
    out_avals = [_array_type(v.aval) for v in jaxpr.outvars]
    if isinstance(plan.shape, Replicated):
        everywhere = GSPMDSharding.get_replicated(plan.devices)
        shardings = [everywhere] * len(lowered.large_consts)
        shardings += lowered.of_used(plan.in_shardings)
        return _natives(shardings, in_avals), _natives(plan.out_shardings, out_avals)
    if plan.mesh is None and isinstance(plan.shape, OneDevice):
        device = plan.devices[0]
        ins, outs = (
            [placement.native_sharding(device, aval.memory_kind) for aval in avals]
            for avals in (in_avals, out_avals)
        )
        return ins, outs
    ordered = len(effects.ordered_among(jaxpr.effects))
    unspecified = [None] * len(lowered.large_consts)
    wanted = unspecified + list(lowered.of_used(plan.in_shardings))
    written = unspecified + list(lowered.of_used(plan.written_shardings))

    def placed(what: str, own: Any, tiling: object, aval: ShapedArray) -> Any:
        if own is None:
            chosen = public_sharding(tiling, aval, plan)
            is_there = chosen.special_memory_kind == aval.memory_kind
            return chosen if is_there else chosen.with_memory_kind(aval.memory_kind)
        # XLA does not cut what holds nothing.
        if aval.size and loaded is not None:
            _check_kept_to(lowered, what, own, tiling, physical_aval(aval).ndim)
        return own

    ins, outs = [], []
    tilings = compile.parameter_tilings(loaded, ordered + len(in_avals))[ordered:]
    for i, (own, given, *facts) in enumerate(zip(wanted, written, tilings, in_avals, strict=True)):
        public, ndim = placed(f"parameter {i}", own, *facts), physical_aval(in_avals[i]).ndim
        found = public if own is None else _as_written(own, given, ndim)
        ins.append(placement.native(found, ndim))
    tilings = compile.result_tilings(loaded, ordered + len(out_avals))[ordered:]
    for i, (own, tiling, aval) in enumerate(
        zip(plan.out_shardings, tilings, out_avals, strict=True)
    ):
        public = placed(f"result {i}", own, tiling, aval)
        outs.append(placement.native(public, physical_aval(aval).ndim))
    return ins, outs


def _with_layouts(
    loaded: Any, lowered: Any, ins: Sequence[Any], outs: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Adds to native shardings the layouts in memory that the compiled program has."""
    jaxpr, options = lowered.jaxpr, lowered.plan.options
    ordered = len(effects.ordered_among(jaxpr.effects))
    first = len(lowered.large_consts)

    def laid(natives: Sequence[Any], given: Sequence[Any], found: Any, variables: Any) -> list[Any]:
        layouts = [
            g if g is None else placement.layout_of(x) for g, x in zip(given, found, strict=True)
        ]
        ranks = [physical_aval(v.aval).ndim for v in variables]
        return [
            placement.native(n.public, *facts)
            for n, *facts in zip(natives, ranks, layouts, strict=True)
        ]

    given = lowered.of_used(options.in_layouts) or [None] * (len(ins) - first)
    found = loaded.get_parameter_layouts()[ordered + first :]
    placed = laid(ins[first:], given, found, jaxpr.invars[first:])
    given = options.out_layouts or [None] * len(outs)
    results = laid(outs, given, loaded.get_output_layouts()[ordered:], jaxpr.outvars)
    return [*ins[:first], *placed], results


def _natives(shardings: Sequence[Any], avals: Avals) -> list[Any]:
    return [
        placement.native(sharding, physical_aval(aval).ndim)
        for sharding, aval in zip(shardings, avals, strict=True)
    ]


def _array_type(aval: ShapedArray) -> Any:
    """A type, or for tokens that of the buffers that stand for them."""
    return aval if isinstance(aval, ShapedArray) else physical_aval(aval)


def _as_written(own: Any, given: Any, ndim: int) -> Any:
    """A placement in canonical notation, in the notation of the user where that is the same."""
    if given is not None and placement.canonical(given, ndim) == own:
        return given
    return own


def _check_kept_to(lowered: Any, what: str, given: Any, tiling: Any, ndim: int) -> None:
    """Checks that XLA has placed a value as the program says.

    XLA trusts the sizes of the buffers that it gets: a wrong one would end the process.

    Raises:
        AssertionError: it has not.
    """
    hlo = placement.native(given, ndim).hlo
    if given.num_devices > 1 and not named.are_hlo_shardings_equal(hlo, tiling, ndim):
        problem = f"XLA has placed {what} otherwise than the program says."
        got = str(tiling)
        fix = "this is a fault of the compiler or of minijax: please report it"
        error(
            AssertionError,
            lowered.plan.options.name,
            problem,
            got=got,
            expected=str(given),
            fix=fix,
        )


def public_sharding(tiling: object, aval: AbstractValue, plan: CallPlan) -> Sharding:
    """Returns a sharding that XLA chose for a value, in the terms of the program's arguments.

    Args:
        tiling: XLA's choice, an `HloSharding`.
        aval: the value's type.
        plan: the plan that the program was compiled for.
    """
    ndim = physical_aval(aval).ndim
    for own in plan.written_shardings:
        if isinstance(own, SingleDeviceSharding) and own.device_assignment == plan.devices:
            return own
        if (isinstance(own, NamedSharding) and len(own.spec) <= aval.ndim) or (
            isinstance(own, PmapSharding) and len(own.sharding_spec.sharding) == aval.ndim
        ):
            found = placement.native(own, ndim)
            if found.hlo == tiling and found.devices == plan.devices:
                return own
            break
        if isinstance(own, older.PositionalSharding) and own.device_assignment == plan.devices:
            tiles = hlo.tiling_of(tiling, ndim, len(plan.devices))
            return older.PositionalSharding.of_tiling(plan.devices, tiles)
    spec = None if plan.mesh is None else hlo.spec_of(tiling, plan.mesh, ndim)
    if spec is None:
        return GSPMDSharding(plan.devices, tiling)
    return named.named(plan.mesh, spec)


def global_avals(lowered: Any, plan: CallPlan) -> tuple[list[Any], list[Any]]:
    """Returns the types of the global arrays that a program takes and returns.

    The program of a replica is written in terms of their shards.
    """
    ins = [v.aval for v in lowered.jaxpr.invars]
    outs = [v.aval for v in lowered.jaxpr.outvars]
    if not isinstance(plan.shape, Replicated):
        return ins, outs
    shardings = lowered.of_used(plan.in_shardings)
    return list(map(replicas.global_aval, ins, shardings)), list(
        map(replicas.global_aval, outs, plan.out_shardings)
    )
