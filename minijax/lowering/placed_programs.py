"""Where a program runs: its devices and replicas, and shardings of its arguments and results.

Input: a program, its arguments and options; later, what was compiled.  Output: the place where it
runs, on one device as most programs do or split over several, and the sharding of each parameter
and result.  `lowering/program.py` asks here, and `assignment.py` finds devices where there are
several.

A program that maps over devices needs replicas: each device runs a copy of the program, on its own
pieces of the values.  Here is how many it needs, and where `jit` runs a program in which it finds
such a map; `pmap` says itself where its own programs run.
"""

from __future__ import annotations

import logging
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

from minijax.core import config, effects, meshes
from minijax.core.aval import ShapedArray, aval_of
from minijax.core.cache import Cache
from minijax.core.errors import error, warn
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr, holders, jaxprs_in_params
from minijax.core.operators import Avals, Values
from minijax.core.rules import Facts
from minijax.lowering import assignment
from minijax.lowering.assignment import Assignment, Placeholder
from minijax.lowering.regions import ReplicaAxes
from minijax.runtime import client, compile, placement
from minijax.runtime.array import is_array, physical_aval
from minijax.sharding import named
from minijax.sharding.named import GSPMDSharding, is_abstract, is_auto

_counts = Cache(
    "replicas",
    "how many replicas programs need, and whether they say themselves where they run",
    key="which of the two",
    owner="jaxpr",
    counted=False,
)
device_count_param: Facts[str] = Facts("device_count_param", "")
"""The parameter that says over how many devices an operation maps, each of which runs a replica of
the program; "" if over none."""


class Replicas(NamedTuple):
    """How a program is copied; hashable.

    Attributes:
        number: the number of replicas.
        names: the axes over which the whole program is mapped, the outermost first.
        sizes: their sizes.
        shared: for each argument whether all replicas are given the same; empty if that is not
            known.
    """

    number: int
    names: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    shared: tuple[bool, ...] = ()

    @property
    def axes(self) -> ReplicaAxes:
        """The axes, for collectives."""
        return ReplicaAxes(self.names, self.sizes, self.number)


def count(closed: ClosedJaxpr) -> int:
    """How many replicas a program needs: 1 if it maps over no devices."""
    found = _counts.find(closed)
    return int(_counts.keep(closed, None, count_in(closed.jaxpr)) if found is None else found)


def count_in(jaxpr: Jaxpr) -> int:
    """The largest number of replicas that an equation needs: sizes of nested maps multiply."""
    most = 1
    for eqn in holders(jaxpr):
        for inner in jaxprs_in_params(eqn.params):
            own = eqn.params.get(device_count_param.of(eqn.primitive), 1)
            most = max(most, own * count_in(inner))
    return most


def maps_devices(jaxpr: Jaxpr) -> bool:
    """Whether an equation maps over devices, also over one."""
    return any(
        device_count_param.of(eqn.primitive) or any(map(maps_devices, jaxprs_in_params(eqn.params)))
        for eqn in holders(jaxpr)
    )


def whole_aval(aval: ShapedArray, sharding: Any) -> ShapedArray:
    """The type of an array whose pieces are of type `aval`, also in dimensions that they lack."""
    if sharding.is_fully_replicated:
        return aval
    return aval.with_shape(tuple(map(operator.mul, aval.shape, sharding.factors(aval.ndim))))


def assignment_in_jit(closed: ClosedJaxpr, options: Any) -> Assignment:
    """Where a program runs that `jit` finds a map over devices in: all values are whole everywhere.

    Raises:
        ValueError: there are fewer devices than replicas, or the program is cut over a mesh, too.
        NotImplementedError: there are several processes.
    """
    needed = count(closed)
    name = options.name
    if client.process_count() > 1:
        got = f"{client.process_count()} processes"
        fix = "call the mapped function outside of jit"
        error(NotImplementedError, name, "jit of pmap works in one process only.", got=got, fix=fix)
    devices = client.local_devices()
    if needed > len(devices):
        error(
            ValueError,
            name,
            "a map inside needs more devices than there are.",
            got=f"{needed} replicas, {len(devices)} devices",
            expected=f"at most {len(devices)} replicas",
        )
    _check_not_cut(closed, options)
    warn(
        UserWarning,
        name,
        "jit of pmap copies all arguments and results to every device.",
        got=f"a function that maps over {needed} devices, inside jit",
        fix="leave jit away: pmap compiles what it maps",
    )
    chosen = tuple(devices[:needed])
    everywhere = GSPMDSharding.get_replicated(chosen)
    ins = (everywhere,) * len(closed.jaxpr.invars)
    outs = (everywhere,) * len(closed.jaxpr.outvars)
    return Assignment(chosen, ins, outs, None, True, None)


def _check_not_cut(closed: ClosedJaxpr, options: Any) -> None:
    """Refuses programs that are both copied and cut: XLA knows how to do one of them.

    Raises:
        ValueError: the program is cut over a mesh.
    """
    given = [s for s in (*options.in_shardings, *options.out_shardings) if s is not None]
    given += [found.sharding for found in assignment.shardings_inside(closed)]
    mesh = meshes.device_context.value
    if mesh is not None and mesh.size > 1:
        given.append(mesh)
    if given:
        problem = "pmap cannot be inside a program over a mesh of devices."
        got = f"a map over {count(closed)} devices, and {given[0]}"
        fix = "use shard_map or vmap in place of pmap, or call it outside of jit"
        error(ValueError, options.name, problem, got=got, fix=fix)


SEVERAL = object()


def one_device(
    args: Values, options: Any, closed: ClosedJaxpr, kept: Sequence[int] | None = None
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
        if not is_array(x) or not x.buffer._committed:
            continue
        own = x.buffer._sharding.device
        if own is None or (device is not None and own is not device and own != device):
            return SEVERAL
        device = own
    return SEVERAL if _places_itself(closed) else device


def _places_itself(closed: ClosedJaxpr) -> bool:
    """Whether a program names placements, or maps over devices."""
    found = _counts.find(closed, "places itself")
    if found is None:
        says_where = count(closed) > 1 or bool(assignment.shardings_inside(closed))
        found = _counts.keep(closed, "places itself", says_where)
    return bool(found)


def several(
    closed: ClosedJaxpr, args: Values, options: object, kept: Sequence[int] | None
) -> Assignment:
    """Where a program runs for arguments that say more than one device, or none as simply."""
    if count(closed) > 1:
        return assignment_in_jit(closed, options)
    return assignment.gather(closed, args, options, kept)


def originals_of(args: Values, options: Any) -> list[Any]:
    """For each argument its placement on devices as the user has written it, or None."""
    given = options.in_shardings or (None,) * len(args)
    return [_original(x) if _is_open(g) else g for g, x in zip(given, args, strict=True)]


def _original(x: Any) -> Any:
    if type(x) is Placeholder:
        return None if _is_open(x.sharding) else x.sharding
    return x.buffer._sharding.public if is_committed(x) else None


def _is_open(given: Any) -> bool:
    return given is None or is_auto(given) or is_abstract(given)


def is_committed(x: Any) -> bool:
    """Whether an argument demands to stay where it is."""
    return bool(is_array(x) and x.buffer._committed)


def natives(
    loaded: Any, lowered: Any, where: Assignment, originals: Sequence[Any]
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
        given = [everywhere] * len(lowered.large_consts) + list(lowered.of_kept(where.ins))
        return _natives(given, in_avals), _natives(where.outs, out_avals)
    if where.mesh is None and where.layout is None:
        device = where.devices[0]
        ins, outs = (
            [placement.native_sharding(device, aval.memory_kind) for aval in avals]
            for avals in (in_avals, out_avals)
        )
        return ins, outs
    ordered = len(effects.ordered_among(jaxpr.effects))
    unplaced = [None] * len(lowered.large_consts)
    wanted = unplaced + list(lowered.of_kept(where.ins))
    written = unplaced + list(lowered.of_kept(originals))

    def placed(what: str, own: Any, tiling: object, aval: ShapedArray) -> Any:
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


def laid_out(
    loaded: Any, lowered: Any, ins: Sequence[Any], outs: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Native shardings of parameters and results with the layouts that the program has."""
    jaxpr, options = lowered.jaxpr, lowered.options
    ordered = len(effects.ordered_among(jaxpr.effects))
    first = len(lowered.large_consts)

    def laid(natives: Sequence[Any], given: Sequence[Any], found: Any, variables: Any) -> list[Any]:
        layouts = [
            g if g is None else placement.layout_of(x) for g, x in zip(given, found, strict=True)
        ]
        ranks = [physical_aval(v.aval).ndim for v in variables]
        return [
            placement.native(n.public, *facts)
            for n, *facts in zip(natives, ranks, layouts, strict=True)
        ]

    given = lowered.of_kept(options.in_layouts) or [None] * (len(ins) - first)
    found = loaded.get_parameter_layouts()[ordered + first :]
    placed = laid(ins[first:], given, found, jaxpr.invars[first:])
    given = options.out_layouts or [None] * len(outs)
    results = laid(outs, given, loaded.get_output_layouts()[ordered:], jaxpr.outvars)
    return [*ins[:first], *placed], results


def _natives(shardings: Sequence[Any], avals: Avals) -> list[Any]:
    return [
        placement.native(sharding, physical_aval(aval).ndim)
        for sharding, aval in zip(shardings, avals, strict=True)
    ]


def _array_type(aval: ShapedArray) -> Any:
    """A type, or for tokens that of the buffers that stand for them."""
    return aval if isinstance(aval, ShapedArray) else physical_aval(aval)


def _as_written(own: Any, given: Any, ndim: int) -> Any:
    """A placement in canonical notation, in the notation of the user where that is the same."""
    if given is not None and placement.canonical(given, ndim) == own:
        return given
    return own


def _check_kept_to(lowered: Any, what: str, given: Any, tiling: Any, ndim: int) -> None:
    """Checks that XLA has placed a value as the program says.

    XLA trusts the sizes of the buffers that it gets: a wrong one would end the process.

    Raises:
        AssertionError: it has not.
    """
    hlo = placement.native(given, ndim).hlo
    if given.num_devices > 1 and not named.are_hlo_shardings_equal(hlo, tiling, ndim):
        problem = f"XLA has placed {what} otherwise than the program says."
        got = str(tiling)
        fix = "this is a fault of the compiler or of minijax: please report it"
        error(AssertionError, lowered.options.name, problem, got=got, expected=str(given), fix=fix)


def whole_avals(lowered: Any, where: Assignment) -> tuple[list[Any], list[Any]]:
    """The types of the values that a program takes and gives, of whose pieces it is written."""
    ins = [v.aval for v in lowered.jaxpr.invars]
    outs = [v.aval for v in lowered.jaxpr.outvars]
    if lowered.options.replicas is None:
        return ins, outs
    places = lowered.of_kept(where.ins)
    return list(map(whole_aval, ins, places)), list(map(whole_aval, outs, where.outs))


def log_compilation(lowered: Any, where: Assignment) -> None:
    """Logs that a program is compiled, loudly with `log_compiles`."""
    level = logging.WARNING if config.log_compiles.value else logging.DEBUG
    if not compile.logger.isEnabledFor(level):
        return
    names = lowered.of_kept(lowered.jaxpr.debug_info.arg_names or ())
    places = lowered.of_kept(where.ins) or [None] * len(lowered.jaxpr.invars)
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
