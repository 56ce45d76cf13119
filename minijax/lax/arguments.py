"""Checks and canonical forms of the arguments that many functions of `lax` share."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np

from minijax.core.errors import error
from minijax.runtime.array import Array


def is_array(x: Any) -> TypeGuard[Array]:
    """Whether `x` is an array or tracer of ours; a function may return such a value as it is."""
    return hasattr(x, "aval")


def canonicalize_axis(axis: Any, ndim: int, name: str) -> int:
    """An axis as a Python int from 0 to `ndim - 1`; negative ones count from the end.

    Raises:
        TypeError: the axis is no integer.
        AxisError: the axis is out of range; NumPy's error, a ValueError and an IndexError.
    """
    index = an_integer(axis, name, "the axis")
    if not -ndim <= index < ndim:
        error(
            np.exceptions.AxisError,
            name,
            f"axis {index} is out of range.",
            got=f"an array with {ndim} dimension{'' if ndim == 1 else 's'}",
            expected=f"an axis from {-ndim} to {ndim - 1}" if ndim else "no axis at all",
        )
    return index + ndim if index < 0 else index


def an_integer(x: Any, name: str, argument: str) -> int:
    """A known integer as a Python int.

    Args:
        x: the integer.
        name: the public function, for messages.
        argument: what it calls `x`, as messages begin: "the axis", "`num`".

    Raises:
        TypeError: it is no integer.
        TracerIntegerConversionError: it is traced.
    """
    try:
        return operator.index(x)
    except TypeError as caught:
        if type(caught) is not TypeError or is_array(x):
            raise
        error(
            TypeError,
            name,
            f"{argument} must be an integer.",
            got=f"{x!r} of type {type(x).__name__}",
            cause=None,
        )


def canonicalize_axes(axes: Sequence[Any], ndim: int, name: str) -> tuple[int, ...]:
    """Axes as distinct Python ints from 0 to `ndim - 1`, in the order given.

    Raises:
        ValueError: an axis is out of range, or named twice.
    """
    found = tuple(canonicalize_axis(axis, ndim, name) for axis in axes)
    if len(set(found)) != len(found):
        error(ValueError, name, "an axis is named twice.", got=f"axes {tuple(axes)}")
    return found


def int_tuple(values: Any, name: str, argument: str) -> tuple[int, ...]:
    """A sequence of concrete integers as a tuple of Python ints.

    Raises:
        TypeError: it is not a sequence, or an element is not an integer.
    """
    try:
        return tuple(map(operator.index, values))
    except TypeError as caught:
        if type(caught) is not TypeError:
            raise
        error(
            TypeError,
            name,
            f"{argument} must be a sequence of concrete integers.",
            got=f"{argument}: {values!r}",
            cause=None,
        )


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str,
) -> list[tuple[int, int]]:
    """The padding of each dimension that a named kind of padding means.

    `"VALID"` pads nothing.  `"SAME"` pads so that there is one window for each stride, with the
    odd element at the end; `"SAME_LOWER"` with the odd element at the start.

    Source:     mirrors jax.lax.padtype_to_pads (0.10).

    Raises:
        RuntimeError: the name is not known.

    Example:
        >>> lax.padtype_to_pads((9, 9), window_shape=(3, 4), window_strides=(1, 1), padding="SAME")
        [(1, 1), (1, 2)]
    """
    kind = padding.upper() if isinstance(padding, str) else padding
    if kind == "VALID":
        return [(0, 0)] * len(in_shape)
    if kind not in ("SAME", "SAME_LOWER"):
        error(
            RuntimeError,
            "lax.padtype_to_pads",
            "unknown kind of padding.",
            got=repr(padding),
            expected="'VALID', 'SAME' or 'SAME_LOWER'",
        )
    pads = []
    for size, window, stride in zip(in_shape, window_shape, window_strides, strict=True):
        windows = -(-size // stride)
        total = max((windows - 1) * stride + window - size, 0)
        less, more = total // 2, total - total // 2
        pads.append((less, more) if kind == "SAME" else (more, less))
    return pads
