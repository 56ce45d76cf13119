"""Operations that hold programs, on one simulated device: Python's own branches and loops.

Input: the trace of the device, an operation, and its operands.  Output: its results, by evaluating
what it holds in the trace.  So each device takes its own branch, and loops as long as it wants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import meshes, variance
from minijax.core.aval import ShapedArray, manual_type
from minijax.core.errors import error
from minijax.core.specs import PartitionSpec
from minijax.interpreters import evaluation
from minijax.testing import blocks, mapped
from minijax.testing.coroutines import Device
from minijax.testing.exchanges import Coordinates

Program = Callable[[Any, Any, Sequence[Any], dict[str, Any]], Sequence[Any]]


def _run_body(
    trace: Any, primitive: Any, args: Sequence[Any], params: dict[str, Any]
) -> Sequence[Any]:
    """An operation whose own rule evaluates what it holds in the current trace."""
    return primitive.impl(*args, **params)


def _run_jit(
    trace: Any, primitive: Any, args: Sequence[Any], params: dict[str, Any]
) -> Sequence[Any]:
    return evaluation.eval_closed_jaxpr(params["jaxpr"], *args)


def _run_cond(
    trace: Any, primitive: Any, args: Sequence[Any], params: dict[str, Any]
) -> Sequence[Any]:
    index, aval = trace.read(args[0])
    branches = params["branches"]
    outs = evaluation.eval_closed_jaxpr(branches[int(index)], *args[1:])
    over = variance.of(aval).varying
    # The type is that of every branch, whichever was taken.
    weak = [a.weak_type if isinstance(a, ShapedArray) else False for a in branches[0].out_avals]
    return [_typed(trace, x, w, over) for x, w in zip(outs, weak, strict=True)]


def _typed(trace: Any, x: Any, weak_type: bool, over: frozenset[Any]) -> Any:
    """A result of control flow that was decided by what varies over some axes."""
    value, aval = trace.read(x)
    if not isinstance(aval, ShapedArray):
        return x
    varying, unreduced, reduced = variance.of(aval)
    kind = manual_type(varying | over, unreduced - over, reduced - over)
    return trace.tracer(value, aval.update(weak_type=weak_type).with_manual_type(kind))


def _run_while(
    trace: Any, primitive: Any, args: Sequence[Any], params: dict[str, Any]
) -> Sequence[Any]:
    num_test, num_consts = params["cond_nconsts"], params["body_nconsts"]
    test_consts, body_consts = args[:num_test], args[num_test : num_test + num_consts]
    carry = list(args[num_test + num_consts :])
    over: frozenset[Any] = frozenset()
    while True:
        trace.device.step()
        (out,) = evaluation.eval_closed_jaxpr(params["cond_jaxpr"], *test_consts, *carry)
        goes_on, aval = trace.read(out)
        over |= variance.of(aval).varying
        if not np.any(goes_on):
            break
        after = evaluation.eval_closed_jaxpr(params["body_jaxpr"], *body_consts, *carry)
        carry = [_kept(trace, goes_on, x, y) for x, y in zip(carry, after, strict=True)]
    weak = [a.weak_type for a in params["body_jaxpr"].out_avals]
    return [_typed(trace, x, w, over) for x, w in zip(carry, weak, strict=True)]


def _kept(trace: Any, goes_on: Any, before: Any, after: Any) -> Any:
    """What a step makes of a carry, for those examples of a batch that are not done."""
    if not goes_on.ndim:
        return after
    old, _ = trace.read(before)
    new, aval = trace.read(after)
    which = goes_on.reshape(goes_on.shape + (1,) * (new.ndim - goes_on.ndim))
    return trace.tracer(np.where(which, new, old), aval)


def _run_scan(
    trace: Any, primitive: Any, args: Sequence[Any], params: dict[str, Any]
) -> Sequence[Any]:
    closed, num_carry, length = params["jaxpr"], params["num_carry"], params["length"]
    start = params["num_consts"] + num_carry
    consts, carry = args[: params["num_consts"]], list(args[params["num_consts"] : start])
    xs = [trace.read(x) for x in args[start:]]
    steps: list[list[Any]] = []
    order = range(length)
    for i in reversed(order) if params["reverse"] else order:
        trace.device.step()
        slices = [trace.tracer(np.asarray(x[i]), aval.without_dim(0)) for x, aval in xs]
        outs = evaluation.eval_closed_jaxpr(closed, *consts, *carry, *slices)
        carry = outs[:num_carry]
        steps.append(outs[num_carry:])
    if params["reverse"]:
        steps.reverse()
    return carry + [
        _stacked(trace, [step[k] for step in steps], aval, length)
        for k, aval in enumerate(closed.out_avals[num_carry:])
    ]


def _stacked(trace: Any, parts: Sequence[Any], aval: Any, length: int) -> Any:
    if not parts:
        inner = aval.dtype.physical_shape if aval.is_extended else ()
        dtype = np.uint32 if aval.is_extended else aval.dtype
        return trace.tracer(np.zeros((0, *aval.shape, *inner), dtype), aval.with_dim(0, length))
    read = [trace.read(x) for x in parts]
    return trace.tracer(np.stack([x for x, _ in read]), read[0][1].with_dim(0, length))


def _run_solver(
    trace: Any, primitive: Any, args: Sequence[Any], params: dict[str, Any]
) -> Sequence[Any]:
    lengths = params["const_lengths"]
    start = sum(lengths[: lengths._fields.index("solve")])
    consts = args[start : start + lengths.solve]
    return evaluation.eval_closed_jaxpr(params["jaxprs"].solve, *consts, *args[sum(lengths) :])


def _run_shard_map(
    trace: Any, primitive: Any, args: Sequence[Any], params: dict[str, Any]
) -> Sequence[Any]:
    mesh, names = params["mesh"].abstract_mesh, params["newly_manual_axes"]
    sizes = {name: size for name, size in mesh.shape_tuple if name in names}
    region = mapped.Region(mesh, sizes, params["check_vma"])
    values = _values(trace, args)

    def body(inner: Any, given: Sequence[Any]) -> list[blocks.Value]:
        return _values(inner, evaluation.eval_closed_jaxpr(params["jaxpr"], *given))

    outs = _on_devices(trace, region, body, values, params["in_specs"])
    around = frozenset().union(*(variance.of(value.aval).varying for value in values))
    found = []
    for k, spec in enumerate(params["out_specs"]):
        parts = {place: own[k] for place, own in outs.items()}
        whole = blocks.join(parts, spec, sizes, compare=region.check_vma)
        aval = next(iter(parts.values())).aval
        kind = manual_type(around)
        if region.check_vma:
            kind = manual_type(*(state - names for state in variance.of(aval)))
        found.append(_whole(trace, whole, aval.with_manual_type(kind)))
    return found


def _run_pmap(
    trace: Any, primitive: Any, args: Sequence[Any], params: dict[str, Any]
) -> Sequence[Any]:
    name, size = params["axis_name"], params["axis_size"]
    if size != params["global_axis_size"] or name in dict(trace.device.coordinates):
        error(
            NotImplementedError,
            "testing.simulate",
            "this pmap cannot be simulated.",
            got=f"axis {name!r} of size {size}, {params['global_axis_size']} in all processes",
            expected="one process, and an axis of another name than those around",
        )
    region = mapped.Region(meshes.EMPTY, {name: size}, check_vma=False, kind="pmap")
    in_axes, out_axes = params["in_axes"], params["out_axes"]

    def body(inner: Any, given: Sequence[Any]) -> list[blocks.Value]:
        own = [_without_dim(inner, x, axis) for x, axis in zip(given, in_axes, strict=True)]
        outs = _values(inner, evaluation.eval_closed_jaxpr(params["jaxpr"], *own))
        return [_with_dim(value, axis) for value, axis in zip(outs, out_axes, strict=True)]

    specs = [_spec_at(axis, name) for axis in in_axes]
    outs = _on_devices(trace, region, body, _values(trace, args), specs)
    found = []
    for k, axis in enumerate(out_axes):
        parts = {place: own[k] for place, own in outs.items()}
        whole = blocks.join(parts, _spec_at(axis, name), region.sizes, compare=False)
        found.append(_whole(trace, whole, next(iter(parts.values())).aval))
    return found


def _on_devices(
    trace: Any,
    region: mapped.Region,
    body: mapped.Body,
    values: Sequence[blocks.Value],
    specs: Sequence[PartitionSpec],
) -> dict[Coordinates, list[blocks.Value]]:
    """What devices within the device of a trace return."""

    def make_trace(device: Device) -> Any:
        return type(trace)(device, region.check_vma, trace.function_name)

    device = trace.device
    return mapped.run(device.machine, device, region, make_trace, body, values, specs)


def _values(trace: Any, xs: Sequence[Any]) -> list[blocks.Value]:
    read = map(trace.read, xs)
    return [blocks.Value(array, aval, f"value {i}") for i, (array, aval) in enumerate(read)]


def _whole(trace: Any, value: Any, block: Any) -> Any:
    """A value put together from blocks of type `block`."""
    if not isinstance(block, ShapedArray):
        return trace.tracer(value, block)
    return trace.tracer(value, block.update(shape=value.shape[: block.ndim]))


def _spec_at(axis: int | None, name: Any) -> PartitionSpec:
    """The spec of values that are split along one dimension."""
    return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, name)


def _without_dim(trace: Any, x: Any, axis: int | None) -> Any:
    """A slice without the dimension along which it was cut."""
    value, aval = trace.read(x)
    return x if axis is None else trace.tracer(value.squeeze(axis), aval.without_dim(axis))


def _with_dim(value: blocks.Value, axis: int | None) -> blocks.Value:
    """A result with the dimension along which it is put together."""
    if axis is None:
        return value
    return value._replace(
        array=np.expand_dims(value.array, axis), aval=value.aval.with_dim(axis, 1)
    )


PROGRAMS: dict[str, Program] = {
    "pmap": _run_pmap,
    "shard_map": _run_shard_map,
    "jit": _run_jit,
    "cond": _run_cond,
    "while": _run_while,
    "scan": _run_scan,
    "custom_linear_solve": _run_solver,
    "custom_root": _run_solver,
    **dict.fromkeys(
        ("custom_jvp_call", "custom_vjp_call", "custom_vmap_call", "linear_call", "remat2", "vmap"),
        _run_body,
    ),
}
"""Operations that hold programs, by the names of their primitives."""
