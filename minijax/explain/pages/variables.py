"""Which tracers the user's variables hold while each equation is written down.

Input: a function that is traced.  Output: for each equation the variables of the functions that
were running, with the types of what they held.  Python tells this thread's calls to a profiler
while a page traces; other calls are as they were, and pay nothing.
"""

from __future__ import annotations

import contextlib
import dis
import io
import itertools
import linecache
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple

from minijax.core import config, source, tree
from minijax.core.cache import cached
from minijax.core.jaxpr import ClosedJaxpr, Eqn, Var
from minijax.core.trace import Tracer
from minijax.explain.pages import marking, sources
from minijax.explain.pages.columns import Column
from minijax.explain.pages.marking import Marked
from minijax.interpreters import recordings, staging
from minijax.transforms.jit.stages import Traced

Data = dict[str, Any]
"""JSON."""

# The functions that write equations down, and what in them the trace is called.
_WRITERS = {staging.StagingTrace.process.__code__: "self", recordings.call.__code__: "trace"}
_MOST_TYPES = 4
_MOST_SHOWN = 16


class Held(NamedTuple):
    """A variable of the user's that holds a tracer, or a tree of some.

    Attributes:
        file: the file of the function.
        row: the line that gave the variable its value.
        name: its name.
        type: the types of the tracers.
        tracer: the class of the first.
        variable: the variable of the jaxpr that the first stands for, if it is one.
    """

    file: str
    row: int
    name: str
    type: str
    tracer: str
    variable: Var | None


Moment = tuple[Held, ...]
"""What variables held while an equation was written down."""


class Recorder:
    """Remembers what variables hold whenever a trace has written down an equation.

    Attributes:
        moments: by the identity of each equation what variables held.
    """

    def __init__(self) -> None:
        self.moments: dict[int, Moment] = {}
        self._equations: list[Eqn] = []
        # The function whose variables were read last; its frame itself would keep tracers alive.
        self._reader = 0
        self._last: Moment = ()

    def __call__(self, frame: FrameType, event: str, result: object) -> None:
        """What Python tells a profiler."""
        if event == "call":
            if id(frame.f_back) == self._reader:
                # The function has gone on: its variables may have changed.
                self._reader = 0
        elif event == "return":
            if id(frame) == self._reader:
                self._reader = 0
            elif result is not None and frame.f_code in _WRITERS:
                self._keep(frame, frame.f_locals[_WRITERS[frame.f_code]].eqns)

    def _keep(self, frame: FrameType, written: Sequence[Eqn]) -> None:
        for eqn in reversed(written):
            if id(eqn) in self.moments:
                return
            # Equations are kept, so that their identity stays taken.
            self._equations.append(eqn)
            self.moments[id(eqn)] = self._moment(frame)

    def _moment(self, frame: FrameType | None) -> Moment:
        running = []
        while frame is not None and not frame.f_code.co_filename.startswith(sources.OWN_FOLDER):
            if not source.is_internal(frame.f_code.co_filename):
                running.append(frame)
            frame = frame.f_back
        if not running:
            return ()
        if id(running[0]) != self._reader:
            self._reader = id(running[0])
            found = itertools.chain.from_iterable(map(_held_in, running))
            self._last = tuple(itertools.islice(found, _MOST_SHOWN))
        return self._last


class Watched(NamedTuple):
    """A trace that was watched.

    Attributes:
        closed: the program.
        moments: by the identity of each equation what variables held.
    """

    closed: ClosedJaxpr
    moments: Mapping[int, Moment]


def traced(given: Any, args: tuple[Any, ...], kwargs: Data) -> tuple[Traced, Watched]:
    """A function, traced, and what its variables held meanwhile.

    A function that was traced before is traced again, for its variables alone.

    Args:
        given: a jitted function.
        args: its arguments.
        kwargs: those that are given by name.
    """
    with _recorded() as recorder:
        found = given.trace(*args, **kwargs)
    closed = found.jaxpr
    half = getattr(given, "jit_function", getattr(given, "pmap_function", None))
    is_new = any(id(eqn) in recorder.moments for eqn in closed.jaxpr.eqns)
    if is_new or half is None or config.no_tracing.value:
        return found, Watched(closed, recorder.moments)
    _, positions, num_args, key = half.signature(args, kwargs)
    in_tree, avals, statics, *_ = key
    # What it prints, it has printed before.
    with _recorded() as recorder, contextlib.redirect_stdout(io.StringIO()):
        closed = half._stage(in_tree, avals, statics, positions, num_args).closed
    return found, Watched(closed, recorder.moments)


@contextlib.contextmanager
def _recorded() -> Iterator[Recorder]:
    """Remembers what variables hold in what this thread traces inside."""
    recorder = Recorder()
    before = sys.getprofile()
    sys.setprofile(recorder)
    try:
        yield recorder
    finally:
        sys.setprofile(before)


def shown(
    watched: Watched, marked: Marked, column: Column
) -> tuple[list[list[Data]], list[int | None]]:
    """What the page shows of variables: the different moments, and which of them each equation has.

    Args:
        watched: the trace.
        marked: the program of the page, with numbers.
        column: its Python, beside which variables stand.
    """
    own = marking.mark(watched.closed).equations
    primitives = [[x.eqn.primitive for x in equations] for equations in (own, marked.equations)]
    if primitives[0] != primitives[1]:
        return [], [None] * len(marked.equations)
    givers = {id(v): x.number for x in own for v in x.eqn.outvars}
    lines = {(line.file, line.row): i for i, line in enumerate(column.lines)}
    places: dict[Moment, int] = {}
    of_equations: list[int | None] = []
    for x in own:
        moment = watched.moments.get(id(x.eqn))
        known = tuple(h for h in moment or () if (h.file, h.row) in lines)
        of_equations.append(places.setdefault(known, len(places)) if known else None)
    moments: list[Data] = [
        {
            "line": lines[held.file, held.row],
            "name": held.name,
            "type": held.type,
            "tracer": held.tracer,
            "n": givers.get(id(held.variable)),
        }
        for moment in places
        for held in moment
    ]
    ends = itertools.accumulate(map(len, places))
    return [moments[end - len(m) : end] for m, end in zip(places, ends, strict=True)], of_equations


def _held_in(frame: FrameType) -> Iterator[Held]:
    """The variables of a function that is running which hold tracers, in its own order."""
    code = frame.f_code
    for name, value in frame.f_locals.items():
        tracers = [x for x in _leaves(value) if isinstance(x, Tracer)]
        if not tracers or name.startswith("."):
            continue
        types = [x.aval.str_short() for x in tracers[:_MOST_TYPES]]
        if len(tracers) > _MOST_TYPES:
            types.append(f"… {len(tracers)} in all")
        row = _row_of(code, name, frame.f_lineno)
        variable = _variable_of(tracers[0]) if value is tracers[0] else None
        kind = type(tracers[0]).__name__
        yield Held(code.co_filename, row, name, " ".join(types), kind, variable)


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, Tracer):
        return [value]
    # A user's class may be taken apart before it is whole, and raise what it likes.
    with contextlib.suppress(Exception):
        return tree.leaves(value)
    return []


def _variable_of(x: Any) -> Var | None:
    """The variable that a tracer stands for, below those of derivatives and batches."""
    while x is not None and not isinstance(x, staging.StagingTracer):
        x = getattr(x, "primal", getattr(x, "value", None))
    return None if x is None else x.variable


def _row_of(code: CodeType, name: str, now: int) -> int:
    """The line that has given a variable its value: the last one so far that does so."""
    rows = _stores(code).get(name)
    if not rows or (name in code.co_varnames[: code.co_argcount] and rows[0] > now):
        return _first_row(code)
    return max((row for row in rows if row <= now), default=rows[-1])


@cached("assignments", key="the code of a function", most=256, emptied=True)
def _stores(code: CodeType) -> dict[str, list[int]]:
    """The lines on which a function gives values to its variables."""
    found: dict[str, set[int]] = {}
    for step in dis.get_instructions(code):
        row = step.positions.lineno if step.positions else None
        if row is not None:
            for name in stored_names(step):
                found.setdefault(name, set()).add(row)
    return {name: sorted(rows) for name, rows in found.items()}


def stored_names(step: dis.Instruction) -> list[str]:
    """Returns the names that an instruction assigns to.

    Since Python 3.13, one instruction can do two things: STORE_FAST_STORE_FAST assigns to both of
    its variables, STORE_FAST_LOAD_FAST to the first one.
    """
    names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
    actions = [part for part in step.opname.split("_") if part in {"STORE", "LOAD"}]
    return [str(x) for x, action in zip(names, actions, strict=False) if action == "STORE"]


def _first_row(code: CodeType) -> int:
    """The line on which a function is defined, below its decorators."""
    lines = linecache.getlines(code.co_filename)
    for row in range(code.co_firstlineno, min(len(lines), code.co_firstlineno + 20) + 1):
        if not lines[row - 1].lstrip().startswith("@"):
            return row
    return code.co_firstlineno
