"""`debug.breakpoint`: looking at the local variables of a line when the program passes it."""

from __future__ import annotations

import code
import functools
import inspect
import sys
import types
from typing import Any

from minijax.core import source
from minijax.lax import debugging

# Names with values: not a dictionary, whose keys a tree would sort.
_Values = list[tuple[str, Any]]

_NOT_VALUES = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)


def debug_breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    **kwargs: Any,
) -> None:
    """Shows the local variables of the caller, when the program passes this line.

    At a terminal, a Python prompt opens in which they have their values, and the program goes on
    when it is left.  Elsewhere they are printed and the program goes on.

    Source: mirrors jax.debug.breakpoint (0.10), reduced to looking.

    Args:
        backend: accepted for JAX's sake; there is one way of looking.
        filter_frames: whether frames of the library are left out.
        num_frames: how many frames, from the innermost one, are looked at; None is one.
        ordered: whether breakpoints are passed in the order of the program.
        token: accepted for JAX's sake.
        kwargs: more values to show, by name.

    Example:
        >>> def double(x):
        ...     y = 2 * x
        ...     jax.debug.breakpoint()
        ...     return y
        >>> double(3)
        breakpoint at ...:3 in double
          x = Array(3, dtype=int32, weak_type=True)
          y = Array(6, dtype=int32, weak_type=True)
        6
    """
    del backend, token
    frames = _callers(1 if num_frames is None else num_frames, filter_frames)
    values = [_values(frame) for frame in frames]
    if values:
        values[0] += kwargs.items()
    places = tuple(source.Frame(f.f_code.co_filename, f.f_lineno, f.f_code.co_name) for f in frames)
    debugging.debug_callback(functools.partial(_show, places), values, ordered=ordered)


def _callers(count: int, filter_frames: bool) -> list[types.FrameType]:
    frame = inspect.currentframe()
    found: list[types.FrameType] = []
    while frame is not None and len(found) < count:
        is_ours = frame.f_globals.get("__name__") == __name__
        is_hidden = filter_frames and source.is_internal(frame.f_code.co_filename)
        if not is_ours and not is_hidden:
            found.append(frame)
        frame = frame.f_back
    return found


def _values(frame: types.FrameType) -> _Values:
    """The local variables of a frame that hold values, in their order."""
    return [
        (name, value)
        for name, value in frame.f_locals.items()
        if not name.startswith("__") and not isinstance(value, _NOT_VALUES)
    ]


def _show(places: tuple[source.Frame, ...], values: list[_Values]) -> None:
    text = "\n".join(
        "\n".join([f"breakpoint at {place}", *(f"  {k} = {_indented(v)}" for k, v in own)])
        for place, own in zip(places, values, strict=True)
    )
    if sys.stdin is not None and sys.stdin.isatty():
        code.interact(banner=text, local=dict(values[0]) if values else {}, exitmsg="")
    else:
        sys.stdout.write(text + "\n")


def _indented(value: Any) -> str:
    return repr(value).replace("\n", "\n    ")
