"""Why was it compiled again?  `retraces` lists the causes, `no_retrace` makes them errors.

Input: the records of `core.history`.  Output: a report that names, for each trace after the first,
the argument and what changed with respect to the nearest earlier one, with the remedy.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from minijax.core import deferral, history, source
from minijax.core.errors import RetraceError, error
from minijax.explain import differences
from minijax.explain.differences import Change
from minijax.interpreters import flattening

_SHOWN_OF_A_CAUSE = 5
_CAUSES_OF_NEW_FUNCTIONS = frozenset(
    {
        differences.Cause.FUNCTION,
        differences.Cause.PARTIAL,
        differences.Cause.METHOD,
        differences.Cause.CALLABLE,
        differences.Cause.CAPTURED,
    }
)


class Retrace(NamedTuple):
    """One trace or compilation that an earlier one might have spared.

    Source:     minijax's own.

    Attributes:
        function: the name of the function.
        step: "traced" or "compiled".
        at: the user's line of the call.
        earlier: the line of the nearest earlier trace or compilation.
        inside: the function that was being traced at the time, if any.
        changes: what differs from it.

    Example:
        >>> f = jax.jit(lambda x: x + 1)
        >>> _ = f(1), f(1.0)
        >>> [retrace.step for retrace in jax.explain.retraces(f).retraces]
        ['traced']
    """

    function: str
    step: str
    at: str
    earlier: str
    inside: str
    changes: tuple[Change, ...]

    def __str__(self) -> str:
        inside = f", inside {self.inside}" if self.inside else ""
        head = f"{self.function} was {self.step} again at {self.at}{inside}"
        lines = [f"{head}; the nearest before was at {self.earlier}"]
        lines += [f"  {line}" for line in _change_lines(self.changes)]
        lines += [f"    fix: {remedy}" for remedy in _remedies(self.changes)]
        return "\n".join(lines)


class Report:
    """What `retraces` found: iterates over the changes, prints as text, shows as a table.

    Source:     minijax's own.

    Example:
        >>> f = jax.jit(lambda x: x + 1)
        >>> _ = f(1), f(1.0)
        >>> report = jax.explain.retraces(f)
        >>> report.traces, [str(change.cause) for change in report]
        (2, ['type of a Python scalar'])
    """

    def __init__(self, name: str, traces: int, compilations: int, found: Sequence[Retrace]) -> None:
        self.name = name
        self.traces = traces
        self.compilations = compilations
        self.retraces = tuple(found)

    def __iter__(self) -> Iterator[Change]:
        for retrace in self.retraces:
            yield from retrace.changes

    def __len__(self) -> int:
        return sum(len(retrace.changes) for retrace in self.retraces)

    def __getitem__(self, index: int) -> Change:
        return list(self)[index]

    def __bool__(self) -> bool:
        return bool(self.retraces)

    @property
    def headline(self) -> str:
        """One sentence that says how often."""
        return (
            f"{self.name}: traced {_times(self.traces)}, compiled {_times(self.compilations)}; "
            f"{len(self.retraces)} of these after an earlier one that did not serve"
        )

    def __str__(self) -> str:
        return "\n".join([self.headline, *map(str, self.retraces)])

    __repr__ = __str__
    _repr_html_ = deferral.shown


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _change_lines(changes: Sequence[Change]) -> list[str]:
    """One line for each change, but only a few of each cause: trees have thousands of leaves."""
    counts: dict[str, int] = {}
    lines = []
    for change in changes:
        counts[change.cause] = counts.get(change.cause, 0) + 1
        if counts[change.cause] <= _SHOWN_OF_A_CAUSE:
            lines.append(str(change))
    for cause, count in counts.items():
        if count > _SHOWN_OF_A_CAUSE:
            lines.append(f"... and {count - _SHOWN_OF_A_CAUSE} more: {cause}")
    return lines


def _remedies(changes: Sequence[Change]) -> list[str]:
    return list(dict.fromkeys(change.remedy for change in changes))


def retraces(function: Callable[..., Any] | None = None) -> Report:
    """Tells why a jitted function was traced or compiled more than once.

    Each trace is compared with the nearest earlier one of the function, or of a function that the
    same line made from the same code: `jit` called anew in a loop is a cause as well.  The last 32
    traces of a function are remembered.

    Source:     minijax's own.

    Args:
        function: a jitted function, or one that was given to `jit`; None: all functions.

    Returns:
        An iterable of changes, each with `argument`, `cause`, `before`, `after`, `remedy` and the
        user's line `at`; its text tells the same in sentences.

    Raises:
        TypeError: `function` is not callable.

    Example:
        >>> f = jax.jit(lambda x: x + 1)
        >>> _ = f(jnp.ones(3)), f(jnp.ones(4))
        >>> print(jax.explain.retraces(f))
        <lambda>: traced 2 times...
        <lambda> was traced again at ...:1; the nearest before was at ...:1
          x: shape, f32[3] -> f32[4]
            fix: pad the argument to one of a few fixed shapes; a program is made for each
    """
    if function is None:
        return _report("all functions", history.functions(), for_all=True)
    record = _identity(function, "retraces")
    return _report(record.name, [record])


def _identity(function: Any, user: str) -> history.FunctionRecord:
    """The record of a function, of a jitted one or of what was given to `jit`."""
    if not callable(function):
        got = f"{type(function).__name__}: {function!r}"
        fix = f"{user}(f), where f = jit(function)"
        error(TypeError, f"explain.{user}", "expected a jitted function.", got=got, fix=fix)
    half = getattr(function, "jit_function", None)
    if half is not None and half.function_record is not None:
        record: history.FunctionRecord = half.function_record
        return record
    inner = function if half is None else half.function
    nowhere = source.Frame("", 0, "")
    return history.describe(inner, flattening.function_name(inner), nowhere, None)


def _report(
    name: str, functions: Sequence[history.FunctionRecord], *, for_all: bool = False
) -> Report:
    found: list[Retrace] = []
    compilations = 0
    # A function may have been given to `jit` at several lines.
    own: set[int] = set()
    for function in functions:
        records = history.traces_like(function)
        for i, record in enumerate(records):
            if id(record) in own or not (for_all or record.function.is_same(function)):
                continue
            own.add(id(record))
            if i:
                found.append(_retrace(record, records[:i]))
            made = list(record.compilations)
            compilations += len(made)
            found += [_recompilation(record, new, made[:j]) for j, new in enumerate(made) if j]
    return Report(name, len(own), compilations, found)


def _retrace(new: history.TraceRecord, earlier: Sequence[history.TraceRecord]) -> Retrace:
    old, changes = differences.nearest(new, earlier)
    return Retrace(new.function.name, "traced", new.at, old.at, new.inside, tuple(changes))


def _recompilation(
    record: history.TraceRecord, new: history.Compilation, earlier: Sequence[history.Compilation]
) -> Retrace:
    alike = [x for x in earlier if x.committed == new.committed]
    old = (alike or earlier)[-1]
    changes = differences.compilation_changes(record, new, old)
    return Retrace(record.function.name, "compiled", new.at, old.at, record.inside, tuple(changes))


@source.boundaries("__init__")
class no_retrace(contextlib.ContextDecorator, history.Guard):  # noqa: N801  reads as a switch
    """Context manager and decorator: inside it, no function is traced or compiled a second time.

    First traces are allowed.  A function made anew by a line that made one before, as `jit` in a
    loop does, counts as the former one if the arguments are alike.  Holds in the current thread.

    Source:     minijax's own.

    Args:
        functions: jitted functions that it concerns; none: all.

    Raises:
        RetraceError: something would be traced or compiled again; the text says why.
        TypeError: one of `functions` is not callable.

    Example:
        >>> f = jax.jit(lambda x: x + 1)
        >>> with jax.no_retrace(f):
        ...     f(jnp.ones(3)), f(jnp.ones(4))
        Traceback (most recent call last):
        minijax...RetraceError: ...
    """

    def __init__(self, *functions: Callable[..., Any]) -> None:
        self._functions = [_identity(function, "no_retrace") for function in functions]

    def __enter__(self) -> None:
        history.guards.set_local((*history.guards.value, self))

    def __exit__(self, *_: object) -> None:
        history.guards.set_local(history.guards.value[:-1])

    def before_trace(
        self, record: history.TraceRecord, earlier: Sequence[history.TraceRecord]
    ) -> None:
        if not earlier or not self._concerns(record.function):
            return
        same = [old for old in earlier if old.function.is_same(record.function)]
        if same:
            _refuse(_retrace(record, same))
        retrace = _retrace(record, earlier)
        if all(change.cause in _CAUSES_OF_NEW_FUNCTIONS for change in retrace.changes):
            _refuse(retrace)

    def before_compilation(self, record: history.TraceRecord, made: history.Compilation) -> None:
        if self._concerns(record.function):
            _refuse(_recompilation(record, made, list(record.compilations)))

    def _concerns(self, function: history.FunctionRecord) -> bool:
        return not self._functions or any(
            function.is_same(x) or (function.codes, function.made_at) == (x.codes, x.made_at)
            for x in self._functions
        )


def _refuse(retrace: Retrace) -> None:
    verb = retrace.step
    problem = f"would be {verb} again inside no_retrace."
    got = "\n".join(_change_lines(retrace.changes))
    expected = f"a call that the program {verb} at {retrace.earlier} serves"
    fix = "\n".join(_remedies(retrace.changes))
    error(
        RetraceError, retrace.function, problem, got=got, expected=expected, fix=fix, at=retrace.at
    )
