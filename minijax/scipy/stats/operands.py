"""What all distributions do to their arguments first."""

from __future__ import annotations

from typing import Any

from minijax.scipy.special.elementwise import real_operands


def floats(name: str, **arguments: Any) -> Any:
    """Arguments of a function of `scipy.stats` as real floats of one dtype and one rank.

    Raises:
        TypeError: an argument is complex, or no array and no number.
    """
    return real_operands(f"scipy.stats.{name}", **arguments)
