"""Dtypes and sizes that collectives take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import minijax
from minijax import lax
from minijax.core import dtypes
from tests.lax.collectives import stacked

SIZES = {"x": 4}
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"]
COMPLEX = ["complex64", "complex128"]
NUMERIC = [*INTEGERS, *FLOATS, *COMPLEX]
Call = Callable[[Any], Any]
MOVING: dict[str, tuple[Call, Call]] = {
    "all_gather": (lambda v: lax.all_gather(v, "x"), lambda y: stacked.gather(y, 0, False)),
    "all_to_all": (
        lambda v: lax.all_to_all(v, "x", 0, 0),
        lambda y: stacked.exchange(y, 0, 0, False),
    ),
    "ppermute": (
        lambda v: lax.ppermute(v, "x", [(0, 3), (1, 0)]),
        lambda y: stacked.permute(y, [(0, 3), (1, 0)]),
    ),
    "pbroadcast": (lambda v: lax.pbroadcast(v, "x", 2), lambda y: stacked.broadcast(y, 2)),
    "scatter by hand": (
        lambda v: lax.dynamic_index_in_dim(lax.all_gather(v, "x")[1], lax.axis_index("x"), 0),
        lambda y: y[1][:, None],
    ),
}
REDUCING: dict[str, tuple[Call, Call]] = {
    "psum": (lambda v: lax.psum(v, "x"), stacked.psum),
    "psum_scatter": (
        lambda v: lax.psum_scatter(v, "x"),
        lambda y: stacked.scatter(y, 0, False),
    ),
}
EXTREMES: dict[str, tuple[Call, Call]] = {
    "pmax": (lambda v: lax.pmax(v, "x"), stacked.pmax),
    "pmin": (lambda v: lax.pmin(v, "x"), stacked.pmin),
}


def _small(dtype: str) -> Any:
    """Small numbers, so that sums are exact in every dtype."""
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if kind == np.bool_:
        return (np.arange(16) % 3 == 0).reshape(4, 4)
    found = (np.arange(16) % 4).reshape(4, 4).astype(kind)
    return found + found * 1j if kind.kind == "c" else found


def _compared(pair: tuple[Call, Call], dtype: str, runner: str) -> None:
    x = _small(dtype)
    call, oracle = pair
    with minijax.enable_x64(True):
        found = stacked.RUNNERS[runner](call, SIZES)(x)
        expected = oracle(x)
        assert found.dtype == expected.dtype
        wide = np.complex128 if dtypes.issubdtype(found.dtype, np.complexfloating) else np.float64
        np.testing.assert_array_equal(np.asarray(found).astype(wide), expected.astype(wide))


by_runner = pytest.mark.parametrize("runner", ["checked", "unchecked", "pmap", "vmap"])


@pytest.mark.feature("CO-01", "CO-18")
@pytest.mark.parametrize("name", REDUCING)
@pytest.mark.parametrize("dtype", NUMERIC)
def test_sums_keep_the_dtype(name: str, dtype: str) -> None:
    _compared(REDUCING[name], dtype, "checked")


@pytest.mark.feature("CO-07", "CO-08", "CO-13", "CO-15")
@pytest.mark.parametrize("name", MOVING)
@pytest.mark.parametrize("dtype", [*NUMERIC, "bool"])
def test_moves_take_every_dtype(name: str, dtype: str) -> None:
    _compared(MOVING[name], dtype, "checked")


@pytest.mark.feature("CO-07")
@by_runner
def test_broadcasts_keep_every_bit(runner: str) -> None:
    rows = np.array([[1, 2, 3, 4], [-0.0, 0.0, 1e-45, -np.inf], [-0.0] * 4, [5] * 4], np.float32)
    values = [
        rows.astype(ml_dtypes.float4_e2m1fn),
        rows.astype(ml_dtypes.float8_e5m2),
        rows.astype(ml_dtypes.bfloat16),
        rows,
        rows.view(np.complex64),
    ]
    found = stacked.RUNNERS[runner](lambda *vs: lax.pbroadcast(vs, "x", 1), SIZES)(*values)
    for y, x in zip(found, values, strict=True):
        assert np.asarray(y).tobytes() == x[1].tobytes() * 4, x.dtype


@pytest.mark.feature("CO-03", "CO-04")
@pytest.mark.parametrize("name", EXTREMES)
@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, "bool"])
def test_extremes_keep_the_dtype(name: str, dtype: str) -> None:
    _compared(EXTREMES[name], dtype, "checked")


@pytest.mark.feature("CO-03", "CO-04")
@pytest.mark.parametrize("dtype", ["bool", "bfloat16", "complex64"])
@pytest.mark.parametrize("name", EXTREMES)
@by_runner
def test_extremes_of_unusual_dtypes_are_the_same_by_every_way(
    name: str, dtype: str, runner: str
) -> None:
    _compared(EXTREMES[name], dtype, runner)


@pytest.mark.feature("CO-01", "CO-02")
@by_runner
def test_sums_of_booleans_count(runner: str) -> None:
    x = np.array([[True, False], [True, True], [False, False], [True, False]])
    total, mean = stacked.RUNNERS[runner](lambda v: (lax.psum(v, "x"), lax.pmean(v, "x")), SIZES)(x)
    assert total.dtype == np.int32
    np.testing.assert_array_equal(total, [[3, 1]] * 4)
    np.testing.assert_array_equal(mean, np.array([[0.75, 0.25]] * 4, np.float32))


@pytest.mark.feature("CO-02")
@by_runner
def test_means_of_integers_are_floats(runner: str) -> None:
    found = stacked.RUNNERS[runner](lambda v: lax.pmean(v, "x"), SIZES)(np.arange(4, dtype="i4"))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [1.5] * 4)


@pytest.mark.feature("CO-01", "CO-15", "CO-18")
@pytest.mark.parametrize("name", [*REDUCING, *MOVING, *EXTREMES])
@by_runner
def test_empty_arrays_pass(name: str, runner: str) -> None:
    if name == "scatter by hand":
        return
    call, oracle = {**REDUCING, **MOVING, **EXTREMES}[name]
    x = np.zeros((4, 4, 0), np.float32)
    assert stacked.RUNNERS[runner](call, SIZES)(x).shape == oracle(x).shape


@pytest.mark.feature("CO-13")
def test_exchanges_drop_weak_types() -> None:
    def f(v: Any) -> Any:
        weak = lax.full((4,), 1.0) + 0 * lax.axis_index("x")
        return v + lax.all_to_all(weak, "x", 0, 0).astype(v.dtype)

    np.testing.assert_array_equal(
        stacked.by_shard_map(f, SIZES)(np.zeros((4, 4), np.float32)), np.ones((4, 4))
    )
