"""Answers to calls of the Python array API standard 2024.12 are those of NumPy: dtypes, values."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

import minijax
import minijax.numpy as jnp
from tests.numpy import array_api_cases

pytestmark = pytest.mark.feature("EC-09")

CALLS = defaultdict(list)
for calls in array_api_cases.GROUPS.values():
    for call in calls():
        CALLS[call[0].partition(" ")[0]].append(call)

OTHERWISE = set(Path(__file__).with_name("array_api_otherwise.txt").read_text().splitlines()[1:])


@pytest.mark.parametrize("name", CALLS)
def test_answers_are_those_of_the_standard(name: str) -> None:
    with minijax.enable_x64():
        problems = {
            call[0]: array_api_cases.problem(call, jnp, jnp.asarray) for call in CALLS[name]
        }
    assert {k: v for k, v in problems.items() if v and k not in OTHERWISE} == {}


def test_what_is_answered_otherwise_is_a_call_that_is_made() -> None:
    labels = {call[0] for calls in CALLS.values() for call in calls}
    assert labels >= OTHERWISE
    # Nearly all of them are functions of complex numbers where a part is a zero, infinite or NaN.
    assert len([label for label in OTHERWISE if "special complex" not in label]) < 60
    assert len(labels) > 7000


def test_a_wrong_answer_is_noticed() -> None:
    calls = {call[0]: call for call in CALLS["add"] + CALLS["abs"]}

    class Wrong:
        add = jnp.subtract
        abs = staticmethod(lambda x: x.astype("float32"))

    problem = array_api_cases.problem
    assert "not" in problem(calls["add int32 int32"], Wrong, jnp.asarray)
    assert problem(calls["abs int32"], Wrong, jnp.asarray) == "float32, not int32"
