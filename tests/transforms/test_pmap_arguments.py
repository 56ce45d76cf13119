"""What `pmap` refuses: axes, sizes, static arguments, devices; also among several processes."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax.core import config
from minijax.core.aval import ShapedArray
from minijax.lowering import eager, replicas
from minijax.lowering.device_axes import ReplicaAxes
from minijax.runtime.array import ExtendedArray
from minijax.sharding import PmapSharding
from minijax.transforms.pmap import programs
from minijax.transforms.pmap.mapped import in_axes_of
from minijax.transforms.pmap.programs import MapInfo
from tests.sharding.mock_devices import Device, Process

NUMBERS = np.arange(4, dtype=np.float32)
ROWS = np.arange(16, dtype=np.float32).reshape(4, 4)


@pytest.fixture(autouse=True)
def devices() -> Iterator[list[Any]]:
    with minijax.cpu_devices(8):
        yield minijax.devices()


@pytest.fixture(params=["replicas", "shard_map", "eager"])
def pipeline(request: pytest.FixtureRequest) -> Iterator[str]:
    """All ways to run a map, of which all refuse the same."""
    with (
        config.pmap_via_shard_map(request.param == "shard_map"),
        minijax.disable_jit(request.param == "eager"),
    ):
        yield request.param


def identity(x: Any, *_: Any, **__: Any) -> Any:
    return x


@pytest.mark.feature("PM-02")
@pytest.mark.parametrize("in_axes", ["a", (0, "b"), {"x": 1.5}, True])
def test_axes_are_integers(in_axes: Any) -> None:
    with pytest.raises(TypeError, match="pmap: in_axes must hold integers and None only"):
        minijax.pmap(identity, in_axes=in_axes)
    with pytest.raises(TypeError, match="pmap: out_axes must hold integers and None only"):
        minijax.pmap(identity, out_axes=in_axes)


def test_only_functions_are_mapped() -> None:
    with pytest.raises(TypeError, match="pmap: expected a function"):
        minijax.pmap(3)  # type: ignore[arg-type]


@pytest.mark.feature("PM-02")
def test_some_argument_must_be_mapped(pipeline: str) -> None:
    for args, in_axes in (((), 0), ((NUMBERS,), None), (((),), 0)):
        with pytest.raises(ValueError, match="pmap: no argument is mapped"):
            minijax.pmap(identity, in_axes=in_axes)(*args)


@pytest.mark.feature("PM-02")
def test_sizes_must_agree(pipeline: str) -> None:
    def function(x: Any, y: Any) -> Any:
        return x

    with pytest.raises(ValueError, match=r"sizes .* disagree") as error:
        minijax.pmap(function, in_axes=(0, {"b": 1, "c": None}))(
            NUMBERS, {"b": ROWS[:, :2], "c": 1}
        )
    assert "x: f32[4], dimension 0 has size 4" in str(error.value)
    assert "y['b']: f32[4,2], dimension 1 has size 2" in str(error.value)
    assert "y['c']" not in str(error.value)


@pytest.mark.feature("PM-02")
@pytest.mark.parametrize("axis", [1, -2])
def test_dimensions_must_exist(pipeline: str, axis: int) -> None:
    with pytest.raises(ValueError, match=rf"axis {axis} of the argument x\['a'\] does not exist"):
        minijax.pmap(identity, in_axes=({"a": axis},))({"a": NUMBERS})


@pytest.mark.feature("PM-02")
def test_results_must_have_room_for_the_axis(pipeline: str) -> None:
    with pytest.raises(ValueError, match=r"out_axes 1 is out of range for result\['a'\]"):
        minijax.pmap(lambda x: {"a": x}, out_axes=1)(NUMBERS)
    with pytest.raises(ValueError, match="pmap out_axes"):
        minijax.pmap(lambda x: {"a": x}, out_axes=(0, 0))(NUMBERS)


@pytest.mark.feature("PM-02")
def test_axes_must_fit_the_arguments(pipeline: str) -> None:
    with pytest.raises(ValueError, match="pmap in_axes"):
        minijax.pmap(identity, in_axes=(0,))(NUMBERS, NUMBERS)


@pytest.mark.feature("PM-02")
def test_arguments_must_be_arrays(pipeline: str) -> None:
    with pytest.raises(TypeError, match="the argument x is neither an array nor a number"):
        minijax.pmap(identity)("text")
    struct = minijax.ShapeDtypeStruct((4,), np.float32)
    with (
        minijax.disable_jit(False),
        pytest.raises(TypeError, match="describes an array and is none"),
    ):
        minijax.pmap(identity)(struct)


@pytest.mark.feature("PM-16")
def test_static_arguments_are_checked(pipeline: str) -> None:
    f = minijax.pmap(lambda x, n: x, static_broadcasted_argnums=1)
    with pytest.raises(
        ValueError, match=r"static_broadcasted_argnums=\(1,\).*\n.*got +1 positional"
    ):
        f(NUMBERS)
    with pytest.raises(ValueError, match="the static argument 1 is not hashable"):
        f(NUMBERS, [2])
    with pytest.raises(ValueError, match=r"in_axes must have one entry .* static ones too"):
        minijax.pmap(lambda n, x: x, static_broadcasted_argnums=0, in_axes=(0,))(1, NUMBERS)


@pytest.mark.feature("PM-16")
def test_static_arguments_are_not_donated() -> None:
    with pytest.raises(ValueError, match=r"cannot be static and donated: \[1\]"):
        minijax.pmap(identity, static_broadcasted_argnums=1, donate_argnums=(0, 1))


@pytest.mark.feature("PM-05")
def test_a_given_size_must_be_that_of_the_arguments() -> None:
    assert minijax.pmap(identity, axis_size=4)(NUMBERS).shape == (4,)
    with pytest.raises(ValueError, match="axis_size is 8, and the arguments have 4 slices"):
        minijax.pmap(identity, axis_size=8)(NUMBERS)


@pytest.mark.feature("PM-06")
def test_there_must_be_devices(pipeline: str) -> None:
    with pytest.raises(ValueError, match=r"(?s)needs more devices.*8 device\(s\).*16 replicas"):
        minijax.pmap(identity)(np.ones(16))


@pytest.mark.feature("PM-06")
def test_inner_maps_need_devices() -> None:
    with pytest.raises(ValueError, match=r"(?s)8 device\(s\).*16 replicas.*4 slices of 4 each"):
        minijax.pmap(minijax.pmap(identity))(ROWS)


@pytest.mark.feature("PM-07")
def test_devices_must_be_as_many_as_slices(devices: list[Any], pipeline: str) -> None:
    with pytest.raises(ValueError, match=r"(?s)size 4, 2 local device\(s\): cpu:0, cpu:1"):
        minijax.pmap(identity, devices=devices[:2])(NUMBERS)


@pytest.mark.feature("PM-07")
def test_devices_must_be_enough_for_inner_maps(devices: list[Any]) -> None:
    f = minijax.pmap(minijax.pmap(identity), devices=devices[:2])
    match = r"(?s)needs 8 local devices.*outer axis of size 2, 4 devices for each slice; 2 local"
    with pytest.raises(ValueError, match=match):
        f(ROWS[:2])


@pytest.mark.feature("PM-07")
def test_devices_are_taken_in_their_order(devices: list[Any], pipeline: str) -> None:
    chosen = devices[5:1:-1]
    y = minijax.pmap(lambda x: lax.psum(x, "i") + x, "i", devices=chosen)(NUMBERS)
    assert y.tolist() == [6, 7, 8, 9]
    assert [s.device for s in y.addressable_shards] == chosen


@pytest.mark.feature("PM-07")
def test_there_are_devices_in_a_list_of_devices() -> None:
    with pytest.raises(ValueError, match="devices must not be empty"):
        minijax.pmap(identity, devices=[])


@pytest.mark.feature("PM-08")
def test_inner_maps_name_no_devices(devices: list[Any]) -> None:
    f = minijax.pmap(minijax.pmap(identity, devices=devices[:4]))
    with pytest.raises(ValueError, match="names devices and is called inside another program"):
        f(ROWS[:2])
    with (
        minijax.disable_jit(),
        pytest.raises(ValueError, match="names devices and is called inside another program"),
    ):
        f(ROWS[:2])


@pytest.mark.feature("PM-10")
def test_the_first_devices_are_the_default(devices: list[Any], pipeline: str) -> None:
    assert minijax.pmap(identity)(NUMBERS).sharding.device_set == set(devices[:4])


@pytest.mark.feature("PM-18")
def test_inner_platforms_must_match() -> None:
    with pytest.raises(ValueError, match="for another platform than the program"):
        programs.check_platform("f", SimpleNamespace(platform="gpu"), "cpu")
    f = minijax.pmap(minijax.pmap(lambda x: x + 1, backend="cpu"), backend="cpu")
    assert f(ROWS[:2]).tolist() == (ROWS[:2] + 1).tolist()
    with pytest.raises(RuntimeError, match="unknown platform 'nope'"):
        minijax.pmap(identity, backend="nope")(NUMBERS)


@pytest.mark.feature("PM-03", "PM-04")
def test_replicas_multiply_over_nested_maps() -> None:
    inner = minijax.pmap(identity)

    def function(x: Any) -> Any:
        return minijax.jit(inner)(x), inner(x[:2]), lax.cond(x[0] > 0, inner, inner, x)

    closed = minijax.make_jaxpr(minijax.pmap(function))(ROWS[:2])
    assert replicas.count(closed) == 8
    assert replicas.count_in(closed.jaxpr.eqns[0].params["jaxpr"].jaxpr) == 4
    assert replicas.count(minijax.make_jaxpr(identity)(1.0)) == 1


@pytest.mark.feature("PM-03")
def test_records_of_maps_are_frozen() -> None:
    info = _info(4, 4)
    assert hash(info) == hash(_info(4, 4))
    with pytest.raises(AttributeError):
        info.axis_size = 3  # type: ignore[misc]


@pytest.mark.feature("PM-19")
def test_groups_follow_any_subset_of_axes() -> None:
    found = ReplicaAxes(("i", "j"), (2, 2), 8)
    assert found.groups(["i"]) == ((0, 4), (1, 5), (2, 6), (3, 7))
    assert found.groups(["j"]) == ((0, 2), (1, 3), (4, 6), (5, 7))
    assert found.groups(["j", "i"]) == ((0, 4, 2, 6), (1, 5, 3, 7))
    assert ReplicaAxes(("i",), (2,), 8).extended("j", 2).groups(["j"]) == found.groups(["j"])


def _info(axis_size: int, global_axis_size: int, **facts: Any) -> MapInfo:
    defaults = {"name": "f", "backend": None, "axis_name": "i", "devices": None}
    nothing = {"in_axes": (), "out_axes": (), "donated_invars": ()}
    sizes = {"axis_size": axis_size, "global_axis_size": global_axis_size}
    return MapInfo(**{**defaults, **sizes, **nothing, **facts})


class Processes:
    """The client of process 1 of two, each with four devices, as far as `pmap` asks."""

    platform = "cpu"

    def __init__(self) -> None:
        self._devices = [Device(8 * (i % 2) + i // 2, i % 2) for i in range(8)]

    def devices(self) -> list[Device]:
        return self._devices

    def process_index(self) -> int:
        return 1

    def device_count(self) -> int:
        return 8

    def local_device_count(self) -> int:
        return 4


@pytest.mark.feature("PM-10")
def test_devices_of_processes_are_contiguous() -> None:
    found = programs.devices_for(_info(4, 8, backend=Processes()), 1, False)
    assert [d.process_index for d in found] == [0] * 4 + [1] * 4


@pytest.mark.feature("PM-09")
def test_processes_map_over_all_their_devices() -> None:
    info = _info(3, 6, backend=Processes())
    with pytest.raises(ValueError, match=r"(?s)among several processes.*size 3, 4 local devices"):
        programs.devices_for(info, 1, False)
    info = _info(4, 8, backend=Processes())
    with pytest.raises(ValueError, match=r"(?s)must use all local devices.*size 4 times 3"):
        programs.devices_for(info, 3, True)


@pytest.mark.feature("PM-09")
def test_devices_of_processes_leave_no_room_for_inner_maps() -> None:
    devices = tuple(Processes().devices())
    with pytest.raises(ValueError, match="has a pmap inside and names devices of several"):
        programs.devices_for(_info(4, 8, devices=devices), 1, True)
    assert programs.devices_for(_info(4, 8, devices=devices), 1, False) == devices


@pytest.mark.feature("PM-07", "PM-09")
def test_devices_of_processes_are_as_many_as_replicas() -> None:
    devices = tuple(Processes().devices())
    with pytest.raises(ValueError, match=r"(?s)is not that of the replicas.*8 devices, 4 replicas"):
        programs.devices_for(_info(4, 4, devices=devices), 1, False)


@pytest.mark.feature("PM-09")
def test_devices_include_one_of_this_process() -> None:
    others = [d for d in Processes().devices() if d.process_index == 0]
    with pytest.raises(ValueError, match="devices for identity must include one of this process"):
        minijax.pmap(identity, devices=others)


@pytest.mark.feature("PM-05", "PM-09")
def test_sizes_of_processes_add_up() -> None:
    mapping = minijax.pmap(identity, backend=Processes()).pmap_function.mapping
    in_tree = minijax.tree.structure(((0,), {}))
    avals = [ShapedArray((4,), np.float32)]
    found = in_axes_of(mapping, in_tree, None, avals, lambda: ["x"])
    assert (found.size, found.global_size) == (4, 8)
    mapping = mapping._replace(axis_size=6)
    found = in_axes_of(mapping, in_tree, None, avals, lambda: ["x"])
    assert (found.size, found.global_size) == (4, 6)


@pytest.mark.feature("JT-34")
def test_collectives_among_processes_are_listed() -> None:
    f = minijax.pmap(lambda x: lax.psum(lax.pmax(x, "i"), "i") + lax.all_gather(x, "i"), "i")
    jaxpr = minijax.make_jaxpr(minijax.jit(f))(NUMBERS).jaxpr
    programs.check_collectives(jaxpr, "f")
    g = minijax.pmap(lambda x: lax.psum_start(lax.pmax(x, "i"), "i").done(), "i")
    jaxpr = minijax.make_jaxpr(minijax.jit(g))(NUMBERS).jaxpr
    expected = r"(?s)g has collectives.*got +psum_start.*expected +some of all_gather, .*pmax, "
    with pytest.raises(TypeError, match=expected):
        programs.check_collectives(jaxpr, "g")


@pytest.mark.feature("JT-33")
def test_single_operations_need_whole_arrays() -> None:
    devices = np.empty(8, object)
    devices[:] = Processes().devices()
    sharding = PmapSharding(devices, PmapSharding.default((8,)).sharding_spec)
    native = SimpleNamespace(device=None, public=sharding)
    x = ExtendedArray(SimpleNamespace(_sharding=native, aval=ShapedArray((8,), np.float32)), None)
    with pytest.raises(RuntimeError, match=r"(?s)sin: other processes hold pieces.*spmd_mode"):
        eager.check_all_here("sin", [x])
    with config.spmd_mode("allow_all"):
        eager.check_all_here("sin", [x])


def test_processes_have_numbers() -> None:
    assert Process(1).process_index() == Processes().process_index()
