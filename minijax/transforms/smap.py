"""`smap`: `shard_map` over one axis of the mesh in force, with positions in place of specs.

Input: a function of blocks, and for each argument the dimension that is split.  Output: the
function of whole arrays that `shard_map` gives; the other axes stay as they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, overload

from minijax.core import tree
from minijax.core.errors import error
from minijax.core.specs import PartitionSpec
from minijax.transforms.shard_map import INFER, shard_map

P = ParamSpec("P")
R = TypeVar("R")


@overload
def smap(
    f: Callable[P, R], /, *, in_axes: Any = ..., out_axes: Any, axis_name: Any
) -> Callable[P, R]: ...
@overload
def smap(
    f: None = None, /, *, in_axes: Any = ..., out_axes: Any, axis_name: Any
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def smap(
    f: Callable[P, R] | None = None,
    /,
    *,
    in_axes: Any = INFER,
    out_axes: Any,
    axis_name: Any,
) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
    """Runs a function on each device along one mesh axis, as `vmap` maps over one dimension.

    Source: mirrors jax.smap (0.10).

    Args:
        f: a function of trees of blocks; left away, the result is a decorator.
        in_axes: the dimension of each argument that is split over the axis, None for whole ones: an
            int for all, or a tuple with a tree prefix for each argument.  On an Explicit axis it
            may be left away: types tell.
        out_axes: the same for the results: an int, None or a tree prefix.
        axis_name: an axis of the mesh in force.

    Raises:
        TypeError: `in_axes` or `out_axes` is something else, or `axis_name` is not one name.
        ValueError: a dimension is negative, there is no mesh, it has no such axis, or `shard_map`
            refuses the specs.

    Example:
        >>> with jax.set_mesh(jax.make_mesh((8,), ("x",))):
        ...     rows = jax.smap(lambda x: x.sum(axis=1), in_axes=0, out_axes=0, axis_name="x")
        ...     print(rows(jnp.ones((8, 3))))
        [3. 3. 3. 3. 3. 3. 3. 3.]
    """
    if f is None:
        decorator: Any = functools.partial(
            smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name
        )
        return decorator
    if isinstance(axis_name, (tuple, list, set, frozenset)):
        error(
            TypeError,
            "smap",
            "axis_name must be one name.",
            got=repr(axis_name),
            fix="an smap for each axis, or shard_map",
        )
    if isinstance(in_axes, (list, dict)):
        error(
            TypeError,
            "smap",
            "in_axes must be an int, None, or a tuple with an entry for each argument.",
            got=f"{in_axes!r} of type {type(in_axes).__name__}",
        )
    return shard_map(
        f,
        in_specs=_specs("in_axes", in_axes, axis_name),
        out_specs=_specs("out_axes", out_axes, axis_name),
        axis_names={axis_name},
    )


def _specs(argument: str, axes: Any, name: Any) -> Any:
    """The specs that dimensions stand for: `P(None, name)` for 1."""
    if axes is INFER:
        return INFER
    return tree.map(lambda axis: _spec(argument, axis, name), axes, is_leaf=tree.is_none)


def _spec(argument: str, axis: Any, name: Any) -> Any:
    if axis is None:
        return PartitionSpec()
    if not hasattr(axis, "__index__"):
        error(
            TypeError,
            "smap",
            f"{argument} must hold ints and None only.",
            got=f"{axis!r} of type {type(axis).__name__}",
        )
    if axis < 0:
        error(ValueError, "smap", f"{argument} must count from the first dimension.", got=str(axis))
    return PartitionSpec(*[None] * int(axis), name)
