"""Inside and outside of a `shard_map`: its axes, and the types on both sides.

Input: a mesh, the axes that become manual, specs and types.  Output: types of blocks and of whole
values.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from minijax.core import axes as core_axes
from minijax.core import meshes, refs
from minijax.core.aval import NOT_MANUAL, ShapedArray, aval_of, manual_type
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.meshes import AbstractMesh, AxisType
from minijax.core.specs import PartitionSpec, names_of
from minijax.core.trace import current
from minijax.interpreters import casts, retyping
from minijax.sharding import rules
from minijax.sharding.named import named

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
        around = meshes.abstract_mesh.swap_local(self.inner)
        checked = core_axes.check_vma.swap_local(self.check_vma)
        try:
            with core_axes.extend_all(core_axes.Axis(n, s, "mesh") for n, s in pairs):
                yield
        finally:
            core_axes.check_vma.set_local(checked)
            meshes.abstract_mesh.set_local(around)

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

    def block(self, aval: Any, spec: PartitionSpec) -> Any:
        """The type of a device's block of a value."""
        if isinstance(aval, refs.AbstractRef):
            return refs.AbstractRef(self.block(aval.inner_aval, spec))
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

    def whole(self, aval: Any, spec: PartitionSpec, around: Any = NOT_MANUAL) -> Any:
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


def match(x: Any, spec: PartitionSpec, region: Region) -> Any:
    """A result of the body, varying over the axes over which its spec splits it."""
    if not region.check_vma or not isinstance(aval_of(x), ShapedArray):
        return x
    return casts.varied(current.value, x, frozenset(spec.names()))


def agree_rule(
    primitive: Any, trace: Any, args: Sequence[Any], params: dict[str, Any]
) -> retyping.Arguments:
    """The rule `agree`: inside a `shard_map` over other axes, operands may vary over these."""
    region = region_of(params)
    given: ClosedJaxpr = params["jaxpr"]
    if not region.check_vma:
        return args, params
    outer = [axes - region.axes for axes in retyping.of_types(given.in_avals)]
    args = retyping.cast(trace, args, outer)
    varying = retyping.united(retyping.varying_axes(args), retyping.of_types(given.in_avals))
    with region.entered():
        fitting = retyping.retyped(given, varying)
    return args, {**params, "jaxpr": fitting}
