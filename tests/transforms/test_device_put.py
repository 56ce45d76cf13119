"""`device_put` over many devices: what it takes, what it gives, and what it refuses."""

import gc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding, set_mesh
from minijax.sharding import PartitionSpec as P

pytestmark = pytest.mark.feature("AR-10")
X = np.arange(16, dtype=np.float32).reshape(8, 2)


@pytest.fixture(autouse=True)
def eight_devices() -> Iterator[None]:
    with jax.cpu_devices(8):
        yield


def box() -> Mesh:
    return Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))


def on(*spec: Any) -> NamedSharding:
    return NamedSharding(box(), P(*spec))


def on_line(*spec: Any, first: int = 0, last: int = 4, step: int = 1) -> NamedSharding:
    return NamedSharding(Mesh(np.array(jax.devices()[first:last])[::step], ("x",)), P(*spec))


def aligned(count: int = 1 << 20) -> Any:
    """Large memory at an address that XLA takes it from."""
    raw = np.arange(count + 16, dtype=np.float32)
    start = -raw.ctypes.data % 64 // 4
    return raw[start : start + count]


def is_taken(x: Any, **options: Any) -> bool:
    """Whether the array of NumPy memory has no memory of its own."""
    return bool(jax.device_put(x, **options).unsafe_buffer_pointer() == x.ctypes.data)


@pytest.mark.feature("CW-06")
def test_memory_that_nobody_can_write_to_is_taken_as_it_is(tmp_path: Path) -> None:
    x = aligned()
    x.tofile(tmp_path / "x")
    mapped = np.memmap(tmp_path / "x", np.float32, "r")
    assert is_taken(mapped)
    np.testing.assert_array_equal(jnp.asarray(mapped), x)
    assert jnp.asarray(mapped).unsafe_buffer_pointer() == mapped.ctypes.data
    assert jnp.array(mapped).unsafe_buffer_pointer() != mapped.ctypes.data
    x.base.flags.writeable = x.flags.writeable = False
    assert is_taken(x)
    assert not is_taken(x, may_alias=False)


@pytest.mark.feature("CW-06")
@pytest.mark.parametrize("size", [16, 1 << 20])
def test_memory_that_somebody_can_write_to_is_copied(size: int) -> None:
    x = aligned(size)
    seen = x[:]
    seen.flags.writeable = False
    for put in (lambda: jax.device_put(x), lambda: jax.device_put(seen), lambda: jnp.asarray(seen)):
        made = put()
        x[0] += 1
        assert float(made[0]) == x[0] - 1


@pytest.mark.feature("CW-06")
def test_memory_is_taken_where_the_user_says_so() -> None:
    assert is_taken(aligned(), may_alias=True)
    assert is_taken(aligned(16), may_alias=True)
    unaligned = aligned()[1:]
    assert not is_taken(unaligned, may_alias=True)
    np.testing.assert_array_equal(jax.device_put(unaligned, may_alias=True), unaligned)
    across = aligned().reshape(4, -1).T
    np.testing.assert_array_equal(jax.device_put(across, may_alias=True), across)


@pytest.mark.feature("CW-06")
def test_numpy_form_of_an_array_on_the_host_is_a_view() -> None:
    x = jax.device_put(aligned())
    assert np.asarray(x).ctypes.data == x.unsafe_buffer_pointer()
    assert jax.device_get(x).ctypes.data == x.unsafe_buffer_pointer()
    assert np.array(x).ctypes.data != x.unsafe_buffer_pointer()


@pytest.mark.feature("CW-06")
@pytest.mark.parametrize(
    "turn",
    [
        lambda x: x.T,
        lambda x: x[::-1],
        lambda x: x[:, ::-1],
        lambda x: x.reshape(64, 128, 128).transpose(1, 2, 0),
        lambda x: np.broadcast_to(x[:, :1], x.shape),
        lambda x: x.astype(np.float64).T,
    ],
)
def test_large_arrays_in_any_order_are_copied(turn: Callable[[Any], Any]) -> None:
    x = turn(aligned().reshape(1024, 1024))
    made = jax.device_put(x)
    expected = x.copy()
    x.base[0] = 0
    np.testing.assert_array_equal(made, expected)


def test_taken_memory_lives_as_long_as_the_array_and_is_not_donated() -> None:
    x = aligned()
    x.base.flags.writeable = x.flags.writeable = False
    made, before = jax.device_put(x), x.copy()
    after = jax.jit(lambda v: v + 1, donate_argnums=0)(made)
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(after, before + 1)
    made = jax.device_put(x)
    gone = weakref.ref(x.base)
    del x
    gc.collect()
    np.testing.assert_array_equal(made, before)
    assert gone() is not None
    del made
    gc.collect()
    jnp.zeros(3)  # jaxlib lets go of memory with the next call
    assert gone() is None


PLACES = {
    "split": lambda: on("x", "y"),
    "split once": lambda: on("y"),
    "split twice": lambda: on(None, ("y",)),
    "whole": on,
    "host memory": lambda: on("x").with_memory_kind("pinned_host"),
    "half of the devices": lambda: on_line("x"),
    "the other half": lambda: on_line("x", first=4, last=8),
    "in reverse": lambda: on_line("x", step=-1),
    "a mesh of one": lambda: on_line("x", last=1),
    "a device": lambda: SingleDeviceSharding(jax.devices()[3]),
    "a device's host memory": lambda: SingleDeviceSharding(
        jax.devices()[0], memory_kind="unpinned_host"
    ),
}


@pytest.mark.feature("MS-17")
@pytest.mark.parametrize("source", PLACES)
@pytest.mark.parametrize("target", PLACES)
def test_array_moves_from_any_place_to_any_other(source: str, target: str) -> None:
    wanted = PLACES[target]()
    moved = jax.device_put(jax.device_put(X, PLACES[source]()), wanted)
    assert (moved.sharding, moved.committed) == (wanted, True)
    np.testing.assert_array_equal(moved, X)
    for shard in moved.addressable_shards:
        np.testing.assert_array_equal(shard.data, X[shard.index])


@pytest.mark.feature("AR-15")
def test_array_is_committed_where_it_is_already() -> None:
    x = jnp.ones(3)
    placed = jax.device_put(x, jax.devices()[0])
    assert (x.committed, placed.committed) == (False, True)
    assert placed.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()


@pytest.mark.feature("AR-15")
@pytest.mark.parametrize("put", [jax.device_put, jnp.asarray, jnp.array])
def test_move_to_a_device_commits(put: Any) -> None:
    there = jax.devices()[2]
    assert put(jnp.ones(3), device=there).committed


@pytest.mark.feature("AR-15")
def test_without_a_target_arrays_stay_and_values_are_uncommitted() -> None:
    x = jax.device_put(X, on("x"))
    assert jax.device_put(x) is x
    assert not jax.device_put(X).committed


@pytest.mark.parametrize("x", [3, 2.5, True, 1j, np.float32(2), np.int8(3), np.bool_(True)])
def test_scalars_are_placed_on_every_device(x: Any) -> None:
    placed = jax.device_put(x, on())
    assert placed.sharding == on()
    assert placed.item() == x
    assert placed.aval == jnp.asarray(x).aval


def test_zero_cotangents_of_integers_stay_on_the_host() -> None:
    zeros = np.zeros(8, jax.dtypes.float0)
    assert jax.device_put(zeros, on("x")) is zeros


def test_keys_are_split_by_their_own_dimensions() -> None:
    keys = jax.random.split(jax.random.key(0), 8)
    placed = jax.device_put(keys, on("x"))
    assert placed.sharding == on("x")
    assert (jax.random.key_data(placed) == jax.random.key_data(keys)).all()


def test_tree_prefix_of_places() -> None:
    places = {"a": on("x"), "b": jax.devices()[2], "c": None}
    placed = jax.device_put({"a": X, "b": (X, 3), "c": [X]}, places)
    there = SingleDeviceSharding(jax.devices()[2])
    assert placed["a"].sharding == on("x")
    assert placed["b"][0].sharding == placed["b"][1].sharding == there
    assert not placed["c"][0].committed


def test_spec_means_the_mesh_in_force() -> None:
    with set_mesh(box()):
        assert jax.device_put(X, P("x")).sharding == on("x")


@pytest.mark.parametrize("error", [ValueError, RuntimeError])
def test_spec_without_a_mesh_is_refused(error: type[Exception]) -> None:
    with pytest.raises(error, match="a PartitionSpec needs a mesh"):
        jax.device_put(X, P("x"))


@pytest.mark.parametrize(
    "source", ["split", "whole", "a device", "host memory", "half of the devices"]
)
@pytest.mark.parametrize("target", ["split", "whole", "a device", "half of the devices"])
def test_donated_array_is_deleted_and_its_elements_live_on(source: str, target: str) -> None:
    x = jax.device_put(X, PLACES[source]())
    moved = jax.device_put(x, PLACES[target](), donate=True)
    assert x.is_deleted()
    np.testing.assert_array_equal(moved, X)
    np.testing.assert_array_equal(jax.jit(lambda x: x + 1)(moved), X + 1)


def test_donation_may_be_a_tree_prefix() -> None:
    x, y = jax.device_put((X, X), on("x"))
    jax.device_put((x, y), on("y"), donate=(True, False))
    assert (x.is_deleted(), y.is_deleted()) == (True, False)


@pytest.mark.parametrize("place", ["split", "whole", "a device"])
def test_array_that_may_not_alias_has_memory_of_its_own(place: str) -> None:
    x = jax.device_put(X, PLACES[place]())
    y = jax.device_put(x, x.sharding, may_alias=False)
    x.delete()
    np.testing.assert_array_equal(y, X)


def test_array_may_not_be_donated_and_shared() -> None:
    with pytest.raises(ValueError, match="cannot be donated and shared"):
        jax.device_put(X, on("x"), donate=True, may_alias=True)


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "uneven": (X[:7], lambda: on("x"), r"dimension 0 of size 7.* 4 equal parts"),
    "rank": (X, lambda: on("x", None, "y"), "more entries than the array has dimensions"),
    "scalar": (3.0, lambda: on("x"), "more entries than the array has dimensions"),
    "open": (X, lambda: on(P.UNCONSTRAINED), "only inside programs may a dimension be left"),
    "abstract": (
        X,
        lambda: NamedSharding(box().abstract_mesh, P("x")),
        "abstract mesh names no devices",
    ),
    "nowhere": (X, lambda: "cpu", "not a place for arrays"),
    "no prefix": ((X, X), lambda: (on("x"),) * 3, "device is not a tree prefix of x"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_impossible_places_are_refused(name: str) -> None:
    x, place, text = REFUSED[name]
    with pytest.raises(ValueError, match=text):
        jax.device_put(x, place())


def test_nothing_moves_where_a_leaf_cannot() -> None:
    x = jax.device_put(X, on("x"))
    with pytest.raises(ValueError, match="cannot be cut"):
        jax.device_put((x, X[:7]), on("y"), donate=True)
    assert not x.is_deleted()


@pytest.mark.parametrize("leaf", ["text", object(), np.array(["a"])])
def test_what_is_no_array_is_refused(leaf: Any) -> None:
    with pytest.raises(TypeError):
        jax.device_put(leaf, on())


@pytest.mark.parametrize("put", [jax.device_put, jnp.asarray])
def test_foreign_byte_order_is_refused(put: Any) -> None:
    with pytest.raises(TypeError, match=r"machine's order(.|\n)*newbyteorder"):
        put(X.astype(X.dtype.newbyteorder()))


def test_unknown_memory_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="device, pinned_host, unpinned_host"):
        on("x").with_memory_kind("attic")


def test_programs_split_values_as_device_put_says() -> None:
    assert jax.jit(lambda x: jax.device_put(x, on("x")) * 2)(X).sharding == on("x")


def test_gradient_passes_device_put() -> None:
    gradient = jax.grad(lambda x: (jax.device_put(x, on("x")) ** 2).sum())(X)
    np.testing.assert_array_equal(gradient, 2 * X)


@pytest.mark.parametrize(("dim", "spec"), [(0, P(None, "y")), (1, P(None, "x"))])
def test_vmap_leaves_the_batch_dimension_whole(dim: int, spec: P) -> None:
    name = "y" if dim == 0 else "x"
    batched = jax.vmap(lambda x: jax.device_put(x, on(name)), in_axes=dim)(X)
    assert batched.sharding == NamedSharding(box(), spec)


CREATED = {
    "zeros": lambda: jnp.zeros((8, 2)),
    "full": lambda: jnp.full(3, 2.0),
    "arange": lambda: jnp.arange(8),
    "linspace": lambda: jnp.linspace(0, 1, 8),
    "eye": lambda: jnp.eye(4),
    "tri": lambda: jnp.tri(4),
    "array": lambda: jnp.array(X),
    "asarray": lambda: jnp.asarray([1, 2]),
    "scalar": lambda: jnp.asarray(3),
    "dtype": lambda: jnp.float32(3),
    "zeros_like": lambda: jnp.zeros_like(X),
    "operation": lambda: jnp.sin(X),
    "key": lambda: jax.random.key_data(jax.random.key(0)),
    "uniform": lambda: jax.random.uniform(jax.random.key(0), (8,)),
    "jit": lambda: jax.jit(lambda x: x * 2)(X),
}


@pytest.mark.feature("MS-08")
@pytest.mark.parametrize("axis_type", [AxisType.Auto, AxisType.Explicit])
@pytest.mark.parametrize("name", CREATED)
def test_what_is_made_under_a_mesh_is_whole_on_all_its_devices(
    name: str, axis_type: AxisType
) -> None:
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"), (axis_type,) * 2)
    outside = np.asarray(CREATED[name]())
    with set_mesh(mesh):
        made = CREATED[name]()
    assert (made.sharding.mesh, made.committed) == (mesh, True)
    assert made.sharding.is_fully_replicated
    np.testing.assert_array_equal(made, outside)


def test_device_put_without_a_target_ignores_the_mesh_in_force() -> None:
    with set_mesh(box()):
        assert jax.device_put(X).sharding == SingleDeviceSharding(jax.devices()[0])


LIKE = {
    "zeros_like": jnp.zeros_like,
    "ones_like": jnp.ones_like,
    "empty_like": jnp.empty_like,
    "full_like": lambda x: jnp.full_like(x, 3),
    "array": jnp.array,
    "asarray": jnp.asarray,
    "set": lambda x: x.at[0].set(1),
    "add": lambda x: x + 1,
}


@pytest.mark.parametrize("name", LIKE)
@pytest.mark.parametrize("place", ["split", "whole", "half of the devices", "a device"])
def test_arrays_like_another_are_where_it_is(name: str, place: str) -> None:
    where = PLACES[place]()
    made = LIKE[name](jax.device_put(X, where))
    assert made.sharding.is_equivalent_to(where, 2)


@pytest.mark.parametrize("make", [jnp.zeros, jnp.ones, jnp.empty])
def test_device_of_new_arrays_may_be_a_sharding(make: Any) -> None:
    assert make((8, 2), device=on("x")).sharding == on("x")


def test_to_device_takes_devices_and_shardings() -> None:
    x = jnp.asarray(X)
    assert x.to_device(jax.devices()[2]).committed
    assert x.to_device(on("x")).sharding == on("x")
