"""Tangents and cotangents: symbolic zeros, and the rules that simple operations share.

The interpreters are `jvp.py` and `transpose.py`; sums and made zeros are in `structural.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from minijax.core import aval as core_aval
from minijax.core.aval import aval_handlers, aval_of
from minijax.core.errors import error


class Zero:
    """A tangent or cotangent known to be zero; `aval` is its type.

    Rules get it in place of an array of zeros, so that they can leave out what depends on it.

    Source:     mirrors jax.interpreters.ad.Zero (0.10).

    Example:
        >>> zero = jax.extend.ad.Zero(jax.typeof(jnp.arange(3.0)))
        >>> zero, jax.extend.ad.instantiate_zeros(zero)
        (Zero(f32[3]), Array([0., 0., 0.], dtype=float32))
    """

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    @staticmethod
    def like(primal: Any) -> Zero:
        """The zero tangent of a primal value."""
        return Zero(aval_of(primal).tangent_aval())

    def made(self) -> Any:
        """The zeros as a value."""
        return core_aval.zeros(self.aval)

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


def with_zeros(nonzero: Iterable[bool], given: Iterable[Any], avals: Iterable[Any]) -> list[Any]:
    """The tangents, or cotangents, of values of some types, from those that are not zero."""
    rest = iter(given)
    return [
        next(rest) if nz else Zero(aval.tangent_aval())
        for nz, aval in zip(nonzero, avals, strict=True)
    ]


class LinearInput:
    """Stands for a linear argument in a transpose rule, where no value is known.

    Source:     mirrors jax.interpreters.ad.UndefinedPrimal (0.10).

    Example:
        >>> x = jax.extend.ad.UndefinedPrimal(jax.typeof(jnp.arange(3.0)))
        >>> x.aval.shape, jax.extend.ad.is_undefined_primal(x)
        ((3,), True)
    """

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"LinearInput({self.aval})"


def _not_linear(x: Any) -> NoReturn:
    error(
        TypeError,
        "linear_transpose",
        "the function is not linear: its argument has to be known to transpose it.",
        got=str(x.aval),
        fix="minijax.vjp differentiates any function at a point",
    )


aval_handlers[LinearInput] = _not_linear


def is_linear(x: Any) -> bool:
    """Whether an argument of a transpose rule is a linear one.

    Source:     mirrors jax.interpreters.ad.is_undefined_primal (0.10).

    Example:
        >>> jax.extend.ad.is_undefined_primal(jnp.arange(3.0))
        False
    """
    return type(x) is LinearInput


def jvp_of_unary_linear(
    primitive: Any, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
) -> tuple[Any, Any]:
    """The jvp of an operation linear in its one argument: applies it to the tangent."""
    out = primitive.bind(*primals, **params)
    if type(tangents[0]) is Zero:
        return out, Zero.like(out)
    return out, primitive.bind(*tangents, **params)


def jvp_of_constant(
    primitive: Any, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
) -> tuple[Any, Any]:
    """The jvp of an operation whose result does not follow its arguments' tangents."""
    out = primitive.bind(*primals, **params)
    if primitive.multiple_results:
        return out, [Zero.like(x) for x in out]
    return out, Zero.like(out)
