"""The figures of `recorded.json`, and how ours are compared with them."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from jaxlib import version

# The figures were recorded with jaxlib 0.10 on x86-64, where those with AVX2 and with AVX-512 are
# the same; other versions of XLA round some functions otherwise, and so may other processors.
# Its log1p of 64 bits was 128 floats off near -1, of which a small share of a Dirichlet sample,
# an exponential, makes as many thousands.
OTHER_XLA = not version.__version__.startswith("0.10.") or platform.machine() not in (
    "x86_64",
    "AMD64",
)
OTHER_ROUNDING = {"float32": 64, "complex64": 64, "float64": 8192, "complex128": 8192}

FIGURES: dict[str, Any] = json.loads(Path(__file__).with_name("recorded.json").read_text())


def figure(name: str, *, x64: bool = False) -> np.ndarray:
    """What JAX answered to a call."""
    entry = FIGURES["x64" if x64 else "x32"][name]
    dtype = getattr(ml_dtypes, entry["dtype"], None) or entry["dtype"]
    return np.frombuffer(bytes.fromhex(entry["bytes"]), dtype).reshape(entry["shape"])


def ulps_apart(x: np.ndarray, y: np.ndarray) -> int:
    """The largest distance of two arrays, counted in floats between; equal bits are 0 apart."""
    if np.iscomplexobj(x):
        part = x.real.dtype
        x, y = x.ravel().view(part), y.ravel().view(part)
    ranks = [_rank(array) for array in (x, y)]
    return max((abs(int(a) - int(b)) for a, b in zip(*ranks, strict=True)), default=0)


def _rank(x: np.ndarray) -> np.ndarray:
    """The place of each float among all floats; of each integer, itself."""
    if x.dtype.kind in "biu":
        return x.ravel()
    signed = x.ravel().view(f"int{8 * x.dtype.itemsize}").astype(object)
    lowest = 1 << (8 * x.dtype.itemsize - 1)
    return np.array([s if s >= 0 else -(s + lowest) for s in signed], object)


def check(name: str, actual: object, *, x64: bool = False, ulps: int = 0) -> None:
    """Compares a result with JAX's: its dtype, its shape, and its bits up to a distance."""
    expected = figure(name, x64=x64)
    host = np.asarray(actual)
    assert (host.dtype, host.shape) == (expected.dtype, expected.shape)
    slack = OTHER_ROUNDING.get(expected.dtype.name, 0) if OTHER_XLA else 0
    assert ulps_apart(host, expected) <= ulps + slack


def check_close(name: str, actual: np.ndarray, expected: np.ndarray) -> None:
    """Compares what has passed through LAPACK, whose last bits depend on the processor.

    Tolerance: 64 roundings of the largest element; the sums behind an element are short ones.
    """
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    slack = 64 * float(np.finfo(actual.dtype).eps * np.abs(expected).max())
    np.testing.assert_allclose(actual, expected, rtol=0, atol=slack, err_msg=name)
