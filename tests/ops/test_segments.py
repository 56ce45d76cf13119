"""Reductions over segments against NumPy's unbuffered updates."""

from __future__ import annotations

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import ops

IDS = np.int32([2, 0, 2, 5, -1, 0, 2])
ROWS = np.random.default_rng(3).integers(-4, 5, (7, 2))
UFUNCS = {
    "segment_sum": (np.add, 0.0),
    "segment_prod": (np.multiply, 1.0),
    "segment_max": (np.maximum, -np.inf),
    "segment_min": (np.minimum, np.inf),
}


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("name", UFUNCS)
def test_segments_match_numpy_with_every_option(name):
    function, (ufunc, start) = getattr(ops, name), UFUNCS[name]
    rows = ROWS.astype(np.float32)

    def expected(ids, count):
        out = np.full((count, 2), start, np.float32)
        kept = (ids >= 0) & (ids < count)
        ufunc.at(out, ids[kept], rows[kept])
        return out

    def compute(rows, ids):
        order = jnp.argsort(ids)
        return [
            function(rows, ids, 4),
            function(rows, ids, 4, bucket_size=3),
            function(rows, ids, 4, mode="clip"),
            function(rows[order], ids[order], 6, indices_are_sorted=True),
            minijax.vmap(lambda row: function(row, ids, 4), 1, 1)(rows),
        ]

    found = minijax.jit(compute)(rows, IDS)
    wanted = [expected(IDS, 4)] * 5
    wanted[2] = expected(IDS.clip(0, 3), 4)
    wanted[3] = expected(IDS, 6)
    for actual, array in zip(found, wanted, strict=True):
        assert np.array_equal(actual, array)
    assert np.array_equal(function(rows, IDS), expected(IDS, 6))


def test_empty_segments_hold_what_changes_nothing():
    none = np.zeros(0, np.int32)
    assert ops.segment_max(none, none, 1).tolist() == [-(2**31)]
    assert ops.segment_min(np.zeros(0, np.uint8), none, 1).tolist() == [255]
    assert ops.segment_min(np.array([True, False]), np.int32([0, 2])).tolist() == [1, 1, 0]
    assert ops.segment_sum(np.ones(3, np.float32), np.int32([0, 0, 0]), 0).shape == (0,)


def test_gradient_of_segments_goes_back_to_rows():
    weights = np.float32([1, 10, 100])

    def loss(function, rows):
        return jnp.sum(weights * function(rows, IDS, 3))

    slope = minijax.grad(lambda rows: loss(ops.segment_sum, rows))(np.ones(7, np.float32))
    assert slope.tolist() == [100, 1, 100, 0, 0, 1, 100]
    rows = np.float32([3, 1, 9, 0, 0, 2, 8])
    slope = minijax.grad(lambda rows: loss(ops.segment_max, rows))(rows)
    assert slope.tolist() == [0, 0, 100, 0, 0, 1, 0]


def test_segments_can_be_split_over_a_mesh():
    with minijax.cpu_devices(4):
        mesh = minijax.make_mesh((4,), ("x",), (minijax.sharding.AxisType.Explicit,))
        with minijax.set_mesh(mesh):
            rows = np.ones(7, np.float32)
            found = ops.segment_sum(rows, IDS, 4, out_sharding=minijax.P("x"))
            assert "f32[4@x]" in str(minijax.typeof(found))
            assert found.tolist() == [2, 0, 3, 0]


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (
            lambda: minijax.jit(ops.segment_sum)(ROWS, IDS),
            minijax.errors.ConcretizationTypeError,
            "num_segments=n",
        ),
        (lambda: ops.segment_max(ROWS, IDS, -1), ValueError, "must not be negative"),
        (lambda: ops.segment_sum(ROWS, IDS, 2.0), TypeError, "integer"),
        (lambda: ops.segment_sum(ROWS, IDS + 0.5, 2), TypeError, "ids must be integers"),
        (lambda: ops.segment_sum(ROWS > 0, IDS, 2), TypeError, "bool"),
        (lambda: ops.segment_sum(ROWS[:4], IDS, 2), ValueError, r"\(7, 2\)|broadcast"),
        (lambda: ops.segment_sum(ROWS, IDS, 2, mode="wrap"), ValueError, "wrap"),
        (lambda: ops.segment_sum(ROWS, IDS, 2, bucket_size=0), ValueError, "at least one row"),
        (lambda: ops.segment_sum(ROWS[:0], IDS[:0]), ValueError, "no largest one"),
        (lambda: ops.segment_sum([1], [0]), TypeError, "numpy.asarray"),
    ],
)
def test_segments_refuse_bad_arguments(call, error, match):
    with pytest.raises(error, match=match):
        call()
