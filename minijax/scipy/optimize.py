"""Minima of smooth functions of many variables, by quasi-Newton methods.

Mirrors jax.scipy.optimize.

Source: J. Nocedal and S. Wright, Numerical Optimization, 2006: equation 6.17 for the inverse matrix
of second derivatives, algorithm 7.4 for products with it from the last steps only, and algorithms
3.5 and 3.6 for steps that satisfy the strong Wolfe conditions.  That slopes decide where rounding
hides whether values sink is due to W. Hager and H. Zhang, A new conjugate gradient method with
guaranteed descent and an efficient line search, 2005.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes, source
from minijax.core.errors import error
from minijax.lax.control_flow.looping import fori_loop, while_loop
from minijax.numpy.contraction import outer, vdot
from minijax.numpy.creation import asarray, ones, zeros
from minijax.numpy.elementary import absolute, clip, sqrt
from minijax.numpy.joining import concatenate
from minijax.numpy.logic import isfinite
from minijax.numpy.matrices import eye
from minijax.numpy.promotion import check_choice, check_that
from minijax.numpy.selection import where
from minijax.numpy.shaping import array_argument
from minijax.numpy.ufuncs import maximum, minimum
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.transforms.autodiff.grad import value_and_grad

__all__ = ["OptimizeResults", "minimize"]


class Method(NamedTuple):
    """A way to remember curvature.

    Attributes:
        start: for the number of variables and a dtype, the memory at the start.
        direction: for memory and gradient, where to go.
        learn: for memory, a step and what the gradient changed by, the memory afterwards.
        inverse: for memory, the inverse matrix of second derivatives, or None.
    """

    start: Callable[[int, Any], Any]
    direction: Callable[[Any, Any], Any]
    learn: Callable[[Any, Any, Any], Any]
    inverse: Callable[[Any], Any]


def _learned(inverse: Array, step: Array, change: Array) -> Any:
    """The BFGS formula, H + (1 + ρ yᵀHy) ρ ssᵀ - ρ (s (Hy)ᵀ + Hy sᵀ) with ρ = 1 / yᵀs."""
    bend = vdot(change, step)
    rho = 1 / where(bend > 0, bend, 1)
    image = inverse @ change
    grown = (1 + rho * vdot(change, image)) * rho * outer(step, step)
    mixed = rho * outer(step, image)
    # A step along which the function does not bend upwards teaches nothing.
    return where(bend > 0, inverse + grown - mixed - mixed.T, inverse)


FULL = Method(
    start=lambda size, dtype: eye(size, dtype=dtype),
    direction=lambda inverse, gradient: -(inverse @ gradient),
    learn=_learned,
    inverse=lambda inverse: inverse,
)


class History(NamedTuple):
    """The last steps, the changes of the gradient, 1 / yᵀs of each, and the scale of the last."""

    steps: Any
    changes: Any
    rho: Any
    scale: Any


def _remembered(history: History, step: Array, change: Array) -> History:
    bend = vdot(change, step)
    is_useful = bend > 0
    rho = 1 / where(is_useful, bend, 1)
    square = vdot(change, change)
    found = History(
        concatenate([history.steps[1:], step[None]]),
        concatenate([history.changes[1:], change[None]]),
        concatenate([history.rho[1:], rho[None]]),
        bend / where(is_useful, square, 1),
    )
    return History(*(where(is_useful, a, b) for a, b in zip(found, history, strict=True)))


def _downhill(history: History, gradient: Array) -> Any:
    """The two-loop recursion: newest step first, then oldest first."""
    count = history.rho.shape[0]

    def back(i: ArrayLike, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        rest, shares = carry
        k = count - 1 - i
        share = history.rho[k] * vdot(history.steps[k], rest)
        return rest - share * history.changes[k], shares.at[k].set(share)

    def forth(k: ArrayLike, product: Array) -> Any:
        share = history.rho[k] * vdot(history.changes[k], product)
        return product + (shares[k] - share) * history.steps[k]

    rest, shares = fori_loop(0, count, back, (gradient, zeros(count, gradient.dtype)))
    return -fori_loop(0, count, forth, history.scale * rest)


def limited(count: int) -> Method:
    """Curvature from the last `count` steps."""
    return Method(
        start=lambda size, dtype: History(
            zeros((count, size), dtype),
            zeros((count, size), dtype),
            zeros(count, dtype),
            ones((), dtype),
        ),
        direction=_downhill,
        learn=_remembered,
        inverse=lambda history: None,
    )


# How far values must sink, and how much of the slope may be left, as shares of the first slope.
_SUFFICIENT, _CURVATURE = 1e-4, 0.9

GROWING, SHRINKING, FOUND = np.int32(0), np.int32(1), np.int32(2)


class Point(NamedTuple):
    """A place on the line: the step to it, the value there, and the slope along the line."""

    step: Any
    value: Any
    slope: Any


class Search(NamedTuple):
    """The state of a search, and its result.

    Attributes:
        stage: GROWING, SHRINKING or FOUND.
        count: how often the function was evaluated.
        trial: the step to look at next.
        low: the best place so far.
        high: the other end of the interval while that shrinks.
        gradient: the gradient at `low`.
    """

    stage: Any
    count: Any
    trial: Any
    low: Point
    high: Point
    gradient: Any


def _choose(condition: Array, first: Point, second: Point) -> Point:
    return Point(*(where(condition, a, b) for a, b in zip(first, second, strict=True)))


def _between(low: Point, high: Point) -> Any:
    """Where the cubic through both ends is least, kept away from them; else the middle."""
    width = high.step - low.step
    a = low.slope + high.slope - 3 * (high.value - low.value) / where(width == 0, 1, width)
    square = a * a - low.slope * high.slope
    root = where(width < 0, -1, 1) * sqrt(where(square > 0, square, 0))
    whole = high.slope - low.slope + 2 * root
    share = 1 - (high.slope + root - a) / where(whole == 0, 1, whole)
    is_usable = (square >= 0) & (whole != 0) & isfinite(share)
    return low.step + width * where(is_usable, clip(share, 0.1, 0.9), 0.5)


def search(
    function: Callable[[Any], tuple[Any, Any]],
    x: Array,
    value: Array,
    gradient: Array,
    direction: Array,
    first_step: Array,
    limit: int,
) -> Search:
    """Looks for a step from `x` along `direction`, a place from where the function sinks.

    Args:
        function: gives value and gradient, of the dtype of `x`.
        x: where to start.
        value: the value at `x`.
        gradient: the gradient at `x`.
        direction: where to go.
        first_step: the step to try first.
        limit: how often to evaluate the function.

    Shapes: x, gradient, direction: T[n] -> Search; its stage is FOUND if `low` is a good place.
    """
    start = Point(asarray(0, x.dtype), value, vdot(gradient, direction))
    noise = 10 * float(dtypes.finfo(x.dtype).eps) * absolute(value)

    def is_low(p: Point, than: Point) -> Any:
        sinks = p.value <= value + _SUFFICIENT * p.step * start.slope
        seems_to = (p.value <= value + noise) & (p.slope <= (2 * _SUFFICIENT - 1) * start.slope)
        level = (p.value <= than.value + noise) & (absolute(p.slope) < absolute(than.slope))
        return (sinks | seems_to) & ((p.value < than.value) | level)

    def advance(state: Search) -> Search:
        found, slopes = function(x + state.trial * direction)
        new = Point(state.trial, found, vdot(slopes, direction))
        low, high, is_growing = state.low, state.high, state.stage == GROWING
        is_better = is_low(new, low)
        is_flat = absolute(new.slope) <= -_CURVATURE * start.slope
        # Past the new place values rise again: the minimum is before it.
        is_past = new.slope * where(is_growing, 1, high.step - low.step) >= 0
        shrinks = ~is_growing | ~is_better | is_past
        high = _choose(is_better, _choose(is_past, low, high), new)
        low = _choose(is_better, new, low)
        return Search(
            where(is_better & is_flat, FOUND, where(shrinks, SHRINKING, GROWING)),
            state.count + np.int32(1),
            where(shrinks, _between(low, high), 2 * state.trial),
            low,
            high,
            where(is_better, slopes, state.gradient),
        )

    state = Search(asarray(GROWING), asarray(np.int32(0)), first_step, start, start, gradient)
    return while_loop(lambda s: (s.stage != FOUND) & (s.count < limit), advance, state)


_NAME = "scipy.optimize.minimize"
_RUNNING = np.int32(-1)

# What ends a search, as numbers in the results.
_CONVERGED, _MAX_ITERATIONS, _MAX_EVALUATIONS, _NO_STEP, _LITTLE_CHANGE, _NO_END = map(
    np.int32, range(6)
)


class OptimizeResults(NamedTuple):
    """The result of an optimization.

    Attributes:
        x: the place.
        success: whether the gradient there is small enough.
        status: 0 if so; 1 after too many iterations, 2 or 3 after too many evaluations; 3 if no
            step made the function smaller; 4 if it changed too little; 5 if no end was in sight.
        fun: the value there.
        jac: the gradient there.
        hess_inv: the inverse matrix of second derivatives as far as the method knows it, or None.
        nfev: how often the function was evaluated.
        njev: how often the gradient was.
        nit: how many steps were made.

    Source: mirrors jax.scipy.optimize.OptimizeResults (0.10).

    Example:
        >>> minijax.scipy.optimize.OptimizeResults._fields[:3]
        ('x', 'success', 'status')
    """

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


class _Limits(NamedTuple):
    """When to stop."""

    gtol: Any
    norm: float
    maxiter: Any
    maxls: Any
    ftol: Any = None
    maxfun: Any = None
    maxgrad: Any = None


class _State(NamedTuple):
    x: Any
    value: Any
    gradient: Any
    memory: Any
    status: Any
    evaluations: Any
    iterations: Any


def _norm(vector: Array, order: float) -> Any:
    sizes = absolute(vector)
    if order == math.inf:
        return sizes.max()
    if order == -math.inf:
        return sizes.min()
    return (sizes**order).sum() ** (1 / order)


def _descend(
    function: Callable[[Any], tuple[Any, Any]], x: Array, method: Method, limits: _Limits
) -> _State:
    """Goes down from x, step by step, until a limit is reached."""

    def verdict(state: _State, before: Array | None = None) -> Any:
        """Why to stop here; the first reason counts."""
        found = state.status
        reasons = [(state.iterations >= limits.maxiter, _MAX_ITERATIONS)]
        if limits.maxfun is not None:
            reasons.insert(0, (state.evaluations >= limits.maxfun, _MAX_EVALUATIONS))
        if limits.maxgrad is not None:
            reasons.insert(0, (state.evaluations >= limits.maxgrad, _NO_STEP))
        if limits.ftol is not None and before is not None:
            scale = maximum(maximum(absolute(before), absolute(state.value)), 1)
            reasons.insert(0, (before - state.value <= limits.ftol * scale, _LITTLE_CHANGE))
        for holds, reason in reasons:
            found = where((found == _RUNNING) & holds, reason, found)
        return where(_norm(state.gradient, limits.norm) < limits.gtol, _CONVERGED, found)

    def advance(state: _State) -> _State:
        direction = method.direction(state.memory, state.gradient)
        length = maximum(_norm(state.gradient, 2), np.finfo(np.float32).tiny)
        # Before anything is known of the curvature, the first step has length 1 at most.
        first = where(state.iterations == 0, minimum(1, 1 / length), 1).astype(state.x.dtype)
        found = search(
            function, state.x, state.value, state.gradient, direction, first, limits.maxls
        )
        step = found.low.step * direction
        is_stuck = (found.stage == SHRINKING) & (found.low.step == 0)
        is_endless = found.stage == GROWING
        status = where(is_stuck, _NO_STEP, where(is_endless, _NO_END, _RUNNING))
        memory = method.learn(state.memory, step, found.gradient - state.gradient)
        after = _State(
            state.x + step,
            found.low.value,
            found.gradient,
            memory,
            status,
            state.evaluations + found.count,
            state.iterations + np.int32(1),
        )
        return after._replace(status=verdict(after, state.value))

    value, gradient = function(x)
    memory = method.start(x.size, x.dtype)
    start = _State(
        x, value, gradient, memory, asarray(_RUNNING), asarray(np.int32(1)), asarray(np.int32(0))
    )
    start = start._replace(status=verdict(start))
    return while_loop(lambda state: state.status == _RUNNING, advance, start)


_DEFAULTS: dict[str, dict[str, Any]] = {
    "bfgs": {"gtol": 1e-5, "norm": math.inf, "maxiter": None, "line_search_maxiter": 20},
    "l-bfgs-experimental-do-not-rely-on-this": {
        "gtol": 1e-5,
        "norm": 2,
        "maxiter": None,
        "maxls": 20,
        "maxcor": 10,
        "ftol": 2.220446049250313e-09,
        "maxfun": None,
        "maxgrad": None,
    },
}


def _prepared(name: str, options: dict[str, Any], size: int) -> tuple[Method, _Limits]:
    """A method for vectors of a size, and when it stops."""
    if options["maxiter"] is None:
        options["maxiter"] = size * 200
    if name == "bfgs":
        return FULL, _Limits(maxls=options.pop("line_search_maxiter"), **options)
    return limited(options.pop("maxcor")), _Limits(**options)


def _chosen(
    method: str, options: Mapping[str, Any] | None, tol: float | None, size: int
) -> tuple[Method, _Limits]:
    name = method.lower() if isinstance(method, str) else method
    check_choice(_NAME, "method", name, _DEFAULTS)
    known = _DEFAULTS[name]
    given = dict(options or {})
    unknown = [key for key in given if key not in known]
    if unknown:
        got = f"options: {unknown}"
        error(
            TypeError, _NAME, "the method has no such option.", got=got, expected=", ".join(known)
        )
    if tol is not None:
        given = {key: tol for key in ("gtol", "ftol") if key in known} | given
    norm = given.get("norm")
    if isinstance(norm, str):
        error(ValueError, _NAME, "the norm of a vector has a number.", got=f"norm: {norm!r}")
    return _prepared(name, {**known, **given}, size)


def _start(x0: ArrayLike) -> Any:
    x = array_argument(_NAME, x0)
    fits = x.ndim == 1 and dtypes.issubdtype(x.dtype, np.floating)
    problem = "the search starts at a vector of floats."
    fix = "flatten_util.ravel_pytree for other shapes and trees"
    check_that(fits, _NAME, problem, error=TypeError, x0=x, fix=fix)
    return x.astype(x.dtype)


def minimize(
    fun: Callable[..., Any],
    x0: ArrayLike,
    args: tuple[Any, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """Minimizes a smooth scalar function of several variables.

    The search is a loop inside of programs, and can be compiled and batched.

    Args:
        fun: takes a vector and `args`, and returns a number.
        x0: where to start.
        args: further arguments of `fun`.
        method: "BFGS", or "l-bfgs-experimental-do-not-rely-on-this" for many variables.
        tol: the options gtol and ftol where they are not given.
        options: gtol, below which the gradient counts as zero; norm, by which it is measured;
            maxiter; BFGS: line_search_maxiter, how often one line search evaluates the function;
            the other: maxcor, how many steps it remembers, maxls, ftol, maxfun, maxgrad.

    Shapes:     x0: T[n], fun: T[n] -> T[] -> OptimizeResults.
    Dtypes:     floating.
    Derivative: forward mode only, as of any loop.
    Source:     mirrors jax.scipy.optimize.minimize (0.10); J. Nocedal and S. Wright, Numerical
                Optimization, 2006, chapters 6 and 7.

    Raises:
        ValueError: the method or the norm is not known.
        TypeError: `x0` is not a vector of floats, `args` no tuple, an option not known, or `fun`
            does not return a number.

    Example:
        >>> def bowl(x):
        ...     return jnp.sum((x - 3.0) ** 2)
        >>> minijax.scipy.optimize.minimize(bowl, np.float32([0, 1]), method="BFGS").x.round()
        Array([3., 3.], dtype=float32)
    """
    if not isinstance(args, tuple):
        problem = "further arguments are a tuple."
        error(TypeError, _NAME, problem, got=f"args: {type(args).__name__}", fix="args=(argument,)")
    x = _start(x0)
    how, limits = _chosen(method, options, tol, x.size)
    derivative = value_and_grad(fun)

    def function(x: Array) -> tuple[Any, Any]:
        value, gradient = derivative(x, *args)
        return value.astype(x.dtype), gradient

    found = _descend(function, x, how, limits)
    return OptimizeResults(
        x=found.x,
        success=found.status == _CONVERGED,
        status=found.status,
        fun=found.value,
        jac=found.gradient,
        hess_inv=how.inverse(found.memory),
        nfev=found.evaluations,
        njev=found.evaluations,
        nit=found.iterations,
    )


__dir__ = source.shown(globals())
