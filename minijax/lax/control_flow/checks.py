"""Checks of control flow: predicates that differ between devices, and faults inside bodies.

Where types speak of mesh axes, operands and bodies are made to fit together: those of a `cond` or a
`while` vary over the axes over which the predicate does (decision 0014).  Where they do not, it is
found out over which axes predicates differ.  Either way devices that would wait in a branch for
others that never come are an error.

Bodies that are checked return their first fault, and loops carry it along.  A loop of unknown
length ends with its first fault: it might not end otherwise.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from minijax.core import axes, config, meshes, refs, source, vma
from minijax.core.aval import AbstractValue, aval_of, shaped_array
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr, Eqn
from minijax.core.primitive import Primitive
from minijax.core.trace import Params, Trace
from minijax.interpreters import casts, key_reuse, staging, uniformity
from minijax.interpreters.casts import Arguments, Varying
from minijax.interpreters.checking import Site
from minijax.interpreters.structural import broadcast_in_dim
from minijax.interpreters.uniformity import Flow, Names
from minijax.lax import binary
from minijax.lax.control_flow import bodies
from minijax.lax.control_flow.lowering import ScanParams, WhileParams
from minijax.lax.families import Values
from minijax.lax.functionalization import (
    STATE_SIZE,
    Checked,
    Checker,
    State,
    earlier,
    is_lenient,
    no_fault,
    padded,
    shifted,
)


def agree_cond(primitive: Primitive, trace: Trace, args: Values, params: Params) -> Arguments:
    """A `cond` whose operands and branches vary over the axes over which its index does.

    Raises:
        ValueError: a branch has a collective over such an axis.
    """
    index, operands = args[0], args[1:]
    over = vma.of(aval_of(index)).varying
    branches: tuple[ClosedJaxpr, ...] = params["branches"]
    if over:
        for branch in branches:
            _check("lax.cond", "branch", branch, over, aval_of(index))
    varying = casts.varying_axes(operands)
    varying = [
        own if refs.is_reference(x) else own | over
        for x, own in zip(operands, varying, strict=True)
    ]
    for branch in branches:
        varying = casts.united(varying, casts.of_types(branch.in_avals))
    fitting = [casts.retyped(branch, varying) for branch in branches]
    outs = [over] * len(fitting[0].out_avals)
    for branch in fitting:
        outs = casts.united(outs, casts.of_types(branch.out_avals))
    fitting = [casts.retyped(branch, varying, outs) for branch in branches]
    operands = casts.cast(trace, operands, varying)
    return [index, *operands], {**params, "branches": tuple(fitting)}


def agree_while(primitive: Primitive, trace: Trace, args: Values, params: Params) -> Arguments:
    """A `while` whose carry varies over the axes over which its condition does.

    Raises:
        ValueError: the condition or the body has a collective over such an axis.
    """
    loop = WhileParams(**params)
    own = loop.split(casts.varying_axes(args))
    test_in = casts.of_types(loop.cond_jaxpr.in_avals)
    body_in = casts.of_types(loop.body_jaxpr.in_avals)
    test_consts = casts.united(own[0], test_in[: loop.cond_nconsts])
    body_consts = casts.united(own[1], body_in[: loop.body_nconsts])
    carry = casts.united(own[2], test_in[loop.cond_nconsts :])
    carry = casts.united(carry, body_in[loop.body_nconsts :])

    def again(
        carry: list[Varying],
    ) -> tuple[tuple[ClosedJaxpr, ClosedJaxpr, Varying], list[Varying]]:
        condition = casts.retyped(loop.cond_jaxpr, [*test_consts, *carry])
        body = casts.retyped(loop.body_jaxpr, [*body_consts, *carry], carry)
        over = vma.of(condition.out_avals[0]).varying
        return (condition, body, over), [x | over for x in casts.of_types(body.out_avals)]

    (condition, body, over), carry = bodies.fixpoint("lax.while_loop", carry, again)
    if over:
        for what, closed in (("condition", condition), ("body", body)):
            _check("lax.while_loop", what, closed, over, condition.out_avals[0])
    args = casts.cast(trace, args, [*test_consts, *body_consts, *carry])
    return args, {**params, "cond_jaxpr": condition, "body_jaxpr": body}


def agree_scan(primitive: Primitive, trace: Trace, args: Values, params: Params) -> Arguments:
    """A `scan` whose carry varies over the axes over which what it becomes does."""
    loop = ScanParams(**params)
    rest = [frozenset[Any]()] * (len(loop.jaxpr.out_avals) - loop.num_carry)
    consts, carry, slices = loop.split(
        casts.united(casts.varying_axes(args), casts.of_types(loop.jaxpr.in_avals))
    )

    def again(carry: list[Varying]) -> tuple[ClosedJaxpr, list[Varying]]:
        body = casts.retyped(loop.jaxpr, [*consts, *carry, *slices], [*carry, *rest])
        return body, casts.of_types(body.out_avals)[: loop.num_carry]

    body, carry = bodies.fixpoint("lax.scan", carry, again)
    return casts.cast(trace, args, [*consts, *carry, *slices]), {**params, "jaxpr": body}


def _check(
    name: str, part: str, closed: ClosedJaxpr, over: Varying, predicate: AbstractValue
) -> None:
    eqn = axes.communication_over(closed.jaxpr, over)
    if eqn is not None and not config.allow_divergent_collectives.value:
        _refuse(name, part, eqn, over, f"a predicate of type {predicate}")
    for effect in closed.effects:
        if isinstance(effect, (refs.WriteEffect, refs.AccumEffect)):
            _check_write(name, part, effect.reference.aval, over, predicate)


def _check_write(
    name: str, part: str, ref: refs.AbstractRef, over: Varying, predicate: AbstractValue
) -> None:
    missing = over - vma.of(ref).varying
    if missing:
        shown = meshes.names_text(sorted(missing, key=str))
        error(
            ValueError,
            name,
            f"its {part} writes to a reference that does not vary over {shown}, over which the "
            "predicate does: only some devices would write.",
            got=f"{ref.str_short()}, under a predicate of type {predicate}",
            fix=f"new_ref({vma.difference(ref, predicate)}) where it is made",
        )


def _refuse(
    name: str, part: str, eqn: Eqn, over: Varying, predicate: str, at: str | None = None
) -> NoReturn:
    shown = meshes.names_text(sorted(over, key=str))
    problem = (
        f"its {part} has a collective over an axis over which the predicate varies: devices would "
        "wait there for others that go another way."
    )
    if not over & uniformity.names_in(eqn):
        problem = (
            f"its {part}, which not all devices enter, has a {eqn.primitive}: on the host all "
            "devices of the program wait for each other in it, whatever its axis."
        )
    error(
        ValueError,
        name,
        problem,
        got=f"{eqn.primitive} at {source.summarize(eqn.source)}, under {predicate} that varies "
        f"over {shown}",
        expected="a predicate that is the same on all devices that communicate",
        fix="make it so with lax.pmax(predicate, axis) or lax.psum, or move the collective out "
        "and select with jnp.where; where you know better, minijax.config.update("
        "'allow_divergent_collectives', True)",
        at=at,
    )


def differ_cond(
    primitive: Primitive,
    flow: Flow,
    given: Sequence[Names],
    *,
    branches: tuple[ClosedJaxpr, ...],
    **_: Any,
) -> list[Names]:
    """Along which axes the results of a `cond` differ: those of its index, and of the branches."""
    over, operands = given[0], given[1:]
    flow.choose("branch", branches, over)
    outs = [flow.follow(branch.jaxpr, operands) for branch in branches]
    return [over.union(*column) for column in zip(*outs, strict=True)]


def differ_while(
    primitive: Primitive, flow: Flow, given: Sequence[Names], **params: Any
) -> list[Names]:
    """Along which axes the carry of a `while` differs, once it goes on doing so."""
    loop = WhileParams(**params)
    test_consts, consts, first = loop.split(given)

    def again(carry: list[Names]) -> tuple[None, list[Names]]:
        (over,) = flow.follow(loop.cond_jaxpr.jaxpr, [*test_consts, *carry])
        flow.choose("condition", [loop.cond_jaxpr], over)
        flow.choose("body", [loop.body_jaxpr], over)
        outs = flow.follow(loop.body_jaxpr.jaxpr, [*consts, *carry])
        return None, [old | new | over for old, new in zip(carry, outs, strict=True)]

    return bodies.fixpoint("lax.while_loop", first, again)[1]


def differ_scan(
    primitive: Primitive, flow: Flow, given: Sequence[Names], **params: Any
) -> list[Names]:
    """Along which axes the results of a `scan` differ; all devices take as many steps."""
    loop = ScanParams(**params)
    consts, first, slices = loop.split(given)

    def again(carry: list[Names]) -> tuple[list[Names], list[Names]]:
        outs = flow.follow(loop.jaxpr.jaxpr, [*consts, *carry, *slices])
        return outs[loop.num_carry :], list(map(operator.or_, carry, outs))

    ys, carry = bodies.fixpoint("lax.scan", first, again)
    return carry + ys


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
                )

    uniformity.follow(closed, given, names, on_choice=check)


_PUBLIC = {"while": "while_loop"}


def check_cond(
    primitive: Primitive, checker: Checker, args: Values, params: Params
) -> Sequence[Any]:
    """Each branch returns its fault, numbered among the sites of all branches."""
    branches = [checker.inner(branch) for branch in params["branches"]]
    sites = tuple(site for branch in branches for site in branch.sites)
    if not sites:
        plain = tuple(branch.closed for branch in branches)
        return list(primitive.bind(*args, **{**params, "branches": plain}))
    words = max(branch.words for branch in branches)
    numbered = []
    first = 0
    for branch in branches:
        numbered.append(_numbered(branch, first, words))
        first += len(branch.sites)
    outs = primitive.bind(*args, **{**params, "branches": tuple(numbered)})
    checker.add(outs[:STATE_SIZE], sites)
    return list(outs[STATE_SIZE:])


def _numbered(branch: Checked, first: int, words: int) -> ClosedJaxpr:
    """A branch whose sites start at a number, with a state also if it has none."""

    def function(*args: Any) -> list[Any]:
        outs = staging.eval_closed_jaxpr(branch.closed, *args)
        if not branch.sites:
            return [*no_fault(words), *outs]
        return [*_moved(outs[:STATE_SIZE], first, words), *outs[STATE_SIZE:]]

    return staging.stage_closed(function, branch.closed.in_avals, branch.closed.jaxpr.debug_info)


def _moved(state: Sequence[Any], first: int, words: int) -> State:
    code, place, values = state
    return padded(State(shifted(code, first), place, values), words)


def check_scan(
    primitive: Primitive, checker: Checker, args: Values, params: Params
) -> Sequence[Any]:
    """The first fault of all steps is carried along."""
    inner = checker.inner(params["jaxpr"])
    if not inner.sites:
        return list(primitive.bind(*args, **{**params, "jaxpr": inner.closed}))
    start = params["num_consts"]

    def body(*args: Any) -> list[Any]:
        rest = start + STATE_SIZE
        outs = staging.eval_closed_jaxpr(inner.closed, *args[:start], *args[rest:])
        return [*earlier(args[start:rest], outs[:STATE_SIZE]), *outs[STATE_SIZE:]]

    avals = inner.closed.in_avals
    state = _state_avals(inner.words)
    closed = staging.stage_closed(
        body, [*avals[:start], *state, *avals[start:]], inner.closed.jaxpr.debug_info
    )
    watched = {**params, "jaxpr": closed, "num_carry": params["num_carry"] + STATE_SIZE}
    outs = primitive.bind(*args[:start], *no_fault(inner.words), *args[start:], **watched)
    checker.add(outs[:STATE_SIZE], inner.sites)
    return list(outs[STATE_SIZE:])


def check_while(
    primitive: Primitive, checker: Checker, args: Values, params: Params
) -> Sequence[Any]:
    """The first fault is carried along, of the condition before each step and of the step."""
    test, body = checker.inner(params["cond_jaxpr"]), checker.inner(params["body_jaxpr"])
    sites: tuple[Site, ...] = (*test.sites, *body.sites)
    if not sites:
        plain = {"cond_jaxpr": test.closed, "body_jaxpr": body.closed}
        return list(primitive.bind(*args, **{**params, **plain}))
    words = max(test.words, body.words)
    loop = WhileParams(**params)
    num_test, num_body = loop.cond_nconsts, loop.body_nconsts
    test_consts, body_consts, carry = loop.split(args)

    def tested(consts: Sequence[Any], carry: Sequence[Any]) -> tuple[State, Any]:
        outs = staging.eval_closed_jaxpr(test.closed, *consts, *carry)
        if not test.sites:
            return no_fault(words), outs[0]
        return _moved(outs[:STATE_SIZE], 0, words), outs[STATE_SIZE]

    def condition(*args: Any) -> list[Any]:
        going_on = tested(args[:num_test], args[num_test + STATE_SIZE :])[1]
        if not is_lenient(checker.kinds):
            return [going_on]
        fine = binary.eq(args[num_test], np.int32(0))
        return [binary.bitwise_and(going_on, broadcast_in_dim(fine, going_on.aval.shape, ()))]

    def step(*args: Any) -> list[Any]:
        start = num_test + num_body
        state, carry = args[start : start + STATE_SIZE], args[start + STATE_SIZE :]
        state = earlier(state, tested(args[:num_test], carry)[0])
        outs = staging.eval_closed_jaxpr(body.closed, *args[num_test:start], *carry)
        if body.sites:
            state = earlier(state, _moved(outs[:STATE_SIZE], len(test.sites), words))
            outs = outs[STATE_SIZE:]
        return [*state, *outs]

    def staged(
        function: Callable[..., list[Any]], consts: Sequence[Any], like: Checked
    ) -> ClosedJaxpr:
        avals = [*consts, *_state_avals(words), *loop.body_jaxpr.out_avals]
        return staging.stage_closed(function, avals, like.closed.jaxpr.debug_info)

    test_avals = test.closed.in_avals[:num_test]
    watched = WhileParams(
        num_test,
        staged(condition, test_avals, test),
        num_test + num_body,
        staged(step, [*test_avals, *body.closed.in_avals[:num_body]], body),
    )
    args = [*test_consts, *test_consts, *body_consts, *no_fault(words), *carry]
    outs = primitive.bind(*args, **watched._asdict())
    state, results = State(*outs[:STATE_SIZE]), outs[STATE_SIZE:]
    # The condition has run once more than the body.
    checker.add(earlier(state, tested(test_consts, results)[0]), sites)
    return list(results)


def check_solver(
    primitive: Primitive, checker: Checker, args: Values, params: Params
) -> Sequence[Any]:
    """The solver returns its fault as an auxiliary result; what derivatives call is not checked."""
    jaxprs = params["jaxprs"]
    inner = checker.inner(jaxprs.solve)
    parts = {
        name: _without_state(checker.inner(closed))
        for name, closed in jaxprs._asdict().items()
        if closed is not None
    }
    if inner.sites:
        count = len(inner.closed.out_avals)
        order = [*range(STATE_SIZE, count), *range(STATE_SIZE)]
        parts["solve"] = bodies.rearranged(inner.closed, range(len(jaxprs.solve.in_avals)), order)
    outs = list(primitive.bind(*args, **{**params, "jaxprs": jaxprs._replace(**parts)}))
    if not inner.sites:
        return outs
    checker.add(outs[-STATE_SIZE:], inner.sites)
    return outs[:-STATE_SIZE]


def _without_state(inner: Checked) -> ClosedJaxpr:
    if not inner.sites:
        return inner.closed
    closed = inner.closed
    results = range(STATE_SIZE, len(closed.out_avals))
    return bodies.rearranged(closed, range(len(closed.in_avals)), results)


def keys_of_cond(
    primitive: Primitive,
    flow: key_reuse.KeyFlow,
    keys: Sequence[Any],
    *,
    branches: Sequence[ClosedJaxpr],
    **_: Any,
) -> list[Any]:
    """Each branch may use a key up: only one of them does."""
    return key_reuse.follow_branches(flow, keys[1:], branches)


def keys_of_scan(
    primitive: Primitive, flow: key_reuse.KeyFlow, keys: Sequence[Any], **params: Any
) -> list[Any]:
    """Two steps tell what all of them do."""
    loop = ScanParams(**params)
    consts, carry, stacked = loop.split(keys)
    for step in range(min(loop.length, 2)):
        rows = key_reuse.first_rows(stacked, step)
        carry = flow.follow(loop.jaxpr.jaxpr, [*consts, *carry, *rows])[: loop.num_carry]
    for first, rows in zip(key_reuse.first_rows(stacked), stacked, strict=True):
        flow.use_like(first, rows)
    made = [aval.with_dim(0, loop.length) for aval in loop.jaxpr.out_avals[loop.num_carry :]]
    return [*carry, *map(flow.fresh, made)]


def keys_of_while(
    primitive: Primitive, flow: key_reuse.KeyFlow, keys: Sequence[Any], **params: Any
) -> list[Any]:
    """Two steps tell what all of them do."""
    loop = WhileParams(**params)
    test_consts, consts, carry = loop.split(keys)
    for _ in range(2):
        flow.follow(loop.cond_jaxpr.jaxpr, [*test_consts, *carry])
        carry = flow.follow(loop.body_jaxpr.jaxpr, [*consts, *carry])
    return carry


def _state_avals(words: int) -> list[Any]:
    return [
        shaped_array((), np.dtype(np.int32)),
        shaped_array((), np.dtype(np.int32)),
        shaped_array((words,), np.dtype(np.uint32)),
    ]
