"""Reads what the player of devices shows: evaluates names where their letters are numbers."""

import re
from collections import UserDict
from collections.abc import Mapping
from typing import Any

import numpy as np

_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉−·", "0123456789-*")
_FACTOR = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?=[A-Za-z_(])(?!e[+-])")
_POWER = re.compile(r"(\w+)\[y=(-?\d+)\]\(")
_KEYWORDS = re.compile(r"(?<![A-Za-z_])(and|or|not)(?=\()")
_FUNCTIONS: dict[str, Any] = {
    "abs": np.abs,
    "clamp": lambda low, x, high: min(max(x, low), high),
    "convert": np.trunc,
    "convert_element_type": np.trunc,
    "cos": np.cos,
    "div": lambda x, y: np.trunc(x / y),
    "eq": lambda x, y: x == y,
    "exp": np.exp,
    "ge": lambda x, y: x >= y,
    "is_and": lambda *tests: all(tests),
    "is_not": np.logical_not,
    "is_or": lambda *tests: any(tests),
    "max": max,
    "min": min,
    "gt": lambda x, y: x > y,
    "inf": np.inf,
    "integer_pow": lambda y, x: x**y,
    "is_finite": np.isfinite,
    "le": lambda x, y: x <= y,
    "log": np.log,
    "log1p": np.log1p,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "lt": lambda x, y: x < y,
    "ne": lambda x, y: x != y,
    "neg": lambda x: -x,
    "pow": lambda x, y: x**y,
    "rem": np.fmod,
    "rsqrt": lambda x: x**-0.5,
    "select": lambda test, x, y: x if test else y,
    "select_n": lambda test, x, y: y if test else x,
    "sign": np.sign,
    "sin": np.sin,
    "sqrt": np.sqrt,
    "tanh": np.tanh,
}


class Reader(UserDict[str, Any]):
    """The values of names.

    Args:
        numbers: those of the letters, as they are shown: `A₀`.
        legend: the meanings of short names, as the page has them.
    """

    def __init__(self, numbers: Mapping[str, float], legend: list[dict[str, str]]) -> None:
        super().__init__({_plain(name): value for name, value in numbers.items()} | _FUNCTIONS)
        self._meanings = {entry["name"]: entry["meaning"] for entry in legend}

    def __missing__(self, name: str) -> Any:
        self.data[name] = self.value(self._meanings[name])
        return self.data[name]

    def value(self, text: str) -> float:
        """What a text says, in numbers."""
        text = _KEYWORDS.sub(r"is_\1", text)
        text = _FACTOR.sub(r"\1*", _POWER.sub(r"\1(\2,", _plain(text)))
        return float(eval(text, {"__builtins__": {}}, self))


def _plain(text: str) -> str:
    """A text in ASCII: subscripts are set apart from names."""
    return re.sub(r"(?<=\w)(?=[₀-₉])(?<![₀-₉])", "_", text).translate(_SUBSCRIPTS)
