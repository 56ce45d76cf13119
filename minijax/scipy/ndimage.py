"""Arrays read between their samples.  Mirrors jax.scipy.ndimage."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes, source
from minijax.core.errors import error
from minijax.lax.unary import round as lax_round
from minijax.numpy.creation import asarray
from minijax.numpy.elementary import clip, floor, mod
from minijax.numpy.promotion import check_that, one_program
from minijax.numpy.selection import where
from minijax.numpy.shaping import broadcast_arrays
from minijax.numpy.ufuncs import logical_and, minimum
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array

__all__ = ["map_coordinates"]


def _mirrored(places: Array, size: int) -> Array:
    """d c b | a b c d | c b a: the ends stand once."""
    if size == 1:
        return places * 0
    period = 2 * size - 2
    places = mod(places, period)
    return minimum(places, period - places)


def _reflected(places: Array, size: int) -> Array:
    """c b a | a b c d | d c b: the ends stand twice."""
    places = mod(places, 2 * size)
    return minimum(places, 2 * size - 1 - places)


def _clipped(places: Array, size: int) -> Array:
    """a a a | a b c d | d d d."""
    return clip(places, 0, size - 1)


# Where samples outside of the array are taken from; None: they have one value.
_MODES: dict[str, Callable[[Any, int], Any] | None] = {
    "constant": None,
    "nearest": _clipped,
    "wrap": mod,
    "mirror": _mirrored,
    "reflect": _reflected,
}


def _nodes(places: Array, order: int) -> list[tuple[Array, Array | None]]:
    """The samples around along one axis, each with its weight; None stands for 1."""
    if order == 0:
        return [(lax_round(places).astype("int32"), None)]
    below = floor(places)
    share = places - below
    first = below.astype("int32")
    return [(first, 1 - share), (first + 1, share)]


@one_program(static=("order", "mode"))
def _interpolated(data: Array, places: Sequence[Any], cval: Array, order: int, mode: str) -> Array:
    inside = _MODES[mode]
    total: Any = None
    for corner in itertools.product(*[_nodes(p, order) for p in places]):
        nodes = [node for node, _ in corner]
        weights = [weight for _, weight in corner if weight is not None]
        ends = _clipped if inside is None else inside
        near = tuple(ends(n, size) for n, size in zip(nodes, data.shape, strict=True))
        samples = data.at[near].get(mode="promise_in_bounds", wrap_negative_indices=False)
        if inside is None:
            pairs = zip(nodes, data.shape, strict=True)
            is_inside = functools.reduce(logical_and, [(n >= 0) & (n < k) for n, k in pairs])
            samples = where(is_inside, samples, cval)
        term = functools.reduce(operator.mul, weights, samples)
        total = term if total is None else total + term
    if dtypes.issubdtype(data.dtype, np.integer) and not dtypes.issubdtype(total.dtype, np.integer):
        total = lax_round(total)
    return total.astype(data.dtype)


def map_coordinates(
    input: ArrayLike,
    coordinates: Sequence[Any],
    order: int,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Array:
    """Maps an array to new coordinates by interpolation.

    Args:
        input: the array.
        coordinates: for each dimension of the array the coordinates along it.
        order: 0 for the nearest sample, 1 for linear interpolation.
        mode: what is outside of the array: "constant", `cval`; "nearest", the samples at the ends;
            "wrap", the array again; "mirror" and "reflect", the array backwards, with samples at
            the ends once or twice.
        cval: the value outside, for "constant".

    Shapes:     input: T[s], coordinates: one U[t] for each dimension -> T[t].
    Dtypes:     numeric; integers are rounded.
    Derivative: linear in the input; linear interpolation has one by coordinates too.
    Lowers to:  stablehlo.gather.
    Source:     mirrors jax.scipy.ndimage.map_coordinates (0.10).

    Raises:
        ValueError: there is not one array of coordinates for each dimension, or shapes do not fit.
        NotImplementedError: another order, or another mode.

    Example:
        >>> samples = np.float32([0, 10, 20])
        >>> minijax.scipy.ndimage.map_coordinates(samples, [np.float32([0.5, 2])], order=1)
        Array([ 5., 20.], dtype=float32)
    """
    name = "scipy.ndimage.map_coordinates"
    data = asarray(input)
    fits = len(coordinates) == data.ndim > 0
    problem = "there must be coordinates for each dimension."
    check_that(fits, name, problem, input=data, coordinates=f"{len(coordinates)} arrays")
    if mode not in _MODES:
        expected = ", ".join(_MODES)
        error(NotImplementedError, name, "unknown mode.", got=f"mode: {mode!r}", expected=expected)
    if order not in (0, 1):
        error(NotImplementedError, name, "splines are of order 0 or 1.", got=f"order: {order!r}")
    if data.dtype == np.bool_:
        error(TypeError, name, "booleans have no values between.", got={"input": data.aval})
    if 0 in data.shape:
        error(ValueError, name, "there is no sample.", got={"input": data.aval})
    places = [asarray(c) for c in coordinates]
    if len({p.shape for p in places}) > 1:
        places = broadcast_arrays(*places)
    return _interpolated(data, tuple(places), asarray(cval, data.dtype), int(order), mode)


__dir__ = source.shown(globals())
