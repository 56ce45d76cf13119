"""`make_mesh` and the layouts of devices under it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minijax
from minijax.experimental import mesh_utils
from minijax.sharding import AxisType

pytestmark = pytest.mark.feature("MS-01")


class Device:
    """A device of an accelerator, with a slice and a process."""

    platform = "gpu"

    def __init__(self, number: int) -> None:
        self.id = number
        self.process_index = number // 2
        self.slice_index = number // 4


@pytest.fixture
def devices() -> Iterator[list[Any]]:
    with minijax.cpu_devices(8):
        yield minijax.devices()


def ids(box: np.ndarray) -> Any:
    """The numbers of devices, in their box."""
    return np.vectorize(lambda device: device.id)(box).tolist()


def test_make_mesh_has_explicit_axes_in_order(devices: list[Any]) -> None:
    mesh = minijax.make_mesh((4, 2), ("x", "y"))
    assert mesh.device_ids.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert mesh.are_all_axes_explicit


def test_make_mesh_takes_the_first_devices(devices: list[Any]) -> None:
    mesh = minijax.make_mesh((2,), "x", axis_types=(AxisType.Auto,), devices=devices[::-1])
    assert mesh.device_ids.tolist() == [7, 6]
    assert mesh.are_all_axes_auto


def test_make_mesh_without_axes_is_one_device(devices: list[Any]) -> None:
    assert minijax.make_mesh((), ()).is_scalar


@pytest.mark.parametrize(
    ("shape", "error", "text"),
    [
        ((4, 3), ValueError, "8 devices .*(4, 3)"),
        ((4, "a"), ValueError, "must be integers"),
        (8, TypeError, "needs a sequence of sizes"),
        ((8,), ValueError, "one name for each dimension"),
    ],
)
def test_make_mesh_refuses(
    devices: list[Any], shape: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        minijax.make_mesh(shape, ("x", "y"))


def test_make_mesh_refuses_several_slices() -> None:
    with pytest.raises(ValueError, match=r"(?s)several slices.*create_hybrid_device_mesh"):
        minijax.make_mesh((8,), "x", devices=[Device(i) for i in range(8)])


def test_device_mesh_uses_all_devices(devices: list[Any]) -> None:
    assert mesh_utils.create_device_mesh((2, 4)).shape == (2, 4)
    with pytest.raises(ValueError, match=r"(?s)8 devices, mesh_shape \(2, 2\)"):
        mesh_utils.create_device_mesh((2, 2))


def test_accelerators_go_by_number() -> None:
    shuffled = [Device(i) for i in (3, 1, 2, 0)]
    assert ids(mesh_utils.create_device_mesh((2, 2), shuffled)) == [[0, 1], [2, 3]]


def test_hybrid_mesh_is_a_box_of_boxes() -> None:
    devices = [Device(i) for i in range(8)]
    box = mesh_utils.create_hybrid_device_mesh((4, 1), (1, 2), devices)
    assert ids(box) == [[0, 4], [1, 5], [2, 6], [3, 7]]


def test_hybrid_mesh_keeps_granules_in_order_on_demand() -> None:
    devices = [Device(i) for i in reversed(range(8))]
    box = mesh_utils.create_hybrid_device_mesh(
        (4,), (2,), devices, should_sort_granules_by_key=False
    )
    assert ids(box) == [4, 5, 6, 7, 0, 1, 2, 3]


def test_hybrid_mesh_of_processes() -> None:
    devices = [Device(i) for i in range(8)]
    box = mesh_utils.create_hybrid_device_mesh((1, 2), (4, 1), devices, process_is_granule=True)
    assert ids(box) == [[0, 1], [2, 3], [4, 5], [6, 7]]


@pytest.mark.parametrize(
    ("inner", "outer", "text"),
    [
        ((4,), (3,), r"2 granules, dcn_mesh_shape \(3,\)"),
        ((2,), (2,), r"4 devices, mesh_shape \(2,\)"),
    ],
)
def test_hybrid_mesh_refuses(inner: Any, outer: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        mesh_utils.create_hybrid_device_mesh(inner, outer, [Device(i) for i in range(8)])


def test_hybrid_mesh_needs_slices(devices: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"(?s)no slice_index.*process_is_granule=True"):
        mesh_utils.create_hybrid_device_mesh((8,), (1,))
