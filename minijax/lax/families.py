"""What primitives share: how arguments are taken and checked, and elementwise families.

One line declares an elementwise operation: `Unary` and `Binary` supply abstract evaluation,
lowering, differentiation, transposition and batching from the name of a StableHLO operation and
the derivatives.  The argument `accuracy` of `exp` and others says how exact it has to be.
"""

from __future__ import annotations

import enum
import functools
import inspect
import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NoReturn, TypeAlias, TypeGuard

import numpy as np

from minijax.core import dtypes, operators, vma
from minijax.core.aval import (
    AbstractValue,
    Shape,
    ShapedArray,
    aval_of,
    result_types,
    shaped_array,
    whole_number,
)
from minijax.core.cache import Cache
from minijax.core.dtypes import DType
from minijax.core.errors import IncompatibleShapesError, error
from minijax.core.operators import Function
from minijax.core.primitive import (
    Batched,
    Cotangent,
    Cotangents,
    Dual,
    Primitive,
    Tangents,
    Zero,
)
from minijax.interpreters.jvp import UndefinedPrimal, is_linear
from minijax.interpreters.structural import (
    add_tangents,
    broadcast_in_dim,
    full,
    moveaxis,
    reduce_sum,
    to_batch_dims,
)
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.array import Array
from minijax.sharding import rules

Values: TypeAlias = operators.Values
BatchDims: TypeAlias = operators.BatchDims
Avals: TypeAlias = operators.Avals
"""What the rules of primitives are given."""

Params: TypeAlias = Mapping[str, Any]
"""The parameters of an operation."""


def is_array(x: object) -> TypeGuard[Array]:
    """Whether `x` is an array or tracer of ours; a function may return such a value as it is."""
    # The class is asked: what stands for an array may pass on all names that are asked of it.
    return hasattr(type(x), "aval")


def canonicalize_axis(axis: object, ndim: int, name: str) -> int:
    """An axis as a Python int from 0 to `ndim - 1`; negative ones count from the end.

    Raises:
        TypeError: the axis is not an integer.
        AxisError: the axis is out of range; NumPy's error, a ValueError and an IndexError.
    """
    index = an_integer(axis, name, "the axis")
    if not -ndim <= index < ndim:
        problem = f"axis {index} is out of range."
        got = f"an array with {ndim} dimension{'' if ndim == 1 else 's'}"
        expected = f"an axis from {-ndim} to {ndim - 1}" if ndim else "no axis at all"
        error(np.exceptions.AxisError, name, problem, got=got, expected=expected)
    return index + ndim if index < 0 else index


def an_integer(x: Any, name: str, argument: str) -> int:
    """A known integer as a Python int.

    Args:
        x: the integer.
        name: the public function, for messages.
        argument: what it calls `x`, as messages begin: "the axis", "`num`".

    Raises:
        TypeError: it is not an integer.
        TracerIntegerConversionError: it is traced.
    """
    try:
        return operator.index(x)
    except TypeError as caught:
        if type(caught) is not TypeError or is_array(x):
            raise
        problem = f"{argument} must be an integer."
        error(TypeError, name, problem, got=f"{x!r} of type {type(x).__name__}", cause=None)


def canonicalize_axes(axes: Sequence[Any], ndim: int, name: str) -> tuple[int, ...]:
    """Axes as distinct Python ints from 0 to `ndim - 1`, in the order given.

    Raises:
        ValueError: an axis is out of range, or named twice.
    """
    found = tuple(canonicalize_axis(axis, ndim, name) for axis in axes)
    if len(set(found)) != len(found):
        error(ValueError, name, "an axis is named twice.", got=f"axes {tuple(axes)}")
    return found


def int_tuple(values: Values, name: str, argument: str) -> tuple[int, ...]:
    """A sequence of concrete integers as a tuple of Python ints.

    Raises:
        TypeError: it is not a sequence, or an element is not an integer.
    """
    try:
        return tuple(map(whole_number, values))
    except TypeError as caught:
        if type(caught) is not TypeError:
            raise
        problem = f"{argument} must be a sequence of concrete integers."
        error(TypeError, name, problem, got=f"{argument}: {values!r}", cause=None)


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str,
) -> list[tuple[int, int]]:
    """Converts a named padding, such as "SAME", to the padding of each dimension.

    `"VALID"` pads nothing.  `"SAME"` pads so that there is one window for each stride, with the
    odd element at the end; `"SAME_LOWER"` with the odd element at the start.

    Raises:
        RuntimeError: the name is not known.

    Example:
        >>> lax.padtype_to_pads((9, 9), window_shape=(3, 4), window_strides=(1, 1), padding="SAME")
        [(1, 1), (1, 2)]
    """
    kind = padding.upper() if isinstance(padding, str) else padding
    if kind == "VALID":
        return [(0, 0)] * len(in_shape)
    if kind not in ("SAME", "SAME_LOWER"):
        problem = "unknown kind of padding."
        expected = "'VALID', 'SAME' or 'SAME_LOWER'"
        error(RuntimeError, "lax.padtype_to_pads", problem, got=repr(padding), expected=expected)
    pads = []
    for size, window, stride in zip(in_shape, window_shape, window_strides, strict=True):
        windows = -(-size // stride)
        total = max((windows - 1) * stride + window - size, 0)
        less, more = total // 2, total - total // 2
        pads.append((less, more) if kind == "SAME" else (more, less))
    return pads


class AccuracyMode(enum.Enum):
    """A named accuracy.

    Example:
        >>> lax.exp(jnp.array([0.0]), accuracy=lax.AccuracyMode.HIGHEST)
        Array([1.], dtype=float32)
    """

    HIGHEST = 1
    DEFAULT = 2

    def attribute_text(self) -> str:
        """The accuracy in MLIR's syntax."""
        mode = f"#stablehlo.result_accuracy_mode<{self.name}>"
        return f"#stablehlo.result_accuracy<mode = {mode}>"


@dataclass(frozen=True)
class Tolerance:
    """The error that a result may have.

    Attributes:
        atol: absolute error.
        rtol: relative error.
        ulps: error in units of the last place.

    Raises:
        ValueError: a tolerance is negative, or none is set.

    Example:
        >>> lax.Tolerance(rtol=1e-3)
        Tolerance(atol=0.0, rtol=0.001, ulps=0)
        >>> jax.make_jaxpr(lambda x: lax.tanh(x, accuracy=lax.Tolerance(ulps=2)))(1.0)
        { lambda ; a:f32[]. let
            b:f32[] = tanh[accuracy=Tolerance(atol=0.0, rtol=0.0, ulps=2)] a
          in (b,) }
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __post_init__(self) -> None:
        if min(self.atol, self.rtol, self.ulps) < 0 or not (self.atol or self.rtol or self.ulps):
            problem = "tolerances must be non-negative, and one of them positive."
            got = {"atol": self.atol, "rtol": self.rtol, "ulps": self.ulps}
            error(ValueError, "lax.Tolerance", problem, got=got)

    def attribute_text(self) -> str:
        """The accuracy in MLIR's syntax."""
        return (
            f"#stablehlo.result_accuracy<atol = {self.atol:e}, rtol = {self.rtol:e}, "
            f"ulps = {self.ulps}, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>"
        )


Accuracy = AccuracyMode | Tolerance | None


Kinds = tuple[type, ...]
FLOAT: Kinds = (np.floating,)
COMPLEX: Kinds = (np.complexfloating,)
INEXACT: Kinds = (np.inexact,)
INTEGER: Kinds = (np.integer,)
REAL: Kinds = (np.floating, np.integer)
NUMERIC: Kinds = (np.number,)
BITS: Kinds = (np.integer, np.bool_)
ORDERED: Kinds = (np.floating, np.integer, np.bool_)
ANY: Kinds = (np.number, np.bool_)
# With random keys, and tangents that carry nothing.
WHATEVER: Kinds = (*ANY, dtypes.extended, np.void)

# The dtype of a result, from the dtype of the operands.
ResultDType = Callable[[np.dtype[Any]], np.dtype[Any]]


def same_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Results have the operands' dtype."""
    return dtype


def bool_dtype(_: np.dtype[Any]) -> np.dtype[Any]:
    """Results are booleans."""
    return dtypes.bool_


_KIND_IN_PYTHON = {
    np.bool_: "bool",
    np.integer: "int",
    np.floating: "float",
    np.inexact: "float",
    np.number: "float",
    np.complexfloating: "complex",
}


def check_dtype(name: str, argument: str, aval: AbstractValue, accepts: Kinds) -> None:
    """Refuses an operand whose dtype the operation does not take.

    Raises:
        TypeError: the dtype is none of `accepts`.
    """
    if not any(dtypes.issubdtype(aval.dtype, kind) for kind in accepts):
        problem = f"does not accept dtype {getattr(aval.dtype, 'name', aval.dtype)}."
        expected = "a dtype of kind " + " or ".join(k.__name__ for k in accepts)
        kinds = [_KIND_IN_PYTHON.get(kind, kind.__name__) for kind in accepts]
        fix = " or ".join(f"{argument}.astype({kind})" for kind in kinds)
        if aval.dtype == dtypes.bool_:
            fix += "; booleans have the operators ~, &, | and ^"
        error(TypeError, f"lax.{name}", problem, got={argument: aval}, expected=expected, fix=fix)


def jvp_of_first(primitive: Primitive, primals: Values, tangents: Tangents, **params: Any) -> Dual:
    """The jvp of an operation linear in its first operand, and constant in the others."""
    out = primitive.bind(*primals, **params)
    if type(tangents[0]) is not Zero:
        return out, primitive.bind(tangents[0], *primals[1:], **params)
    return out, list(map(Zero.like, out)) if primitive.multiple_results else Zero.like(out)


def jvp_of_product(
    primitive: Primitive, primals: Values, tangents: Sequence[Any], **params: Any
) -> Dual:
    """The jvp of an operation linear in each of its first two operands."""
    out = primitive.bind(*primals, **params)
    total: Any = Zero.like(out)
    if total.aval.dtype == dtypes.float0:
        return out, total
    for i, tangent in enumerate(tangents[:2]):
        if type(tangent) is not Zero:
            term = primitive.bind(*primals[:i], tangent, *primals[i + 1 :], **params)
            total = add_tangents(total, term)
    return out, total


def jvp_without_results(
    primitive: Primitive, primals: Values, tangents: Tangents, **params: Any
) -> Dual:
    """The jvp of an operation that only has an effect: tangents do not matter to it."""
    return primitive.bind(*primals, **params), []


def no_results(primitive: Primitive, *_: Any, **params: Any) -> list[Any]:
    """The types, or the specs, of the results of an operation that only has an effect."""
    return []


def batch_unary(
    primitive: Primitive, size: int, args: Values, dims: BatchDims, **params: Any
) -> Batched:
    """The batching of a function of each element, or of effects: the dimension stays in place."""
    return primitive.bind(*args, **params), dims[0]


def batch_elementwise(
    primitive: Primitive, size: int, args: Values, dims: BatchDims, **params: Any
) -> Batched:
    """The batching of a function of elements of several operands, which are lined up."""
    aligned, dim = align_batched(args, dims)
    out = primitive.bind(*aligned, **params)
    return out, [dim] * len(out) if primitive.multiple_results else dim


def batch_along(param: str, *, drops: bool = False) -> Function:
    """Rule: the dimensions that a parameter names step over the batch, which stays where it is.

    Args:
        param: the parameter: one dimension, or several.
        drops: whether the results have these dimensions no more.
    """

    def batch(
        primitive: Primitive, size: int, args: Values, dims: BatchDims, **params: Any
    ) -> Batched:
        dim = dims[0]
        if len(args) > 1:
            dim = next(d for d in dims if d is not None)
            args = to_batch_dims(args, dims, dim, size)
        given = params[param]
        several = type(given) is tuple
        moved = [d + (d >= dim) for d in given] if several else [given + (given >= dim)]
        params[param] = tuple(moved) if several else moved[0]
        out = primitive.bind(*args, **params)
        if drops:
            dim -= sum([d < dim for d in moved])
        return out, [dim] * len(out) if primitive.multiple_results else dim

    return batch


@dataclass(eq=False, repr=False)
class Unary(Primitive):
    """Applies one function to each element.

    Shapes: x: T[s] -> R[s].

    Args:
        name: the primitive's name.
        op: the StableHLO or CHLO operation, or `(ctx, x) -> value` if it lowers to several.  Such a
            function has a third parameter if it supports `accuracy`: the attributes of the
            operation that determines the accuracy of the result.
        accepts: kinds of dtypes it takes.
        derivative: `(x, y) -> dy/dx` where y is the result; `Unary.FLAT` where it is zero almost
            everywhere; `Unary.LINEAR` where the function is linear over the reals.
        transposed: of a linear function, `(ct, x) -> cotangent`; by default the function itself.
        result: the dtype of the result.
        public_name: the function of `lax`, where that is called otherwise.
        total: whether no number, infinite ones included, gives a NaN or an infinity.
    """

    FLAT = "flat"
    LINEAR = "linear"
    shard = rules.elementwise
    batch = batch_unary

    # As in all families: a field without a default, although `Primitive` has an empty name.
    name: str = field()
    op: str | Function
    _: KW_ONLY
    accepts: Kinds
    derivative: Callable[[Any, Any], Any] | str
    transposed: Callable[[Any, Any], Any] | None = None
    result: ResultDType = same_dtype
    public_name: str = ""
    total: bool = False

    def __post_init__(self) -> None:
        super().__init__(self.name)
        self.public_name = self.public_name or self.name

    @result_types.function
    def abstract_eval(self, x: ShapedArray, *, accuracy: Accuracy = None) -> ShapedArray:
        check_dtype(self.public_name, "x", x, self.accepts)
        dtype = self.result(x.dtype)
        return x.update(dtype=dtype, weak_type=x.weak_type and dtype != dtypes.bool_)

    def lower(self, ctx: LoweringContext, x: Value, *, accuracy: Accuracy = None) -> Any:
        if accuracy is None:
            return ctx.op(self.op, [x]) if isinstance(self.op, str) else self.op(ctx, x)
        attributes = {"result_accuracy": ctx.attribute(accuracy.attribute_text())}
        if isinstance(self.op, str):
            return ctx.op(self.op, [x], attributes)
        if len(inspect.signature(self.op).parameters) < 3:
            problem = "accuracy is not supported, because it lowers to several operations."
            got = f"accuracy={accuracy}"
            error(NotImplementedError, f"lax.{self.public_name}", problem, got=got, fix="omit it")
        return self.op(ctx, x, attributes)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], **params: Any) -> Dual:
        (x,), (x_dot,) = primals, tangents
        y = self.bind(x, **params)
        if self.derivative is Unary.FLAT:
            return y, Zero.like(y)
        if self.derivative is Unary.LINEAR:
            return y, self.bind(x_dot)
        assert callable(self.derivative)
        return y, _mul(x_dot, self.derivative(x, y))

    def transpose(self, ct: Array, x: UndefinedPrimal) -> Cotangents:
        if self.derivative is not Unary.LINEAR:
            self._missing("transposition: it is not linear (transpose)")
        return (self.transposed(ct, x) if self.transposed else self.bind(ct),)


vma.keeps_unreduced.derive(Unary)(lambda unary: unary.derivative is Unary.LINEAR)


@dataclass(eq=False, repr=False)
class Binary(Primitive):
    """Applies one function to each pair of elements.

    Shapes: x: T[s], y: T[t] -> R[broadcast of s and t]; ranks agree, or one operand is a scalar;
    dimensions agree, or one is 1.

    Args:
        name: the primitive's name.
        op: the StableHLO or CHLO operation, or `(ctx, x, y) -> value` where it takes several.
        accepts: kinds of dtypes it takes.
        derivatives: for each operand, `(g, x, y, out) -> g * d out/d operand`, linear in g;
            None where the derivative is zero almost everywhere.  None alone: there is no rule.
        transposes: for each operand in which the operation is linear when the other is known (or
            linear too), `(ct, x, y) -> cotangent`; None elsewhere.
        result: the dtype of the result.
        attributes: `ctx -> attributes` of the operation.
        public_name: the function of `lax`, where that is called otherwise.
        total: whether no numbers, infinite ones included, give a NaN or an infinity.
    """

    shard = rules.elementwise
    batch = batch_elementwise

    name: str = field()
    op: str | Function
    _: KW_ONLY
    accepts: Kinds
    derivatives: tuple[Function | None, Function | None] | None
    transposes: tuple[Function | None, Function | None] = (None, None)
    result: ResultDType = same_dtype
    attributes: Callable[[LoweringContext], dict[str, Any]] | None = None
    public_name: str = ""
    total: bool = False

    def __post_init__(self) -> None:
        super().__init__(self.name)
        self.public_name = self.public_name or self.name

    @result_types.function
    def abstract_eval(self, x: ShapedArray, y: ShapedArray) -> ShapedArray:
        check_same_dtype(self.public_name, x=x, y=y)
        check_dtype(self.public_name, "x", x, self.accepts)
        dtype = self.result(x.dtype)
        weak = x.weak_type and y.weak_type and dtype != dtypes.bool_
        return shaped_array(broadcast_shape(self.public_name, x=x, y=y), dtype, weak)

    def lower(self, ctx: LoweringContext, x: Value, y: Value) -> Any:
        left, right = ctx.avals_in
        if not left.shape == right.shape == ctx.avals_out[0].shape:
            x, y = broadcast_operands(ctx, (x, y))
        if not isinstance(self.op, str):
            return self.op(ctx, x, y)
        return ctx.op(self.op, [x, y], self.attributes(ctx) if self.attributes else None)

    def jvp(self, primals: Values, tangents: Tangents) -> Dual:
        x, y = primals
        if self.derivatives is None:
            self._missing("forward-mode differentiation (jvp)")
        out = self.bind(x, y)
        total: Any = Zero.like(out)
        for tangent, derivative in zip(tangents, self.derivatives, strict=True):
            if type(tangent) is not Zero and derivative is not None:
                total = add_tangents(total, broadcast_to(derivative(tangent, x, y, out), out))
        return out, total

    def transpose(self, ct: Array, x: Array, y: Array) -> Cotangents:
        results: list[Cotangent] = [None, None]
        for i, (operand, rule) in enumerate(zip((x, y), self.transposes, strict=True)):
            if is_linear(operand):
                if rule is None:
                    self._missing("transposition: it is not linear (transpose)")
                results[i] = sum_to_shape(rule(ct, x, y), operand.aval.shape)
        return results[0], results[1]


def align_batched(args: Values, dims: BatchDims) -> tuple[list[Any], int]:
    """Elementwise operands with their batch dimensions lined up, and where these are.

    Operands keep their ranks where they can; others get dimensions of size 1.
    """
    ranks = [aval_of(x).ndim - (d is not None) for x, d in zip(args, dims, strict=True)]
    rank = max(ranks)
    # The batch dimension of the first operand of full rank stays where it is.
    target = next((d for d, r in zip(dims, ranks, strict=True) if d is not None and r == rank), 0)
    aligned = []
    for x, d, r in zip(args, dims, ranks, strict=True):
        if d is not None and r == rank:
            aligned.append(moveaxis(x, d, target))
        elif d is None and r == 0:
            aligned.append(x)
        else:
            kept = [target] if d is not None else [i for i in range(rank + 1) if i != target]
            sizes = [1] * (rank + 1)
            for i, size in zip(kept, aval_of(x).shape, strict=True):
                sizes[i] = size
            aligned.append(broadcast_in_dim(x, tuple(sizes), kept))
    return aligned, target


def check_same_dtype(name: str, **operands: ShapedArray) -> None:
    """Refuses operands of different dtypes.

    Raises:
        TypeError: the dtypes differ.
    """
    if len({aval.dtype for aval in operands.values()}) > 1:
        problem = "operands have different dtypes."
        expected = "one dtype; lax converts nothing but Python scalars"
        fix = "lax.convert_element_type, or minijax.numpy, which promotes"
        error(TypeError, f"lax.{name}", problem, got=operands, expected=expected, fix=fix)


def broadcast_shape(name: str, **operands: ShapedArray) -> tuple[int, ...]:
    """The common shape of elementwise operands.

    Raises:
        IncompatibleShapesError: ranks differ (and none is 0), or dimensions differ (and none is 1).
    """
    shapes = [aval.shape for aval in operands.values() if aval.shape]
    if not shapes:
        return ()
    if len({len(shape) for shape in shapes}) > 1:
        error(
            IncompatibleShapesError,
            f"lax.{name}",
            "operand ranks differ.",
            got=operands,
            expected="equal ranks; lax adds no dimensions",
            fix="lax.broadcast_in_dim, or the function of minijax.numpy",
        )
    shape = common_shape(shapes)
    if shape is None:
        refuse_shapes(f"lax.{name}", operands)
    return shape


def common_shape(shapes: Sequence[Shape]) -> Shape | None:
    """The shape that shapes broadcast to, aligned at their ends; None if they do not fit."""
    result = []
    for sizes in itertools.zip_longest(*map(reversed, shapes), fillvalue=1):
        others = [size for size in sizes if size != 1] or [1]
        if any(size != others[0] for size in others):
            return None
        result.append(others[0])
    return tuple(reversed(result))


def refuse_shapes(name: str, operands: Mapping[str, AbstractValue]) -> NoReturn:
    """Raises the error of operands that do not broadcast together.

    Raises:
        IncompatibleShapesError: always; the text has the shapes that the user has.
    """
    shapes = " and ".join(str(aval.shape) for aval in operands.values())
    error(
        IncompatibleShapesError,
        name,
        f"operand shapes {shapes} do not fit together: got incompatible shapes for broadcasting.",
        got=operands,
        expected="dimensions, aligned at the end, that are equal or 1",
        fix=_missing_dimension(operands),
    )


def _missing_dimension(operands: Mapping[str, AbstractValue]) -> str | None:
    """What to do where one of two operands fits with a new dimension of size 1."""
    (name, small), *others = sorted(operands.items(), key=lambda pair: pair[1].ndim)
    if len(others) != 1 or others[0][1].ndim != small.ndim + 1:
        return None
    for axis in range(1, small.ndim + 1):
        wider = (*small.shape[:axis], 1, *small.shape[axis:])
        if common_shape([wider, others[0][1].shape]) is not None:
            return (
                f"numpy.expand_dims({name}, {axis}), if that is meant; keepdims=True, where {name} "
                "was reduced from such an array"
            )
    return None


def broadcast_operands(ctx: LoweringContext, values: Sequence[Any]) -> Sequence[Any]:
    """StableHLO values of the equation's operands, each repeated to the result's shape."""
    shape = ctx.avals_out[0].shape
    if all(aval.shape == shape for aval in ctx.avals_in):
        return values
    return [
        value
        if aval.shape == shape
        else ctx.broadcast(value, shape, aval.dtype, range(len(shape)) if aval.shape else ())
        for value, aval in zip(values, ctx.avals_in, strict=True)
    ]


def broadcast_to(x: Array, like: object) -> Any:
    """`x` repeated to the shape of `like`, and split as it is, by rules of elementwise operands.

    Were it not split so, its cotangent would be gathered before it is summed.
    """
    source, target = aval_of(x).shape, aval_of(like)
    if source == target.shape:
        return x
    dims = range(target.ndim) if source else ()
    return broadcast_in_dim(x, target.shape, dims, sharding=target.split)


def sum_to_shape(ct: Array, shape: tuple[int, ...]) -> Any:
    """The cotangent of an operand of `shape` that was repeated to the shape of `ct`."""
    full = aval_of(ct).shape
    if full == shape:
        return ct
    if not shape:
        return reduce_sum(ct, range(len(full)))
    axes = [i for i, (a, b) in enumerate(zip(shape, full, strict=True)) if a != b]
    kept = [i for i in range(len(full)) if i not in axes]
    return broadcast_in_dim(reduce_sum(ct, axes), shape, kept)


def operand(x: Any, like: Any = None) -> Array:
    """An argument made fit for `bind`: Python scalars take the dtype of `like`.

    Raises:
        TypeError: `x` is neither an array nor a number.
    """
    if is_array(x):
        return x
    if like is not None and type(x) in (int, float, complex):
        return scalar_like(x, like)
    aval_of(x)
    return x.__jax_array__() if hasattr(x, "__jax_array__") else x


def scalar_like(value: object, like: object) -> Any:
    """A Python scalar as a NumPy scalar of the dtype of `like`, where it keeps its meaning."""
    aval = aval_of(like)
    if aval.weak_type:
        # A weak type is that of a Python scalar of one kind, of which others may be made.
        kind = _SCALARS_OF_KINDS.get(aval.dtype.kind, int)
        same = kind(value) if _SCALAR_RANKS[type(value)] < _SCALAR_RANKS[kind] else value
        if aval.dtype == aval_of(same).dtype:
            return same
    key = (type(value), aval.dtype)
    if key not in _scalar_types:
        _scalar_types[key] = _scalar_type(*key)
    scalar_type = _scalar_types[key]
    if scalar_type is None:
        return value
    is_too_wide = dtypes.is_too_wide(aval.dtype)
    return full((), value, aval.dtype) if is_too_wide else scalar_type(value)


_scalar_types: dict[tuple[type, DType], Function | None] = Cache(
    "scalar types",
    "NumPy's type for a Python scalar that becomes an operand",
    key="Python's type, dtype",
    counted=False,
).table()


def _scalar_type(kind: type, dtype: DType) -> Function | None:
    """The NumPy scalar type for Python scalars of a kind that become `dtype`, if they may."""
    fits = (
        dtypes.issubdtype(dtype, np.complexfloating)
        or (kind is not complex and dtypes.issubdtype(dtype, np.floating))
        or (kind is int and dtypes.issubdtype(dtype, np.integer))
    )
    return dtype.type if fits else None


def operands(*args: Any) -> Sequence[Any]:
    """Arguments made fit for `bind`; Python scalars take the dtype of the arrays among them.

    Python scalars alone become of one type, the widest among them.
    """
    for x in args:
        if not hasattr(x, "aval"):
            break
    else:
        return args
    like = None
    for x in args:
        if hasattr(x, "dtype"):
            like = x
            break
    if like is None and all(type(x) in _SCALAR_RANKS for x in args):
        kind = max(map(type, args), key=_SCALAR_RANKS.__getitem__)
        return list(map(kind, args))
    return [operand(x, like) for x in args]


_SCALAR_RANKS: dict[type, int] = {int: 0, float: 1, complex: 2}
_SCALARS_OF_KINDS: dict[str, type] = {"f": float, "c": complex}


def _mul(x: Array, y: Array) -> Any:
    """Multiplies a tangent by a derivative, by the primitive that `binary.py` declares."""
    return mul_p.bind(x, y)


# Multiplication and negation are declared here because derivatives are applied by them.
mul_p = Binary(
    "mul",
    "stablehlo.multiply",
    accepts=NUMERIC,
    derivatives=(lambda g, x, y, out: _mul(g, y), lambda g, x, y, out: _mul(x, g)),
    transposes=(lambda ct, x, y: _mul(ct, y), lambda ct, x, y: _mul(x, ct)),
)
vma.linear_in.set(((0,), (1,)), mul_p)

neg_p = Unary("neg", "stablehlo.negate", accepts=NUMERIC, derivative=Unary.LINEAR, total=True)


_BYTES = {name: np.dtype(name.rstrip("24") + "8") for name in ("int2", "uint2", "int4", "uint4")}


def in_bytes(*names: str) -> Callable[[Function], Function]:
    """Lowers an operation on integers of less than a byte as that on bytes.

    For what XLA computes wrongly, or refuses, for the dtypes called `names`.
    """
    narrow = {np.dtype(name) for name in names}

    def wide(aval: AbstractValue) -> AbstractValue:
        return aval.update(dtype=_BYTES[aval.dtype.name]) if aval.dtype in narrow else aval

    def decorate(lower: Function) -> Function:
        @functools.wraps(lower)
        def lowered(self: Primitive, ctx: LoweringContext, *values: Value, **params: Any) -> Any:
            ins, outs = ctx.avals_in, ctx.avals_out
            if narrow.isdisjoint(aval.dtype for aval in ins):
                return lower(self, ctx, *values, **params)
            ctx.avals_in, ctx.avals_out = list(map(wide, ins)), list(map(wide, outs))
            given = [
                ctx.convert(x, aval.shape, wide(aval).dtype)
                for x, aval in zip(values, ins, strict=True)
            ]
            results = lower(self, ctx, *given, **params)
            ctx.avals_in, ctx.avals_out = ins, outs
            found = [
                ctx.convert(x, aval.shape, aval.dtype)
                for x, aval in zip(
                    results if self.multiple_results else [results], outs, strict=True
                )
            ]
            return found if self.multiple_results else found[0]

        return lowered

    return decorate
