"""Loops: `while_loop` and `fori_loop`.

Input: a condition and a body, functions of the carry.  Output: the carry when the condition
fails.  A loop whose number of trips is known is a scan (`scanning.py`), which has reverse mode.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

from minijax.core import config, dtypes, effects, refs, tree, vma
from minijax.core.aval import AbstractValue, aval_of
from minijax.core.errors import ConcretizationTypeError, error
from minijax.core.jaxpr import ClosedJaxpr, Eqn, used_variables
from minijax.core.operators import BatchDims
from minijax.core.primitive import Batched, Cotangents, Dual, Primitive, Tangents, Zero
from minijax.core.sequences import partition_list
from minijax.core.trace import Params, Tracer
from minijax.interpreters import (
    batching,
    checking,
    jvp,
    key_reuse,
    partial_eval,
    passes,
    structural,
    uniformity,
)
from minijax.interpreters.jvp import with_zeros
from minijax.lax import binary, creation, references
from minijax.lax.binary import add, lt
from minijax.lax.control_flow import bodies, checks, lowering, scanning
from minijax.lax.control_flow.lowering import WhileParams
from minijax.lax.families import Values
from minijax.lowering import diagnosis, eager
from minijax.lowering.stablehlo import LoweringContext
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.sharding import rules

T = TypeVar("T")


class While(Primitive):
    """Replaces the carry by `body(carry)` as long as `condition(carry)` holds.

    Both take constants of their own first.  A condition of a shape other than () is that of a
    batch: the loop runs until it fails for all examples, and those for which it has failed keep
    their carry.
    """

    name = "while"
    user: ClassVar[str] = "lax.while_loop"
    multiple_results: ClassVar[bool] = True
    has_effects: ClassVar[bool] = True
    shard = rules.from_types

    def abstract_eval(self, *avals: Any, body_jaxpr: ClosedJaxpr, **_: Any) -> list[Any]:
        return body_jaxpr.out_avals

    def effects(
        self, *_: Any, body_jaxpr: ClosedJaxpr, cond_jaxpr: ClosedJaxpr, **__: Any
    ) -> frozenset[Any]:
        return body_jaxpr.effects | cond_jaxpr.effects

    def impl(self, *args: Any, **params: Any) -> Sequence[Any]:
        return bodies.run_program(self, params["body_jaxpr"], args, params)

    def lower(self, ctx: LoweringContext, *values: Any, **params: Any) -> list[Any]:
        return lowering.lower_while(ctx, values, WhileParams(**params))

    def jvp(self, primals: Values, tangents: Tangents, **params: Any) -> Dual:
        loop = WhileParams(**params)
        test_consts, consts, init = loop.split(primals)
        _, const_dots, init_dots = loop.split(tangents)
        const_nonzero = [type(t) is not Zero for t in const_dots]
        # A carry's tangent may become non-zero on the way.
        derivative, moving = bodies.fixpoint(
            self.user,
            [type(t) is not Zero for t in init_dots],
            lambda moving: jvp.jvp_jaxpr(loop.body_jaxpr, const_nonzero + moving, moving),
        )
        count = len(moving)
        order = bodies.interleaved([len(consts), count], [sum(const_nonzero), sum(moving)])
        dots = [structural.instantiate(t) for t, nz in zip(init_dots, moving, strict=True) if nz]
        more = [v.aval for v in derivative.jaxpr.outvars[count:]]
        whole = loop._replace(
            cond_jaxpr=bodies.rearranged(
                loop.cond_jaxpr, [*range(len(test_consts) + count), *more]
            ),
            body_nconsts=len(consts) + sum(const_nonzero),
            body_jaxpr=bodies.rearranged(derivative, order),
        )
        moved = [t for t in const_dots if type(t) is not Zero]
        outs = self.bind(*test_consts, *consts, *moved, *init, *dots, **whole._asdict())
        return list(outs[:count]), with_zeros(moving, outs[count:], loop.body_jaxpr.out_avals)

    def partial_eval(
        self, trace: partial_eval.PartialTrace, args: Values, params: Params
    ) -> list[Any]:
        """Runs the known part of the carry now; the whole loop is staged for the rest."""
        loop = WhileParams(**params)
        test_unknown, body_unknown, unknown = loop.split([trace.is_unknown(x) for x in args])

        def again(unknown: list[bool]) -> tuple[partial_eval.PartialJaxpr, list[bool]]:
            split = partial_eval.partial_eval_jaxpr(
                loop.body_jaxpr, body_unknown + unknown, unknown
            )
            return split, split.out_unknown

        split, unknown = bodies.fixpoint(self.user, unknown, again)
        test = partial_eval.partial_eval_jaxpr(loop.cond_jaxpr, test_unknown + unknown)
        if test.out_unknown[0] or all(unknown) or self.effects(**params):
            return list(trace.unknown.process(self, args, params))
        known_loop = WhileParams(
            test_unknown.count(False),
            test.known,
            body_unknown.count(False),
            bodies.rearranged(
                split.known, range(len(split.known.in_avals)), range(unknown.count(False))
            ),
        )
        known_args, _ = partition_list([*test_unknown, *body_unknown, *unknown], args)
        known = iter(trace.process_known(self, known_args, known_loop._asdict()))
        staged_outs = trace.unknown.process(self, args, params)
        return [out if u else next(known) for out, u in zip(staged_outs, unknown, strict=True)]

    def transpose(self, cts: Cotangents, *args: Any, **params: Any) -> Cotangents:
        del cts, args, params
        error(
            ValueError,
            "lax.while_loop",
            "reverse-mode differentiation is impossible: the number of steps, and so the "
            "memory for their values, is unknown before the loop runs.",
            fix="use fori_loop with Python ints as bounds, or scan; or forward mode (jvp, "
            "jacfwd); or give the loop a derivative of its own with custom_vjp",
        )

    def batch(self, size: int, args: Values, dims: BatchDims, **params: Any) -> Batched:
        loop = WhileParams(**params)
        wide, carry, place = _batched(size, loop, [d is not None for d in dims])
        num_consts = loop.cond_nconsts + loop.body_nconsts
        moved = structural.in_front(args[:num_consts], dims[:num_consts])
        init = [
            structural.to_batch_dim(x, d, place, size) if b else x
            for x, d, b in zip(args[num_consts:], dims[num_consts:], carry, strict=True)
        ]
        outs = self.bind(*moved, *init, **wide._asdict())
        return list(outs), [place if b else None for b in carry]


dtypes.knows_extended.set(True, While)
checking.check_inside.rule(While)(checks.check_while)
key_reuse.follow_keys.rule(While)(checks.keys_of_while)
uniformity.differ.rule(While)(checks.differ_while)
refs.discharge.rule(While)(bodies.discharge_while)
refs.with_references.rule(While)(references.with_references)


@diagnosis.walk.rule(While)
def _walk_of_while(
    primitive: While, run: Callable[..., Sequence[Any]], *args: Any, **params: Any
) -> None:
    loop = WhileParams(**params)
    test_consts, body_consts, carry = loop.split(args)
    while np.any(goes_on := run(loop.cond_jaxpr, *test_consts, *carry)[0]):
        new = run(loop.body_jaxpr, *body_consts, *carry)
        carry = [_kept_where_done(goes_on, x, y) for x, y in zip(carry, new, strict=True)]


@passes.dce.rule(While)
def _dce_of_while(primitive: While, eqn: Eqn, used: Sequence[bool]) -> Eqn | None:
    if not any(used) and not eqn.effects:
        return None
    loop = WhileParams(**eqn.params)
    _, test_kept = passes.dce_closed_jaxpr(loop.cond_jaxpr, [True])
    test_consts, tested = test_kept[: loop.cond_nconsts], test_kept[loop.cond_nconsts :]

    def again(live: list[bool]) -> tuple[list[bool], list[bool]]:
        _, kept = passes.dce_closed_jaxpr(loop.body_jaxpr, live)
        consts, read = kept[: loop.body_nconsts], kept[loop.body_nconsts :]
        return consts, list(map(operator.or_, live, read))

    body_consts, live = bodies.fixpoint(While.user, list(map(operator.or_, used, tested)), again)
    test, _ = passes.dce_closed_jaxpr(loop.cond_jaxpr, [True], test_consts + live)
    body, _ = passes.dce_closed_jaxpr(loop.body_jaxpr, live, body_consts + live)
    flags = [*test_consts, *body_consts, *live]
    slim = WhileParams(sum(test_consts), test, sum(body_consts), body)
    return eqn.replace(
        invars=[v for v, keep in zip(eqn.invars, flags, strict=True) if keep],
        outvars=[v for v, keep in zip(eqn.outvars, live, strict=True) if keep],
        params=slim._asdict(),
        effects=test.effects | body.effects,
    )


vma.vary.rule(While)(vma.from_types)
vma.agree.rule(While)(checks.agree_while)


while_p = While()


def _batched(
    size: int, loop: WhileParams, batched: Sequence[bool]
) -> tuple[WhileParams, list[bool], int]:
    """A loop over a batch, the mapped parts of its carry, and their batch dimension.

    Constants are mapped along dimension 0.  The dimensions of the condition are the first ones of
    each part of the carry: where a batch does not add to them, it comes behind.
    """
    test_consts, body_consts, carry = loop.split(batched)

    def again(carry: list[bool]) -> tuple[bool, list[bool]]:
        _, (pred,) = batching.batch_jaxpr(loop.cond_jaxpr, size, test_consts + carry)
        whole = [True] * len(carry) if pred else carry
        return pred, batching.batch_jaxpr(loop.body_jaxpr, size, body_consts + whole, whole)[1]

    pred_batched, carry = bodies.fixpoint(While.user, carry, again)
    if pred_batched:
        _check_batched_effects(loop.cond_jaxpr.effects | loop.body_jaxpr.effects)
    place = 0 if pred_batched else loop.cond_jaxpr.out_avals[0].ndim
    places = [place] * len(carry)
    test, _ = batching.batch_jaxpr(
        loop.cond_jaxpr, size, test_consts + carry, in_dims=[0] * len(test_consts) + places
    )
    body, _ = batching.batch_jaxpr(
        loop.body_jaxpr,
        size,
        body_consts + carry,
        carry,
        in_dims=[0] * len(body_consts) + places,
        out_dims=places,
    )
    return loop._replace(cond_jaxpr=test, body_jaxpr=body), carry, place


def _check_batched_effects(found: frozenset[Any]) -> None:
    if guarded := effects.guarded_among(found):
        error(
            NotImplementedError,
            "lax.while_loop",
            "a loop with effects cannot be batched over its condition: examples that "
            "are done would go on having them.",
            got=f"effects {guarded}",
        )


def _kept_where_done(goes_on: Array, before: Array, after: Array) -> Array:
    """What a step makes of a carry, for those examples of a batch that are not done."""
    aval = aval_of(after)
    if not aval_of(goes_on).ndim or aval.is_extended:
        return after
    which = structural.broadcast_in_dim(goes_on, aval.shape, range(aval_of(goes_on).ndim))
    return binary.select_n(which, before, after)


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], T], init_val: Any) -> T:
    """Replaces `val` by `body_fun(val)` as long as `cond_fun(val)` holds, from `init_val`.

    Shapes:     body_fun returns a tree of the types of init_val; cond_fun a boolean scalar.
    Derivative: forward mode only; the number of steps is unknown when the loop is compiled.
    Lowers to:  stablehlo.while.

    Args:
        cond_fun: whether to make another step.
        body_fun: one step.
        init_val: a tree of arrays.

    Raises:
        TypeError: the types do not fit; the text names each leaf and the line it comes from.

    Example:
        >>> lax.while_loop(lambda n: n < 100, lambda n: 2 * n, 1)
        Array(128, dtype=int32, weak_type=True)
        >>> grow = lambda x: lax.while_loop(lambda y: y < 100.0, lambda y: 2.0 * y, x)
        >>> jax.jvp(grow, (jnp.float32(1),), (jnp.float32(1),))
        (Array(128., dtype=float32), Array(128., dtype=float32))
    """
    for function in (body_fun, cond_fun):
        eager.check_callable("lax.while_loop", function)
    if config.disable_jit.value:
        try:
            val = init_val
            while bool(cond_fun(val)):
                val = body_fun(val)
            return val
        except ConcretizationTypeError:
            pass
    naming = bodies.Naming("lax.while_loop", "body_fun", "init_val")
    return _while_loop(naming, cond_fun, body_fun, init_val, body_fun)


def _while_loop(
    naming: bodies.Naming,
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init_val: object,
    described: Callable[..., Any],
) -> Any:
    name = naming.name
    init, in_tree, avals = bodies.flatten_values(name, naming.carry, init_val)
    carry_tree = bodies.call_tree(tree.treedef_tuple((in_tree,)))

    def stage(avals: Sequence[AbstractValue]) -> tuple[bodies.Bodies, Any]:
        body = bodies.stage_bodies(name, [body_fun], carry_tree, avals, described)
        return body, body.out_trees[0]

    body, init = bodies.stage_carry(naming, in_tree, init, avals, stage)
    avals = body.closed[0].in_avals[len(body.consts) :]
    test = bodies.stage_bodies(name, [cond_fun], carry_tree, avals)
    _check_condition(name, test)
    body_jaxpr, cond_jaxpr = body.closed[0], test.closed[0]
    consts = [*test.consts, *body.consts]
    counts = [len(test.consts), len(body.consts)]
    fixed = bodies.unchanging(body_jaxpr, counts[1], len(init))
    if any(fixed):
        cond_jaxpr, more = _without_fixed(cond_jaxpr, counts[0], fixed, None)
        consts[counts[0] : counts[0]] = [init[i] for i in more]
        counts[0] += len(more)
        kept = [i for i, f in enumerate(fixed) if not f]
        body_jaxpr, more = _without_fixed(body_jaxpr, counts[1], fixed, kept)
        consts += [init[i] for i in more]
        counts[1] += len(more)
    loop = WhileParams(counts[0], cond_jaxpr, counts[1], body_jaxpr)
    changing = (x for x, f in zip(init, fixed, strict=True) if not f)
    given = iter(while_p.bind_all(*consts, *changing, **loop._asdict()))
    outs = [_as_array(x) if f else next(given) for x, f in zip(init, fixed, strict=True)]
    return tree.unflatten(in_tree, outs)


def _as_array(x: ArrayLike) -> Array:
    """A number of Python as an array; arrays pass."""
    aval = aval_of(x)
    return creation.convert_to_type(x, aval.dtype, aval.weak_type)


def _without_fixed(
    closed: ClosedJaxpr, num_consts: int, fixed: Sequence[bool], outputs: Sequence[int] | None
) -> tuple[ClosedJaxpr, list[int]]:
    """A condition or body that takes as constants the fixed parts of the carry that it reads.

    Returns:
        The jaxpr, and which parts of the carry have become constants.
    """
    jaxpr = closed.jaxpr
    wanted = [jaxpr.outvars[i] for i in outputs] if outputs is not None else jaxpr.outvars
    used = used_variables(jaxpr.replace(outvars=wanted))
    carry = jaxpr.invars[num_consts:]
    moved = [i for i, f in enumerate(fixed) if f and carry[i] in used]
    kept = [i for i, f in enumerate(fixed) if not f]
    order = [*range(num_consts), *(num_consts + i for i in (*moved, *kept))]
    return bodies.rearranged(closed, order, outputs), moved


def _check_condition(name: str, test: bodies.Bodies) -> None:
    (closed,), (out_tree,) = test.closed, test.out_trees
    avals = closed.out_avals
    if out_tree != tree.structure(0) or avals[0].shape or avals[0].dtype != np.bool_:
        got = str(avals[0]) if out_tree == tree.structure(0) else f"a tree {out_tree}"
        error(
            TypeError,
            name,
            "cond_fun must return a boolean scalar.",
            got=f"{got} from {closed.jaxpr.debug_info.func_src_info}",
            fix="compare, or reduce with .all() or .any()",
        )


def _fori_scan(function: Callable[[], Any]) -> Callable[..., Any]:
    def step(carry: Any, _: None) -> Any:
        i, val = carry
        return (add(i, 1), function()(i, val)), None

    return step


def _fori_body(function: Callable[[], Any]) -> Callable[..., Any]:
    def step(carry: Any) -> Any:
        i, upper, val = carry
        return add(i, 1), upper, function()(i, val)

    return step


def _fori_condition(carry: Any) -> Any:
    i, upper, _ = carry
    return lt(i, upper)


def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Any, Any], T],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
) -> T:
    """Replaces `val` by `body_fun(i, val)` for i = lower, …, upper - 1, from `init_val`.

    With bounds known when the program is staged, the loop is a scan, and has reverse mode;
    else it is a while loop.

    Shapes:     lower, upper: scalars; body_fun returns a tree of the types of init_val.
    Dtypes:     lower, upper: numbers of one dtype.  Known bounds count as Python ints, so that the
        index is a weakly typed integer.
    Derivative: forward mode; reverse mode too where the bounds are known.
    Lowers to:  stablehlo.while.

    Args:
        lower: the first index.
        upper: the index to stop before.
        body_fun: one step, of the index and the value.
        init_val: a tree of arrays.
        unroll: how many steps to write out in one trip of the compiled loop; True for all.
            Needs known bounds.

    Raises:
        TypeError: the bounds are not real scalars, or the types of the carry do not fit.
        ValueError: `unroll` is given, but the bounds are traced.

    Example:
        >>> lax.fori_loop(0, 5, lambda i, total: total + i, 0)
        Array(10, dtype=int32, weak_type=True)
        >>> jax.grad(lambda x: lax.fori_loop(0, 3, lambda i, y: y * x, 1.0))(2.0)
        Array(12., dtype=float32, weak_type=True)
    """
    name = "lax.fori_loop"
    eager.check_callable(name, body_fun)
    dtype = _type_of_bounds(name, lower, upper)
    first, last = _concrete_int(lower), _concrete_int(upper)
    if first is not None and last is not None:
        if config.disable_jit.value:
            val = init_val
            for i in range(first, last):
                val = body_fun(creation.convert_to_type(i, aval_of(i).dtype, True), val)
            return val
        step = bodies.wrapped_once(_fori_scan, body_fun)
        (_, result), _ = scanning.scan_named(
            bodies.Naming(name, "body_fun", "init_val", part=1),
            step,
            (first, init_val),
            None,
            length=max(last - first, 0),
            unroll=1 if unroll is None else unroll,
            described=body_fun,
        )
        return result
    if unroll is not None and unroll is not False and unroll != 1:
        problem = "only loops with bounds known at staging can be unrolled."
        fix = "Python ints as bounds, or no unroll"
        error(ValueError, name, problem, got={"lower": lower, "upper": upper}, fix=fix)
    bounds = [
        x if aval_of(x).dtype == dtype else bodies.retyped(x, dtype, False) for x in (lower, upper)
    ]
    step = bodies.wrapped_once(_fori_body, body_fun)
    naming = bodies.Naming(name, "body_fun", "init_val", part=2)
    _, _, result = _while_loop(naming, _fori_condition, step, (*bounds, init_val), body_fun)
    return result


def _type_of_bounds(name: str, lower: ArrayLike, upper: ArrayLike) -> np.dtype[Any]:
    avals = [aval_of(lower), aval_of(upper)]
    for what, aval in zip(("lower", "upper"), avals, strict=True):
        if aval.shape or not _is_real(aval.dtype):
            error(TypeError, name, f"{what} must be an integer scalar.", got={what: aval})
    strong = {a.dtype for a in avals if not a.weak_type}
    kinds = {dtypes.issubdtype(a.dtype, np.integer) for a in avals}
    if len(strong) > 1 or len(kinds) > 1:
        problem = "lower and upper must have one dtype."
        fix = "convert one with x.astype(dtype)"
        error(TypeError, name, problem, got={"lower": avals[0], "upper": avals[1]}, fix=fix)
    dtype: np.dtype[Any] = strong.pop() if strong else avals[0].dtype
    return dtype


def _is_real(dtype: np.dtype[Any]) -> bool:
    return dtypes.issubdtype(dtype, np.integer) or dtypes.issubdtype(dtype, np.floating)


def _concrete_int(x: ArrayLike) -> int | None:
    """The value of a number that is known while staging, as an integer, else None."""
    value: Any = x.concrete() if isinstance(x, Tracer) else x
    return None if value is None else int(value)
