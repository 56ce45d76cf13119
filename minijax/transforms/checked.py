"""`checked`: a function that says what went wrong in it, and where.

Input: a Python function.  Output: the same, staged and functionalized: it computes its first fault
along with its results, and reports it.  What counts as a fault is said by the primitives
(`faults`); how jaxprs are rewritten is in `lax/functionalization.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from minijax.core import config, effects, tree, variance
from minijax.core.errors import CheckError
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.primitive import Primitive
from minijax.core.trace import Tracer
from minijax.interpreters import checking, eager, flattening, key_reuse, passes, staging
from minijax.interpreters.structural import to_batch_dim
from minijax.lax import functionalization
from minijax.lax.callbacks import lower_call
from minijax.sharding import rules
from minijax.transforms.jit_primitive import jit_p

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

    def error(self, code: Any, place: Any, words: Any) -> CheckError | None:
        """The error for a state, or None if nothing went wrong."""
        number = int(np.asarray(code))
        if not number:
            return None
        site = self.sites[number - 1]
        values = checking.values_from_words(site.values, np.asarray(words))
        return checking.error_of(site, int(np.asarray(place)), values)

    def of_batch(self, size: int) -> Sites:
        """The sites of a batch."""
        return Sites([site.of_batch(size) for site in self.sites], self.function)

    def __repr__(self) -> str:
        return f"{len(self.sites)} sites of {self.function}"


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

    def lower(self, ctx: Any, *values: Any, sites: Sites) -> list[Any]:
        def report(*state: Any) -> Sequence[Any]:
            return self.impl(*state, sites=sites)

        return lower_call(ctx, "checked", report, values, ctx.avals_in, _REPORT_EFFECT)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, sites: Sites
    ) -> tuple[list[Any], list[Any]]:
        self.bind(*primals, sites=sites)
        return [], []

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], *, sites: Sites
    ) -> tuple[list[Any], list[Any]]:
        states = [to_batch_dim(x, d, 0, size) for x, d in zip(args, dims, strict=True)]
        state, moved = functionalization.first_of_batch(states, sites.sites, size)
        self.bind(*state, sites=Sites(moved, sites.function))
        return [], []


@checking.check_inside.rule(Report)
def _check_inside_of_report(
    primitive: Report, checker: Any, args: Sequence[Any], params: dict[str, Any]
) -> Any:
    checker.add(args, params["sites"].sites)
    return ()


variance.vary.rule(Report)(variance.from_types)


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
        """The sites of a call, the state (empty if there are none), and the results."""
        leaves, in_tree = tree.flatten((args, kwargs))
        info = flattening.debug_info("checked", self.function, in_tree)
        avals = flattening.avals_of(leaves, lambda: info.arg_names or (), "checked")
        key = (in_tree, avals, config.trace_context())
        program = self._programs.get(key)
        if program is None:
            program = self._stage(in_tree, avals, info)
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

    def _stage(self, in_tree: Any, avals: Sequence[Any], info: Any) -> Program:
        flat = flattening.FlatFunction(self.function, in_tree, info.func_name)
        with config.checking(self.kinds):
            jaxpr, consts = staging.stage(flat, avals, info)
        traced = [isinstance(c, Tracer) for c in consts]
        if any(traced):
            closed, outer = ClosedJaxpr(passes.close_over_constants(jaxpr)), consts
        else:
            closed, outer = ClosedJaxpr(jaxpr, consts), []
        if checking.KEY in self.kinds:
            key_reuse.check_jaxpr(closed)
        # What nobody reads cannot go wrong, as the residuals of derivatives that are zero.
        live, _ = passes.dead_code_elimination(closed.jaxpr, keep_inputs=True)
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

    @functools.wraps(fun, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def call(*args: Any, **kwargs: Any) -> Any:
        sites, state, result = half.call(args, kwargs)
        if sites.sites:
            report_p.bind(*state, sites=sites)
        return result

    return call
