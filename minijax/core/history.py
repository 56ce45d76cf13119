"""What was traced and compiled before, and for which key: the memory behind `explain.retraces`.

Input: a record of every trace and compilation of a user's jitted function, made where a cache
missed.  Output: the earlier records of that function, and of others made by the same line.  A call
that a cache answers never comes here.  The memory is bounded, and holds users' values weakly.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib import _jax

from minijax.core import axes, config, meshes, source
from minijax.core.aval import AbstractValue
from minijax.core.cache import Cache
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.native import Config, PyTreeDef
from minijax.core.operators import Function, Values
from minijax.core.trace import current

RECORDS_OF_A_PLACE = 32
PLACES = 512

_records = Cache(
    "trace records",
    "what is known of the trace that a program comes from",
    key="none",
    owner="jaxpr",
    counted=False,
)
_FUNCTION_TYPES = (types.FunctionType, types.MethodType, functools.partial)
_PLAIN_TYPES = frozenset({bool, int, float, complex, str, bytes, type(None)})


class Memento:
    """What is kept of a user's value: plain ones as they are, others by weak reference."""

    __slots__ = ("kind", "plain", "reference", "token")

    def __init__(self, value: object, token: int) -> None:
        self.kind = type(value)
        self.plain = value if is_plain(value) else None
        self.token = token
        self.reference: Callable[[], object] | None = None
        if self.plain is None and value is not None:
            with contextlib.suppress(TypeError):
                self.reference = weakref.ref(value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Memento) or self.kind is not other.kind:
            return False
        if self.plain is not None or other.plain is not None:
            return bool(self.plain == other.plain)
        return self.token == other.token

    def __hash__(self) -> int:
        return hash((self.kind, self.token))

    @property
    def value(self) -> Any:
        """The value, or None where it is gone."""
        return self.plain if self.reference is None else self.reference()


def is_plain(value: object) -> bool:
    """Whether a value is small and immutable, so that it may be kept for long."""
    if type(value) is tuple or type(value) is frozenset:
        return len(value) <= 16 and all(map(is_plain, value))
    return type(value) in _PLAIN_TYPES or isinstance(value, np.dtype)


class FunctionRecord(NamedTuple):
    """A jitted function: who it is, which code it runs, and what it holds fixed.

    Attributes:
        name: what it is called.
        reference: a weak reference to it, where it has one.
        form: "function", "method", "partial" or "callable object".
        codes: its code, and that of the functions it holds: equal for functions of one line.
        made_at: the line that called `jit`.
        parameters: names of the positional parameters.
        captured: bound values, closure and defaults.
    """

    name: str
    reference: Callable[[], object] | None
    form: str
    codes: tuple[object, ...]
    made_at: source.Frame
    parameters: tuple[str, ...] | None
    captured: tuple[tuple[str, Memento], ...]

    def is_same(self, other: FunctionRecord) -> bool:
        """Whether both are one function, as the caches of programs see it."""
        return self.reference is not None and self.reference == other.reference


class Compilation(NamedTuple):
    """One compilation of a traced program.

    Attributes:
        device: where it runs: a device, or a tuple of several.
        committed: whether something demanded this device.
        demanded_by: positions of the leaves of the arguments that are committed to it.
        default_device: the configured device at the time.
        at: the user's line.
        placed: where there are several devices, the placement of each leaf, or None.
        partitioner: whether Shardy partitions it.
    """

    device: Any
    committed: bool
    demanded_by: tuple[int, ...]
    default_device: Any
    at: str
    placed: tuple[Any, ...]
    partitioner: bool


class TraceRecord(NamedTuple):
    """One trace: the key that the cache missed on, and whose it was.

    Attributes:
        function: whose trace it is.
        in_tree: the structure of (args, kwargs), without static arguments.
        avals: the types of the leaves.
        kinds: the Python types of the leaves.
        positions: the parameters that the positional arguments are, if some are static.
        statics: position or name of each static argument, and what is kept of its value.
        settings: the options of `jit`.
        states: every configuration state that traces depend on.
        axes: the named axes in scope.
        mesh: the mesh in force.
        context: all that traces depend on besides, as one value.
        inside: the function that was being traced, if any.
        at: the user's line of the call.
        compilations: those of the traced program.
        facts: what turned out after tracing: "lifted", the number of values of enclosing traces
            that the function closes over.
    """

    function: FunctionRecord
    in_tree: PyTreeDef
    avals: tuple[AbstractValue, ...]
    kinds: tuple[type, ...]
    positions: tuple[int, ...] | None
    statics: tuple[tuple[Any, Memento], ...]
    settings: Any
    states: dict[str, Any]
    axes: tuple[Any, ...]
    mesh: Any
    context: tuple[Any, ...]
    inside: str
    at: str
    compilations: deque[Compilation]
    facts: dict[str, int]


class Guard:
    """Is told before anything is traced or compiled, and may refuse by raising."""

    def before_trace(self, record: TraceRecord, earlier: Sequence[TraceRecord]) -> None:
        """Before the trace `record`, which `earlier` ones of the same place precede."""

    def before_compilation(self, record: TraceRecord, made: Compilation) -> None:
        """Before a compilation of a program that has been traced already."""


logger = logging.getLogger("minijax")
guards: Config[tuple[Any, ...]] = _jax.config.Config("minijax_retrace_guards", ())
"""The guards of this thread, a tuple."""

_places: OrderedDict[tuple[object, ...], deque[TraceRecord]] = OrderedDict()
_places_lock = threading.Lock()


def codes_of(function: Function, depth: int = 3) -> tuple[object, ...]:
    """The code of a function, and of the functions that it wraps or closes over.

    A decorator makes every function run the same code; what it closes over tells them apart.
    """
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        wrapped = getattr(function, "__wrapped__", None)
        if wrapped is not None and depth:
            return codes_of(wrapped, depth - 1)
        call = getattr(type(function).__call__, "__code__", None)
        return (call or getattr(function, "__qualname__", type(function).__qualname__),)
    found = [code]
    for cell in function.__closure__ or ():
        value = _contents(cell)
        if depth and isinstance(value, _FUNCTION_TYPES) and value is not function:
            found += codes_of(value, depth - 1)
    return tuple(found)


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        # The variable is assigned after the function is made, and not yet.
        return None


def _form_of(function: Function) -> str:
    if isinstance(function, functools.partial):
        return "partial"
    if hasattr(function, "__func__"):
        return "method"
    return "function" if hasattr(function, "__code__") else "callable object"


def _captured(function: Any) -> tuple[tuple[str, Memento], ...]:
    """What a function object holds besides its code: bound values, closure, defaults."""
    found: list[tuple[str, Any]] = []
    while isinstance(function, functools.partial):
        found += [(f"partial argument {i}", x) for i, x in enumerate(function.args)]
        found += list(function.keywords.items())
        function = function.func
    if hasattr(function, "__func__"):
        found.append(("self", function.__self__))
        function = function.__func__
    code = getattr(function, "__code__", None)
    # What a transformation closes over has no name that the user knows.
    if code is not None and not source.is_internal(code.co_filename):
        cells = function.__closure__ or ()
        found += [(name, _contents(x)) for name, x in zip(code.co_freevars, cells, strict=True)]
        defaults = function.__defaults__ or ()
        names = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
        found += list(zip(names, defaults, strict=True))
    return tuple((name, Memento(value, id(value))) for name, value in found)


def describe(
    function: Function, name: str, made_at: source.Frame, parameters: tuple[str, ...] | None
) -> FunctionRecord:
    """The record of a jitted function."""
    reference: Callable[[], object] | None
    try:
        reference = weakref.ref(function)
    except TypeError:
        reference = None
    return FunctionRecord(
        name,
        reference,
        _form_of(function),
        codes_of(function),
        made_at,
        parameters,
        _captured(function),
    )


def begin_trace(
    function: FunctionRecord,
    key: tuple[Any, ...],
    leaves: Values,
    positions: Sequence[int] | None,
) -> TraceRecord:
    """The record of a trace that is about to begin; guards may refuse it.

    Args:
        function: whose trace it is.
        key: tree, types, static values, options and context, on which the cache missed.
        leaves: the arguments.
        positions: the parameters that positional arguments are, if some are static.
    """
    in_tree, avals, statics, settings, context = key
    record = TraceRecord(
        function,
        in_tree,
        avals,
        tuple(map(type, leaves)),
        None if positions is None else tuple(positions),
        tuple((where, Memento(value, hash(value))) for where, _, value in statics),
        settings,
        {state.name: state.value for state in config.config if state.in_trace_key},
        axes.in_scope(),
        meshes.get_abstract_mesh(),
        context,
        current.value.function_name,
        source.user_line() or "-",
        deque(maxlen=RECORDS_OF_A_PLACE),
        {},
    )
    if config.explain_cache_misses.value and (known := traces_like(function)):
        text = "%s is traced again at %s for (%s), after (%s). minijax.explain.retraces says more."
        types = (", ".join(map(str, each.avals)) for each in (record, known[-1]))
        logger.warning(text, function.name, record.at, *types)
    if guards.value:
        earlier = traces_like(function)
        for guard in guards.value:
            guard.before_trace(record, earlier)
    return record


def end_trace(record: TraceRecord, closed: ClosedJaxpr, lifted: int) -> None:
    """Remembers a trace that succeeded, and that `closed` came of it."""
    record.facts["lifted"] = lifted
    _records.keep(closed, None, record)
    codes = record.function.codes
    with _places_lock:
        _places.setdefault(codes, deque(maxlen=RECORDS_OF_A_PLACE)).append(record)
        _places.move_to_end(codes)
        if len(_places) > PLACES:
            _places.popitem(last=False)


def trace_of(closed: ClosedJaxpr) -> TraceRecord | None:
    """The trace that a program came of, if it is remembered."""
    return _records.find(closed)


def compiling(
    closed: ClosedJaxpr,
    device: object,
    *,
    committed: bool,
    demanded_by: Sequence[int],
    placed: tuple[Any, ...] = (),
) -> None:
    """Remembers a compilation that is about to begin; guards may refuse it.

    Programs that are not a user's jitted function are passed over.
    """
    record = trace_of(closed)
    if record is None:
        return
    made = Compilation(
        device,
        committed,
        tuple(demanded_by),
        config.default_device.value,
        source.user_line() or "-",
        placed,
        config.use_shardy_partitioner.value,
    )
    if record.compilations:
        for guard in guards.value:
            guard.before_compilation(record, made)
    record.compilations.append(made)


def traces_like(function: FunctionRecord) -> list[TraceRecord]:
    """The traces of a function and of others that the same line has made, oldest first."""
    return [
        record
        for record in list(_places.get(function.codes, ()))
        if record.function.is_same(function) or record.function.made_at == function.made_at
    ]


def functions() -> list[FunctionRecord]:
    """The functions of which something is remembered, one for each line that made some."""
    found = {
        (codes, record.function.made_at): record.function
        for codes, records in list(_places.items())
        for record in list(records)
    }
    return list(found.values())
