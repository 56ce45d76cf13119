"""Products of quantized operands: how far they are from exact ones, and their derivatives."""

import ml_dtypes
import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import nn

NUMBERS = (((1,), (1,)), ((), ()))
RNG = np.random.default_rng(0)
X, Y = (RNG.normal(size=(n, 64)).astype(np.float32) for n in (32, 64))
X[0] = 0
# Half a unit in the last place of either format, times what blocks of a scale lose.
ERRORS = {"mxfp8": 2**-4, "nvfp4": 2**-2}


def configs(mode, **options):
    return [nn.get_scaled_dot_general_config(mode, **options)] * 3


def quantized_mxfp8(x):
    """The nearest numbers that blocks of 32 float8_e4m3fn hold, times powers of two."""
    blocks = x.reshape(*x.shape[:-1], -1, 32).astype(np.float64)
    largest = np.abs(blocks).max(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        exponents = np.where(largest > 0, np.ceil(np.log2(largest / 448)), -127)
    scaled = (blocks / 2.0**exponents).astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
    return (scaled.astype(np.float64) * 2.0**exponents).reshape(x.shape)


def test_mxfp8_multiplies_the_numbers_that_blocks_hold():
    out = nn.scaled_dot_general(X, Y, NUMBERS, configs=configs("mxfp8"))
    np.testing.assert_allclose(out, quantized_mxfp8(X) @ quantized_mxfp8(Y).T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ERRORS)
def test_products_and_gradients_are_near_exact_ones(mode):
    def loss(x, y):
        return jnp.sum(nn.scaled_dot_general(x, y, NUMBERS, configs=configs(mode)) ** 2)

    exact = X @ Y.T
    value, gradients = jax.jit(jax.value_and_grad(loss, (0, 1)))(X, Y)
    np.testing.assert_allclose(value, np.sum(exact**2), rtol=ERRORS[mode])
    for actual, expected in zip(gradients, (2 * exact @ Y, 2 * exact.T @ X), strict=True):
        error = np.linalg.norm(actual - expected) / np.linalg.norm(expected)
        assert error < ERRORS[mode]


def test_a_global_scale_changes_nothing_but_the_range():
    plain = nn.scaled_dot_general(X, Y, NUMBERS, configs=configs("nvfp4"))
    scale = jnp.array([4.0])
    scaled = nn.scaled_dot_general(X, Y, NUMBERS, configs=configs("nvfp4", global_scale=scale))
    np.testing.assert_allclose(scaled, plain, rtol=1e-5, atol=1e-4)


def test_dimensions_may_be_anywhere():
    # Small integers are held exactly.
    x, y = (RNG.integers(-2, 3, n).astype(np.float32) for n in ((2, 64, 2, 32), (64, 2, 32)))
    numbers = (((1, 3), (0, 2)), ((2,), (1,)))
    out = nn.scaled_dot_general(x, y, numbers, "bfloat16", implementation="cudnn")
    assert (out.dtype, out.shape) == (jnp.bfloat16, (2, 2))
    expected = np.einsum("akbc,kbc->ba", x, y)
    np.testing.assert_array_equal(out, expected.astype(ml_dtypes.bfloat16))


def test_without_configs_nothing_is_quantized():
    names = jax.make_jaxpr(lambda x, y: nn.scaled_dot_general(x, y, NUMBERS))(X, Y).eqns
    assert [str(eqn.primitive) for eqn in names] == ["dot_general"]


def test_scaled_matmul_multiplies_each_block_by_its_scale():
    x, y = (z[None].astype(ml_dtypes.float8_e4m3fn) for z in (X, Y))
    scales = [2.0 ** RNG.integers(-3, 3, (1, n, 4)).astype(np.float32) for n in (32, 64)]
    expected = np.einsum(
        "bmk,bnk->bmn",
        *(z.astype(np.float32) * np.repeat(s, 16, 2) for z, s in zip((x, y), scales, strict=True)),
    )
    types = ml_dtypes.float8_e8m0fnu, ml_dtypes.float8_e4m3fn
    given = [s.astype(t) for s, t in zip(scales, types, strict=True)]
    np.testing.assert_allclose(nn.scaled_matmul(x, y, *given), expected, rtol=1e-5, atol=1e-3)


ONES, SCALES = np.ones((1, 2, 32), np.float32), np.ones((1, 2, 1), np.float32)
MISUSES = {
    "unknown mode": (lambda: nn.get_scaled_dot_general_config("x"), "'mxfp8' or 'nvfp4'"),
    "matrices": (
        lambda: nn.scaled_matmul(ONES[0], ONES[0], SCALES[0], SCALES[0]),
        "three dimensions",
    ),
    "sizes": (lambda: nn.scaled_matmul(ONES, ONES[..., :8], SCALES, SCALES), "same batch"),
    "counts": (
        lambda: nn.scaled_matmul(ONES, ONES, SCALES, np.ones((1, 2, 2), np.float32)),
        "as many scales",
    ),
    "rows": (lambda: nn.scaled_matmul(ONES, ONES, SCALES[:, :1], SCALES), "the rows"),
    "blocks": (
        lambda: nn.scaled_matmul(ONES, ONES, *[np.ones((1, 2, 3), np.float32)] * 2),
        "into blocks",
    ),
    "two configs": (
        lambda: nn.scaled_dot_general(X, Y, NUMBERS, configs=configs("mxfp8")[:2]),
        "configs: 2",
    ),
    "implementation": (
        lambda: nn.scaled_dot_general(X, Y, NUMBERS, implementation="x"),
        "None or 'cudnn'",
    ),
    "no whole block": (
        lambda: nn.scaled_dot_general(X[:, :40], Y[:, :40], NUMBERS, configs=configs("mxfp8")),
        "size: 40",
    ),
}


@pytest.mark.parametrize("name", MISUSES)
def test_misuse_is_refused(name):
    call, match = MISUSES[name]
    with pytest.raises(ValueError, match=match):
        call()
