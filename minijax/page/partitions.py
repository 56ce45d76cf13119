"""What devices do in a program that XLA has partitioned, and a `pmap` as partitions.

Input: a program over a mesh, compiled with numbers in its locations.  Output: steps as those of
`page/devices.py`: the pieces of the arguments that each device holds, the types of what it
computes, what moves in each collective, and the pieces of the results.  The replicas of a `pmap`
stand beside the partitions of the same program, which `shard_map` makes of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import tree
from minijax.core.aval import ShapedArray
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.meshes import AbstractMesh, PartitionSpec
from minijax.explain import communication, groups
from minijax.explain.communication import Collective
from minijax.interpreters import staging
from minijax.lax import shape
from minijax.page import columns, marking
from minijax.page.columns import Column
from minijax.page.marking import Equation, Marked
from minijax.runtime.hlo_text import HloModule, Instruction
from minijax.sharding.named import NamedSharding
from minijax.transforms.jit.jit import jit
from minijax.transforms.jit.stages import Compiled, Lowered, ShapeDtypeStruct
from minijax.transforms.per_device.shard_map import shard_map

Step = dict[str, Any]
"""What the page shows of one step: JSON."""

_MOST_DEVICES = 16
_MOST_STEPS = 80


class Partitioned(NamedTuple):
    """A program that XLA has partitioned.

    Attributes:
        lowered: the program with numbers, before.
        compiled: the program.
        text: its HLO after partitioning.
    """

    lowered: Lowered
    compiled: Compiled
    text: str


def steps_of(
    partitioned: Partitioned, closed: ClosedJaxpr, equations: Sequence[Equation]
) -> Step | None:
    """The steps of a partitioned program; None if there are too many, or too many devices.

    Args:
        partitioned: the program.
        closed: the program as a jaxpr.
        equations: its equations, by number.
    """
    boxes = communication.boxes_of(partitioned.lowered)
    module = HloModule(partitioned.text)
    if len(boxes) != 1 or not 1 < module.devices <= _MOST_DEVICES:
        return None
    found = _Steps(partitioned, module, boxes[0], equations)
    names = closed.jaxpr.debug_info.arg_names or ()
    arguments = [
        names[i] if i < len(names) else f"argument {i}" for i in range(len(closed.in_avals))
    ]
    results = [f"result {i}" for i in range(len(closed.out_avals))]
    for turn in (True, False):
        found.steps.clear()
        found.ends("begins", arguments, closed.in_avals, partitioned.compiled.input_shardings)
        found.walk(with_computing=turn)
        found.ends("ends", results, closed.out_avals, partitioned.compiled.output_shardings)
        if len(found.steps) <= _MOST_STEPS:
            return {"names": found.names, "legend": [], "steps": found.steps}
    return None


class _Steps:
    """Gathers the steps of one program."""

    def __init__(
        self,
        partitioned: Partitioned,
        module: HloModule,
        box: groups.Box,
        equations: Sequence[Equation],
    ) -> None:
        self.steps: list[Step] = []
        self._module = module
        self._equations = equations
        places = {int(n): index for index, n in np.ndenumerate(box.ids)}
        self._order = sorted(places)
        self.names = [
            f"{n} {', '.join(f'{a}={i}' for a, i in zip(box.names, places[n], strict=True))}"
            for n in self._order
        ]
        text, name = partitioned.text, partitioned.lowered.fun_name
        listed = communication.of_text(name, text, [box])
        self._collectives: dict[str, Collective] = {each.name: each for each in listed}

    def _add(
        self,
        number: int,
        title: str,
        kind: str,
        cells: Sequence[Sequence[str]],
        arrows: Sequence[Sequence[int]] = (),
    ) -> None:
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
        self.steps.append(step | {"arrows": list(map(list, arrows)), "devices": devices})

    def ends(
        self, kind: str, names: Sequence[str], avals: Sequence[ShapedArray], placements: Any
    ) -> None:
        """The pieces of arguments or results that each device holds, in one step for all."""
        shardings = tree.leaves(placements, is_leaf=lambda x: x is None)
        if len(shardings) != len(names):
            return
        cells: list[list[str]] = [[] for _ in self.names]
        for name, aval, sharding in zip(names, avals, shardings, strict=True):
            if isinstance(sharding, NamedSharding) and hasattr(aval, "shape"):
                parts = sharding.devices_indices_map(aval.shape)
                for own, device in zip(cells, sharding.mesh.devices.flat, strict=False):
                    own.append(f"{name}{_part_text(parts[device], aval.shape)}")
        self._add(-1, "start" if kind == "begins" else "result", kind, cells)

    def walk(self, *, with_computing: bool) -> None:
        """What the entry computes, an equation a step, and all that moves."""
        last = -1
        for instruction, is_inside in self._instructions(self._module.entry, 0):
            numbers = marking.marks(instruction.metadata.get("op_name", ""))
            number = numbers[-1] if numbers else -1
            types = list(map(str, instruction.tensors))
            collective = self._collectives.get(instruction.name)
            if collective is not None:
                over = f" over {communication.axes_text(collective.axes)}"
                where = f" in {', '.join(collective.inside)}" if collective.inside else ""
                arrows = self._arrows(instruction, collective.kind)
                cells = [types] * len(self.names)
                self._add(number, f"{collective.kind}{over}{where}", "moves", cells, arrows)
            elif with_computing and not is_inside and number >= 0:
                name = self._equations[number].eqn.primitive.name
                if number == last:
                    self.steps.pop()
                self._add(number, name, "computes", [types] * len(self.names))
            last = number if collective is None else -1

    def _instructions(self, computation: str, depth: int) -> Iterator[tuple[Instruction, bool]]:
        for instruction in self._module.computations.get(computation, {}).values():
            yield instruction, depth > 0
            if instruction.name not in self._collectives and depth < 12:
                for _, callee in instruction.calls:
                    yield from self._instructions(callee, depth + 1)

    def _arrows(self, instruction: Instruction, kind: str) -> list[list[int]]:
        """From whom to whom: pairs of rows."""
        if kind == "collective_permute":
            pairs = groups.read_pairs(instruction.attributes)
            return [] if pairs is None else self._rows(pairs.tolist())
        found = groups.read_groups(instruction.attributes, self._module.devices)
        if found is None:
            return []
        rows = [[giver, taker] for group in found.tolist() for taker in group for giver in group]
        return self._rows(rows)

    def _rows(self, pairs: Sequence[Sequence[int]]) -> list[list[int]]:
        return [[self._order.index(giver), self._order.index(taker)] for giver, taker in pairs]


def _part_text(index: Sequence[Any], dims: Sequence[int]) -> str:
    """A piece of an array, as it is indexed; nothing for the whole."""
    parts = []
    for part, size in zip(index, dims, strict=True):
        start, stop, _ = part.indices(size)
        parts.append(":" if (start, stop) == (0, size) else f"{start}:{stop}")
    return "" if all(part == ":" for part in parts) else f"[{', '.join(parts)}]"


def column_of_pmap(marked: Marked) -> Column | None:
    """StableHLO of a `pmap` as `shard_map` makes partitions of the same program.

    Args:
        marked: the program, with numbers.
    """
    found = [eqn for eqn in marked.closed.jaxpr.eqns if eqn.primitive.name == "pmap"]
    if len(found) != 1 or marked.closed.effects:
        return None
    (eqn,) = found
    params, avals = eqn.params, [v.aval for v in eqn.invars]
    name, inner = params["axis_name"], params["jaxpr"]
    extended = (getattr(aval, "is_extended", True) for aval in (*avals, *inner.out_avals))
    if not isinstance(name, str) or any(extended):
        return None

    def local(*blocks: Any) -> tuple[Any, ...]:
        pairs = zip(blocks, params["in_axes"], strict=True)
        args = [x if axis is None else shape.squeeze(x, (axis,)) for x, axis in pairs]
        outs = staging.eval_closed_jaxpr(inner, *args)
        pairs = zip(outs, params["out_axes"], strict=True)
        return tuple(x if axis is None else shape.expand_dims(x, (axis,)) for x, axis in pairs)

    def specs(axes: Sequence[int | None]) -> tuple[PartitionSpec, ...]:
        return tuple(PartitionSpec(*(() if a is None else (*[None] * a, name))) for a in axes)

    mapped = shard_map(
        local,
        mesh=AbstractMesh((params["axis_size"],), (name,)),
        in_specs=specs(params["in_axes"]),
        out_specs=specs(params["out_axes"]),
        check_vma=False,
    )
    lowered = jit(mapped).lower(*[ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals])
    text = lowered.as_text(debug_info=True)
    return columns.mlir_column(text, "partitions", "the same by shard_map")
