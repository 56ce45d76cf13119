"""Steps of Dormand and Prince's pair of Runge-Kutta methods, of orders 5 and 4.

Input: a field, which gives the slope of a state at a time, and a place on a solution.  Output: the
place after a step, what lies between, and how long the next step may be.  A state is a list of
arrays of floats or complex numbers; a time is an array without dimensions.

Source: J. R. Dormand and P. J. Prince, A family of embedded Runge-Kutta formulae, 1980; E. Hairer,
S. P. Nørsett and G. Wanner, Solving Ordinary Differential Equations I, 1993: section II.4 for the
length of steps, II.6 for the polynomial between the ends of a step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from minijax.core import dtypes
from minijax.numpy.creation import asarray
from minijax.numpy.elementary import absolute, clip, sqrt
from minijax.numpy.reductions import sum as total
from minijax.numpy.selection import where
from minijax.numpy.ufuncs import maximum, minimum
from minijax.runtime.array import Array

State: TypeAlias = list[Any]
Field: TypeAlias = Callable[[State, Any], State]

# When each stage is, and from which slopes it starts.
_TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
# The method of order 5 less that of order 4.
_ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
# What the polynomial between the ends has besides Hermite's.
_MIDDLE = (
    -12715105075 / 11282082432,
    0.0,
    87487479700 / 32700410799,
    -10690763975 / 1880347072,
    701980252875 / 199316789632,
    -1453857185 / 822651844,
    69997945 / 29380423,
)

_SAFETY, _LEAST_FACTOR, _LARGEST_FACTOR = 0.9, 0.2, 10.0


class Tolerance(NamedTuple):
    """How exact a solution has to be, and how it may be found.

    Attributes:
        rtol: the error of a step that is accepted, relative to the state.
        atol: what is accepted besides.
        mxstep: the largest number of steps from one time of output to the next.
        hmax: the largest length of a step.
    """

    rtol: float
    atol: float
    mxstep: float
    hmax: float


class Place(NamedTuple):
    """A place on a solution, and the last step to it.

    Attributes:
        state: the state there.
        slope: the field there.
        time: when that is.
        length: how long the next step is to be.
        before: when the last step began.
        between: coefficients of the polynomial that follows the solution from there, for each part
            of the state: an array with 5 in front.
    """

    state: State
    slope: State
    time: Any
    length: Any
    before: Any
    between: State


def _scaled(x: Array, factor: Array | float) -> Array:
    """The product, in the dtype of `x`."""
    return x * asarray(factor, dtypes.real_dtype_of(x.dtype)).astype(x.dtype)


def plus(start: State, length: Any, slopes: Sequence[State], shares: Sequence[float]) -> State:
    """start + length * (the sum of shares of slopes)."""
    found = []
    for i, x in enumerate(start):
        terms = [_scaled(s[i], share) for s, share in zip(slopes, shares, strict=True) if share]
        found.append(x + _scaled(sum(terms[1:], terms[0]), length))
    return found


def _norm(parts: State) -> Array:
    """The root of the mean of the squares of all elements."""
    count = sum(part.size for part in parts)
    wide = dtypes.result_type(*(dtypes.real_dtype_of(part.dtype) for part in parts))
    squares = [total(absolute(part) ** 2).astype(wide) for part in parts]
    return sqrt(sum(squares[1:], squares[0]) / asarray(max(count, 1), wide))


def _relative(parts: State, sizes: Sequence[State], tolerance: Tolerance) -> State:
    """Parts of a state in units of the error that is accepted where states are of these sizes."""
    found = []
    for i, part in enumerate(parts):
        size = absolute(sizes[0][i])
        for other in sizes[1:]:
            size = maximum(size, absolute(other[i]))
        found.append(absolute(part) / (_scaled(size, tolerance.rtol) + tolerance.atol))
    return found


def begin(field: Field, state: State, time: Any, tolerance: Tolerance) -> Place:
    """The place where a solution begins, with a length for the first step."""
    slope = field(state, time)
    nothing = [where(False, x, 0).astype(x.dtype) for x in state]
    between = [asarray([x, *[zero] * 4]) for x, zero in zip(state, nothing, strict=True)]
    size = _norm(_relative(state, [state], tolerance))
    steepness = _norm(_relative(slope, [state], tolerance))
    is_small = (size < 1e-5) | (steepness < 1e-5)
    trial = where(is_small, 1e-6, 0.01 * size / where(is_small, 1, steepness))
    trial = trial.astype(time.dtype)
    later = field(plus(state, trial, [slope], [1.0]), time + trial)
    change = [a - b for a, b in zip(later, slope, strict=True)]
    bend = _norm(_relative(change, [state], tolerance)).astype(time.dtype) / trial
    most = maximum(steepness.astype(time.dtype), bend)
    is_flat = most <= 1e-15
    by_bend = (0.01 / where(is_flat, 1, most)) ** (1 / 5)
    length = where(is_flat, maximum(1e-6, trial * 1e-3), by_bend).astype(time.dtype)
    length = minimum(minimum(100 * trial, length), tolerance.hmax).astype(time.dtype)
    return Place(state, slope, time, length, time, between)


def step(field: Field, place: Place, tolerance: Tolerance) -> Place:
    """The place after a step, or the same one with a shorter step to make if it was too long."""
    start, length = place.state, place.length
    slopes, end = [place.slope], start
    for share, shares in zip(_TIMES, _STAGES, strict=True):
        end = plus(start, length, slopes, shares)
        slopes.append(field(end, place.time + _scaled(length, share)))
    nothing = [x - x for x in start]
    ratio = _norm(_relative(plus(nothing, length, slopes, _ERROR), [start, end], tolerance))
    is_good = ratio <= 1
    after = Place(
        end,
        slopes[-1],
        place.time + length,
        _next_length(length, ratio, tolerance),
        place.time,
        _polynomials(start, end, length, slopes),
    )
    kept = place._replace(length=after.length)
    return Place(*(_chosen(is_good, new, old) for new, old in zip(after, kept, strict=True)))


def _chosen(condition: Array, new: Any, old: Any) -> Any:
    if isinstance(new, list):
        return [where(condition, a, b) for a, b in zip(new, old, strict=True)]
    return where(condition, new, old)


def _next_length(length: Any, ratio: Array, tolerance: Tolerance) -> Any:
    """A length whose error would be a little less than what is accepted."""
    wanted = _SAFETY / where(ratio > 0, ratio, 1) ** (1 / 5)
    wanted = where(ratio == 0, _LARGEST_FACTOR, wanted)
    factor = clip(wanted, where(ratio <= 1, 1.0, _LEAST_FACTOR), _LARGEST_FACTOR)
    # What is no number stays none: there is no next step.
    factor = where(ratio >= 0, factor, np.nan)
    return minimum(length * factor.astype(length.dtype), tolerance.hmax).astype(length.dtype)


def _polynomials(start: State, end: State, length: Any, slopes: Sequence[State]) -> State:
    nothing = [x - x for x in start]
    middle = plus(nothing, length, slopes, _MIDDLE)
    found = []
    for i, x in enumerate(start):
        change = end[i] - x
        first = _scaled(slopes[0][i], length) - change
        last = change - _scaled(slopes[-1][i], length) - first
        found.append(asarray([x, change, first, last, middle[i]]))
    return found


def state_at(place: Place, time: Any) -> State:
    """The state at a time during the last step; NaN at any other."""
    width = place.time - place.before
    share = (time - place.before) / where(width > 0, width, 1)
    is_within = (time >= place.before) & (time <= place.time)
    found = []
    for x, change, first, last, middle in place.between:
        inner = first + _scaled(last + _scaled(middle, 1 - share), share)
        value = x + _scaled(change + _scaled(inner, 1 - share), share)
        found.append(where(is_within, value, np.nan).astype(x.dtype))
    return found
