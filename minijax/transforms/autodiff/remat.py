"""The primitive `remat2`: a call whose values are computed again where a derivative needs them.

It holds a closed jaxpr.  Its partial evaluation runs what is known at once and saves what the
policy says; the staged call computes the rest again, then the tangents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from minijax.core import effects, refs, vma
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, Var, used_variables
from minijax.core.sequences import merge_lists
from minijax.interpreters import (
    casts,
    checking,
    diagnosis,
    discharge,
    partial_eval,
    passes,
    remat,
    staging,
    transpose,
)
from minijax.interpreters.jvp import Zero, is_linear
from minijax.lax import references
from minijax.lowering import module
from minijax.transforms import jaxpr_call
from minijax.transforms.jaxpr_call import JaxprCall, walk_call

if TYPE_CHECKING:
    from minijax.lowering.stablehlo import LoweringContext

PreventCse = bool | tuple[bool, ...]


class Remat(JaxprCall):
    """Calls `jaxpr`.

    A call that is `differentiated` computes values again that were computed before.  The arguments
    that `prevent_cse` marks (all, or one flag for each) then pass a barrier, lest the compiler
    sees that the values are the same and keeps the first ones.
    """

    name = "remat2"
    per_operand: ClassVar[Mapping[str, Any]] = {"prevent_cse": True}
    tangents_are_new: ClassVar[bool] = True

    def impl(self, *args: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
        return staging.eval_closed_jaxpr(jaxpr, *args)

    def lower(
        self,
        ctx: LoweringContext,
        *values: Any,
        jaxpr: ClosedJaxpr,
        prevent_cse: PreventCse,
        differentiated: bool,
        **params: Any,
    ) -> list[Any]:
        args = list(values)
        guarded = [i for i, flag in enumerate(_flags(prevent_cse, len(args))) if flag]
        if differentiated and guarded:
            operands = [args[i] for i in guarded]
            outs = ctx.ops(
                "stablehlo.optimization_barrier", operands, types=[x.type for x in operands]
            )
            for i, out in zip(guarded, outs, strict=True):
                args[i] = out
        scope = ("rematted_computation",) if differentiated else ("checkpoint",)
        return module.lower_jaxpr(ctx, jaxpr.jaxpr, jaxpr.consts, args, scope)

    def partial_eval(self, trace: Any, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        _check_repeatable(params["jaxpr"])
        unknown = [trace.is_unknown(x) for x in args]
        split = _split(params["jaxpr"], unknown, params["policy"])
        num_known = split.out_unknown.count(False)
        known_places = [i for i, u in enumerate(unknown) if not u]
        unknown_places = [i for i, u in enumerate(unknown) if u]
        outs = trace.evaluate_known(split.now, [args[i] for i in known_places])
        saved = outs[num_known:]
        order = known_places + unknown_places
        operands = saved + [args[i] for i in order]
        flags = params["prevent_cse"]
        if not isinstance(flags, bool):
            flags = (True,) * len(saved) + tuple(flags[i] for i in order)
        staged_outs: Sequence[Any] = ()
        if any(split.out_unknown) or split.staged.effects:
            staged_params = {
                **params,
                "jaxpr": split.staged,
                "prevent_cse": _select(flags, split.kept),
                "differentiated": True,
            }
            staged_outs = trace.unknown.process(
                self, [operands[i] for i in split.kept], staged_params
            )
        return merge_lists(split.out_unknown, outs[:num_known], staged_outs)

    def transpose(
        self,
        cts: Sequence[Any],
        *args: Any,
        jaxpr: ClosedJaxpr,
        prevent_cse: PreventCse,
        **params: Any,
    ) -> list[Any]:
        linear = [is_linear(x) for x in args]
        ct_nonzero = [type(ct) is not Zero for ct in cts]
        backward, nonzero = transpose.transpose_jaxpr(jaxpr, linear, ct_nonzero)
        backward, kept = passes.without_dead_code(backward, [True] * len(backward.out_avals))
        places = [i for i, lin in enumerate(linear) if not lin]
        given_cts = [ct for ct in cts if type(ct) is not Zero]
        operands = [args[i] for i in places] + given_cts
        flags = _select(prevent_cse, places, len(given_cts))
        kept_places = [i for i, keep in enumerate(kept) if keep]
        outs = self.bind(
            *[operands[i] for i in kept_places],
            jaxpr=backward,
            prevent_cse=_select(flags, kept_places),
            **params,
        )
        given, has_ct = iter(outs), iter(nonzero)
        return [next(given) if lin and next(has_ct) else None for lin in linear]


passes.unlowered_params.set(frozenset({"policy"}), Remat)
checking.check_inside.rule(Remat)(jaxpr_call.check_call)
refs.discharge.rule(Remat)(discharge.discharge_call)
refs.with_references.rule(Remat)(references.with_references)
vma.agree.rule(Remat)(casts.agree_call)
diagnosis.walk.rule(Remat)(walk_call)


remat_p = Remat()


def _check_repeatable(closed: ClosedJaxpr) -> None:
    """Refuses effects that must happen once.

    Raises:
        NotImplementedError: the jaxpr has one.
    """
    found = effects.guarded_among(closed.effects)
    once = [e for e in found if not effects.repeatable_effects.contains(e)]
    if once:
        problem = "a function with effects cannot be computed again for its derivative."
        fix = "move what has the effect out of the function"
        error(NotImplementedError, "checkpoint", problem, got=f"effects {once}", fix=fix)


def _flags(prevent_cse: PreventCse, count: int) -> Sequence[bool]:
    """One flag for each argument."""
    return (prevent_cse,) * count if isinstance(prevent_cse, bool) else prevent_cse


def _select(prevent_cse: PreventCse, places: Iterable[int], more: int = 0) -> PreventCse:
    """The flags of some of the arguments, and of `more` new ones."""
    if isinstance(prevent_cse, bool):
        return prevent_cse
    return tuple(prevent_cse[i] for i in places) + (True,) * more


class _Split(NamedTuple):
    """A jaxpr split in two, with few values passing from one half to the other.

    Attributes:
        now: known arguments to known results, then saved values.
        staged: of saved values, known arguments and unknown ones those in `kept`, to the unknown
            results.
        kept: which of them, as positions.
        out_unknown: which results are unknown.
    """

    now: ClosedJaxpr
    staged: ClosedJaxpr
    kept: list[int]
    out_unknown: list[bool]


def _split(closed: ClosedJaxpr, unknown: Sequence[bool], policy: remat.Policy) -> _Split:
    key = ("remat", tuple(unknown), policy)
    result: _Split = closed.remember(key, lambda: _split_by_policy(closed, unknown, policy))
    return result


def _split_by_policy(closed: ClosedJaxpr, unknown: Sequence[bool], policy: remat.Policy) -> _Split:
    """Splits with all residuals, then computes those again that the policy does not save."""
    split = partial_eval.partial_eval_jaxpr(closed, unknown)
    first = split.known.jaxpr
    num_known = split.out_unknown.count(False)
    residuals = split.residuals(first.invars, first.outvars[num_known:])
    second, _ = passes.dead_code_elimination(split.staged.jaxpr, keep_inputs=True)
    read = used_variables(second)
    meaning = dict(zip(second.invars, residuals, strict=False))
    part = remat.divide(first, [atom for var, atom in meaning.items() if var in read], policy)
    staged, kept = passes.dead_code_elimination(
        Jaxpr(
            first.constvars,
            part.saved + first.invars + second.invars[len(residuals) :],
            _renamed(second.outvars, meaning),
            part.again + [eqn.replace(invars=_renamed(eqn.invars, meaning)) for eqn in second.eqns],
            debug_info=first.debug_info.without_arg_names(),
        )
    )
    now, _ = passes.dead_code_elimination(
        first.replace(outvars=first.outvars[:num_known] + part.saved, eqns=part.now),
        keep_inputs=True,
    )
    return _Split(
        passes.prune_constants(ClosedJaxpr(now, split.known.consts)),
        passes.prune_constants(ClosedJaxpr(staged, split.known.consts)),
        [i for i, keep in enumerate(kept) if keep],
        split.out_unknown,
    )


def _renamed(atoms: Sequence[Any], meaning: dict[Var, Any]) -> list[Any]:
    return [meaning.get(atom, atom) if type(atom) is Var else atom for atom in atoms]
