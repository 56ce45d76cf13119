"""Arrays over several devices: their pieces, their members, and what they refuse."""

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minijax as jax
import minijax.numpy as jnp
from minijax.core import monitoring
from minijax.lowering import relocation
from minijax.runtime import placement
from minijax.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding, set_mesh
from minijax.sharding import PartitionSpec as P
from minijax.testing import strategies
from tests.sharding.mock_devices import Device

X = np.arange(16, dtype=np.float32).reshape(8, 2)


@pytest.fixture(autouse=True)
def eight_devices() -> Iterator[None]:
    with jax.cpu_devices(8):
        yield


def box() -> Mesh:
    return Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))


def line(first: int = 0, last: int = 4) -> Mesh:
    return Mesh(np.array(jax.devices()[first:last]), ("x",))


def put(*spec: Any, mesh: Mesh | None = None, x: Any = X) -> Any:
    return jax.device_put(x, NamedSharding(mesh or box(), P(*spec)))


def pointers(x: Any) -> dict[int, int]:
    return {s.device.id: s.data.unsafe_buffer_pointer() for s in x.addressable_shards}


@pytest.mark.feature("AR-01")
def test_shards_tell_device_index_and_replica() -> None:
    shards = put("x").addressable_shards
    assert [shard.device.id for shard in shards] == list(range(8))
    assert [shard.replica_id for shard in shards] == [0, 1] * 4
    assert shards[5].index == (slice(4, 6), slice(None))


@pytest.mark.feature("AR-01")
def test_data_of_shards_is_committed_to_their_device() -> None:
    piece = put("x", "y").addressable_shards[3].data
    assert piece.sharding == SingleDeviceSharding(jax.devices()[3])
    assert piece.committed
    assert piece.tolist() == X[2:4, 1:].tolist()


@pytest.mark.feature("AR-01")
def test_pieces_are_operands_of_programs() -> None:
    assert (put("x", "y").addressable_data(2) * 2).tolist() == (2 * X[2:4, :1]).tolist()


@pytest.mark.feature("AR-01")
def test_global_shards_are_the_addressable_ones_in_one_process() -> None:
    x = put("x")
    assert [s.index for s in x.global_shards] == [s.index for s in x.addressable_shards]


@pytest.mark.feature("AR-01")
def test_shards_of_keys_have_logical_indices() -> None:
    keys = put("x", "y", x=jax.random.split(jax.random.key(0), 8).reshape(4, 2))
    shard = keys.addressable_shards[3]
    assert shard.index == (slice(1, 2), slice(1, 2))
    assert shard.data.shape == (1, 1)
    assert shard.data.dtype == keys.dtype


@pytest.mark.parametrize(
    "dtype",
    [np.bool_, np.int8, np.float16, np.complex64, "bfloat16", "int4", "uint4", "float8_e4m3fn"],
)
def test_every_dtype_comes_back_from_several_devices(dtype: Any) -> None:
    x = (X % 4).astype(getattr(ml_dtypes, dtype) if isinstance(dtype, str) else dtype)
    back = np.asarray(put("x", "y", x=x))
    assert back.dtype == x.dtype
    np.testing.assert_array_equal(back, x)


@pytest.mark.parametrize("x", [np.zeros((0, 4)), np.zeros((4, 0)), np.ones(())])
def test_arrays_of_little_are_placed(x: Any) -> None:
    assert put(x=x.astype(np.float32)).tolist() == x.tolist()


def test_host_memory_read_for_several_pieces_is_placed() -> None:
    assert put("x", x=np.broadcast_to(np.float32(3), (8, 2))).tolist() == [[3.0, 3.0]] * 8


def test_strided_host_memory_is_placed() -> None:
    x = np.arange(16, dtype=np.float32).reshape(2, 8).T
    np.testing.assert_array_equal(put("x", "y", x=x), x)


def test_numpy_form_is_kept_and_read_only() -> None:
    x = put("x")
    assert np.asarray(x) is np.asarray(x)
    assert not np.asarray(x).flags.writeable


def test_numpy_copy_is_writeable() -> None:
    assert np.array(put("x")).flags.writeable


@pytest.mark.parametrize("spec", [(), ("x",), ("x", "y")])
def test_text_is_that_of_the_whole(spec: tuple[str, ...]) -> None:
    assert repr(put(*spec)) == repr(jnp.asarray(X))
    assert f"{put(*spec)}" == str(X)


def test_format_of_a_scalar_on_several_devices() -> None:
    assert f"{put(x=1.5):.3f}" == "1.500"


def test_format_of_an_array_is_refused() -> None:
    with pytest.raises(TypeError):
        f"{put('x'):.3f}"


def test_scalars_on_several_devices_become_python_numbers() -> None:
    assert (float(put(x=2.5)), int(put(x=3)), bool(put(x=True))) == (2.5, 3, True)
    assert [10, 20][put(x=1)] == 20


def test_iteration_gives_rows() -> None:
    assert [row.tolist() for row in put("x", "y")] == X.tolist()


def test_pickle_keeps_elements_and_not_devices() -> None:
    back = pickle.loads(pickle.dumps(put("x")))
    assert (back.tolist(), back.committed) == (X.tolist(), False)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: x.copy()])
def test_copies_keep_the_placement(copied: Any) -> None:
    assert copied(put("x")).sharding == NamedSharding(box(), P("x"))


def test_sizes_in_bytes_count_the_whole() -> None:
    x = put("x", "y")
    assert (x.nbytes, x.on_device_size_in_bytes()) == (64, 64)


@pytest.mark.parametrize("member", ["__dlpack__", "__dlpack_device__"])
def test_dlpack_of_several_devices_is_refused(member: str) -> None:
    with pytest.raises(BufferError, match=r"only the memory of one device.*\n.*\n.*x\.addressable"):
        getattr(put("x"), member)()


def test_address_of_several_devices_is_refused() -> None:
    with pytest.raises(RuntimeError, match="unsafe_buffer_pointer: only the memory of one device"):
        put("x").unsafe_buffer_pointer()


DELETED_USES = {
    "addressable_shards": lambda x: x.addressable_shards,
    "addressable_data": lambda x: x.addressable_data(0),
    "asarray": np.asarray,
    "block_until_ready": lambda x: x.block_until_ready(),
    "copy_to_host_async": lambda x: x.copy_to_host_async(),
    "device_put": lambda x: jax.device_put(x, NamedSharding(box(), P("y"))),
    "device_put_where_it_was": lambda x: jax.device_put(x, NamedSharding(box(), P("x"))),
    "is_ready": lambda x: x.is_ready(),
    "operand": lambda x: x + 1,
    "pickle": pickle.dumps,
    "size": lambda x: x.on_device_size_in_bytes(),
    "iteration": list,
}


@pytest.mark.parametrize("use", DELETED_USES)
def test_use_of_a_deleted_array_is_refused(use: str) -> None:
    x = put("x")
    x.delete()
    with pytest.raises(RuntimeError, match="has been deleted"):
        DELETED_USES[use](x)


def test_deleted_array_still_tells_where_it_was() -> None:
    x = put("x")
    x.delete()
    x.delete()
    assert (x.sharding, x.committed, x.shape) == (NamedSharding(box(), P("x")), True, (8, 2))
    assert repr(x) == "Array(deleted, f32[8,2])"


@pytest.mark.feature("AR-05")
def test_pieces_that_are_in_place_are_used_without_a_copy() -> None:
    x = put()
    half = jax.device_put(x, NamedSharding(line(), P()))
    assert pointers(half).items() <= pointers(x).items()


@pytest.mark.feature("AR-05")
def test_transfers_are_counted() -> None:
    x = put("x", mesh=line())
    monitoring.transfers.clear()
    jax.device_put(x, NamedSharding(line(2, 6), P("x"))).block_until_ready()
    jax.device_put(x, NamedSharding(box(), P("x")))
    assert monitoring.transfers == {
        "copied between devices": 1 + 8 - 1,
        "used where they are": 1,
    }


@pytest.mark.feature("AR-05")
def test_pieces_that_nobody_has_pass_through_the_host() -> None:
    x = put("x", mesh=line())
    monitoring.transfers.clear()
    moved = jax.device_put(x, NamedSharding(line(4, 6), P("x")))
    assert monitoring.transfers == {"through the host": 1}
    np.testing.assert_array_equal(moved, X)


@pytest.mark.feature("AR-07")
def test_other_notation_of_a_placement_copies_nothing() -> None:
    x = put("x")
    y = jax.device_put(x, NamedSharding(box(), P("x", None)))
    assert pointers(y) == pointers(x)
    assert y.sharding.spec == P("x", None)


@pytest.mark.feature("AR-14")
def test_index_tables_are_made_once() -> None:
    put("x", "y")
    before = jax.cache_stats()["index tables"]
    put("x", "y")
    after = jax.cache_stats()["index tables"]
    assert (after.misses - before.misses, after.hits > before.hits) == (0, True)


def test_places_of_other_processes_are_not_local() -> None:
    devices = np.empty(4, object)
    devices[:] = [Device(i, i // 2) for i in range(4)]
    sharding = NamedSharding(Mesh(devices, ("x",)), P("x"))
    assert [place.device.id for place in placement.local_places(sharding, (8,))] == [2, 3]
    assert [place.slices for place in placement.places(sharding, (8,))] == [
        (slice(2 * i, 2 * i + 2),) for i in range(4)
    ]


@pytest.mark.feature("AR-05")
def test_program_moves_arrays_where_the_host_is_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relocation, "NEAR_THE_HOST", frozenset())
    monitoring.transfers.clear()
    moved = jax.device_put(put("x"), NamedSharding(box(), P("y")))
    assert monitoring.transfers == {"by a program": 1}
    assert moved.sharding.spec == P("y")
    np.testing.assert_array_equal(moved, X)


@pytest.mark.feature("UX-04")
def test_accelerators_exchange_pieces_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relocation, "NEAR_THE_HOST", frozenset())
    backwards = NamedSharding(Mesh(box().devices[::-1], ("x", "y")), P("y"))
    x = put("x")
    monitoring.transfers.clear()
    moved = jax.device_put(x, backwards)
    assert monitoring.transfers == {"by a program": 1}
    assert moved.sharding == backwards
    np.testing.assert_array_equal(moved, X)
    np.testing.assert_array_equal(x, X)


def test_large_host_memory_may_change_after_it_is_placed() -> None:
    x = np.ones((8, 1 << 17), np.float32)
    placed = put("x", x=x)
    x[:] = 2
    assert np.asarray(placed).max() == 1


def unreduced() -> NamedSharding:
    mesh = Mesh(box().devices, ("x", "y"), (AxisType.Explicit,) * 2)
    return NamedSharding(mesh, P(unreduced={"x"}))


def test_pieces_of_sums_that_are_not_done_are_terms() -> None:
    x = jax.device_put(X, unreduced())
    first, *others = (np.asarray(piece.data) for piece in x.addressable_shards[::2])
    np.testing.assert_array_equal(first, X)
    assert not np.any(others)
    np.testing.assert_array_equal(x, X)


def test_sums_that_are_not_done_are_done_on_the_way() -> None:
    x = jax.device_put(X, NamedSharding(unreduced().mesh, P("x")))
    with set_mesh(unreduced().mesh):
        gram = jax.jit(lambda x: jnp.einsum("ij,ik->jk", x, x, out_sharding=P(unreduced={"x"})))(x)
    assert repr(gram).startswith("Array(shape=(2, 2), dtype=float32, sharding=")
    np.testing.assert_array_equal(
        jax.device_put(gram, NamedSharding(unreduced().mesh, P())), X.T @ X
    )


DTYPES = [np.float32, np.int8, np.bool_, np.complex64, ml_dtypes.bfloat16]


@pytest.mark.feature("AR-05", "AR-06", "AR-07")
@given(data=st.data())
def test_every_device_holds_its_part_wherever_an_array_came_from(data: Any) -> None:
    with jax.cpu_devices(8):
        shape = tuple(data.draw(st.lists(st.sampled_from((1, 2, 4, 8)), max_size=3)))
        size = int(np.prod(shape))
        x = np.arange(size).reshape(shape).astype(data.draw(st.sampled_from(DTYPES)))
        placed = x
        for _ in range(3):
            first = data.draw(st.integers(0, 6))
            mesh = data.draw(strategies.meshes(jax.devices()[first:]))
            target = NamedSharding(mesh, data.draw(strategies.specs(mesh, shape)))
            placed = jax.device_put(placed, target)
            assert (placed.sharding, placed.committed) == (target, True)
            for shard in placed.addressable_shards:
                np.testing.assert_array_equal(np.asarray(shard.data), x[shard.index])
        np.testing.assert_array_equal(np.asarray(placed), x)
