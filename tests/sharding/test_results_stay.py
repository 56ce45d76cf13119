"""Results stay on the devices of the operands, whatever makes them."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding
from minijax.sharding import PartitionSpec as P

pytestmark = pytest.mark.feature("UX-04")


@pytest.fixture(autouse=True)
def eight_devices() -> Iterator[None]:
    with jax.cpu_devices(8):
        yield


NO_ROW, NO_ELEMENT = np.zeros(8, bool), np.zeros((8, 4), bool)

ALIKE: dict[str, Callable[[Any], Any]] = {
    "full_like": lambda x: jnp.full_like(x, 3),
    "full_like of an array": lambda x: jnp.full_like(x, jnp.float32(2)),
    "full_like of an element": lambda x: jnp.full_like(x, x.sum()),
    "full_like of its own shape": lambda x: jnp.full_like(x, 3, shape=(8, 4)),
    "full_like of another dtype": lambda x: jnp.full_like(x, 3, dtype=jnp.int8),
    "lax.full_like": lambda x: lax.full_like(x, 3),
    "lax.full_like of its own shape": lambda x: lax.full_like(x, 3, shape=(8, 4)),
    "zeros_like": jnp.zeros_like,
    "ones_like": jnp.ones_like,
    "empty_like": jnp.empty_like,
    "broadcast_arrays": lambda x: jnp.broadcast_arrays(x, 1.0)[1],
    "array": jnp.array,
    "asarray": jnp.asarray,
    "copy": jnp.copy,
    "astype": lambda x: x.astype(jnp.int8),
    "where": lambda x: jnp.where(x > 3, x, 0),
    "jit(array)": lambda x: jax.jit(lambda v: jnp.array(v, device=x.sharding))(np.ones((8, 4))),
    "jit(eye)": lambda x: jax.jit(lambda: jnp.eye(8, 4, device=x.sharding))(),
    "jit(device_put)": lambda x: jax.jit(lambda v: jax.device_put(v, x.sharding))(np.ones((8, 4))),
}
OTHERS: dict[str, Callable[[Any], Any]] = {
    "ones_like of another shape": lambda x: jnp.ones_like(x, shape=(3,)),
    "ones_like of a scalar's shape": lambda x: jnp.ones_like(x, shape=()),
    "lax.full_like of another shape": lambda x: lax.full_like(x, 3, shape=(8,)),
    "rows of an empty mask": lambda x: x[NO_ROW],
    "elements of an empty mask": lambda x: x[NO_ELEMENT],
    "rows of no positions": lambda x: x[np.zeros(0, int)],
    "an empty slice": lambda x: x[:0],
    "x[False]": lambda x: x[False],
    "a row": lambda x: next(iter(x)),
    "isnan of integers": lambda x: jnp.isnan(x.astype(int)),
    "nonzero": lambda x: jnp.nonzero(x)[0],
    "nonzero of zeros": lambda x: jnp.nonzero(x * 0)[0],
    "where of one argument": lambda x: jnp.where(x > 3)[1],
    "flatnonzero": jnp.flatnonzero,
    "argwhere": jnp.argwhere,
    "repeat": lambda x: jnp.repeat(x, np.zeros(8, int), axis=0),
    "delete": lambda x: jnp.delete(x, np.arange(8), axis=0),
    "stack": lambda x: jnp.stack([x, x], -1),
    "concatenate": lambda x: jnp.concatenate([x, np.ones((8, 4), np.float32)], 1),
    "det of no rows": lambda x: jnp.linalg.det(jnp.zeros_like(x, shape=(0, 0))),
    "permutation of no rows": lambda x: jax.random.permutation(jax.random.key(0), x[:0]),
    "pure_callback": lambda x: jax.pure_callback(
        lambda v: np.asarray(v).sum(), jax.ShapeDtypeStruct((), np.float32), x
    ),
}


def _on_mesh(kind: AxisType) -> Any:
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"), axis_types=(kind,) * 2)
    return NamedSharding(mesh, P("x", "y"))


PLACES = {
    "one device": lambda: SingleDeviceSharding(jax.devices()[1]),
    "Auto": lambda: _on_mesh(AxisType.Auto),
    "Explicit": lambda: _on_mesh(AxisType.Explicit),
}


def _operand(place: str) -> Any:
    return jax.device_put(np.arange(32, dtype=np.float32).reshape(8, 4), PLACES[place]())


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ALIKE)
def test_results_of_the_operand_s_shape_are_placed_as_it_is(name: str, place: str) -> None:
    x = _operand(place)
    out = ALIKE[name](x)
    assert out.committed
    assert out.sharding.is_equivalent_to(x.sharding, 2)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", OTHERS)
def test_other_results_are_on_the_operand_s_devices(name: str, place: str) -> None:
    x = _operand(place)
    out = OTHERS[name](x)
    assert out.committed
    assert out.sharding.device_assignment == x.sharding.device_assignment


def test_rows_of_an_explicitly_split_array_are_its_rows() -> None:
    x = _operand("Explicit")
    np.testing.assert_array_equal(np.stack(list(x)), x)


def test_what_is_whole_may_be_joined_to_what_is_split() -> None:
    x = _operand("Explicit")
    out = jax.jit(lambda v: jnp.concatenate([v, np.ones((8, 4), np.float32)], 1))(x)
    assert out.sharding.spec == P("x", "y")
    np.testing.assert_array_equal(out, np.concatenate([np.asarray(x), np.ones((8, 4))], 1))


def test_gradients_return_to_where_their_variables_are() -> None:
    home, away, *_ = jax.devices()
    weights = jax.device_put(np.arange(3.0, dtype=np.float32), home)

    def loss(weights: Any) -> Any:
        return (jax.device_put(weights, away) ** 2).sum()

    assert loss(weights).devices() == {away}
    gradient = jax.grad(loss)(weights)
    assert gradient.devices() == {home}
    np.testing.assert_array_equal(weights - gradient, [0.0, -1.0, -2.0])


def test_a_program_runs_where_a_sharding_inside_says() -> None:
    home, away, *_ = jax.devices()
    moved = jax.jit(lambda x: jax.device_put(x, SingleDeviceSharding(away)) + 1)
    assert moved(np.ones(3)).devices() == {away}
    with pytest.raises(ValueError, match="one program cannot run on different devices"):
        moved(jax.device_put(np.ones(3), home))
    # A device alone binds nobody: the program runs where its arguments are.
    follows = jax.jit(lambda x: jax.device_put(x, away) + 1)
    assert follows(jax.device_put(np.ones(3), home)).devices() == {home}
