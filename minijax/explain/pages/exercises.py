"""Exercises of a lesson: read a program, predict what it gives, then have it run.

Input: a function without parameters, whose docstring asks the question.  Output: an `Exercise`,
which is called with a prediction.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax.core.errors import error


class Exercise:
    """A program whose result is to be predicted before it runs; made by `exercise`.

    Calling it with a prediction runs the program, and prints whether the prediction was right: if
    not, the next hint, and after the last hint the answer.  Calling it with `...` prints the
    question.

    Source:     minijax's own.

    Attributes:
        question: what is asked.
        tries: how many predictions were wrong.
        solved: whether one was right.

    Example:
        >>> @minijax.testing.exercise("A sum along axis 0 leaves the other axes.")
        ... def shape():
        ...     '''What is the shape of the sum?'''
        ...     return jnp.sum(jnp.ones((2, 3)), axis=0).shape
        >>> shape((2,))
        Not (2,). Hint 1 of 1: A sum along axis 0 leaves the other axes.
        >>> shape((3,))
        Right: (3,).
    """

    def __init__(self, program: Callable[[], Any], hints: tuple[str, ...]) -> None:
        self.question = inspect.getdoc(program) or ""
        self.tries, self.solved = 0, False
        self._program, self._hints = program, hints

    @functools.cached_property
    def answer(self) -> Any:
        """What the program gives; it runs when this is first asked for."""
        return self._program()

    def __call__(self, prediction: Any) -> None:
        print(self._reply(prediction))

    def _reply(self, prediction: Any) -> str:
        if prediction is ...:
            return f"{self.question}\nPut your prediction in the place of the dots."
        if _fits(prediction, self.answer):
            self.solved = True
            return f"Right: {self.answer}."
        self.tries += 1
        return f"Not {prediction}. {self._help()}"

    def _help(self) -> str:
        if self.tries > len(self._hints):
            return f"The answer is {self.answer}."
        return f"Hint {self.tries} of {len(self._hints)}: {self._hints[self.tries - 1]}"


def exercise(*hints: str) -> Callable[[Callable[[], Any]], Exercise]:
    """Makes an exercise of a function without parameters: its result is to be predicted.

    The docstring of the function is the question.  Numbers and arrays are compared as
    `numpy.allclose` does, texts and lists of texts without regard to blanks.

    Source:     minijax's own.

    Args:
        hints: what is said to predictions that are wrong, one at a time.

    Returns:
        A decorator, which gives an `Exercise`.

    Raises:
        TypeError: a hint is not a text, as in `@exercise` without brackets.
        ValueError: the function has parameters, or no docstring.

    Example:
        >>> @minijax.testing.exercise()
        ... def total():
        ...     '''What is the sum of 0, 1 and 2?'''
        ...     return jnp.arange(3).sum()
        >>> total(3)
        Right: 3.
    """
    wrong = [hint for hint in hints if not isinstance(hint, str)]
    if wrong:
        error(
            TypeError,
            "testing.exercise",
            "a hint is not a text.",
            got=repr(wrong[0]),
            fix="write @exercise('a hint', 'another one'), or @exercise() without hints",
        )

    def decorate(program: Callable[[], Any]) -> Exercise:
        if not inspect.getdoc(program) or inspect.signature(program).parameters:
            error(
                ValueError,
                "testing.exercise",
                "the program has parameters, or no docstring.",
                got=f"{program.__name__}{inspect.signature(program)}",
                expected="a function without parameters, whose docstring asks the question",
            )
        return Exercise(program, hints)

    return decorate


def _fits(prediction: Any, answer: Any) -> bool:
    """Whether a prediction says the same as an answer."""
    try:
        given, expected = np.asarray(prediction, float), np.asarray(answer, float)
    except (TypeError, ValueError):
        return _words(prediction) == _words(answer)
    return given.shape == expected.shape and np.allclose(given, expected, 1e-3, equal_nan=True)


def _words(x: Any) -> list[Any] | str:
    """A text without its blanks, or a list of such."""
    return list(map(_words, x)) if isinstance(x, list | tuple) else "".join(str(x).split())
