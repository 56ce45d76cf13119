"""Every equation of a program gets a number, which travels with it to the machine code.

Input: a closed jaxpr.  Output: the same program, in whose equations' scopes numbers stand, and a
record of each equation.  Scopes are part of the names of operations: lowering writes them into
MLIR's locations, and XLA keeps these as `op_name`.  A program that nobody makes a page of is not
touched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from minijax.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, jaxprs_in_params

_MARK = re.compile(r"~(\d+)(?=/|$)")

Numbers = frozenset[int]
"""Numbers of equations."""


class Equation(NamedTuple):
    """An equation of a marked program.

    Attributes:
        number: its number, in the order in which the jaxpr prints equations; from 0.
        eqn: the equation as it was before it was marked.
        jaxpr: the jaxpr that it stands in.
        holder: the number of the equation that holds the jaxpr; None at the top.
        depth: in how many equations it stands.
    """

    number: int
    eqn: Eqn
    jaxpr: Jaxpr
    holder: int | None
    depth: int


class Marked(NamedTuple):
    """A program with numbers.

    Attributes:
        closed: the program whose equations have their number in the scope.
        equations: the equations, by number.
        numbers: the number of each equation of the original program, by its identity.
    """

    closed: ClosedJaxpr
    equations: list[Equation]
    numbers: dict[int, int]


def mark(closed: ClosedJaxpr) -> Marked:
    """Gives a number to each equation of a program and of the jaxprs in it.

    A jaxpr that several equations hold is marked once: it is lowered once, too.
    """
    marking = _Marking()
    jaxpr = marking.jaxpr(closed.jaxpr, None, 0)
    return Marked(ClosedJaxpr(jaxpr, closed.consts), marking.equations, marking.numbers)


class _Marking:
    """Marks the jaxprs of one program."""

    def __init__(self) -> None:
        self.equations: list[Equation] = []
        self.numbers: dict[int, int] = {}
        self._jaxprs: dict[int, Jaxpr] = {}
        self._closed: dict[int, ClosedJaxpr] = {}

    def jaxpr(self, jaxpr: Jaxpr, holder: int | None, depth: int) -> Jaxpr:
        """The marked form of a jaxpr."""
        found = self._jaxprs.get(id(jaxpr))
        if found is None:
            eqns = [self._eqn(eqn, jaxpr, holder, depth) for eqn in jaxpr.eqns]
            found = Jaxpr(
                jaxpr.constvars, jaxpr.invars, jaxpr.outvars, eqns, jaxpr.effects, jaxpr.debug_info
            )
            self._jaxprs[id(jaxpr)] = found
        return found

    def _eqn(self, eqn: Eqn, jaxpr: Jaxpr, holder: int | None, depth: int) -> Eqn:
        number = len(self.equations)
        self.equations.append(Equation(number, eqn, jaxpr, holder, depth))
        self.numbers[id(eqn)] = number
        params = eqn.params
        if any(True for _ in jaxprs_in_params(params)):
            params = {k: self._param(v, number, depth + 1) for k, v in params.items()}
        return eqn.replace(params=params, scope=(*eqn.scope, f"~{number}"))

    def _param(self, value: Any, number: int, depth: int) -> Any:
        if isinstance(value, ClosedJaxpr):
            if id(value) not in self._closed:
                jaxpr = self.jaxpr(value.jaxpr, number, depth)
                self._closed[id(value)] = ClosedJaxpr(jaxpr, value.consts)
            return self._closed[id(value)]
        if isinstance(value, Jaxpr):
            return self.jaxpr(value, number, depth)
        if type(value) in (tuple, list):
            return type(value)(self._param(item, number, depth) for item in value)
        return value


def marks(name: str) -> list[int]:
    """The numbers in the name of an operation, the outermost equation first."""
    return [int(found) for found in _MARK.findall(name)]


def own_mark(names: Iterable[str]) -> Numbers:
    """The equations that an operation with these names was made for."""
    return frozenset(found[-1] for name in names if (found := marks(name)))


def left_in(jaxpr: Jaxpr) -> Iterator[int]:
    """The numbers of the equations that a marked program still has, once it was cleaned."""
    for eqn in jaxpr.eqns:
        yield from (int(name[1:]) for name in eqn.scope if name[:1] == "~" and name[1:].isdigit())
        for inner in jaxprs_in_params(eqn.params):
            yield from left_in(inner)


def unmarked(name: str) -> str:
    """The name of an operation without numbers."""
    return "/".join(part for part in name.split("/") if not _MARK.fullmatch(part))


def uses(equations: Iterable[Equation]) -> Mapping[int, list[int]]:
    """For each equation the equations of the same jaxpr that take its results."""
    givers: dict[int, int] = {}
    found: dict[int, list[int]] = {}
    for equation in equations:
        for atom in equation.eqn.invars:
            giver = givers.get(id(atom))
            if giver is not None and equation.number not in found[giver]:
                found[giver].append(equation.number)
        found[equation.number] = []
        givers.update((id(v), equation.number) for v in equation.eqn.outvars)
    return found
