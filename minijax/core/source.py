"""Where in the user's code something happened.

Input: the Python stack.  Output: a traceback kept by every equation, formatted only on demand.
Capturing is one C++ call; walking frames is left until somebody asks.
"""

from __future__ import annotations

import dis
import os
import sys
import threading
from typing import Any, NamedTuple

from jaxlib import _jax

from minijax.core import deferral
from minijax.core.native import Traceback

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_INTERNAL = (_PACKAGE, "<frozen", threading.__file__)

_jax.set_tracebacks_enabled(True)
capture = _jax.Traceback.get_traceback
"""The current stack as a C++ traceback object: cheap to make, expensive to read."""


class Frame(NamedTuple):
    """One line of the user's program."""

    file_name: str
    line: int
    function_name: str

    def __str__(self) -> str:
        name = self.function_name
        place = f"{os.path.basename(self.file_name)}:{self.line}"
        return place if name == "<module>" else f"{place} in {name}"


def is_internal(file_name: str) -> bool:
    """Whether a file is never one of the user's program: the package's, or where threads begin."""
    return file_name.startswith(_INTERNAL)


def user_frame(traceback: Traceback | None) -> Frame | None:
    """The innermost frame of `traceback` outside the package."""
    if traceback is None:
        return None
    for frame in traceback.frames:
        if not is_internal(frame.file_name):
            return Frame(frame.file_name, frame.line_num, frame.function_name)
    return None


def summarize(traceback: Traceback | None) -> str:
    """`file:line in function` of the user's frame, or a dash where there is none."""
    frame = user_frame(traceback)
    return "-" if frame is None else str(frame)


def calling_frame() -> Frame:
    """The line that called the function that asks."""
    frame = sys._getframe(2)
    return Frame(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def user_line() -> str | None:
    """The line of the user's code that is running now."""
    frame = sys._getframe(1)
    current: Any = frame
    while current is not None:
        code = current.f_code
        if not is_internal(code.co_filename):
            return str(Frame(code.co_filename, current.f_lineno, code.co_name))
        current = current.f_back
    return None


def user_stacklevel() -> int:
    """The `stacklevel` at which a warning of the function that asks is one of the user's line."""
    frame: Any = sys._getframe(1)
    level = 1
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    return level


def user_call() -> str | None:
    """The public function that the user's code has called: `numpy.dot`, `lax.scan`, `vmap`.

    It is the outermost one that stands, on the stack, between the user's line and here.  Of an
    operator the text is `operator + (numpy.add)`.
    """
    frames = []
    current: Any = sys._getframe(1)
    while current is not None and is_internal(current.f_code.co_filename):
        frames.append(current)
        current = current.f_back
    for frame in reversed(frames):
        module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        signs, body = frame.f_globals.get("SIGNS"), frame.f_locals.get("body")
        if signs and body is not None:
            return f"operator {signs[body.__name__]} (numpy.{body.__name__})"
        if module in _WRAPPERS:
            wrapped = frame.f_locals.get(_WRAPPERS[module])
            module = getattr(wrapped, "__module__", module)
            name = getattr(wrapped, "__name__", name)
        public = _public_name(module, name)
        if public is not None:
            return public
    return None


def public_call(traceback: Traceback | None) -> str | None:
    """As `user_call`, of a stack that was captured earlier."""
    found = None
    for frame in () if traceback is None else traceback.frames:
        if not is_internal(frame.file_name):
            break
        path = frame.file_name.removeprefix(_PACKAGE).removesuffix(".py")
        module = "minijax." + path.replace(os.sep, ".")
        found = _public_name(module, frame.function_name) or found
    return found


def user_operation() -> str:
    """What the user's code does on the line that is running now, as far as its bytecode tells.

    Returns:
        The name that a call begins with, as `max` and `math`; `[]`, `not`, `assert`, or `and` for
        `and`, `or` and chains of comparisons; or nothing.
    """
    frame: Any = sys._getframe(1)
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return ""
    code = list(dis.get_instructions(frame.f_code))
    place = next((i for i, step in enumerate(code) if step.offset == frame.f_lasti), 0)
    step, before, after = code[place], code[place - 1], code[min(place + 1, len(code) - 1)]
    if step.opname.startswith("CALL"):
        for other in code[:place]:
            if other.opname.startswith("LOAD_") and _start(other) == _start(step):
                return str(other.argval)
    if step.opname == "BINARY_SUBSCR" or step.argrepr == "[]":
        return "[]"
    if "UNARY_NOT" in (step.opname, after.opname):
        return "not"
    if any(later.opname == "LOAD_ASSERTION_ERROR" for later in code[place : place + 3]):
        return "assert"
    return "and" if "OR_POP" in step.opname or before.opname == "COPY" else ""


def _start(step: dis.Instruction) -> tuple[int | None, int | None] | None:
    """The line and the column at which the code of an instruction begins."""
    positions = step.positions
    return None if positions is None else (positions.lineno, positions.col_offset)


_WRAPPERS = {"minijax.numpy.promotion": "function", "minijax.random.keys": "formula"}
"""Modules that wrap public functions, and what they call what they wrap."""


def _public_name(module: str, name: str) -> str | None:
    """How users name a function of a module, if they can: a package above it shows the name."""
    parts = module.split(".")
    above = [".".join(parts[:length]) for length in range(1, len(parts))]
    for path in (*above, *_SHOW_OTHERS):
        shown = deferral.loaded(path, name)
        if shown is not None and getattr(shown, "__module__", None) == module:
            return f"{path}.{name}".partition(".")[2]
    return None


_SHOW_OTHERS = ("minijax.nn", "minijax.scipy.special")
"""Packages that show functions of other rooms."""
