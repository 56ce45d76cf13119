"""Vma: over which mesh axes the values of a per-device program vary ("varying manual axes").

Input: the types of an operation's operands.  Output: the types of its results, and the casts that
operands need first.  Inside `shard_map` a value is varying over a mesh axis (V), invarying (I),
a summand of one value (unreduced, U), or whole with summands as cotangents (reduced, R).
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import AbstractValue
from minijax.core.errors import ShardingTypeError, error
from minijax.core.jaxpr import Atom, Literal
from minijax.core.operators import Avals, AxisName, Value
from minijax.core.primitive import Primitive
from minijax.core.rules import Facts, Rules
from minijax.core.value_placement import NO_AXES, NOT_MANUAL, ManualAxisType, manual_type

vary = Rules("vary")
"""Over which mesh axes results vary: `(primitive, avals, outs, **params)` gives a `ManualAxisType`,
or one of each result.  Without a rule the operation is local: its results vary where its operands
do, see `join`."""

agree = Rules("agree")
"""Casts operands that are of other kinds over mesh axes: `(primitive, trace, args, params)` gives
the arguments and parameters that fit together; asked where types speak of mesh axes."""

linear_in: Facts[tuple[tuple[Any, ...], ...]] = Facts("linear_in", ())
"""Positions of operands in which an operation is linear together while the others are whole, such
as ((0,), (1,)) for products: where devices hold summands of those, they do of the result.
`(1, ...)` are all from 1 on."""

keeps_unreduced: Facts[bool] = Facts("keeps_unreduced", False)
"""Whether operands of which devices hold summands give a result of which they do."""


def of(aval: AbstractValue) -> ManualAxisType:
    """How a type stands to the mesh axes; types of tokens do not speak of them."""
    found: ManualAxisType = aval.manual_axis_type
    return found


def types_of(avals: Iterable[AbstractValue]) -> list[ManualAxisType]:
    """Rule: the types that `abstract_eval` gives tell, such as those of a jaxpr's results."""
    return [of(aval) for aval in avals]


def from_types(primitive: Primitive, avals: Avals, outs: Avals, **_: Any) -> Any:
    """Rule `vary`: the types that `abstract_eval` gives tell, such as those of jaxprs' results."""
    found = types_of(outs)
    return found if primitive.multiple_results else found[0]


def told_by_types(primitive: Primitive) -> bool:
    """Whether the rule `vary` of an operation is `from_types`."""
    return getattr(vary.of(primitive), "__func__", None) is from_types


class LiteralType(enum.Enum):
    """Stands for the type of a literal in `join`.

    Literals are equal on all devices and have no tangents, so they fit values of any kind.  A zero
    is a summand and the sum at once.
    """

    ZERO = "0"
    NONZERO = "a literal"

    def __str__(self) -> str:
        return self.value


OperandType: TypeAlias = AbstractValue | LiteralType


def of_literal(value: Value) -> LiteralType:
    """Returns what `join` takes in place of the type of a literal."""
    return LiteralType.ZERO if value == 0 else LiteralType.NONZERO


def common(primitive: Primitive, atoms: Sequence[Atom], avals: Avals) -> ManualAxisType | None:
    """The type of what a local operation gives, where all operands are of one type; None elsewhere.

    Most operations are such, and this is what `join` finds at a fraction of its cost.  Literals
    have no part in it.
    """
    if vary.of(primitive) is not None or agree.of(primitive) is not None:
        return None
    found = None
    for atom, aval in zip(atoms, avals, strict=True):
        if type(atom) is not Literal:
            kind = aval.manual_axis_type
            if found is None:
                found = kind
            elif kind is not found:
                return None
    return None if found is None or found.unreduced or found.reduced else found


def join(primitive: Primitive, avals: Sequence[OperandType]) -> ManualAxisType:
    """The type of what a local operation gives: varying where any operand is.

    Args:
        primitive: the operation.
        avals: the types of its operands; a `LiteralType` for literals, which have no part in it.

    Raises:
        ShardingTypeError: an operand is unreduced or reduced, and another does not fit to it.
        ValueError: an operand is unreduced over an axis over which another varies.
        NotImplementedError: the operation is not linear, and an operand is unreduced.
    """
    typed = [aval for aval in avals if not isinstance(aval, LiteralType)]
    kinds = [of(aval) for aval in typed]
    varying = NO_AXES.union(*(kind.varying for kind in kinds))
    if all(kind.varying == varying and kind[1:] == _NO_SUMS for kind in kinds):
        return kinds[0] if kinds else NOT_MANUAL
    if not any(kind.reduced or kind.unreduced for kind in kinds):
        return manual_type(varying)
    reduced = NO_AXES.union(*(kind.reduced for kind in kinds)) - varying
    unreduced = NO_AXES.union(*(kind.unreduced for kind in kinds))
    for axis in unreduced:
        _check_sum(primitive, avals, axis)
    for axis in reduced - unreduced:
        if any(_state(aval, axis) == "I" for aval in typed):
            problem = f"one operand is reduced over {axis!r}, another is the same everywhere."
            fix = (
                f"lax.pcast(x, {axis!r}, to='reduced') on the other operand, or "
                f"lax.pcast(x, {axis!r}, to='varying') on this one"
            )
            _refuse(ShardingTypeError, primitive, avals, problem, fix)
    return manual_type(varying, unreduced, reduced - unreduced)


_NO_SUMS = (NO_AXES, NO_AXES)


def _state(aval: OperandType, axis: Hashable) -> str:
    """How an operand stands to an axis: "V", "U", "R", or "I", the same everywhere.

    Literals are of the state "0" if they are zero.  They, and what is the same everywhere and not
    differentiated by, such as an index, are of the state "-": they fit to what is reduced.
    """
    if isinstance(aval, LiteralType):
        return "0" if aval is LiteralType.ZERO else "-"
    kind = of(aval)
    for state, axes in zip("VUR", kind, strict=True):
        if axis in axes:
            return state
    dtype = getattr(aval, "dtype", None)
    return "I" if dtype is not None and dtypes.issubdtype(dtype, np.inexact) else "-"


def _check_sum(primitive: Primitive, avals: Sequence[OperandType], axis: Hashable) -> None:
    """Refuses operations on summands that would not give summands of the right result."""
    states = [_state(aval, axis) for aval in avals]
    if "V" in states:
        problem = f"one operand is unreduced over {axis!r}, another varies over it."
        _refuse(ValueError, primitive, avals, problem, _sum_first(axis))
    summands = {i for i, state in enumerate(states) if state == "U"}
    together = linear_together(primitive, len(avals))
    members = next((own for own in together if summands <= own), None)
    if members is None and summands <= set().union(*together):
        problem = (
            f"both factors are unreduced over {axis!r}: a product of sums is no sum of products."
        )
        fix = f"lax.psum(x, {axis!r}) on one of them"
        _refuse(ShardingTypeError, primitive, avals, problem, fix)
    if members is None:
        problem = (
            f"an operand is unreduced over {axis!r}: devices hold summands of it, which the "
            "operation cannot work on."
        )
        _refuse(NotImplementedError, primitive, avals, problem, _sum_first(axis))
    if any(state not in "U0" for i, state in enumerate(states) if i in members):
        problem = (
            f"one operand is unreduced over {axis!r}, another is whole: it would be counted once "
            "for each device."
        )
        _refuse(ShardingTypeError, primitive, avals, problem, _sum_first(axis))
    if any(state == "I" for i, state in enumerate(states) if i not in members):
        problem = f"the other factor must be reduced over {axis!r}."
        fix = f"lax.pcast(x, {axis!r}, to='reduced') on it"
        _refuse(ShardingTypeError, primitive, avals, problem, fix)


def linear_together(primitive: Primitive, count: int) -> list[set[int]]:
    """The sets of operands, of `count` in all, in which an operation is linear together."""
    if keeps_unreduced.of(primitive):
        return [set(range(count))]
    return [
        set(range(own[0], count)) if own[-1] is ... else set(own) for own in linear_in.of(primitive)
    ]


def _sum_first(axis: Hashable) -> str:
    return f"lax.psum(x, {axis!r}) on the unreduced operand"


def _refuse(
    exception: type[Exception],
    primitive: Primitive,
    avals: Sequence[OperandType],
    problem: str,
    fix: str,
) -> NoReturn:
    got = ", ".join(map(str, avals))
    error(exception, primitive.name, problem, got=got, fix=fix, more="")


def typed(
    primitive: Primitive, avals: Avals, atoms: Sequence[Atom], out: Any, params: Mapping[str, Any]
) -> Any:
    """The result type, or types, of an operation, with their vma.

    Args:
        primitive: the operation.
        avals: the types of its operands, cast where they must be.
        atoms: these operands, variables or literals of a jaxpr.
        out: what `abstract_eval` returns.
        params: its parameters.
    """
    rule = vary.of(primitive)
    if rule is None:
        given = [
            of_literal(atom.value) if type(atom) is Literal else aval
            for atom, aval in zip(atoms, avals, strict=True)
        ]
        kind = join(primitive, given)
        if primitive.multiple_results:
            return [aval.with_manual_type(kind) for aval in out]
        return out.with_manual_type(kind)
    if primitive.multiple_results:
        kinds = rule(avals, out, **params)
        return [aval.with_manual_type(k) for aval, k in zip(out, kinds, strict=True)]
    return out.with_manual_type(rule(avals, (out,), **params))


def difference(given: Any, wanted: Any, name: str = "x") -> str:
    """How to cast a value of type `given` so that it varies where `wanted` does; or empty.

    Args:
        given: a type.
        wanted: another one.
        name: what to call the value.
    """
    own, other = of(given), of(wanted)
    fixes = []
    for axes, to in (
        (other.varying - own.varying, "varying"),
        (other.reduced - own.reduced, "reduced"),
        (other.unreduced - own.unreduced, "unreduced"),
    ):
        if axes:
            fixes.append(f"lax.pcast({name}, {argument_text(axes)}, to={to!r})")
    return " and ".join(fixes)


def argument_text(axes: Iterable[AxisName]) -> str:
    """Names of axes as the argument of a function: one name, or a tuple."""
    names = tuple(sorted(axes, key=str))
    return repr(names[0]) if len(names) == 1 else repr(names)
