"""Programs over two processes compute what they do in one."""

from typing import Any

import numpy as np
import pytest

from tests.runtime.processes import launch

pytestmark = [pytest.mark.slow, pytest.mark.turns(3, together=True), pytest.mark.feature("NP-09")]

VALUES = np.arange(8, dtype=np.float32)
BLOCKS = VALUES.reshape(4, 2)
SUM = BLOCKS.sum(0)
COLLECTIVES = {
    "psum": [SUM] * 4,
    "pmax": [BLOCKS[-1]] * 4,
    "all_gather": [VALUES] * 4,
    "psum_scatter": np.repeat(SUM, 2)[:, None],
    "all_to_all": [BLOCKS[:, 0], BLOCKS[:, 0], BLOCKS[:, 1], BLOCKS[:, 1]],
    "ppermute": np.roll(BLOCKS, 1, axis=0),
    "axis_index": BLOCKS + 10 * np.arange(4)[:, None],
    "groups": [BLOCKS[[i, (i + 2) % 4]].sum(0) for i in range(4)],
}


@pytest.fixture(scope="module")
def found() -> list[dict[str, Any]]:
    return launch.facts_of("programs")


def of_all(found: list[dict[str, Any]], name: str) -> Any:
    """The pieces of an array on all devices."""
    return [piece for own in found for piece in own[name]]


def test_sum_is_that_of_all_processes(found: list[dict[str, Any]]) -> None:
    assert [own["sum"] for own in found] == [28, 28]


def test_host_operand_is_the_same_everywhere(found: list[dict[str, Any]]) -> None:
    np.testing.assert_array_equal(of_all(found, "host operand"), 2 * BLOCKS)


def test_gradient_is_split_as_its_primal(found: list[dict[str, Any]]) -> None:
    np.testing.assert_array_equal(of_all(found, "gradient"), 2 * BLOCKS)


def test_program_compiled_ahead_runs(found: list[dict[str, Any]]) -> None:
    np.testing.assert_array_equal(of_all(found, "compiled"), BLOCKS + 1)


def test_host_values_are_not_split(found: list[dict[str, Any]]) -> None:
    for own in found:
        text = own["host value to be split"]
        assert text.startswith("ValueError: jit: argument x of <lambda>, f32[8] is a value of the")
        assert "make_array_from_process_local_data" in text


def test_explain_tells_collectives_of_processes(found: list[dict[str, Any]]) -> None:
    assert [own["collectives"] for own in found] == [["all_reduce"]] * 2


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives_span_processes(found: list[dict[str, Any]], name: str) -> None:
    actual = [piece for own in found for piece in own["results of collectives"][name]]
    np.testing.assert_array_equal(actual, COLLECTIVES[name])


def test_many_programs_in_flight_do_not_wait_for_ever(found: list[dict[str, Any]]) -> None:
    np.testing.assert_array_equal(of_all(found, "many"), BLOCKS - BLOCKS.mean(0))
    assert [own["sums"] for own in found] == [[0.0], [0.0]]


@pytest.mark.feature("JT-33")
def test_single_operation_needs_permission(found: list[dict[str, Any]]) -> None:
    for own in found:
        assert own["operation"].startswith("RuntimeError: add: other processes hold pieces")
        assert "'spmd_mode', 'allow_all'" in own["operation"]
    np.testing.assert_array_equal(of_all(found, "allowed operation"), 2 * BLOCKS)


def test_callback_of_each_device_runs_in_its_process(found: list[dict[str, Any]]) -> None:
    np.testing.assert_array_equal(of_all(found, "pieces seen"), BLOCKS)


def test_callback_of_whole_values_runs_once(found: list[dict[str, Any]]) -> None:
    assert [own["whole seen"] for own in found] == [[VALUES.tolist()], []]
