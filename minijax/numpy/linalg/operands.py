"""What functions of linear algebra make of their arguments, and refuse."""

from __future__ import annotations

from typing import Any

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import IncompatibleShapesError, error
from minijax.lax import unary
from minijax.lax.convert import convert_to_type
from minijax.numpy import promotion
from minijax.numpy.shaping import array_argument
from minijax.runtime.array import Array


def inexact(name: str, x: Any) -> Array:
    """An argument as an array of floats or complex numbers.

    Raises:
        TypeError: it is neither an array nor a number.
    """
    x = array_argument(f"linalg.{name}", x)
    return convert_to_type(x, dtypes.to_inexact_dtype(x.dtype), x.aval.weak_type)


def inexact_together(name: str, *arrays: Any) -> list[Array]:
    """Arguments as arrays of one dtype, of floats or complex numbers.

    Raises:
        TypeError: one of them is neither an array nor a number.
    """
    return [inexact(name, x) for x in promotion.promote_dtypes(f"linalg.{name}", *arrays)]


def matrices(name: str, x: Any, argument: str = "a") -> Array:
    """An argument as matrices of floats or complex numbers.

    Raises:
        TypeError: it is neither an array nor a number.
        ValueError: it has fewer than two dimensions.
    """
    x = inexact(name, x)
    check_matrices(name, x, argument)
    return x


def check_matrices(name: str, x: Array, argument: str = "a") -> None:
    """Refuses arrays of fewer than two dimensions.

    Raises:
        ValueError: it has fewer than two dimensions.
    """
    if x.ndim < 2:
        error(
            ValueError,
            f"numpy.linalg.{name}",
            f"{argument} is no matrix, nor a batch of matrices.",
            got={argument: aval_of(x)},
            expected="two dimensions or more: T[..., m, n]",
        )


def square_matrices(name: str, x: Any, argument: str = "a") -> Array:
    """An argument as square matrices of floats or complex numbers.

    Raises:
        TypeError: it is neither an array nor a number.
        ValueError: it has fewer than two dimensions.
        IncompatibleShapesError: the last two dimensions differ.
    """
    x = matrices(name, x, argument)
    check_square(name, x, argument)
    return x


def check_square(name: str, x: Array, argument: str = "a") -> None:
    """Refuses matrices that are not square.

    Raises:
        IncompatibleShapesError: the last two dimensions differ.
    """
    if x.shape[-1] != x.shape[-2]:
        error(
            IncompatibleShapesError,
            f"numpy.linalg.{name}",
            f"the matrices in {argument} are not square.",
            got={argument: aval_of(x)},
            expected="T[..., n, n]",
        )


def check_not_both(name: str, **arguments: object) -> None:
    """Refuses two names of one argument that are both given.

    Raises:
        ValueError: both are given.
    """
    if None not in arguments.values():
        first, second = arguments
        error(
            ValueError,
            f"numpy.linalg.{name}",
            f"{first} and {second} are two names of one argument.",
            got=arguments,
            fix="give one",
        )


def squared(x: Array) -> Array:
    """|x|², whose derivative is zero at zero."""
    return x * x if x.dtype.kind != "c" else unary.real(x * unary.conj(x))
