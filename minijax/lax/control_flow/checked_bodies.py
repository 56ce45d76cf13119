"""How control flow is checked: its bodies return their first fault, and loops carry it along.

Input: an operation, and the functionalization of what is around it.  Output: its results.  A loop
of unknown length ends with its first fault: it might not end otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core.aval import shaped_array
from minijax.core.jaxpr import ClosedJaxpr
from minijax.interpreters import evaluation, key_reuse, staging
from minijax.interpreters.checking import Site
from minijax.interpreters.structural import broadcast_in_dim
from minijax.lax import binary
from minijax.lax.control_flow import bodies
from minijax.lax.functionalization import (
    STATE_SIZE,
    Checked,
    Checker,
    State,
    earlier,
    no_fault,
    padded,
    shifted,
)


def check_cond(
    primitive: Any, checker: Checker, args: Sequence[Any], params: dict[str, Any]
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
        outs = evaluation.eval_closed_jaxpr(branch.closed, *args)
        if not branch.sites:
            return [*no_fault(words), *outs]
        return [*_moved(outs[:STATE_SIZE], first, words), *outs[STATE_SIZE:]]

    return staging.stage_closed(function, branch.closed.in_avals, branch.closed.jaxpr.debug_info)


def _moved(state: Sequence[Any], first: int, words: int) -> State:
    code, place, values = state
    return padded(State(shifted(code, first), place, values), words)


def check_scan(
    primitive: Any, checker: Checker, args: Sequence[Any], params: dict[str, Any]
) -> Sequence[Any]:
    """The first fault of all steps is carried along."""
    inner = checker.inner(params["jaxpr"])
    if not inner.sites:
        return list(primitive.bind(*args, **{**params, "jaxpr": inner.closed}))
    start = params["num_consts"]

    def body(*args: Any) -> list[Any]:
        rest = start + STATE_SIZE
        outs = evaluation.eval_closed_jaxpr(inner.closed, *args[:start], *args[rest:])
        return [*earlier(args[start:rest], outs[:STATE_SIZE]), *outs[STATE_SIZE:]]

    avals = inner.closed.in_avals
    state = _state_avals(inner.words)
    closed = staging.stage_closed(
        body, [*avals[:start], *state, *avals[start:]], inner.closed.jaxpr.debug_info
    )
    outs = primitive.bind(
        *args[:start],
        *no_fault(inner.words),
        *args[start:],
        **{
            **params,
            "jaxpr": closed,
            "num_carry": params["num_carry"] + STATE_SIZE,
        },
    )
    checker.add(outs[:STATE_SIZE], inner.sites)
    return list(outs[STATE_SIZE:])


def check_while(
    primitive: Any, checker: Checker, args: Sequence[Any], params: dict[str, Any]
) -> Sequence[Any]:
    """The first fault is carried along, of the condition before each step and of the step."""
    test, body = checker.inner(params["cond_jaxpr"]), checker.inner(params["body_jaxpr"])
    sites: tuple[Site, ...] = (*test.sites, *body.sites)
    if not sites:
        plain = {"cond_jaxpr": test.closed, "body_jaxpr": body.closed}
        return list(primitive.bind(*args, **{**params, **plain}))
    words = max(test.words, body.words)
    num_test, num_body = params["cond_nconsts"], params["body_nconsts"]
    test_consts = args[:num_test]
    body_consts = args[num_test : num_test + num_body]
    carry = args[num_test + num_body :]

    def tested(consts: Sequence[Any], carry: Sequence[Any]) -> tuple[State, Any]:
        outs = evaluation.eval_closed_jaxpr(test.closed, *consts, *carry)
        if not test.sites:
            return no_fault(words), outs[0]
        return _moved(outs[:STATE_SIZE], 0, words), outs[STATE_SIZE]

    def condition(*args: Any) -> list[Any]:
        going_on = tested(args[:num_test], args[num_test + STATE_SIZE :])[1]
        fine = binary.eq(args[num_test], np.int32(0))
        return [binary.bitwise_and(going_on, broadcast_in_dim(fine, going_on.aval.shape, ()))]

    def step(*args: Any) -> list[Any]:
        start = num_test + num_body
        state, carry = args[start : start + STATE_SIZE], args[start + STATE_SIZE :]
        state = earlier(state, tested(args[:num_test], carry)[0])
        outs = evaluation.eval_closed_jaxpr(body.closed, *args[num_test:start], *carry)
        if body.sites:
            state = earlier(state, _moved(outs[:STATE_SIZE], len(test.sites), words))
            outs = outs[STATE_SIZE:]
        return [*state, *outs]

    def staged(function: Any, consts: Sequence[Any], like: Checked) -> ClosedJaxpr:
        avals = [*consts, *_state_avals(words), *params["body_jaxpr"].out_avals]
        return staging.stage_closed(function, avals, like.closed.jaxpr.debug_info)

    test_avals = test.closed.in_avals[:num_test]
    outs = primitive.bind(
        *test_consts,
        *test_consts,
        *body_consts,
        *no_fault(words),
        *carry,
        cond_nconsts=num_test,
        cond_jaxpr=staged(condition, test_avals, test),
        body_nconsts=num_test + num_body,
        body_jaxpr=staged(step, [*test_avals, *body.closed.in_avals[:num_body]], body),
    )
    state, results = State(*outs[:STATE_SIZE]), outs[STATE_SIZE:]
    # The condition has run once more than the body.
    checker.add(earlier(state, tested(test_consts, results)[0]), sites)
    return list(results)


def check_solver(
    primitive: Any, checker: Checker, args: Sequence[Any], params: dict[str, Any]
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
    primitive: Any,
    flow: key_reuse.KeyFlow,
    keys: Sequence[Any],
    *,
    branches: Sequence[ClosedJaxpr],
    **_: Any,
) -> list[Any]:
    """Each branch may use a key up: only one of them does."""
    return key_reuse.follow_branches(flow, keys[1:], branches)


def keys_of_scan(
    primitive: Any,
    flow: key_reuse.KeyFlow,
    keys: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    length: int,
    num_consts: int,
    num_carry: int,
    **_: Any,
) -> list[Any]:
    """Two steps tell what all of them do."""
    start = num_consts + num_carry
    consts, carry, stacked = keys[:num_consts], keys[num_consts:start], keys[start:]
    for step in range(min(length, 2)):
        rows = key_reuse.first_rows(stacked, step)
        outs = flow.follow(jaxpr.jaxpr, [*consts, *carry, *rows])
        carry = outs[:num_carry]
    for first, rows in zip(key_reuse.first_rows(stacked), stacked, strict=True):
        flow.use_like(first, rows)
    made = [aval.with_dim(0, length) for aval in jaxpr.out_avals[num_carry:]]
    return [*carry, *(flow.fresh(aval) if key_reuse.is_key(aval) else None for aval in made)]


def keys_of_while(
    primitive: Any,
    flow: key_reuse.KeyFlow,
    keys: Sequence[Any],
    *,
    cond_nconsts: int,
    cond_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    body_jaxpr: ClosedJaxpr,
) -> list[Any]:
    """Two steps tell what all of them do."""
    start = cond_nconsts + body_nconsts
    carry = list(keys[start:])
    for _ in range(2):
        flow.follow(cond_jaxpr.jaxpr, [*keys[:cond_nconsts], *carry])
        carry = flow.follow(body_jaxpr.jaxpr, [*keys[cond_nconsts:start], *carry])
    return carry


def _state_avals(words: int) -> list[Any]:
    return [
        shaped_array((), np.dtype(np.int32)),
        shaped_array((), np.dtype(np.int32)),
        shaped_array((words,), np.dtype(np.uint32)),
    ]
