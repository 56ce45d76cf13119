"""`pmap`: a function of one slice becomes a function of as many as there are devices.

Input: a function of trees.  Output: a function of stacked trees, each slice of which one device
works on; collectives inside speak to the others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from minijax.core import axes, config, refs, statistics, tree
from minijax.core.cache import Cache
from minijax.core.errors import message
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr
from minijax.core.trace import Tracer, current
from minijax.interpreters import eager, flattening, key_reuse, replicas, staging
from minijax.lax.control_flow import divergence
from minijax.runtime import client
from minijax.runtime.array import Array, ExtendedArray
from minijax.transforms import jit, stages
from minijax.transforms.pmap import ahead_of_time, arguments, by_shard_map, programs, stepwise
from minijax.transforms.pmap.arguments import Settings
from minijax.transforms.pmap.primitive import pmap_p

P = ParamSpec("P")
R = TypeVar("R")


class Staged(NamedTuple):
    """A function staged for one signature.

    Attributes:
        params: the parameters of `pmap_p`.
        info: those but the jaxpr.
        outer: traced values that the function closes over: the first operands.
        out_tree: the tree of the results.
        by_shard_map: whether it is run as a `shard_map`.
    """

    params: dict[str, Any]
    info: programs.MapInfo
    outer: list[Any]
    out_tree: Any
    by_shard_map: bool


_PLAIN = frozenset({Array, ExtendedArray, np.ndarray, bool, int, float})
_staged_by_function = statistics.tracing.by_owner()
_axes_by_function = Cache(
    "axes without names",
    "the axis that a `pmap` of a function binds if it has no name",
    key="none",
    owner="function",
    counted=False,
).by_owner()


def _state_of(function: Any) -> tuple[axes.AxisOf, dict[Any, Staged]]:
    """The axis that maps of a function bind if it has no name, and its staged programs."""
    axis = axes.AxisOf(flattening.function_name(function))
    try:
        found = _axes_by_function.setdefault(function, {"axis": axis})["axis"]
        return found, _staged_by_function.setdefault(function, {})
    except TypeError:
        return axis, {}


class Call(NamedTuple):
    """The arguments of one call, flat.

    Attributes:
        leaves: the dynamic arguments.
        in_tree: the tree of (args, kwargs) of these.
        avals: their types.
        statics: the static arguments.
        positions: the positions of the dynamic arguments; None for all.
    """

    leaves: list[Any]
    in_tree: Any
    avals: tuple[Any, ...]
    statics: Any
    positions: Sequence[int] | None


class PmapFunction:
    """A mapped function; what `pmap` returns calls it."""

    def __init__(self, function: Callable[..., Any], settings: Settings) -> None:
        self.function = function
        self.settings = settings
        self.name = flattening.function_name(function)
        own_axis, self.staged = _state_of(function)
        self.axis_name = own_axis if settings.axis_name is None else settings.axis_name

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the function on all slices."""
        if config.disable_jit.value and config.eager_pmap.value and self.may_run_eagerly:
            if not stepwise.is_bound(self.axis_name):
                return self.call_eagerly(*args, **kwargs)
            # Values know their axes by name, and could not tell this one from that around it.
            with config.disable_jit(False):
                return self.call(*args, **kwargs)
        leaves, staged = self.infer(args, kwargs)
        is_plain = _PLAIN.issuperset(map(type, leaves))
        if not is_plain:
            names = staged.params["jaxpr"].jaxpr.debug_info
            stages.check_no_structs(self.name, leaves, names)
        if current.value is eager.EAGER and not staged.outer:
            if not is_plain:
                eager.check_no_tracers(leaves)
            if config.debug_key_reuse.value:
                key_reuse.use_arguments(ahead_of_time.applied(staged.params), leaves)
            find = by_shard_map.executable_for if staged.by_shard_map else programs.executable_for
            outs = find(staged.params["jaxpr"], staged.info)(leaves)
        elif staged.by_shard_map:
            jaxpr = staged.params["jaxpr"]
            outs = by_shard_map.bind(jaxpr, staged.info, [*staged.outer, *leaves])
        else:
            outs = pmap_p.bind_all(*staged.outer, *leaves, **staged.params)
        return tree.unflatten(staged.out_tree, outs)

    def infer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Staged]:
        """The flat arguments of a call, and the staged program for their types."""
        call = self._flat(args, kwargs)
        key = (self.settings, call.in_tree, call.avals, call.statics, config.trace_context())
        staged = self.staged.get(key)
        if staged is not None and not any(
            isinstance(x, Tracer) and x.traced_by.finished for x in staged.outer
        ):
            statistics.tracing.hits += 1
            return call.leaves, staged
        statistics.tracing.misses += 1
        staged = self._stage(call)
        if not (staged.outer and config.check_tracer_leaks.value):
            self.staged[key] = staged
        return call.leaves, staged

    def _flat(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        statics, positions, dynamic = arguments.split_static(self.name, self.settings, args)
        leaves, in_tree = tree.flatten((dynamic, kwargs))

        def names() -> Sequence[str]:
            return self._debug_info(in_tree, positions).arg_names or ()

        avals = flattening.avals_of(leaves, names, "pmap")
        return Call(leaves, in_tree, avals, statics, positions)

    def _debug_info(self, in_tree: Any, positions: Sequence[int] | None) -> Any:
        return flattening.debug_info("pmap", self.function, in_tree, positions)

    def _function_of(self, call: Call) -> flattening.FlatFunction:
        function = self.function
        if call.statics:
            function = jit.with_statics(function, call.statics, call.positions or ())
        return flattening.FlatFunction(function, call.in_tree, self.name)

    def _mapping(self, call: Call) -> arguments.MappedArguments:
        info = self._debug_info(call.in_tree, call.positions)
        return arguments.in_axes_of(
            self.settings, call.in_tree, call.positions, call.avals, lambda: info.arg_names or ()
        )

    def _stage(self, call: Call) -> Staged:
        along = self._mapping(call)
        flat = self._function_of(call)
        info = self._debug_info(call.in_tree, call.positions)
        slices = [
            aval if axis is None else aval.without_dim(axis)
            for aval, axis in zip(call.avals, along.axes, strict=True)
        ]
        sizes: dict[str, Any] = {
            "axis_name": self.axis_name,
            "global_axis_size": along.global_size,
        }
        is_inside = any(axis.kind == "pmap" for axis in axes.in_scope())
        with statistics.timed("trace", "tracing", self.name), programs.inside(sizes):
            jaxpr, consts = staging.stage(flat, slices, info)
            _check_no_references(self.name, [*consts, *(v.aval for v in jaxpr.invars)])
            closed, outer = _lifted(jaxpr, consts)
            in_axes = (None,) * len(outer) + along.axes
            _check_uniform(closed, in_axes, self.axis_name)
        info.with_result_paths(functools.partial(flattening.result_paths, flat.out_tree))
        out_axes = arguments.out_axes_of(self.settings, flat.out_tree, closed.out_avals)
        donated = arguments.donations(self.settings, call.in_tree, call.positions)
        map_info = programs.MapInfo(
            name=self.name,
            backend=self.settings.backend,
            axis_size=along.size,
            devices=self.settings.devices,
            in_axes=in_axes,
            out_axes=out_axes,
            donated_invars=(False,) * len(outer) + donated,
            **sizes,
        )
        by_shard_map = (
            config.pmap_via_shard_map.value
            and not is_inside
            and along.size == along.global_size
            and replicas.count(closed) == 1
        )
        params = {**map_info._asdict(), "jaxpr": closed}
        return Staged(params, map_info, outer, flat.out_tree, by_shard_map)

    @property
    def may_run_eagerly(self) -> bool:
        """Whether the function can be run operation by operation."""
        settings = self.settings
        is_alone = client.process_count(settings.backend) == 1
        return is_alone and settings.axis_size is None and not settings.donate_argnums

    def call_eagerly(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the function operation by operation, each on all slices.

        Raises:
            NotImplementedError: arguments are donated, the user gives the size of the axis, or
            there are several processes.
            ValueError: as for other calls.
        """
        settings = self.settings
        if not self.may_run_eagerly:
            raise NotImplementedError(
                message(
                    "pmap",
                    f"{self.name} cannot run operation by operation.",
                    got=f"axis_size={settings.axis_size}, donate_argnums={settings.donate_argnums}",
                    fix="leave these away, or run it compiled: config.update('eager_pmap', False)",
                )
            )
        call = self._flat(args, kwargs)
        along = self._mapping(call)
        flat = self._function_of(call)
        out_axes: arguments.Axes = ()

        def place(avals: Sequence[Any]) -> arguments.Axes:
            nonlocal out_axes
            out_axes = arguments.out_axes_of(settings, flat.out_tree, avals)
            return out_axes

        devices = None
        if type(current.value) is stepwise.MapTrace:
            arguments.check_names_no_devices(self.name, settings.devices)
        else:
            devices = programs.devices_for_slices(self.name, settings, along)
        axis = axes.Axis(self.axis_name, along.global_size, "pmap")
        outs = stepwise.run(flat, call.leaves, along.axes, axis, place)
        if devices is not None and current.value is eager.EAGER:
            outs = stepwise.placed(outs, out_axes, devices)
        return tree.unflatten(flat.out_tree, outs)

    def trace(self, *args: Any, **kwargs: Any) -> stages.Traced:
        """Stages the function for some arguments, which may be `ShapeDtypeStruct`s."""
        leaves, staged = self.infer(args, kwargs)
        _, _, dynamic = arguments.split_static(self.name, self.settings, args)
        in_tree = tree.structure((dynamic, kwargs))
        if staged.by_shard_map:
            closed, options = by_shard_map.program_for(staged.params["jaxpr"], staged.info)
            trees = in_tree, staged.out_tree
            return stages.Traced(closed, staged.outer, *trees, options, leaves, None)
        return ahead_of_time.Traced.of(
            staged.params, staged.outer, in_tree, staged.out_tree, leaves
        )

    def lower(self, *args: Any, **kwargs: Any) -> stages.Lowered:
        """Stages and lowers the function for some arguments."""
        platforms = kwargs.pop("_lowering_platforms", None)
        return self.trace(*args, **kwargs).lower(lowering_platforms=platforms)

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The shapes and dtypes of the results, without computing them."""
        _, staged = self.infer(args, kwargs)
        avals = pmap_p.abstract_eval(**staged.params)
        return tree.unflatten(staged.out_tree, list(map(stages.struct_of, avals)))


def _check_no_references(name: str, values: Sequence[Any]) -> None:
    """Refuses references from outside of a map: devices would write to them in any order.

    Raises:
        NotImplementedError: there is one.
    """
    for x in values:
        aval = x.aval if isinstance(x, (Tracer, refs.Cell)) else x
        if isinstance(aval, refs.AbstractRef):
            raise NotImplementedError(
                message(
                    "pmap",
                    f"{name} uses a reference from outside, which several devices would share.",
                    got=str(aval),
                    fix="pass its value, ref[...], and make references inside: new_ref(x)",
                )
            )


def _lifted(jaxpr: Jaxpr, consts: Sequence[Any]) -> tuple[ClosedJaxpr, list[Any]]:
    """A jaxpr whose traced constants are its first operands, and these."""
    traced = [isinstance(c, Tracer) for c in consts]
    outer = [c for c, t in zip(consts, traced, strict=True) if t]
    if outer:
        lifted = [v for v, t in zip(jaxpr.constvars, traced, strict=True) if t]
        jaxpr.constvars = [v for v, t in zip(jaxpr.constvars, traced, strict=True) if not t]
        consts = [c for c, t in zip(consts, traced, strict=True) if not t]
        jaxpr.invars = lifted + jaxpr.invars
        jaxpr.debug_info = jaxpr.debug_info.without_arg_names()
    return ClosedJaxpr(jaxpr, list(consts)), outer


def _check_uniform(closed: ClosedJaxpr, in_axes: Sequence[int | None], axis_name: Any) -> None:
    """Refuses programs whose devices may wait for others that never come."""
    along = frozenset({axis_name})
    given = [frozenset[Any]() if axis is None else along for axis in in_axes]
    divergence.check_untyped("pmap", closed, given, along)


def pmap(
    fun: Callable[P, R],
    axis_name: Any = None,
    *,
    in_axes: int | Sequence[Any] | None = 0,
    out_axes: Any = 0,
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
        TypeError: an axis is no integer, an argument no array, or `fun` not callable.
        ValueError: sizes disagree, an axis is out of range, nothing is mapped, a static argument
            is not hashable, or there are not the devices that it takes.

    Example:
        >>> jax.pmap(lambda x: x + 1)(jnp.arange(8))
        Array([1, 2, 3, 4, 5, 6, 7, 8], dtype=int32)
        >>> jax.pmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(jnp.ones(8))
        Array([0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125], dtype=float32)
    """
    eager.check_callable("pmap", fun)
    settings = arguments.settings_of(
        fun,
        axis_name=axis_name,
        in_axes=in_axes,
        out_axes=out_axes,
        static_argnums=static_broadcasted_argnums,
        devices=devices,
        backend=backend,
        axis_size=axis_size,
        donate_argnums=donate_argnums,
    )
    half = PmapFunction(fun, settings)

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        return half.call(*args, **kwargs)

    mapped: Any = call
    mapped.trace = half.trace
    mapped.lower = half.lower
    mapped.eval_shape = half.eval_shape
    mapped.clear_cache = half.staged.clear
    mapped.pmap_function = half
    return mapped
