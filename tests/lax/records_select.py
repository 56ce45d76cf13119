"""Records of elementwise choices."""

from __future__ import annotations

import numpy as np

from minijax.lax import binary
from tests.lax.records import Arg, ErrorSample, Record

_X = np.ones((2, 3), "float32")
_PRED = np.ones((2, 3), "bool")

RECORDS = [
    Record(
        name="select_n",
        call=binary.select,
        oracle=np.where,
        args=(Arg((2, 3), "bool"), Arg((2, 3)), Arg((2, 3))),
        dtypes=("float32", "int32", "bool", "complex64", "bfloat16"),
        grad=(1, 2),
        errors=(
            ErrorSample(binary.select, (_PRED, _X, _X[:1]), TypeError, "different shapes"),
            ErrorSample(binary.select, (_PRED, _X, _X.astype(int)), TypeError, "different dtypes"),
            ErrorSample(binary.select, (_PRED[0], _X, _X), TypeError, "does not fit the cases"),
            ErrorSample(binary.select, (_X, _X, _X), TypeError, "which: f32"),
            ErrorSample(binary.select_n, (_PRED,), ValueError, "at least one case"),
            ErrorSample(binary.select_n, (_PRED, _X, _X, _X), TypeError, "among 3 cases"),
        ),
    ),
    Record(
        name="select_n",
        case="scalar",
        call=binary.select,
        oracle=np.where,
        args=(Arg((), "bool"), Arg((2, 3)), Arg((2, 3))),
        grad=(1, 2),
    ),
    Record(
        name="select_n",
        case="all-scalars",
        call=binary.select,
        oracle=np.where,
        args=(Arg((), "bool"), Arg(()), Arg(())),
    ),
    Record(
        name="select_n",
        case="indices",
        call=binary.select_n,
        oracle=lambda which, *cases: np.choose(which, cases),
        args=(Arg((2, 3), "int32", 0, 3), *[Arg((2, 3))] * 4),
        grad=(1, 2, 3, 4),
    ),
    Record(
        name="select_n",
        case="scalar-index",
        call=binary.select_n,
        oracle=lambda which, *cases: cases[which],
        args=(Arg((), "int32", 0, 2), *[Arg((2, 3))] * 3),
        grad=(1, 3),
    ),
    Record(
        name="select_n",
        case="one-case",
        call=binary.select_n,
        oracle=lambda which, x: x,
        args=(Arg((2, 3), "int32", 0, 0), Arg((2, 3))),
        grad=(1,),
    ),
    Record(
        name="clamp",
        call=binary.clamp,
        oracle=lambda low, x, high: np.clip(x, low, high),
        args=(Arg((2, 3), low=-2, high=-1), Arg((2, 3)), Arg((2, 3), low=1, high=2)),
        dtypes=("float32", "int32", "float16"),
        grad=(0, 1, 2),
        errors=(
            ErrorSample(binary.clamp, (_X, 1.0, _X), TypeError, "bounds do not fit"),
            ErrorSample(binary.clamp, (_X, _X, _X.astype(int)), TypeError, "different dtypes"),
        ),
    ),
    Record(
        name="clamp",
        case="scalars",
        call=binary.clamp,
        oracle=lambda low, x, high: np.clip(x, low, high),
        args=(Arg((), low=-1, high=-1), Arg((2, 3)), Arg((), low=1, high=1)),
        dtypes=("float32", "int8"),
        grad=(0, 1, 2),
    ),
]
