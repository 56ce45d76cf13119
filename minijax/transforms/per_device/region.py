"""Inside and outside of a `shard_map`: axes, types on both sides, and its split in two.

Input: a mesh, the axes that become manual, specs and types.  Output: types of blocks and of whole
values.  Where only some operands are known, or values are saved by a policy, the operation becomes
two; between them values are whole, and what varies over axes is split over these along its first
dimension.

The other rules of the operation are in `primitive.py`.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from minijax.core import axes as core_axes
from minijax.core import config, meshes, refs, vma
from minijax.core.aval import AbstractValue, ShapedArray, aval_of
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr, Eqn
from minijax.core.meshes import AbstractMesh, AxisType, PartitionSpec, names_of
from minijax.core.operators import Value, Values
from minijax.core.trace import Trace, current
from minijax.core.value_placement import NOT_MANUAL, manual_type
from minijax.interpreters import casts, partial_eval, remat, staging
from minijax.interpreters.structural import new_axis
from minijax.lax.shape import squeeze
from minijax.sharding import rules
from minijax.sharding.named import named

if TYPE_CHECKING:
    from minijax.core.primitive import Primitive

Specs = tuple[PartitionSpec, ...]


class Region(NamedTuple):
    """The axes that a `shard_map` makes manual, on a mesh.

    Attributes:
        mesh: the mesh outside: its axis types are those that hold there.
        axes: the axes that become manual.
        check_vma: whether types inside tell over which axes values vary.
    """

    mesh: Any
    axes: frozenset[Any]
    check_vma: bool

    @property
    def outer(self) -> AbstractMesh:
        """The mesh outside, without devices."""
        found: AbstractMesh = self.mesh.abstract_mesh
        return found

    @property
    def inner(self) -> AbstractMesh:
        """The mesh inside."""
        return self.outer.update_axis_types(dict.fromkeys(self.axes, AxisType.Manual))

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """While this is entered, what is traced is written per device of the axes."""
        pairs = [(n, s) for n, s in self.outer.shape_tuple if n in self.axes]
        with (
            config.override(meshes.abstract_mesh, self.inner),
            config.override(core_axes.check_vma, self.check_vma),
            core_axes.extend_all(core_axes.Axis(n, s, "mesh") for n, s in pairs),
        ):
            yield

    def ordered(self, names: Any) -> tuple[Any, ...]:
        """Names of axes in the order of the mesh."""
        return tuple(name for name in self.outer.axis_names if name in names)

    def size(self, names: Any) -> int:
        """How many devices some of the axes have together."""
        return math.prod(map(self.outer.axis_size, names))

    def unmentioned(self, spec: PartitionSpec) -> tuple[Any, ...]:
        """The axes that a spec does not name: along them all devices have the same block."""
        mentioned = {*spec.names(), *spec.unreduced, *spec.reduced}
        return tuple(n for n in self.ordered(self.axes) if n not in mentioned)

    def block(self, aval: AbstractValue, spec: PartitionSpec) -> Any:
        """The type of a device's block of a value."""
        if isinstance(aval, refs.AbstractRef):
            return aval.to(self.block(aval.inner_aval, spec))
        if not isinstance(aval, ShapedArray):
            return aval
        dims = spec.dims(aval.ndim)
        shape = tuple(n // self.size(names) for n, names in zip(aval.shape, dims, strict=True))
        return aval.update(
            shape=shape,
            sharding=self._split_inside(aval),
            manual_axis_type=self._kind_inside(aval, spec),
        )

    def _kind_inside(self, aval: ShapedArray, spec: PartitionSpec) -> Any:
        if not self.check_vma:
            return NOT_MANUAL
        varying, unreduced, reduced = aval.manual_axis_type
        return manual_type(
            varying | frozenset(spec.names()), unreduced | spec.unreduced, reduced | spec.reduced
        )

    def _split_inside(self, aval: ShapedArray) -> Any:
        if aval.split is None:
            return None
        entries = [tuple(n for n in names_of(e) if n not in self.axes) for e in aval.split.spec]
        return rules.shown(named(self.inner, PartitionSpec(*entries)), aval.ndim)

    def whole(self, aval: AbstractValue, spec: PartitionSpec, around: object = NOT_MANUAL) -> Any:
        """The type of the value whose blocks are of type `aval`."""
        if not isinstance(aval, ShapedArray):
            return aval
        dims = spec.dims(aval.ndim)
        shape = tuple(n * self.size(names) for n, names in zip(aval.shape, dims, strict=True))
        kind = around
        if self.check_vma:
            kind = manual_type(*(axes - self.axes for axes in aval.manual_axis_type))
        entries: list[Any] = [names or None for names in dims]
        if aval.split is not None:
            entries = [
                (*names, *names_of(e)) or None
                for names, e in zip(dims, aval.split.spec, strict=True)
            ]
        split = named(
            self.outer, PartitionSpec(*entries, unreduced=spec.unreduced, reduced=spec.reduced)
        )
        return aval.update(
            shape=shape, sharding=rules.shown(split, aval.ndim), manual_axis_type=kind
        )


def region_of(params: Mapping[str, Any]) -> Region:
    """The region of an equation."""
    return Region(params["mesh"], params["newly_manual_axes"], params["check_vma"])


def match(x: Value, spec: PartitionSpec, region: Region) -> Any:
    """A result of the body, of the kind that its spec says."""
    if not region.check_vma or not isinstance(aval_of(x), ShapedArray):
        return x
    trace = current.value
    x = casts.varied(trace, x, frozenset(spec.names()))
    # What differs between devices is what they have to add to the sum.
    summands = region.ordered(vma.of(aval_of(x)).varying & spec.unreduced)
    return casts.summands(trace, x, summands) if summands else x


def agree_rule(
    primitive: Primitive, trace: Trace, args: Values, params: dict[str, Any]
) -> casts.Arguments:
    """The rule `agree`: inside a `shard_map` over other axes, operands may vary over these."""
    region = region_of(params)
    given: ClosedJaxpr = params["jaxpr"]
    if not region.check_vma:
        return args, params
    outer = [axes - region.axes for axes in casts.of_types(given.in_avals)]
    args = casts.cast(trace, args, outer)
    varying = casts.united(casts.varying_axes(args), casts.of_types(given.in_avals))
    with region.entered():
        fitting = casts.retyped(given, varying)
    return args, {**params, "jaxpr": fitting}


def split_rule(
    params: Mapping[str, Any], unknown: Sequence[bool]
) -> tuple[partial_eval.PartialJaxpr, Sequence[PartitionSpec]]:
    """The jaxpr in two: of what is known, and of the rest; and specs for what passes between."""
    region = region_of(params)
    split = partial_eval.partial_eval_jaxpr(params["jaxpr"], unknown)
    count = itertools.count()
    numbers = [next(count) if i is None else None for i in split.sources]
    numbers += [None] * (len(split.staged.in_avals) - len(numbers))
    num_known = split.out_unknown.count(False)
    passed = passing(region, split.known, num_known, split.staged, numbers)
    return split._replace(known=passed.first, staged=passed.second), passed.specs


def divide_rule(
    primitive: Primitive, eqn: Eqn, wanted: Sequence[bool], policy: remat.Policy
) -> remat.Division:
    """The rule `divide`: values inside are saved as a policy says."""
    params = eqn.params
    closed: ClosedJaxpr = params["jaxpr"]
    region = region_of(params)
    count = len(eqn.outvars)

    def make() -> tuple[remat.DividedBody, Passing]:
        # Where types tell what varies, a result comes back as the block that left.
        with region.entered():
            body = remat.divide_body(closed, wanted, policy, [region.check_vma] * count)
            numbers = [i - count if i >= count else None for i in body.saved]
            parameters = [None] * len(closed.in_avals) + numbers
            return body, passing(region, body.now, count, body.again, parameters)

    body, passed = closed.remember(("divide shard_map", region, tuple(wanted), policy), make)
    with region.entered():
        wholes = [
            region.whole(aval, spec)
            for aval, spec in zip(passed.first.out_avals[count:], passed.specs, strict=True)
        ]
    specs = (*params["out_specs"], *passed.specs)
    now = {**params, "jaxpr": passed.first, "out_specs": specs}
    again = {
        **params,
        "jaxpr": passed.second,
        "in_specs": (*params["in_specs"], *(specs[i] for i in body.saved)),
        "out_specs": tuple(specs[i] for i in body.given),
    }
    return remat.divided_call(eqn, body, wholes, now, again)


class Passing(NamedTuple):
    """Two programs of which the first hands values to the second, outside.

    Attributes:
        first: returns the values after its own results, as blocks of whole ones.
        second: takes them.
        specs: how they are split outside.
    """

    first: ClosedJaxpr
    second: ClosedJaxpr
    specs: list[PartitionSpec]


def passing(
    region: Region,
    first: ClosedJaxpr,
    num_own: int,
    second: ClosedJaxpr,
    numbers: Sequence[int | None],
) -> Passing:
    """Makes values fit to leave a `shard_map` and to come back.

    What varies over axes is split over these along dimension 0; scalars get one first.

    Args:
        region: the axes.
        first: a program whose results from number `num_own` on are the values.
        num_own: how many results come before them.
        second: a program that takes values.
        numbers: for each of its parameters, the number of the value that it is, or None.
    """
    avals = first.out_avals[num_own:]
    over = [_axes_of_residual(region, aval) for aval in avals]
    specs = [
        _spec_of_residual(region, aval, names) for names, aval in zip(over, avals, strict=True)
    ]
    lifted = [bool(names) and not aval.ndim for names, aval in zip(over, avals, strict=True)]
    if not any(lifted):
        return Passing(first, second, specs)

    def giving(*args: Any) -> list[Any]:
        outs = staging.eval_closed_jaxpr(first, *args)
        given = [
            new_axis(x, 1, 0) if lift else x for x, lift in zip(outs[num_own:], lifted, strict=True)
        ]
        return outs[:num_own] + given

    flags = [n is not None and lifted[n] for n in numbers]

    def taking(*args: Any) -> list[Any]:
        taken = [squeeze(x, (0,)) if lift else x for x, lift in zip(args, flags, strict=True)]
        return staging.eval_closed_jaxpr(second, *taken)

    taken_avals = [
        aval.with_dim(0, 1) if lift else aval
        for aval, lift in zip(second.in_avals, flags, strict=True)
    ]
    return Passing(
        ClosedJaxpr(*staging.stage(giving, first.in_avals, first.jaxpr.debug_info)),
        ClosedJaxpr(*staging.stage(taking, taken_avals, second.jaxpr.debug_info)),
        specs,
    )


def _spec_of_residual(region: Region, aval: AbstractValue, names: tuple[Any, ...]) -> PartitionSpec:
    """How a value is kept between the programs; summands stay summands where types can say so."""
    _, unreduced, reduced = aval.manual_axis_type
    sums = region.ordered((unreduced | reduced) & region.axes)
    untold = [n for n in sums if region.outer.axis_type(n) is not AxisType.Explicit]
    if untold:
        error(
            ValueError,
            "shard_map",
            "a value that is unreduced or reduced is kept for the derivative, which types "
            f"outside can say of Explicit axes only, not of {meshes.names_text(untold)}.",
            got=f"{aval} on {region.outer}",
            fix="a mesh with Explicit axes, or lax.psum, or lax.pcast(x, axis, to='varying'), "
            "before the value is used nonlinearly",
        )
    return PartitionSpec(
        *([names] if names else []),
        unreduced=unreduced & region.axes,
        reduced=reduced & region.axes,
    )


def _axes_of_residual(region: Region, aval: AbstractValue) -> tuple[Any, ...]:
    if not isinstance(aval, ShapedArray):
        return ()
    return region.ordered(aval.vma & region.axes if region.check_vma else region.axes)
