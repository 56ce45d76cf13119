"""Solutions with the least residual among all combinations of the directions so far.

Directions are the residual, its image, the image of that, and so on, made orthogonal.  Rotations
keep the least-squares problem of their combination triangular, so that the length of the residual
is known after each direction.

Source: Y. Saad and M. Schultz, GMRES: a generalized minimal residual algorithm for solving
nonsymmetric linear systems, 1986.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes, tree
from minijax.core.errors import error
from minijax.lax.control_flow.looping import fori_loop, while_loop
from minijax.numpy.arithmetic import absolute, sqrt
from minijax.numpy.contraction import tensordot
from minijax.numpy.creation import zeros
from minijax.numpy.elementary import conjugate
from minijax.numpy.logic import isnan
from minijax.numpy.matrices import eye
from minijax.numpy.selection import where
from minijax.numpy.ufuncs import minimum
from minijax.runtime.array import Array
from minijax.scipy.sparse.linalg import systems
from minijax.scipy.sparse.linalg.systems import System, length, plus


class Basis(NamedTuple):
    """Orthogonal directions, and the problem of combining them.

    Attributes:
        directions: a tree whose leaves have the directions along their first dimension.
        turn: the product of all rotations.
        triangle: the images of directions in terms of directions, rotated.
        count: how many directions have an image.
        error: the length of the residual that is left.
    """

    directions: Any
    turn: Any
    triangle: Any
    count: Any
    error: Any


def _components(directions: Any, x: Any) -> Any:
    """The inner products of all directions with x."""
    return sum(
        tensordot(conjugate(d), a, a.ndim)
        for d, a in zip(tree.leaves(directions), tree.leaves(x), strict=True)
    )


def _combined(directions: Any, factors: Any) -> Any:
    return tree.map(lambda d: tensordot(factors.astype(d.dtype), d, 1), directions)


def _extended(system: System, basis: Basis, beta: Any) -> Basis:
    """One more direction: the image of the last one, without what it shares with all."""
    k = basis.count
    image = system.precondition(system.matvec(tree.map(lambda d: d[k], basis.directions)))
    before = length(image)
    column: Any = 0
    # Once is not enough: rounding leaves a share of the old directions.
    for _ in range(2):
        shares = _components(basis.directions, image)
        image = plus(image, -1, _combined(basis.directions, shares))
        column = column + shares
    rest = length(image)
    eps = float(dtypes.finfo(before.dtype).eps)
    is_new = rest > eps * before
    rest = where(is_new, rest, 0)
    unit = tree.map(lambda a: where(is_new, a / where(is_new, rest, 1), 0).astype(a.dtype), image)
    directions = tree.map(lambda d, a: d.at[k + 1].set(a), basis.directions, unit)
    turned = basis.turn @ column.at[k + 1].set(rest)
    return _rotated(basis, directions, turned, beta)


def _rotated(basis: Basis, directions: Any, column: Any, beta: Any) -> Basis:
    """The rotation of two rows that makes a new column triangular."""
    k = basis.count
    first, second = column[k], column[k + 1]
    size = sqrt(absolute(first) ** 2 + absolute(second) ** 2)
    safe = where(size == 0, 1, size)
    c, s = where(size == 0, 1, first / safe), where(size == 0, 0, second / safe)
    upper, lower = basis.turn[k], basis.turn[k + 1]
    turn = basis.turn.at[k].set(conjugate(c) * upper + conjugate(s) * lower)
    turn = turn.at[k + 1].set(c * lower - s * upper)
    triangle = basis.triangle.at[:, k].set(column.at[k].set(size).at[k + 1].set(0))
    error = absolute(turn[k + 1, 0]) * beta
    return Basis(directions, turn, triangle, k + 1, error)


def _weights(basis: Basis, beta: Any) -> Any:
    """The factors of the directions, by substitution from the last one back."""
    size = basis.triangle.shape[1]
    right = basis.turn[:, 0] * beta

    def substitute(i: Any, found: Any) -> Any:
        k = basis.count - 1 - i
        rest = right[k] - (basis.triangle[k] * found).sum()
        # Once all is said, further directions are nothing.
        value = where((k >= 0) & (basis.triangle[k, k] != 0), rest / basis.triangle[k, k], 0)
        return found.at[k].set(value, mode="drop", wrap_negative_indices=False)

    return fori_loop(0, size, substitute, zeros(size, basis.triangle.dtype))


def _cycle(
    system: System, x: Any, residual: Any, restart: int, limit: Any, *, incremental: bool
) -> Any:
    """The best solution with `restart` more directions."""
    beta = length(residual)
    kind = systems.dot(residual, residual).dtype
    safe = where(beta == 0, 1, beta)

    def rows(a: Any) -> Any:
        return zeros((restart + 1, *a.shape), a.dtype).at[0].set(a / safe.astype(beta.dtype))

    basis = Basis(
        tree.map(rows, residual),
        eye(restart + 1, dtype=kind),
        zeros((restart + 1, restart), kind),
        0,
        beta,
    )

    def unfinished(basis: Basis) -> Any:
        is_left = basis.count < restart
        return is_left & (basis.error > limit) if incremental else is_left

    basis = while_loop(unfinished, lambda basis: _extended(system, basis, beta), basis)
    directions = tree.map(lambda d: d[:-1], basis.directions)
    return plus(x, 1, _combined(directions, _weights(basis, beta)))


def _minimal_residuals(
    system: System, tol: Any, atol: Any, restart: int, maxiter: Any, *, incremental: bool
) -> Any:
    size = length(system.b)
    allowed = systems.tolerated(system.b, tol, atol)
    share = minimum(1, allowed / where(size == 0, 1, size))
    limit = length(system.precondition(system.b)) * share

    def rest(x: Any) -> Any:
        found = system.precondition(systems.residual(system, x))
        return tree.map(lambda a, b: a.astype(b.dtype), found, system.b)

    def advance(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        x, residual, count = state
        x = _cycle(system, x, residual, restart, limit, incremental=incremental)
        return x, rest(x), count + 1

    def unfinished(state: tuple[Any, Any, Any]) -> Any:
        return (state[2] < maxiter) & (length(state[1]) > limit)

    found, _, _ = while_loop(unfinished, advance, (system.guess, rest(system.guess), 0))
    return found


def gmres(
    A: Any,  # noqa: N803  SciPy's names
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-05,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,  # noqa: N803
    solve_method: str = "batched",
) -> tuple[Array, Array]:
    """Solves `A x = b` for any square A, by the generalized minimal residual method.

    Args:
        A: a square matrix, or a linear function of trees like b.
        b: the right side, an array or a tree of arrays.
        x0: where to start; zeros by default.
        tol: how long the residual may be, as a share of the length of b.
        atol: how long the residual may be in any case.
        restart: how many directions to collect before starting anew.
        maxiter: how often to start anew at most; ten times for each unknown by default.
        M: a matrix or function that is nearly the inverse of A.
        solve_method: "batched" collects all directions before it looks at the residual,
            "incremental" looks after each.

    Shapes:     A: T[n, n], b: T[n] -> T[n], int32[]; or trees.  The number is 0, or -1 where the
                solution is not a number.
    Dtypes:     inexact.
    Derivative: that of the exact solution, by A and b, found by solving once more.
    Source:     mirrors jax.scipy.sparse.linalg.gmres (0.10); Y. Saad and M. Schultz, 1986.

    Raises:
        TypeError: A or M is neither function nor matrix, or b is not inexact.
        ValueError: a matrix is not square, shapes do not fit, `restart` is not positive, or the
            method is not known.

    Example:
        >>> A = np.float32([[2, 1], [0, 4]])
        >>> minijax.scipy.sparse.linalg.gmres(A, np.float32([4, 4]))[0].round(4)
        Array([1.5, 1. ], dtype=float32)
    """
    name = "scipy.sparse.linalg.gmres"
    if solve_method not in ("batched", "incremental"):
        error(
            ValueError,
            name,
            "unknown method.",
            got=f"solve_method: {solve_method!r}",
            expected='"batched" or "incremental"',
        )
    count = operator.index(restart)
    if count < 1:
        error(ValueError, name, "restart must be positive.", got=f"restart: {count}")
    system = systems.prepare("gmres", A, b, x0, M)
    unknowns = systems.size(b)
    cycles = 10 * unknowns if maxiter is None else maxiter

    def solve(system: System) -> Any:
        return _minimal_residuals(
            system,
            tol,
            atol,
            min(count, max(unknowns, 1)),
            cycles,
            incremental=solve_method == "incremental",
        )

    found = systems.solved("gmres", system, solve, symmetric=False)
    failed = isnan(length(found)) if tree.leaves(found) else False
    return found, where(failed, np.int32(-1), np.int32(0))
