"""Products of which XLA's partitioner computes some wrongly, and what keeps it from that.

Where both operands of a matrix product are split over what is summed, and its result is split over
such an axis too, the partitioner groups devices by that axis.  The order within a group comes from
one operand, and the result is read in the order of the other: its rows are then those of other
devices, without any error.  `x @ w` of `P(('z', 'x'), 'y')` and `P('y', 'x')` to the placement of
`x` is an example.  It takes three axes, as a group over one axis has one order.  A convolution
whose kernel is split, while a spatial dimension is split too, has wrong sums over two axes.

Input: a module for several devices.  Output: itself, or the module as Shardy has placed its values,
where such a product is first made whole over the axes of its sum, and then cut; and where such a
kernel is whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _sdy
from jaxlib.mlir.dialects.stablehlo import ConvDimensionNumbers, DotDimensionNumbers

from minijax.lowering import planning, stablehlo


def guarded(module: ir.Module) -> ir.Module:
    """A module that the partitioner computes rightly: itself, where it does already."""
    axes = max(map(_count_axes, module.body.operations), default=0)
    if all(axes < _MENDS[product.name][0] for product in _find(module.operation, _MENDS)):
        return module
    with stablehlo.context():
        placed = planning.after(planning.PROPAGATION, module)
        reader = planning.Reader(placed, {})
        products = list(_find(placed, _MENDS))
        mended = [_MENDS[x.name][1](x, reader.sharding_of) for x in products]
        for loop in _find(placed, ["stablehlo.while", "stablehlo.case"]):
            # XLA finds them again, and counts values otherwise than Shardy.
            if "sdy.sharding" in loop.attributes:
                del loop.attributes["sdy.sharding"]
        # XLA knows constraints only.
        for moved in list(_find(placed, ["sdy.reshard"])):
            made = _constrained(moved.operands[0], moved.attributes["sharding"], moved)
            moved.results[0].replace_all_uses_with(made)
            moved.erase()
        text = placed.get_asm(enable_debug_info=True)
        return ir.Module.parse(text) if any(mended) else module


def _count_axes(operation: Any) -> int:
    if operation.operation.name != "sdy.mesh":
        return 0
    axes = map(_sdy.MeshAxisAttr, _sdy.MeshAttr(operation.attributes["mesh"]).axes)
    return sum(axis.size > 1 for axis in axes)


def _find(within: Any, names: Collection[str]) -> Iterator[Any]:
    """The operations of some names, those in regions included."""
    for region in within.regions:
        for block in region.blocks:
            for operation in block.operations:
                if operation.operation.name in names:
                    yield operation.operation
                yield from _find(operation, names)


def _mend_matrix_product(product: Any, sharding_of: Callable[[Any], Any]) -> bool:
    """Makes a result whole over the axes of its sum, before it is cut over them."""
    numbers = DotDimensionNumbers(product.attributes["dot_dimension_numbers"])
    own, x, y = map(sharding_of, (product.results[0], *product.operands))
    left = _axes_over(x, numbers.lhs_contracting_dimensions)
    right = _axes_over(y, numbers.rhs_contracting_dimensions)
    return _cut_later(product, own, _axes_of_sum(left, right))


def _mend_convolution(product: Any, sharding_of: Callable[[Any], Any]) -> bool:
    """The same; makes kernel and channels whole, where a spatial dimension of anything is split."""
    numbers = ConvDimensionNumbers(product.attributes["dimension_numbers"])
    own, x, kernel = map(sharding_of, (product.results[0], *product.operands))
    left = _axes_over(x, [numbers.input_feature_dimension])
    right = _axes_over(kernel, [numbers.kernel_input_feature_dimension])
    axes = _axes_of_sum(left, right)
    is_spatial = (
        _axes_over(x, numbers.input_spatial_dimensions)
        or _axes_over(kernel, numbers.kernel_spatial_dimensions)
        or _axes_over(own, numbers.output_spatial_dimensions)
    )
    if is_spatial:
        axes |= _axes_over(own, [numbers.output_feature_dimension])
    is_cut = _cut_later(product, own, axes)
    if not (is_spatial and _axes_over(kernel)):
        return is_cut
    whole = _without(kernel, _axes_over(kernel))
    product.operands[1] = _constrained(product.operands[1], whole, product)
    return True


def _axes_of_sum(left: set[str], right: set[str]) -> set[str]:
    """The axes that what is summed is split over, if it is in both operands."""
    return (left & right or left | right) if left and right else set()


def _cut_later(product: Any, own: Any, axes: set[str]) -> bool:
    """Has a result cut over some axes after it is whole over them, where it is cut so at all."""
    if not axes & _axes_over(own):
        return False
    made = _constrained(product.results[0], _without(own, axes), product)
    made.owner.operation.move_after(product)
    last = _constrained(made, own, product)
    last.owner.operation.move_after(made.owner.operation)
    product.results[0].replace_all_uses_except(last, made.owner.operation)
    return True


def _without(sharding: Any, axes: set[str]) -> Any:
    """A sharding that leaves a value whole over some axes."""
    cut = _sdy.TensorShardingAttr(sharding)
    whole = [
        _sdy.DimensionShardingAttr.get(
            [axis for axis in dim.axes if _sdy.AxisRefAttr(axis).name not in axes], is_closed=True
        )
        for dim in map(_sdy.DimensionShardingAttr, cut.dimension_shardings)
    ]
    return _sdy.TensorShardingAttr.get(cut.mesh_or_ref, whole, unreduced_axes=cut.unreduced_axes)


_MENDS: dict[str, tuple[int, Callable[[Any, Callable[[Any], Any]], bool]]] = {
    "stablehlo.dot_general": (3, _mend_matrix_product),
    "stablehlo.convolution": (2, _mend_convolution),
}
"""For each operation the number of mesh axes that a fault takes, and what prevents it."""


def _axes_over(sharding: Any, dims: Iterable[int] | None = None) -> set[str]:
    """The mesh axes that some dimensions of a value, or all, are split over."""
    if sharding is None:
        return set()
    of_each = list(
        map(_sdy.DimensionShardingAttr, _sdy.TensorShardingAttr(sharding).dimension_shardings)
    )
    chosen = of_each if dims is None else [of_each[d] for d in dims]
    return {_sdy.AxisRefAttr(axis).name for dim in chosen for axis in dim.axes}


def _constrained(value: Any, sharding: Any, user: Any) -> Any:
    """A value that is placed in a way, said before an operation, and at its line."""
    with ir.InsertionPoint(user), user.location:
        return ir.Operation.create(
            "sdy.sharding_constraint", [value.type], [value], {"sharding": sharding}
        ).results[0]
