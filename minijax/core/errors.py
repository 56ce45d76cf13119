"""Error classes, warnings, and the one formatter of their texts.

Every message has the same shape: the public name that the user called and what is wrong; then
what was given, what was expected, how to mend it, and the line of the user's code.  Where a word
may be new to the reader, the last line is the call of `minijax.help` that explains it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import EllipsisType
from typing import Any, NoReturn

from minijax.core import deferral, source

difflib, inspect = deferral.module("difflib"), deferral.module("inspect")

_Facts = str | Mapping[str, object] | None

_NOTATION = {
    "weak type": r"~[a-z]\w*\[",
    "varying": r"[{ ]V:",
    "unreduced": r"[{ ]U:",
    "reduced": r"[{ ]R:",
}
"""How types show what these words of the glossary mean."""


def message(
    name: str,
    problem: str,
    *,
    got: _Facts = None,
    expected: str | None = None,
    fix: str | None = None,
    at: str | None = None,
    more: str | None = None,
) -> str:
    """Formats an error text.

    Args:
        name: the public function the user called, such as `lax.mul`, found from the stack where
            empty.  Functions of arrays call others: the text begins with the one that the user
            wrote.
        problem: what is wrong, one sentence.
        got: what was given; a mapping prints `name: value` pairs.
        expected: what would have been right.
        fix: what the user can do.
        at: the place in the user's code; found from the stack where absent.
        more: terms of the glossary that the text uses, separated by commas.  Terms for the notation
            of the types in `got` are added, also if it is empty.
    """
    if isinstance(got, Mapping):
        got = "   ".join(f"{key}: {value}" for key, value in got.items())
    place = source.user_line() if at is None else at
    name = _as_called(name)
    lines = [f"{name}: {problem}" if name else problem]
    words = more if more is None else _reference(more, got or "")
    parts = ("got", got), ("expected", expected), ("fix", fix), ("at", place), ("more", words)
    for label, text in parts:
        if text:
            lines.append(f"  {label:<8}  " + str(text).replace("\n", "\n            "))
    return "\n".join(lines)


def _reference(more: str, got: str) -> str:
    """Returns the call that explains the terms `more`, and those for the notation in `got`."""
    words = more.split(", ") if more else []
    words += [w for w, notation in _NOTATION.items() if re.search(notation, got) and w not in words]
    return 'minijax.help("' + '", "'.join(words) + '")' if words else ""


_ROOMS_OF_FUNCTIONS = ("numpy.", "lax.", "nn.", "random.", "scipy.", "image.", "ops.", "operator ")


_ANYWHERE = ("bool", "dtype promotion", "index")
"""What texts begin with where no function was called: things that many functions do."""


def _as_called(name: str) -> str:
    """`name`, or the function of arrays in its place that the user has called."""
    first, space, argument = name.partition(" ")
    if first and name not in _ANYWHERE and not first.startswith(_ROOMS_OF_FUNCTIONS):
        return name
    called = source.user_call()
    if called is None or (first and not called.startswith(_ROOMS_OF_FUNCTIONS)):
        return name
    return called if name in _ANYWHERE else called + space + argument


def error(
    exception: Callable[[str], BaseException],
    name: str,
    problem: str,
    *,
    got: _Facts = None,
    expected: str | None = None,
    fix: str | None = None,
    at: str | None = None,
    more: str | None = None,
    cause: BaseException | EllipsisType | None = ...,
) -> NoReturn:
    """Raises `exception` with the text that `message` formats.

    Args:
        exception: the class of the error.
        name: as all that follow, an argument of `message`.
        problem: what is wrong, one sentence.
        got: what was given.
        expected: what would have been right.
        fix: what the user can do.
        at: the place in the user's code.
        more: terms of the glossary; by default those that the class of the error is about.
        cause: the error that this one comes `from`; `None` hides the one being handled.
    """
    more = getattr(exception, "_glossary", None) if more is None else more
    raised = exception(
        message(name, problem, got=got, expected=expected, fix=fix, at=at, more=more)
    )
    if cause is ...:
        raise raised
    raise raised from cause


_SYNONYMS = {
    "axes": ("axis",),
    "axis": ("axes",),
    "dim": ("axis", "axes"),
    "dims": ("axis", "axes"),
    "keepdim": ("keepdims",),
    "size": ("shape",),
    "low": ("minval",),
    "high": ("maxval",),
    "type": ("dtype",),
}
"""What arguments are called in other libraries, and in ours."""


def explain_keyword(name: str, function: Callable[..., Any], given: Iterable[str]) -> None:
    """Raises our own error in place of Python's, if a keyword is given that nobody knows.

    Args:
        name: as in `error`.
        function: what was called.
        given: the keywords.

    Raises:
        TypeError: `function` has no parameter of such a name; the text proposes one.
    """
    parameters = inspect.signature(function).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    known = [name for name in parameters if name not in {"self", "cls"}]
    for keyword in given:
        if keyword not in known:
            meant = [other for other in _SYNONYMS.get(keyword, ()) if other in known]
            meant += difflib.get_close_matches(keyword, known, 1)
            problem = f"got an unexpected keyword argument {keyword!r}."
            expected = ", ".join(known)
            fix = f"did you mean {meant[0]!r}?" if meant else None
            error(TypeError, name, problem, expected=expected, fix=fix, cause=None)


def _refuse_keywords(function: Callable[..., Any], given: Iterable[str]) -> None:
    # A class is called by its own name; the boundary of a function knows its public path.
    name = function.__qualname__.removesuffix(".__init__").removesuffix(".__new__").lstrip("_")
    if shown := vars(function).get("_boundary"):
        name = f"{shown.__module__}.{shown.__qualname__}".partition(".")[2]
    explain_keyword(name, function, given)


source.refuse_keywords = _refuse_keywords


def warn(
    category: type[Warning],
    name: str,
    problem: str,
    *,
    got: _Facts = None,
    expected: str | None = None,
    fix: str | None = None,
    at: str | None = None,
) -> None:
    """Warns, at the line of the user's code, with the text that `message` formats."""
    text = message(name, problem, got=got, expected=expected, fix=fix, at=at)
    warnings.warn(text, category, stacklevel=source.depth())


class InternalError(AssertionError):
    """A fault of minijax itself; the text shows the equation in question."""


class MissingRule(NotImplementedError):
    """A primitive has no rule for what a transformation asks of it."""


class IncompatibleShapesError(TypeError, ValueError):
    """Operands' shapes do not broadcast together.

    JAX raises `TypeError` for this from `lax` and `ValueError` from `numpy`; both catch this one.
    """


class DeletedArrayError(RuntimeError, ValueError):
    """An array was used after its memory was freed, by `delete` or by donation.

    JAX raises `RuntimeError` for this from conversions and `ValueError` from jitted functions; both
    catch this one.
    """


class JAXTypeError(TypeError):
    """Base of type errors about traced values.  Mirrors jax.errors."""


class JAXIndexError(IndexError):
    """Base of index errors about traced values.  Mirrors jax.errors."""


class JaxprTypeError(TypeError):
    """A jaxpr is malformed.  Mirrors jax.errors; what this package finds is an `InternalError`."""


class ConcretizationTypeError(JAXTypeError):
    """A traced value was used where a concrete value is needed.  Mirrors jax.errors."""

    _glossary = "tracer"


class TracerArrayConversionError(ConcretizationTypeError):
    """A traced value was handed to NumPy.  Mirrors jax.errors."""


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced value was used as a Python bool.  Mirrors jax.errors."""


class TracerIntegerConversionError(ConcretizationTypeError):
    """A traced value was used as a Python index.  Mirrors jax.errors."""


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean mask was used as an index.  Mirrors jax.errors."""

    _glossary = "tracer"


class UnexpectedTracerError(JAXTypeError, RuntimeError):
    """A tracer was used after its trace had ended: it leaked.  Mirrors jax.errors."""

    _glossary = "tracer"


class RetraceError(RuntimeError):
    """A function was about to be traced or compiled again where `no_retrace` forbids it."""


class KeyReuseError(JAXTypeError):
    """A random key was used twice.  Mirrors jax.errors."""


class CheckError(ValueError):
    """Base of the errors of checks.  Mirrors jax.experimental.checkify.JaxRuntimeError.

    Attributes:
        primitive: the operation at fault.
        index: the position of the first faulty element in what was checked, for one example.
        example: the position of the example in the batches around it, outermost first.
        line: the user's line, as `file:line in function`.
        detail: what is wrong, in one sentence.
    """

    primitive: str = ""
    index: tuple[int, ...] = ()
    example: tuple[int, ...] = ()
    line: str | None = None
    detail: str = ""


class OutOfBoundsError(CheckError, IndexError):
    """A checked program has used an index out of bounds."""


class NonFiniteError(CheckError, FloatingPointError):
    """A checked program has made a NaN or an infinity from finite numbers."""


class DivisionByZeroError(CheckError, ZeroDivisionError):
    """A checked program has divided by zero."""


class CheckedKeyReuseError(CheckError, KeyReuseError):
    """A checked program uses a random key twice."""


class FailedCheckError(CheckError):
    """A check of the user's has failed."""


class ShardingTypeError(TypeError):
    """Operands' shardings do not fit together."""


class IndivisibleError(ValueError):
    """A dimension cannot be cut into as many equal parts as a sharding says."""


class DuplicateSpecError(ValueError):
    """A spec names a mesh axis twice."""


class NoMeshError(RuntimeError, ValueError):
    """A `PartitionSpec` was given where no mesh is set.

    JAX raises `RuntimeError` for this from constraints and `ValueError` from `device_put`; both
    catch this one.
    """


class ResourceTypingError(TypeError):
    """One mesh resource carries two logical axes of one value."""


class InconclusiveDimensionOperation(Exception):
    """The result of an operation on symbolic dimensions depends on their values."""
