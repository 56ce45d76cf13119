"""Branching: `cond`, `switch` and `platform_dependent`, over one primitive.

Input: an index and functions of the same operands.  Output: the results of the function chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias, TypeVar, overload

import numpy as np

from minijax.core import config, dtypes, effects, printing, refs, tree, vma
from minijax.core.aval import ShapedArray, aval_of, shaped_array
from minijax.core.errors import ConcretizationTypeError, error
from minijax.core.jaxpr import ClosedJaxpr, Eqn, Var
from minijax.core.primitive import Batched, Cotangents, Dual, Primitive, Tangents, Zero
from minijax.core.sequences import UNSPECIFIED, merge_lists, partition_list
from minijax.core.trace import Params, Tracer
from minijax.interpreters import (
    batching,
    checking,
    jvp,
    key_reuse,
    passes,
    remat,
    staging,
    transpose,
    uniformity,
)
from minijax.interpreters.jvp import is_linear, with_zeros
from minijax.interpreters.partial_eval import PartialTrace
from minijax.interpreters.structural import broadcast_in_dim, in_front, to_batch_dim
from minijax.lax import binary, creation, references, unary
from minijax.lax.binary import eq, ne
from minijax.lax.control_flow import bodies, checks, halves
from minijax.lax.control_flow.halves import Branches
from minijax.lax.families import BatchDims, Values
from minijax.lax.families import operand as as_operand
from minijax.lowering import diagnosis, eager, module, program
from minijax.lowering.stablehlo import LoweringContext
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.sharding import rules

R = TypeVar("R")
S = TypeVar("S")

Platforms: TypeAlias = tuple[tuple[str, ...] | None, ...] | None


class Cond(Primitive):
    """Runs the branch number `index`; the branches take the same operands.

    Shapes: index: int32[], operands as the branches' arguments -> the branches' results.
    """

    name = "cond"
    multiple_results: ClassVar[bool] = True
    has_effects: ClassVar[bool] = True
    shard = rules.from_types

    def abstract_eval(self, *operands: Any, branches: Branches, **_: Any) -> list[Any]:
        return branches[0].out_avals

    def effects(self, index: Array | None, *operands: Any, branches: Branches, **_: Any) -> Any:
        return frozenset().union(*(refs.effects_of_body(b.jaxpr, 1) for b in branches))

    def impl(self, index: Array, *operands: Any, branches: Branches, **_: Any) -> Sequence[Any]:
        branch = branches[int(index)]
        eager.check_no_tracers(operands)
        outs = program.run(branch, operands, self.name)
        if branch.out_avals == branches[0].out_avals:
            return outs
        # Branches may disagree in weak types; those of the results follow from no index.
        return [
            x if given is aval else bodies.retyped(x, aval.dtype, aval.weak_type)
            for x, given, aval in zip(outs, branch.out_avals, branches[0].out_avals, strict=True)
        ]

    def lower(
        self,
        ctx: LoweringContext,
        index: Any,
        *operands: Any,
        branches: Branches,
        branches_platforms: Platforms,
    ) -> list[Any]:
        ordered = effects.ordered_among(self.effects(None, branches=branches))
        if branches_platforms is not None:
            branches = (branches[_platform_number(ctx.platform, branches_platforms)],)
        tokens = [ctx.tokens[effect] for effect in ordered]
        if len(branches) == 1:
            return module.lower_jaxpr(ctx, branches[0].jaxpr, branches[0].consts, operands)

        def region(branch: ClosedJaxpr) -> Any:
            return [], lambda inner: module.lower_region(
                inner, branch, ordered, [*tokens, *operands]
            )

        types = [t.type for t in tokens] + [ctx.type_of(aval) for aval in ctx.avals_out]
        outs = ctx.ops(
            "stablehlo.case", [index], types=types, regions=[region(b) for b in branches]
        )
        ctx.tokens.update(zip(ordered, outs[: len(ordered)], strict=True))
        return list(outs[len(ordered) :])

    def jvp(
        self, primals: Values, tangents: Tangents, *, branches: Branches, **params: Any
    ) -> Dual:
        nonzero = [type(t) is not Zero for t in tangents[1:]]
        derivatives, moving = _alike(branches, lambda b, *flags: jvp.jvp_jaxpr(b, nonzero, *flags))
        dots = [t for t in tangents[1:] if type(t) is not Zero]
        outs = self.bind(*primals, *dots, branches=derivatives, **params)
        count = len(moving)
        return list(outs[:count]), with_zeros(moving, outs[count:], branches[0].out_avals)

    def partial_eval(self, trace: PartialTrace, args: Values, params: Params) -> list[Any]:
        if trace.is_unknown(args[0]):
            return list(trace.unknown.process(self, args, params))
        index, operands = args[0], args[1:]
        branches: Branches = params["branches"]
        unknown = [trace.is_unknown(x) for x in operands]
        known_args, unknown_args = partition_list(unknown, operands)
        split = halves.split_branches(branches, unknown)
        num_known = split.out_unknown.count(False)
        known_outs: Sequence[Any] = ()
        if split.known[0].jaxpr.outvars or any(b.effects for b in split.known):
            known_outs = trace.process_known(
                self, [index, *known_args], {**params, "branches": split.known}
            )
        residuals = [known_args[i] for i in split.shared] + list(known_outs[num_known:])
        staged_outs: Sequence[Any] = ()
        if any(split.out_unknown) or any(b.effects for b in split.staged):
            staged_outs = trace.unknown.process(
                self, [index, *residuals, *unknown_args], {**params, "branches": split.staged}
            )
        return merge_lists(split.out_unknown, known_outs[:num_known], staged_outs)

    def transpose(
        self, cts: Sequence[Any], index: Array, *args: Any, branches: Branches, **params: Any
    ) -> Cotangents:
        linear = [is_linear(x) for x in args]
        ct_nonzero = [type(ct) is not Zero for ct in cts]
        backward, moving = _alike(
            branches, lambda b, *flags: transpose.transpose_jaxpr(b, linear, ct_nonzero, *flags)
        )
        outs = self.bind(
            index,
            *(x for x, lin in zip(args, linear, strict=True) if not lin),
            *(ct for ct in cts if type(ct) is not Zero),
            branches=backward,
            **params,
        )
        return [None, *transpose.of_arguments(linear, moving, outs)]

    def batch(
        self, size: int, args: Values, dims: BatchDims, *, branches: Branches, **params: Any
    ) -> Batched:
        moved = in_front(args, dims)
        index, operands = moved[0], moved[1:]
        if dims[0] is not None:
            return _batch_by_selection(size, index, operands, dims[1:], branches)
        batched = [d is not None for d in dims[1:]]
        wide, out_batched = _alike(
            branches, lambda b, *flags: batching.batch_jaxpr(b, size, batched, *flags)
        )
        outs = self.bind(index, *operands, branches=wide, **params)
        return list(outs), [0 if b else None for b in out_batched]


dtypes.knows_extended.set(True, Cond)
checking.check_inside.rule(Cond)(checks.check_cond)
key_reuse.follow_keys.rule(Cond)(checks.keys_of_cond)
printing.hidden_when_empty.set(frozenset({"branches_platforms"}), Cond)
uniformity.differ.rule(Cond)(checks.differ_cond)
refs.discharge.rule(Cond)(bodies.discharge_cond)
refs.with_references.rule(Cond)(references.with_references)


@diagnosis.walk.rule(Cond)
def _walk_of_cond(
    primitive: Cond, run: Callable[..., Any], index: Array, *operands: Any, **params: Any
) -> None:
    run(params["branches"][int(index)], *operands)


@remat.division.rule(Cond)
def _divide_of_cond(
    primitive: Cond, eqn: Eqn, wanted: Sequence[bool], policy: remat.Policy
) -> remat.Division:
    branches: Branches = eqn.params["branches"]
    found = halves.divide_branches(branches, wanted, policy)
    slots = [Var(aval) for aval in found.slots]
    now = eqn
    if slots:
        params = {**eqn.params, "branches": found.now}
        now = eqn.replace(outvars=eqn.outvars + slots, params=params)
    saved = [eqn.outvars[i] for i in found.reused] + slots
    again = eqn.replace(
        invars=eqn.invars + saved,
        outvars=[eqn.outvars[i] for i in found.given],
        params={**eqn.params, "branches": found.again},
        effects=frozenset().union(*(b.effects for b in found.again)),
    )
    return remat.Division([now], remat.without_unread(again), saved)


@passes.dce.rule(Cond)
def _dce_of_cond(primitive: Cond, eqn: Eqn, used: Sequence[bool]) -> Eqn | None:
    branches: Branches = eqn.params["branches"]
    if not any(used) and not eqn.effects:
        return None
    slim, kept = _alike(branches, lambda b, *flags: passes.dce_closed_jaxpr(b, used, *flags))
    return eqn.replace(
        invars=eqn.invars[:1] + [v for v, keep in zip(eqn.invars[1:], kept, strict=True) if keep],
        outvars=[v for v, u in zip(eqn.outvars, used, strict=True) if u],
        params={**eqn.params, "branches": slim},
        effects=frozenset().union(*(b.effects for b in slim)),
    )


vma.vary.rule(Cond)(vma.from_types)
vma.agree.rule(Cond)(checks.agree_cond)


cond_p = Cond()


def _alike(
    branches: Branches, transform: Callable[..., tuple[ClosedJaxpr, Sequence[bool]]]
) -> tuple[Branches, list[bool]]:
    """Branches that are transformed in one way, so that their types agree again.

    Args:
        branches: the branches.
        transform: from a branch, and flags if they are prescribed, the branch and its own flags.

    Returns:
        The branches, and the flags that one of them has at least.
    """
    flags = halves.union(transform(branch)[1] for branch in branches)
    return tuple(transform(branch, flags)[0] for branch in branches), flags


def _batch_by_selection(
    size: int, index: Array, operands: Sequence[Any], dims: Sequence[Any], branches: Branches
) -> tuple[list[Any], list[int | None]]:
    """Runs all branches on the whole batch, and selects each example's results."""
    if found := effects.guarded_among(frozenset().union(*(b.effects for b in branches))):
        problem = "branches with effects cannot be batched over their predicate: all would run."
        fix = "batch the rest, and take the predicate out of the batch"
        error(NotImplementedError, "lax.cond", problem, got=f"effects {found}", fix=fix)
    mapped = [d is not None or _may_move(x) for x, d in zip(operands, dims, strict=True)]
    whole = [
        to_batch_dim(x, None if d is None else 0, 0, size) if m else x
        for x, d, m in zip(operands, dims, mapped, strict=True)
    ]
    results = []
    for i, branch in enumerate(branches):
        chosen = eq(index, np.int32(i))
        guarded = [_guard(chosen, x) if m else x for x, m in zip(whole, mapped, strict=True)]
        wide, _ = batching.batch_jaxpr(branch, size, mapped, True)
        results.append(staging.eval_closed_jaxpr(wide, *guarded))
    outs = [_choose(index, cases) for cases in zip(*results, strict=True)]
    return outs, [0] * len(outs)


def _may_move(x: Array) -> bool:
    """Whether somebody may differentiate by a value: it is traced, and of a continuous type."""
    return isinstance(x, Tracer) and dtypes.issubdtype(aval_of(x).dtype, np.inexact)


def _guard(chosen: Array, x: Array) -> Any:
    """`x`, whose derivative is zero for examples that do not choose the branch.

    A derivative there may be infinite or NaN, and times zero it would be NaN.
    """
    aval = aval_of(x)
    if not dtypes.issubdtype(aval.dtype, np.inexact):
        return x
    return binary.select_n(_like(chosen, aval.shape), unary.stop_gradient(x), x)


def _choose(index: Array, cases: Sequence[Any]) -> Any:
    if aval_of(cases[0]).is_extended:
        return binary.select_n(index, *cases)
    return binary.select_n(_like(index, aval_of(cases[0]).shape), *cases)


def _like(x: Array, shape: tuple[int, ...]) -> Any:
    return broadcast_in_dim(x, shape, (0,))


def cond(
    pred: ArrayLike,
    true_fun: Callable[..., R],
    false_fun: Callable[..., S],
    *operands: Any,
    operand: object = UNSPECIFIED,
) -> R | S:
    """The result of `true_fun(*operands)` or of `false_fun(*operands)`.

    Only one of them is computed, unless the predicate differs between examples of a batch: then
    both are, and each example gets its own.

    Shapes:     pred: a scalar; the results of both functions have the same types.
    Dtypes:     pred: bool, or a number, which is true unless zero.
    Derivative: that of the function chosen.
    Lowers to:  stablehlo.case.

    Args:
        pred: which function to take.
        true_fun: a function of trees.
        false_fun: the same.
        operands: their arguments, trees of arrays.
        operand: one argument, given by keyword.

    Raises:
        TypeError: pred is not a scalar, or the results disagree; the text names the leaf.

    Example:
        >>> @jax.jit
        ... def collatz(n):
        ...     return lax.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n)
        >>> collatz(6), collatz(7)
        (Array(3, dtype=int32, weak_type=True), Array(22, dtype=int32, weak_type=True))
    """
    if operand is not UNSPECIFIED:
        if operands:
            problem = "give operands either by position or as operand=, not both."
            error(TypeError, "lax.cond", problem)
        operands = (operand,)
    if not callable(true_fun) and callable(false_fun) and len(operands) == 2:
        return _cond_of_two_operands(pred, true_fun, false_fun, *operands)
    for function in (true_fun, false_fun):
        eager.check_callable("lax.cond", function)
    index = _predicate(pred)
    if config.disable_jit.value:
        try:
            return (true_fun if bool(index) else false_fun)(*operands)
        except ConcretizationTypeError:
            pass
    return _branch(
        "lax.cond",
        np.int32(index) if type(index) is bool else creation.convert_element_type(index, np.int32),
        (true_fun, false_fun),
        ("true_fun", "false_fun"),
        operands,
        order=(1, 0),
    )


def _cond_of_two_operands(
    pred: ArrayLike,
    true_operand: object,
    true_fun: Callable[..., Any],
    false_operand: object,
    false_fun: Callable[..., Any],
) -> Any:
    """The oldest form of `cond`, in which each function has an operand of its own."""
    eager.check_callable("lax.cond", false_fun)
    return cond(
        pred, lambda x, _: true_fun(x), lambda _, x: false_fun(x), true_operand, false_operand
    )


def _predicate(pred: ArrayLike) -> Any:
    if pred is None or callable(pred):
        got = f"{pred!r} of type {type(pred).__name__}"
        fix = "lax.cond(pred, true_fun, false_fun, *operands)"
        error(TypeError, "lax.cond", "the predicate must be a scalar.", got=got, fix=fix)
    aval = aval_of(as_operand(pred))
    if not isinstance(aval, ShapedArray) or aval.shape or aval.is_extended:
        error(
            TypeError,
            "lax.cond",
            "the predicate must be a scalar.",
            got=str(aval),
            fix="reduce it with .all() or .any(); or use lax.select or numpy.where to choose "
            "element by element",
        )
    if dtypes.issubdtype(aval.dtype, np.complexfloating):
        error(TypeError, "lax.cond", "the predicate must be a boolean or a number.", got=str(aval))
    if isinstance(pred, (bool, int, float, np.generic)):
        return bool(pred)
    if aval.dtype == np.bool_:
        return pred
    return ne(pred, aval.dtype.type(0))


@overload
def switch(
    index: object, branches: Sequence[Callable[..., R]], *operands: Any, operand: object = ...
) -> R: ...
@overload
def switch(
    index: object, branches: Sequence[Callable[..., Any]], *operands: Any, operand: object = ...
) -> Any: ...


def switch(
    index: Any, branches: Sequence[Callable[..., R]], *operands: Any, operand: Any = UNSPECIFIED
) -> R:
    """The result of `branches[index](*operands)`; an index out of range is clamped.

    Shapes:     index: a scalar; the results of all branches have the same types.
    Dtypes:     index: an integer.
    Derivative: that of the function chosen.
    Lowers to:  stablehlo.case.

    Raises:
        TypeError: the index is not an integer scalar, or the results disagree.
        ValueError: there are no branches.

    Example:
        >>> branches = [lambda x: x + 1, lambda x: 10 * x, lambda x: -x]
        >>> jax.jit(lambda i, x: lax.switch(i, branches, x))(1, 7)
        Array(70, dtype=int32, weak_type=True)
        >>> lax.switch(99, branches, 7)
        Array(-7, dtype=int32, weak_type=True)
    """
    if operand is not UNSPECIFIED:
        operands = (*operands, operand)
    branches = tuple(branches)
    for function in branches:
        eager.check_callable("lax.switch", function)
    aval = aval_of(as_operand(index))
    if aval.shape or not dtypes.issubdtype(aval.dtype, np.integer):
        problem = "the index must be an integer scalar."
        fix = "lax.cond takes booleans"
        if aval.dtype != dtypes.bool_:
            fix = "index.astype(int), of one element"
        error(TypeError, "lax.switch", problem, got=str(aval), fix=fix)
    if not branches:
        error(ValueError, "lax.switch", "needs at least one branch.")
    if len(branches) == 1:
        return branches[0](*operands)
    if config.disable_jit.value:
        try:
            return branches[min(max(int(index), 0), len(branches) - 1)](*operands)
        except ConcretizationTypeError:
            pass
    number = creation.convert_element_type(index, np.int32)
    clamped = binary.clamp(np.int32(0), number, np.int32(len(branches) - 1))
    labels = [f"branches[{i}]" for i in range(len(branches))]
    return _branch("lax.switch", clamped, branches, labels, operands)


def _branch(
    name: str,
    index: ArrayLike | Tracer,
    functions: Sequence[Callable[..., Any]],
    labels: Sequence[str],
    operands: tuple[Any, ...],
    *,
    order: Sequence[int] = (),
    platforms: Platforms = None,
) -> Any:
    """Stages the functions, and binds the primitive to them in `order`, their own by default."""
    leaves, in_tree, avals = bodies.flatten_values(name, "operands", operands)
    staged = bodies.stage_bodies(name, functions, bodies.call_tree(in_tree), avals)
    bodies.check_branches(name, labels, staged.out_trees, staged.closed)
    bodies.check_references(name, "operands", in_tree, leaves, staged.consts)
    outs = cond_p.bind_all(
        index,
        *staged.consts,
        *leaves,
        branches=tuple(staged.closed[i] for i in order or range(len(functions))),
        branches_platforms=platforms,
    )
    return tree.unflatten(staged.out_trees[0], outs)


class PlatformIndex(Primitive):
    """The position in `platforms` of the platform that the program is lowered for.

    Shapes: -> int32[].  The same for all examples of a batch; it has no derivative.
    """

    name = "platform_index"
    shard = rules.from_types

    def abstract_eval(self, *, platforms: tuple[tuple[str, ...] | None, ...]) -> ShapedArray:
        return shaped_array((), np.dtype(np.int32))

    def lower(self, ctx: LoweringContext, *, platforms: tuple[tuple[str, ...] | None, ...]) -> Any:
        return ctx.constant(_platform_number(ctx.platform, platforms), np.int32)


platform_index_p = PlatformIndex()


def _platform_number(platform: str, platforms: Sequence[tuple[str, ...] | None]) -> int:
    aliases = {platform, "gpu"} if platform in ("cuda", "rocm") else {platform}
    for i, names in enumerate(platforms):
        if names is None or aliases & set(names):
            return i
    problem = f"there is no function for the platform {platform!r}."
    got = ", ".join(name for names in platforms for name in names or ())
    fix = "give one by that name, or default="
    error(NotImplementedError, "lax.platform_dependent", problem, got=got, fix=fix)


def platform_dependent(
    *args: Any, default: Callable[..., R] | None = None, **per_platform: Callable[..., R]
) -> R:
    """The result of the function for the platform that the program is compiled for.

    Shapes:     the results of all functions have the same types.
    Derivative: that of the function chosen.
    Lowers to:  the function chosen; the others are not lowered.

    Args:
        args: arguments of the functions, trees of arrays.
        default: the function for platforms without one of their own.
        per_platform: functions by the name of the platform: cpu, tpu, cuda, rocm.

    Raises:
        NotImplementedError: there is no function for the platform.
        TypeError: the results disagree.

    Example:
        >>> def f(x):
        ...     return lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x - 1)
        >>> jax.jit(f)(5)
        Array(6, dtype=int32, weak_type=True)
    """
    functions = list(per_platform.values())
    platforms: list[tuple[str, ...] | None] = [(name,) for name in per_platform]
    labels = list(per_platform)
    if default is not None:
        functions.append(default)
        platforms.append(None)
        labels.append("default")
    if not functions:
        problem = "needs a function for a platform, or a default."
        error(NotImplementedError, "lax.platform_dependent", problem)
    index = platform_index_p.bind(platforms=tuple(platforms))
    if not isinstance(index, Tracer):
        return functions[int(index)](*args)
    return _branch(
        "lax.platform_dependent", index, functions, labels, args, platforms=tuple(platforms)
    )
