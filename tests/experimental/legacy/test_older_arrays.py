"""How earlier versions of JAX made arrays over several devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.core.aval import ShapedArray
from minijax.experimental import pxla
from minijax.runtime.pmap_sharding import PmapSharding
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P
from minijax.sharding.older import (
    Chunked,
    NoSharding,
    Replicated,
    ShardedAxis,
    ShardingSpec,
    create_pmap_sharding_spec,
)

X = np.arange(16, dtype=np.float32).reshape(4, 4)
AVAL = ShapedArray(X.shape, X.dtype)
COLUMNS = ShardingSpec([NoSharding(), Chunked([4])], [ShardedAxis(0)])


@pytest.fixture(autouse=True)
def four_devices() -> Iterator[None]:
    with jax.cpu_devices(4):
        yield


def made(spec: Any, pieces: Any) -> jax.Array:
    with pytest.warns(DeprecationWarning, match="make_array_from_single_device_arrays"):
        return pxla.make_sharded_device_array(AVAL, spec, pieces)


@pytest.mark.feature("AR-10")
def test_each_device_gets_its_value() -> None:
    out = pxla.device_put([X, 2, jnp.ones(3), X[0]], jax.devices())

    assert [x.devices() for x in out] == [{d} for d in jax.devices()]
    assert all(x.committed for x in out)
    for x, expected in zip(out, [X, 2, np.ones(3), X[0]], strict=True):
        np.testing.assert_array_equal(x, expected)


@pytest.mark.feature("AR-10")
@pytest.mark.parametrize("value", [X, 3.0, jnp.arange(3)], ids=["numpy", "number", "array"])
def test_every_device_gets_a_copy(value: Any) -> None:
    out = pxla.device_put(value, jax.devices(), replicate=True)

    assert [x.devices() for x in out] == [{d} for d in jax.devices()]
    for x in out:
        np.testing.assert_array_equal(x, value)


@pytest.mark.feature("AR-10")
def test_as_many_values_as_devices_are_needed() -> None:
    with pytest.raises(ValueError, match="the numbers of values and of devices differ") as caught:
        pxla.device_put([1, 2], jax.devices())

    assert "2 values, 4 devices" in str(caught.value)


@pytest.mark.feature("AR-12")
@pytest.mark.parametrize(
    "spec", [None, create_pmap_sharding_spec(X.shape)], ids=["default", "given"]
)
def test_pieces_become_an_array_of_slices(spec: Any) -> None:
    out = made(spec, pxla.device_put(list(X), jax.devices()))

    assert out.sharding == PmapSharding.default(X.shape)
    assert out.shape == X.shape
    np.testing.assert_array_equal(out, X)
    np.testing.assert_array_equal(jax.jit(lambda x: x.T + 1)(out), X.T + 1)
    assert [shard.data.shape for shard in out.addressable_shards] == [(4,)] * 4


@pytest.mark.feature("AR-12")
def test_inside_a_mesh_the_sharding_is_named() -> None:
    pieces = pxla.device_put(np.split(X, 4, axis=1), jax.devices())
    mesh = Mesh(np.array(jax.devices()), "x")

    with pytest.warns(DeprecationWarning, match="with mesh"), mesh:
        out = made(COLUMNS, pieces)

    assert out.sharding == NamedSharding(mesh, P(None, "x"))
    np.testing.assert_array_equal(out, X)


@pytest.mark.feature("AR-12")
def test_inside_a_mesh_replicas_are_named() -> None:
    spec = ShardingSpec([Chunked([2]), NoSharding()], [ShardedAxis(0), Replicated(2)])
    pieces = pxla.device_put([X[:2], X[:2], X[2:], X[2:]], jax.devices())
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))

    with pytest.warns(DeprecationWarning, match="with mesh"), mesh:
        out = made(spec, pieces)

    assert out.sharding == NamedSharding(mesh, P("x"))
    np.testing.assert_array_equal(out, X)


@pytest.mark.feature("AR-12")
def test_mesh_that_has_no_such_spec_is_refused() -> None:
    pieces = pxla.device_put(list(X), jax.devices())
    mesh = Mesh(np.array(jax.devices()), "x")

    with (
        pytest.warns(DeprecationWarning, match="with mesh"),
        mesh,
        pytest.raises(ValueError, match="no spec on the mesh"),
    ):
        made(None, pieces)


@pytest.mark.feature("AR-12")
def test_retired_class_makes_nothing() -> None:
    with pytest.raises(RuntimeError, match="of which there are no instances"):
        pxla.ShardedDeviceArray(AVAL, COLUMNS, [])
