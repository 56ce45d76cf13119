"""Processes that do not do the same are told so, all of them, with everyone's line."""

import pytest

from tests.runtime.processes import launch

pytestmark = [pytest.mark.slow, pytest.mark.turns(3), pytest.mark.feature("RB-07")]

DIFFERENT = "RuntimeError: distributed: the processes do not run the same programs in the same"


def told(case: str, processes: int = 2) -> list[str]:
    """The error in each process, all of which live on: they compute, and read what they have."""
    ended = launch.run("different", case, processes=processes)
    for own in ended:
        assert own.status == 0, own.text
        assert own.facts["own"] == 6.0
        assert len(own.facts["piece"]) == 24 // (2 * processes)
        assert own.facts["seconds"] < 10
        assert own.facts["again"].startswith(own.facts["error"].partition("\n")[0])
    return [own.facts["error"] for own in ended]


@pytest.mark.parametrize(
    ("case", "first", "second"),
    [
        ("other_collective", "psum_invariant[axes=('x',)] a in (b,)", "pmax[axes=('x',)"),
        ("other_constant", "b:f32[24] = mul a 2.0:f32[]", "b:f32[24] = mul a 3.0:f32[]"),
        ("other_shape", "total(f32[24]), different.py:", "total(f32[48]), different.py:"),
        ("other_order_later", "total(f32[24]), different.py:", "largest(f32[24]), different.py:"),
        ("other_map", "c:f32[] = psum[axes=('x',)", "c:f32[] = pmax[axes=('x',)"),
        ("other_value_placed", "device_put, different.py:", "total(f32[24]), different.py:"),
        ("barrier_left_out", "multihost_utils.assert_equal, different.py:", "total(f32[24]), "),
    ],
)
def test_all_processes_are_told_what_each_does(case: str, first: str, second: str) -> None:
    for text in told(case):
        assert text.startswith(DIFFERENT)
        of_first, of_second = text.split("process 0: ")[1].split("process 1: ")
        assert first in of_first, text
        assert second in of_second, text


def test_one_of_four_that_swaps_programs_is_told_to_all() -> None:
    for text in told("swapped", processes=4):
        assert text.startswith(DIFFERENT)
        # One that is late is said to be elsewhere.
        assert 1 <= text.count(": total(f32[24]), different.py:") <= 3
        assert text.count("\n            process ") == 3
        assert "process 1: <lambda>(f32[24]), different.py:" in text


def test_program_that_one_process_leaves_out_is_named() -> None:
    first, second = launch.run("different", "left_out")
    assert [first.status, second.status] == [0, 0]
    assert [first.facts["error"], second.facts["error"]] == ["not refused"] * 2
    assert first.facts["again"].startswith(DIFFERENT)
    for text in (first.facts["again"], second.text):
        assert "process 0: total(f32[24]), different.py:" in text
        assert "process 1: its end\n" in text


def test_processes_that_wait_for_each_other_are_told() -> None:
    for text in told("waiting_crosswise", processes=3):
        assert text.startswith("RuntimeError: distributed: every process waits for others.")
        for process, group in enumerate(["(0, 1)", "(1, 2)", "(0, 2)"]):
            assert f"process {process}: total(f32[4]), different.py:" in text
            assert f"which processes {group} do together" in text


def test_failing_callback_of_one_process_fails_in_all() -> None:
    first, second = launch.run("different", "failing_callback")
    assert second.facts["error"] == "ValueError: only here"
    assert "a Python function that the program calls has failed" in first.facts["error"]
    assert "process 1: ValueError('only here')" in first.facts["error"]
    # Whoever catches the exceptions may go on.
    assert [first.facts["again"], second.facts["again"]] == ["not refused"] * 2
    assert [first.status, second.status] == [0, 0]
