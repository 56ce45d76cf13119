"""Which axes of a mesh a collective runs over, from the groups of devices that it names.

Input: attributes of HLO instructions, in each form that XLA prints.  Output: groups of devices,
and names of mesh axes.  Part of an axis is written as Shardy writes it: `x:(2)4` is the factor of
size 4 of the axis `x` that has a factor of size 2 before it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Groups = np.ndarray[Any, Any]
"""The devices that take part together, one row for each group."""

_BY_AXES = re.compile(
    r"replica_groups=mesh\[([^\]]*)\](?:, device_ids=(\((?:[^()]|\([^()]*\))*\)))? \{([^}]*)\}"
)
_IOTA = re.compile(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_LISTED = re.compile(r"replica_groups=\{((?:\{[\d,]*\},?)*)\}")
_PAIRS = re.compile(r"source_target_pairs=\{((?:\{\d+,\d+\},?)*)\}")
_AXIS_SIZE = re.compile(r"'([^']*)'=(\d+)")
_AXIS_PART = re.compile(r"'([^']*)'(?::\((\d+)\)(\d+))?")
_DEVICE_IOTA = re.compile(r"\[([\d,]+)\](?:T\(([\d,]+)\))?")


class Box(NamedTuple):
    """The devices of a mesh as a program numbers them.

    Attributes:
        names: the axes, the outermost first.
        ids: the numbers of the devices, of the mesh's shape.
    """

    names: tuple[Any, ...]
    ids: np.ndarray[Any, Any]

    def __str__(self) -> str:
        sizes = zip(self.names, self.ids.shape, strict=True)
        return ", ".join(f"{name}={size}" for name, size in sizes)


class _Factor(NamedTuple):
    """A prime factor of an axis: `before` is the product of the factors outside it."""

    axis: int
    before: int
    size: int


def read_groups(attributes: str, devices: int) -> Groups | None:
    """The groups of an instruction; None if it names none of equal size.

    Args:
        attributes: the text of its attributes.
        devices: how many devices run the program.
    """
    by_axes = _BY_AXES.search(attributes)
    if by_axes:
        return _groups_by_axes(*by_axes.groups())
    iota = _IOTA.search(attributes)
    if iota:
        return _iota(_ints(iota.group(2)), _ints(iota.group(3))).reshape(_ints(iota.group(1)))
    listed = _LISTED.search(attributes)
    if listed is None:
        return None
    rows = [_ints(row) for row in re.findall(r"\{([\d,]*)\}", listed.group(1))]
    if not rows:
        return np.arange(devices).reshape(1, devices)
    return np.array(rows) if len(set(map(len, rows))) == 1 else None


def read_pairs(attributes: str) -> Groups | None:
    """Sources and targets of a permutation, one pair in each row; None if there are none."""
    found = _PAIRS.search(attributes)
    if found is None:
        return None
    pairs = [_ints(pair) for pair in re.findall(r"\{(\d+,\d+)\}", found.group(1))]
    return np.array(pairs, np.int64).reshape(len(pairs), 2)


def _groups_by_axes(sizes: str, ids: str | None, axes: str) -> Groups:
    """Groups that are given by axes of a mesh of the program's own making."""
    shape = [(name, int(size)) for name, size in _AXIS_SIZE.findall(sizes)]
    devices = _device_ids(ids, math.prod(size for _, size in shape))
    split: list[int] = []
    chosen: list[int] = []
    parts: dict[str, list[tuple[int, int]]] = {}
    for name, before, size in _AXIS_PART.findall(axes):
        parts.setdefault(name, []).append((int(before or 1), int(size or dict(shape)[name])))
    for name, size in shape:
        done = 1
        for before, part in sorted(parts.get(name, ())):
            split += [before // done, part]
            chosen.append(len(split) - 1)
            done = before * part
        split.append(size // done)
    box = devices.reshape(split)
    return np.moveaxis(box, chosen, range(-len(chosen), 0)).reshape(
        -1, math.prod(split[i] for i in chosen)
    )


def _device_ids(text: str | None, count: int) -> np.ndarray[Any, Any]:
    if text is None:
        return np.arange(count)
    iota = _DEVICE_IOTA.search(text)
    if iota:
        return _iota(_ints(iota.group(1)), _ints(iota.group(2)))
    return np.array(_ints(text.strip("()")))


def _iota(shape: Sequence[int], order: Sequence[int]) -> np.ndarray[Any, Any]:
    box = np.arange(math.prod(shape)).reshape(shape)
    return box.transpose(order) if order else box


def _ints(text: str | None) -> list[int]:
    return [int(part) for part in (text or "").split(",") if part]


def axes_of_groups(groups: Groups | None, meshes: Sequence[Box]) -> tuple[str, ...] | None:
    """The axes over which devices differ within the groups; None if no mesh has such axes.

    Args:
        groups: which devices take part together.
        meshes: the meshes of the program.  A match with whole axes wins over one with parts.
    """
    return _best_match(groups, meshes, exact=True)


def axes_of_pairs(pairs: Groups | None, meshes: Sequence[Box]) -> tuple[str, ...] | None:
    """The axes along which a permutation moves values; None if it knows no mesh."""
    return _best_match(pairs, meshes, exact=False)


def _best_match(
    groups: Groups | None, meshes: Sequence[Box], *, exact: bool
) -> tuple[str, ...] | None:
    if groups is None:
        return None
    found = [axes for mesh in meshes if (axes := _match(groups, mesh, exact)) is not None]
    return min(found, key=lambda axes: sum(":(" in axis for axis in axes), default=None)


def _match(groups: Groups, mesh: Box, exact: bool) -> tuple[str, ...] | None:
    positions = np.full(max(int(mesh.ids.max()), int(groups.max(initial=0))) + 1, -1)
    positions[mesh.ids.ravel()] = np.arange(mesh.ids.size)
    places = positions[groups]
    if places.min(initial=0) < 0:
        return None
    factors = [
        factor for axis, size in enumerate(mesh.ids.shape) for factor in _factors(axis, size)
    ]
    coordinates = np.unravel_index(places, [factor.size for factor in factors] or [1])
    varying = [
        factor
        for factor, where in zip(factors, coordinates, strict=False)
        if (where != where[:, :1]).any()
    ]
    if exact and math.prod(factor.size for factor in varying) != groups.shape[1]:
        return None
    return tuple(_merged(varying, mesh))


def _factors(axis: int, size: int) -> list[_Factor]:
    factors = []
    before, prime = 1, 2
    while before < size:
        if (size // before) % prime:
            prime += 1
            continue
        factors.append(_Factor(axis, before, prime))
        before *= prime
    return factors


def _merged(factors: Sequence[_Factor], mesh: Box) -> list[str]:
    """Names of runs of factors that follow each other in one axis."""
    runs: list[_Factor] = []
    for factor in factors:
        last = runs[-1] if runs else None
        if last and (last.axis, last.before * last.size) == (factor.axis, factor.before):
            runs[-1] = last._replace(size=last.size * factor.size)
        else:
            runs.append(factor)
    return [
        str(mesh.names[run.axis])
        if run.size == mesh.ids.shape[run.axis]
        else f"{mesh.names[run.axis]}:({run.before}){run.size}"
        for run in runs
    ]
