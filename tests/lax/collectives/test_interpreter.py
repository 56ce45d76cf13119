"""Single collectives, judged by StableHLO's reference interpreter."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from minijax import lax
from minijax.testing import interpreted
from tests.lax.collectives import stacked

# The interpreter runs as many devices at once as there are processors.
SIZES = {"x": 2}
CASES = {
    "psum": (lambda v: lax.psum(v, "x"), stacked.psum),
    "pmax": (lambda v: lax.pmax(v, "x"), stacked.pmax),
    "pmin": (lambda v: lax.pmin(v, "x"), stacked.pmin),
    "all_gather": (lambda v: lax.all_gather(v, "x"), lambda y: stacked.gather(y, 0, False)),
    "psum_scatter": (
        lambda v: lax.psum_scatter(v, "x", tiled=True),
        lambda y: stacked.scatter(y, 0, True),
    ),
    "all_to_all": (
        lambda v: lax.all_to_all(v, "x", 0, 1, tiled=True),
        lambda y: stacked.exchange(y, 0, 1, True),
    ),
    "ppermute": (
        lambda v: lax.ppermute(v, "x", [(0, 1)]),
        lambda y: stacked.permute(y, [(0, 1)]),
    ),
    "pbroadcast": (lambda v: lax.pbroadcast(v, "x", 1), lambda y: stacked.broadcast(y, 1)),
}


@pytest.mark.slow
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="the interpreter needs a processor for each")
@pytest.mark.parametrize("replicas", [False, True])
@pytest.mark.parametrize(("call", "oracle"), CASES.values(), ids=CASES)
def test_the_interpreter_agrees(call: Any, oracle: Any, replicas: bool) -> None:
    x = stacked.numbers(SIZES, (4, 3))
    np.testing.assert_array_equal(interpreted(call, SIZES, replicas=replicas)(x), oracle(x))


@pytest.mark.slow
@pytest.mark.feature("CO-21")
@pytest.mark.parametrize("replicas", [False, True])
def test_the_interpreter_finds_the_same_indices(replicas: bool) -> None:
    sizes = {"x": 2, "y": 3}

    def f(v: Any) -> Any:
        return lax.axis_index(("y", "x")) + v

    found = interpreted(f, sizes, replicas=replicas)(np.zeros((2, 3), np.int32))
    np.testing.assert_array_equal(found, stacked.axis_index(sizes, ("y", "x")))


@pytest.mark.slow
def test_what_the_interpreter_does_not_know_is_an_error() -> None:
    numbers = np.ones(4, np.int32)

    def f(v: Any) -> Any:
        return lax.ragged_all_to_all(v, v, *[numbers] * 4, axis_name="x")

    with pytest.raises(RuntimeError, match="cannot run the program"):
        interpreted(f, SIZES)(np.zeros((2, 4), np.float32))
