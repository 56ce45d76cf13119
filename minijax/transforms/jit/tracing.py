"""Tracing without running, and switches on how functions run.

`make_jaxpr` and `eval_shape` trace a function; `named_scope` names what is traced inside it.
`disable_jit`, `ensure_compile_time_eval` and `checking_leaks` change how functions are run, and
`clear_caches` forgets what was traced and compiled.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, ParamSpec, TypeVar, overload

from minijax.core import axes, cache, config, monitoring, source, tree
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.operators import Values
from minijax.core.primitive import Primitive
from minijax.core.trace import Params, Results, Trace, Tracer, current
from minijax.interpreters import flattening, staging
from minijax.lowering import eager, stablehlo
from minijax.transforms.jit import arguments, jit, stages

P = ParamSpec("P")
R = TypeVar("R")


@overload
def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = ...,
    axis_env: Sequence[tuple[str, int]] | None = ...,
    return_shape: Literal[False] = ...,
) -> Callable[..., ClosedJaxpr]: ...
@overload
def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = ...,
    axis_env: Sequence[tuple[str, int]] | None = ...,
    *,
    return_shape: Literal[True],
) -> Callable[..., tuple[ClosedJaxpr, Any]]: ...
@overload
def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = ...,
    axis_env: Sequence[tuple[str, int]] | None = ...,
    *,
    return_shape: bool,
) -> Callable[..., ClosedJaxpr | tuple[ClosedJaxpr, Any]]: ...


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[str, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., ClosedJaxpr | tuple[ClosedJaxpr, Any]]:
    """A function that stages `fun` for the types of its arguments and returns the jaxpr.

    Args:
        fun: a function of trees.
        static_argnums: positions of arguments that are passed on as they are.
        axis_env: pairs of a name and a size: axes over which `fun` is taken to be mapped, the last
            one innermost.
        return_shape: whether to return (jaxpr, shapes and dtypes of the results).

    Example:
        >>> jax.make_jaxpr(lambda x, y: jnp.sin(x) * y)(1.0, jnp.ones(3))
        { lambda ; a:f32[] b:f32[3]. let
            c:f32[] = sin a
            d:f32[3] = mul c b
          in (d,) }
    """
    eager.check_callable("make_jaxpr", fun)
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    @source.result_of(fun)
    def staged(*args: Any, **kwargs: Any) -> Any:
        fixed = {i % len(args) for i in static} if args else set()
        positions = [i for i in range(len(args)) if i not in fixed]
        statics = tuple((i, type(args[i]), args[i]) for i in sorted(fixed))
        function = arguments.with_statics(fun, statics, positions) if statics else fun
        dynamic = tuple(args[i] for i in positions)
        leaves, in_tree = tree.flatten((dynamic, kwargs))
        info = flattening.debug_info("make_jaxpr", fun, in_tree, positions)
        avals = flattening.avals_of(leaves, lambda: info.arg_names or (), "make_jaxpr")
        flat = flattening.FlatFunction(function, in_tree, info.func_name)
        with axes.extend_all(axes.Axis(name, size, "vmap") for name, size in axis_env or ()):
            jaxpr, consts = staging.stage(flat, avals, info)
        info.set_result_paths(functools.partial(flattening.result_paths, flat.out_tree))
        closed = ClosedJaxpr(jaxpr, consts)
        if not return_shape:
            return closed
        return closed, tree.unflatten(flat.out_tree, list(map(stages.struct_of, closed.out_avals)))

    return staged


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of the results of `fun`, without computing them.

    Args:
        fun: a function of trees, jitted or not.
        args: arrays, or anything with a shape and a dtype.
        kwargs: the same by name.

    Example:
        >>> x = jax.ShapeDtypeStruct((1_000_000, 1_000_000), jnp.float32)
        >>> jax.eval_shape(lambda x: x @ x[0], x)
        ShapeDtypeStruct(shape=(1000000,), dtype=float32)
    """
    if jit.is_jitted(fun):
        return fun.eval_shape(*args, **kwargs)  # type: ignore[attr-defined]
    eager.check_callable("eval_shape", fun)
    leaves, in_tree = tree.flatten((args, kwargs))
    leaves = [_shaped(x) for x in leaves]
    info = flattening.debug_info("eval_shape", fun, in_tree)
    avals = flattening.avals_of(leaves, lambda: info.arg_names or (), "eval_shape")
    flat = flattening.FlatFunction(fun, in_tree, info.func_name)
    jaxpr, _ = staging.stage(flat, avals, info)
    outs = [stages.struct_of(v.aval) for v in jaxpr.outvars]
    return tree.unflatten(flat.out_tree, outs)


def _shaped(x: object) -> Any:
    if hasattr(x, "shape") and hasattr(x, "dtype") and not hasattr(x, "aval"):
        return stages.ShapeDtypeStruct(x.shape, x.dtype)
    return x


@source.boundaries("__init__")
class named_scope(config.override[tuple[str, ...]]):  # noqa: N801  mirrors jax.named_scope
    """Context manager and decorator: operations inside carry `name` in the compiled program.

    Raises:
        TypeError: the name is not a string.

    Example:
        >>> @jax.jit
        ... def f(x):
        ...     with jax.named_scope("layer_1"):
        ...         return jnp.sin(x)
        >>> "layer_1/sin" in f.lower(1.0).as_text(debug_info=True)
        True
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            error(TypeError, "named_scope", "the name must be a string.", got=type(name).__name__)
        self._name = source.readable(name)
        super().__init__(staging.scope, ())

    def __enter__(self) -> None:
        self._value = (*staging.scope.value, self._name)
        super().__enter__()


def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """`fun` inside a `named_scope` of its own name, or of another one.

    Example:
        >>> f = jax.jit(jax.named_call(lambda x: jnp.sin(x), name="wave"))
        >>> "wave/sin" in f.lower(1.0).as_text(debug_info=True)
        True
    """
    eager.check_callable("named_call", fun)
    return named_scope(flattening.function_name(fun) if name is None else name)(fun)


def disable_jit(disable: bool = True) -> AbstractContextManager[None]:
    """Context manager: inside it, jitted functions run operation by operation.

    Example:
        >>> f = jax.jit(lambda x: x if x > 0 else -x)
        >>> with jax.disable_jit():
        ...     print(f(-3))
        3
    """
    return config.disable_jit(disable)


def checking_leaks() -> AbstractContextManager[None]:
    """Context manager: a tracer that outlives its trace is an error that says who holds it.

    Example:
        >>> leaked = []
        >>> with jax.checking_leaks():
        ...     jax.jit(lambda x: leaked.append(x))(1)
        Traceback (most recent call last):
        RuntimeError: ...
    """
    return config.check_tracer_leaks(True)


class _KnownTrace(Trace):
    """Computes operations on known values at once; others go to the trace around it."""

    __slots__ = ("parent",)

    def __init__(self, parent: Trace) -> None:
        super().__init__(parent.function_name)
        self.parent = parent

    def process(self, primitive: Primitive, args: Values, params: Params) -> Results:
        inner = self.parent if any(isinstance(x, Tracer) for x in args) else eager.EAGER
        with config.override(current, inner):
            return inner.process(primitive, args, params)


class ensure_compile_time_eval(config.override[Trace]):  # noqa: N801  mirrors JAX's
    """Context manager: operations on known values are computed at once, also while tracing.

    Operations on traced values are staged, as they are outside of it.

    Example:
        >>> @jax.jit
        ... def f(x):
        ...     with jax.ensure_compile_time_eval():
        ...         rows = int(jnp.sqrt(16))
        ...     return x.reshape(rows, -1)
        >>> f(jnp.arange(8)).shape
        (4, 2)
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(current, eager.EAGER)

    def __enter__(self) -> None:
        outer = current.value
        self._value = outer if outer is eager.EAGER else _KnownTrace(outer)
        super().__enter__()


def clear_caches() -> None:
    """Forgets all traced, lowered and compiled programs.

    Example:
        >>> jax.clear_caches()
        >>> jax.cache_stats()["compile"]
        CacheInfo(hits=0, misses=0)
    """
    cache.clear()
    monitoring.transfers.clear()
    stablehlo.forget_context()


def typeof(x: object) -> Any:
    """The type of a value: shape, dtype, weak type.

    Raises:
        TypeError: `x` is neither an array nor a number.

    Example:
        >>> jax.typeof(jnp.ones((2, 3))), jax.typeof(1.0)
        (ShapedArray(float32[2,3]), ShapedArray(float32[], weak_type=True))
        >>> jax.jit(lambda x: jnp.full(3, len(jax.typeof(x).shape)))(jnp.ones((2, 3)))
        Array([2, 2, 2], dtype=int32, weak_type=True)
    """
    return aval_of(x)
