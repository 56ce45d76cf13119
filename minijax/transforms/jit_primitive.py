"""The primitive `jit`: a call of a compiled function, holding its closed jaxpr.

Transforming the call transforms the jaxpr, once however often the call is repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from minijax.core import refs, variance
from minijax.core.jaxpr import ClosedJaxpr, Eqn
from minijax.core.primitive import Primitive
from minijax.core.sequences import merge_lists, partition_list
from minijax.interpreters import (
    batching,
    discharge,
    eager,
    jvp,
    partial_eval,
    passes,
    program,
    rematerialization,
    retyping,
    transpose,
)
from minijax.interpreters.structural import moveaxis
from minijax.interpreters.tangents import Zero, is_linear, with_zeros
from minijax.lax import references
from minijax.sharding import rules
from minijax.transforms import checked_calls


class Jit(Primitive):
    """Calls the function `name`, whose body is `jaxpr`.

    The other parameters matter where the call is compiled by itself: which arguments give their
    memory away, whether unused ones stay, and where it runs.
    """

    name = "jit"
    multiple_results: ClassVar[bool] = True
    has_effects: ClassVar[bool] = True
    knows_extended: ClassVar[bool] = True
    constrains_results: ClassVar[bool] = False
    shard = rules.from_types
    vary = variance.from_types
    agree = retyping.agree_call

    def shown_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        return {"name": params["name"], "jaxpr": params["jaxpr"]}

    def impl(self, *args: Any, jaxpr: ClosedJaxpr, **params: Any) -> Sequence[Any]:
        eager.check_no_tracers(args)
        options = program.Options(params["name"], params["keep_unused"])
        return program.executable_for(jaxpr, args, options, params["device"])(args)

    def abstract_eval(self, *avals: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
        return jaxpr.out_avals

    def effects(self, *avals: Any, jaxpr: ClosedJaxpr, **params: Any) -> frozenset[Any]:
        return refs.effects_of_body(jaxpr.jaxpr)

    def lower(
        self, ctx: Any, *values: Any, jaxpr: ClosedJaxpr, name: str, **params: Any
    ) -> list[Any]:
        outs: list[Any] = ctx.module.call(ctx, jaxpr, name, values)
        return outs

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        jaxpr: ClosedJaxpr,
        donated_invars: tuple[bool, ...],
        **params: Any,
    ) -> tuple[list[Any], list[Any]]:
        nonzero = [type(t) is not Zero for t in tangents]
        derivative, out_nonzero = jvp.jvp_jaxpr(jaxpr, nonzero)
        outs = self.bind(
            *primals,
            *(t for t in tangents if type(t) is not Zero),
            jaxpr=derivative,
            donated_invars=(),
            **params,
        )
        count = len(out_nonzero)
        return list(outs[:count]), with_zeros(out_nonzero, outs[count:], jaxpr.out_avals)

    def partial_eval(
        self,
        trace: Any,
        args: Sequence[Any],
        params: dict[str, Any],
    ) -> list[Any]:
        unknown = [trace.is_unknown(x) for x in args]
        split = partial_eval.partial_eval_jaxpr(params["jaxpr"], unknown)
        params = {**params, "donated_invars": ()}
        known_args, unknown_args = partition_list(unknown, args)
        known_outs: Sequence[Any] = ()
        if split.known.jaxpr.outvars or split.known.effects:
            known_outs = trace.process_known(self, known_args, {**params, "jaxpr": split.known})
        num_known = len(split.out_unknown) - sum(split.out_unknown)
        residuals = split.residuals(known_args, known_outs[num_known:])
        staged_outs: Sequence[Any] = ()
        if any(split.out_unknown) or split.staged.effects:
            staged_outs = trace.unknown.process(
                self, [*residuals, *unknown_args], {**params, "jaxpr": split.staged}
            )
        return merge_lists(split.out_unknown, known_outs[:num_known], staged_outs)

    def transpose(
        self,
        cts: Sequence[Any],
        *args: Any,
        jaxpr: ClosedJaxpr,
        donated_invars: tuple[bool, ...],
        **params: Any,
    ) -> list[Any]:
        linear = [is_linear(x) for x in args]
        ct_nonzero = [type(ct) is not Zero for ct in cts]
        backward, nonzero = transpose.transpose_jaxpr(jaxpr, linear, ct_nonzero)
        outs = self.bind(
            *(x for x, lin in zip(args, linear, strict=True) if not lin),
            *(ct for ct in cts if type(ct) is not Zero),
            jaxpr=backward,
            donated_invars=(),
            **params,
        )
        return transpose.of_arguments(linear, nonzero, outs)

    def batch(
        self,
        size: int,
        args: Sequence[Any],
        dims: Sequence[Any],
        *,
        jaxpr: ClosedJaxpr,
        donated_invars: tuple[bool, ...],
        **params: Any,
    ) -> tuple[list[Any], list[int | None]]:
        batched = [d is not None for d in dims]
        moved = [x if d is None else moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
        whole, out_batched = batching.batch_jaxpr(jaxpr, size, batched)
        outs = self.bind(*moved, jaxpr=whole, donated_invars=(), **params)
        return list(outs), [0 if b else None for b in out_batched]

    def walk(self, run: Any, *args: Any, jaxpr: ClosedJaxpr, **params: Any) -> None:
        run(jaxpr, *args)

    def divide(
        self, eqn: Eqn, wanted: Sequence[bool], policy: rematerialization.Policy
    ) -> rematerialization.Division:
        return rematerialization.divide_call(eqn, wanted, policy, {"donated_invars": ()})

    def check_inside(self, checker: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        params = {**params, "donated_invars": ()}
        return checked_calls.check_call(self, checker, args, params)

    discharge = discharge.discharge_call
    with_references = references.with_references

    def dead_code(self, eqn: Eqn, used: Sequence[bool]) -> Eqn | None:
        closed: ClosedJaxpr = eqn.params["jaxpr"]
        slim, kept = passes.without_dead_code(closed, used)
        if not slim.jaxpr.outvars and not slim.effects:
            return None
        donated = eqn.params["donated_invars"]
        return eqn.replace(
            invars=[v for v, keep in zip(eqn.invars, kept, strict=True) if keep],
            outvars=[v for v, u in zip(eqn.outvars, used, strict=True) if u],
            params={
                **eqn.params,
                "jaxpr": slim,
                "donated_invars": tuple(d for d, keep in zip(donated, kept, strict=True) if keep)
                if donated
                else (),
            },
            effects=slim.effects,
        )


jit_p = Jit()
