"""The figures of `recorded.json`, and how ours are compared with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import minijax as jax
from tests.nn import samples

FIGURES: dict[str, Any] = json.loads(Path(__file__).with_name("recorded.json").read_text())

RTOL = {"float16": 2e-3, "bfloat16": 2e-2}


def array_of(entry: dict[str, Any]) -> np.ndarray:
    """A recorded array."""
    dtype = np.dtype(getattr(ml_dtypes, entry["dtype"], None) or entry["dtype"])
    part = np.zeros((), dtype).real.dtype
    return np.array(entry["values"]).astype(part).view(dtype).reshape(entry["shape"])


def check(group: str, name: str, *, rtol: float, atol: float = 0.0) -> None:
    """Runs a call and compares its outcome with JAX's: the error, or types and values."""
    call, outcome = samples.CALLS[group][name], FIGURES[group][name]
    if isinstance(outcome, str):
        with pytest.raises(Exception) as caught:  # noqa: PT011  the recorded name tells which
            call(jax)
        assert outcome in [kind.__name__ for kind in type(caught.value).__mro__]
        return
    result = call(jax)
    results = result if isinstance(result, tuple) else (result,)
    for actual, entry in zip(results, outcome, strict=True):
        described = (actual.dtype.name, actual.weak_type, list(actual.shape))
        assert described == (entry["dtype"], entry["weak"], entry["shape"])
        check_values(np.asarray(actual), array_of(entry), rtol, atol)


def check_values(actual: np.ndarray, expected: np.ndarray, rtol: float, atol: float) -> None:
    """Compares values, and the signs of zeros."""
    rtol = max(rtol, RTOL.get(expected.dtype.name, 0))
    if actual.dtype.kind not in "biufc":
        actual, expected = actual.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)
