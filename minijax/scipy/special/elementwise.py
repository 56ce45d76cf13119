"""Special functions that are one operation each, and what all functions do to their arguments.

Input: formulas, written with functions of `lax`.  Output: primitives, so that a program shows one
equation for each function however long its formula is, and derivatives are those of mathematics,
not those of a series that was cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import ShapedArray, aval_of, shaped_array
from minijax.core.errors import error
from minijax.core.primitive import Primitive
from minijax.interpreters.structural import add_tangents
from minijax.interpreters.tangents import Zero
from minijax.lax import families
from minijax.lax.binary import add, mul, sub
from minijax.lax.convert import convert_element_type
from minijax.lax.special import Computation, epsilon
from minijax.numpy import creation, promotion
from minijax.sharding import rules

Slope = Callable[..., Any]

_PLAIN = frozenset({dtypes.float32, dtypes.float64})


class Elementwise(Primitive):
    """A function of real numbers, applied to each element.

    It is computed in float32 or wider, and rounded once to narrower dtypes.

    Shapes: T[s], T[t], ... -> T[broadcast of s, t, ...].

    Args:
        name: the primitive's name.
        compute: the formula, of values of float32 or float64 and of one shape.
        slopes: for each argument, `(*args, out) -> d out / d argument`; None where none is known.
        accepts: kinds of dtypes it takes.
    """

    fault_flow = "elementwise"
    shard = rules.elementwise

    def __init__(
        self,
        name: str,
        compute: Callable[..., Any],
        *slopes: Slope | None,
        accepts: families.Kinds = families.FLOAT,
    ) -> None:
        super().__init__(name)
        self.compute = compute
        self.slopes = slopes
        self.accepts = accepts

    def abstract_eval(self, *args: ShapedArray) -> ShapedArray:
        named = {f"x{i}": x for i, x in enumerate(args)}
        families.check_same_dtype(self.name, **named)
        families.check_dtype(self.name, "x", args[0], self.accepts)
        shape = families.broadcast_shape(self.name, **named)
        return shaped_array(shape, args[0].dtype, all(x.weak_type for x in args))

    def lower(self, ctx: Any, *args: Any) -> Any:
        computation = Computation(ctx, families.broadcast_operands(ctx, args))
        (result,) = computation.apply(lambda *xs: [self.compute(*xs)], *computation.values)
        return computation.result(result)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        out = self.bind(*primals)
        total: Any = Zero.like(out)
        wide = [_widened(x) for x in (*primals, out)]
        for i, (tangent, slope) in enumerate(zip(tangents, self.slopes, strict=True)):
            if type(tangent) is Zero:
                continue
            if slope is None:
                error(
                    ValueError,
                    f"scipy.special.{self.name}",
                    f"the derivative with respect to argument {i} is not known.",
                    fix="hold it constant with lax.stop_gradient, or use custom_jvp",
                )
            change = convert_element_type(slope(*wide), aval_of(out).dtype)
            change = families.broadcast_to(mul(tangent, change), out)
            total = add_tangents(total, change)
        return out, total

    def batch(self, size: int, args: Sequence[Any], dims: Sequence[Any]) -> tuple[Any, int]:
        aligned, dim = families.align_batched(args, dims)
        return self.bind(*aligned), dim


def _widened(x: Any) -> Any:
    narrow = dtypes.bit_width(aval_of(x).dtype) < 32
    return convert_element_type(x, dtypes.float32) if narrow else x


def real_operands(
    name: str, exception: type[Exception] = TypeError, /, **arguments: Any
) -> Sequence[Any]:
    """Arguments of a public function as real floats of one dtype and of one rank.

    Args:
        name: the function, of `scipy.special` unless it says where it lives.
        exception: what JAX raises for complex numbers.
        arguments: by their names.
    """
    name = name if "." in name else f"scipy.special.{name}"
    arrays = list(arguments.values())
    if len(arrays) == 1:
        arrays = [promotion.inexact(name, arrays[0])]
    else:
        arrays = promotion.promote_all_inexact(name, *arrays)
    if dtypes.issubdtype(aval_of(arrays[0]).dtype, np.complexfloating):
        error(
            exception,
            name,
            "complex numbers are not accepted.",
            got={k: aval_of(promotion.check_array(name, x)) for k, x in arguments.items()},
            expected="real arrays",
            fix="numpy.real, numpy.imag or numpy.abs first",
        )
    return arrays


def plain_operand(name: str, argument: str, x: Any) -> Any:
    """The argument of a function of float32 and float64 alone; lists count as arrays.

    Raises:
        TypeError: it is of another dtype.
    """
    x = creation.asarray(x)
    if aval_of(x).dtype not in _PLAIN:
        error(
            TypeError,
            f"scipy.special.{name}",
            "only float32 and float64 are accepted.",
            got={argument: aval_of(x)},
            fix=f"{argument}.astype('float32')",
        )
    return promotion.strong(x)


def number_like(value: complex, like: Any) -> Any:
    """A number of the dtype of `like`."""
    return aval_of(like).dtype.type(value)


def chebyshev(t: Any, coefficients: Sequence[float]) -> Any:
    """The series `c₀/2 + Σ cₖ Tₖ(t)` by Clenshaw's recurrence, as far as the dtype can tell."""
    needed = np.flatnonzero(np.abs(coefficients) > epsilon(t) / 8 * abs(coefficients[0]))
    last = int(needed[-1])
    twice = mul(t, 2.0)
    total: Any = coefficients[last]
    before: Any = 0.0
    for c in reversed(coefficients[1:last]):
        total, before = add(sub(mul(twice, total), before), c), total
    return add(sub(mul(t, total), before), coefficients[0] / 2)


def polynomial(x: Any, *coefficients: float) -> Any:
    """`c₀ + c₁ x + c₂ x² + ...` by Horner's rule."""
    *lower, highest = coefficients
    total: Any = highest
    for c in reversed(lower):
        total = add(mul(x, total), c)
    return total
