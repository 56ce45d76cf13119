"""Reductions by functions of the user: the generic `reduce`, and what its relatives share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes, tree
from minijax.core.aval import Shape, ShapedArray, aval_of, shaped_array
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr, Var
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Primitive
from minijax.core.trace import Tracer
from minijax.interpreters import staging, structural
from minijax.interpreters.batching import batch_flat
from minijax.interpreters.jvp import Zero, jvp_flat
from minijax.interpreters.structural import check_axes
from minijax.lax.arguments import int_tuple, is_array
from minijax.lax.families import BITS, check_same_dtype, operand
from minijax.lax.reduction import (
    Identity,
    elementwise,
    fold,
    halves,
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
    reduce_xor_p,
    zero,
)
from minijax.lowering.module import lower_jaxpr
from minijax.sharding import rules


class Reduce(Primitive):
    """Combines elements along `dimensions` by a function of the user, given as a jaxpr.

    Shapes: operands: T_i[s], then init_values: T_i[] -> T_i[s without dimensions].
    Not linear, hence no transpose: its derivative is that of a composition.
    """

    name = "reduce"
    multiple_results = True

    def abstract_eval(
        self,
        *avals: ShapedArray,
        computation: Callable[..., Any],
        jaxpr: ClosedJaxpr,
        dimensions: Shape,
    ) -> list[ShapedArray]:
        operands, inits = halves(avals)
        check_reducer("lax.reduce", operands, inits, jaxpr)
        check_axes("lax.reduce", operands[0], dimensions)
        shape = tuple(n for d, n in enumerate(operands[0].shape) if d not in dimensions)
        return [x.strip_weak_type().with_shape(shape) for x in operands]

    def shard(
        self, avals: Sequence[Any], outs: Sequence[Any], *, dimensions: Shape, **params: Any
    ) -> list[PartitionSpec]:
        operands, inits = halves(avals)
        rules.check_unsharded(self, inits)
        spec = rules.join(self, operands, operands[0].ndim)
        return [rules.dropped(spec, dimensions)] * len(outs)

    def lower(
        self,
        ctx: Any,
        *values: Any,
        computation: Callable[..., Any],
        jaxpr: ClosedJaxpr,
        dimensions: Shape,
    ) -> list[Any]:
        count = len(values) // 2
        operands = [
            ctx.module.partitioning.whole_along(ctx, x, dimensions, aval.ndim)
            for x, aval in zip(values[:count], ctx.avals_in, strict=False)
        ]
        return ctx.ops(
            "stablehlo.reduce",
            [*operands, *values[count:]],
            {"dimensions": ctx.i64_array(dimensions)},
            regions=[region_of_jaxpr(ctx, jaxpr)],
        )

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        computation: Callable[..., Any],
        jaxpr: ClosedJaxpr,
        dimensions: Shape,
    ) -> tuple[list[Any], list[Any]]:
        if all(type(t) is Zero for t in tangents):
            outs = self.bind(*primals, computation=computation, jaxpr=jaxpr, dimensions=dimensions)
            return outs, [Zero.like(x) for x in outs]
        return jvp_flat(_folded(jaxpr, dimensions), primals, tangents)

    def batch(
        self,
        size: int,
        args: Sequence[Any],
        dims: Sequence[Any],
        *,
        computation: Callable[..., Any],
        jaxpr: ClosedJaxpr,
        dimensions: Shape,
    ) -> tuple[list[Any], list[Any]]:
        (operands, inits), (operand_dims, init_dims) = halves(args), halves(dims)
        if any(d is not None for d in init_dims):
            return batch_flat(_folded(jaxpr, dimensions), size, args, dims)
        aligned = [
            structural.to_batch_dim(x, d, 0, size)
            for x, d in zip(operands, operand_dims, strict=True)
        ]
        shifted = tuple(d + 1 for d in dimensions)
        outs = self.bind(*aligned, *inits, computation=computation, jaxpr=jaxpr, dimensions=shifted)
        return outs, [0] * len(outs)


reduce_p = Reduce()


def check_reducer(
    name: str, operands: Sequence[ShapedArray], inits: Sequence[ShapedArray], jaxpr: ClosedJaxpr
) -> None:
    """Refuses operands, initial values and a combining function that do not fit together.

    Raises:
        ValueError: an initial value is not a scalar, operands differ in shape, or the function
            does not return scalars of the operands' dtypes.
        TypeError: an initial value is not of its operand's dtype.
    """
    facts = {f"operands[{i}]": x for i, x in enumerate(operands)}
    facts.update({f"init_values[{i}]": x for i, x in enumerate(inits)})
    if any(x.shape for x in inits):
        error(ValueError, name, "initial values must be scalars.", got=facts)
    if len({x.shape for x in operands}) != 1:
        error(ValueError, name, "all operands must have one shape.", got=facts)
    for x, init in zip(operands, inits, strict=True):
        check_same_dtype(name.removeprefix("lax."), operand=x, init_value=init)
    expected = [((), x.dtype) for x in operands]
    returned = [(x.shape, x.dtype) for x in jaxpr.out_avals]
    if returned != expected:
        error(
            ValueError,
            name,
            "the computation must return what it is given.",
            got=f"results {' '.join(map(str, jaxpr.out_avals))} for "
            f"{' '.join(x.with_shape(()).str_short() for x in operands)}",
            expected="a scalar of the same dtype for each operand",
        )


def region_of_jaxpr(ctx: Any, jaxpr: ClosedJaxpr) -> Any:
    """A region for `LoweringContext.ops` that computes `jaxpr`."""

    def body(inner: Any, *values: Any) -> list[Any]:
        return lower_jaxpr(inner, jaxpr.jaxpr, jaxpr.consts, values)

    return [ctx.type_of(aval) for aval in jaxpr.in_avals], body


def _folded(jaxpr: ClosedJaxpr, dimensions: Shape) -> Callable[..., list[Any]]:
    """The generic reduction as a composition of other operations."""

    def function(*args: Any) -> list[Any]:
        operands, inits = halves(args)
        return fold(elementwise(jaxpr), operands, inits, dimensions)

    return function


def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: Any = None,
) -> Any:
    """Combines elements along `dimensions` by any associative function.

    Shapes:     operands: a tree of T_i[s] -> T_i[s without dimensions].
    Dtypes:     any.
    Derivative: that of a computation by halves.
    Lowers to:  stablehlo.reduce; a known operation from its identity becomes its own primitive.
    Source:     mirrors jax.lax.reduce.

    Args:
        operands: arrays of one shape.
        init_values: for each operand a scalar: an identity of the computation.
        computation: takes two trees of scalars, and returns one.
        dimensions: the dimensions to reduce.
        out_sharding: the sharding of the result.

    Raises:
        ValueError: the trees or shapes do not fit together.
        NotImplementedError: the computation uses values of a surrounding trace.

    Example:
        >>> lax.reduce(jnp.array([[1, 2], [3, 4]]), 0, lax.add, dimensions=(1,))
        Array([3, 7], dtype=int32)
        >>> lax.reduce(jnp.array([3, 5, 4]), 0, lambda x, y: (x + y) % 7, dimensions=(0,))
        Array(5, dtype=int32)
    """
    leaves, structure = tree.flatten(operands)
    init_leaves, init_structure = tree.flatten(init_values)
    check_same_structure("lax.reduce", "init_values", init_structure, structure)
    arrays = [operand(x) for x in leaves]
    inits = [as_initial_value(x, like) for x, like in zip(init_leaves, arrays, strict=True)]
    jaxpr = stage_reducer("lax.reduce", computation, arrays, structure)
    dims = int_tuple(dimensions, "lax.reduce", "dimensions")
    monoid = monoid_of(jaxpr, inits)
    if monoid is not None and monoid in _REDUCTIONS:
        sharding = rules.resolve(out_sharding, "lax.reduce")
        params = {"out_sharding": sharding} if monoid == "add" else {}
        outs = [_REDUCTIONS[monoid].bind(arrays[0], axes=dims, **params)]
    else:
        outs = reduce_p.bind(*arrays, *inits, computation=computation, jaxpr=jaxpr, dimensions=dims)
    return tree.unflatten(structure, outs)


_REDUCTIONS: dict[str, Any] = {
    "add": structural.reduce_sum_p,
    "mul": reduce_prod_p,
    "max": reduce_max_p,
    "min": reduce_min_p,
    "and": reduce_and_p,
    "or": reduce_or_p,
    "xor": reduce_xor_p,
}
_IDENTITIES: dict[str, Identity] = {
    "add": zero,
    **{op: primitive.identity for op, primitive in _REDUCTIONS.items() if op != "add"},
}


def check_same_structure(name: str, argument: str, found: Any, expected: Any) -> None:
    """Refuses a tree of another structure than the operands'.

    Raises:
        ValueError: the structures differ.
    """
    if found != expected:
        error(
            ValueError,
            name,
            f"{argument} must have the tree structure of the operands.",
            got=str(found),
            expected=str(expected),
        )


def as_initial_value(x: Any, like: Any) -> Any:
    """An initial value; numbers that are not arrays of ours take the dtype of their operand."""
    if is_array(x) or np.ndim(x):
        return operand(x)
    return np.asarray(x).astype(aval_of(like).dtype)[()]


def stage_reducer(
    name: str, computation: Callable[[Any, Any], Any], arrays: Sequence[Any], structure: Any
) -> ClosedJaxpr:
    """The jaxpr of a combining function, of scalars of the arrays' dtypes.

    Raises:
        ValueError: the function returns another tree.
        NotImplementedError: it uses values of a surrounding trace.
    """
    scalars = [shaped_array((), aval_of(x).dtype) for x in arrays]

    def function(*values: Any) -> list[Any]:
        left, right = halves(values)
        out = computation(tree.unflatten(structure, left), tree.unflatten(structure, right))
        leaves, returned = tree.flatten(out)
        check_same_structure(name, "the result of the computation", returned, structure)
        return leaves

    jaxpr, consts = staging.stage(function, scalars * 2)
    if any(isinstance(c, Tracer) for c in consts):
        error(
            NotImplementedError,
            name,
            "the computation uses values of a surrounding transformed function.",
            fix="pass them as operands",
        )
    return ClosedJaxpr(jaxpr, consts)


def monoid_of(jaxpr: ClosedJaxpr, inits: Sequence[Any]) -> str | None:
    """The name of the operation that a combining function is, started from its identity."""
    if len(inits) != 1 or len(jaxpr.eqns) != 1 or isinstance(inits[0], Tracer):
        return None
    (eqn,) = jaxpr.eqns
    name = eqn.primitive.name
    plain = all(type(v) is Var for v in eqn.invars) and not any(eqn.params.values())
    direct = eqn.outvars == jaxpr.jaxpr.outvars and set(eqn.invars) == set(jaxpr.jaxpr.invars)
    if name not in _IDENTITIES or not plain or not direct:
        return None
    dtype = aval_of(inits[0]).dtype
    if dtype == np.bool_ and name in ("add", "mul", "max", "min"):
        name = {"add": "or", "mul": "and", "max": "or", "min": "and"}[name]
    if name in ("and", "or", "xor") and not any(dtypes.issubdtype(dtype, k) for k in BITS):
        return None
    return name if np.array_equal(inits[0], _IDENTITIES[name](dtype)) else None
