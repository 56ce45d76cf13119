"""`shard_map` under its former path, with its former arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import minijax.transforms.per_device.shard_map
from minijax.core.meshes import MeshAxes

__all__ = ["shard_map"]


def shard_map(
    f: Callable[..., Any],
    mesh: MeshAxes,
    in_specs: object,
    out_specs: object,
    check_rep: bool = True,
    auto: frozenset[Any] = frozenset(),
) -> Callable[..., Any]:
    """As `minijax.shard_map`; `auto` are the axes that are left to the compiler.

    Source: mirrors jax.experimental.shard_map.shard_map.

    Example:
        >>> from minijax.experimental.shard_map import shard_map
        >>> mesh, P = jax.make_mesh((8,), ("x",)), jax.P
        >>> shard_map(lambda x: lax.psum(x, "x"), mesh, P("x"), P())(jnp.arange(8))
        Array([28], dtype=int32)
    """
    names = frozenset(mesh.axis_names) - frozenset(auto) if auto else frozenset()
    return minijax.transforms.per_device.shard_map.shard_map(
        f,
        mesh=mesh,
        in_specs=in_specs,
        out_specs=out_specs,
        axis_names=names,
        check_vma=check_rep,
    )


def __dir__() -> list[str]:
    """The public name, without what its module imports."""
    return sorted(__all__)
