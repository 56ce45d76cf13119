"""Side effects: what an equation does besides computing its results.

Effects are part of a jaxpr's type.  An effect nobody knows how to lower stops the compiler, and
equations with effects are never dropped as dead code.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from minijax.core.errors import error
from minijax.core.operators import AxisName


class Effect:
    """Base of all effects; instances are compared by value or identity, as the class decides.

    Example:
        >>> class Log(jax.extend.core.Effect):
        ...     __repr__ = lambda self: "Log"
        >>> logged = jax.extend.core.Primitive("logged")
        >>> _ = logged.def_effectful_abstract_eval(lambda x: (x, {Log()}))
        >>> jax.make_jaxpr(logged.bind)(1).effects
        frozenset({Log})
    """

    __slots__ = ()

    def of_equation(self, operands: Sequence[Any]) -> Iterable[Effect]:
        """The effects of an equation whose primitive's rule gives this one."""
        return (self,)

    def outlives(self, variables: Iterable[object]) -> bool:
        """Whether a jaxpr that takes `variables` has the effect if one of its equations has."""
        return True

    def __repr__(self) -> str:
        return type(self).__name__.removesuffix("Effect")


class NamedAxisEffect(Effect):
    """An equation refers to the axis `name`; the construct that maps over it discharges this."""

    __slots__ = ("name",)

    def __init__(self, name: AxisName) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedAxisEffect) and other.name == self.name

    def __hash__(self) -> int:
        return hash((NamedAxisEffect, self.name))

    def __repr__(self) -> str:
        return f"NamedAxis({self.name})"


class SingleSideCollectiveEffect(Effect):
    """An equation sends to another device, or receives from it, which must do its part.

    All such effects are equal.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is SingleSideCollectiveEffect

    def __hash__(self) -> int:
        return hash(SingleSideCollectiveEffect)


class EffectTypes:
    """A set of classes of effects, open to users."""

    __slots__ = ("_types",)

    def __init__(self) -> None:
        self._types: set[type] = set()

    def add_type(self, effect_type: type) -> None:
        """Adds a class of effects, with its subclasses."""
        self._types.add(effect_type)

    def contains(self, effect: object) -> bool:
        """Whether the effect is of one of the classes."""
        return isinstance(effect, tuple(self._types))


ordered_effects = EffectTypes()
# Ordered ones that each of several devices may have in its own order.
shardable_ordered_effects = EffectTypes()
lowerable_effects = EffectTypes()
control_flow_allowed_effects = EffectTypes()
# Effects that may happen again, and for examples of a batch that do not take a branch.
unguarded_effects = EffectTypes()
# Effects that may happen again, where a program passes a second time.
repeatable_effects = EffectTypes()
repeatable_effects.add_type(NamedAxisEffect)
lowerable_effects.add_type(SingleSideCollectiveEffect)
control_flow_allowed_effects.add_type(SingleSideCollectiveEffect)
# To refer to an axis changes nothing.
unguarded_effects.add_type(NamedAxisEffect)


def ordered_among(effects: Iterable[Effect]) -> list[Effect]:
    """The ordered effects among some, in an order that depends on nothing else."""
    return sorted(filter(ordered_effects.contains, effects), key=repr)


def guarded_among(effects: Iterable[Effect]) -> list[Effect]:
    """The effects among some that must not happen where the program does not pass."""
    return sorted((e for e in effects if not unguarded_effects.contains(e)), key=repr)


def without_axis(effects: Iterable[Effect], name: AxisName) -> frozenset[Effect]:
    """Effects outside the construct that maps over the axis `name`."""
    return frozenset(effects) - {NamedAxisEffect(name)}


def check_lowerable(name: str, effects: Iterable[Effect], devices: int = 1) -> None:
    """Refuses to lower a program whose effects nobody can lower.

    Raises:
        NameError: an axis is not bound by any mapping construct.
        NotImplementedError: an effect is not registered as lowerable.
        ValueError: there are several devices, which have no common order, and an effect has one.
    """
    for effect in effects:
        if isinstance(effect, NamedAxisEffect):
            fix = f"call it inside vmap(..., axis_name={effect.name!r})"
            error(NameError, name, f"unbound axis name {effect.name!r}.", fix=fix)
        if not lowerable_effects.contains(effect):
            fix = "register its class: effects.lowerable_effects.add_type(...)"
            error(NotImplementedError, name, f"the effect {effect!r} cannot be lowered.", fix=fix)
        in_order = ordered_effects.contains(effect) and not shardable_ordered_effects.contains(
            effect
        )
        if devices > 1 and in_order:
            problem = "ordered effects need one device: several have no common order."
            got = f"{effect!r} in a program on {devices} devices"
            fix = "leave ordered=True away, or run this part on one device"
            error(ValueError, name, problem, got=got, fix=fix)


def check_control_flow(name: str, effects: Iterable[Effect]) -> None:
    """Refuses effects that the bodies of control flow must not have.

    Raises:
        NotImplementedError: an effect is not registered as allowed there.
    """
    for effect in effects:
        if isinstance(effect, NamedAxisEffect) or control_flow_allowed_effects.contains(effect):
            continue
        problem = f"the effect {effect!r} is not allowed in the body of control flow."
        fix = "register its class: effects.control_flow_allowed_effects.add_type(...)"
        error(NotImplementedError, name, problem, fix=fix)
