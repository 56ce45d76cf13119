"""Elementwise operations of two operands, and choices among several: select and clamp.

Operands have one dtype; shapes agree, or one operand is a scalar.  Powers are in `lax/unary.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes, vma
from minijax.core.aval import ShapedArray, aval_of, result_types, shaped_array
from minijax.core.errors import error
from minijax.core.primitive import Batched, Cotangents, Dual, Primitive, Tangents, Zero
from minijax.interpreters import checking, structural
from minijax.interpreters.checking import DIVISION, Fault
from minijax.interpreters.jvp import is_linear
from minijax.lax.creation import convert_element_type, convert_to_type
from minijax.lax.families import (
    ANY,
    BITS,
    FLOAT,
    INEXACT,
    INTEGER,
    NUMERIC,
    ORDERED,
    REAL,
    BatchDims,
    Binary,
    Values,
    bool_dtype,
    broadcast_to,
    check_dtype,
    check_same_dtype,
    mul_p,
    neg_p,
    operand,
    operands,
)
from minijax.lax.shape import unstack
from minijax.lowering import module
from minijax.lowering.module import lower_function
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.annotations import ArrayLike, DTypeLike
from minijax.runtime.array import Array
from minijax.sharding import rules


def _neg(x: Array) -> Any:
    return neg_p.bind(x)


add_p = Binary(
    "add",
    "stablehlo.add",
    accepts=NUMERIC,
    derivatives=(lambda g, x, y, out: g, lambda g, x, y, out: g),
    transposes=(lambda ct, x, y: ct, lambda ct, x, y: ct),
)


def add(x: ArrayLike, y: ArrayLike) -> Array:
    """Adds `x` and `y` elementwise: `x + y`.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     numeric.
    Derivative: linear in x and y.
    Lowers to:  stablehlo.add.

    Example:
        >>> lax.add(jnp.array([1, 2, 3]), 10)
        Array([11, 12, 13], dtype=int32)
    """
    return add_p.bind(*operands(x, y))


sub_p = Binary(
    "sub",
    "stablehlo.subtract",
    accepts=NUMERIC,
    derivatives=(lambda g, x, y, out: g, lambda g, x, y, out: _neg(g)),
    transposes=(lambda ct, x, y: ct, lambda ct, x, y: _neg(ct)),
)
vma.keeps_unreduced.set(True, add_p, sub_p)


def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """Subtracts `y` from `x` elementwise: `x - y`.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     numeric.
    Derivative: linear in x and y.
    Lowers to:  stablehlo.subtract.

    Example:
        >>> lax.sub(jnp.array([5, 3], jnp.uint8), jnp.array([2, 4], jnp.uint8))
        Array([  3, 255], dtype=uint8)
    """
    return sub_p.bind(*operands(x, y))


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """Multiplies `x` and `y` elementwise: `x * y`.

    Args:
        x: an operand.
        y: an operand.
        out_dtype: the dtype to convert the operands to first.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     numeric.
    Derivative: d(xy) = dx y + x dy.
    Lowers to:  stablehlo.multiply.

    Example:
        >>> lax.mul(jnp.array([2, 3]), jnp.array([10, 20]))
        Array([20, 60], dtype=int32)
        >>> lax.mul(jnp.array([2, 3]), jnp.array([10, 20]), out_dtype=jnp.float32)
        Array([20., 60.], dtype=float32)
    """
    x, y = operands(x, y)
    if out_dtype is not None:
        x, y = convert_element_type(x, out_dtype), convert_element_type(y, out_dtype)
    return mul_p.bind(x, y)


def _division_by_zero(primitive: Primitive, args: Values, outs: Values) -> list[Fault]:
    divisor = args[1]
    if isinstance(divisor, (int, float, complex, np.generic)) and divisor:
        return []
    zero = np.zeros((), aval_of(divisor).dtype)[()]
    bad = broadcast_to(eq_p.bind(divisor, zero), outs[0])
    return [Fault(DIVISION, bad, "division by zero")]


def _never_by_zero(op: str) -> Callable[..., Any]:
    """Division, of integers by a divisor that is never zero.

    XLA gives a division by zero a result where a program runs, and dies of it where it computes
    constants while it compiles.
    """

    def lower(ctx: LoweringContext, x: Value, y: Value) -> Any:
        (out,) = ctx.avals_out
        if dtypes.issubdtype(out.dtype, np.inexact):
            return ctx.op(op, [x, y])
        zero, one = (ctx.full(out.shape, n, out.dtype) for n in (0, 1))
        is_zero = ctx.compare("EQ", y, zero, out)
        divided = ctx.op(op, [x, ctx.op("stablehlo.select", [is_zero, one, y])])
        instead = x if op == "stablehlo.remainder" else ctx.op("stablehlo.not", [zero])
        return ctx.op("stablehlo.select", [is_zero, instead, divided])

    return lower


div_p = Binary(
    "div",
    _never_by_zero("stablehlo.divide"),
    accepts=NUMERIC,
    derivatives=(lambda g, x, y, out: div(g, y), lambda g, x, y, out: mul(_neg(g), div(out, y))),
    transposes=(lambda ct, x, y: div(ct, y), None),
)
vma.linear_in.set(((0,),), div_p)


def div(x: ArrayLike, y: ArrayLike) -> Array:
    """Divides `x` by `y` elementwise: `x / y`; integers round toward zero.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     numeric.
    Derivative: d(x/y) = dx / y - x/y² dy.
    Lowers to:  stablehlo.divide; integers by zero give -1, or the largest number.

    Example:
        >>> lax.div(jnp.array([7, -7]), 2)
        Array([ 3, -3], dtype=int32)
        >>> lax.div(jnp.array([7.0, -7.0]), 2.0)
        Array([ 3.5, -3.5], dtype=float32)
    """
    return div_p.bind(*operands(x, y))


rem_p = Binary(
    "rem",
    _never_by_zero("stablehlo.remainder"),
    accepts=REAL,
    # x = n y + out, so that d out/dy = -n.
    derivatives=(lambda g, x, y, out: g, lambda g, x, y, out: mul(g, div(sub(out, x), y))),
)
checking.faults.rule(div_p, rem_p)(_division_by_zero)


def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """The remainder of `x / y` elementwise, with the sign of x.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     integer or floating.
    Derivative: dx - n dy, where n is the quotient rounded towards zero.
    Lowers to:  stablehlo.remainder; integers by zero give x.

    Example:
        >>> lax.rem(jnp.array([7, -7]), 3)
        Array([ 1, -1], dtype=int32)
        >>> jnp.remainder(jnp.array([7, -7]), 3)
        Array([1, 2], dtype=int32)
    """
    return rem_p.bind(*operands(x, y))


def _lexicographic(direction: str, op: str) -> Callable[..., Any]:
    """The larger or smaller operand; complex numbers compare real parts, then imaginary ones."""

    def lower(ctx: LoweringContext, x: Value, y: Value) -> Any:
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


def _chosen_share(x: Array, y: Array, out: Array) -> Any:
    """How much of the derivative goes to x: all where it was chosen, half where x equals y."""
    dtype = aval_of(out).dtype
    is_x, is_y = (convert_to_type(eq(z, out), dtype, weak_type=False) for z in (x, y))
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


def max(x: ArrayLike, y: ArrayLike) -> Array:
    """The elementwise maximum of `x` and `y`; NaN where one of them is.

    Complex numbers compare their real parts first, then their imaginary ones.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     any.
    Derivative: that of the operand chosen; of both, halved, where they are equal.
    Lowers to:  stablehlo.maximum.

    Example:
        >>> lax.max(jnp.array([1.0, jnp.nan]), jnp.array([2.0, 2.0]))
        Array([ 2., nan], dtype=float32)
    """
    return max_p.bind(*operands(x, y))


min_p = Binary(
    "min",
    _lexicographic("LT", "stablehlo.minimum"),
    accepts=ANY,
    derivatives=_derivatives_of_choice,
    total=True,
)


def min(x: ArrayLike, y: ArrayLike) -> Array:
    """The elementwise minimum of `x` and `y`; NaN where one of them is.

    Complex numbers compare their real parts first, then their imaginary ones.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     any.
    Derivative: that of the operand chosen; of both, halved, where they are equal.
    Lowers to:  stablehlo.minimum.

    Example:
        >>> lax.min(jnp.array([1.0, 5.0]), 3.0)
        Array([1., 3.], dtype=float32)
        >>> jax.grad(lax.min)(3.0, 3.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    return min_p.bind(*operands(x, y))


def _sum_of_squares(x: Array, y: Array) -> Any:
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


def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """The arc tangent of `x / y` in (-π, π]: the angle of the point (y, x).

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     floating or complex.
    Derivative: (y dx - x dy) / (x² + y²).
    Lowers to:  stablehlo.atan2.

    Example:
        >>> jnp.degrees(lax.atan2(jnp.array([0.0, 1.0]), jnp.array([-1.0, -1.0]))).round(2)
        Array([180., 135.], dtype=float32)
    """
    return atan2_p.bind(*operands(x, y))


nextafter_p = Binary("nextafter", "chlo.next_after", accepts=FLOAT, derivatives=None)


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The next representable number after `x1` toward `x2`.

    Shapes:     x1: T[s], x2: T[t] -> T[broadcast of s and t].
    Dtypes:     floating.
    Derivative: none.
    Lowers to:  chlo.next_after.

    Example:
        >>> lax.nextafter(jnp.float32(1), jnp.float32(2)) == 1 + jnp.finfo(jnp.float32).eps
        Array(True, dtype=bool)
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


eq_p = _comparison("eq", "EQ", accepts=(*ANY, dtypes.extended))
dtypes.over_words.rule(eq_p)(
    lambda primitive, same, dim: functools.reduce(bitwise_and, unstack(same, dim))
)


def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """Elementwise equality: `x == y`.

    Shapes:     x: T[s], y: T[t] -> bool[broadcast of s and t].
    Dtypes:     all; random keys are compared by all of their words.
    Lowers to:  stablehlo.compare EQ.

    Example:
        >>> lax.eq(jnp.array([1.0, jnp.nan]), jnp.array([1.0, jnp.nan]))
        Array([ True, False], dtype=bool)
    """
    return eq_p.bind(*operands(x, y))


ne_p = _comparison("ne", "NE", accepts=(*ANY, dtypes.extended))
dtypes.over_words.rule(ne_p)(
    lambda primitive, other, dim: functools.reduce(bitwise_or, unstack(other, dim))
)


def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """Elementwise inequality: `x != y`.

    Shapes:     x: T[s], y: T[t] -> bool[broadcast of s and t].
    Dtypes:     all; random keys are compared by all of their words.
    Lowers to:  stablehlo.compare NE.

    Example:
        >>> lax.ne(jnp.array([1.0, jnp.nan]), jnp.array([1.0, jnp.nan]))
        Array([False,  True], dtype=bool)
    """
    return ne_p.bind(*operands(x, y))


lt_p = _comparison("lt", "LT", accepts=ORDERED)


def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """Elementwise comparison: `x < y`.

    Shapes:     x: T[s], y: T[t] -> bool[broadcast of s and t].
    Dtypes:     real or bool.
    Lowers to:  stablehlo.compare LT.

    Example:
        >>> lax.lt(jnp.arange(4), 2)
        Array([ True,  True, False, False], dtype=bool)
    """
    return lt_p.bind(*operands(x, y))


le_p = _comparison("le", "LE", accepts=ORDERED)


def le(x: ArrayLike, y: ArrayLike) -> Array:
    """Elementwise comparison: `x <= y`.

    Shapes:     x: T[s], y: T[t] -> bool[broadcast of s and t].
    Dtypes:     real or bool.
    Lowers to:  stablehlo.compare LE.

    Example:
        >>> lax.le(jnp.arange(4), 2)
        Array([ True,  True,  True, False], dtype=bool)
    """
    return le_p.bind(*operands(x, y))


gt_p = _comparison("gt", "GT", accepts=ORDERED)


def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """Elementwise comparison: `x > y`.

    Shapes:     x: T[s], y: T[t] -> bool[broadcast of s and t].
    Dtypes:     real or bool.
    Lowers to:  stablehlo.compare GT.

    Example:
        >>> lax.gt(jnp.arange(4), 2)
        Array([False, False, False,  True], dtype=bool)
    """
    return gt_p.bind(*operands(x, y))


ge_p = _comparison("ge", "GE", accepts=ORDERED)


def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """Elementwise comparison: `x >= y`.

    Shapes:     x: T[s], y: T[t] -> bool[broadcast of s and t].
    Dtypes:     real or bool.
    Lowers to:  stablehlo.compare GE.

    Example:
        >>> lax.ge(jnp.arange(4), 2)
        Array([False, False,  True,  True], dtype=bool)
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


def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """The bitwise AND of `x` and `y`.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     integer or bool.
    Lowers to:  stablehlo.and.

    Example:
        >>> lax.bitwise_and(0b1100, 0b1010) == 0b1000
        Array(True, dtype=bool)
        >>> lax.bitwise_and(jnp.array([True, True]), jnp.array([True, False]))
        Array([ True, False], dtype=bool)
    """
    return and_p.bind(*operands(x, y))


or_p = _on_bits("or", "stablehlo.or", BITS, "bitwise_or")


def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """The bitwise OR of `x` and `y`.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     integer or bool.
    Lowers to:  stablehlo.or.

    Example:
        >>> lax.bitwise_or(jnp.array([0b1100, 4]), 0b0011)
        Array([15,  7], dtype=int32)
    """
    return or_p.bind(*operands(x, y))


xor_p = _on_bits("xor", "stablehlo.xor", BITS, "bitwise_xor")


def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """The bitwise XOR of `x` and `y`.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     integer or bool.
    Lowers to:  stablehlo.xor.

    Example:
        >>> lax.bitwise_xor(jnp.array([0b1100]), jnp.array([0b1010]))
        Array([6], dtype=int32)
    """
    return xor_p.bind(*operands(x, y))


shift_left_p = _on_bits("shift_left", "stablehlo.shift_left", INTEGER)


def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """Shifts the bits of `x` left by `y`; 0 where y is negative or as large as the width.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     integer.
    Lowers to:  stablehlo.shift_left.

    Example:
        >>> lax.shift_left(jnp.array([1, 1, 1]), jnp.array([0, 4, 32]))
        Array([ 1, 16,  0], dtype=int32)
    """
    return shift_left_p.bind(*operands(x, y))


shift_right_arithmetic_p = _on_bits(
    "shift_right_arithmetic", "stablehlo.shift_right_arithmetic", INTEGER
)


def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """Shifts the bits of `x` right by `y`, and fills with the sign bit.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     integer.
    Lowers to:  stablehlo.shift_right_arithmetic.

    Example:
        >>> lax.shift_right_arithmetic(jnp.array([16, -16]), 2)
        Array([ 4, -4], dtype=int32)
    """
    return shift_right_arithmetic_p.bind(*operands(x, y))


shift_right_logical_p = _on_bits("shift_right_logical", "stablehlo.shift_right_logical", INTEGER)


def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """Shifts the bits of `x` right by `y`, and fills with zeros.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     integer.
    Lowers to:  stablehlo.shift_right_logical.

    Example:
        >>> lax.shift_right_logical(jnp.array([16, -16], jnp.int8), jnp.int8(2))
        Array([ 4, 60], dtype=int8)
    """
    return shift_right_logical_p.bind(*operands(x, y))


def _upper_half_of_product(x: Array, y: Array) -> Any:
    # By halves of the digits, as on paper.  XLA:CPU compiles its own operation only unfused.
    dtype = aval_of(x).dtype
    half = dtypes.bit_width(dtype) // 2
    is_signed = dtypes.issubdtype(dtype, np.signedinteger)
    shift_right = shift_right_arithmetic if is_signed else shift_right_logical

    def low(z: Array) -> Any:
        return bitwise_and(z, 2**half - 1)

    def high(z: Array) -> Any:
        return shift_right(z, half)

    lowest = mul(low(x), low(y))
    middle = add(mul(high(x), low(y)), shift_right_logical(lowest, half))
    carried = add(low(middle), mul(low(x), high(y)))
    return add(mul(high(x), high(y)), add(high(middle), high(carried)))


def _lower_mulhi(ctx: LoweringContext, x: Value, y: Value) -> Any:
    ctx.avals_in = [ctx.avals_out[0]] * 2
    return module.lower_function(ctx, lambda x, y: [_upper_half_of_product(x, y)], x, y)[0]


mulhi_p = _on_bits("mulhi", _lower_mulhi, INTEGER)


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The high halves of the products of `x` and `y`, which are twice as wide.

    Shapes:     x: T[s], y: T[t] -> T[broadcast of s and t].
    Dtypes:     integer.
    Lowers to:  stablehlo.multiply of half as many digits, four times.

    Example:
        >>> lax.mulhi(jnp.uint8(200), jnp.uint8(200))
        Array(156, dtype=uint8)
        >>> 200 * 200 // 256
        156
    """
    return mulhi_p.bind(*operands(x, y))


class SelectN(Primitive):
    """Takes each element from the case that `which` names: False or 0 is the first one.

    Shapes: which: bool or integer[s] or [], cases: T[s] -> T[s].  Linear in the cases together.
    """

    name = "select_n"
    shard = rules.elementwise

    @result_types.function
    def abstract_eval(self, which: ShapedArray, *cases: ShapedArray) -> ShapedArray:
        first = cases[0]
        if any(case.dtype != first.dtype or case.shape != first.shape for case in cases):
            check_same_dtype("select", **_named(cases))
            error(TypeError, "lax.select", "the cases have different shapes.", got=_named(cases))
        check_dtype("select", "which", which, BITS)
        if which.dtype == dtypes.bool_ and len(cases) > 2:
            problem = f"a boolean cannot choose among {len(cases)} cases."
            expected = "an integer `which`"
            error(TypeError, "lax.select_n", problem, got={"which": which}, expected=expected)
        if which.shape and which.shape != first.shape:
            problem = "the predicate does not fit the cases."
            got = {"which": which, "cases": first}
            expected = "a scalar, or the shape of the cases"
            fix = "minijax.numpy.where, which broadcasts"
            error(TypeError, "lax.select", problem, got=got, expected=expected, fix=fix)
        return shaped_array(first.shape, first.dtype, all(case.weak_type for case in cases))

    def lower(self, ctx: LoweringContext, which: Value, *cases: Value) -> Any:
        aval = ctx.avals_in[0]
        if aval.dtype == dtypes.bool_:
            return ctx.op("stablehlo.select", [which, *reversed(cases)]) if cases[1:] else cases[0]

        # A binary search, so that each element passes through few comparisons.
        def choose(first: int, last: int) -> Any:
            if first == last:
                return cases[first]
            middle = (first + last + 1) // 2
            bound = ctx.full(aval.shape, middle, aval.dtype)
            return ctx.op(
                "stablehlo.select",
                [
                    ctx.compare("LT", which, bound, aval),
                    choose(first, middle - 1),
                    choose(middle, last),
                ],
            )

        return choose(0, len(cases) - 1)

    def jvp(self, primals: Values, tangents: Tangents) -> Dual:
        out = self.bind(*primals)
        return out, self.bind(primals[0], *map(structural.instantiate, tangents[1:]))

    def transpose(self, ct: Array, which: Array, *cases: Any) -> Cotangents:
        nothing = structural.zeros(aval_of(ct))

        def cotangent(i: int) -> Any:
            return self.bind(which, *(ct if i == j else nothing for j in range(len(cases))))

        return None, *(cotangent(i) if is_linear(x) else None for i, x in enumerate(cases))

    def batch(self, size: int, args: Values, dims: BatchDims) -> Batched:
        (which, *cases), (which_dim, *case_dims) = args, dims
        dim = next((d for d in case_dims if d is not None), 0)
        cases = structural.to_batch_dims(cases, case_dims, dim, size)
        is_scalar = aval_of(which).ndim == (which_dim is not None)
        if not is_scalar:
            which = structural.to_batch_dim(which, which_dim, dim, size)
        elif which_dim is not None:
            which = structural.broadcast_in_dim(which, aval_of(cases[0]).shape, (dim,))
        return self.bind(which, *cases), dim


vma.linear_in.set(((1, ...),), SelectN)


def _named(cases: Sequence[ShapedArray]) -> dict[str, ShapedArray]:
    return {f"case {i}": case for i, case in enumerate(cases)}


select_n_p = SelectN()


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Selects each element from the case that `which` names.

    Args:
        which: booleans for two cases (False is the first), or indices of cases.
        cases: the arrays to choose from.

    Shapes:     which: bool or integer[s] or [], cases: T[s] -> T[s].
    Derivative: linear in the cases together.
    Lowers to:  stablehlo.select.

    Raises:
        ValueError: there are no cases.
        TypeError: cases differ in shape or dtype, or `which` does not fit them.

    Example:
        >>> lax.select_n(jnp.array([2, 0, 1]), jnp.zeros(3), jnp.ones(3), jnp.full(3, 2.0))
        Array([2., 0., 1.], dtype=float32)
    """
    if not cases:
        error(ValueError, "lax.select_n", "there must be at least one case.")
    return select_n_p.bind(operand(which), *operands(*cases))


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Selects elements of `on_true` where `pred` holds, else of `on_false`.

    Shapes:     pred: bool[s] or bool[], on_true: T[s], on_false: T[s] -> T[s].
    Derivative: linear in both cases together.
    Lowers to:  stablehlo.select.

    Raises:
        TypeError: the cases differ in shape or dtype, or `pred` does not fit them.

    Example:
        >>> lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([10, 20]))
        Array([ 1, 20], dtype=int32)
    """
    return select_n(pred, on_false, on_true)


def _moved_between(minimum: Array, x: Array, maximum: Array) -> list[Any]:
    return [min(max(x, minimum), maximum)]


class Clamp(Primitive):
    """Moves each element into the bounds: min(max(x, min), max).

    Shapes: min: T[s] or T[], x: T[s], max: T[s] or T[] -> T[s].
    """

    name = "clamp"
    shard = rules.elementwise

    @result_types.function
    def abstract_eval(
        self, minimum: ShapedArray, x: ShapedArray, maximum: ShapedArray
    ) -> ShapedArray:
        bounds = {"min": minimum, "x": x, "max": maximum}
        check_same_dtype("clamp", **bounds)
        check_dtype("clamp", "x", x, ANY)
        if any(bound.shape not in ((), x.shape) for bound in (minimum, maximum)):
            problem = "the bounds do not fit the operand."
            expected = "scalars, or bounds of the operand's shape"
            error(TypeError, "lax.clamp", problem, got=bounds, expected=expected)
        weak = minimum.weak_type and x.weak_type and maximum.weak_type
        return shaped_array(x.shape, x.dtype, weak)

    def lower(self, ctx: LoweringContext, minimum: Value, x: Value, maximum: Value) -> Any:
        if ctx.avals_out[0].dtype.kind in "bc":
            # XLA knows no clamp of them.
            return lower_function(ctx, _moved_between, minimum, x, maximum)[0]
        return ctx.op("stablehlo.clamp", [minimum, x, maximum])

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Any]) -> Dual:
        minimum, x, maximum = primals
        out = self.bind(*primals)
        # Where each argument decides the result; on a bound, neither it nor x does.
        masks: tuple[Callable[[], Any], ...] = (
            lambda: bitwise_and(gt(minimum, x), lt(minimum, maximum)),
            lambda: bitwise_and(gt(x, minimum), lt(x, maximum)),
            lambda: gt(x, maximum),
        )
        total: Any = Zero.like(out)
        nothing = structural.zeros(total.aval)
        for tangent, mask in zip(tangents, masks, strict=True):
            if type(tangent) is not Zero:
                part = select(mask(), broadcast_to(tangent, out), nothing)
                total = structural.add_tangents(total, part)
        return out, total

    def batch(self, size: int, args: Values, dims: BatchDims) -> Batched:
        dim = 0 if dims[1] is None else dims[1]
        x = structural.to_batch_dim(args[1], dims[1], dim, size)
        shape = aval_of(x).shape

        def bound(value: Any, value_dim: int | None) -> Any:
            if aval_of(value).ndim > (value_dim is not None):
                return structural.to_batch_dim(value, value_dim, dim, size)
            return value if value_dim is None else structural.broadcast_in_dim(value, shape, (dim,))

        return self.bind(bound(args[0], dims[0]), x, bound(args[2], dims[2])), dim


clamp_p = Clamp()


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """Limits each element of `x` to the range from `min` to `max`.

    Shapes:     min: T[s] or T[], x: T[s], max: T[s] or T[] -> T[s].
    Dtypes:     any.
    Derivative: that of x between the bounds, that of the bound beyond one; zero on a bound.
    Lowers to:  stablehlo.clamp.

    Raises:
        TypeError: the dtypes differ, or a bound fits neither a scalar nor the shape of x.

    Example:
        >>> lax.clamp(0, jnp.array([-5, 5, 15]), 10)
        Array([ 0,  5, 10], dtype=int32)
    """
    return clamp_p.bind(*operands(min, x, max))
