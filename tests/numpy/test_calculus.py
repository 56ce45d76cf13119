"""Differences, integrals, convolutions, windows, polynomials, histograms, bits, divisors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp

V = np.array([1.0, 4.0, 9.0, 7.0], np.float32)
W = np.array([2.0, -1.0, 0.5], np.float32)
F = np.array([[1.5, -2.0, 0.5], [3.0, 0.25, -1.0]], np.float32)
G = np.array([[2.0, 1.0, -0.5], [1.5, 4.0, 2.0]], np.float32)
POINTS = np.array([1.0, 4.0, 9.0], np.float32)
WHERE = np.array([0.0, 2.5, 5.0, 9.0, 20.0], np.float32)
ANGLES = np.array([0.0, 1.0, 5.0, -3.0, 9.0, 12.0], np.float32)

# Calls that NumPy understands too.
CALLS: list[Callable[[Any], Any]] = [
    lambda np_: np_.diff(F, axis=0, prepend=0.0),
    lambda np_: np_.diff(F, prepend=F[:, :1], append=G),
    lambda np_: np_.diff(np_.asarray([True, False, False, True])),
    lambda np_: np_.ediff1d(F, to_begin=np_.asarray([0.0], "float32")),
    lambda np_: np_.gradient(F, 2.0, axis=1),
    lambda np_: np_.gradient(V, np_.asarray([0.0, 1.0, 3.0, 4.0], "float32")),
    lambda np_: np_.trapezoid(F, np_.asarray([0.0, 1.0, 3.0], "float32"), axis=1),
    lambda np_: np_.interp(WHERE, POINTS, 2 * POINTS, left=-1.0, right=-2.0),
    lambda np_: np_.interp(WHERE, POINTS, 2 * POINTS, period=10.0),
    lambda np_: np_.interp(np_.asarray([[0.5], [3.0]], "float32"), POINTS, 2 * POINTS),
    lambda np_: np_.unwrap(np_.asarray([3, 0, 1, 2, 3, 0]), period=4),
    lambda np_: np_.cross(F.T, G.T, axis=0),
    lambda np_: np_.polyint(V, 2, k=np_.asarray([1.0, 2.0], "float32")),
    lambda np_: np_.histogram(F, 4, range=(-1, 2), weights=np_.abs(G))[0],
    lambda np_: np_.histogram(F, np_.asarray([-2.0, 0.0, 3.0], "float32"), density=True)[0],
    lambda np_: np_.histogramdd(F.T, 2, density=True)[0],
    lambda np_: np_.bincount(np_.asarray([1, 1, 3, 0]), weights=V, minlength=6),
    lambda np_: np_.packbits(np_.arange(20) % 3, bitorder="little"),
    lambda np_: np_.gcd(np_.asarray([12, 0, -8, 7], "int8"), np_.asarray([18, 5, 12, 0], "int8")),
    lambda np_: np_.lcm(np_.asarray([4, 0, -3], "int8"), np_.asarray([6, 5, 7], "int8")),
]


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("call", CALLS)
def test_function_is_that_of_numpy(call: Callable[[Any], Any]) -> None:
    np.testing.assert_allclose(call(jnp), call(np), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: jnp.diff(jnp.float32(1)), ValueError),
        (lambda: jnp.diff(V, n=-1), ValueError),
        (lambda: jnp.gradient(V, edge_order=2), NotImplementedError),
        (lambda: jnp.gradient(F, 1.0, 2.0, 3.0), TypeError),
        (lambda: jnp.gradient(jnp.ones(1)), ValueError),
        (lambda: jnp.interp(WHERE, POINTS, V), ValueError),
        (lambda: jnp.interp(WHERE, POINTS, POINTS, left="flat"), ValueError),
        (lambda: jnp.interp(1j, POINTS, POINTS), ValueError),
        (lambda: jnp.tril(1.0), ValueError),
        (lambda: jnp.trace(1.0), ValueError),
        (lambda: jnp.convolve(V, W, mode="all"), ValueError),
        (lambda: jnp.convolve(F, W), ValueError),
        (lambda: jnp.convolve(V, jnp.zeros(0)), ValueError),
        (lambda: jnp.cross(V, V), ValueError),
        (lambda: jnp.unwrap(jnp.ones(2) * 1j), ValueError),
        (lambda: jnp.hanning(-1), ValueError),
        (lambda: jnp.hanning("5"), TypeError),
        (lambda: jnp.polyder(V, -1), ValueError),
        (lambda: jnp.polyint(V, 2, k=jnp.ones(3)), ValueError),
        (lambda: jnp.histogram(F, "auto"), NotImplementedError),
        (lambda: jnp.histogram(F, 3, weights=V), ValueError),
        (lambda: jnp.histogramdd(V, 2), ValueError),
        (lambda: jnp.bincount(V), TypeError),
        (lambda: jnp.bincount(jnp.ones((2, 2), int)), ValueError),
        (lambda: minijax.jit(jnp.bincount)(jnp.arange(3)), TypeError),
        (lambda: jnp.packbits(F), TypeError),
        (lambda: jnp.packbits(F > 0, bitorder="middle"), ValueError),
        (lambda: jnp.unpackbits(jnp.arange(3)), TypeError),
        (lambda: jnp.gcd(1.5, 2), ValueError),
        (lambda: jnp.piecewise(V, [V < 2], [1, 2, 3]), ValueError),
        (lambda: jnp.vectorize(abs, signature="foo")(V), ValueError),
        (lambda: jnp.vectorize(abs, signature="(n),(n)->(n)")(F, V), ValueError),
        (lambda: jnp.vectorize(abs, signature="(n)->()")(F), ValueError),
        (lambda: jnp.vectorize(abs, signature="(n)->()")(F, F), TypeError),
        (lambda: jnp.vectorize(abs, excluded={-1}), ValueError),
    ],
)
def test_impossible_call_is_refused(call: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        call()


def test_interp_extrapolates_on_request() -> None:
    found = jnp.interp(WHERE, POINTS, 2 * POINTS, left="extrapolate", right="extrapolate")
    np.testing.assert_allclose(found, 2 * WHERE, atol=1e-6)


def test_gradient_of_interp_is_the_slope() -> None:
    slope = minijax.grad(lambda x: jnp.interp(x, POINTS, POINTS**2))(2.0)
    np.testing.assert_allclose(slope, (16 - 1) / 3)


def test_histogramdd_adds_up_weights_in_floats() -> None:
    points, weights = np.ones((3, 2), np.float32), np.arange(3)
    counts, _ = jnp.histogramdd(points, 2, weights=weights)
    assert counts.dtype == np.float32
    np.testing.assert_array_equal(counts, np.histogramdd(points, 2, weights=weights)[0])


def test_bincount_within_jit_takes_a_length() -> None:
    counts = minijax.jit(lambda x: jnp.bincount(x, length=3))(jnp.array([0, 2, 2, 7]))
    np.testing.assert_array_equal(counts, [1, 0, 2])


@pytest.mark.slow
def test_gcd_takes_as_many_steps_as_the_worst_pair() -> None:
    x, y = np.int32(1836311903), np.int32(1134903170)
    assert jnp.gcd(x, y) == 1


def test_polydiv_inverts_polymul() -> None:
    quotient, rest = jnp.polydiv(jnp.polymul(V, W), W)
    np.testing.assert_allclose([*quotient, *rest[-2:]], [*V, 0, 0], atol=1e-4)


def test_vectorize_broadcasts_arguments() -> None:
    found = jnp.vectorize(lambda x, y: x * y)(F, G[:, :1])
    np.testing.assert_allclose(found, F * G[:, :1])


def test_vectorize_maps_over_outer_dimensions() -> None:
    matrices = np.stack([F, G])
    found = jnp.vectorize(jnp.dot, signature="(n,m),(m)->(n)")(matrices, W)
    np.testing.assert_allclose(found, matrices @ W)


def test_vectorize_passes_excluded_arguments_as_they_are() -> None:
    found = jnp.vectorize(lambda x, power: x**power, excluded={"power"})(V, power=2)
    np.testing.assert_allclose(found, V**2)


def test_vectorize_keeps_dimensions_of_size_one() -> None:
    assert jnp.vectorize(lambda x, y: x + y)(jnp.ones((1, 3)), jnp.ones((1, 1))).shape == (1, 3)


def test_windows_round_lengths_down_and_core_dimensions_may_be_numbers() -> None:
    np.testing.assert_array_equal(jnp.bartlett(5.9), jnp.bartlett(5))
    total = jnp.vectorize(lambda row: row.sum(), signature="(3)->()")
    assert total(np.ones((2, 3), np.float32)).tolist() == [3, 3]


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("n", [0, 1, 2, 7])
@pytest.mark.parametrize("axis", [0, -1])
def test_ends_count_where_differences_are_taken(n: int, axis: int) -> None:
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3) ** 2
    options: Any = {"n": n, "axis": axis, "prepend": 9, "append": np.ones_like(x)}
    found, wanted = jnp.diff(x, **options), np.diff(x, **options)
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(found, wanted)
