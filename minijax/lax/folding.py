"""Reductions and scans as compositions of other operations.

Their depth is logarithmic.  Derivative rules go through them: whatever combines two elements can
be differentiated, so can the whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from minijax.core.aval import Shape, aval_of
from minijax.core.jaxpr import ClosedJaxpr
from minijax.interpreters import evaluation, structural
from minijax.interpreters.batching import batch_flat
from minijax.lax.shape import concatenate, reshape, split, squeeze

Combine = Callable[..., Sequence[Any]]
"""Combines elements of several arrays with elements of as many others: both come in one row."""


def halves(values: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """The operands and the initial values among the arguments of a generic reduction."""
    count = len(values) // 2
    return values[:count], values[count:]


def elementwise(jaxpr: ClosedJaxpr) -> Combine:
    """A jaxpr of scalars as a function of arrays of one shape, element by element."""

    def function(*arrays: Any) -> list[Any]:
        shape = aval_of(arrays[0]).shape
        size = math.prod(shape)
        flat = [reshape(x, (size,)) for x in arrays]
        outs, dims = batch_flat(
            lambda *xs: evaluation.eval_closed_jaxpr(jaxpr, *xs), size, flat, [0] * len(flat)
        )
        return [
            reshape(structural.to_batch_dim(x, d, 0, size), shape)
            for x, d in zip(outs, dims, strict=True)
        ]

    return function


def fold(
    combine: Combine,
    operands: Sequence[Any],
    inits: Sequence[Any],
    dimensions: Shape,
) -> list[Any]:
    """Combines elements along `dimensions` by halves, then with the initial values."""
    shape = aval_of(operands[0]).shape
    kept = [d for d in range(len(shape)) if d not in dimensions]
    kept_shape = tuple(shape[d] for d in kept)
    length = math.prod(shape[d] for d in dimensions)
    rows = [
        reshape(structural.transpose(x, (*dimensions, *kept)), (length, *kept_shape))
        for x in operands
    ]
    while length > 1:
        half, odd = divmod(length, 2)
        parts = [split(x, (half, half, odd)) for x in rows]
        rows = list(combine(*[p[0] for p in parts], *[p[1] for p in parts]))
        if odd:
            rows = [concatenate([x, p[2]], 0) for x, p in zip(rows, parts, strict=True)]
        length = half + odd
    start = [structural.broadcast_in_dim(init, (1, *kept_shape), ()) for init in inits]
    if length:
        start = list(combine(*start, *rows))
    return [reshape(x, kept_shape) for x in start]


def scan(combine: Combine, operands: Sequence[Any], axis: int) -> list[Any]:
    """All results of combining the first elements along `axis`: one, two, … all of them."""
    length = aval_of(operands[0]).shape[axis]
    if length < 2:
        return list(operands)
    half, odd = divmod(length, 2)
    pairs, last = zip(*[split(x, (2 * half, odd), axis) for x in operands], strict=True)
    first, second = zip(*[_unzip(x, axis) for x in pairs], strict=True)
    # Prefixes that end at a second element of a pair, from those of the pairs combined.
    seconds = scan(combine, combine(*first, *second), axis)
    # Those that end at a first element: one more than the prefix before.
    start, rest = zip(*[split(x, (1, half - 1), axis) for x in first], strict=True)
    later = [concatenate(xs, axis) for xs in zip(rest, last, strict=True)]
    before = [split(x, (half - 1 + odd, 1 - odd), axis)[0] for x in seconds]
    firsts = [concatenate(xs, axis) for xs in zip(start, combine(*before, *later), strict=True)]
    return [_zip(x, y, axis) for x, y in zip(firsts, seconds, strict=True)]


def _unzip(x: Any, axis: int) -> tuple[Any, Any]:
    """The elements at even places along an axis of even length, and those at odd places."""
    shape = x.shape
    pairs = reshape(x, (*shape[:axis], shape[axis] // 2, 2, *shape[axis + 1 :]))
    even, odd = split(pairs, (1, 1), axis + 1)
    return squeeze(even, (axis + 1,)), squeeze(odd, (axis + 1,))


def _zip(even: Any, odd: Any, axis: int) -> Any:
    """The inverse of `_unzip`; `even` may be longer by one element."""
    shape = odd.shape
    length = shape[axis]
    single = (*shape[: axis + 1], 1, *shape[axis + 1 :])
    paired, last = split(even, (length, even.shape[axis] - length), axis)
    pairs = concatenate([reshape(paired, single), reshape(odd, single)], axis + 1)
    whole = reshape(pairs, (*shape[:axis], 2 * length, *shape[axis + 1 :]))
    return concatenate([whole, last], axis)
