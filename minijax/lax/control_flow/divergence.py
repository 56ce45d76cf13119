"""Divergence: control flow on predicates that differ between the devices of a mesh axis.

Input: control flow inside `shard_map`.  Output: the same, its operands and bodies fit together;
those of a `cond` or a `while` vary over the axes over which the predicate does.  Or an error where
devices would wait in a branch for others that never come.  Decision 0014.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from minijax.core import axes, meshes, refs, source, variance
from minijax.core.aval import aval_of
from minijax.core.errors import message
from minijax.core.jaxpr import ClosedJaxpr
from minijax.interpreters import retyping
from minijax.interpreters.retyping import Arguments, Axes


def agree_cond(
    primitive: Any, trace: Any, args: Sequence[Any], params: dict[str, Any]
) -> Arguments:
    """A `cond` whose operands and branches vary over the axes over which its index does.

    Raises:
        ValueError: a branch has a collective over such an axis.
    """
    index, operands = args[0], args[1:]
    over = variance.of(aval_of(index)).varying
    branches: tuple[ClosedJaxpr, ...] = params["branches"]
    if over:
        for branch in branches:
            _check("lax.cond", "branch", branch, over, aval_of(index))
    varying = retyping.varying_axes(operands)
    varying = [
        own if refs.is_reference(x) else own | over
        for x, own in zip(operands, varying, strict=True)
    ]
    for branch in branches:
        varying = retyping.united(varying, retyping.of_types(branch.in_avals))
    fitting = [retyping.retyped(branch, varying) for branch in branches]
    outs = [over] * len(fitting[0].out_avals)
    for branch in fitting:
        outs = retyping.united(outs, retyping.of_types(branch.out_avals))
    fitting = [retyping.retyped(branch, varying, outs) for branch in branches]
    operands = retyping.cast(trace, operands, varying)
    return [index, *operands], {**params, "branches": tuple(fitting)}


def agree_while(
    primitive: Any, trace: Any, args: Sequence[Any], params: dict[str, Any]
) -> Arguments:
    """A `while` whose carry varies over the axes over which its condition does.

    Raises:
        ValueError: the condition or the body has a collective over such an axis.
    """
    given: tuple[ClosedJaxpr, ClosedJaxpr] = (params["cond_jaxpr"], params["body_jaxpr"])
    num_test = params["cond_nconsts"]
    num_consts = num_test + params["body_nconsts"]
    own = retyping.varying_axes(args)
    test_in, body_in = (retyping.of_types(closed.in_avals) for closed in given)
    carry = retyping.united(own[num_consts:], test_in[num_test:])
    carry = retyping.united(carry, body_in[num_consts - num_test :])
    test_consts = retyping.united(own[:num_test], test_in[:num_test])
    body_consts = retyping.united(own[num_test:num_consts], body_in[: num_consts - num_test])
    while True:
        condition = retyping.retyped(given[0], [*test_consts, *carry])
        body = retyping.retyped(given[1], [*body_consts, *carry], carry)
        over = variance.of(condition.out_avals[0]).varying
        grown = [own | over for own in retyping.of_types(body.out_avals)]
        if grown == carry:
            break
        carry = grown
    if over:
        for what, closed in (("condition", condition), ("body", body)):
            _check("lax.while_loop", what, closed, over, condition.out_avals[0])
    args = retyping.cast(trace, args, [*test_consts, *body_consts, *carry])
    return args, {**params, "cond_jaxpr": condition, "body_jaxpr": body}


def agree_scan(
    primitive: Any, trace: Any, args: Sequence[Any], params: dict[str, Any]
) -> Arguments:
    """A `scan` whose carry varies over the axes over which what it becomes does."""
    given: ClosedJaxpr = params["jaxpr"]
    first, num_carry = params["num_consts"], params["num_carry"]
    rest = [frozenset[Any]()] * (len(given.out_avals) - num_carry)
    varying = retyping.united(retyping.varying_axes(args), retyping.of_types(given.in_avals))
    while True:
        carry: list[Axes] = varying[first : first + num_carry]
        body = retyping.retyped(given, varying, [*carry, *rest])
        grown = retyping.of_types(body.out_avals)[:num_carry]
        if grown == carry:
            break
        varying[first : first + num_carry] = grown
    return retyping.cast(trace, args, varying), {**params, "jaxpr": body}


def _check(name: str, part: str, closed: ClosedJaxpr, over: Axes, predicate: Any) -> None:
    eqn = axes.communication_over(closed.jaxpr, over)
    if eqn is not None:
        _refuse(name, part, eqn, over, predicate)
    for effect in closed.effects:
        if isinstance(effect, (refs.WriteEffect, refs.AccumEffect)):
            _check_write(name, part, effect.reference.aval, over, predicate)


def _check_write(name: str, part: str, ref: Any, over: Axes, predicate: Any) -> None:
    missing = over - variance.of(ref).varying
    if missing:
        shown = meshes.names_text(sorted(missing, key=str))
        raise ValueError(
            message(
                name,
                f"its {part} writes to a reference that does not vary over {shown}, over which the "
                "predicate does: only some devices would write.",
                got=f"{ref.str_short()}, under a predicate of type {predicate}",
                fix=f"new_ref({variance.difference(ref, predicate)}) where it is made",
            )
        )


def _refuse(name: str, part: str, eqn: Any, over: Axes, predicate: Any) -> NoReturn:
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
