"""The primitive `shard_map`: a program per device, applied to the blocks of split arrays.

Its jaxpr is written for one device of the axes that it makes manual.  Each rule transforms the jaxpr
with these axes in scope, and says how what passes between the two sides is split.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from minijax.core import axes as core_axes
from minijax.core import effects as core_effects
from minijax.core import meshes, variance
from minijax.core.aval import NOT_MANUAL, ShapedArray, aval_of, manual_type
from minijax.core.errors import message
from minijax.core.jaxpr import ClosedJaxpr, Eqn
from minijax.core.meshes import AbstractMesh, AxisType
from minijax.core.primitive import Primitive
from minijax.core.sequences import merge_lists, partition_list
from minijax.core.specs import PartitionSpec, names_of
from minijax.core.trace import current
from minijax.interpreters import (
    batching,
    casts,
    eager,
    evaluation,
    hlo_build,
    jvp,
    lowering,
    manual_regions,
    partial_eval,
    passes,
    program,
    staging,
    transpose,
)
from minijax.interpreters.manual_regions import Border
from minijax.interpreters.structural import new_axis
from minijax.interpreters.tangents import Zero, is_linear, with_zeros
from minijax.lax.collectives.reductions import psum_p
from minijax.lax.shape import squeeze
from minijax.runtime.array import physical_aval
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


class ShardMap(Primitive):
    """Runs `jaxpr` on each device, on the blocks that `in_specs` cut the operands into.

    The results are put together as `out_specs` say.  Axes of `mesh` outside `newly_manual_axes` stay
    as they are around.
    """

    name = "shard_map"
    multiple_results: ClassVar[bool] = True
    has_effects: ClassVar[bool] = True
    knows_extended: ClassVar[bool] = True
    constrains_results: ClassVar[bool] = False
    changes_mesh: ClassVar[bool] = True
    binds_axis: ClassVar[str | None] = "newly_manual_axes"
    shard = rules.from_types
    vary = variance.from_types

    def inside(self, **params: Any) -> contextlib.AbstractContextManager[None]:
        return region_of(params).entered()

    def names_placement(self, *, mesh: Any, **_: Any) -> Any:
        return None if isinstance(mesh, AbstractMesh) else named(mesh, PartitionSpec())

    def impl(self, *args: Any, **params: Any) -> Sequence[Any]:
        eager.check_no_tracers(args)
        avals = list(map(aval_of, args))
        closed = staging.stage_closed(lambda *xs: self.bind_all(*xs, **params), avals)
        mesh = params["mesh"]
        shardings = [named(mesh, spec) for spec in params["out_specs"]]
        options = program.Options(self.name, out_shardings=tuple(shardings))
        return program.executable_for(closed, args, options)(args)

    def abstract_eval(
        self, *avals: Any, jaxpr: ClosedJaxpr, out_specs: Specs, **params: Any
    ) -> list[Any]:
        region = region_of(params)
        around = NOT_MANUAL
        if not region.check_vma:
            around = variance.join(self, [a for a in avals if isinstance(a, ShapedArray)])
        return [
            region.whole(aval, spec, around)
            for aval, spec in zip(jaxpr.out_avals, out_specs, strict=True)
        ]

    def effects(self, *avals: Any, jaxpr: ClosedJaxpr, **params: Any) -> frozenset[Any]:
        return _effects_outside(jaxpr, params)

    def lower(
        self,
        ctx: Any,
        *values: Any,
        jaxpr: ClosedJaxpr,
        in_specs: Specs,
        out_specs: Specs,
        **params: Any,
    ) -> list[Any]:
        region = region_of(params)
        ins = _borders(ctx.avals_in, jaxpr.in_avals, in_specs)
        outs = _borders(ctx.avals_out, jaxpr.out_avals, out_specs)

        def body(inner: Any, *blocks: Any) -> list[Any]:
            return lowering.lower_jaxpr(inner, jaxpr.jaxpr, jaxpr.consts, blocks, ("shmap_body",))

        with region.entered():
            return manual_regions.region(
                ctx, region.outer, region.ordered(region.axes), values, ins, outs, body
            )

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        jaxpr: ClosedJaxpr,
        in_specs: Specs,
        out_specs: Specs,
        **params: Any,
    ) -> tuple[list[Any], list[Any]]:
        nonzero = [type(t) is not Zero for t in tangents]
        with region_of(params).entered():
            derivative, out_nonzero = jvp.jvp_jaxpr(jaxpr, nonzero)
        outs = self.bind(
            *primals,
            *(t for t in tangents if type(t) is not Zero),
            jaxpr=derivative,
            in_specs=in_specs + _chosen(in_specs, nonzero),
            out_specs=out_specs + _chosen(out_specs, out_nonzero),
            **params,
        )
        count = len(out_nonzero)
        primal_outs = list(outs[:count])
        return primal_outs, with_zeros(out_nonzero, outs[count:], map(aval_of, primal_outs))

    def partial_eval(self, trace: Any, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        unknown = [trace.is_unknown(x) for x in args]
        in_specs: Specs = params["in_specs"]
        region = region_of(params)
        with region.entered():
            split = partial_eval.partial_eval_jaxpr(params["jaxpr"], unknown)
            passed = _residuals_as_blocks(region, split)
        known_specs, unknown_specs = partition_list(unknown, in_specs)
        known_out_specs, unknown_out_specs = partition_list(split.out_unknown, params["out_specs"])
        known_args, unknown_args = partition_list(unknown, args)
        known_outs: Sequence[Any] = ()
        if passed.known.jaxpr.outvars or passed.known.effects:
            known_outs = trace.process_known(
                self,
                known_args,
                {
                    **params,
                    "jaxpr": passed.known,
                    "in_specs": tuple(known_specs),
                    "out_specs": (*known_out_specs, *passed.specs),
                },
            )
        num_known = split.out_unknown.count(False)
        residuals = split.residuals(known_args, known_outs[num_known:])
        computed = iter(passed.specs)
        residual_specs = [next(computed) if i is None else known_specs[i] for i in split.sources]
        staged_outs: Sequence[Any] = ()
        if any(split.out_unknown) or split.staged.effects:
            staged_outs = trace.unknown.process(
                self,
                [*residuals, *unknown_args],
                {
                    **params,
                    "jaxpr": passed.staged,
                    "in_specs": (*residual_specs, *unknown_specs),
                    "out_specs": tuple(unknown_out_specs),
                },
            )
        return merge_lists(split.out_unknown, known_outs[:num_known], staged_outs)

    def transpose(
        self,
        cts: Sequence[Any],
        *args: Any,
        jaxpr: ClosedJaxpr,
        in_specs: Specs,
        out_specs: Specs,
        **params: Any,
    ) -> list[Any]:
        region = region_of(params)
        linear = tuple(is_linear(x) for x in args)
        ct_nonzero = tuple(type(ct) is not Zero for ct in cts)
        with region.entered():
            backward, nonzero = transpose.transpose_jaxpr(jaxpr, linear, ct_nonzero)
            known_specs, linear_specs = partition_list(linear, in_specs)
            ct_specs = _chosen(out_specs, ct_nonzero)
            result_specs = _chosen(linear_specs, nonzero)
            if not region.check_vma:
                backward = _older_convention(region, backward, ct_specs, result_specs)
        outs = self.bind(
            *(x for x, lin in zip(args, linear, strict=True) if not lin),
            *(ct for ct in cts if type(ct) is not Zero),
            jaxpr=backward,
            in_specs=(*known_specs, *map(rules.cotangent_spec, ct_specs)),
            out_specs=tuple(map(rules.cotangent_spec, result_specs)),
            **params,
        )
        return transpose.of_arguments(linear, nonzero, outs)

    def batch(
        self,
        size: int,
        args: Sequence[Any],
        dims: Sequence[Any],
        *,
        jaxpr: ClosedJaxpr,
        in_specs: Specs,
        out_specs: Specs,
        **params: Any,
    ) -> tuple[list[Any], list[Any]]:
        region = region_of(params)
        names = tuple(n for n in batching.spmd_axes() if n in region.axes)
        _check_free(names, (*in_specs, *out_specs))
        batched = [d is not None for d in dims]
        with region.entered():
            whole, out_batched = batching.batch_jaxpr(
                jaxpr,
                size // region.size(names),
                batched,
                bool(names),
                in_dims=[0 if d is None else d for d in dims],
            )
        entry = names or None
        outs = self.bind(
            *args,
            jaxpr=whole,
            in_specs=tuple(
                spec if d is None else spec.inserted(d, entry)
                for spec, d in zip(in_specs, dims, strict=True)
            ),
            out_specs=tuple(
                spec.inserted(0, entry) if b else spec
                for spec, b in zip(out_specs, out_batched, strict=True)
            ),
            **params,
        )
        return list(outs), [0 if b else None for b in out_batched]

    def dead_code(self, eqn: Eqn, used: Sequence[bool]) -> Eqn | None:
        with self.inside(**eqn.params):
            slim, kept = passes.without_dead_code(eqn.params["jaxpr"], used)
        if not slim.jaxpr.outvars and not slim.effects:
            return None
        return eqn.replace(
            invars=[v for v, keep in zip(eqn.invars, kept, strict=True) if keep],
            outvars=[v for v, u in zip(eqn.outvars, used, strict=True) if u],
            params={
                **eqn.params,
                "jaxpr": slim,
                "in_specs": _chosen(eqn.params["in_specs"], kept),
                "out_specs": _chosen(eqn.params["out_specs"], used),
            },
            effects=_effects_outside(slim, eqn.params),
        )


shard_map_p = ShardMap()


def _effects_outside(jaxpr: ClosedJaxpr, params: Mapping[str, Any]) -> frozenset[Any]:
    names = params["newly_manual_axes"]
    return frozenset(
        e
        for e in jaxpr.effects
        if not (isinstance(e, core_effects.NamedAxisEffect) and e.name in names)
    )


def _chosen(specs: Sequence[PartitionSpec], flags: Sequence[bool]) -> Specs:
    return tuple(spec for spec, flag in zip(specs, flags, strict=True) if flag)


def _borders(wholes: Sequence[Any], blocks: Sequence[Any], specs: Specs) -> list[Border]:
    return [
        Border(spec, physical_aval(whole).ndim, hlo_build.type_of(whole), hlo_build.type_of(block))
        for whole, block, spec in zip(wholes, blocks, specs, strict=True)
    ]


class _Passed(NamedTuple):
    """A program split in two, of which the first half returns residuals as values outside."""

    known: ClosedJaxpr
    staged: ClosedJaxpr
    specs: list[PartitionSpec]


def _residuals_as_blocks(region: Region, split: Any) -> _Passed:
    """Makes residuals fit to leave a `shard_map` and to come back.

    What varies over axes is split over these along dimension 0; scalars get one first.
    """
    num_known = split.out_unknown.count(False)
    avals = split.known.out_avals[num_known:]
    over = [_axes_of_residual(region, aval) for aval in avals]
    specs = [
        PartitionSpec(names or None, reduced=aval.manual_axis_type.reduced & region.axes)
        if names
        else PartitionSpec(reduced=aval.manual_axis_type.reduced & region.axes)
        for names, aval in zip(over, avals, strict=True)
    ]
    lifted = [bool(names) and not aval.ndim for names, aval in zip(over, avals, strict=True)]
    if not any(lifted):
        return _Passed(split.known, split.staged, specs)

    def known(*args: Any) -> list[Any]:
        outs = evaluation.eval_closed_jaxpr(split.known, *args)
        residuals = [
            new_axis(x, 1, 0) if lift else x
            for x, lift in zip(outs[num_known:], lifted, strict=True)
        ]
        return outs[:num_known] + residuals

    computed = iter(lifted)
    flags = [next(computed) if i is None else False for i in split.sources]
    flags += [False] * (len(split.staged.in_avals) - len(flags))

    def staged(*args: Any) -> list[Any]:
        given = [squeeze(x, (0,)) if lift else x for x, lift in zip(args, flags, strict=True)]
        return evaluation.eval_closed_jaxpr(split.staged, *given)

    def restage(function: Any, closed: ClosedJaxpr, avals: Sequence[Any]) -> ClosedJaxpr:
        return ClosedJaxpr(*staging.stage(function, avals, closed.jaxpr.debug_info))

    staged_avals = [
        aval.with_dim(0, 1) if lift else aval
        for aval, lift in zip(split.staged.in_avals, flags, strict=True)
    ]
    return _Passed(
        restage(known, split.known, split.known.in_avals),
        restage(staged, split.staged, staged_avals),
        specs,
    )


def _axes_of_residual(region: Region, aval: Any) -> tuple[Any, ...]:
    if not isinstance(aval, ShapedArray):
        return ()
    if not region.check_vma:
        return region.ordered(region.axes)
    if aval.manual_axis_type.unreduced & region.axes:
        raise NotImplementedError(
            message(
                "shard_map",
                "a value that is unreduced cannot be kept for the derivative.",
                got=str(aval),
                fix="lax.psum(x, axis) before it is used nonlinearly",
            )
        )
    return region.ordered(aval.vma & region.axes)


def _older_convention(
    region: Region, backward: ClosedJaxpr, ct_specs: Specs, result_specs: Specs
) -> ClosedJaxpr:
    """Cotangents where no types tell what is the same everywhere.

    A result that all devices along an axis have counts once, so each gets its share of the
    cotangent; an argument that all have gets the cotangents of all.
    """
    num_known = len(backward.in_avals) - len(ct_specs)

    def function(*args: Any) -> list[Any]:
        given = list(args[:num_known])
        for ct, spec in zip(args[num_known:], ct_specs, strict=True):
            copies = region.size(region.unmentioned(spec))
            given.append(ct if copies == 1 else ct / aval_of(ct).dtype.type(copies))
        outs = evaluation.eval_closed_jaxpr(backward, *given)
        return [
            psum_p.bind(ct, axes=names, axis_index_groups=None)
            if (names := region.unmentioned(spec))
            else ct
            for ct, spec in zip(outs, result_specs, strict=True)
        ]

    def make() -> ClosedJaxpr:
        return ClosedJaxpr(*staging.stage(function, backward.in_avals, backward.jaxpr.debug_info))

    key = ("older convention", region, ct_specs, result_specs)
    result: ClosedJaxpr = backward.remember(key, make)
    return result


def _check_free(names: Sequence[Any], specs: Specs) -> None:
    for spec in specs:
        used = [n for n in names if n in (*spec.names(), *spec.unreduced, *spec.reduced)]
        if used:
            raise ValueError(
                message(
                    "vmap",
                    "spmd_axis_name names an axis over which a shard_map inside splits values.",
                    got=f"{used} in {spec}",
                    fix="another mesh axis for the batch",
                )
            )


def match(x: Any, spec: PartitionSpec, region: Region) -> Any:
    """A result of the body, varying over the axes over which its spec splits it."""
    if not region.check_vma or not isinstance(aval_of(x), ShapedArray):
        return x
    return casts.varied(current.value, x, frozenset(spec.names()))
