"""Names of values that are not linear in what devices began with, and short names with a legend.

Input: sums of terms.  Output: a term for each element that tells its parents, such as `sin(A)`,
`A·B` or `max(A,B)`; what is too long is a `t1`, whose meaning the legend tells.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from minijax.explain.pages import terms
from minijax.explain.pages.terms import Sum, Terms

_LONGEST = 24
# A factor may stand before it: `2t1`.
_SHORT = re.compile(r"(?<![^\W\d])t\d+(?!\w)")


class Legend:
    """Short names for what is too long to be shown.

    Args:
        taken: the names that arguments have.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {word for name in taken for word in re.findall(r"\w+", name)}
        self._names: dict[object, str] = {}
        self._meanings: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._meanings)

    def name(self, text: str, key: object = None) -> str:
        """The short name for a text.

        Args:
            text: what it means.
            key: what it stands for, where several things have the same text.
        """
        found = self._names.get((text, key))
        while found is None:
            name = f"t{len(self._meanings) + 1}"
            self._meanings[name] = text
            if name not in self._taken:
                found = self._names[(text, key)] = name
        return found

    def short(self, text: str) -> str:
        """A text itself as a part of names, or a name for it where it is long."""
        return text if len(text) <= _LONGEST else self.name(text)

    def told(self, steps: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
        """The names that steps use, and those that stand in their meanings: JSON.

        Args:
            steps: the steps, whose cells get names that are numbered in their order.
        """
        rows = [own for step in steps for own in step["devices"]]
        waiting = [cell for own in rows for cell in own["cells"]]
        order: dict[str, str] = {}
        free = (f"t{n}" for n in itertools.count(1) if f"t{n}" not in self._taken)
        for text in waiting:
            for name in _SHORT.findall(text):
                if name in self._meanings and name not in (order.keys() | self._taken):
                    order[name] = next(free)
                    waiting.append(self._meanings[name])

        def renamed(text: str) -> str:
            return _SHORT.sub(lambda found: order.get(found.group(), found.group()), text)

        for own in rows:
            own["cells"] = list(map(renamed, own["cells"]))
        return [
            {"name": new, "meaning": renamed(self._meanings[old])} for old, new in order.items()
        ]


def factors(values: Terms, legend: Legend) -> Terms:
    """Sums as they stand in products and quotients: long ones by short names."""
    found = np.empty(values.shape, object)
    for index in np.ndindex(*values.shape):
        own = terms.sum_of(values[index])
        text = str(own)
        is_long = len(own.parts) > 1 and len(text) > _LONGEST
        found[index] = terms.named(legend.name(text)) if is_long else own
    return found


def extreme(word: str, values: Iterable[Sum], least: float, most: float) -> Sum:
    """The greatest or least of some sums, by name: `max(A,B)`.

    Args:
        word: `max` or `min`; `or` and `and`, which are these of truth values.
        values: the sums.
        least: the number that changes nothing.
        most: the number that nothing changes.
    """
    join = max if word in ("max", "or") else min
    known = least
    found: dict[str, Sum] = {}
    for value in values:
        if value.known is not None:
            known = join(known, value.known)
        else:
            found.update(_members(word, value))
    if known == most:
        return terms.sum_of(known)
    if known != least or not found:
        constant = terms.sum_of(known)
        found[str(constant)] = constant
    return (
        next(iter(found.values())) if len(found) == 1 else terms.named(f"{word}({','.join(found)})")
    )


def _members(word: str, value: Sum) -> dict[str, Sum]:
    """Of what an extreme is the extreme; of anything else itself."""
    text = str(value)
    inside = text[len(word) + 1 : -1]
    if list(value.parts) != [text] or text != f"{word}({inside})" or _closes(inside):
        return {text: value}
    parts, depth = [""], 0
    for sign in inside:
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return {part: terms.named(part) for part in parts}


def _closes(text: str) -> bool:
    """Whether a text closes a bracket that it has not opened."""
    depth = 0
    for sign in text:
        depth += (sign in "([") - (sign in ")]")
        if depth < 0:
            return True
    return False


def by_name(name: str, args: Sequence[Sum], legend: Legend) -> Sum:
    """What a function gives that is not linear, named after its arguments: `sin(A)`."""
    return terms.named(legend.short(f"{name}({', '.join(map(str, args))})"))


def along(values: Terms, axes: Sequence[int], join: Callable[[Sequence[Sum]], Sum]) -> Terms:
    """An array without some dimensions, along which elements were joined.

    Args:
        values: the array.
        axes: the dimensions.
        join: makes one sum of several.
    """
    kept = [d for d in range(values.ndim) if d not in axes]
    moved = terms.as_terms(values).transpose([*kept, *axes])
    rows = moved.reshape([*(values.shape[d] for d in kept), -1])
    found = np.empty(rows.shape[:-1], object)
    for index in np.ndindex(*found.shape):
        found[index] = join(list(rows[index]))
    return found


def multiplied(values: Iterable[Sum], legend: Legend) -> Sum:
    """The product of many."""
    found = terms.sum_of(1)
    for value in values:
        pair = np.array([found, value], object)
        one, two = factors(pair, legend) if found.known is None else pair
        found = one * two
    return found


def contracted(left: Terms, right: Terms, axes: Sequence[Sequence[int]], legend: Legend) -> Terms:
    """The sums of products of two arrays.

    Args:
        left: an array.
        right: another.
        axes: the dimensions of `left` and of `right` over which products are added, and those of
            each that go side by side.
        legend: the short names.
    """
    batch = [left.shape[d] for d in axes[2]]
    one, rows = _laid_out(left, axes[2], axes[0])
    two, columns = _laid_out(right, axes[3], axes[1])
    if not terms.is_known(left) and not terms.is_known(right):
        one, two = factors(one, legend), factors(two, legend)
    found = np.empty((one.shape[0], one.shape[1], two.shape[1]), object)
    for b, row, column in np.ndindex(*found.shape):
        pairs = zip(one[b, row], two[b, column], strict=True)
        found[b, row, column] = terms.added(x * y for x, y in pairs)
    return terms.simplified(found.reshape([*batch, *rows, *columns]))


def _laid_out(
    values: Terms, batch: Sequence[int], summed: Sequence[int]
) -> tuple[Terms, list[int]]:
    """An array as a batch of rows, whose elements are added up; the sizes that rows stand for."""
    rows = [d for d in range(values.ndim) if d not in (*batch, *summed)]
    groups = (batch, rows, summed)
    sizes = [math.prod(values.shape[d] for d in group) for group in groups]
    moved = terms.as_terms(values).transpose([d for group in groups for d in group])
    return moved.reshape(sizes), [values.shape[d] for d in rows]
