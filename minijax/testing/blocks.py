"""Whole arrays and the blocks of simulated devices: cutting arguments, putting results together.

Input: NumPy arrays, and specs that say along which mesh axes each dimension is cut.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import meshes, tree
from minijax.core.errors import error
from minijax.core.meshes import PartitionSpec
from minijax.testing import exchanges
from minijax.testing.exchanges import Coordinates

USER = "testing.simulate"
Sizes = Mapping[Hashable, int]


class Value(NamedTuple):
    """A value that enters or leaves a device: its NumPy array, its type, and its name."""

    array: Any
    aval: Any
    name: str


def specs_of(specs: object, values: object, argument: str, what: str) -> list[PartitionSpec]:
    """A spec for each leaf of some values; None stands for one that mentions no axis.

    Raises:
        ValueError: `specs` is not a tree prefix of the values.
        TypeError: it holds something else.
    """
    found = tree.broadcast_prefix(
        specs,
        values,
        is_leaf=lambda x: x is None or isinstance(x, PartitionSpec),
        user=USER,
        first=argument,
        second=what,
    )
    for spec in found:
        if spec is not None and not isinstance(spec, PartitionSpec):
            error(
                TypeError,
                USER,
                f"{argument} must hold partition specs.",
                got=f"{spec!r} of type {type(spec).__name__}",
                fix="P('x') or P(), with P = minijax.sharding.PartitionSpec",
            )
    return [PartitionSpec() if spec is None else spec for spec in found]


def cut(value: Value, spec: PartitionSpec, sizes: Sizes, place: Coordinates) -> Any:
    """One device's block of an argument."""
    index = []
    for size, names in zip(value.aval.shape, spec.dims(value.aval.ndim), strict=True):
        count = math.prod(sizes[name] for name in names)
        position = _position(names, sizes, place)
        index.append(slice(size // count * position, size // count * (position + 1)))
    return np.asarray(value.array[tuple(index)])


def _position(names: Sequence[Any], sizes: Sizes, place: Coordinates) -> int:
    """Which of the parts into which axes cut a dimension a device has."""
    at = dict(place)
    position = 0
    for name in names:
        position = position * sizes[name] + at[name]
    return position


def check_cut(value: Value, spec: PartitionSpec, sizes: Sizes) -> None:
    """Refuses to cut an argument as a spec says.

    Raises:
        ValueError: the spec does not fit the argument or the mesh.
        NotImplementedError: it says that the argument is a sum of which there are no summands.
    """
    _check_names(value, spec, sizes)
    if spec.unreduced:
        error(
            NotImplementedError,
            USER,
            f"the argument {value.name} is to be given as summands.",
            got=repr(spec),
            fix="give the summands along an axis of their own, and lax.pcast inside",
        )
    for size, names in zip(value.aval.shape, spec.dims(value.aval.ndim), strict=True):
        count = math.prod(sizes[name] for name in names)
        if size % count:
            error(
                ValueError,
                USER,
                f"a dimension of {value.name} cannot be cut into equal parts.",
                got=f"{value.aval}, {spec}",
                expected=f"a multiple of {count}, for {size}",
            )


def _check_names(value: Value, spec: PartitionSpec, sizes: Sizes) -> None:
    if len(spec) > value.aval.ndim:
        error(
            ValueError,
            USER,
            f"the spec of {value.name} has more entries than there are dimensions.",
            got=f"{value.aval}, {spec}",
        )
    for name in (*spec.names(), *spec.unreduced, *spec.reduced):
        if name not in sizes:
            error(
                ValueError,
                USER,
                f"the spec of {value.name} names an axis along which there are no devices.",
                got=f"{spec}, devices along {meshes.names_text(list(sizes))}",
            )


def join(
    blocks: Mapping[Coordinates, Value], spec: PartitionSpec, sizes: Sizes, *, compare: bool
) -> Any:
    """A result put together from what the devices return.

    Args:
        blocks: each device's.
        spec: along which axes each dimension is cut.
        sizes: of the axes along which there are devices.
        compare: whether devices along axes that the spec does not mention must agree; otherwise
            the first one's block is taken.

    Raises:
        ValueError: the types of blocks differ, or the spec does not fit; or devices disagree.
    """
    first = next(iter(blocks.values()))
    _check_names(first, spec, sizes)
    _check_types(blocks)
    mentioned = {*spec.names(), *spec.unreduced}
    same = [name for name in sizes if name not in mentioned]
    if compare:
        _check_same(blocks, spec, same)
    if not isinstance(first.array, np.ndarray):
        return first.array
    dims = spec.dims(first.aval.ndim)
    # What random keys are made of has dimensions behind those of the keys.
    block_shape = first.array.shape
    counts = [math.prod(sizes[name] for name in names) for names in dims]
    counts += [1] * (len(block_shape) - len(counts))
    whole_shape = [n * count for n, count in zip(block_shape, counts, strict=True)]
    whole = np.zeros(whole_shape, first.array.dtype)
    for place, block in blocks.items():
        if any(i and name in same for name, i in place):
            continue
        positions = [_position(names, sizes, place) for names in dims]
        index = tuple(
            slice(n * i, n * (i + 1)) for n, i in zip(block_shape, positions, strict=False)
        )
        # Along unreduced axes each device holds a summand.
        whole[index] = whole[index] + block.array if spec.unreduced else block.array
    return whole


def _check_types(blocks: Mapping[Coordinates, Value]) -> None:
    (first, value), *others = blocks.items()
    for place, other in others:
        if (value.aval.shape, value.aval.dtype) != (other.aval.shape, other.aval.dtype):
            error(
                ValueError,
                USER,
                f"devices return different types for {value.name}.",
                got={
                    exchanges.place_text(first): value.aval,
                    exchanges.place_text(place): other.aval,
                },
            )


def _check_same(
    blocks: Mapping[Coordinates, Value], spec: PartitionSpec, same: Sequence[Any]
) -> None:
    for place, block in blocks.items():
        first = tuple((name, 0 if name in same else i) for name, i in place)
        if _is_same(blocks[first].array, block.array):
            continue
        both = {at: _shortened(blocks[at].array) for at in (first, place)}
        error(
            ValueError,
            USER,
            f"{block.name} differs along {meshes.names_text(same)}, which its spec {spec} does "
            "not mention.",
            got=exchanges.lines(both),
            expected="the same on all devices along the axes that a spec does not mention",
            fix="mention the axis in out_specs; or reduce over it with lax.psum or lax.pmean; "
            "or pass check_vma=False to get the first device's result",
        )


def _is_same(x: object, y: object) -> bool:
    if not (isinstance(x, np.ndarray) and isinstance(y, np.ndarray)):
        return True
    # Bytes, so that a NaN is the same as itself.
    return x.tobytes() == y.tobytes() or bool(np.all(x == y))


def _shortened(x: object) -> str:
    text = " ".join(str(x).split())
    return text if len(text) < 80 else f"{text[:76]} ..."
