"""Debugging of programs while they run: the functions of `minijax.debug`.

`debug.callback`, `debug.print` and `debug.log` show the values of arrays when the program runs, and
`debug.breakpoint` shows the local variables of a line when the program passes it.  These operations
have no results and change nothing, so every transformation leaves them where they are.
`debug.inspect_array_sharding` asks the compiler how it places a value.
"""

from __future__ import annotations

import code
import functools
import inspect
import logging
import string
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from minijax.core import dtypes, effects, printing, source, tree
from minijax.core.aval import ShapedArray, aval_of
from minijax.core.errors import error
from minijax.core.primitive import Batched, Primitive
from minijax.lax.callbacks import FlatCallback, example, lower_call
from minijax.lax.families import BatchDims, Params, Values, jvp_without_results, no_results
from minijax.lowering import device_axes, eager, inspection, regions
from minijax.lowering.inspection import Inspection
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime import callbacks, client, effect_tokens
from minijax.runtime.array import Array, is_array, physical_aval
from minijax.sharding import rules
from minijax.sharding.base import Sharding
from minijax.sharding.named import SingleDeviceSharding


class InspectSharding(Primitive):
    """Tells a Python function how a value is placed, when the program is compiled.

    Derivative: the primal value is inspected; without results there is nothing to transpose.
    """

    name = "inspect_sharding"
    multiple_results = True
    has_effects = True
    abstract_eval = no_results
    shard = no_results
    jvp = jvp_without_results

    def impl(self, x: Array, *, callback: Inspection) -> list[Any]:
        eager.check_no_tracers([x])
        if is_array(x):
            callback.callback(x.sharding)
        else:
            callback.callback(SingleDeviceSharding(client.default_device()))
        return []

    def effects(self, *avals: Any, **_: Any) -> frozenset[Any]:
        return frozenset({inspection.effect})

    def lower(self, ctx: LoweringContext, value: Value, *, callback: Inspection) -> list[Any]:
        if ctx.module.partitioning.partitions > 1:
            callback.lower(ctx, value, physical_aval(ctx.avals_in[0]))
        return []

    def batch(self, size: int, args: Values, dims: BatchDims, **params: Any) -> Batched:
        return self.bind(*args, **params), []


dtypes.knows_extended.set(True, InspectSharding)


inspect_sharding_p = InspectSharding()


def inspect_array_sharding(value: object, *, callback: Callable[[Sharding], Any]) -> None:
    """Calls a function with the shardings of arrays: at once, or when `jit` compiles.

    Inside `jit` the compiler decides about values between arguments and results; the function is
    called once for each compilation, with what it has decided.  Under vmap it is told about the
    whole batch.

    Args:
        value: an array, or a tree of arrays.
        callback: takes a `Sharding` for each array; what it returns is ignored.

    Raises:
        TypeError: `callback` cannot be called.

    Example:
        >>> spread = jax.NamedSharding(jax.make_mesh((8,), ("x",)), jax.P("x"))
        >>> x = jax.device_put(jnp.arange(8), spread)
        >>> jax.debug.inspect_array_sharding(x, callback=lambda sharding: print(sharding.spec))
        P('x',)
    """
    eager.check_callable("debug.inspect_array_sharding", callback)
    for leaf in tree.leaves(value):
        inspect_sharding_p.bind(leaf, callback=Inspection(callback))


class DebugEffect(effects.Effect):
    """A program shows a value to the user.

    Source:     mirrors the effect of jax.debug.print (0.10).

    Example:
        >>> jax.make_jaxpr(lambda x: jax.debug.print("{}", x))(1).effects
        frozenset({Debug})
    """

    __slots__ = ()


class OrderedDebugEffect(effects.Effect):
    """As `DebugEffect`, but in the order of the program.

    Source:     mirrors the effect of jax.debug.print with `ordered` (0.10).

    Example:
        >>> jax.make_jaxpr(lambda x: jax.debug.print("{}", x, ordered=True))(1).effects
        frozenset({OrderedDebug})
    """

    __slots__ = ()


debug_effect = DebugEffect()
ordered_debug_effect = OrderedDebugEffect()
for _effect_type in (DebugEffect, OrderedDebugEffect):
    effects.lowerable_effects.add_type(_effect_type)
    effects.control_flow_allowed_effects.add_type(_effect_type)
    effects.unguarded_effects.add_type(_effect_type)
effects.ordered_effects.add_type(OrderedDebugEffect)


class DebugCallback(Primitive):
    """Calls a Python function with some values, and forgets what it returns.

    Derivative: the primal values are shown; without results there is nothing to transpose.
    """

    name = "debug_callback"
    multiple_results = True
    has_effects = True
    shard = rules.from_types
    abstract_eval = no_results
    jvp = jvp_without_results

    def impl(self, *args: Any, callback: Any, effect: Any, **_: Any) -> list[Any]:
        eager.check_no_tracers(args)
        if effects.ordered_effects.contains(effect):
            effect_tokens.wait_for(effect)
        return callbacks.call_at_once("debug.callback", _without_results(callback), args, ())

    def effects(self, *avals: Any, effect: Any, **_: Any) -> frozenset[Any]:
        return frozenset({effect})

    def lower(
        self, ctx: LoweringContext, *values: Value, callback: Any, effect: Any, partitioned: bool
    ) -> list[Any]:
        def call(inner: LoweringContext, *own: Value) -> list[Any]:
            function, avals = _without_results(callback), ctx.avals_in
            return lower_call(
                inner, "debug.callback", function, own, avals, effect, partitioned=partitioned
            )

        axes = ctx.module.device_axes
        if partitioned or not isinstance(axes, device_axes.PartitionAxes) or not axes.automatic:
            return call(ctx, *values)
        # XLA cuts no calls, so along axes that are left to it the first device calls.
        once = functools.partial(_on_first_device, axes.automatic, call)
        return regions.on_each_device(ctx, values, [], once)

    def batch(self, size: int, args: Sequence[Array], dims: BatchDims, **params: Any) -> Batched:
        # Written out, not a loop: also ordered calls keep their order this way.
        for i in range(size):
            self.bind(*example(i, args, dims), **params)
        return [], []


def _on_first_device(
    names: Sequence[Any], call: Callable[..., list[Any]], ctx: LoweringContext, *values: Value
) -> list[Any]:
    """Builds an operation without results that only the first device along some axes does."""
    numbers = [ctx.module.device_axes.index(ctx, name) for name in names]
    number = functools.reduce(lambda a, b: ctx.op("stablehlo.add", [a, b], type=a.type), numbers)
    branches: list[Any] = [([], lambda inner: call(inner, *values)), ([], lambda inner: [])]
    ctx.ops("stablehlo.case", [number], types=[], regions=branches)
    return []


dtypes.knows_extended.set(True, DebugCallback)
printing.hidden_params.set(frozenset({"partitioned"}), DebugCallback)


debug_callback_p = DebugCallback()


def _without_results(callback: Callable[..., Any]) -> Callable[..., Sequence[Any]]:
    def call(*args: Any) -> Sequence[Any]:
        callback(*args)
        return ()

    return call


def _is_array(x: object) -> bool:
    """Whether a leaf travels with the program; others, such as strings, stay in Python."""
    try:
        aval_of(x)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _bind(
    function: Callable[..., Any], args: Values, kwargs: Params, ordered: bool, partitioned: bool
) -> None:
    leaves, in_tree = tree.flatten((tuple(args), dict(kwargs)))
    fixed = {i: x for i, x in enumerate(leaves) if not _is_array(x)}
    debug_callback_p.bind(
        *(x for i, x in enumerate(leaves) if i not in fixed),
        callback=FlatCallback(function, in_tree, fixed),
        effect=ordered_debug_effect if ordered else debug_effect,
        partitioned=bool(partitioned),
    )


@overload
def debug_callback(
    callback: Callable[..., Any],
    *args: Any,
    ordered: bool = ...,
    partitioned: bool = ...,
    **kwargs: Any,
) -> None: ...
@overload
def debug_callback(*, ordered: bool = ..., partitioned: bool = ...) -> Callable[..., None]: ...


def debug_callback(
    callback: Callable[..., Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Calls a Python function with the values of arrays, when the program runs.

    It is called wherever the program passes: for each example under vmap, for each step of a
    loop, and with primal values under differentiation.

    Args:
        callback: the function; what it returns is ignored.  Absent: the result is this function
            with the options given.
        args: its arguments: trees of arrays, and of anything else, which is passed as it is.
        ordered: whether calls happen in the order of the program.
        partitioned: whether each device calls with its own piece; all the same on one device.
        kwargs: its keyword arguments.

    Raises:
        TypeError: `callback` cannot be called.

    Example:
        >>> seen = []
        >>> note = lambda value: seen.append(int(value))
        >>> jax.jit(lambda x: jax.debug.callback(note, x + 1))(4)
        >>> jax.effects_barrier()
        >>> seen
        [5]
    """
    if callback is None:
        return functools.partial(debug_callback, ordered=ordered, partitioned=partitioned)
    eager.check_callable("debug.callback", callback)
    _bind(callback, args, kwargs, ordered, partitioned)
    return None


class Printer:
    """Formats values as its format says and hands the text on.

    NumPy's options are those in force where it is made: programs may print from other threads.
    """

    __slots__ = ("__name__", "emit", "fmt", "options")

    def __init__(self, fmt: str, emit: Callable[[str], None]) -> None:
        self.__name__ = repr(fmt)
        self.fmt = fmt
        self.emit = emit
        self.options = np.get_printoptions()

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        with np.printoptions(**self.options):
            text = self.fmt.format(*args, **kwargs)
        self.emit(text)


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


class FormatKeyError(KeyError):
    """A format names an argument that is not given; unlike its base, it shows lines as lines."""

    def __str__(self) -> str:
        return str(self.args[0])


class _Checker(string.Formatter):
    """Formats stand-ins of arrays, and minds that every argument is used."""

    def check_unused_args(self, used_args: Any, args: Values, kwargs: Params) -> None:
        unused = [f"argument {i}" for i in range(len(args)) if i not in used_args]
        unused += [f"argument {key!r}" for key in kwargs if key not in used_args]
        if unused:
            raise ValueError(f"the format does not use {', '.join(unused)}")

    def format_field(self, value: object, format_spec: str) -> Any:
        if isinstance(value, np.ndarray) and value.ndim and format_spec:
            raise TypeError(
                f"{format_spec!r} formats one number, not an array of shape {value.shape}"
            )
        return format(value[()] if isinstance(value, np.ndarray) else value, format_spec)


def _stand_in(x: Array) -> Any:
    """A value like `x`, which need not be known yet, that formats can be tried on."""
    aval = aval_of(x) if _is_array(x) else None
    if not isinstance(aval, ShapedArray) or dtypes.is_extended(aval.dtype):
        return x
    return np.broadcast_to(np.zeros((), aval.dtype), aval.shape)


def _check_format(name: str, fmt: str, args: Values, kwargs: Params) -> None:
    """Refuses a format that does not fit its arguments.

    Raises:
        IndexError, KeyError, ValueError, TypeError: as `str.format` does.
    """
    args, kwargs = tree.map(_stand_in, (tuple(args), dict(kwargs)))
    try:
        _Checker().vformat(fmt, args, kwargs)
    except AttributeError:
        # An attribute that arrays may have although their stand-ins do not.
        return
    except (IndexError, KeyError, ValueError, TypeError) as caught:
        kind = FormatKeyError if isinstance(caught, KeyError) else type(caught)
        fix = None
        if isinstance(caught, KeyError):
            problem = f"the format names an argument {caught} that is not given."
        elif isinstance(caught, IndexError):
            problem = "the format has more places than there are positional arguments."
        else:
            problem = f"{caught}."
        if "does not use" in problem:
            fix = "pass values as arguments, not inside an f-string"
        elif "formats one number" in problem:
            fix = "numpy.set_printoptions says how elements of arrays are printed"
        error(kind, name, problem, got=repr(fmt), fix=fix, cause=None)


@overload
def debug_print(
    fmt: str,
    *args: Any,
    ordered: bool = ...,
    partitioned: bool = ...,
    skip_format_check: bool = ...,
    **kwargs: Any,
) -> None: ...
@overload
def debug_print(
    *, ordered: bool = ..., partitioned: bool = ..., skip_format_check: bool = ...
) -> Callable[..., None]: ...


def debug_print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Prints values of arrays, when the program runs.

    Args:
        fmt: a format as of `str.format`, such as `"loss {:.3f} at {step}"`.  Absent: the result
            is this function with the options given.
        args: what the format's numbered places show.
        ordered: whether lines appear in the order of the program.
        partitioned: whether each device prints its own piece; all the same on one device.
        skip_format_check: whether a wrong format is an error only when something is printed.
        kwargs: what the format's named places show.

    Raises:
        IndexError, KeyError: the format names an argument that is not given.
        ValueError: the format is malformed, or does not use an argument.
        TypeError: the format is not a string, or formats an array like a number.

    Example:
        >>> f = jax.jit(lambda x: jax.debug.print("x + {one} = {}", x + 1, one=1))
        >>> f(4); jax.effects_barrier()
        x + 1 = 5
    """
    if fmt is None:
        return functools.partial(
            debug_print,
            ordered=ordered,
            partitioned=partitioned,
            skip_format_check=skip_format_check,
        )
    _show("debug.print", fmt, _print, args, kwargs, ordered, partitioned, skip_format_check)
    return None


def debug_log(
    fmt: str,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> None:
    """As `debug.print`, to the logger `minijax.debug` at level INFO.

    Raises:
        IndexError, KeyError, ValueError, TypeError: as of `debug.print`.

    Example:
        >>> jax.jit(lambda x: jax.debug.log("loss {:.2f}", x))(0.5)
        >>> jax.effects_barrier()
    """
    _show("debug.log", fmt, logger.info, args, kwargs, ordered, partitioned, skip_format_check)


logger = logging.getLogger("minijax.debug")


def _show(
    name: str,
    fmt: str,
    emit: Callable[[str], None],
    args: Values,
    kwargs: Params,
    ordered: bool,
    partitioned: bool,
    skip_format_check: bool,
) -> None:
    if not isinstance(fmt, str):
        error(TypeError, name, "the format must be a string.", got=repr(fmt))
    if not skip_format_check:
        _check_format(name, fmt, args, kwargs)
    _bind(Printer(fmt, emit), args, kwargs, ordered, partitioned)


# Names with values: not a dictionary, whose keys a tree would sort.
_Values = list[tuple[str, Any]]

_NOT_VALUES = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)


def debug_breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: object = None,
    **kwargs: Any,
) -> None:
    """Shows the local variables of the caller, when the program passes this line.

    At a terminal, a Python prompt opens in which they have their values, and the program goes on
    when it is left.  Elsewhere they are printed and the program goes on.

    Source: mirrors jax.debug.breakpoint (0.10), reduced to looking.

    Args:
        backend: accepted for JAX's sake; there is one way of looking.
        filter_frames: whether frames of the library are left out.
        num_frames: how many frames, from the innermost one, are looked at; None is one.
        ordered: whether breakpoints are passed in the order of the program.
        token: accepted for JAX's sake.
        kwargs: more values to show, by name.

    Example:
        >>> def double(x):
        ...     y = 2 * x
        ...     jax.debug.breakpoint()
        ...     return y
        >>> double(3)
        breakpoint at ...:3 in double
          x = Array(3, dtype=int32, weak_type=True)
          y = Array(6, dtype=int32, weak_type=True)
        6
    """
    del backend, token
    frames = _callers(1 if num_frames is None else num_frames, filter_frames)
    values = [_values(frame) for frame in frames]
    if values:
        values[0] += kwargs.items()
    places = tuple(source.Frame(f.f_code.co_filename, f.f_lineno, f.f_code.co_name) for f in frames)
    debug_callback(functools.partial(_show_locals, places), values, ordered=ordered)


def _callers(count: int, filter_frames: bool) -> list[types.FrameType]:
    frame = inspect.currentframe()
    found: list[types.FrameType] = []
    while frame is not None and len(found) < count:
        is_ours = frame.f_globals.get("__name__") == __name__
        is_hidden = filter_frames and source.is_internal(frame.f_code.co_filename)
        if not is_ours and not is_hidden:
            found.append(frame)
        frame = frame.f_back
    return found


def _values(frame: types.FrameType) -> _Values:
    """The local variables of a frame that hold values, in their order."""
    return [
        (name, value)
        for name, value in frame.f_locals.items()
        if not name.startswith("__") and not isinstance(value, _NOT_VALUES)
    ]


def _show_locals(places: tuple[source.Frame, ...], values: list[_Values]) -> None:
    text = "\n".join(
        "\n".join([f"breakpoint at {place}", *(f"  {k} = {_indented(v)}" for k, v in own)])
        for place, own in zip(places, values, strict=True)
    )
    if sys.stdin is not None and sys.stdin.isatty():
        code.interact(banner=text, local=dict(values[0]) if values else {}, exitmsg="")
    else:
        sys.stdout.write(text + "\n")


def _indented(value: object) -> str:
    return repr(value).replace("\n", "\n    ")
