"""`make_array_from_…`: arrays over many devices from pieces."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.sharding import Mesh, NamedSharding, SingleDeviceSharding, set_mesh
from minijax.sharding import PartitionSpec as P
from minijax.transforms.global_arrays import local_indices
from tests.sharding.mock_devices import Device

pytestmark = pytest.mark.feature("AR-13")
X = np.arange(16, dtype=np.float32).reshape(8, 2)


@pytest.fixture(autouse=True)
def eight_devices() -> Iterator[None]:
    with jax.cpu_devices(8):
        yield


def on(*spec: Any) -> NamedSharding:
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
    return NamedSharding(mesh, P(*spec))


def parts(sharding: NamedSharding) -> list[Any]:
    places = sharding.devices_indices_map(X.shape)
    return [jax.device_put(X[index], device) for device, index in places.items()]


def from_parts(shape: Any, sharding: Any, arrays: Any, **options: Any) -> Any:
    return jax.make_array_from_single_device_arrays(shape, sharding, arrays, **options)


@pytest.mark.parametrize("spec", [(), ("x",), ("y", "x"), (("x", "y"),), (None, "y")])
def test_parts_make_the_whole(spec: Any) -> None:
    sharding = on(*spec) if spec != ("y", "x") else on("x", "y")
    whole = from_parts((8, 2), sharding, parts(sharding)[::-1])
    assert (whole.sharding, whole.committed) == (sharding, True)
    np.testing.assert_array_equal(whole, X)


@pytest.mark.feature("AR-07")
def test_parts_are_not_copied() -> None:
    given = parts(on("x"))
    whole = from_parts((8, 2), on("x"), given)
    assert [s.data.unsafe_buffer_pointer() for s in whole.addressable_shards] == [
        x.unsafe_buffer_pointer() for x in given
    ]


def test_keys_are_parts() -> None:
    keys = jax.random.split(jax.random.key(0), 8)
    given = [jax.device_put(keys[i : i + 1], d) for i, d in enumerate(jax.devices())]
    whole = from_parts((8,), on(("x", "y")), given)
    assert jax.random.key_data(whole).tolist() == jax.random.key_data(keys).tolist()


def test_one_device_makes_an_array_of_one_device() -> None:
    sharding = SingleDeviceSharding(jax.devices()[2])
    whole = from_parts((8, 2), sharding, [jax.device_put(X, jax.devices()[2])])
    assert (whole.sharding, whole.tolist()) == (sharding, X.tolist())


REFUSED_PARTS: dict[str, tuple[Any, type[Exception], str]] = {
    "no list": (iter, TypeError, "arrays must be a list"),
    "NumPy": (lambda given: [X[:2]] * 8, TypeError, r"arrays\[0\] is not an array on a device"),
    "too few": (lambda given: given[:-1], ValueError, r"7 arrays\n.*expected +8 arrays"),
    "too many": (lambda given: [*given, given[0]], ValueError, "9 arrays"),
    "twice": (lambda given: [given[1], *given[1:]], ValueError, "two arrays are on one device"),
    "several devices": (
        lambda given: [jax.device_put(X, on("x")), *given[1:]],
        ValueError,
        r"arrays\[0\] is not on a single device",
    ),
    "another shape": (
        lambda given: [jax.device_put(X, jax.devices()[0]), *given[1:]],
        ValueError,
        r"another shape(.|\n)*f32\[8,2\](.|\n)*expected +shape \(2, 2\)",
    ),
    "another dtype": (
        lambda given: [given[0].astype(jnp.int32), *given[1:]],
        ValueError,
        "dtypes differ",
    ),
}


@pytest.mark.parametrize("name", REFUSED_PARTS)
def test_parts_that_do_not_fit_are_refused(name: str) -> None:
    change, kind, text = REFUSED_PARTS[name]
    with pytest.raises(kind, match=text):
        from_parts((8, 2), on("x"), change(parts(on("x"))))


def test_parts_on_other_devices_are_refused() -> None:
    mesh = Mesh(np.array(jax.devices()[:4]), ("x",))
    given = [jax.device_put(X[2 * i : 2 * i + 2], d) for i, d in enumerate(jax.devices()[4:])]
    with pytest.raises(ValueError, match=r"ids \[4, 5, 6, 7\]\n.*ids \[0, 1, 2, 3\]"):
        from_parts((8, 2), NamedSharding(mesh, P("x")), given)


def test_deleted_part_is_refused() -> None:
    given = parts(on("x"))
    given[3].delete()
    with pytest.raises(ValueError, match=r"arrays\[3\] has been deleted"):
        from_parts((8, 2), on("x"), given)


def test_dtype_that_parts_do_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="dtype is not the pieces'"):
        from_parts((8, 2), on("x"), parts(on("x")), dtype=np.int32)


@pytest.mark.parametrize("sharding", [None, "x", P("x")])
def test_what_is_no_sharding_is_refused(sharding: Any) -> None:
    with pytest.raises(TypeError, match="the second argument must be a sharding"):
        from_parts((8, 2), sharding, [])
    with pytest.raises(TypeError, match="the second argument must be a sharding"):
        jax.make_array_from_callback((8, 2), sharding, X.__getitem__)


@pytest.mark.parametrize("dtype", [np.float32, np.bool_, ml_dtypes.bfloat16, ml_dtypes.int4])
@pytest.mark.parametrize("spec", [(), ("x",), ("x", "y"), (None, "y")])
def test_callback_gives_the_pieces(spec: Any, dtype: Any) -> None:
    x = (X % 4).astype(dtype)
    whole = jax.make_array_from_callback((8, 2), on(*spec), x.__getitem__)
    assert whole.sharding == on(*spec)
    assert whole.dtype == dtype
    np.testing.assert_array_equal(np.asarray(whole), x)


def test_callback_is_asked_once_for_each_part() -> None:
    asked = []
    jax.make_array_from_callback((8, 2), on("x"), lambda index: asked.append(index) or X[index])
    assert [index[0] for index in asked] == [slice(2 * i, 2 * i + 2) for i in range(4)]


@pytest.mark.parametrize("give", [jnp.asarray, lambda x: jax.device_put(x, jax.devices()[5])])
def test_callback_may_give_arrays_of_any_device(give: Any) -> None:
    whole = jax.make_array_from_callback((8, 2), on("x"), lambda index: give(X[index]))
    np.testing.assert_array_equal(whole, X)


def test_callback_may_give_numbers() -> None:
    assert float(jax.make_array_from_callback((), on(), lambda index: 2.5)) == 2.5


def test_memory_kind_of_the_sharding_is_kept() -> None:
    sharding = on("x").with_memory_kind("pinned_host")
    whole = jax.make_array_from_callback((8, 2), sharding, X.__getitem__)
    assert whole.sharding.memory_kind == "pinned_host"


REFUSED_PIECES: dict[str, tuple[Any, type[Exception], str]] = {
    "another shape": (lambda index: X, ValueError, "another shape"),
    "other dtypes": (
        lambda index: X[index].astype(np.int32 if index[0].start else np.float32),
        ValueError,
        "dtypes differ",
    ),
    "a list": (lambda index: X[index].tolist(), TypeError, "not a valid type"),
    "nothing": (lambda index: None, TypeError, "not a valid type"),
    "its own error": (lambda index: 1 / 0, ZeroDivisionError, "division"),
}


@pytest.mark.parametrize("name", REFUSED_PIECES)
def test_pieces_that_do_not_fit_are_refused(name: str) -> None:
    callback, kind, text = REFUSED_PIECES[name]
    with pytest.raises(kind, match=text):
        jax.make_array_from_callback((8, 2), on("x"), callback)


def test_uneven_whole_is_refused_before_the_callback() -> None:
    asked: list[Any] = []
    with pytest.raises(ValueError, match="cannot be cut into 4 equal parts"):
        jax.make_array_from_callback((7, 2), on("x"), asked.append)
    assert asked == []


def test_local_data_of_one_process_is_all_of_it() -> None:
    made = jax.make_array_from_process_local_data(on("x"), {"a": X, "b": (X[:4],)})
    assert made["a"].sharding == made["b"][0].sharding == on("x")
    np.testing.assert_array_equal(made["a"], X)


def test_local_data_may_name_a_spec_under_a_mesh() -> None:
    with set_mesh(on().mesh):
        made = jax.make_array_from_process_local_data(P("x"), X)
    assert made.sharding == on("x")


@pytest.mark.parametrize("shape", [(16, 2), (8, 2, 1), (None, 2)])
def test_global_shape_that_one_process_does_not_have_is_refused(shape: Any) -> None:
    with pytest.raises(ValueError, match=r"single process(.|\n)*\(8, 2\)"):
        jax.make_array_from_process_local_data(on("x"), X, shape)


def two_processes(*spec: Any) -> NamedSharding:
    """Four devices of process 0 in the first rows of a box, four of process 1 in the last."""
    devices = np.empty(8, object)
    devices[:] = [Device(i, i // 4) for i in range(8)]
    return NamedSharding(Mesh(devices.reshape(4, 2), ("x", "y")), P(*spec))


def test_part_of_a_process_is_cut_over_its_devices() -> None:
    shape, indices = local_indices(two_processes("x"), (4, 3), None)
    assert shape == (8, 3)
    assert [index[0] for index in indices] == [slice(0, 2), slice(0, 2), slice(2, 4), slice(2, 4)]


def test_process_may_bring_the_whole() -> None:
    shape, indices = local_indices(two_processes("x"), (8, 3), (8, 3))
    assert shape == (8, 3)
    assert [index[0] for index in indices] == [slice(4, 6), slice(4, 6), slice(6, 8), slice(6, 8)]


def test_dimension_that_each_process_has_whole_does_not_grow() -> None:
    shape, indices = local_indices(two_processes("y", "x"), (4, 2), (None, None))
    assert shape == (4, 4)
    assert indices[1] == (slice(2, 4), slice(0, 1))


def test_part_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match=r"dimension 0 of the data(.|\n)*expected +4, (.|\n)*or 8"):
        local_indices(two_processes("x"), (6, 3), (8, 3))


def test_global_shape_of_another_rank_is_refused() -> None:
    with pytest.raises(ValueError, match="differ in rank"):
        local_indices(two_processes("x"), (4, 3), (8,))
