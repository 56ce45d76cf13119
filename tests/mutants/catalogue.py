"""The planted faults: changes of the rules of collectives, one place each."""

from __future__ import annotations

from collections.abc import Iterator

from tests.mutants.mutation import Mutation

Changes = tuple[tuple[str, str], ...]

_GATHERS = "lax.collectives.gathers"
_REDUCTIONS = "lax.collectives.reductions"
_PERMUTATIONS = "lax.collectives.permutations"
_EXCHANGES = "lax.collectives.exchanges"
_INDICES = "lax.collectives.arguments"
_ARGUMENTS = "lax.collectives.arguments"
_FAMILIES = "lax.families"
_RAGGED = "lax.collectives.exchanges"
_CASTS = "interpreters.casts"
_DEVICES = "lowering.device_axes"
_SHARD_MAP = "transforms.per_device.primitive"
_REGION = "transforms.per_device.region"

_GROUPS = ("axis_index_groups=axis_index_groups", "axis_index_groups=None")
_REST = ", **params)"
_OF_OTHER_GROUPS = (_REST, ', **params | {"axis_index_groups": None})')
_OF_OTHER_NAMES = (_REST, ', **params | {"axis_name": params["axis_name"][::-1]})')
_OTHERWISE_TILED = (_REST, ', **params | {"tiled": not params["tiled"]})')

GATHERS: dict[str, Changes] = {
    f"{_DEVICES}:axis_groups": (
        ("rest + positions", "positions + rest"),
        ("for name in wanted]", "for name in sorted(wanted)]"),
        ("for name in wanted]", "for name in reversed(wanted)]"),
    ),
    f"{_DEVICES}:within": (
        ("for i in positions)", "for i in sorted(positions))"),
        (
            "for group in groups for positions in axis_index_groups",
            "for group in groups[:1] for positions in axis_index_groups",
        ),
    ),
    f"{_GATHERS}:Gather.abstract_eval": (
        ("axis_size, *x.shape[dim:]", "*x.shape[dim:], axis_size"),
        ("x.shape[dim] * axis_size", "x.shape[dim] + axis_size"),
    ),
    f"{_GATHERS}:Gather.exchange": (
        ("ctx.integer(all_gather_dimension)", "ctx.integer(0)"),
        ("replica_groups(axis_name, axis_index_groups)", "replica_groups(axis_name)"),
        ("replica_groups(axis_name,", "replica_groups(axis_name[::-1],"),
    ),
    f"{_GATHERS}:Gather.batch": (
        ("dim + (dim >= b), b", "dim + (dim > b), b"),
        ("dim + (dim >= b), b", "dim + (dim >= b), 0"),
        ("dim + (dim >= b), b", "dim, b"),
        ("dim + (dim > b)", "dim + (dim >= b)"),
        ("dim + (dim > b)", "dim"),
        ("b + (dim <= b)", "b + (dim < b)"),
        ("b + (dim <= b)", "b"),
    ),
    f"{_GATHERS}:_batch_axis_of_gather": (
        ("args[0], dims[0], dim, size", "args[0], dims[0], 0, size"),
        ("moveaxis(x, dim + 2, dim + 1)", "x"),
        ("around.outer, around.inner", "around.inner, around.outer"),
        ("if tiled:", "if not tiled:"),
        ("return x, None", "return x, 0"),
    ),
    f"{_GATHERS}:AllGather.transpose": (
        ("scatter_dimension=all_gather_dimension", "scatter_dimension=0"),
        _OF_OTHER_GROUPS,
        _OF_OTHER_NAMES,
        _OTHERWISE_TILED,
        ("bind(ct,", "bind(ct * 2,"),
    ),
    f"{_GATHERS}:_vary_of_all_gather_invariant": (
        ("given.varying - frozenset(axis_name)", "given.varying"),
    ),
    f"{_GATHERS}:AllGatherInvariant.transpose": (
        ("axis_index(axis_name) * block", "axis_index(axis_name)"),
        ("axis_index(axis_name) * block", "axis_index(axis_name[::-1]) * block"),
        ("axis_index(axis_name) * block", "axis_index(axis_name) * 0"),
        ("start, block, dim)", "start, block, 0)"),
    ),
    f"{_GATHERS}:_vary_of_all_gather_reduced": (
        ("given.varying - named", "given.varying"),
        ("given.reduced | named", "given.reduced"),
    ),
    f"{_GATHERS}:AllGatherReduced.transpose": (
        ("scatter_dimension=all_gather_dimension", "scatter_dimension=0"),
        _OTHERWISE_TILED,
    ),
    f"{_GATHERS}:all_gather": (
        ("ndim + (not tiled)", "ndim"),
        ("leaf = arguments.with_pvary(leaf, axes)", "leaf = leaf"),
        ('"invarying" and core_axes.typed_among(axes)', '"invarying"'),
        (
            "size = arguments.group_size(name, axes, groups)",
            "size = arguments.axes_size(name, axes)",
        ),
    ),
    f"{_GATHERS}:Scatter.lower": (
        ("ctx.integer(dim)", "ctx.integer(0)"),
        ("replica_groups(axis_name, axis_index_groups)", "replica_groups(axis_name)"),
        ("replica_groups(axis_name,", "replica_groups(axis_name[::-1],"),
        ("stablehlo.add", "stablehlo.maximum"),
    ),
    f"{_GATHERS}:Scatter.batch": (
        ("(scatter_dimension >= b)", "(scatter_dimension > b)"),
        ('b - (not params["tiled"] and dim < b)', "b"),
        ('b - (not params["tiled"] and dim < b)', "b - (dim < b)"),
        ("b - (not", "b + (not"),
    ),
    f"{_GATHERS}:_batch_axis_of_scatter": (
        ("if b is None else reduce_sum", "if b is not None and b is None else reduce_sum"),
        ("mul(x, copies)", "x"),
        ("reduce_sum(x, (b,))", "reduce_sum(x, (0,))"),
        ('"scatter_dimension": dim + 1', '"scatter_dimension": dim'),
        (
            "(around.outer, size, around.inner * block)",
            "(around.inner, size, around.outer * block)",
        ),
    ),
    f"{_GATHERS}:ReduceScatter.transpose": (
        ("all_gather_dimension=scatter_dimension", "all_gather_dimension=0"),
        _OF_OTHER_GROUPS,
        _OF_OTHER_NAMES,
        _OTHERWISE_TILED,
    ),
    f"{_GATHERS}:_vary_of_unreduced_reduce_scatter": (
        ("given.varying | named", "given.varying"),
        ("given.unreduced - named", "given.unreduced"),
    ),
    f"{_GATHERS}:UnreducedReduceScatter.transpose": (
        ("all_gather_dimension=scatter_dimension", "all_gather_dimension=0"),
    ),
    f"{_GATHERS}:psum_scatter": (
        ('== "U"', '== "R"'),
        ("leaf = arguments.with_pvary(leaf, axes)", "leaf = leaf"),
    ),
}

REDUCTIONS: dict[str, Changes] = {
    f"{_REDUCTIONS}:_vary_of_all_reduce": (
        ("else given.varying - frozenset(axes)", "else given.varying"),
        ("else given.varying - frozenset(axes)", "else given.varying - frozenset(axes[:1])"),
    ),
    f"{_REDUCTIONS}:AllReduce.exchange": (
        ("names, axis_index_groups, ctx", "names, None, ctx"),
        ("names, axis_index_groups, ctx", "names[:1], axis_index_groups, ctx"),
        ("self.combiner, names", '"stablehlo.add", names'),
    ),
    f"{_REDUCTIONS}:AllReduce.batch": (
        ("a + 1 if isinstance(a, int)", "a if isinstance(a, int)"),
        ("axis_index_groups=axis_index_groups), dim", "axis_index_groups=axis_index_groups), 0"),
        ("axis_index_groups=axis_index_groups), dim", "axis_index_groups=None), dim"),
    ),
    f"{_REDUCTIONS}:_batch_axis_of_all_reduce": (
        ("primitive.repeated(primitive.over(x, rest), size)", "primitive.over(x, rest)"),
        ("primitive.repeated(primitive.over(x, rest), size)", "primitive.repeated(x, size)"),
        ("dim if a == name", "0 if a == name"),
        ("a + (a >= dim)", "a"),
        ("a + (a >= dim)", "a + (a > dim)"),
    ),
    f"{_REDUCTIONS}:AllReduce.over": (("if axes else x", "if not axes else x"),),
    f"{_REDUCTIONS}:PSum.repeated": (("np.asarray(size)", "np.asarray(size - 1)"),),
    f"{_REDUCTIONS}:PSum.transpose": (
        ("self.bind(ct, axes=names, axis_index_groups=axis_index_groups)", "ct"),
        _GROUPS,
        ("axes=names", "axes=names[:1]"),
        (
            "broadcast_in_dim(ct, x.aval.shape, kept)",
            "broadcast_in_dim(ct, x.aval.shape, kept) * 2",
        ),
    ),
    f"{_REDUCTIONS}:PMax.reduce": (("reduce_max", "reduce_min"),),
    f"{_REDUCTIONS}:PMin.reduce": (("reduce_min", "reduce_max"),),
    f"{_REDUCTIONS}:PMax.identity": (("lowest(dtype)", "highest(dtype)"),),
    f"{_REDUCTIONS}:_times": (("return x * np.asarray(size)", "return x * np.asarray(1)"),),
    f"{_REDUCTIONS}:_sum": (
        ('kind == "U"', 'kind == "R"'),
        ("x = convert_element_type(x, np.int32)", "pass"),
        ("x = psum_p.bind(x, axes=rest, axis_index_groups=None)", "pass"),
    ),
    f"{_REDUCTIONS}:pmean": (
        ("s / n", "s / (n + 1)"),
        (
            'group_size("lax.pmean", arguments.named(axes), groups)',
            'axes_size("lax.pmean", arguments.named(axes))',
        ),
    ),
    f"{_REDUCTIONS}:combined": (("axis_index_groups=groups", "axis_index_groups=None"),),
    f"{_REDUCTIONS}:_position": (
        ("return pmin(found", "return pmax(found"),
        ("np.iinfo(np.int32).max", "0"),
    ),
}

CASTS: dict[str, Changes] = {
    f"{_CASTS}:all_reduce": (
        ("replica_groups(axes, axis_index_groups)", "replica_groups(axes[:1])"),
        ("inner.op(combiner", 'inner.op("stablehlo.maximum"'),
        ("if all(", "if any("),
    ),
    f"{_CASTS}:PVary.kind": (("given.varying | axes", "given.varying"),),
    f"{_CASTS}:PReduced.kind": (("given.reduced | axes", "given.reduced"),),
    f"{_CASTS}:ReducedVaryCast.kind": (
        ("given.varying | axes", "given.varying"),
        ("given.reduced - axes", "given.reduced"),
    ),
    f"{_CASTS}:VaryUnreducedCast.kind": (("given.unreduced | axes", "given.unreduced"),),
    f"{_CASTS}:Cast.transpose": (
        ("self.dual.bind(ct, axes=axes)", "ct"),
        ("self.dual.bind(ct, axes=axes)", "self.bind(ct, axes=axes)"),
        ("self.dual", "(vary_unreduced_cast_p if self is pvary_p else self.dual)"),
        ("self.dual", "(reduced_vary_cast_p if self is preduced_p else self.dual)"),
        ("self.dual", "(pvary_p if self is vary_unreduced_cast_p else self.dual)"),
    ),
    f"{_CASTS}:Cast.batch": (("axes=axes), dims[0]", "axes=axes), 0"),),
    f"{_CASTS}:TypedSum.lower": (
        ('"stablehlo.add", axes', '"stablehlo.add", axes[:1]'),
        ('"stablehlo.add", axes', '"stablehlo.multiply", axes'),
    ),
    f"{_CASTS}:TypedSum.batch": (("axes=axes), dims[0]", "axes=axes), 0"),),
    f"{_CASTS}:_vary_of_psum_invariant": (("given.varying - named", "given.varying"),),
    f"{_CASTS}:PSumInvariant.transpose": (("pvary_p.bind(ct,", "pvary_p.bind(ct * 2,"),),
    f"{_CASTS}:_vary_of_unreduced_psum": (("given.unreduced - named", "given.unreduced"),),
    f"{_CASTS}:UnreducedPSum.transpose": (("preduced_p", "pvary_p"),),
    f"{_CASTS}:varied": (("missing = axes - own.varying", "missing = axes & own.reduced"),),
}

PERMUTATIONS: dict[str, Changes] = {
    f"{_ARGUMENTS}:_vary_of_collective": (("return vma.of(avals[0])", "return vma.NOT_MANUAL"),),
    f"{_ARGUMENTS}:pairs_of_devices": (
        ("(group[s], group[d])", "(group[d], group[s])"),
        ("(group[s], group[d])", "(s, d)"),
        ("devices.groups(axes)", "devices.groups(axes[::-1])"),
    ),
    f"{_PERMUTATIONS}:PPermute.transpose": (
        ("(d, s) for", "(s, d) for"),
        ("self.bind(ct", "self.bind(ct * 2"),
    ),
    f"{_PERMUTATIONS}:_batch_axis_of_ppermute": (
        ("{d: s for", "{s: d for"),
        ("b is None and len(perm) == size", "b is None"),
    ),
    f"{_PERMUTATIONS}:PPermute._among_all": (
        ("sources[d] = s", "sources[s] = d"),
        ("np.moveaxis(sources.reshape(around.outer, size, around.inner), 1, 2)", "sources"),
        ("select(mask, picked, full_like(picked, 0))", "picked"),
    ),
    f"{_PERMUTATIONS}:ppermute": (
        (
            "arguments.in_mesh_order(arguments.canonical_axes(name, axis_name))",
            "arguments.canonical_axes(name, axis_name)",
        ),
        ("leaf = arguments.with_pvary(leaf, axes)", "leaf = leaf"),
    ),
    f"{_PERMUTATIONS}:pshuffle": (("[(source, i)", "[(i, source)"),),
    f"{_PERMUTATIONS}:PBroadcast.transpose": (
        ("_psum_varying(ct, axes), axes, source", "ct, axes, source"),
        ("_only_at(_psum_varying(ct, axes), axes, source)", "_psum_varying(ct, axes)"),
    ),
    f"{_FAMILIES}:batch_unary": (("**params), dims[0]", "**params), 0"),),
    f"{_PERMUTATIONS}:_batch_axis_of_pbroadcast": (
        ("int(example)", "0"),
        ("int(outer) * around.inner + int(inner)", "int(inner) * around.outer + int(outer)"),
        ("axis_name=around.others", "axis_name=around.others[::-1]"),
    ),
    f"{_PERMUTATIONS}:_only_at": (
        ("np.int32(source)", "np.int32(0)"),
        ("axis_index(axes)", "axis_index(axes[::-1])"),
    ),
}

EXCHANGES: dict[str, Changes] = {
    f"{_EXCHANGES}:AllToAll.lower": (
        (
            '"split_dimension": ctx.integer(split_axis)',
            '"split_dimension": ctx.integer(concat_axis)',
        ),
        (
            '"concat_dimension": ctx.integer(concat_axis)',
            '"concat_dimension": ctx.integer(split_axis)',
        ),
        (
            "arguments.canonical_axes(self.name, axis_name), axis_index_groups",
            "arguments.canonical_axes(self.name, axis_name)[::-1], axis_index_groups",
        ),
        ("axis_name), axis_index_groups", "axis_name), None"),
    ),
    f"{_EXCHANGES}:AllToAll.transpose": (
        (
            "split_axis=concat_axis, concat_axis=split_axis",
            "split_axis=split_axis, concat_axis=concat_axis",
        ),
        ("self.bind(ct", "self.bind(ct * 2"),
    ),
    f"{_EXCHANGES}:AllToAll.batch": (
        ("(split_axis >= b)", "(split_axis > b)"),
        ("(concat_axis >= b)", "(concat_axis > b)"),
        ("**params), b", "**params), 0"),
    ),
    f"{_EXCHANGES}:_batch_axis_of_all_to_all": (
        ("(around.outer, size, around.inner *", "(around.inner, size, around.outer *"),
        ('"split_axis": at', '"split_axis": at - 1'),
        ("at = concat_axis", 'at = params["split_axis"] + 2'),
        ("around.outer, shape[at] // around.outer", "shape[at] // around.outer, around.outer"),
    ),
    f"{_EXCHANGES}:all_to_all": (
        ("concat + (split < concat)", "concat"),
        ("leaf = arguments.with_pvary(leaf, axes)", "leaf = leaf"),
        ("arguments.group_size(name, axes, groups)", "arguments.axes_size(name, axes)"),
    ),
}

INDICES: dict[str, Changes] = {
    f"{_INDICES}:axis_index": (
        ("reversed(axes)", "axes"),
        ("stride *= core_axes.size(axis)", "stride += core_axes.size(axis)"),
        ("own * np.int32(stride)", "own"),
    ),
    f"{_INDICES}:_vary_of_axis_index": (
        ("manual_type(typed) if typed else NOT_MANUAL", "NOT_MANUAL"),
    ),
    f"{_INDICES}:_batch_axis_of_axis_index": (
        ("return iota(np.int32, size), 0", "return iota(np.int32, size) + 1, 0"),
    ),
    f"{_DEVICES}:DeviceAxes._coordinate": (
        ("self.sizes[position + 1 :]", "self.sizes[position:]"),
        ("self.sizes[position + 1 :]", "self.sizes[:position]"),
        ("np.uint32(size)", "np.uint32(size + 1)"),
    ),
    f"{_ARGUMENTS}:group_size": (("else len(groups[0])", "else axes_size(name, axes)"),),
    f"{_ARGUMENTS}:in_mesh_order": (
        ("key=lambda axis: last.get(axis, -1)", "key=lambda axis: -last.get(axis, -1)"),
    ),
    f"{_ARGUMENTS}:around_batch": (
        ("before, after = axes[:at], axes[at + 1 :]", "after, before = axes[:at], axes[at + 1 :]"),
    ),
    f"{_ARGUMENTS}:AroundBatch.params": (
        ('"axis_name": self.others', '"axis_name": self.others[::-1]'),
    ),
}

RAGGED: dict[str, Changes] = {
    f"{_RAGGED}:RaggedAllToAll.transpose": (
        ("written, received, origins, sizes", "written, sizes, origins, received"),
        ("written, received, origins, sizes", "origins, received, written, sizes"),
        ("select(mask, ct, full_like(ct, 0))", "ct"),
    ),
    f"{_RAGGED}:_composed": (
        ("sub(add(starts, first_rows), targets)", "sub(starts, targets)"),
        ("lt(row, end)", "ge(end, row)"),
        ("picked, output)", "picked, full_like(output, 0))"),
    ),
    f"{_RAGGED}:RaggedAllToAll.jvp": (
        ("*dots, *primals[2:]", "primals[0], next(dots), *primals[2:]"),
    ),
}

REGIONS: dict[str, Changes] = {
    f"{_SHARD_MAP}:_older_convention": (
        ("ct if copies == 1 else ct / aval_of(ct).dtype.type(copies)", "ct"),
        ("if (names := region.unmentioned(spec))", "if not (names := region.unmentioned(spec))"),
        ("psum_p.bind(ct, axes=names, axis_index_groups=None)", "ct"),
    ),
    f"{_REGION}:Region.unmentioned": (("if n not in mentioned", "if n in mentioned"),),
    f"{_REGION}:Region._kind_inside": (
        ("varying | frozenset(spec.names())", "varying | frozenset(self.axes)"),
    ),
    f"{_REGION}:match": (("casts.varied(trace, x, frozenset(spec.names()))", "x"),),
}

# The faults, and the steps of programs that use the rules in question; none for all of them.
TABLES: tuple[tuple[dict[str, Changes], tuple[str, ...]], ...] = (
    (GATHERS, ("all_gather", "psum_scatter", "sum_of_summands", "reduced")),
    (REDUCTIONS, ("all_reduce", "mean", "where_extreme", "sum_of_summands")),
    (CASTS, ("all_reduce", "all_gather", "psum_scatter", "sum_of_summands", "reduced")),
    (PERMUTATIONS, ("permute", "broadcast")),
    (EXCHANGES, ("all_to_all",)),
    (INDICES, ()),
    (RAGGED, ("ragged",)),
    (REGIONS, ()),
)


def mutations() -> Iterator[Mutation]:
    """All planted faults."""
    for table, steps in TABLES:
        for target, changes in table.items():
            for old, new in changes:
                yield Mutation(target, old, new, steps)
