"""Functions that join, split, insert and delete do as NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from tests.numpy import facts

FACTS = facts.load("joining")
NAMES = facts.namespace(minijax, FACTS)

X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
V = np.arange(5, dtype=np.float32)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("expression", FACTS.answers)
def test_joining_gives_what_jax_gives(expression: str) -> None:
    facts.check(expression, FACTS, NAMES)


def test_concatenation_promotes_and_keeps_weak_types() -> None:
    weak = jnp.full((1,), 1.0)
    joined = [jnp.concatenate([weak, weak]), jnp.concatenate([weak, np.arange(2, dtype=np.int8)])]
    assert [x.weak_type for x in joined] == [True, True]
    assert jnp.concatenate([weak, jnp.ones(1, "bfloat16")]).dtype == jnp.bfloat16


def test_joining_many_arrays_is_one_program() -> None:
    arrays = [jnp.full((31,), float(i)) for i in range(5)]
    before = minijax.cache_stats()["compile"].misses
    jnp.stack(arrays)
    assert minijax.cache_stats()["compile"].misses == before + 1


def test_traced_position_is_inserted_before() -> None:
    insert = minijax.jit(lambda x, i: jnp.insert(x, i, 9.0))
    for i in range(-5, 6):
        np.testing.assert_array_equal(np.asarray(insert(V, i)), np.insert(V, i, 9))


def test_traced_unique_positions_are_deleted() -> None:
    delete = minijax.jit(lambda x, i: jnp.delete(x, i, assume_unique_indices=True))
    assert np.asarray(delete(V, np.array([3, 1]))).tolist() == [0, 2, 4]


ERRORS = {
    "jnp.concatenate([])": (ValueError, "at least one array"),
    "jnp.concatenate([1, 2])": (ValueError, "fix +numpy.stack joins scalars"),
    "jnp.concatenate(3)": (TypeError, "needs a sequence of arrays"),
    "jnp.concatenate([x, x[0]])": (TypeError, "differ|dimensions"),
    "jnp.stack([x, x[0]])": (ValueError, "f32\\[3,4\\], f32\\[4\\]"),
    "jnp.stack([x], out=x)": (NotImplementedError, "leave out= away"),
    "jnp.block([[x], x])": (ValueError, "nested equally deep"),
    "jnp.block([])": (ValueError, "lists that are not empty"),
    "jnp.split(x, 2)": (ValueError, "size 3, 2\n  fix +numpy.array_split"),
    "jnp.split(x, [2, 1])": (ValueError, "must ascend"),
    "jnp.dsplit(x, 2)": (ValueError, "needs 3 dimensions"),
    "jnp.delete(x, 3, 0)": (ValueError, "out of range.\n  got +3, size 3"),
    "minijax.jit(jnp.delete)(x, 0)": (TypeError, "positions are traced"),
    "minijax.jit(jnp.trim_zeros)(x)": (TypeError, "the array is traced"),
}


@pytest.mark.parametrize("expression", ERRORS)
def test_error_says_what_does_not_fit(expression: str) -> None:
    kind, text = ERRORS[expression]
    with pytest.raises(kind, match=text):
        eval(expression, {"jnp": jnp, "minijax": minijax, "x": jnp.asarray(X)})


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("name", ["r_", "c_"])
@pytest.mark.parametrize("text", ["0", "-1", "0,2", "1,2", "0,3,0", "0,3,1", "1,3,0", "0,3,-2"])
def test_directives_leave_the_rest_as_it_is(name: str, text: str) -> None:
    for part in (np.array([1, 2]), np.array([[1, 2], [3, 4]])):
        wanted = getattr(np, name)[text, part, 5 * part]
        found = getattr(jnp, name)[text, part, 5 * part]
        assert found.shape == wanted.shape
        np.testing.assert_array_equal(found, wanted)


def test_a_directive_stands_in_front() -> None:
    for joiner in (np.r_, jnp.r_):
        with pytest.raises(ValueError, match="directive"):
            joiner[[1], "0"]
