"""`pmap`: a function of one slice becomes a function of as many as there are devices.

Input: a function of trees.  Output: a function of stacked trees, each slice of which one device
works on; collectives inside speak to the others.  It is called and staged as `jit`'s functions
are; what is staged is one application of the primitive `pmap`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from minijax.core import axes, config, monitoring, refs, source, tree
from minijax.core.cache import Cache
from minijax.core.errors import error
from minijax.core.operators import Avals, Values
from minijax.core.trace import Tracer, current
from minijax.interpreters import flattening, key_reuse, staging
from minijax.lax.control_flow import checks
from minijax.lowering import eager, program
from minijax.lowering.call_plan import ANYWHERE, ProgramOptions
from minijax.runtime import client
from minijax.transforms.jit import arguments, jit, stages
from minijax.transforms.jit.arguments import JitSettings
from minijax.transforms.pmap import programs, stepwise
from minijax.transforms.pmap.primitive import applied, pmap_p
from minijax.transforms.pmap.programs import Axes, MapInfo, refuse
from minijax.transforms.vmap import mapped_dims

if TYPE_CHECKING:
    from minijax.core.native import PyTreeDef

P = ParamSpec("P")
R = TypeVar("R")


class AxesTree(NamedTuple):
    """A tree of axes that describes arguments or results; hashable."""

    leaves: Axes
    structure: Any

    @classmethod
    def of(cls, name: str, given: object) -> AxesTree:
        """What the user gave as `name`.

        Raises:
            TypeError: a leaf is neither an integer nor None.
        """
        leaves, structure = tree.flatten(given, lambda x: x is None)
        for leaf in leaves:
            if leaf is not None and (isinstance(leaf, bool) or not hasattr(leaf, "__index__")):
                got = f"{leaf!r} of type {type(leaf).__name__} in {given!r}"
                error(TypeError, "pmap", f"{name} must hold integers and None only.", got=got)
        return cls(tuple(x if x is None else operator.index(x) for x in leaves), structure)

    def value(self) -> Any:
        """The tree."""
        return tree.unflatten(self.structure, self.leaves)


class Mapping(NamedTuple):
    """What the user asked of `pmap` and `jit` does not know; hashable."""

    axis_name: Any
    in_axes: AxesTree
    out_axes: AxesTree
    devices: tuple[Any, ...] | None
    backend: Any
    axis_size: int | None


class MappedArguments(NamedTuple):
    """How arguments are mapped.

    Attributes:
        axes: the dimension of slices of each leaf, or None.
        size: the number of slices of this process.
        global_size: the number of those of all processes.
    """

    axes: Axes
    size: int
    global_size: int


_axes_by_function = Cache(
    "axes without names",
    "the axis that a `pmap` of a function binds if it has no name",
    key="none",
    owner="function",
    counted=False,
).by_owner()


def _own_axis(function: Callable[..., Any], name: str) -> axes.AxisOf:
    """The axis that maps of a function bind if it has no name."""
    try:
        found = _axes_by_function.get(function)
        return _axes_by_function.setdefault(function, axes.AxisOf(name)) if found is None else found
    except TypeError:
        return axes.AxisOf(name)


class PmapFunction(jit.JitFunction):
    """A mapped function; what `pmap` returns calls it."""

    traced_for = "pmap"

    def __init__(
        self,
        function: Callable[..., Any],
        mapping: Mapping,
        static: tuple[int, ...],
        donated: tuple[int, ...],
    ) -> None:
        settings = JitSettings(
            static_argnums=static, donate_argnums=donated, inline=True, more=mapping
        )
        super().__init__(function, settings)
        self.caller = "pmap"
        self.mapping = mapping
        name = mapping.axis_name
        self.axis_name = _own_axis(function, self.name) if name is None else name

    def python(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the function on all slices."""
        if config.disable_jit.value and config.eager_pmap.value and self.may_run_eagerly:
            if not stepwise.is_bound(self.axis_name):
                return self.call_eagerly(*args, **kwargs)
            # Values know their axes by name, and could not tell this one from that around it.
            with config.disable_jit(False):
                return self.answer(args, kwargs)[0]
        return self.answer(args, kwargs)[0]

    def signature(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Any], Sequence[int] | None, int, tuple[Any, ...]]:
        """As that of `jit`, with all static arguments.

        Raises:
            ValueError: there are fewer arguments than static ones.
        """
        given = self.settings.static_argnums
        highest = max((i if i >= 0 else -i - 1 for i in given), default=-1)
        if given and highest >= len(args):
            refuse(
                f"{self.name} has static_broadcasted_argnums={given}.",
                got=f"{len(args)} positional argument(s)",
                expected=f"at least {highest + 1}; static arguments are passed by position",
            )
        return super().signature(args, kwargs)

    def _sliced(
        self, in_tree: PyTreeDef, avals: Avals, positions: Sequence[int] | None
    ) -> MappedArguments:
        """How the arguments of a call are mapped."""
        info = self.debug_info(in_tree, positions)
        names = lambda: info.arg_names or ()  # noqa: E731  for errors only
        return in_axes_of(self.mapping, in_tree, positions, avals, names)

    def _flat(self, in_tree: PyTreeDef, statics: Any, positions: Any) -> flattening.FlatFunction:
        function = self.function
        if statics:
            function = arguments.with_statics(function, statics, positions)
        return flattening.FlatFunction(function, in_tree, self.name)

    def _info(self, along: MappedArguments, *more: Any) -> MapInfo:
        given, sizes = self.mapping, (along.size, along.global_size)
        return MapInfo(self.name, given.backend, self.axis_name, *sizes, given.devices, *more)

    def _stage(
        self,
        in_tree: PyTreeDef,
        avals: Avals,
        statics: Any,
        positions: Sequence[int] | None,
        num_args: int,
    ) -> stages.Staged:
        along = self._sliced(in_tree, avals, positions)
        flat = self._flat(in_tree, statics, positions)
        info = self.debug_info(in_tree, positions)
        slices = programs.sliced_avals(avals, along.axes)
        sizes = {"axis_name": self.axis_name, "global_axis_size": along.global_size}
        with monitoring.timed("trace", "tracing", self.name), programs.inside(sizes):
            jaxpr, consts = staging.stage(flat, slices, info)
            _check_no_references(self.name, [*consts, *(v.aval for v in jaxpr.invars)])
            closed, outer = jit.lifted(jaxpr, consts)
            in_axes = (None,) * len(outer) + along.axes
            along_axis: frozenset[Any] = frozenset({self.axis_name})
            given = [frozenset[Any]() if axis is None else along_axis for axis in in_axes]
            # No device may wait for others that never come.
            checks.check_untyped("pmap", closed, given, along_axis)
        info.set_result_paths(functools.partial(flattening.result_paths, flat.out_tree))
        donated = arguments.donated_leaves(self.settings, in_tree, positions, num_args)
        donated = donated or (False,) * len(avals)
        out_axes = out_axes_of(self.mapping.out_axes, flat.out_tree, closed.out_avals)
        mapped = self._info(along, in_axes, out_axes, (False,) * len(outer) + donated)
        whole = applied({**mapped._asdict(), "jaxpr": closed})
        return stages.Staged(
            whole,
            outer,
            flat.out_tree,
            ProgramOptions(self.name, donated=mapped.donated_invars),
            ANYWHERE,
            inline=True,
            takes_references=False,
            more=mapped,
        )

    def bind(self, staged: stages.Staged, values: Values) -> Sequence[Any]:
        """Applies a staged map in the current trace."""
        jaxpr, info = _parts(staged)
        if not programs.is_shard_map(jaxpr, info):
            return pmap_p.bind_all(*values, jaxpr=jaxpr, **info._asdict())
        closed, options, _ = programs.as_shard_map(jaxpr, info)
        # The equations name the mesh.
        return super().bind(staged._replace(closed=closed, options=options, inline=False), values)

    def run(self, staged: stages.Staged, values: Values) -> tuple[Any, Any, bool]:
        """Runs a staged map where nothing is traced."""
        if config.debug_key_reuse.value:
            key_reuse.use_arguments(staged.closed, values)
        executable = programs.executable_for(*_parts(staged))
        result = tree.unflatten(staged.out_tree, executable(values))
        return result, eager.fast_path(executable, len(values), result, values), False

    def traced(self, staged: stages.Staged, in_tree: Any, leaves: Values) -> stages.Traced:
        """The stage of a staged map."""
        jaxpr, info = _parts(staged)
        if programs.is_shard_map(jaxpr, info):
            closed, options, requested = programs.as_shard_map(jaxpr, info)
            as_jit = staged._replace(closed=closed, options=options, requested=requested)
            return stages.Traced(as_jit, in_tree, leaves)
        return Traced(staged, in_tree, leaves)

    @property
    def may_run_eagerly(self) -> bool:
        """Whether the function can be run operation by operation."""
        is_alone = client.process_count(self.mapping.backend) == 1
        return is_alone and self.mapping.axis_size is None and not self.settings.donate_argnums

    def call_eagerly(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the function operation by operation, each on all slices.

        Raises:
            NotImplementedError: arguments are donated, the user gives the size of the axis, or
            there are several processes.
            ValueError: as for other calls.
        """
        mapping = self.mapping
        if not self.may_run_eagerly:
            problem = f"{self.name} cannot run operation by operation."
            got = f"axis_size={mapping.axis_size}, donate_argnums={self.settings.donate_argnums}"
            fix = "leave these away, or run it compiled: config.update('eager_pmap', False)"
            error(NotImplementedError, "pmap", problem, got=got, fix=fix)
        leaves, positions, _, (in_tree, avals, statics, *_) = self.signature(args, kwargs)
        along = self._sliced(in_tree, avals, positions)
        flat = self._flat(in_tree, statics, positions)
        out_axes: Axes = ()

        def place(avals: Avals) -> Axes:
            nonlocal out_axes
            out_axes = out_axes_of(mapping.out_axes, flat.out_tree, avals)
            return out_axes

        devices = None
        if type(current.value) is stepwise.MapTrace:
            programs.check_names_no_devices(self.name, mapping.devices)
        else:
            devices = programs.devices_for(self._info(along))
        axis = axes.Axis(self.axis_name, along.global_size, "pmap")
        outs = stepwise.run(flat, leaves, along.axes, axis, place)
        if devices is not None and current.value is eager.EAGER:
            outs = stepwise.placed(outs, out_axes, self.axis_name, devices)
        return tree.unflatten(flat.out_tree, outs)


def _parts(staged: stages.Staged) -> tuple[Any, MapInfo]:
    """The jaxpr of a slice, and what else is known about a staged map."""
    return staged.closed.eqns[0].params["jaxpr"], staged.more


class Traced(stages.Traced):
    """A mapped function staged for arguments of certain types.

    Its jaxpr is one application of the primitive `pmap`.
    """

    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> stages.Lowered:
        """Lowers to StableHLO, for the devices there are or for the platform named.

        Raises:
            ValueError: the function closes over values that are being traced, or there are not the
                devices that it takes.
        """
        self.check_closes_over_no_tracers()
        params = dict(self._closed.eqns[0].params)
        made = programs.by_replicas(params.pop("jaxpr"), MapInfo(**params))
        abstract = made.plan.abstract
        if lowering_platforms:
            abstract = abstract._replace(platform=lowering_platforms[0])
        with programs.inside(params):
            lowered = program.lower(made.closed, abstract)
        return stages.Lowered(self, lowered, made.plan, ())


def _check_no_references(name: str, values: Sequence[Any]) -> None:
    """Refuses references from outside of a map: devices would write to them in any order.

    Raises:
        NotImplementedError: there is one.
    """
    for x in values:
        aval = x.aval if isinstance(x, (Tracer, refs.Cell)) else x
        if isinstance(aval, refs.AbstractRef):
            problem = f"{name} uses a reference from outside, which several devices would share."
            fix = "pass its value, ref[...], and make references inside: new_ref(x)"
            error(NotImplementedError, "pmap", problem, got=str(aval), fix=fix)


def pmap(
    fun: Callable[P, R],
    axis_name: Hashable = None,
    *,
    in_axes: int | Sequence[Any] | None = 0,
    out_axes: object = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
) -> stages.JitWrapped[P, R]:
    """Maps `fun` over slices of its arguments, on a device each.

    Computes what `vmap` does, by a program that each device runs on its slice: the function is
    compiled as it is, and collectives with `axis_name` communicate.

    Shapes:     an argument leaf of shape s with axis a is seen by `fun` without dimension a; a
        result leaf gets a dimension of the number of slices at its out axis.
    Lowers to:  a module `pmap_<name>` with as many replicas as there are slices, times those of
        maps inside.
    Source:     mirrors jax.pmap (0.10), and its pipeline of replicas of earlier versions.

    Args:
        fun: a function of trees.
        axis_name: a name under which collectives in `fun` refer to the axis.
        in_axes: for each positional argument an int, None for one that all devices share, or a
            tree prefix of them; keyword arguments are mapped over dimension 0.
        out_axes: the same for the results; None returns what the first device has computed.
        static_broadcasted_argnums: positions of arguments that are part of the signature by
            value; hashable.
        devices: the devices, in order; the first ones of this process by default.
        backend: the platform to run on.
        axis_size: the number of slices of all processes together.
        donate_argnums: positions of arguments whose memory results may take.

    Returns:
        A function like `fun`, with `trace`, `lower` and `eval_shape`.

    Raises:
        TypeError: an axis is not an integer, an argument is not an array, or `fun` is not callable.
        ValueError: sizes disagree, an axis is out of range, nothing is mapped, a static argument
            is not hashable, or there are not the devices that it takes.

    Example:
        >>> jax.pmap(lambda x: x + 1)(jnp.arange(8))
        Array([1, 2, 3, 4, 5, 6, 7, 8], dtype=int32)
        >>> jax.pmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(jnp.ones(8))
        Array([0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125], dtype=float32)
    """
    eager.check_callable("pmap", fun)
    in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    static, donated = (
        arguments.from_the_front(fun, _positions(given))
        for given in (static_broadcasted_argnums, donate_argnums)
    )
    both = sorted(set(static) & set(donated))
    if both:
        refuse(
            f"arguments cannot be static and donated: {both}.",
            got=f"static_broadcasted_argnums={static}, donate_argnums={donated}",
        )
    mapping = Mapping(
        axis_name,
        AxesTree.of("in_axes", in_axes),
        AxesTree.of("out_axes", out_axes),
        _checked_devices(fun, devices),
        backend,
        None if axis_size is None else operator.index(axis_size),
    )
    half = PmapFunction(fun, mapping, static, donated)

    native = jit.native_half(half)
    known: Any = half.python if static else native

    @source.result_of(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        is_told = config.disable_jit.value or config.distributed_debug.value
        return (half.python if is_told else known)(*args, **kwargs)

    mapped: Any = call
    vars(call).update(trace=half.trace, lower=half.lower, eval_shape=half.eval_shape)
    vars(call).update(clear_cache=lambda: jit.clear(half, native), pmap_function=half)
    return mapped


def _positions(given: object) -> tuple[int, ...]:
    return tuple(map(operator.index, given if isinstance(given, Iterable) else (given,)))


def _checked_devices(fun: Callable[..., Any], devices: Any) -> tuple[Any, ...] | None:
    if devices is None:
        return None
    found = tuple(devices)
    if not found:
        refuse(
            "devices must not be empty.",
            got="devices=[]",
            fix="leave devices away for the first ones there are",
        )
    here = client.process_index(found[0].client)
    if all(d.process_index != here for d in found):
        refuse(
            f"devices for {flattening.function_name(fun)} must include one of this process.",
            got=f"devices={list(found)}, process {here}",
        )
    return found


def in_axes_of(
    mapping: Mapping,
    in_tree: PyTreeDef,
    positions: Sequence[int] | None,
    avals: Avals,
    names: Callable[[], Sequence[str]],
) -> MappedArguments:
    """The axis of each flat argument, and the number of slices.

    Raises:
        ValueError: in_axes does not fit the arguments, a dimension does not exist, sizes disagree
            or nothing is mapped.
    """
    in_axes = mapping.in_axes.value()
    if positions is not None and isinstance(in_axes, tuple):
        if positions and positions[-1] >= len(in_axes):
            refuse(
                "in_axes must have one entry for each positional argument, static ones too.",
                got=f"{len(in_axes)} entries, an argument at position {positions[-1]}",
            )
        in_axes = tuple(in_axes[i] for i in positions)
    given = tree.flatten_in_axes("pmap in_axes", in_tree, in_axes)
    along, size = mapped_dims("pmap", given, avals, names, "all devices share")
    if size is None:
        refuse(
            "no argument is mapped, so there is nothing to map over.",
            fix="map at least one argument (in_axes)",
        )
    wanted = mapping.axis_size
    owner = mapping.devices[0].client if mapping.devices else mapping.backend
    # A map inside another one is over devices of this process.
    if axes.any_of_kind("pmap") or client.process_count(owner) == 1:
        if wanted not in (None, size):
            refuse(
                f"axis_size is {wanted}, and the arguments have {size} slices.",
                expected="one size, as there is one process",
                fix="leave axis_size away",
            )
        return MappedArguments(along, size, size)
    processes = client.process_count(mapping.backend)
    if mapping.devices is not None:
        processes = len({device.process_index for device in mapping.devices})
    return MappedArguments(along, size, size * processes if wanted is None else wanted)


def out_axes_of(out_axes: AxesTree, out_tree: PyTreeDef, avals: Avals) -> Axes:
    """The axis of each flat result.

    Raises:
        ValueError: out_axes does not fit the results, or a dimension cannot be there.
    """
    given = tree.flatten_axes("pmap out_axes", out_tree, out_axes.value(), value="the results")
    for i, (axis, aval) in enumerate(zip(given, avals, strict=True)):
        if axis is not None and not -aval.ndim <= axis + 1 <= aval.ndim + 1:
            refuse(
                f"out_axes {axis} is out of range for {flattening.result_paths(out_tree)[i]}.",
                got=f"a result of rank {aval.ndim + 1} with the mapped dimension",
            )
    return tuple(
        axis if axis is None else axis % (aval.ndim + 1)
        for axis, aval in zip(given, avals, strict=True)
    )
