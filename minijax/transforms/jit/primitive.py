"""The primitive `jit`: a call of a compiled function, holding its closed jaxpr.

Transforming the call transforms the jaxpr, once however often the call is repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from minijax.core import printing, refs, vma
from minijax.core.jaxpr import ClosedJaxpr, Eqn
from minijax.core.trace import Params
from minijax.interpreters import casts, discharge, remat, staging
from minijax.lax import references
from minijax.lowering import diagnosis, eager, program
from minijax.lowering.call_plan import ProgramOptions, RequestedPlacement
from minijax.runtime.array import Array
from minijax.sharding import rules
from minijax.transforms.autodiff import calls
from minijax.transforms.jaxpr_call import JaxprCall, walk_call

if TYPE_CHECKING:
    from minijax.lowering.stablehlo import LoweringContext


class Jit(JaxprCall):
    """Calls the function `name`, whose body is `jaxpr`.

    The other parameters matter where the call is compiled by itself: which arguments give their
    memory away, whether unused ones stay, and where it runs.
    """

    name = "jit"

    def impl(self, *args: Any, jaxpr: ClosedJaxpr, **params: Any) -> Sequence[Any]:
        eager.check_no_tracers(args)
        if any(map(refs.is_reference, jaxpr.consts)):
            # A backward rule of the user's closes over them.
            return staging.eval_closed_jaxpr(jaxpr, *args)
        options = ProgramOptions(params["name"], params["keep_unused"])
        requested = RequestedPlacement(device=params["device"])
        return program.executable_for(jaxpr, args, options, requested)(args)

    def lower(
        self, ctx: LoweringContext, *values: Any, jaxpr: ClosedJaxpr, name: str, **params: Any
    ) -> list[Any]:
        outs: list[Any] = ctx.module.call(ctx, jaxpr, name, values)
        return outs


rules.constrains_results.set(False, Jit)
refs.discharge.rule(Jit)(discharge.discharge_call)


@refs.with_references.rule(Jit)
def _with_references_of_jit(primitive: Jit, args: Sequence[Array], params: Params) -> Sequence[Any]:
    """By their values; but rules of the user's may save references, and are given them as such."""
    closed: ClosedJaxpr = params["jaxpr"]
    if calls.takes_references(closed.jaxpr):
        return staging.eval_closed_jaxpr(closed, *args)
    return references.with_references(primitive, args, params)


@printing.shows.rule(Jit)
def _shown_params_of_jit(primitive: Jit, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": params["name"], "jaxpr": params["jaxpr"]}


@remat.division.rule(Jit)
def _divide_of_jit(
    primitive: Jit, eqn: Eqn, wanted: Sequence[bool], policy: remat.Policy
) -> remat.Division:
    params = {**eqn.params, "donated_invars": ()}
    body = remat.divided(params["jaxpr"], wanted, policy)
    now, again = {**params, "jaxpr": body.now}, {**params, "jaxpr": body.again}
    return remat.divided_call(eqn, body, body.now.out_avals[len(wanted) :], now, again)


vma.agree.rule(Jit)(casts.agree_call)
diagnosis.walk.rule(Jit)(walk_call)


jit_p = Jit()
