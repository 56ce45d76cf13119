"""Sparse arrays equal JAX's: their buffers, and what is computed from them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.experimental.sparse import samples

pytestmark = pytest.mark.feature("EC-05")

FIGURES = json.loads(Path(__file__).with_name("recorded.json").read_text(encoding="utf-8"))
CASES = [(group, name) for group, calls in samples.GROUPS.items() for name in calls]


@pytest.mark.parametrize(("group", "name"), CASES, ids=map("-".join, CASES))
def test_result_equals_that_of_jax(group: str, name: str) -> None:
    found = samples.outcome(samples.Library("minijax"), group, name)

    assert len(found) == len(FIGURES[group][name])
    for actual, entry in zip(found, FIGURES[group][name], strict=True):
        assert (actual.dtype.name, list(actual.shape)) == (entry["dtype"], entry["shape"])
        expected = np.reshape(entry["values"], entry["shape"])
        np.testing.assert_allclose(actual, expected, rtol=1e-6)
