"""The tracing context: which interpreter the next operation goes to.

One current trace per thread decides what `bind` does.  A tracer holds its trace, its aval and
the interpreter's datum.  Invariant: `trace.process` runs while `trace` is the current trace;
before a trace hands work to another one, it makes that one current.

What is orthogonal to traces hangs on two hooks, and no trace names what hangs there: a `Typing`
types the operands and results of equations if values have placements, and `Detours` are the
operations that do not go the usual way, such as those on references.

`docs/reading.md`: read after `core/jaxpr.py`; `core/primitive.py` is next.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol

import numpy as np
from jaxlib import _jax

from minijax.core import operators, source
from minijax.core.aval import AbstractValue, Typed, aval_handlers
from minijax.core.errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
    error,
    message,
)
from minijax.core.operators import HostArray, Values
from minijax.core.value_placement import TypeSemantics

if TYPE_CHECKING:
    from minijax.core.jaxpr import Atom
    from minijax.core.native import Config
    from minijax.core.primitive import Primitive

current: Config[Trace] = _jax.config.Config("minijax_trace", None, include_in_jit_key=True)
"""The current trace, thread-local.  Its value keys the C++ call path: calls made while a
function is traced never hit programs cached outside."""


class Trace:
    """One run of one interpreter over one function.

    Example:
        >>> def f(x):
        ...     print(x.traced_by)
        ...     return x
        >>> _ = jax.jit(f)(1)
        StagingTrace of f
    """

    __slots__ = ("__weakref__", "finished", "function_name")

    def __init__(self, function_name: str = "") -> None:
        self.function_name = function_name
        self.finished = False

    def process(self, primitive: Primitive, args: Values, params: Params) -> Results:
        """Interprets one operation; always a sequence of results."""
        raise NotImplementedError

    def __repr__(self) -> str:
        name = f" of {self.function_name}" if self.function_name else ""
        return f"{type(self).__name__}{name}"


Params = Mapping[str, Any]
"""The parameters of an operation, by name."""

NO_PARAMS: Params = MappingProxyType({})
"""Those of an operation that has none: one object for all equations, which nobody can change."""

Results = Sequence[Any]
Detour = Callable[[Any, "Primitive", Values, Params], Results | None]
"""Of a trace, an operation, its arguments and parameters: the results, or None where the operation
goes the usual way after all."""


class Detours(dict["Primitive", Detour | None]):
    """For one kind of trace: what it does first with an operation, None with most.

    Whoever owns a detour says with `add` for which operations it is.
    """

    def __init__(self) -> None:
        super().__init__()
        self._finders: list[Callable[[Primitive], Detour | None]] = []

    def add(self, finder: Callable[[Primitive], Detour | None]) -> None:
        """Asks `finder` about each operation: for its detour, or None."""
        self._finders.append(finder)
        self.clear()

    def __missing__(self, primitive: Primitive) -> Detour | None:
        found = [detour for finder in self._finders if (detour := finder(primitive)) is not None]
        self[primitive] = _in_turn(found) if len(found) > 1 else next(iter(found), None)
        return self[primitive]


def _in_turn(detours: Sequence[Detour]) -> Detour:
    def first(trace: Trace, primitive: Primitive, args: Values, params: Params) -> Any:
        for detour in detours:
            outs = detour(trace, primitive, args, params)
            if outs is not None:
                return outs
        return None

    return first


class NestedTrace(Trace):
    """A trace around another one, its `parent`, to which operations go that do not concern it."""

    __slots__ = ("parent",)

    parent: Trace
    detours: ClassVar[Detours]
    # The class of its tracers.
    tracers: ClassVar[type[Tracer]]

    def process(self, primitive: Primitive, args: Values, params: Params) -> Results:
        detour = self.detours[primitive]
        if detour is not None:
            outs = detour(self, primitive, args, params)
            if outs is not None:
                return outs
        if self.concerns(primitive, args, params):
            return self.interpret(primitive, args, params)
        return self.pass_on(primitive, args, params)

    def concerns(self, primitive: Primitive, args: Values, params: Params) -> bool:
        """Whether an operation is this trace's: one of its tracers is among the arguments."""
        tracers = self.tracers
        for x in args:  # noqa: SIM110  a generator would cost as much as the rest
            if type(x) is tracers and x.traced_by is self:
                return True
        return False

    def interpret(self, primitive: Primitive, args: Values, params: Params) -> Results:
        """Applies the rule of an operation that concerns this trace."""
        raise NotImplementedError

    def pass_on(self, primitive: Primitive, args: Values, params: Params) -> Results:
        """Interprets an operation outside this trace."""
        current.set_local(self.parent)
        try:
            outs: Results = self.parent.process(primitive, args, params)
            return outs
        finally:
            current.set_local(self)


class Typing:
    """What a trace asks for the operands and the result types of operations.

    This one is for values that are not placed: operands are what they are, and results what
    `abstract_eval` says.
    """

    __slots__ = ()

    def operands(
        self, trace: Trace, primitive: Primitive, args: Values, params: Params
    ) -> tuple[Values, Params]:
        """Arguments and parameters, cast in `trace` so that they fit together."""
        return args, params

    def equation(
        self,
        trace: Trace,
        primitive: Primitive,
        args: Values,
        atoms: list[Atom],
        avals: list[AbstractValue],
        params: Params,
    ) -> tuple[list[Atom], Params, Any]:
        """Operands of the equation that `trace` stages, its parameters, its result type or types.

        Args:
            trace: the trace.
            primitive: the operation.
            args: its arguments.
            atoms: the variables and literals for them.
            avals: their types.
            params: its parameters.
        """
        return atoms, params, primitive.abstract_eval(*avals, **params)

    def enter(
        self, avals: Sequence[AbstractValue], function_name: str
    ) -> Callable[[], None] | None:
        """Prepares for a function of these types; what to do when it has been traced, if at all."""
        return None


PLAIN = Typing()


class PlacementSemantics(TypeSemantics, Protocol):
    """What placements mean to types and traces.

    `hooks.register_placement_semantics` registers the one implementation.
    """

    def initial_typing(self) -> Typing:
        """Returns the typing that a trace of derivatives starts with."""

    def record(self, trace: Trace, aval: AbstractValue) -> None:
        """Records that a value of a staging trace has a type that is not plain.

        The trace then takes placements into account when it types later equations.
        """

    def batch_kind(self, kind: Any, aval: AbstractValue, dim: int) -> Any:
        """Returns the kind of a batch after a value with a placement has joined it.

        Args:
            kind: the kind of the batch before, None for a plain one.
            aval: the type of the value.
            dim: the dimension of the value that runs over the batch.
        """


placement_semantics: PlacementSemantics = NotImplemented
"""The registered implementation."""


class Tracer(Typed, operators.ArrayOperators):
    """A value inside a traced function: a trace, a type, and the interpreter's datum.

    Example:
        >>> def is_traced(x):
        ...     return isinstance(x, jax.core.Tracer)
        >>> is_traced(jnp.ones(3)), jax.jit(is_traced)(jnp.ones(3))
        (False, Array(True, dtype=bool))
    """

    __slots__ = ("__weakref__", "aval", "traced_by")
    # NumPy defers to the tracer's own operators.
    __array_priority__ = 1000
    __hash__ = None

    traced_by: Trace

    def concrete(self) -> Any:
        """The value underneath where it is known, else None."""
        return None

    def known_parts(self) -> list[tuple[str, Any]]:
        """The values underneath that are known, each with words on where it lives."""
        value = self.concrete()
        return [] if value is None else [("", value)]

    def origin(self) -> str:
        """One line on where this value comes from."""
        return f"traced in {self.traced_by!r}"

    def static_alternative(self) -> str:
        """How the value would be known if arguments of a jitted function were static."""
        return ""

    def __len__(self) -> int:
        return len(self.aval)

    def __bool__(self) -> bool:
        problem = "a traced value has no concrete truth value"
        fix = "numpy.where(condition, x, y) or lax.cond in place of if, lax.while_loop in place of "
        return bool(self._known(TracerBoolConversionError, problem, fix + "while"))

    def __int__(self) -> int:
        return int(self._number("int"))

    def __float__(self) -> float:
        return float(self._number("float"))

    def __complex__(self) -> complex:
        return complex(self._number("complex"))

    def _number(self, kind: str) -> Any:
        problem = f"a traced value cannot become a Python {kind}"
        fix = f"x.astype({kind}) for a traced conversion"
        return self._known(ConcretizationTypeError, problem, fix)

    def __index__(self) -> int:
        problem = "a traced value cannot be used as a Python index or shape"
        fix = "index arrays with x[i] or lax.dynamic_slice"
        return operator.index(self._known(TracerIntegerConversionError, problem, fix))

    def __array__(self, *_: Any, **__: Any) -> HostArray:
        _refuse(
            self,
            TracerArrayConversionError,
            "a traced value cannot become a NumPy array",
            "use minijax.numpy functions in place of numpy's inside transformed functions",
        )

    def item(self, *args: Any) -> Any:
        """The one element as a Python scalar; the value must be known."""
        return np.asarray(self._elements("item")).item(*args)

    def tolist(self) -> Any:
        """The elements as nested lists; the value must be known."""
        return np.asarray(self._elements("tolist")).tolist()

    def _elements(self, method: str) -> Any:
        problem = f"the elements of a traced value are not known: x.{method}() has none to return"
        fix = "return x from the transformed function, and call it there; or use debug.print"
        return self._known(ConcretizationTypeError, problem, fix)

    def _known(self, exception: type[Exception], problem: str, fix: str) -> Any:
        """The value underneath, where it is known.

        Raises:
            Exception: it is not; the error is of the class `exception`.
        """
        value = self.concrete()
        return _refuse(self, exception, problem, fix) if value is None else value

    def __getattr__(self, name: str) -> Any:
        if name in operators.BUFFER_ATTRIBUTES:
            _refuse(
                self,
                ConcretizationTypeError,
                f"a traced value has no memory that x.{name} could tell of",
                "ask for it outside of transformed functions",
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def block_until_ready(self) -> Tracer:
        """Does nothing: a traced value has no computation of its own to wait for."""
        return self

    def __copy__(self) -> Tracer:
        return self

    def __deepcopy__(self, _memo: object) -> Tracer:
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval})"

    def __format__(self, spec: str) -> str:
        value = self.concrete()
        if value is None and spec:
            _refuse(
                self,
                ConcretizationTypeError,
                f"a traced value has no digits that the format {spec!r} could show",
                "debug.print(text, x) prints when the program runs",
            )
        return format(str(self) if value is None else value, spec)


_OR_STATIC = "or mark the argument as static (jit's static_argnums)"
_INSTEAD = {
    "max": "numpy.maximum(x, y), or x.max() for the largest element",
    "min": "numpy.minimum(x, y), or x.min() for the smallest element",
    "sorted": "numpy.sort(x)",
    "range": "lax.fori_loop(0, n, body, init)",
    "any": "numpy.any(x)",
    "all": "numpy.all(x)",
    "math": "the functions of minijax.numpy in place of those of math",
    "[]": "numpy.asarray(values)[i] for numbers, lax.switch(i, functions, x) for functions",
    "[:]": "lax.dynamic_slice(numpy.asarray(values), starts, sizes), whose sizes are static",
    "not": "~x, or numpy.logical_not(x)",
    "assert": "experimental.checkify.check(condition, message)",
    "and": "& and | in place of and, or and chained comparisons: (0 < x) & (x < 1)",
}
"""What takes a traced value, in place of what Python makes of a value that is known."""


def _refuse(tracer: Tracer, exception: type[Exception], problem: str, fix: str) -> NoReturn:
    called = source.user_call()
    name = called or tracer.traced_by.function_name or "a transformed function"
    if called is None:
        fix = _INSTEAD.get(source.user_operation(), fix)
    elif exception is TracerIntegerConversionError:
        fix = "a Python int, such as x.shape[0]"
    got = f"{tracer.aval}, {tracer.origin()}"
    alternative = tracer.static_alternative()
    if exception is TracerIntegerConversionError and not alternative:
        alternative = "; Python's indices and counts, shapes and axes must be static"
    error(exception, name, f"{problem}.", got=got, fix=fix + alternative)


aval_handlers[Tracer] = operator.attrgetter("aval")


def leaked(tracer: Tracer) -> UnexpectedTracerError:
    """The error for a tracer used after its trace has ended."""
    name = tracer.traced_by.function_name or "a transformed function"
    return UnexpectedTracerError(
        message(
            name,
            "a traced value was used after the transformation that made it had ended: it leaked.",
            got=f"{tracer.aval}, {tracer.origin()}",
            expected=f"values made while {name} is traced stay inside it",
            fix="return the value from the function instead of storing it in a global, an "
            "attribute or a closure; minijax.checking_leaks() finds who holds it",
            more="tracer, leak",
        )
    )


def check_alive(tracer: Tracer) -> None:
    """Refuses a tracer whose trace has ended.

    Raises:
        UnexpectedTracerError: the tracer leaked.
    """
    if tracer.traced_by.finished:
        raise leaked(tracer)
