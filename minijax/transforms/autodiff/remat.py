"""The primitive `remat2`: a call whose values are computed again where a derivative needs them.

It holds a closed jaxpr.  Its partial evaluation runs what is known at once and saves what the
policy says; the staged call computes the rest again, then the tangents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from minijax.core import effects, refs, vma
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, Var, used_variables
from minijax.core.operators import Values
from minijax.core.sequences import merge_lists
from minijax.interpreters import (
    casts,
    discharge,
    partial_eval,
    passes,
    remat,
    staging,
    structural_keys,
)
from minijax.lax import references
from minijax.lowering import diagnosis, module
from minijax.transforms.jaxpr_call import Backward, JaxprCall, walk_call

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

    def partial_eval(self, trace: Any, args: Values, params: dict[str, Any]) -> list[Any]:
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
        places = [*(None for _ in saved), *order]
        staged_outs: Sequence[Any] = ()
        if any(split.out_unknown) or split.staged.effects:
            kept = [places[i] for i in split.kept]
            staged_params = self.arranged(params, split.staged, kept, ())
            staged_params["differentiated"] = True
            staged_outs = trace.unknown.process(
                self, [operands[i] for i in split.kept], staged_params
            )
        return merge_lists(split.out_unknown, outs[:num_known], staged_outs)

    def transposed(self, params: Mapping[str, Any], backward: Backward) -> dict[str, Any]:
        # Operation by operation, what nobody reads would be computed too.
        jaxpr, count = backward.jaxpr, len(backward.jaxpr.in_avals)
        used = [True] * len(jaxpr.out_avals)
        slim, _ = passes.dce_closed_jaxpr(jaxpr, used, keep_inputs=[True] * count)
        return super().transposed(params, backward._replace(jaxpr=slim))


structural_keys.unlowered_params.set(frozenset({"policy"}), Remat)
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
    second, _ = passes.dce_jaxpr(split.staged.jaxpr, keep_inputs=True)
    read = used_variables(second)
    meaning = dict(zip(second.invars, residuals, strict=False))
    part = remat.divide(first, [atom for var, atom in meaning.items() if var in read], policy)
    staged, kept = passes.dce_jaxpr(
        Jaxpr(
            first.constvars,
            part.saved + first.invars + second.invars[len(residuals) :],
            _renamed(second.outvars, meaning),
            part.again + [eqn.replace(invars=_renamed(eqn.invars, meaning)) for eqn in second.eqns],
            debug_info=first.debug_info.without_arg_names(),
        )
    )
    now, _ = passes.dce_jaxpr(
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
