"""Minima of smooth functions of many variables, by quasi-Newton methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes
from minijax.core.errors import error
from minijax.lax.control_flow.looping import while_loop
from minijax.numpy.arithmetic import absolute
from minijax.numpy.creation import asarray
from minijax.numpy.selection import where
from minijax.numpy.shaping import array_argument
from minijax.numpy.ufuncs import maximum, minimum
from minijax.scipy.optimize import curvature, line_search
from minijax.transforms.grad import value_and_grad

_NAME = "scipy.optimize.minimize"
_RUNNING = np.int32(-1)

# What ends a search, as numbers in the results.
_CONVERGED, _MAX_ITERATIONS, _MAX_EVALUATIONS, _NO_STEP, _LITTLE_CHANGE, _NO_END = map(
    np.int32, range(6)
)


class OptimizeResults(NamedTuple):
    """What a search for a minimum found.

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
    line_search: Any
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


def _norm(vector: Any, order: Any) -> Any:
    sizes = absolute(vector)
    if order == math.inf:
        return sizes.max()
    if order == -math.inf:
        return sizes.min()
    return (sizes**order).sum() ** (1 / order)


def _descend(
    function: Callable[[Any], tuple[Any, Any]], x: Any, method: curvature.Method, limits: _Limits
) -> _State:
    """Goes down from x, step by step, until a limit is reached."""

    def verdict(state: _State, before: Any = None) -> Any:
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
        found = line_search.search(
            function, state.x, state.value, state.gradient, direction, first, limits.line_search
        )
        step = found.low.step * direction
        is_stuck = (found.stage == line_search.SHRINKING) & (found.low.step == 0)
        is_endless = found.stage == line_search.GROWING
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


def _bfgs_limits(size: int, options: Mapping[str, Any]) -> tuple[curvature.Method, _Limits]:
    found = {"gtol": 1e-5, "norm": math.inf, "maxiter": None, "line_search_maxiter": 20, **options}
    maxiter = size * 200 if found["maxiter"] is None else found["maxiter"]
    limits = _Limits(found["gtol"], found["norm"], maxiter, found["line_search_maxiter"])
    return curvature.FULL, limits


def _limited_limits(size: int, options: Mapping[str, Any]) -> tuple[curvature.Method, _Limits]:
    found = {
        "gtol": 1e-5,
        "norm": 2,
        "maxiter": None,
        "maxls": 20,
        "maxcor": 10,
        "ftol": 2.220446049250313e-09,
        "maxfun": None,
        "maxgrad": None,
        **options,
    }
    maxiter = size * 200 if found["maxiter"] is None else found["maxiter"]
    limits = _Limits(
        found["gtol"],
        found["norm"],
        maxiter,
        found["maxls"],
        found["ftol"],
        found["maxfun"],
        found["maxgrad"],
    )
    return curvature.limited(found["maxcor"]), limits


_METHODS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "bfgs": (_bfgs_limits, ("gtol", "norm", "maxiter", "line_search_maxiter")),
    "l-bfgs-experimental-do-not-rely-on-this": (
        _limited_limits,
        ("gtol", "norm", "maxiter", "maxls", "maxcor", "ftol", "maxfun", "maxgrad"),
    ),
}


def _chosen(method: Any, options: Any, tol: Any, size: int) -> tuple[curvature.Method, _Limits]:
    name = method.lower() if isinstance(method, str) else method
    if name not in _METHODS:
        error(
            ValueError,
            _NAME,
            "unknown method.",
            got=f"method: {method!r}",
            expected="BFGS or l-bfgs-experimental-do-not-rely-on-this",
        )
    prepare, known = _METHODS[name]
    given = dict(options or {})
    unknown = [key for key in given if key not in known]
    if unknown:
        error(
            TypeError,
            _NAME,
            "the method has no such option.",
            got=f"options: {unknown}",
            expected=", ".join(known),
        )
    if tol is not None:
        given = {key: tol for key in ("gtol", "ftol") if key in known} | given
    norm = given.get("norm", 2)
    if isinstance(norm, str):
        error(ValueError, _NAME, "the norm of a vector has a number.", got=f"norm: {norm!r}")
    return prepare(size, given)


def _start(x0: Any) -> Any:
    x = array_argument(_NAME, x0)
    if x.ndim != 1 or not dtypes.issubdtype(x.dtype, np.floating):
        error(
            TypeError,
            _NAME,
            "the search starts at a vector of floats.",
            got={"x0": x.aval},
            fix="flatten_util.ravel_pytree for other shapes and trees",
        )
    return x.astype(x.dtype)


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """A place where a smooth function of many variables is least, near to where the search starts.

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
        TypeError: `x0` is no vector of floats, `args` no tuple, an option not known, or `fun`
            gives no number.

    Example:
        >>> def bowl(x):
        ...     return jnp.sum((x - 3.0) ** 2)
        >>> minijax.scipy.optimize.minimize(bowl, np.float32([0, 1]), method="BFGS").x.round()
        Array([3., 3.], dtype=float32)
    """
    if not isinstance(args, tuple):
        error(
            TypeError,
            _NAME,
            "further arguments are a tuple.",
            got=f"args: {type(args).__name__}",
            fix="args=(argument,)",
        )
    x = _start(x0)
    how, limits = _chosen(method, options, tol, x.size)
    derivative = value_and_grad(fun)

    def function(x: Any) -> tuple[Any, Any]:
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
