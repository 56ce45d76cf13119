"""Casts between kinds of values over mesh axes: `pcast` and `pvary`."""

from __future__ import annotations

from typing import Any

from minijax.core import axes as core_axes
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.interpreters import casts
from minijax.lax.collectives import arguments
from minijax.lax.collectives.arguments import Tree

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
