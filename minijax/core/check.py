"""Type-checks jaxprs: every variable bound once, before use, with the type its rule gives.

Input: a jaxpr.  Output: nothing, or an `InternalError` that shows the faulty equation inside
its jaxpr.  Runs after every pass when `MINIJAX_CHECK=1`, and always in tests.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from minijax.core import printing, refs, vma
from minijax.core.aval import AbstractValue, ShapedArray
from minijax.core.errors import InternalError
from minijax.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Var, jaxprs_in_params
from minijax.core.rules import Rules
from minijax.core.value_placement import NOT_MANUAL

inside = Rules("inside")
"""The context that jaxprs among the parameters are written for: `(primitive, **params)` gives a
context manager; without a rule it is the context of the equation."""


def check_jaxpr(jaxpr: Jaxpr | ClosedJaxpr) -> None:
    """Checks scoping and types of a jaxpr and of all jaxprs inside it.

    Raises:
        InternalError: the jaxpr is malformed.

    Example:
        >>> core = jax.extend.core
        >>> core.check_jaxpr(jax.make_jaxpr(lambda x: x + 1)(1))
        >>> unbound = core.Jaxpr([], [], [core.Var(jax.typeof(1))], [])
        >>> try:
        ...     core.check_jaxpr(unbound)
        ... except AssertionError as error:
        ...     print(str(error).partition(",")[0])
        malformed jaxpr: a variable of type ~i32[] is used in the results before it is bound
    """
    if isinstance(jaxpr, ClosedJaxpr):
        _check_consts(jaxpr)
        jaxpr = jaxpr.jaxpr
    bound: set[int] = set()
    _bind(jaxpr, (*jaxpr.constvars, *jaxpr.invars), bound, "a parameter")
    for eqn in jaxpr.eqns:
        _check_eqn(jaxpr, eqn, bound)
        _bind(jaxpr, eqn.outvars, bound, printing.eqn_text(eqn))
    for atom in jaxpr.outvars:
        _check_use(jaxpr, atom, bound, "the results")


def _check_consts(closed: ClosedJaxpr) -> None:
    if len(closed.consts) != len(closed.jaxpr.constvars):
        _fail(
            closed.jaxpr,
            f"{len(closed.jaxpr.constvars)} constvars but {len(closed.consts)} constants",
        )


def _bind(jaxpr: Jaxpr, variables: Iterable[Var], bound: set[int], where: str) -> None:
    for var in variables:
        if type(var) is not Var:
            _fail(jaxpr, f"{var!r} is bound by {where} but is no variable")
        if id(var) in bound:
            _fail(jaxpr, f"a variable of type {var.aval} is bound a second time by {where}")
        bound.add(id(var))


def _check_use(jaxpr: Jaxpr, atom: Atom, bound: set[int], where: str) -> None:
    if not isinstance(atom.aval, AbstractValue):
        _fail(jaxpr, f"{atom!r} in {where} has no type")
    if type(atom) is Var and id(atom) not in bound:
        _fail(jaxpr, f"a variable of type {atom.aval} is used in {where} before it is bound")


def _check_eqn(jaxpr: Jaxpr, eqn: Eqn, bound: set[int]) -> None:
    text = printing.eqn_text(eqn)
    for atom in eqn.invars:
        _check_use(jaxpr, atom, bound, text)
    scope = inside.of(eqn.primitive)
    with contextlib.nullcontext() if scope is None else scope(**eqn.params):
        for inner in jaxprs_in_params(eqn.params):
            check_jaxpr(inner)
    avals = [atom.aval for atom in eqn.invars]
    try:
        out = eqn.primitive.abstract_eval(*avals, **eqn.params)
    except Exception as error:
        raise InternalError(_text(jaxpr, f"{text} does not type-check: {error}")) from error
    if vma.vary.of(eqn.primitive) is not None or any(vma.of(a) is not NOT_MANUAL for a in avals):
        out = vma.typed(eqn.primitive, avals, eqn.invars, out, eqn.params)
    outs = out if eqn.primitive.multiple_results else (out,)
    if len(outs) != len(eqn.outvars):
        _fail(jaxpr, f"{text} gives {len(outs)} results but binds {len(eqn.outvars)}")
    for var, aval in zip(eqn.outvars, outs, strict=True):
        if not same_type(var.aval, aval):
            _fail(jaxpr, f"{text} gives {aval} but binds a variable of type {var.aval}")
    parameters = jaxpr.constvars + jaxpr.invars
    if eqn.effects and refs.effects_outside(eqn.effects, parameters) - jaxpr.effects:
        _fail(jaxpr, f"{text} has effects that the jaxpr does not declare")


def same_type(a: AbstractValue, b: AbstractValue) -> bool:
    """Whether two types agree in shape, dtype and vma; weak types do not matter."""
    if a is b:
        return True
    if isinstance(a, refs.AbstractRef) and isinstance(b, refs.AbstractRef):
        return same_type(a.inner_aval, b.inner_aval)
    if isinstance(a, ShapedArray) and isinstance(b, ShapedArray):
        return (
            a.shape == b.shape and a.dtype == b.dtype and a.manual_axis_type == b.manual_axis_type
        )
    return False


def _text(jaxpr: Jaxpr, problem: str) -> str:
    return f"malformed jaxpr: {problem}, in\n{jaxpr}"


def _fail(jaxpr: Jaxpr, problem: str) -> None:
    raise InternalError(_text(jaxpr, problem))
