"""`compare`: what if the arguments were placed otherwise?

Input: a function, a mesh that need not have devices, and choices of specs.  Output: for each choice
what Shardy plans: collectives, bytes over each axis, memory, and the time that these bytes take.
Prints as a table, shows itself in notebooks, and makes a page that steps through the choices.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import tree
from minijax.core.errors import error
from minijax.core.meshes import AbstractMesh, MeshAxes, PartitionSpec
from minijax.explain import communication, plans
from minijax.explain.pages import columns, making, marking
from minijax.explain.pages.making import Data, Page
from minijax.explain.plans import Plan, PlannedValue
from minijax.lowering import planning
from minijax.sharding import contexts
from minijax.sharding.mesh import Mesh
from minijax.sharding.named import NamedSharding
from minijax.transforms.jit.jit import jitted
from minijax.transforms.jit.stages import ShapeDtypeStruct

LINK_SPEED = 50e9
"""Bytes that a device sends over an axis in a second: a link of 400 Gbit/s."""

_MOST_DEVICES = 256
_MOST_TILES = 64
_LONGEST_NAME = 24
_COLORS = (
    "#8ecdf0", "#f6cf73", "#7fd1b9", "#f2a98b", "#dcb3cf", "#f3ec9b", "#a9c4e4", "#d9d9d9",
)  # fmt: skip
_MOVES = re.compile(rf"\b(?:sdy|stablehlo)\.(?:{'|'.join(communication.KINDS)})\b")
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


class Choice(NamedTuple):
    """One way to place the arguments, and what follows.

    Source:     minijax's own.

    Attributes:
        name: what it is called.
        plan: what `explain.plan` says of it.
        seconds_by_axis: how long the bytes take that one device sends over each axis.

    Example:
        >>> mesh = jax.sharding.AbstractMesh((8,), ("x",))
        >>> x = jax.ShapeDtypeStruct((1024,), jnp.float32)
        >>> choice = jax.explain.compare(jnp.sum, mesh, [jax.P("x")])(x)[0]
        >>> choice.name, choice.memory, choice.plan[0].kind
        ("P('x',)", 516, 'all_reduce')
    """

    name: str
    plan: Plan
    seconds_by_axis: dict[str, float]

    @property
    def memory(self) -> int:
        """The bytes of arguments and results on each device; temporaries are not counted."""
        return sum(x.local_bytes for x in (*self.plan.arguments, *self.plan.results))

    @property
    def seconds(self) -> float:
        """How long the collectives take, one after another."""
        return sum(self.seconds_by_axis.values())

    @property
    def counts(self) -> dict[str, int]:
        """How many collectives of each kind there are."""
        kinds = [x.kind for x in self.plan]
        return {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}


class Comparison(communication.Listing[Choice]):
    """The choices in the order in which they were given.  Prints as tables.

    Source:     minijax's own.

    Attributes:
        name: the name of the function.
        mesh: the mesh.
        link_speeds: for each axis the bytes that a device sends in a second.

    Example:
        >>> mesh = jax.sharding.AbstractMesh((8,), ("x",))
        >>> x = jax.ShapeDtypeStruct((1024,), jnp.float32)
        >>> found = jax.explain.compare(jnp.sum, mesh, {"split": jax.P("x"), "whole": jax.P()})(x)
        >>> min(found, key=lambda choice: choice.seconds).name
        'whole'
    """

    def __init__(
        self,
        name: str,
        mesh: MeshAxes,
        link_speeds: Mapping[str, float],
        found: Sequence[Choice],
        make_page: Callable[[Comparison], Page],
    ) -> None:
        self.name = name
        self.mesh = mesh
        self.link_speeds = dict(link_speeds)
        self._found = tuple(found)
        self._make_page = make_page

    @property
    def data(self) -> Data:
        """The comparison as JSON: the mesh, the speeds of its axes, and each choice."""
        return {
            "mesh": [[name, size] for name, size in self.mesh.shape_tuple],
            "speeds": self.link_speeds,
            "choices": [_choice_data(choice, self.mesh) for choice in self],
        }

    def page(self) -> Page:
        """A page of the function that steps through the choices."""
        return self._make_page(self)

    def save(self, path: str) -> Any:
        """Writes the page to a file.

        Args:
            path: the file, such as "f.html".
        """
        return self.page().save(path)

    def _headline(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self.mesh.shape_tuple)
        speeds = [f"{speed / 1e9:.4g} GB/s" for speed in self.link_speeds.values()]
        if len(set(speeds)) > 1:
            named = zip(self.link_speeds, speeds, strict=True)
            speeds = [", ".join(f"{speed} over {axis}" for axis, speed in named)]
        return f"{self.name} on {self.mesh.size} devices ({sizes}), links of {speeds[0]}"

    def _table(self) -> tuple[list[str], list[list[str]]]:
        axes = [axis for axis in self.link_speeds if any(_sent(x, axis) for x in self)]
        titles = ["choice", "collectives", *(f"sent over {axis}" for axis in axes)]
        rows = [
            [
                choice.name,
                ", ".join(f"{n} {kind}" for kind, n in choice.counts.items()) or "none",
                *(communication.bytes_text(_sent(choice, axis)) for axis in axes),
                communication.bytes_text(choice.memory),
                seconds_text(choice.seconds),
            ]
            for choice in self
        ]
        return [*titles, "memory", "time"], rows

    def _lines(self) -> Iterator[str]:
        titles, rows = self._table()
        yield self._headline()
        yield ""
        yield from communication.table(titles, rows, titles[2:])
        if not all(x.is_bounded for choice in self for x in choice.plan):
            yield "loops of unknown length are counted once"
        for choice in self:
            titles = [choice.name, "type", "sharding", "bytes on each device"]
            values = (*choice.plan.arguments, *choice.plan.results)
            yield ""
            yield from communication.table(titles, [x.cells for x in values])

    def _repr_html_(self) -> str:
        titles, rows = self._table()
        titles = [*titles, *(x.name for x in self[0].plan.arguments)] if self._found else titles
        shown = [[html.escape(cell) for cell in row] for row in rows]
        for choice, row in zip(self, shown, strict=True):
            row += [_picture(value, self.mesh) for value in choice.plan.arguments]
        style = "text-align:left;vertical-align:top;padding:3px 12px 3px 0;background:none"
        head = "".join(f'<th style="{style}">{html.escape(title)}</th>' for title in titles)
        body = "".join(
            f'<tr style="background:none">{"".join(map(_cell(style), row))}</tr>' for row in shown
        )
        return (
            f'<div style="font-size:13px"><b>{html.escape(self._headline())}</b>'
            f'<table style="border-collapse:collapse;font-size:12.5px;margin:4px 0;color:inherit">'
            f'<tr style="background:none;border-bottom:1px solid #787878">{head}</tr>{body}'
            f"</table></div>"
        )


def _cell(style: str) -> Callable[[str], str]:
    return lambda inside: f'<td style="{style}">{inside}</td>'


def _sent(choice: Choice, axis: str) -> float:
    return choice.plan.moved_by_axis.get(axis, 0.0)


def seconds_text(seconds: float) -> str:
    """A time with a unit."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return "0 s" if seconds == 0 else f"{seconds / 1e-9:.3g} ns"


def compare(
    function: Callable[..., Any],
    mesh: Mesh | AbstractMesh,
    specs: Mapping[str, Any] | Sequence[Any],
    *,
    link_speed: float | Mapping[str, float] = LINK_SPEED,
) -> Callable[..., Comparison]:
    """Compares ways to place the arguments of a function over a mesh that need not exist.

    Each choice is planned as `explain.plan` plans it, in a model of cost: what one device sends
    over an axis takes its bytes, divided by the speed of the axis; one collective follows another,
    and neither their number nor what is computed meanwhile changes the time.

    Source:     minijax's own.

    Args:
        function: a function, perhaps jitted.
        mesh: an `AbstractMesh`, or a `Mesh` whose devices do not matter.
        specs: the choices, by name or in order.  Each is a `PartitionSpec` for all arguments, or
            a tuple with an entry for each argument, which may be a tree; None leaves the argument
            to Shardy.
        link_speed: the bytes that one device sends over an axis in a second, of each axis or of
            all.  By default 50e9: a link of 400 Gbit/s.

    Returns:
        A function of the arguments, arrays or `ShapeDtypeStruct`s, whose shardings do not matter.
        It gives a `Comparison`: a sequence of choices that prints as tables, shows itself in a
        notebook, and has `data`, `page()` and `save("f.html")`.

    Raises:
        TypeError: `function` is not callable, or `mesh` is not a mesh.
        ValueError: there is no choice, a speed is missing or not positive, specs do not fit the
            arguments, or an argument cannot be cut into equal parts.

    Example:
        >>> mesh = jax.sharding.AbstractMesh((8,), ("x",))
        >>> w = jax.ShapeDtypeStruct((1024, 1024), jnp.float32)
        >>> x = jax.ShapeDtypeStruct((512, 1024), jnp.float32)
        >>> choices = {"data": (jax.P(), jax.P("x")), "model": (jax.P(None, "x"), jax.P())}
        >>> print(jax.explain.compare(lambda w, x: jnp.sum(x @ w), mesh, choices)(w, x))
        <lambda> on 8 devices (x=8), links of 50 GB/s
        <BLANKLINE>
        choice  collectives   sent over x    memory    time
        data    1 all_reduce          7 B  4.25 MiB  0.14 ns
        model   1 all_reduce          7 B   2.5 MiB  0.14 ns
        ...
    """
    given = jitted("explain.compare", function)
    planned = plans.plan(function, mesh)
    choices = _named(specs)
    speeds = _speeds(link_speed, mesh)
    abstract = mesh.abstract_mesh

    def of(*args: Any, **kwargs: Any) -> Comparison:
        placed = {name: _placed(spec, args, abstract) for name, spec in choices.items()}
        found = []
        for name, own in placed.items():
            try:
                plan = planned(*own, **kwargs)
            except Exception as caught:
                caught.add_note(f"while planning the choice {name}")
                raise
            seconds = {axis: sent / speeds[axis] for axis, sent in plan.moved_by_axis.items()}
            found.append(Choice(name, plan, seconds))

        def make_page(comparison: Comparison) -> Page:
            with contexts.use_abstract_mesh(abstract):
                return _page(comparison, function, given, list(placed.values()), kwargs)

        return Comparison(found[0].plan.name, abstract, speeds, found, make_page)

    return of


def _named(specs: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    is_one = isinstance(specs, PartitionSpec)
    if is_one or not isinstance(specs, (Mapping, Sequence)) or not specs:
        problem = "expected at least one choice of specs."
        fix = "{'rows': P('x'), 'whole': P()}, or a list of specs"
        error(ValueError, "explain.compare", problem, got=repr(specs), fix=fix)
    if isinstance(specs, Mapping):
        return {str(name): spec for name, spec in specs.items()}
    names = [_name(spec) for spec in specs]
    if len(set(names)) < len(names) or max(map(len, names)) > _LONGEST_NAME:
        names = [str(number) for number in range(1, len(names) + 1)]
    return dict(zip(names, specs, strict=True))


def _name(spec: Any) -> str:
    if isinstance(spec, tuple) and not isinstance(spec, PartitionSpec):
        return " ".join(map(_name, spec))
    return repr(spec)


def _speeds(given: float | Mapping[str, float], mesh: Mesh | AbstractMesh) -> dict[str, float]:
    axes = list(map(str, mesh.axis_names))
    speeds = given if isinstance(given, Mapping) else dict.fromkeys(axes, given)
    wrong = [axis for axis in axes if not (speeds.get(axis, 0) > 0)]
    if wrong:
        problem = f"the axis {wrong[0]} needs a speed above zero."
        fix = f"link_speed={LINK_SPEED:g}, or a speed for each of {', '.join(axes)}"
        error(ValueError, "explain.compare", problem, got=f"link_speed={given!r}", fix=fix)
    return {axis: float(speeds[axis]) for axis in axes}


def _placed(spec: Any, args: tuple[Any, ...], mesh: AbstractMesh) -> tuple[Any, ...]:
    """The types of the arguments, placed as a choice says."""
    spec = tuple(spec) if isinstance(spec, list) else spec
    found = tree.broadcast_prefix(
        spec,
        args,
        lambda x: x is None or isinstance(x, PartitionSpec),
        user="explain.compare",
        first="a choice of specs",
        second="the tuple of arguments",
    )
    leaves, structure = tree.flatten(args)
    placed = [_struct(x, one, mesh) for x, one in zip(leaves, found, strict=True)]
    placed_args: tuple[Any, ...] = tree.unflatten(structure, placed)
    return placed_args


def _struct(x: Any, spec: PartitionSpec | None, mesh: AbstractMesh) -> Any:
    x = x if hasattr(x, "shape") else np.asarray(x)
    sharding = None if spec is None else NamedSharding(mesh, spec)
    weak = getattr(x, "weak_type", False)
    return ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding, weak_type=weak)


def _choice_data(choice: Choice, mesh: MeshAxes) -> Data:
    return {
        "name": choice.name,
        "seconds": choice.seconds,
        "times": choice.seconds_by_axis,
        "moved": choice.plan.moved_by_axis,
        "memory": choice.memory,
        "collectives": [
            {
                "kind": x.kind,
                "axes": None if x.axes is None else list(x.axes),
                "result": x.result,
                "bytes": x.bytes,
                "times": x.times,
                "moved": x.moved,
                "inside": list(x.inside),
                "line": "" if x.line is None else str(x.line),
            }
            for x in choice.plan
        ],
        "arguments": [_value_data(x, mesh) for x in choice.plan.arguments],
        "results": [_value_data(x, mesh) for x in choice.plan.results],
    }


def _value_data(value: PlannedValue, mesh: MeshAxes) -> Data:
    name, type_, spec, _ = value.cells
    tiles = _tiles(value, mesh)
    found: Data = {"name": name, "type": type_, "spec": spec, "bytes": value.local_bytes}
    found["tiles"] = tiles
    return found


def _tiles(value: PlannedValue, mesh: MeshAxes) -> list[list[list[int]]] | None:
    """Which devices hold which tile of a value, as a matrix; None where there are too many.

    Rows and columns are the last two dimensions that are split, or the last two.
    """
    sizes = dict(mesh.shape_tuple)
    entries = [_axes_of(entry) for entry in (*value.spec, *[None] * len(value.shape))]
    entries = entries[: len(value.shape)]
    split = [d for d, axes in enumerate(entries) if axes]
    rest = [d for d in range(len(value.shape)) if d not in split]
    shown = sorted((rest + split)[-2:])
    if mesh.size > _MOST_DEVICES or any(axis not in sizes for axes in entries for axis in axes):
        return None
    cuts = [entries[d] for d in shown]
    counts = [math.prod(sizes[axis] for axis in axes) for axes in cuts]
    rows, across = [1, 1, *counts][-2:]
    if rows * across > _MOST_TILES:
        return None
    found: list[list[list[int]]] = [[[] for _ in range(across)] for _ in range(rows)]
    for number, place in enumerate(np.ndindex(*mesh.axis_sizes)):
        at = dict(zip(mesh.axis_names, place, strict=True))
        row, column = [0, 0, *(_position(axes, at, sizes) for axes in cuts)][-2:]
        found[row][column].append(number)
    return found


def _axes_of(entry: Any) -> tuple[str, ...]:
    if entry is None:
        return ()
    return tuple(entry) if isinstance(entry, tuple) else (entry,)


def _position(axes: Sequence[str], at: Mapping[Any, int], sizes: Mapping[Any, int]) -> int:
    """Which part of a dimension a device has."""
    position = 0
    for axis in axes:
        position = position * sizes[axis] + at[axis]
    return position


def _picture(value: PlannedValue, mesh: MeshAxes) -> str:
    """Who holds which tile of a value, as HTML."""
    _, type_, spec, local = value.cells
    text = f"{html.escape(type_)}<br>{html.escape(spec)}, {local}"
    tiles = _tiles(value, mesh)
    if tiles is None:
        return text
    rows = "".join(f'<tr style="background:none">{"".join(map(_tile, row))}</tr>' for row in tiles)
    return f'{text}<table style="border-collapse:collapse;margin:2px 0">{rows}</table>'


def _tile(devices: Sequence[int]) -> str:
    shown = ",".join(map(str, devices[:4])) + (",…" if len(devices) > 4 else "")
    color = _COLORS[devices[0] % len(_COLORS)]
    style = f"background:{color};color:#14171c;border:1px solid #fff;padding:1px 6px"
    title = ", ".join(map(str, devices))
    return f'<td title="{title}" style="{style};text-align:center;font-size:11px">{shown}</td>'


def _page(
    comparison: Comparison,
    function: Callable[..., Any],
    given: Any,
    placed: Sequence[tuple[Any, ...]],
    kwargs: dict[str, Any],
) -> Page:
    """The page of the first choice, with a column for each, and what is compared."""
    page = making.page_of(function, given, placed[0], kwargs)
    data = page.data
    data["columns"] = [c for c in data["columns"] if c["key"] in ("python", "jaxpr", "stablehlo")]
    what_if = comparison.data
    for i, (choice, args) in enumerate(zip(what_if["choices"], placed, strict=True)):
        lowered = making.numbered(given.trace(*args, **kwargs))[1]
        text = planning.propagated(lowered.compiler_ir(), debug_info=True, is_partitioned=True)
        column = columns.mlir_column(text, f"choice{i}", f"{choice['name']}: planned")
        moving = list(_moving(column))
        # A function that is called twice stands in the text once.
        if len(moving) == len(choice["collectives"]):
            for collective, numbers in zip(choice["collectives"], moving, strict=True):
                collective["n"] = sorted(numbers)
        data["columns"].append(making.column_data(column))
    data["whatIf"] = what_if
    return page


def _moving(column: columns.Column) -> Iterator[marking.Numbers]:
    """The equations of the lines that move data, in order."""
    for line in column.lines:
        if _MOVES.search(line.text):
            yield line.numbers
