"""Linear systems as solvers take them: functions of trees of arrays; arithmetic of such trees."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes, tree
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax.control_flow.solving import custom_linear_solve
from minijax.numpy.arithmetic import sqrt
from minijax.numpy.contraction import matmul, vdot
from minijax.numpy.creation import asarray, zeros_like
from minijax.numpy.elementary import real
from minijax.numpy.promotion import check_array
from minijax.numpy.ufuncs import maximum

Operator = Callable[[Any], Any]


class System(NamedTuple):
    """The system `matvec(x) = b`, a guess, and what is nearly the inverse of `matvec`."""

    matvec: Operator
    b: Any
    guess: Any
    precondition: Operator


def _operator(name: str, argument: str, given: Any) -> Operator:
    if callable(given):
        return given
    if not (hasattr(given, "aval") or isinstance(given, np.ndarray)):
        error(
            TypeError,
            f"scipy.sparse.linalg.{name}",
            "a linear map is a function or a square matrix.",
            got={argument: f"{given!r} of type {type(given).__name__}"},
        )
    aval = aval_of(given)
    if aval.ndim != 2 or aval.shape[0] != aval.shape[1]:
        error(
            ValueError,
            f"scipy.sparse.linalg.{name}",
            "the matrix must be square.",
            got={argument: aval},
        )
    return functools.partial(matmul, given)


def _array(name: str, x: Any) -> Any:
    """A leaf of the right side as an array that is not weakly typed."""
    x = asarray(check_array(f"scipy.sparse.linalg.{name}", x, "b"))
    if not dtypes.issubdtype(x.dtype, np.inexact):
        error(
            TypeError,
            f"scipy.sparse.linalg.{name}",
            "the right side holds floats or complex numbers.",
            got={"b": x.aval},
            fix="b.astype(float)",
        )
    return x.astype(x.dtype)


def _guess(name: str, b: Any, x0: Any) -> Any:
    if x0 is None:
        return tree.map(zeros_like, b)
    mine, wanted = tree.structure(x0), tree.structure(b)
    label = f"scipy.sparse.linalg.{name}"
    if mine != wanted:
        error(ValueError, label, "x0 and b are different trees.", got={"x0": mine, "b": wanted})
    leaves = [asarray(check_array(label, x, "x0")) for x in tree.leaves(x0)]
    for x, y in zip(leaves, tree.leaves(b), strict=True):
        if x.shape != y.shape:
            error(
                ValueError,
                label,
                "x0 and b have different shapes.",
                got={"x0": x.aval, "b": y.aval},
            )
    cast = [x.astype(y.dtype) for x, y in zip(leaves, tree.leaves(b), strict=True)]
    return tree.unflatten(wanted, cast)


def prepare(name: str, A: Any, b: Any, x0: Any, M: Any) -> System:  # noqa: N803  SciPy's names
    """The system that the arguments of the public function `name` mean.

    Raises:
        TypeError: a map is neither function nor matrix, or the right side is not inexact.
        ValueError: a matrix is not square, or guess and right side do not fit together.
    """
    matvec = _operator(name, "A", A)
    precondition = (lambda x: x) if M is None else _operator(name, "M", M)
    b = tree.map(lambda x: _array(name, x), b)
    return System(matvec, b, _guess(name, b, x0), precondition)


def size(x: Any) -> int:
    """How many numbers a tree holds."""
    return sum(aval_of(leaf).size for leaf in tree.leaves(x))


def dot(x: Any, y: Any) -> Any:
    """The inner product of two trees, conjugate in the first."""
    return functools.reduce(operator.add, map(vdot, tree.leaves(x), tree.leaves(y)))


def square(x: Any) -> Any:
    """The square of the length of a tree."""
    return real(dot(x, x))


def length(x: Any) -> Any:
    """The length of a tree."""
    return sqrt(square(x))


def plus(x: Any, factor: Any, y: Any) -> Any:
    """`x + factor * y`."""
    return tree.map(lambda a, b: (a + factor * b).astype(a.dtype), x, y)


def residual(system: System, x: Any) -> Any:
    """What is missing from `matvec(x)` to the right side."""
    return plus(system.b, -1, system.matvec(x))


def tolerated(b: Any, tol: Any, atol: Any) -> Any:
    """How long a residual may be."""
    return maximum(tol * length(b), atol)


def solved(
    name: str,
    system: System,
    solve: Callable[[System], Any],
    *,
    symmetric: bool,
) -> Any:
    """The solution that `solve` finds, with the derivatives of the exact one."""
    if not tree.leaves(system.b):
        return system.b

    def answer(matvec: Operator, b: Any) -> Any:
        return solve(system._replace(matvec=matvec, b=b))

    return custom_linear_solve(
        system.matvec, system.b, answer, None if symmetric else answer, symmetric
    )
