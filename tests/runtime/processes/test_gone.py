"""Processes of which one goes: the others are told, keep what they have, and end in good order."""

import signal

import numpy as np
import pytest

from tests.runtime.processes import launch
from tests.runtime.processes.launch import Ended

pytestmark = [pytest.mark.slow, pytest.mark.turns(3), pytest.mark.feature("RB-07")]

VALUES = np.arange(24.0).reshape(3, 8)[:, :4]


def survivors(case: str, number: int) -> tuple[Ended, dict[int, Ended]]:
    """How the process that goes has ended, and the others, each of which was told and lived on."""
    ended = dict(enumerate(launch.run("gone", case, str(number), processes=3)))
    gone = ended.pop(number)
    for process, own in ended.items():
        assert own.status == 0, own.text
        assert own.facts["told"] - gone.facts["gone"] < 10
        assert own.facts["again"].partition("\n")[0] == own.facts["error"].partition("\n")[0]
        assert own.facts["own"] == 64.0**3
        assert own.facts["saved"] == VALUES[process].tolist()
    return gone, ended


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize(
    ("case", "status", "text"),
    [
        ("killed", -9, "is gone: its connection was closed."),
        ("exited", 3, "is gone: its connection was closed."),
        ("failed", 1, "has ended with ValueError: this process has failed."),
    ],
)
def test_survivors_are_told_who_has_gone(case: str, status: int, text: str, number: int) -> None:
    gone, others = survivors(case, number)
    assert gone.status == status
    for own in others.values():
        error = own.facts["error"]
        assert error.startswith(f"RuntimeError: distributed: process {number} {text}\n")
        for process in range(3):
            assert f"process {process}: last began " in error
        assert "gone.py:" in error


@pytest.mark.parametrize("number", [0, 1])
def test_stopped_process_is_named_and_told_when_it_goes_on(number: int) -> None:
    gone, others = survivors("stopped", number)
    for own in others.values():
        assert f"distributed: process {number} has been stopped.\n" in own.facts["error"]
    assert gone.status == 1
    assert f"RuntimeError: distributed: process {number} has been stopped." in gone.text


def test_process_that_aborts_says_its_last_words() -> None:
    gone, others = survivors("aborted", 1)
    assert gone.status == -signal.SIGABRT
    assert "the last words\n" in gone.text
    for own in others.values():
        assert "distributed: process 1 is gone: its connection was closed.\n" in own.facts["error"]


def test_process_that_leaves_early_is_named() -> None:
    gone, others = survivors("left", 1)
    assert gone.status == 3
    for own in others.values():
        assert "do not run the same programs in the same order" in own.facts["error"]
        assert "process 1: its end\n" in own.facts["error"]


def test_who_waits_for_a_process_that_lives_is_warned_and_can_be_interrupted() -> None:
    first, second = launch.run("gone", "away", "1")
    assert (first.status, second.status) == (0, 1)
    assert first.facts["error"] == "KeyboardInterrupt: "
    assert 3 < first.facts["told"] - second.facts["gone"] < 6
    assert "Waiting for other processes for 2 s:\nprocess 0: last began step" in first.text
    assert "process 0: its end\n" in second.text
