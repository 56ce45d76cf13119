"""`x[index]` selects what NumPy selects; out of range, and in errors, it does as JAX."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minijax
import minijax.numpy as jnp
from tests.numpy import facts

FACTS = facts.load("indexing")
NAMES = facts.namespace(minijax, FACTS)

X = np.arange(60, dtype=np.float32).reshape(5, 4, 3)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("expression", FACTS.answers)
def test_index_gives_what_jax_gives(expression: str) -> None:
    facts.check(expression, FACTS, NAMES)


def slices(size: int) -> st.SearchStrategy[slice]:
    bound = st.none() | st.integers(-size - 2, size + 2)
    step = st.none() | st.integers(-3, 3).filter(bool)
    return st.builds(slice, bound, bound, step)


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], tuple[Any, ...]]:
    """An array, and an index of it that NumPy takes too."""
    shape = draw(st.lists(st.integers(0, 3), max_size=3).map(tuple))
    block = draw(st.lists(st.integers(0, 2), max_size=2).map(tuple))
    used = draw(st.integers(0, len(shape)))
    place = draw(st.integers(0, used)) if draw(st.booleans()) else None
    index: list[Any] = []
    for i in range(used):
        if draw(st.integers(0, 3)) == 0:
            index.append(None)
        if i == place:
            index.append(...)
        size = shape[i if place is None or i < place else len(shape) - used + i]
        kinds = ["slice", "int", "array"] if size else ["slice"]
        kind = draw(st.sampled_from(kinds))
        if kind == "slice":
            index.append(draw(slices(size)))
        elif kind == "int":
            index.append(draw(st.integers(-size, size - 1)))
        else:
            own = block[draw(st.integers(0, len(block))) :]
            count = int(np.prod(own))
            values = draw(st.lists(st.integers(-size, size - 1), min_size=count, max_size=count))
            index.append(np.array(values, np.int32).reshape(own))
    x = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    return x, tuple(index)


def eager(x: Any, index: Any) -> Any:
    return jnp.asarray(x)[index]


def jitted(x: Any, index: Any) -> Any:
    return minijax.jit(lambda x: x[index])(x)


def traced(x: Any, index: Any) -> Any:
    """All integers and arrays of the index are traced."""
    values = [i for i in index if isinstance(i, (int, np.ndarray))]

    def select(x: Any, *values: Any) -> Any:
        given = iter(values)
        return x[tuple(next(given) if isinstance(i, (int, np.ndarray)) else i for i in index)]

    return minijax.jit(select)(x, *values)


def differentiated(x: Any, index: Any) -> Any:
    return minijax.jvp(lambda x: x[index], (x.astype(np.float32),), (x.astype(np.float32),))[1]


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("select", [eager, jitted, traced, differentiated])
@given(case=cases())
def test_index_selects_what_numpy_selects(select: Callable[..., Any], case: Any) -> None:
    x, index = case
    found = select(x, index)
    expected = x[index]
    assert found.shape == expected.shape
    np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.feature("NP-01")
@given(case=cases())
def test_cotangent_counts_how_often_each_element_is_selected(case: Any) -> None:
    x, index = case
    expected = np.zeros(x.shape, np.float32)
    np.add.at(expected, index, 1)
    found = minijax.grad(lambda x: x[index].sum())(x.astype(np.float32))
    np.testing.assert_array_equal(np.asarray(found), expected)


def test_batched_index_selects_from_each_array() -> None:
    index = np.array([0, -1, 2, 1, 3])
    found = minijax.vmap(lambda x, i: x[i])(X, index)
    np.testing.assert_array_equal(np.asarray(found), X[np.arange(5), index])


def test_ellipsis_of_no_dimensions_separates_arrays() -> None:
    a = np.array([0, 1])
    found = jnp.asarray(X)[:, a, ..., a]
    assert found.shape == X[:, a, ..., a].shape == (2, 5)


def test_templates_of_different_kinds_do_not_share_programs() -> None:
    x = jnp.ones((4, 3))
    assert [x[0, :].shape, x[0:1, :].shape] == [(3,), (1, 3)]


@pytest.mark.feature("NP-01")
def test_eager_loop_over_an_index_compiles_once() -> None:
    x = jnp.arange(7.0).reshape(7, 1)
    before = minijax.cache_stats()["compile"].misses
    rows = [float(x[i, 0]) for i in range(7)]
    assert minijax.cache_stats()["compile"].misses == before + 1
    assert rows == list(range(7))


@pytest.mark.feature("NP-01")
def test_eager_loop_over_the_start_of_a_slice_compiles_once() -> None:
    x = jnp.arange(11.0)
    before = minijax.cache_stats()["compile"].misses
    parts = [np.asarray(x[i : i + 2]).tolist() for i in range(9)]
    assert minijax.cache_stats()["compile"].misses == before + 1
    assert parts == [[i, i + 1] for i in range(9)]


@pytest.mark.feature("NP-01")
def test_eager_loop_under_grad_compiles_no_more_for_another_index() -> None:
    x = jnp.arange(13.0)
    minijax.grad(lambda x: x[1] * 2)(x)
    before = minijax.cache_stats()["compile"].misses
    for i in range(2, 5):
        minijax.grad(lambda x, i=i: x[i] * 2)(x)
    assert minijax.cache_stats()["compile"].misses == before


INDEX_JAXPRS = {
    "x[0]": "b:f32[1,4,3] = slice[limit_indices=(1, 4, 3) start_indices=(0, 0, 0) strides=None] a "
    "c:f32[4,3] = squeeze[dimensions=(0,)] b",
    "x[1:]": "b:f32[4,4,3] = slice[limit_indices=(5, 4, 3) start_indices=(1, 0, 0) strides=None] a",
    "x[::-1]": "b:f32[5,4,3] = rev[dimensions=(0,)] a",
    "x[::2, 1]": "b:f32[3,1,3] = slice[limit_indices=(5, 2, 3) start_indices=(0, 1, 0) "
    "strides=(2, 1, 1)] a c:f32[3,3] = squeeze[dimensions=(1,)] b",
    "x[:, None]": "b:f32[5,1,4,3] = broadcast_in_dim[broadcast_dimensions=(0, 2, 3)] a",
    "x[...]": "",
}


@pytest.mark.parametrize("expression", INDEX_JAXPRS)
def test_jaxpr_of_a_static_index_is_that_of_jax(expression: str) -> None:
    jaxpr = minijax.make_jaxpr(lambda x: eval(expression, {"x": x}))(X)
    text = re.sub(r"\s+", " ", str(jaxpr)).replace("[ ", "[").replace(" ]", "]")
    assert (
        re.fullmatch(r"\{ lambda ; a:f32\[5,4,3\]\. let ?(.*) in \(\w,\) \}", text)[1].strip()
        == INDEX_JAXPRS[expression]
    )


def test_traced_position_is_wrapped_and_sliced_dynamically() -> None:
    jaxpr = minijax.make_jaxpr(lambda x, i: x[i, 1])(X, np.int32(0))
    names = [eqn.primitive.name for eqn in jaxpr.eqns]
    assert names == ["lt", "add", "select_n", "dynamic_slice", "squeeze"]


def test_unsigned_position_is_not_wrapped() -> None:
    jaxpr = minijax.make_jaxpr(lambda x, i: x[i])(X, np.uint8(1))
    names = [eqn.primitive.name for eqn in jaxpr.eqns]
    assert names == ["convert_element_type", "dynamic_slice", "squeeze"]


def test_small_integers_count_from_the_end_of_a_large_dimension() -> None:
    x = jnp.arange(300)
    assert int(minijax.jit(lambda x, i: x[i])(x, np.int8(-1))) == 299


def test_constant_positions_are_one_constant() -> None:
    jaxpr = minijax.make_jaxpr(lambda x: x[np.array([0, -1]), 2])(X)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == [
        "broadcast_in_dim",
        "concatenate",
        "gather",
    ]


ERRORS = {
    "x[0, 0, 0, 0]": (IndexError, "4 indices for an array of type"),
    "x[..., ...]": (IndexError, "more than one ellipsis"),
    "x[1.0]": (TypeError, "must be integers or booleans"),
    "x['a']": (TypeError, "strings are no indices"),
    "x[[0, 1]]": (TypeError, "fix +x\\[numpy.array\\(index\\)\\]"),
    "x[{}]": (IndexError, "of type dict"),
    "x[::0]": (ValueError, "step 0"),
    "x[1.5:]": (TypeError, "bounds of a slice must be integers"),
    "x[np.ones(4, bool)]": (IndexError, "expected  shape \\(5,\\)"),
    "x[np.ones((5, 4, 2), bool)]": (IndexError, "expected  shape \\(5, 4, 3\\)"),
    "x[np.arange(2), np.arange(3)]": (ValueError, "no common shape.\n  got +\\(2,\\), \\(3,\\)"),
    "x[0:0][0]": (IndexError, "size 0"),
    "minijax.jit(lambda x, m: x[m])(x, np.ones(5, bool))": (
        IndexError,
        "unknown number of elements.*\n.*\n  fix +minijax.numpy.where",
    ),
    "minijax.jit(lambda x, i: x[i:])(x, 1)": (IndexError, "fix +lax.dynamic_slice"),
}


@pytest.mark.parametrize("expression", ERRORS)
def test_error_says_what_is_wrong_with_the_index(expression: str) -> None:
    kind, text = ERRORS[expression]
    with pytest.raises(kind, match=text):
        eval(expression, {"x": jnp.asarray(X), "np": np, "minijax": minijax})


def test_traced_mask_is_refused_by_an_error_of_its_own() -> None:
    with pytest.raises(minijax.errors.NonConcreteBooleanIndexError):
        minijax.make_jaxpr(lambda x, m: x[m])(X, np.ones(5, bool))


def test_numpy_boolean_is_a_scalar_mask() -> None:
    assert jnp.arange(3.0)[np.True_].shape == (1, 3)


def test_index_far_out_of_range_is_clamped() -> None:
    x = jnp.arange(3.0)
    assert [float(x[10**12]), float(x[-(10**12), None][0])] == [2.0, 0.0]


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("index", [-4, -3, 2, 5, (-9, 0), (slice(None), -9), (None, -4), (-4, ...)])
def test_known_positions_out_of_range_are_the_nearest_under_jit(index: Any) -> None:
    x = jnp.arange(4.0).reshape(2, 2)
    parts = index if isinstance(index, tuple) else (index,)
    nearest = tuple(max(-2, min(1, i)) if isinstance(i, int) else i for i in parts)
    wanted = np.asarray(x)[nearest]
    for function in (lambda a: a[index], minijax.jit(lambda a: a[index])):
        np.testing.assert_array_equal(function(x), wanted)
    np.testing.assert_array_equal(minijax.vmap(lambda a: a[-4])(x), x[:, 0])
    np.testing.assert_array_equal(minijax.jit(lambda a: a.at[index].set(9.0))(x), x)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("dims", [(0,), (0, 2), (3, 0), (0, 0)])
def test_masks_without_elements_select_nothing(dims: tuple[int, ...]) -> None:
    x, mask = np.arange(6.0, dtype=np.float32).reshape(3, 2), np.zeros(dims, bool)
    found, wanted = jnp.asarray(x)[mask], x[mask]
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(jnp.asarray(x).at[mask].set(5.0), x)
    for bad in (np.zeros(2, bool), np.zeros((0, 3), bool)):
        with pytest.raises(IndexError):
            x[bad]
        with pytest.raises(IndexError, match="mask"):
            jnp.asarray(x)[bad]


@pytest.mark.feature("RB-10")
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize("made", [np.asarray, jnp.array])
def test_the_largest_unsigned_positions_do_not_wrap_around(dtype, made):
    x = jnp.arange(1.0, 5.0)
    with minijax.enable_x64(dtype is np.uint64):
        far = made(np.array([np.iinfo(dtype).max], dtype))
        for position in (far, jnp.asarray(far)[0]):
            assert np.all(x[position] == 4)
            assert np.all(minijax.jit(lambda i: x[i])(position) == 4)
            np.testing.assert_array_equal(x.at[position].set(0), x)
        assert jnp.take(x, far, mode="clip")[0] == 4
        np.testing.assert_array_equal(jnp.bincount(far, length=3), [0, 0, 0])
        np.testing.assert_array_equal(jnp.insert(x, far, 9), [1, 2, 3, 4, 9])
