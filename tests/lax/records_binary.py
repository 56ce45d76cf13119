"""Records of elementwise functions of two arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.lax import binary, unary
from tests.lax.records import Arg, ErrorSample, Record

_ARITHMETIC = ("float32", "int32", "uint8", "complex64", "float64", "float16")
_ORDERED = ("float32", "int32", "uint32", "bool", "float16")
_INTEGERS = ("int32", "uint8", "int64")


def _pair(
    call: Callable[..., Any],
    oracle: Callable[..., Any],
    *,
    name: str = "",
    case: str = "",
    shapes: tuple[tuple[int, ...], tuple[int, ...]] = ((2, 3), (2, 3)),
    low: tuple[float, float] = (-3.0, -3.0),
    high: tuple[float, float] = (3.0, 3.0),
    dtypes: tuple[str, ...] = _ARITHMETIC,
    grad: tuple[int, ...] = (0, 1),
    errors: tuple[ErrorSample, ...] = (),
    tolerance: float = 0.0,
) -> Record:
    args = tuple(
        Arg(shape, low=least, high=most)
        for shape, least, most in zip(shapes, low, high, strict=True)
    )
    return Record(
        name=name or call.__name__,
        case=case,
        call=call,
        oracle=oracle,
        args=args,
        dtypes=dtypes,
        grad=grad,
        errors=errors,
        tolerance=tolerance,
    )


def _wrong_pairs(call: Callable[..., Any]) -> tuple[ErrorSample, ...]:
    x = np.ones((4, 8), "float32")
    return (
        ErrorSample(call, (x, np.ones((4, 8), "int32")), TypeError, "different dtypes"),
        ErrorSample(call, (x, np.ones(8, "float32")), TypeError, "ranks differ"),
        ErrorSample(call, (x, np.ones((4, 7), "float32")), TypeError, "do not fit together"),
        ErrorSample(call, (x, "text"), TypeError, "not a valid type of value"),
    )


def _truncated_quotient(x: Any, y: Any) -> Any:
    if x.dtype.kind in "iu":
        return np.trunc(x / y).astype(x.dtype)
    return x / y


def _comparison(call: Callable[..., Any], oracle: Callable[..., Any], *more: str) -> Record:
    return _pair(call, oracle, dtypes=(*_ORDERED, *more), grad=(), low=(0, 0), high=(2, 2))


def _total_order(name: str, oracle: Callable[..., Any]) -> list[Record]:
    primitive = {"eq_to": binary.eq_to_p, "le_to": binary.le_to_p, "lt_to": binary.lt_to_p}[name]
    special = np.array([-np.inf, -1.0, -0.0, 0.0, 1.0, np.inf, np.nan], "float32")
    ranks = np.arange(7)
    table = Record(
        name=name,
        case="special",
        call=primitive.bind,
        oracle=lambda x, y: oracle(ranks[:, None], ranks[None, :]),
        args=(special[:, None], special[None, :]),
        batch=False,
    )
    random = _pair(primitive.bind, oracle, name=name, dtypes=("float32", "int32"), grad=())
    return [table, random]


def _lexicographic(better: Callable[..., Any]) -> Callable[..., Any]:
    def oracle(x: Any, y: Any) -> Any:
        first = np.where(x.real == y.real, better(x.imag, y.imag), better(x.real, y.real))
        return np.where(first, x, y)

    return oracle


def _bits(
    call: Callable[..., Any], oracle: Callable[..., Any], *, name: str, **options: Any
) -> Record:
    refused = (np.ones(2, "float32"), np.ones(2, "float32"))
    return _pair(
        call,
        oracle,
        name=name,
        low=(0, 0),
        high=(100, 7),
        grad=(),
        errors=(ErrorSample(call, refused, TypeError, "does not accept dtype float32"),),
        **{"dtypes": _INTEGERS, **options},
    )


def _upper_half(x: Any, y: Any) -> Any:
    # Python's integers are as wide as it takes.
    products = x.astype(object) * y.astype(object)
    return (products >> (8 * x.dtype.itemsize)).astype(x.dtype)


def _shift_right_logical(x: Any, y: Any) -> Any:
    return (x.view(f"uint{8 * x.dtype.itemsize}") >> y.view(f"uint{8 * y.dtype.itemsize}")).view(
        x.dtype
    )


RECORDS = [
    _pair(binary.add, np.add, errors=_wrong_pairs(binary.add)),
    _pair(binary.add, np.add, case="scalar", shapes=((2, 3), ())),
    _pair(binary.add, np.add, case="stretched", shapes=((2, 1), (1, 3))),
    _pair(binary.add, np.add, case="empty", shapes=((0, 3), (1, 3)), dtypes=("float32",)),
    _pair(binary.sub, np.subtract, errors=_wrong_pairs(binary.sub)),
    _pair(binary.sub, np.subtract, case="scalar", shapes=((), (2, 3)), dtypes=("float32",)),
    _pair(binary.mul, np.multiply, errors=_wrong_pairs(binary.mul)),
    _pair(binary.mul, np.multiply, case="scalar", shapes=((), (2, 3)), dtypes=("float32",)),
    _pair(binary.mul, np.multiply, case="stretched", shapes=((2, 1), (2, 3)), dtypes=("float32",)),
    _pair(
        binary.div, _truncated_quotient, low=(-9, 1), high=(9, 3), errors=_wrong_pairs(binary.div)
    ),
    _pair(binary.div, np.divide, case="complex", dtypes=("complex64",)),
    _pair(
        binary.rem,
        np.fmod,
        low=(-9, 1),
        high=(9, 3),
        dtypes=("float32", "int32", "uint8", "float64"),
        errors=_wrong_pairs(binary.rem),
    ),
    _pair(binary.max, np.maximum, dtypes=_ORDERED, errors=_wrong_pairs(binary.max)),
    _pair(binary.min, np.minimum, dtypes=_ORDERED),
    _pair(binary.max, _lexicographic(np.greater), case="complex", dtypes=("complex64",)),
    _pair(binary.min, _lexicographic(np.less), case="complex", dtypes=("complex64",)),
    _pair(binary.atan2, np.arctan2, dtypes=("float32", "float64")),
    _pair(
        binary.atan2,
        lambda x, y: -1j * np.log((y + 1j * x) / np.sqrt(x * x + y * y)),
        case="complex",
        low=(0.5, 0.5),
        dtypes=("complex64",),
        tolerance=1e-4,
    ),
    _pair(binary.nextafter, np.nextafter, dtypes=("float32", "float64"), grad=()),
    _comparison(binary.eq, np.equal, "complex64"),
    _comparison(binary.ne, np.not_equal, "complex64"),
    _comparison(binary.lt, np.less),
    _comparison(binary.le, np.less_equal),
    _comparison(binary.gt, np.greater),
    _comparison(binary.ge, np.greater_equal),
    *_total_order("eq_to", np.equal),
    *_total_order("le_to", np.less_equal),
    *_total_order("lt_to", np.less),
    _bits(binary.bitwise_and, np.bitwise_and, name="and"),
    _bits(binary.bitwise_or, np.bitwise_or, name="or"),
    _bits(binary.bitwise_xor, np.bitwise_xor, name="xor"),
    _bits(binary.bitwise_and, np.logical_and, name="and", case="bool", dtypes=("bool",)),
    _bits(binary.shift_left, np.left_shift, name="shift_left"),
    _bits(binary.shift_right_arithmetic, np.right_shift, name="shift_right_arithmetic"),
    _bits(binary.shift_right_logical, _shift_right_logical, name="shift_right_logical"),
    _pair(
        binary.mulhi,
        _upper_half,
        low=(-(2.0**62), -(2.0**62)),
        high=(2.0**62, 2.0**62),
        dtypes=("int32", "uint8", "int16", "int64", "uint64"),
        grad=(),
    ),
    _pair(unary.pow, np.power, low=(0.5, -2), dtypes=("float32", "float64")),
    _pair(
        unary.pow,
        np.power,
        case="complex",
        low=(0.5, -1),
        high=(2, 1),
        dtypes=("complex64",),
        tolerance=1e-4,
    ),
    _pair(
        unary.pow,
        np.power,
        case="scalar",
        shapes=((2, 3), ()),
        low=(0.5, 0.5),
        dtypes=("float32",),
    ),
    Record(
        name="pow",
        case="integer-exponent",
        call=unary.pow,
        oracle=np.power,
        args=(Arg((2, 3)), Arg((2, 3), "int32", -2, 3)),
        grad=(0,),
        errors=(
            ErrorSample(unary.pow, (np.arange(3), 2), TypeError, "does not accept dtype int32"),
            ErrorSample(
                unary.pow,
                (np.ones(3, "float32"), np.ones(3, "float16")),
                TypeError,
                "exponent's dtype",
            ),
        ),
    ),
]
