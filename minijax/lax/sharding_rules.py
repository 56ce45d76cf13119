"""How shardings in types pass through operations whose dimensions are matched by number.

Input: types of operands, and dimension numbers.  Output: the specs of the results of products,
gathers and scatters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from minijax.core.aval import Shape
from minijax.core.specs import PartitionSpec, names_of
from minijax.lax.gather_numbers import GatherDimensionNumbers, ScatterDimensionNumbers
from minijax.sharding import rules

Dims = tuple[int, ...]
ProductNumbers = tuple[tuple[Dims, Dims], tuple[Dims, Dims]]


def product_spec(primitive: Any, avals: Sequence[Any], numbers: ProductNumbers) -> PartitionSpec:
    """The spec of a product: free dimensions keep their axes, summed ones need to be clear.

    Raises:
        ShardingTypeError: both sides of a sum are split, so that the result could be added up or
            not; or in different ways.
    """
    (left_sum, right_sum), (left_batch, right_batch) = numbers
    left, right = map(rules.spec_of, avals)
    for i, j in zip(left_sum, right_sum, strict=True):
        if left[i] is not None and right[j] is not None:
            _refuse_sum(primitive, avals, left[i], right[j])
    batch = [
        rules.join_entries(primitive, avals, dim, (left[i], right[j]))
        for dim, (i, j) in enumerate(zip(left_batch, right_batch, strict=True))
    ]
    free = [e for d, e in enumerate(left) if d not in left_sum and d not in left_batch]
    free += [e for d, e in enumerate(right) if d not in right_sum and d not in right_batch]
    _check_operands(primitive, avals)
    return PartitionSpec(*batch, *free)


def _refuse_sum(primitive: Any, avals: Sequence[Any], left: Any, right: Any) -> None:
    if left != right:
        raise rules.refusal(
            primitive.name,
            f"a summed dimension is split over {left!r} on the left and {right!r} on the right.",
            avals,
            fix=rules.RESHARD,
        )
    raise rules.refusal(
        primitive.name,
        f"both sides of a sum are split over {left!r}: it is ambiguous how the result shall be "
        "split, and whether its summands shall be added up.",
        avals,
        fix=f"{rules.OUT_SHARDING}, which may be unreduced over {left!r}",
    )


def _check_operands(primitive: Any, avals: Sequence[Any]) -> None:
    for aval, other in (avals, reversed(avals)):
        spec = rules.spec_of(aval)
        if spec.unreduced:
            raise rules.refusal(
                primitive.name,
                "an operand is unreduced: devices hold summands of it.",
                avals,
                fix="add them up: reshard(x, spec) with a spec without unreduced",
            )
        if not spec.reduced <= set(rules.spec_of(other).names()):
            raise rules.refusal(
                primitive.name,
                "an operand is reduced over axes that do not split the other operand.",
                avals,
                fix=rules.RESHARD,
            )


def check_summands(
    primitive: Any, avals: Sequence[Any], numbers: ProductNumbers, wanted: PartitionSpec
) -> None:
    """Refuses a product that shall be unreduced over axes which do not split its sums.

    Raises:
        ShardingTypeError: an axis does not split both sides of a summed dimension.
    """
    _check_operands(primitive, avals)
    (left_sum, right_sum), _ = numbers
    left, right = map(rules.spec_of, avals)
    summed = {
        name
        for i, j in zip(left_sum, right_sum, strict=True)
        if left[i] == right[j]
        for name in names_of(left[i])
    }
    if not wanted.unreduced <= summed:
        raise rules.refusal(
            primitive.name,
            "the result can be unreduced only over axes that split both sides of a sum.",
            avals,
            got=f"out_sharding {wanted}",
            fix="leave other axes out of unreduced",
        )


def gathered_spec(
    primitive: Any, avals: Sequence[Any], numbers: GatherDimensionNumbers, slice_sizes: Shape
) -> PartitionSpec:
    """The spec of a gather: dimensions of the indices, and those of the operand taken whole.

    Raises:
        ShardingTypeError: the operand is split in a dimension of which parts are taken.
    """
    x, indices = avals
    source, places = map(rules.spec_of, avals)
    batching = dict(
        zip(numbers.start_indices_batching_dims, numbers.operand_batching_dims, strict=True)
    )
    instead = ", or x.at[index].get(out_sharding=spec)"
    _check_whole(primitive, avals, slice_sizes, numbers.operand_batching_dims, instead)
    gone = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    kept = iter([e for d, e in enumerate(source) if d not in gone])
    outer = iter(
        [
            rules.join_entries(
                primitive, avals, d, [places[d], source[batching[d]] if d in batching else None]
            )
            for d in range(indices.ndim - 1)
        ]
    )
    rank = x.ndim - len(gone) + indices.ndim - 1
    return PartitionSpec(*[next(kept if d in numbers.offset_dims else outer) for d in range(rank)])


def scattered_spec(
    primitive: Any,
    avals: Sequence[Any],
    numbers: ScatterDimensionNumbers,
    windows: Shape,
) -> PartitionSpec:
    """The spec of a scatter: that of the operand, joined with whole windows of the updates.

    Raises:
        ShardingTypeError: the operand is split in a dimension of which parts are written.
    """
    x, _, updates = avals
    target, places, written = map(rules.spec_of, avals)
    instead = ", or x.at[index].set(y, out_sharding=spec) and the like"
    _check_whole(primitive, avals, windows, numbers.operand_batching_dims, instead)
    gone = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    outer = [d for d in range(updates.ndim) if d not in numbers.update_window_dims]
    sources: dict[int, list[Any]] = {d: [target[d]] for d in range(x.ndim)}
    kept = [d for d in range(x.ndim) if d not in gone]
    for d, u in zip(kept, numbers.update_window_dims, strict=True):
        if windows[d] == x.shape[d]:
            sources[d].append(written[u])
    for d, i in zip(
        numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True
    ):
        sources[d] += [places[i], written[outer[i]]]
    entries = [rules.join_entries(primitive, avals, d, found) for d, found in sources.items()]
    return PartitionSpec(*entries)


def _check_whole(
    primitive: Any, avals: Sequence[Any], sizes: Shape, along: Iterable[int], instead: str
) -> None:
    parts = [d for d, (n, size) in enumerate(zip(avals[0].shape, sizes, strict=True)) if n != size]
    dims = [d for d in parts if d not in along]
    rules.check_unsharded(primitive, avals[:1], dims, instead)
