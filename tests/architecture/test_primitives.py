"""Every primitive has its rules, or says which of them make no sense for it."""

from typing import Any

import minijax  # noqa: F401  importing the package declares its primitives
from minijax.core.primitive import PRIMITIVES, Primitive
from minijax.interpreters.tangents import jvp_of_unary_linear

REQUIRED_RULES = ("abstract_eval", "lower", "jvp", "batch", "shard")


def own_primitives() -> dict[str, Primitive]:
    """The package's primitives, without those that other tests declare as users do."""
    rooms = ("minijax.core.", "minijax.interpreters.", "minijax.lax.", "minijax.transforms.")
    return {
        name: primitive
        for name, primitive in PRIMITIVES.items()
        if type(primitive).__module__.startswith((*rooms, "minijax.random."))
    }


def rule_of(primitive: type[Primitive], rule: str) -> Any:
    return getattr(primitive, rule)


def has_rule(primitive: Primitive, rule: str) -> bool:
    return rule_of(type(primitive), rule) is not rule_of(Primitive, rule)


def needed_rules(primitive: Primitive) -> set[str]:
    """The rules that the primitive owes: a linear one can be transposed."""
    is_linear = rule_of(type(primitive), "jvp") is jvp_of_unary_linear
    needed = {*REQUIRED_RULES, "transpose"} if is_linear else set(REQUIRED_RULES)
    return needed - primitive.without


def test_primitives_are_declared() -> None:
    assert {"add", "mul", "sin", "dot_general", "reduce_sum", "jit"} <= set(own_primitives())


def test_primitives_have_their_rules() -> None:
    gaps = {
        name: missing
        for name, primitive in own_primitives().items()
        if (missing := [r for r in sorted(needed_rules(primitive)) if not has_rule(primitive, r)])
    }
    assert gaps == {}


def test_primitives_define_no_rule_that_they_do_without() -> None:
    contradictions = [
        (name, rule)
        for name, primitive in own_primitives().items()
        for rule in sorted(primitive.without)
        if has_rule(primitive, rule)
    ]
    assert contradictions == []


def test_primitives_explain_what_they_do_without() -> None:
    unexplained = [
        name
        for name, primitive in own_primitives().items()
        if primitive.without and not type(primitive).__doc__
    ]
    assert unexplained == []


def test_at_most_one_family_stands_above_a_primitive() -> None:
    deep = {
        name: len(families)
        for name, primitive in own_primitives().items()
        if len(families := [c for c in type(primitive).__mro__[1:] if issubclass(c, Primitive)]) > 2
    }
    assert deep == {}
