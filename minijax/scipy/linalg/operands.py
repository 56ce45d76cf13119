"""What functions of linear algebra make of their arguments, and refuse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core.aval import aval_of
from minijax.core.errors import error, message
from minijax.numpy import promotion
from minijax.numpy.creation import asarray
from minijax.runtime.array import Array


def inexact(name: str, x: Any, argument: str = "a") -> Array:
    """An argument as an array of floats or complex numbers.

    Raises:
        TypeError: it is no array and no number.
    """
    x = promotion.check_array(f"scipy.linalg.{name}", x, argument)
    return asarray(promotion.inexact(f"scipy.linalg.{name}", x))


def inexact_or_nested(name: str, x: Any) -> Array:
    """As `inexact`; lists of numbers are arrays as well."""
    return inexact(name, asarray(x) if isinstance(x, list | tuple) else x)


def inexact_together(name: str, *arrays: Any) -> list[Array]:
    """Arguments as arrays of one dtype, of floats or complex numbers.

    Raises:
        TypeError: one of them is no array and no number.
    """
    promoted = promotion.promote_dtypes(f"scipy.linalg.{name}", *arrays)
    return [inexact(name, x) for x in promoted]


def check_square(name: str, x: Any, argument: str = "a") -> None:
    """Refuses what is no square matrix, nor a batch of them.

    Raises:
        ValueError: it has fewer than two dimensions, or the last two differ.
    """
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        error(
            ValueError,
            f"scipy.linalg.{name}",
            f"{argument} is no square matrix, nor a batch of them.",
            got={argument: aval_of(x)},
            expected="T[..., n, n]",
        )


def check_choice(name: str, argument: str, given: Any, known: Sequence[Any]) -> None:
    """Refuses an option that is none of those known.

    Raises:
        ValueError: it is none of them.
    """
    if given not in known:
        error(
            ValueError,
            f"scipy.linalg.{name}",
            f"{argument} is not known.",
            got=f"{argument}: {given!r}",
            expected=" or ".join(map(repr, known)),
        )


def refuse(name: str, problem: str, **got: Any) -> NotImplementedError:
    """The error of an option of SciPy's that there is no implementation of."""
    shown = ", ".join(f"{argument}: {value!r}" for argument, value in got.items())
    return NotImplementedError(message(f"scipy.linalg.{name}", problem, got=shown or None))
