"""Elementwise primitives that are computed by a formula.

A program shows one equation for each function, however long its formula is.  The derivatives are
given separately, since differentiating a series that is cut off would lose accuracy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core import dtypes
from minijax.core.aval import ShapedArray, aval_of, shaped_array
from minijax.core.errors import error
from minijax.core.operators import BatchDims, Values
from minijax.core.primitive import Batched, Dual, Primitive, Zero
from minijax.interpreters import checking
from minijax.interpreters.structural import add_tangents
from minijax.lax import families
from minijax.lax.binary import mul
from minijax.lax.creation import convert_element_type
from minijax.lax.special import Computation
from minijax.runtime.array import Array, array_from_host
from minijax.sharding import rules

Slope = Callable[..., Any]


class Elementwise(Primitive):
    """A function of real numbers, applied to each element.

    It is computed in float32 or wider, and rounded once to narrower dtypes.

    Shapes: T[s], T[t], ... -> T[broadcast of s, t, ...].

    Args:
        name: the primitive's name.
        compute: the formula, of values of float32 or float64 and of one shape.
        slopes: for each argument, `(*args, out) -> d out / d argument`; None where none is known.
        accepts: kinds of dtypes it takes.
        namespace: the public module that messages name before the primitive.
    """

    shard = rules.elementwise

    def __init__(
        self,
        name: str,
        compute: Callable[..., Any],
        *slopes: Slope | None,
        accepts: families.Kinds = families.FLOAT,
        namespace: str = "scipy.special",
    ) -> None:
        super().__init__(name)
        self.compute = compute
        self.slopes = slopes
        self.accepts = accepts
        self.namespace = namespace

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

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Any]) -> Dual:
        out = self.bind(*primals)
        total: Any = Zero.like(out)
        wide = [_widened(x) for x in (*primals, out)]
        for i, (tangent, slope) in enumerate(zip(tangents, self.slopes, strict=True)):
            if type(tangent) is Zero:
                continue
            if slope is None:
                problem = f"the derivative with respect to argument {i} is not known."
                fix = "hold it constant with lax.stop_gradient, or use custom_jvp"
                error(ValueError, f"{self.namespace}.{self.name}", problem, fix=fix)
            change = convert_element_type(slope(*wide), aval_of(out).dtype)
            change = families.broadcast_to(mul(tangent, change), out)
            total = add_tangents(total, change)
        return out, total

    def batch(self, size: int, args: Values, dims: BatchDims) -> Batched:
        aligned, dim = families.align_batched(args, dims)
        return self.bind(*aligned), dim


checking.fault_flow.set(checking.ELEMENTWISE, Elementwise)


def _widened(x: Array) -> Array:
    """An operand of a slope: an array, which operators apply to, of float32 or wider."""
    x = x if hasattr(x, "aval") else array_from_host(x)
    narrow = dtypes.bit_width(aval_of(x).dtype) < 32
    return convert_element_type(x, dtypes.float32) if narrow else x
