"""Coordinates and numbers of places are turned into each other as NumPy does."""

from __future__ import annotations

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from tests.numpy import facts

FACTS = facts.load("coordinates")
NAMES = facts.namespace(minijax, FACTS)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("expression", FACTS.answers)
def test_coordinates_are_those_of_jax(expression: str) -> None:
    facts.check(expression, FACTS, NAMES)


def test_open_mesh_selects_the_product_of_positions() -> None:
    x = np.arange(24).reshape(2, 3, 4)
    places = np.array([1, 0]), np.array([2, 0]), np.array([3])
    np.testing.assert_array_equal(np.asarray(jnp.asarray(x)[jnp.ix_(*places)]), x[np.ix_(*places)])


ERRORS = {
    "jnp.ix_(np.ones((2, 2), int))": (ValueError, "needs vectors"),
    "jnp.ix_(np.ones(2, bool))": (NotImplementedError, "fix +numpy.flatnonzero"),
    "jnp.ravel_multi_index((2, 0), (2, 3))": (ValueError, "2 for a dimension of size 2"),
    "jnp.ravel_multi_index((0,), (2, 3))": (ValueError, "1 arrays for 2 dimensions"),
    "jnp.ravel_multi_index((0.5, 0), (2, 3))": (ValueError, "coordinates must be integers"),
    "minijax.jit(lambda i: jnp.ravel_multi_index((i, i), (2, 3)))(0)": (TypeError, "mode='clip'"),
}


@pytest.mark.parametrize("expression", ERRORS)
def test_error_says_what_does_not_fit(expression: str) -> None:
    kind, text = ERRORS[expression]
    with pytest.raises(kind, match=text):
        eval(expression, {"jnp": jnp, "np": np, "minijax": minijax})
