"""Uniformity: along which named axes the values of a jaxpr may differ.

Input: a jaxpr, and along which axes each argument differs.  Output: the same for every value.  It
is an abstract interpretation, for programs whose types do not speak of axes: `shard_map` without
`check_vma`, `pmap`, and the logical axes of `xmap`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from minijax.core import axes as core_axes
from minijax.core import refs
from minijax.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, holders, jaxprs_in_params
from minijax.core.operators import AxisName
from minijax.core.rules import Rules
from minijax.interpreters import discharge

differ = Rules("differ")
"""Along which axes the results differ between devices, for operations that choose what to do:
`(primitive, flow, given, **params)`, see `Flow`.  Without a rule: along those along which the
operands do, or the one jaxpr in it tells."""

Names = frozenset[AxisName]
NOWHERE: Names = frozenset()


class Flow:
    """Follows values through equations.

    Attributes:
        axes: the names in question; values may differ along others, but nobody asks.
        eqn: the equation whose rule is running.
    """

    def __init__(
        self,
        axes: Names,
        *,
        on_equation: Callable[[Eqn, Sequence[Names], Sequence[Names]], None] | None = None,
        on_choice: Callable[[Eqn, str, Sequence[ClosedJaxpr], Names], None] | None = None,
    ) -> None:
        """A flow that tells what it finds.

        Args:
            axes: the names in question.
            on_equation: is told each equation, and along which axes its operands and its results
                differ.
            on_choice: is told each equation that chooses what to do by a value: the part of it
                that is chosen, the jaxprs of it, and along which axes the value differs.
        """
        self.axes = axes
        self.eqn: Any = None
        self._on_equation = on_equation
        self._on_choice = on_choice

    def follow(self, jaxpr: Jaxpr, given: Sequence[Names]) -> list[Names]:
        """Along which axes the results of a jaxpr differ, where its arguments do along `given`."""
        found: dict[Atom, Names] = dict.fromkeys(jaxpr.constvars, NOWHERE)
        found.update(zip(jaxpr.invars, given, strict=True))

        def read(atom: Atom) -> Names:
            return NOWHERE if type(atom) is Literal else found[atom]

        for eqn in jaxpr.eqns:
            around, self.eqn = self.eqn, eqn
            operands = list(map(read, eqn.invars))
            outs = self._outs(eqn, operands)
            self.eqn = around
            found.update(zip(eqn.outvars, outs, strict=True))
            if self._on_equation is not None:
                self._on_equation(eqn, operands, outs)
        return [read(atom) for atom in jaxpr.outvars]

    def choose(self, part: str, jaxprs: Sequence[ClosedJaxpr], over: Names) -> None:
        """Tells that the current equation chooses by a value that differs along `over`."""
        if over and self._on_choice is not None:
            self._on_choice(self.eqn, part, jaxprs, over)

    def _outs(self, eqn: Eqn, given: Sequence[Names]) -> Sequence[Names]:
        primitive, params = eqn.primitive, eqn.params
        hidden = core_axes.bound_by(primitive, params) & self.axes
        if hidden:
            # Inside, these are other axes of the same names.
            inner = Flow(
                self.axes - hidden, on_equation=self._on_equation, on_choice=self._on_choice
            )
            inner.eqn = eqn
            outs = inner._outs(eqn, [names - hidden for names in given])
            kept = NOWHERE.union(*given) & hidden
            return [names | kept for names in outs]
        rule = differ.of(primitive)
        if rule is not None:
            found: Sequence[Names] = rule(self, given, **params)
            return found
        jaxprs = list(jaxprs_in_params(params))
        if len(jaxprs) == 1 and len(jaxprs[0].invars) == len(given):
            outs = self.follow(jaxprs[0], given)
            if len(outs) == len(eqn.outvars):
                return outs
        total = self.axes if core_axes.makes_different.of(primitive) else NOWHERE.union(*given)
        for jaxpr in jaxprs:
            # Which operands it gets is not known, so any.
            total |= core_axes.used_by(jaxpr) & self.axes
            self.follow(jaxpr, [total] * len(jaxpr.invars))
        named = names_in(eqn) & self.axes
        if core_axes.makes_equal.of(primitive) and params.get("axis_index_groups") is None:
            total -= named
        else:
            total |= named
        return [total] * len(eqn.outvars)


def names_in(eqn: Eqn) -> Names:
    """The axes that an equation itself refers to, jaxprs in it aside."""
    names: set[AxisName] = set()
    for key in core_axes.axis_params.of(eqn.primitive):
        value = eqn.params[key]
        names.update(value if isinstance(value, tuple) else (value,))
    return frozenset(names)


def follow(
    closed: ClosedJaxpr, given: Sequence[Names], axes: Names, **listeners: Any
) -> list[Names]:
    """Along which of `axes` the results of a program differ.

    References that it makes count as the values in them; what others have written into those that
    it is given may differ.
    """
    pure = discharge.without_references(closed)
    known = [
        axes if isinstance(aval, refs.AbstractRef) else names
        for aval, names in zip(pure.in_avals, given, strict=True)
    ]
    return Flow(axes, **listeners).follow(pure.jaxpr, known)


def chooses_communication(jaxpr: Jaxpr, axes: Names) -> bool:
    """Whether some equation chooses what to do, of which a part communicates along the axes."""
    return any(
        core_axes.communication_over(part, axes) is not None
        for eqn in _choices(jaxpr)
        for part in jaxprs_in_params(eqn.params)
    )


def asks_outside(jaxpr: Jaxpr) -> bool:
    """Whether some equation may give each device something else whatever the types say."""
    return any(core_axes.makes_different.of(eqn.primitive) for eqn in jaxpr.eqns) or any(
        asks_outside(inner) for eqn in holders(jaxpr) for inner in jaxprs_in_params(eqn.params)
    )


def _choices(jaxpr: Jaxpr) -> Iterator[Eqn]:
    for eqn in jaxpr.eqns:
        if differ.of(eqn.primitive) is not None:
            yield eqn
        else:
            for inner in jaxprs_in_params(eqn.params):
                yield from _choices(inner)
