"""What records do not say of reductions."""

import numpy as np
import pytest

import minijax
from minijax import lax

X = np.arange(12, dtype=np.float32).reshape(3, 4)
LOWEST = int(np.iinfo(np.int32).min)


def primitives_of(function, *args):
    return [eqn.primitive.name for eqn in minijax.make_jaxpr(function)(*args).eqns]


@pytest.mark.parametrize(
    ("computation", "init", "dtype", "expected"),
    [
        (lax.add, 0, "float32", "reduce_sum"),
        (lambda x, y: lax.add(y, x), 0.0, "float32", "reduce_sum"),
        (lax.mul, 1, "int32", "reduce_prod"),
        (lax.max, -np.inf, "float32", "reduce_max"),
        (lax.max, LOWEST, "int32", "reduce_max"),
        (lax.min, np.inf, "float32", "reduce_min"),
        (lax.bitwise_and, -1, "int32", "reduce_and"),
        (lax.bitwise_or, False, "bool", "reduce_or"),
        (lax.bitwise_xor, 0, "uint8", "reduce_xor"),
        (lax.max, False, "bool", "reduce_or"),
        (lax.add, 1, "float32", "reduce"),
        (lax.max, 0, "int32", "reduce"),
        (lax.sub, 0, "float32", "reduce"),
        (lambda x, y: lax.add(x, x), 0, "float32", "reduce"),
        (lambda x, y: x, 0, "float32", "reduce"),
    ],
)
def test_reduce_by_a_known_operation_from_its_identity_is_its_primitive(
    computation, init, dtype, expected
):
    def function(x):
        return lax.reduce(x, init, computation, (0,))

    assert primitives_of(function, X.astype(dtype)) == [expected]


def test_reduce_keeps_the_tree_of_its_operands():
    def computation(x, y):
        return {"a": lax.add(x["a"], y["a"]), "b": lax.min(x["b"], y["b"])}

    out = lax.reduce({"a": X, "b": X}, {"a": 1.0, "b": 9.0}, computation, (0, 1))
    assert {name: float(v) for name, v in out.items()} == {"a": 67, "b": 0}


def test_reduce_refuses_values_of_a_surrounding_trace():
    def function(x, c):
        return lax.reduce(x, 0.0, lambda a, b: lax.add(a, lax.mul(b, c)), (0,))

    with pytest.raises(NotImplementedError, match="pass them as operands"):
        minijax.jit(function)(X, 2.0)


def test_reduce_may_use_constants():
    limit = minijax.device_put(np.float32(5))

    def computation(a, b):
        return lax.min(lax.max(a, b), limit)

    assert float(lax.reduce(X, 0.0, computation, (0, 1))) == 5


def test_reduce_with_an_initial_value_for_each_example():
    def function(x, start):
        return lax.reduce(x, start, lax.mul, (0,))

    out = minijax.vmap(function)(X + 1, np.float32([1, 2, 0]))
    assert np.asarray(out).tolist() == [24, 3360, 0]


@pytest.mark.feature("CR-13")
@pytest.mark.parametrize("name", ["reduce_sum", "reduce_prod", "reduce_max", "reduce_min"])
def test_reduction_of_a_weak_scalar_is_weak(name):
    assert getattr(lax, name)(2.0, ()).weak_type


def test_sum_over_no_axes_returns_its_operand():
    x = minijax.device_put(X)
    assert lax.reduce_sum(x, ()) is x


@pytest.mark.parametrize("name", ["reduce_sum", "reduce_prod"])
def test_reduction_of_numbers_refuses_bool(name):
    with pytest.raises(TypeError, match="does not accept dtype bool"):
        getattr(lax, name)(X > 0, (0,))


@pytest.mark.parametrize("name", ["reduce_and", "reduce_or", "reduce_xor"])
def test_reduction_of_bits_refuses_floats(name):
    with pytest.raises(TypeError, match="does not accept dtype float32"):
        getattr(lax, name)(X, (0,))


def test_elements_that_attain_the_maximum_share_its_derivative():
    gradient = minijax.grad(lambda x: lax.reduce_max(x, (0,)))
    assert np.asarray(gradient(np.float32([1, 3, 3, 0]))).tolist() == [0, 0.5, 0.5, 0]


def test_product_is_differentiated_without_dividing_by_elements():
    gradient = minijax.grad(lambda x: lax.reduce_prod(x, (0,)))
    assert np.asarray(gradient(np.float32([2, 0, 5]))).tolist() == [0, 10, 0]


@pytest.mark.parametrize(
    ("values", "largest", "least"),
    [
        ([0.0, -0.0], 0, 0),
        ([1, 1, 1], 0, 0),
        ([2, np.nan, 3, np.nan], 1, 1),
        ([-np.inf, -np.inf], 0, 0),
        ([np.inf, np.inf, 0], 0, 2),
    ],
)
def test_place_of_an_extremum_is_its_first(values, largest, least):
    x = np.float32(values)
    assert (int(lax.argmax(x, 0, int)), int(lax.argmin(x, 0, int))) == (largest, least)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32"])
def test_place_has_the_dtype_asked_for(dtype):
    assert lax.argmax(X, 1, dtype).dtype == np.dtype(dtype)


def test_complex_numbers_are_ordered_by_real_part_first():
    x = np.complex64([1 + 5j, 2 - 9j, 2 + 1j, 0])
    assert complex(lax.reduce_max(x, (0,))) == 2 + 1j
    assert complex(lax.reduce_min(x, (0,))) == 0


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: lax.reduce_sum(x, (0,)), "reduce_sum[axes=(0,) out_sharding=None] a"),
        (lambda x: lax.reduce_max(x, (0, 1)), "reduce_max[axes=(0, 1)] a"),
        (lambda x: lax.argmax(x, 0, int), "argmax[axes=(0,) index_dtype=int32] a"),
    ],
)
def test_jaxpr_shows_what_jax_shows(call, expected):
    assert expected in str(minijax.make_jaxpr(call)(X))
