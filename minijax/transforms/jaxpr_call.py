"""Operations that hold a jaxpr: one family, whose members differ by data.

Transforming such an operation transforms its jaxpr, and applies the operation to the result.  What
sets one apart is data: which parameters have an entry for each operand or result, and the scope
that the jaxpr is written for.  The members, among them `jit`, `vmap` and `shard_map`, stand with
the transformations that bind them.

Input: an operation, and what a transformation knows of its operands.  Output: its results.

The second half checks calls for faults: what is called returns its first fault before its
results.  Rules of the user's for derivatives stay, and return the fault of the function too, so
that a checked function can still be differentiated from outside.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from minijax.core import check, dtypes, refs, vma
from minijax.core.aval import aval_of
from minijax.core.jaxpr import ClosedJaxpr, Eqn
from minijax.core.operators import Values
from minijax.core.primitive import Cotangents, Dual, Primitive, Tangents, Zero
from minijax.core.sequences import merge_lists
from minijax.interpreters import batching, checking, jvp, partial_eval, passes, staging, transpose
from minijax.interpreters.jvp import is_linear, with_zeros
from minijax.interpreters.structural import in_front
from minijax.lax import functionalization
from minijax.lax.functionalization import STATE_SIZE, Checked, Checker
from minijax.sharding import rules
from minijax.transforms.autodiff import calls

Places = Sequence[Any]
"""Positions of operands or results; what a transformation adds is None, or an entry of its own."""


class Backward(NamedTuple):
    """A transposed jaxpr, and what it has to do with the operation that held the first one.

    Attributes:
        jaxpr: takes known operands and cotangents; returns cotangents.
        known: the operands that it takes, by position.
        cts: the results whose cotangents it takes.
        wanted: the operands whose cotangents it returns.
    """

    jaxpr: ClosedJaxpr
    known: Sequence[int]
    cts: Sequence[int]
    wanted: Sequence[int]


class JaxprCall(Primitive):
    """An operation that calls the jaxpr in its parameter `jaxpr` with all of its operands.

    A parameter `donated_invars`, of operands whose memory results may take, is emptied when the
    operands become others.

    Attributes:
        per_operand: the parameters with an entry for each operand, and the entry of a new operand;
            a parameter that is not a tuple holds for all operands.
        per_result: the same for results.
        tangents_are_new: whether a tangent has the entry of a new operand, not its primal's.
    """

    multiple_results: ClassVar[bool] = True
    has_effects: ClassVar[bool] = True
    per_operand: ClassVar[Mapping[str, Any]] = {}
    per_result: ClassVar[Mapping[str, Any]] = {}
    tangents_are_new: ClassVar[bool] = False
    shard: ClassVar[Callable[..., Any]] = rules.from_types

    def inside(self, params: Mapping[str, Any]) -> contextlib.AbstractContextManager[Any]:
        """The scope that the jaxpr is written for; that of the operation by default."""
        return contextlib.nullcontext()

    def outside(self, found: frozenset[Any], params: Mapping[str, Any]) -> frozenset[Any]:
        """Those of the jaxpr's effects that the operation has; all by default."""
        return found

    def summed(self, cts: list[Any], params: Mapping[str, Any]) -> list[Any]:
        """The cotangents of the operands, from those of the jaxpr's; the same by default."""
        return cts

    def arranged(
        self, params: Mapping[str, Any], jaxpr: ClosedJaxpr, operands: Places, results: Places
    ) -> dict[str, Any]:
        """The parameters for another jaxpr.

        Args:
            params: the parameters of the operation.
            jaxpr: the other jaxpr.
            operands: where each of its operands stands among those of the operation.
            results: the same for results.
        """
        changed = {**params, "jaxpr": jaxpr}
        if "donated_invars" in params:
            changed["donated_invars"] = ()
        for entries, places in ((self.per_operand, operands), (self.per_result, results)):
            for name, new in entries.items():
                changed[name] = _entries(params[name], places, new)
        return changed

    def split(
        self, params: Mapping[str, Any], unknown: Sequence[bool]
    ) -> tuple[partial_eval.PartialJaxpr, Sequence[Any]]:
        """The jaxpr in two, and entries for what the first computes for the second, or None."""
        split = partial_eval.partial_eval_jaxpr(params["jaxpr"], unknown)
        return split, [None for i in split.sources if i is None]

    def transposed(self, params: Mapping[str, Any], backward: Backward) -> dict[str, Any]:
        """The parameters for the transposed jaxpr, from those of the operation."""
        operands = [*backward.known, *(None for _ in backward.cts)]
        return self.arranged(params, backward.jaxpr, operands, [None for _ in backward.wanted])

    def batched(
        self,
        params: Mapping[str, Any],
        jaxpr: ClosedJaxpr,
        operands: Sequence[bool],
        results: Sequence[bool],
    ) -> dict[str, Any]:
        """The parameters for the batched jaxpr; flags say what has the batch in front."""
        return self.arranged(params, jaxpr, range(len(operands)), range(len(results)))

    def abstract_eval(self, *avals: Any, **params: Any) -> list[Any]:
        closed: ClosedJaxpr = params["jaxpr"]
        return closed.out_avals

    def effects(self, *avals: Any, jaxpr: ClosedJaxpr, **params: Any) -> frozenset[Any]:
        return self.outside(refs.effects_of_body(jaxpr.jaxpr), params)

    def jvp(self, primals: Values, tangents: Tangents, **params: Any) -> Dual:
        nonzero = [type(t) is not Zero for t in tangents]
        with self.inside(params):
            derivative, out_nonzero = jvp.jvp_jaxpr(params["jaxpr"], nonzero)
        moving: Places = _places(nonzero, True)
        if self.tangents_are_new:
            moving = [None for _ in moving]
        operands, results = [*range(len(primals)), *moving], range(len(out_nonzero))
        params = self.arranged(
            params, derivative, operands, [*results, *_places(out_nonzero, True)]
        )
        outs = self.bind(*primals, *(t for t in tangents if type(t) is not Zero), **params)
        count = len(out_nonzero)
        return list(outs[:count]), with_zeros(out_nonzero, outs[count:], map(aval_of, outs[:count]))

    def partial_eval(self, trace: Any, args: Values, params: dict[str, Any]) -> list[Any]:
        flags = [trace.is_unknown(x) for x in args]
        with self.inside(params):
            split, passed = self.split(params, flags)
        known, unknown = _places(flags, False), _places(flags, True)
        out_known = _places(split.out_unknown, False)
        known_args = [args[i] for i in known]
        known_outs: Sequence[Any] = ()
        if split.known.jaxpr.outvars or split.known.effects:
            results = [*out_known, *passed]
            own = self.arranged(params, split.known, known, results)
            known_outs = trace.process_known(self, known_args, own)
        residuals = split.residuals(known_args, known_outs[len(out_known) :])
        staged_outs: Sequence[Any] = ()
        if any(split.out_unknown) or split.staged.effects:
            new = iter(passed)
            sources = [next(new) if i is None else known[i] for i in split.sources]
            results = [*_places(split.out_unknown, True)]
            own = self.arranged(params, split.staged, [*sources, *unknown], results)
            operands = [*residuals, *(args[i] for i in unknown)]
            staged_outs = trace.unknown.process(self, operands, own)
        return merge_lists(split.out_unknown, known_outs[: len(out_known)], staged_outs)

    def transpose(self, cts: Sequence[Any], *args: Any, **params: Any) -> Cotangents:
        linear = [is_linear(x) for x in args]
        has_ct = [type(ct) is not Zero for ct in cts]
        with self.inside(params):
            jaxpr, nonzero = transpose.transpose_jaxpr(params["jaxpr"], linear, has_ct)
        known, given = _places(linear, False), _places(has_ct, True)
        wanted = list(itertools.compress(_places(linear, True), nonzero))
        changed = self.transposed(params, Backward(jaxpr, known, given, wanted))
        outs = self.bind(*(args[i] for i in known), *(cts[i] for i in given), **changed)
        return self.summed(transpose.of_arguments(linear, nonzero, outs), params)

    def batch(
        self, size: int, args: Values, dims: Sequence[int | None], /, **params: Any
    ) -> tuple[list[Any], Sequence[int | None]]:
        moved = in_front(args, dims)
        is_batched = [d is not None for d in dims]
        with self.inside(params):
            whole, out_batched = batching.batch_jaxpr(params["jaxpr"], size, is_batched)
        changed = self.batched(params, whole, is_batched, out_batched)
        return list(self.bind(*moved, **changed)), [0 if b else None for b in out_batched]


dtypes.knows_extended.set(True, JaxprCall)
vma.vary.rule(JaxprCall)(vma.from_types)


@check.inside.rule(JaxprCall)
def _inside(call: JaxprCall, **params: Any) -> contextlib.AbstractContextManager[Any]:
    return call.inside(params)


@passes.dce.rule(JaxprCall)
def _dce(call: JaxprCall, eqn: Eqn, used: Sequence[bool]) -> Eqn | None:
    params = eqn.params
    with call.inside(params):
        slim, kept = passes.dce_closed_jaxpr(params["jaxpr"], used)
    effects = call.outside(slim.effects, params)
    if not slim.jaxpr.outvars and not effects:
        return None
    operands, results = _places(kept, True), _places(used, True)
    changed = call.arranged(params, slim, operands, results)
    if params.get("donated_invars"):
        changed["donated_invars"] = tuple(params["donated_invars"][i] for i in operands)
    return eqn.replace(
        invars=[eqn.invars[i] for i in operands],
        outvars=[eqn.outvars[i] for i in results],
        params=changed,
        effects=effects,
    )


def walk_call(call: JaxprCall, run: Any, *args: Any, jaxpr: ClosedJaxpr, **params: Any) -> None:
    """The rule `diagnosis.walk` of an operation whose operands are those of its jaxpr."""
    run(jaxpr, *args)


def first_fault(checker: Checker, inner: Checked, outs: Values, size: int) -> Sequence[Any]:
    """The results of a checked function of one example, which ran on `size` of them.

    The state of each example comes before its results; the first fault among them is noted.
    """
    if not inner.sites:
        return outs
    state, sites = functionalization.first_of_batch(outs[:STATE_SIZE], inner.sites, size)
    checker.add(state, sites)
    return outs[STATE_SIZE:]


def _entries(entries: object, places: Places, new: object) -> Any:
    if not isinstance(entries, tuple):
        return entries
    return tuple(new if i is None else entries[i] if type(i) is int else i for i in places)


def _places(flags: Sequence[bool], wanted: bool) -> list[int]:
    """The positions of the flags that are the wanted one."""
    return [i for i, flag in enumerate(flags) if bool(flag) is wanted]


@checking.check_inside.rule(JaxprCall)
def _check_inside(
    primitive: Primitive, checker: Checker, args: Values, params: dict[str, Any]
) -> Sequence[Any]:
    """The rule of operations that call the parameter `jaxpr` with all their operands."""
    inner = checker.inner(params["jaxpr"])
    if "donated_invars" in params:
        params = {**params, "donated_invars": ()}
    return _call(primitive, checker, args, {**params, "jaxpr": inner.closed}, inner)


def check_custom_vmap_call(
    primitive: Primitive, checker: Checker, args: Values, params: dict[str, Any]
) -> Sequence[Any]:
    """The rule of `custom_vmap_call`: the function itself, which is batched as it stands.

    A rule of the user's maps a function that does not return its fault.
    """
    inner = checker.inner(params["call_jaxpr"])
    if not inner.sites:
        return list(primitive.bind(*args, **{**params, "call_jaxpr": inner.closed}))
    outs = staging.eval_closed_jaxpr(inner.closed, *args)
    checker.add(outs[:STATE_SIZE], inner.sites)
    return outs[STATE_SIZE:]


def _call_with_rule(
    rule: str,
    with_state: Callable[[Callable[..., Any], Checked, int, str], Callable[..., Any]],
    primitive: Primitive,
    checker: Checker,
    args: Values,
    params: dict[str, Any],
) -> Sequence[Any]:
    """A call whose parameter `rule` is the user's: it gives the state, too, as the call does."""
    inner = checker.inner(params["call_jaxpr"])
    if inner.sites:
        changed = with_state(params[rule], inner, params["num_consts"], params["name"])
        params = {**params, rule: changed, "num_consts": 0}
    return _call(primitive, checker, args, {**params, "call_jaxpr": inner.closed}, inner)


def _call(
    primitive: Primitive, checker: Checker, args: Values, params: dict[str, Any], inner: Checked
) -> Values:
    outs = list(primitive.bind(*args, **params))
    if not inner.sites:
        return outs
    checker.add(outs[:STATE_SIZE], inner.sites)
    return outs[STATE_SIZE:]


def _state(inner: Checked, args: Values) -> list[Any]:
    return staging.eval_closed_jaxpr(inner.closed, *args)[:STATE_SIZE]


def _with_state_jvp(
    rule: Callable[..., Any], inner: Checked, num_consts: int, name: str
) -> Callable[..., Any]:
    """The rule of a function that returns its state, too; what it closed over are arguments."""

    def with_state(primals: Values, tangents: Tangents) -> tuple[list[Any], list[Any]]:
        calls.check_constants(name, tangents, num_consts)
        state = _state(inner, primals)
        outs, out_dots = rule(primals[num_consts:], tangents[num_consts:])
        return [*state, *outs], [*map(Zero.like, state), *out_dots]

    with_state.__name__ = getattr(rule, "__name__", name)
    return with_state


def _with_state_fwd(
    rule: Callable[..., Any], inner: Checked, num_consts: int, name: str
) -> Callable[..., Any]:
    def with_state(
        perturbed: tuple[bool, ...], *args: Any
    ) -> tuple[list[Any], list[Any], Callable[..., Any]]:
        state = _state(inner, args)
        outs, residuals, backward = rule(perturbed[num_consts:], *args[num_consts:])
        nothing = [Zero(aval_of(x).tangent_aval()) for x in args[:num_consts]]

        def backward_with_state(residuals: Values, cts: Cotangents) -> list[Any]:
            return [*nothing, *backward(residuals, cts[STATE_SIZE:])]

        return [*state, *outs], residuals, backward_with_state

    with_state.__name__ = getattr(rule, "__name__", name)
    return with_state


check_custom_jvp_call = functools.partial(_call_with_rule, "jvp", _with_state_jvp)
check_custom_vjp_call = functools.partial(_call_with_rule, "fwd", _with_state_fwd)
"""The rules `check_inside` of functions with rules of the user's."""
