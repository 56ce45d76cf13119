"""Solvers that keep a few directions only: conjugate gradients, and their stabilized relative."""

from __future__ import annotations

from typing import Any

from minijax.core import tree
from minijax.lax.control_flow.looping import while_loop
from minijax.numpy.creation import ones, zeros, zeros_like
from minijax.numpy.selection import where
from minijax.runtime.array import Array
from minijax.scipy.sparse.linalg import systems
from minijax.scipy.sparse.linalg.systems import System, dot, plus, square


def _conjugate_gradients(system: System, tol: Any, atol: Any, maxiter: Any) -> Any:
    limit = systems.tolerated(system.b, tol, atol) ** 2

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

    r = systems.residual(system, system.guess)
    z = system.precondition(r)
    gamma = dot(r, z).real
    p = tree.map(lambda a, b: a.astype(b.dtype), z, r)
    found, *_ = while_loop(unfinished, advance, (system.guess, r, p, gamma, 0))
    return found


def cg(
    A: Any,  # noqa: N803  SciPy's names
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-05,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,  # noqa: N803
) -> tuple[Array, None]:
    """Solves `A x = b` for a Hermitian positive definite A, by conjugate gradients.

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
    system = systems.prepare("cg", A, b, x0, M)
    steps = 10 * systems.size(b) if maxiter is None else maxiter

    def solve(system: System) -> Any:
        return _conjugate_gradients(system, tol, atol, steps)

    return systems.solved("cg", system, solve, symmetric=True), None


def _stabilized(system: System, tol: Any, atol: Any, maxiter: Any) -> Any:
    limit = systems.tolerated(system.b, tol, atol) ** 2

    def unfinished(state: dict[str, Any]) -> Any:
        return (square(state["r"]) > limit) & (state["count"] < maxiter) & ~state["broken"]

    def advance(state: dict[str, Any]) -> dict[str, Any]:
        x, r, p, image = (state[key] for key in ("x", "r", "p", "image"))
        rho = dot(shadow, r)
        beta = rho / state["rho"] * state["alpha"] / state["omega"]
        p = plus(r, beta, plus(p, -state["omega"], image))
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
        return {
            "x": x,
            "r": r,
            "p": p,
            "image": image,
            "rho": rho,
            "alpha": alpha,
            "omega": omega,
            "count": state["count"] + 1,
            "broken": ~is_done & ((rho == 0) | (alpha == 0) | (omega == 0)),
        }

    r = systems.residual(system, system.guess)
    shadow = r
    one = ones((), dot(r, r).dtype)
    # The first direction is the residual itself: nothing of a step before is added to it.
    nothing = tree.map(zeros_like, r)
    start = {
        "x": system.guess,
        "r": r,
        "p": nothing,
        "image": nothing,
        "rho": one,
        "alpha": one,
        "omega": one,
        "count": 0,
        "broken": zeros((), bool),
    }
    return while_loop(unfinished, advance, start)["x"]


def bicgstab(
    A: Any,  # noqa: N803  SciPy's names
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-05,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,  # noqa: N803
) -> tuple[Array, None]:
    """Solves `A x = b` for any square A, by stabilized biconjugate gradients.

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
    system = systems.prepare("bicgstab", A, b, x0, M)
    steps = 10 * systems.size(b) if maxiter is None else maxiter

    def solve(system: System) -> Any:
        return _stabilized(system, tol, atol, steps)

    return systems.solved("bicgstab", system, solve, symmetric=False), None
