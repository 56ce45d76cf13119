"""Rules of `jet` for single primitives: products, quotients, calls, control flow.

All others follow from `jvp`, see `interpreters/taylor.py`; these would do more work with each
order, because their `jvp` uses the operation more than once or doubles a body.  They stand here and
not with their primitives because they are few, and no primitive of a user's needs one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from minijax.core.aval import aval_of
from minijax.core.jaxpr import ClosedJaxpr
from minijax.interpreters import staging, taylor
from minijax.interpreters.structural import add_tangents
from minijax.interpreters.tangents import Zero
from minijax.interpreters.taylor import Rule, Series, TaylorTrace
from minijax.lax import binary, convolution, dots, families, unary
from minijax.lax.control_flow import branching, looping, scanning
from minijax.transforms.jit_primitive import jit_p
from minijax.transforms.remat_primitive import remat_p


def times(number: int, x: Any) -> Any:
    """`x` times a number, of the type of `x`."""
    return x if number == 1 else binary.mul(x, families.scalar_like(number, x))


def _leibniz(
    apply: Callable[[Any, Any], Any], x: Sequence[Any], y: Sequence[Any], order: int, skip: int = 0
) -> Any:
    """The derivative of that order of a product; without the last `skip` derivatives of x."""
    total: Any = None
    for k in range(order + 1 - skip):
        if type(x[k]) is Zero or type(y[order - k]) is Zero:
            continue
        term = times(math.comb(order, k), apply(x[k], y[order - k]))
        total = term if total is None else add_tangents(total, term)
    return total


def _product(
    trace: TaylorTrace, primitive: Any, primals: Sequence[Any], series: Any, params: dict[str, Any]
) -> tuple[Sequence[Any], list[Series]]:
    """(x·y)⁽ⁿ⁾ = Σ C(n, k) x⁽ᵏ⁾·y⁽ⁿ⁻ᵏ⁾, for everything linear in each of two operands."""
    x, y = ((primal, *terms) for primal, terms in zip(primals, series, strict=True))

    def apply(a: Any, b: Any) -> Any:
        return primitive.bind(a, b, **params)

    out = apply(x[0], y[0])
    terms = [_leibniz(apply, x, y, n) for n in range(1, len(x))]
    return [out], [[Zero.like(out) if t is None else t for t in terms]]


def _quotient(
    trace: TaylorTrace, primitive: Any, primals: Sequence[Any], series: Any, params: dict[str, Any]
) -> tuple[Sequence[Any], list[Series]]:
    """From x = z·y:  z⁽ⁿ⁾ = (x⁽ⁿ⁾ - Σₖ﹤ₙ C(n, k) z⁽ᵏ⁾·y⁽ⁿ⁻ᵏ⁾) / y."""
    x, y = ((primal, *terms) for primal, terms in zip(primals, series, strict=True))
    z = [primitive.bind(x[0], y[0])]
    for n in range(1, len(x)):
        rest = _leibniz(binary.mul, z, y, n, skip=1)
        if rest is None:
            top = x[n]
        else:
            top = unary.neg(rest) if type(x[n]) is Zero else binary.sub(x[n], rest)
        z.append(
            Zero.like(z[0])
            if type(top) is Zero
            else families.broadcast_to(binary.div(top, y[0]), z[0])
        )
    return z[:1], [z[1:]]


def _power(
    trace: TaylorTrace, primitive: Any, primals: Sequence[Any], series: Any, params: dict[str, Any]
) -> tuple[Sequence[Any], list[Series]]:
    """x to the power of a y that moves is exp(y·log x)."""
    if not taylor.moves(series[1]):
        return taylor.by_jvp(trace, primitive, primals, series, params)
    _, out_series = trace.run(
        lambda x, y: [unary.exp(binary.mul(y, unary.log(x)))],
        primals,
        series,
    )
    return [primitive.bind(*primals)], out_series


def _call(
    trace: TaylorTrace, primitive: Any, primals: Sequence[Any], series: Any, params: dict[str, Any]
) -> tuple[Sequence[Any], list[Series]]:
    """A call is its body."""
    outs: tuple[Sequence[Any], list[Series]] = trace.run(
        lambda *xs: staging.eval_closed_jaxpr(params["jaxpr"], *xs), primals, series
    )
    return outs


def _cond(
    trace: TaylorTrace, primitive: Any, primals: Sequence[Any], series: Any, params: dict[str, Any]
) -> tuple[Sequence[Any], list[Series]]:
    """A choice among branches, each of which takes series along."""
    branches: Sequence[ClosedJaxpr] = params["branches"]
    moving = [taylor.moves(terms) for terms in series[1:]]
    outs = primitive.bind(
        primals[0],
        *trace.spread(primals[1:], series[1:], moving),
        **{**params, "branches": tuple(trace.of_jaxpr(b, moving) for b in branches)},
    )
    avals = branches[0].out_avals
    return trace.gather(outs, avals, taylor.admits_series(avals))


def _scan(
    trace: TaylorTrace, primitive: Any, primals: Sequence[Any], series: Any, params: dict[str, Any]
) -> tuple[Sequence[Any], list[Series]]:
    """A scan whose carry is followed by its series, where its dtype admits one."""
    body: ClosedJaxpr = params["jaxpr"]
    num_consts, num_carry = params["num_consts"], params["num_carry"]
    start = num_consts + num_carry
    moving = [taylor.moves(terms) for terms in series]
    moving[num_consts:start] = taylor.admits_series(body.in_avals[num_consts:start])
    sizes = [1 + trace.order * m for m in moving]
    outs = primitive.bind(
        *trace.spread(primals, series, moving),
        **{
            **params,
            "jaxpr": trace.of_jaxpr(body, moving),
            "num_consts": sum(sizes[:num_consts]),
            "num_carry": sum(sizes[num_consts:start]),
        },
    )
    avals = primitive.abstract_eval(*map(aval_of, primals), **params)
    return trace.gather(outs, avals, taylor.admits_series(avals))


def _while(
    trace: TaylorTrace, primitive: Any, primals: Sequence[Any], series: Any, params: dict[str, Any]
) -> tuple[Sequence[Any], list[Series]]:
    """A loop whose carry is followed by its series; the condition sees primals alone."""
    test, body = params["cond_jaxpr"], params["body_jaxpr"]
    start, end = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    carry_moving = taylor.admits_series(body.out_avals)
    moving = [taylor.moves(terms) for terms in series[start:end]] + carry_moving

    def test_primals(*args: Any) -> list[Any]:
        carry, _ = trace.gather(args[start:], body.out_avals, carry_moving)
        return staging.eval_closed_jaxpr(test, *args[:start], *carry)

    consts = trace.spread(primals[start:end], series[start:end], moving[: end - start])
    init = trace.spread(primals[end:], series[end:], carry_moving)
    avals = [aval_of(x) for x in (*primals[:start], *init)]
    outs = primitive.bind(
        *primals[:start],
        *consts,
        *init,
        **{
            **params,
            "cond_jaxpr": staging.stage_closed(test_primals, avals, test.jaxpr.debug_info),
            "body_nconsts": len(consts),
            "body_jaxpr": trace.of_jaxpr(body, moving),
        },
    )
    return trace.gather(outs, body.out_avals, carry_moving)


RULES: dict[Any, Rule] = {
    families.mul_p: _product,
    binary.div_p: _quotient,
    dots.dot_general_p: _product,
    convolution.conv_general_dilated_p: _product,
    unary.pow_p: _power,
    jit_p: _call,
    remat_p: _call,
    branching.cond_p: _cond,
    scanning.scan_p: _scan,
    looping.while_p: _while,
}
