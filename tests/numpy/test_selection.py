"""Functions that pick elements, and put others in their places, do as NumPy's."""

from __future__ import annotations

from collections.abc import Callable
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

# The same call of NumPy and of ours; `np` is either.
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "where": lambda np, x: np.where(MASK, x, -x),
    "where with numbers": lambda np, x: np.where(x > 4, x, np.float32(0)),
    "where with a row": lambda np, x: np.where(MASK[:, :1], x, x[0, 0]),
    "where of numbers": lambda np, x: np.where(x, x, -x),
    "select": lambda np, x: np.select([x > 8, x > 4], [x, -x], 0.5),
    "choose": lambda np, x: np.choose(PLACES, [x[0, :2, :2], x[1, :2, :2], -x[0, :2, :2]]),
    "choose wrapping": lambda np, x: np.choose(PLACES - 4, [x[0, 0, 0], x[0, 0, 1]], mode="wrap"),
    "take": lambda np, x: np.take(x, PLACES, axis=1),
    "take from a vector": lambda np, x: np.take(x, PLACES),
    "take wrapping": lambda np, x: np.take(x, PLACES * 9 - 5, axis=2, mode="wrap"),
    "take clipping": lambda np, x: np.take(x, PLACES * 9 - 5, axis=2, mode="clip"),
    "take_along_axis": lambda np, x: np.take_along_axis(x, np.argsort(x, 1), 1),
    "take_along_axis of one row": lambda np, x: np.take_along_axis(x, PLACES[:1, :, None], 1),
    "take_along_axis of one array": lambda np, x: np.take_along_axis(x[:1], PLACES[:, :, None], 1),
    "take_along_axis of a vector": lambda np, x: np.take_along_axis(x, PLACES.ravel(), None),
    "compress": lambda np, x: np.compress([True, False, True], x, axis=1),
    "compress a vector": lambda np, x: np.compress([True, False, True], x),
    "extract": lambda np, x: np.extract(MASK, x),
}


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("expression", FACTS.answers)
def test_selection_gives_what_jax_gives(expression: str) -> None:
    facts.check(expression, FACTS, NAMES)


def call(name: str, x: Any) -> Any:
    """Ours; NumPy's take lists for arrays."""
    converted = {"compress": jnp.array([True, False, True])}
    if name == "compress":
        return jnp.compress(converted["compress"], x, axis=1)
    if name == "compress a vector":
        return jnp.compress(converted["compress"], x)
    return CALLS[name](jnp, x)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("name", CALLS)
def test_eager_call_does_as_numpy(name: str) -> None:
    np.testing.assert_array_equal(np.asarray(call(name, jnp.asarray(X))), CALLS[name](np, X))


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("name", CALLS)
def test_call_under_vmap_and_jit_does_as_a_loop(name: str) -> None:
    found = minijax.jit(minijax.vmap(lambda x: call(name, x)))(np.stack([X, X + 1]))
    expected = np.stack([CALLS[name](np, X), CALLS[name](np, X + 1)])
    np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("name", CALLS)
def test_gradient_agrees_with_forward_mode(name: str) -> None:
    def loss(x: Any) -> Any:
        return (call(name, x) ** 2).sum()

    expected = minijax.jvp(loss, (X,), (np.ones_like(X),))[1]
    np.testing.assert_allclose(minijax.grad(loss)(X).sum(), expected, rtol=1e-5)


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


def test_nonzero_without_size_is_that_of_numpy() -> None:
    found = [np.asarray(i).tolist() for i in jnp.nonzero(MASK)]
    assert found == [i.tolist() for i in np.nonzero(MASK)]


def test_argwhere_is_that_of_numpy() -> None:
    np.testing.assert_array_equal(np.asarray(jnp.argwhere(MASK)), np.argwhere(MASK))


WRITES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "put": (
        lambda x: jnp.put(x, np.array([0, -1, 5]), np.array([7.0, 8.0]), inplace=False),
        lambda x: np.put(x, [0, -1, 5], [7.0, 8.0]),
    ),
    "put clipping": (
        lambda x: jnp.put(x, np.array([99]), 7.0, mode="clip", inplace=False),
        lambda x: np.put(x, [99], 7.0, mode="clip"),
    ),
    "put wrapping": (
        lambda x: jnp.put(x, np.array([99, -30]), 7.0, mode="wrap", inplace=False),
        lambda x: np.put(x, [99, -30], 7.0, mode="wrap"),
    ),
    "place": (
        lambda x: jnp.place(x, MASK, np.array([7.0, 8.0, 9.0]), inplace=False),
        lambda x: np.place(x, MASK, [7.0, 8.0, 9.0]),
    ),
    "put_along_axis": (
        lambda x: jnp.put_along_axis(x, PLACES[:, :, None], 7.0, 1, inplace=False),
        lambda x: np.put_along_axis(x, PLACES[:, :, None], 7.0, 1),
    ),
    "put_along_axis of a vector": (
        lambda x: jnp.put_along_axis(x, PLACES.ravel(), 7.0, None, inplace=False),
        lambda x: np.put_along_axis(x, PLACES.ravel(), 7.0, None),
    ),
}


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("name", WRITES)
def test_new_array_is_what_numpy_writes_in_place(name: str) -> None:
    write, write_in_place = WRITES[name]
    expected = X.copy()
    write_in_place(expected)
    np.testing.assert_array_equal(np.asarray(write(X)), expected)
    np.testing.assert_array_equal(np.asarray(minijax.jit(write)(X)), expected)


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2), (3, 3, 3)])
def test_diagonal_is_filled_as_in_numpy(shape: Any) -> None:
    expected = np.zeros(shape)
    np.fill_diagonal(expected, [1, 2])
    found = jnp.fill_diagonal(jnp.zeros(shape), jnp.array([1.0, 2.0]), inplace=False)
    np.testing.assert_array_equal(np.asarray(found), expected)


def test_take_along_axis_gathers_once() -> None:
    jaxpr = minijax.make_jaxpr(lambda x: jnp.take_along_axis(x, PLACES[:, :, None], 1))(X)
    assert [eqn.primitive.name for eqn in jaxpr.eqns].count("gather") == 1


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
