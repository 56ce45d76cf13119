"""Divergence: control flow on predicates that differ between the devices of an axis.

Where types speak of mesh axes: of a `cond` or `while` inside `shard_map` it makes the same, with
operands and results that vary over the axes over which the predicate does.  Where they do not: it
finds out over which axes predicates differ.  Either way devices that would wait in a branch for
others that never come are an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from minijax.core import axes, config, meshes, source, variance
from minijax.core.aval import aval_of
from minijax.core.errors import message
from minijax.core.jaxpr import ClosedJaxpr, Eqn
from minijax.core.trace import current
from minijax.interpreters import casts, evaluation, staging, uniformity
from minijax.interpreters.uniformity import Flow, Names

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
        _refuse(name, part, eqn, over, f"a predicate of type {predicate}")


def _refuse(
    name: str,
    part: str,
    eqn: Any,
    over: frozenset[Any],
    predicate: str,
    at: str | None = None,
    fix: str = "",
) -> NoReturn:
    shown = meshes.names_text(sorted(over, key=str))
    raise ValueError(
        message(
            name,
            f"its {part} has a collective over an axis over which the predicate varies: devices "
            "would wait there for others that go another way.",
            got=f"{eqn.primitive} at {source.summarize(eqn.source)}, under {predicate} that varies "
            f"over {shown}",
            expected="a predicate that is the same on all devices that communicate",
            fix="make it so with lax.pmax(predicate, axis) or lax.psum, or move the collective out "
            f"and select with jnp.where{fix}",
            at=at,
        )
    )


def differ_cond(
    flow: Flow, given: Sequence[Names], *, branches: tuple[ClosedJaxpr, ...], **_: Any
) -> list[Names]:
    """Along which axes the results of a `cond` differ: those of its index, and of the branches."""
    over, operands = given[0], given[1:]
    flow.choose("branch", branches, over)
    outs = [flow.follow(branch.jaxpr, operands) for branch in branches]
    return [over.union(*column) for column in zip(*outs, strict=True)]


def differ_while(
    flow: Flow,
    given: Sequence[Names],
    *,
    cond_nconsts: int,
    cond_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    body_jaxpr: ClosedJaxpr,
) -> list[Names]:
    """Along which axes the carry of a `while` differs, once it goes on doing so."""
    start = cond_nconsts + body_nconsts
    test, consts, carry = given[:cond_nconsts], given[cond_nconsts:start], list(given[start:])
    while True:
        (over,) = flow.follow(cond_jaxpr.jaxpr, [*test, *carry])
        flow.choose("condition", [cond_jaxpr], over)
        flow.choose("body", [body_jaxpr], over)
        outs = flow.follow(body_jaxpr.jaxpr, [*consts, *carry])
        joined = [old | new | over for old, new in zip(carry, outs, strict=True)]
        if joined == carry:
            return carry
        carry = joined


def differ_scan(
    flow: Flow,
    given: Sequence[Names],
    *,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    **_: Any,
) -> list[Names]:
    """Along which axes the results of a `scan` differ; all devices take as many steps."""
    start = num_consts + num_carry
    consts, carry, slices = given[:num_consts], list(given[num_consts:start]), given[start:]
    while True:
        outs = flow.follow(jaxpr.jaxpr, [*consts, *carry, *slices])
        joined = [old | new for old, new in zip(carry, outs[:num_carry], strict=True)]
        if joined == carry:
            return carry + outs[num_carry:]
        carry = joined


def check_untyped(
    user: str, closed: ClosedJaxpr, given: Sequence[Names], names: frozenset[Any]
) -> None:
    """Refuses per-device programs whose types do not tell that they wait for nobody.

    Args:
        user: the public function that maps the program over devices.
        closed: the program of one device.
        given: along which of the axes each argument differs between devices.
        names: the axes.

    Raises:
        ValueError: a collective is under a predicate that may differ between the devices which it
            speaks to, and the setting `allow_divergent_collectives` is off.
    """
    if config.allow_divergent_collectives.value:
        return
    if not uniformity.chooses_communication(closed.jaxpr, names):
        return

    def check(eqn: Eqn, part: str, jaxprs: Sequence[ClosedJaxpr], over: Names) -> None:
        for inner in jaxprs:
            found = axes.communication_over(inner.jaxpr, over)
            if found is not None:
                _refuse(
                    f"lax.{_PUBLIC.get(eqn.primitive.name, eqn.primitive.name)} in {user}",
                    part,
                    found,
                    over,
                    "a predicate",
                    source.summarize(eqn.source),
                    "; where you know that it never differs, minijax.config.update("
                    "'allow_divergent_collectives', True)",
                )

    uniformity.follow(closed, given, names, on_choice=check)


_PUBLIC = {"while": "while_loop"}
