"""The primitive `shard_map`: a program per device, applied to the blocks of split arrays.

Its jaxpr is written for one device of the axes that it makes manual.  Each rule transforms the
jaxpr with these axes in scope, and says how what passes between the two sides is split.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, ClassVar

from minijax.core import axes as core_axes
from minijax.core import effects as core_effects
from minijax.core import refs, vma
from minijax.core.aval import AbstractValue, ShapedArray, aval_of
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.meshes import MeshAxes, PartitionSpec
from minijax.core.operators import Avals, Values
from minijax.core.value_placement import NOT_MANUAL
from minijax.interpreters import (
    batching,
    casts,
    checking,
    discharge,
    named_batching,
    partial_eval,
    remat,
    staging,
)
from minijax.interpreters.structural import new_axis
from minijax.lax import functionalization, references
from minijax.lax.collectives.reductions import psum_p
from minijax.lowering import (
    device_assignment,
    diagnosis,
    eager,
    module,
    partitioning,
    program,
    regions,
    stablehlo,
)
from minijax.lowering.call_plan import ProgramOptions, RequestedPlacement
from minijax.lowering.regions import Border
from minijax.runtime.array import physical_aval
from minijax.sharding import rules
from minijax.sharding.named import named
from minijax.transforms.jaxpr_call import Backward, JaxprCall, first_fault
from minijax.transforms.per_device import steps
from minijax.transforms.per_device.region import (
    Region,
    Specs,
    agree_rule,
    divide_rule,
    match,
    region_of,
    split_rule,
)

if TYPE_CHECKING:
    from minijax.core.primitive import Primitive
    from minijax.lax.functionalization import Checker
    from minijax.lowering.stablehlo import LoweringContext


def _walk(
    primitive: Any, run: Any, *args: Any, jaxpr: ClosedJaxpr, in_specs: Specs, **params: Any
) -> None:
    """The rule `walk`: operation by operation on the blocks of all devices."""

    def inside(*blocks: Any) -> Sequence[Any]:
        run(jaxpr, *blocks)
        return ()

    region = region_of(params)
    steps.run(primitive, region, inside, primitive.name, args, in_specs, lambda _: ())


def _check_inside(
    primitive: Primitive, checker: Checker, args: Values, params: dict[str, Any]
) -> list[Any]:
    """The rule `check_inside`: each device returns its first fault."""
    region = region_of(params)
    with region.entered():
        inner = checker.inner(params["jaxpr"])
        closed = _with_states(region, inner) if inner.sites else inner.closed
    count = functionalization.STATE_SIZE if inner.sites else 0
    names = region.ordered(region.axes)
    specs = (*(PartitionSpec(names) for _ in range(count)), *params["out_specs"])
    outs = primitive.bind(*args, **{**params, "jaxpr": closed, "out_specs": specs})
    return list(first_fault(checker, inner, outs, region.size(names)))


def _with_states(region: Region, inner: Any) -> ClosedJaxpr:
    """A program that returns the state of each device first, along a new dimension."""

    def function(*args: Any) -> list[Any]:
        outs = staging.eval_closed_jaxpr(inner.closed, *args)
        spec = PartitionSpec(region.ordered(region.axes))
        count = functionalization.STATE_SIZE
        return [new_axis(match(x, spec, region), 1, 0) for x in outs[:count]] + outs[count:]

    closed: ClosedJaxpr = inner.closed
    return ClosedJaxpr(*staging.stage(function, closed.in_avals, closed.jaxpr.debug_info))


def _discharge(
    primitive: Primitive,
    *args: Any,
    jaxpr: ClosedJaxpr,
    in_specs: Specs,
    out_specs: Specs,
    **params: Any,
) -> Sequence[Any]:
    """The rule `discharge`: references are cut by their specs, and put together by them."""
    with region_of(params).entered():
        pure, finals = discharge.discharge_jaxpr(jaxpr)
    outs = primitive.bind_all(
        *map(discharge.value_of, args),
        jaxpr=pure,
        in_specs=in_specs,
        out_specs=(*out_specs, *(in_specs[i] for i in finals)),
        **params,
    )
    return discharge.write_finals(outs, [args[i] for i in finals])


class ShardMap(JaxprCall):
    """Runs `jaxpr` on each device, on the blocks that `in_specs` cut the operands into.

    The results are put together as `out_specs` say.  Axes of `mesh` outside `newly_manual_axes`
    stay as they are around.
    """

    name = "shard_map"
    per_operand: ClassVar[Mapping[str, Any]] = {"in_specs": PartitionSpec()}
    per_result: ClassVar[Mapping[str, Any]] = {"out_specs": PartitionSpec()}

    def inside(self, params: Mapping[str, Any]) -> contextlib.AbstractContextManager[None]:
        return region_of(params).entered()

    def outside(self, found: frozenset[Any], params: Mapping[str, Any]) -> frozenset[Any]:
        return _effects_outside(found, params)

    def split(
        self, params: Mapping[str, Any], unknown: Sequence[bool]
    ) -> tuple[partial_eval.PartialJaxpr, Sequence[PartitionSpec]]:
        return split_rule(params, unknown)

    def impl(self, *args: Any, **params: Any) -> Sequence[Any]:
        eager.check_no_tracers(args)
        avals = list(map(aval_of, args))

        def make() -> tuple[ClosedJaxpr, RequestedPlacement]:
            closed = staging.stage_closed(lambda *xs: self.bind_all(*xs, **params), avals)
            placements = map(_placement, repeat(region_of(params)), closed.out_avals, specs)
            return closed, RequestedPlacement(out_shardings=tuple(placements))

        specs: Specs = params["out_specs"]
        key = ("shard_map", *avals, params["in_specs"], specs, region_of(params))
        closed, requested = params["jaxpr"].remember(key, make)
        options = ProgramOptions(self.name)
        return program.executable_for(closed, args, options, requested)(args)

    def abstract_eval(self, *avals: Any, **params: Any) -> list[Any]:
        region = region_of(params)
        around = NOT_MANUAL
        if not region.check_vma:
            around = vma.join(self, [a for a in avals if isinstance(a, ShapedArray)])
        return [
            region.whole(aval, spec, around)
            for aval, spec in zip(params["jaxpr"].out_avals, params["out_specs"], strict=True)
        ]

    def lower(
        self,
        ctx: LoweringContext,
        *values: Any,
        jaxpr: ClosedJaxpr,
        in_specs: Specs,
        out_specs: Specs,
        **params: Any,
    ) -> list[Any]:
        region = region_of(params)
        ins = _borders(ctx.avals_in, jaxpr.in_avals, in_specs)
        outs = _borders(ctx.avals_out, jaxpr.out_avals, out_specs)

        ordered = core_effects.ordered_among(jaxpr.effects)
        tokens = [ctx.tokens[effect] for effect in ordered]
        borders = [regions.Border(PartitionSpec(), 0, token.type, token.type) for token in tokens]

        def body(inner: Any, *blocks: Any) -> list[Any]:
            return module.lower_region(inner, jaxpr, ordered, blocks, ("shmap_body",))

        with region.entered():
            if len(region.inner.manual_axes) < len(region.inner.axis_names):
                differing = [frozenset(spec.names()) for spec in in_specs]
                ctx.module.choices.extend(partitioning.lines(jaxpr, differing, region.axes))
            ins, outs = [*borders, *ins], [*borders, *outs]
            operands = [*tokens, *values]
            results = regions.region(
                ctx, region.outer, region.ordered(region.axes), operands, ins, outs, body
            )
        ctx.tokens.update(zip(ordered, results, strict=False))
        return results[len(ordered) :]

    def transposed(self, params: Mapping[str, Any], backward: Backward) -> dict[str, Any]:
        region, in_specs, jaxpr = region_of(params), params["in_specs"], backward.jaxpr
        ct_specs = tuple(params["out_specs"][i] for i in backward.cts)
        result_specs = tuple(in_specs[i] for i in backward.wanted)
        if not region.check_vma:
            with region.entered():
                jaxpr = _older_convention(region, jaxpr, ct_specs, result_specs)
        return {
            **params,
            "jaxpr": jaxpr,
            "in_specs": (
                *(in_specs[i] for i in backward.known),
                *map(rules.cotangent_spec, ct_specs),
            ),
            "out_specs": tuple(map(rules.cotangent_spec, result_specs)),
        }

    def batch(
        self, size: int, args: Values, dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], list[int | None]]:
        region, in_specs, out_specs = region_of(params), params["in_specs"], params["out_specs"]
        names = tuple(n for n in named_batching.spmd_axes() if n in region.axes)
        _check_free(names, (*in_specs, *out_specs))
        batched = [d is not None for d in dims]
        with region.entered():
            whole, out_batched = batching.batch_jaxpr(
                params["jaxpr"],
                size // region.size(names),
                batched,
                bool(names),
                in_dims=[0 if d is None else d for d in dims],
            )
            if names and region.check_vma:
                varying = [frozenset(names if b else ()) for b in batched]
                whole = casts.retyped(whole, varying, [frozenset(names)] * len(out_batched))
        out_dims = [0 if b else None for b in out_batched]
        changed = {
            "jaxpr": whole,
            "in_specs": _with_batch(in_specs, dims, names or None),
            "out_specs": _with_batch(out_specs, out_dims, names or None),
        }
        return list(self.bind(*args, **{**params, **changed})), out_dims


rules.constrains_results.set(False, ShardMap)
diagnosis.walk.rule(ShardMap)(_walk)
checking.check_inside.rule(ShardMap)(_check_inside)
refs.discharge.rule(ShardMap)(_discharge)
remat.division.rule(ShardMap)(divide_rule)
refs.with_references.rule(ShardMap)(references.with_references)


@device_assignment.names_placement.rule(ShardMap)
def placement_of_mesh(primitive: Primitive, *, mesh: MeshAxes, **_: Any) -> Any:
    """The rule `names_placement` of operations on a mesh."""
    return named(mesh, PartitionSpec())


rules.changes_mesh.set(True, ShardMap)
vma.agree.rule(ShardMap)(agree_rule)
core_axes.binds_axis.set("newly_manual_axes", ShardMap)


shard_map_p = ShardMap()


def _effects_outside(found: frozenset[Any], params: Mapping[str, Any]) -> frozenset[Any]:
    names = params["newly_manual_axes"]
    return frozenset(
        e for e in found if not (isinstance(e, core_effects.NamedAxisEffect) and e.name in names)
    )


def _placement(region: Region, aval: AbstractValue, spec: PartitionSpec) -> Any:
    """Where a result of a program that is one `shard_map` lives; None where the compiler says."""
    if not isinstance(aval, ShapedArray):
        return None
    if aval.split is not None:
        return named(region.mesh, aval.split.spec)
    rest = [n for n in region.outer.axis_names if n not in region.axes]
    return named(region.mesh, spec) if region.size(rest) == 1 else None


def _with_batch(specs: Specs, dims: Sequence[int | None], entry: object) -> Specs:
    """Specs of values that have a batch, split as `entry` says, along these dimensions."""
    return tuple(
        spec if d is None else spec.inserted(d, entry) for spec, d in zip(specs, dims, strict=True)
    )


def _borders(wholes: Sequence[Any], blocks: Avals, specs: Specs) -> list[Border]:
    return [
        Border(spec, physical_aval(whole).ndim, stablehlo.type_of(whole), stablehlo.type_of(block))
        for whole, block, spec in zip(wholes, blocks, specs, strict=True)
    ]


def _older_convention(
    region: Region, backward: ClosedJaxpr, ct_specs: Specs, result_specs: Specs
) -> ClosedJaxpr:
    """Cotangents where no types tell what is the same everywhere.

    A result that all devices along an axis have counts once, so each gets its share of the
    cotangent; an argument that all have gets the cotangents of all.
    """
    num_known = len(backward.in_avals) - len(ct_specs)

    def function(*args: Any) -> list[Any]:
        given = list(args[:num_known])
        for ct, spec in zip(args[num_known:], ct_specs, strict=True):
            copies = region.size(region.unmentioned(spec))
            given.append(ct if copies == 1 else ct / aval_of(ct).dtype.type(copies))
        outs = staging.eval_closed_jaxpr(backward, *given)
        return [
            psum_p.bind(ct, axes=names, axis_index_groups=None)
            if (names := region.unmentioned(spec))
            else ct
            for ct, spec in zip(outs, result_specs, strict=True)
        ]

    def make() -> ClosedJaxpr:
        return ClosedJaxpr(*staging.stage(function, backward.in_avals, backward.jaxpr.debug_info))

    key = ("older convention", region, ct_specs, result_specs)
    result: ClosedJaxpr = backward.remember(key, make)
    return result


def _check_free(names: Sequence[Any], specs: Specs) -> None:
    for spec in specs:
        used = [n for n in names if n in (*spec.names(), *spec.unreduced, *spec.reduced)]
        if used:
            problem = "spmd_axis_name names an axis over which a shard_map inside splits values."
            fix = "another mesh axis for the batch"
            error(ValueError, "vmap", problem, got=f"{used} in {spec}", fix=fix)
