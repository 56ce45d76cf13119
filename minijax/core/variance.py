"""Variance: over which mesh axes the values of a per-device program differ.

Input: the types of an operation's operands.  Output: the types of its results, and the casts that
operands need first.  Inside `shard_map` a value is varying over a mesh axis (V), invarying (I),
a summand of one value (unreduced, U), or whole with summands as cotangents (reduced, R).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from minijax.core.aval import NO_AXES, NOT_MANUAL, ManualAxisType, manual_type
from minijax.core.errors import message


def of(aval: Any) -> ManualAxisType:
    """How a type stands to the mesh axes; types of tokens do not speak of them."""
    found: ManualAxisType = aval.manual_axis_type
    return found


def types_of(avals: Iterable[Any]) -> list[ManualAxisType]:
    """Rule: the types that `abstract_eval` gives tell, such as those of a jaxpr's results."""
    return [of(aval) for aval in avals]


def from_types(primitive: Any, avals: Sequence[Any], outs: Sequence[Any], **_: Any) -> Any:
    """Rule `vary`: the types that `abstract_eval` gives tell, such as those of jaxprs' results."""
    found = types_of(outs)
    return found if primitive.multiple_results else found[0]


def join(primitive: Any, avals: Sequence[Any]) -> ManualAxisType:
    """The type of what a local operation gives: varying where any operand is.

    Args:
        primitive: the operation.
        avals: the types of its operands; None for literals, which have no part in it: they are the
            same everywhere, and nothing is differentiated by them.

    Raises:
        ValueError: an operand is unreduced or reduced, and another does not fit to it.
        NotImplementedError: the operation is not linear, and an operand is unreduced.
    """
    kinds = [of(aval) for aval in avals if aval is not None]
    varying = NO_AXES.union(*(kind.varying for kind in kinds))
    if all(kind.varying == varying and kind[1:] == _NO_SUMS for kind in kinds):
        return kinds[0] if kinds else NOT_MANUAL
    reduced = NO_AXES.union(*(kind.reduced for kind in kinds)) - varying
    unreduced = NO_AXES.union(*(kind.unreduced for kind in kinds))
    for axis in unreduced:
        _check_sum(primitive, avals, kinds, axis)
    for axis in reduced - unreduced:
        if any(axis not in kind.reduced for kind in kinds):
            raise _mixed(
                primitive,
                avals,
                f"one operand is reduced over {axis!r}, another is the same everywhere.",
                f"lax.pcast(x, {axis!r}, to='reduced') on the other operand, or "
                f"lax.pcast(x, {axis!r}, to='varying') on this one",
            )
    return manual_type(varying, unreduced, reduced - unreduced)


_NO_SUMS = (NO_AXES, NO_AXES)


def _check_sum(
    primitive: Any, avals: Sequence[Any], kinds: Sequence[ManualAxisType], axis: Any
) -> None:
    """Refuses operations on summands that would not give summands of the right result."""
    if any(axis in kind.varying for kind in kinds):
        raise _mixed(
            primitive,
            avals,
            f"one operand is unreduced over {axis!r}, another varies over it.",
            f"lax.psum(x, {axis!r}) on the unreduced operand",
        )
    own = [axis in kind.unreduced for kind in kinds]
    if primitive.is_bilinear:
        if own.count(True) > 1:
            raise _mixed(
                primitive,
                avals,
                f"both factors are unreduced over {axis!r}: a product of sums is no sum of "
                "products.",
                f"lax.psum(x, {axis!r}) on one of them",
            )
        if any(axis not in kind.reduced for kind, u in zip(kinds, own, strict=True) if not u):
            raise _mixed(
                primitive,
                avals,
                f"the other factor must be reduced over {axis!r}.",
                f"lax.pcast(x, {axis!r}, to='reduced') on it",
            )
        return
    if not primitive.keeps_unreduced:
        raise NotImplementedError(
            _text(
                primitive,
                avals,
                f"an operand is unreduced over {axis!r}: devices hold summands of it, which the "
                "operation cannot work on.",
                f"lax.psum(x, {axis!r}) first",
            )
        )
    if not all(own) or len(kinds) < len(avals):
        raise _mixed(
            primitive,
            avals,
            f"one operand is unreduced over {axis!r}, another is whole: it would be counted once "
            "for each device.",
            f"lax.psum(x, {axis!r}) on the unreduced operand",
        )


def _mixed(primitive: Any, avals: Sequence[Any], problem: str, fix: str) -> ValueError:
    return ValueError(_text(primitive, avals, problem, fix))


def _text(primitive: Any, avals: Sequence[Any], problem: str, fix: str) -> str:
    return message(
        primitive.name,
        problem,
        got=", ".join("a literal" if a is None else str(a) for a in avals),
        fix=fix,
    )


def typed(
    primitive: Any,
    avals: Sequence[Any],
    literals: Sequence[bool],
    out: Any,
    params: dict[str, Any],
) -> Any:
    """The result type, or types, of an operation with their variance.

    Args:
        primitive: the operation.
        avals: the types of its operands, cast where they must be.
        literals: which of them are literals.
        out: what `abstract_eval` returns.
        params: its parameters.
    """
    if primitive.vary is None:
        counted = [None if lit else a for a, lit in zip(avals, literals, strict=True)]
        kind = join(primitive, counted)
        if primitive.multiple_results:
            return [aval.with_manual_type(kind) for aval in out]
        return out.with_manual_type(kind)
    if primitive.multiple_results:
        kinds = primitive.vary(avals, out, **params)
        return [aval.with_manual_type(k) for aval, k in zip(out, kinds, strict=True)]
    return out.with_manual_type(primitive.vary(avals, (out,), **params))


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


def argument_text(axes: Iterable[Any]) -> str:
    """Names of axes as the argument of a function: one name, or a tuple."""
    names = tuple(sorted(axes, key=str))
    return repr(names[0]) if len(names) == 1 else repr(names)
