"""Eager evaluation: what `bind` does when nothing is being traced.

Each operation is a program of one primitive, compiled once for each signature.  Repeated calls
are answered by jaxlib's C++ call path.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from jaxlib import _jax

from minijax.core import config, hooks, refs, tree_registry
from minijax.core.aval import aval_of
from minijax.core.cache import Cache
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr, DebugInfo
from minijax.core.native import Buffer
from minijax.core.operators import Value, Values
from minijax.core.primitive import Primitive
from minijax.core.trace import Params, Trace, Tracer, leaked
from minijax.interpreters import placed_types, staging
from minijax.lowering import program
from minijax.lowering.call_plan import ProgramOptions
from minijax.runtime import client, placement, transfer
from minijax.runtime.array import is_array

# jaxlib's call path reads these; JAX sets them too, and then its own states serve as well.
_jax.jax_jit.set_enable_x64_state(config.enable_x64.native)
_jax.jax_jit.set_disable_jit_state(config.disable_jit.native)
_jax.jax_jit.set_post_hook_state(_jax.config.Config("minijax_post_hook", None))

_discharge_of = refs.discharge.of


class EagerTrace(Trace):
    """Computes at once."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: Values, params: Params) -> Sequence[Any]:
        discharge = _discharge_of(primitive)
        if discharge is not None and (refs.makes_references.of(primitive) or refs.any_cell(args)):
            out = discharge(*args, **params)
        elif primitive.impl is not None:
            out = primitive.impl(*args, **params)
        else:
            key = (primitive, *params.items()) if params else primitive
            function = _one_op_functions.get(key)
            if function is None:
                function = _one_op_functions.setdefault(key, _one_op(primitive, params))
            out = function(*args)
        return out if primitive.multiple_results else (out,)


EAGER = EagerTrace()
hooks.fill_eager_trace(EAGER)
hooks.register_placement_semantics(placed_types.Semantics())

_one_op_functions: dict[Any, Callable[..., Any]] = Cache(
    "operations",
    "primitives as functions that C++ calls",
    key="primitive, parameters",
    emptied=True,
    counted=False,
).table()
_staged = Cache(
    "eager",
    "primitives staged for one signature",
    key="types, tracing context",
    owner="function of the primitive",
)
_function_cache = Cache(
    "C++ signatures",
    "what C++ needs to answer a known call by itself",
    key="types, native shardings, trees, static values, configuration, the current trace",
    owner="jitted function",
    emptied=True,
    counted=False,
).native(_jax.PjitFunctionCache())


def native_function(
    name: str,
    miss: Callable[..., Any],
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    key: Hashable | None = None,
    function: Callable[..., Any] | None = None,
) -> Any:
    """A C++ callable that answers known signatures itself and asks `miss` about others.

    Args:
        name: what it is called in profiles.
        miss: takes a call's arguments; returns the result, `FastPathData` or None, and whether
            C++ shall forget the call.
        static_argnums: positions of arguments that are part of the signature by value.
        static_argnames: the same by name.
        key: callables of one `function` with equal keys share their signatures.
        function: the user's function.
    """
    # C++ refers to the function weakly, and crashes on one that cannot be referred to like that.
    if function is None or not type(function).__weakrefoffset__:
        function = lambda *args, **kwargs: miss(*args, **kwargs)[0]  # noqa: E731
    return _jax.pjit(
        name,
        function,
        miss,
        list(static_argnums),
        list(static_argnames),
        object() if key is None else key,
        tree_registry.dispatch_registry,
        _placed,
        _function_cache,
    )


def _placed(x: Value, target: Any, *_: Any) -> Any:
    """The buffer for an argument that C++ cannot place itself, such as a number on many devices."""
    if type(x) is Buffer:
        return transfer.moved(x, target)
    return transfer.buffer_on(x, aval_of(x), target)


def _one_op(primitive: Primitive, params: Params) -> Callable[..., Any]:
    options = ProgramOptions(primitive.name, compiler_options=tuple(client.ONE_OPERATION.items()))
    programs: dict[Any, ClosedJaxpr] = {}

    def miss(*args: Any) -> tuple[Any, Any, bool]:
        check_no_tracers(args)
        check_all_here(primitive.name, args)
        avals = tuple(map(aval_of, args))
        key = (avals, config.trace_context())
        closed = programs.get(key)
        if closed is None:
            _staged.misses += 1
            info = DebugInfo("eager", primitive.name)
            function = functools.partial(primitive.bind_all, **params)
            closed = programs[key] = staging.stage_closed(function, avals, info)
        else:
            _staged.hits += 1
        executable = program.executable_for(closed, args, options)
        outs = executable(args)
        result = outs if primitive.multiple_results else outs[0]
        return result, fast_path(executable, len(args), result, args), False

    return native_function(primitive.name, miss)


def fast_path(executable: Any, num_args: int, result: Any, args: Values) -> Any:
    """Data for jaxlib's call path, or None where a call must pass through Python."""
    if not executable.may_be_called_by_cpp:
        return None
    if config.debug_nans.value or config.debug_infs.value or config.debug_key_reuse.value:
        return None
    if any(not is_array(x) and _is_wide(x) for x in args):
        return None
    if any(map(_is_laid_out, args)) or (executable.donated and any(map(_is_shared, args))):
        return None
    return executable.fast_path(num_args, result)


def _is_wide(x: Value) -> bool:
    # C++ converts host values by a process-wide 64-bit switch, which another library may own.
    return getattr(getattr(x, "dtype", None), "itemsize", 4) == 8


def _is_laid_out(x: object) -> bool:
    return is_array(x) and bool(x.buffer._sharding.layout)


def _is_shared(x: object) -> bool:
    return is_array(x) and placement.is_shared(x.buffer)


def check_no_tracers(args: Values) -> None:
    """Refuses tracers where nothing is being traced: they leaked.

    Raises:
        UnexpectedTracerError: one did.
    """
    for x in args:
        if isinstance(x, Tracer):
            raise leaked(x)


def check_all_here(name: str, args: Values) -> None:
    """Refuses single operations on arrays of which other processes hold pieces.

    Such operations are programs that all processes must run; outside `jit` some may not.

    Raises:
        RuntimeError: there is one, and `spmd_mode` does not allow it.
    """
    if config.spmd_mode.value == "allow_all":
        return
    for x in args:
        if is_array(x):
            public = x.buffer._sharding.public
            if not public.is_fully_addressable:
                error(
                    RuntimeError,
                    name,
                    "other processes hold pieces of an operand.",
                    got=f"{x.buffer.aval} with {public}",
                    expected="operations on such arrays inside jit, which all processes call",
                    fix="jit the function; or, where all processes run the same operations, "
                    "config.update('spmd_mode', 'allow_all')",
                )


def check_callable(name: str, function: object) -> None:
    """Refuses what cannot be called, where a transformation expects a function.

    Raises:
        TypeError: `function` is not callable.
    """
    if not callable(function):
        got = f"{type(function).__name__}: {function!r}"
        fix = f"{name}(f)(x) in place of {name}(f(x))" if hasattr(function, "aval") else None
        error(TypeError, name, "expected a function.", got=got, fix=fix)
