"""`linear_call`: a linear function with a transpose of the user's own.

Input: a function linear in its last argument, and its transpose.  Output: a call that reverse mode
runs backwards by the transpose, whatever operations the function is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from minijax.core import tree, vma
from minijax.core.aval import aval_of
from minijax.core.check import same_type
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.operators import BatchDims, Values
from minijax.core.primitive import Batched, Cotangents, Dual, Primitive, Tangents, Zero
from minijax.interpreters import batching, staging
from minijax.interpreters.jvp import is_linear
from minijax.interpreters.structural import instantiate, to_batch_dim
from minijax.lax.control_flow import bodies
from minijax.lowering import diagnosis, eager, module
from minijax.sharding import rules

if TYPE_CHECKING:
    from minijax.lowering.stablehlo import LoweringContext

R = TypeVar("R")


class LinearCall(Primitive):
    """Calls `callee`, whose transpose is `transpose`.

    Operands: the constants of either, `num_res` residuals, then the arguments that the function is
    linear in.  `callee` takes its constants, residuals and arguments; `transpose` takes its
    constants, residuals and cotangents of the results.
    """

    name = "linear_call"
    multiple_results: ClassVar[bool] = True
    has_effects: ClassVar[bool] = True
    shard = rules.from_types

    def abstract_eval(self, *avals: Any, callee: ClosedJaxpr, **_: Any) -> list[Any]:
        return callee.out_avals

    def effects(self, *avals: Any, callee: ClosedJaxpr, **_: Any) -> frozenset[Any]:
        return callee.effects

    def impl(self, *args: Any, **params: Any) -> Sequence[Any]:
        given = _for_callee(args, params)
        return staging.eval_closed_jaxpr(params["callee"], *given)

    def lower(self, ctx: LoweringContext, *values: Any, **params: Any) -> list[Any]:
        callee = params["callee"]
        return module.lower_jaxpr(ctx, callee.jaxpr, callee.consts, _for_callee(values, params))

    def jvp(self, primals: Values, tangents: Tangents, **params: Any) -> Dual:
        fixed = _num_fixed(params)
        if any(type(t) is not Zero for t in tangents[:fixed]):
            error(
                TypeError,
                "custom_derivatives.linear_call",
                "differentiated by a residual, or by a value that the function closes over.",
                expected="derivatives by the linear arguments alone: the transpose says "
                "nothing of the others",
                fix="lax.stop_gradient(residual), or custom_vjp for functions of both",
            )
        outs = self.bind(*primals, **params)
        return outs, self.bind(*primals[:fixed], *map(instantiate, tangents[fixed:]), **params)

    def transpose(self, cts: Tangents, *args: Any, **params: Any) -> Cotangents:
        start, fixed = params["num_callee_consts"], _num_fixed(params)
        found = staging.eval_closed_jaxpr(
            params["transpose"], *args[start:fixed], *map(instantiate, cts)
        )
        linear = zip(args[fixed:], found, strict=True)
        return [None] * fixed + [ct if is_linear(x) else None for x, ct in linear]

    def batch(self, size: int, args: Values, dims: BatchDims, **params: Any) -> Batched:
        # Results of one example are cotangents of it in the transpose, so all are mapped.
        fixed = _num_fixed(params)
        batched = [d is not None for d in dims[:fixed]] + [True] * (len(args) - fixed)
        moved = [
            to_batch_dim(x, d, 0, size) if b else x
            for x, d, b in zip(args, dims, batched, strict=True)
        ]
        callee, _ = batching.batch_jaxpr(params["callee"], size, _for_callee(batched, params), True)
        results = [True] * len(callee.out_avals)
        transpose, _ = batching.batch_jaxpr(
            params["transpose"], size, batched[params["num_callee_consts"] : fixed] + results, True
        )
        outs = self.bind(*moved, **{**params, "callee": callee, "transpose": transpose})
        return list(outs), [0] * len(outs)


@diagnosis.walk.rule(LinearCall)
def _walk_of_linear_call(primitive: LinearCall, run: Any, *args: Any, **params: Any) -> None:
    run(params["callee"], *_for_callee(args, params))


vma.vary.rule(LinearCall)(vma.from_types)


linear_call_p = LinearCall()


def _num_fixed(params: dict[str, Any]) -> int:
    names = ("num_callee_consts", "num_transpose_consts", "num_res")
    return sum(params[name] for name in names)


def _for_callee(args: Values, params: dict[str, Any]) -> list[Any]:
    start = params["num_callee_consts"]
    return [*args[:start], *args[start + params["num_transpose_consts"] :]]


def linear_call(
    fun: Callable[[Any, Any], R],
    fun_transpose: Callable[[Any, Any], Any],
    residual_args: object,
    linear_args: object,
) -> R:
    """The result of `fun(residual_args, linear_args)`, transposed by `fun_transpose`.

    Shapes:     fun_transpose: residual_args, a tree of the types of the result -> a tree of the
        types of linear_args.
    Derivative: both modes, by linear_args alone.

    Args:
        fun: a function linear in its second argument.
        fun_transpose: its transpose: takes the residuals and a cotangent of the result.
        residual_args: a tree of arrays that both read.
        linear_args: a tree of arrays.

    Raises:
        TypeError: the transpose returns other types than linear_args has, or one differentiates
            by a residual.

    Example:
        >>> scale = lambda factor, x: factor * x
        >>> f = lambda x: jax.custom_derivatives.linear_call(scale, scale, 3.0, x)
        >>> jax.grad(f)(1.0), jax.linear_transpose(f, 1.0)(2.0)
        (Array(3., dtype=float32, weak_type=True), (Array(6., dtype=float32, weak_type=True),))
    """
    name = "custom_derivatives.linear_call"
    for function in (fun, fun_transpose):
        eager.check_callable(name, function)
    residuals, res_tree, res_avals = bodies.flatten_values(name, "residual_args", residual_args)
    linear, linear_tree, linear_avals = bodies.flatten_values(name, "linear_args", linear_args)
    in_tree = bodies.call_tree(tree.treedef_tuple((res_tree, linear_tree)))
    callee = bodies.stage_bodies(name, [fun], in_tree, [*res_avals, *linear_avals])
    (out_tree,) = callee.out_trees
    ct_avals = [aval.tangent_aval() for aval in callee.closed[0].out_avals]
    ct_tree = bodies.call_tree(tree.treedef_tuple((res_tree, out_tree)))
    transpose = bodies.stage_bodies(name, [fun_transpose], ct_tree, [*res_avals, *ct_avals])
    found = transpose.closed[0].out_avals
    fits = transpose.out_trees[0] == linear_tree and all(map(same_type, found, linear_avals))
    if not fits:
        problem = "fun_transpose must return the structure and types of linear_args."
        got = f"{transpose.out_trees[0]} of {', '.join(a.str_short() for a in found)}"
        expected = f"{linear_tree} of " + ", ".join(aval_of(x).str_short() for x in linear)
        error(TypeError, name, problem, got=got, expected=expected)
    outs = linear_call_p.bind_all(
        *callee.consts,
        *transpose.consts,
        *residuals,
        *linear,
        callee=callee.closed[0],
        transpose=transpose.closed[0],
        num_callee_consts=len(callee.consts),
        num_transpose_consts=len(transpose.consts),
        num_res=len(residuals),
    )
    return tree.unflatten(out_tree, outs)
