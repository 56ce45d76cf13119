"""Functions that pick elements, and put others in their places, do as NumPy's."""

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

FACTS = facts.load("selection")
NAMES = facts.namespace(minijax, FACTS)

X = (np.arange(24, dtype=np.float32).reshape(2, 3, 4) * 7) % 11
MASK = X > 4
PLACES = np.array([[2, 0], [1, 1]])


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("expression", FACTS.answers)
def test_selection_gives_what_jax_gives(expression: str) -> None:
    facts.check(expression, FACTS, NAMES)


@pytest.mark.feature("NP-01")
@given(shapes=numpy_strategies.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=3))
def test_where_broadcasts_as_numpy(shapes: Any) -> None:
    sizes = [int(np.prod(s)) for s in shapes.input_shapes]
    mask, x, y = (np.arange(n).reshape(s) for n, s in zip(sizes, shapes.input_shapes, strict=True))
    found = jnp.where(mask % 2 == 0, x, -y)
    np.testing.assert_array_equal(np.asarray(found), np.where(mask % 2 == 0, x, -y))


def test_where_of_finite_gradients_hides_nan() -> None:
    gradient = minijax.grad(lambda x: jnp.where(x > 0, jnp.where(x > 0, x, 1.0) ** 0.5, 0.0))(0.0)
    assert float(gradient) == 0.0


@pytest.mark.feature("NP-01")
@given(
    x=numpy_strategies.arrays(np.int8, numpy_strategies.array_shapes(max_dims=3, max_side=3)),
    size=st.integers(0, 30),
)
def test_nonzero_of_a_size_is_numpys_cut_or_filled(x: Any, size: int) -> None:
    expected = [np.append(i, np.full(size, -7))[:size].tolist() for i in np.nonzero(x)]
    found = jnp.nonzero(x, size=size, fill_value=-7)
    assert [np.asarray(i).tolist() for i in found] == expected


def test_take_along_axis_gathers_once() -> None:
    jaxpr = minijax.make_jaxpr(lambda x: jnp.take_along_axis(x, PLACES[:, :, None], 1))(X)
    assert [eqn.primitive.name for eqn in jaxpr.eqns].count("gather") == 1


def test_no_indices_may_be_floats() -> None:
    assert jnp.take(np.arange(3), np.array([])).shape == (0,)
    with pytest.raises(ValueError, match="indices must be integers"):
        jnp.take(np.arange(3), np.array([1.0]))


def test_take_along_an_empty_dimension_is_zeros_of_the_indices_shape() -> None:
    found = jnp.take_along_axis(np.zeros((2, 0), np.int8), np.zeros((1, 3), int), 1)
    assert (found.shape, found.dtype, found.any()) == ((2, 3), np.int8, False)


def test_known_conditions_are_read_under_jit() -> None:
    condition = jnp.array([True, False, True, False])
    picked = minijax.jit(lambda x: jnp.compress(condition, x, size=2))(jnp.arange(3))
    np.testing.assert_array_equal(picked, [0, 2])


def test_scalars_are_repeated_and_summed_as_vectors() -> None:
    assert np.asarray(jnp.repeat(3, np.True_, axis=0)).tolist() == [3]
    assert np.asarray(jnp.repeat(3, 2, axis=-1)).tolist() == [3, 3]
    assert np.asarray(jnp.cumsum(3, axis=0)).tolist() == [3]


def test_axis_errors_are_those_of_numpy() -> None:
    for error in (ValueError, IndexError, np.exceptions.AxisError):
        with pytest.raises(error, match="axis 2 is out of range"):
            jnp.argmax(np.zeros((2, 3)), axis=2)


def test_wide_integers_fill_arrays_of_a_dtype_that_holds_them() -> None:
    assert jnp.full(1, 2**32 - 1, jnp.uint32).tolist() == [2**32 - 1]
    assert jnp.full(1, 2**40, jnp.float32).tolist() == [2.0**40]


def test_filling_with_nan_compiles_once() -> None:
    x = jnp.arange(41.0)
    before = minijax.cache_stats()["compile"].misses
    for _ in range(3):
        jnp.take(x, 99, fill_value=float("nan"))
    assert minijax.cache_stats()["compile"].misses == before + 1


ERRORS = {
    "jnp.where(mask, x)": (TypeError, "needs both x and y"),
    "jnp.where(mask, x, [1])": (TypeError, "operands must be arrays or numbers"),
    "jnp.where(mask, x, x[:, :2])": (ValueError, "operand shapes do not fit together"),
    "minijax.jit(jnp.nonzero)(x)": (TypeError, "fix +give size"),
    "jnp.nonzero(1)": (ValueError, "a scalar has no indices"),
    "jnp.select([mask], [x, x])": (ValueError, "1 conditions, 2 choices"),
    "jnp.choose(x > 0, [1, 2])": (ValueError, "must be integers"),
    "jnp.choose(2, [1, 2])": (ValueError, "out of range.\n  got +2 choices"),
    "jnp.take(x, 0.5)": (ValueError, "indices must be integers"),
    "jnp.take(x[:0], 0, axis=0)": (IndexError, "dimension 0 is empty"),
    "jnp.take(x, 0, mode='raise')": (NotImplementedError, "mode 'raise'"),
    "jnp.take_along_axis(x, places, 1)": (ValueError, "must agree, or be 1, but along axis 1"),
    "jnp.take_along_axis(x, x, 1)": (TypeError, "indices must be integers"),
    "jnp.compress(mask, x, 0)": (ValueError, "must be a vector"),
    "jnp.put(x, 0, 1)": (ValueError, "fix +inplace=False"),
    "jnp.place(x, mask[:1], 1, inplace=False)": (ValueError, "a mask of the array's size"),
    "jnp.fill_diagonal(x, 0)": (NotImplementedError, "fix +inplace=False"),
    "jnp.fill_diagonal(x, 0, inplace=False)": (ValueError, "or more that are equal"),
}


@pytest.mark.parametrize("expression", ERRORS)
def test_error_says_what_does_not_fit(expression: str) -> None:
    kind, text = ERRORS[expression]
    names = {"jnp": jnp, "minijax": minijax, "x": jnp.asarray(X), "mask": MASK, "places": PLACES}
    with pytest.raises(kind, match=text):
        eval(expression, names)
