"""What records do not say of reductions over windows."""

import ml_dtypes
import numpy as np
import pytest

import minijax
from minijax import lax

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def max_pool(x):
    return lax.reduce_window(x, -np.inf, lax.max, (2, 2), (1, 1), "VALID")


def total(x):
    return lax.reduce_sum(x, range(x.ndim))


@pytest.mark.parametrize(
    ("computation", "init", "dtype", "expected"),
    [
        (lax.add, 0, "float32", "reduce_window_sum"),
        (lax.max, -np.inf, ml_dtypes.bfloat16, "reduce_window_max"),
        (lax.min, int(np.iinfo(np.int32).max), "int32", "reduce_window_min"),
        (lax.mul, 1, "float32", "reduce_window"),
        (lax.add, 2, "float32", "reduce_window"),
        (lax.max, 0, "float32", "reduce_window"),
        (lax.max, False, "bool", "reduce_window"),
    ],
)
def test_known_operation_from_its_identity_is_its_primitive(computation, init, dtype, expected):
    def function(x):
        return lax.reduce_window(x, init, computation, (2, 2))

    closed = minijax.make_jaxpr(function)(X.astype(dtype))
    assert [eqn.primitive.name for eqn in closed.eqns] == [expected]


@pytest.mark.parametrize(
    ("padding", "expected"),
    [
        ("VALID", [(0, 0), (0, 0)]),
        ("same", [(0, 1), (0, 1)]),
        ("SAME_LOWER", [(1, 0), (1, 0)]),
    ],
)
def test_named_padding_means_what_it_means_in_jax(padding, expected):
    assert lax.padtype_to_pads((5, 8), (2, 3), (2, 2), padding) == expected


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (((5, 6), (2, 3), (1, 2), [(0, 0), (0, 0)]), (4, 2)),
        (((5, 6), (2, 3), (1, 2), [(1, 0), (0, 2)], (2, 1), (1, 2)), (9, 2)),
        (((2, 2), (3, 1), (1, 1), [(0, 0), (0, 0)]), (0, 2)),
    ],
)
def test_shape_of_the_result_is_told_in_advance(args, expected):
    assert lax.reduce_window_shape_tuple(*args) == expected


def test_window_larger_than_the_operand_gives_nothing():
    out = lax.reduce_window(X, 0.0, lax.add, (5, 5))
    assert out.shape == (0, 0)


def test_gradient_of_a_window_sum_over_nothing_is_zero():
    def function(x):
        return total(lax.reduce_window(x, 0.0, lax.add, (5, 5)))

    assert np.array_equal(minijax.grad(function)(X), np.zeros_like(X))


def test_gradient_of_a_maximum_goes_to_the_first_of_equal_elements():
    gradient = minijax.grad(lambda x: total(max_pool(x)))(np.zeros((2, 2), np.float32))
    assert np.asarray(gradient).tolist() == [[1, 0], [0, 0]]


def test_maximum_is_differentiated_by_selection():
    text = str(minijax.make_jaxpr(minijax.grad(lambda x: total(max_pool(x))))(X))
    assert "select_and_scatter_add[" in text
    assert "select_prim=ge" in text


def test_second_derivative_of_a_maximum_squared_is_diagonal():
    def function(x):
        pooled = max_pool(x)
        return total(lax.mul(pooled, pooled))

    direction = np.ones_like(X)
    _, moved = minijax.jvp(minijax.grad(function), (X,), (direction,))
    assert np.asarray(moved).tolist() == [[0, 0, 0, 0], [0, 2, 2, 2], [0, 2, 2, 2]]


def test_dilated_maximum_is_differentiated_too():
    def function(x):
        out = lax.reduce_window(
            x, -np.inf, lax.max, (2,), (1,), "VALID", None, window_dilation=(2,)
        )
        return total(out)

    assert np.asarray(minijax.grad(function)(np.float32([3, 1, 2, 5]))).tolist() == [1, 0, 0, 1]


def test_values_of_a_surrounding_trace_are_refused():
    def function(x, c):
        return lax.reduce_window(x, 0.0, lambda a, b: lax.add(a, lax.mul(b, c)), (2, 2))

    with pytest.raises(NotImplementedError, match=r"^lax\.reduce_window: the computation uses"):
        minijax.jit(function)(X, 2.0)


def test_jaxpr_names_all_parameters_of_the_window():
    text = str(minijax.make_jaxpr(max_pool)(X))
    for parameter in (
        "base_dilation=(1, 1)",
        "padding=((0, 0), (0, 0))",
        "window_dilation=(1, 1)",
        "window_dimensions=(2, 2)",
        "window_strides=(1, 1)",
    ):
        assert parameter in text
