"""Where a device is along an axis, and casts between kinds of values over axes.

Where a device is, and how many there are: `axis_index` and `axis_size`.

Casts between kinds of values over mesh axes: `pcast` and `pvary`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from minijax.core import axes as core_axes
from minijax.core import vma
from minijax.core.aval import (
    NOT_MANUAL,
    ManualAxisType,
    ShapedArray,
    aval_of,
    manual_type,
    shaped_array,
)
from minijax.core.errors import error
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Primitive
from minijax.interpreters import casts
from minijax.interpreters.jvp import jvp_of_constant
from minijax.lax.collectives import arguments
from minijax.lax.collectives.arguments import Tree
from minijax.lax.creation import iota
from minijax.lowering import module
from minijax.runtime.array import Array


class AxisIndex(Primitive):
    """The position of a device, or an example, along one named axis.

    Shapes: -> int32[].  Where a name is put in place of another it may be several, of which the
    first is the most significant.
    """

    name = "axis_index"
    has_effects: ClassVar[bool] = True
    jvp = jvp_of_constant

    def abstract_eval(self, *, axis_name: Any) -> ShapedArray:
        return shaped_array((), np.dtype(np.int32))

    def effects(self, *, axis_name: Any) -> frozenset[Any]:
        return casts.named_effects(_names(axis_name))

    def shard(self, avals: Sequence[Any], outs: Sequence[Any], *, axis_name: Any) -> PartitionSpec:
        return PartitionSpec()

    def lower(self, ctx: Any, *, axis_name: Any) -> Any:
        if isinstance(axis_name, tuple):
            return module.lower_function(ctx, lambda: [axis_index(axis_name)])[0]
        return ctx.module.device_axes.index(ctx, axis_name)

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], *, axis_name: Any
    ) -> tuple[Any, None]:
        return self.bind(axis_name=axis_name), None


@vma.vary.rule(AxisIndex)
def _vary_of_axis_index(
    primitive: AxisIndex, avals: Sequence[Any], outs: Sequence[Any], *, axis_name: Any
) -> ManualAxisType:
    typed = core_axes.typed_among(_names(axis_name))
    return manual_type(typed) if typed else NOT_MANUAL


core_axes.axis_params.set(("axis_name",), AxisIndex)


@core_axes.batch_axis.rule(AxisIndex)
def _batch_axis_of_axis_index(
    primitive: AxisIndex,
    size: int,
    name: Any,
    args: Sequence[Any],
    dims: Sequence[Any],
    *,
    axis_name: Any,
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


_KINDS = ("varying", "reduced", "unreduced")
_CASTS = {
    ("I", "varying"): casts.pvary_p,
    ("I", "reduced"): casts.preduced_p,
    ("V", "unreduced"): casts.vary_unreduced_cast_p,
    ("R", "varying"): casts.reduced_vary_cast_p,
}


def pcast(x: Tree, axis_name: Any, *, to: str) -> Tree:
    """Arrays as values of another kind over mesh axes; the elements stay what they are.

    Types:  invarying to varying or reduced, varying to unreduced, reduced to varying.
    Source: mirrors jax.lax.pcast.

    Args:
        x: a tree of arrays.
        axis_name: a name, or a tuple of names, of mesh axes of shard_map.
        to: "varying", "reduced" or "unreduced".

    Raises:
        NameError: a name is not in scope.
        TypeError: `axis_name` is a set.
        ValueError: an unknown `to`, an operand of several kinds, or no such cast.

    Example:
        >>> def f(x):
        ...     print(jax.typeof(x), "->", jax.typeof(lax.pcast(x, "x", to="varying")))
        ...     return x
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> jax.shard_map(f, mesh=mesh, in_specs=P(), out_specs=P())(1.0)
        ~f32[] -> ~f32[]{V:x}
        Array(1., dtype=float32, weak_type=True)
    """
    name = "lax.pcast"
    axes = arguments.canonical_axes(name, axis_name)
    if not axes:
        return x
    if to not in _KINDS:
        error(
            ValueError,
            name,
            "an unknown kind.",
            got=f"to={to!r}",
            expected=f"one of {', '.join(map(repr, _KINDS))}",
        )
    if not core_axes.in_scope():
        error(
            ValueError,
            name,
            "there is no mesh axis over which a value could be of some kind.",
            got=f"axes {axes}",
            fix="call it inside shard_map",
        )
    arguments.axes_size(name, axes)
    typed = core_axes.typed_among(axes)
    if not typed and to != "unreduced":
        return x
    return arguments.map_leaves(lambda leaf: _cast(leaf, axes, typed, to), x)


def _cast(x: Any, axes: Any, typed: Any, to: str) -> Any:
    kind = arguments.states("lax.pcast", x, axes) if typed else "I"
    cast = _CASTS.get((kind, to))
    if cast is None:
        able = ", ".join(f"{arguments.KIND_NAMES[a]} to {b}" for a, b in _CASTS)
        error(
            ValueError,
            "lax.pcast",
            f"there is no cast from {arguments.KIND_NAMES[kind]} to {to}.",
            got=f"{aval_of(x)}, axes {axes}",
            expected=f"one of these: {able}",
            fix="a reduction changes kinds too: lax.psum, lax.psum_scatter, lax.all_gather",
        )
    return cast.bind(x, axes=casts.ordered(typed))


def pvary(x: Tree, axis_name: Any) -> Tree:
    """Arrays that are the same everywhere, as values that may differ between devices.

    Source: mirrors jax.lax.pvary, which JAX has since dropped for `pcast`.

    Raises:
        NameError: a name is not in scope.
        ValueError: an operand varies over an axis already, or is reduced or unreduced.

    Example:
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> copy = lambda w: lax.pvary(w, "x")
        >>> jax.shard_map(copy, mesh=mesh, in_specs=P(), out_specs=P("x"))(jnp.array([5]))
        Array([5, 5, 5, 5, 5, 5, 5, 5], dtype=int32)
    """
    return pcast(x, axis_name, to="varying")
