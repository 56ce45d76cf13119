"""Records of products that are summed over some dimensions."""

from __future__ import annotations

import numpy as np

from minijax import lax
from tests.lax.records import Arg, ErrorSample, Record

_EVERY = ("float32", "bool", "int8", "uint16", "int32", "float16", "bfloat16", "complex64")
_X = np.zeros((3, 4), np.float32)


def _wide(x):
    """Halves as floats that NumPy multiplies."""
    return x.astype(np.float64) if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x


def _einsum(subscripts):
    return lambda x, y: np.einsum(subscripts, _wide(x), _wide(y))


def _record(case, numbers, subscripts, shapes, **options):
    return Record(
        name="dot_general",
        case=case,
        call=lambda x, y: lax.dot_general(x, y, numbers),
        oracle=_einsum(subscripts),
        args=tuple(map(Arg, shapes)),
        grad=(0, 1),
        **options,
    )


def _faulty(text, numbers, error=TypeError, shape=(4, 5), **options):
    return ErrorSample(
        lambda x, y: lax.dot_general(x, y, numbers, **options),
        (_X, np.zeros(shape, np.float32)),
        error,
        text,
    )


_MATMUL = ((1,), (0,)), ((), ())
_ERRORS = (
    _faulty("contracting dimensions of lhs and rhs differ", (((1,), (1,)), ((), ()))),
    _faulty("contracting dimensions of lhs and rhs differ", (((1,), ()), ((), ()))),
    _faulty("batch dimensions of lhs and rhs differ", (((1,), (0,)), ((0,), (1,)))),
    _faulty("do not fit lhs", (((-1,), (0,)), ((), ()))),
    _faulty("do not fit lhs", (((1, 1), (0, 0)), ((), ()))),
    _faulty("do not fit rhs", (((1,), (2,)), ((), ()))),
    _faulty("do not fit rhs", _MATMUL, shape=()),
    _faulty("not a precision", _MATMUL, ValueError, precision="exact"),
    _faulty("not a dtype", _MATMUL, preferred_element_type="foo"),
)

RECORDS = [
    Record(
        name="dot_general",
        call=lax.dot,
        oracle=_einsum("ij,jk->ik"),
        args=(Arg((3, 4)), Arg((4, 2))),
        dtypes=_EVERY,
        grad=(0, 1),
        errors=(
            *_ERRORS,
            ErrorSample(lax.dot, (_X, _X), ValueError, "fit together"),
            ErrorSample(lax.dot, (_X, 2.0), ValueError, "fit together"),
            ErrorSample(lax.dot, (_X, _X.T[:, :, None]), ValueError, "fit together"),
            ErrorSample(lax.batch_matmul, (_X, _X[None]), ValueError, "equal ranks"),
            ErrorSample(lax.batch_matmul, (_X[0], _X[0]), ValueError, "of at least 2"),
        ),
    ),
    Record(
        name="dot_general",
        case="vectors",
        call=lax.dot,
        oracle=_einsum("i,i->"),
        args=(Arg((4,)), Arg((4,))),
        grad=(0, 1),
    ),
    Record(
        name="dot_general",
        case="vector_matrix",
        call=lax.dot,
        oracle=_einsum("i,ij->j"),
        args=(Arg((4,)), Arg((4, 3))),
        grad=(0, 1),
    ),
    Record(
        name="dot_general",
        case="batch_matmul",
        call=lax.batch_matmul,
        oracle=_einsum("abij,abjk->abik"),
        args=(Arg((2, 3, 2, 4)), Arg((2, 3, 4, 5))),
        grad=(0, 1),
    ),
    _record("outer", (((), ()), ((), ())), "ij,k->ijk", ((2, 3), (4,))),
    _record("batch_only", (((), ()), ((1,), (0,))), "ib,bj->bij", ((2, 3), (3, 4))),
    _record("whole", (((0, 1), (1, 0)), ((), ())), "ij,ji->", ((2, 3), (3, 2))),
    _record(
        "anywhere",
        (((3, 0), (1, 2)), ((1,), (3,))),
        "sbit,jtsb->bij",
        ((2, 3, 4, 5), (6, 5, 2, 3)),
        dtypes=_EVERY,
    ),
    _record(
        "batches_crossed",
        (((2,), (2,)), ((0, 1), (1, 0))),
        "abk,bakj->abj",
        ((2, 3, 4), (3, 2, 4, 5)),
    ),
    _record("empty_sum", _MATMUL, "ij,jk->ik", ((3, 0), (0, 2))),
    _record("empty", _MATMUL, "ij,jk->ik", ((0, 4), (4, 2))),
    Record(
        name="dot_general",
        case="preferred",
        call=lambda x, y: lax.dot(x, y, preferred_element_type=np.float32),
        oracle=_einsum("ij,jk->ik"),
        args=(Arg((3, 4)), Arg((4, 2))),
        dtypes=("float16", "bfloat16", "int8", "bool"),
        tolerance=2e-5,
    ),
    Record(
        name="dot_general",
        case="mixed",
        call=lax.dot,
        oracle=_einsum("ij,jk->ik"),
        args=(Arg((3, 4), "float32"), Arg((4, 2))),
        dtypes=("float32", "float16", "int32", "complex64"),
        tolerance=2e-5,
        grad=(0, 1),
    ),
    Record(
        name="dot_general",
        case="precise",
        call=lambda x, y: lax.dot(x, y, precision=("highest", lax.Precision.HIGH)),
        oracle=_einsum("ij,jk->ik"),
        args=(Arg((3, 4)), Arg((4, 2))),
        grad=(0, 1),
    ),
]
