"""Names of parameters, which messages and printed programs show."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from minijax.interpreters import flattening


def plain(x: Any, y: int = 2) -> None: ...


def with_rest(x: Any, *rest: Any, key: int = 1, **others: Any) -> None: ...


def positional(x: Any, /, y: Any, *, key: Any) -> None: ...


def keywords_only(*, key: Any) -> None: ...


@functools.wraps(with_rest)
def wrapped(*args: Any, **kwargs: Any) -> None: ...


class Callee:
    def __call__(self, x: Any, *rest: Any) -> None: ...


FUNCTIONS: list[Callable[..., Any]] = [
    plain,
    with_rest,
    positional,
    keywords_only,
    lambda: None,
    lambda *args, **kwargs: None,
    wrapped,
    Callee(),
    functools.partial(plain, 1),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_parameter_names_are_those_of_the_signature(function: Callable[..., Any]) -> None:
    prefixes = {
        inspect.Parameter.POSITIONAL_ONLY: "",
        inspect.Parameter.POSITIONAL_OR_KEYWORD: "",
        inspect.Parameter.VAR_POSITIONAL: "*",
    }
    parameters = inspect.signature(function).parameters.values()
    expected = tuple(prefixes[p.kind] + p.name for p in parameters if p.kind in prefixes)
    assert flattening.parameter_names(function) == expected
