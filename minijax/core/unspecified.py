"""The mark of arguments that were left away, where None is a value of theirs."""

from __future__ import annotations

from typing import Any


class Unspecified:
    """The default of arguments for which None is a value."""

    def __repr__(self) -> str:
        return "<unspecified>"


UNSPECIFIED: Any = Unspecified()
