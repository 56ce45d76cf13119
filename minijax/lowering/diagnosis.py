"""Which operation made the NaN: a program with a bad result, run again operation by operation.

Input: a closed jaxpr and the arguments of the call.  Output: an error that names the first
operation whose result is bad, its line in the user's code, and the index.
"""

from __future__ import annotations

from typing import Any

from minijax.core import config, source
from minijax.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, jaxprs_in_params
from minijax.core.operators import Value, Values
from minijax.core.rules import Rules
from minijax.core.trace import Tracer
from minijax.interpreters import discharge
from minijax.runtime import execute
from minijax.runtime.array import Array

walk = Rules("walk")
"""Walks through an operation that holds jaxprs: `(primitive, run, *args, **params)` evaluates them
in order with `run(closed, *args)`; without a rule nothing inside is seen."""


class _Search:
    """One walk through the operations of a program."""

    def __init__(self, looking: execute.Looking, *, tells_lines: bool) -> None:
        self.looking = looking
        self.tells_lines = tells_lines

    @classmethod
    def for_bad_results(cls, closed: ClosedJaxpr, args: Values) -> None:
        """Runs a program, and raises the error for the first bad result that it meets."""
        # Programs of eager functions are shared by all lines that call them.
        tells_lines = closed.jaxpr.debug_info.traced_for != "eager"
        search = cls(execute.looking_for(), tells_lines=tells_lines)
        with config.debug_nans(False), config.debug_infs(False):
            search.run(closed, *args)

    def run(self, closed: ClosedJaxpr, *args: Any) -> list[Any]:
        """Evaluates a jaxpr in the current trace, as long as all results are good."""
        jaxpr = closed.jaxpr
        values: dict[Atom, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
        values.update(zip(jaxpr.invars, args, strict=True))
        for eqn in jaxpr.eqns:
            if not eqn.outvars:
                continue
            operands = [v.value if type(v) is Literal else values[v] for v in eqn.invars]
            values.update(zip(eqn.outvars, self.apply(eqn, operands), strict=True))
        return [v.value if type(v) is Literal else values[v] for v in jaxpr.outvars]

    def apply(self, eqn: Eqn, operands: Values) -> Values:
        """The results of one operation.

        Raises:
            FloatingPointError: one of them is bad; of an operation inside, if the operation
                holds jaxprs.
        """
        outs: Values = eqn.primitive.bind_all(*operands, **eqn.params)
        for out in outs:
            bad, where = self._find_bad(out)
            if bad is not None:
                inner = walk.of(eqn.primitive)
                if inner is not None:
                    inner(self.run, *operands, **eqn.params)
                raise execute.not_finite(
                    eqn.primitive.name,
                    bad,
                    out,
                    more=where + self._origin(operands),
                    at=source.summarize(eqn.source) if self.tells_lines else None,
                )
        return outs

    def _find_bad(self, out: Value) -> tuple[execute.Bad | None, str]:
        """The first bad element of a result, if it has one, and which device has made it."""
        if not isinstance(out, Tracer):
            return execute.find_bad(out, self.looking), ""
        for place, value in out.known_parts():
            bad = execute.find_bad(value, self.looking)
            if bad is not None:
                return bad, f" on {place}" if place else ""
        return None, ""

    def _origin(self, operands: Values) -> str:
        shown = ", ".join(
            f"{x.aval.str_short()} with {bad.word} at {bad.position}"
            for x in operands
            if isinstance(x, Array) and (bad := self._find_bad(x)[0])
        )
        return f", from an operand that had one already: {shown}" if shown else ""


def explain_bad_result(name: str, origin: Any, bad: execute.Bad, out: Value, args: Values) -> None:
    """Raises the error that says which operation of a program has made a result bad.

    Args:
        name: what the program is called.
        origin: gives its closed jaxpr, or None where that is gone.
        bad: what is wrong with a result.
        out: that result.
        args: the arguments of the call.

    Raises:
        FloatingPointError: always, unless the jaxpr is gone.
    """
    closed = origin()
    if closed is None:
        return
    # Reading and writing references that it makes is no effect outside of the program.
    closed = discharge.without_references(closed)
    more = "; run again operation by operation, the program produced none"
    fix = "a rewrite by XLA has made it: compare with minijax.disable_jit(), or use float64"
    if any(isinstance(x, Array) and x.is_deleted() for x in args):
        more = "; arguments were donated, so the program cannot be run again to find out where"
        fix = "call it without donate_argnums while debugging"
    elif _repeats_effects(closed.jaxpr):
        more = "; the program has effects, so it is not run again to find out where"
        fix = "call it without io_callback while debugging"
    else:
        _Search.for_bad_results(closed, args)
    raise execute.not_finite(name, bad, out, more=more, fix=fix)


def _repeats_effects(jaxpr: Jaxpr) -> bool:
    """Whether running the program again would do more than to print again."""
    for eqn in jaxpr.eqns:
        if not eqn.effects or not eqn.outvars:
            continue
        inner = list(jaxprs_in_params(eqn.params))
        if not inner or any(map(_repeats_effects, inner)):
            return True
    return False
