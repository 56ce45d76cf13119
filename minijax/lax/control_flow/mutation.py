"""References in the bodies of control flow: the rules `discharge` of branches, loops and scans.

References that a body writes become part of the carry, or further results; those that it only
reads become constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from minijax.core.jaxpr import ClosedJaxpr
from minijax.interpreters import evaluation, staging
from minijax.interpreters.discharge import discharge_jaxpr, value_of, write_finals
from minijax.lax.control_flow import bodies


def discharge_cond(
    primitive: Any, index: Any, *args: Any, branches: tuple[ClosedJaxpr, ...], **params: Any
) -> Sequence[Any]:
    """What one branch writes, the others return as they were given it."""
    finals = sorted({i for branch in branches for i in discharge_jaxpr(branch).finals})
    pure = tuple(discharge_jaxpr(branch, finals).closed for branch in branches)
    outs = primitive.bind_all(index, *map(value_of, args), branches=pure, **params)
    return write_finals(outs, [args[i] for i in finals])


def discharge_scan(
    primitive: Any,
    *args: Any,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    **params: Any,
) -> Sequence[Any]:
    """References among the constants are carried, slices of those scanned over are stacked."""
    body, finals = discharge_jaxpr(jaxpr)
    carried = [i for i in finals if i < num_consts]
    stacked = [i for i in finals if i >= num_consts]
    consts = [i for i in range(num_consts) if i not in carried]
    order = [*consts, *carried, *range(num_consts, len(args))]
    count = len(jaxpr.out_avals)
    first_stacked = count + len(carried)
    outputs = [
        *range(count, first_stacked),
        *range(count),
        *range(first_stacked, len(body.out_avals)),
    ]
    values = list(map(value_of, args))
    outs = primitive.bind_all(
        *(values[i] for i in order),
        jaxpr=bodies.rearranged(body, order, outputs),
        num_consts=len(consts),
        num_carry=len(carried) + num_carry,
        **params,
    )
    rest = write_finals(outs[len(carried) :], [args[i] for i in stacked])
    write_finals(outs[: len(carried)], [args[i] for i in carried])
    return rest


class _Part(NamedTuple):
    """The condition or the body of a loop, for a state of carried references, then the carry.

    Attributes:
        closed: constants, then the carry, to its results and the final values of what it writes.
        places: for each constant, its number among the carried references, or None if it stays.
        finals: which constants it writes.
    """

    closed: ClosedJaxpr
    places: tuple[int | None, ...]
    finals: tuple[int, ...]

    def call(self, consts: Sequence[Any], state: Sequence[Any], size: int) -> tuple[Any, Any]:
        """The results, and the `size` carried references afterwards."""
        given = iter(consts)
        args = [next(given) if place is None else state[place] for place in self.places]
        outs = evaluation.eval_closed_jaxpr(self.closed, *args, *state[size:])
        count = len(outs) - len(self.finals)
        carried = list(state[:size])
        for i, value in zip(self.finals, outs[count:], strict=True):
            place = self.places[i]
            assert place is not None
            carried[place] = value
        return outs[:count], carried

    def select(self, consts: Sequence[Any]) -> list[Any]:
        """Those of the constants that are not carried."""
        return [x for x, place in zip(consts, self.places, strict=True) if place is None]


class _Loop(NamedTuple):
    """A loop whose written references are carried in front of the carry.

    A condition that writes runs once before the loop and then at the end of each step; what it
    says is carried in front of all.
    """

    test: _Part
    step: _Part
    size: int

    @property
    def tests_in_body(self) -> bool:
        """Whether the condition writes references."""
        return bool(self.test.finals)

    def stage(self) -> tuple[ClosedJaxpr, ClosedJaxpr]:
        """The condition and the body as jaxprs, each of its constants and the state."""
        test, step, size = self
        cond_consts = test.select(test.closed.in_avals[: len(test.places)])
        body_consts = step.select(step.closed.in_avals[: len(step.places)])
        state: list[Any] = [None] * size
        for part in (test, step):
            for aval, place in zip(part.closed.in_avals, part.places, strict=False):
                if place is not None:
                    state[place] = aval
        state += step.closed.in_avals[len(step.places) :]
        split = len(body_consts)

        def body(*args: Any) -> list[Any]:
            carry, carried = step.call(args[:split], args[split:], size)
            return [*carried, *carry]

        def condition(*args: Any) -> Any:
            return test.call(args[: len(cond_consts)], args[len(cond_consts) :], size)[0]

        def body_with_test(*args: Any) -> list[Any]:
            consts, (_, *before) = args[: -len(state) - 1], args[-len(state) - 1 :]
            after = body(*consts[len(cond_consts) :], *before)
            (again,), carried = test.call(consts[: len(cond_consts)], after, size)
            return [again, *carried, *after[size:]]

        if not self.tests_in_body:
            return (
                _staged(condition, [*cond_consts, *state], test.closed),
                _staged(body, [*body_consts, *state], step.closed),
            )
        state_with_test = [test.closed.out_avals[0], *state]
        return (
            _staged(lambda again, *_: [again], state_with_test, test.closed),
            _staged(body_with_test, [*cond_consts, *body_consts, *state_with_test], step.closed),
        )


def _staged(function: Any, avals: Sequence[Any], like: ClosedJaxpr) -> ClosedJaxpr:
    return staging.stage_closed(function, avals, like.jaxpr.debug_info.without_arg_names())


def discharge_while(
    primitive: Any,
    *args: Any,
    cond_nconsts: int,
    cond_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    body_jaxpr: ClosedJaxpr,
) -> Sequence[Any]:
    """References that the condition or the body writes are carried in front of the carry."""
    start = cond_nconsts + body_nconsts
    cond_args, body_args, init = args[:cond_nconsts], args[cond_nconsts:start], args[start:]
    test, step = discharge_jaxpr(cond_jaxpr), discharge_jaxpr(body_jaxpr)
    written = [cond_args[i] for i in test.finals] + [body_args[i] for i in step.finals]
    cells = list({id(cell): cell for cell in written}.values())
    slots = {id(cell): i for i, cell in enumerate(cells)}
    loop = _Loop(
        _Part(test.closed, tuple(slots.get(id(x)) for x in cond_args), test.finals),
        _Part(step.closed, tuple(slots.get(id(x)) for x in body_args), step.finals),
        len(cells),
    )
    new_cond, new_body = body_jaxpr.remember(("discharge", loop), loop.stage)
    cond_consts = loop.test.select(list(map(value_of, cond_args)))
    body_consts = loop.step.select(list(map(value_of, body_args)))
    state = [cell.read() for cell in cells] + list(init)
    if loop.tests_in_body:
        (again,), carried = loop.test.call(cond_consts, state, loop.size)
        state = [again, *carried, *init]
        cond_consts, body_consts = [], cond_consts + body_consts
    outs: Sequence[Any] = primitive.bind_all(
        *cond_consts,
        *body_consts,
        *state,
        cond_nconsts=len(cond_consts),
        cond_jaxpr=new_cond,
        body_nconsts=len(body_consts),
        body_jaxpr=new_body,
    )
    outs = outs[int(loop.tests_in_body) :]
    write_finals(outs[: loop.size], cells)
    return outs[loop.size :]
