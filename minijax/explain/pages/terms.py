"""Values by name: sums of terms such as `A+D+C`, which linear arithmetic carries through.

A term says on which device a number began.  Arrays of such sums are NumPy's, of objects, so that
NumPy adds, broadcasts and concatenates them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

Terms = np.ndarray[Any, Any]
"""An array of sums, or of numbers where all of them are known."""

_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_LONGEST = 44


class Sum:
    """A sum of terms with factors; the term "" is the number 1.

    Attributes:
        parts: the factor of each term, in the order in which terms came.
    """

    __slots__ = ("parts",)

    def __init__(self, parts: Mapping[str, float]) -> None:
        self.parts = {term: factor for term, factor in parts.items() if factor or not term}
        if len(self.parts) > 1 and not self.parts.get("", 1.0):
            del self.parts[""]

    @property
    def known(self) -> float | None:
        """Its value, if it is a number; else None."""
        if any(self.parts):
            return None
        return self.parts.get("", 0.0)

    def __add__(self, other: object) -> Sum:
        parts = dict(self.parts)
        for term, factor in sum_of(other).parts.items():
            parts[term] = parts.get(term, 0.0) + factor
        return Sum(parts)

    __radd__ = __add__

    def __neg__(self) -> Sum:
        return self._times(-1.0)

    def __sub__(self, other: object) -> Sum:
        return self + (-sum_of(other))

    def __rsub__(self, other: object) -> Sum:
        return sum_of(other) + (-self)

    def __mul__(self, other: object) -> Sum:
        given = sum_of(other)
        if given.known is not None:
            return self._times(given.known)
        if self.known is not None:
            return given._times(self.known)
        (factor, one), (other_factor, two) = self._taken_apart(), given._taken_apart()
        return Sum({f"{one._bracketed()}·{two._bracketed()}": factor * other_factor})

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Sum:
        given = sum_of(other)
        if given.known:
            return self._times(1.0 / given.known)
        (factor, one), (divisor, two) = self._taken_apart(), given._taken_apart()
        below = two._bracketed()
        if _has_bare(below, "·/"):
            below = f"({below})"
        return Sum({f"{one._bracketed()}/{below}": factor / divisor})

    def __rtruediv__(self, other: object) -> Sum:
        return sum_of(other) / self

    def _times(self, factor: float) -> Sum:
        return Sum({term: factor * own for term, own in self.parts.items()})

    def _taken_apart(self) -> tuple[float, Sum]:
        """The factor that all terms have but for their signs, and what it multiplies."""
        factors = set(map(abs, self.parts.values()))
        if self.known is not None or len(factors) != 1:
            return 1.0, self
        factor = factors.pop()
        if all(own < 0 for own in self.parts.values()):
            factor = -factor
        return factor, self._times(1.0 / factor)

    def _bracketed(self) -> str:
        text = str(self)
        return text if len(self.parts) <= 1 else f"({text})"

    def __str__(self) -> str:
        if len(self.parts) > 1:
            factor, together = self._taken_apart()
            if factor != 1:
                return ("−" if factor < 0 else "") + _factor(f"({together})", abs(factor))
        text = ""
        for term, factor in self.parts.items():
            sign = "−" if factor < 0 else "+" if text else ""
            text += sign + _factor(term, abs(factor))
        return text or "0"


def _has_bare(text: str, signs: str) -> bool:
    """Whether a text has one of some signs outside of brackets."""
    depth = 0
    for sign in text:
        depth += (sign in "([") - (sign in ")]")
        if not depth and sign in signs:
            return True
    return False


def _factor(term: str, factor: float) -> str:
    if not term:
        return f"{factor:.4g}"
    if factor == 1:
        return term
    inverse = 1 / factor
    if factor < 1 and abs(inverse - round(inverse)) < 1e-5 * inverse:
        return f"{term}/{round(inverse)}"
    return f"{factor:.4g}{term}"


def sum_of(value: Any) -> Sum:
    """A number as a sum; a sum itself."""
    return value if isinstance(value, Sum) else Sum({"": float(value)})


def named(name: str) -> Sum:
    """The sum of one term."""
    return Sum({name: 1.0})


def begun(name: str, shape: tuple[int, ...]) -> Terms:
    """An array whose elements are called by a name, with their numbers where there are several."""
    found = np.empty(shape, object)
    for number, index in enumerate(np.ndindex(*shape)):
        found[index] = named(name + str(number).translate(_SUBSCRIPTS) * (found.size > 1))
    return found


def is_known(values: Terms) -> bool:
    """Whether an array holds numbers only."""
    return values.dtype != object


def count(values: Terms) -> int:
    """How many terms the sums of an array have together."""
    return 0 if is_known(values) else sum(len(sum_of(x).parts) for x in values.flat)


def simplified(values: Any) -> Terms:
    """An array of sums, as numbers if all of them are."""
    array = np.asarray(values)
    if array.dtype == object and all(sum_of(x).known is not None for x in array.flat):
        return np.array([sum_of(x).known for x in array.flat], np.float64).reshape(array.shape)
    return array


def as_terms(values: Terms) -> Terms:
    """An array of sums, also of numbers."""
    found = np.empty(values.shape, object)
    for index in np.ndindex(*values.shape):
        found[index] = sum_of(values[index])
    return found


def shortened(values: Terms, shorten: Callable[[str], str]) -> Terms:
    """An array whose elements have short names where their texts are too long to be shown."""
    if is_known(values):
        return values
    found = np.empty(values.shape, object)
    for index in np.ndindex(*values.shape):
        text = str(sum_of(values[index]))
        found[index] = named(shorten(text)) if len(text) > _LONGEST else sum_of(values[index])
    return found


def texts(values: Terms, most: int, shorten: Callable[[str], str]) -> list[str]:
    """The elements as texts: the first ones, if there are many."""
    shown = [str(sum_of(x)) for x in as_terms(values).flat[:most]]
    shown = [text if len(text) <= _LONGEST else shorten(text) for text in shown]
    return shown + (["…"] if values.size > most else [])


def added(values: Iterable[Sum]) -> Sum:
    """The sum of many."""
    parts: dict[str, float] = {}
    for value in values:
        for term, factor in value.parts.items():
            parts[term] = parts.get(term, 0.0) + factor
    return Sum(parts)
