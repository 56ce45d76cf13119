"""What records do not say of slices: types, texts of jaxprs, starts of every kind."""

import numpy as np
import pytest

import minijax
from minijax import lax

X = np.arange(30, dtype=np.float32).reshape(5, 6)


def weak(*shape):
    """A weakly typed array of twos."""
    return minijax.jit(lambda: lax.broadcast(2.0, shape))()


def text(function, *args):
    """The equations of a function, without the lines around them."""
    lines = str(minijax.make_jaxpr(function)(*args)).splitlines()
    return [line.strip() for line in lines[1:-1]]


@pytest.mark.feature("NP-01")
def test_whole_slice_is_an_equation_as_in_jax():
    assert text(lambda x: lax.neg(lax.slice(x, (0, 0), (5, 6))), X)[0] == (
        "b:f32[5,6] = slice[limit_indices=(5, 6) start_indices=(0, 0) strides=None] a"
    )


def test_slice_in_dim_names_its_strides():
    assert text(lambda x: lax.neg(lax.slice_in_dim(x, -3, None)), X)[0] == (
        "b:f32[3,6] = slice[limit_indices=(5, 6) start_indices=(2, 0) strides=(1, 1)] a"
    )


def test_traced_start_counts_from_the_end_where_negative():
    assert text(lambda x, i: lax.dynamic_slice(x, (i, 1), (2, 2)), X, np.int32(3)) == [
        "c:bool[] = lt b 0:i32[]",
        "d:i32[] = add b 5:i32[]",
        "e:i32[] = select_n c b d",
        "f:f32[2,2] = dynamic_slice[slice_sizes=(2, 2)] a e 1:i32[]",
    ]


def test_weak_start_becomes_a_strong_one():
    assert text(lambda x, i: lax.dynamic_slice_in_dim(x, i, 2, 1), X, 1) == [
        "c:bool[] = lt b 0:i32[]",
        "d:i32[] = convert_element_type[new_dtype=int32 weak_type=False] b",
        "e:i32[] = add d 6:i32[]",
        "f:i32[] = select_n c b e",
        "g:f32[5,2] = dynamic_slice[slice_sizes=(5, 2)] a 0:i32[] f",
    ]


def test_unsigned_starts_are_used_as_they_are():
    assert text(lambda x, i: lax.neg(lax.dynamic_slice(x, (i, i), (2, 2))), X, np.uint8(1))[0] == (
        "c:f32[2,2] = dynamic_slice[slice_sizes=(2, 2)] a b b"
    )


def test_known_negative_start_costs_no_equation():
    assert text(lambda x: lax.neg(lax.dynamic_slice(x, (-1, 1), (2, 2))), X)[0] == (
        "b:f32[2,2] = dynamic_slice[slice_sizes=(2, 2)] a 4:i32[] 1:i32[]"
    )


def test_traced_negative_start_is_clamped_where_it_does_not_count_from_the_end():
    out = minijax.jit(
        lambda i: lax.dynamic_slice(X, (i, 1), (2, 2), allow_negative_indices=(False, True))
    )(-1)
    assert np.array_equal(out, X[:2, 1:3])


def test_known_negative_start_is_refused_where_it_does_not_count_from_the_end():
    with pytest.raises(ValueError, match=r"^lax\.dynamic_slice: the start -1 is negative"):
        lax.dynamic_slice(X, (-1, 1), (2, 2), allow_negative_indices=False)


def test_python_starts_take_the_dtype_of_the_others():
    out = lax.dynamic_slice(X, (np.uint8(2), 1), (2, 2))
    assert np.array_equal(out, X[2:4, 1:3])


@pytest.mark.parametrize("starts", [np.array([2, -3]), (np.int16(2), np.int16(-3)), [2, -3]])
def test_starts_come_as_a_vector_or_one_by_one(starts):
    assert np.array_equal(lax.dynamic_slice(X, starts, (2, 3)), X[2:4, 3:])


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: lax.slice(x, (1,), (3,)), True),
        (lambda x: lax.dynamic_slice(x, (1,), (2,)), True),
        (lambda x: lax.dynamic_update_slice(x, x[:2], (1,)), False),
        (lambda x: lax.dynamic_update_slice(x, np.ones(2, np.float32), (1,)), False),
    ],
)
def test_weak_types_are_those_of_jax(call, expected):
    assert call(weak(5)).weak_type is expected


def test_slice_of_a_scalar_is_the_scalar():
    assert lax.dynamic_slice(np.float32(3), (), ()) == 3
    assert lax.dynamic_update_slice(np.float32(3), np.float32(4), ()) == 4


def test_update_of_one_position_may_lack_its_dimension():
    out = lax.dynamic_update_index_in_dim(X, np.zeros(6, np.float32), -2, 0)
    assert np.array_equal(out, np.where(np.arange(5)[:, None] == 3, 0, X))


def test_batched_starts_become_a_gather():
    closed = minijax.make_jaxpr(
        minijax.vmap(lambda i: lax.dynamic_slice(X, (i, 0), (1, 6), allow_negative_indices=False))
    )(np.arange(3))
    assert closed.eqns[-1].primitive.name == "gather"


def test_batched_operand_alone_stays_a_dynamic_slice():
    closed = minijax.make_jaxpr(minijax.vmap(lambda x: lax.dynamic_slice(x, (1,), (2,))))(X)
    assert [eqn.primitive.name for eqn in closed.eqns] == ["dynamic_slice"]


def test_gradient_of_a_dynamic_slice_updates_zeros():
    gradient = minijax.grad(lambda x: lax.reduce_sum(lax.dynamic_slice(x, (9, 1), (2, 2)), (0, 1)))
    expected = np.zeros_like(X)
    expected[3:, 1:3] = 1
    assert np.array_equal(gradient(X), expected)


def test_positions_of_index_take_wrap_around():
    out = lax.index_take(X, (np.array([0, -1, 7]), np.array([1, -2, 6])), (0, 1))
    assert np.asarray(out).tolist() == [X[0, 1], X[4, 4], X[2, 0]]
