"""`jit`: compile a function once for each signature.  Steps 1, 2 and 8 of a call.

Input: a Python function.  Output: a callable that answers known signatures in C++, and stages,
lowers and compiles for others.  `jit` is also a primitive that holds a closed jaxpr: inside
another traced function a call of a jitted function is one equation.

`docs/reading.md`: the last of twelve files, after `lowering/program.py`.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack, overload

import numpy as np

from minijax.core import config, history, monitoring, refs, source, tree
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr
from minijax.core.native import Buffer, Device
from minijax.core.operators import Avals, Function, Values
from minijax.core.sequences import partition_list
from minijax.core.trace import Tracer, current
from minijax.interpreters import flattening, staging
from minijax.lowering import eager, program, trivial_programs
from minijax.runtime.array import ExtendedArray, explain_deleted
from minijax.sharding.named import UNSPECIFIED
from minijax.transforms.jit import arguments, stages
from minijax.transforms.jit.arguments import JitOptions, JitSettings
from minijax.transforms.jit.primitive import jit_p
from minijax.transforms.jit.stages import JitWrapped, Staged

if TYPE_CHECKING:
    from minijax.core.native import PyTreeDef

P = ParamSpec("P")
R = TypeVar("R")


# What arguments are in most calls: no tracers, references or descriptions, which need a look.
_PLAIN_TYPES = frozenset({Buffer, ExtendedArray, np.ndarray, bool, int, float})
_no_statics: tuple[object, ...] = ()
_staged_by_function = monitoring.tracing.by_owner()


def _staged_programs(function: Function) -> dict[Hashable, Staged]:
    """The staged programs of a function; they live as long as it does."""
    try:
        return _staged_by_function.setdefault(function, {})
    except TypeError:
        return {}


@source.boundaries("trace", "lower", "eval_shape")
class JitFunction:
    """The Python half of a jitted function.

    With `transparent`, a call inside a traced function runs the Python function and adds no `jit`
    equation, as calls of library functions do (decision 0003).
    Transformations that run programs of their own override `_stage`, `bind`, `run` and `traced`.
    """

    traced_for = "jit"

    def __init__(
        self,
        function: Function,
        settings: JitSettings,
        *,
        transparent: bool = False,
        made_at: source.Frame | None = None,
    ) -> None:
        self.function = function
        self.made_at = made_at
        self.transparent = transparent
        self.settings = settings
        self.name = flattening.function_name(function)
        # Whom messages about arguments name.
        self.caller = "" if transparent else self.name
        self.staged = _staged_programs(function)

    @source.is_boundary
    def call(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        """Answers a call that C++ cannot: result, data for C++, and whether to forget the call.

        These are the steps of a call.  The arguments are flattened, their types are the key of the
        program that was staged for them, and a new one is staged where there is none.  Where
        nothing is being traced, the program is lowered and compiled, unless it was before, and run.
        Where something is, the call becomes an equation of what is traced.
        """
        try:
            try:
                if config.disable_jit.value or (
                    self.transparent and current.value is not eager.EAGER
                ):
                    return self.function(*args, **kwargs), None, True
                return self.answer(args, kwargs)
            except SystemError as error:
                explain_deleted(error, args, kwargs)
                raise
        except Exception as exception:
            source.filter_frames(exception)
            raise

    def answer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool]:
        """Runs the staged program, or makes it part of what is being traced; as `call` returns."""
        leaves, staged = self.infer(args, kwargs)
        types = set(map(type, leaves))
        if not types <= _PLAIN_TYPES:
            stages.check_values(self.name, leaves, staged.closed.jaxpr.debug_info)
        has_references = any(issubclass(kind, refs.Cell) for kind in types)
        if current.value is not eager.EAGER or staged.outer or has_references:
            outs = self.bind(staged, staged.outer + leaves)
            return tree.unflatten(staged.out_tree, outs), None, True
        return self.run(staged, leaves)

    def bind(self, staged: Staged, values: Values) -> Values:
        """Applies a staged program in the current trace, as one equation unless it is inlined."""
        closed = arguments.constrained(staged.closed, staged.requested)
        if staged.inline:
            return staging.eval_closed_jaxpr(closed, *values)
        return jit_p.bind_all(
            *values,
            jaxpr=closed,
            name=self.name,
            donated_invars=staged.options.donated,
            keep_unused=staged.options.keep_unused,
            device=staged.requested.device,
        )

    def run(self, staged: Staged, leaves: Values) -> tuple[Any, Any, bool]:
        """Runs a staged program where nothing is traced; as `call` returns."""
        closed, requested = staged.closed, staged.resolved_request
        plan = program.plan_call(closed, leaves, staged.options, requested)
        if not closed.jaxpr.eqns:
            outs = trivial_programs.first_results(closed, leaves, plan, requested)
            if outs is not None:
                return tree.unflatten(staged.out_tree, outs), None, True
        executable = program.executable_of(closed, plan)
        result = tree.unflatten(staged.out_tree, executable(leaves))
        return result, eager.fast_path(executable, len(leaves), result, leaves), False

    def infer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Staged]:
        """The flat arguments of a call, and the staged program for their types: steps 1 to 3."""
        leaves, positions, num_args, key = self.signature(args, kwargs)
        staged = self.staged.get(key)
        # A program may close over tracers; it is of no use once their trace has ended.
        if staged is not None and not (staged.outer and _any_finished(staged.outer)):
            monitoring.tracing.hits += 1
        else:
            staged = self._stage_new(key, leaves, positions, num_args)
        if staged.takes_references:
            info = self.debug_info(key[0], positions)
            refs.check_distinct(self.name, leaves, lambda: info.arg_names or (), staged.outer)
        return leaves, staged

    def signature(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Any], Sequence[int] | None, int, tuple[Any, ...]]:
        """The flat arguments of a call, positions of the dynamic ones, their number, the key.

        The number is that of all positional arguments.  The key begins with the tree of the
        dynamic arguments, their types, and static values.
        """
        statics: Any = _no_statics
        positions: Sequence[int] | None = None
        dyn_args, dyn_kwargs = args, kwargs
        settings = self.settings
        if settings.static_argnums or settings.static_argnames:
            statics, positions, dyn_args, dyn_kwargs = arguments.split_static(
                self.name, self.settings, args, kwargs
            )
        leaves, in_tree = tree.flatten((dyn_args, dyn_kwargs))

        def names() -> Sequence[str]:
            return self.debug_info(in_tree, positions).arg_names or ()

        avals = flattening.avals_of(leaves, names, self.caller)
        key = (in_tree, avals, statics, settings, config.trace_context())
        return leaves, positions, len(args), key

    def _stage_new(
        self, key: Any, leaves: Values, positions: Sequence[int] | None, num_args: int
    ) -> Staged:
        """Stages the function for a signature that is not known yet."""
        in_tree, avals, statics, *_ = key
        monitoring.tracing.misses += 1
        function_record = self.function_record
        record = None
        if function_record is not None:
            record = history.begin_trace(function_record, key, leaves, positions)
        staged = self._stage(in_tree, avals, statics, positions, num_args)
        if record is not None:
            history.end_trace(record, staged.closed, len(staged.outer))
        if not (staged.outer and config.check_tracer_leaks.value):
            self.staged[key] = staged
        return staged

    @functools.cached_property
    def function_record(self) -> history.FunctionRecord | None:
        """The record of this function in `history`; None for the library's own functions."""
        if self.made_at is None or source.is_internal(self.made_at.file_name):
            return None
        names = flattening.parameter_names(self.function)
        return history.describe(self.function, self.name, self.made_at, names)

    def debug_info(self, in_tree: PyTreeDef, positions: Sequence[int] | None) -> DebugInfo:
        """Names of the arguments and of the function, for messages."""
        traced_for = "eager" if self.transparent else self.traced_for
        return flattening.debug_info(traced_for, self.function, in_tree, positions)

    @property
    def donations(self) -> tuple[object, ...]:
        """Positions and names of the arguments whose memory results may take."""
        return (*self.settings.donate_argnums, *self.settings.donate_argnames)

    def explain(self, error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raises our own error in place of one of C++'s about the arguments, if it is one."""
        if str(error).startswith("Non-hashable static"):
            arguments.split_static(self.name, self.settings, args, kwargs)
        explain_deleted(error, args, kwargs)

    def _stage(
        self,
        in_tree: PyTreeDef,
        avals: Avals,
        statics: object,
        positions: Sequence[int] | None,
        num_args: int,
    ) -> Staged:
        info = self.debug_info(in_tree, positions)
        function = self.function
        _check_may_trace(self.name, avals)
        if statics:
            function = arguments.with_statics(function, statics, positions or ())
        flat = flattening.FlatFunction(function, in_tree, self.name)
        with monitoring.timed("trace", "tracing", self.name):
            jaxpr, consts = staging.stage(flat, avals, info)
        info.set_result_paths(functools.partial(flattening.result_paths, flat.out_tree))
        closed, outer = lifted(jaxpr, consts)
        donated = arguments.donated_leaves(self.settings, in_tree, positions, num_args)
        arguments.warn_of_useless_donation(self.name, avals, donated, jaxpr.outvars)
        options, requested = arguments.per_value(
            self.settings, self.name, closed, len(outer), donated, (in_tree, flat.out_tree)
        )
        return Staged(
            closed,
            outer,
            flat.out_tree,
            options,
            requested,
            inline=self.settings.inline,
            takes_references=any(type(aval) is refs.AbstractRef for aval in avals),
        )

    def trace(self, *args: Any, **kwargs: Any) -> stages.Traced:
        """Stages the function for some arguments, which may be `ShapeDtypeStruct`s."""
        leaves, staged = self.infer(args, kwargs)
        in_tree = self.signature(args, kwargs)[3][0]
        return self.traced(staged, in_tree, leaves)

    def traced(self, staged: Staged, in_tree: PyTreeDef, leaves: Values) -> stages.Traced:
        """The stage of a staged program."""
        return stages.Traced(staged._replace(requested=staged.resolved_request), in_tree, leaves)

    def lower(self, *args: Any, **kwargs: Any) -> stages.Lowered:
        """Stages and lowers the function for some arguments."""
        platforms = kwargs.pop("_lowering_platforms", None)
        return self.trace(*args, **kwargs).lower(lowering_platforms=platforms)

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The shapes and dtypes of the results, without computing them."""
        _, staged = self.infer(args, kwargs)
        return stages.result_structs(staged.closed, staged.resolved_request, staged.out_tree)


def native_half(half: JitFunction) -> Any:
    """What answers known calls in C++, and leaves others to the Python half."""
    return eager.native_function(
        half.name,
        half.call,
        static_argnums=half.settings.static_argnums,
        static_argnames=half.settings.static_argnames,
        key=half.settings,
        function=half.function,
    )


def lifted(jaxpr: Jaxpr, consts: Values) -> tuple[ClosedJaxpr, list[Any]]:
    """A jaxpr whose traced constants are its first operands, and these constants."""
    traced = [isinstance(c, (Tracer, refs.Cell)) for c in consts]
    known, outer = partition_list(traced, consts)
    if outer:
        jaxpr.constvars, first = partition_list(traced, jaxpr.constvars)
        jaxpr.invars = first + jaxpr.invars
        jaxpr.debug_info = jaxpr.debug_info.without_arg_names()
    return ClosedJaxpr(jaxpr, known), outer


def _any_finished(values: Values) -> bool:
    return any(isinstance(x, Tracer) and x.traced_by.finished for x in values)


def _check_may_trace(name: str, avals: Avals) -> None:
    if config.no_tracing.value:
        problem = f"{name} would be traced, which `no_tracing` forbids."
        got = f"arguments of types {', '.join(map(str, avals))}"
        fix = "minijax.explain.retraces(function) says what is new about this call"
        error(RuntimeError, "jit", problem, got=got, fix=fix)


@overload
def jit(fun: Callable[P, R], /, **options: Unpack[JitOptions]) -> JitWrapped[P, R]: ...
@overload
def jit(**options: Unpack[JitOptions]) -> Callable[[Callable[P, R]], JitWrapped[P, R]]: ...


@flattening.or_decorator
def jit(
    fun: Callable[P, R],
    /,
    *,
    in_shardings: object = UNSPECIFIED,
    out_shardings: object = UNSPECIFIED,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> JitWrapped[P, R]:
    """Compiles `fun` with XLA, once for each signature of its arguments.

    The function is traced with abstract values: Python code in it runs once per signature, and
    only operations on arrays are compiled.

    Args:
        fun: a function of trees of arrays; absent when used as `@jit(option=...)`.
        in_shardings: where positional arguments live: a sharding, a `PartitionSpec` for the mesh
            in force, or a tree prefix of such; None leaves it to the arguments themselves.
        out_shardings: where results shall live; None leaves it to the compiler.
        static_argnums: positions of arguments that are part of the signature by value; hashable.
        static_argnames: the same by name.
        donate_argnums: positions of arguments whose memory results may take.
        donate_argnames: the same by name.
        keep_unused: keep arguments that the function does not use.
        device: where to run.
        backend: the platform to run on.
        inline: inside other traced functions, do not make a call of its own.
        compiler_options: fields of XLA's DebugOptions by name.

    Returns:
        A function like `fun`, with `trace`, `lower`, `eval_shape` and `clear_cache`.

    Raises:
        TypeError: an argument is neither an array nor a number, or `fun` is not callable.
        ValueError: a static argument is not hashable, a named parameter does not exist, a
            placement does not fit its value, or the devices of arguments disagree.

    Example:
        >>> @jax.jit
        ... def f(x):
        ...     print("tracing for", jax.typeof(x))
        ...     return x + 1
        >>> f(jnp.int32(1)), f(jnp.int32(2)), f(jnp.float32(1.5))
        tracing for i32[]
        tracing for f32[]
        (Array(2, dtype=int32), Array(3, dtype=int32), Array(2.5, dtype=float32))
        >>> power = jax.jit(lambda x, n: x**n, static_argnums=1)
        >>> jax.make_jaxpr(power, static_argnums=1)(3, 2)
        { lambda ; a:i32[]. let
            b:i32[] = jit[
              name=<lambda>
              jaxpr={ lambda ; a:i32[]. let b:i32[] = integer_pow[y=2] a in (b,) }
            ] a
          in (b,) }
    """
    eager.check_callable("jit", fun)
    if inspect.isgeneratorfunction(fun) or inspect.iscoroutinefunction(fun):
        error(TypeError, "jit", "cannot compile a generator or a coroutine.", got=repr(fun))
    settings = arguments.settings_of(
        fun,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        donate_argnums=donate_argnums,
        donate_argnames=donate_argnames,
        keep_unused=keep_unused,
        device=device,
        backend=backend,
        inline=inline,
        compiler_options=compiler_options,
        in_shardings=in_shardings,
        out_shardings=out_shardings,
    )
    # Between the user's line and this one is the frame of `or_decorator`.
    return _native(JitFunction(fun, settings, made_at=source.calling_frame(between=1)))


def _native(half: JitFunction) -> Any:
    """The callable that users get: C++, with the methods of the Python half as attributes."""
    settings = half.settings
    call = native = native_half(half)
    if any((settings.static_argnums, settings.static_argnames, *half.donations)):

        @source.is_boundary
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                try:
                    return native(*args, **kwargs)
                except (ValueError, RuntimeError) as error:
                    half.explain(error, args, kwargs)
                    raise
            except Exception as exception:
                source.filter_frames(exception)
                raise

    functools.update_wrapper(call, half.function)
    call.trace = half.trace
    call.lower = half.lower
    call.eval_shape = half.eval_shape
    # A strong reference would be a cycle through C++, and functions would never die.
    reference = weakref.ref(native)
    call.clear_cache = lambda: clear(half, reference())
    if call is not native:
        call._cache_size = native._cache_size
    call.jit_function = half
    return call


def clear(half: JitFunction, native: Any) -> None:
    """Forgets the programs of a function, in Python and in C++."""
    half.staged.clear()
    native._clear_cache()


def jitted(name: str, function: Function) -> Any:
    """A function as `jit` makes it; itself, where it has the stages of one.

    Raises:
        TypeError: `function` is not callable; the text names `name`, the public function.
    """
    eager.check_callable(name, function)
    return function if hasattr(function, "trace") else jit(function)


def is_jitted(function: Function) -> bool:
    """Whether `jit` made this callable."""
    return hasattr(function, "jit_function")
