"""Guards against transfers between host and devices that the user has not asked for.

Input: a level, for a thread by a context manager or for all by `config.update`.  Output: jaxlib
looks at it wherever it moves a value, and logs or refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxlib import _jax

from minijax.core import source
from minijax.core.config import Context, Declaration, State
from minijax.core.errors import error
from minijax.core.sequences import UNSPECIFIED

_native = _jax.guard_lib


class _Held(Context):
    """Context manager: gives this thread levels, and restores the former ones."""

    __slots__ = ("_levels", "_previous")

    def __init__(self, levels: dict[str, Any]) -> None:
        self._levels = levels

    def __enter__(self) -> None:
        self._previous = _set(_native.thread_local_state(), self._levels)

    def __exit__(self, *_: object) -> None:
        _set(_native.thread_local_state(), self._previous)


def _set(state: object, levels: dict[str, Any]) -> dict[str, Any]:
    """Sets fields of jaxlib's state and returns what they were."""
    previous = {field: getattr(state, field) for field in levels}
    for field, level in levels.items():
        setattr(state, field, level)
    return previous


@source.boundaries("__call__", "update")
class Guard(State[str | None]):
    """A state whose value jaxlib looks at: "allow", "log", "disallow", or None for "allow".

    The levels "log_explicit" and "disallow_explicit" concern what `device_put` and `device_get`
    move as well, the others all else.
    """

    # Each state describes itself; the lines above describe the class.
    __doc__ = State.__doc__
    __slots__ = ("_fields", "_levels")

    def __init__(self, name: str, fields: tuple[str, ...], levels: Any, doc: str) -> None:
        self._fields = fields
        self._levels = levels
        super().__init__(name, None, doc, parse=self._level, in_trace_key=False, in_call_key=False)
        if self.value is not None:
            _set(_native.global_state(), self._native_levels(self.value))

    def update(self, value: str | None) -> None:
        """Sets the level of all threads that have none of their own."""
        super().update(value)
        _set(_native.global_state(), self._native_levels(value))

    def __call__(self, new_val: object = UNSPECIFIED) -> Context:
        return _Held(self._native_levels(self.checked(new_val)))

    def _level(self, name: str, value: Any) -> str | None:
        choices = [level.name.lower() for level in self._levels]
        if value is None or value in choices:
            return value
        expected = "one of " + ", ".join(map(repr, choices))
        error(ValueError, name, "there is no such level.", got=repr(value), expected=expected)

    def _native_levels(self, value: str | None) -> dict[str, Any]:
        level = None if value is None else self._levels[value.upper()]
        return dict.fromkeys(self._fields, level)


def explicitly(field: str) -> Context:
    """Context manager: what is moved inside, the user has asked for by name."""
    return _Held({field: True})


def _guard(
    *fields: str, levels: object = _native.TransferGuardLevel
) -> Callable[[Declaration], Guard]:
    """Declares a guard: the function that follows has its name and its documentation."""
    return lambda declaration: Guard(
        declaration.__name__, fields, levels, declaration.__doc__ or ""
    )


@_guard("host_to_device")
def transfer_guard_host_to_device() -> None:
    """What happens when a value of the host becomes an array.

    Source: mirrors jax.transfer_guard_host_to_device (0.10).

    Example:
        >>> x = np.ones(3)
        >>> with jax.transfer_guard_host_to_device("disallow"):
        ...     jnp.sin(x)
        Traceback (most recent call last):
        jaxlib...JaxRuntimeError: ...
    """


@_guard("device_to_device")
def transfer_guard_device_to_device() -> None:
    """What happens when an array is copied to another device.

    Source: mirrors jax.transfer_guard_device_to_device (0.10).

    Example:
        >>> x = jnp.ones(3)
        >>> with jax.transfer_guard_device_to_device("disallow_explicit"):
        ...     jax.device_put(x, jax.devices()[3])
        Traceback (most recent call last):
        jaxlib...JaxRuntimeError: ...
    """


@_guard("device_to_host")
def transfer_guard_device_to_host() -> None:
    """What happens when the host reads an array; host devices share its memory, and copy nothing.

    Source: mirrors jax.transfer_guard_device_to_host (0.10).

    Example:
        >>> with jax.transfer_guard_device_to_host("disallow"):
        ...     float(jnp.float32(1) + 1)
        2.0
    """


@_guard("host_to_device", "device_to_device", "device_to_host")
def transfer_guard() -> None:
    """What happens when values move between host and devices, or between devices.

    Source: mirrors jax.transfer_guard (0.10).

    Example:
        >>> x = np.ones(3)
        >>> with jax.transfer_guard("disallow"):
        ...     y = jax.device_put(x)
        ...     print(y + y)
        [2. 2. 2.]
    """


@_guard("garbage_collect_array", levels=_native.GarbageCollectionGuardLevel)
def array_garbage_collection_guard() -> None:
    """What happens when an array is part of a cycle of objects, which keeps its memory for long.

    Source: mirrors jax.array_garbage_collection_guard (0.10).

    Example:
        >>> with jax.array_garbage_collection_guard("log"):
        ...     print(jnp.ones(3).sum())
        3.0
    """
