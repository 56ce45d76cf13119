"""What records do not say of scatters: modes, repeated indices, ties, texts of jaxprs."""

import numpy as np
import pytest

import minijax
from minijax import lax

X = np.arange(1, 6, dtype=np.float32)
U = np.array([2, 4, 9], np.float32)
POINTS = lax.ScatterDimensionNumbers((), (0,), (0,))
REPEATED = np.array([[1], [3], [1]])
OUTSIDE = np.array([[4], [7], [-1]])


def gradients(function, indices=REPEATED, **options):
    """The gradients of the squared result, with respect to operand and updates."""

    def total(x, u):
        out = function(x, indices, u, POINTS, **options)
        return lax.reduce_sum(lax.mul(out, out), (0,))

    return [np.asarray(g).tolist() for g in minijax.grad(total, (0, 1))(X, U)]


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (None, [1, 2, 3, 4, 7]),
        ("drop", [1, 2, 3, 4, 7]),
        ("fill", [1, 2, 3, 4, 7]),
        ("promise_in_bounds", [1, 2, 3, 4, 7]),
        ("clip", [10, 2, 3, 4, 11]),
    ],
)
def test_mode_says_what_happens_to_updates_out_of_range(mode, expected):
    assert np.asarray(lax.scatter_add(X, OUTSIDE, U, POINTS, mode=mode)).tolist() == expected


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lax.scatter_add, [1, 13, 3, 8, 5]),
        (lax.scatter_sub, [1, -9, 3, 0, 5]),
        (lax.scatter_mul, [1, 36, 3, 16, 5]),
        (lax.scatter_min, [1, 2, 3, 4, 5]),
        (lax.scatter_max, [1, 9, 3, 4, 5]),
    ],
)
def test_element_named_twice_is_combined_twice(function, expected):
    assert np.asarray(function(X, REPEATED, U, POINTS)).tolist() == expected


# Recorded from JAX 0.10.2.
@pytest.mark.parametrize(
    ("function", "options", "expected"),
    [
        (lax.scatter, {}, ([2, 0, 6, 0, 10], [0, 8, 18])),
        (lax.scatter_min, {}, ([2, 2, 6, 4, 10], [2, 4, 0])),
        (lax.scatter_max, {}, ([2, 0, 6, 4, 10], [0, 4, 18])),
        (lax.scatter_add, {}, ([2, 26, 6, 16, 10], [26, 16, 26])),
    ],
)
def test_gradient_follows_the_updates_that_count(function, options, expected):
    assert gradients(function, **options) == list(expected)


def test_ties_share_the_gradient_of_a_maximum_equally():
    x, u = np.zeros(1, np.float32), np.zeros(3, np.float32)
    out, vjp = minijax.vjp(
        lambda x, u: lax.scatter_max(x, np.zeros((3, 1), np.int32), u, POINTS), x, u
    )
    assert [np.asarray(ct).tolist() for ct in vjp(np.ones_like(out))] == [[0.25], [0.25] * 3]


def test_product_has_no_gradient_of_updates_that_may_meet():
    with pytest.raises(NotImplementedError, match=r"^lax\.scatter_mul: .* needs unique indices"):
        gradients(lax.scatter_mul)


def test_product_has_gradients_where_indices_are_unique():
    indices = np.array([[0], [3], [4]])
    assert gradients(lax.scatter_mul, indices, unique_indices=True) == [
        [8, 4, 6, 128, 810],
        [4, 128, 450],
    ]


def test_overwriting_uniquely_is_differentiated_by_a_scatter_and_a_gather():
    indices = np.array([[0], [3], [4]])
    assert gradients(lax.scatter, indices, unique_indices=True) == [[0, 4, 6, 0, 0], [4, 8, 18]]


def test_booleans_can_be_overwritten_and_compared():
    x, u, indices = X > 2, np.array([True, False]), np.array([[0], [3]])
    assert np.asarray(lax.scatter(x, indices, u, POINTS)).tolist() == [1, 0, 1, 0, 1]
    assert np.asarray(lax.scatter_min(x, indices, u, POINTS)).tolist() == [0, 0, 1, 0, 1]
    assert np.asarray(lax.scatter_max(x, indices, u, POINTS)).tolist() == [1, 0, 1, 1, 1]


@pytest.mark.parametrize(("mode", "expected"), [("clip", [0, 127]), ("drop", [127])])
def test_narrow_indices_reach_into_a_long_operand(mode, expected):
    x = np.zeros(300, np.float32)
    out = lax.scatter_add(x, np.array([[127], [-5]], np.int8), U[:2], POINTS, mode=mode)
    assert np.flatnonzero(out).tolist() == expected


@pytest.mark.parametrize(
    ("function", "primitive", "update"),
    [
        (lax.scatter, "scatter", "None"),
        (lax.scatter_add, "scatter-add", "add"),
        (lax.scatter_sub, "scatter-sub", "sub"),
        (lax.scatter_mul, "scatter-mul", "mul"),
        (lax.scatter_min, "scatter-min", "min"),
        (lax.scatter_max, "scatter-max", "max"),
    ],
)
def test_jaxpr_shows_how_elements_are_combined(function, primitive, update):
    closed = minijax.make_jaxpr(lambda x, u: function(x, REPEATED, u, POINTS))(X, U)
    (eqn,) = closed.eqns
    jaxpr = eqn.params["update_jaxpr"]
    assert eqn.primitive.name == primitive
    assert str(jaxpr and jaxpr.eqns[0].primitive.name) == update
    assert "mode=GatherScatterMode.FILL_OR_DROP\n" in str(closed)


def test_result_is_weak_where_the_operand_is():
    operand = minijax.jit(lambda: lax.broadcast(2.0, (5,)))()
    assert lax.scatter_add(operand, REPEATED, U, POINTS).weak_type
    assert not lax.scatter_add(X, REPEATED, operand[:3], POINTS).weak_type


@pytest.mark.parametrize("name", ["scatter", "scatter_add", "scatter_apply", "scatter_max"])
def test_function_carries_its_own_name_and_documentation(name):
    function = getattr(lax, name)
    assert function.__name__ == function.__qualname__ == name
    assert f"mirrors jax.lax.{name} " in function.__doc__


def test_function_is_applied_once_for_each_time_an_element_is_named():
    out = lax.scatter_apply(X, REPEATED, lambda v: lax.mul(v, v), POINTS, update_shape=(3,))
    assert np.asarray(out).tolist() == [1, 16, 3, 16, 5]


def test_applied_function_has_no_derivative():
    with pytest.raises(NotImplementedError, match=r"^lax\.scatter_apply: there is no derivative"):
        minijax.jvp(
            lambda x: lax.scatter_apply(x, REPEATED, lax.neg, POINTS, update_shape=(3,)), (X,), (X,)
        )


def test_applied_function_must_not_close_over_traced_values():
    def function(x, c):
        return lax.scatter_apply(x, REPEATED, lambda v: lax.mul(v, c), POINTS, update_shape=(3,))

    with pytest.raises(NotImplementedError, match=r"^lax\.scatter_apply: .* surrounding"):
        minijax.jit(function)(X, np.float32(2))


def test_gather_and_scatter_are_each_other_s_transposes():
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))

    def gather(x):
        return lax.gather(x, REPEATED, numbers, (1,))

    transposed = minijax.linear_transpose(gather, X)
    closed = minijax.make_jaxpr(transposed)(U)
    assert closed.eqns[-1].primitive.name == "scatter-add"
    twice = minijax.linear_transpose(lambda ct: transposed(ct)[0], U)
    assert minijax.make_jaxpr(twice)(X).eqns[-1].primitive.name == "gather"


def test_updates_of_a_dimension_without_elements_are_out_of_range():
    numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    out = lax.scatter_add(X[:0, None], REPEATED, U[:, None], numbers)
    assert out.shape == (0, 1)
