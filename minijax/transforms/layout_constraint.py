"""`with_layout_constraint`: in which order the elements of a value inside a program lie in memory.

Input: a value and a `Layout`.  Output: the same value, which XLA lays out so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minijax.core import tree
from minijax.core.aval import ShapedArray, aval_of
from minijax.core.errors import error
from minijax.core.operators import BatchDims, Value, Values
from minijax.core.primitive import Batched, Cotangents, Primitive
from minijax.interpreters.jvp import jvp_of_linear
from minijax.lowering import custom_calls
from minijax.sharding import rules
from minijax.sharding.base import Format, Layout
from minijax.transforms.device_put import device_put

if TYPE_CHECKING:
    from minijax.lowering.stablehlo import LoweringContext


class LayoutConstraint(Primitive):
    """Lays `x` out as `layout` says.

    Shapes: x: T[s] -> T[s].  Linear in x.
    """

    name = "layout_constraint"
    jvp = jvp_of_linear
    shard = rules.elementwise

    def abstract_eval(self, x: ShapedArray, *, layout: Layout) -> ShapedArray:
        return x

    def impl(self, x: Any, *, layout: Layout) -> Any:
        return device_put(x, Format(layout, x.sharding))

    def lower(self, ctx: LoweringContext, x: Any, *, layout: Layout) -> Any:
        order = layout.major_to_minor[::-1]
        return custom_calls.custom_call(
            ctx,
            "LayoutConstraint",
            [x],
            ctx.avals_in,
            ctx.avals_in,
            config="",
            operand_layouts=[order],
            result_layouts=[order],
            api_version=1,
        )[0]

    def transpose(self, ct: Value, x: Value, *, layout: Layout) -> Cotangents:
        return (self.bind(ct, layout=layout),)

    def batch(self, size: int, args: Values, dims: BatchDims, *, layout: Layout) -> Batched:
        at = dims[0]
        if at is None:
            return self.bind(args[0], layout=layout), None
        # The entries of the batch are the farthest apart, so that each lies as it did.
        order = (at, *(dim + (dim >= at) for dim in layout.major_to_minor))
        return self.bind(args[0], layout=layout.update(major_to_minor=order)), at


layout_constraint_p = LayoutConstraint()


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """The values of a tree, laid out in memory as layouts say.

    Args:
        x: a tree of arrays.
        layouts: a `Layout`, or a tree prefix of such.

    Raises:
        TypeError: a leaf of `layouts` is no layout.
        ValueError: a layout does not fit its value.

    Source:     mirrors jax.experimental.layout.with_layout_constraint (0.10).

    Example:
        >>> from minijax.experimental.layout import Layout, with_layout_constraint
        >>> f = jax.jit(lambda x: with_layout_constraint(2 * x, Layout((1, 0))))
        >>> f(jnp.ones((2, 3))).shape
        (2, 3)
    """
    name = "layout.with_layout_constraint"
    leaves, treedef = tree.flatten(x)
    given = tree.broadcast_prefix(layouts, x, is_leaf=tree.is_none, user=name, first="layouts")
    for leaf, layout in zip(leaves, given, strict=True):
        if not isinstance(layout, Layout):
            got = f"{layout!r} of type {type(layout).__name__}"
            fix = "device_put(x, Format(layout, sharding)) places arrays outside of programs, too"
            error(ValueError, name, "takes layouts.", got=got, expected="a Layout", fix=fix)
        layout.check_compatible_aval(aval_of(leaf).shape)
    pairs = zip(leaves, given, strict=True)
    outs = [layout_constraint_p.bind(leaf, layout=layout) for leaf, layout in pairs]
    return tree.unflatten(treedef, outs)
