"""What records do not say of cumulative operations."""

import numpy as np
import pytest

import minijax
from minijax import lax


@pytest.mark.parametrize("length", [1, 7, 8, 9, 63, 64, 65, 513, 1000])
@pytest.mark.parametrize("reverse", [False, True])
def test_sum_is_right_whatever_the_number_of_blocks(length, reverse):
    x = np.arange(length, dtype=np.int32)
    expected = np.cumsum(x[::-1])[::-1] if reverse else np.cumsum(x)
    assert np.array_equal(lax.cumsum(x, reverse=reverse), expected)


def test_large_exponents_do_not_overflow():
    x = np.float32([1000, 1000, -1000])
    expected = 1000 + np.log(np.float32([1, 2, 2]))
    np.testing.assert_allclose(lax.cumlogsumexp(x), expected, rtol=1e-6)


def test_complex_cumlogsumexp_takes_the_largest_out():
    x = np.complex64([1 + 2j, 100 - 1j, 3j])
    expected = [x[0], x[1], x[1]]
    np.testing.assert_allclose(lax.cumlogsumexp(x), expected, rtol=1e-6)


def test_angles_of_complex_cumlogsumexp_are_principal():
    x = np.complex64([0.5 + 8j, -1.25, 2 - 3j])
    expected = np.log(np.cumsum(np.exp(x.astype(complex))))
    np.testing.assert_allclose(lax.cumlogsumexp(x), expected, rtol=1e-5)


def test_derivative_of_cumlogsumexp_is_finite_below_all_numbers():
    x = np.float32([-np.inf, -np.inf, 0.0])
    _, vjp = minijax.vjp(lax.cumlogsumexp, x)
    assert np.asarray(vjp(np.float32([0, 0, 1]))[0]).tolist() == [0, 0, 1]


def test_complex_numbers_are_accumulated_in_lexicographic_order():
    x = np.complex64([1 + 5j, 1 + 6j, 0 + 9j, 2 - 1j])
    expected = [1 + 5j, 1 + 6j, 1 + 6j, 2 - 1j]
    assert np.asarray(lax.cummax(x)).tolist() == expected


def test_integers_have_no_cumlogsumexp():
    with pytest.raises(TypeError, match="does not accept dtype int32"):
        lax.cumlogsumexp(np.int32([1, 2]))


def test_jaxpr_shows_what_jax_shows():
    closed = minijax.make_jaxpr(lambda x: lax.cumsum(x, 1, reverse=True))(np.ones((2, 3)))
    assert "cumsum[axis=1 reverse=True] a" in str(closed)


def test_transpose_of_a_sum_is_the_sum_in_the_other_direction():
    _, vjp = minijax.vjp(lax.cumsum, np.float32([1, 2, 3]))
    assert np.asarray(vjp(np.float32([1, 10, 100]))[0]).tolist() == [111, 110, 100]
