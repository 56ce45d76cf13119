"""Programs: closed jaxprs made runnable.  Steps 4 to 6 of the walk in one call.

Input: a closed jaxpr and where it shall run.  Output: an executable, compiled once for each
device and kept with the jaxpr.  The file is read downward, as a call goes: is there an executable,
or one of an equal program; else the jaxpr is cleaned, lowered and compiled.

A program that computes nothing returns copies of arguments, and constants.  Its first call compiles
nothing.  The second one does: from then on C++ answers calls where it may, which is faster than
anything that Python could do.

`docs/reading.md`: read after `lowering/module.py`; `transforms/jit/jit.py` is next.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from jaxlib.mlir import ir

from minijax.core import config, deferral, dtypes, effects, history, meshes, monitoring
from minijax.core.aval import ShapedArray, aval_of
from minijax.core.cache import Cache
from minijax.core.errors import error
from minijax.core.jaxpr import Atom, ClosedJaxpr, Effects, Jaxpr, Literal, Var
from minijax.core.native import Device
from minijax.core.operators import Function, Operand, Param, Sharding, Values
from minijax.core.sequences import partition_list
from minijax.interpreters import diagnosis, discharge, key_reuse, passes
from minijax.lowering import assignment, module_hooks, partitioning, placed_programs
from minijax.lowering.assignment import Assignment, Layout
from minijax.lowering.module import lower_to_module, verify
from minijax.lowering.placed_programs import SEVERAL, Replicas
from minijax.runtime import agreement, client, compile, placement, profiling, transfer
from minijax.runtime.array import array_from_host, is_array, physical_aval, to_numpy, wrap
from minijax.runtime.callbacks import HostCallback
from minijax.runtime.execute import Executable
from minijax.runtime.transfer import TOKEN, InputsHandler, ResultsHandler, buffer_on
from minijax.sharding import hlo

if TYPE_CHECKING:
    from minijax.lowering import contractions
else:
    contractions = deferral.module("minijax.lowering.contractions")

T = TypeVar("T")
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
    compiler_options: tuple[tuple[str, Param], ...] = ()
    # Placements that the user gives for each argument and each result, None for those not given;
    # empty if none are.
    in_shardings: tuple[Sharding, ...] = ()
    out_shardings: tuple[Sharding, ...] = ()
    # The same for layouts in memory.
    in_layouts: tuple[Param, ...] = ()
    out_layouts: tuple[Param, ...] = ()
    # How many devices run a copy of the program, if it is not cut over them.
    replicas: Replicas | None = None

    def outer_effects(self, found: Effects) -> Effects:
        """Effects of a program but that it refers to axes along which its replicas are."""
        for name in () if self.replicas is None else self.replicas.names:
            found = effects.without_axis(found, name)
        return found


def executable_for(
    closed: ClosedJaxpr, args: Values, options: Options, device: Device | None = None
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
    demanded = placed_programs.one_device(args, options, closed, kept) if device is None else device
    if demanded is SEVERAL or (device is not None and placed_programs.count(closed) > 1):
        return _on_mesh(closed, args, options, kept)
    where = client.default_device() if demanded is None else demanded
    return _executable(closed, args, options, where, demanded is not None)


def executable_at(
    closed: ClosedJaxpr, options: Options, where: Assignment, args: Values = ()
) -> Executable:
    """The executable for a given place; compiled on the first such call."""
    return _executable(closed, args, options, where, where.committed)


def _on_mesh(
    closed: ClosedJaxpr, args: Values, options: Options, kept: Sequence[int] | None
) -> Executable:
    """The executable for a call whose placements must be looked at one by one.

    Where the same placements were there before, the answer is known.
    """
    places = [x.buffer._sharding if is_array(x) and x.buffer._committed else None for x in args]
    states = meshes.device_context.value, config.use_shardy_partitioner.value
    key = (options, states, *places)
    found = _placed.find(closed, key)
    if found is None:
        where = placed_programs.several(closed, args, options, kept)
        found = _executable(closed, args, options, where, where.committed)
        if where.committed:
            _placed.keep(closed, key, found)
    else:
        monitoring.compilation.hits += 1
    return found


def _executable(
    closed: ClosedJaxpr, args: Values, options: Options, where: object, committed: bool
) -> Executable:
    key = options, where, committed, config.use_shardy_partitioner.value
    found = monitoring.compilation.find(closed, key)
    if found is None:
        made = _shared_executable(closed, args, key)
        found = monitoring.compilation.keep(closed, key, made)
    else:
        monitoring.compilation.hits += 1
    return found


_MOST_SHARED = 512
# Executables by the structure of their programs, the last used at the end: decision 0006.  A plain
# dict, as keys compare in Python: where threads change it meanwhile an OrderedDict crashes.
_shared: dict[Hashable, Executable] = Cache(
    "executables by structure",
    "executables that serve every program with the same equations",
    key="equations, types and constants, and the key of executables",
    most=_MOST_SHARED,
    emptied=True,
    counted=False,
).table()


def _shared_executable(closed: ClosedJaxpr, args: Values, key: Param) -> Executable:
    """The executable of a program that was not compiled itself; perhaps an equal one was."""
    options, where, committed, _ = key
    found = passes.key_of(module_hooks.with_outfeeds(closed))
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
            demanded_by=[i for i, x in enumerate(args) if placed_programs.is_committed(x)],
            placed=where.ins if several else (),
        )
        if not several:
            where = assignment.on_one_device(target, committed=committed)
        lowered = lower(closed, options, target.platform, where.layout)
        made = compile_lowered(lowered, where, placed_programs.originals_of(args, options))
    else:
        monitoring.compilation.hits += 1
        made = made.shared_with(_diagnosis(options.name, weakref.ref(closed)))
    if found is not None:
        _shared[shared_key] = made
        for oldest in list(_shared)[:-_MOST_SHARED]:
            _shared.pop(oldest, None)
    return made


def place(
    closed: ClosedJaxpr, args: Values, options: Options, device: Device | None = None
) -> Assignment:
    """Where a program runs for `args`: arrays, host values or `Placeholder`s."""
    kept = kept_arguments(closed, options)
    demanded = placed_programs.one_device(args, options, closed, kept) if device is None else device
    if demanded is SEVERAL or placed_programs.count(closed) > 1:
        return placed_programs.several(closed, args, options, kept)
    target = client.default_device() if demanded is None else demanded
    return assignment.on_one_device(target, committed=demanded is not None)


class Lowered(NamedTuple):
    """A program as a StableHLO module, with what is left of its arguments."""

    module: ir.Module
    host_callbacks: list[HostCallback]
    jaxpr: Jaxpr
    kept: tuple[int, ...] | None
    options: Options
    layout: Layout | None
    large_consts: list[Operand]
    # The program before it was cleaned: weak, as the program keeps this in its cache.
    origin: weakref.ref[ClosedJaxpr]
    # See `lowering/partitioning.py`.
    choices: Sequence[str]
    inspected: Sequence[module_hooks.Inspected]

    def of_kept(self, items: Sequence[T]) -> Sequence[T]:
        """Of what is said of all arguments, that of those that are left."""
        return select(items, self.kept)

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


def select(items: Sequence[T], kept: Sequence[int] | None) -> Sequence[T]:
    """Of what is said of all arguments, that of the `kept` ones; None: of all."""
    return items if kept is None else [items[i] for i in kept if i < len(items)]


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
    if options.replicas is None and placed_programs.count(closed) > 1:
        options = options._replace(replicas=Replicas(placed_programs.count(closed)))
    key = options, platform, layout, config.use_shardy_partitioner.value
    found = monitoring.lowering.find(closed, key)
    if found is not None:
        monitoring.lowering.hits += 1
        return found
    monitoring.lowering.misses += 1
    copies = options.replicas
    all_effects = options.outer_effects(module_hooks.with_outfeeds(closed).effects)
    if all_effects:
        devices = 1 if layout is None else layout.partitions
        devices = devices if copies is None else copies.number
        effects.check_lowerable(options.name, all_effects, devices)
    with (
        monitoring.timed("jaxpr_to_module", "jaxpr to StableHLO lowering", options.name),
        profiling.TraceAnnotation("lower", function=options.name),
    ):
        clean, kept = cleaned(closed, keep_unused=options.keep_unused)
        jaxpr = clean.jaxpr
        clean, large = _lift_large_constants(clean)
        names = closed.jaxpr.debug_info
        unsaid = [None] * len(large)
        if layout is not None:
            layout = layout._replace(ins=(*unsaid, *select(layout.ins, kept)))
        if copies is not None and copies.shared:
            shared = [True] * len(large) + list(select(copies.shared, kept))
            copies = copies._replace(shared=tuple(shared))
        module = lower_to_module(
            clean,
            options.name,
            platform,
            donated=[False] * len(large) + list(select(options.donated, kept)),
            arg_names=None
            if names.arg_names is None
            else ["constant"] * len(large) + list(select(names.arg_names, kept)),
            result_names=names.result_paths,
            layout=layout,
            replicas=copies,
            layouts=([*unsaid, *select(options.in_layouts, kept)], options.out_layouts),
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
        module.inspected,
    )
    return monitoring.lowering.keep(closed, key, result)


def _lift_large_constants(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Operand]]:
    """Makes large constants leading parameters: in the module's text they would be copied."""
    jaxpr = closed.jaxpr
    is_large = [
        v.aval.size * v.aval.dtype.itemsize > _LARGE_CONSTANT_BYTES for v in jaxpr.constvars
    ]
    if not any(is_large):
        return closed, []
    small_vars, large_vars = partition_list(is_large, jaxpr.constvars)
    small, large = partition_list(is_large, closed.consts)
    invars = large_vars + jaxpr.invars
    lifted = jaxpr.replace(constvars=small_vars, invars=invars, effects=jaxpr.effects)
    return ClosedJaxpr(lifted, small), large


def compile_lowered(
    lowered: Lowered,
    where: Assignment,
    originals: Sequence[Sharding] = (),
    *,
    options: Mapping[str, Param] | None = None,
) -> Executable:
    """Compiles a lowered program for devices.

    Args:
        lowered: the program.
        where: the devices, and how values are cut.
        originals: the placements of the arguments as users have written them.
        options: fields of XLA's DebugOptions by name.
    """
    monitoring.compilation.misses += 1
    name = lowered.options.name
    copies = lowered.options.replicas
    in_avals, out_avals = placed_programs.whole_avals(lowered, where)
    placed_programs.log_compilation(lowered, where)
    if config.dump_ir_to.value:
        _dump(lowered)
    wanted = compile.options_for(
        where.devices,
        options={**dict(lowered.options.compiler_options), **(options or {})},
        free=lowered.free,
        num_args=len(lowered.large_consts) + len(in_avals),
        replicas=1 if copies is None else copies.number,
    )
    module = module_hooks.refined(lowered.module)
    if len(where.devices) > 1 and copies is None and config.use_shardy_partitioner.value:
        module = contractions.guarded(module)
    compiler = compile.compiler_of(where.devices)
    loaded = code = None
    if compiler is None:
        loaded, code = _compiled(lowered, module, where, originals, wanted)
    consts = lowered.large_consts
    ins, outs = placed_programs.natives(loaded, lowered, where, originals)
    if lowered.options.in_layouts or lowered.options.out_layouts:
        ins, outs = placed_programs.laid_out(loaded, lowered, ins, outs)
    found = lowered.options.outer_effects(lowered.jaxpr.effects)
    ordered = effects.ordered_among(found)
    everywhere = placement.on_all(where.devices, TOKEN.ndim)
    placed = [buffer_on(c, aval_of(c), there) for c, there in zip(consts, ins, strict=False)]
    executable = Executable(
        loaded,
        where.devices,
        InputsHandler(in_avals, ins[len(consts) :], lowered.kept, placed),
        ResultsHandler(out_avals, outs, where.committed, [everywhere] * len(ordered)),
        committed=where.committed,
        donated=[i for i, given in enumerate(lowered.options.donated) if given],
        ordered=ordered,
        has_effects=bool(found),
        callbacks=lowered.host_callbacks,
        code=code,
        joint=agreement.joint_program(name, lowered.jaxpr, where.devices, module),
        # What replicas do to their pieces makes no sense for whole arrays.
        diagnose=None if copies is not None and copies.names else _diagnosis(name, lowered.origin),
    )
    if compiler is not None:
        is_trivial = not (lowered.jaxpr.eqns or lowered.jaxpr.effects)
        compile.hand_over(compiler, executable, name, module, wanted, is_trivial=is_trivial)
    return executable


_dumps = itertools.count()


def _dump(lowered: Lowered) -> None:
    """Writes a program's module into the folder that the user has named."""
    folder = Path(config.dump_ir_to.value)
    folder.mkdir(parents=True, exist_ok=True)
    has_locations = config.include_debug_info_in_dumps.value
    text = lowered.module.operation.get_asm(enable_debug_info=has_locations)
    path = folder / f"minijax_ir{next(_dumps)}_jit_{lowered.options.name}_compile.mlir"
    path.write_text(text, encoding="utf-8")


def _compiled(
    lowered: Lowered,
    module: ir.Module,
    where: Assignment,
    originals: Sequence[Sharding],
    wanted: Operand,
) -> tuple[Operand, bytes | None]:
    """Jaxlib's executable of a lowered program, and its code where it was stored."""
    name = lowered.options.name
    effects_of = lowered.jaxpr.effects
    on_host = where.devices[0].platform == "cpu"
    if on_host and len(where.devices) > 1 and "i2>" in str(lowered.module):
        problem = "programs over several devices of the host cannot hold integers of two bits."
        got = f"{name}; what XLA exchanges between devices would be written beyond its memory"
        error(NotImplementedError, "jit", problem, got=got, fix="x.astype(jnp.int4), or int8")
    with (
        monitoring.timed("compile", "XLA compilation", name),
        profiling.TraceAnnotation("compile", function=name),
        module_hooks.compiling(lowered.jaxpr, where, originals, lowered.inspected),
    ):
        try:
            may_store = not (module_hooks.effect in effects_of or lowered.inspected)
            loaded, code = compile.compile_module(
                module, where.devices, wanted, lowered.host_callbacks, may_store=may_store
            )
        except RuntimeError:
            verify(lowered.module, lowered.jaxpr)
            raise
    if on_host:
        partitioning.check(loaded, lowered.choices)
    return loaded, code


def _diagnosis(name: str, origin: object) -> Function:
    return functools.partial(diagnosis.explain_bad_result, name, origin)


_answered = Cache(
    "answered programs",
    "that a program without equations was answered without compiling once",
    key="none",
    owner="jaxpr",
    counted=False,
)


def results(
    closed: ClosedJaxpr, args: Values, options: Options, device: Device | None
) -> list[Operand] | None:
    """The results of a first call with `args`, if the program computes nothing; else None.

    Arguments that are results are copied: who deletes or donates a result keeps the argument.

    Args:
        closed: the program.
        args: its arguments, which are concrete.
        options: how it is compiled.
        device: where it runs, if the user has said so.
    """
    if closed.jaxpr.eqns or _answered.find(closed) or not _is_plain(closed, options, device):
        return None
    if module_hooks.with_outfeeds(closed).jaxpr.eqns:
        return None
    _answered.keep(closed, None, True)
    where = place(closed, args, options)
    if compile.compiler_of(where.devices) is not None:
        return None
    if where.mesh is not None and where.mesh.explicit_axes:
        return None
    given: dict[Atom, Operand] = dict(zip(closed.jaxpr.invars, args, strict=True))
    given.update(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    inputs: set[Atom] = set(closed.jaxpr.invars)
    outs = []
    for atom in closed.jaxpr.outvars:
        value = atom.value if type(atom) is Literal else given[atom]
        outs.append(_copied(value, atom.aval, where, stays=atom in inputs))
    return outs


def _is_plain(closed: ClosedJaxpr, options: Options, device: Device | None) -> bool:
    """Whether nobody has said anything about how the program is compiled or checked."""
    return (
        device is None
        and not (closed.effects or options.in_shardings or options.out_shardings)
        and not (any(options.donated) or options.compiler_options or options.out_layouts)
        and not (config.debug_nans.value or config.debug_infs.value or config.debug_key_reuse.value)
        and all(
            isinstance(v.aval, ShapedArray) and v.aval.dtype != dtypes.float0
            for v in closed.jaxpr.outvars
        )
    )


def _copied(x: Operand, aval: ShapedArray, where: Assignment, *, stays: bool) -> Operand:
    """A value as a result: where it is if it `stays`, else whole on all devices."""
    physical = physical_aval(aval)
    if stays and is_array(x) and x.committed:
        transfer.moved(x.buffer, x.buffer._sharding)  # raises if it is deleted
        return wrap(placement.copy_buffer(x.buffer, x.buffer._sharding), aval)
    if len(where.devices) == 1 and where.mesh is None:
        target = placement.native_sharding(where.devices[0])
    else:
        whole = assignment.public_sharding(hlo.REPLICATED, physical, where, ())
        target = placement.native(whole, physical.ndim)
    host = to_numpy(x.buffer) if is_array(x) else x
    made = array_from_host(host, physical, target=target, committed=where.committed)
    return wrap(made.buffer, aval)


def _relaid(buffer: Operand, target: Operand) -> Operand:
    """A C++ array on the devices of `target`, in the layout of that."""
    var = Var(buffer.aval.update(sharding=None))
    options = Options(
        "relayout",
        out_shardings=(target.public,),
        in_layouts=(buffer._sharding.layout,),
        out_layouts=(target.layout,),
    )
    closed = ClosedJaxpr(Jaxpr([], [var], [var], []), [])
    # Programs of equal structure are compiled once.
    return executable_for(closed, [buffer], options)([buffer])[0]


transfer.relaid = _relaid
