"""The oracle of collectives, on the values of all devices stacked; and ways to run a function.

A stacked value has a leading dimension for each axis of the mesh.  The oracle is written from the
definitions, in NumPy.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import minijax
from minijax.sharding import AxisType
from minijax.sharding import PartitionSpec as P

Stack = np.ndarray[Any, Any]


def on_axes(f: Callable[[Stack], Stack], x: Stack, mesh: Mapping[Any, int], names: Any) -> Stack:
    """`f` of the members of each group; the first of the names is the most significant digit."""
    count, order = len(mesh), list(mesh)
    chosen = [order.index(n) for n in names]
    rest = [i for i in range(count) if i not in chosen]
    moved = x.transpose(rest + chosen + list(range(count, x.ndim)))
    sizes = [mesh[n] for n in names]
    groups = moved.reshape(-1, math.prod(sizes), *x.shape[count:])
    out = np.stack([f(group) for group in groups])
    out = out.reshape(*[mesh[order[i]] for i in rest], *sizes, *out.shape[2:])
    back = np.argsort(rest + chosen).tolist()
    return out.transpose(back + list(range(count, out.ndim)))


def by_group(y: Stack, groups: Any, h: Callable[[list[Stack], int], Stack]) -> Stack:
    """`h` of the blocks of a member's group and its position there, for each member."""
    out: list[Any] = [None] * len(y)
    for group in groups or [range(len(y))]:
        for j, i in enumerate(group):
            out[i] = h([y[m] for m in group], j)
    return np.stack(out)


def psum(y: Stack, groups: Any = None) -> Stack:
    numbers = y.astype(np.int32) if y.dtype == np.bool_ else y
    return by_group(numbers, groups, lambda b, j: functools.reduce(np.add, b))


def pmax(y: Stack, groups: Any = None) -> Stack:
    return by_group(y, groups, lambda b, j: np.max(np.stack(b), 0))


def pmin(y: Stack, groups: Any = None) -> Stack:
    return by_group(y, groups, lambda b, j: np.min(np.stack(b), 0))


def gather(y: Stack, axis: int, tiled: bool, groups: Any = None) -> Stack:
    join = np.concatenate if tiled else np.stack
    return by_group(y, groups, lambda b, j: join(b, axis))


def scatter(y: Stack, dim: int, tiled: bool, groups: Any = None) -> Stack:
    def own(blocks: list[Stack], j: int) -> Stack:
        total = functools.reduce(np.add, blocks)
        return np.split(total, len(blocks), dim)[j] if tiled else np.take(total, j, dim)

    return by_group(y, groups, own)


def exchange(y: Stack, split: int, concat: int, tiled: bool, groups: Any = None) -> Stack:
    def own(blocks: list[Stack], j: int) -> Stack:
        if tiled:
            return np.concatenate([np.split(v, len(blocks), split)[j] for v in blocks], concat)
        return np.stack([np.take(v, j, split) for v in blocks], concat)

    return by_group(y, groups, own)


def broadcast(y: Stack, source: int) -> Stack:
    return np.stack([y[source]] * len(y))


def permute(y: Stack, perm: Sequence[tuple[int, int]]) -> Stack:
    out = np.zeros_like(y)
    for s, d in perm:
        out[d] = y[s]
    return out


def ragged(
    operand: Stack, output: Stack, starts: Stack, sizes: Stack, targets: Stack, received: Stack
) -> Stack:
    per_device, out = starts.shape[1] // len(operand), output.copy()
    for s in range(len(operand)):
        for k in range(starts.shape[1]):
            start, size, target = starts[s, k], sizes[s, k], targets[s, k]
            out[k // per_device, target : target + size] = operand[s, start : start + size]
    return out


def axis_index(mesh: Mapping[Any, int], names: Any) -> Stack:
    places, found = np.indices(tuple(mesh.values())), np.zeros(tuple(mesh.values()), int)
    for n in names:
        found = found * mesh[n] + places[list(mesh).index(n)]
    return found.astype(np.int32)


def mesh_of(sizes: Mapping[Any, int]) -> Any:
    """A mesh of host devices, of which the compiler may split over all axes."""
    with minijax.cpu_devices(8):
        return minijax.make_mesh(
            tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes)
        )


def by_shard_map(
    f: Callable[..., Any], sizes: Mapping[Any, int], *, check_vma: bool = True
) -> Callable[..., Any]:
    """`f` of one device's values, as a function of stacked ones, by `shard_map`."""
    count = len(sizes)

    def block(*xs: Any) -> Any:
        out = f(*(x.reshape(x.shape[count:]) for x in xs))
        return minijax.tree.map(lambda o: o.reshape((1,) * count + o.shape), out)

    spec = P(*sizes)
    return minijax.jit(
        minijax.shard_map(
            block, mesh=mesh_of(sizes), in_specs=spec, out_specs=spec, check_vma=check_vma
        )
    )


def unchecked(f: Callable[..., Any], sizes: Mapping[Any, int]) -> Callable[..., Any]:
    """As `by_shard_map`, without types that tell over which axes values vary."""
    return by_shard_map(f, sizes, check_vma=False)


def by_vmap(f: Callable[..., Any], sizes: Mapping[Any, int]) -> Callable[..., Any]:
    """As `by_shard_map`, by `vmap`."""
    for name, size in reversed(sizes.items()):
        f = minijax.vmap(f, axis_name=name, axis_size=size)
    return minijax.jit(f)


def by_pmap(f: Callable[..., Any], sizes: Mapping[Any, int]) -> Callable[..., Any]:
    """As `by_shard_map`, by `pmap`."""
    with minijax.cpu_devices(8):
        devices = minijax.devices()[: math.prod(sizes.values())]
    names = list(sizes)
    for name in reversed(names[1:]):
        f = minijax.pmap(f, axis_name=name)
    return minijax.pmap(f, axis_name=names[0], devices=devices if len(names) == 1 else None)


def half_vmapped(f: Callable[..., Any], sizes: Mapping[Any, int]) -> Callable[..., Any]:
    """The last axis by `vmap` inside of `shard_map` over the others."""
    *outer, last = sizes
    inner = minijax.vmap(f, axis_name=last, axis_size=sizes[last])
    return by_shard_map(inner, {name: sizes[name] for name in outer})


def half_vmapped_unchecked(f: Callable[..., Any], sizes: Mapping[Any, int]) -> Callable[..., Any]:
    """As `half_vmapped`, without types that tell over which axes values vary."""
    *outer, last = sizes
    inner = minijax.vmap(f, axis_name=last, axis_size=sizes[last])
    return unchecked(inner, {name: sizes[name] for name in outer})


RUNNERS = {
    "checked": by_shard_map,
    "unchecked": unchecked,
    "vmap": by_vmap,
    "pmap": by_pmap,
    "vmap inside": half_vmapped,
    "vmap inside unchecked": half_vmapped_unchecked,
}
"""Ways to run a function of one device's values on stacked ones."""


def numbers(sizes: Mapping[Any, int], shape: Sequence[int], dtype: Any = np.float32) -> Stack:
    """Small distinct numbers, exact in every dtype that has room for them."""
    whole = (*sizes.values(), *shape)
    return (np.arange(math.prod(whole)) % 97).reshape(whole).astype(dtype)
