"""Awkward calls: each raises an error of JAX's class, with a text that a person has read."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import minijax as jax
from tests.awkward import calls

_REASONS = tomllib.loads(calls.FOLDER.joinpath("deviations.toml").read_text(encoding="utf-8"))
DEVIATIONS = {call: reason for reason, known in _REASONS.items() for call in known}
JAX_CLASSES = json.loads(calls.RECORDED.read_text(encoding="utf-8"))

_WHO = r"(operator \S+ \([\w.]+\)|[\w.<>\[\] ]+): "

# Where something happened is true of one run, and said elsewhere.
_PLACES = re.compile(r"(?m)^  at        .*\n?|(?<=\.py):\d+")


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Exception | None]:
    with jax.cpu_devices(8):
        scope = calls.names("minijax")
        return {call: calls.outcome(call, scope) for _, known in calls.listed() for call in known}


@pytest.mark.feature("NP-01")
def test_calls_raise_errors_of_jax_s_classes(outcomes: dict[str, Exception | None]) -> None:
    assert len(outcomes) >= 200
    assert outcomes.keys() == JAX_CLASSES.keys()
    deviating = {call for call, error in outcomes.items() if not _is_expected(call, error)}
    assert deviating == DEVIATIONS.keys()


def _is_expected(call: str, error: Exception | None) -> bool:
    expected = JAX_CLASSES[call]
    if error is None or expected == calls.NOTHING:
        return error is None and expected == calls.NOTHING
    return expected in [kind.__name__ for kind in type(error).__mro__]


@pytest.mark.feature("NP-01")
def test_texts_are_those_that_were_read(
    outcomes: dict[str, Exception | None], golden: Callable[[str, str], None]
) -> None:
    golden("errors.txt", "\n".join(_written(outcomes)))


def _written(outcomes: dict[str, Exception | None]) -> Iterator[str]:
    for title, known in calls.listed():
        yield f"\n# {title}"
        for call in known:
            yield f"\n>>> {call}"
            yield _shown(call, outcomes[call])


def _shown(call: str, error: Any) -> str:
    theirs = f"in JAX: {JAX_CLASSES[call]}; {DEVIATIONS[call]}\n" if call in DEVIATIONS else ""
    if error is None:
        return f"{theirs}nothing"
    given = getattr(error, "__notes__", ())
    notes = "".join(f"\n{note}" for note in given if "TRACEBACK_FILTERING" not in note)
    return _PLACES.sub("", f"{theirs}{type(error).__name__}: {error}{notes}\n").rstrip()


def test_texts_of_errors_have_the_parts_of_the_template(
    outcomes: dict[str, Exception | None],
) -> None:
    """Every text but those of Python itself: who, what is wrong, and what helps."""
    bare = {
        call: str(error)
        for call, error in outcomes.items()
        if error is not None and not re.match(_WHO, str(error))
    }
    assert {text for text in bare.values() if not _is_of_python(text)} == set()


def _is_of_python(text: str) -> bool:
    """Whether Python found it: a call that does not fit a signature, an unknown attribute."""
    return any(
        words in text
        for words in (
            "positional argument",
            "unexpected keyword argument",
            "has no attribute",
            "unhashable type",
            "object is not callable",
            "must be callable",
            "can only convert an array of size 1",
            "No FFI handler registered",
        )
    )
