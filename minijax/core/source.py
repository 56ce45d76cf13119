"""Where in the user's code something happened, and tracebacks that show that code alone.

Input: the Python stack.  Output: a traceback kept by every equation, formatted only on demand.
Capturing is one C++ call; walking frames is left until somebody asks.

Users enter the package through boundaries.  An exception that leaves one has lost the frames of the
package, so that the last line of the traceback is the user's; `traceback_filtering` says otherwise.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType, TracebackType
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from jaxlib import _jax

from minijax.core import deferral
from minijax.core.cache import Cache
from minijax.core.native import Traceback

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_INTERNAL = (_PACKAGE, "<frozen", threading.__file__)
_LIBRARIES = (
    *(os.path.dirname(str(library.__file__)) + os.sep for library in (_jax, np)),
    contextlib.__file__,
    functools.__file__,
)
"""What the package calls, and tracebacks do not show where it has."""

_jax.set_tracebacks_enabled(True)
capture = _jax.Traceback.get_traceback
"""The current stack as a C++ traceback object: cheap to make, expensive to read."""


class Frame(NamedTuple):
    """One line of the user's program."""

    file_name: str
    line: int
    function_name: str

    def __str__(self) -> str:
        name, cell = self.function_name, cell_of(self.file_name)
        place = f"{cell}, line " if cell else f"{os.path.basename(self.file_name)}:"
        return place + str(self.line) + ("" if name == "<module>" else f" in {name}")


def readable(name: str) -> str:
    """A name that XLA can read: characters that no text has are written as escapes."""
    name = str(name)
    return name if name.isascii() else name.encode(errors="backslashreplace").decode()


def cell_of(file_name: str) -> str:
    """What a notebook calls the cell whose code stands in a file; empty for other files."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = get_ipython() if get_ipython else None
    named = getattr(getattr(shell, "compile", None), "format_code_name", lambda _: None)(file_name)
    return "" if named is None else " ".join(named).replace("Cell", "cell")


def _says_its_signature(function: Callable[..., Any]) -> bool:
    return "__signature__" in getattr(function, "__dict__", ())


def unwrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that decorators were put around, up to one that says its signature.

    Of n jitted functions inside each other, `inspect.signature` asks 2**n times.
    """
    try:
        return inspect.unwrap(function, stop=_says_its_signature)
    except ValueError:
        return function  # There are more decorators than Python allows frames.


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


def calling_frame(between: int = 0) -> Frame:
    """The line that called the function that asks, with so many frames of ours between them."""
    frame: Any = sys._getframe(2 + between)
    if frame.f_code in _boundaries:
        frame = frame.f_back
    return _described(frame)


def _described(frame: Any) -> Frame:
    return Frame(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def _user_frame(frame: Any = None) -> Any:
    """The innermost frame, from `frame` or here outwards, that runs the user's code, or None."""
    frame = sys._getframe(1) if frame is None else frame
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def user_line(frame: object = None) -> str | None:
    """The line of the user's code that is running now, here or in `frame`."""
    frame = _user_frame(frame)
    return None if frame is None else str(_described(frame))


def is_called_by_library() -> bool:
    """Whether a function of the library, not the user's code, has called the function that runs.

    That is the innermost function on the stack that users could have called, or one that has
    handed its operands over to it.  Transformations and operators are on nobody's side.
    """
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code not in _boundaries:
        frame = frame.f_back
    looked_through: tuple[str, ...] = _ON_NOBODYS_SIDE
    while frame is not None:
        code = frame.f_code
        if code in _boundaries:
            function = frame.f_locals.get("inner", frame.f_locals.get("function"))
            if getattr(function, "__name__", "").startswith("_"):
                # The public function of that file has called it.
                looked_through += (inspect.getfile(function),)
        elif code not in _handing_over and not code.co_filename.startswith(looked_through):
            return code.co_filename.startswith(_PACKAGE)
        frame = frame.f_back
    return False


_ON_NOBODYS_SIDE = (
    *(f"{_PACKAGE}{room}{os.sep}" for room in ("core", "interpreters", "lowering", "transforms")),
    os.path.join(_PACKAGE, "lax", "control_flow"),
    os.path.join(_PACKAGE, "numpy", "operators.py"),
    contextlib.__file__,
    functools.__file__,
)
_handing_over: set[CodeType] = set()


def depth() -> int:
    """How many frames the user's line is above the function that asks; 1 is that function."""
    level, frame = 1, sys._getframe(1).f_back
    while frame is not None and is_internal(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back
    return level + 1


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
    """Returns what the user's code does on the line that is running, as far as bytecode shows it.

    Returns:
        The name that a call begins with, as `max` and `math`; `[]`, `[:]`, `not`, `assert`, or
        `and` for `and`, `or` and chains of comparisons; or nothing.
    """
    frame = _user_frame()
    return "" if frame is None else operation_at(dis.get_instructions(frame.f_code), frame.f_lasti)


def operation_at(instructions: Iterable[dis.Instruction], offset: int) -> str:
    """Returns what `user_operation` does, for the instruction at an offset of a function's code.

    CPython 3.11 to 3.14 compile the same expression differently:

    - `and`: 3.11 has JUMP_IF_..._OR_POP; later versions copy the value before they test it.
    - `a < b < c`: the middle value is copied, compared and tested, since 3.13 by COMPARE_OP.
    - `x[i]`: BINARY_SUBSCR until 3.13, then BINARY_OP. `x[:i]` has BINARY_SLICE since 3.12.
    - `assert`: LOAD_ASSERTION_ERROR until 3.13, then LOAD_COMMON_CONSTANT. 3.14 puts NOT_TAKEN
      between the jump and what follows it.
    """
    # `tests/core/test_pythons.py` has the instructions of each version.
    code = list(instructions)
    place = next((i for i, step in enumerate(code) if step.offset == offset), 0)
    step = code[place]
    before = [one.opname for one in code[:place]]
    following = [one.argrepr or one.opname for one in code[place + 1 : place + 4]]
    if step.opname.startswith("CALL"):
        for other in code[:place]:
            if other.opname.startswith("LOAD_") and _start(other) == _start(step):
                return str(other.argval)
    if step.opname in {"BINARY_SUBSCR", "BINARY_SLICE"} or step.argrepr == "[]":
        return "[:]" if step.opname == "BINARY_SLICE" or "BUILD_SLICE" in before[-1:] else "[]"
    if "UNARY_NOT" in (step.opname, *following[:1]):
        return "not"
    if "LOAD_ASSERTION_ERROR" in following or "AssertionError" in following:
        return "assert"
    if before[-1:] == ["COMPARE_OP"]:
        before.pop()
    return "and" if "OR_POP" in step.opname or before[-1:] == ["COPY"] else ""


def _start(step: dis.Instruction) -> tuple[int | None, int | None] | None:
    """The line and the column at which the code of an instruction begins."""
    positions = step.positions
    return None if positions is None else (positions.lineno, positions.col_offset)


_WRAPPERS = {
    __name__: "inner",
    "minijax.numpy.promotion": "function",
    "minijax.random.keys": "formula",
}
"""Modules that wrap public functions, and what they call what they wrap."""


def _public_name(module: str, name: str) -> str | None:
    """How users name a function of a module, if they can: a package above it shows the name."""
    parts = module.split(".")
    paths = [".".join(parts[:length]) for length in range(1, len(parts))]
    if len(parts) == 2 and not name.startswith("_"):
        paths.append(module)  # A module of the root, such as `minijax.ops`, is public itself.
    for path in (*paths, *_SHOW_OTHERS):
        shown = deferral.loaded(path, name)
        if shown is not None and getattr(inspect.unwrap(shown), "__module__", None) == module:
            return f"{path}.{name}".partition(".")[2]
    return None


_SHOW_OTHERS = ("minijax.nn", "minijax.scipy.special")
"""Packages that show functions of other rooms."""


C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])


def boundary(function: F) -> F:
    """Decorator: what users call.  Exceptions leave it without the frames of the package.

    A keyword that the function does not have is refused by a text that proposes one.
    """
    code = function.__code__
    if code in _boundaries:
        return function
    call = _boundary_of(*_parameters(code))(function)
    call.__defaults__, call.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    functools.update_wrapper(call, function)
    call.__qualname__ = call.__qualname__.lstrip("_")
    return call


def _parameters(code: CodeType) -> tuple[str, str, str | None]:
    """The parameters of the boundary of a function, what of them it hands on, and other keywords.

    Names of one letter are those of arrays, which are given by position: functions of nothing else
    meet no wrong keywords, and are spared the dictionary for them, which costs 20 ns a call.
    """
    names, others, keywords = inspect.getargs(code)
    declared, by_name = names[: code.co_argcount], names[code.co_argcount :]
    given = [*declared, *(f"{name}={name}" for name in by_name)]
    if code.co_posonlyargcount:
        declared.insert(code.co_posonlyargcount, "/")
    if others or by_name:
        declared.append(f"*{others or ''}")
        given += [f"*{others}"] if others else []
    declared += by_name
    if keywords:
        declared.append(f"**{keywords}")
        given.append(f"**{keywords}")
    elif any(len(name) > 1 for name in names):
        declared.append("**wrong")
        keywords = "wrong"
    return ", ".join(declared), ", ".join(given), keywords


@Cache("boundaries", "functions that make boundaries", key="parameters").function
def _boundary_of(parameters: str, arguments: str, keywords: str | None) -> Callable[[F], F]:
    """Makes boundaries of functions with these parameters.

    A call with the same parameters takes half the time of one with `*args, **kwargs`.
    """
    namespace: dict[str, Any] = {}
    refuse = "if wrong: raise TypeError" if keywords == "wrong" else ""
    text = _BOUNDARY.format(
        parameters=parameters, arguments=arguments, keywords=keywords, refuse=refuse
    )
    exec(compile(text, _PACKAGE + "<boundary>", "exec"), globals(), namespace)
    make = namespace["make"]
    _boundaries.update(c for c in make.__code__.co_consts if isinstance(c, CodeType))
    return cast(Callable[[F], F], make)


_BOUNDARY = """
def make(inner, leave_out=filter_frames):
    def call({parameters}):
        try:
            try:
                {refuse}
                return inner({arguments})
            except TypeError:
                {keywords} and refuse_keywords(inner, {keywords})
                raise
            except (RuntimeError, ValueError) as exception:
                explain_deleted(exception, *locals().values())
                raise
        except Exception as exception:
            leave_out(exception)
            raise
    return call
"""


def refuse_keywords(function: Callable[..., Any], given: Iterable[str]) -> None:
    """Raises the error of keywords that a function does not have; `core/errors.py` says how."""


def explain_deleted(caught: Exception, *values: Any) -> None:
    """Raises our own error in place of XLA's about deleted values; `runtime/array.py` says how."""


_boundaries: set[CodeType] = set()
"""The code of functions that filter the frames of exceptions."""


def boundaries(*names: str) -> Callable[[C], C]:
    """Decorator of a class: methods of these names, or all that users call, are boundaries."""

    def decorate(cls: C) -> C:
        for name in names or [n for n in vars(cls) if n[0] != "_" or n in _CALLED]:
            method = vars(cls)[name]
            function = getattr(method, "__func__", method)
            if isinstance(function, FunctionType):
                shown = boundary(function)
                setattr(cls, name, shown if function is method else type(method)(shown))
        return cls

    return decorate


_OPERATORS = "add radd sub rsub mul rmul truediv matmul rmatmul neg"
_CALLED = {f"__{n}__" for n in f"init call getitem setitem iter len array {_OPERATORS}".split()}


def shown(module: dict[str, Any]) -> Callable[[], list[str]]:
    """The `__dir__` of a module that defines what it shows, which becomes boundaries."""
    for name in module["__all__"]:
        value = module[name]
        if isinstance(value, FunctionType):
            module[name] = boundary(value)
        elif isinstance(value, type):
            boundaries()(value)
    return lambda: sorted(module["__all__"])


def is_boundary(function: F) -> F:
    """Decorator: says that a function filters the frames of exceptions itself, to save a call."""
    _boundaries.add(function.__code__)
    return function


def hands_over(function: F) -> F:
    """Decorator: says that a function hands its operands over to others, which check them."""
    _handing_over.add(function.__code__)
    return function


def result_of(fun: Callable[..., Any]) -> Callable[[F], F]:
    """Decorator: the function that a transformation returns for `fun`.

    It is a boundary, and has the name and the documentation of `fun`, but not its types.
    """

    def decorate(function: F) -> F:
        names = [name for name in _NAMES if isinstance(getattr(fun, name, None), str)]
        return cast(F, functools.wraps(fun, assigned=names)(boundary(function)))

    return decorate


_NAMES = ("__module__", "__name__", "__qualname__", "__doc__")


def public(function: F, package: str, name: str) -> F:
    """Returns the boundary of a function that a package makes public under a name.

    A function with several public names is called by the shortest, whichever is loaded first:
    `tree.map`, not `tree_util.tree_map`.  Pickles and messages use that name.
    """
    shown: Any = vars(function).get("_boundary")
    is_new = getattr(shown, "__wrapped__", None) is not function
    if is_new:
        shown = vars(function)["_boundary"] = boundary(function)
    if shown is not function and (
        is_new or len(f"{package}.{name}") < len(f"{shown.__module__}.{shown.__qualname__}")
    ):
        shown.__module__, shown.__qualname__ = package, name
    return cast(F, shown)


class UnfilteredStackTrace(Exception):  # noqa: N818 - JAX's name
    """Carries, as the cause of an exception, the traceback that it had with all frames."""


def traceback_filtering() -> str:
    """The mode in force; `core/config.py` puts its state in this place."""
    return "auto"


_NOTE = (
    "Frames of minijax are left out of this traceback; MINIJAX_TRACEBACK_FILTERING=off shows them."
)


def filter_frames(exception: BaseException) -> None:
    """Does with frames of the package what the setting `traceback_filtering` says of its modes."""
    mode, whole = traceback_filtering(), exception.__traceback__
    entries = [] if mode == "off" else list(frames(whole))
    hidden = [entry for entry, is_hidden in entries if is_hidden]
    if not hidden or (mode == "remove_frames" and _is_inside_boundary()):
        return
    if mode == "tracebackhide":
        for entry in hidden:
            entry.tb_frame.f_locals["__tracebackhide__"] = True
        return
    if mode != "remove_frames":
        # What the user's own code raises needs no note: the traceback ends where it did.
        if entries[-1][1] and _NOTE not in getattr(exception, "__notes__", ()):
            exception.add_note(_NOTE)
        for entry in hidden:
            # Whoever keeps the exception keeps no programs: outer frames are kept by inner ones.
            with contextlib.suppress(RuntimeError):  # The frame is being executed.
                entry.tb_frame.clear()
    else:
        cause = UnfilteredStackTrace(_ABOUT_THE_CAUSE).with_traceback(whole)
        cause.__cause__, cause.__context__ = exception.__cause__, exception.__context__
        cause.__suppress_context__ = exception.__suppress_context__
        exception.__cause__ = cause
    for each in _chain(exception):
        each.__traceback__ = _without_hidden(each.__traceback__)


_ABOUT_THE_CAUSE = "The traceback with all frames; the error itself is the next one."


def frames(traceback: TracebackType | None) -> Iterator[tuple[TracebackType, bool]]:
    """The entries of a traceback, and whether each is of the package or of what it calls."""
    is_hidden = False
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename
        is_hidden = name.startswith(_PACKAGE) or (is_hidden and name.startswith(_LIBRARIES))
        yield traceback, is_hidden
        traceback = traceback.tb_next


def _chain(exception: BaseException) -> Iterable[BaseException]:
    """An exception and those that it came from, but for the one that keeps all frames."""
    found: list[BaseException] = []
    current: BaseException | None = exception
    while current is not None and current not in found:
        found.append(current)
        current = current.__cause__ or current.__context__
    return (each for each in found if not isinstance(each, UnfilteredStackTrace))


def _without_hidden(traceback: TracebackType | None) -> TracebackType | None:
    kept: TracebackType | None = None
    for entry, is_hidden in reversed(list(frames(traceback))):
        if not is_hidden:
            kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return kept


def _is_inside_boundary() -> bool:
    """Whether the boundary that asks was itself called by the package, or by what that calls."""
    frame: Any = sys._getframe(3)
    while frame is not None:
        if frame.f_code in _boundaries:
            return True
        frame = frame.f_back
    return False
