"""Keeps XLA's partitioner from computing some products of split operands wrongly.

The partitioner gets three kinds of product wrong, usually without an error:

- A matrix product whose operands are both split over what is summed, and whose result is split over
  such an axis too.  The partitioner groups devices by that axis.  The order within a group comes
  from one operand, and the result is read in the order of the other, so its rows are those of other
  devices.  It takes three axes, as a group over one axis has one order: `x @ w` of
  `P(('z', 'x'), 'y')` and `P('y', 'x')` to the sharding of `x` is an example.
- A convolution whose kernel is split while a spatial dimension is split too.  Its sums are wrong
  over two axes, or over two parts of one, which reshapes make.
- A convolution whose batch is in groups, as in gradients of grouped kernels, and whose sum is
  split.  It adds the values of devices that hold the same.  If its own batch is split, the
  partitioner ends the process.

Input: a module for several devices.  Output: the module itself if it has no such product.
Otherwise the module with the shardings that Shardy has chosen, in which the result is made whole
over the axes of the sum before it is split, and operands are made whole beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

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


class _Repair(NamedTuple):
    """The mesh axes that the partitioner would get wrong, by the value that is split over them.

    Attributes:
        result: axes over which the result is split only after it was computed.
        lhs: axes over which the first operand is made whole beforehand.
        rhs: axes over which the second operand is made whole beforehand.
    """

    result: set[str]
    lhs: set[str]
    rhs: set[str]


def _mend(product: Any, sharding_of: Callable[[Any], Any], most_axes: int) -> bool:
    """Adds sharding constraints around a product.  Returns whether it needed any."""
    result = sharding_of(product.results[0])
    operands = [sharding_of(x) for x in product.operands]
    if product.name == "stablehlo.dot_general":
        repair = _repair_of_dot(product, *operands)
    else:
        repair = _repair_of_convolution(product, result, *operands, most_axes=most_axes)
    is_split_later = bool(repair.result & _axes_over(result))
    if is_split_later:
        whole = _constrained(product.results[0], _without(result, repair.result), product)
        whole.owner.operation.move_after(product)
        split = _constrained(whole, result, product)
        split.owner.operation.move_after(whole.owner.operation)
        product.results[0].replace_all_uses_except(split, whole.owner.operation)
    for position, axes in enumerate((repair.lhs, repair.rhs)):
        if axes:
            sharding = _without(operands[position], axes)
            product.operands[position] = _constrained(product.operands[position], sharding, product)
    return is_split_later or bool(repair.lhs or repair.rhs)


def _repair_of_dot(product: Any, x: Any, y: Any) -> _Repair:
    numbers = DotDimensionNumbers(product.attributes["dot_dimension_numbers"])
    summed = _summed_axes(
        _axes_over(x, numbers.lhs_contracting_dimensions),
        _axes_over(y, numbers.rhs_contracting_dimensions),
    )
    return _Repair(summed, set(), set())


def _repair_of_convolution(
    product: Any, result: Any, x: Any, kernel: Any, *, most_axes: int
) -> _Repair:
    """Returns what keeps each of the three faults of convolutions from happening.

    Args:
        product: the convolution.
        result: the sharding of its result.
        x: the sharding of its first operand.
        kernel: the sharding of its second operand.
        most_axes: the number of axes of the largest mesh.
    """
    numbers = ConvDimensionNumbers(product.attributes["dimension_numbers"])
    x_features = _axes_over(x, [numbers.input_feature_dimension])
    kernel_features = _axes_over(kernel, [numbers.kernel_input_feature_dimension])
    result_features = _axes_over(result, [numbers.output_feature_dimension])
    repair = _Repair(_summed_axes(x_features, kernel_features), set(), set())

    space = (
        _axes_over(x, numbers.input_spatial_dimensions)
        | _axes_over(kernel, numbers.kernel_spatial_dimensions)
        | _axes_over(result, numbers.output_spatial_dimensions)
    )
    if space:
        repair = repair._replace(result=repair.result | result_features, rhs=_axes_over(kernel))

    if ir.IntegerAttr(product.attributes["batch_group_count"]).value > 1:
        result_batch = _axes_over(result, [numbers.output_batch_dimension])
        repair = repair._replace(result=repair.result | result_batch)
        # An axis of which only a part is used is written `"x":(1)2`.
        uses_parts = ":(" in f"{x}{kernel}"
        # Where the sum uses all axes of the mesh, XLA adds rightly.
        if len(x_features | kernel_features) < most_axes or uses_parts:
            repair = repair._replace(lhs=x_features, rhs=repair.rhs | kernel_features)
        groups = _axes_over(x, [numbers.input_batch_dimension])
        channels = _axes_over(kernel, [numbers.kernel_output_feature_dimension])
        if not groups == channels == result_features:
            repair = _Repair(
                repair.result | result_features, repair.lhs | groups, repair.rhs | channels
            )
    return repair


def _summed_axes(left: set[str], right: set[str]) -> set[str]:
    """Returns the axes of a sum that both operands are split over, or all if none is shared."""
    return left & right or left | right if left and right else set()


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
