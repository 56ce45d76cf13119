"""`pad` gives arrays the borders that NumPy's `pad` gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minijax
import minijax.numpy as jnp
from tests.numpy import facts

FACTS = facts.load("padding")
NAMES = facts.namespace(minijax, FACTS)

X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("expression", FACTS.answers)
def test_padding_gives_what_jax_gives(expression: str) -> None:
    facts.check(expression, FACTS, NAMES)


@pytest.mark.parametrize("dtype", ["int32", "uint8"])
@pytest.mark.parametrize("mode", ["mean", "linear_ramp", "median", "reflect"])
def test_padding_integers_rounds_as_numpy(dtype: str, mode: str) -> None:
    x = np.array([[3, 0, 8], [1, 1, 5]], dtype)
    expected = np.pad(x, ((1, 2), (3, 4)), mode=mode)
    found = jnp.pad(jnp.asarray(x), ((1, 2), (3, 4)), mode=mode)
    assert found.dtype == dtype
    np.testing.assert_array_equal(np.asarray(found), expected)


@given(
    size=st.integers(1, 5),
    widths=st.tuples(st.integers(0, 12), st.integers(0, 12)),
    mode=st.sampled_from(["edge", "wrap", "reflect", "symmetric"]),
    reflect_type=st.sampled_from(["even", "odd"]),
)
def test_borders_of_any_width_are_those_of_numpy(
    size: int, widths: Any, mode: str, reflect_type: str
) -> None:
    x = np.arange(size) ** 2
    options = {"reflect_type": reflect_type} if mode in ("reflect", "symmetric") else {}
    found = jnp.pad(x, widths, mode=mode, **options)
    assert np.asarray(found).tolist() == np.pad(x, widths, mode=mode, **options).tolist()


def test_function_pads_vectors_along_each_dimension() -> None:
    def border(row: Any, width: Any, axis: int, options: Any) -> Any:
        return row.at[: width[0]].set(options["value"] + axis)

    found = jnp.pad(X, 1, border, value=5.0)
    assert np.asarray(found)[:, 0].tolist() == [6.0, 6.0, 6.0, 6.0, 6.0]
    assert np.asarray(found)[0, 1:].tolist() == [5.0] * 4 + [5.0]


def test_traced_value_fills_the_border() -> None:
    found = minijax.jit(lambda x, value: jnp.pad(x, 1, constant_values=value))(X, 3.0)
    np.testing.assert_array_equal(np.asarray(found), np.pad(X, 1, constant_values=3))


ERRORS = {
    "jnp.pad(x, -1)": (ValueError, "must not be negative"),
    "jnp.pad(x, 0.5)": (TypeError, "pad_width must hold integers"),
    "jnp.pad(x, ((1, 1), (1, 1), (1, 1)))": (ValueError, "or 2 pairs"),
    "jnp.pad(x, 1, mode='wrong')": (NotImplementedError, "expected +constant, empty, edge"),
    "jnp.pad(x, 1, mode='edge', end_values=1)": (ValueError, "got +end_values\n  expected  none"),
    "jnp.pad(x, 1, mode='reflect', reflect_type='x')": (ValueError, "reflect_type 'x'"),
    "jnp.pad(x[:0], 1, mode='edge')": (ValueError, "empty dimension 0"),
    "minijax.jit(lambda x, n: jnp.pad(x, n))(x, 1)": (TypeError, "pad_width must be known"),
}


@pytest.mark.parametrize("expression", ERRORS)
def test_error_says_what_does_not_fit(expression: str) -> None:
    kind, text = ERRORS[expression]
    with pytest.raises(kind, match=text):
        eval(expression, {"jnp": jnp, "minijax": minijax, "x": jnp.asarray(X)})
