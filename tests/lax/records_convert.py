"""Records of conversions between element types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from minijax.lax import creation
from tests.lax.records import Arg, ErrorSample, Record


def _conversion(source: str, target: str, **options: Any) -> Record:
    low, high = (0, 9) if target.startswith("uint") else (-9, 9)
    dtype = np.dtype(getattr(ml_dtypes, target, target))
    return Record(
        name="convert_element_type",
        case=f"{source}-to-{target}",
        call=lambda x: creation.convert_element_type(x, target),
        oracle=lambda x: x.astype(dtype),
        args=(Arg((2, 3), low=low, high=high),),
        dtypes=(source,),
        **options,
    )


def _bitcast(source: str, target: str, shape: tuple[int, ...], oracle: Any) -> Record:
    return Record(
        name="bitcast_convert_type",
        case=f"{source}-to-{target}",
        call=lambda x: creation.bitcast_convert_type(x, target),
        oracle=oracle,
        args=(Arg(shape, low=-100, high=100),),
        dtypes=(source,),
    )


RECORDS = [
    _conversion("float32", "int32"),
    _conversion("float32", "uint8"),
    _conversion("float32", "bfloat16"),
    _conversion("float32", "complex64"),
    _conversion("float64", "float32"),
    _conversion("int32", "float32"),
    _conversion("int32", "bool"),
    _conversion("bool", "float32"),
    _conversion("int32", "int8"),
    _conversion("complex64", "bool"),
    Record(
        name="convert_element_type",
        case="float64-to-complex128",
        call=lambda x: creation.convert_element_type(x, "complex128"),
        oracle=lambda x: x.astype("complex128"),
        args=(Arg((2, 3)),),
        dtypes=("float64",),
        grad=(0,),
        errors=(
            ErrorSample(
                creation.convert_element_type, (1.0, None), ValueError, "new_dtype must be given"
            ),
            ErrorSample(creation.convert_element_type, (1.0, "O"), TypeError, "cannot have"),
        ),
    ),
    _bitcast("float32", "int32", (2, 3), lambda x: x.view("int32")),
    _bitcast("float32", "uint8", (2, 3), lambda x: x.view("uint8").reshape(2, 3, 4)),
    _bitcast("uint8", "float32", (3, 4), lambda x: x.view("float32").reshape(3)),
    Record(
        name="bitcast_convert_type",
        case="errors",
        call=lambda x: creation.bitcast_convert_type(x, "bool"),
        oracle=lambda x: x,
        args=(Arg((2,), "bool"),),
        errors=(
            ErrorSample(
                creation.bitcast_convert_type,
                (np.zeros(3, "uint8"), "uint16"),
                TypeError,
                "a last dimension of size 2",
            ),
            ErrorSample(
                creation.bitcast_convert_type, (np.zeros(3), "bool"), TypeError, "no bits to read"
            ),
        ),
    ),
    Record(
        name="reduce_precision",
        call=lambda x: creation.reduce_precision(x, 5, 10),
        oracle=lambda x: x.astype("float16").astype(x.dtype),
        args=(Arg((2, 3)),),
        dtypes=("float32", "float64"),
        errors=(
            ErrorSample(
                creation.reduce_precision, (np.ones(2), 0, 1), ValueError, "must be positive"
            ),
            ErrorSample(
                creation.reduce_precision, (np.ones(2, int), 5, 1), TypeError, "operand: i32"
            ),
        ),
    ),
]
