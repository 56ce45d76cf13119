"""What ufuncs do beside being called, and the objects whose brackets build arrays."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp

V = np.array([1.0, 4.0, 9.0, 2.0, 0.5], np.float32)
F = np.array([[1.5, -2.0, 0.5], [3.0, 0.25, -1.0]], np.float32)
I = np.array([[1, 6, 3], [4, 5, 7]], np.int32)  # noqa: E741  integers, beside F

# Calls that NumPy understands too.
CALLS: list[Callable[[Any], Any]] = [
    lambda np_: np_.add.reduce(F),
    lambda np_: np_.add.reduce(F, axis=1, keepdims=True),
    lambda np_: np_.add.accumulate(F, axis=1),
    lambda np_: np_.add.outer(V, F),
    lambda np_: np_.subtract.reduce(V),
    lambda np_: np_.subtract.accumulate(V),
    lambda np_: np_.multiply.reduce(F, axis=None),
    lambda np_: np_.multiply.accumulate(V),
    lambda np_: np_.maximum.reduce(F, axis=(0, 1)),
    lambda np_: np_.maximum.accumulate(V),
    lambda np_: np_.minimum.reduce(F, axis=-1),
    lambda np_: np_.logaddexp.reduce(V),
    lambda np_: np_.logaddexp.accumulate(V),
    lambda np_: np_.logical_and.reduce(F, axis=1),
    lambda np_: np_.logical_xor.reduce(F > 0, axis=1),
    lambda np_: np_.bitwise_and.reduce(I, axis=1),
    lambda np_: np_.bitwise_or.reduce(I, axis=0, keepdims=True),
    lambda np_: np_.bitwise_xor.reduce(I.ravel(), initial=8),
    lambda np_: np_.add.reduceat(V, np.array([0, 3, 1, 4])),
    lambda np_: np_.subtract.reduceat(F, np.array([1, 0]), axis=1),
    lambda np_: np_.maximum.reduceat(I, np.array([0, 1]), axis=-2),
    lambda np_: np_.mgrid[0:2, 0:3],
    lambda np_: np_.mgrid[0:1:3j],
    lambda np_: np_.ogrid[0:2, 1:7:2][1],
    lambda np_: np_.r_[1, 2, V],
    lambda np_: np_.r_[0:3, 0:1:3j],
    lambda np_: np_.r_["0,2", V, V],
    lambda np_: np_.r_["1,2,0", V, V],
    lambda np_: np_.r_["-1", F, F],
    lambda np_: np_.c_[V, V],
    lambda np_: np_.c_[F, F],
]


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("call", CALLS)
def test_result_is_that_of_numpy(call: Callable[[Any], Any]) -> None:
    np.testing.assert_allclose(call(jnp), call(np), rtol=2e-6)


@pytest.mark.parametrize("name", ["add", "multiply", "subtract", "maximum", "minimum"])
def test_at_applies_repeatedly_at_repeated_indices(name: str) -> None:
    wanted = V.copy()
    getattr(np, name).at(wanted, [0, 0, 2], 2.0)
    found = getattr(jnp, name).at(V, jnp.array([0, 0, 2]), 2.0, inplace=False)
    np.testing.assert_allclose(found, wanted)


def test_at_of_one_argument_changes_elements() -> None:
    np.testing.assert_allclose(jnp.negative.at(V[:2], 0, inplace=False), [-1, 4])


def test_frompyfunc_combines_in_order() -> None:
    function = jnp.frompyfunc(lambda x, y: 2 * x + y, 2, 1)
    np.testing.assert_allclose(
        [function.reduce(V[:3]), *function.accumulate(V[:3])], [21, 1, 6, 21]
    )


def test_frompyfunc_broadcasts() -> None:
    function = jnp.frompyfunc(lambda x, y: 2 * x + y, 2, 1)
    np.testing.assert_allclose(function(F, F[:, :1]), 2 * F + F[:, :1])


def test_reduce_of_nothing_is_the_identity() -> None:
    assert jnp.bitwise_or.reduce(jnp.zeros(0, "int32")) == 0


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: jnp.add.at(V, 0, 1.0), NotImplementedError, "inplace=False"),
        (lambda: jnp.add(V, V, out=V), NotImplementedError, "neither `out` nor `where`"),
        (lambda: jnp.add(V), TypeError, "argument"),
        (lambda: jnp.add.reduceat(V, jnp.array([0.5])), ValueError, "are integers"),
        (lambda: jnp.add.reduceat(V, jnp.array([[0]])), ValueError, "have one dimension"),
        (lambda: jnp.add.reduceat(V, jnp.array([0]), axis=None), ValueError, "along one axis"),
        (lambda: jnp.negative.reduceat(V, jnp.array([0])), ValueError, "two arguments"),
        (lambda: jnp.negative.reduce(V), ValueError, "two arguments"),
        (lambda: jnp.maximum.reduce(V, where=V > 2), ValueError, "initial"),
        (lambda: jnp.subtract.reduce(jnp.zeros(0)), ValueError, "nothing to reduce"),
        (lambda: jnp.subtract.reduce(F, axis=(0, 1)), NotImplementedError, "one axis"),
        (lambda: jnp.mgrid[1:], ValueError, "needs an end"),
        (lambda: jnp.r_["x", V], ValueError, "directive"),
    ],
)
def test_impossible_call_is_refused(
    call: Callable[[], Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=re.escape(text)):
        call()


def test_ufunc_names_itself() -> None:
    assert (repr(jnp.add), jnp.add.__name__) == ("<minijax.numpy.ufunc 'add'>", "add")


def test_ufunc_can_be_transformed() -> None:
    assert minijax.jit(minijax.grad(jnp.multiply))(3.0, 4.0) == 4.0
