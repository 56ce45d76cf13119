"""Greatest common divisors and least common multiples."""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax import binary, control_flow, reduction
from minijax.numpy.arithmetic import absolute, is_kind
from minijax.numpy.one_program import one_program
from minijax.numpy.promotion import (
    broadcast_shapes,
    broadcast_to,
    pick,
    promote_dtypes,
    strong_array,
)
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array


@one_program()
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisors.

    Shapes:     x1: T[s], x2: U[t] -> V[broadcast of s and t].
    Dtypes:     integer, promoted.
    Source:     mirrors jax.numpy.gcd.

    Raises:
        ValueError: an operand is not of integers.

    Example:
        >>> jnp.gcd(jnp.array([12, -18, 0]), 8)
        Array([4, 2, 8], dtype=int32)
    """
    x, y = _integers("gcd", x1, x2)
    return _gcd(x, y)


@one_program()
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiples; 0 where an operand is 0.

    Shapes:     x1: T[s], x2: U[t] -> V[broadcast of s and t].
    Dtypes:     integer, promoted.
    Source:     mirrors jax.numpy.lcm.

    Raises:
        ValueError: an operand is not of integers.

    Example:
        >>> jnp.lcm(jnp.array([4, 6, 0]), 6)
        Array([12,  6,  0], dtype=int32)
    """
    x, y = _integers("lcm", x1, x2)
    divisor = _gcd(x, y)
    divisor = pick(binary.eq(divisor, 0), 1, divisor)
    return binary.mul(x, binary.div(y, divisor))


def _integers(name: str, x1: Any, x2: Any) -> tuple[Any, Any]:
    x, y = map(strong_array, promote_dtypes(name, x1, x2))
    if not is_kind(x, np.integer):
        error(
            ValueError,
            f"numpy.{name}",
            "operands must be integers.",
            got={"x1": aval_of(x1), "x2": aval_of(x2)},
            fix="x.astype(int)",
        )
    shape = broadcast_shapes("gcd", aval_of(x).shape, aval_of(y).shape)
    return absolute(broadcast_to(x, shape)), absolute(broadcast_to(y, shape))


def _gcd(x: Any, y: Any) -> Any:
    """Euclid's algorithm for all elements at once, until the last of them is done."""

    def unfinished(pair: Any) -> Any:
        _, y = pair
        return reduction.reduce_or(binary.ne(y, 0), range(aval_of(y).ndim))

    def step(pair: Any) -> Any:
        x, y = pair
        done = binary.eq(y, 0)
        return pick(done, x, y), pick(done, y, binary.rem(x, pick(done, 1, y)))

    return control_flow.while_loop(unfinished, step, (x, y))[0]
