"""`page`: all stages of a program in one file, each line linked to what became of it.

Input: a function and its arguments.  Output: a `Page`: data, and a file that needs no network.
The program is lowered anew, with numbers in its locations: other calls notice nothing.
"""

from __future__ import annotations

import base64
import copy
import gzip
import html
import itertools
import json
import tempfile
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from minijax.core import config
from minijax.core.aval import AbstractValue
from minijax.core.jaxpr import ClosedJaxpr
from minijax.explain.pages import (
    calls,
    columns,
    devices,
    marking,
    partitions,
    reasons,
    recording,
    sources,
    transformed,
    variables,
    waiting,
)
from minijax.explain.pages.columns import Column
from minijax.explain.pages.marking import Marked
from minijax.explain.pages.partitions import Partitioned
from minijax.explain.pages.sources import Place
from minijax.explain.pages.variables import Watched
from minijax.interpreters import discharge
from minijax.lowering import planning, program
from minijax.transforms.jit.jit import jitted
from minijax.transforms.jit.stages import Lowered, Traced

Data = dict[str, Any]
"""JSON."""

VERSION = 1
_LONG = 1 << 20
_PARTITIONER = "spmd-partitioning"
_MOST_IN_A_BOX = 40
_MOST_GROUPS = 40
_MOST_ENDS = 8
_DEEPEST = 6
_ROLES = {"primal": "the function", "batched": "batches"}
_ASSETS = Path(__file__).parent / "assets"


class Page:
    """The stages of a program, linked: shows itself in a notebook, and is saved as one file.

    Attributes:
        name: the name of the function.
        data: what the page shows, as JSON: `columns` of text, the `equations` to which their lines
            belong, and `values` of arguments and results, among others.

    Source:     minijax's own.

    Example:
        >>> page = jax.explain.page(lambda x: 2 * jnp.sin(x))(1.0)
        >>> [column["key"] for column in page.data["columns"]]
        ['python', 'jaxpr', 'stablehlo', 'optimized']
    """

    def __init__(self, name: str, data: Data) -> None:
        self.name = name
        self.data = data

    def html(self) -> str:
        """The page: one file that needs neither a network nor another file."""
        text = json.dumps(self.data, separators=(",", ":"), ensure_ascii=False)
        packed = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
        script = (_ASSETS / "page.js").read_text(encoding="utf-8")
        style = (_ASSETS / "page.css").read_text(encoding="utf-8")
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f"<title>{html.escape(self.name)} · minijax</title>"
            f"<style>{style}</style></head><body>"
            f'<script type="text/plain" id="data">{packed}</script>'
            f'<div id="page"></div><script>{script}</script></body></html>\n'
        )

    def save(self, path: str | Path) -> Path:
        """Writes the page to a file.

        Args:
            path: the file, such as "f.html".
        """
        file = Path(path)
        file.write_text(self.html(), encoding="utf-8")
        return file

    def open(self) -> Path:
        """Writes the page to a temporary file, and shows it in a browser."""
        with tempfile.NamedTemporaryFile(suffix=".html", delete=False) as made:
            file = self.save(made.name)
        webbrowser.open(file.as_uri())
        return file

    def _repr_html_(self) -> str:
        inside = html.escape(self.html(), quote=True)
        return f'<iframe srcdoc="{inside}" style="width:100%;height:640px;border:0"></iframe>'

    def __repr__(self) -> str:
        stages = ", ".join(column["title"] for column in self.data["columns"])
        return f"Page of {self.name}: {len(self.data['equations'])} equations; {stages}"


def page(function: Callable[..., Any]) -> Callable[..., Page]:
    """Makes a page of a function: its source, its jaxpr and all that becomes of it, linked.

    The result is to be called with the function's arguments: arrays, or `ShapeDtypeStruct`s with
    shardings.  The function is staged and compiled for them; where all arguments have values and
    the program has no effects, it is run once, and the page shows what its equations have given.

    Source:     minijax's own.

    Args:
        function: a function, perhaps jitted, or a `pmap`.

    Returns:
        A function of the arguments that gives a `Page`.

    Raises:
        TypeError: `function` is not callable.

    Example:
        >>> page = jax.explain.page(lambda x: 2 * jnp.sin(x))(1.0)
        >>> page
        Page of <lambda>: 2 equations; Python, jaxpr, StableHLO, optimized HLO
        >>> [equation["name"] for equation in page.data["equations"]]
        ['sin', 'mul']
    """
    given = jitted("explain.page", function)

    def of(*args: Any, **kwargs: Any) -> Page:
        before = calls.traces_of(given)
        made = page_of(function, given, args, kwargs)
        made.data["calls"] = calls.calls_of(given, before, given.trace(*args, **kwargs).jaxpr)
        return made

    return of


def page_of(
    function: Callable[..., Any], given: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Page:
    """The page of a function for some arguments.

    Args:
        function: the function.
        given: the same, jitted.
        args: its arguments.
        kwargs: those that were given by name.
    """
    traced, watched = variables.traced(given, args, kwargs)
    marked, lowered = numbered(traced)
    found = _Making(lowered.fun_name, watched, traced.jaxpr, marked, sources.beginning_of(function))
    peeled = transformed.Peeled(function, args, kwargs, marked)
    return Page(lowered.fun_name, found.data(lowered, traced._args, peeled))


def numbered(traced: Traced) -> tuple[Marked, Lowered]:
    """A traced function, lowered anew with numbers in its locations."""
    marked = marking.mark(traced.jaxpr)
    again = copy.copy(traced)
    again._closed = marked.closed
    again._staged = traced._staged._replace(closed=marked.closed)
    return marked, again.lower()


class _Making:
    """Gathers what the page of one program shows."""

    def __init__(
        self,
        name: str,
        watched: Watched,
        closed: ClosedJaxpr,
        marked: Marked,
        outermost: Place | None,
    ) -> None:
        self._name = name
        self._watched = watched
        self._closed = closed
        self._marked = marked
        self._places = [sources.places_of(x, outermost) for x in marked.equations]
        self._outermost = outermost

    def data(self, lowered: Lowered, args: Sequence[Any], peeled: transformed.Peeled) -> Data:
        """All that the page shows.

        Args:
            lowered: the program with numbers.
            args: its arguments.
            peeled: what the function was before it was differentiated or mapped.
        """
        stages, partitioned = _stages(lowered)
        found = waiting.waiting(self._marked, self._closed, args)
        own = {key: frozenset({number}) for key, number in self._marked.numbers.items()}
        equations = self._equations(stages)
        roles = [equation["role"] for equation in equations]
        graph = _Graph(self._marked, self._closed, self._places, roles)
        by_shard_map = partitions.column_of_pmap(self._marked)
        if by_shard_map is not None:
            stages.insert(1, by_shard_map)
        python = sources.python_column(self._places, self._outermost)
        moments, of_equations = variables.shown(self._watched, self._marked, python)
        for equation, moment in zip(equations, of_equations, strict=True):
            equation["moment"] = moment
        shown = [
            python,
            *peeled.columns(),
            columns.jaxpr_column(own, self._closed, "jaxpr", "jaxpr"),
            *stages,
        ]
        return {
            "version": VERSION,
            "name": self._name,
            "columns": [column_data(column) for column in shown],
            "equations": equations,
            "moments": moments,
            "graph": {"nodes": graph.nodes, "edges": graph.edges},
            "devices": self._devices(found.stuck, partitioned),
            "derivative": peeled.derivative(),
            "batch": peeled.batch(),
            "stuck": found.stuck,
            "values": recording.record(self._marked, self._closed, args, may_run=found.may_run),
        }

    def _devices(self, stuck: Data | None, partitioned: Partitioned | None) -> Data | None:
        waits = [device["waits"] for device in stuck["devices"]] if stuck else []
        found = devices.steps_of(self._marked.equations, waits)
        if found is None and partitioned is not None and stuck is None:
            found = partitions.steps_of(partitioned, self._closed, self._marked.equations)
        for step in () if found is None else found["steps"]:
            places = self._places[step["number"]] if step["number"] >= 0 else ()
            step["line"] = places[0].text if places else ""
        return found

    def _equations(self, stages: Sequence[Column]) -> list[Data]:
        found = reasons.found_in(stages)
        pure, _ = discharge.discharge_jaxpr(self._marked.closed)
        alive = set(marking.left_in(program.cleaned(pure, keep_unused=True)[0].jaxpr))
        equations = self._marked.equations
        users = marking.uses(equations)
        known = reasons.Reasons()
        every = []
        for x, places in zip(equations, self._places, strict=True):
            there = {key: x.number in numbers for key, numbers in found}
            fate = reasons.fate_of(x, there, x.number in alive, equations)
            every.append(
                {
                    "number": x.number,
                    "name": x.eqn.primitive.name,
                    "holder": x.holder,
                    "depth": x.depth,
                    "types": [v.aval.str_short() for v in x.eqn.outvars],
                    "explained": reasons.explained(x),
                    "bytes": sum(_bytes(v.aval) for v in x.eqn.outvars),
                    "meaning": known.meaning_of(x),
                    "why": known.why(x, [equations[i] for i in users[x.number]]),
                    "role": known.origin_of(x).role,
                    "line": places[0].text if places else "",
                    "called": [place.text for place in places[1:]],
                    "fate": fate,
                }
            )
        return every


def _bytes(aval: AbstractValue) -> int:
    return int(getattr(aval, "size", 0) * getattr(getattr(aval, "dtype", None), "itemsize", 0))


def _stages(lowered: Lowered) -> tuple[list[Column], Partitioned | None]:
    """The columns of what becomes of a lowered program, and what devices have of it."""
    partitioned = None
    text = lowered.as_text(debug_info=True)
    found = [columns.mlir_column(text, "stablehlo", "StableHLO")]
    module = lowered.compiler_ir()
    is_split = bool(planning.meshes(module))
    if is_split:
        text = planning.propagated(module, debug_info=True)
        found.append(columns.mlir_column(text, "propagated", "after propagation"))
    if not lowered.has_devices:
        return found, None
    if not is_split:
        # A stored program has the numbers of the one that was stored, or none.
        with config.enable_compilation_cache(False):
            compiled = lowered.compile()
    else:
        with tempfile.TemporaryDirectory() as folder:
            options = {
                "xla_dump_to": folder,
                "xla_dump_hlo_as_text": True,
                "xla_dump_hlo_pass_re": _PARTITIONER,
                "xla_dump_large_constants": len(text) < _LONG,
            }
            compiled = lowered.compile(options)
            for path in sorted(Path(folder).glob(f"*after_{_PARTITIONER}*.txt"))[:1]:
                text = path.read_text(encoding="utf-8")
                partitioned = Partitioned(lowered, compiled, text)
                text = partitions.without_large_constants(text)
                found.append(columns.hlo_column(text, "partitioned", "one device's program"))
    found.append(columns.hlo_column(compiled.as_text(), "optimized", "optimized HLO"))
    return found, partitioned


def column_data(column: Column) -> Data:
    """A column as JSON."""
    lines = []
    for line in column.lines:
        own: Data = {"t": line.text, "d": line.depth}
        if line.numbers:
            own["n"] = sorted(line.numbers)
        if line.is_inferred:
            own["i"] = 1
        if line.row is not None:
            own["r"] = line.row
        lines.append(own)
    return {"key": column.key, "title": column.title, "language": column.language, "lines": lines}


class _Graph:
    """The program as boxes and arrows: a box for each equation, in that which holds it.

    Where there are many, those that one line of the user's has made stand in a box together.
    """

    def __init__(
        self,
        marked: Marked,
        closed: ClosedJaxpr,
        places: Sequence[Sequence[Place]],
        roles: Sequence[str],
    ) -> None:
        self._places = places
        self._roles = roles
        self._equations = marked.equations
        self.nodes: list[Data] = []
        self.edges: list[Data] = []
        self._groups = 0
        inside: dict[int | None, list[int]] = {}
        for x in marked.equations:
            inside.setdefault(x.holder, []).append(x.number)
        self._ends("in", "arguments", [_argument(closed, i) for i in range(len(closed.in_avals))])
        for holder, numbers in inside.items():
            self._place_by_role(numbers, None if holder is None else str(holder))
        self._ends("out", "results", [f"result {i}" for i in range(len(closed.out_avals))])
        self._connect(closed)
        taken = {edge["from"] for edge in self.edges}
        for node in self.nodes:
            if node["id"].startswith("in") and node["id"] not in taken:
                node["label"] += ", unused"

    def _ends(self, key: str, title: str, labels: Sequence[str]) -> None:
        """Arguments or results, in a box if they are many."""
        parent = None
        if len(labels) > _MOST_ENDS:
            parent = f"g{key}"
            self.nodes.append({"id": parent, "label": f"{title} ({len(labels)})", "in": None})
        for i, label in enumerate(labels):
            self.nodes.append({"id": f"{key}{i}", "label": label, "in": parent})

    def _place_by_role(self, numbers: Sequence[int], parent: str | None) -> None:
        """Puts equations into a box: if they are many, the derivative into one of its own."""
        by_role: dict[str, list[int]] = {}
        for number in numbers:
            by_role.setdefault(self._roles[number], []).append(number)
        if len(numbers) <= _MOST_IN_A_BOX or len(by_role) == 1:
            self._place(numbers, parent, 1)
            return
        for role, own in by_role.items():
            name = self._group(f"{_ROLES.get(role, role)} ({len(own)})", parent)
            self._place(own, name, 1)

    def _group(self, label: str, parent: str | None) -> str:
        """A new box."""
        name = f"g{self._groups}"
        self._groups += 1
        self.nodes.append({"id": name, "label": label, "in": parent})
        return name

    def _place(self, numbers: Sequence[int], parent: str | None, level: int) -> None:
        """Puts equations into a box, in groups if they are many."""
        if len(numbers) <= _MOST_IN_A_BOX:
            for number in numbers:
                label = self._equations[number].eqn.primitive.name
                self.nodes.append({"id": str(number), "label": label, "in": parent})
            return
        runs = [list(run) for _, run in itertools.groupby(numbers, lambda n: self._at(n, level))]
        if len(runs) == 1 and level < _DEEPEST:
            self._place(numbers, parent, level + 1)
            return
        if not 1 < len(runs) <= _MOST_GROUPS:
            size = -(-len(numbers) // _MOST_GROUPS)
            runs = [list(numbers[i : i + size]) for i in range(0, len(numbers), size)]
        for run in runs:
            same = {self._at(number, level) for number in run}
            known = same.pop() if len(same) == 1 else None
            label = known.text if known else f"equations {run[0]} to {run[-1]}"
            self._place(run, self._group(f"{label} ({len(run)})", parent), level + 1)

    def _at(self, number: int, level: int) -> Place | None:
        places = self._places[number]
        return places[-level] if level <= len(places) else None

    def _connect(self, closed: ClosedJaxpr) -> None:
        givers = {id(var): f"in{i}" for i, var in enumerate(closed.jaxpr.invars)}
        for x in self._equations:
            own = str(x.number)
            for atom in {id(v): v for v in x.eqn.invars}.values():
                if id(atom) in givers:
                    label = atom.aval.str_short()
                    self.edges.append({"from": givers[id(atom)], "to": own, "label": label})
            givers.update((id(v), own) for v in x.eqn.outvars)
        for i, out in enumerate(closed.jaxpr.outvars):
            if id(out) in givers:
                label = out.aval.str_short()
                self.edges.append({"from": givers[id(out)], "to": f"out{i}", "label": label})


def _argument(closed: ClosedJaxpr, number: int) -> str:
    names = closed.jaxpr.debug_info.arg_names
    known = names is not None and number < len(names)
    return str(names[number]) if names is not None and known else f"argument {number}"
