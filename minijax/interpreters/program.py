"""Programs: closed jaxprs made runnable.  Steps 4 to 6 of the walk in one call.

Input: a closed jaxpr and where it shall run.  Output: an executable, compiled once for each
device and kept with the jaxpr.
"""

from __future__ import annotations

import functools
import logging
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from minijax.core import config, effects, history, statistics
from minijax.core.aval import aval_of
from minijax.core.errors import message
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr
from minijax.interpreters import diagnosis, discharge, key_reuse, lowering, passes, structure
from minijax.runtime import client, compile
from minijax.runtime.array import Array
from minijax.runtime.execute import Executable, buffer_on

_LARGE_CONSTANT_BYTES = 4096


class Options(NamedTuple):
    """How a program is to be compiled, apart from where."""

    name: str
    keep_unused: bool = True
    donated: tuple[bool, ...] = ()
    compiler_options: tuple[tuple[str, Any], ...] = ()


class Lowered(NamedTuple):
    """A program as a StableHLO module, with what is left of its arguments."""

    module: Any
    host_callbacks: list[Any]
    jaxpr: Jaxpr
    kept: tuple[int, ...] | None
    options: Options
    large_consts: list[Any]
    # The program before it was cleaned: weak, as the program keeps this in its cache.
    origin: Any


def committed_device(args: Sequence[Any], function_name: str) -> Any:
    """The device that committed arguments demand, or None.

    Raises:
        ValueError: committed arguments live on different devices.
    """
    device = None
    first = 0
    for i, x in enumerate(args):
        if not type.__instancecheck__(Array, x) or not x.buffer._committed:
            continue
        own = x.buffer._sharding.device
        if own is None:
            x.block_until_ready()  # raises: the array was deleted
        if device is None:
            device, first = own, i
        elif own is not device and own != device:
            raise ValueError(
                message(
                    function_name,
                    "arguments are committed to different devices.",
                    got=f"argument {first} ({args[first].aval}) on {device}, "
                    f"argument {i} ({x.aval}) on {own}",
                    fix="move one of them with minijax.device_put(x, device)",
                )
            )
    return device


def lower(closed: ClosedJaxpr, options: Options, platform: str) -> Lowered:
    """Cleans and lowers a closed jaxpr; done once for each platform."""
    key = ("lower", options, platform)
    found = closed.cache.get(key)
    if found is not None:
        statistics.lowering.hits += 1
        return found  # type: ignore[no-any-return]
    statistics.lowering.misses += 1
    if closed.effects:
        effects.check_lowerable(options.name, closed.effects)
    with statistics.timed("jaxpr_to_module", "jaxpr to StableHLO lowering", options.name):
        pure = discharge.without_references(closed)
        clean, kept_flags = passes.clean(pure, keep_inputs=options.keep_unused)
        jaxpr = clean.jaxpr
        kept = None
        if not all(kept_flags):
            kept = tuple(i for i, keep in enumerate(kept_flags) if keep)
        clean, large = _lift_large_constants(clean)
        names = closed.jaxpr.debug_info
        module = lowering.lower_to_module(
            clean,
            options.name,
            platform,
            donated=[False] * len(large) + list(_select(options.donated, kept)),
            arg_names=None
            if names.arg_names is None
            else ["constant"] * len(large) + list(_select(names.arg_names, kept)),
            result_names=names.result_paths,
        )
    result = Lowered(
        module.module, module.host_callbacks, jaxpr, kept, options, large, weakref.ref(closed)
    )
    closed.cache[key] = result
    return result


def _lift_large_constants(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """Makes large constants leading parameters: in the module's text they would be copied."""
    jaxpr = closed.jaxpr
    is_large = [
        v.aval.size * v.aval.dtype.itemsize > _LARGE_CONSTANT_BYTES for v in jaxpr.constvars
    ]
    if not any(is_large):
        return closed, []
    large_vars = [v for v, large in zip(jaxpr.constvars, is_large, strict=True) if large]
    lifted = Jaxpr(
        [v for v, large in zip(jaxpr.constvars, is_large, strict=True) if not large],
        large_vars + jaxpr.invars,
        jaxpr.outvars,
        jaxpr.eqns,
        jaxpr.effects,
        jaxpr.debug_info,
    )
    small = [c for c, large in zip(closed.consts, is_large, strict=True) if not large]
    return ClosedJaxpr(lifted, small), [
        c for c, large in zip(closed.consts, is_large, strict=True) if large
    ]


def _select(items: Sequence[Any], kept: Sequence[int] | None) -> Sequence[Any]:
    return items if kept is None else [items[i] for i in kept if i < len(items)]


def compile_lowered(
    lowered: Lowered,
    device: Any,
    *,
    committed: bool,
    options: Mapping[str, Any] | None = None,
) -> Executable:
    """Compiles a lowered program for a device."""
    statistics.compilation.misses += 1
    name = lowered.options.name
    in_avals = [v.aval for v in lowered.jaxpr.invars]
    level = logging.WARNING if config.log_compiles.value else logging.DEBUG
    if compile.logger.isEnabledFor(level):
        compile.logger.log(level, "Compiling %s with global shapes and types %s", name, in_avals)
    with statistics.timed("compile", "XLA compilation", name):
        try:
            loaded = compile.compile_module(
                lowered.module,
                device,
                options={**dict(lowered.options.compiler_options), **(options or {})},
                host_callbacks=lowered.host_callbacks,
            )
        except RuntimeError:
            lowering.verify(lowered.module, lowered.jaxpr)
            raise
    return Executable(
        loaded,
        device,
        in_avals,
        [v.aval for v in lowered.jaxpr.outvars],
        kept=lowered.kept,
        consts=[buffer_on(c, aval_of(c), device) for c in lowered.large_consts],
        committed=committed,
        donated=[i for i, given in enumerate(lowered.options.donated) if given],
        ordered=effects.ordered_among(lowered.jaxpr.effects),
        has_effects=bool(lowered.jaxpr.effects),
        calls_python=bool(lowered.host_callbacks),
        diagnose=_diagnosis(name, lowered.origin),
    )


def executable_for(
    closed: ClosedJaxpr, args: Sequence[Any], options: Options, device: Any = None
) -> Executable:
    """The executable for a call with `args`; compiled on the first such call.

    Args:
        closed: the program.
        args: its arguments, whose placement decides where it runs.
        options: how it is compiled.
        device: where it runs, if the user has said so.
    """
    if config.debug_key_reuse.value:
        key_reuse.use_arguments(closed, args)
    demanded = committed_device(args, options.name) if device is None else device
    target = client.default_device() if demanded is None else demanded
    key = ("executable", options, target, demanded is not None)
    found = closed.cache.get(key)
    if found is None:
        found = closed.cache.setdefault(key, _shared_executable(closed, args, key))
    else:
        statistics.compilation.hits += 1
    return found  # type: ignore[no-any-return]


_MOST_SHARED = 512
# Executables by the structure of their programs, the last used at the end: decision 0006.
_shared: OrderedDict[Any, Executable] = OrderedDict()


def _shared_executable(closed: ClosedJaxpr, args: Sequence[Any], key: Any) -> Executable:
    """The executable of a program that was not compiled itself; perhaps an equal one was."""
    _, options, target, committed = key
    found = structure.key_of(closed)
    shared_key = found, key
    made = None if found is None else _shared.pop(shared_key, None)
    if made is None:
        deciding = [i for i, x in enumerate(args) if committed_device((x,), options.name)]
        history.compiling(closed, target, committed=committed, demanded_by=deciding)
        lowered = lower(closed, options, target.platform)
        made = compile_lowered(lowered, target, committed=committed)
    else:
        statistics.compilation.hits += 1
        made = made.shared_with(_diagnosis(options.name, weakref.ref(closed)))
    if found is not None:
        _shared[shared_key] = made
        if len(_shared) > _MOST_SHARED:
            _shared.popitem(last=False)
    return made


def _diagnosis(name: str, origin: Any) -> Callable[..., None]:
    return functools.partial(diagnosis.explain_bad_result, name, origin)


def clear_shared() -> None:
    """Forgets the executables that are kept for programs of equal structure."""
    _shared.clear()
