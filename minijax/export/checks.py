"""Checks of exported programs that users may leave out."""

from __future__ import annotations

_CUSTOM_CALL = "custom_call:"


class DisabledSafetyCheck:
    """A check of exported programs that is left out, and stands so in their files.

    Example:
        >>> jax.export.DisabledSafetyCheck.custom_call("my_kernel")
        custom_call:my_kernel
    """

    def __init__(self, text: str) -> None:
        self._text = text

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """The program may run on other platforms than it was made for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """The program may call a function of this name, which other versions may not have."""
        return cls(_CUSTOM_CALL + target_name)

    def is_custom_call(self) -> str | None:
        """The name of the function that may be called, if this is about one."""
        return self._text.removeprefix(_CUSTOM_CALL) if _CUSTOM_CALL in self._text else None

    def __repr__(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)
