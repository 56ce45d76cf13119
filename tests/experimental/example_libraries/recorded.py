"""The figures of `recorded.json`, and how ours are compared with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.experimental.example_libraries import samples

FIGURES: dict[str, Any] = json.loads(Path(__file__).with_name("recorded.json").read_text())


def check(group: str, name: str, *, rtol: float, atol: float) -> None:
    """Runs a call and compares its results with JAX's."""
    found = samples.outcome(samples.Library("minijax"), samples.CALLS[group][name])
    for actual, entry in zip(found, FIGURES[group][name], strict=True):
        assert (actual.dtype.name, list(actual.shape)) == (entry["dtype"], entry["shape"])
        dtype = np.dtype(entry["dtype"])
        values = np.array(entry["values"]).astype(np.zeros((), dtype).real.dtype)
        expected = values.view(dtype).reshape(entry["shape"])
        np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)
