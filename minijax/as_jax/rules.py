"""Rules of users' primitives in forms of JAX that `minijax.extend` does not have.

Input: what packages register.  Output: rules of the primitives, as `extend.declaration` sets them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from minijax.as_jax.functions import WrappedFun
from minijax.core.aval import AbstractValue, aval_of
from minijax.core.errors import error
from minijax.core.operators import BatchDims, Values
from minijax.core.primitive import Primitive, Tangents, Zero
from minijax.extend import declaration
from minijax.interpreters import structural
from minijax.interpreters.batching import kind_in_force
from minijax.interpreters.jvp import is_linear, jvp_flat
from minijax.lax import callbacks, shape
from minijax.lowering import stablehlo
from minijax.lowering.stablehlo import LoweringContext
from minijax.runtime.array import Array

Rule = Callable[..., Any]


def _with_axis(rule: Rule) -> Rule:
    def batch(size: int, args: Values, dims: BatchDims, **params: Any) -> Any:
        kind = kind_in_force.value
        name = None if kind is None else kind.axis_name
        return rule(size, name, None, tuple(args), tuple(dims), **params)

    return batch


axis_primitive_batchers = declaration.RuleTable("batch", _with_axis)
"""Rules for batches: `rule(size, axis name, None, args, dims, **params)`."""


def deflinear(primitive: Primitive, transpose: Rule) -> None:
    """Says that a primitive is linear; `transpose(ct, **params)` gives the cotangents."""
    declaration.deflinear2(primitive, lambda ct, *_, **params: transpose(ct, **params))


def defbilinear(primitive: Primitive, lhs_rule: Rule, rhs_rule: Rule) -> None:
    """Says that a primitive is linear in each of its two arguments.

    Args:
        primitive: an operation with one result.
        lhs_rule: `(ct, x, y, **params)`, the cotangent of x, an `UndefinedPrimal`.
        rhs_rule: the same of y.
    """

    def transpose(ct: Any, x: Any, y: Any, **params: Any) -> tuple[Any, Any]:
        if is_linear(x):
            return lhs_rule(ct, x, y, **params), None
        return None, rhs_rule(ct, x, y, **params)

    declaration.defjvp(
        primitive,
        lambda t, x, y, **params: primitive.bind(t, y, **params),
        lambda t, x, y, **params: primitive.bind(x, t, **params),
    )
    declaration.primitive_transposes[primitive] = transpose


def defjvp2(primitive: Primitive, *rules: Rule | None) -> None:
    """As `extend.ad.defjvp`, by rules `(tangent, result, *primals, **params)`."""

    def jvp(primals: Values, tangents: Tangents, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        total: Any = Zero.like(out)
        for tangent, rule in zip(tangents, rules, strict=True):
            if type(tangent) is not Zero and rule is not None:
                total = structural.add_tangents(total, rule(tangent, out, *primals, **params))
        return out, total

    declaration.primitive_jvps[primitive] = jvp


def get_primitive_transpose(primitive: Primitive) -> Rule:
    """The transpose rule of a primitive.

    Raises:
        NotImplementedError: it has none.
    """
    if primitive not in declaration.primitive_transposes:
        error(NotImplementedError, primitive.name, "the primitive has no transpose rule.")
    return declaration.primitive_transposes[primitive]


def jvp(
    fun: WrappedFun, primals: Values, tangents: Tangents, has_aux: bool = False
) -> tuple[Any, Any]:
    """Results and tangents of a function of flat values."""
    return jvp_flat(fun.call_wrapped, primals, tangents, fun.__name__)


def defbroadcasting(primitive: Primitive) -> None:
    """Says that a primitive treats elements alike, after it has broadcast its arguments."""

    def batch(size: int, args: Sequence[Array], dims: BatchDims, **params: Any) -> Any:
        wide = max(np.ndim(x) - (d is not None) for x, d in zip(args, dims, strict=True))
        moved = [structural.to_batch_dim(x, d, 0, size) for x, d in zip(args, dims, strict=True)]
        shapes = [(size, *(1,) * (wide + 1 - np.ndim(x)), *np.shape(x)[1:]) for x in moved]
        return primitive.bind(*map(shape.reshape, moved, shapes), **params), 0

    declaration.fancy_primitive_batchers[primitive] = batch


def broadcast(x: Any, size: int, axis: int, mesh_axis: object = None) -> Any:
    """A value repeated along a new dimension."""
    return structural.new_axis(x, size, axis)


def emit_python_callback(
    ctx: LoweringContext,
    callback: Callable[..., Any],
    token: object,
    operands: Sequence[Any],
    operand_avals: Sequence[AbstractValue],
    result_avals: Sequence[AbstractValue],
    *,
    has_side_effect: bool,
    **_: object,
) -> tuple[Sequence[Any], Any, Any]:
    """Builds a call of a Python function, in the lowering rule of a primitive.

    Returns:
        The values of the results, the token, and what must live as long as the program: nothing
        that the program does not hold already.
    """
    effect = callbacks.io_effect if has_side_effect else None

    def flat(*args: Any) -> Sequence[Any]:
        return callback(*map(np.asarray, args)) or ()

    name = "extend.mlir.emit_python_callback"
    return callbacks.lower_call(ctx, name, flat, operands, operand_avals, effect), token, None


def ir_constant(value: object, **_: object) -> ir.Value[Any]:
    """A constant of the program that is being built."""
    array = np.asarray(value)
    built = stablehlo.dense(array)
    return ir.Operation.create(
        "stablehlo.constant",
        results=[stablehlo.type_of(aval_of(array))],
        attributes={"value": built},
    ).result


def aval_to_ir_types(aval: AbstractValue) -> tuple[ir.Type]:
    """The types of the values that stand for one of type `aval`: one."""
    return (stablehlo.type_of(aval),)
