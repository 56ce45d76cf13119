"""Iterative solutions of linear systems.  Mirrors jax.scipy.sparse.linalg.

Conjugate gradients and their stabilized relative keep a few directions only.  GMRES finds the least
residual among all combinations of the directions so far, which are the residual, its image, the
image of that, and so on, made orthogonal.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from minijax.core import dtypes, source, tree
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.lax.control_flow.looping import fori_loop, while_loop
from minijax.lax.control_flow.solving import custom_linear_solve
from minijax.numpy.contraction import matmul, tensordot, vdot
from minijax.numpy.creation import asarray, ones, zeros, zeros_like
from minijax.numpy.elementary import absolute, conjugate, real, sqrt
from minijax.numpy.logic import isnan
from minijax.numpy.matrices import eye
from minijax.numpy.promotion import check_array, check_choice, check_that
from minijax.numpy.selection import where
from minijax.numpy.ufuncs import maximum, minimum
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array

__all__ = ["bicgstab", "cg", "gmres"]


Operator: TypeAlias = Callable[[Any], Any]
"""A linear function of trees."""

Matrix: TypeAlias = ArrayLike | Operator
"""A square matrix, or the function of trees that multiplies by it."""


class System(NamedTuple):
    """The system `matvec(x) = b`, a guess, and what is nearly the inverse of `matvec`."""

    matvec: Operator
    b: Any
    guess: Any
    precondition: Operator


def _operator(name: str, argument: str, given: Matrix) -> Operator:
    if callable(given):
        return given
    if not (hasattr(given, "aval") or isinstance(given, np.ndarray)):
        problem = "a linear map is a function or a square matrix."
        got = {argument: f"{given!r} of type {type(given).__name__}"}
        error(TypeError, f"scipy.sparse.linalg.{name}", problem, got=got)
    aval = aval_of(given)
    fits = aval.ndim == 2 and aval.shape[0] == aval.shape[1]
    problem = "the matrix must be square."
    check_that(fits, f"scipy.sparse.linalg.{name}", problem, got={argument: aval})
    return functools.partial(matmul, given)


def _array(name: str, x: Any) -> Any:
    """A leaf of the right side as an array that is not weakly typed."""
    x = asarray(check_array(f"scipy.sparse.linalg.{name}", x, "b"))
    fits = dtypes.issubdtype(x.dtype, np.inexact)
    problem = "the right side holds floats or complex numbers."
    fix = "b.astype(float)"
    check_that(fits, f"scipy.sparse.linalg.{name}", problem, error=TypeError, b=x, fix=fix)
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
        check_that(x.shape == y.shape, label, "x0 and b have different shapes.", x0=x, b=y)
    cast = [x.astype(y.dtype) for x, y in zip(leaves, tree.leaves(b), strict=True)]
    return tree.unflatten(wanted, cast)


def prepare(name: str, A: Matrix, b: Any, x0: Any, M: Matrix | None) -> System:
    """The system that the arguments of the public function `name` mean.

    Raises:
        TypeError: a map is neither function nor matrix, or the right side is not inexact.
        ValueError: a matrix is not square, or guess and right side do not fit together.
    """
    matvec = _operator(name, "A", A)
    precondition = (lambda x: x) if M is None else _operator(name, "M", M)
    b = tree.map(lambda x: _array(name, x), b)
    return System(matvec, b, _guess(name, b, x0), precondition)


def _tree_size(x: Any) -> int:
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


def plus(x: Any, factor: ArrayLike, y: Any) -> Any:
    """`x + factor * y`."""
    return tree.map(lambda a, b: (a + factor * b).astype(a.dtype), x, y)


def residual_of(system: System, x: Any) -> Any:
    """What is missing from `matvec(x)` to the right side."""
    return plus(system.b, -1, system.matvec(x))


def tolerated(b: Any, tol: float, atol: float) -> Any:
    """How long a residual may be."""
    return maximum(tol * length(b), atol)


def solved(system: System, solve: Callable[..., Any], *options: Any, symmetric: bool) -> Any:
    """The solution that `solve` finds, given `options`, with the derivatives of the exact one."""
    if not tree.leaves(system.b):
        return system.b

    def answer(matvec: Operator, b: Any) -> Any:
        return solve(system._replace(matvec=matvec, b=b), *options)

    return custom_linear_solve(
        system.matvec, system.b, answer, None if symmetric else answer, symmetric
    )


def _conjugate_gradients(system: System, tol: float, atol: float, maxiter: int) -> Any:
    limit = tolerated(system.b, tol, atol) ** 2

    def unfinished(state: tuple[Any, ...]) -> Any:
        _, r, _, _, count = state
        return (square(r) > limit) & (count < maxiter)

    def advance(state: tuple[Any, ...]) -> tuple[Any, ...]:
        x, r, p, gamma, count = state
        image = system.matvec(p)
        alpha = gamma / dot(p, image).real.astype(gamma.dtype)
        x, r = plus(x, alpha, p), plus(r, -alpha, image)
        z = system.precondition(r)
        after = dot(r, z).real.astype(gamma.dtype)
        return x, r, plus(z, after / gamma, p), after, count + 1

    r = residual_of(system, system.guess)
    z = system.precondition(r)
    gamma = dot(r, z).real
    p = tree.map(lambda a, b: a.astype(b.dtype), z, r)
    found, *_ = while_loop(unfinished, advance, (system.guess, r, p, gamma, 0))
    return found


def cg(
    A: Matrix,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-05,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Matrix | None = None,
) -> tuple[Array, None]:
    """Solves `A x = b` by the conjugate gradient method, for a Hermitian positive definite A.

    Args:
        A: a square matrix, or a linear function of trees like b.
        b: the right side, an array or a tree of arrays.
        x0: where to start; zeros by default.
        tol: how long the residual may be, as a share of the length of b.
        atol: how long the residual may be in any case.
        maxiter: how many steps to make at most; ten for each unknown by default.
        M: a matrix or function that is nearly the inverse of A, Hermitian and positive definite.

    Shapes:     A: T[n, n], b: T[n] -> T[n], None; or trees.
    Dtypes:     inexact.
    Derivative: that of the exact solution, by A and b, found by solving once more.
    Source:     mirrors jax.scipy.sparse.linalg.cg (0.10); M. Hestenes and E. Stiefel, Methods of
                conjugate gradients for solving linear systems, 1952.

    Raises:
        TypeError: A or M is neither function nor matrix, or b is not inexact.
        ValueError: a matrix is not square, or shapes do not fit.

    Example:
        >>> A = np.float32([[2, 0], [0, 4]])
        >>> minijax.scipy.sparse.linalg.cg(A, np.float32([2, 2]))[0].round(4)
        Array([1. , 0.5], dtype=float32)
    """
    system = prepare("cg", A, b, x0, M)
    steps = 10 * _tree_size(b) if maxiter is None else maxiter
    return solved(system, _conjugate_gradients, tol, atol, steps, symmetric=True), None


class Stabilized(NamedTuple):
    """What a step of the stabilized method knows: x and its residual, and what it did before."""

    x: Any
    r: Any
    p: Any
    image: Any
    rho: Any
    alpha: Any
    omega: Any
    count: Any
    broken: Any


def _stabilized(system: System, tol: float, atol: float, maxiter: int) -> Any:
    limit = tolerated(system.b, tol, atol) ** 2

    def unfinished(state: Stabilized) -> Any:
        return (square(state.r) > limit) & (state.count < maxiter) & ~state.broken

    def advance(state: Stabilized) -> Stabilized:
        x, r, p, image, *_ = state
        rho = dot(shadow, r)
        beta = rho / state.rho * state.alpha / state.omega
        p = plus(r, beta, plus(p, -state.omega, image))
        ahead = system.precondition(p)
        image = system.matvec(ahead)
        alpha = rho / dot(shadow, image)
        halfway = plus(r, -alpha, image)
        # The second half of a step would divide by nothing.
        is_done = square(halfway) < limit
        aside = system.precondition(halfway)
        turned = system.matvec(aside)
        omega = dot(turned, halfway) / dot(turned, turned)
        omega = where(is_done, 0, omega)
        x = plus(plus(x, alpha, ahead), omega, aside)
        r = tree.map(lambda a, b: where(is_done, a, b), halfway, plus(halfway, -omega, turned))
        broken = ~is_done & ((rho == 0) | (alpha == 0) | (omega == 0))
        return Stabilized(x, r, p, image, rho, alpha, omega, state.count + 1, broken)

    r = residual_of(system, system.guess)
    shadow = r
    one = ones((), dot(r, r).dtype)
    # The first direction is the residual itself: nothing of a step before is added to it.
    nothing = tree.map(zeros_like, r)
    unbroken = zeros((), bool)
    start = Stabilized(system.guess, r, nothing, nothing, one, one, one, 0, unbroken)
    return while_loop(unfinished, advance, start).x


def bicgstab(
    A: Matrix,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-05,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Matrix | None = None,
) -> tuple[Array, None]:
    """Solves `A x = b` by the biconjugate gradient stabilized method, for any square A.

    Args:
        A: a square matrix, or a linear function of trees like b.
        b: the right side, an array or a tree of arrays.
        x0: where to start; zeros by default.
        tol: how long the residual may be, as a share of the length of b.
        atol: how long the residual may be in any case.
        maxiter: how many steps to make at most; ten for each unknown by default.
        M: a matrix or function that is nearly the inverse of A.

    Shapes:     A: T[n, n], b: T[n] -> T[n], None; or trees.
    Dtypes:     inexact.
    Derivative: that of the exact solution, by A and b, found by solving once more.
    Source:     mirrors jax.scipy.sparse.linalg.bicgstab (0.10); H. van der Vorst, Bi-CGSTAB: a fast
                and smoothly converging variant of Bi-CG, 1992.

    Raises:
        TypeError: A or M is neither function nor matrix, or b is not inexact.
        ValueError: a matrix is not square, or shapes do not fit.

    Example:
        >>> A = np.float32([[2, 1], [0, 4]])
        >>> minijax.scipy.sparse.linalg.bicgstab(A, np.float32([4, 4]))[0].round(4)
        Array([1.5, 1. ], dtype=float32)
    """
    system = prepare("bicgstab", A, b, x0, M)
    steps = 10 * _tree_size(b) if maxiter is None else maxiter
    return solved(system, _stabilized, tol, atol, steps, symmetric=False), None


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


def _combined(directions: Any, factors: Array) -> Any:
    return tree.map(lambda d: tensordot(factors.astype(d.dtype), d, 1), directions)


def _extended(system: System, basis: Basis, beta: Array) -> Basis:
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


def _rotated(basis: Basis, directions: Any, column: Array, beta: Array) -> Basis:
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


def _weights(basis: Basis, beta: Array) -> Any:
    """The factors of the directions, by substitution from the last one back."""
    size = basis.triangle.shape[1]
    right = basis.turn[:, 0] * beta

    def substitute(i: ArrayLike, found: Array) -> Any:
        k = basis.count - 1 - i
        rest = right[k] - (basis.triangle[k] * found).sum()
        # Once all is said, further directions are nothing.
        value = where((k >= 0) & (basis.triangle[k, k] != 0), rest / basis.triangle[k, k], 0)
        return found.at[k].set(value, mode="drop", wrap_negative_indices=False)

    return fori_loop(0, size, substitute, zeros(size, basis.triangle.dtype))


def _cycle(
    system: System, x: Any, residual: Any, restart: int, limit: Array, *, incremental: bool
) -> Any:
    """The best solution with `restart` more directions."""
    beta = length(residual)
    kind = dot(residual, residual).dtype
    safe = where(beta == 0, 1, beta)

    def rows(a: Array) -> Any:
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
    system: System, tol: float, atol: float, restart: int, maxiter: int, *, incremental: bool
) -> Any:
    size = length(system.b)
    allowed = tolerated(system.b, tol, atol)
    share = minimum(1, allowed / where(size == 0, 1, size))
    limit = length(system.precondition(system.b)) * share

    def rest(x: Any) -> Any:
        found = system.precondition(residual_of(system, x))
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
    A: Matrix,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-05,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Matrix | None = None,
    solve_method: str = "batched",
) -> tuple[Array, Array]:
    """Solves `A x = b` by the generalized minimal residual method, for any square A.

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
    check_choice(name, "solve_method", solve_method, ("batched", "incremental"))
    count = operator.index(restart)
    if count < 1:
        error(ValueError, name, "restart must be positive.", got=f"restart: {count}")
    system = prepare("gmres", A, b, x0, M)
    unknowns = _tree_size(b)
    cycles = 10 * unknowns if maxiter is None else maxiter

    size, incremental = min(count, max(unknowns, 1)), solve_method == "incremental"
    solve = functools.partial(_minimal_residuals, incremental=incremental)
    found = solved(system, solve, tol, atol, size, cycles, symmetric=False)
    failed = isnan(length(found)) if tree.leaves(found) else False
    return found, where(failed, np.int32(-1), np.int32(0))


__dir__ = source.shown(globals())
