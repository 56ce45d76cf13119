"""How two libraries differ on a random program, and which differences have a reason.

Input: what `benchmarks/observe_random.py` saw of each statement.  Output: `Difference`s, of which
`differences.toml` explains some.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from tools.fuzz import programs
from tools.fuzz.programs import Program

Seen = dict[str, Any]
"""What was seen of one statement."""

_RELATIVE = {"float64": 1e-9, "complex128": 1e-9, "float32": 2e-4, "complex64": 2e-4}
_SHORT = 0.06
"""The error that numbers may have relative to the largest of an array, by dtype, or for others."""

_PAIRS_OF_WORDS = {"complex64": np.float32, "complex128": np.float64}


class Difference(NamedTuple):
    """One way in which the results of a statement differ.

    Attributes:
        statement: the statement.
        aspect: "error", "tree", "dtype", "shape", "weak", "spec", "values".
        ours: what minijax gives.
        theirs: what JAX gives.
    """

    statement: str
    aspect: str
    ours: str
    theirs: str

    @property
    def signature(self) -> tuple[str, str, str]:
        """What stays the same while a program is made smaller."""
        if self.aspect == "error":
            return self.aspect, _class(self.ours), _class(self.theirs)
        return self.aspect, "", ""

    def __str__(self) -> str:
        return f"{self.aspect}\n  minijax  {self.ours}\n  JAX      {self.theirs}"


def kind_of(seen: Seen) -> str:
    """The class of an error as signatures name it, or that there is a value."""
    return _class(_brief(seen))


def _class(text: str) -> str:
    return text.partition(":")[0] if re.match(r"\w+: ", text) else "value"


def differences(
    program: Program, ours: Sequence[Seen], theirs: Sequence[Seen]
) -> Iterator[Difference]:
    """The differences of a program; statements that use a result that differs say no more."""
    spoiled: set[str] = set()
    for statement, mine, other in zip(program.statements, ours, theirs, strict=True):
        if programs.used_by(statement) & spoiled:
            spoiled.add(programs.name_of(statement))
            continue
        found = _difference(mine, other)
        if found is not None:
            spoiled.add(programs.name_of(statement))
            yield Difference(statement, *found)


def _difference(ours: Seen, theirs: Seen) -> tuple[str, str, str] | None:
    """The first aspect in which what was seen of a statement differs, and both sides."""
    if "leaves" not in ours or "leaves" not in theirs:
        if _same_error(ours, theirs):
            return None
        return "error", _brief(ours), _brief(theirs)
    if ours["tree"] != theirs["tree"]:
        return "tree", ours["tree"], theirs["tree"]
    for mine, other in zip(ours["leaves"], theirs["leaves"], strict=True):
        is_array = "shape" in mine or "shape" in other
        for aspect in ("dtype", "shape", "weak", "spec") if is_array else ("repr",):
            if (mine.get(aspect) or None) != (other.get(aspect) or None):
                return aspect, _type(mine), _type(other)
        if is_array and not _close(mine, other):
            return "values", _elements(mine), _elements(other)
    return None


def _same_error(ours: Seen, theirs: Seen) -> bool:
    if "error" in ours and "error" in theirs:
        return theirs["error"][0] in ours["error"]
    return "skipped" in ours and "skipped" in theirs


def _brief(seen: Seen) -> str:
    if "error" in seen:
        return f"{seen['error'][0]}: {' '.join(seen['message'].split())[:300]}"
    if "leaves" not in seen:
        return "skipped"
    return ", ".join(_type(leaf) for leaf in seen["leaves"])


def _type(leaf: Seen) -> str:
    if "shape" not in leaf:
        return str(leaf.get("repr"))
    weak = " weak" if leaf.get("weak") else ""
    spec = f" split {leaf['spec']}" if leaf.get("spec") else ""
    return f"{leaf['dtype']}{leaf['shape']}{weak}{spec}"


def _elements(leaf: Seen) -> str:
    text = np.array2string(array(leaf), separator=", ", threshold=20, precision=7)
    return f"{_type(leaf)} {' '.join(text.split())}"


def array(leaf: Seen) -> np.ndarray[Any, Any]:
    """The elements of a result; of keys their words."""
    name = leaf["dtype"]
    words = bytes.fromhex(leaf.get("data", ""))
    if name.startswith("key<"):
        return np.frombuffer(words, np.uint32)
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    return np.frombuffer(words, dtype).reshape(leaf["shape"] if words else (0,))


def _close(ours: Seen, theirs: Seen) -> bool:
    """Whether numbers agree: exactly, or but for rounding where there is any."""
    if ours.get("data") == theirs.get("data"):
        return True
    x, y = array(ours), array(theirs)
    if x.dtype in (np.uint8, np.bool_) or x.dtype.kind in "biu":
        return False
    tolerance = _RELATIVE.get(x.dtype.name, _SHORT)
    words = _PAIRS_OF_WORDS.get(x.dtype.name)
    x, y = (z.ravel().view(words) if words else z.ravel() for z in (x, y))
    x, y = x.astype(np.float64), y.astype(np.float64)
    is_finite = np.isfinite(y)
    if not np.array_equal(x[~is_finite], y[~is_finite], equal_nan=True):
        return False
    x, y = x[is_finite], y[is_finite]
    if not np.isfinite(x).all():
        return False
    zeros = (x == 0) & (y == 0)
    if not np.array_equal(np.signbit(x[zeros]), np.signbit(y[zeros])):
        return False
    largest = float(np.abs(y).max(initial=0.0))
    return bool((np.abs(x - y) <= tolerance * largest).all())


def depends_on_rounding(name: int, theirs: Sequence[Seen], nudged: Sequence[Seen]) -> bool:
    """Whether JAX's own result of a statement differs where its operands differ by rounding."""
    return _difference(nudged[name], theirs[name]) is not None


class Reason(NamedTuple):
    """Why some differences are as they should be."""

    text: str
    aspects: tuple[str, ...]
    statement: re.Pattern[str]
    ours: re.Pattern[str]
    theirs: re.Pattern[str]

    def explains(self, difference: Difference) -> bool:
        """Whether it is the reason of a difference."""
        return (
            difference.aspect in self.aspects
            and self.statement.search(difference.statement) is not None
            and self.ours.search(difference.ours) is not None
            and self.theirs.search(difference.theirs) is not None
        )


@functools.cache
def reasons() -> tuple[Reason, ...]:
    """The reasons in `differences.toml`."""
    text = Path(__file__).with_name("differences.toml").read_text(encoding="utf-8")
    return tuple(
        Reason(
            entry["reason"],
            tuple(entry["aspects"].split()),
            *(re.compile(entry.get(side, "")) for side in ("statement", "ours", "theirs")),
        )
        for entry in tomllib.loads(text)["difference"]
    )


def reason(difference: Difference) -> str | None:
    """The reason of a difference, if it has one."""
    return next((each.text for each in reasons() if each.explains(difference)), None)
