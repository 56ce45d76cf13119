"""`pmap` operation by operation, for debugging: `disable_jit` with `eager_pmap`.

Each operation of the function is a nested `pmap` of its own over the axes along which its operands
are mapped.  A value holds all slices, so printing one in the function shows them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from minijax.core import axes as core_axes
from minijax.core import config
from minijax.core.aval import aval_of
from minijax.core.cache import Cache
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.operators import Avals, Values
from minijax.core.trace import Params, Trace, Tracer, check_alive, current
from minijax.interpreters import confinement, staging
from minijax.interpreters.structural import moveaxis, new_axis
from minijax.lowering import eager, relocation
from minijax.runtime.array import array_from_host, is_array
from minijax.transforms.pmap import programs
from minijax.transforms.pmap.primitive import pmap_p

if TYPE_CHECKING:
    from minijax.core.primitive import Primitive

Dims = dict[Any, int]
"""Along which dimension of a value each axis runs, by name."""


class MapTracer(Tracer):
    """All slices of a value: `value`, whose dimensions `dims` run over axes of devices."""

    __slots__ = ("dims", "value")

    value: Any
    dims: Dims

    def __init__(self, trace: MapTrace, value: object, dims: Dims) -> None:
        self.traced_by = trace
        self.value = value
        self.dims = dims
        aval = aval_of(value)
        for dim in sorted(dims.values(), reverse=True):
            aval = aval.without_dim(dim)
        self.aval = aval

    def origin(self) -> str:
        return f"mapped by pmap over {self.dims}"

    def __repr__(self) -> str:
        shown = "{" + ", ".join(f"{name}: {dim}" for name, dim in self.dims.items()) + "}"
        return f"{self.value!r}{shown}"

    __str__ = __repr__


class MapTrace(Trace):
    """Applies each operation to all slices at once, in `parent`."""

    __slots__ = ("bound", "parent")

    def __init__(self, parent: Trace, axis_name: Hashable) -> None:
        super().__init__(f"pmap over {axis_name!r}")
        self.parent = parent
        # The axes that the values of this trace are mapped over, the outermost first.
        self.bound: list[core_axes.Axis] = []

    def split(self, x: object) -> tuple[Any, Dims]:
        """A value and the axes it is mapped over."""
        if type(x) is MapTracer and x.traced_by is self:
            return x.value, x.dims
        if isinstance(x, Tracer):
            check_alive(x)
        return x, {}

    def tracer(self, value: object, dims: Dims) -> Any:
        """The tracer of a value; the value itself where no axis runs along it."""
        return MapTracer(self, value, dims) if dims else value

    def process(self, primitive: Any, args: Values, params: Params) -> Sequence[Any]:
        if confinement.stage_functions.of(primitive) is not None and not isinstance(
            params["call_jaxpr"], ClosedJaxpr
        ):
            return self._call(primitive, args, params)
        values, dims = zip(*map(self.split, args), strict=True) if args else ((), ())
        wanted = {name for own in dims for name in own} | self._names_in(primitive, params)
        used = [axis for axis in self.bound if axis.name in wanted]
        current.set_local(self.parent)
        try:
            with config.disable_jit(False):
                if not used:
                    return self.parent.process(primitive, args, params)
                outs = _apply(primitive, params, used, values, dims)
        finally:
            current.set_local(self)
        return [self.tracer(x, {axis.name: i for i, axis in enumerate(used)}) for x in outs]

    def _call(self, primitive: Any, args: Values, params: Params) -> Sequence[Any]:
        """Calls a function that has a rule of the user's, which traces around may ask for."""
        if self.parent is eager.EAGER:
            return primitive.impl(*args, **params)
        with config.disable_jit(False):
            call = functools.partial(primitive.bind_all, **params)
            jaxpr, consts = staging.stage(call, list(map(aval_of, args)))
        return staging.eval_jaxpr(jaxpr, consts, *args)

    def _names_in(self, primitive: Primitive, params: Mapping[str, Any]) -> set[Any]:
        """The axes that an operation refers to; a user's rules may refer to any."""
        if confinement.stage_functions.of(primitive) is not None:
            return {axis.name for axis in self.bound}
        found: set[Any] = set()
        for key in core_axes.axis_params.of(primitive):
            value = params[key]
            found.update(value if isinstance(value, tuple) else (value,))
        for value in params.values():
            if isinstance(value, ClosedJaxpr):
                found |= core_axes.used_by(value.jaxpr)
        return found


def schedule(dims: Sequence[int]) -> list[int]:
    """Dimensions of one array, as they count once those before them in the list are gone."""
    return [d - sum(other < d for other in dims[:i]) for i, d in enumerate(dims)]


_programs: dict[Any, dict[str, Any]] = Cache(
    "mapped operations",
    "maps over devices of single operations of an eager `pmap`",
    key="primitive, parameters, types, mapped dimensions, axes",
    emptied=True,
    counted=False,
).table()


def _apply(
    primitive: Primitive,
    params: Mapping[str, Any],
    used: Sequence[core_axes.Axis],
    values: Values,
    dims: Sequence[Dims],
) -> Sequence[Any]:
    """The results of an operation over all slices, the axes `used` in front."""
    avals = tuple(map(aval_of, values))
    along = []
    for own in dims:
        names = [axis.name for axis in used if axis.name in own]
        places = dict(zip(names, schedule([own[name] for name in names]), strict=True))
        along.append(tuple(places.get(axis.name) for axis in used))
    if confinement.stage_functions.of(primitive) is not None:
        # They are new in every call.
        made = _mapped(primitive, params, used, avals, along)
    else:
        key = (primitive, tuple(params.items()), avals, tuple(along), tuple(used))
        made = _programs.get(key) or _mapped(primitive, params, used, avals, along)
        _programs[key] = made
    outs: Values = pmap_p.bind_all(*values, **made)
    return outs


def _mapped(
    primitive: Primitive,
    params: Mapping[str, Any],
    used: Sequence[core_axes.Axis],
    avals: Avals,
    along: Sequence[tuple[int | None, ...]],
) -> dict[str, Any]:
    """The parameters of the outermost of the nested maps over `used` that apply an operation."""
    axis, *inner_axes = used
    in_axes = tuple(places[0] for places in along)
    slices = programs.sliced_avals(avals, in_axes)
    sizes = {"axis_name": axis.name, "global_axis_size": axis.size}
    with programs.inside(sizes):
        if inner_axes:
            inner = _mapped(primitive, params, inner_axes, slices, [places[1:] for places in along])
            function = functools.partial(pmap_p.bind_all, **inner)
        else:
            function = functools.partial(primitive.bind_all, **params)
        jaxpr = ClosedJaxpr(*staging.stage(function, slices))
    return {
        **sizes,
        "axis_size": axis.size,
        "backend": None,
        "devices": None,
        "donated_invars": (),
        "in_axes": in_axes,
        "jaxpr": jaxpr,
        "name": primitive.name,
        "out_axes": (0,) * len(jaxpr.out_avals),
    }


def matched(parts: tuple[Any, Dims], axis: core_axes.Axis, wanted: int | None) -> tuple[Any, Dims]:
    """A result with one axis where the user wants it, no longer mapped over it.

    Args:
        parts: the value, and the axes it is mapped over.
        axis: the axis.
        wanted: where the result has it, seen as a slice over the other axes; None for nowhere.

    Raises:
        NotImplementedError: it is to have it nowhere, and slices may differ.
    """
    value, dims = parts
    rest = {other: d for other, d in dims.items() if other != axis.name}
    source = dims.get(axis.name)
    if wanted is None:
        if source is None:
            return value, rest
        problem = "out_axes is None for a result that differs between devices, run eagerly."
        fix = "give the result an axis, or run it compiled: without disable_jit"
        error(NotImplementedError, "pmap", problem, got=f"mapped over {dims}", fix=fix)
    if source is None:
        ndim = aval_of(value).ndim + 1
        target = _position(ndim, rest, wanted)
        return new_axis(value, axis.size, target), _after_insertion(rest, target)
    # Without the axis the others close ranks, and make room for it again.
    rest = {other: d - (d > source) for other, d in rest.items()}
    target = _position(aval_of(value).ndim, rest, wanted)
    return moveaxis(value, source, target), _after_insertion(rest, target)


def _position(ndim: int, rest: Dims, axis: int) -> int:
    """Where a new dimension stands in a whole value that is to be `axis` in a slice over `rest`."""
    order = [d for d in range(ndim - 1) if d not in rest.values()]
    return order[axis] if axis < len(order) else ndim - 1


def _after_insertion(dims: Dims, position: int) -> Dims:
    return {name: d + (d >= position) for name, d in dims.items()}


def is_bound(name: Hashable) -> bool:
    """Whether a map that runs operation by operation has bound an axis of this name."""
    trace = current.value
    return type(trace) is MapTrace and any(axis.name == name for axis in trace.bound)


def run(
    function: Callable[..., Sequence[Any]],
    args: Values,
    in_axes: Sequence[int | None],
    axis: core_axes.Axis,
    place: Callable[[Sequence[Any]], Sequence[int | None]],
) -> list[Any]:
    """Runs a function of slices operation by operation.

    Args:
        function: of flat values.
        args: whole values.
        in_axes: where they have the axis, if they have.
        axis: the axis that the function is mapped over.
        place: for the types of the results' slices, where each shall have the axis.
    """
    before = current.value
    is_own = type(before) is not MapTrace
    trace = before if type(before) is MapTrace else MapTrace(before, axis.name)
    trace.bound.append(axis)
    parts = [trace.split(x) for x in args]
    inner = [
        trace.tracer(value, dims if d is None else {**dims, axis.name: _taken(value, dims, d)})
        for (value, dims), d in zip(parts, in_axes, strict=True)
    ]
    sizes = {"axis_name": axis.name, "global_axis_size": axis.size}
    try:
        with programs.inside(sizes):
            current.set_local(trace)
            outs = function(*inner)
            current.set_local(trace.parent)
            found = [
                matched(trace.split(x), axis, d)
                for x, d in zip(outs, place(list(map(aval_of, outs))), strict=True)
            ]
    finally:
        current.set_local(before)
        trace.bound.remove(axis)
        trace.finished = is_own
    return [trace.tracer(value, dims) for value, dims in found]


def _taken(value: object, dims: Dims, axis: int) -> int:
    """The dimension of a whole value that a slice over `dims` has as `axis`."""
    return [d for d in range(aval_of(value).ndim) if d not in dims.values()][axis]


def placed(
    outs: Values, out_axes: Sequence[int | None], name: Hashable, devices: tuple[Any, ...]
) -> list[Any]:
    """Results on the devices of their slices, as a compiled map leaves them."""
    found = []
    for x, axis in zip(outs, out_axes, strict=True):
        value = x if is_array(x) else array_from_host(x)
        aval = value.aval if axis is None else value.aval.without_dim(axis)
        (sharding,) = programs.shardings([aval], (axis,), name, len(devices), devices)
        found.append(relocation.placed(value, sharding))
    return found
