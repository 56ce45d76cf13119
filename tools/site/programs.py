"""Pages of the programs of an example: `python -m tools.site.programs NAME FOLDER`.

Input: the name of an example.  Output: a page of each jitted function that the example defines, for
the arguments of its first call; as files, `pages.json` tells their names.  The example is stopped
when it has no more to give.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import minijax as jax
from minijax import explain
from minijax.core.trace import Tracer
from minijax.explain.pages.making import Page
from minijax.transforms.jit import jit

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DEVICES = 8

# Others are modules that examples share.
NAMES = sorted(
    path.stem for path in EXAMPLES.glob("*.py") if "def main(" in path.read_text(encoding="utf-8")
)

# What to run of examples that start processes: the program that these run.
_ALONE: dict[str, Callable[[Any], object]] = {
    "compiled_file": lambda module: jax.jit(module.product)(module.chain()),
    "two_processes": lambda module: module.trained(module.init(), lambda batch: batch, 1),
}


class Made(NamedTuple):
    """A page, and how long the processor took to make it.

    Attributes:
        page: the page.
        seconds: of the processor, compilation included.
    """

    page: Page
    seconds: float


class _Enough(BaseException):
    """The example has given all pages that are wanted."""


def pages_of(name: str, most: int, output: Path | None = None) -> list[Made]:
    """Runs an example until pages of its first programs are made.

    Args:
        name: of the example.
        most: how many pages; the example is stopped then.
        output: where it draws its pictures; it runs to its end then.
    """
    sys.path.insert(0, str(EXAMPLES))
    # Where the example ran before, C++ knows the calls of its functions, and nobody sees them.
    before = sys.modules.pop(name, None)
    try:
        module = importlib.import_module(name)
        main = functools.partial(_ALONE[name], module) if name in _ALONE else module.main
        args = () if output is None else (output,)
        with (
            jax.cpu_devices(DEVICES),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.suppress(_Enough),
            _made_at_first_calls(most, stops=output is None) as made,
        ):
            main(*args)
    finally:
        sys.path.remove(str(EXAMPLES))
        if before is not None:
            sys.modules[name] = before
    return made


@contextlib.contextmanager
def _made_at_first_calls(most: int, stops: bool) -> Iterator[list[Made]]:
    """Makes pages of functions of examples when they are called, and then lets them run."""
    made: list[Made] = []
    seen: list[jit.JitFunction] = []
    is_working = False
    answer = jit.JitFunction.answer

    def spied(self: jit.JitFunction, args: Any, kwargs: Any) -> Any:
        nonlocal is_working
        is_new = not is_working and len(made) < most and all(self is not each for each in seen)
        if is_new and _is_of_examples(self) and not _are_traced((args, kwargs)):
            seen.append(self)
            is_working = True
            try:
                started = time.process_time()
                page = explain.page(_held(self))(*args, **kwargs)
                made.append(Made(page, time.process_time() - started))
            finally:
                is_working = False
            if stops and len(made) == most:
                raise _Enough
        return answer(self, args, kwargs)

    jit.JitFunction.answer = spied  # type: ignore[method-assign]
    try:
        yield made
    finally:
        jit.JitFunction.answer = answer  # type: ignore[method-assign]


def _is_of_examples(function: jit.JitFunction) -> bool:
    """Whether an example has written a function, or jitted one, as transformations give them."""
    code = getattr(function.function, "__code__", None)
    files = code and code.co_filename, function.made_at and function.made_at.file_name
    return any(file and str(EXAMPLES) in file for file in files)


def _are_traced(tree: Any) -> bool:
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(tree))


def _held(function: jit.JitFunction) -> Callable[..., Any]:
    """A jitted function as `explain` takes it."""

    def call(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError

    call.trace = function.trace  # type: ignore[attr-defined]
    call.__wrapped__ = function.function  # type: ignore[attr-defined]
    return call


def draws(name: str) -> bool:
    """Whether an example draws pictures into a folder that it is given."""
    return "output: Path" in (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")


def save(name: str, folder: Path, most: int) -> None:
    """Writes the pages of an example, its pictures, and a list of both.

    Args:
        name: of the example.
        folder: where to.
        most: how many pages.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = pages_of(name, most, folder if draws(name) else None)
    listed = []
    for number, (page, _) in enumerate(made, 1):
        file = page.save(folder / f"{name}-{number}.html")
        listed.append({"file": file.name, "title": page.name, "text": str(page)})
    pictures = sorted(path.name for path in folder.glob("*.png"))
    text = json.dumps({"pages": listed, "pictures": pictures}, indent=1)
    (folder / "pages.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    save(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
