"""The primitive `pmap`: a function of one slice, applied to each by a device of its own.

Transforming the map transforms the jaxpr that it holds.  Applied where nothing is traced it is a
program of its own (`programs.py`); inside other programs it is lowered in place: a
device takes its slice of each operand, and gathers the others' results.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from minijax.core import axes as core_axes
from minijax.core import effects, vma
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from minijax.core.meshes import PartitionSpec
from minijax.interpreters import batching, checking, key_reuse, remat, transpose
from minijax.interpreters.jvp import Zero, is_linear
from minijax.interpreters.structural import moveaxis, reduce_sum
from minijax.lax import binary, functionalization
from minijax.lowering import module, placed_programs
from minijax.lowering.regions import NoDeviceAxes, ReplicaAxes
from minijax.runtime.array import physical_aval
from minijax.sharding import rules
from minijax.transforms.jaxpr_call import JaxprCall
from minijax.transforms.pmap import programs
from minijax.transforms.pmap.programs import Axes


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

    def abstract_eval(
        self, *avals: Any, jaxpr: ClosedJaxpr, axis_size: int, out_axes: Axes, **params: Any
    ) -> list[Any]:
        return programs.whole_avals(jaxpr.out_avals, out_axes, axis_size)

    def shard(
        self,
        avals: Sequence[Any],
        outs: Sequence[Any],
        *,
        jaxpr: ClosedJaxpr,
        out_axes: Axes,
        **params: Any,
    ) -> list[PartitionSpec]:
        specs = map(rules.spec_of, jaxpr.out_avals)
        return [
            spec if axis is None else spec.inserted(axis)
            for spec, axis in zip(specs, out_axes, strict=True)
        ]

    def lower(self, ctx: Any, *values: Any, **params: Any) -> list[Any]:
        return _lower(ctx, values, params)

    def transpose(
        self,
        cts: Sequence[Any],
        *args: Any,
        jaxpr: ClosedJaxpr,
        in_axes: Axes,
        out_axes: Axes,
        **params: Any,
    ) -> list[Any]:
        linear = [is_linear(x) for x in args]
        ct_nonzero = [type(ct) is not Zero for ct in cts]
        with programs.inside(params):
            backward, nonzero = transpose.transpose_jaxpr(jaxpr, linear, ct_nonzero)
        size = params["global_axis_size"]
        # A result that devices share counts once, and each device has a part in it.
        given = [
            _scaled(ct, size) if axis is None else ct
            for ct, axis in zip(cts, out_axes, strict=True)
            if type(ct) is not Zero
        ]
        wanted = [
            axis
            for axis, is_nonzero in zip(_chosen(in_axes, linear), nonzero, strict=True)
            if is_nonzero
        ]
        outs = self.bind(
            *(x for x, lin in zip(args, linear, strict=True) if not lin),
            *given,
            jaxpr=backward,
            in_axes=_chosen(in_axes, [not lin for lin in linear]) + _chosen(out_axes, ct_nonzero),
            out_axes=tuple(0 if axis is None else axis for axis in wanted),
            **_keeping_memory(params),
        )
        # What all devices share gets the cotangents of all.
        summed = [
            reduce_sum(ct, (0,)) if axis is None else ct
            for ct, axis in zip(outs, wanted, strict=True)
        ]
        return transpose.of_arguments(linear, nonzero, summed)

    def batch(
        self,
        size: int,
        args: Sequence[Any],
        dims: Sequence[Any],
        *,
        jaxpr: ClosedJaxpr,
        in_axes: Axes,
        out_axes: Axes,
        **params: Any,
    ) -> tuple[list[Any], list[int | None]]:
        batched = [d is not None for d in dims]
        moved = [x if d is None else moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
        with programs.inside(params):
            whole, out_batched = batching.batch_jaxpr(jaxpr, size, batched)
        outs = self.bind(
            *moved,
            jaxpr=whole,
            in_axes=_shifted(in_axes, batched),
            out_axes=_shifted(out_axes, out_batched),
            **_keeping_memory(params),
        )
        return list(outs), [0 if b else None for b in out_batched]


placed_programs.device_count_param.set("global_axis_size", Pmap)


@remat.division.rule(Pmap)
def _divide_of_pmap(
    primitive: Pmap, eqn: Eqn, wanted: Sequence[bool], policy: remat.Policy
) -> remat.Division:
    return _divide(eqn, wanted, policy)


@checking.check_inside.rule(Pmap)
def _check_inside_of_pmap(
    primitive: Pmap, checker: Any, args: Sequence[Any], params: dict[str, Any]
) -> Any:
    with programs.inside(params):
        inner = checker.inner(params["jaxpr"])
    more = len(inner.closed.out_avals) - len(params["out_axes"])
    changed = {"jaxpr": inner.closed, "out_axes": (0,) * more + params["out_axes"]}
    outs = primitive.bind(*args, **{**params, **changed})
    if not inner.sites:
        return outs
    count = functionalization.STATE_SIZE
    size = params["axis_size"]
    state, sites = functionalization.first_of_batch(outs[:count], inner.sites, size)
    checker.add(state, sites)
    return outs[count:]


@key_reuse.follow_keys.rule(Pmap)
def _follow_keys_of_pmap(
    primitive: Pmap, flow: Any, keys: Sequence[Any], **params: Any
) -> list[Any]:
    return _follow_keys(flow, keys, **params)


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
    eqn = Eqn(invars, outvars, pmap_p, dict(params), pmap_p.effects(**params))
    info = inner.jaxpr.debug_info
    return ClosedJaxpr(Jaxpr([], list(invars), list(outvars), [eqn], debug_info=info), [])


def _lower(ctx: Any, values: Sequence[Any], params: Mapping[str, Any]) -> list[Any]:
    """The rule `lower`: a device takes its slice of each value, and gathers the others' results.

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


def _axes_around(ctx: Any, name: str) -> ReplicaAxes:
    """The axes of the maps around."""
    found = ctx.module.device_axes
    if isinstance(found, NoDeviceAxes):
        return ReplicaAxes()
    if isinstance(found, ReplicaAxes):
        return found
    error(
        NotImplementedError,
        name,
        "pmap cannot be inside shard_map.",
        fix="use shard_map over another axis of the mesh, or vmap",
    )


def _slice(ctx: Any, x: Any, index: Any, axis: int, aval: Any) -> Any:
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


def _divide(eqn: Eqn, wanted: Sequence[bool], policy: remat.Policy) -> remat.Division:
    """The rule `divide`: two maps, the second of which computes again what was not saved."""
    params = _keeping_memory(eqn.params)
    closed: ClosedJaxpr = params["jaxpr"]
    body: remat.DividedBody = closed.remember(
        ("divide", tuple(wanted), policy),
        lambda: remat.divide_body(closed, wanted, policy, [True] * len(wanted)),
    )
    new = body.now.out_avals[len(wanted) :]
    outvars = eqn.outvars + [Var(aval.with_dim(0, params["axis_size"])) for aval in new]
    out_axes = params["out_axes"] + (0,) * len(new)
    now = eqn
    if new:
        now = eqn.replace(
            outvars=outvars, params={**params, "jaxpr": body.now, "out_axes": out_axes}
        )
    saved = [outvars[i] for i in body.saved]
    again = eqn.replace(
        invars=eqn.invars + saved,
        outvars=[outvars[i] for i in body.given],
        params={
            **params,
            "jaxpr": body.again,
            "in_axes": params["in_axes"] + tuple(out_axes[i] for i in body.saved),
            "out_axes": tuple(out_axes[i] for i in body.given),
        },
        effects=effects.without_axis(body.again.effects, params["axis_name"]),
    )
    return remat.Division([now], remat.without_unread(again), saved)


def _follow_keys(
    flow: Any,
    keys: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    in_axes: Axes,
    **params: Any,
) -> list[Any]:
    """The rule `follow_keys`."""
    # Each device has its own keys; one that all share gives all the same numbers, once.
    rows = [
        x if x is None or axis is None else np.moveaxis(x, axis, 0)
        for x, axis in zip(keys, in_axes, strict=True)
    ]
    first = [
        x if x is None or axis is None else x[0] for x, axis in zip(rows, in_axes, strict=True)
    ]
    flow.follow(jaxpr.jaxpr, first)
    for x, every, axis in zip(first, rows, in_axes, strict=True):
        if axis is not None:
            flow.use_like(x, every)
    outs = pmap_p.abstract_eval(jaxpr=jaxpr, in_axes=in_axes, **params)
    return [flow.fresh(aval) if key_reuse.is_key(aval) else None for aval in outs]


def _keeping_memory(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters for other operands, none of which may lose their memory."""
    return {**params, "donated_invars": ()}


def _chosen(items: Sequence[Any], flags: Sequence[bool]) -> tuple[Any, ...]:
    """The items whose flag is set; () of no items."""
    return tuple(x for x, flag in zip(items, flags, strict=True) if flag) if items else ()


def _shifted(items: Axes, batched: Sequence[bool]) -> Axes:
    """Where axes are once values that are batched have the batch in front."""
    return tuple(
        axis if axis is None or not b else axis + 1 for axis, b in zip(items, batched, strict=True)
    )


def _scaled(ct: Any, size: int) -> Any:
    return binary.div(ct, np.asarray(size, aval_of(ct).dtype))
