"""How collectives move values by name among devices, and which devices give to which.

Input: a value on each device, and the groups that take part together.  Output: the value that each
device has then, and arrows from givers to takers.  Programs of `shard_map` and those that XLA has
partitioned share this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.explain.pages import terms
from minijax.explain.pages.terms import Sum, Terms

PerDevice = list[Terms]
"""A value on each device."""
Groups = Sequence[Sequence[int]]
"""The devices that take part together."""
Step = dict[str, Any]
"""What the page shows of one step: JSON."""

MOST_DEVICES = 16
MOST_ELEMENTS = 64
MOST_STEPS = 80
MOST_SHOWN = 16
MOST_TURNS = 16


class Unshown(Exception):  # noqa: N818  it says what is not shown, and leaves nothing wrong
    """A program has something that is not carried by name."""


def letter(number: int) -> str:
    """The letter of a device."""
    return chr(ord("A") + number)


def everybody(groups: Groups) -> list[list[int]]:
    """Arrows from all of a group to all of it."""
    return [[giver, taker] for group in groups for taker in group for giver in group]


def joined(values: PerDevice, groups: Groups, join: Callable[[Sequence[Sum]], Sum]) -> PerDevice:
    """What becomes of the elements of each group together, on all of it.

    Args:
        values: the value of each device.
        groups: the devices that take part together.
        join: makes one of the elements that stand at the same place.
    """
    found = list(values)
    for group in groups:
        out = np.empty(values[group[0]].shape, object)
        for index in np.ndindex(*out.shape):
            out[index] = join([terms.sum_of(values[device][index]) for device in group])
        total = terms.simplified(out)
        for device in group:
            found[device] = total
    return found


def permuted(values: PerDevice, arrows: Sequence[Sequence[int]]) -> PerDevice:
    """What each taker gets of its giver; zeros where nobody gives."""
    found = [np.zeros(value.shape) for value in values]
    for giver, taker in arrows:
        found[taker] = values[giver]
    return found


def gathered(values: PerDevice, groups: Groups, axis: int, *, tiled: bool) -> PerDevice:
    """The values of each group side by side, on all of it."""
    found = list(values)
    join = np.concatenate if tiled else np.stack
    for group in groups:
        out = join([values[device] for device in group], axis=axis)
        for device in group:
            found[device] = out
    return found


def scattered(values: PerDevice, groups: Groups, axis: int, *, tiled: bool) -> PerDevice:
    """Parts of what each group holds together: a part for each device of it."""
    found = list(values)
    for group in groups:
        for place, device in enumerate(group):
            part = np.split(values[device], len(group), axis)[place]
            found[device] = part if tiled else np.squeeze(part, axis)
    return found


def exchanged(
    values: PerDevice, groups: Groups, split: int, concat: int, *, tiled: bool
) -> PerDevice:
    """The parts that each device gets of all of its group."""
    found = list(values)
    for group in groups:
        parts = [np.split(values[device], len(group), split) for device in group]
        for place, device in enumerate(group):
            own = [given[place] for given in parts]
            if tiled:
                found[device] = np.concatenate(own, concat)
            else:
                found[device] = np.stack([np.squeeze(part, split) for part in own], concat)
    return found


def shown(
    number: int,
    title: str,
    kind: str,
    cells: Sequence[Sequence[str]],
    arrows: Sequence[Sequence[int]] = (),
) -> Step:
    """One step, in which all devices take part but those that neither give nor take.

    Args:
        number: the equation; -1 where there is none.
        title: what is done.
        kind: `begins`, `computes`, `moves` or `ends`.
        cells: what each device holds then.
        arrows: who gives to whom.
    """
    moving = {device for arrow in arrows for device in arrow}
    devices = [
        {
            "cells": list(own),
            "shape": [],
            "waits": bool(arrows) and device not in moving,
            "stuck": False,
        }
        for device, own in enumerate(cells)
    ]
    step = {"number": number, "title": title, "kind": kind, "line": ""}
    return step | {"arrows": list(map(list, arrows)), "devices": devices}
