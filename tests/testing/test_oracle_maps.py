"""Maps over devices within simulated programs: nested, under jit, differentiated from outside."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.sharding import AbstractMesh
from minijax.sharding import PartitionSpec as P
from minijax.testing import CollectiveMismatch, simulate, simulate_program

X = np.arange(16, dtype=np.float32).reshape(4, 4)
SQUARE = AbstractMesh((2, 2), ("x", "y"))
FOUR = AbstractMesh((4,), ("x",))


@pytest.mark.feature("SM-01")
def test_a_shard_map_under_jit_runs_on_devices_of_its_own():
    mapped = jax.shard_map(
        lambda v: v - lax.pmean(v, "x"), mesh=FOUR, in_specs=P("x"), out_specs=P("x")
    )
    found = simulate_program(jax.jit(lambda v: mapped(v * 2) + 1))(X)
    np.testing.assert_allclose(found, 2 * (X - X.mean(0)) + 1)


@pytest.mark.parametrize("check_vma", [True, False])
def test_the_gradient_of_a_mapped_sum_seen_from_outside_is_one(check_vma):
    total = jax.shard_map(
        lambda v: lax.psum(v, "x"),
        mesh=FOUR,
        in_specs=P("x"),
        out_specs=P(),
        check_vma=check_vma,
    )
    found = simulate_program(jax.grad(lambda v: total(v).sum()))(X)
    np.testing.assert_array_equal(found, np.ones_like(X))


@pytest.mark.parametrize("check_vma", [True, False])
def test_the_gradient_by_what_all_devices_share_is_summed(check_vma):
    loss = jax.shard_map(
        lambda w, v: lax.psum(((v @ w) ** 2).sum(), "x"),
        mesh=FOUR,
        in_specs=(P(), P("x")),
        out_specs=P(),
        check_vma=check_vma,
    )
    w = np.arange(4, dtype=np.float32)
    np.testing.assert_allclose(simulate_program(jax.grad(loss))(w, X), 2 * X.T @ (X @ w), rtol=1e-6)


@pytest.mark.feature("SM-01")
def test_a_map_over_another_axis_may_communicate_over_both():
    def outer(v):
        def inner(u):
            return lax.psum(u, ("y", "x")), lax.psum(u, "x"), lax.axis_index(("x", "y"))[None, None]

        return jax.shard_map(
            inner, in_specs=P(None, "y"), out_specs=(P(), P(None, "y"), P(None, "y"))
        )(v)

    both, one, index = simulate(outer, SQUARE, P("x"), (P(), P(), P("x")), axis_names={"x"})(X)
    np.testing.assert_array_equal(one, X[:2] + X[2:])
    np.testing.assert_array_equal(both, one[:, :2] + one[:, 2:])
    np.testing.assert_array_equal(index, [[0, 1], [2, 3]])


def test_devices_within_devices_count_in_the_order_of_the_mesh():
    def outer(v):
        def inner(u):
            return lax.ppermute(u, ("y", "x"), [(i, (i + 1) % 4) for i in range(4)])

        return jax.shard_map(inner, in_specs=P("x"), out_specs=P("x"))(v)

    def direct(v):
        return lax.ppermute(v, ("y", "x"), [(i, (i + 1) % 4) for i in range(4)])

    nested = simulate(outer, SQUARE, P(None, "y"), P(None, "y"), axis_names={"y"})(X)
    np.testing.assert_array_equal(nested, simulate(direct, SQUARE, P("x", "y"), P("x", "y"))(X))


def test_a_fault_within_devices_names_them_all():
    def outer(v):
        if lax.axis_index("x") == 1:
            return v
        return jax.shard_map(
            lambda u: lax.psum(u, "x"), in_specs=P(None, "y"), out_specs=P(None, "y")
        )(v)

    with pytest.raises(CollectiveMismatch) as info:
        simulate(outer, SQUARE, P("x"), P("x"), axis_names={"x"}, check_vma=False)(X)
    devices = info.value.devices
    assert devices[("x", 0),] == "waits for the devices within it"
    assert devices[("x", 1),] == "has finished"
    assert "for (x=1, y=0), at" in devices[("x", 0), ("y", 0)]


def test_program_results_are_those_of_eager_execution():
    def f(x):
        y = jnp.cumsum(jnp.sort(x, axis=0), axis=1)
        return {"a": jnp.where(y > 3, y, -y), "b": jax.nn.softmax(x)}

    found = simulate_program(f)(X)
    expected = f(X)
    np.testing.assert_allclose(found["a"], expected["a"])
    np.testing.assert_allclose(found["b"], expected["b"], rtol=1e-6)


@pytest.fixture(scope="module")
def eight_devices():
    with jax.cpu_devices(8):
        yield


@pytest.mark.feature("PM-01")
def test_a_pmap_runs_on_devices_of_its_own(eight_devices):
    f = jax.pmap(
        lambda v, w: (lax.psum(v * w, "i"), v + lax.axis_index("i")),
        axis_name="i",
        in_axes=(1, None),
        out_axes=(None, 1),
    )
    for found, expected in zip(simulate_program(f)(X, 2.0), f(X, 2.0), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_pmaps_within_pmaps_communicate_over_both_axes(eight_devices):
    inner = jax.pmap(lambda u: lax.psum(u, ("i", "j")) + lax.axis_index("j"), axis_name="j")
    outer = jax.pmap(inner, axis_name="i")
    x = X.reshape(2, 2, 4)
    np.testing.assert_array_equal(simulate_program(outer)(x), outer(x))


def test_the_gradient_of_a_pmap_is_that_of_the_program(eight_devices):
    f = jax.pmap(lambda v: lax.pmean(v**2, "i"), axis_name="i")
    gradient = jax.grad(lambda x: f(x).sum())
    np.testing.assert_allclose(simulate_program(gradient)(X), gradient(X), rtol=1e-6)


def test_the_simulator_knows_nothing_of_lowering():
    room = Path(inspect.unwrap(simulate).__code__.co_filename).parent
    for name in ("oracle", "device_trace", "devices", "exchanges", "numpy_model"):
        text = (room / f"{name}.py").read_text()
        assert not re.search(r"import .*(lowering|device_axes|casts)|minijax\.lax", text), name
