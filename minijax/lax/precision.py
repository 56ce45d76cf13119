"""How exactly dots and convolutions are computed: the `precision` argument, and its attributes."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes
from minijax.core.config import default_matmul_precision
from minijax.core.errors import error


class Precision(enum.Enum):
    """How exactly an accelerator multiplies floats; a CPU always does so in full.

    Source:     mirrors jax.lax.Precision (0.10).

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

    Source:     mirrors jax.lax.DotAlgorithm (0.10).

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

    Source:     mirrors jax.lax.DotAlgorithmPreset (0.10).

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


def canonicalize_precision(precision: Any, name: str) -> CanonicalPrecision:
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
    error(
        ValueError,
        name,
        "not a precision.",
        got=f"precision: {precision!r}",
        expected=f"None, one of {', '.join(_NAMES)}, a lax.Precision, a pair of these, or a "
        "lax.DotAlgorithm, lax.DotAlgorithmPreset or the name of one",
    )


def precision_config(ctx: Any, precision: CanonicalPrecision) -> Any:
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
    ctx: Any,
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
        error(
            ValueError,
            "lax.dot_general",
            f"the algorithm {algorithm.name} does not run on CPUs.",
            expected="one of " + ", ".join(sorted(_ON_CPU)),
        )
    form = _FORMATS[algorithm.name]
    if form.operand is None and not (_is_float8(lhs) and _is_float8(rhs)):
        error(
            ValueError,
            "lax.dot_general",
            f"the algorithm {algorithm.name} multiplies 8-bit floats only.",
            got=f"operands of dtypes {lhs} and {rhs}",
        )
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


def _plan_explicit(ctx: Any, algorithm: DotAlgorithm) -> DotPlan:
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


def _element(ctx: Any, dtype: np.dtype[Any]) -> str:
    return str(ctx.tensor_type((), dtype).element_type)


def _is_float8(dtype: np.dtype[Any]) -> bool:
    return dtype.name.startswith("float8_")
