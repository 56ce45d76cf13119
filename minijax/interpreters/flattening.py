"""Between functions of trees and functions of flat values.  Step 1 of a call.

Input: a user's function and its arguments.  Output: leaves, tree definitions, types, and the
names of the leaves for messages.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from minijax.core import source, tree, tree_errors
from minijax.core.aval import aval_handlers, aval_of
from minijax.core.cache import Cache
from minijax.core.errors import error, explain_keyword
from minijax.core.jaxpr import DebugInfo
from minijax.core.native import PyTreeDef
from minijax.core.operators import Function, Value


def function_name(function: Function) -> str:
    """What a function is called in texts and modules."""
    while isinstance(function, functools.partial):
        function = function.func
    return source.readable(getattr(function, "__name__", None) or type(function).__name__)


def or_decorator(transformation: Function) -> Function:
    """A transformation that gives a decorator where it is called without a function.

    Args:
        transformation: takes a function by position, and options by name.
    """

    @functools.wraps(transformation)
    def transform(function: Function | None = None, /, **options: Any) -> Any:
        if function is None:
            explain_keyword(transformation.__name__, transformation, options)
            return functools.partial(transform, **options)
        return transformation(function, **options)

    return transform


def source_of(function: Function) -> str:
    """The function's name, and where it is defined where that can be told."""
    inner = source.unwrapped(function)
    while isinstance(inner, functools.partial):
        inner = inner.func
    code = getattr(inner, "__code__", None)
    name = function_name(function)
    return name if code is None else f"{name} at {code.co_filename}:{code.co_firstlineno}"


_names_by_function = Cache(
    "parameter names",
    "names of the positional parameters of functions",
    key="none",
    owner="function",
    counted=False,
).by_owner()


def _read_names(function: Function) -> tuple[str, ...] | None:
    if type(function) is FunctionType and not function.__dict__:
        # As a signature tells, at a tenth of the price: nothing is wrapped, nothing is partial.
        code = function.__code__
        count = code.co_argcount
        if code.co_flags & inspect.CO_VARARGS:
            rest = code.co_varnames[count + code.co_kwonlyargcount]
            return (*code.co_varnames[:count], f"*{rest}")
        return code.co_varnames[:count]
    try:
        parameters = inspect.signature(source.unwrapped(function)).parameters.values()
    except (TypeError, ValueError):
        return None
    names = []
    for parameter in parameters:
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
        elif parameter.kind is parameter.VAR_POSITIONAL:
            names.append(f"*{parameter.name}")
    return tuple(names)


def parameter_names(function: Function) -> tuple[str, ...] | None:
    """Names of the positional parameters of a function, or None where it has no signature."""
    try:
        if function not in _names_by_function:
            _names_by_function[function] = _read_names(function)
        return _names_by_function[function]
    except TypeError:
        return _read_names(function)


def debug_info(
    traced_for: str, function: Function, in_tree: PyTreeDef, positions: Sequence[int] | None = None
) -> DebugInfo:
    """Where a jaxpr traced from `function` comes from.

    Args:
        traced_for: the transformation.
        function: the user's function.
        in_tree: tree of (args, kwargs).
        positions: the parameters that `args` are, when others are held fixed.
    """
    # The jaxpr must not hold the function, or programs would never die with it.
    names = parameter_names(function)

    def arg_names() -> tuple[str, ...]:
        chosen = names
        if names is not None:
            given = len(in_tree.children()[0].children())
            places = range(given) if positions is None else positions
            chosen = tuple(argument_name(names, i) for i in places)
        return tuple(tree_errors.argument_paths(in_tree, chosen))

    name = function_name(function)
    return DebugInfo(traced_for, source_of(function), arg_names, None, name)


def argument_name(names: Sequence[str], position: int) -> str:
    """The name of a positional argument: `x`, or `args[2]` where parameters do not name it."""
    if names and names[-1].startswith("*") and position >= len(names) - 1:
        return f"{names[-1][1:]}[{position - len(names) + 1}]"
    return names[position] if position < len(names) else f"args[{position}]"


def result_paths(out_tree: PyTreeDef) -> tuple[str, ...]:
    """The paths of a function's results, such as `result` and `result['w']`."""
    dummy = tree.unflatten(out_tree, [0] * out_tree.num_leaves)
    return tuple("result" + tree_errors.keystr(path) for path, _ in tree.leaves_with_path(dummy))


_RESERVE = 300
"""Frames that tracing may need below a function.  C++ that calls Python at Python's limit ends the
process, where Python itself would raise an exception."""


def _check_depth(name: str) -> None:
    limit = sys.getrecursionlimit()
    try:
        sys._getframe(max(limit - _RESERVE, limit // 2))
    except ValueError:
        return  # The stack is not that deep.
    problem = "is called too deep inside other functions to be traced."
    got = f"more than {limit - _RESERVE} frames; sys.getrecursionlimit() is {limit}"
    fix = "a loop in place of functions inside functions, or sys.setrecursionlimit(10 * limit)"
    error(RecursionError, name, problem, got=got, fix=fix)


_WRAPPED = {"lax.fori_loop": 2, "lax.map": 1}
"""How many arguments functions give to what they wrap before it is traced."""


class FlatFunction:
    """A function of trees as one of leaves; after a call, `out_tree` is the tree of its results."""

    __slots__ = ("function", "in_tree", "name", "out_tree")

    def __init__(self, function: Function, in_tree: PyTreeDef, name: str) -> None:
        self.function = function
        self.in_tree = in_tree
        self.name = name
        self.out_tree: Any = None

    def __call__(self, *leaves: Any) -> list[Any]:
        _check_depth(self.name)
        args, kwargs = tree.unflatten(self.in_tree, leaves)
        try:
            out = self.function(*args, **kwargs)
        except TypeError as caught:
            self._explain_call(caught, len(args))
            raise
        flat, self.out_tree = tree.flatten(out)
        for i, x in enumerate(flat):
            if not hasattr(x, "aval"):
                self._check_result(i, x)
        return flat

    def _explain_call(self, caught: TypeError, count: int) -> None:
        """Notes who calls the function, where it takes other arguments: none of its lines ran."""
        about = re.search(r"(\S+)\(\) (?:takes|missing) ", str(caught))
        called = source.user_call()
        if about is None or about[1].rpartition(".")[2] not in (self.name, "__call__"):
            return
        frames = [is_hidden for _, is_hidden in source.frames(caught.__traceback__)]
        if called in _WRAPPED and all(frames):
            count = _WRAPPED[called]
        elif called is None or len(frames) > 1 or called.rpartition(".")[2] == self.name:
            return
        given = f"{count} positional argument{'' if count == 1 else 's'}"
        caught.add_note(f"  {called} calls {self.name} with {given}")

    def _check_result(self, index: int, x: Value) -> None:
        try:
            aval_of(x)
        except TypeError:
            problem = "a result is neither an array nor a number."
            got = f"{result_paths(self.out_tree)[index]}: {x!r} of type {type(x).__name__}"
            expected = "trees of arrays and numbers"
            error(TypeError, self.name, problem, got=got, expected=expected, cause=None)


def avals_of(
    leaves: Sequence[Any],
    names: Callable[[], Sequence[str]],
    transformation: str,
    fix: str | None = None,
) -> tuple[Any, ...]:
    """The types of flat arguments of a transformation; without a name, of a function of arrays.

    Raises:
        TypeError: one is neither an array nor a number; the text names it.
    """
    try:
        # Written out for what most arguments are: every call that C++ does not answer passes here.
        return tuple([aval_handlers[type(x)](x) for x in leaves])
    except KeyError:
        pass
    try:
        return tuple(map(aval_of, leaves))
    except (TypeError, OverflowError) as caught:
        for name, x in zip(names(), leaves, strict=True):
            try:
                aval_of(x)
            except TypeError:
                error(
                    TypeError,
                    transformation,
                    f"the argument {name} is neither an array nor a number.",
                    got=f"{x!r} of type {type(x).__name__}",
                    expected="arrays, Python or NumPy scalars, and trees of them",
                    fix=fix or _fix_of_other_value(transformation, name, x),
                    cause=None,
                )
            except OverflowError as overflow:
                raise OverflowError(f"argument {name}: {overflow}") from None
        raise caught


_WITHOUT_STATICS = ("vmap", "shard_map", "xmap", "jvp", "vjp", "jacfwd", "jacrev", "linearize")


def _fix_of_other_value(transformation: str, name: str, x: object) -> str | None:
    """What to do with an argument that is neither an array nor a number."""
    if not transformation:
        return None
    has_statics = not transformation.startswith("lax.") and "grad" not in transformation
    if not has_statics or transformation in _WITHOUT_STATICS:
        return "functools.partial or a lambda around the function, which holds it fixed"
    given = repr(name) if name.isidentifier() else "..."
    fix = f"static_argnames={given} compiles for each value of it (static_argnums by position)"
    if not callable(x) and hasattr(x, "__dict__"):
        fix += "; tree_util.register_dataclass makes a tree of a class of arrays"
    return fix


def normalize_argnums(
    name: str, argnums: int | Sequence[int], count: int
) -> tuple[tuple[int, ...], bool]:
    """Argument positions as a tuple of non-negative ints, and whether one int was given.

    Raises:
        TypeError: a position is not an integer, or is out of range.
    """
    single = isinstance(argnums, int) or not hasattr(argnums, "__iter__")
    given = (argnums,) if single else tuple(argnums)  # type: ignore[arg-type]
    positions = []
    for i in given:
        try:
            position = i.__index__()  # type: ignore[union-attr]
        except AttributeError:
            error(TypeError, name, "argnums must be integers.", got=repr(argnums), cause=None)
        if not -count <= position < count:
            problem = f"argnums {position} is out of range."
            fix = "pass the arguments to differentiate by position"
            error(TypeError, name, problem, got=f"{count} positional argument(s)", fix=fix)
        positions.append(position % count)
    return tuple(positions), single
