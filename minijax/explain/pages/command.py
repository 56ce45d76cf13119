"""`python -m minijax.explain script.py:function`: a page of a function of a script.

The script runs until it calls the function for the first time; the page is made for the arguments
of that call.
"""

from __future__ import annotations

import argparse
import inspect
import os
import runpy
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from minijax.core import tree
from minijax.core.errors import error
from minijax.core.trace import Tracer
from minijax.explain.pages.making import Page, page
from minijax.transforms.jit.stages import ShapeDtypeStruct


class NotCalledError(ValueError):
    """A script has come to its end without a call of the function."""


class _Called(BaseException):
    """The function was called: the script has done its part."""

    def __init__(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
        super().__init__()
        self.function = function
        self.args_of_call = args
        self.kwargs_of_call = kwargs


def main(arguments: Sequence[str] | None = None) -> int:
    """Makes the page that the command line asks for, and says where it is."""
    parser = argparse.ArgumentParser(prog="python -m minijax.explain", description=__doc__)
    parser.add_argument("place", metavar="script.py:function")
    parser.add_argument("-o", "--output", help="the file; by default the function's name")
    parser.add_argument("--open", action="store_true", help="show it in a browser")
    parser.add_argument("rest", nargs="*", help="arguments of the script")
    given = parser.parse_args(arguments)
    script, colon, name = given.place.rpartition(":")
    if not colon or not os.path.exists(script):
        parser.error(
            f"expected a script and a function of it, script.py:function; got {given.place}"
        )
    try:
        made = page_of(script, name, given.rest)
    except NotCalledError as missing:
        parser.error(str(missing))
    file = made.save(given.output or f"{name}.html")
    sys.stdout.write(f"{made}\nin {file}\n")
    if given.open:
        made.open()
    return 0


def page_of(script: str, name: str, rest: Sequence[str] = ()) -> Page:
    """The page of a function, for the arguments with which a script calls it first.

    Args:
        script: the path of the script.
        name: the function, at the top of the script.
        rest: the arguments of the script.

    Raises:
        NotCalledError: the script does not call a function of this name.
    """
    path = os.path.abspath(script)

    def watch(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_name == name and code.co_filename in (script, path):
            sys.setprofile(None)
            raise _Called(frame.f_globals.get(name), *_arguments(frame))

    before = sys.argv, list(sys.path)
    sys.argv = [script, *rest]
    sys.path.insert(0, os.path.dirname(path))
    try:
        sys.setprofile(watch)
        runpy.run_path(path, run_name="__main__")
    except _Called as called:
        return page(called.function)(*called.args_of_call, **called.kwargs_of_call)
    finally:
        sys.setprofile(None)
        sys.argv, sys.path = before
    problem = f"{script} does not call a function {name!r}."
    fix = "name a function that the script calls when it runs"
    return error(NotCalledError, "page", problem, fix=fix)


def _arguments(frame: FrameType) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call that begins: of traced values the types."""
    names, others, keywords, values = inspect.getargvalues(frame)
    code = frame.f_code
    by_name = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    args = [values[name] for name in names if name not in by_name]
    args += values[others] if others else ()
    kwargs = {name: values[name] for name in by_name} | (values[keywords] if keywords else {})
    return _plain(args), _plain(kwargs)


def _plain(values: Any) -> Any:
    def one(x: Any) -> Any:
        if not isinstance(x, Tracer):
            return x
        aval = x.aval
        return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)

    return tree.map(one, values)
