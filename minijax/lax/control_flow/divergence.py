"""Divergence: control flow on predicates that differ between the devices of a mesh axis.

Input: a `cond` or `while` inside `shard_map`.  Output: the same, with operands and results that
vary over the axes over which the predicate does; or an error where devices would wait in a branch
for others that never come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from minijax.core import axes, meshes, source, variance
from minijax.core.aval import aval_of
from minijax.core.errors import message
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.trace import current
from minijax.interpreters import casts, evaluation, staging

Arguments = tuple[Sequence[Any], dict[str, Any]]


def agree_cond(trace: Any, args: Sequence[Any], params: dict[str, Any]) -> Arguments:
    """A `cond` whose operands and branches vary over the axes over which its index does.

    Raises:
        ValueError: a branch has a collective over such an axis.
    """
    over = variance.of(aval_of(args[0])).varying
    branches: tuple[ClosedJaxpr, ...] = params["branches"]
    if not over:
        return args, params
    for branch in branches:
        _check("lax.cond", "branch", branch, over, aval_of(args[0]))
    operands = [casts.varied(trace, x, over) for x in args[1:]]
    avals = list(map(aval_of, operands))
    varying = tuple(_varying(branch, avals, over) for branch in branches)
    return [args[0], *operands], {**params, "branches": varying}


def agree_while(trace: Any, args: Sequence[Any], params: dict[str, Any]) -> Arguments:
    """A `while` whose carry varies over the axes over which its condition does.

    Raises:
        ValueError: the condition or the body has a collective over such an axis.
    """
    condition: ClosedJaxpr = params["cond_jaxpr"]
    body: ClosedJaxpr = params["body_jaxpr"]
    num_test, num_consts = params["cond_nconsts"], params["body_nconsts"]
    carry = list(args[num_test + num_consts :])
    consts = list(args[: num_test + num_consts])
    over: frozenset[Any] = frozenset()
    while True:
        found = variance.of(condition.out_avals[0]).varying
        if found <= over:
            break
        over = found
        for what, closed in (("condition", condition), ("body", body)):
            _check("lax.while_loop", what, closed, over, condition.out_avals[0])
        carry = [casts.varied(trace, x, over) for x in carry]
        avals = list(map(aval_of, carry))
        condition = _varying(condition, [*map(aval_of, consts[:num_test]), *avals], over)
        body = _varying(body, [*map(aval_of, consts[num_test:]), *avals], over)
    if not over:
        return args, params
    return [*consts, *carry], {**params, "cond_jaxpr": condition, "body_jaxpr": body}


def _varying(closed: ClosedJaxpr, avals: Sequence[Any], over: frozenset[Any]) -> ClosedJaxpr:
    """A body for operands of other types, all of whose results vary over some axes."""
    if closed.in_avals == list(avals) and all(
        over <= variance.of(aval).varying for aval in closed.out_avals
    ):
        return closed

    def function(*args: Any) -> list[Any]:
        outs = evaluation.eval_closed_jaxpr(closed, *args)
        return [casts.varied(current.value, out, over) for out in outs]

    def make() -> ClosedJaxpr:
        return ClosedJaxpr(*staging.stage(function, avals, closed.jaxpr.debug_info))

    result: ClosedJaxpr = closed.remember(("varying", tuple(avals), over), make)
    return result


def _check(name: str, part: str, closed: ClosedJaxpr, over: frozenset[Any], predicate: Any) -> None:
    eqn = axes.communication_over(closed.jaxpr, over)
    if eqn is not None:
        _refuse(name, part, eqn, over, predicate)


def _refuse(name: str, part: str, eqn: Any, over: frozenset[Any], predicate: Any) -> NoReturn:
    shown = meshes.names_text(sorted(over, key=str))
    raise ValueError(
        message(
            name,
            f"its {part} has a collective over an axis over which the predicate varies: devices "
            "would wait there for others that go another way.",
            got=f"{eqn.primitive} at {source.summarize(eqn.source)}, under a predicate of type "
            f"{predicate} that varies over {shown}",
            expected="a predicate that is the same on all devices that communicate",
            fix="make it so with lax.pmax(predicate, axis) or lax.psum, or move the collective out "
            "and select with jnp.where",
        )
    )
