"""Kinds of shardings: which device holds what, compared with a count by hand."""

import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies

import minijax
from minijax import P
from minijax.core.errors import DuplicateSpecError, IndivisibleError
from minijax.sharding import (
    AbstractMesh,
    GSPMDSharding,
    Mesh,
    NamedSharding,
    PmapSharding,
    PositionalSharding,
    SingleDeviceSharding,
)
from minijax.sharding.mesh import DeviceList, device_list
from minijax.sharding.named import AUTO, UNSPECIFIED, is_auto, is_unspecified
from tests.sharding.mocks import mocks


@strategies.composite
def named_cases(draw: Any) -> tuple[NamedSharding, tuple[int, ...]]:
    """A sharding over mocks and the shape of an array that it can cut."""
    sizes = draw(strategies.lists(strategies.integers(1, 3), min_size=1, max_size=3))
    names = "xyz"[: len(sizes)]
    order = draw(strategies.permutations(mocks(math.prod(sizes))))
    mesh = Mesh(np.array(order, object).reshape(sizes), tuple(names))
    ndim = draw(strategies.integers(0, 3))
    where = {name: draw(strategies.integers(-1, ndim - 1)) for name in names}
    used = draw(strategies.permutations(names))
    entries = [tuple(n for n in used if where[n] == dim) for dim in range(ndim)]
    factors = [math.prod(mesh.shape[n] for n in entry) for entry in entries]
    shape = tuple(f * draw(strategies.integers(1, 2)) for f in factors)
    return NamedSharding(mesh, P(*entries)), shape


def held(sharding: NamedSharding, shape: tuple[int, ...]) -> dict[Any, np.ndarray]:
    """What each device holds of an array that counts: split along one axis after the other."""
    pieces = {(): np.arange(math.prod(shape)).reshape(shape)}
    mesh = sharding.mesh
    for dim, entry in enumerate(sharding.spec.dims(len(shape))):
        for name in entry:
            pieces = {
                (*at, (name, i)): part
                for at, piece in pieces.items()
                for i, part in enumerate(np.split(piece, mesh.shape[name], axis=dim))
            }
    found = {}
    for place in np.ndindex(*mesh.axis_sizes):
        own = set(zip(mesh.axis_names, place, strict=True))
        found[mesh.devices[place]] = next(p for at, p in pieces.items() if set(at) <= own)
    return found


@pytest.mark.feature("MS-10")
@given(named_cases())
def test_named_sharding_gives_each_device_its_part(
    case: tuple[NamedSharding, tuple[int, ...]],
) -> None:
    sharding, shape = case
    x = np.arange(math.prod(shape)).reshape(shape)
    expected = held(sharding, shape)
    indices = sharding.devices_indices_map(shape)
    assert indices.keys() == expected.keys()
    assert all(np.array_equal(x[indices[d]], expected[d]) for d in expected)
    assert all(expected[d].shape == sharding.shard_shape(shape) for d in expected)


@pytest.mark.feature("MS-10")
@given(named_cases(), named_cases())
def test_named_shardings_are_equivalent_if_they_place_alike(
    one: tuple[NamedSharding, tuple[int, ...]], other: tuple[NamedSharding, tuple[int, ...]]
) -> None:
    first, second = one[0], other[0]
    shape = (36,) * 3
    same = first.device_assignment == second.device_assignment and (
        first.devices_indices_map(shape) == second.devices_indices_map(shape)
    )
    assert first.is_equivalent_to(second, 3) == same


@pytest.mark.feature("MS-10")
def test_trailing_entries_make_no_difference_to_placement() -> None:
    mesh = Mesh(mocks(2), "x")
    one, other = NamedSharding(mesh, P("x")), NamedSharding(mesh, P(("x",), None))
    assert one != other
    assert one.is_equivalent_to(other, 2)


@pytest.mark.feature("MS-10")
@pytest.mark.parametrize(
    ("use", "error", "text"),
    [
        (lambda m: NamedSharding(m, P("q")), ValueError, "'q', which is no axis"),
        (lambda m: NamedSharding(m, P(unreduced={"x"})), ValueError, r"Explicit .*\['x'\]"),
        (lambda m: NamedSharding(m, P(reduced={"y"})), ValueError, "can be reduced"),
        (lambda m: NamedSharding(m, P("x", "x")), DuplicateSpecError, "names 'x' twice"),
        (lambda m: NamedSharding(m, ("x",)), TypeError, "must be a PartitionSpec"),
        (lambda m: NamedSharding(3, P()), TypeError, "must be a mesh"),
        (
            lambda m: NamedSharding(m, P(None, ("x", "y"))).shard_shape((1, 12)),
            IndivisibleError,
            r"(?s)dimension 1 of size 12 .* into 8 .*\(1, 12\)",
        ),
        (lambda m: NamedSharding(m, P("x", None)).shard_shape((4,)), ValueError, "at most 1"),
    ],
)
def test_named_sharding_refuses(mesh: Mesh, use: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        use(mesh)


@pytest.mark.feature("MS-10")
def test_mesh_of_one_device_holds_everything() -> None:
    sharding = NamedSharding(Mesh(mocks(1)[0], ()), P())
    assert sharding.indices((2, 3)) == [(slice(None),) * 2]
    assert sharding.shard_shape((2, 3)) == (2, 3)


@pytest.mark.feature("MS-10", "MS-11")
@pytest.mark.parametrize(
    "member",
    [
        "device_set",
        "_device_assignment",
        "_internal_device_list",
        "addressable_devices",
        "is_fully_addressable",
    ],
)
def test_abstract_sharding_refuses_to_name_devices(member: str) -> None:
    sharding = NamedSharding(AbstractMesh((2,), ("x",)), P("x"))
    with pytest.raises(ValueError, match="its mesh is abstract"):
        getattr(sharding, member)


@pytest.mark.feature("MS-10")
def test_abstract_sharding_knows_shapes() -> None:
    sharding = NamedSharding(AbstractMesh((2,), ("x",)), P("x"))
    assert sharding.shard_shape((4, 3)) == (2, 3)
    assert (sharding.num_devices, sharding.is_fully_replicated) == (2, False)
    assert sharding.memory_kind is None


@pytest.mark.feature("MS-10")
def test_named_sharding_tells_the_axes_of_copies(mesh: Mesh) -> None:
    sharding = NamedSharding(mesh, P("x"))
    assert sharding.replicated_axes == {"y"}
    assert sharding.update(spec=("x", "y")).replicated_axes == frozenset()
    assert sharding.has_addressable_devices


@pytest.mark.feature("MS-17")
def test_memory_kind_is_the_default_unless_named(mesh: Mesh) -> None:
    sharding = NamedSharding(mesh, P("x"))
    assert sharding.memory_kind == "device"
    assert sharding == NamedSharding(mesh, P("x"), memory_kind="device")
    assert hash(sharding) == hash(sharding.with_memory_kind("device"))


@pytest.mark.feature("MS-17")
@pytest.mark.parametrize(
    "make",
    [
        lambda d: NamedSharding(Mesh(d, "x"), P("x")),
        lambda d: SingleDeviceSharding(d[0]),
        PositionalSharding,
        lambda d: GSPMDSharding.get_replicated(tuple(d)),
        lambda d: PmapSharding.default((8,), devices=d),
    ],
)
def test_memory_kinds_are_checked(devices: np.ndarray, make: Any) -> None:
    sharding = make(devices)
    pinned = sharding.with_memory_kind("pinned_host")
    assert pinned.memory_kind == "pinned_host"
    assert pinned != sharding
    assert not pinned.is_equivalent_to(sharding, 1)
    with pytest.raises(ValueError, match="one of device, pinned_host, unpinned_host"):
        sharding.with_memory_kind("somewhere")


@pytest.mark.feature("MS-17")
def test_abstract_shardings_know_the_kinds_there_are() -> None:
    mesh = AbstractMesh((2,), ("x",))
    assert NamedSharding(mesh, P(), memory_kind="pinned_host").memory_kind == "pinned_host"
    with pytest.raises(ValueError, match="no memory of kind 'somewhere'"):
        NamedSharding(mesh, P(), memory_kind="somewhere")


@pytest.mark.feature("MS-16")
def test_shardings_of_a_mesh_share_a_device_list(mesh: Mesh) -> None:
    one, other = NamedSharding(mesh, P("x")), NamedSharding(mesh, P(None, "y"))
    assert one._internal_device_list is other._internal_device_list


@pytest.mark.feature("MS-16")
def test_device_list_asks_a_device_of_this_process_about_memory() -> None:
    class Memory:
        kind = "own"

    class Client:
        def process_index(self) -> int:
            return 1

    class Device:
        client = Client()

        def __init__(self, process: int) -> None:
            self.process_index = process

        def default_memory(self) -> Memory:
            assert self.process_index == 1
            return Memory()

    found = DeviceList([Device(0), Device(1)])
    assert found.default_memory_kind == "own"
    assert not found.is_fully_addressable
    assert len(found.addressable_device_list) == 1


@pytest.mark.feature("MS-18")
def test_device_lists_are_interned_by_value() -> None:
    devices = tuple(mocks(3))
    assert device_list(devices) is device_list(tuple(mocks(3)))
    assert DeviceList(devices) == device_list(devices)
    assert DeviceList(devices) != device_list(devices[::-1])
    assert device_list.cache_info().maxsize == 2048


@pytest.mark.feature("MS-18")
def test_device_list_is_a_sequence() -> None:
    found = device_list(tuple(mocks(3)))
    assert (len(found), list(found), found[1]) == (3, mocks(3), mocks(3)[1])
    assert found.is_fully_addressable
    assert found.process_indices == {0}


@pytest.mark.feature("MS-12")
def test_positional_sharding_cuts_like_its_grid() -> None:
    sharding = PositionalSharding(mocks(8)).reshape(4, 2)
    first, *_, last = sharding.indices((8, 2))
    assert sharding.shape == (4, 2)
    assert sharding.shard_shape((8, 2)) == (2, 1)
    assert first == (slice(0, 2), slice(0, 1))
    assert last == (slice(6, 8), slice(1, 2))


@pytest.mark.feature("MS-12")
@pytest.mark.parametrize(
    ("axis", "keepdims", "shape", "group"),
    [
        (0, True, (1, 2), {0, 2, 4, 6}),
        (1, True, (4, 1), {0, 1}),
        (-1, False, (4,), {0, 1}),
        (None, True, (1, 1), set(range(8))),
        (None, False, (), set(range(8))),
    ],
)
def test_positional_sharding_replicates(
    axis: int | None, keepdims: bool, shape: tuple[int, ...], group: set[int]
) -> None:
    sharding = PositionalSharding(mocks(8)).reshape(4, 2).replicate(axis, keepdims)
    first = sharding.indices((8,) * len(shape))[0]
    with_first = {
        d.id for d, i in sharding.devices_indices_map((8,) * len(shape)).items() if i == first
    }
    assert (sharding.shape, with_first) == (shape, group)


@pytest.mark.feature("MS-12")
def test_positional_sharding_transposes() -> None:
    sharding = PositionalSharding(mocks(6)).reshape(2, 3)
    assert sharding.T.shape == (3, 2)
    assert sharding.T.indices((3, 2))[1] == (slice(1, 2), slice(0, 1))


@pytest.mark.feature("MS-12")
def test_positional_sharding_refuses_another_rank() -> None:
    sharding = PositionalSharding(mocks(4)).reshape(2, 2)
    with pytest.raises(ValueError, match=r"(?s)differ in rank.*\(2, 2\).*rank 1"):
        sharding.shard_shape((4,))


@pytest.mark.feature("MS-12")
def test_positional_shardings_compare_by_value() -> None:
    grid = PositionalSharding(mocks(4)).reshape(2, 2)
    assert grid == PositionalSharding(np.array(mocks(4), object).reshape(2, 2))
    assert grid != grid.T
    assert hash(grid) == hash(grid.T.T)


@pytest.mark.feature("MS-12")
def test_results_of_positional_arguments_are_positional(devices: np.ndarray) -> None:
    sharding = PositionalSharding(devices).reshape(4, 2).replicate(0)
    x = minijax.device_put(np.arange(8.0).reshape(4, 2), sharding)
    y = minijax.jit(lambda x: x * 2)(x)
    assert y.sharding == sharding
    assert np.array_equal(y, np.arange(8.0).reshape(4, 2) * 2)


@pytest.mark.feature("MS-12")
def test_programs_run_on_any_order_of_devices(devices: np.ndarray) -> None:
    sharding = PositionalSharding(devices).reshape(2, 4).T
    x = minijax.device_put(np.arange(16.0).reshape(8, 2), sharding)
    assert np.array_equal(minijax.jit(lambda x: x.sum(0))(x), [56, 64])


@pytest.mark.feature("MS-12")
def test_pmap_sharding_drops_the_dimension_it_takes_apart() -> None:
    sharding = PmapSharding.default((4, 3, 2), sharded_dim=1, devices=mocks(3))
    assert sharding.shard_shape((4, 3, 2)) == (4, 2)
    assert sharding.indices((4, 3, 2))[2] == (slice(None), 2, slice(None))


@pytest.mark.feature("MS-12")
def test_pmap_sharding_takes_the_first_devices(devices: np.ndarray) -> None:
    assert PmapSharding.default((3, 2)).device_assignment == tuple(devices[:3])
    assert PmapSharding.default((3, 2), sharded_dim=None).is_fully_replicated


@pytest.mark.feature("MS-12")
def test_pmap_sharding_refuses_another_size() -> None:
    sharding = PmapSharding.default((3, 2), devices=mocks(3))
    with pytest.raises(ValueError, match=r"dimension 0 of size 6 .*Unstacked\(size=3\)"):
        sharding.shard_shape((6, 2))
    with pytest.raises(ValueError, match="2 devices, pieces in a box of shape"):
        PmapSharding.default((3, 2), devices=mocks(2))


@pytest.mark.feature("MS-12")
def test_pieces_without_a_dimension_are_no_others() -> None:
    devices = mocks(4)
    named = NamedSharding(Mesh(devices, "x"), P("x"))
    sliced = PmapSharding.default((4, 2), devices=devices)
    assert not sliced.is_equivalent_to(named, 2)
    assert not named.is_equivalent_to(sliced, 2)


@pytest.mark.feature("MS-12")
def test_equivalence_crosses_kinds(mesh: Mesh) -> None:
    named = NamedSharding(mesh, P("x", "y"))
    positional = PositionalSharding(mesh.devices)
    native = GSPMDSharding(mesh.flat_devices, named._to_xla_hlo_sharding(2))
    for one, other in itertools.permutations((named, positional, native), 2):
        assert one.is_equivalent_to(other, 2)
        assert not one.is_equivalent_to(PositionalSharding(mesh.devices.T).T.replicate(0), 2)


@pytest.mark.feature("MS-12")
def test_replicated_kinds_hold_everything_everywhere(mesh: Mesh) -> None:
    for sharding in (
        NamedSharding(mesh, P()),
        PositionalSharding(mesh.devices).replicate(),
        GSPMDSharding.get_replicated(mesh.flat_devices),
    ):
        assert sharding.is_fully_replicated
        assert sharding.indices((4, 2)) == [(slice(None),) * 2] * 8


@pytest.mark.feature("MS-12")
def test_marks_are_no_shardings(mesh: Mesh) -> None:
    assert is_auto(AUTO(mesh))
    assert AUTO(mesh) == AUTO(mesh.update())
    assert is_unspecified(UNSPECIFIED)
    assert not is_auto(UNSPECIFIED)
    assert pickle.loads(pickle.dumps(UNSPECIFIED)) is UNSPECIFIED


@pytest.mark.feature("MS-12")
def test_shardings_survive_pickling(mesh: Mesh) -> None:
    for sharding in (
        NamedSharding(mesh, P("x"), memory_kind="pinned_host"),
        SingleDeviceSharding(mesh.flat_devices[1]),
        PositionalSharding(mesh.devices).replicate(1),
        GSPMDSharding(mesh.flat_devices, NamedSharding(mesh, P("x"))._to_xla_hlo_sharding(1)),
        PmapSharding.default((8, 2), devices=mesh.flat_devices),
    ):
        assert pickle.loads(pickle.dumps(sharding)) == sharding


@pytest.mark.feature("MS-12")
@pytest.mark.parametrize("run", [minijax.jit, lambda f: f])
@pytest.mark.parametrize(
    "make",
    [
        lambda d: PositionalSharding(d).reshape(4, 2).replicate(0),
        lambda d: GSPMDSharding(d, PositionalSharding(d).reshape(2, 4).T.to_hlo(2)),
        lambda d: SingleDeviceSharding(d[0]),
    ],
)
def test_constraints_take_every_kind(devices: np.ndarray, run: Any, make: Any) -> None:
    sharding = make(devices)
    x = np.arange(64.0).reshape(8, 8)
    found = run(lambda x: minijax.lax.with_sharding_constraint(x, sharding))(x)
    assert found.sharding.is_equivalent_to(sharding, 2)
    assert np.array_equal(found, x)


@pytest.mark.feature("MS-12")
def test_batches_of_constrained_values_are_whole(devices: np.ndarray) -> None:
    sharding = PositionalSharding(devices)
    constrain = minijax.vmap(
        lambda x: minijax.lax.with_sharding_constraint(x, sharding), in_axes=1, out_axes=1
    )
    found = minijax.jit(constrain)(np.arange(24.0).reshape(8, 3))
    assert found.sharding.shard_shape((8, 3)) == (1, 3)
