"""`x.at[index]` updates what NumPy's assignments update; out of range it does as JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minijax
import minijax.numpy as jnp
from tests.numpy import facts
from tests.numpy.test_indexing import cases

FACTS = facts.load("updates")
NAMES = facts.namespace(minijax, FACTS)

X = np.arange(12, dtype=np.float32).reshape(4, 3)
TWICE = np.array([1, 1])

# Each method and what it does to a NumPy array in place, where positions may repeat.
METHODS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": np.add.at,
    "subtract": np.subtract.at,
    "multiply": np.multiply.at,
    "min": np.minimum.at,
    "max": np.maximum.at,
}


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("expression", FACTS.answers)
def test_update_gives_what_jax_gives(expression: str) -> None:
    facts.check(expression, FACTS, NAMES)


@st.composite
def updates(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], tuple[Any, ...], Any]:
    """An array, an index of it, and values that broadcast to the selection."""
    x, index = draw(cases())
    shape = x[index].shape
    own = tuple(n if draw(st.booleans()) else 1 for n in shape)[draw(st.integers(0, len(shape))) :]
    values = np.arange(1, 1 + int(np.prod(own)), dtype=np.int32).reshape(own) % 5 - 2
    return x, index, values


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("method", METHODS)
@given(case=updates())
def test_update_changes_what_numpy_changes(method: str, case: Any) -> None:
    x, index, values = case
    expected = x.copy()
    METHODS[method](expected, index, values)
    found = getattr(jnp.asarray(x).at[index], method)(values)
    np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.feature("NP-01")
@given(case=updates())
def test_setting_under_jit_writes_what_numpy_writes(case: Any) -> None:
    x, index, _ = case
    expected = x.copy()
    expected[index] = 7
    found = minijax.jit(lambda x: x.at[index].set(7))(x)
    np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.feature("NP-01")
@given(case=updates())
def test_cotangents_of_an_addition_are_those_of_a_selection(case: Any) -> None:
    x, index, values = case
    values = values.astype(np.float32)
    weights = np.arange(x.size, dtype=np.float32).reshape(x.shape)

    def loss(x: Any, values: Any) -> Any:
        return (x.at[index].add(values) * weights).sum()

    x_ct, values_ct = minijax.grad(loss, (0, 1))(x.astype(np.float32), values)
    np.testing.assert_array_equal(np.asarray(x_ct), weights)
    repeated = minijax.vjp(lambda v: jnp.broadcast_to(v, x[index].shape), values)[1]
    np.testing.assert_allclose(np.asarray(values_ct), repeated(weights[index])[0])


def test_static_position_is_written_without_a_scatter() -> None:
    jaxpr = minijax.make_jaxpr(lambda x: x.at[1].set(0.0))(X)
    names = [eqn.primitive.name for eqn in jaxpr.eqns]
    assert names == ["broadcast_in_dim", "dynamic_update_slice"]


def test_traced_position_is_scattered_uniquely() -> None:
    jaxpr = minijax.make_jaxpr(lambda x, i: x.at[i].set(0.0))(X, np.int32(1))
    (scatter,) = (eqn for eqn in jaxpr.eqns if eqn.primitive.name == "scatter")
    assert (scatter.params["unique_indices"], scatter.params["indices_are_sorted"]) == (True, True)


def test_windows_beside_arrays_are_scattered_whole() -> None:
    jaxpr = minijax.make_jaxpr(lambda x, i: x.at[i, 1:].add(1.0))(X, TWICE)
    (scatter,) = (eqn for eqn in jaxpr.eqns if eqn.primitive.name == "scatter-add")
    numbers = scatter.params["dimension_numbers"]
    assert (numbers.update_window_dims, numbers.inserted_window_dims) == ((1,), (0,))


def test_setting_accepts_lists_of_values() -> None:
    found = jnp.asarray(X).at[0].set([7.0, 8.0, 9.0])
    assert np.asarray(found)[0].tolist() == [7.0, 8.0, 9.0]


def test_repeated_positions_of_apply_count_each_time() -> None:
    found = jnp.asarray(X).at[TWICE, 0].apply(lambda x: x * 2)
    assert float(found[1, 0]) == 12.0


def test_apply_is_differentiable_where_positions_are_unique() -> None:
    def loss(x: Any) -> Any:
        return x.at[np.array([0, 2])].apply(jnp.square, unique_indices=True).sum()

    gradient = minijax.grad(loss)(jnp.asarray([3.0, 4.0, 5.0]))
    assert np.asarray(gradient).tolist() == [6.0, 1.0, 10.0]


MASKED = {
    "set a number": (lambda x, m: x.at[m].set(9.0), lambda x, m: np.where(m, 9, x)),
    "add a number": (lambda x, m: x.at[m].add(9.0), lambda x, m: x + 9 * m),
    "take the larger": (lambda x, m: x.at[m].max(5.0), lambda x, m: np.where(m, x.clip(5), x)),
    "mask rows": (
        lambda x, m: x.at[m[:, 0]].multiply(2.0),
        lambda x, m: x * np.where(m[:, :1], 2, 1),
    ),
    "set rows": (
        lambda x, m: x.at[m[:, 0]].set(np.arange(3.0, dtype=np.float32)),
        lambda x, m: np.where(m[:, :1], np.arange(3), x),
    ),
}


@pytest.mark.parametrize("name", MASKED)
def test_traced_mask_updates_where_it_holds(name: str) -> None:
    update, expected = MASKED[name]
    mask = X % 5 > 2
    found = minijax.jit(update)(X, mask)
    np.testing.assert_array_equal(np.asarray(found), expected(X, mask))


def test_eager_mask_compiles_once_for_any_number_of_elements() -> None:
    x = jnp.arange(17.0)
    masks = [np.arange(17) < n for n in range(5)]
    before = minijax.cache_stats()["compile"].misses
    for mask in masks:
        x = x.at[mask].add(1.0)
    assert minijax.cache_stats()["compile"].misses == before + 1
    assert np.asarray(x)[:5].tolist() == [4.0, 4.0, 4.0, 4.0, 4.0]


def test_eager_loop_over_an_updated_position_compiles_once() -> None:
    x = jnp.zeros(19)
    before = minijax.cache_stats()["compile"].misses
    for i in range(19):
        x = x.at[i].set(float(i))
    assert minijax.cache_stats()["compile"].misses == before + 1
    assert np.asarray(x).tolist() == list(range(19))


def test_batched_update_writes_into_each_array() -> None:
    index = np.array([2, 0, -1, 1])
    found = minijax.vmap(lambda x, i, y: x.at[i].set(y))(X, index, np.full(4, 9, np.float32))
    expected = X.copy()
    expected[np.arange(4), index] = 9
    np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8", "uint32", "complex64"])
def test_addition_keeps_the_dtype_of_the_array(dtype: str) -> None:
    found = jnp.ones(3, dtype).at[TWICE].add(1)
    assert (str(found.dtype), np.asarray(found).astype(complex).tolist()) == (dtype, [1, 3, 1])


def test_lossy_values_warn() -> None:
    with pytest.warns(FutureWarning, match="loses something"):
        jnp.arange(3).at[0].set(1.5)


def test_lossy_values_warn_in_the_second_call_too() -> None:
    for _ in range(2):
        with pytest.warns(FutureWarning, match=r"array: i32\[3\] +values: ~f32"):
            jnp.arange(3).at[0].add(1.5)


ERRORS = {
    "x.at[0].set(np.ones(2))": (ValueError, r"values: f32\[2\] +selection: \(3,\)"),
    "x.at[0].set(1.0, mode='wrong')": (ValueError, "unknown mode 'wrong'"),
    "x.at[np.arange(2)].set(1.0, mode='wrong')": (ValueError, "unknown mode 'wrong'"),
    "x.at[0].set(1.0, wrong=1)": (TypeError, "wrong"),
    "x.at[[0, 1]].set(1.0)": (TypeError, "a list is no index"),
    "x.at[0:0].get(mode='clip')[0]": (IndexError, "size 0"),
    "x.at[np.ones(3, bool)].set(1.0)": (IndexError, "expected  shape \\(4,\\)"),
}


@pytest.mark.parametrize("expression", ERRORS)
def test_error_says_what_is_wrong_with_the_update(expression: str) -> None:
    kind, text = ERRORS[expression]
    with pytest.raises(kind, match=text):
        eval(expression, {"x": jnp.asarray(X), "np": np})


def test_filled_reads_with_nan_share_one_program() -> None:
    x = jnp.arange(23.0)
    before = minijax.cache_stats()["compile"].misses
    for _ in range(3):
        x.at[np.array([1, 99])].get(mode="fill", fill_value=float("nan"))
    assert minijax.cache_stats()["compile"].misses == before + 1


def test_helpers_print_what_they_stand_for() -> None:
    assert repr(jnp.arange(2).at[0]) == "IndexUpdateRef(Array([0, 1], dtype=int32), 0)"


@pytest.mark.parametrize(
    ("kind", "expected"), [("subtract", [-1, 0, 2]), ("multiply", [0, 1, 2]), ("set", [1, 1, 2])]
)
@pytest.mark.parametrize("index", [slice(0, 2), np.array([0, 1])], ids=["box", "numbers"])
def test_what_an_update_loses_it_loses_of_the_result(
    kind: str, expected: list[int], index: Any
) -> None:
    with pytest.warns(FutureWarning, match="loses something"):
        found = getattr(jnp.arange(3).at[index], kind)(1.5)
    assert found.tolist() == expected
    assert found.dtype == np.int32
