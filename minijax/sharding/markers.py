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


class AUTO:
    """A mark: the compiler shall split the value over this mesh as it finds best.

    Args:
        mesh: a mesh with devices.
    """

    __slots__ = ("mesh",)

    def __init__(self, mesh: Any) -> None:
        self.mesh = mesh

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AUTO) and self.mesh == other.mesh

    def __hash__(self) -> int:
        return hash((AUTO, self.mesh))

    def __repr__(self) -> str:
        return f"AUTO({self.mesh})"


def is_auto(x: Any) -> bool:
    """Whether the compiler shall decide about a placement."""
    return isinstance(x, AUTO)
