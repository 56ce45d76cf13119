"""Divergence: control flow on predicates that differ between the devices of an axis.

Where types speak of mesh axes: of control flow inside `shard_map` it makes the same, with operands,
results and bodies that vary over the axes over which the predicate does.  Where they do not: it
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
from minijax.interpreters import casts, retyping, uniformity
from minijax.interpreters.uniformity import Flow, Names

Arguments = tuple[Sequence[Any], dict[str, Any]]


def agree_cond(trace: Any, args: Sequence[Any], params: dict[str, Any]) -> Arguments:
    """A `cond` whose operands and branches vary over the axes over which its index does.

    Raises:
        ValueError: a branch has a collective over such an axis.
    """
    over = _varying(args[0])
    branches: tuple[ClosedJaxpr, ...] = params["branches"]
    if over:
        for branch in branches:
            _check("lax.cond", "branch", branch, over, aval_of(args[0]))
    operands = [casts.varied(trace, x, over) for x in args[1:]]
    kinds = _kinds(operands)
    found = tuple(retyping.retyped(branch, kinds) for branch in branches)
    joined = [over.union(*outs) for outs in zip(*map(_varying_outs, found), strict=True)]
    found = tuple(retyping.retyped(branch, kinds, joined) for branch in found)
    if found == branches:
        return [args[0], *operands] if over else args, params
    return [args[0], *operands], {**params, "branches": found}


def agree_while(trace: Any, args: Sequence[Any], params: dict[str, Any]) -> Arguments:
    """A `while` whose carry varies over the axes over which its condition or its body does.

    Raises:
        ValueError: the condition or the body has a collective over an axis over which the condition
            varies.
    """
    given_test: ClosedJaxpr = params["cond_jaxpr"]
    given_body: ClosedJaxpr = params["body_jaxpr"]
    num_test, num_consts = params["cond_nconsts"], params["body_nconsts"]
    start = num_test + num_consts
    consts, carry = list(args[:start]), list(args[start:])
    test_kinds, body_kinds = _kinds(consts[:num_test]), _kinds(consts[num_test:])
    while True:
        kinds = _kinds(carry)
        test = retyping.retyped(given_test, test_kinds + kinds)
        over = variance.of(test.out_avals[0]).varying
        if over:
            for what, closed in (("condition", given_test), ("body", given_body)):
                _check("lax.while_loop", what, closed, over, test.out_avals[0])
        body = retyping.retyped(given_body, body_kinds + kinds)
        wanted = [over | axes for axes in _varying_outs(body)]
        carry = [casts.varied(trace, x, axes) for x, axes in zip(carry, wanted, strict=True)]
        if _kinds(carry) == kinds:
            break
    body = retyping.retyped(given_body, body_kinds + kinds, [kind.varying for kind in kinds])
    if test is given_test and body is given_body:
        return args, params
    return [*consts, *carry], {**params, "cond_jaxpr": test, "body_jaxpr": body}


def agree_scan(trace: Any, args: Sequence[Any], params: dict[str, Any]) -> Arguments:
    """A `scan` whose carry varies over the axes over which its body makes it vary."""
    given: ClosedJaxpr = params["jaxpr"]
    if variance.types_of(given.in_avals) == _kinds(args):
        return args, params
    num_consts, num_carry = params["num_consts"], params["num_carry"]
    start = num_consts + num_carry
    carry = list(args[num_consts:start])
    before, after = _kinds(args[:num_consts]), _kinds(args[start:])
    while True:
        kinds = _kinds(carry)
        body = retyping.retyped(given, before + kinds + after)
        wanted = _varying_outs(body)[:num_carry]
        carry = [casts.varied(trace, x, axes) for x, axes in zip(carry, wanted, strict=True)]
        if _kinds(carry) == kinds:
            break
    free = [frozenset[Any]()] * (len(given.out_avals) - num_carry)
    body = retyping.retyped(given, before + kinds + after, [k.varying for k in kinds] + free)
    return [*args[:num_consts], *carry, *args[start:]], {**params, "jaxpr": body}


def _kinds(args: Sequence[Any]) -> list[Any]:
    return variance.types_of(map(aval_of, args))


def _varying(x: Any) -> frozenset[Any]:
    return variance.of(aval_of(x)).varying


def _varying_outs(closed: ClosedJaxpr) -> list[frozenset[Any]]:
    return [variance.of(aval).varying for aval in closed.out_avals]


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
