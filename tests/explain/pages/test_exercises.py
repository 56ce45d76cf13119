"""Exercises say what is asked, help step by step, and run their program once."""

import numpy as np
import pytest

from minijax import numpy as jnp
from minijax.testing import exercise

pytestmark = pytest.mark.feature("PG-05")


def _squares(runs: list[str] | None = None):
    @exercise("Square each number.", "The second one is 2 * 2.")
    def squares():
        """What are the squares of 1 and 2?"""
        if runs is not None:
            runs.append("ran")
        return jnp.array([1.0, 2.0]) ** 2

    return squares


def test_dots_show_the_question_and_run_nothing(capsys) -> None:
    runs: list[str] = []
    _squares(runs)(...)

    expected = "What are the squares of 1 and 2?\nPut your prediction in the place of the dots.\n"
    assert capsys.readouterr().out == expected
    assert runs == []


def test_wrong_predictions_get_the_hints_then_the_answer(capsys) -> None:
    runs: list[str] = []
    squares = _squares(runs)
    for prediction in ([1, 2], [1.0], "two"):
        squares(prediction)

    assert capsys.readouterr().out.splitlines() == [
        "Not [1, 2]. Hint 1 of 2: Square each number.",
        "Not [1.0]. Hint 2 of 2: The second one is 2 * 2.",
        "Not two. The answer is [1. 4.].",
    ]
    assert (squares.tries, squares.solved, runs) == (3, False, ["ran"])


@pytest.mark.parametrize(
    ("answer", "prediction"),
    [
        (2, 2.0),
        (True, True),
        ((2, 3), [2, 3]),
        (np.float32(0.1), 0.1),
        ("f32[2, 3]", "f32[2,3]"),
        ((), ()),
        (np.array([1, np.inf]), [1, float("inf")]),
        (float("nan"), np.nan),
        (["mul", "sin"], ("mul", "sin")),
        (True, "True"),
        (None, None),
    ],
)
def test_predictions_that_say_the_same_are_right(answer, prediction, capsys) -> None:
    def question():
        """What?"""
        return answer

    asked = exercise()(question)
    asked(prediction)

    assert asked.solved
    assert capsys.readouterr().out == f"Right: {answer}.\n"


@pytest.mark.parametrize(
    ("answer", "prediction"),
    [
        (2, 3),
        ("a", "b"),
        ((2,), 2),
        (2, "2 or 3"),
        ((1, 2), [1, "a"]),
        ((1, 2), [[1], [2, 3]]),
        (["mul", "sin"], ["sin", "mul"]),
        (1.0, np.nan),
    ],
)
def test_predictions_that_say_something_else_are_wrong(answer, prediction) -> None:
    def question():
        """What?"""
        return answer

    asked = exercise()(question)
    asked(prediction)

    assert not asked.solved


def test_a_program_that_fails_says_so_itself() -> None:
    @exercise()
    def fails():
        """What?"""
        raise KeyError("its own error")

    with pytest.raises(KeyError, match="its own error"):
        fails(1)


def test_exercise_without_brackets_is_refused() -> None:
    with pytest.raises(TypeError, match=r"testing\.exercise: a hint is not a text") as caught:

        @exercise
        def question():
            """What?"""

    assert "@exercise('a hint', 'another one')" in str(caught.value)


def test_programs_that_cannot_be_asked_are_refused() -> None:
    with pytest.raises(ValueError, match="has parameters, or no docstring") as caught:
        exercise()(lambda x: x)

    assert "<lambda>(x)" in str(caught.value)
