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

from minijax.core import config, effects, history, meshes, statistics
from minijax.core.aval import ShapedArray, aval_of
from minijax.core.cache import Cache
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr
from minijax.interpreters import (
    assignment,
    choices,
    diagnosis,
    discharge,
    inspection,
    key_reuse,
    lowering,
    module_hooks,
    passes,
    replicas,
    structure,
)
from minijax.interpreters.assignment import Assignment, Layout, Placeholder
from minijax.interpreters.replicas import Replicas
from minijax.runtime import client, compile, placement, profiling
from minijax.runtime.array import Array, physical_aval
from minijax.runtime.execute import Executable
from minijax.runtime.transfer import buffer_on
from minijax.sharding import named
from minijax.sharding.named import GSPMDSharding, is_abstract, is_auto

_LARGE_CONSTANT_BYTES = 4096
_cleaned = Cache(
    "cleaned programs",
    "programs without references and dead code, and the arguments they use",
    key="whether unused arguments stay",
    owner="jaxpr",
    counted=False,
)
_placed = Cache(
    "executables by placement",
    "executables for arguments that lie like these",
    key="options, devices of the context, partitioner, native shardings of the arguments",
    owner="jaxpr",
    counted=False,
)


class Options(NamedTuple):
    """How a program is to be compiled, apart from where."""

    name: str
    keep_unused: bool = True
    donated: tuple[bool, ...] = ()
    compiler_options: tuple[tuple[str, Any], ...] = ()
    # Placements that the user gives for each argument and each result, None for those not given;
    # empty if none are.
    in_shardings: tuple[Any, ...] = ()
    out_shardings: tuple[Any, ...] = ()
    # How many devices run a copy of the program, if it is not cut over them.
    replicas: Replicas | None = None

    def outer_effects(self, found: frozenset[Any]) -> frozenset[Any]:
        """Effects of a program but that it refers to axes along which its replicas are."""
        for name in () if self.replicas is None else self.replicas.names:
            found = effects.without_axis(found, name)
        return found


class Lowered(NamedTuple):
    """A program as a StableHLO module, with what is left of its arguments."""

    module: Any
    host_callbacks: list[Any]
    jaxpr: Jaxpr
    kept: tuple[int, ...] | None
    options: Options
    layout: Layout | None
    large_consts: list[Any]
    # The program before it was cleaned: weak, as the program keeps this in its cache.
    origin: Any
    # See `interpreters/choices.py`.
    choices: Sequence[str]

    @property
    def free(self) -> tuple[list[bool], list[bool]]:
        """Which parameters and which results the partitioner places as it likes."""
        if self.layout is None:
            return [], []
        return [s is None for s in self.layout.ins], [s is None for s in self.layout.outs]


def cleaned(
    closed: ClosedJaxpr, *, keep_unused: bool
) -> tuple[ClosedJaxpr, tuple[int, ...] | None]:
    """A program without dead code, and which arguments it still has; None for all of them."""
    found = _cleaned.find(closed, keep_unused)
    if found is None:
        pure = module_hooks.with_outfeeds(discharge.without_references(closed))
        clean, flags = passes.clean(pure, keep_inputs=keep_unused)
        kept = None if all(flags) else tuple(i for i, keep in enumerate(flags) if keep)
        found = _cleaned.keep(closed, keep_unused, (clean, kept))
    return found


def kept_arguments(closed: ClosedJaxpr, options: Options) -> tuple[int, ...] | None:
    """The arguments that a program uses, or None for all of them."""
    return None if options.keep_unused else cleaned(closed, keep_unused=False)[1]


def one_device(
    args: Sequence[Any], options: Options, closed: ClosedJaxpr, kept: Sequence[int] | None = None
) -> Any:
    """The device that committed arguments demand, None if none do, SEVERAL if it is not so simple.

    Most programs run on one device, and find out about it here.

    Args:
        args: the arguments.
        options: how the program is compiled.
        closed: the program.
        kept: which arguments it uses, if not all.
    """
    if options.in_shardings or options.out_shardings or meshes.device_context.value is not None:
        return SEVERAL
    device = None
    for x in args if kept is None else [args[i] for i in kept]:
        if type(x) is Placeholder:
            return SEVERAL
        if not type.__instancecheck__(Array, x) or not x.buffer._committed:
            continue
        own = x.buffer._sharding.device
        if own is None or (device is not None and own is not device and own != device):
            return SEVERAL
        device = own
    return SEVERAL if assignment.shardings_inside(closed) else device


SEVERAL = object()


def lower(
    closed: ClosedJaxpr, options: Options, platform: str, layout: Layout | None = None
) -> Lowered:
    """Cleans and lowers a closed jaxpr; done once for each platform and layout.

    Args:
        closed: the program.
        options: how it is compiled.
        platform: what it will run on.
        layout: how its values are cut over several devices; None for one device.
    """
    options = options._replace(in_shardings=(), out_shardings=())
    if options.replicas is None and replicas.count(closed) > 1:
        options = options._replace(replicas=Replicas(replicas.count(closed)))
    key = options, platform, layout, config.use_shardy_partitioner.value
    found = statistics.lowering.find(closed, key)
    if found is not None:
        statistics.lowering.hits += 1
        return found
    statistics.lowering.misses += 1
    copies = options.replicas
    all_effects = options.outer_effects(module_hooks.with_outfeeds(closed).effects)
    if all_effects:
        devices = 1 if layout is None else layout.partitions
        devices = devices if copies is None else copies.number
        effects.check_lowerable(options.name, all_effects, devices)
    with (
        statistics.timed("jaxpr_to_module", "jaxpr to StableHLO lowering", options.name),
        profiling.TraceAnnotation("lower", function=options.name),
    ):
        clean, kept = cleaned(closed, keep_unused=options.keep_unused)
        jaxpr = clean.jaxpr
        clean, large = _lift_large_constants(clean)
        names = closed.jaxpr.debug_info
        if layout is not None:
            ins = [None] * len(large) + list(_select(layout.ins, kept))
            layout = layout._replace(ins=tuple(ins))
        if copies is not None and copies.shared:
            shared = [True] * len(large) + list(_select(copies.shared, kept))
            copies = copies._replace(shared=tuple(shared))
        module = lowering.lower_to_module(
            clean,
            options.name,
            platform,
            donated=[False] * len(large) + list(_select(options.donated, kept)),
            arg_names=None
            if names.arg_names is None
            else ["constant"] * len(large) + list(_select(names.arg_names, kept)),
            result_names=names.result_paths,
            layout=layout,
            replicas=copies,
        )
    result = Lowered(
        module.module,
        module.host_callbacks,
        jaxpr,
        kept,
        options,
        layout,
        large,
        weakref.ref(closed),
        module.choices,
    )
    return statistics.lowering.keep(closed, key, result)


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
    where: Assignment,
    originals: Sequence[Any] = (),
    *,
    options: Mapping[str, Any] | None = None,
) -> Executable:
    """Compiles a lowered program for devices.

    Args:
        lowered: the program.
        where: the devices, and how values are cut.
        originals: the placements of the arguments as users have written them.
        options: fields of XLA's DebugOptions by name.
    """
    statistics.compilation.misses += 1
    name = lowered.options.name
    copies = lowered.options.replicas
    in_avals, out_avals = _whole_avals(lowered, where)
    level = logging.WARNING if config.log_compiles.value else logging.DEBUG
    if compile.logger.isEnabledFor(level):
        _log_compilation(level, lowered, where)
    given: dict[str, Any] = {
        "options": {**dict(lowered.options.compiler_options), **(options or {})},
        "free": lowered.free,
        "num_args": len(lowered.large_consts) + len(in_avals),
        "replicas": 1 if copies is None else copies.number,
    }
    module = module_hooks.refined(lowered.module)
    compiler = compile.compiler_of(where.devices)
    loaded = None
    if compiler is None:
        loaded = _compiled(lowered, module, where, originals, given)
    consts = lowered.large_consts
    ins, outs = natives(loaded, lowered, where, originals)
    found = lowered.options.outer_effects(lowered.jaxpr.effects)
    executable = Executable(
        loaded,
        where.devices,
        in_avals,
        out_avals,
        ins=ins[len(consts) :],
        outs=outs,
        kept=lowered.kept,
        consts=[buffer_on(c, aval_of(c), there) for c, there in zip(consts, ins, strict=False)],
        committed=where.committed,
        donated=[i for i, given in enumerate(lowered.options.donated) if given],
        ordered=effects.ordered_among(found),
        has_effects=bool(found),
        callbacks=lowered.host_callbacks,
        # What replicas do to their pieces makes no sense for whole arrays.
        diagnose=None if copies is not None and copies.names else _diagnosis(name, lowered.origin),
    )
    if compiler is not None:
        wanted = compile.options_for(where.devices, **given)
        is_trivial = not (lowered.jaxpr.eqns or lowered.jaxpr.effects)
        compile.hand_over(compiler, executable, name, module, wanted, is_trivial=is_trivial)
    return executable


def _whole_avals(lowered: Lowered, where: Assignment) -> tuple[list[Any], list[Any]]:
    """The types of the values that a program takes and gives, of whose pieces it is written."""
    ins = [v.aval for v in lowered.jaxpr.invars]
    outs = [v.aval for v in lowered.jaxpr.outvars]
    if lowered.options.replicas is None:
        return ins, outs
    places = _select(where.ins, lowered.kept)
    return list(map(replicas.whole_aval, ins, places)), list(
        map(replicas.whole_aval, outs, where.outs)
    )


def _compiled(
    lowered: Lowered,
    module: Any,
    where: Assignment,
    originals: Sequence[Any],
    given: Mapping[str, Any],
) -> Any:
    """Jaxlib's executable of a lowered program."""
    name = lowered.options.name
    effects_of = lowered.jaxpr.effects
    with (
        statistics.timed("compile", "XLA compilation", name),
        profiling.TraceAnnotation("compile", function=name),
        inspection.compiling(lowered.jaxpr, where, originals),
    ):
        try:
            loaded = compile.compile_module(
                module,
                where.devices,
                host_callbacks=lowered.host_callbacks,
                may_store=inspection.effect not in effects_of,
                **given,
            )
        except RuntimeError:
            lowering.verify(lowered.module, lowered.jaxpr)
            raise
    if where.devices[0].platform == "cpu":
        choices.check(loaded, lowered.choices)
    return loaded


def _log_compilation(level: int, lowered: Lowered, where: Assignment) -> None:
    names = _select(lowered.jaxpr.debug_info.arg_names or (), lowered.kept)
    places = _select(where.ins, lowered.kept) or [None] * len(lowered.jaxpr.invars)
    mapping = []
    for i, (var, place) in enumerate(zip(lowered.jaxpr.invars, places, strict=True)):
        name = names[i] if i < len(names) else str(i)
        mapping.append(f"{name}: {var.aval!r} as {place or 'unspecified'}")
    compile.logger.log(
        level,
        "Compiling %s for jit on %d device(s) with global shapes and types. "
        "Argument mapping: (%s).",
        lowered.options.name,
        len(where.devices),
        ", ".join(mapping),
    )


def natives(
    loaded: Any, lowered: Lowered, where: Assignment, originals: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Native shardings of a compiled program's parameters, constants among them, and results.

    Raises:
        AssertionError: XLA places a value otherwise than the program says.
    """
    jaxpr = lowered.jaxpr
    in_avals = [aval_of(c) for c in lowered.large_consts]
    in_avals += [_array_type(v.aval) for v in jaxpr.invars]
    out_avals = [_array_type(v.aval) for v in jaxpr.outvars]
    if lowered.options.replicas is not None:
        everywhere = GSPMDSharding.get_replicated(where.devices)
        given = [everywhere] * len(lowered.large_consts) + list(_select(where.ins, lowered.kept))
        return _natives(given, in_avals), _natives(where.outs, out_avals)
    if where.mesh is None and where.layout is None:
        device = where.devices[0]
        one = placement.native_sharding(device)
        outs = [placement.native_sharding(device, aval.memory_kind) for aval in out_avals]
        return [one] * len(in_avals), outs
    ordered = len(effects.ordered_among(jaxpr.effects))
    unplaced = [None] * len(lowered.large_consts)
    wanted = unplaced + list(_select(where.ins, lowered.kept))
    written = unplaced + list(_select(originals, lowered.kept))

    def placed(what: str, own: Any, tiling: Any, aval: Any) -> Any:
        if own is None:
            chosen = assignment.public_sharding(tiling, aval, where, originals)
            is_there = chosen.special_memory_kind == aval.memory_kind
            return chosen if is_there else chosen.with_memory_kind(aval.memory_kind)
        # XLA does not cut what holds nothing.
        if aval.size and loaded is not None:
            _check_kept_to(lowered, what, own, tiling, physical_aval(aval).ndim)
        return own

    ins, outs = [], []
    tilings = compile.parameter_tilings(loaded, ordered + len(in_avals))[ordered:]
    for i, (own, given, *facts) in enumerate(zip(wanted, written, tilings, in_avals, strict=True)):
        public, ndim = placed(f"parameter {i}", own, *facts), physical_aval(in_avals[i]).ndim
        found = public if own is None else _as_written(own, given, ndim)
        ins.append(placement.native(found, ndim))
    tilings = compile.result_tilings(loaded, ordered + len(out_avals))[ordered:]
    for i, (own, tiling, aval) in enumerate(zip(where.outs, tilings, out_avals, strict=True)):
        public = placed(f"result {i}", own, tiling, aval)
        outs.append(placement.native(public, physical_aval(aval).ndim))
    return ins, outs


def _natives(shardings: Sequence[Any], avals: Sequence[Any]) -> list[Any]:
    return [
        placement.native(sharding, physical_aval(aval).ndim)
        for sharding, aval in zip(shardings, avals, strict=True)
    ]


def _array_type(aval: Any) -> Any:
    """A type, or for tokens that of the buffers that stand for them."""
    return aval if isinstance(aval, ShapedArray) else physical_aval(aval)


def _as_written(own: Any, given: Any, ndim: int) -> Any:
    """A placement in canonical notation, in the notation of the user where that is the same."""
    if given is not None and placement.canonical(given, ndim) == own:
        return given
    return own


def _check_kept_to(lowered: Lowered, what: str, given: Any, tiling: Any, ndim: int) -> None:
    """Checks that XLA has placed a value as the program says.

    XLA trusts the sizes of the buffers that it gets: a wrong one would end the process.

    Raises:
        AssertionError: it has not.
    """
    hlo = placement.native(given, ndim).hlo
    if given.num_devices > 1 and not named.are_hlo_shardings_equal(hlo, tiling, ndim):
        error(
            AssertionError,
            lowered.options.name,
            f"XLA has placed {what} otherwise than the program says.",
            got=str(tiling),
            expected=str(given),
            fix="this is a fault of the compiler or of minijax: please report it",
        )


def place(
    closed: ClosedJaxpr, args: Sequence[Any], options: Options, device: Any = None
) -> Assignment:
    """Where a program runs for `args`: arrays, host values or `Placeholder`s."""
    kept = kept_arguments(closed, options)
    if replicas.count(closed) > 1:
        return replicas.assignment_in_jit(closed, options)
    demanded = one_device(args, options, closed, kept) if device is None else device
    if demanded is SEVERAL:
        return assignment.gather(closed, args, options, kept)
    target = client.default_device() if demanded is None else demanded
    return assignment.on_one_device(target, committed=demanded is not None)


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
    kept = kept_arguments(closed, options)
    demanded = one_device(args, options, closed, kept) if device is None else device
    if demanded is SEVERAL or replicas.count(closed) > 1:
        return _on_mesh(closed, args, options, kept)
    where = client.default_device() if demanded is None else demanded
    return _executable(closed, args, options, where, demanded is not None)


def executable_at(
    closed: ClosedJaxpr, options: Options, where: Assignment, args: Sequence[Any] = ()
) -> Executable:
    """The executable for a given place; compiled on the first such call."""
    return _executable(closed, args, options, where, where.committed)


def _on_mesh(
    closed: ClosedJaxpr, args: Sequence[Any], options: Options, kept: Sequence[int] | None
) -> Executable:
    """The executable for a call whose placements must be looked at one by one.

    Where the same placements were there before, the answer is known.
    """
    places = [
        x.buffer._sharding if type.__instancecheck__(Array, x) and x.buffer._committed else None
        for x in args
    ]
    states = meshes.device_context.value, config.use_shardy_partitioner.value
    key = (options, states, *places)
    found = _placed.find(closed, key)
    if found is None:
        if replicas.count(closed) > 1:
            where = replicas.assignment_in_jit(closed, options)
        else:
            where = assignment.gather(closed, args, options, kept)
        found = _executable(closed, args, options, where, where.committed)
        if where.committed:
            _placed.keep(closed, key, found)
    else:
        statistics.compilation.hits += 1
    return found


def _executable(
    closed: ClosedJaxpr, args: Sequence[Any], options: Options, where: Any, committed: bool
) -> Executable:
    key = options, where, committed, config.use_shardy_partitioner.value
    found = statistics.compilation.find(closed, key)
    if found is None:
        made = _shared_executable(closed, args, key)
        found = statistics.compilation.keep(closed, key, made)
    else:
        statistics.compilation.hits += 1
    return found


_MOST_SHARED = 512
# Executables by the structure of their programs, the last used at the end: decision 0006.
_shared: OrderedDict[Any, Executable] = Cache(
    "executables by structure",
    "executables that serve every program with the same equations",
    key="equations, types and constants, and the key of executables",
    most=_MOST_SHARED,
    emptied=True,
    counted=False,
).table(OrderedDict())


def _shared_executable(closed: ClosedJaxpr, args: Sequence[Any], key: Any) -> Executable:
    """The executable of a program that was not compiled itself; perhaps an equal one was."""
    options, where, committed, _ = key
    found = structure.key_of(module_hooks.with_outfeeds(closed))
    # Lowering stages functions, which may read states.
    shared_key = found, key, config.trace_context()
    made = None if found is None else _shared.pop(shared_key, None)
    if made is None:
        several = isinstance(where, Assignment)
        target = where.devices[0] if several else where
        history.compiling(
            closed,
            where.devices if several and len(where.devices) > 1 else target,
            committed=committed,
            demanded_by=[i for i, x in enumerate(args) if _demands(x)],
            placed=where.ins if several else (),
        )
        if not several:
            where = assignment.on_one_device(target, committed=committed)
        lowered = lower(closed, options, target.platform, where.layout)
        made = compile_lowered(lowered, where, originals_of(args, options))
    else:
        statistics.compilation.hits += 1
        made = made.shared_with(_diagnosis(options.name, weakref.ref(closed)))
    if found is not None:
        _shared[shared_key] = made
        if len(_shared) > _MOST_SHARED:
            _shared.popitem(last=False)
    return made


def _demands(x: Any) -> bool:
    return bool(type.__instancecheck__(Array, x) and x.buffer._committed)


def originals_of(args: Sequence[Any], options: Options) -> list[Any]:
    """For each argument its placement on devices as the user has written it, or None."""
    given = options.in_shardings or (None,) * len(args)
    return [_original(x) if _is_open(g) else g for g, x in zip(given, args, strict=True)]


def _original(x: Any) -> Any:
    if type(x) is Placeholder:
        return None if _is_open(x.sharding) else x.sharding
    return x.buffer._sharding.public if _demands(x) else None


def _is_open(given: Any) -> bool:
    return given is None or is_auto(given) or is_abstract(given)


def _diagnosis(name: str, origin: Any) -> Callable[..., None]:
    return functools.partial(diagnosis.explain_bad_result, name, origin)
