"""`jet`: higher derivatives along a curve, in one pass.

Input: a function, its arguments and their derivatives.  Output: those of the results.

The mechanism is `interpreters/taylor.py`, where rules follow from `jvp`.  Here stand those of
products, quotients, calls and control flow, which would do more work with each order because
their `jvp` uses the operation more than once or doubles a body; no primitive of a user's needs one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes, tree
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.operators import Values
from minijax.core.primitive import Zero
from minijax.interpreters import flattening, staging, taylor
from minijax.interpreters.structural import add_tangents, instantiate
from minijax.interpreters.taylor import Rule, Series, TaylorTrace
from minijax.lax import binary, convolution, dots, families, unary
from minijax.lax.control_flow import branching, looping, scanning
from minijax.lax.creation import convert_element_type
from minijax.lowering import eager
from minijax.transforms.autodiff.remat import remat_p
from minijax.transforms.jit.primitive import jit_p


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
    trace: TaylorTrace, primitive: Any, primals: Values, series: Any, params: Mapping[str, Any]
) -> tuple[Sequence[Any], list[Series]]:
    """(x·y)⁽ⁿ⁾ = Σ C(n, k) x⁽ᵏ⁾·y⁽ⁿ⁻ᵏ⁾, for everything linear in each of two operands."""
    x, y = ((primal, *terms) for primal, terms in zip(primals, series, strict=True))

    def apply(a: object, b: object) -> Any:
        return primitive.bind(a, b, **params)

    out = apply(x[0], y[0])
    terms = [_leibniz(apply, x, y, n) for n in range(1, len(x))]
    return [out], [[Zero.like(out) if t is None else t for t in terms]]


def _quotient(
    trace: TaylorTrace, primitive: Any, primals: Values, series: Any, params: Mapping[str, Any]
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
    trace: TaylorTrace, primitive: Any, primals: Values, series: Any, params: Mapping[str, Any]
) -> tuple[Sequence[Any], list[Series]]:
    """x to the power of a y that moves is exp(y·log x)."""
    if not taylor.moves(series[1]):
        return taylor.by_jvp(trace, primitive, primals, series, params)
    _, out_series = trace.run(
        lambda x, y: [unary.exp(binary.mul(y, unary.log(x)))], primals, series
    )
    return [primitive.bind(*primals)], out_series


def _call(
    trace: TaylorTrace, primitive: Any, primals: Values, series: Any, params: Mapping[str, Any]
) -> tuple[Sequence[Any], list[Series]]:
    """A call is its body."""
    outs: tuple[Sequence[Any], list[Series]] = trace.run(
        lambda *xs: staging.eval_closed_jaxpr(params["jaxpr"], *xs), primals, series
    )
    return outs


def _cond(
    trace: TaylorTrace, primitive: Any, primals: Values, series: Any, params: Mapping[str, Any]
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
    trace: TaylorTrace, primitive: Any, primals: Values, series: Any, params: Mapping[str, Any]
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
    trace: TaylorTrace, primitive: Any, primals: Values, series: Any, params: Mapping[str, Any]
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


def jet(
    fun: Callable[..., Any],
    primals: Values,
    series: Sequence[Sequence[Any]],
    factorial_scaled: bool = True,
) -> tuple[Any, Any]:
    """The derivatives of `fun` along a curve, of every order that `series` gives, in one pass.

    Where arguments follow x(t), the results follow f(x(t)); this turns the derivatives of x at one
    t into those of f∘x.  With x' = 1 and the rest 0, they are the derivatives of f itself.
    Differentiating n times costs 2ⁿ; a series of length n costs about n² for each product.

    Args:
        fun: a function of arrays; its results may be a tree.
        primals: its arguments, one array each.
        series: for each argument the derivatives of its curve: first, second, and so on; all of
            one length.
        factorial_scaled: whether derivatives are meant, and not the coefficients of the Taylor
            polynomial, which are the derivatives over n!.

    Returns:
        `fun(*primals)`, and the same tree with a list of derivatives in place of each leaf.

    Source: mirrors jax.experimental.jet.jet (0.10); Griewank and Walther, Evaluating Derivatives,
        chapter 13.

    Raises:
        TypeError: `fun` is not callable, or an argument is not of a floating-point type.
        ValueError: the numbers or lengths of the series do not fit, or an argument is a tree.

    Example:
        >>> from minijax.experimental.jet import jet
        >>> value, derivatives = jet(lambda x: x**3, (2.0,), ((1.0, 0.0, 0.0),))
        >>> value, [float(d) for d in derivatives]
        (Array(8., dtype=float32, weak_type=True), [12.0, 12.0, 6.0])
    """
    eager.check_callable("jet", fun)
    _check_arguments(primals, series)
    order = len(series[0]) if series else 0
    avals = [aval_of(x) for x in primals]
    scales = [1 if factorial_scaled else math.factorial(n + 1) for n in range(order)]
    flat = flattening.FlatFunction(
        fun, tree.structure((tuple(primals), {})), flattening.function_name(fun)
    )
    outs, out_series = taylor.taylor_flat(
        flat,
        list(primals),
        [
            [times(scale, _term(x, aval)) for x, scale in zip(terms, scales, strict=True)]
            for terms, aval in zip(series, avals, strict=True)
        ],
        order,
        RULES,
        flat.name,
    )
    results = []
    for terms in out_series:
        made = map(instantiate, terms)
        results.append([x if s == 1 else _over(x, s) for x, s in zip(made, scales, strict=True)])
    return tree.unflatten(flat.out_tree, outs), tree.unflatten(flat.out_tree, results)


def _over(x: Any, number: int) -> Any:
    return binary.div(x, families.scalar_like(number, x))


def _term(x: Any, aval: Any) -> Any:
    """One derivative of an argument, of its type; a scalar is meant for every element."""
    if aval_of(x).dtype != aval.dtype:
        x = convert_element_type(x, aval.dtype)
    return families.broadcast_to(x, np.broadcast_to(np.float32(0), aval.shape))


def _check_arguments(primals: Any, series: Any) -> None:
    for name, value in (("primals", primals), ("series", series)):
        if not isinstance(value, (tuple, list)):
            problem = f"{name} must be a tuple or a list."
            expected = "one entry for each argument of the function"
            error(TypeError, "jet", problem, got=type(value).__name__, expected=expected)
    if len(primals) != len(series):
        problem = "there must be one series for each argument."
        error(ValueError, "jet", problem, got=f"{len(primals)} primals and {len(series)} series")
    for i, x in enumerate(primals):
        if not tree.all_leaves([x]):
            problem = f"primals[{i}] is a tree."
            fix = "flatten the tree: leaves, treedef = tree.flatten(x)"
            error(ValueError, "jet", problem, got=f"{x!r}", expected="arrays", fix=fix)
        aval = aval_of(x)
        if not dtypes.issubdtype(aval.dtype, np.inexact):
            problem = f"primals[{i}] is of a type that does not change continuously."
            expected = "a floating-point or complex type"
            fix = "convert it, or close over it"
            error(TypeError, "jet", problem, got=str(aval), expected=expected, fix=fix)
        _check_terms(i, aval, series)


def _check_terms(i: int, aval: Any, series: Any) -> None:
    if not isinstance(series[i], (tuple, list)) or len(series[i]) != len(series[0]):
        lengths = [len(s) if isinstance(s, (tuple, list)) else type(s).__name__ for s in series]
        problem = "the series are not all sequences of one length."
        fix = "pad the shorter ones with zeros"
        error(ValueError, "jet", problem, got=f"lengths {lengths}", fix=fix)
    for n, x in enumerate(series[i]):
        if aval_of(x).shape not in ((), aval.shape):
            problem = f"series[{i}][{n}] has another shape than its argument."
            error(ValueError, "jet", problem, got=f"{aval_of(x)} for {aval}")
