"""Marks in the place of shardings: nothing was said, or the compiler shall decide."""

from __future__ import annotations

from typing import Any, ClassVar


class UnspecifiedValue:
    """The type of `UNSPECIFIED`."""

    _only: ClassVar[UnspecifiedValue | None] = None

    def __new__(cls) -> UnspecifiedValue:
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __repr__(self) -> str:
        return "UnspecifiedValue"

    def __reduce__(self) -> tuple[Any, ...]:
        return UnspecifiedValue, ()


UNSPECIFIED = UnspecifiedValue()
"""Nothing was said about a placement: that of the argument, or the compiler's choice."""


def is_unspecified(x: Any) -> bool:
    """Whether nothing was said about a placement."""
    return x is UNSPECIFIED
