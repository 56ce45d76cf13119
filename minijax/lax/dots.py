"""Matrix products of any dimensions, and how exactly they are computed.

The argument `precision` of products and convolutions is read here, and becomes attributes.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes, printing, vma
from minijax.core.aval import ShapedArray, aval_of, result_types, shaped_array
from minijax.core.cache import cached
from minijax.core.config import default_matmul_precision
from minijax.core.errors import error
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Batched, Cotangents, Primitive
from minijax.interpreters.jvp import is_linear
from minijax.interpreters.structural import transpose
from minijax.lax import families, shardings
from minijax.lax.creation import convert_element_type
from minijax.lax.families import Avals, Values
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.annotations import ArrayLike, DTypeLike, ShardingLike
from minijax.runtime.array import Array
from minijax.sharding import rules
from minijax.sharding.named import NamedSharding


class Precision(enum.Enum):
    """The precision of products of floats on an accelerator; a CPU always has full precision.

    Example:
        >>> lax.Precision.HIGH
        Precision.HIGH
        >>> lax.dot(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0]), precision=lax.Precision.HIGHEST)
        Array(11., dtype=float32)
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    def __repr__(self) -> str:
        return f"Precision.{self.name}"

    def __str__(self) -> str:
        return self.name


_NAMES = {
    "default": Precision.DEFAULT,
    "fastest": Precision.DEFAULT,
    "bfloat16": Precision.DEFAULT,
    "high": Precision.HIGH,
    "bfloat16_3x": Precision.HIGH,
    "tensorfloat32": Precision.HIGH,
    "highest": Precision.HIGHEST,
    "float32": Precision.HIGHEST,
}


class DotAlgorithm(NamedTuple):
    """An algorithm for dots: types to multiply and to add in, and how operands are split.

    Attributes:
        lhs_precision_type: the dtype in which the left operand is multiplied.
        rhs_precision_type: the same for the right one.
        accumulation_type: the dtype in which products are added.
        lhs_component_count: into how many numbers an element of the left operand is split.
        rhs_component_count: the same for the right one.
        num_primitive_operations: how many products of components are added.
        allow_imprecise_accumulation: whether sums may lose bits for speed.

    Example:
        >>> bf16 = lax.DotAlgorithm(jnp.bfloat16, jnp.bfloat16, jnp.float32)
        >>> bf16.num_primitive_operations, bf16.allow_imprecise_accumulation
        (1, False)
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Algorithms by name: types of the operands, type of the sums, number of products.

    Example:
        >>> lax.DotAlgorithmPreset.BF16_BF16_F32_X3
        DotAlgorithmPreset.BF16_BF16_F32_X3
        >>> lax.dot(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0]), precision="F32_F32_F32")
        Array(11., dtype=float32)
    """

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def __repr__(self) -> str:
        return f"DotAlgorithmPreset.{self.name}"

    def __str__(self) -> str:
        return self.name


CanonicalPrecision = tuple[Precision, Precision] | DotAlgorithm | DotAlgorithmPreset | None
"""A precision for each operand, an algorithm, or None: whatever is fast."""

PrecisionLike = (
    CanonicalPrecision | str | Precision | tuple[str, str] | tuple[str | Precision, str | Precision]
)


def canonicalize_precision(precision: object, name: str) -> CanonicalPrecision:
    """The `precision` argument of the public function `name` in the form that parameters have.

    None stands for the precision that `minijax.default_matmul_precision` sets.

    Raises:
        ValueError: it is none of the ways to write a precision.
    """
    if precision is None:
        precision = default_matmul_precision.value
        if precision is None:
            return None
    if isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        return precision
    if isinstance(precision, str) and precision in DotAlgorithmPreset.__members__:
        return DotAlgorithmPreset[precision]
    pair = tuple(precision) if isinstance(precision, (tuple, list)) else (precision, precision)
    if len(pair) == 2:
        lhs, rhs = (_NAMES.get(p) if isinstance(p, str) else p for p in pair)
        if isinstance(lhs, Precision) and isinstance(rhs, Precision):
            return lhs, rhs
    problem = "not a precision."
    got = f"precision: {precision!r}"
    expected = (
        f"None, one of {', '.join(_NAMES)}, a lax.Precision, a pair of these, or a "
        "lax.DotAlgorithm, lax.DotAlgorithmPreset or the name of one"
    )
    error(ValueError, name, problem, got=got, expected=expected)


def precision_config(ctx: LoweringContext, precision: CanonicalPrecision) -> Any:
    """The attribute `precision_config` of a dot or convolution."""
    pair = (Precision.DEFAULT, Precision.DEFAULT)
    if isinstance(precision, tuple) and not isinstance(precision, DotAlgorithm):
        pair = precision
    return ctx.attribute("[" + ", ".join(f"#stablehlo<precision {p.name}>" for p in pair) + "]")


class _Format(NamedTuple):
    """What a preset stands for, in MLIR's names of types; None: as the operands are."""

    operand: str | None
    accumulation: str | None
    storage: tuple[np.dtype[Any], ...] = ()
    products: int = 1
    imprecise: bool = False


_F16, _BF16, _F32, _F64 = dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64

_FORMATS = {
    "ANY_F8_ANY_F8_F32": _Format(None, "f32"),
    "ANY_F8_ANY_F8_F32_FAST_ACCUM": _Format(None, "f32", imprecise=True),
    "ANY_F8_ANY_F8_ANY": _Format(None, None),
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM": _Format(None, None, imprecise=True),
    "F16_F16_F16": _Format("f16", "f16", (_F16,)),
    "F16_F16_F32": _Format("f16", "f32", (_F16,)),
    "BF16_BF16_BF16": _Format("bf16", "bf16", (_BF16,)),
    "BF16_BF16_F32": _Format("bf16", "f32", (_BF16, _F32)),
    "BF16_BF16_F32_X3": _Format("bf16", "f32", (_F32,), 3),
    "BF16_BF16_F32_X6": _Format("bf16", "f32", (_F32,), 6),
    "BF16_BF16_F32_X9": _Format("bf16", "f32", (_F32,), 9),
    "TF32_TF32_F32": _Format("tf32", "f32", (_F32,)),
    "TF32_TF32_F32_X3": _Format("tf32", "f32", (_F32,), 3),
    "F32_F32_F32": _Format("f32", "f32", (_F32,)),
    "F64_F64_F64": _Format("f64", "f64", (_F64,)),
}
_ON_CPU = {
    "F16_F16_F16",
    "BF16_BF16_F32",
    "BF16_BF16_F32_X3",
    "BF16_BF16_F32_X6",
    "F32_F32_F32",
    "F64_F64_F64",
}
_ACCUMULATION = {"f16": _F16, "bf16": _BF16, "f32": _F32, "f64": _F64}


class DotPlan(NamedTuple):
    """How a dot runs an algorithm: dtypes of its operands and result, and the attribute."""

    lhs: np.dtype[Any]
    rhs: np.dtype[Any]
    out: np.dtype[Any]
    algorithm: Any


def plan_dot(
    ctx: LoweringContext,
    algorithm: DotAlgorithm | DotAlgorithmPreset,
    lhs: np.dtype[Any],
    rhs: np.dtype[Any],
    out: np.dtype[Any],
) -> DotPlan:
    """What the algorithm makes of operands and a result of the given dtypes.

    Raises:
        ValueError: the platform cannot run the algorithm, or it does not take the operands.
    """
    if isinstance(algorithm, DotAlgorithm):
        return _plan_explicit(ctx, algorithm)
    if ctx.platform == "cpu" and algorithm.name not in _ON_CPU:
        problem = f"the algorithm {algorithm.name} does not run on CPUs."
        expected = "one of " + ", ".join(sorted(_ON_CPU))
        error(ValueError, "lax.dot_general", problem, expected=expected)
    form = _FORMATS[algorithm.name]
    if form.operand is None and not (_is_float8(lhs) and _is_float8(rhs)):
        problem = f"the algorithm {algorithm.name} multiplies 8-bit floats only."
        error(ValueError, "lax.dot_general", problem, got=f"operands of dtypes {lhs} and {rhs}")
    if form.storage:
        lhs = lhs if lhs in form.storage else form.storage[0]
        rhs = rhs if rhs in form.storage else form.storage[0]
    accumulation = form.accumulation or _element(ctx, out)
    text = _algorithm_text(
        form.operand or _element(ctx, lhs),
        form.operand or _element(ctx, rhs),
        accumulation,
        (1, 1, form.products, form.imprecise),
    )
    return DotPlan(lhs, rhs, _ACCUMULATION.get(accumulation, out), ctx.attribute(text))


def _plan_explicit(ctx: LoweringContext, algorithm: DotAlgorithm) -> DotPlan:
    lhs, rhs, out = (np.dtype(dtype) for dtype in algorithm[:3])
    lhs_name, rhs_name, out_name = (_element(ctx, dtype) for dtype in (lhs, rhs, out))
    text = _algorithm_text(lhs_name, rhs_name, out_name, algorithm[3:])
    # Components are cut from elements of the wider type in which they are added up again.
    lhs = lhs if algorithm.lhs_component_count == 1 else out
    rhs = rhs if algorithm.rhs_component_count == 1 else out
    return DotPlan(lhs, rhs, out, ctx.attribute(text))


def _algorithm_text(
    lhs: str, rhs: str, accumulation: str, counts: tuple[int, int, int, bool]
) -> str:
    lhs_components, rhs_components, products, imprecise = counts
    return (
        f"#stablehlo.dot_algorithm<lhs_precision_type = {lhs}, rhs_precision_type = {rhs}, "
        f"accumulation_type = {accumulation}, lhs_component_count = {lhs_components}, "
        f"rhs_component_count = {rhs_components}, num_primitive_operations = {products}, "
        f"allow_imprecise_accumulation = {str(imprecise).lower()}>"
    )


def _element(ctx: LoweringContext, dtype: np.dtype[Any]) -> str:
    return str(ctx.tensor_type((), dtype).element_type)


def _is_float8(dtype: np.dtype[Any]) -> bool:
    return dtype.name.startswith("float8_")


Dims = tuple[int, ...]
DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]
"""`((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`."""

_Numbers = tuple[tuple[Dims, Dims], tuple[Dims, Dims]]


class _Params(NamedTuple):
    """The parameters of a product."""

    dimension_numbers: _Numbers
    precision: CanonicalPrecision
    preferred_element_type: np.dtype[Any] | None
    out_sharding: NamedSharding | None


class DotGeneral(Primitive):
    """Multiplies, sums over contracting dimensions, and pairs up batch dimensions.

    Shapes: lhs: L[b, i, k], rhs: R[b, j, k] -> T[b, i, j], each group of dimensions being any
    number of them at any places.  Linear in each operand.
    """

    name = "dot_general"
    jvp = families.jvp_of_product

    @result_types.function
    def abstract_eval(self, lhs: ShapedArray, rhs: ShapedArray, **params: Any) -> ShapedArray:
        p = _Params(**params)
        _check_numbers(lhs, rhs, p.dimension_numbers)
        (lhs_sum, rhs_sum), (lhs_batch, rhs_batch) = p.dimension_numbers
        shape = (
            *(lhs.shape[d] for d in lhs_batch),
            *(lhs.shape[d] for d in _others(lhs.ndim, lhs_sum, lhs_batch)),
            *(rhs.shape[d] for d in _others(rhs.ndim, rhs_sum, rhs_batch)),
        )
        dtype = wider_dtype(lhs.dtype, rhs.dtype)
        if p.preferred_element_type is not None:
            check_preferred_type("lax.dot_general", dtype, p.preferred_element_type)
            dtype = np.dtype(p.preferred_element_type)
        return shaped_array(shape, dtype, lhs.weak_type and rhs.weak_type)

    def shard(self, avals: Avals, outs: Avals, **params: Any) -> PartitionSpec:
        p = _Params(**params)
        if p.out_sharding is None:
            return shardings.product_spec(self, avals, p.dimension_numbers)
        spec = rules.given_spec(self, outs[0], p.out_sharding)
        shardings.check_summands(self, avals, p.dimension_numbers, spec)
        return spec

    @families.in_bytes("int2", "uint2", "int4", "uint4")
    def lower(self, ctx: LoweringContext, lhs: Value, rhs: Value, **params: Any) -> Any:
        (x, y), (out,) = ctx.avals_in, ctx.avals_out
        numbers, precision, *_ = _Params(**params)
        attributes = {
            "dot_dimension_numbers": ctx.attribute(_numbers_text(numbers)),
            "precision_config": precision_config(ctx, precision),
        }
        kinds: tuple[Any, Any, Any] = x.dtype, y.dtype, out.dtype
        if isinstance(precision, DotAlgorithm) or (
            isinstance(precision, DotAlgorithmPreset) and precision.name != "DEFAULT"
        ):
            plan = plan_dot(ctx, precision, *kinds)
            kinds, attributes["algorithm"] = plan[:3], plan.algorithm
        elif x.dtype != y.dtype and not all(k.name.startswith("float8") for k in kinds[:2]):
            kinds = out.dtype, out.dtype, out.dtype
        if x.dtype != kinds[0]:
            lhs = ctx.convert(lhs, x.shape, kinds[0])
        if y.dtype != kinds[1]:
            rhs = ctx.convert(rhs, y.shape, kinds[1])
        of_dot = ctx.tensor_type(out.shape, kinds[2])
        value = ctx.op("stablehlo.dot_general", [lhs, rhs], attributes, of_dot)
        return value if out.dtype == kinds[2] else ctx.convert(value, out.shape, out.dtype)

    def transpose(
        self, ct: Array, x: Array, y: Array, *, dimension_numbers: _Numbers, **params: Any
    ) -> Cotangents:
        params.pop("out_sharding")
        (x_sum, y_sum), (x_batch, y_batch) = dimension_numbers
        avals = [aval_of_input(x), aval_of_input(y)]
        mesh = rules.mesh_of([*avals, aval_of(ct)])
        x_kept = _others(avals[0].ndim, x_sum, x_batch)
        y_kept = _others(avals[1].ndim, y_sum, y_batch)
        # Dimensions of the result: the batch, what is kept of x, what is kept of y.
        first, second = len(x_batch), len(x_batch) + len(x_kept)
        batch = tuple(range(first))

        def product(
            other: Array, of_ct: Dims, of_other: Dims, other_batch: Dims, aval: Any, places: Dims
        ) -> Any:
            numbers = (of_ct, of_other), (batch, other_batch)
            wanted = rules.of_cotangent(aval, mesh)
            if wanted is not None:
                wanted = wanted.with_spec(rules.permuted(wanted.spec, places))
            found = self.bind(ct, other, dimension_numbers=numbers, out_sharding=wanted, **params)
            return _as_input(found, aval, places)

        if is_linear(x):
            summed = tuple(range(second, second + len(y_kept)))
            places = _places(x_batch, x_kept, x_sum, y_sum)
            return product(y, summed, y_kept, y_batch, x.aval, places), None
        summed = tuple(range(first, second))
        places = _places(y_batch, y_kept, y_sum, x_sum)
        return None, product(x, summed, x_kept, x_batch, y.aval, places)

    def batch(self, size: int, args: Values, dims: Sequence[Any], **params: Any) -> Batched:
        (x, y), (x_dim, y_dim) = args, dims
        p = _Params(**params)
        (x_sum, y_sum), (x_batch, y_batch) = p.dimension_numbers
        count = len(x_batch)
        x_sum, x_batch = _shifted(x_sum, x_dim), _shifted(x_batch, x_dim)
        y_sum, y_batch = _shifted(y_sum, y_dim), _shifted(y_batch, y_dim)
        x_kept = _others(aval_of(x).ndim, x_sum, x_batch)
        if x_dim is not None and y_dim is not None:
            x_batch, y_batch, out_dim = (x_dim, *x_batch), (y_dim, *y_batch), 0
        elif x_dim is not None:
            out_dim = count + x_kept.index(x_dim)
        else:
            y_kept = _others(aval_of(y).ndim, y_sum, y_batch)
            out_dim = count + len(x_kept) + y_kept.index(y_dim)
        numbers = (x_sum, y_sum), (x_batch, y_batch)
        mapped, dim = (y, y_dim) if x_dim is None else (x, x_dim)
        entry = rules.free_entry(p.out_sharding, aval_of(mapped), dim)
        wide = rules.batched(p.out_sharding, out_dim, entry)
        wider = p._replace(dimension_numbers=numbers, out_sharding=wide)
        return self.bind(x, y, **wider._asdict()), out_dim


@printing.shows.rule(DotGeneral)
def _shown_params_of_dot_general(primitive: DotGeneral, params: families.Params) -> dict[str, Any]:
    numbers = tuple(tuple(map(list, pair)) for pair in params["dimension_numbers"])
    given = {k: v for k, v in params.items() if v is not None and k != "out_sharding"}
    return {**given, "dimension_numbers": numbers}


vma.linear_in.set(((0,), (1,)), DotGeneral)
rules.sharding_param.set("out_sharding", DotGeneral)
rules.knows_sums.set(True, DotGeneral)


dot_general_p = DotGeneral()


def aval_of_input(x: Array) -> Any:
    """The type of an argument of a transpose rule, linear or known."""
    return x.aval if is_linear(x) else aval_of(x)


def _others(ndim: int, *taken: Dims) -> Dims:
    return tuple(d for d in range(ndim) if not any(d in dims for dims in taken))


def _shifted(dims: Dims, new: int | None) -> Dims:
    return dims if new is None else tuple(d + (d >= new) for d in dims)


def _places(batch: Dims, kept: Dims, summed: Dims, other_summed: Dims) -> Dims:
    """Which dimension of the input each dimension of its cotangent is.

    The cotangent has the batch, then what was kept, then what was summed, in the order in which
    the other operand has those dimensions.
    """
    by_other = [d for _, d in sorted(zip(other_summed, summed, strict=True))]
    return (*batch, *kept, *by_other)


def _as_input(grad: Array, aval: ShapedArray, places: Dims) -> Any:
    """A cotangent with its dimensions in the input's order, and of the input's dtype."""
    grad = transpose(grad, sorted(range(len(places)), key=places.__getitem__))
    return grad if grad.dtype == aval.dtype else convert_element_type(grad, aval.dtype)


def _numbers_text(numbers: _Numbers) -> str:
    (lhs_sum, rhs_sum), (lhs_batch, rhs_batch) = numbers
    return (
        f"#stablehlo.dot<lhs_batching_dimensions = {list(lhs_batch)}, "
        f"rhs_batching_dimensions = {list(rhs_batch)}, "
        f"lhs_contracting_dimensions = {list(lhs_sum)}, "
        f"rhs_contracting_dimensions = {list(rhs_sum)}>"
    )


def _check_numbers(lhs: ShapedArray, rhs: ShapedArray, numbers: _Numbers) -> None:
    facts = {"lhs": lhs, "rhs": rhs, "dimension_numbers": numbers}
    for aval, side in ((lhs, 0), (rhs, 1)):
        named = (*numbers[0][side], *numbers[1][side])
        if len(set(named)) != len(named) or not all(0 <= d < aval.ndim for d in named):
            problem = f"the dimension numbers do not fit {('lhs', 'rhs')[side]}."
            expected = f"distinct dimensions, each from 0 to {aval.ndim - 1}"
            error(TypeError, "lax.dot_general", problem, got=facts, expected=expected)
    for (lhs_dims, rhs_dims), kind in zip(numbers, ("contracting", "batch"), strict=True):
        lhs_sizes = [lhs.shape[d] for d in lhs_dims]
        rhs_sizes = [rhs.shape[d] for d in rhs_dims]
        if lhs_sizes != rhs_sizes:
            problem = f"the {kind} dimensions of lhs and rhs differ."
            expected = "equal sizes, pair by pair"
            error(TypeError, "lax.dot_general", problem, got=facts, expected=expected)


@cached("wider dtypes", key="two dtypes")
def wider_dtype(x: np.dtype[Any], y: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of products of two dtypes: of the greater kind, then width, then range."""
    wider: np.dtype[Any] = max(x, y, key=_extent)
    return wider


def _extent(dtype: np.dtype[Any]) -> tuple[int, int, float]:
    bits = dtypes.bit_width(dtype)
    if dtype == dtypes.bool_:
        return 0, bits, 0.0
    if dtypes.issubdtype(dtype, np.integer):
        return 1, bits, float(dtypes.issubdtype(dtype, np.signedinteger))
    if dtypes.issubdtype(dtype, np.floating):
        return 2, bits, float(dtypes.finfo(dtype).max)
    return 3, bits, 0.0


def check_preferred_type(name: str, dtype: np.dtype[Any], preferred: Any) -> None:
    """Refuses a `preferred_element_type` in which exact results would not fit.

    Raises:
        TypeError: the results are not floats, and the preferred type is narrower.
    """
    if dtypes.issubdtype(dtype, np.floating):
        return
    if _real_bits(preferred) < _real_bits(dtype):
        problem = "preferred_element_type is narrower than the type of the result."
        got = f"preferred_element_type {preferred} for a result of dtype {dtype}"
        error(TypeError, name, problem, got=got, expected=f"at least {_real_bits(dtype)} bits")


def _real_bits(dtype: np.dtype[Any]) -> int:
    if dtype == dtypes.bool_:
        return 1
    is_complex = dtypes.issubdtype(dtype, np.complexfloating)
    return dtypes.bit_width(dtypes.real_dtype_of(dtype) if is_complex else dtype)


def canonicalize_preferred_type(dtype: DTypeLike | None, name: str) -> Any:
    """The `preferred_element_type` of the public function `name`: a dtype, or None."""
    return None if dtype is None else dtypes.canonicalize_user_dtype(dtype, name)


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike = None,
) -> Array:
    """Computes a general dot product: contracts dimensions, and pairs batch dimensions.

    Shapes:     lhs: L[b, i, k], rhs: R[b, j, k] -> T[b, i, j], where b, i, j and k stand for any
                number of dimensions, anywhere in the operands.
    Dtypes:     any; of two dtypes the result has the greater: complex over float over integer
                over bool, then by width, then by range.
    Derivative: linear in each operand; transposes to dots with the cotangent.
    Lowers to:  stablehlo.dot_general.

    Args:
        lhs: the left operand.
        rhs: the right operand.
        dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`.
        precision: how exactly an accelerator multiplies, or by which algorithm.
        preferred_element_type: the dtype in which products are added, and of the result.
        out_sharding: the sharding of the result.

    Raises:
        TypeError: the dimension numbers do not fit the operands, or the preferred type is too
            narrow.
        ValueError: `precision` is not a precision, or its algorithm cannot run.

    Example:
        >>> lhs, rhs = jnp.ones((8, 2, 3)), jnp.ones((8, 5, 3))
        >>> lax.dot_general(lhs, rhs, dimension_numbers=(([2], [2]), ([0], [0]))).shape
        (8, 2, 5)
    """
    (lhs_sum, rhs_sum), (lhs_batch, rhs_batch) = dimension_numbers
    numbers = (_ints(lhs_sum), _ints(rhs_sum)), (_ints(lhs_batch), _ints(rhs_batch))
    x, y = families.operands(lhs, rhs)
    return dot_general_p.bind(
        x,
        y,
        dimension_numbers=numbers,
        precision=canonicalize_precision(precision, "lax.dot_general"),
        preferred_element_type=canonicalize_preferred_type(
            preferred_element_type, "lax.dot_general"
        ),
        out_sharding=rules.resolve(out_sharding, "lax.dot_general"),
    )


def _ints(dims: Sequence[int]) -> Dims:
    return tuple(map(operator.index, dims))


def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Computes the dot product of vectors or matrices, or as `dimension_numbers` say.

    Shapes:     lhs: L[k] or L[i, k], rhs: R[k] or R[k, j] -> T[], T[i], T[j] or T[i, j].
    Dtypes:     as dot_general.
    Derivative: linear in each operand.
    Lowers to:  stablehlo.dot_general.

    Raises:
        ValueError: there are no dimension numbers, and the operands are not vectors or matrices
            that fit together.

    Example:
        >>> lax.dot(jnp.array([1, 2]), jnp.array([[1, 0], [3, 4]]))
        Array([7, 8], dtype=int32)
    """
    if dimension_numbers is None:
        x, y = aval_of(lhs), aval_of(rhs)
        if x.ndim not in (1, 2) or y.ndim not in (1, 2) or x.shape[-1] != y.shape[0]:
            problem = "the operands are no vectors or matrices that fit together."
            got = {"lhs": x, "rhs": y}
            expected = "1 or 2 dimensions each, the last of lhs equal to the first of rhs"
            fix = "name the dimensions with dimension_numbers"
            error(ValueError, "lax.dot", problem, got=got, expected=expected, fix=fix)
        dimension_numbers = ((x.ndim - 1,), (0,)), ((), ())
    return dot_general(
        lhs, rhs, dimension_numbers, precision, preferred_element_type, out_sharding=out_sharding
    )


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: object = None) -> Array:
    """Computes batches of matrix products, over the leading dimensions.

    Shapes:     lhs: L[b, i, k], rhs: R[b, k, j] -> T[b, i, j].
    Dtypes:     as dot_general.

    Raises:
        ValueError: the operands have different ranks, or fewer than two dimensions.
        TypeError: the dimensions do not fit together.

    Example:
        >>> lax.batch_matmul(jnp.ones((7, 2, 3)), jnp.ones((7, 3, 5))).shape
        (7, 2, 5)
    """
    x, y = aval_of(lhs), aval_of(rhs)
    if x.ndim != y.ndim or x.ndim < 2:
        problem = "the operands must have equal ranks of at least 2."
        error(ValueError, "lax.batch_matmul", problem, got={"lhs": x, "rhs": y})
    batch = tuple(range(x.ndim - 2))
    numbers = ((x.ndim - 1,), (x.ndim - 2,)), (batch, batch)
    return dot_general(lhs, rhs, numbers, precision)
