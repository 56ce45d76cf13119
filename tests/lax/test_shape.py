"""What records do not say of shape operations and new arrays."""

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax.lax.shape import copy

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def weak(x):
    return x.weak_type


@pytest.fixture
def array():
    return minijax.device_put(X)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: lax.reshape(x, (3, 4)),
        lambda x: lax.reshape(x, (3, 4), (0, 1)),
        lambda x: lax.transpose(x, (0, 1)),
        lambda x: lax.broadcast_in_dim(x, (3, 4), (0, 1)),
        lambda x: lax.broadcast(x, ()),
        lambda x: lax.broadcast_to_rank(x, 1),
        lambda x: lax.squeeze(x, ()),
        lambda x: lax.concatenate([x], 0),
        lambda x: lax.collapse(x, 0, 1),
    ],
)
def test_operation_without_effect_returns_its_operand(array, call):
    assert call(array) is array


def test_operation_without_effect_makes_an_array_of_a_numpy_array():
    assert isinstance(lax.reshape(X, (3, 4)), minijax.Array)


@pytest.mark.feature("CR-13")
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: lax.reshape(3.0, (1,)), True),
        (lambda: lax.broadcast(3.0, (2,)), True),
        (lambda: lax.concatenate([lax.broadcast(1.0, (2,)), np.float32([1])], 0), False),
        (lambda: lax.pad(2.0, 0.0, []), True),
        (lambda: lax.pad(np.float32(2), 0.0, []), False),
        (lambda: lax.full((2,), 3), True),
        (lambda: lax.full((2,), True), False),
        (lambda: lax.full((2,), 3, int), False),
        (lambda: lax.full_like(2, 2.5), True),
        (lambda: lax.full_like(2.0, 2, int), False),
        (lambda: lax.iota(int, 3), False),
    ],
)
def test_weak_type_is_that_of_jax(call, expected):
    assert weak(call()) == expected


@pytest.mark.feature("CR-13")
@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (300, "int8", 44),
        (-1, "uint8", 255),
        (2.7, "int32", 2),
        (1e60, "float32", np.inf),
        (np.int32(300), "int8", 44),
    ],
)
def test_full_converts_its_value_as_arrays_are_converted(value, dtype, expected):
    with np.errstate(over="ignore"):
        assert np.asarray(lax.full((), value, dtype)) == expected


def test_full_like_takes_anything_with_a_shape_and_a_dtype():
    out = lax.full_like(minijax.ShapeDtypeStruct((2, 1), np.int8), 3)
    assert (out.shape, out.dtype) == ((2, 1), np.int8)


def test_full_of_an_array_can_be_differentiated():
    gradient = minijax.grad(lambda v: lax.reshape(lax.full((1,), v), ()))
    assert float(gradient(np.float32(3))) == 1


def test_python_scalar_pads_an_array_of_any_dtype():
    out = lax.pad(X.astype(np.int8), 7, [(1, 0, 0), (0, 0, 0)])
    assert (out.dtype, np.asarray(out)[0].tolist()) == (np.int8, [7, 7, 7, 7])


def test_cotangent_of_a_padding_value_ignores_infinities_inside():
    def padded(v):
        return lax.pad(np.float32([1, 2]), v, [(1, 1, 0)])

    _, vjp = minijax.vjp(padded, np.float32(0))
    assert float(vjp(np.float32([3, np.inf, np.nan, 4]))[0]) == 7


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (((3, 1), (1, 4), (4,)), (3, 4)),
        (((3,), ()), (3,)),
        (((0, 1), (5,)), (0, 5)),
        ((), ()),
    ],
)
def test_broadcast_shapes_aligns_at_the_end(shapes, expected):
    assert lax.broadcast_shapes(*shapes) == expected


def test_broadcast_shapes_refuses_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"got +\(3, 1\) \(2, 4\)"):
        lax.broadcast_shapes((3, 1), (2, 4))


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [((0,), (12,)), ((0, 0), (1, 3, 4)), ((-2, -1), (3, 4)), ((5, 6), (3, 4, 1)), ((1, 2), (3, 4))],
)
def test_collapse_reads_its_range_as_a_slice(array, bounds, expected):
    assert lax.collapse(array, *bounds).shape == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            lambda x: lax.reshape(x, (12,), (1, 0)),
            "reshape[dimensions=(1, 0) new_sizes=(12,) sharding=None] a",
        ),
        (lambda x: lax.squeeze(lax.reshape(x, (1, 12)), (0,)), "squeeze[dimensions=(0,)] b"),
        (
            lambda x: lax.broadcast_to_rank(x, 3),
            "broadcast_in_dim[broadcast_dimensions=(1, 2)] a",
        ),
        (lambda x: lax.concatenate([x, x], 1), "concatenate[dimension=1] a a"),
        (
            lambda x: lax.pad(x, 0.0, [(1, -1, 2), (0, 0, 0)]),
            "pad[padding_config=((1, -1, 2), (0, 0, 0))] a 0.0:f32[]",
        ),
        (lambda x: lax.split(x, (1, 2))[0], "split[axis=0 sizes=(1, 2)] a"),
        (lambda x: lax.tile(x, (2, 1)), "tile[reps=(2, 1)] a"),
        (lambda x: lax.iota(int, 3), "iota[dimension=0 dtype=int32 shape=(3,) sharding=None]"),
    ],
)
def test_jaxpr_shows_what_jax_shows(array, call, expected):
    assert expected in str(minijax.make_jaxpr(call)(array))


def test_copy_is_another_array(array):
    copied = copy(array)
    array.delete()
    assert np.array_equal(copied, X)


def test_scalars_are_not_broken_by_empty_parameters():
    scalar = np.float32(2)
    calls = [
        lax.reshape(scalar, ()),
        lax.transpose(scalar, ()),
        lax.rev(scalar, ()),
        lax.tile(scalar, ()),
        lax.pad(scalar, scalar, ()),
    ]
    assert [x.shape for x in calls] == [()] * 5


def test_traced_shape_is_refused_with_a_remedy():
    with pytest.raises(TypeError, match="mark the argument as static"):
        minijax.jit(lambda n: lax.full((n,), 1.0))(3)


@pytest.mark.feature("CR-13")
def test_iota_of_64_bits_needs_x64():
    with minijax.enable_x64(True):
        assert lax.iota(np.float64, 2).dtype == np.float64
    with pytest.warns(UserWarning, match="float64"):
        assert lax.iota(np.float64, 2).dtype == np.float32
