"""The regularised incomplete gamma functions and their derivatives.  All are elementwise.

P(a, x) is computed from a power series where x is small against a, and from a continued fraction
for Q = 1 - P elsewhere.  Both are differentiated term by term for derivatives with respect to a.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.lax.binary import add, bitwise_and, bitwise_or, div, eq, gt, le, lt, mul, ne, sub
from minijax.lax.convergence import Computation, epsilon, full_like
from minijax.lax.families import FLOAT, Binary, operands
from minijax.lax.select import select
from minijax.lax.special import digamma, lgamma
from minijax.lax.unary import abs, exp, log, neg


def _series_start(a: Any, x: Any) -> Sequence[Any]:
    # c_n = xⁿ / ((a + 1) … (a + n)), their sum, and the derivatives of both.
    one, zero = full_like(a, 1.0), full_like(a, 0.0)
    return a, x, one, one, zero, zero


def _series_step(n: Any, a: Any, x: Any, c: Any, total: Any, c_dot: Any, total_dot: Any) -> Any:
    divisor = add(a, n)
    ratio = div(x, divisor)
    c = mul(c, ratio)
    c_dot = sub(mul(c_dot, ratio), div(c, divisor))
    total, total_dot = add(total, c), add(total_dot, c_dot)
    bound = epsilon(a)
    changes = bitwise_or(
        gt(abs(c), mul(abs(total), bound)), gt(abs(c_dot), mul(abs(total_dot), bound))
    )
    return changes, a, x, c, total, c_dot, total_dot


def _fraction_start(a: Any, x: Any) -> Sequence[Any]:
    # The last two convergents p/q, scaled so that the last q is 1; then their derivatives.
    one, zero = full_like(a, 1.0), full_like(a, 0.0)
    q = mul(x, add(sub(x, a), 2.0))
    return (
        a,
        x,
        div(add(x, 1.0), q),
        div(one, q),
        div(x, q),
        zero,
        div(neg(x), q),
        zero,
        zero,
    )


def _fraction_step(
    n: Any,
    a: Any,
    x: Any,
    p: Any,
    p_before: Any,
    q_before: Any,
    p_dot: Any,
    q_dot: Any,
    p_before_dot: Any,
    q_before_dot: Any,
) -> Any:
    # p_new = z p - w p_before with z = x - a + 2 (n + 1), w = n (n + 1 - a); likewise q.
    z = add(sub(x, a), mul(add(n, 1.0), 2.0))
    w = mul(sub(add(n, 1.0), a), n)
    p_new = sub(mul(z, p), mul(w, p_before))
    q_new = sub(z, mul(w, q_before))
    p_new_dot = add(
        sub(mul(z, p_dot), p), sub(mul(n, p_before), mul(w, p_before_dot))
    )
    q_new_dot = add(
        sub(mul(z, q_dot), 1.0), sub(mul(n, q_before), mul(w, q_before_dot))
    )
    scale = div(1.0, select(eq(q_new, 0.0), full_like(x, 1.0), q_new))
    ratio = mul(p_new, scale)
    slope, slope_before = (
        sub(d, mul(r, e))
        for d, r, e in (
            (mul(p_new_dot, scale), ratio, mul(q_new_dot, scale)),
            (p_dot, p, q_dot),
        )
    )
    bound = epsilon(a)
    changes = bitwise_or(
        gt(abs(sub(ratio, p)), mul(abs(ratio), bound)),
        gt(abs(sub(slope, slope_before)), mul(abs(slope), bound)),
    )
    return (
        changes,
        a,
        x,
        ratio,
        mul(p, scale),
        scale,
        mul(p_new_dot, scale),
        mul(q_new_dot, scale),
        mul(p_dot, scale),
        mul(q_dot, scale),
    )
