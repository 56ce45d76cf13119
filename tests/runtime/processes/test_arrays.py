"""Arrays over two processes: each holds its pieces, and reads no others."""

from typing import Any

import pytest

from tests.runtime.processes import launch

pytestmark = [pytest.mark.slow, pytest.mark.turns(3, together=True), pytest.mark.feature("NP-09")]

OTHERS = "RuntimeError: Array: other processes hold pieces of the array."


@pytest.fixture(scope="module")
def found() -> list[dict[str, Any]]:
    return launch.facts_of("arrays")


def test_devices_are_those_of_all_processes(found: list[dict[str, Any]]) -> None:
    for process, own in enumerate(found):
        assert own["process"] == process
        assert own["devices"] == [[0, 0], [1, 0], [2048, 1], [2049, 1]]
        assert own["local"] == [process] * 2
        assert own["counts"] == [4, 2, 2]


def test_number_of_host_devices_cannot_change(found: list[dict[str, Any]]) -> None:
    text = found[0]["other number of devices"]
    assert text.startswith("RuntimeError: devices: among several processes")
    assert "num_cpu_devices=3, and there are 2" in text


def test_second_initialization_is_refused(found: list[dict[str, Any]]) -> None:
    assert "has been initialized already" in found[0]["initialized twice"]


@pytest.mark.feature("AR-13")
def test_callback_is_asked_for_own_pieces(found: list[dict[str, Any]]) -> None:
    assert [own["asked"] for own in found] == [[0, 2], [4, 6]]
    assert found[1]["from callback"] == [[4, 5], [6, 7]]


@pytest.mark.feature("AR-13")
def test_local_data_is_part_of_the_whole(found: list[dict[str, Any]]) -> None:
    assert found[0]["from local"] == [[8], [[0, 1], [2, 3]]]
    assert found[1]["from local"] == [[8], [[10, 11], [12, 13]]]


@pytest.mark.feature("AR-13")
def test_single_device_arrays_are_pieces(found: list[dict[str, Any]]) -> None:
    assert found[0]["from singles"] == [[0, 1], [1, 2]]
    assert found[1]["from singles"] == [[2048, 2049], [2049, 2050]]
    assert "one array is needed for each device of this process" in found[0]["too few"]


def test_multihost_utils_share_values(found: list[dict[str, Any]]) -> None:
    for process, own in enumerate(found):
        assert own["gathered"] == {"a": [[0, 1], [10, 11]], "b": [0, 1]}
        assert own["tiled"] == own["gathered whole"] == [0, 1, 10, 11]
        assert own["from the first"] == [0, 1]
        assert own["from the second"] == [10, 11]
        assert own["joined"] == [[4], [[10.0 * process], [10.0 * process + 1]]]
        assert own["part"] == [True, [10.0 * process, 10.0 * process + 1]]


def test_multihost_utils_tell_different_values(found: list[dict[str, Any]]) -> None:
    for own in found:
        assert own["equal"] == "not refused"
        assert own["not equal"].startswith(
            "AssertionError: multihost_utils.assert_equal: own values: they have different values."
        )
        assert own["whole stacked"].startswith("ValueError: multihost_utils.process_allgather: ")
        assert "fix       tiled=True" in own["whole stacked"]


def test_array_of_others_is_not_fully_addressable(found: list[dict[str, Any]]) -> None:
    assert [own["addressable"] for own in found] == [[False, False]] * 2
    assert [own["far"] for own in found] == [[True, 1], [False, 0]]
    assert [own["global shards"] for own in found] == [
        [False, False, True, True],
        [True, True, False, False],
    ]


@pytest.mark.parametrize("reading", ["numpy", "device_get"])
def test_elements_of_others_cannot_be_read(found: list[dict[str, Any]], reading: str) -> None:
    for own in found:
        assert own[reading].startswith(OTHERS)
        assert "x.addressable_shards" in own[reading]


def test_array_on_a_device_of_others_cannot_be_read(found: list[dict[str, Any]]) -> None:
    assert found[0]["far numpy"] == "not refused"
    assert found[1]["far numpy"].startswith(OTHERS)


def test_array_of_others_prints_its_type(found: list[dict[str, Any]]) -> None:
    assert found[0]["str"] == found[0]["repr"]
    assert found[0]["repr"].startswith("Array(shape=(8,), dtype=float32, sharding=NamedSharding(")


def test_replicated_array_can_be_read(found: list[dict[str, Any]]) -> None:
    assert [own["replicated"] for own in found] == [list(range(8))] * 2


@pytest.mark.parametrize("value", ["put", "put local array"])
def test_device_put_gives_each_process_its_pieces(found: list[dict[str, Any]], value: str) -> None:
    assert [own[value] for own in found] == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]


def test_device_put_splits_random_keys(found: list[dict[str, Any]]) -> None:
    assert [own["keys"] for own in found] == [[4], [4]]


def test_device_put_moves_pieces_between_processes(found: list[dict[str, Any]]) -> None:
    assert [own["replicate"] for own in found] == [[list(range(8))] * 2] * 2
    assert [own["reverse"] for own in found] == [[[4, 5], [6, 7]], [[0, 1], [2, 3]]]


def test_device_put_refuses_different_values(found: list[dict[str, Any]]) -> None:
    for process, own in enumerate(found):
        assert own["different"].startswith("ValueError: device_put: the processes have different")
        assert f"something else in process(es) {1 - process}" in own["different"]


def test_device_put_refuses_pieces_of_others(found: list[dict[str, Any]]) -> None:
    for own in found:
        assert own["to a device"].startswith("ValueError: device_put: other processes hold")
        assert own["to own mesh"].startswith("NotImplementedError: device_put: other processes")


def test_device_put_takes_own_copy_of_replicated_array(found: list[dict[str, Any]]) -> None:
    assert [own["replicated to a device"] for own in found] == [list(range(8))] * 2
