"""Casts between varying, invarying, unreduced and reduced values, and of operands of jaxprs.

A value inside `shard_map` stands to each manual mesh axis in one of four ways.  It varies over the
axis (V); it is invarying, the same on all devices (I); it is unreduced, so that each device holds a
summand (U); or it is reduced, the same on all devices with unreduced cotangents (R).  Casts change
the kind and nothing else; the transpose of each is a sum, or another cast, so that derivatives
communicate where types ask for it:

    pvary               I -> V    psum_invariant        V -> I
    preduced            I -> R    unreduced_psum        U -> I
    reduced_vary_cast   R -> V    vary_unreduced_cast   V -> U

Operations that hold jaxprs may be given operands that vary over more axes than the jaxpr's
parameters do.  Input: such an operation and its operands.  Output: operands and jaxprs that fit
together: an operand that varies less is cast to the parameter's type, and where one varies more,
the jaxpr is staged again for that (`retyped`).  The rules `agree` of primitives are made of this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from minijax.core import axes as core_axes
from minijax.core import config, dtypes, meshes, refs, vma
from minijax.core import effects as core_effects
from minijax.core.aval import AbstractValue, ShapedArray, aval_of
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr, Effects
from minijax.core.operators import Avals, AxisName, BatchDims, Value, Values
from minijax.core.primitive import Batched, Cotangents, LoweringContext, Primitive
from minijax.core.trace import NestedTrace, Params, Trace, current
from minijax.core.value_placement import NO_AXES, NOT_MANUAL, ManualAxisType, manual_type
from minijax.interpreters import staging
from minijax.interpreters.jvp import jvp_of_linear
from minijax.sharding import rules

_SCALARS = (int, float, bool, complex, np.generic)
Axes = tuple[str, ...]


class Cast(Primitive):
    """Tells that a value is of another kind over some mesh axes; its elements do not change.

    Shapes: x: T[s] -> T[s].  Linear in x.  Mirrors a primitive of JAX of the same name.
    """

    jvp = jvp_of_linear
    shard = rules.elementwise
    # Whether the cast begins from what is the same everywhere.
    begins_invarying: ClassVar[bool] = False
    # The public function that binds the cast, for messages.
    user: ClassVar[str] = "lax.pcast"
    # Its transpose.
    dual: Primitive

    def abstract_eval(self, x: ShapedArray, *, axes: Axes) -> ShapedArray:
        return x

    def kind(self, given: ManualAxisType, axes: frozenset[AxisName]) -> ManualAxisType:
        """The kind of the result."""
        raise NotImplementedError

    def _check(self, aval: AbstractValue, given: ManualAxisType, axes: frozenset[AxisName]) -> None:
        """Refuses operands of a kind that the cast does not begin from: here what differs."""
        expected = f"a value that is the same everywhere over {axes_text(axes)}"
        refuse_kind(self.user, aval, axes & given.varying, "varying", expected)
        refuse_kind(self.user, aval, axes & given.unreduced, "unreduced", expected)
        refuse_kind(self.user, aval, axes & given.reduced, "reduced", expected)

    def impl(self, x: Value, *, axes: Axes) -> Any:
        problem = "a cast between kinds of values over mesh axes needs these to be manual."
        fix = "call it inside shard_map"
        error(ValueError, self.user, problem, got=f"{aval_of(x)}, axes {axes}", fix=fix)

    def lower(self, ctx: LoweringContext, x: Any, *, axes: Axes) -> Any:
        return x

    def transpose(self, ct: Value, x: Value, *, axes: Axes) -> Cotangents:
        return (self.dual.bind(ct, axes=axes),)

    def batch(self, size: int, args: Values, dims: BatchDims, *, axes: Axes) -> Batched:
        return self.bind(args[0], axes=axes), dims[0]


dtypes.knows_extended.set(True, Cast)
vma.keeps_unreduced.set(True, Cast)
core_axes.axis_params.set(("axes",), Cast)


@vma.vary.rule(Cast)
def _vary_of_cast(primitive: Cast, avals: Avals, outs: Avals, *, axes: Axes) -> ManualAxisType:
    given, over = vma.of(avals[0]), frozenset(axes)
    # The usual cast, of what is the same everywhere, needs no text of what would be refused.
    if given is not NOT_MANUAL or not primitive.begins_invarying:
        primitive._check(avals[0], given, over)
    return primitive.kind(given, over)


def refuse_kind(
    user: str,
    aval: AbstractValue,
    axes: frozenset[AxisName],
    what: str,
    expected: str,
    fix: str = "",
) -> None:
    """Refuses an operand that is of the wrong kind over some axes.

    Raises:
        ValueError: always where `axes` is not empty.
    """
    if axes:
        error(
            ValueError,
            user,
            f"the operand is {what} over {meshes.names_text(sorted(axes, key=str))}.",
            got=str(aval),
            expected=expected,
            fix=fix or "lax.pcast, or a reduction, to the kind that is expected",
            more="",
        )


class PVary(Cast):
    """I to V: from now on the value may differ from device to device.  Its transpose is a sum."""

    name = "pvary"
    begins_invarying = True
    user = "lax.pvary"

    def kind(self, given: ManualAxisType, axes: frozenset[AxisName]) -> ManualAxisType:
        return manual_type(given.varying | axes, given.unreduced, given.reduced)


class PReduced(Cast):
    """I to R: cotangents will be summands.  Its transpose is their sum."""

    name = "preduced"
    begins_invarying = True

    def _check(self, aval: AbstractValue, given: ManualAxisType, axes: frozenset[AxisName]) -> None:
        expected = f"a value that is the same everywhere over {axes_text(axes)}"
        refuse_kind(self.user, aval, axes & given.varying, "varying", expected)
        refuse_kind(self.user, aval, axes & given.reduced, "reduced already", expected)
        refuse_kind(self.user, aval, axes & given.unreduced, "unreduced", expected)

    def kind(self, given: ManualAxisType, axes: frozenset[AxisName]) -> ManualAxisType:
        return manual_type(given.varying, given.unreduced, given.reduced | axes)


class ReducedVaryCast(Cast):
    """R to V: the value is used per device.  Its transpose takes what varies as summands."""

    name = "reduced_vary_cast"

    def _check(self, aval: AbstractValue, given: ManualAxisType, axes: frozenset[AxisName]) -> None:
        expected = f"a value reduced over {axes_text(axes)}"
        refuse_kind(self.user, aval, axes & given.varying, "varying", expected)
        refuse_kind(self.user, aval, axes - given.reduced, "not reduced", expected)

    def kind(self, given: ManualAxisType, axes: frozenset[AxisName]) -> ManualAxisType:
        return manual_type(given.varying | axes, given.unreduced, given.reduced - axes)


class VaryUnreducedCast(Cast):
    """V to U: what differs are summands of one value, to be added later; transposed, R to V."""

    name = "vary_unreduced_cast"

    def _check(self, aval: AbstractValue, given: ManualAxisType, axes: frozenset[AxisName]) -> None:
        expected = f"a value that varies over {axes_text(axes)}"
        refuse_kind(self.user, aval, axes & given.unreduced, "unreduced already", expected)
        refuse_kind(self.user, aval, axes - given.varying, "not varying", expected)

    def kind(self, given: ManualAxisType, axes: frozenset[AxisName]) -> ManualAxisType:
        return manual_type(given.varying - axes, given.unreduced | axes, given.reduced)


class TypedSum(Primitive):
    """Sums over the devices of mesh axes, with an invarying result.

    Shapes: x: T[s] -> T[s].  Linear in x; the transpose is a cast, as the sum is the same on all
    devices.
    """

    has_effects: ClassVar[bool] = True
    jvp = jvp_of_linear
    shard = rules.elementwise

    def abstract_eval(self, x: ShapedArray, *, axes: Axes) -> ShapedArray:
        return x

    def effects(self, *avals: AbstractValue, axes: Axes) -> Effects:
        return named_effects(axes)

    def lower(self, ctx: LoweringContext, x: Any, *, axes: Axes) -> Any:
        return all_reduce(ctx, x, "stablehlo.add", axes)

    def batch(self, size: int, args: Values, dims: BatchDims, *, axes: Axes) -> Batched:
        return self.bind(args[0], axes=axes), dims[0]


core_axes.makes_equal.set(True, TypedSum)
rules.knows_sums.set(True, TypedSum)
core_axes.axis_params.set(("axes",), TypedSum)
core_axes.communicates.set(True, TypedSum)


class PSumInvariant(TypedSum):
    """V to I: the sum of what the devices of the axes hold; `lax.psum` where types are checked."""

    name = "psum_invariant"

    def transpose(self, ct: Value, x: Any, *, axes: Axes) -> Cotangents:
        out = pvary_p.bind(ct, axes=ordered(axes))
        rest = tuple(a for a in axes if a not in x.aval.vma)
        # What was the same on n devices was counted n times.
        return (self.bind(out, axes=rest) if rest else out,)


@vma.vary.rule(PSumInvariant)
def _vary_of_psum_invariant(
    primitive: PSumInvariant, avals: Avals, outs: Avals, *, axes: Axes
) -> ManualAxisType:
    given, named = vma.of(avals[0]), frozenset(axes)
    if any(isinstance(axis, int) for axis in axes):
        problem = "sums over dimensions of the array cannot be mixed with those over mesh axes."
        fix = "x.sum(dims) first, or shard_map(check_vma=False)"
        error(ValueError, "lax.psum", problem, got=f"axes {axes}", fix=fix)
    refuse_kind("lax.psum", avals[0], named & given.reduced, "reduced", "a varying value")
    refuse_kind("lax.psum", avals[0], named & given.unreduced, "unreduced", "a varying value")
    if not named & given.varying:
        problem = "the operand is the same on all devices of these axes."
        got = f"{avals[0]}, axes {axes}"
        expected = "an operand that varies over one of the axes"
        fix = "lax.psum, which casts its operand, or lax.pvary first"
        error(ValueError, "psum_invariant", problem, got=got, expected=expected, fix=fix, more="")
    return manual_type(given.varying - named, given.unreduced, given.reduced)


class UnreducedPSum(TypedSum):
    """U to I: the sum whose summands the devices of the axes hold."""

    name = "unreduced_psum"

    def transpose(self, ct: Value, x: Value, *, axes: Axes) -> Cotangents:
        return (preduced_p.bind(ct, axes=ordered(axes)),)


@vma.vary.rule(UnreducedPSum)
def _vary_of_unreduced_psum(
    primitive: UnreducedPSum, avals: Avals, outs: Avals, *, axes: Axes
) -> ManualAxisType:
    check_unreduced("lax.unreduced_psum", avals[0], axes)
    given, named = vma.of(avals[0]), frozenset(axes)
    return manual_type(given.varying, given.unreduced - named, given.reduced)


pvary_p = PVary()
preduced_p = PReduced()
reduced_vary_cast_p = ReducedVaryCast()
vary_unreduced_cast_p = VaryUnreducedCast()
psum_invariant_p = PSumInvariant()
unreduced_psum_p = UnreducedPSum()

pvary_p.dual, preduced_p.dual = psum_invariant_p, unreduced_psum_p
reduced_vary_cast_p.dual, vary_unreduced_cast_p.dual = vary_unreduced_cast_p, reduced_vary_cast_p


def check_unreduced(user: str, aval: AbstractValue, axes: Sequence[str]) -> None:
    """Refuses operands that are not unreduced over all the axes.

    Raises:
        ValueError: one is not, or an axis is a dimension.
    """
    given, named = vma.of(aval), frozenset(axes)
    expected = f"a value unreduced over {axes_text(axes)}"
    if any(isinstance(axis, int) for axis in axes):
        error(ValueError, user, "axes must be names of mesh axes.", got=str(tuple(axes)))
    refuse_kind(user, aval, named & given.varying, "varying", expected)
    refuse_kind(user, aval, named - given.unreduced, "not unreduced", expected)


def axes_text(axes: Iterable[AxisName]) -> str:
    """Names of axes as messages show them."""
    return meshes.names_text(sorted(axes, key=str))


def ordered(axes: Iterable[Any]) -> Axes:
    """Axes as a tuple, in the order of the mesh in force."""
    names = meshes.get_abstract_mesh().axis_names
    return tuple(sorted(axes, key=lambda a: (names.index(a) if a in names else len(names), str(a))))


def named_effects(axes: Iterable[AxisName]) -> Effects:
    """The effects of an operation that refers to axes; ints are dimensions."""
    return frozenset(core_effects.NamedAxisEffect(a) for a in axes if not isinstance(a, int))


def all_reduce(
    ctx: LoweringContext,
    x: Any,
    combiner: str,
    axes: Iterable[AxisName],
    axis_index_groups: object = None,
    aval: AbstractValue | None = None,
) -> Any:
    """The reduction of `x` over groups of devices, by the operation called `combiner`."""
    devices = ctx.module.device_axes
    if all(len(group) == 1 for group in devices.groups(axes, axis_index_groups)):
        # Nobody to speak to.  XLA's pass that joins reductions fails where there is one device.
        return x
    aval = ctx.avals_in[0] if aval is None else aval
    scalar = ctx.tensor_type((), aval.dtype)
    attributes = {
        **devices.replica_groups(axes, axis_index_groups),
        **devices.channel(),
        **devices.global_ids(),
    }
    return ctx.ops(
        "stablehlo.all_reduce",
        [x],
        attributes,
        [ctx.tensor_type(aval.shape, aval.dtype)],
        [([scalar, scalar], lambda inner, a, b: [inner.op(combiner, [a, b], None, scalar)])],
    )[0]


def agreeing(trace: Trace, primitive: Primitive, args: Values, params: Params) -> Arguments:
    """Arguments and parameters of an operation, cast in `trace` so that they fit together.

    The operands of a local operation must vary over the same mesh axes; operations that are not
    local say themselves what fits.
    """
    if vma.agree.of(primitive) is not None:
        return vma.agree.of(primitive)(trace, args, params)
    if vma.vary.of(primitive) is not None:
        return args, params
    avals = [vma.of_literal(x) if isinstance(x, _SCALARS) else aval_of(x) for x in args]
    if all(isinstance(a, vma.LiteralType) or a.manual_axis_type is NOT_MANUAL for a in avals):
        return args, params
    varying = vma.join(primitive, avals).varying
    return [
        x
        if isinstance(aval, vma.LiteralType) or refs.is_reference(x)
        else varied(trace, x, varying)
        for x, aval in zip(args, avals, strict=True)
    ], params


def varied(trace: Trace, x: Value, axes: frozenset[AxisName]) -> Any:
    """A value that varies over `axes` at least, cast in `trace` where it does not."""
    own = vma.of(aval_of(x))
    if axes <= own.varying:
        return x
    missing = axes - own.varying
    for cast, over in (
        (reduced_vary_cast_p, missing & own.reduced),
        (pvary_p, missing - own.reduced),
    ):
        if over:
            (x,) = trace.process(cast, (x,), {"axes": ordered(over)})
    return x


def summands(trace: Trace, x: Value, axes: Sequence[str]) -> Any:
    """A value that varies over `axes`, as summands of one that is unreduced over them."""
    return trace.process(vary_unreduced_cast_p, (x,), {"axes": ordered(frozenset(axes))})[0]


def varying_as(x: Value, like: object) -> Any:
    """A value that varies over the mesh axes over which another one does."""
    aval = getattr(like, "aval", None)
    over = NO_AXES if aval is None else vma.of(aval).varying
    return varied(current.value, x, over) if over else x


def of_kind(x: Value, kind: ManualAxisType) -> Any:
    """A value that is the same everywhere, such as zeros, as one of some kind.

    A summand is the value itself on every device, so only zeros stay what they are.
    """
    if kind is NOT_MANUAL:
        return x
    varying = kind.varying | kind.unreduced
    if varying:
        x = pvary_p.bind(x, axes=ordered(varying))
    if kind.unreduced:
        x = vary_unreduced_cast_p.bind(x, axes=ordered(kind.unreduced))
    if kind.reduced:
        x = preduced_p.bind(x, axes=ordered(kind.reduced))
    return x


Varying = frozenset[AxisName]
Arguments = tuple[Values, Mapping[str, Any]]


_DROPPED = (pvary_p, reduced_vary_cast_p, preduced_p)


class WideningTrace(NestedTrace):
    """Leaves away casts to what operands are already; everything goes on to `parent`."""

    __slots__ = ("parent",)

    def __init__(self, parent: Trace) -> None:
        super().__init__(parent.function_name)
        self.parent = parent

    def process(self, primitive: Primitive, args: Values, params: Params) -> Values:
        if primitive in _DROPPED:
            varying = vma.of(aval_of(args[0])).varying
            missing = tuple(name for name in params["axes"] if name not in varying)
            if not missing:
                return list(args)
            params = {"axes": missing}
        return self.pass_on(primitive, args, params)


def retyped(
    closed: ClosedJaxpr, varying: Sequence[Varying], out_varying: Sequence[Varying] | None = None
) -> ClosedJaxpr:
    """A jaxpr whose parameters vary over more axes, and results at least over some; made once.

    Args:
        closed: the jaxpr.
        varying: for each parameter, axes over which it varies.
        out_varying: the same for results.
    """
    wanted = [NO_AXES] * len(closed.out_avals) if out_varying is None else list(out_varying)
    is_enough = all(map(_varies, closed.in_avals, varying)) and all(
        map(_varies, closed.out_avals, wanted)
    )
    if is_enough:
        return closed
    key = ("retyped", tuple(varying), tuple(wanted))
    result: ClosedJaxpr = closed.remember(key, lambda: _retyped(closed, varying, wanted))
    return result


def _retyped(
    closed: ClosedJaxpr, varying: Sequence[Varying], out_varying: Sequence[Varying]
) -> ClosedJaxpr:
    avals = [
        aval if _varies(aval, axes) else aval.with_manual_type(_wider(vma.of(aval), axes))
        for aval, axes in zip(closed.in_avals, varying, strict=True)
    ]

    def function(*args: Any) -> list[Any]:
        around = current.value
        trace = WideningTrace(around)
        with config.override(current, trace):
            outs = staging.eval_closed_jaxpr(closed, *args)
        trace.finished = True
        return [varied(around, x, axes) for x, axes in zip(outs, out_varying, strict=True)]

    return ClosedJaxpr(*staging.stage(function, avals, closed.jaxpr.debug_info))


def _varies(aval: AbstractValue, axes: Varying) -> bool:
    return axes <= vma.of(aval).varying


def _wider(kind: ManualAxisType, axes: Varying) -> ManualAxisType:
    return manual_type(kind.varying | axes, kind.unreduced, kind.reduced - axes)


def varying_axes(values: Values) -> list[Varying]:
    """The axes over which values vary."""
    return [vma.of(aval_of(x)).varying for x in values]


def of_types(avals: Avals) -> list[Varying]:
    """The axes over which values of some types vary."""
    return [vma.of(aval).varying for aval in avals]


def united(first: Sequence[Varying], second: Sequence[Varying]) -> list[Varying]:
    """The axes of both lists, item by item."""
    return [a | b for a, b in zip(first, second, strict=True)]


def cast(trace: Trace, values: Values, varying: Sequence[Varying]) -> list[Any]:
    """Values that vary at least over some axes, cast in `trace` where they do not."""
    return [
        x if refs.is_reference(x) else varied(trace, x, axes)
        for x, axes in zip(values, varying, strict=True)
    ]


def agree_call(primitive: Primitive, trace: Trace, args: Values, params: Params) -> Arguments:
    """The rule `agree` of operations that call the parameter `jaxpr` with all their operands."""
    closed: ClosedJaxpr = params["jaxpr"]
    varying = united(varying_axes(args), of_types(closed.in_avals))
    fitting = retyped(closed, varying)
    given = cast(trace, args, varying)
    return given, params if fitting is closed else {**params, "jaxpr": fitting}
