"""`%load_ext minijax`: `%%explain` makes a page of a cell, and terminals of IPython get colours.

Outputs of notebooks are rich without it: the classes say themselves how they are shown.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from minijax import explain
from minijax.core import source
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr
from minijax.core.meshes import MeshAxes
from minijax.explain.communication import Listing
from minijax.explain.display import terminal
from minijax.explain.pipeline import Stages
from minijax.explain.report import Report
from minijax.runtime.array import Array
from minijax.transforms.autodiff.grad import Linear
from minijax.transforms.jit.stages import Compiled, Lowered, Traced

_COLORED = (
    Jaxpr, ClosedJaxpr, Linear, Traced, Lowered, Compiled, Stages, Listing, Report, MeshAxes,
)  # fmt: skip
_LIBRARY = re.compile(r"minijax(?:\.|$)")

# No program has a name like this.
_COLLECT = "%%explain"

Namespace = dict[str, Any]


def load_ipython_extension(ipython: Any) -> None:
    """Adds `%explain` and `%%explain` to IPython; `%load_ext minijax` calls it.

    `%%explain` runs a cell and makes a page of its last line.  If that is a call, such as
    `f(x)` or `grad(loss)(params, batch)`, the page is that of `explain.page` of the function for
    these arguments; other expressions, and calls of the library's own functions, are explained as
    a function of the arrays that they name.  A name after `%%explain` is the file to save it in.

        %%explain step.html
        x = jnp.arange(8.0)
        step(params, x)

    In a terminal, IPython shows jaxprs, stages and reports in colours from then on.

    Source:     minijax's own.

    Args:
        ipython: the shell.

    Example:
        >>> from types import SimpleNamespace
        >>> shell = SimpleNamespace(register_magic_function=lambda *args: print(args[1:]))
        >>> jax.load_ipython_extension(shell)
        ('line_cell', 'explain')
    """
    magic = _Explain(ipython)
    ipython.register_magic_function(magic.run, "line_cell", "explain")
    if type(ipython).__name__ == "TerminalInteractiveShell":
        formatter = ipython.display_formatter.formatters["text/plain"]
        for kind in _COLORED:
            formatter.for_type(kind, _print_colored)


def _print_colored(value: Any, printer: Any, cycle: bool) -> None:
    printer.text(terminal.text_of(value, terminal.has_colors()))


@source.boundaries("run")
class _Explain:
    """The magic of one shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def run(self, line: str, cell: str | None = None) -> Any:
        """Makes a page of a line, or of a cell that the line follows."""
        code, file = (line, "") if cell is None else (cell, line.strip())
        page = self._page(code, below=0 if cell is None else 1)
        if file:
            page.save(file)
        return page

    def _page(self, code: str, below: int) -> Any:
        # Lines count as in the cell, whose first one holds the magic.
        shell = self._shell
        text = "\n" * below + shell.transform_cell(code)
        name = shell.compile.cache(text, self._number(), raw_code="\n" * below + code)
        statements = ast.parse(text, name).body
        if not statements or not isinstance(statements[-1], ast.Expr):
            problem = "the cell does not end in an expression."
            fix = "end it in a call, such as f(x)"
            at = f"{source.cell_of(name)}, line {below + len(code.splitlines())}"
            error(ValueError, "%%explain", problem, fix=fix, at=at)
        last = statements.pop().value
        names = shell.user_ns
        exec(compile(ast.Module(statements, []), name, "exec"), names)
        function, args, kwargs = _called(last, name, names)
        return explain.page(function)(*args, **kwargs)

    def _number(self) -> int:
        """The number of the cell that runs."""
        frame: Any = sys._getframe()
        while frame is not None:
            found = re.search(r"\d+", source.cell_of(frame.f_code.co_filename))
            if found:
                return int(found[0])
            frame = frame.f_back
        return int(self._shell.execution_count)


def _called(
    last: ast.expr, file: str, names: Namespace
) -> tuple[Callable[..., Any], tuple[Any, ...], Namespace]:
    """The function that an expression calls, and its arguments."""
    if isinstance(last, ast.Call):
        function = _value(last.func, file, names)
        if not _LIBRARY.match(getattr(function, "__module__", None) or ""):
            return function, *_arguments(last, file, names)
    arrays = list(_arrays_in(last, names))
    parameters = ast.arguments([], [ast.arg(name) for name in arrays], None, [], [], None, [])
    written = ast.copy_location(ast.Lambda(parameters, last), last)
    function = _value(ast.fix_missing_locations(written), file, names)
    function.__name__ = "cell"
    return function, tuple(names[name] for name in arrays), {}


def _arguments(call: ast.Call, file: str, names: Namespace) -> tuple[tuple[Any, ...], Namespace]:
    """The arguments of a call, in whose place they are collected."""
    collect = ast.copy_location(ast.Name(_COLLECT, ast.Load()), call.func)
    collected = ast.copy_location(ast.Call(collect, call.args, call.keywords), call)
    own: Any = {_COLLECT: lambda *args, **kwargs: (args, kwargs)}
    found: tuple[tuple[Any, ...], Namespace] = _value(collected, file, names, own)
    return found


def _arrays_in(expression: ast.expr, names: Namespace) -> Iterator[str]:
    """The arrays that an expression names, in order."""
    found = [node.id for node in ast.walk(expression) if isinstance(node, ast.Name)]
    for name in sorted(set(found)):
        if isinstance(names.get(name), Array | np.ndarray):
            yield name


def _value(expression: ast.expr, file: str, names: Namespace, own: Namespace | None = None) -> Any:
    return eval(compile(ast.Expression(expression), file, "eval"), names, own)
