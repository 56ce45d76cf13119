"""Functions that rearrange dimensions do as NumPy's, eagerly, under `jit`, `vmap` and `grad`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_strategies

import minijax
import minijax.numpy as jnp
from minijax.core.config import enable_x64
from tests.numpy import facts

FACTS = facts.load("shaping")
NAMES = facts.namespace(minijax, FACTS)

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("expression", FACTS.answers)
def test_shaping_gives_what_jax_gives(expression: str) -> None:
    facts.check(expression, FACTS, NAMES)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "bfloat16", "complex64"])
def test_dtype_stays(dtype: str) -> None:
    x = jnp.ones((2, 3), dtype)
    results = [jnp.roll(x, 1), jnp.tile(x, 2), jnp.repeat(x, 2), jnp.resize(x, 7), jnp.rot90(x)]
    assert {str(y.dtype) for y in results} == {dtype}


@pytest.mark.feature("UX-01")
def test_roll_by_a_float_says_its_type() -> None:
    with pytest.raises(TypeError, match=r"numpy\.roll: shifts must be integers\.\s+got +~f32\[\]"):
        jnp.roll(X, 1.5)


def test_traced_shift_rolls_as_a_known_one() -> None:
    roll = minijax.jit(lambda x, s: jnp.roll(x, s, 1))
    found = [np.asarray(roll(X, s)) for s in range(-7, 8)]
    np.testing.assert_array_equal(found, [np.roll(X, s, 1) for s in range(-7, 8)])
    with enable_x64(True):
        for far in (np.int64(2**33 + 1), np.int64(-(2**62)), np.uint64(2**63), np.uint32(2**31)):
            np.testing.assert_array_equal(roll(X, far), np.roll(X, int(far), 1))


def test_eager_loop_over_a_shift_compiles_once() -> None:
    x = jnp.arange(29.0)
    before = minijax.cache_stats()["compile"].misses
    for shift in range(5):
        jnp.roll(x, shift)
    assert minijax.cache_stats()["compile"].misses == before + 1


@pytest.mark.slow
@given(repeats=st.lists(st.integers(0, 3), min_size=1, max_size=4), extra=st.integers(-2, 3))
def test_traced_repeats_fill_the_length_that_is_given(repeats: list[int], extra: int) -> None:
    total = max(sum(repeats) + extra, 0)
    x = np.arange(len(repeats))
    expected = np.append(np.repeat(x, repeats), np.full(max(extra, 0), x[-1]))[:total]

    def repeat(repeats: Any) -> Any:
        return jnp.repeat(x, repeats, total_repeat_length=total)

    assert np.asarray(minijax.jit(repeat)(np.array(repeats))).tolist() == expected.tolist()
    assert np.asarray(repeat(np.array(repeats))).tolist() == expected.tolist()


@given(shapes=numpy_strategies.mutually_broadcastable_shapes(num_shapes=3, min_side=0))
def test_shapes_broadcast_as_in_numpy(shapes: Any) -> None:
    assert jnp.broadcast_shapes(*shapes.input_shapes) == shapes.result_shape


def test_reshape_to_its_own_shape_is_the_array_itself() -> None:
    x = jnp.asarray(X)
    assert x.reshape(2, 3, 4) is x


def test_repeating_numbers_of_a_list_is_understood() -> None:
    assert np.asarray(jnp.repeat(jnp.arange(2), [1, 2])).tolist() == [0, 1, 1]


ERRORS = {
    "jnp.reshape(x, (5, -1))": (TypeError, "array: f32\\[2,3,4\\] +shape: \\(5, -1\\)"),
    "jnp.reshape(x, (-1, -1))": (TypeError, "one -1 at most"),
    "jnp.reshape(x, (2.5, 1))": (TypeError, "numpy.reshape: the shape must hold integers"),
    "jnp.reshape(x, (24,), order='X')": (ValueError, "unknown order 'X'"),
    "jnp.transpose(x, (0, 1))": (TypeError, "not a permutation|permutation"),
    "jnp.transpose(x, (0, 1, 3))": (ValueError, "numpy.transpose: axis 3 is out of range"),
    "jnp.moveaxis(x, (0, 1), 0)": (ValueError, "equally many"),
    "jnp.squeeze(x, 1)": (ValueError, "size 1"),
    "jnp.broadcast_to(x, (3, 4))": (ValueError, "does not fit the shape"),
    "jnp.broadcast_shapes((2,), (3,))": (ValueError, "\\(2,\\) \\(3,\\)"),
    "jnp.roll(x, (1, 2), (0, 1, 2))": (ValueError, "2 shifts, 3 axes"),
    "jnp.roll(x, 0.5)": (TypeError, "shifts must be integers"),
    "jnp.tile(x, -1)": (TypeError, "must not be negative"),
    "jnp.repeat(x, np.array([1, 2]), 1)": (ValueError, "2 numbers for 3 positions"),
    "jnp.repeat(x, 0.5)": (TypeError, "repeats must be integers"),
    "minijax.jit(lambda x, r: jnp.repeat(x, r))(x, 2)": (TypeError, "fix +give total_repeat"),
    "jnp.resize(x, -1)": (ValueError, "must not be negative"),
    "jnp.rot90(x, 1, (0, 0))": (ValueError, "an axis is named twice"),
    "jnp.flip([1, 2])": (TypeError, "operands must be arrays or numbers"),
}


@pytest.mark.parametrize("expression", ERRORS)
def test_error_says_what_does_not_fit(expression: str) -> None:
    kind, text = ERRORS[expression]
    with pytest.raises(kind, match=text):
        eval(expression, {"jnp": jnp, "np": np, "minijax": minijax, "x": jnp.asarray(X)})
