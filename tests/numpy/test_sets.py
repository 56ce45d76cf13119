"""Functions of arrays as sets are those of NumPy; with a size, also of traced arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_strategies

import minijax
import minijax.numpy as jnp
from tests.numpy import facts

FACTS = facts.load("sets")
NAMES = facts.namespace(minijax, FACTS)

VECTORS = st.lists(st.integers(-3, 3), max_size=6).map(lambda x: np.array(x, np.int32))
FLOATS = st.sampled_from([-1.0, -0.0, 0.0, 2.0, np.nan])


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("expression", FACTS.answers)
def test_set_is_that_of_jax(expression: str) -> None:
    facts.check(expression, FACTS, NAMES)


@given(x=VECTORS.filter(len), size=st.integers(0, 8))
def test_unique_of_a_size_is_cut_or_filled_up(x: Any, size: int) -> None:
    values, counts = minijax.jit(lambda x: jnp.unique(x, return_counts=True, size=size))(x)
    expected, numbers = np.unique(x, return_counts=True)
    filled = np.append(expected, np.full(size, expected[0]))[:size]
    assert np.asarray(values).tolist() == filled.tolist()
    assert np.asarray(counts).tolist() == np.append(numbers, np.zeros(size, int))[:size].tolist()


@given(a=VECTORS, b=VECTORS)
def test_intersection_knows_the_places_of_its_elements(a: Any, b: Any) -> None:
    expected = np.intersect1d(a, b, return_indices=True)
    for ours, theirs in zip(jnp.intersect1d(a, b, return_indices=True), expected, strict=True):
        np.testing.assert_array_equal(np.asarray(ours), theirs)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("method", ["auto", "compare_all", "binary_search", "sort"])
@given(
    a=numpy_strategies.arrays(np.float32, st.integers(0, 4), elements=FLOATS),
    b=numpy_strategies.arrays(np.float32, st.integers(0, 4), elements=FLOATS),
    invert=st.booleans(),
)
def test_isin_is_that_of_numpy(method: str, a: Any, b: Any, invert: bool) -> None:
    found = jnp.isin(a, b, invert=invert, method=method)
    assert np.asarray(found).tolist() == np.isin(a, b, invert=invert).tolist()


def test_batched_unique_finds_the_elements_of_each_array() -> None:
    x = np.array([[3, 1, 3], [2, 2, 2]])
    found = minijax.vmap(lambda x: jnp.unique(x, size=2, fill_value=0))(x)
    assert np.asarray(found).tolist() == [[1, 3], [2, 0]]


def test_results_of_unique_have_names() -> None:
    found = jnp.unique_all(np.array([2, 1, 2]))
    assert np.asarray(found.inverse_indices).tolist() == [1, 0, 1]
    assert np.asarray(jnp.unique_counts(np.array([2, 1, 2])).counts).tolist() == [1, 2]


def test_setdiff1d_keeps_the_dtype_of_the_first_array() -> None:
    found = jnp.setdiff1d(np.array([3, 1, 2], np.int8), np.array([2.0, 0.5], np.float32))
    assert found.dtype == np.int8
    assert np.asarray(found).tolist() == [1, 3]


def test_setxor1d_keeps_what_equals_nothing() -> None:
    a, b = np.array([1.0, np.nan], np.float32), np.array([1.0, 2.0], np.float32)
    np.testing.assert_array_equal(jnp.setxor1d(a, b), np.setxor1d(a, b))


ERRORS = {
    "minijax.jit(jnp.unique)(x)": (TypeError, "fix +give size"),
    "minijax.jit(jnp.setdiff1d)(x, x)": (TypeError, "traced"),
    "jnp.unique(x[:0], size=2)": (ValueError, "needs a fill_value"),
    "jnp.unique(x, axis=1)": (ValueError, "numpy.unique: axis 1 is out of range"),
    "jnp.isin(x, x, method='guess')": (ValueError, "unknown method 'guess'"),
    "jnp.isin(x, [1])": (TypeError, "operands must be arrays or numbers"),
}


@pytest.mark.parametrize("expression", ERRORS)
def test_error_says_what_does_not_fit(expression: str) -> None:
    kind, text = ERRORS[expression]
    with pytest.raises(kind, match=text):
        eval(expression, {"jnp": jnp, "minijax": minijax, "x": jnp.ones(3)})


@pytest.mark.parametrize(
    ("function", "expected"),
    [(jnp.intersect1d, [-2, 3, -2, -2]), (jnp.setxor1d, [-5, 4, -5, -5])],
)
def test_the_least_element_fills_up_where_nothing_else_is_said(function, expected):
    a, b = jnp.array([3, -2, 4]), jnp.array([-2, 3, -5])
    for call in (function, minijax.jit(function, static_argnames=("size", "fill_value"))):
        assert call(a, b, size=4).tolist() == expected
        assert call(a, b, size=4, fill_value=9).tolist() == [*expected[:2], 9, 9]
        assert call(a, a * 0, size=2).tolist() == ([0, 0] if expected[0] == -2 else [-2, 0])
