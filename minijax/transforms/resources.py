"""Resource typing: one mesh axis may carry only one of the logical axes that a value varies along.

Input: a jaxpr that refers to logical axes, and which mesh axes each stands for.  Output: nothing,
or an error.  Where one mesh axis carried two of them, each device would have the value at equal
positions along both only.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from minijax.core import source
from minijax.core.errors import ResourceTypingError, error
from minijax.core.jaxpr import ClosedJaxpr, Eqn
from minijax.core.primitive import Primitive
from minijax.interpreters import uniformity
from minijax.interpreters.uniformity import Names

Resources = Mapping[Any, tuple[Any, ...]]
"""For logical axes, the mesh axes that carry them."""

Rule = Callable[[Eqn, Sequence[Names], Resources], None]

custom_resource_typing_rules: dict[Primitive, Rule] = {}
"""What replaces the check of a primitive's results: `rule(eqn, names of the operands, resources)`,
which raises a `ResourceTypingError` or returns."""


def resource_typecheck(
    closed: ClosedJaxpr,
    given: Sequence[Names],
    resources: Resources,
    origins: Sequence[str] = (),
) -> list[Names]:
    """Refuses programs of which some value varies along two logical axes on one mesh axis.

    Source: mirrors the check of resources in xmap of JAX before 0.4.31.

    Args:
        closed: the program of one position along all logical axes.
        given: along which of them each argument varies.
        resources: the mesh axes that carry each logical axis.
        origins: what messages call the arguments.

    Returns:
        Along which logical axes each result varies.

    Raises:
        ResourceTypingError: there is such a value, here or in a jaxpr inside; a `TypeError`.

    Example:
        >>> from minijax.experimental.maps import resource_typecheck
        >>> closed = jax.make_jaxpr(lambda x, y: x * y)(1.0, 2.0)
        >>> varying = [frozenset({"i"}), frozenset({"j"})]
        >>> resource_typecheck(closed, varying, {"i": ("x",), "j": ("y",)}) == [{"i", "j"}]
        True
    """
    names = origins or [f"argument {i}" for i in range(len(given))]
    for value, origin in zip(given, names, strict=True):
        check_value(value, resources, f"{origin}")

    def check(eqn: Eqn, operands: Sequence[Names], outs: Sequence[Names]) -> None:
        rule = custom_resource_typing_rules.get(eqn.primitive)
        if rule is not None:
            rule(eqn, operands, resources)
            return
        found = list(outs)
        named = uniformity.names_in(eqn)
        if named:
            # What a collective combines varies along its axes, whatever becomes of it.
            found.append(named.union(*operands) & resources.keys())
        for value in found:
            origin = f"the value made by {eqn.primitive} at {source.summarize(eqn.source)}"
            check_value(value, resources, origin)

    return uniformity.follow(closed, given, frozenset(resources), on_equation=check)


def check_value(names: Names, resources: Resources, origin: str) -> None:
    """Refuses a value that varies along two logical axes which one mesh axis carries.

    Raises:
        ResourceTypingError: it does.
    """
    for one, other in itertools.combinations(sorted(names, key=str), 2):
        shared = [r for r in resources[one] if r in resources[other]]
        if shared:
            error(
                ResourceTypingError,
                "xmap",
                f"the resource {shared[0]!r} carries both of the axes {one!r} and {other!r} of "
                "one value.",
                got=f"{origin}, which varies along {one!r} and {other!r}",
                expected="at most one of a value's axes on each resource",
                fix=f"another resource for {one!r} or {other!r}, or none",
            )
