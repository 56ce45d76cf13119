"""Records of operations on references: each call makes one, so that it is a function of arrays."""

from __future__ import annotations

import numpy as np

from minijax.lax import references
from minijax.lax.reference_indexing import ds
from tests.lax.records import Arg, ErrorSample, Record

_DTYPES = ("float32", "bool", "int8", "int32", "bfloat16", "complex64")
_NUMBERS = ("float32", "int32", "bfloat16", "complex64")
_X = np.zeros((3, 4), np.float32)
_ROWS = np.array([2, 0, -1], np.int32)
_COLUMNS = np.array([[1], [3]], np.int32)


def _get(idx):
    return lambda x: references.get(references.new_ref(x), idx)


def _swap(idx):
    def call(x, value):
        ref = references.new_ref(x)
        before = references.swap(ref, idx, value)
        return before, references.freeze(ref)

    return call


def _swapped(idx):
    def oracle(x, value):
        after = x.copy()
        after[idx] = value
        return x[idx], after

    return oracle


def _add(idx):
    def call(x, value):
        ref = references.new_ref(x)
        references.addupdate(ref, idx, value)
        return references.freeze(ref)

    return call


def _added(idx):
    def oracle(x, value):
        after = x.copy()
        np.add.at(after, idx, value)
        return after

    return oracle


def _get_from(x, i):
    return references.get(references.new_ref(x), (i, ds(i, 2)))


def _swap_from(x, value, i):
    ref = references.new_ref(x)
    references.set(ref, (i, ds(i, 2)), value)
    return references.freeze(ref)


def _swapped_from(x, value, i):
    after = x.copy()
    after[i, i : i + 2] = value
    return after


def _frozen_twice(x):
    ref = references.new_ref(x)
    references.freeze(ref)
    return references.freeze(ref)


_INDICES = {
    "whole": (..., (3, 4)),
    "row": (1, (4,)),
    "block": ((slice(1, 3), slice(0, 2)), (2, 2)),
    "strided": ((slice(None, None, 2), slice(1, None, 2)), (2, 2)),
    "last": ((-1, -2), ()),
    "rows": ((_ROWS,), (3, 4)),
    "columns": ((slice(1, None), _COLUMNS), (2, 2, 1)),
    "pairs": ((_ROWS, np.array([0, 1, 3])), (3,)),
    "mixed": ((1, _COLUMNS), (2, 1)),
}

RECORDS = [
    Record(
        name="new_ref",
        call=lambda x: references.new_ref(x)[...],
        oracle=lambda x: x,
        args=(Arg((3, 4)),),
        dtypes=_DTYPES,
        grad=(0,),
        errors=(
            ErrorSample(references.new_ref, ([1, 2],), TypeError, "array"),
            ErrorSample(
                lambda: references.new_ref(_X, memory_space="host"),
                (),
                NotImplementedError,
                "memory spaces",
            ),
        ),
    ),
    Record(
        name="freeze",
        call=lambda x: references.freeze(references.new_ref(x)),
        oracle=lambda x: x,
        args=(Arg((3, 4)),),
        dtypes=_DTYPES,
        grad=(0,),
        errors=(
            ErrorSample(references.freeze, (_X,), ValueError, "expected a reference"),
            ErrorSample(_frozen_twice, (_X,), ValueError, "was frozen"),
        ),
    ),
    *(
        Record(
            name="get",
            case=case,
            call=_get(idx),
            oracle=lambda x, idx=idx: x[idx],
            args=(Arg((3, 4)),),
            dtypes=_DTYPES if case in ("block", "rows") else ("float32",),
            grad=(0,),
        )
        for case, (idx, _) in _INDICES.items()
    ),
    Record(
        name="get",
        case="traced",
        call=_get_from,
        oracle=lambda x, i: x[i, i : i + 2],
        args=(Arg((3, 4)), Arg((), "int32", low=0, high=2)),
        grad=(0,),
        errors=(
            ErrorSample(_get(3), (_X,), ValueError, "out of bounds"),
            ErrorSample(_get((0, 0, 0)), (_X,), ValueError, "too many indices"),
            ErrorSample(_get((..., ...)), (_X,), ValueError, r"more than one \.\.\."),
            ErrorSample(_get(slice(None, None, -1)), (_X,), ValueError, "positive step"),
            ErrorSample(_get(ds(2, 2)), (_X,), ValueError, "out of bounds"),
            ErrorSample(_get(0.5), (_X,), TypeError, "no integer, slice or array"),
            ErrorSample(_get(_X > 0), (_X,), IndexError, "masks"),
            ErrorSample(_get((_ROWS, np.arange(2))), (_X,), ValueError, "do not fit together"),
        ),
    ),
    *(
        Record(
            name="swap",
            case=case,
            call=_swap(idx),
            oracle=_swapped(idx),
            args=(Arg((3, 4)), Arg(shape)),
            dtypes=_DTYPES if case in ("block", "strided") else ("float32",),
            grad=(0, 1),
        )
        for case, (idx, shape) in _INDICES.items()
        if case not in ("rows", "pairs")
    ),
    Record(
        name="swap",
        case="traced",
        call=_swap_from,
        oracle=_swapped_from,
        args=(Arg((3, 4)), Arg((2,)), Arg((), "int32", low=0, high=2)),
        grad=(0, 1),
        errors=(
            ErrorSample(_swap(0), (_X, np.float32(1)), ValueError, "another shape"),
            ErrorSample(_swap((0, 0)), (_X, np.int32(1)), ValueError, "another dtype"),
        ),
    ),
    *(
        Record(
            name="addupdate",
            case=case,
            call=_add(idx),
            oracle=_added(idx),
            args=(Arg((3, 4)), Arg(shape)),
            dtypes=_NUMBERS if case in ("block", "rows") else ("float32",),
            grad=(0, 1),
            errors=(ErrorSample(_add(0), (_X, np.float32(1)), ValueError, "another shape"),)
            if case == "whole"
            else (),
        )
        for case, (idx, shape) in _INDICES.items()
    ),
]
