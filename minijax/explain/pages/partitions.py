"""What devices do in a program that XLA has partitioned, and a `pmap` as partitions.

Input: a program over a mesh, compiled with numbers in its locations.  Output: steps as those of
`explain/pages/devices.py`, by name.  Where something is too large, or not carried by name, all
steps show less: the pieces of the arguments that each device holds, the types of what it computes,
what moves in each collective, and the pieces of the results.  The replicas of a `pmap`
stand beside the partitions of the same program, which `shard_map` makes of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import tree
from minijax.core.aval import AbstractValue
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.meshes import AbstractMesh, PartitionSpec
from minijax.explain import communication, groups
from minijax.explain.communication import Collective
from minijax.explain.pages import (
    columns,
    devices,
    hlo_terms,
    marking,
    moving,
    partition_terms,
    terms,
)
from minijax.explain.pages.columns import Column
from minijax.explain.pages.marking import Equation, Marked
from minijax.explain.pages.moving import PerDevice, Step, Unshown
from minijax.explain.pages.naming import Legend
from minijax.interpreters import staging
from minijax.lax import shape
from minijax.runtime.hlo_text import HloModule, Instruction
from minijax.sharding.named import NamedSharding
from minijax.transforms.jit.jit import jit
from minijax.transforms.jit.stages import Compiled, Lowered, ShapeDtypeStruct
from minijax.transforms.per_device.shard_map import shard_map

_MOST_STEPS = moving.MOST_STEPS
_MOST_NAMES = 256
_MOST_NUMBERS = 10
_LITERAL = re.compile(r"(?<= constant\()\{[^()]*\}(?=\))")


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
    if len(boxes) != 1 or not 1 < module.devices <= moving.MOST_DEVICES:
        return None
    layout = _Layout(partitioned, module, boxes[0], equations)
    begins, ends = _placed(partitioned, closed)
    try:
        return _Named(layout, begins).result(ends)
    except Unshown:
        return _typed(layout, begins, ends)


def without_large_constants(text: str) -> str:
    """A program whose constants of more than ten numbers are dots, as XLA prints them elsewhere.

    Args:
        text: the program.
    """
    return _LITERAL.sub(
        lambda found: "{...}" if found.group().count(",") >= _MOST_NUMBERS else found.group(), text
    )


class _Placed(NamedTuple):
    """An argument or a result: its name, its type, and where it is."""

    name: str
    aval: AbstractValue
    sharding: Any

    def parts(self) -> list[tuple[slice, ...]] | None:
        """The piece of each device; None where that is not known."""
        if not isinstance(self.sharding, NamedSharding) or not hasattr(self.aval, "shape"):
            return None
        found = self.sharding.devices_indices_map(self.aval.shape)
        return [found[device] for device in self.sharding.mesh.devices.flat]


def _placed(partitioned: Partitioned, closed: ClosedJaxpr) -> tuple[list[_Placed], list[_Placed]]:
    """The arguments and the results; none where their shardings are not known."""
    names = closed.jaxpr.debug_info.arg_names or ()
    arguments = [
        names[i] if i < len(names) else f"argument {i}" for i in range(len(closed.in_avals))
    ]
    results = [f"result {i}" for i in range(len(closed.out_avals))]
    found = []
    for own, avals, placements in (
        (arguments, closed.in_avals, partitioned.compiled.input_shardings),
        (results, closed.out_avals, partitioned.compiled.output_shardings),
    ):
        shardings = tree.leaves(placements, is_leaf=lambda x: x is None)
        is_told = len(shardings) == len(own)
        found.append(list(map(_Placed, own, avals, shardings)) if is_told else [])
    return found[0], found[1]


class _Layout:
    """The devices of a partitioned program, and what its instructions do with them.

    Attributes:
        names: a number for each device, and its place.
        module: the program.
        equations: the equations, by number.
        is_plain: whether the partitions stand in the order of the mesh.
    """

    def __init__(
        self,
        partitioned: Partitioned,
        module: HloModule,
        box: groups.Box,
        equations: Sequence[Equation],
    ) -> None:
        self.module = module
        self.equations = equations
        places = {int(n): index for index, n in np.ndenumerate(box.ids)}
        self._order = sorted(places)
        self.is_plain = box.ids.ravel().tolist() == list(range(module.devices))
        self.names = [
            f"{n} {', '.join(f'{a}={i}' for a, i in zip(box.names, places[n], strict=True))}"
            for n in self._order
        ]
        text, name = partitioned.text, partitioned.lowered.fun_name
        self.is_plain &= "replica_count=" not in text.partition("\n")[0]
        listed = communication.of_text(name, text, [box])
        self._collectives: dict[str, Collective] = {each.name: each for each in listed}

    def number(self, instruction: Instruction) -> int:
        """The equation that an instruction was made for; -1 if none is known."""
        numbers = marking.marks(instruction.metadata.get("op_name", ""))
        return numbers[-1] if numbers else -1

    def primitive(self, number: int) -> str:
        """The name of the primitive of an equation."""
        return self.equations[number].eqn.primitive.name

    def moves(self, instruction: Instruction) -> tuple[str, list[list[int]]] | None:
        """The title and the arrows of a collective; None for what is none."""
        collective = self._collectives.get(instruction.name)
        if collective is None:
            return None
        over = f" over {communication.axes_text(collective.axes)}"
        where = f" in {', '.join(collective.inside)}" if collective.inside else ""
        return f"{collective.kind}{over}{where}", self._arrows(instruction, collective.kind)

    def _arrows(self, instruction: Instruction, kind: str) -> list[list[int]]:
        """From whom to whom: pairs of rows."""
        if kind == "collective_permute":
            pairs = groups.read_pairs(instruction.attributes)
            return [] if pairs is None else self._rows(pairs.tolist())
        found = groups.read_groups(instruction.attributes, self.module.devices)
        return [] if found is None else self._rows(moving.everybody(found.tolist()))

    def _rows(self, pairs: Sequence[Sequence[int]]) -> list[list[int]]:
        return [[self._order.index(giver), self._order.index(taker)] for giver, taker in pairs]


class _Named:
    """The steps of a program whose values are carried by name.

    Raises:
        Unshown: there is too much of it, or something that is not carried.
    """

    def __init__(self, layout: _Layout, begins: Sequence[_Placed]) -> None:
        self._layout = layout
        self._legend = Legend([own.name for own in begins])
        self._steps: list[Step] = []
        self._waiting: tuple[int, PerDevice] | None = None
        self._moved: set[int] = set()
        self._shown: list[list[str]] = []
        self._given = [own for own in begins if own.sharding is not None]
        if not layout.is_plain or not begins:
            raise Unshown

    def result(self, ends: Sequence[_Placed]) -> Step:
        """The steps, the first with what devices begin with.

        Args:
            ends: the results.
        """
        module = self._layout.module
        args = self._begin()
        found = partition_terms.Program(module, self._legend, self._see).run(module.entry, args)
        self._flush()
        outs = found if isinstance(found, tuple) else (found,)
        if len(outs) != len(ends):
            raise Unshown
        for own, values in zip(ends, outs, strict=True):
            if not isinstance(values, list):
                raise Unshown
            labels = _labels("", own, values)
            self._add(-1, own.name if len(ends) > 1 else "result", "ends", values, labels)
        steps = self._steps
        if len(steps) > _MOST_STEPS:
            steps = [step for step in steps if step["kind"] != "computes"]
        if len(steps) > _MOST_STEPS:
            raise Unshown
        legend = self._legend.told(steps)
        if len(legend) > _MOST_NAMES:
            raise Unshown
        places = [name.partition(" ")[2] for name in self._layout.names]
        names = [f"{moving.letter(i)} {place}" for i, place in enumerate(places)]
        return {"names": names, "legend": legend, "steps": steps}

    def _begin(self) -> list[PerDevice]:
        """What devices hold of the arguments, as the program takes them."""
        module = self._layout.module
        taken = {
            int(x.operands[0]): x
            for x in module.computations[module.entry].values()
            if x.opcode == "parameter"
        }
        if len(taken) != len(self._given):
            raise Unshown
        args: list[PerDevice] = []
        used: set[str] = set()
        for number, own in enumerate(self._given):
            (tensor,) = taken[number].tensors
            hlo_terms.dtype_of(tensor)
            bases = self._bases(own, tensor.shape)
            values = {base: terms.begun(base, tensor.shape) for base in bases}
            if used & values.keys() or math.prod(tensor.shape) > moving.MOST_ELEMENTS:
                raise Unshown
            used |= values.keys()
            args.append([values[base] for base in bases])
            title = own.name if len(self._given) > 1 else "start"
            self._add(-1, title, "begins", args[-1], _labels(own.name, own, args[-1]))
        return args

    def _bases(self, own: _Placed, shape: tuple[int, ...]) -> list[str]:
        """How the elements of each device are called: alike where pieces are the same."""
        rows = range(self._layout.module.devices)
        if own.aval.shape == shape:
            return [own.name for _ in rows]
        parts = own.parts()
        if parts is None or len(parts) != len(rows):
            raise Unshown
        texts = [_part_text(part, own.aval.shape) for part in parts]
        if len(set(texts)) == 1:
            return [own.name for _ in rows]
        letters = [moving.letter(texts.index(text)) for text in texts]
        return [f"{own.name}{letter}" if len(self._given) > 1 else letter for letter in letters]

    def _see(self, instruction: Instruction, values: PerDevice) -> None:
        """Makes a step of what devices hold after a collective or an equation."""
        number, moves = self._layout.number(instruction), self._layout.moves(instruction)
        if moves is not None:
            self._flush()
            self._moved.add(number)
            self._add(number, moves[0], "moves", values, arrows=moves[1])
        elif number >= 0 and not all(map(terms.is_known, values)):
            if self._waiting is not None and self._waiting[0] != number:
                self._flush()
            self._waiting = number, values

    def _flush(self) -> None:
        """Makes a step of the last equation, if it shows more than the step before."""
        if self._waiting is None:
            return
        (number, values), self._waiting = self._waiting, None
        name = self._layout.primitive(number)
        if name not in devices.UNSEEN or number in self._moved:
            before = self._shown
            self._add(number, name, "computes", values)
            if self._shown == before:
                self._steps.pop()

    def _add(
        self,
        number: int,
        title: str,
        kind: str,
        values: PerDevice,
        labels: Sequence[Sequence[str]] = (),
        arrows: Sequence[Sequence[int]] = (),
    ) -> None:
        texts = [terms.texts(x, moving.MOST_SHOWN, self._legend.name) for x in values]
        self._shown = texts
        cells = [
            [*label, *own] for label, own in zip(labels or [[]] * len(texts), texts, strict=True)
        ]
        self._steps.append(moving.shown(number, title, kind, cells, arrows))


def _labels(name: str, own: _Placed, values: PerDevice) -> list[list[str]]:
    """The piece of the whole that each device has; nothing where all have all of it."""
    parts = own.parts()
    if parts is None or len({_part_text(part, own.aval.shape) for part in parts}) == 1:
        return [[] for _ in values]
    return [[f"{name}{_part_text(part, own.aval.shape)}"] for part in parts]


def _typed(layout: _Layout, begins: Sequence[_Placed], ends: Sequence[_Placed]) -> Step | None:
    """The steps with pieces and types; None if there are too many."""
    for turn in (True, False):
        steps = [
            *_pieces(layout, "begins", begins),
            *_Typed(layout).steps(with_computing=turn),
            *_pieces(layout, "ends", ends),
        ]
        if len(steps) <= _MOST_STEPS:
            return {"names": layout.names, "legend": [], "steps": steps}
    return None


def _pieces(layout: _Layout, kind: str, placed: Sequence[_Placed]) -> list[Step]:
    """The pieces of arguments or results that each device holds, in one step for all."""
    cells: list[list[str]] = [[] for _ in layout.names]
    for own in placed:
        for row, part in zip(cells, own.parts() or (), strict=False):
            row.append(f"{own.name}{_part_text(part, own.aval.shape)}")
    title = "start" if kind == "begins" else "result"
    return [moving.shown(-1, title, kind, cells)] if placed else []


class _Typed:
    """The steps of a program of whose values types are shown."""

    def __init__(self, layout: _Layout) -> None:
        self._layout = layout

    def steps(self, *, with_computing: bool) -> list[Step]:
        """What the entry computes, an equation a step, and all that moves."""
        found: list[Step] = []
        last = -1
        for instruction, is_inside in self._instructions(self._layout.module.entry, 0):
            number, moves = self._layout.number(instruction), self._layout.moves(instruction)
            cells = [list(map(str, instruction.tensors))] * len(self._layout.names)
            if moves is not None:
                found.append(moving.shown(number, moves[0], "moves", cells, moves[1]))
            elif with_computing and not is_inside and number >= 0:
                if number == last:
                    found.pop()
                title = self._layout.primitive(number)
                found.append(moving.shown(number, title, "computes", cells))
            last = number if moves is None else -1
        return found

    def _instructions(self, computation: str, depth: int) -> Iterator[tuple[Instruction, bool]]:
        for instruction in self._layout.module.computations.get(computation, {}).values():
            yield instruction, depth > 0
            if self._layout.moves(instruction) is None and depth < 12:
                for _, callee in instruction.calls:
                    yield from self._instructions(callee, depth + 1)


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
