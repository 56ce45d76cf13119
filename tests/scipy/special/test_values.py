"""Values against SciPy in both precisions, derivatives against differences, and limits."""

from typing import Any

import numpy as np
import pytest
import scipy.special

import minijax as jax
import minijax.numpy as jnp
from minijax.scipy import special
from tests.scipy.special import samples

pytestmark = pytest.mark.feature("NP-01")

COUNT = 100
INTEGER_FIRST = {"polygamma", "expn"}
OURS = {"bessel_jn_2": lambda z: special.bessel_jn(z, v=2)[2]}
THEIRS = {"bessel_jn_2": lambda z: scipy.special.jv(2, z)}
SLOW = ("hyp1f1", "hyp2f1")
# Primitives of `lax`, which are tested there.
OF_LAX = {"betainc", "digamma", "erf", "erfc", "erfinv", "expit", "gammainc", "gammaincc"} | {
    "gammaln",
    "i0e",
    "i1e",
}
BY_NAME = {sample.name: sample for sample in samples.SAMPLES}


def arguments(sample: samples.Sample, dtype: Any, count: int = COUNT) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    made = [values(rng, count).astype(dtype) for values in sample.arguments]
    if sample.name in INTEGER_FIRST:
        made[0] = made[0].astype(np.int32)
    return made


def outputs(result: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in (result if isinstance(result, tuple) else (result,))]


def theirs(name: str, args: list[np.ndarray]) -> list[np.ndarray]:
    function = THEIRS.get(name) or getattr(scipy.special, name)
    return outputs(function(*[x.astype(np.int64 if x.dtype.kind == "i" else float) for x in args]))


def check_values(sample: samples.Sample, actual: list[np.ndarray], args: list[np.ndarray]) -> None:
    dtype = actual[0].dtype
    info = np.finfo(dtype)
    for mine, expected in zip(actual, theirs(sample.name, args), strict=True):
        # What is beyond the range of float32 is compared in float64 alone.
        fits = (np.abs(expected) < info.max) & (np.abs(expected) > 100 * info.tiny)
        rtol, atol = sample.tolerance * info.eps, sample.near_zero * info.eps
        np.testing.assert_allclose(mine[fits], expected[fits], rtol=rtol, atol=atol)


@pytest.mark.feature("UX-03")
@pytest.mark.parametrize("name", [name for name in BY_NAME if name not in INTEGER_FIRST])
def test_function_works_under_strict_settings(name):
    args = arguments(BY_NAME[name], np.float32, 2)
    function = OURS.get(name) or getattr(special, name)
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        for x64 in (False, True):
            with jax.enable_x64(x64):
                jax.eval_shape(function, *args)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in BY_NAME]
)
def test_values_and_derivatives_equal_those_of_scipy(name):
    sample = BY_NAME[name]
    function = OURS.get(name) or getattr(special, name)
    single = arguments(sample, np.float32)
    check_values(sample, outputs(jax.jit(function)(*single)), single)
    if name in OF_LAX:
        return
    args = arguments(sample, np.float64)
    chosen = range(len(args)) if sample.differentiable is None else sample.differentiable

    def with_slopes(*args: Any) -> Any:
        moving = [args[i] for i in chosen]

        def of_moving(*moving: Any) -> Any:
            given = dict(zip(chosen, moving, strict=True))
            return function(*(given.get(i, x) for i, x in enumerate(args)))

        values, linear = jax.linearize(of_moving, *moving)
        ones = np.eye(len(moving))
        return values, [
            linear(*(jnp.full(x.shape, e) for x, e in zip(moving, row, strict=True)))
            for row in ones
        ]

    with jax.enable_x64(True):
        values, found = jax.jit(with_slopes)(*args)
    check_values(sample, outputs(values), args)
    for i, slopes in zip(chosen, found, strict=True):
        step = 1e-5 * np.minimum(1, np.abs(args[i]))
        up, down = (theirs(name, [*args[:i], args[i] + s * step, *args[i + 1 :]]) for s in (1, -1))
        for high, low, slope in zip(up, down, outputs(slopes), strict=True):
            # A difference of large numbers is no better than this.
            noise = 1e-12 * np.abs(high) / step
            error = np.abs((high - low) / (2 * step) - slope)
            assert (error <= 1e-5 * np.abs(slope) + 1e-6 + noise).all()


LIMITS = {
    "dawsn": ([np.inf, -np.inf, np.nan], [0, 0, np.nan]),
    "entr": ([-1, 0, np.nan], [-np.inf, 0, np.nan]),
    "erfcx": ([np.inf, -np.inf, 0, np.nan], [0, np.inf, 1, np.nan]),
    "exp1": ([0, np.inf, -1, np.nan], [np.inf, 0, np.nan, np.nan]),
    "expi": ([0, np.inf, -np.inf, np.nan], [-np.inf, np.inf, 0, np.nan]),
    "expit": ([np.inf, -np.inf], [1, 0]),
    "factorial": ([-1, 0, 3, 6, np.inf, np.nan], [0, 1, 6, 720, np.inf, np.nan]),
    "gamma": ([-1, 0, -0.0, 5, np.inf, np.nan], [np.nan, np.inf, -np.inf, 24, np.inf, np.nan]),
    "gammasgn": ([-2.5, -2, -1.5, -0.0, 0, np.nan], [-1, np.nan, 1, -1, 1, np.nan]),
    "gammaln": ([-1, 0, np.inf, np.nan], [np.inf, np.inf, np.inf, np.nan]),
    "i0e": ([np.inf, np.nan], [0, np.nan]),
    "log_ndtr": ([np.inf, -np.inf, np.nan], [0, -np.inf, np.nan]),
    "loggamma": ([-1, np.inf, np.nan], [np.nan, np.inf, np.nan]),
    "logit": ([-0.1, 0, 0.5, 1, 1.1], [np.nan, -np.inf, 0, np.inf, np.nan]),
    "ndtr": ([np.inf, -np.inf, np.nan], [1, 0, np.nan]),
    "ndtri": ([-0.1, 0, 0.5, 1, 1.1, np.nan], [np.nan, -np.inf, 0, np.inf, np.nan, np.nan]),
    "spence": ([-1, 0, 1, np.inf, np.nan], [np.nan, np.pi**2 / 6, 0, -np.inf, np.nan]),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits(name):
    points, expected = LIMITS[name]
    actual = getattr(special, name)(np.array(points, np.float32))
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_limits_of_several_arguments():
    inf, nan = np.inf, np.nan
    f = np.array
    np.testing.assert_allclose(special.sici(f([inf, -inf, 0.0]))[0], [np.pi / 2, -np.pi / 2, 0])
    np.testing.assert_allclose(special.sici(f([inf, -inf, 0.0]))[1], [0, nan, -inf])
    np.testing.assert_allclose(special.fresnel(f([inf, -inf]))[0], [0.5, -0.5])
    h, a = f([0.0, 0, 1, inf, nan]), f([1.0, inf, -inf, 1, 1])
    expected = [0.125, 0.25, -special.ndtr(-1.0) / 2, 0, nan]
    np.testing.assert_allclose(special.owens_t(h, a), expected, rtol=1e-6)
    np.testing.assert_allclose(
        special.expn(f([0, 1, 3, 2]), f([0.0, 0, 0, inf])), [inf, inf, 0.5, 0]
    )
    np.testing.assert_allclose(special.expn(f([-1, 2]), f([1.0, -1])), [nan, nan])
    x, y = f([0.0, 0, 1, nan]), f([0.0, nan, 0, 1])
    np.testing.assert_allclose(special.xlogy(x, y), [0, nan, -inf, nan])
    p, q = f([0.0, 0, 1, -1, 0]), f([0.0, 1, 0, 1, -1])
    np.testing.assert_allclose(special.rel_entr(p, q), [0, 0, inf, inf, inf])
    np.testing.assert_allclose(special.poch(f([-3.0, -3, 0, 2.5]), f([2.0, 5, 0, 0])), [6, 0, 1, 1])
    np.testing.assert_allclose(special.zeta(f([1.0, inf, 2]), f([1.0, 2, 0])), [inf, 0, inf])
    np.testing.assert_allclose(special.polygamma(f([0, 1]), f([inf, inf])), [inf, 0])
    np.testing.assert_allclose(special.beta(f([0.0, -1.0]), f([1.0, -1.0])), [inf, nan])


def test_betaln_is_exact_for_large_arguments():
    a = np.array([1e3, 1e5, 1e7])
    np.testing.assert_allclose(special.betaln(a, 2.0), -np.log(a * (a + 1)), rtol=1e-6)
    with jax.enable_x64(True):
        np.testing.assert_allclose(special.betaln(a, 2.0), -np.log(a * (a + 1)), rtol=1e-14)


def test_whole_arguments_give_whole_results():
    assert (
        special.comb(10, np.arange(11)).tolist() == scipy.special.comb(10, np.arange(11)).tolist()
    )
    assert special.comb(4, 2, repetition=True) == 10
    assert (
        special.factorial(np.arange(8)).tolist() == scipy.special.factorial(np.arange(8)).tolist()
    )
    assert (
        special.gamma(np.arange(1.0, 8)).tolist() == scipy.special.gamma(np.arange(1, 8)).tolist()
    )


def test_hypergeometric_functions_on_hard_arguments():
    with jax.enable_x64(True):
        cases = np.array(
            [
                (0.5, 0.5, 1, 0.99),
                (0.5, 1.5, 1, 0.999),
                (0.5, 0.5, 3, 0.9999),
                (1.2, 0.7, 2.1, -50),
                (1, 1, 2, -1000),
                (-2, 1.5, 1, 3),
                (0.5, 0.5, 2.5, 1),
                (2, 3, 3.5, 0.97),
                (0.3, 1.5, 1.5, 0.95),
            ]
        ).T
        expected = scipy.special.hyp2f1(*cases)
        np.testing.assert_allclose(special.hyp2f1(*cases), expected, rtol=1e-11)
        # 15 digits lost by SciPy, whose series alternates, are not lost here.
        cases = np.array([(1, 2, -700), (0.5, 1.5, 200), (-3, 0.5, -90), (2.5, 2.5, -300)]).T
        expected = [1 / 700, None, None, np.exp(-300)]
        actual = special.hyp1f1(*cases)
        np.testing.assert_allclose(actual[0], expected[0], rtol=1e-12)
        np.testing.assert_allclose(actual[1:3], scipy.special.hyp1f1(*cases)[1:3], rtol=1e-12)
        np.testing.assert_allclose(actual[3], expected[3], rtol=1e-12)


def test_complex_functions_equal_those_of_scipy():
    rng = np.random.default_rng(0)
    points = rng.uniform(-8, 8, 300) + 1j * rng.uniform(-8, 8, 300)
    special_points = [-1.5 + 0j, -2.5 + 0j, 3 + 0j, 0.5j, 2 - 1e-9j, 6 + 1e-8j]
    z = np.concatenate([points, special_points])

    def all_of_them(z: Any) -> Any:
        functions = (special.loggamma, special.gamma, special.wofz, special.erfcx)
        slopes = [
            jax.jvp(f, (z,), (jnp.ones_like(z),))[1] for f in (special.loggamma, special.wofz)
        ]
        return [f(z) for f in functions], slopes

    with jax.enable_x64(True):
        (loggamma, gamma, wofz, erfcx), (digamma, slope) = jax.jit(all_of_them)(z)
    np.testing.assert_allclose(loggamma, scipy.special.loggamma(z), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(gamma, scipy.special.gamma(z), rtol=1e-11)
    np.testing.assert_allclose(wofz, scipy.special.wofz(z), rtol=1e-11)
    np.testing.assert_allclose(erfcx, scipy.special.wofz(1j * z), rtol=1e-11)
    np.testing.assert_allclose(digamma, scipy.special.digamma(z), rtol=1e-11)
    expected = 2j / np.sqrt(np.pi) - 2 * z * scipy.special.wofz(z)
    np.testing.assert_allclose(slope, expected, rtol=1e-10, atol=1e-12)
    single = special.wofz(points.astype(np.complex64))
    np.testing.assert_allclose(single, scipy.special.wofz(points), rtol=5e-5)


def test_spherical_harmonics_equal_those_of_scipy():
    n, m = (x.ravel() for x in np.meshgrid(np.arange(7), np.arange(-6, 7)))
    theta, phi = np.linspace(0.1, 3, n.size), np.linspace(-1, 5, n.size)
    with jax.enable_x64(True):
        actual = special.sph_harm_y(n, m, theta, phi)
        expected = scipy.special.sph_harm_y(n, m, theta, phi)
        np.testing.assert_allclose(actual, expected, atol=1e-14)
        traced = jax.jit(lambda n: special.sph_harm_y(n, m, theta, phi, n_max=5))(n)
        np.testing.assert_allclose(traced[n <= 5], expected[n <= 5], atol=1e-14)
        assert np.isnan(traced[n > 5]).all()
        slope = jax.jit(jax.grad(lambda t: special.sph_harm_y(n, m, t, phi).real.sum()))(theta)
        up, down = (scipy.special.sph_harm_y(n, m, theta + s, phi).real for s in (1e-6, -1e-6))
        np.testing.assert_allclose(slope, (up - down) / 2e-6, atol=1e-8)


def test_bessel_functions_are_stacked_by_order():
    z = np.array([[0.0, 0.1], [5.0, -20.0]], np.float32)
    actual = special.bessel_jn(z, v=3)
    expected = np.stack([scipy.special.jv(k, z) for k in range(4)])
    np.testing.assert_allclose(actual, expected, atol=2e-6)


def test_bernoulli_numbers_and_multivariate_gamma_equal_those_of_scipy():
    np.testing.assert_allclose(special.bernoulli(20), scipy.special.bernoulli(20), rtol=1e-6)
    a = np.array([2.5, 4.0])
    expected = scipy.special.multigammaln(a, 3)
    np.testing.assert_allclose(special.multigammaln(a, 3), expected, rtol=1e-6)


def test_softmax_goes_over_all_dimensions_by_default():
    x = np.array([[1.0, 2.0], [3.0, -np.inf]])
    np.testing.assert_allclose(special.softmax(x), scipy.special.softmax(x), rtol=1e-6)
    expected = scipy.special.log_softmax(x, axis=1)
    np.testing.assert_allclose(special.log_softmax(x, axis=1), expected, rtol=1e-6)
    assert special.logsumexp is jax.nn.logsumexp
