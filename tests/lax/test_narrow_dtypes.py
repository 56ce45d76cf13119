"""Dtypes of less than a byte, and floats of one: results are right, or errors say why not."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax

pytestmark = pytest.mark.feature("RB-10")

INTEGERS = ["int2", "uint2", "int4", "uint4"]
FLOATS = [
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
]

# Operations whose results are those on a wider dtype, modulo the narrow one.
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "neg": lambda x, y: -x,
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y,
    "max": lax.max,
    "less": lambda x, y: x < y,
    "sort": lambda x, y: jnp.sort(x),
    "sort rows": lambda x, y: jnp.sort(x.reshape(2, 4), axis=0),
    "argsort": lambda x, y: jnp.argsort(x),
    "sort pairs": lambda x, y: lax.sort((x, y), num_keys=1),
    "sort by both": lambda x, y: lax.sort((x, y), num_keys=2),
    "top_k": lambda x, y: lax.top_k(x, 3),
    "searchsorted": lambda x, y: jnp.searchsorted(jnp.sort(x), y),
    "concatenate": lambda x, y: jnp.concatenate([x, y]),
    "roll": lambda x, y: jnp.roll(x, 3),
    "tile": lambda x, y: jnp.tile(x, 2),
    "pad": lambda x, y: lax.pad(x, y[0], [(1, 2, 1)]),
    "reduce max": lambda x, y: jnp.max(x),
    "argmin": lambda x, y: jnp.argmin(x),
    "cummax": lambda x, y: lax.cummax(x),
    "gather": lambda x, y: x[jnp.array([3, 1, 1])],
    "update": lambda x, y: x.at[jnp.array([3, 1])].set(y[:2]),
    "window": lambda x, y: lax.dynamic_slice(x, (jnp.int32(2),), (3,)),
    "scan": lambda x, y: lax.scan(lambda c, v: (lax.max(c, v), c), x[0], x),
}
PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "matmul": lambda x, y: x.reshape(2, 4) @ y.reshape(4, 2),
    "into int32": lambda x, y: lax.dot(
        x.reshape(2, 4), y.reshape(4, 2), preferred_element_type=np.int32
    ),
}


def numbers(name, seed):
    dtype = np.dtype(getattr(ml_dtypes, name))
    rng = np.random.default_rng(seed)
    if name in INTEGERS:
        limits = ml_dtypes.iinfo(dtype)
        return rng.integers(int(limits.min), int(limits.max) + 1, 8).astype(dtype)
    return rng.choice([-3, -1.5, -1, -0.5, 0, 0.5, 2], 8).astype(np.float32).astype(dtype)


def check(function, name):
    for seed in range(4):
        given = [numbers(name, 2 * seed + i) for i in range(2)]
        wide = [x.astype(np.int32 if name in INTEGERS else np.float32) for x in given]
        got, want = (
            minijax.tree.leaves(minijax.jit(function)(*map(jnp.asarray, xs)))
            for xs in (given, wide)
        )
        for x, y in zip(got, want, strict=True):
            # Conversion keeps the last bits.
            expected = np.asarray(y.astype(x.dtype)).astype(np.float64)
            np.testing.assert_array_equal(np.asarray(x).astype(np.float64), expected)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("name", OPERATIONS)
def test_narrow_operation_is_that_of_a_wider_dtype(name, dtype):
    check(OPERATIONS[name], dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_product_of_narrow_integers(name, dtype):
    check(PRODUCTS[name], dtype)


@pytest.mark.parametrize("index", [2**70, -(2**70), 2**63])
def test_index_that_no_array_has_is_an_error(index):
    x = jnp.ones(8)
    for call in (
        lambda: x[index],
        lambda: x[(index,)],
        lambda: x.at[index].set(5),
        lambda: minijax.jit(lambda x: x[index])(x),
    ):
        with pytest.raises(OverflowError, match="no dimension is as large as this index"):
            call()


@pytest.mark.parametrize("index", [100, -100, 2**31, -(2**31) - 1, 2**63 - 1])
def test_index_out_of_range_is_clamped_by_all_traces(index):
    x = jnp.arange(8)
    want = 7 if index > 0 else 0
    assert x[index] == want
    assert minijax.jit(lambda x: x[index])(x) == want
    assert minijax.jit(lambda x: x[index, 1])(x.reshape(4, 2)) in (1, 7)
