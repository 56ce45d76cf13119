"""How the starts of dynamic slices are read: their dtypes, negative ones, ones out of range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minijax
from minijax import lax

_LONG = np.arange(300, dtype=np.float32)
_TABLE = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize(("start", "first"), [(-3, 297.0), (100, 100.0)])
def test_narrow_start_counts_from_the_end_of_a_long_dimension(start: int, first: float) -> None:
    # 300 does not fit into int8: added there, it would wrap around to 44.
    out = minijax.jit(lambda x, i: lax.dynamic_slice(x, (i,), (2,)))(_LONG, np.int8(start))
    np.testing.assert_array_equal(out, [first, first + 1])


def test_narrow_start_known_when_traced_is_widened_too() -> None:
    np.testing.assert_array_equal(lax.dynamic_slice(_LONG, (np.int8(-3),), (2,)), [297.0, 298.0])


def test_narrow_starts_in_a_batch_count_from_the_end() -> None:
    out = minijax.vmap(lambda i: lax.dynamic_slice(_LONG, (i,), (1,)))(np.array([-3, 100], np.int8))
    np.testing.assert_array_equal(out, [[297.0], [100.0]])


def test_narrow_start_of_an_update_counts_from_the_end() -> None:
    out = lax.dynamic_update_slice(_LONG, np.zeros(2, np.float32), (np.int8(-3),))
    assert np.flatnonzero(np.asarray(out) != _LONG).tolist() == [297, 298]


def test_index_take_widens_narrow_positions() -> None:
    out = lax.index_take(_LONG, (np.array([-3, 100], np.int8),), (0,))
    np.testing.assert_array_equal(out, [297.0, 100.0])


def test_narrow_starts_keep_their_dtype_where_it_suffices() -> None:
    jaxpr = minijax.make_jaxpr(lambda i: lax.dynamic_slice(_TABLE, (i, i), (1, 2)))(np.int8(0))
    assert jaxpr.eqns[-1].invars[1].aval.dtype == np.int8


def test_python_start_takes_the_dtype_of_the_other_starts() -> None:
    jaxpr = minijax.make_jaxpr(lambda i: lax.dynamic_slice(_TABLE, (i, 1), (1, 2)))(np.uint8(0))
    assert jaxpr.eqns[-1].invars[2].aval.dtype == np.uint8


def test_start_beyond_the_end_is_clamped() -> None:
    np.testing.assert_array_equal(lax.dynamic_slice(_TABLE, (5, -9), (1, 2)), [[8.0, 9.0]])


def test_known_negative_start_is_refused_where_none_is_allowed() -> None:
    with pytest.raises(ValueError, match=r"lax\.dynamic_slice: the start -1 is negative"):
        lax.dynamic_slice(_TABLE, (-1, 0), (1, 2), allow_negative_indices=False)


def test_negative_starts_are_allowed_dimension_by_dimension() -> None:
    out = lax.dynamic_slice(_TABLE, (1, -1), (1, 1), allow_negative_indices=(False, True))
    np.testing.assert_array_equal(out, [[7.0]])


@pytest.mark.parametrize("start", [True, 0.0, np.arange(1)])
def test_start_that_is_no_integer_scalar_is_refused(start: Any) -> None:
    with pytest.raises(TypeError, match="integer scalars"):
        lax.dynamic_slice(_TABLE, (start, 0), (1, 2))


def test_batched_slice_promises_sorted_and_unique_indices() -> None:
    batch = np.stack([_TABLE, _TABLE])
    slices = minijax.vmap(lambda x, i: lax.dynamic_slice(x, (i, 0), (1, 2)))
    gather = minijax.make_jaxpr(slices)(batch, np.array([0, 2])).eqns[-1]
    assert gather.primitive.name == "gather"
    assert gather.params["indices_are_sorted"]
    assert gather.params["unique_indices"]


def test_batched_slice_of_a_shared_array_promises_nothing() -> None:
    slices = minijax.vmap(lambda i: lax.dynamic_slice(_TABLE, (i, 0), (1, 2)))
    gather = minijax.make_jaxpr(slices)(np.array([2, 0])).eqns[-1]
    assert not gather.params["indices_are_sorted"]
    assert not gather.params["unique_indices"]


def test_slices_from_shared_starts_stay_dynamic_slices() -> None:
    batch = np.stack([_TABLE, _TABLE])
    slices = minijax.vmap(lambda x, i: lax.dynamic_slice(x, (i, 0), (1, 2)), in_axes=(0, None))
    assert minijax.make_jaxpr(slices)(batch, 1).eqns[-1].primitive.name == "dynamic_slice"
