"""Registration of derivatives for primitives of users' own, by JAX's names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from minijax.core.aval import aval_of
from minijax.core.errors import message
from minijax.core.primitive import PRIMITIVES, Primitive
from minijax.interpreters.structural import add_tangents, instantiate
from minijax.interpreters.tangents import LinearInput, Zero, is_linear

UndefinedPrimal = LinearInput
is_undefined_primal = is_linear
instantiate_zeros = instantiate
add_jaxvals = add_tangents


class RuleTable(MutableMapping[Primitive, Callable[..., Any]]):
    """The rules of one kind as a table: setting an entry sets the primitive's own rule."""

    def __init__(self, rule: str, adapt: Callable[[Any], Any] = lambda rule: rule) -> None:
        self._rule = rule
        self._adapt = adapt

    def __setitem__(self, primitive: Primitive, rule: Callable[..., Any]) -> None:
        setattr(primitive, self._rule, self._adapt(rule))

    def __getitem__(self, primitive: Primitive) -> Callable[..., Any]:
        if primitive not in self:
            raise KeyError(message(primitive.name, f"the primitive has no rule {self._rule!r}."))
        return getattr(primitive, self._rule)

    def __delitem__(self, primitive: Primitive) -> None:
        delattr(primitive, self._rule)

    def __contains__(self, primitive: object) -> bool:
        inherited = getattr(type(primitive), self._rule, None)
        return self._rule in vars(primitive) or inherited is not getattr(Primitive, self._rule)

    def __iter__(self) -> Iterator[Primitive]:
        return (p for p in PRIMITIVES.values() if p in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


primitive_jvps = RuleTable("jvp")
primitive_transposes = RuleTable("transpose")


def defjvp(primitive: Primitive, *rules: Callable[..., Any] | None) -> None:
    """Gives the derivative with respect to each argument: `rule(tangent, *primals, **params)`."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        total: Any = Zero.like(out)
        for tangent, rule in zip(tangents, rules, strict=True):
            if type(tangent) is not Zero and rule is not None:
                total = add_tangents(total, rule(tangent, *primals, **params))
        return out, total

    primitive_jvps[primitive] = jvp


def deflinear2(primitive: Primitive, transpose: Callable[..., Any]) -> None:
    """Says that a primitive is linear in all its arguments, with this transpose rule."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            return out, Zero.like(out)
        return out, primitive.bind(*map(instantiate, tangents), **params)

    primitive_jvps[primitive] = jvp
    primitive_transposes[primitive] = transpose


def zeros_like(primal: Any) -> Zero:
    """The zero tangent of a value."""
    return Zero(aval_of(primal).tangent_aval())
