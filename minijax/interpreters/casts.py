"""The casts between kinds of values over manual mesh axes, and their duals.

A value inside `shard_map` varies over an axis (V), or is the same everywhere (I), a summand (U),
or whole with summands as cotangents (R).  Casts change the kind and nothing else; the transpose of
each is a sum, or another cast, so that derivatives communicate where types ask for it:

    pvary               I -> V    psum_invariant        V -> I
    preduced            I -> R    unreduced_psum        U -> I
    reduced_vary_cast   R -> V    vary_unreduced_cast   V -> U
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from minijax.core import axes as core_axes
from minijax.core import effects as core_effects
from minijax.core import extended_dtypes, meshes, refs, variance
from minijax.core.aval import NO_AXES, NOT_MANUAL, ManualAxisType, ShapedArray, aval_of, manual_type
from minijax.core.errors import error
from minijax.core.primitive import Primitive
from minijax.core.trace import current
from minijax.interpreters import hlo_build
from minijax.interpreters.jvp import jvp_of_unary_linear
from minijax.sharding import rules

_SCALARS = (int, float, bool, complex, np.generic)
Axes = tuple[Any, ...]


class Cast(Primitive):
    """Tells that a value is of another kind over some mesh axes; its elements do not change.

    Shapes: x: T[s] -> T[s].  Linear in x.  Mirrors a primitive of JAX of the same name.
    """

    jvp = jvp_of_unary_linear
    shard = rules.elementwise
    # Whether the cast begins from what is the same everywhere.
    begins_invarying: ClassVar[bool] = False
    # The public function that binds the cast, for messages.
    user: ClassVar[str] = ""

    def abstract_eval(self, x: ShapedArray, *, axes: Axes) -> ShapedArray:
        return x

    def kind(self, given: ManualAxisType, axes: frozenset[Any]) -> ManualAxisType:
        """The kind of the result."""
        raise NotImplementedError

    def _check(self, aval: Any, given: ManualAxisType, axes: frozenset[Any]) -> None:
        """Refuses operands of a kind that the cast does not begin from."""
        raise NotImplementedError

    def impl(self, x: Any, *, axes: Axes) -> Any:
        error(
            ValueError,
            self.user,
            "a cast between kinds of values over mesh axes needs these to be manual.",
            got=f"{aval_of(x)}, axes {axes}",
            fix="call it inside shard_map",
        )

    def lower(self, ctx: Any, x: Any, *, axes: Axes) -> Any:
        return x

    def transpose(self, ct: Any, x: Any, *, axes: Axes) -> tuple[Any]:
        return (self.dual.bind(ct, axes=axes),)

    @property
    def dual(self) -> Primitive:
        """The transpose."""
        raise NotImplementedError

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], *, axes: Axes
    ) -> tuple[Any, Any]:
        return self.bind(args[0], axes=axes), dims[0]


extended_dtypes.knows_extended.set(True, Cast)
variance.keeps_unreduced.set(True, Cast)


@variance.vary.rule(Cast)
def _vary_of_cast(
    primitive: Cast, avals: Sequence[Any], outs: Sequence[Any], *, axes: Axes
) -> ManualAxisType:
    given, over = variance.of(avals[0]), frozenset(axes)
    # The usual cast, of what is the same everywhere, needs no text of what would be refused.
    if given is not NOT_MANUAL or not primitive.begins_invarying:
        primitive._check(avals[0], given, over)
    return primitive.kind(given, over)


def refuse_kind(
    user: str, aval: Any, axes: frozenset[Any], what: str, expected: str, fix: str = ""
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

    def _check(self, aval: Any, given: ManualAxisType, axes: frozenset[Any]) -> None:
        expected = f"a value that is the same everywhere over {axes_text(axes)}"
        refuse_kind(self.user, aval, axes & given.varying, "varying", expected)
        refuse_kind(self.user, aval, axes & given.unreduced, "unreduced", expected)
        refuse_kind(self.user, aval, axes & given.reduced, "reduced", expected)

    def kind(self, given: ManualAxisType, axes: frozenset[Any]) -> ManualAxisType:
        return manual_type(given.varying | axes, given.unreduced, given.reduced)

    @property
    def dual(self) -> Primitive:
        return psum_invariant_p


core_axes.axis_params.set(("axes",), PVary)


class PReduced(Cast):
    """I to R: cotangents will be summands.  Its transpose is their sum."""

    name = "preduced"
    begins_invarying = True
    user = "lax.pcast"

    def _check(self, aval: Any, given: ManualAxisType, axes: frozenset[Any]) -> None:
        expected = f"a value that is the same everywhere over {axes_text(axes)}"
        refuse_kind(self.user, aval, axes & given.varying, "varying", expected)
        refuse_kind(self.user, aval, axes & given.reduced, "reduced already", expected)
        refuse_kind(self.user, aval, axes & given.unreduced, "unreduced", expected)

    def kind(self, given: ManualAxisType, axes: frozenset[Any]) -> ManualAxisType:
        return manual_type(given.varying, given.unreduced, given.reduced | axes)

    @property
    def dual(self) -> Primitive:
        return unreduced_psum_p


core_axes.axis_params.set(("axes",), PReduced)


class ReducedVaryCast(Cast):
    """R to V: the value is used per device.  Its transpose takes what varies as summands."""

    name = "reduced_vary_cast"
    user = "lax.pcast"

    def _check(self, aval: Any, given: ManualAxisType, axes: frozenset[Any]) -> None:
        expected = f"a value reduced over {axes_text(axes)}"
        refuse_kind(self.user, aval, axes & given.varying, "varying", expected)
        refuse_kind(self.user, aval, axes - given.reduced, "not reduced", expected)

    def kind(self, given: ManualAxisType, axes: frozenset[Any]) -> ManualAxisType:
        return manual_type(given.varying | axes, given.unreduced, given.reduced - axes)

    @property
    def dual(self) -> Primitive:
        return vary_unreduced_cast_p


core_axes.axis_params.set(("axes",), ReducedVaryCast)


class VaryUnreducedCast(Cast):
    """V to U: what differs are summands of one value, to be added later; transposed, R to V."""

    name = "vary_unreduced_cast"
    user = "lax.pcast"

    def _check(self, aval: Any, given: ManualAxisType, axes: frozenset[Any]) -> None:
        expected = f"a value that varies over {axes_text(axes)}"
        refuse_kind(self.user, aval, axes & given.unreduced, "unreduced already", expected)
        refuse_kind(self.user, aval, axes - given.varying, "not varying", expected)

    def kind(self, given: ManualAxisType, axes: frozenset[Any]) -> ManualAxisType:
        return manual_type(given.varying - axes, given.unreduced | axes, given.reduced)

    @property
    def dual(self) -> Primitive:
        return reduced_vary_cast_p


core_axes.axis_params.set(("axes",), VaryUnreducedCast)


class TypedSum(Primitive):
    """Sums over the devices of mesh axes, with an invarying result.

    Shapes: x: T[s] -> T[s].  Linear in x; the transpose is a cast, as the sum is the same on all
    devices.
    """

    has_effects: ClassVar[bool] = True
    jvp = jvp_of_unary_linear
    shard = rules.elementwise

    def abstract_eval(self, x: ShapedArray, *, axes: Axes) -> ShapedArray:
        return x

    def effects(self, *avals: Any, axes: Axes) -> frozenset[Any]:
        return named_effects(axes)

    def lower(self, ctx: Any, x: Any, *, axes: Axes) -> Any:
        return all_reduce(ctx, x, "stablehlo.add", axes)

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], *, axes: Axes
    ) -> tuple[Any, Any]:
        return self.bind(args[0], axes=axes), dims[0]


core_axes.makes_equal.set(True, TypedSum)
rules.knows_sums.set(True, TypedSum)
core_axes.axis_params.set(("axes",), TypedSum)
core_axes.communicates.set(True, TypedSum)


class PSumInvariant(TypedSum):
    """V to I: the sum of what the devices of the axes hold; `lax.psum` where types are checked."""

    name = "psum_invariant"

    def transpose(self, ct: Any, x: Any, *, axes: Axes) -> tuple[Any]:
        out = pvary_p.bind(ct, axes=ordered(axes))
        rest = tuple(a for a in axes if a not in x.aval.vma)
        # What was the same on n devices was counted n times.
        return (self.bind(out, axes=rest) if rest else out,)


@variance.vary.rule(PSumInvariant)
def _vary_of_psum_invariant(
    primitive: PSumInvariant, avals: Sequence[Any], outs: Sequence[Any], *, axes: Axes
) -> ManualAxisType:
    given, named = variance.of(avals[0]), frozenset(axes)
    if any(isinstance(axis, int) for axis in axes):
        error(
            ValueError,
            "lax.psum",
            "sums over dimensions of the array cannot be mixed with those over mesh axes.",
            got=f"axes {axes}",
            fix="x.sum(dims) first, or shard_map(check_vma=False)",
        )
    refuse_kind("lax.psum", avals[0], named & given.reduced, "reduced", "a varying value")
    refuse_kind("lax.psum", avals[0], named & given.unreduced, "unreduced", "a varying value")
    if not named & given.varying:
        error(
            ValueError,
            "psum_invariant",
            "the operand is the same on all devices of these axes.",
            got=f"{avals[0]}, axes {axes}",
            expected="an operand that varies over one of the axes",
            fix="lax.psum, which casts its operand, or lax.pvary first",
            more="",
        )
    return manual_type(given.varying - named, given.unreduced, given.reduced)


class UnreducedPSum(TypedSum):
    """U to I: the sum whose summands the devices of the axes hold."""

    name = "unreduced_psum"

    def transpose(self, ct: Any, x: Any, *, axes: Axes) -> tuple[Any]:
        return (preduced_p.bind(ct, axes=ordered(axes)),)


@variance.vary.rule(UnreducedPSum)
def _vary_of_unreduced_psum(
    primitive: UnreducedPSum, avals: Sequence[Any], outs: Sequence[Any], *, axes: Axes
) -> ManualAxisType:
    check_unreduced("lax.unreduced_psum", avals[0], axes)
    given, named = variance.of(avals[0]), frozenset(axes)
    return manual_type(given.varying, given.unreduced - named, given.reduced)


pvary_p = PVary()
preduced_p = PReduced()
reduced_vary_cast_p = ReducedVaryCast()
vary_unreduced_cast_p = VaryUnreducedCast()
psum_invariant_p = PSumInvariant()
unreduced_psum_p = UnreducedPSum()


def check_unreduced(user: str, aval: Any, axes: Sequence[Any]) -> None:
    """Refuses operands that are not unreduced over all the axes.

    Raises:
        ValueError: one is not, or an axis is a dimension.
    """
    given, named = variance.of(aval), frozenset(axes)
    expected = f"a value unreduced over {axes_text(axes)}"
    if any(isinstance(axis, int) for axis in axes):
        error(ValueError, user, "axes must be names of mesh axes.", got=str(tuple(axes)))
    refuse_kind(user, aval, named & given.varying, "varying", expected)
    refuse_kind(user, aval, named - given.unreduced, "not unreduced", expected)


def axes_text(axes: Any) -> str:
    """Names of axes as messages show them."""
    return meshes.names_text(sorted(axes, key=str))


def ordered(axes: Any) -> Axes:
    """Axes as a tuple, in the order of the mesh in force."""
    names = meshes.get_abstract_mesh().axis_names
    return tuple(sorted(axes, key=lambda a: (names.index(a) if a in names else len(names), str(a))))


def named_effects(axes: Any) -> frozenset[Any]:
    """The effects of an operation that refers to axes; ints are dimensions."""
    return frozenset(core_effects.NamedAxisEffect(a) for a in axes if not isinstance(a, int))


def all_reduce(
    ctx: Any, x: Any, combiner: str, axes: Any, axis_index_groups: Any = None, aval: Any = None
) -> Any:
    """The reduction of `x` over groups of devices, by the operation called `combiner`."""
    devices = ctx.module.device_axes
    if all(len(group) == 1 for group in devices.groups(axes, axis_index_groups)):
        # Nobody to speak to.  XLA's pass that joins reductions fails where there is one device.
        return x
    aval = ctx.avals_in[0] if aval is None else aval
    scalar = hlo_build.tensor_type((), aval.dtype)
    attributes = {
        **devices.replica_groups(axes, axis_index_groups),
        **devices.channel(),
        **devices.global_ids(),
    }
    return ctx.ops(
        "stablehlo.all_reduce",
        [x],
        attributes,
        [hlo_build.tensor_type(aval.shape, aval.dtype)],
        [([scalar, scalar], lambda inner, a, b: [inner.op(combiner, [a, b], None, scalar)])],
    )[0]


def agreeing(
    trace: Any, primitive: Any, args: Sequence[Any], params: dict[str, Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Arguments and parameters of an operation, cast in `trace` so that they fit together.

    The operands of a local operation must vary over the same mesh axes; operations that are not
    local say themselves what fits.
    """
    if variance.agree.of(primitive) is not None:
        return variance.agree.of(primitive)(trace, args, params)
    if variance.vary.of(primitive) is not None:
        return args, params
    avals = [variance.of_literal(x) if isinstance(x, _SCALARS) else aval_of(x) for x in args]
    if all(aval in (None, variance.ZERO) or aval.manual_axis_type is NOT_MANUAL for aval in avals):
        return args, params
    varying = variance.join(primitive, avals).varying
    return [
        x if aval in (None, variance.ZERO) or refs.is_reference(x) else varied(trace, x, varying)
        for x, aval in zip(args, avals, strict=True)
    ], params


def varied(trace: Any, x: Any, axes: frozenset[Any]) -> Any:
    """A value that varies over `axes` at least, cast in `trace` where it does not."""
    own = variance.of(aval_of(x))
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


def varying_as(x: Any, like: Any) -> Any:
    """A value that varies over the mesh axes over which another one does."""
    aval = getattr(like, "aval", None)
    over = NO_AXES if aval is None else variance.of(aval).varying
    return varied(current.value, x, over) if over else x


def of_kind(x: Any, kind: ManualAxisType) -> Any:
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
