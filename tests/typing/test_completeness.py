"""Every public function says what it takes and gives; few results are of any type, for a reason."""

import importlib
import inspect
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOMS = (
    *("minijax", "minijax.numpy", "minijax.numpy.linalg", "minijax.numpy.fft", "minijax.random"),
    *("minijax.nn", "minijax.nn.initializers", "minijax.ops", "minijax.image"),
    *("minijax.lax", "minijax.lax.linalg", "minijax.tree", "minijax.tree_util"),
    *("minijax.flatten_util", "minijax.scipy.special", "minijax.scipy.linalg"),
    *("minijax.scipy.signal", "minijax.scipy.ndimage", "minijax.scipy.fft"),
    *("minijax.scipy.integrate", "minijax.scipy.interpolate", "minijax.scipy.stats.norm"),
)

_TREE = "a tree, of the shape that users' functions or arguments have"
_DTYPE = "NumPy's dtype, or one of ours that NumPy does not know"

# Why results are of any type, room by room.
REASONS: dict[str, dict[str, str]] = {}


def _functions(room: str) -> Iterator[tuple[str, Any]]:
    module = importlib.import_module(room)
    for name in sorted(getattr(module, "__all__", None) or dir(module)):
        value = getattr(module, name, None)
        function = inspect.unwrap(value) if callable(value) else None
        is_ours = inspect.isfunction(function) and function.__module__.startswith("minijax")
        if is_ours and not name.startswith("_"):
            yield name, function


@pytest.mark.parametrize("room", ROOMS)
def test_function_is_annotated(room: str) -> None:
    bare = [
        f"{name}({parameter})"
        for name, function in _functions(room)
        for parameter in (*inspect.signature(function).parameters, "return")
        if parameter not in function.__annotations__
    ]
    assert bare == []


@pytest.mark.parametrize("room", ROOMS)
def test_result_of_any_type_has_a_reason(room: str) -> None:
    found = {n for n, function in _functions(room) if function.__annotations__["return"] == "Any"}
    assert sorted(found) == sorted(REASONS.get(room, {}))
