"""Trees as vectors and back."""

from __future__ import annotations

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.flatten_util import ravel_pytree

TREE = {"w": np.float32([[1, 2], [3, 4]]), "n": (np.int32([5]), 1j), "b": np.array(True)}


@pytest.mark.feature("NP-01")
def test_raveled_trees_come_back_with_their_dtypes():
    vector, unravel = ravel_pytree(TREE)
    assert vector.tolist() == [1, 5, 1j, 1, 2, 3, 4]
    assert vector.dtype == "complex64"
    back = unravel(vector)
    assert minijax.tree.structure(back) == minijax.tree.structure(TREE)
    for actual, expected in zip(*map(minijax.tree.leaves, (back, TREE)), strict=True):
        assert actual.dtype == jnp.asarray(expected).dtype
        assert np.array_equal(actual, expected)


def test_raveled_trees_of_one_dtype_come_back_with_that_of_the_vector():
    vector, unravel = ravel_pytree([1, 2])
    assert vector.dtype == "int32"
    assert minijax.typeof(vector).weak_type
    assert [x.dtype for x in unravel(np.float16([1, 2]))] == ["float16", "float16"]


def test_raveling_knows_empty_trees_and_equal_ones():
    vector, unravel = ravel_pytree({"a": ()})
    assert vector.shape == (0,)
    assert unravel(vector) == {"a": ()}
    assert ravel_pytree(TREE)[1] == ravel_pytree(TREE)[1]
    assert len({ravel_pytree(TREE)[1], ravel_pytree(TREE)[1], unravel}) == 2


def test_raveling_passes_through_transformations():
    def energy(tree):
        vector, unravel = ravel_pytree(tree)
        return jnp.sum(vector**2) + unravel(vector)["a"][0]

    tree = {"a": np.float32([1, 2]), "b": np.float32(3)}
    slopes = minijax.jit(minijax.grad(energy))(tree)
    assert slopes["a"].tolist() == [3, 4]
    assert slopes["b"] == 6
    batch = minijax.vmap(lambda a, b: ravel_pytree((a, b))[0])(np.ones((3, 2)), np.zeros((3, 1)))
    assert batch.tolist() == [[1, 1, 0]] * 3


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: ravel_pytree("a"), TypeError, "arrays or numbers"),
        (lambda: ravel_pytree(TREE)[1](np.ones(7)), TypeError, "vector.astype\\('complex64'\\)"),
        (lambda: ravel_pytree(TREE)[1](np.ones(3)), ValueError, "expected  7 elements"),
    ],
)
def test_raveling_refuses_what_does_not_fit(call, error, match):
    with pytest.raises(error, match=match):
        call()
