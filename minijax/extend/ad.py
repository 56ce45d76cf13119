"""Registration of derivatives for primitives of users' own.  Mirrors jax.interpreters.ad."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.core.primitive import PRIMITIVES, Primitive
from minijax.interpreters.jvp import UndefinedPrimal, Zero, is_linear
from minijax.interpreters.structural import add_tangents, instantiate

is_undefined_primal = is_linear
instantiate_zeros = instantiate
add_jaxvals = add_tangents


class RuleTable(MutableMapping[Primitive, Callable[..., Any]]):
    """The rules of one kind as a table: setting an entry sets the primitive's own rule.

    A jvp rule is `rule(primals, tangents, **params)` and returns the results with their tangents; a
    transpose rule is `rule(ct, *args, **params)` and returns a cotangent for each argument, None
    for one that is known; rules for batches stand in `extend.batching`.

    Source:     mirrors jax.interpreters.ad.primitive_jvps and its like (0.10).

    Raises:
        KeyError: a primitive is looked up that has no rule of the kind.

    Example:
        >>> square = jax.extend.core.Primitive("squared")
        >>> _ = square.def_impl(lambda x: x * x)
        >>> jax.extend.ad.primitive_jvps[square] = lambda xs, ts: (xs[0] ** 2, 2 * xs[0] * ts[0])
        >>> jax.jvp(square.bind, (3.0,), (1.0,))
        (9.0, 6.0)
    """

    def __init__(self, rule: str, adapt: Callable[[Any], Any] = lambda rule: rule) -> None:
        self._rule = rule
        self._adapt = adapt

    def __setitem__(self, primitive: Primitive, rule: Callable[..., Any]) -> None:
        setattr(primitive, self._rule, self._adapt(rule))

    def __getitem__(self, primitive: Primitive) -> Callable[..., Any]:
        if primitive not in self:
            error(KeyError, primitive.name, f"the primitive has no rule {self._rule!r}.")
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
    """Gives the derivative with respect to each argument: `rule(tangent, *primals, **params)`.

    Args:
        primitive: an operation with one result.
        rules: one for each argument; None where the result does not follow the argument.

    Source:     mirrors jax.interpreters.ad.defjvp (0.10).

    Example:
        >>> square = jax.extend.core.Primitive("squared")
        >>> _ = square.def_impl(lambda x: x * x)
        >>> jax.extend.ad.defjvp(square, lambda t, x: 2 * x * t)
        >>> jax.jvp(square.bind, (3.0,), (1.0,))
        (9.0, 6.0)
    """

    def jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        total: Any = Zero.like(out)
        for tangent, rule in zip(tangents, rules, strict=True):
            if type(tangent) is not Zero and rule is not None:
                total = add_tangents(total, rule(tangent, *primals, **params))
        return out, total

    primitive_jvps[primitive] = jvp


def deflinear2(primitive: Primitive, transpose: Callable[..., Any]) -> None:
    """Says that a primitive is linear in all its arguments, with this transpose rule.

    Args:
        primitive: an operation with one result.
        transpose: `transpose(ct, *args, **params)`, a cotangent for each argument; the arguments
            are `UndefinedPrimal`s, which tell their types only.

    Source:     mirrors jax.interpreters.ad.deflinear2 (0.10).

    Example:
        >>> double = jax.extend.core.Primitive("doubled")
        >>> _ = double.def_impl(lambda x: x + x), double.def_abstract_eval(lambda x: x)
        >>> jax.extend.ad.deflinear2(double, lambda ct, x: [ct + ct])
        >>> jax.linear_transpose(double.bind, 1.0)(3.0)
        (6.0,)
    """

    def jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            return out, Zero.like(out)
        return out, primitive.bind(*map(instantiate, tangents), **params)

    primitive_jvps[primitive] = jvp
    primitive_transposes[primitive] = transpose


def zeros_like(primal: Any) -> Zero:
    """The zero tangent of a value.

    Source:     own.

    Example:
        >>> jax.extend.ad.zeros_like(jnp.arange(3.0))
        Zero(f32[3])
    """
    return Zero(aval_of(primal).tangent_aval())


__all__ = [
    "UndefinedPrimal",
    "Zero",
    "add_jaxvals",
    "defjvp",
    "deflinear2",
    "instantiate_zeros",
    "is_undefined_primal",
    "primitive_jvps",
    "primitive_transposes",
    "zeros_like",
]


def __dir__() -> list[str]:
    """The public names, without what the module is made of."""
    return sorted(__all__)
