"""Checked functions: `checked` raises what went wrong in one, `checkify` returns it.

Input: a Python function.  Output: the same, staged and functionalized: it computes its first fault
along with its results, and reports it; that of `checkify` returns an `Error` before its result,
and `check` adds assertions of the user's.

What counts as a fault is said by the primitives (`faults`); how jaxprs are rewritten is in
`lax/functionalization.py`, and how calls are in
`transforms/jaxpr_call.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from minijax.core import config, effects, errors, refs, source, tree, tree_registry, vma
from minijax.core.aval import aval_of, has_aval
from minijax.core.errors import CheckError, error
from minijax.core.jaxpr import ClosedJaxpr, DebugInfo
from minijax.core.operators import Avals, BatchDims, HostArray, Values
from minijax.core.primitive import Batched, Dual, Primitive, Tangents
from minijax.core.trace import Tracer
from minijax.interpreters import checking, flattening, key_reuse, passes, staging
from minijax.interpreters.structural import to_batch_dims
from minijax.lax import functionalization, unary
from minijax.lax.callbacks import lower_call
from minijax.lax.functionalization import STATE_SIZE, Checker
from minijax.lowering import eager
from minijax.runtime.array import Array, array_from_host, physical_aval, wrap
from minijax.sharding import rules
from minijax.transforms.jit import arguments
from minijax.transforms.jit.primitive import jit_p

if TYPE_CHECKING:
    from minijax.core.native import PyTreeDef
    from minijax.lowering.stablehlo import LoweringContext

FAULTS = frozenset(
    {checking.INDEX, checking.NON_FINITE, checking.DIVISION, checking.KEY, checking.USER}
)
"""What `checked` looks for."""


class ReportEffect(effects.Effect):
    """A program may end with an error."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Report"


_REPORT_EFFECT = ReportEffect()
effects.lowerable_effects.add_type(ReportEffect)
effects.control_flow_allowed_effects.add_type(ReportEffect)
effects.repeatable_effects.add_type(ReportEffect)


class Sites:
    """The sites that codes stand for, as a parameter: equal to itself alone."""

    __slots__ = ("function", "sites")

    def __init__(self, sites: Sequence[checking.Site], function: str) -> None:
        self.sites = tuple(sites)
        self.function = function

    def error(self, code: object, place: object, words: object) -> CheckError | None:
        """The error for a state, or None if nothing went wrong."""
        number = int(np.asarray(code))
        if not number:
            return None
        site = self.sites[number - 1]
        values = _unpack(site.values, np.asarray(words))
        return checking.error_of(site, int(np.asarray(place)), values)

    def of_batch(self, size: int) -> Sites:
        """The sites of a batch."""
        return Sites([site.of_batch(size) for site in self.sites], self.function)

    def __repr__(self) -> str:
        return f"{len(self.sites)} sites of {self.function}"


def _unpack(avals: Avals, words: HostArray) -> list[HostArray]:
    """Returns the values with these types that were packed into 32-bit words."""
    values = []
    place = 0
    for aval in avals:
        count = checking.words_of(aval)
        taken = np.ascontiguousarray(words[place : place + count], np.uint32)
        place += count
        physical = physical_aval(aval)
        dtype = np.dtype(physical.dtype)
        if dtype.itemsize >= 4:
            host = taken.view(dtype)
        else:
            host = taken.astype(f"u{dtype.itemsize}")
            host = host.astype(np.bool_) if dtype == np.bool_ else host.view(dtype)
        host = host.reshape(physical.shape)
        values.append(wrap(array_from_host(host).buffer, aval) if aval.is_extended else host)
    return values


class Report(Primitive):
    """Raises the error that a state stands for, if any.

    Shapes: code: int32[], place: int32[], words: uint32[n] -> nothing.

    Without transpose: there are no results.
    """

    name = "report"
    multiple_results: ClassVar[bool] = True
    has_effects: ClassVar[bool] = True
    shard = rules.from_types

    def impl(self, *state: Any, sites: Sites) -> Sequence[Any]:
        error = sites.error(*state)
        if error is not None:
            raise error
        return ()

    def abstract_eval(self, *avals: Any, sites: Sites) -> list[Any]:
        return []

    def effects(self, *avals: Any, sites: Sites) -> frozenset[Any]:
        return frozenset({_REPORT_EFFECT})

    def lower(self, ctx: LoweringContext, *values: Any, sites: Sites) -> list[Any]:
        def report(*state: Any) -> Sequence[Any]:
            return self.impl(*state, sites=sites)

        return lower_call(ctx, "checked", report, values, ctx.avals_in, _REPORT_EFFECT)

    def jvp(self, primals: Values, tangents: Tangents, *, sites: Sites) -> Dual:
        self.bind(*primals, sites=sites)
        return [], []

    def batch(self, size: int, args: Values, dims: BatchDims, *, sites: Sites) -> Batched:
        states = to_batch_dims(args, dims, 0, size)
        state, moved = functionalization.first_of_batch(states, sites.sites, size)
        self.bind(*state, sites=Sites(moved, sites.function))
        return [], []


@checking.check_inside.rule(Report)
def _check_inside_of_report(
    primitive: Report, checker: Checker, args: Values, params: dict[str, Any]
) -> Any:
    checker.add(args, params["sites"].sites)
    return ()


vma.vary.rule(Report)(vma.from_types)


report_p = Report()


class Program(NamedTuple):
    """A function staged and functionalized for one signature.

    Attributes:
        closed: takes `outer` and the arguments; returns a state, if there are sites, and results.
        outer: values of outer traces that the function closes over.
        sites: what codes stand for.
        out_tree: of the results.
    """

    closed: ClosedJaxpr
    outer: list[Any]
    sites: Sites
    out_tree: Any


class CheckedFunction:
    """A function with its functionalized programs, one for each signature."""

    def __init__(self, function: Callable[..., Any], kinds: frozenset[str]) -> None:
        self.function = function
        self.kinds = kinds
        self.name = flattening.function_name(function)
        self._programs: dict[Any, Program] = {}

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Sites, Any, Any]:
        """The sites of a call, the state (empty if there are none), and the results.

        Leaves that are neither arrays nor numbers are static.
        """
        leaves, in_tree = tree.flatten((args, kwargs))
        info = flattening.debug_info("checked", self.function, in_tree)
        fixed: tuple[Any, ...] = ()
        try:
            avals = flattening.avals_of(leaves, lambda: info.arg_names or (), "checked")
        except TypeError:
            fixed = tuple((i, type(x), x) for i, x in enumerate(leaves) if not has_aval(x))
            if not all(isinstance(x, Hashable) for _, _, x in fixed):
                raise
            leaves = list(filter(has_aval, leaves))
            info = info.without_arg_names()
            avals = flattening.avals_of(leaves, tuple, "checked")
        key = (in_tree, avals, fixed, config.trace_context())
        program = self._programs.get(key)
        if program is None:
            program = self._stage(in_tree, avals, fixed, info)
            if not program.outer:
                self._programs[key] = program
        outs = jit_p.bind(
            *program.outer,
            *leaves,
            jaxpr=program.closed,
            name=self.name,
            donated_invars=(),
            keep_unused=False,
            device=None,
        )
        count = functionalization.STATE_SIZE if program.sites.sites else 0
        return program.sites, outs[:count], tree.unflatten(program.out_tree, outs[count:])

    def _stage(
        self, in_tree: PyTreeDef, avals: Avals, fixed: Sequence[Any], info: DebugInfo
    ) -> Program:
        flat = flattening.FlatFunction(self.function, in_tree, info.func_name)
        function = arguments.with_statics(flat, fixed, ()) if fixed else flat
        with config.checking(self.kinds):
            jaxpr, consts = staging.stage(function, avals, info)
        traced = [isinstance(c, (Tracer, refs.Cell)) for c in consts]
        if any(traced):
            closed, outer = ClosedJaxpr(passes.close_over_constants(jaxpr)), consts
        else:
            closed, outer = ClosedJaxpr(jaxpr, consts), []
        if checking.KEY in self.kinds:
            key_reuse.check_jaxpr(closed)
        # What nobody reads cannot go wrong, as the residuals of derivatives that are zero.
        live, _ = passes.dce_jaxpr(closed.jaxpr, keep_inputs=True)
        done = functionalization.check_jaxpr(ClosedJaxpr(live, closed.consts), self.kinds)
        return Program(done.closed, outer, Sites(done.sites, self.name), flat.out_tree)


def checked(fun: Callable[..., Any]) -> Callable[..., Any]:
    """`fun`, with an error that says what went wrong in it first, if anything did.

    Faults are: an index out of bounds, unless a mode says that it is meant; a NaN or an infinity
    made from finite numbers, or a NaN from infinite ones; a division by zero; a random key used
    twice; a `checkify.check` that fails.  Elements that a selection, such as `numpy.where`, leaves
    out may be faulty.  What `fun` calls is checked to any depth, derivatives in it included.

    The error names the operation, the user's line, the position of the element and, under vmap,
    that of the example; the same facts are its attributes.  Under jit and other transformations it
    is raised when the program runs.  Of `grad(checked(f))`, f is checked; of `checked(grad(f))`,
    its derivative too; but values that nobody reads, as that of f often, are neither computed nor
    checked: `value_and_grad` reads it.

    Source:     minijax's own; `checkify` looks for the same faults, and returns them.

    Args:
        fun: a function of trees of arrays.

    Raises:
        OutOfBoundsError: an IndexError and a CheckError, as the next ones; by the function made.
        NonFiniteError: a FloatingPointError.
        DivisionByZeroError: a ZeroDivisionError.
        CheckedKeyReuseError: a KeyReuseError.
        FailedCheckError: a ValueError.

    Example:
        >>> jax.checked(lambda x, i: x[i])(jnp.arange(3), 1)
        Array(1, dtype=int32)
        >>> jax.jit(jax.checked(lambda x: 1 / x))(jnp.array([1, 0]))
        Traceback (most recent call last):
        minijax...DivisionByZeroError: ...
    """
    eager.check_callable("checked", fun)
    half = CheckedFunction(fun, FAULTS)

    @source.result_of(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        sites, state, result = half.call(args, kwargs)
        if sites.sites:
            report_p.bind(*state, sites=sites)
        return result

    return call


R = TypeVar("R")

ErrorCategory = str

user_checks = frozenset({checking.USER})
nan_checks = frozenset({checking.NAN})
index_checks = frozenset({checking.INDEX})
div_checks = frozenset({checking.DIVISION})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


@source.boundaries("throw")
class Error:
    """What went wrong in a function that `checkify` has made, if anything did.

    It is a tree of arrays, so that it passes through `jit`; under `vmap` it stands for the errors
    of all examples.

    Example:
        >>> from minijax.experimental import checkify
        >>> error, _ = checkify.checkify(lambda x: checkify.check(x > 0, "x is {}", x))(-1)
        >>> print(error.get())
        x is -1 (`check` failed) (check at ... in <lambda>)
    """

    __slots__ = ("_sites", "_state")

    def __init__(self, state: tuple[Any, ...], sites: Sites) -> None:
        self._state = state
        self._sites = sites

    def get(self) -> str | None:
        """What went wrong, in words, or None: for a batch, a line for each example that failed."""
        found = self._errors()
        lines = [
            f"at mapped index {', '.join(map(str, place))}: {_text(error)}"
            if place
            else _text(error)
            for place, error in found
        ]
        return "\n".join(lines) or None

    def throw(self) -> None:
        """Raises the error, that of the first example that failed, if there is one.

        Raises:
            JaxRuntimeError: something went wrong.
        """
        for _, found in self._errors():
            raise found

    def get_exception(self) -> CheckError | None:
        """The error that `throw` raises, or None."""
        return next((error for _, error in self._errors()), None)

    def _errors(self) -> list[tuple[tuple[int, ...], CheckError]]:
        if any(isinstance(x, Tracer) for x in self._state):
            error(
                ValueError,
                "checkify.Error",
                "a traced error has no text yet.",
                fix="return it from the traced function, and look at it outside; or "
                "check_error(err) inside, under another checkify",
            )
        codes, places, words = map(np.asarray, self._state)
        found = []
        for index in map(tuple, np.argwhere(codes)):
            raised = self._sites.error(codes[index], places[index], words[index])
            assert raised is not None
            found.append((tuple(map(int, index)), raised))
        return found

    def report(self) -> None:
        """Reports the error to whoever runs the program."""
        report_p.bind(*self._state, sites=self._sites)

    def flatten(self) -> tuple[tuple[Any, ...], Sites]:
        """The arrays of the error, and what they stand for."""
        return self._state, self._sites

    def __repr__(self) -> str:
        if any(isinstance(x, Tracer) or not has_aval(x) for x in self._state):
            return f"Error({self._state[0]!r})"
        return f"Error({self.get()})"


tree_registry.register_pytree_node(
    Error, Error.flatten, lambda sites, state: Error(tuple(state), sites)
)

init_error = Error((np.int32(0), np.int32(0), np.zeros(0, np.uint32)), Sites((), "init_error"))
"""The error of a function in which nothing went wrong."""


def _text(error: CheckError) -> str:
    return f"{error.detail} ({error.primitive} at {error.line or 'an unknown line'})"


class _UserText:
    """The text of a user's check, with the tree of the values that it shows."""

    __slots__ = ("template", "values_tree")

    def __init__(self, template: str, values_tree: PyTreeDef) -> None:
        self.template = template
        self.values_tree = values_tree

    def format(self, *values: Any) -> str:
        args, kwargs = tree.unflatten(self.values_tree, values)
        return self.template.format(*args, **kwargs)

    def __repr__(self) -> str:
        return repr(self.template)


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Asserts that `pred` is true, for `checkify` and `checked` to look at.

    Outside of traced functions, it raises at once.

    Args:
        pred: a boolean scalar.
        msg: what is wrong if it is false, with fields for the other arguments.
        fmt_args: trees of arrays.
        debug: whether the check is left out where nobody looks at its outcome.
        fmt_kwargs: trees of arrays.

    Raises:
        JaxRuntimeError: `pred` is false, and nothing is traced.
        TypeError: `pred` is not a boolean scalar, or another argument is not a tree of arrays.
        ValueError: a program with the check is compiled where nobody looks at its outcome.

    Example:
        >>> from minijax.experimental import checkify
        >>> def root(x):
        ...     checkify.check(x >= 0, "no root of {x}", x=x)
        ...     return jnp.sqrt(x)
        >>> error, out = jax.jit(checkify.checkify(root))(-4.0)
        >>> print(error.get())
        no root of -4.0 (`check` failed) (check at ... in root)
    """
    aval = aval_of(pred) if has_aval(pred) else None
    if aval is None or aval.shape or aval.dtype != np.bool_:
        problem = "the predicate must be a boolean scalar."
        got = repr(pred) if aval is None else str(aval)
        error(TypeError, "checkify.check", problem, got=got, fix="reduce it with .all() or .any()")
    values, values_tree = tree.flatten((fmt_args, fmt_kwargs))
    for x in values:
        if not isinstance(x, (Array, Tracer, np.ndarray)):
            error(
                TypeError,
                "checkify.check",
                "the message can show trees of arrays only.",
                got=f"{x!r} of type {type(x).__name__}",
                fix="write what is known into the message: f'...'",
            )
    if debug and not checking.is_checking(checking.USER):
        return
    bad = unary.bitwise_not(pred)
    text = _UserText(msg, values_tree)
    checking.check(checking.Fault(checking.USER, bad, text, payload=tuple(values)))


def debug_check(pred: object, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """As `check`, but it does nothing where nobody looks at its outcome.

    Example:
        >>> from minijax.experimental import checkify
        >>> def root(x):
        ...     checkify.debug_check(x >= 0, "no root of {x}", x=x)
        ...     return jnp.sqrt(x)
        >>> jax.jit(root)(-4.0)
        Array(nan, dtype=float32, weak_type=True)
        >>> print(checkify.checkify(root)(-4.0)[0].get())
        no root of -4.0 (`check` failed) (check at ... in root)
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raises an error, if it is one; under `checkify`, it becomes that of the function around it.

    Raises:
        JaxRuntimeError: something went wrong.
        TypeError: the argument is not an `Error`.

    Example:
        >>> from minijax.experimental import checkify
        >>> error, _ = checkify.checkify(lambda x: checkify.check(x > 0, "x is {}", x))(1)
        >>> checkify.check_error(error)
    """
    if not isinstance(error, Error):
        got = type(error).__name__
        errors.error(TypeError, "checkify.check_error", "expected an Error.", got=got)
    error.report()


def checkify(
    f: Callable[..., R], errors: frozenset[ErrorCategory] = user_checks
) -> Callable[..., tuple[Error, R]]:
    """`f`, returning what went wrong in it along with its result.

    Source: mirrors jax.experimental.checkify.checkify (0.10).  What counts as a fault is what
    `minijax.checked` says, which differs where JAX is strict: an index out of bounds is none where
    a mode says that it is meant, and a NaN is none that a selection leaves out.  What the program
    looks for itself, as by `isnan`, is reported all the same, and loops go on after a fault.

    Args:
        f: a function of trees of arrays.
        errors: what to look for: `user_checks`, `nan_checks`, `index_checks`, `div_checks`,
            `float_checks`, `automatic_checks`, `all_checks`, or a union of them.

    Returns:
        A function that returns (error, result); error.get() is None if nothing went wrong.

    Example:
        >>> from minijax.experimental import checkify
        >>> f = jax.jit(checkify.checkify(jnp.log, errors=checkify.nan_checks))
        >>> error, out = f(1.0)
        >>> error.get(), out
        (None, Array(0., dtype=float32, weak_type=True))
        >>> f(-1.0)[0].get() is None
        False
    """
    eager.check_callable("checkify", f)
    half = CheckedFunction(f, frozenset(errors))

    @source.result_of(f)
    def call(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        sites, state, result = half.call(args, kwargs)
        if len(state) < STATE_SIZE:
            return Error(init_error.flatten()[0], sites), result
        return Error(tuple(state), sites), result

    return call
