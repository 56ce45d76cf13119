"""Functions of order are those of NumPy, with NaN and both zeros in their places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minijax
import minijax.numpy as jnp
from tests.numpy import facts

FACTS = facts.load("ordering")
NAMES = facts.namespace(minijax, FACTS)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("expression", FACTS.answers)
def test_order_is_that_of_jax(expression: str) -> None:
    facts.check(expression, FACTS, NAMES)


def array(dtype: str) -> np.ndarray[Any, Any]:
    x = (np.arange(24).reshape(2, 3, 4) * 7 % 5).astype(dtype)
    return x + 1j * (x > 2) if dtype == "complex64" else x


def test_descending_argsort_keeps_the_order_of_equal_elements() -> None:
    found = jnp.argsort(np.array([1, 2, 1, 2]), descending=True)
    assert np.asarray(found).tolist() == [1, 3, 0, 2]


def test_sorting_permutes_tangents() -> None:
    x, dot = np.array([3.0, 1.0, 2.0], np.float32), np.array([7.0, 8.0, 9.0], np.float32)
    assert np.asarray(minijax.jvp(jnp.sort, (x,), (dot,))[1]).tolist() == [8.0, 9.0, 7.0]


def test_batched_sort_sorts_each_array() -> None:
    x = array("int8")
    found = minijax.vmap(lambda x: jnp.sort(x, 0), 1, 1)(x)
    np.testing.assert_array_equal(np.asarray(found), np.sort(x, 0))


NUMBERS = st.sampled_from([-np.inf, -1.5, -0.0, 0.0, 1.0, 2.0, np.inf, np.nan])


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("method", ["scan", "compare_all"])
@pytest.mark.parametrize("side", ["left", "right"])
@given(a=st.lists(NUMBERS, max_size=70), v=st.lists(NUMBERS, max_size=5))
def test_searchsorted_is_that_of_numpy(side: Any, method: str, a: Any, v: Any) -> None:
    a, v = np.sort(np.array(a, np.float32)), np.array(v, np.float32)
    found = jnp.searchsorted(a, v, side, method=method)
    assert np.asarray(found).tolist() == np.searchsorted(a, v, side).tolist()


@pytest.mark.parametrize("size", [33, 64, 1000])
def test_search_among_many_elements_is_that_of_numpy(size: int) -> None:
    a = np.arange(size) * 3
    v = np.arange(-2, 3 * size + 2)[None]
    np.testing.assert_array_equal(np.asarray(jnp.searchsorted(a, v)), np.searchsorted(a, v))


def test_search_uses_the_order_that_is_given() -> None:
    a = np.array([3, 1, 2])
    assert int(jnp.searchsorted(a, 2, sorter=np.argsort(a))) == 1


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("bins", [[0.0, 1.0, 2.5], [2.5, 1.0, 0.0], [1.0, 1.0], [2.0]])
@pytest.mark.parametrize("right", [False, True])
def test_digitize_is_that_of_numpy(bins: list[float], right: bool) -> None:
    x = np.arange(-1, 4, 0.5)
    found = jnp.digitize(x, np.array(bins), right)
    assert np.asarray(found).tolist() == np.digitize(x, bins, right).tolist()


ERRORS = {
    "jnp.sort(x, 2)": (ValueError, "numpy.sort: axis 2 is out of range"),
    "jnp.sort(x, kind='quicksort')": (TypeError, "kind='quicksort'"),
    "jnp.argsort(x, order='a')": (TypeError, "order='a'"),
    "jnp.lexsort([])": (TypeError, "at least one key"),
    "jnp.lexsort([x, x[0]])": (ValueError, "must have the same shape"),
    "jnp.partition(x, 9)": (ValueError, "`kth` is out of range"),
    "jnp.searchsorted(x, 1)": (ValueError, "a must be a vector"),
    "jnp.searchsorted(x[0], 1, side='middle')": (ValueError, "expected +'left' or 'right'"),
    "jnp.searchsorted(x[0], 1, method='guess')": (ValueError, "unknown method 'guess'"),
    "jnp.digitize(x, x)": (ValueError, "bins must be a vector"),
}


@pytest.mark.parametrize("expression", ERRORS)
def test_error_says_what_does_not_fit(expression: str) -> None:
    kind, text = ERRORS[expression]
    with pytest.raises(kind, match=text):
        eval(expression, {"jnp": jnp, "x": jnp.ones((2, 3))})
