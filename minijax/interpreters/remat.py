"""Rematerialization: which values are saved for later, and which are computed again.

Input: a jaxpr, the values of it that are needed later, and a policy.  Output: the equations to run
now, the equations to run again later, and the values that the first hand to the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes, vma
from minijax.core.aval import AbstractValue
from minijax.core.errors import error
from minijax.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Var
from minijax.core.operators import Avals, BatchDims, Function, Value, Values
from minijax.core.primitive import Batched, Cotangents, LoweringContext, Primitive
from minijax.core.rules import Rules
from minijax.interpreters import passes
from minijax.interpreters.jvp import jvp_of_linear
from minijax.sharding import rules

division = Rules("division")
"""Divides an operation that holds a jaxpr between now and later, for `checkpoint`:
`(primitive, eqn, wanted, policy)` gives a `Division`; without a rule a policy is asked about the
operation as a whole."""

Policy = Function | None
"""Asked `policy(primitive, *avals, **params)` whether to save the results of an operation."""


class Decision:
    """What a policy can say besides True and False."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


Saveable = Decision("Saveable")
Recompute = Decision("Recompute")


class Offloadable(NamedTuple):
    """Says: save the results in the memory `dst`, and bring them back to `src` when needed.

    Example:
        >>> away = jax.ad_checkpoint.Offloadable(src="device", dst="pinned_host")
        >>> def policy(prim, *avals, **params):
        ...     return away if prim is lax.sin_p else False
        >>> f = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=policy)
        >>> jax.grad(f)(0.0)
        Array(1., dtype=float32, weak_type=True)
    """

    src: str
    dst: str


class MoveToMemory(Primitive):
    """Moves `x` to another memory of its device: "device", "pinned_host" or "unpinned_host".

    Shapes: x: T[s] -> T[s].  Linear in x.  On CPU all memory is the host's, and nothing moves.
    """

    name = "move_to_memory"
    jvp = jvp_of_linear
    shard = rules.elementwise

    def abstract_eval(self, x: AbstractValue, *, kind: str) -> AbstractValue:
        return x.update(memory_kind=None if kind == "device" else kind)

    def lower(self, ctx: LoweringContext, x: Any, *, kind: str) -> Any:
        if ctx.platform == "cpu":
            return x
        return ctx.op(
            "stablehlo.custom_call",
            [x],
            {
                "call_target_name": ctx.string("annotate_device_placement"),
                "has_side_effect": ctx.boolean(True),
                "mhlo.frontend_attributes": ctx.attribute(f'{{_xla_buffer_placement = "{kind}"}}'),
            },
        )

    def transpose(self, ct: Value, x: Any, *, kind: str) -> Cotangents:
        return (move_to_memory_p.bind(ct, kind=x.aval.memory_kind or "device"),)

    def batch(self, size: int, args: Values, dims: BatchDims, *, kind: str) -> Batched:
        return self.bind(args[0], kind=kind), dims[0]


dtypes.knows_extended.set(True, MoveToMemory)
vma.keeps_unreduced.set(True, MoveToMemory)
rules.tells_memory.set(True, MoveToMemory)


move_to_memory_p = MoveToMemory()


class Division(NamedTuple):
    """Equations divided between now and later, all in the variables of one jaxpr.

    Attributes:
        now: the equations, which also compute what is saved.
        again: equations from parameters and saved values to what is needed later.
        saved: what passes from `now` to `again`.
    """

    now: list[Eqn]
    again: list[Eqn]
    saved: list[Var]


def divide(jaxpr: Jaxpr, needed: Sequence[Atom], policy: Policy) -> Division:
    """Divides the equations of `jaxpr`, of whose variables those in `needed` are needed later."""
    live = {v for v in needed if type(v) is Var}
    now: list[Eqn] = []
    again: list[Eqn] = []
    saved: list[Var] = []
    # Reverse order: whether a value is needed later is known once all its readers were visited.
    for eqn in reversed(jaxpr.eqns):
        wanted = [v in live for v in eqn.outvars]
        if not any(wanted) and not eqn.effects:
            now.append(eqn)
            continue
        part = _divide_eqn(eqn, wanted, policy)
        now += reversed(part.now)
        again += reversed(part.again)
        saved += reversed(part.saved)
        for later in part.again:
            live.update(v for v in later.invars if type(v) is Var)
    return Division(now[::-1], again[::-1], saved[::-1])


def _divide_eqn(eqn: Eqn, wanted: Sequence[bool], policy: Policy) -> Division:
    if policy is None:
        return Division([eqn], [eqn], [])
    rule = division.of(eqn.primitive)
    if rule is not None:
        part: Division = rule(eqn, wanted, policy)
        return part
    choice = _decide(eqn, policy)
    if choice is Recompute:
        return Division([eqn], [eqn], [])
    outs = [v for v, w in zip(eqn.outvars, wanted, strict=True) if w]
    if choice is Saveable:
        return Division([eqn], [], outs)
    away = [Var(move_to_memory_p.abstract_eval(v.aval, kind=choice.dst)) for v in outs]
    moves = [_move(v, there, choice.dst) for v, there in zip(outs, away, strict=True)]
    returns = [_move(there, v, choice.src) for v, there in zip(outs, away, strict=True)]
    return Division([eqn, *moves], returns, away)


def _move(x: Var, out: Var, kind: str) -> Eqn:
    return Eqn([x], [out], move_to_memory_p, {"kind": kind})


def _decide(eqn: Eqn, policy: Function) -> Any:
    answer = policy(eqn.primitive, *(v.aval for v in eqn.invars), **eqn.params)
    if isinstance(answer, (bool, np.bool_)):
        return Saveable if answer else Recompute
    if isinstance(answer, (Decision, Offloadable)):
        return answer
    error(
        TypeError,
        "checkpoint",
        "the policy gave no decision.",
        got=f"{answer!r} of type {type(answer).__name__}, asked about {eqn.primitive}",
        expected="True or False, or from minijax.ad_checkpoint: Saveable, Recompute or "
        "Offloadable(src, dst)",
    )


class DividedBody(NamedTuple):
    """The two halves of a jaxpr that an operation holds.

    Attributes:
        now: parameters to results, then to the saved values that are not results.
        again: parameters, then all saved values, to the results in `given`.
        given: positions among the results: the wanted ones that are not saved themselves.
        saved: all saved values, as positions among the results of `now`.
    """

    now: ClosedJaxpr
    again: ClosedJaxpr
    given: list[int]
    saved: list[int]


def divide_body(
    closed: ClosedJaxpr, wanted: Sequence[bool], policy: Policy, reusable: Sequence[bool]
) -> DividedBody:
    """Divides a jaxpr.

    Args:
        closed: the jaxpr.
        wanted: which results are needed later.
        policy: what to save.
        reusable: which results are the saved value, where their variable is saved.
    """
    jaxpr = closed.jaxpr
    outvars = jaxpr.outvars
    part = divide(jaxpr, [v for v, w in zip(outvars, wanted, strict=True) if w], policy)
    passed = set(part.saved)
    place: dict[Atom, int] = {}
    for i, (v, usable) in enumerate(zip(outvars, reusable, strict=True)):
        if usable and v in passed:
            place.setdefault(v, i)
    new = [v for v in part.saved if v not in place]
    place.update({v: len(outvars) + i for i, v in enumerate(new)})
    given = [i for i, v in enumerate(outvars) if wanted[i] and place.get(v) != i]
    again = Jaxpr(
        jaxpr.constvars,
        jaxpr.invars + part.saved,
        [outvars[i] for i in given],
        part.again,
        debug_info=jaxpr.debug_info.without_arg_names(),
    )
    return DividedBody(
        ClosedJaxpr(jaxpr.replace(outvars=outvars + new, eqns=part.now), closed.consts),
        ClosedJaxpr(again, closed.consts),
        given,
        [place[v] for v in part.saved],
    )


def divided(closed: ClosedJaxpr, wanted: Sequence[bool], policy: Policy) -> DividedBody:
    """As `divide_body`, where results may be saved values, and remembered with the jaxpr."""
    body: DividedBody = closed.remember(
        ("divide", tuple(wanted), policy),
        lambda: divide_body(closed, wanted, policy, [True] * len(wanted)),
    )
    return body


def divided_call(
    eqn: Eqn, body: DividedBody, new: Avals, now: dict[str, Any], again: dict[str, Any]
) -> Division:
    """Two calls in place of one, the second of which computes again what was not saved.

    Args:
        eqn: the call of one jaxpr.
        body: the jaxpr, divided.
        new: the types of the first call's further results.
        now: the parameters of the first call.
        again: the parameters of the second call.
    """
    outvars = eqn.outvars + list(map(Var, new))
    saved = [outvars[i] for i in body.saved]
    second = eqn.replace(
        invars=eqn.invars + saved, outvars=[outvars[i] for i in body.given], params=again
    )
    first = eqn.replace(outvars=outvars, params=now) if new else eqn
    return Division([first], without_unread(second), saved)


def without_unread(eqn: Eqn) -> list[Eqn]:
    """The equation without operands that its jaxpr does not read; nothing if it does nothing."""
    slim = passes.dce.of(eqn.primitive)(eqn, [True] * len(eqn.outvars))
    return [] if slim is None else [slim]
