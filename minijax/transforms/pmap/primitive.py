"""The primitive `pmap`: a function of one slice, applied to each by a device of its own.

Transforming the map transforms the jaxpr that it holds.  Applied where nothing is traced it is a
program of its own (`programs.py`); inside other programs it is lowered in place: a
device takes its slice of each operand, and gathers the others' results.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from minijax.core import axes as core_axes
from minijax.core import effects, vma
from minijax.core.aval import ShapedArray, aval_of
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from minijax.core.meshes import PartitionSpec
from minijax.core.operators import Avals, Values
from minijax.core.primitive import Cotangents, Zero
from minijax.interpreters import checking, key_reuse, remat
from minijax.interpreters.structural import reduce_sum
from minijax.lax import binary
from minijax.lowering import module, replicas
from minijax.lowering.device_axes import NoDeviceAxes, ReplicaAxes
from minijax.runtime.array import physical_aval
from minijax.sharding import rules
from minijax.transforms.jaxpr_call import Backward, JaxprCall, first_fault
from minijax.transforms.pmap import programs
from minijax.transforms.pmap.programs import Axes

if TYPE_CHECKING:
    from minijax.interpreters.key_reuse import KeyFlow
    from minijax.lax.functionalization import Checker
    from minijax.lowering.stablehlo import LoweringContext


class Pmap(JaxprCall):
    """Applies `jaxpr` to each slice of the operands, on as many devices.

    Parameters: `axis_name` and `axis_size` of the axis, of which this process holds a part where
    `global_axis_size` is larger; along which dimension each operand and result has it (`in_axes`,
    `out_axes`, None for what all devices share); the operands whose memory results may take
    (`donated_invars`); `devices` and `backend`, if the user chooses them.
    """

    name = "pmap"
    # What a device computes for later may be another value on each.
    per_operand: ClassVar[Mapping[str, Any]] = {"in_axes": 0}
    per_result: ClassVar[Mapping[str, Any]] = {"out_axes": 0}

    def inside(self, params: Mapping[str, Any]) -> contextlib.AbstractContextManager[None]:
        return programs.inside(params)

    def outside(self, found: frozenset[Any], params: Mapping[str, Any]) -> frozenset[Any]:
        return effects.without_axis(found, params["axis_name"])

    def impl(self, *args: Any, jaxpr: ClosedJaxpr, **params: Any) -> Sequence[Any]:
        return programs.executable_for(jaxpr, programs.MapInfo(**params))(args)

    def abstract_eval(self, *avals: Any, **params: Any) -> list[Any]:
        return programs.whole_avals(
            params["jaxpr"].out_avals, params["out_axes"], params["axis_size"]
        )

    def shard(
        self, avals: Avals, outs: Avals, *, jaxpr: ClosedJaxpr, out_axes: Axes, **params: Any
    ) -> list[PartitionSpec]:
        specs = map(rules.spec_of, jaxpr.out_avals)
        return [
            spec if axis is None else spec.inserted(axis)
            for spec, axis in zip(specs, out_axes, strict=True)
        ]

    def lower(self, ctx: LoweringContext, *values: Any, **params: Any) -> list[Any]:
        """A device takes its slice of each value, and gathers the others' results.

        Gathering keeps every bit of every dtype, which adding up zeros and one result would not.

        Raises:
            NotImplementedError: the program is cut over a mesh.
            ValueError: the map says itself where it runs.
        """
        name, axis_name = params["name"], params["axis_name"]
        outer = _axes_around(ctx, name)
        programs.check_names_no_devices(name, params["devices"])
        programs.check_platform(name, params["backend"], ctx.platform)
        inner = outer.extended(axis_name, params["axis_size"])
        in_axes, out_axes = params["in_axes"], params["out_axes"]
        avals_in, avals_out, location = ctx.avals_in, ctx.avals_out, ctx.location
        index = None
        if any(axis is not None for axis in in_axes):
            index = inner.index(ctx, axis_name)
        slices = [
            x if axis is None else _slice(ctx, x, index, axis, aval)
            for x, axis, aval in zip(values, in_axes, avals_in, strict=True)
        ]
        jaxpr: ClosedJaxpr = params["jaxpr"]
        with ctx.module.inside(inner), programs.inside(params):
            outs = module.lower_jaxpr(ctx, jaxpr.jaxpr, jaxpr.consts, slices, (f"pmap({name})",))
        ctx.location = location
        return [
            x if axis is None else _gather(ctx, x, inner, axis_name, axis, aval)
            for x, axis, aval in zip(outs, out_axes, avals_out, strict=True)
        ]

    def transpose(self, cts: Cotangents, *args: Any, **params: Any) -> Cotangents:
        # A result that devices share counts once, and each device has a part in it.
        size = params["global_axis_size"]
        cts = [
            _scaled(ct, size) if axis is None and type(ct) is not Zero else ct
            for ct, axis in zip(cts, params["out_axes"], strict=True)
        ]
        return super().transpose(cts, *args, **params)

    def transposed(self, params: Mapping[str, Any], backward: Backward) -> dict[str, Any]:
        in_axes, out_axes = params["in_axes"], params["out_axes"]
        changed = super().transposed(params, backward)
        known, cts = backward.known, backward.cts
        changed["in_axes"] = (*(in_axes[i] for i in known), *(out_axes[i] for i in cts))
        changed["out_axes"] = tuple(in_axes[i] or 0 for i in backward.wanted)
        return changed

    def summed(self, cts: list[Any], params: Mapping[str, Any]) -> list[Any]:
        # What all devices share gets the cotangents of all.
        return [
            reduce_sum(ct, (0,)) if axis is None and ct is not None else ct
            for ct, axis in zip(cts, params["in_axes"], strict=True)
        ]

    def batched(
        self,
        params: Mapping[str, Any],
        jaxpr: ClosedJaxpr,
        operands: Sequence[bool],
        results: Sequence[bool],
    ) -> dict[str, Any]:
        changed = super().batched(params, jaxpr, operands, results)
        changed["in_axes"] = _shifted(params["in_axes"], operands)
        changed["out_axes"] = _shifted(params["out_axes"], results)
        return changed


replicas.device_count_param.set("global_axis_size", Pmap)


@checking.check_inside.rule(Pmap)
def _check_inside_of_pmap(
    primitive: Pmap, checker: Checker, args: Values, params: dict[str, Any]
) -> Any:
    with programs.inside(params):
        inner = checker.inner(params["jaxpr"])
    more = len(inner.closed.out_avals) - len(params["out_axes"])
    changed = {"jaxpr": inner.closed, "out_axes": (0,) * more + params["out_axes"]}
    outs = primitive.bind(*args, **{**params, **changed})
    return first_fault(checker, inner, outs, params["axis_size"])


@key_reuse.follow_keys.rule(Pmap)
def _follow_keys_of_pmap(
    primitive: Pmap, flow: KeyFlow, keys: Sequence[Any], **params: Any
) -> list[Any]:
    return key_reuse.follow_slices(primitive, flow, keys, params["in_axes"], params)


core_axes.binds_axis.set("axis_name", Pmap)
core_axes.communicates.set(True, Pmap)
vma.vary.set(None, Pmap)

pmap_p = Pmap()


def applied(params: Mapping[str, Any]) -> ClosedJaxpr:
    """A jaxpr of one equation: the map, of whole arrays."""
    inner: ClosedJaxpr = params["jaxpr"]
    avals = programs.whole_avals(inner.in_avals, params["in_axes"], params["axis_size"])
    invars = list(map(Var, avals))
    outvars = list(map(Var, pmap_p.abstract_eval(**params)))
    eqn = Eqn([*invars], outvars, pmap_p, dict(params), pmap_p.effects(**params))
    info = inner.jaxpr.debug_info
    return ClosedJaxpr(Jaxpr([], list(invars), list(outvars), [eqn], debug_info=info), [])


def _axes_around(ctx: LoweringContext, name: str) -> ReplicaAxes:
    """The axes of the maps around."""
    found = ctx.module.device_axes
    if isinstance(found, NoDeviceAxes):
        return ReplicaAxes()
    if isinstance(found, ReplicaAxes):
        return found
    fix = "use shard_map over another axis of the mesh, or vmap"
    error(NotImplementedError, name, "pmap cannot be inside shard_map.", fix=fix)


def _slice(ctx: LoweringContext, x: Any, index: Any, axis: int, aval: ShapedArray) -> Any:
    """The slice of a value that belongs to a device."""
    whole = physical_aval(aval)
    shape = whole.shape
    zero = ctx.constant(np.int32(0))
    sizes = (*shape[:axis], 1, *shape[axis + 1 :])
    part = ctx.op(
        "stablehlo.dynamic_slice",
        [x, *(index if d == axis else zero for d in range(len(shape)))],
        {"slice_sizes": ctx.i64_array(sizes)},
        ctx.tensor_type(sizes, whole.dtype),
    )
    return ctx.reshape(part, shape[:axis] + shape[axis + 1 :], whole.dtype)


def _gather(ctx: Any, x: Any, devices: ReplicaAxes, name: Any, axis: int, aval: Any) -> Any:
    """The results of all devices along the innermost axis, stacked."""
    whole = physical_aval(aval)
    shape = whole.shape
    unit = ctx.reshape(x, (*shape[:axis], 1, *shape[axis + 1 :]), whole.dtype)
    return ctx.op(
        "stablehlo.all_gather",
        [unit],
        {"all_gather_dim": ctx.integer(axis, 64), **devices.replica_groups([name])},
        ctx.tensor_type(shape, whole.dtype),
    )


@remat.division.rule(Pmap)
def _divide(
    primitive: Pmap, eqn: Eqn, wanted: Sequence[bool], policy: remat.Policy
) -> remat.Division:
    """The rule `divide`: two maps, the second of which computes again what was not saved."""
    params = {**eqn.params, "donated_invars": ()}
    body = remat.divided(params["jaxpr"], wanted, policy)
    new = [aval.with_dim(0, params["axis_size"]) for aval in body.now.out_avals[len(wanted) :]]
    out_axes = params["out_axes"] + (0,) * len(new)
    now = {**params, "jaxpr": body.now, "out_axes": out_axes}
    again = {
        **params,
        "jaxpr": body.again,
        "in_axes": params["in_axes"] + tuple(out_axes[i] for i in body.saved),
        "out_axes": tuple(out_axes[i] for i in body.given),
    }
    return remat.divided_call(eqn, body, new, now, again)


def _shifted(items: Axes, batched: Sequence[bool]) -> Axes:
    """Where axes are once values that are batched have the batch in front."""
    return tuple(
        axis if axis is None or not b else axis + 1 for axis, b in zip(items, batched, strict=True)
    )


def _scaled(ct: Any, size: int) -> Any:
    return binary.div(ct, np.asarray(size, aval_of(ct).dtype))
