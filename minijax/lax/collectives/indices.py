"""Where a device is, and how many there are: `axis_index` and `axis_size`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from minijax.core import axes as core_axes
from minijax.core.aval import NOT_MANUAL, ManualAxisType, ShapedArray, manual_type, shaped_array
from minijax.core.primitive import Primitive
from minijax.core.specs import PartitionSpec
from minijax.interpreters import casts, lowering
from minijax.interpreters.tangents import jvp_of_constant
from minijax.lax.collectives import arguments
from minijax.lax.creation import iota
from minijax.runtime.array import Array


class AxisIndex(Primitive):
    """The position of a device, or an example, along one named axis.

    Shapes: -> int32[].  Where a name is put in place of another it may be several, of which the
    first is the most significant.
    """

    name = "axis_index"
    axis_params = ("axis_name",)
    has_effects: ClassVar[bool] = True
    jvp = jvp_of_constant
    without = frozenset({"transpose"})

    def abstract_eval(self, *, axis_name: Any) -> ShapedArray:
        return shaped_array((), np.dtype(np.int32))

    def effects(self, *, axis_name: Any) -> frozenset[Any]:
        return casts.named_effects(_names(axis_name))

    def vary(self, avals: Sequence[Any], outs: Sequence[Any], *, axis_name: Any) -> ManualAxisType:
        typed = core_axes.typed_among(_names(axis_name))
        return manual_type(typed) if typed else NOT_MANUAL

    def shard(self, avals: Sequence[Any], outs: Sequence[Any], *, axis_name: Any) -> PartitionSpec:
        return PartitionSpec()

    def lower(self, ctx: Any, *, axis_name: Any) -> Any:
        if isinstance(axis_name, tuple):
            return lowering.lower_function(ctx, lambda: [axis_index(axis_name)])[0]
        return ctx.module.device_axes.index(ctx, axis_name)

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], *, axis_name: Any
    ) -> tuple[Any, None]:
        return self.bind(axis_name=axis_name), None

    def batch_axis(
        self, size: int, name: Any, args: Sequence[Any], dims: Sequence[Any], *, axis_name: Any
    ) -> tuple[Any, int]:
        if not isinstance(axis_name, tuple):
            return iota(np.int32, size), 0
        inner = axis_name[axis_name.index(name) + 1 :]
        stride = np.int32(math.prod(map(core_axes.size, inner)))
        rest = axis_index(tuple(n for n in axis_name if n != name))
        return iota(np.int32, size) * stride + _without_digit(rest, stride, size), 0


axis_index_p = AxisIndex()


def _without_digit(rest: Any, stride: Any, size: int) -> Any:
    """The number of the other digits, with a place left for one of `size` values."""
    low = rest % stride
    return (rest - low) * np.int32(size) + low


def _names(axis_name: Any) -> tuple[Any, ...]:
    return axis_name if isinstance(axis_name, tuple) else (axis_name,)


def axis_index(axis_name: Any) -> Array:
    """The position of this device, or example, along a named axis.

    Shapes: -> int32[]; of several axes the number that their positions are the digits of, the first
        name being the most significant.
    Types:  inside `shard_map` it varies over the axes.
    Source: mirrors jax.lax.axis_index.

    Args:
        axis_name: a name, or a tuple of names, of axes of vmap, pmap or shard_map.

    Raises:
        NameError: a name is not in scope.

    Example:
        >>> jax.vmap(lambda x: x + lax.axis_index("i"), axis_name="i")(jnp.array([10, 20, 30]))
        Array([10, 21, 32], dtype=int32)
    """
    axes = arguments.canonical_axes("lax.axis_index", axis_name)
    if not isinstance(axis_name, (tuple, list)):
        return _position(axis_name)
    arguments.axes_size("lax.axis_index", axes)
    total: Any = None
    stride = 1
    for axis in reversed(axes):
        own = _position(axis)
        if stride != 1:
            own = own * np.int32(stride)
        total = own if total is None else total + own
        stride *= core_axes.size(axis)
    if total is None:
        total = np.int32(0)
    return total


def _position(axis_name: Any) -> Any:
    if core_axes.axis(axis_name, "lax.axis_index").kind == "core":
        return core_axes.core_index()
    return axis_index_p.bind(axis_name=axis_name)


def axis_size(axis_name: Any) -> int:
    """How many devices, or examples, named axes have together; a Python int.

    Source: mirrors jax.lax.axis_size.

    Args:
        axis_name: a name, or a tuple of names, of axes of vmap, pmap or shard_map.

    Raises:
        NameError: a name is not in scope.

    Example:
        >>> jax.vmap(lambda x: x * lax.axis_size("i"), axis_name="i")(jnp.array([10, 20, 30]))
        Array([30, 60, 90], dtype=int32)
    """
    axes = arguments.canonical_axes("lax.axis_size", axis_name)
    return arguments.axes_size("lax.axis_size", axes)
