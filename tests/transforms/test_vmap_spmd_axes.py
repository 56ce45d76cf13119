"""`vmap(spmd_axis_name=)`: the batch is split over a mesh axis where the function places values.

What is expected was recorded from JAX 0.10.2, but for device_put, whose dimensions JAX confuses.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax import numpy as jnp
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

pytestmark = pytest.mark.feature("BT-01")

X = np.ones((8, 4), np.float32)


@pytest.fixture
def mesh() -> Iterator[Mesh]:
    with minijax.cpu_devices(8):
        yield Mesh(np.array(minijax.devices()).reshape(4, 2), ("data", "model"))


def over(mesh: Mesh, *entries: Any) -> Callable[[Any], Any]:
    """A function that doubles, and places the result."""
    return lambda x: lax.with_sharding_constraint(x * 2, NamedSharding(mesh, P(*entries)))


def spec(function: Callable[..., Any], *args: Any, **options: Any) -> P:
    found: P = minijax.jit(minijax.vmap(function, **options))(*args).sharding.spec
    return found


def test_spmd_axis_splits_the_batch(mesh: Mesh) -> None:
    assert spec(over(mesh, "model"), X, spmd_axis_name="data") == P("data", "model")


def test_spmd_axis_splits_the_batch_outside_of_jit(mesh: Mesh) -> None:
    out = minijax.vmap(over(mesh, "model"), spmd_axis_name="data")(X)
    assert out.sharding == NamedSharding(mesh, P("data", "model"))


def test_spmd_axis_follows_the_batch_dimension(mesh: Mesh) -> None:
    options = {"in_axes": 1, "out_axes": 1, "spmd_axis_name": "data"}
    assert spec(over(mesh, "model"), X.T, **options) == P("model", "data")


def test_spmd_axes_may_be_several(mesh: Mesh) -> None:
    assert spec(over(mesh), X, spmd_axis_name=("data", "model")) == P(("data", "model"))


def test_nested_maps_have_axes_of_their_own(mesh: Mesh) -> None:
    inner = minijax.vmap(over(mesh), spmd_axis_name="data")
    assert spec(inner, np.ones((2, 8, 4)), spmd_axis_name="model") == P("model", "data")


def test_axes_of_an_inner_map_do_not_reach_an_outer_one(mesh: Mesh) -> None:
    inner = minijax.vmap(minijax.jit(over(mesh, "model")), spmd_axis_name="data")
    jaxpr = minijax.make_jaxpr(minijax.vmap(inner))(np.ones((2, 8, 4)))
    assert "P(UNCONSTRAINED, 'data', 'model')" in str(jaxpr)


@pytest.mark.parametrize(
    "wrap",
    [
        minijax.jit,
        minijax.checkpoint,
        lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
        lambda f: lambda x: lax.cond(jnp.bool_(True), f, lambda v: v, x),
        lambda f: lambda x: lax.fori_loop(0, 2, lambda _, v: f(v), x),
        lambda f: lambda x: minijax.jvp(f, (x,), (x,))[1],
    ],
    ids=["jit", "checkpoint", "scan", "cond", "fori_loop", "jvp"],
)
def test_spmd_axis_reaches_inside(mesh: Mesh, wrap: Any) -> None:
    function = minijax.vmap(wrap(over(mesh, "model")), spmd_axis_name="data")
    text = str(minijax.make_jaxpr(function)(X))
    assert "P('data', 'model')" in text
    assert "UNCONSTRAINED" not in text


def test_without_an_spmd_axis_the_batch_is_left_to_the_compiler(mesh: Mesh) -> None:
    text = str(minijax.make_jaxpr(minijax.vmap(over(mesh, "model")))(X))
    assert "P(UNCONSTRAINED, 'model')" in text


def test_device_put_splits_the_batch(mesh: Mesh) -> None:
    put = minijax.vmap(
        lambda x: minijax.device_put(x, NamedSharding(mesh, P("model"))), spmd_axis_name="data"
    )
    assert put(jnp.asarray(X)).sharding.spec == P("data", "model")


def test_values_are_those_without_axes(mesh: Mesh) -> None:
    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    out = minijax.jit(minijax.vmap(over(mesh, "model"), spmd_axis_name="data"))(x)
    np.testing.assert_array_equal(out, 2 * x)


def test_spmd_axis_that_splits_the_value_is_refused(mesh: Mesh) -> None:
    with pytest.raises(ValueError, match="spmd_axis_name: 'model' splits another dimension"):
        minijax.vmap(over(mesh, "model"), spmd_axis_name="model")(X)


def test_spmd_axis_of_no_mesh_is_refused(mesh: Mesh) -> None:
    with pytest.raises(ValueError, match="spmd_axis_name: 'rows' is no axis of the mesh"):
        minijax.vmap(over(mesh, "model"), spmd_axis_name="rows")(X)


U = P.UNCONSTRAINED


@pytest.mark.parametrize(
    ("given", "target", "expected"),
    [
        (None, P(U, "model"), P(None, "model")),
        (P("data"), P(U, "model"), P("data", "model")),
        (P("model"), P(U, "model"), P(None, "model")),
        (P("data"), P(U, U), P("data")),
        (P("data", "model"), P("model", U), P("model")),
        (P(None, "model"), P(U), P()),
    ],
)
def test_open_dimensions_stay_split_as_they_are_outside_of_jit(
    mesh: Mesh, given: P | None, target: P, expected: P
) -> None:
    x = X if given is None else minijax.device_put(X, NamedSharding(mesh, given))
    assert lax.with_sharding_constraint(x, NamedSharding(mesh, target)).sharding.spec == expected
