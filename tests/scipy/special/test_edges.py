"""Arguments at the ends of what is representable, and unknown parameters at the ends of domains."""

import numpy as np
import pytest
import scipy.special

import minijax as jax
from minijax.scipy import special

pytestmark = pytest.mark.feature("NP-01")


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gamma_functions_of_large_parameters_are_exact(name):
    a = np.float32([9, 50, 300, 1e3, 1e4, 1e5])[:, None]
    x = a * np.float32([0.5, 0.97, 1, 1.03, 2])
    expected = getattr(scipy.special, name)(a.astype(float), x.astype(float))
    told = expected > 1e-4
    found = np.asarray(getattr(special, name)(a, x))
    np.testing.assert_allclose(found[told], expected[told], rtol=3e-5)
    with jax.enable_x64(True):
        found = np.asarray(getattr(special, name)(a.astype(float), x.astype(float)))
    np.testing.assert_allclose(found[told], expected[told], rtol=1e-11)


def test_incomplete_functions_at_the_ends_of_their_domains():
    nan, inf = np.nan, np.inf
    a = np.float32([nan, nan, 0, 0, 0, 2])
    x = np.float32([inf, 0, 0.5, 1e-5, inf, 0])
    np.testing.assert_array_equal(special.gammainc(a, x), [nan, nan, 1, 1, 1, 0])
    np.testing.assert_array_equal(special.gammaincc(a, x), [nan, nan, 0, 0, 0, 1])
    rows = np.float32(
        [
            (nan, 1, 0, nan),
            (1, nan, 1, nan),
            (inf, nan, 0.5, nan),
            (inf, inf, 0.5, nan),
            (0, 0, 0.5, nan),
            (0, 2, nan, nan),
            (0, 2, 0, 0),
            (0, 2, 0.5, 1),
            (2, 0, 0.5, 0),
            (2, 0, 1, 1),
            (2, inf, 0, 0),
            (2, inf, 0.5, 1),
        ]
    )
    *args, expected = rows.T
    np.testing.assert_array_equal(special.betainc(*args), expected)


def test_beta_of_a_negative_and_a_large_argument():
    a = np.float32([-2.5, 1e30, 100, 1e4, -0.5])
    b = np.float32([14.463944, -0.5, -2.5, -0.5, 9])
    logarithms = scipy.special.betaln(a.astype(float), b.astype(float))
    np.testing.assert_allclose(special.betaln(a, b), logarithms, rtol=2e-6)
    signs = [-1, -1, -1, -1, -1]
    np.testing.assert_allclose(special.beta(a, b), signs * np.exp(logarithms), rtol=1e-5)


def test_entropies_of_what_has_no_quotient():
    p, q = np.float32([1e30, 1e-30, 2]), np.float32([1e-30, 1e30, 1])
    for name in ("rel_entr", "kl_div"):
        expected = getattr(scipy.special, name)(p.astype(float), q.astype(float))
        np.testing.assert_allclose(getattr(special, name)(p, q), expected, rtol=1e-6)
    slopes = jax.vmap(jax.grad(special.rel_entr))(p, q)
    np.testing.assert_allclose(slopes, np.log(p / q.astype(float)) + 1, rtol=1e-6)


def test_entropies_outside_of_their_domain_have_no_slope():
    p, q = np.float32([-1, 1, 1, -1, 0]), np.float32([1, -1, 0, -1, -1])
    slopes = jax.vmap(jax.grad(special.rel_entr, (0, 1)))(p, q)
    np.testing.assert_array_equal(slopes, np.zeros((2, 5)))
    assert jax.grad(special.rel_entr)(np.float32(1e38), np.float32(1e-37)) > 100


def test_factorials_of_infinities():
    assert special.factorial(np.float32(-np.inf)) == 0
    assert special.poch(np.float32(2), np.float32(np.inf)) == np.inf


@pytest.mark.parametrize(("n", "m"), [(1, 0), (2, 1), (3, -1), (3, 2), (3, -3)])
def test_harmonics_at_any_angle_are_those_of_scipy(n, m):
    theta = np.array([-4, -2, -0.3, 0, 0.3, 3.6, 7, 10], np.float32)
    phi = np.linspace(-4, 8, len(theta), dtype=np.float32)
    found = special.sph_harm_y(np.array([n]), np.array([m]), theta, phi, n_max=3)
    np.testing.assert_allclose(found, scipy.special.sph_harm_y(n, m, theta, phi), atol=3e-6)
