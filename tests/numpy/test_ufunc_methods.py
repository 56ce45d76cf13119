"""What ufuncs do beside being called, and the objects whose brackets build arrays."""

from __future__ import annotations

import pickle
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
    lambda np_: np_.subtract.reduce(F, axis=1, where=F > 0, initial=10),
    lambda np_: np_.bitwise_xor.reduce(I, axis=(0, 1), where=I > 3),
    lambda np_: np_.bitwise_and.reduce(I.astype(np.uint8), axis=1, where=I > 3, keepdims=True),
    lambda np_: np_.logical_and.reduce(I, initial=False),
    lambda np_: np_.logical_or.reduce(F > 1, axis=1, where=F < 3, initial=True),
    lambda np_: np_.minimum.reduce(I, axis=1, initial=2),
    lambda np_: np_.bitwise_and.reduce(np.zeros((0, 2), bool)),
    lambda np_: np_.logaddexp.reduce(np.zeros((2, 0), np.float32), axis=1),
    lambda np_: np_.subtract.accumulate(np.zeros((0, 2), np.float32)),
    lambda np_: np_.logical_xor.accumulate(I, axis=1),
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


@pytest.mark.parametrize("name", ["add", "multiply", "subtract", "maximum", "minimum", "logaddexp"])
def test_at_applies_repeatedly_at_repeated_indices(name: str) -> None:
    wanted = V.copy()
    getattr(np, name).at(wanted, [0, 0, 2], 2.0)
    found = getattr(jnp, name).at(V, jnp.array([0, 0, 2]), 2.0, inplace=False)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "indices", "b"),
    [
        ("bitwise_xor", (np.array([0, 1, 0]), np.array([2, 1, -1])), 5),
        ("bitwise_or", np.array([1, 1]), np.array([[8], [16]])),
        ("bitwise_and", (slice(None), np.array([0, 0, 2])), np.array([6, 5, 3])),
        ("negative", (Ellipsis, np.array([1, 1, 1, 2])), None),
        ("bitwise_or", (0, slice(1, None)), np.array([8, 16])),
    ],
)
def test_at_takes_any_index(name: str, indices: Any, b: Any) -> None:
    wanted = I.copy()
    operands = () if b is None else (b,)
    getattr(np, name).at(wanted, indices, *operands)
    found = getattr(jnp, name).at(I, indices, *operands, inplace=False)
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype == np.int32


def test_at_outside_of_the_array_changes_nothing() -> None:
    function = jnp.frompyfunc(lambda x, y: 10 * x + y, 2, 1)
    found = function.at(
        jnp.array([1, 2]), jnp.array([0, 7, 0]), jnp.array([3, 4, 5]), inplace=False
    )
    assert found.tolist() == [135, 2]


def test_results_have_the_dtype_that_the_function_keeps() -> None:
    for name in ("logaddexp", "logaddexp2"):
        function, expected = getattr(jnp, name), getattr(np, name)
        found = function.accumulate(I, axis=1)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected.accumulate(I.astype(np.float32), 1), rtol=1e-6)
        assert function.reduceat(I[0], jnp.array([0, 2])).dtype == np.float32
    assert jnp.maximum.reduce(I, dtype="float32").dtype == np.float32
    assert jnp.subtract.reduce(jnp.arange(3), initial=1.5).dtype == np.int32


def test_what_has_an_order_is_one_loop() -> None:
    function = jnp.frompyfunc(lambda x, y: 2 * x + y, 2, 1)
    x = minijax.ShapeDtypeStruct((10_000,), np.float32)
    for method in (function.reduce, function.accumulate, jnp.subtract.reduce):
        assert len(minijax.make_jaxpr(method)(x).eqns) < 20


def test_a_letter_makes_a_vector_a_row_or_a_column() -> None:
    assert jnp.r_["r", 0:2, 7].tolist() == [[0, 1, 7]]
    assert jnp.r_["c", 0:2, 7].tolist() == [[0], [1], [7]]
    assert jnp.r_["r", F].shape == F.shape


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
        (lambda: jnp.subtract.reduce(V, where=V > 1), ValueError, "there may be nothing"),
        (lambda: jnp.subtract.reduce(V, axis=5), ValueError, "numpy.subtract.reduce: axis 5"),
        (lambda: jnp.subtract.accumulate(V, axis=None), ValueError, "one axis"),
        (lambda: jnp.logaddexp.at(V, 0, inplace=False), TypeError, "as many operands"),
        (lambda: jnp.frompyfunc(3, 1, 1), TypeError, "numpy.frompyfunc"),
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


@pytest.mark.feature("NP-01")
def test_ufuncs_are_values() -> None:
    def difference(x: Any, y: Any) -> Any:
        return x - y

    first, second = (jnp.frompyfunc(difference, 2, 1) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)
    assert first != jnp.frompyfunc(difference, 2, 1, identity=0)
    assert first != jnp.frompyfunc(lambda x, y: x - y, 2, 1)
    assert jnp.add != jnp.multiply
    assert pickle.loads(pickle.dumps(jnp.add)) == jnp.add
    assert minijax.jit(lambda f, x: f(x, x), static_argnums=0)(jnp.add, 2.0) == 4.0


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("name", ["nin", "nout", "nargs", "identity"])
def test_properties_of_ufuncs_are_read_only(name: str) -> None:
    assert getattr(jnp.add, name) == getattr(np.add, name)
    with pytest.raises(AttributeError):
        setattr(jnp.add, name, 3)
