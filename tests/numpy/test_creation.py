"""New arrays: their values, dtypes and weak types, inside jit and out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp

# Calls that NumPy understands too.
CALLS: list[Callable[[Any], Any]] = [
    lambda np_: np_.zeros((2, 3), "float32"),
    lambda np_: np_.ones(3, "int32"),
    lambda np_: np_.full((2,), 1.5, "float32"),
    lambda np_: np_.eye(3, 4, 1, "float32"),
    lambda np_: np_.eye(3, k=-1, dtype="int32"),
    lambda np_: np_.identity(2, "bool"),
    lambda np_: np_.tri(3, 4, -1, "float32"),
    lambda np_: np_.arange(7, dtype="int32"),
    lambda np_: np_.arange(2, 9, 3, dtype="int32"),
    lambda np_: np_.arange(5, 1, -1, dtype="int32"),
    lambda np_: np_.arange(0, 1, 0.25, dtype="float32"),
    lambda np_: np_.arange(0, dtype="int32"),
    lambda np_: np_.linspace(0, 1, 5, dtype="float32"),
    lambda np_: np_.linspace(2, -1, 4, endpoint=False, dtype="float32"),
    lambda np_: np_.linspace(0, 10, 4, dtype="int32"),
    lambda np_: np_.linspace(0, 1, 1, dtype="float32"),
    lambda np_: np_.linspace(0, 1, 0, dtype="float32"),
    lambda np_: np_.linspace(np_.zeros(2), np_.ones(2), 3, axis=1, dtype="float32"),
    lambda np_: np_.logspace(0, 2, 3, dtype="float32"),
    lambda np_: np_.logspace(0, 2, 5, base=2, endpoint=False, dtype="float32"),
    lambda np_: np_.geomspace(1, 1000, 4, dtype="float32"),
    lambda np_: np_.geomspace(-8, -1, 4, dtype="float32"),
    lambda np_: np_.tril(np_.ones((3, 4), "float32"), 1),
    lambda np_: np_.triu(np_.ones((2, 3, 3), "float32"), -1),
    lambda np_: np_.diag(np_.ones((3, 4), "float32"), 1),
    lambda np_: np_.diag(np_.asarray([1, 2, 3], "int32"), -2),
    lambda np_: np_.diagonal(np_.arange(24, dtype="int32").reshape(2, 3, 4), -1, 1, 2),
    lambda np_: np_.diagonal(np_.ones((2, 3), "float32"), 7),
    lambda np_: np_.diagflat(np_.ones((2, 2), "float32"), 1),
    lambda np_: np_.trace(np_.arange(12, dtype="int32").reshape(3, 4), 1),
    lambda np_: np_.vander(np_.arange(3, dtype="int32"), 4),
    lambda np_: np_.vander(np_.arange(3, dtype="int32"), increasing=True),
    lambda np_: np_.tril_indices(3, 1, 4)[1],
    lambda np_: np_.triu_indices(4, -1)[0],
    lambda np_: np_.diag_indices(3)[1],
    lambda np_: np_.meshgrid(np_.arange(2), np_.arange(3))[1],
    lambda np_: np_.meshgrid(np_.arange(2), np_.arange(3), indexing="ij")[0],
    lambda np_: np_.meshgrid(np_.arange(2), np_.arange(3), sparse=True)[0],
    lambda np_: np_.indices((2, 3), dtype="int32"),
    lambda np_: np_.fromfunction(lambda i, j: i * 10 + j, (2, 3), dtype="float32"),
    lambda np_: np_.array([[1, 2], [3, 4]], "int32"),
    lambda np_: np_.array([1.5, 2], "float32", ndmin=3),
    lambda np_: np_.array([np_.arange(3), [1, 2, 3]], "int32"),
    lambda np_: np_.zeros_like(np_.ones((2, 2), "int32")),
    lambda np_: np_.ones_like(np_.zeros(3, "complex64")),
    lambda np_: np_.full_like(np_.zeros((2, 3), "float32"), np_.arange(3)),
    lambda np_: np_.frombuffer(b"abcd", "uint8"),
]


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("call", CALLS)
def test_array_is_that_of_numpy(call: Callable[[Any], Any]) -> None:
    np.testing.assert_allclose(call(jnp), call(np), rtol=1e-6)


@pytest.mark.parametrize("call", CALLS[::4])
def test_array_made_within_jit_is_the_same(call: Callable[[Any], Any]) -> None:
    np.testing.assert_allclose(minijax.jit(lambda: call(jnp))(), call(jnp), rtol=1e-6)


# Results of JAX 0.10.2; "~" marks weak types.
@pytest.mark.feature("CR-13")
@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (lambda: jnp.array(1), "~int32"),
        (lambda: jnp.asarray(2.5), "~float32"),
        (lambda: jnp.array(True), "bool"),
        (lambda: jnp.array([1]), "int32"),
        (lambda: jnp.array([1, 2.5]), "float32"),
        (lambda: jnp.array([True, 1]), "int32"),
        (lambda: jnp.array([1, 2j]), "complex64"),
        (lambda: jnp.array([np.int8(1), 2]), "int8"),
        (lambda: jnp.array([jnp.int8(1), jnp.int16(2)]), "int16"),
        (lambda: jnp.array([]), "float32"),
        (lambda: jnp.array(1, dtype=int), "int32"),
        (lambda: jnp.array(np.float64(1)), "float32"),
        (lambda: jnp.asarray(jnp.asarray(1.0)), "~float32"),
        (lambda: jnp.full((2,), 1), "~int32"),
        (lambda: jnp.full((2,), jnp.int8(1)), "int8"),
        (lambda: jnp.full_like(jnp.ones(2, "int8"), 1.5), "int8"),
        (lambda: jnp.zeros_like(2.0), "~float32"),
        (lambda: jnp.ones(2), "float32"),
        (lambda: jnp.arange(3), "int32"),
        (lambda: jnp.arange(3.0), "float32"),
        (lambda: jnp.arange(jnp.int8(3)), "int8"),
        (lambda: jnp.linspace(0, 1, 3), "float32"),
        (lambda: jnp.linspace(0, 1j, 3), "complex64"),
        (lambda: jnp.astype(jnp.asarray(1.0), "float32"), "float32"),
        (lambda: jnp.float32(3), "float32"),
        (lambda: jnp.int32(2.7), "int32"),
    ],
)
def test_type_of_new_array_is_that_of_jax(call: Callable[[], Any], wanted: str) -> None:
    aval = call().aval
    assert ("~" if aval.weak_type else "") + str(aval.dtype) == wanted


def test_texts_are_numbers_where_a_dtype_is_given() -> None:
    assert jnp.float32("1.5") == 1.5
    assert jnp.array("3", dtype=jnp.int32).dtype == jnp.int32
    assert jnp.array(np.array(["1", "2.5"]), dtype=jnp.float32).tolist() == [1.0, 2.5]
    with pytest.raises(TypeError, match="are not numbers"):
        jnp.array("1.5")
    with pytest.raises(TypeError, match="are not numbers"):
        jnp.array("one", dtype=jnp.float32)


def test_asarray_returns_an_array_itself() -> None:
    x = jnp.ones(3)
    assert jnp.asarray(x) is x


def test_array_copies_an_array() -> None:
    x = jnp.ones(3)
    assert jnp.array(x) is not x


def test_array_is_apart_from_the_host_memory_it_was_made_of() -> None:
    host = np.zeros(3, np.float32)
    x = jnp.array(host)
    host[0] = 7
    assert x[0] == 0


def test_array_takes_lists_with_tracers() -> None:
    found = minijax.jit(lambda x: jnp.array([[x, 1.0], [2.0, x]]))(3.0)
    np.testing.assert_array_equal(found, [[3, 1], [2, 3]])


def test_gradient_flows_through_lists() -> None:
    assert minijax.grad(lambda x: jnp.array([x, 2 * x]).sum())(1.0) == 3.0


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: jnp.array("a"), TypeError),
        (lambda: jnp.array({1: 2}), TypeError),
        (lambda: jnp.array(None), ValueError),
        (lambda: jnp.array([None]), ValueError),
        (lambda: jnp.array([[1, 2], [3]]), ValueError),
        (lambda: jnp.array([jnp.ones(2), jnp.ones(3)]), ValueError),
        (lambda: jnp.array([3_000_000_000]), OverflowError),
        (lambda: jnp.array(1, dtype="nonsense"), TypeError),
        (lambda: jnp.array(1, order="F"), NotImplementedError),
        (lambda: jnp.zeros(-1), TypeError),
        (lambda: jnp.zeros((2, "a")), TypeError),
        (lambda: jnp.full((2,), [1, 2]), TypeError),
        (lambda: jnp.full((2,), jnp.ones(3)), ValueError),
        (lambda: jnp.arange(3j), ValueError),
        (lambda: jnp.arange(0, 1, 0), ZeroDivisionError),
        (lambda: minijax.jit(jnp.arange)(3), TypeError),
        (lambda: minijax.jit(jnp.zeros)(3), TypeError),
        (lambda: jnp.linspace(0, 1, -1), ValueError),
        (lambda: jnp.triu(jnp.ones(3)), ValueError),
        (lambda: jnp.diag(jnp.ones(())), ValueError),
        (lambda: jnp.diagonal(jnp.ones(3)), ValueError),
        (lambda: jnp.meshgrid(jnp.ones((2, 2))), ValueError),
        (lambda: jnp.meshgrid(jnp.ones(2), indexing="ab"), ValueError),
        (lambda: jnp.triu_indices_from(jnp.ones(3)), ValueError),
        (lambda: jnp.fromiter(range(3), int), NotImplementedError),
        (lambda: jnp.from_dlpack(3), TypeError),
    ],
)
def test_impossible_array_is_refused(call: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        call()


@pytest.mark.feature("NP-01")
def test_ranges_reach_ends_that_the_narrower_dtype_cannot_hold() -> None:
    assert jnp.linspace(np.uint8(3), -1, 3).tolist() == [3, 1, -1]
    assert jnp.linspace(-1, np.array([3, 5], np.uint32), 2).tolist() == [[-1, -1], [3, 5]]
    assert jnp.geomspace(np.int8(3), 300, 3).round(2).tolist() == [3, 30, 300]
    assert jnp.logspace(np.uint8(1), -1, 3).tolist() == [10, 1, np.float32(0.1)]


def test_linspace_returns_the_step_on_request() -> None:
    samples, step = jnp.linspace(0, 1, 3, retstep=True)
    np.testing.assert_allclose([*samples, step], [0, 0.5, 1, 0.5])


def test_linspace_ends_exactly_at_stop() -> None:
    assert jnp.linspace(0.1, 0.7, 50)[-1] == np.float32(0.7)


def test_zeros_within_jit_is_one_broadcast() -> None:
    jaxpr = minijax.make_jaxpr(lambda: jnp.zeros((2, 3)))()
    assert [str(eqn.primitive) for eqn in jaxpr.eqns] == ["broadcast_in_dim"]


GIVEN: list[Callable[[], Any]] = [
    lambda: jnp.zeros(()),
    lambda: jnp.ones((), "int8"),
    lambda: jnp.positive(2.0),
    lambda: jnp.real(2.5),
    lambda: jnp.conj(np.float32(2)),
    lambda: jnp.round(3),
    lambda: jnp.floor(3),
    lambda: jnp.clip(2.0),
    lambda: jnp.nan_to_num(3),
    lambda: jnp.real(np.ones(2)),
]


@pytest.mark.parametrize("call", GIVEN)
def test_what_is_returned_as_it_was_given_is_an_array_in_traces_too(
    call: Callable[[], Any],
) -> None:
    def function() -> Any:
        made = call()
        assert isinstance(made, minijax.Array)
        return made, made.at[...].add(1)

    made, more = minijax.jit(function)()
    np.testing.assert_array_equal(np.asarray(call()) + 1, more)
    assert minijax.typeof(made) == minijax.typeof(call())


def test_known_numbers_stay_known_in_traces() -> None:
    x = jnp.ones(6)
    assert minijax.jit(lambda x: x.reshape(int(jnp.round(3)), -1))(x).shape == (3, 2)


def test_from_dlpack_reads_numpy() -> None:
    np.testing.assert_array_equal(jnp.from_dlpack(np.arange(3, dtype=np.int32)), [0, 1, 2])


def test_large_arrays_are_filled_on_the_device() -> None:
    assert jnp.ones((300, 300)).sum() == 90_000
