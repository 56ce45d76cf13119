"""Elementwise choices: by a predicate or index, and between bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core import dtypes, vma
from minijax.core.aval import ShapedArray, aval_of, result_types, shaped_array
from minijax.core.errors import error
from minijax.core.primitive import Primitive
from minijax.interpreters.jvp import Zero, is_linear
from minijax.interpreters.structural import (
    add_tangents,
    broadcast_in_dim,
    instantiate,
    to_batch_dim,
    zeros,
)
from minijax.lax.binary import bitwise_and, gt, lt, max, min
from minijax.lax.families import (
    ANY,
    BITS,
    broadcast_to,
    check_dtype,
    check_same_dtype,
    operand,
    operands,
)
from minijax.lowering.module import lower_function
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.sharding import rules


class SelectN(Primitive):
    """Takes each element from the case that `which` names: False or 0 is the first one.

    Shapes: which: bool or integer[s] or [], cases: T[s] -> T[s].  Linear in the cases together.
    """

    name = "select_n"
    shard = rules.elementwise

    def __init__(self) -> None:
        super().__init__()
        self._results: dict[tuple[ShapedArray, ...], ShapedArray] = result_types.table()

    def abstract_eval(self, *avals: ShapedArray) -> ShapedArray:
        found = self._results.get(avals)
        if found is None:
            found = self._results[avals] = self._checked(*avals)
        return found

    def _checked(self, which: ShapedArray, *cases: ShapedArray) -> ShapedArray:
        first = cases[0]
        if any(case.dtype != first.dtype or case.shape != first.shape for case in cases):
            check_same_dtype("select", **_named(cases))
            error(TypeError, "lax.select", "the cases have different shapes.", got=_named(cases))
        check_dtype("select", "which", which, BITS)
        if which.dtype == dtypes.bool_ and len(cases) > 2:
            error(
                TypeError,
                "lax.select_n",
                f"a boolean cannot choose among {len(cases)} cases.",
                got={"which": which},
                expected="an integer `which`",
            )
        if which.shape and which.shape != first.shape:
            error(
                TypeError,
                "lax.select",
                "the predicate does not fit the cases.",
                got={"which": which, "cases": first},
                expected="a scalar, or the shape of the cases",
                fix="minijax.numpy.where, which broadcasts",
            )
        return shaped_array(first.shape, first.dtype, all(case.weak_type for case in cases))

    def lower(self, ctx: Any, which: Any, *cases: Any) -> Any:
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

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        out = self.bind(*primals)
        which, dots = primals[0], tangents[1:]
        if all(type(dot) is Zero for dot in dots):
            return out, Zero.like(out)
        return out, self.bind(which, *map(instantiate, dots))

    def transpose(self, ct: Any, which: Any, *cases: Any) -> tuple[Any, ...]:
        nothing = zeros(aval_of(ct))

        def cotangent(i: int) -> Any:
            return self.bind(which, *(ct if i == j else nothing for j in range(len(cases))))

        return None, *(cotangent(i) if is_linear(x) else None for i, x in enumerate(cases))

    def batch(self, size: int, args: Sequence[Any], dims: Sequence[Any]) -> tuple[Any, int]:
        (which, *cases), (which_dim, *case_dims) = args, dims
        dim = next((d for d in case_dims if d is not None), 0)
        cases = [to_batch_dim(x, d, dim, size) for x, d in zip(cases, case_dims, strict=True)]
        is_scalar = aval_of(which).ndim == (which_dim is not None)
        if not is_scalar:
            which = to_batch_dim(which, which_dim, dim, size)
        elif which_dim is not None:
            which = broadcast_in_dim(which, aval_of(cases[0]).shape, (dim,))
        return self.bind(which, *cases), dim


vma.linear_in.set(((1, ...),), SelectN)


def _named(cases: Sequence[ShapedArray]) -> dict[str, ShapedArray]:
    return {f"case {i}": case for i, case in enumerate(cases)}


select_n_p = SelectN()


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Takes each element from the case that `which` names.

    Args:
        which: booleans for two cases (False is the first), or indices of cases.
        cases: the arrays to choose from.

    Shapes:     which: bool or integer[s] or [], cases: T[s] -> T[s].
    Derivative: linear in the cases together.
    Lowers to:  stablehlo.select.
    Source:     mirrors jax.lax.select_n.

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
    """Takes each element from `on_true` where `pred` holds, else from `on_false`.

    Shapes:     pred: bool[s] or bool[], on_true: T[s], on_false: T[s] -> T[s].
    Derivative: linear in both cases together.
    Lowers to:  stablehlo.select.
    Source:     mirrors jax.lax.select.

    Raises:
        TypeError: the cases differ in shape or dtype, or `pred` does not fit them.

    Example:
        >>> lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([10, 20]))
        Array([ 1, 20], dtype=int32)
    """
    return select_n(pred, on_false, on_true)


def _moved_between(minimum: Any, x: Any, maximum: Any) -> list[Any]:
    return [min(max(x, minimum), maximum)]


class Clamp(Primitive):
    """Moves each element into the bounds: min(max(x, min), max).

    Shapes: min: T[s] or T[], x: T[s], max: T[s] or T[] -> T[s].
    """

    name = "clamp"
    shard = rules.elementwise

    def __init__(self) -> None:
        super().__init__()
        self._results: dict[tuple[ShapedArray, ...], ShapedArray] = result_types.table()

    def abstract_eval(self, *avals: ShapedArray) -> ShapedArray:
        found = self._results.get(avals)
        if found is None:
            found = self._results[avals] = self._checked(*avals)
        return found

    def _checked(self, minimum: ShapedArray, x: ShapedArray, maximum: ShapedArray) -> ShapedArray:
        bounds = {"min": minimum, "x": x, "max": maximum}
        check_same_dtype("clamp", **bounds)
        check_dtype("clamp", "x", x, ANY)
        if any(bound.shape not in ((), x.shape) for bound in (minimum, maximum)):
            error(
                TypeError,
                "lax.clamp",
                "the bounds do not fit the operand.",
                got=bounds,
                expected="scalars, or bounds of the operand's shape",
            )
        weak = minimum.weak_type and x.weak_type and maximum.weak_type
        return shaped_array(x.shape, x.dtype, weak)

    def lower(self, ctx: Any, minimum: Any, x: Any, maximum: Any) -> Any:
        if ctx.avals_out[0].dtype.kind in "bc":
            # XLA knows no clamp of them.
            return lower_function(ctx, _moved_between, minimum, x, maximum)[0]
        return ctx.op("stablehlo.clamp", [minimum, x, maximum])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        minimum, x, maximum = primals
        out = self.bind(*primals)
        # Where each argument decides the result; on a bound, neither it nor x does.
        masks: tuple[Callable[[], Any], ...] = (
            lambda: bitwise_and(gt(minimum, x), lt(minimum, maximum)),
            lambda: bitwise_and(gt(x, minimum), lt(x, maximum)),
            lambda: gt(x, maximum),
        )
        total: Any = Zero.like(out)
        nothing = zeros(total.aval)
        for tangent, mask in zip(tangents, masks, strict=True):
            if type(tangent) is not Zero:
                part = select(mask(), broadcast_to(tangent, out), nothing)
                total = add_tangents(total, part)
        return out, total

    def batch(self, size: int, args: Sequence[Any], dims: Sequence[Any]) -> tuple[Any, int]:
        dim = 0 if dims[1] is None else dims[1]
        x = to_batch_dim(args[1], dims[1], dim, size)
        shape = aval_of(x).shape

        def bound(value: Any, value_dim: int | None) -> Any:
            if aval_of(value).ndim > (value_dim is not None):
                return to_batch_dim(value, value_dim, dim, size)
            return value if value_dim is None else broadcast_in_dim(value, shape, (dim,))

        return self.bind(bound(args[0], dims[0]), x, bound(args[2], dims[2])), dim


clamp_p = Clamp()


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """Moves each element of `x` into the range from `min` to `max`.

    Shapes:     min: T[s] or T[], x: T[s], max: T[s] or T[] -> T[s].
    Dtypes:     any.
    Derivative: that of x between the bounds, that of the bound beyond one; zero on a bound.
    Lowers to:  stablehlo.clamp.
    Source:     mirrors jax.lax.clamp.

    Raises:
        TypeError: the dtypes differ, or a bound fits neither a scalar nor the shape of x.

    Example:
        >>> lax.clamp(0, jnp.array([-5, 5, 15]), 10)
        Array([ 0,  5, 10], dtype=int32)
    """
    return clamp_p.bind(*operands(min, x, max))
