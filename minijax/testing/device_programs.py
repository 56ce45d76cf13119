"""Operations that hold programs, on one simulated device: Python's own branches and loops.

Input: the trace of the device, an operation, and its operands.  Output: its results, by evaluating
what it holds in the trace.  So each device takes its own branch, and loops as long as it wants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import variance
from minijax.core.aval import ShapedArray, manual_type
from minijax.interpreters import evaluation

Program = Callable[[Any, Any, Sequence[Any], dict[str, Any]], Sequence[Any]]


def _run_body(
    trace: Any, primitive: Any, args: Sequence[Any], params: dict[str, Any]
) -> Sequence[Any]:
    """An operation whose own rule evaluates what it holds in the current trace."""
    return primitive.impl(*args, **params)  # type: ignore[no-any-return]


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


PROGRAMS: dict[str, Program] = {
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
