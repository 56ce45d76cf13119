"""Whether arrays agree: integers bit by bit, floats to a tolerance that their dtype allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from minijax.core.errors import message

TOLERANCES = {
    "float16": 1e-2,
    "bfloat16": 5e-2,
    "float32": 2e-5,
    "float64": 1e-12,
    "complex64": 2e-5,
    "complex128": 1e-12,
}
"""Of floats, relative to the greatest magnitude in an array."""


def disagreement(left: Sequence[Any], right: Sequence[Any]) -> str:
    """How two lists of arrays differ; empty if they agree.

    Floats may differ by a few units in the last place of the greatest magnitude in their array.
    """
    if len(left) != len(right):
        return f"{len(left)} results and {len(right)}"
    for k, (a, b) in enumerate(zip(left, right, strict=True)):
        x, y = np.asarray(a), np.asarray(b)
        if (x.shape, x.dtype) != (y.shape, y.dtype):
            return f"result {k} is {x.dtype}{list(x.shape)} and {y.dtype}{list(y.shape)}"
        if not _agree(x, y):
            return f"result {k} differs:\n{_shown(x)}\n{_shown(y)}"
    return ""


def _agree(x: Any, y: Any) -> bool:
    if x.dtype.kind in "biu":
        return bool((x == y).all())
    tolerance = TOLERANCES[x.dtype.name]
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    x, y = x.astype(wide), y.astype(wide)
    scale = 1.0 + float(np.max(np.abs(y[np.isfinite(y)]), initial=0))
    return bool(np.allclose(x, y, rtol=tolerance, atol=tolerance * scale, equal_nan=True))


def _shown(x: Any) -> str:
    text = np.array2string(x, threshold=64, max_line_width=90)
    return text if len(text) < 1500 else f"{text[:1500]} ..."


def check_agree(
    what: str, sides: Mapping[str, Sequence[Any]], program: Any, statement: str = ""
) -> None:
    """Raises an error that shows both sides and the program, where two do not agree.

    Raises:
        AssertionError: the lists of arrays differ.
    """
    (first, left), (second, right) = sides.items()
    found = disagreement(left, right)
    if found:
        raise AssertionError(
            message(
                what,
                f"{first} and {second} do not agree: {found}",
                expected=statement or "the same",
            )
            + f"\nprogram\n{program!r}"
        )
