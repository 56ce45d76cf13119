"""Products of which XLA's partitioner computes some wrongly, and what keeps it from that.

Where both operands of a matrix product are split over what is summed, and its result is split over
such an axis too, the partitioner groups devices by that axis.  The order within a group comes from
one operand, and the result is read in the order of the other: its rows are then those of other
devices, without any error.  `x @ w` of `P(('z', 'x'), 'y')` and `P('y', 'x')` to the placement of
`x` is an example.  It takes three axes, as a group over one axis has one order.  A convolution
whose kernel is split, while a spatial dimension is split too, has wrong sums over two axes, or over
two parts of one, which reshapes make.  One whose batch is in groups, as gradients of grouped
kernels are, and whose sum is split, adds what devices hold that hold the same; where its own batch
is split the partitioner ends the process.

Input: a module for several devices.  Output: itself, or the module as Shardy has placed its values,
where such a product is first made whole over the axes of its sum, and then cut; and where such a
kernel is whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _sdy
from jaxlib.mlir.dialects.stablehlo import ConvDimensionNumbers, DotDimensionNumbers

from minijax.lowering import planning, stablehlo

_FEWEST_AXES = {"stablehlo.dot_general": 3, "stablehlo.convolution": 1}
"""For each kind of product the number of mesh axes that the fault takes; one may have parts."""


def guarded(module: ir.Module) -> ir.Module:
    """A module that the partitioner computes rightly: itself, where it does already."""
    meshes = [
        planning.axis_sizes(x.attributes["mesh"]) for x in _find(module.operation, "sdy.mesh")
    ]
    axes = max((sum(size > 1 for size in sizes.values()) for sizes in meshes), default=0)
    if all(axes < _FEWEST_AXES[x.name] for x in _find(module.operation, *_FEWEST_AXES)):
        return module
    with stablehlo.context():
        placed = planning.after(planning.PROPAGATION, module)
        sharding_of = planning.Reader(placed, {}).sharding_of
        if not sum(_mend(product, sharding_of, axes) for product in _find(placed, *_FEWEST_AXES)):
            return module
        # XLA finds those of loops again, and counts their values otherwise than Shardy.
        for loop in _find(placed, "stablehlo.while", "stablehlo.case"):
            if "sdy.sharding" in loop.attributes:
                del loop.attributes["sdy.sharding"]
        # XLA knows constraints only.
        for moved in _find(placed, "sdy.reshard"):
            made = _constrained(moved.operands[0], moved.attributes["sharding"], moved)
            moved.results[0].replace_all_uses_with(made)
            moved.erase()
        return ir.Module.parse(placed.get_asm(enable_debug_info=True))


def _find(within: Any, *names: str) -> list[Any]:
    """The operations of some names, those in regions included."""
    found: list[Any] = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if operation.name in names:
            found.append(operation.operation)
        return ir.WalkResult.ADVANCE

    within.walk(visit)
    return found


def _mend(product: Any, sharding_of: Callable[[Any], Any], most: int) -> bool:
    """Has the result of a product cut only once it is whole over axes that XLA would mistake.

    These are the axes of its sum, where both operands are split over it; of a convolution that
    splits space also those of its channels, and then the kernel is made whole; and those of its
    batch where that is in groups, and then both operands are made whole over the axes of its sum,
    unless these are all that the mesh has, `most`.
    """
    own, *operands = map(sharding_of, (product.results[0], *product.operands))
    x, y = operands
    whole: list[set[str]] = [set(), set()]
    cut: set[str] = set()
    if product.name == "stablehlo.dot_general":
        dot = DotDimensionNumbers(product.attributes["dot_dimension_numbers"])
        left = _axes_over(x, dot.lhs_contracting_dimensions)
        right = _axes_over(y, dot.rhs_contracting_dimensions)
    else:
        conv = ConvDimensionNumbers(product.attributes["dimension_numbers"])
        left = _axes_over(x, [conv.input_feature_dimension])
        right = _axes_over(y, [conv.kernel_input_feature_dimension])
        space = _axes_over(x, conv.input_spatial_dimensions)
        space |= _axes_over(y, conv.kernel_spatial_dimensions)
        if space | _axes_over(own, conv.output_spatial_dimensions):
            cut = _axes_over(own, [conv.output_feature_dimension])
            whole[1] = _axes_over(y)
        if ir.IntegerAttr(product.attributes["batch_group_count"]).value > 1:
            cut = cut | _axes_over(own, [conv.output_batch_dimension])
            if len(left | right) < most or ":(" in f"{x}{y}":  # A part of an axis is `"x":(1)2`.
                whole = [left, whole[1] | right]
            groups = _axes_over(x, [conv.input_batch_dimension])
            channels = _axes_over(y, [conv.kernel_output_feature_dimension])
            if not groups == channels == _axes_over(own, [conv.output_feature_dimension]):
                whole = [whole[0] | groups, whole[1] | channels]
                cut = cut | _axes_over(own, [conv.output_feature_dimension])
    if left and right:
        cut = cut | (left & right or left | right)
    is_cut_later = bool(cut & _axes_over(own))
    if is_cut_later:
        made = _constrained(product.results[0], _without(own, cut), product)
        made.owner.operation.move_after(product)
        last = _constrained(made, own, product)
        last.owner.operation.move_after(made.owner.operation)
        product.results[0].replace_all_uses_except(last, made.owner.operation)
    for i, axes in enumerate(whole):
        if axes:
            sharding = _without(operands[i], axes)
            product.operands[i] = _constrained(product.operands[i], sharding, product)
    return is_cut_later or any(whole)


def _axes_over(sharding: Any, dims: Iterable[int] | None = None) -> set[str]:
    """The mesh axes that some dimensions of a value, or all, are split over."""
    if sharding is None:
        return set()
    of_each = _sdy.TensorShardingAttr(sharding).dimension_shardings
    chosen = of_each if dims is None else [of_each[d] for d in dims]
    axes = (axis for dim in chosen for axis in _sdy.DimensionShardingAttr(dim).axes)
    return {_sdy.AxisRefAttr(axis).name for axis in axes}


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


def _constrained(value: Any, sharding: Any, user: Any) -> Any:
    """A value that is placed in a way, said before an operation, and at its line."""
    with ir.InsertionPoint(user), user.location:
        return ir.Operation.create(
            "sdy.sharding_constraint", [value.type], [value], {"sharding": sharding}
        ).results[0]
