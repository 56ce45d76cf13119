"""Records of elementwise functions of one array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.lax import families, unary
from tests.lax.records import Arg, ErrorSample, Record

_FLOATS = ("float32", "float64", "float16")
_INEXACT = ("float32", "complex64", "float64", "bfloat16")
_REFUSES_INTEGERS = "does not accept dtype int32"


def _function(
    call: Callable[..., Any],
    oracle: Callable[..., Any],
    low: float = -2.0,
    high: float = 2.0,
    *,
    name: str = "",
    case: str = "",
    dtypes: tuple[str, ...] = _FLOATS,
    grad: tuple[int, ...] = (0,),
    errors: tuple[ErrorSample, ...] = (),
    tolerance: float = 0.0,
) -> Record:
    return Record(
        name=name or call.__name__,
        case=case,
        call=call,
        oracle=oracle,
        args=(Arg((2, 3), low=low, high=high),),
        dtypes=dtypes,
        grad=grad,
        errors=errors,
        tolerance=tolerance,
    )


def _inexact(call: Callable[..., Any], oracle: Callable[..., Any], *bounds: float) -> list[Record]:
    """A function of floats and complex numbers, differentiable; it refuses integers."""
    error = ErrorSample(call, (np.arange(3),), TypeError, _REFUSES_INTEGERS)
    return [
        _function(call, oracle, *bounds, dtypes=("float32", "float64", "float16", "bfloat16")),
        _function(
            call,
            oracle,
            *bounds,
            case="complex",
            dtypes=("complex64",),
            errors=(error,),
            tolerance=1e-4,
        ),
    ]


def _bits(call: Callable[..., Any], oracle: Callable[..., Any], name: str = "") -> Record:
    return _function(
        call,
        oracle,
        0,
        100,
        name=name,
        dtypes=("int32", "uint8", "int64"),
        grad=(),
        errors=(ErrorSample(call, (np.ones(3),), TypeError, "does not accept dtype float32"),),
    )


def _count(count: Callable[[str, int], int]) -> Callable[..., Any]:
    """A function of the binary digits of each element."""

    def oracle(x: Any) -> Any:
        bits = x.dtype.itemsize * 8
        digits = [count(np.binary_repr(v, bits), bits) for v in x.ravel()]
        return np.reshape(digits, x.shape).astype(x.dtype)

    return oracle


_EMPTY = Record(
    name="sin",
    case="empty",
    call=unary.sin,
    oracle=np.sin,
    args=(Arg((0, 3)),),
)

RECORDS = [
    *_inexact(unary.sin, np.sin),
    *_inexact(unary.cos, np.cos),
    *_inexact(unary.tan, np.tan, -1.2, 1.2),
    *_inexact(unary.asin, np.arcsin, -0.9, 0.9),
    *_inexact(unary.acos, np.arccos, -0.9, 0.9),
    *_inexact(unary.atan, np.arctan, -0.9, 0.9),
    *_inexact(unary.sinh, np.sinh),
    *_inexact(unary.cosh, np.cosh),
    *_inexact(unary.tanh, np.tanh, -1.2, 1.2),
    *_inexact(unary.asinh, np.arcsinh, -0.9, 0.9),
    *_inexact(unary.acosh, np.arccosh, 1.1, 3.0),
    *_inexact(unary.atanh, np.arctanh, -0.9, 0.9),
    *_inexact(unary.exp, np.exp),
    *_inexact(unary.exp2, np.exp2),
    *_inexact(unary.expm1, np.expm1),
    *_inexact(unary.log, np.log, 0.1, 4.0),
    *_inexact(unary.log1p, np.log1p, -0.5, 4.0),
    *_inexact(unary.logistic, lambda x: 1 / (1 + np.exp(-x))),
    *_inexact(unary.sqrt, np.sqrt, 0.1, 4.0),
    *_inexact(unary.rsqrt, lambda x: 1 / np.sqrt(x), 0.1, 4.0),
    _function(unary.cbrt, np.cbrt, 0.1, 4.0),
    _function(unary.square, np.square, dtypes=("float32", "complex64", "int32", "uint8")),
    _function(unary.neg, np.negative, dtypes=("float32", "complex64", "int32", "uint8")),
    _function(unary.sign, np.sign, dtypes=("float32", "int32", "uint32")),
    _function(unary.sign, lambda x: x / np.abs(x), case="complex", dtypes=("complex64",), grad=()),
    _function(unary.abs, np.abs, dtypes=("float32", "int32")),
    _function(
        unary.abs,
        np.abs,
        case="complex",
        dtypes=("complex64",),
        errors=(ErrorSample(unary.abs, (np.ones(2, bool),), TypeError, "dtype bool"),),
    ),
    _function(unary.floor, np.floor),
    _function(unary.ceil, np.ceil),
    _function(unary.is_finite, np.isfinite, grad=()),
    _function(
        unary.round,
        lambda x: np.trunc(x + np.copysign(0.5, x)),
        case="away-from-zero",
        errors=(ErrorSample(unary.round, (1.0, 7), ValueError, "7"),),
    ),
    _function(
        lambda x: unary.round(x, unary.RoundingMethod.TO_NEAREST_EVEN),
        np.round,
        name="round",
        case="to-even",
    ),
    _function(
        lambda x: unary.exp(x, accuracy=families.AccuracyMode.HIGHEST),
        np.exp,
        name="exp",
        case="highest-accuracy",
        dtypes=("float32",),
        errors=(
            ErrorSample(
                lambda x: unary.exp(x, accuracy=3), (1.0,), NotImplementedError, "not an accuracy"
            ),
            ErrorSample(families.Tolerance, (-1.0,), ValueError, "must be non-negative"),
        ),
    ),
    _function(
        lambda x: unary.log(x, accuracy=families.Tolerance(atol=1e-3, ulps=2)),
        np.log,
        0.1,
        4.0,
        name="log",
        case="tolerance",
        dtypes=("float32",),
    ),
    _bits(unary.bitwise_not, np.bitwise_not, name="not"),
    _function(
        unary.bitwise_not, np.logical_not, name="not", case="bool", dtypes=("bool",), grad=()
    ),
    _bits(unary.population_count, _count(lambda digits, bits: digits.count("1"))),
    _bits(unary.clz, _count(lambda digits, bits: bits - len(digits.lstrip("0")))),
    _function(unary.real, np.real, dtypes=("complex64",)),
    _function(unary.imag, np.imag, dtypes=("complex64",)),
    _function(unary.conj, np.conj, dtypes=("complex64",)),
    _function(unary.conj, lambda x: x + 0j, case="real", dtypes=("float32",)),
    Record(
        name="complex",
        call=unary.complex,
        oracle=lambda x, y: x + 1j * y,
        args=(Arg((2, 3)), Arg((2, 3))),
        dtypes=("float32", "float64"),
        grad=(0, 1),
        errors=(
            ErrorSample(
                unary.complex,
                (np.ones(2, "float16"), np.ones(2, "float16")),
                TypeError,
                "lax.complex: does not accept dtype float16",
            ),
        ),
    ),
    Record(
        name="complex",
        case="scalar",
        call=unary.complex,
        oracle=lambda x, y: x + 1j * y,
        args=(Arg((2, 3)), Arg(())),
        grad=(0, 1),
    ),
    _function(unary.stop_gradient, lambda x: x, dtypes=("float32", "int32", "bool"), grad=()),
    *(
        _function(
            lambda x, y=y: unary.integer_pow(x, y),
            lambda x, y=y: x ** x.dtype.type(y),
            0.5,
            2.0,
            name="integer_pow",
            case=str(y).replace("-", "minus-"),
            dtypes=("float32", "complex64"),
            tolerance=1e-4,
        )
        for y in (0, 1, 2, 7, -1, -3)
    ),
    _function(
        lambda x: unary.integer_pow(x, 3),
        lambda x: x**3,
        -5,
        5,
        name="integer_pow",
        case="integers",
        dtypes=("int32",),
        grad=(),
        errors=(
            ErrorSample(
                unary.integer_pow, (np.arange(3), -1), TypeError, "cannot be raised to negative"
            ),
            ErrorSample(unary.reciprocal, (np.arange(3),), TypeError, "negative powers"),
        ),
    ),
    _EMPTY,
]
