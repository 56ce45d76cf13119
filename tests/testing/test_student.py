"""A student's collective, and the few lines that test it."""

import numpy as np
import pytest

import minijax as jax
import minijax.testing
from minijax import lax
from minijax.sharding import PartitionSpec as P
from minijax.testing import given_mesh, laws
from minijax.testing.strategies import per_device_inputs


def ring_sum(x, axis_name):
    """The sum over devices, by sending it on around a ring."""
    n = lax.axis_size(axis_name)
    ring = [(i, (i + 1) % n) for i in range(n)]
    total = moving = x
    for _ in range(n - 1):
        moving = lax.ppermute(moving, axis_name, ring)
        total = total + moving
    return total


def short_ring_sum(x, axis_name):
    """The same, but for the last step."""
    n = lax.axis_size(axis_name)
    ring = [(i, (i + 1) % n) for i in range(n)]
    total = moving = x
    for _ in range(n - 2):
        moving = lax.ppermute(moving, axis_name, ring)
        total = total + moving
    return total


@pytest.mark.feature("CO-32")
@pytest.mark.slow
@given_mesh("x", x=per_device_inputs)
def test_ring_sum_is_the_sum(mesh, x):
    f = jax.shard_map(lambda x: ring_sum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    expected = np.broadcast_to(x.sum(0, keepdims=True, dtype=x.dtype), x.shape)
    np.testing.assert_allclose(f(x), expected, rtol=1e-5)


@pytest.mark.feature("CO-32")
def test_ring_sum_obeys_the_laws_of_psum():
    found = laws.check_collectives({"x": 4}, psum=ring_sum)
    assert "psum_gathers_scatter" in found


def test_law_shows_both_sides_of_a_wrong_sum():
    with pytest.raises(AssertionError, match="the left side and the right side do not agree"):
        laws.check_collectives({"x": 4}, psum=short_ring_sum)


def test_fixture_gives_devices(devices):
    assert len(devices(4)) == 4


def test_fixture_gives_more_devices_later(devices):
    devices(2)
    assert len(devices(8)) == 8


def test_given_mesh_shrinks_to_the_smallest_that_fails():
    seen = []

    @given_mesh("x")
    def check(mesh):
        seen.append(mesh.size)
        assert mesh.size < 2

    with pytest.raises(AssertionError):
        check()
    assert seen[-1] == 2


def test_given_mesh_says_what_does_not_fit():
    with pytest.raises(ValueError, match="no mesh has such axes"):
        given_mesh("a", "b", "c", "d")
    with pytest.raises(TypeError, match="the test takes no argument"):
        given_mesh("x")(lambda: None)


@pytest.mark.feature("UX-08")
def test_everything_that_tests_need_is_shown_by_completion():
    assert {"given_mesh", "laws", "pictures", "simulate", "strategies"} <= set(dir(minijax.testing))
