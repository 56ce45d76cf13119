"""`smap`: `shard_map` over one axis of the mesh in force."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax import numpy as jnp
from minijax.sharding import Mesh
from minijax.sharding import PartitionSpec as P

pytestmark = pytest.mark.feature("SM-01")

X = np.arange(32, dtype=np.float32).reshape(4, 8)


@pytest.fixture
def mesh() -> Iterator[Mesh]:
    with minijax.cpu_devices(8):
        mesh = minijax.make_mesh((4, 2), ("x", "y"))
        with minijax.set_mesh(mesh):
            yield mesh


def test_smap_is_shard_map_over_one_axis(mesh: Mesh) -> None:
    f = minijax.smap(lambda b: lax.psum(b, "x"), in_axes=0, out_axes=None, axis_name="x")
    g = minijax.shard_map(
        lambda b: lax.psum(b, "x"), in_specs=P("x"), out_specs=P(), axis_names={"x"}
    )
    x = jnp.asarray(X)
    assert str(minijax.make_jaxpr(f)(x)) == str(minijax.make_jaxpr(g)(x))


def test_smap_splits_the_dimension_of_each_argument(mesh: Mesh) -> None:
    @minijax.smap(in_axes=(1, None), out_axes=(1, None), axis_name="x")
    def f(b: Any, scale: Any) -> Any:
        assert b.shape == (4, 2)
        return b * scale["k"], scale

    y, scale = f(X, {"k": 2.0})
    assert np.array_equal(y, X * 2)
    assert scale == {"k": 2.0}


def test_smap_reads_the_types_of_arguments(mesh: Mesh) -> None:
    f = minijax.smap(lambda b: b + lax.axis_index("x"), out_axes=0, axis_name="x")
    x = minijax.device_put(X, P("x"))
    assert np.array_equal(f(x), X + np.arange(4, dtype=np.float32)[:, None])


def test_smaps_nest_over_two_axes(mesh: Mesh) -> None:
    def columns(b: Any) -> Any:
        return minijax.smap(
            lambda c: lax.psum(c.sum(), ("x", "y")), in_axes=1, out_axes=None, axis_name="y"
        )(b)

    f = minijax.smap(columns, in_axes=0, out_axes=None, axis_name="x")
    assert float(minijax.jit(f)(X)) == X.sum()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"in_axes": [0]}, TypeError, "in_axes must be an int, None, or a tuple"),
        ({"in_axes": {"a": 0}}, TypeError, "in_axes must be an int, None, or a tuple"),
        ({"in_axes": "x"}, TypeError, "in_axes must hold ints and None"),
        ({"out_axes": 0.5}, TypeError, "out_axes must hold ints and None"),
        ({"out_axes": -1}, ValueError, "out_axes must count from the first dimension"),
        ({"axis_name": ("x", "y")}, TypeError, "axis_name must be one name"),
        ({"axis_name": "q"}, ValueError, "axis_names names no axis of the mesh: 'q'"),
    ],
)
def test_smap_refuses_what_is_no_dimension(
    mesh: Mesh, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    given = {"in_axes": 0, "out_axes": 0, "axis_name": "x", **options}
    with pytest.raises(error, match=text):
        minijax.smap(lambda b: b, **given)(X)


def test_smap_needs_a_mesh_in_force() -> None:
    with pytest.raises(ValueError, match="there is no mesh"):
        minijax.smap(lambda b: b, in_axes=0, out_axes=0, axis_name="x")(X)


def test_types_of_devices_and_pieces_are_public() -> None:
    x = minijax.device_put(X, minijax.devices()[0])
    assert isinstance(minijax.devices()[0], minijax.Device)
    assert isinstance(x.addressable_shards[0], minijax.Shard)
    assert minijax.process_indices() == [0]


def test_reshard_is_public_at_the_top() -> None:
    assert minijax.reshard is minijax.sharding.reshard
