"""What records do not say of gathers: modes, fill values, promises, texts of jaxprs."""

import ml_dtypes
import numpy as np
import pytest

import minijax
from minijax import lax

X = np.arange(5, dtype=np.float32)
POINTS = lax.GatherDimensionNumbers((), (0,), (0,))
OUTSIDE = np.array([[4], [7], [-1]], np.int32)


def take(x, indices=OUTSIDE, **options):
    return lax.gather(x, indices, POINTS, (1,), **options)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("clip", [4, 4, 0]),
        ("promise_in_bounds", [4, 4, 0]),
        (None, [4, 4, 0]),
        (lax.GatherScatterMode.CLIP, [4, 4, 0]),
    ],
)
def test_mode_without_fill_reads_the_nearest_element(mode, expected):
    assert np.asarray(take(X, mode=mode)).tolist() == expected


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("float32", np.nan),
        (ml_dtypes.bfloat16, np.nan),
        ("complex64", np.nan),
        ("int8", -128),
        ("uint16", 65535),
        ("bool", True),
    ],
)
def test_fill_mode_reads_an_extreme_value_out_of_range(dtype, expected):
    out = np.asarray(take(X.astype(dtype), mode="fill"))
    assert np.array_equal(out[1:], np.full(2, expected, dtype), equal_nan=out.dtype.kind in "fcV")


@pytest.mark.parametrize(
    ("options", "mode", "fill_value"),
    [
        ({}, "PROMISE_IN_BOUNDS", "None"),
        ({"fill_value": 7}, "PROMISE_IN_BOUNDS", "None"),
        ({"mode": "clip", "fill_value": 7}, "CLIP", "None"),
        ({"mode": "fill"}, "FILL_OR_DROP", "nan"),
        ({"mode": "fill", "fill_value": 7}, "FILL_OR_DROP", "7"),
        ({"mode": "drop", "fill_value": 7.5}, "FILL_OR_DROP", "7.5"),
    ],
)
def test_jaxpr_shows_the_mode_and_what_it_fills_with(options, mode, fill_value):
    text = str(minijax.make_jaxpr(lambda x: take(x, **options))(X))
    assert f"mode=GatherScatterMode.{mode}\n" in text
    assert f"fill_value={fill_value}\n" in text


def test_fill_value_is_converted_to_the_dtype():
    assert np.asarray(take(X.astype(np.int32), mode="fill", fill_value=7.9)).tolist() == [4, 7, 7]


def test_narrow_indices_reach_their_own_range_only():
    out = take(np.arange(300, dtype=np.float32), np.array([[127], [-1]], np.int8), mode="fill")
    assert np.array_equal(out, [127, np.nan], equal_nan=True)


def test_unsigned_indices_are_never_negative():
    out = take(X, np.array([[4], [255]], np.uint8), mode="fill", fill_value=-1)
    assert np.asarray(out).tolist() == [4, -1]


def test_numbers_may_be_lists():
    numbers = lax.GatherDimensionNumbers([], [0], [0])
    assert np.asarray(lax.gather(X, OUTSIDE[:1], numbers, [1])).tolist() == [4]


def test_result_is_weak_where_the_operand_is():
    operand = minijax.jit(lambda: lax.broadcast(2.0, (5,)))()
    assert take(operand).weak_type
    assert not take(X).weak_type


def test_cotangents_of_elements_read_twice_are_added():
    gradient = minijax.grad(lambda x: lax.reduce_sum(take(x, np.array([[1], [1], [3]])), (0,)))
    assert np.asarray(gradient(X)).tolist() == [0, 2, 0, 1, 0]


def test_cotangents_of_what_was_filled_are_dropped():
    gradient = minijax.grad(
        lambda x: lax.reduce_sum(take(x, OUTSIDE, mode="fill", fill_value=0), (0,))
    )
    assert np.asarray(gradient(X)).tolist() == [0, 0, 0, 0, 1]


def test_integers_have_no_tangents_but_can_be_gathered_under_jvp():
    out, tangent = minijax.jvp(
        lambda x: take(lax.convert_element_type(x, np.int32), mode="clip"), (X,), (X,)
    )
    assert np.asarray(out).tolist() == [4, 4, 0]
    assert tangent.dtype == minijax.dtypes.float0


@pytest.mark.parametrize(("axes", "is_promised"), [((0, None), True), ((None, 0), False)])
def test_promise_of_sorted_indices_does_not_outlive_batched_indices(axes, is_promised):
    def function(x, indices):
        return take(x, indices, indices_are_sorted=True)

    args = [
        np.stack([a, a]) if axis == 0 else a for a, axis in zip((X, OUTSIDE), axes, strict=True)
    ]
    closed = minijax.make_jaxpr(minijax.vmap(function, axes))(*args)
    assert closed.eqns[-1].params["indices_are_sorted"] is is_promised


def test_modes_have_names_as_in_jax():
    assert lax.GatherScatterMode.from_any(None) is lax.GatherScatterMode.FILL_OR_DROP
    assert lax.GatherScatterMode.from_any("one_hot") is lax.GatherScatterMode.ONE_HOT
    assert [mode.value for mode in lax.GatherScatterMode] == [1, 2, 3, 4]
