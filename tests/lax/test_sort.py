"""What records do not say of sorting, of the largest elements, and of the barrier."""

import numpy as np
import pytest

import minijax
from minijax import lax

PLACES = np.arange(5, dtype=np.int32)


def test_equal_keys_keep_their_order_zeros_and_nans_included():
    keys = np.float32([np.nan, 0.0, -np.nan, -0.0, -1])
    _, places = lax.sort_key_val(keys, PLACES)
    assert np.asarray(places).tolist() == [4, 1, 3, 0, 2]


def test_nans_of_either_sign_come_last():
    out = np.asarray(lax.sort(np.float32([-np.nan, 1, np.nan, -np.inf, np.inf])))
    assert out[:3].tolist() == [-np.inf, 1, np.inf]
    assert np.isnan(out[3:]).all()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floats_sort_by_value_over_their_whole_range(dtype):
    info = np.finfo(dtype)
    values = [info.max, info.tiny, -info.tiny, info.min, info.smallest_subnormal, 0, 1, -1]
    x = np.array(values, dtype)
    with minijax.enable_x64(True):
        assert np.array_equal(lax.sort(x), np.sort(x))


def test_complex_numbers_sort_by_real_then_imaginary_part():
    x = np.complex64([1 + 1j, np.nan, 1 - 1j, 0 + 9j, complex(1, np.nan)])
    _, places = lax.sort((x, PLACES))
    assert np.asarray(places).tolist() == [3, 2, 0, 4, 1]


def test_sequence_of_operands_gives_a_tuple():
    assert isinstance(lax.sort([PLACES, PLACES]), tuple)
    assert isinstance(lax.sort((PLACES,)), tuple)


def test_tangents_are_permuted_with_their_elements():
    x, x_dot = np.float32([3, 1, 2]), np.float32([30, 10, 20])
    _, moved = minijax.jvp(lax.sort, (x,), (x_dot,))
    assert np.asarray(moved).tolist() == [10, 20, 30]


def test_tangents_of_values_follow_the_keys():
    keys, values = np.int32([3, 1, 2]), np.float32([1, 1, 1])
    _, vjp = minijax.vjp(lambda v: lax.sort_key_val(keys, v)[1], values)
    assert np.asarray(vjp(np.float32([1, 10, 100]))[0]).tolist() == [100, 1, 10]


def test_nan_is_larger_than_all_numbers():
    values, places = lax.top_k(np.float32([1, np.nan, np.inf]), 2)
    assert np.isnan(np.asarray(values)[0])
    assert np.asarray(places).tolist() == [1, 2]


def test_the_zero_largest_are_none():
    values, places = lax.top_k(np.ones((3, 4), np.float32), 0)
    assert (values.shape, places.shape, places.dtype) == ((3, 0), (3, 0), np.int32)


def test_candidates_that_are_not_aggregated_may_be_more_than_k():
    values, places = lax.approx_max_k(np.float32([[1, 4, 2, 3]]), 2, aggregate_to_topk=False)
    assert (values.shape, places.shape) == ((1, 4), (1, 4))


@pytest.mark.feature("CR-13")
def test_weak_scalar_passes_the_barrier_as_one():
    assert lax.optimization_barrier(2.0).weak_type


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            lambda x: lax.sort((x, x), 0, num_keys=2),
            "sort[dimension=0 is_stable=True num_keys=2] a a",
        ),
        (lambda x: lax.top_k(x, 2), "top_k[axis=0 k=2] a"),
        (lambda x: lax.optimization_barrier((x, x)), "optimization_barrier a a"),
    ],
)
def test_jaxpr_shows_what_jax_shows(call, expected):
    assert expected in str(minijax.make_jaxpr(call)(PLACES))


def test_barrier_of_nothing_is_nothing():
    assert lax.optimization_barrier({"a": ()}) == {"a": ()}


def test_gradient_passes_the_barrier():
    gradient = minijax.grad(lambda x: lax.optimization_barrier((x, 1))[0])
    assert float(gradient(np.float32(3))) == 1


def test_compiler_sees_the_barrier():
    lowered = minijax.jit(lax.optimization_barrier).lower(np.float32([1, 2]))
    assert "stablehlo.optimization_barrier" in lowered.as_text()


@pytest.mark.feature("CR-13")
@pytest.mark.parametrize("dims", [(0,), (0, 3), (3, 0)])
@pytest.mark.parametrize("name", ["sort", "median", "nanmedian", "cumsum"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_ordering_nothing_has_derivatives(dims, name):
    function = getattr(minijax.numpy, name)
    x = np.zeros(dims, np.float32)
    for axis in range(len(dims)):
        wanted = getattr(np, name)(x, axis=axis)
        out, tangent = minijax.jvp(lambda v, d=axis: function(v, axis=d), (x,), (x,))
        np.testing.assert_array_equal(out, wanted)
        assert tangent.shape == wanted.shape
        grad = minijax.grad(lambda v, d=axis: function(v, axis=d).sum())(x)
        assert grad.shape == dims
    assert minijax.vmap(function)(np.zeros((0, 2), np.float32)).shape[0] == 0


@pytest.mark.parametrize(("dims", "k"), [((0,), 0), ((3,), 0), ((0, 3), 2), ((2, 0), 0)])
def test_largest_elements_of_nothing_have_derivatives(dims, k):
    x = np.ones(dims, np.float32)
    assert minijax.grad(lambda v: lax.top_k(v, k)[0].sum())(x).tolist() == (0 * x).tolist()
    assert lax.top_k(x, k)[1].shape == (*dims[:-1], k)
