"""Functions that join, split, insert and delete do as NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import tree
from tests.numpy import facts

FACTS = facts.load("joining")
NAMES = facts.namespace(minijax, FACTS)

X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
V = np.arange(5, dtype=np.float32)

# The same call of NumPy and of ours; `np` is either.
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "concatenate": lambda np, x: np.concatenate([x, x[:1], -x]),
    "concatenate columns": lambda np, x: np.concatenate((x, x[:, 1:2]), axis=-1),
    "concatenate vectors": lambda np, x: np.concatenate([x, x[0]], axis=None),
    "stack": lambda np, x: np.stack([x, -x], axis=1),
    "unstack": lambda np, x: np.unstack(x, axis=1),
    "vstack": lambda np, x: np.vstack([x, x[0]]),
    "hstack": lambda np, x: np.hstack([x, x]),
    "hstack vectors": lambda np, x: np.hstack([x[0], x[1, :2]]),
    "dstack": lambda np, x: np.dstack([x, -x]),
    "column_stack": lambda np, x: np.column_stack([x, x[:, 0]]),
    "block": lambda np, x: np.block([[x, x[:, :1]], [x[:1], x[:1, :1]]]),
    "split": lambda np, x: np.split(x, 2, axis=1),
    "split at positions": lambda np, x: np.split(x, [1, 1, 3], axis=1),
    "array_split": lambda np, x: np.array_split(x, 3, axis=1),
    "array_split into more": lambda np, x: np.array_split(x, 5, axis=1),
    "hsplit": lambda np, x: np.hsplit(x, 2),
    "vsplit": lambda np, x: np.vsplit(x, [1]),
    "dsplit": lambda np, x: np.dsplit(x[None], 4),
    "append": lambda np, x: np.append(x, x[:1], 0),
    "append as vectors": lambda np, x: np.append(x, 7),
    "delete": lambda np, x: np.delete(x, 1, 0),
    "delete some": lambda np, x: np.delete(x, np.array([0, -1]), 1),
    "delete a slice": lambda np, x: np.delete(x, slice(0, 4, 2), 1),
    "delete from a vector": lambda np, x: np.delete(x, np.array([0, 0, 5])),
    "insert": lambda np, x: np.insert(x, 1, 9, 0),
    "insert at the end": lambda np, x: np.insert(x, 4, 9, 1),
    "insert a row": lambda np, x: np.insert(x, -1, x[0], 0),
    "insert rows": lambda np, x: np.insert(x, np.array([2, 0, 2]), x * 2, 0),
    "insert a slice": lambda np, x: np.insert(x, slice(1, 3), 9, 1),
    "insert into a vector": lambda np, x: np.insert(x, np.array([3, 1]), x[0, :2]),
}


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("expression", FACTS.answers)
def test_joining_gives_what_jax_gives(expression: str) -> None:
    facts.check(expression, FACTS, NAMES)


def assert_equal(found: Any, expected: Any) -> None:
    found, expected = tree.leaves(found), tree.leaves(expected)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(x), y, rtol=1e-6)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("name", CALLS)
def test_eager_call_does_as_numpy(name: str) -> None:
    assert_equal(CALLS[name](jnp, jnp.asarray(X)), CALLS[name](np, X))


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("name", CALLS)
def test_call_under_vmap_and_jit_does_as_a_loop(name: str) -> None:
    found = minijax.jit(minijax.vmap(lambda x: CALLS[name](jnp, x)))(np.stack([X, -X]))
    pairs = zip(*(tree.leaves(CALLS[name](np, x)) for x in (X, -X)), strict=True)
    assert_equal(found, [np.stack(pair) for pair in pairs])


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("name", CALLS)
def test_gradient_agrees_with_forward_mode(name: str) -> None:
    def total(x: Any) -> Any:
        return sum((y * y).sum() for y in tree.leaves(CALLS[name](jnp, x)))

    (expected,) = minijax.jvp(total, (X,), (np.ones_like(X),))[1:]
    np.testing.assert_allclose(minijax.grad(total)(X).sum(), expected, rtol=1e-5)


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
