"""Initial value problems: where a state goes from where it starts, and derivatives of that.

The derivative is that of the solution, not of the steps: the adjoint equation is solved backward in
time, together with the state, so that nothing of the steps is kept.

Source: R. T. Q. Chen, Y. Rubanova, J. Bettencourt and D. Duvenaud, Neural ordinary differential
equations, 2018, for the adjoint; L. S. Pontryagin and others, 1962, who found it.
"""

from __future__ import annotations

import functools
import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from minijax.core import dtypes, tree
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.core.trace import Tracer
from minijax.experimental.ode import steps
from minijax.experimental.ode.steps import State, Tolerance
from minijax.interpreters.staging import eval_jaxpr
from minijax.lax.control_flow.looping import while_loop
from minijax.lax.control_flow.scanning import scan
from minijax.numpy.creation import asarray, zeros_like
from minijax.numpy.joining import concatenate
from minijax.numpy.promotion import inexact
from minijax.numpy.reductions import sum as total
from minijax.numpy.shaping import array_argument
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.transforms.autodiff.custom_vjp import custom_vjp
from minijax.transforms.autodiff.grad import vjp
from minijax.transforms.jit.tracing import make_jaxpr

_NAME = "experimental.ode.odeint"

Operands: TypeAlias = Sequence[Any]
Parametric: TypeAlias = Callable[[State, Any, Operands], State]


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: ArrayLike,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = math.inf,
    hmax: float = math.inf,
) -> Any:
    """The states at times `t` that start as `y0` at `t[0]` and have the slopes dy/dt = func(y, t).

    Steps of Dormand and Prince's method of order 5 are as long as the estimated error lets them be.
    Where a state is out of reach, because the solution ends before or takes more steps, it is NaN.

    Args:
        func: called as `func(y, t, *args)`; the slope, a tree of the same form as y.
        y0: the first state, a tree of arrays.
        t: the times, T[n], which increase.
        *args: trees of arrays that `func` takes, too.
        rtol: the error of a step that is accepted, relative to the state.
        atol: the error that is accepted besides.
        mxstep: the largest number of steps from one time to the next.
        hmax: the largest length of a step.

    Shapes:     y0: a tree of T[s] -> the same tree of T[n, s].
    Dtypes:     floats and complex numbers; integers become floats.
    Derivative: reverse mode, by the adjoint equation, which is solved to the same tolerance: by y0,
                t, args, and what `func` closes over.

    Raises:
        TypeError: `func` gives another tree or another type than y0, `t` is complex, or a leaf is
            no array.
        ValueError: `t` has not one dimension, has no elements, or is known to decrease; a tolerance
            is negative.

    Example:
        >>> from minijax.experimental.ode import odeint
        >>> states = odeint(lambda y, t: -y, 1.0, jnp.array([0.0, 1.0, 2.0]))
        >>> [round(float(state), 4) for state in states]
        [1.0, 0.3679, 0.1353]
    """
    if not callable(func):
        error(TypeError, _NAME, "func must be a function of a state and a time.", got=repr(func))
    tolerance = _tolerance(rtol=rtol, atol=atol, mxstep=mxstep, hmax=hmax)
    times = _times(t)
    leaves, treedef = tree.flatten(y0)
    state = [inexact(_NAME, array_argument(_NAME, x)) for x in leaves]
    # Scalars of Python are weakly typed; what a loop carries is not.
    state = [asarray(x, x.dtype) for x in state]
    if not state:
        return y0
    given, args_tree = tree.flatten(args)
    given = [array_argument(_NAME, x) for x in given]

    def slope(state: State, time: Any, given: Operands) -> State:
        found = func(tree.unflatten(treedef, state), time, *tree.unflatten(args_tree, given))
        return _checked_slope(found, treedef, state)

    staged = make_jaxpr(slope)(state, times[0], given)

    def field(state: State, time: Any, operands: Operands) -> State:
        consts = operands[len(given) :]
        return eval_jaxpr(staged.jaxpr, consts, *state, time, *operands[: len(given)])

    found = _states(field, tolerance, state, times, [*given, *staged.consts])
    return tree.unflatten(treedef, found)


def _tolerance(**given: float) -> Tolerance:
    for name, value in given.items():
        is_number = isinstance(value, numbers.Real | np.ndarray | Array) and np.ndim(value) == 0
        if not is_number or isinstance(value, Tracer):
            problem = f"{name} must be a known number."
            error(TypeError, _NAME, problem, got={name: repr(value)})
        if not float(value) >= 0:
            error(ValueError, _NAME, f"{name} must not be negative.", got={name: value})
    return Tolerance(**{name: float(value) for name, value in given.items()})


def _times(t: ArrayLike) -> Array:
    given = array_argument(_NAME, t)
    aval = aval_of(given)
    if dtypes.issubdtype(aval.dtype, np.complexfloating):
        error(TypeError, _NAME, "times must be real.", got={"t": aval})
    if aval.ndim != 1 or not aval.size:
        fix = "numpy.array([start, .., end])"
        problem = "times must be an array of one dimension, with the first time in front."
        error(ValueError, _NAME, problem, got={"t": aval}, fix=fix)
    known = given.concrete() if isinstance(given, Tracer) else given
    if known is not None and np.any(np.diff(np.asarray(known)) < 0):
        fix = "func(y, -t) and times -t go backward in time"
        error(ValueError, _NAME, "times must increase.", got={"t": known}, fix=fix)
    times = inexact(_NAME, given)
    return asarray(times, times.dtype)


def _checked_slope(found: Any, treedef: Any, state: State) -> State:
    leaves, found_tree = tree.flatten(found)
    if found_tree != treedef:
        problem = "func returns another tree than the state is."
        error(TypeError, _NAME, problem, got=str(found_tree), expected=str(treedef))
    leaves = [array_argument(_NAME, leaf) for leaf in leaves]
    for leaf, x in zip(leaves, state, strict=True):
        is_complex = dtypes.issubdtype(leaf.dtype, np.complexfloating)
        fits = not is_complex or dtypes.issubdtype(x.dtype, np.complexfloating)
        if leaf.shape != x.shape or not fits:
            problem = "func returns a slope of another type than its state."
            got = {"slope": aval_of(leaf), "state": aval_of(x)}
            fix = "a y0 of the slope's shape, complex if the slope is"
            error(TypeError, _NAME, problem, got=got, fix=fix)
    return [asarray(leaf, x.dtype) for leaf, x in zip(leaves, state, strict=True)]


@functools.partial(custom_vjp, nondiff_argnums=(0, 1))
def _states(
    field: Parametric, tolerance: Tolerance, start: State, times: Array, operands: Operands
) -> State:
    """The states at all times, the first one in front."""

    def slope(state: State, time: Any) -> State:
        return field(state, time, operands)

    def interval(place: steps.Place, until: Any) -> tuple[steps.Place, State]:
        def goes_on(now: tuple[steps.Place, Array]) -> Array:
            place, count = now
            # A step that is too short to change the time would be repeated for ever.
            moves = place.time + place.length > place.time
            return (place.time < until) & (count < tolerance.mxstep) & moves

        def another(now: tuple[steps.Place, Array]) -> tuple[steps.Place, Array]:
            return steps.step(slope, now[0], tolerance), now[1] + 1

        place, _ = while_loop(goes_on, another, (place, asarray(0, np.int32)))
        return place, steps.state_at(place, until)

    begin = steps.begin(slope, start, times[0], tolerance)
    _, later = scan(interval, begin, times[1:])
    return [concatenate([x[None], rest]) for x, rest in zip(start, later, strict=True)]


_Residuals: TypeAlias = tuple[State, Array, Operands]


def _forward(
    field: Parametric, tolerance: Tolerance, start: State, times: Array, operands: Operands
) -> tuple[State, _Residuals]:
    states = _states(field, tolerance, start, times, operands)
    return states, (states, times, operands)


def _backward(
    field: Parametric, tolerance: Tolerance, residuals: _Residuals, cts: State
) -> tuple[State, Array, list[Any]]:
    states, times, operands = residuals
    smooth = [dtypes.issubdtype(aval_of(x).dtype, np.inexact) for x in operands]
    count = len(states)

    def backward_in_time(now: State, time: Any, operands: Operands) -> State:
        state, adjoint = now[:count], now[count : 2 * count]

        def slope(state: State, varied: Operands) -> State:
            values = iter(varied)
            pairs = zip(operands, smooth, strict=True)
            return field(state, -time, [next(values) if s else x for x, s in pairs])

        varied = [x for x, s in zip(operands, smooth, strict=True) if s]
        found, pull = vjp(slope, state, varied)
        state_cts, varied_cts = pull(adjoint)
        return [*(-x for x in found), *state_cts, *varied_cts]

    def along(ct: State, state: State, time: Any) -> Array:
        """By how much a sum of states changes while time goes on."""
        slope = field(state, time, operands)
        parts = [total(a * b).real.astype(time.dtype) for a, b in zip(ct, slope, strict=True)]
        return sum(parts[1:], parts[0])

    def interval(now: State, between: tuple[Any, ...]) -> tuple[State, Array]:
        end, ct, later, earlier = between
        # From the state that was found: errors of the way back do not pile up.
        adjoint = [a + b for a, b in zip(now[:count], ct, strict=True)]
        start, ends = [*end, *adjoint, *now[count:]], asarray([-later, -earlier])
        found = _states(backward_in_time, tolerance, start, ends, operands)
        return [x[1] for x in found[count:]], along(ct, end, later)

    varied = [x for x, s in zip(operands, smooth, strict=True) if s]
    nothing = [*(zeros_like(x[0]) for x in states), *map(zeros_like, varied)]
    pieces = ([x[1:] for x in states], [ct[1:] for ct in cts], times[1:], times[:-1])
    found, times_cts = scan(interval, nothing, pieces, reverse=True)
    start_cts = [a + ct[0] for a, ct in zip(found[:count], cts, strict=True)]
    of_first = -along(found[:count], [x[0] for x in states], times[0])
    varied_cts = iter(found[count:])
    operand_cts = [
        next(varied_cts) if s else np.zeros(aval_of(x).shape, dtypes.float0)
        for x, s in zip(operands, smooth, strict=True)
    ]
    return start_cts, concatenate([of_first[None], times_cts]), operand_cts


_states.defvjp(_forward, _backward)
