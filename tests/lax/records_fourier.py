"""Records of Fourier transforms."""

from __future__ import annotations

import numpy as np

from minijax import lax
from tests.lax.records import Arg, ErrorSample, Record

_VALUES = np.zeros((3, 4), np.float32)
_COMPLEX = ("complex64", "float32", "complex128", "int32", "bfloat16", "bool")
_TOLERANCE = {"int32": 2e-5, "bool": 2e-5}
_REAL = ("float32", "float64", "int32", "bool")


def _record(case, kind, lengths, arg, oracle, dtypes):
    axes = tuple(range(-len(lengths), 0))
    return Record(
        name="fft",
        case=case,
        call=lambda x: lax.fft(x, kind, lengths),
        oracle=lambda x: oracle(_wide(x), lengths, axes),
        args=(Arg(arg),),
        dtypes=dtypes,
        grad=(0,),
        tolerance=_TOLERANCE,
    )


def _wide(x):
    """Numbers that NumPy transforms: short floats made longer."""
    return x.astype(np.float64) if x.dtype.itemsize == 2 else x


def _error(x, kind, lengths, match, error=ValueError):
    return ErrorSample(lax.fft, (x, kind, lengths), error, match)


RECORDS = [
    _record("forth", "FFT", (5,), (2, 5), np.fft.fftn, _COMPLEX),
    _record("back", lax.FftType.IFFT, (4, 3), (2, 4, 3), np.fft.ifftn, _COMPLEX[:3]),
    _record("three", "fft", (2, 3, 4), (2, 3, 4), np.fft.fftn, _COMPLEX[:1]),
    _record("real", "RFFT", (6,), (2, 6), np.fft.rfftn, _REAL),
    _record("real_odd", "RFFT", (3, 5), (3, 5), np.fft.rfftn, _REAL[:1]),
    _record("real_back", "IRFFT", (6,), (2, 4), np.fft.irfftn, _COMPLEX[:3]),
    _record("real_back_odd", "IRFFT", (2, 3, 7), (2, 3, 4), np.fft.irfftn, _COMPLEX[:1]),
    _record("single", "RFFT", (1,), (3, 1), np.fft.rfftn, _REAL[:1]),
    _record("nothing", "RFFT", (4,), (0, 4), np.fft.rfftn, _REAL[:1]),
    Record(
        name="fft",
        case="no_dimension",
        call=lambda x: lax.fft(x, "FFT", ()),
        oracle=lambda x: x.astype(np.complex64),
        args=(Arg((2,)),),
        errors=(
            _error(_VALUES, "DCT", (4,), "unknown kind"),
            _error(_VALUES, 0, (4,), "unknown kind", TypeError),
            _error(_VALUES, "FFT", 4, "fft_lengths must be a sequence", TypeError),
            _error(_VALUES, "FFT", (5,), "the lengths do not fit"),
            _error(_VALUES, "IRFFT", (5,), r"last dimensions \(3,\)"),
            _error(_VALUES[:, :0], "RFFT", (0,), "at least one value"),
            _error(_VALUES, "FFT", (1, 3, 4), "at most 2 lengths"),
            _error(_VALUES[None, None], "FFT", (1, 1, 3, 4), "numpy.fft.fftn"),
            _error(_VALUES + 0j, "RFFT", (4,), "RFFT does not take complex"),
            _error(_VALUES.astype(np.float16), "RFFT", (4,), "RFFT does not take float16"),
        ),
    ),
]
