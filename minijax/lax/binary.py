"""Elementwise functions of two arrays: arithmetic, comparisons, and operations on bits.

Operands have one dtype; shapes agree, or one operand is a scalar.  Powers are in `power.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.interpreters import lowering
from minijax.interpreters.checking import DIVISION, Fault
from minijax.lax.convert import convert_element_type
from minijax.lax.families import (
    ANY,
    BITS,
    FLOAT,
    INEXACT,
    INTEGER,
    NUMERIC,
    ORDERED,
    REAL,
    Binary,
    bool_dtype,
    broadcast_to,
    mul_p,
    neg_p,
    operands,
)


def _neg(x: Any) -> Any:
    return neg_p.bind(x)


add_p = Binary(
    "add",
    "stablehlo.add",
    accepts=NUMERIC,
    derivatives=(lambda g, x, y, out: g, lambda g, x, y, out: g),
    transposes=(lambda ct, x, y: ct, lambda ct, x, y: ct),
    additive=True,
)


def add(x: Any, y: Any) -> Any:
    """The sums `x + y`.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     numeric.
    Derivative: linear in x and y.
    Lowers to:  stablehlo.add.
    Source:     mirrors jax.lax.add.
    """
    return add_p.bind(*operands(x, y))


sub_p = Binary(
    "sub",
    "stablehlo.subtract",
    accepts=NUMERIC,
    derivatives=(lambda g, x, y, out: g, lambda g, x, y, out: _neg(g)),
    transposes=(lambda ct, x, y: ct, lambda ct, x, y: _neg(ct)),
    additive=True,
)


def sub(x: Any, y: Any) -> Any:
    """The differences `x - y`.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     numeric.
    Derivative: linear in x and y.
    Lowers to:  stablehlo.subtract.
    Source:     mirrors jax.lax.sub.
    """
    return sub_p.bind(*operands(x, y))


def mul(x: Any, y: Any, *, out_dtype: Any = None) -> Any:
    """The products `x * y`.

    Args:
        x: an operand.
        y: an operand.
        out_dtype: the dtype to convert the operands to first.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     numeric.
    Derivative: d(xy) = dx y + x dy.
    Lowers to:  stablehlo.multiply.
    Source:     mirrors jax.lax.mul.
    """
    x, y = operands(x, y)
    if out_dtype is not None:
        x, y = convert_element_type(x, out_dtype), convert_element_type(y, out_dtype)
    return mul_p.bind(x, y)


def _division_by_zero(args: Sequence[Any], outs: Sequence[Any]) -> list[Fault]:
    divisor = args[1]
    if isinstance(divisor, (int, float, complex, np.generic)) and divisor:
        return []
    zero = np.zeros((), aval_of(divisor).dtype)[()]
    bad = broadcast_to(eq_p.bind(divisor, zero), outs[0])
    return [Fault(DIVISION, bad, "divides by zero")]


div_p = Binary(
    "div",
    "stablehlo.divide",
    faults=_division_by_zero,
    accepts=NUMERIC,
    derivatives=(
        lambda g, x, y, out: div(g, y),
        lambda g, x, y, out: mul(_neg(g), div(out, y)),
    ),
    transposes=(lambda ct, x, y: div(ct, y), None),
    linear_in=((0,),),
)


def div(x: Any, y: Any) -> Any:
    """The quotients `x / y`; of integers, rounded towards zero.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     numeric.
    Derivative: d(x/y) = dx / y - x/y² dy.
    Lowers to:  stablehlo.divide.
    Source:     mirrors jax.lax.div.
    """
    return div_p.bind(*operands(x, y))


rem_p = Binary(
    "rem",
    "stablehlo.remainder",
    faults=_division_by_zero,
    accepts=REAL,
    # x = n y + out, so that d out/dy = -n.
    derivatives=(
        lambda g, x, y, out: g,
        lambda g, x, y, out: mul(g, div(sub(out, x), y)),
    ),
)


def rem(x: Any, y: Any) -> Any:
    """The remainders of `x / y`, with the sign of x.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     integer or floating.
    Derivative: dx - n dy, where n is the quotient rounded towards zero.
    Lowers to:  stablehlo.remainder.
    Source:     mirrors jax.lax.rem.
    """
    return rem_p.bind(*operands(x, y))


def _lexicographic(direction: str, op: str) -> Callable[..., Any]:
    """The larger or smaller operand; complex numbers compare real parts, then imaginary ones."""

    def lower(ctx: Any, x: Any, y: Any) -> Any:
        (out,) = ctx.avals_out
        if not dtypes.issubdtype(out.dtype, np.complexfloating):
            return ctx.op(op, [x, y])
        part = out.update(dtype=dtypes.real_dtype_of(out.dtype))
        mask = ctx.tensor_type(out.shape, np.bool_)

        def compare(how: str, name: str) -> Any:
            a, b = (ctx.op(name, [z], None, ctx.type_of(part)) for z in (x, y))
            return ctx.compare(how, a, b, part)

        first = ctx.op(
            "stablehlo.select",
            [
                compare("EQ", "stablehlo.real"),
                compare(direction, "stablehlo.imag"),
                compare(direction, "stablehlo.real"),
            ],
            None,
            mask,
        )
        return ctx.op("stablehlo.select", [first, x, y])

    return lower


def _chosen_share(x: Any, y: Any, out: Any) -> Any:
    """How much of the derivative goes to x: all where it was chosen, half where x equals y."""
    dtype = aval_of(out).dtype
    is_x, is_y = (convert_element_type(eq(z, out), dtype) for z in (x, y))
    return mul(is_x, sub(1.0, mul(is_y, 0.5)))


_derivatives_of_choice = (
    lambda g, x, y, out: mul(g, _chosen_share(x, y, out)),
    lambda g, x, y, out: mul(g, _chosen_share(y, x, out)),
)

max_p = Binary(
    "max",
    _lexicographic("GT", "stablehlo.maximum"),
    accepts=ANY,
    derivatives=_derivatives_of_choice,
    total=True,
)


def max(x: Any, y: Any) -> Any:
    """The larger of `x` and `y`; NaN where one of them is.

    Complex numbers compare their real parts first, then their imaginary ones.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     any.
    Derivative: that of the operand chosen; of both, halved, where they are equal.
    Lowers to:  stablehlo.maximum.
    Source:     mirrors jax.lax.max.
    """
    return max_p.bind(*operands(x, y))


min_p = Binary(
    "min",
    _lexicographic("LT", "stablehlo.minimum"),
    accepts=ANY,
    derivatives=_derivatives_of_choice,
    total=True,
)


def min(x: Any, y: Any) -> Any:
    """The smaller of `x` and `y`; NaN where one of them is.

    Complex numbers compare their real parts first, then their imaginary ones.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     any.
    Derivative: that of the operand chosen; of both, halved, where they are equal.
    Lowers to:  stablehlo.minimum.
    Source:     mirrors jax.lax.min.
    """
    return min_p.bind(*operands(x, y))


def _sum_of_squares(x: Any, y: Any) -> Any:
    return add(mul(x, x), mul(y, y))


atan2_p = Binary(
    "atan2",
    "stablehlo.atan2",
    accepts=INEXACT,
    derivatives=(
        lambda g, x, y, out: mul(g, div(y, _sum_of_squares(x, y))),
        lambda g, x, y, out: mul(_neg(g), div(x, _sum_of_squares(x, y))),
    ),
)


def atan2(x: Any, y: Any) -> Any:
    """The angles of the points (y, x) in the plane: the arctangents of `x / y` in (-π, π].

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     floating or complex.
    Derivative: (y dx - x dy) / (x² + y²).
    Lowers to:  stablehlo.atan2.
    Source:     mirrors jax.lax.atan2.
    """
    return atan2_p.bind(*operands(x, y))


nextafter_p = Binary("nextafter", "chlo.next_after", accepts=FLOAT, derivatives=None)


def nextafter(x1: Any, x2: Any) -> Any:
    """The next representable number after `x1` in the direction of `x2`.

    Shapes:     x1: T[s], x2: T[t] -> T[broadcast of s and t].
    Dtypes:     floating.
    Derivative: none.
    Lowers to:  chlo.next_after.
    Source:     mirrors jax.lax.nextafter.
    """
    return nextafter_p.bind(*operands(x1, x2))


def _comparison(
    name: str, direction: str, *, accepts: tuple[type, ...], total_order: bool = False
) -> Binary:
    return Binary(
        name,
        "stablehlo.compare",
        accepts=accepts,
        derivatives=(None, None),
        result=bool_dtype,
        attributes=lambda ctx: ctx.comparison(
            direction, ctx.avals_in[0].dtype, total_order=total_order
        ),
    )


eq_p = _comparison("eq", "EQ", accepts=ANY)


def eq(x: Any, y: Any) -> Any:
    """Whether `x == y`.

    Shapes:     x: T[s], y: T[t] -> bool[broadcast of s and t].
    Lowers to:  stablehlo.compare EQ.
    Source:     mirrors jax.lax.eq.
    """
    return eq_p.bind(*operands(x, y))


ne_p = _comparison("ne", "NE", accepts=ANY)


def ne(x: Any, y: Any) -> Any:
    """Whether `x != y`.

    Shapes:     x: T[s], y: T[t] -> bool[broadcast of s and t].
    Lowers to:  stablehlo.compare NE.
    Source:     mirrors jax.lax.ne.
    """
    return ne_p.bind(*operands(x, y))


lt_p = _comparison("lt", "LT", accepts=ORDERED)


def lt(x: Any, y: Any) -> Any:
    """Whether `x < y`.

    Shapes:     x: T[s], y: T[t] -> bool[broadcast of s and t].
    Dtypes:     real or bool.
    Lowers to:  stablehlo.compare LT.
    Source:     mirrors jax.lax.lt.
    """
    return lt_p.bind(*operands(x, y))


le_p = _comparison("le", "LE", accepts=ORDERED)


def le(x: Any, y: Any) -> Any:
    """Whether `x <= y`.

    Shapes:     x: T[s], y: T[t] -> bool[broadcast of s and t].
    Dtypes:     real or bool.
    Lowers to:  stablehlo.compare LE.
    Source:     mirrors jax.lax.le.
    """
    return le_p.bind(*operands(x, y))


gt_p = _comparison("gt", "GT", accepts=ORDERED)


def gt(x: Any, y: Any) -> Any:
    """Whether `x > y`.

    Shapes:     x: T[s], y: T[t] -> bool[broadcast of s and t].
    Dtypes:     real or bool.
    Lowers to:  stablehlo.compare GT.
    Source:     mirrors jax.lax.gt.
    """
    return gt_p.bind(*operands(x, y))


ge_p = _comparison("ge", "GE", accepts=ORDERED)


def ge(x: Any, y: Any) -> Any:
    """Whether `x >= y`.

    Shapes:     x: T[s], y: T[t] -> bool[broadcast of s and t].
    Dtypes:     real or bool.
    Lowers to:  stablehlo.compare GE.
    Source:     mirrors jax.lax.ge.
    """
    return ge_p.bind(*operands(x, y))


# The total order -NaN < -inf < … < -0 < +0 < … < +inf < NaN, by which sorting compares.
eq_to_p = _comparison("eq_to", "EQ", accepts=ORDERED, total_order=True)
le_to_p = _comparison("le_to", "LE", accepts=ORDERED, total_order=True)
lt_to_p = _comparison("lt_to", "LT", accepts=ORDERED, total_order=True)


def _on_bits(
    name: str, op: str | Callable[..., Any], accepts: tuple[type, ...], public_name: str = ""
) -> Binary:
    return Binary(name, op, accepts=accepts, derivatives=(None, None), public_name=public_name)


and_p = _on_bits("and", "stablehlo.and", BITS, "bitwise_and")


def bitwise_and(x: Any, y: Any) -> Any:
    """The bits that `x` and `y` both have.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     integer or bool.
    Lowers to:  stablehlo.and.
    Source:     mirrors jax.lax.bitwise_and.
    """
    return and_p.bind(*operands(x, y))


or_p = _on_bits("or", "stablehlo.or", BITS, "bitwise_or")


def bitwise_or(x: Any, y: Any) -> Any:
    """The bits that `x` or `y` has.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     integer or bool.
    Lowers to:  stablehlo.or.
    Source:     mirrors jax.lax.bitwise_or.
    """
    return or_p.bind(*operands(x, y))


xor_p = _on_bits("xor", "stablehlo.xor", BITS, "bitwise_xor")


def bitwise_xor(x: Any, y: Any) -> Any:
    """The bits in which `x` and `y` differ.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     integer or bool.
    Lowers to:  stablehlo.xor.
    Source:     mirrors jax.lax.bitwise_xor.
    """
    return xor_p.bind(*operands(x, y))


shift_left_p = _on_bits("shift_left", "stablehlo.shift_left", INTEGER)


def shift_left(x: Any, y: Any) -> Any:
    """The bits of `x` moved up by `y` places; 0 where y is negative or as large as the width.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     integer.
    Lowers to:  stablehlo.shift_left.
    Source:     mirrors jax.lax.shift_left.
    """
    return shift_left_p.bind(*operands(x, y))


shift_right_arithmetic_p = _on_bits(
    "shift_right_arithmetic", "stablehlo.shift_right_arithmetic", INTEGER
)


def shift_right_arithmetic(x: Any, y: Any) -> Any:
    """The bits of `x` moved down by `y` places, filled with copies of the highest bit.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     integer.
    Lowers to:  stablehlo.shift_right_arithmetic.
    Source:     mirrors jax.lax.shift_right_arithmetic.
    """
    return shift_right_arithmetic_p.bind(*operands(x, y))


shift_right_logical_p = _on_bits("shift_right_logical", "stablehlo.shift_right_logical", INTEGER)


def shift_right_logical(x: Any, y: Any) -> Any:
    """The bits of `x` moved down by `y` places, filled with zeros.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     integer.
    Lowers to:  stablehlo.shift_right_logical.
    Source:     mirrors jax.lax.shift_right_logical.
    """
    return shift_right_logical_p.bind(*operands(x, y))


def _upper_half_of_product(x: Any, y: Any) -> Any:
    # By halves of the digits, as on paper.  XLA:CPU compiles its own operation only unfused.
    dtype = aval_of(x).dtype
    half = dtypes.bit_width(dtype) // 2
    is_signed = dtypes.issubdtype(dtype, np.signedinteger)
    shift_right = shift_right_arithmetic if is_signed else shift_right_logical

    def low(z: Any) -> Any:
        return bitwise_and(z, 2**half - 1)

    def high(z: Any) -> Any:
        return shift_right(z, half)

    lowest = mul(low(x), low(y))
    middle = add(mul(high(x), low(y)), shift_right_logical(lowest, half))
    carried = add(low(middle), mul(low(x), high(y)))
    return add(mul(high(x), high(y)), add(high(middle), high(carried)))


def _lower_mulhi(ctx: Any, x: Any, y: Any) -> Any:
    ctx.avals_in = [ctx.avals_out[0]] * 2
    return lowering.lower_function(ctx, lambda x, y: [_upper_half_of_product(x, y)], x, y)[0]


mulhi_p = _on_bits("mulhi", _lower_mulhi, INTEGER)


def mulhi(x: Any, y: Any, /) -> Any:
    """The upper halves of the products of `x` and `y`, which are twice as wide.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     integer.
    Lowers to:  stablehlo.multiply of half as many digits, four times.
    Source:     mirrors jax.lax.mulhi.
    """
    return mulhi_p.bind(*operands(x, y))
