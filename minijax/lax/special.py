"""Special functions: error, gamma, beta, zeta and Bessel functions.  All are elementwise.

The regularized incomplete beta function is computed by iteration: its steps are written with
functions of `lax`, and become a `stablehlo.while` that runs until every element has converged.  The
incomplete gamma functions are in `incomplete_gamma.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from minijax.core import deferral, dtypes
from minijax.core.aval import Shape, ShapedArray, aval_of, shaped_array
from minijax.core.cache import Cache
from minijax.core.errors import error
from minijax.core.primitive import Dual, Primitive, Zero
from minijax.interpreters.structural import full
from minijax.lax import binary, families, unary
from minijax.lax.binary import add, div, eq, ge, gt, le, lt, mul, select, sub
from minijax.lax.families import operand, operands
from minijax.lax.reduction import reduce_or
from minijax.lax.unary import abs, exp, log, neg, square
from minijax.lowering import module
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.sharding import rules

json = deferral.module("json")

_State = TypeVar("_State", bound=tuple[Any, ...])


def full_like(x: ArrayLike, value: Any, shape: Shape | None = None) -> Any:
    """Returns an array of one repeated number, with the dtype of `x`, and its shape by default."""
    aval = aval_of(x)
    return full(aval.shape if shape is None else shape, value, aval.dtype)


def epsilon(x: ArrayLike) -> float:
    """The relative precision of the dtype of `x`."""
    return float(dtypes.finfo(aval_of(x).dtype).eps)


class Computation:
    """Lowers an elementwise function of floats in parts, each written with functions of `lax`.

    Numbers narrower than float32 are computed with as float32.
    """

    def __init__(self, ctx: LoweringContext, values: Sequence[Any]) -> None:
        (out,) = ctx.avals_out
        self.ctx = ctx
        self.out = out
        dtype = dtypes.float32 if dtypes.bit_width(out.dtype) < 32 else out.dtype
        self.aval = shaped_array(out.shape, dtype)
        self.values = [self._converted(x, dtype) for x in values]

    def _converted(self, x: Any, dtype: np.dtype[Any]) -> Any:
        return (
            x if self.out.dtype == self.aval.dtype else self.ctx.convert(x, self.out.shape, dtype)
        )

    def apply(self, function: Callable[..., Sequence[Any]], *values: Any) -> list[Any]:
        """The results of `function` on values of the type computed with."""
        return self._lower(self.ctx, function, [self.aval] * len(values), values)

    def result(self, x: Array) -> Any:
        """A value of the type computed with, as the equation's result."""
        return self._converted(x, self.out.dtype)

    def iterate(
        self,
        step: Callable[[Any, _State], tuple[Any, _State]],
        state: _State,
        most_steps: float = 2000.0,
    ) -> _State:
        """Replaces `state` by `step(n, state)` for n = 1, 2, … until every element converges.

        Args:
            step: returns which elements still change, and the new state; elements that have
                converged keep theirs.
            state: a named tuple.
            most_steps: after how many steps to give up.
        """
        as_state: Callable[..., _State] = type(state)
        count = shaped_array((), self.aval.dtype)
        mask = shaped_array(self.out.shape, dtypes.bool_)
        avals = [count, mask, *[self.aval] * len(state)]
        axes = tuple(range(len(self.out.shape)))

        def condition(n: Array, active: Array, *_: Any) -> Sequence[Any]:
            return [binary.bitwise_and(le(n, most_steps), reduce_or(active, axes))]

        def body(n: Array, active: Array, *old: Any) -> Sequence[Any]:
            changes, new = step(n, as_state(*old))
            kept = [select(active, x, before) for x, before in zip(new, old, strict=True)]
            return [add(n, 1.0), binary.bitwise_and(active, changes), *kept]

        ctx = self.ctx
        _, _, *final = ctx.loop(
            [ctx.constant(1.0, count.dtype), ctx.full(mask.shape, True, np.bool_), *state],
            lambda ctx, *args: self._lower(ctx, condition, avals, args),
            lambda ctx, *args: self._lower(ctx, body, avals, args),
        )
        return as_state(*final)

    @staticmethod
    def _lower(
        ctx: LoweringContext,
        function: Callable[..., Sequence[Any]],
        avals: Sequence[ShapedArray],
        values: Sequence[Any],
    ) -> list[Any]:
        ctx.avals_in = avals
        return module.lower_function(ctx, function, *values)


erf_p = families.Unary(
    "erf",
    "chlo.erf",
    accepts=families.FLOAT,
    derivative=lambda x, y: mul(exp(neg(square(x))), 2 / math.sqrt(math.pi)),
    total=True,
)


def erf(x: ArrayLike) -> Array:
    """The error function `2/√π ∫₀ˣ exp(-t²) dt`.

    Dtypes:     floating.
    Derivative: 2/√π exp(-x²).
    Lowers to:  chlo.erf.

    Example:
        >>> lax.erf(jnp.array([0.0, jnp.inf]))
        Array([0., 1.], dtype=float32)
    """
    return erf_p.bind(operand(x))


erfc_p = families.Unary(
    "erfc",
    "chlo.erfc",
    accepts=families.FLOAT,
    derivative=lambda x, y: mul(exp(neg(square(x))), -2 / math.sqrt(math.pi)),
    total=True,
)


def erfc(x: ArrayLike) -> Array:
    """The complementary error function, `1 - erf x`, exact also where that is small.

    Dtypes:     floating.
    Derivative: -2/√π exp(-x²).
    Lowers to:  chlo.erfc.

    Example:
        >>> lax.erfc(jnp.array([0.0, -jnp.inf]))
        Array([1., 2.], dtype=float32)
        >>> lax.erfc(jnp.float32(5)) > 0, 1 - lax.erf(jnp.float32(5)) > 0
        (Array(True, dtype=bool), Array(False, dtype=bool))
    """
    return erfc_p.bind(operand(x))


erf_inv_p = families.Unary(
    "erf_inv",
    "chlo.erf_inv",
    accepts=families.FLOAT,
    derivative=lambda x, y: mul(exp(square(y)), math.sqrt(math.pi) / 2),
)


def erf_inv(x: ArrayLike) -> Array:
    """The inverse error function, infinite at ±1.

    Dtypes:     floating.
    Derivative: √π/2 exp(y²), where y is the result.
    Lowers to:  chlo.erf_inv.

    Example:
        >>> lax.erf_inv(jnp.array([0.0, 1.0, 2.0]))
        Array([ 0., inf, nan], dtype=float32)
    """
    return erf_inv_p.bind(operand(x))


lgamma_p = families.Unary(
    "lgamma", "chlo.lgamma", accepts=families.FLOAT, derivative=lambda x, y: digamma(x)
)


def lgamma(x: ArrayLike) -> Array:
    """The logarithm of the absolute value of the gamma function, `ln |Γ(x)|`.

    Dtypes:     floating.
    Derivative: digamma.
    Lowers to:  chlo.lgamma.

    Example:
        >>> jnp.exp(lax.lgamma(jnp.array([1.0, 5.0]))).round(2)
        Array([ 1., 24.], dtype=float32)
    """
    return lgamma_p.bind(operand(x))


digamma_p = families.Unary(
    "digamma",
    "chlo.digamma",
    accepts=families.FLOAT,
    derivative=lambda x, y: polygamma(full_like(x, 1.0), x),
)


def digamma(x: ArrayLike) -> Array:
    """The digamma function, the derivative of `lgamma`.

    Dtypes:     floating.
    Derivative: polygamma(1, x).
    Lowers to:  chlo.digamma.

    Example:
        >>> (lax.digamma(jnp.array([3.0])) - lax.digamma(jnp.array([2.0]))).round(4)
        Array([0.5], dtype=float32)
    """
    return digamma_p.bind(operand(x))


def _no_derivative(name: str, arguments: str) -> NoReturn:
    problem = f"the derivative with respect to {arguments} is not known."
    fix = "hold it constant with lax.stop_gradient, or use custom_jvp"
    error(ValueError, f"lax.{name}", problem, fix=fix)


polygamma_p = families.Binary(
    "polygamma",
    "chlo.polygamma",
    accepts=families.FLOAT,
    derivatives=(
        lambda g, m, x, out: _no_derivative("polygamma", "m"),
        lambda g, m, x, out: mul(g, polygamma(add(m, 1.0), x)),
    ),
)


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """The polygamma function of order m: the m-th derivative of `digamma` at x.

    Shapes:     m: T[s], x: T[t] -> T[broadcast of s and t].
    Dtypes:     floating.
    Derivative: polygamma(m + 1, x) by x.
    Lowers to:  chlo.polygamma.

    Raises:
        ValueError: it is differentiated with respect to m.

    Example:
        >>> (6 * lax.polygamma(1.0, jnp.array([1.0])) / jnp.pi**2).round(4)
        Array([1.], dtype=float32)
    """
    return polygamma_p.bind(*operands(m, x))


zeta_p = families.Binary("zeta", "chlo.zeta", accepts=families.FLOAT, derivatives=None)


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """The Hurwitz zeta function: the sum of `1 / (k + q)ˣ` over all integers k from 0 on.

    Shapes:     x: T[s], q: T[t] -> T[broadcast of s and t].
    Dtypes:     floating.
    Derivative: none.
    Lowers to:  chlo.zeta.

    Example:
        >>> (6 * lax.zeta(2.0, jnp.array([1.0])) / jnp.pi**2).round(4)
        Array([1.], dtype=float32)
    """
    return zeta_p.bind(*operands(x, q))


_series = Cache("Chebyshev series", "series of special functions", key="their names")


@_series.function
def _coefficients_of(name: str) -> list[float]:
    """The coefficients of a series of `chebyshev.json`.

    There each has the function and the variable that it is of; the coefficients were computed to 40
    digits or more by interpolation.
    """
    series = json.loads(Path(__file__).with_name("chebyshev.json").read_text(encoding="utf-8"))
    coefficients: list[float] = series[name]["coefficients"]
    return coefficients


def chebyshev(t: Array, name: str) -> Any:
    """A series of `chebyshev.json`, `c₀/2 + Σ cₖ Tₖ(t)`, as far as the dtype can tell.

    It is summed by Clenshaw's recurrence.
    """
    coefficients = _coefficients_of(name)
    needed = np.flatnonzero(np.abs(coefficients) > epsilon(t) / 8 * np.abs(coefficients[0]))
    last = int(needed[-1])
    twice = mul(t, 2.0)
    total, before = full_like(t, coefficients[last]), full_like(t, 0.0)
    for c in reversed(coefficients[1:last]):
        total, before = add(sub(mul(twice, total), before), c), total
    return add(sub(mul(t, total), before), coefficients[0] / 2)


def _bessel_i0e(x: Array) -> Sequence[Any]:
    x = abs(x)
    near = chebyshev(sub(mul(binary.min(x, 8.0), 0.25), 1.0), "I0e near")
    far = chebyshev(sub(div(16.0, binary.max(x, 8.0)), 1.0), "I0e far")
    return [select(le(x, 8.0), near, mul(far, unary.rsqrt(x)))]


def _lower_bessel_i0e(ctx: LoweringContext, x: Value) -> Any:
    computation = Computation(ctx, [x])
    return computation.result(*computation.apply(_bessel_i0e, *computation.values))


bessel_i0e_p = families.Unary(
    "bessel_i0e",
    _lower_bessel_i0e,
    accepts=families.FLOAT,
    derivative=lambda x, y: sub(bessel_i1e(x), mul(unary.sign(x), y)),
)


def bessel_i0e(x: ArrayLike) -> Array:
    """The exponentially scaled modified Bessel function of order 0: `e^-|x| I₀(x)`.

    Dtypes:     floating.
    Derivative: bessel_i1e(x) - sign(x) y, where y is the result.
    Lowers to:  a Chebyshev series.

    Example:
        >>> lax.bessel_i0e(jnp.array([0.0, jnp.inf])).round(4)
        Array([1., 0.], dtype=float32)
    """
    return bessel_i0e_p.bind(operand(x))


def _derivative_of_bessel_i1e(x: Array, y: Array) -> Any:
    near_zero = le(abs(x), epsilon(x))
    safe = select(near_zero, full_like(x, 1.0), x)
    slope = sub(bessel_i0e(safe), mul(y, add(unary.sign(safe), unary.reciprocal(safe))))
    return select(near_zero, full_like(x, 0.5), slope)


bessel_i1e_p = families.Unary(
    "bessel_i1e", "chlo.bessel_i1e", accepts=families.FLOAT, derivative=_derivative_of_bessel_i1e
)


def bessel_i1e(x: ArrayLike) -> Array:
    """The exponentially scaled modified Bessel function of order 1: `e^-|x| I₁(x)`.

    Dtypes:     floating.
    Derivative: bessel_i0e(x) - (sign(x) + 1/x) y, where y is the result.
    Lowers to:  chlo.bessel_i1e.

    Example:
        >>> lax.bessel_i1e(jnp.array([0.0]))
        Array([0.], dtype=float32)
    """
    return bessel_i1e_p.bind(operand(x))


class _BetaFraction(NamedTuple):
    """The state of Lentz's method: the fraction, and ratios of successive convergents."""

    a: Any
    b: Any
    x: Any
    c: Any
    d: Any
    value: Any


def _beta_start(a: Array, b: Array, x: Array) -> _BetaFraction:
    one = full_like(x, 1.0)
    d = unary.reciprocal(_off_zero(sub(1.0, div(mul(add(a, b), x), add(a, 1.0)))))
    return _BetaFraction(a, b, x, one, d, d)


def _beta_step(m: Array, s: _BetaFraction) -> tuple[Any, _BetaFraction]:
    a, b, x, c, d, value = s
    a_2m = add(a, mul(m, 2.0))
    even = div(mul(mul(m, sub(b, m)), x), mul(sub(a_2m, 1.0), a_2m))
    odd = neg(div(mul(mul(add(a, m), add(add(a, b), m)), x), mul(a_2m, add(a_2m, 1.0))))
    for coefficient in (even, odd):
        d = unary.reciprocal(_off_zero(add(mul(coefficient, d), 1.0)))
        c = _off_zero(add(div(coefficient, c), 1.0))
        factor = mul(c, d)
        value = mul(value, factor)
    changes = gt(abs(sub(factor, 1.0)), epsilon(x))
    return changes, _BetaFraction(a, b, x, c, d, value)


def _off_zero(x: Array) -> Any:
    tiny = float(np.finfo(np.float32).tiny)
    return select(lt(abs(x), tiny), full_like(x, tiny), x)


def _log_beta(a: Array, b: Array) -> Any:
    return sub(add(lgamma(a), lgamma(b)), lgamma(add(a, b)))


class RegularizedIncompleteBeta(Primitive):
    """The regularized incomplete beta function, by a continued fraction.

    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.5.8.

    Shapes: a: T[r], b: T[s], x: T[t] -> T[broadcast of r, s and t].
    """

    name = "regularized_incomplete_beta"
    shard = rules.elementwise
    batch = families.batch_elementwise

    def abstract_eval(self, a: ShapedArray, b: ShapedArray, x: ShapedArray) -> ShapedArray:
        families.check_same_dtype("betainc", a=a, b=b, x=x)
        families.check_dtype("betainc", "x", x, families.FLOAT)
        shape = families.broadcast_shape("betainc", a=a, b=b, x=x)
        return shaped_array(shape, x.dtype, a.weak_type and b.weak_type and x.weak_type)

    def lower(self, ctx: LoweringContext, a: Value, b: Value, x: Value) -> Any:
        computation = Computation(ctx, families.broadcast_operands(ctx, (a, b, x)))

        # The fraction converges fast for small x; I(a, b, x) = 1 - I(b, a, 1 - x).
        def swaps(a: Array, b: Array, x: Array) -> Any:
            return gt(x, div(add(a, 1.0), add(add(a, b), 2.0)))

        def start(a: Array, b: Array, x: Array) -> Sequence[Any]:
            swap = swaps(a, b, x)
            return _beta_start(select(swap, b, a), select(swap, a, b), select(swap, sub(1.0, x), x))

        def finish(a0: Array, b0: Array, x0: Array, *state: Any) -> Sequence[Any]:
            a, b, x, _, _, value = state
            log_weight = sub(
                add(mul(a, log(x)), mul(b, unary.log1p(neg(x)))), add(log(a), _log_beta(a, b))
            )
            result = mul(exp(log_weight), value)
            result = select(swaps(a0, b0, x0), sub(1.0, result), result)
            return [_beta_within_domain(a0, b0, x0, result)]

        fraction = _BetaFraction(*computation.apply(start, *computation.values))
        fraction = computation.iterate(_beta_step, fraction)
        return computation.result(*computation.apply(finish, *computation.values, *fraction))

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Any]) -> Dual:
        a, b, x = primals
        out = self.bind(a, b, x)
        if not all(type(t) is Zero for t in tangents[:2]):
            _no_derivative("betainc", "a and b")
        if type(tangents[2]) is Zero:
            return out, Zero.like(out)
        powers = add(mul(sub(a, 1.0), log(x)), mul(sub(b, 1.0), unary.log1p(neg(x))))
        density = exp(sub(powers, _log_beta(a, b)))
        return out, families.broadcast_to(mul(tangents[2], density), out)


def _beta_within_domain(a: Array, b: Array, x: Array, result: Array) -> Any:
    # All mass is at 0 or at 1 where a parameter is zero or infinite.
    at_one = binary.bitwise_or(eq(a, np.inf), eq(b, 0.0))
    at_zero = binary.bitwise_or(eq(b, np.inf), eq(a, 0.0))
    low = binary.bitwise_or(eq(x, 0.0), binary.bitwise_and(at_one, lt(x, 1.0)))
    high = binary.bitwise_or(eq(x, 1.0), binary.bitwise_and(at_zero, gt(x, 0.0)))
    result = select(low, full_like(x, 0.0), select(high, full_like(x, 1.0), result))
    # Comparisons that NaN fails.
    within = binary.bitwise_and(ge(x, 0.0), le(x, 1.0))
    valid = binary.bitwise_and(ge(a, 0.0), ge(b, 0.0))
    within = binary.bitwise_and(
        within, binary.bitwise_and(valid, unary.bitwise_not(binary.bitwise_and(at_zero, at_one)))
    )
    return select(within, result, full_like(x, np.nan))


regularized_incomplete_beta_p = RegularizedIncompleteBeta()


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function `∫₀ˣ tᵃ⁻¹ (1 - t)ᵇ⁻¹ dt / B(a, b)`.

    Shapes:     a: T[r], b: T[s], x: T[t] -> T[broadcast of r, s and t].
    Dtypes:     floating.
    Derivative: xᵃ⁻¹ (1 - x)ᵇ⁻¹ / B(a, b) by x.
    Lowers to:  stablehlo.while.

    Raises:
        ValueError: it is differentiated with respect to a or b.

    Example:
        >>> lax.betainc(2.0, 2.0, jnp.array([0.0, 0.5, 1.0])).round(4)
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return regularized_incomplete_beta_p.bind(*operands(a, b, x))
