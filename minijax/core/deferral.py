"""Imports: jaxlib first, and parts of packages when a program first names them (PEP 562).

jaxlib reads variables of the environment when it is imported.  Variables that the user has set win;
those that are set here are removed again, so that child processes see the user's own environment.

Modules are imported while the garbage collector waits: the objects that imports make stay alive,
and looking through them again and again took a seventh of the time.

A façade is a package whose names are loaded when a program first uses them.  The stub beside it,
which type checkers read, lists each name once, with the module that defines it:

    import minijax.core.tree
    from minijax.numpy.ranges import hanning as hanning, kaiser as kaiser

    tree_all = minijax.core.tree.all_true

`attach` reads the stub and returns what the façade needs at run time:

    __getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)

That keeps `import minijax` light: it loads what most programs use, and no more.  A public module
that is not a package (`minijax/debug.py`) is loaded only when a program names it, so it imports its
names as any module does.  It ends with a call that gives them the same treatment (decision 0038):

    deferral.publish(globals())
"""

from __future__ import annotations

import functools
import gc
import importlib
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import FrameType, FunctionType, ModuleType
from typing import Any, ParamSpec, TypeVar

from minijax.core import system

P = ParamSpec("P")
T = TypeVar("T")

# Silences XLA's INFO lines.
_READ_AT_IMPORT = {"TF_CPP_MIN_LOG_LEVEL": "1"}


_signals_that_came: list[int] = []
_signals_wait = False


def whole(function: Callable[P, T]) -> Callable[P, T]:
    """Decorator, of what sets up something once: it runs to its end, while signals wait.

    A KeyboardInterrupt in between would leave half of it, such as a dialect whose name is taken and
    whose operations are missing.  It is raised afterwards, and so is what other handlers raise.
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        global _signals_wait  # noqa: PLW0603  handlers of signals are the process's, too
        if _signals_wait or threading.current_thread() is not threading.main_thread():
            return function(*args, **kwargs)
        handlers: Any = {n: h for n in signal.valid_signals() if callable(h := signal.getsignal(n))}

        def later(number: int, frame: FrameType | None) -> None:
            if _signals_wait:
                _signals_that_came.append(number)
            else:
                handlers[number](number, frame)

        try:
            _signals_wait = True
            for number in handlers:
                signal.signal(number, later)
            return function(*args, **kwargs)
        finally:
            _signals_wait = False
            for number, handler in handlers.items():
                signal.signal(number, handler)
            while _signals_that_came:
                signal.raise_signal(_signals_that_came.pop())

    return run


@whole
def load_jaxlib() -> None:
    """Imports jaxlib's extension module under the settings above."""
    if "jaxlib._jax" in sys.modules:
        return
    added = {name: value for name, value in _READ_AT_IMPORT.items() if name not in os.environ}
    os.environ.update(added)
    try:
        __import__("jaxlib._jax")
    finally:
        for name in added:
            os.environ.pop(name, None)


def import_module(name: str) -> ModuleType:
    """Imports a module, without collecting garbage meanwhile, and whole."""
    there = name in sys.modules or not gc.isenabled()
    return importlib.import_module(name) if there else _import_module(name)


@whole
def _import_module(name: str) -> ModuleType:
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        _call_it_old()
        gc.enable()


def _call_it_old() -> None:
    """Moves all objects into the oldest generation, which the next collection leaves alone."""
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()


system.check_python()
load_jaxlib()

ROOT = "minijax"


homes_of: dict[str, dict[str, tuple[str, str]]] = {}
"""For each module with a stub, its public names, with the module and the name that define them."""

fallbacks: dict[str, str] = {}
"""Modules in which names are looked up that a public module lacks; `as_jax` adds JAX's names."""

# Stubs have the form that the formatter gives them.
_IMPORT = re.compile(r"^from (\S+) import (?:\(([^)]*)\)|([^(#\n]*))", re.MULTILINE)
_ALIAS = re.compile(r"^(\w+) = ([\w.]+)\.(\w+)$", re.MULTILINE)
_DECLARATION = re.compile(r"^(\w+): ", re.MULTILINE)


def attach(
    package: str, file: str, *, at_once: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, `__dir__` and `__all__` of a façade, as the stub beside it lists them.

    Args:
        package: the name of the package, or of the module.
        file: its file.
        at_once: modules that load with it, since most programs use them.

    A function that is called like its module loads at once too: later, its name would be the
    module's.
    """
    # The loader also reads from archives, where `open` finds no file.
    spec: Any = sys.modules[package].__spec__
    text = spec.loader.get_data(file.rpartition(".")[0] + ".pyi").decode()
    homes = homes_of[package] = exports(text)
    declared = _DECLARATION.findall(text)

    def load(name: str) -> Any:
        """Loads a part of the package when it is first named."""
        if name not in homes:
            try:
                return _look_up_fallback(package, name)
            except AttributeError as missing:
                missing.__traceback__ = None  # The traceback ends with the user's line.
                raise
        home, original = homes[name]
        if home == package:
            value = import_module(f"{home}.{original}")
        else:
            value = _public(getattr(import_module(home), original), package, name)
        setattr(sys.modules[package], name, value)
        return value

    def shown() -> list[str]:
        """The public names, loaded or not, without the modules that define them."""
        return sorted([*public, *declared])

    public = sorted(name for name in homes if not name.startswith("_"))
    for module in at_once:
        import_module(module)
    for name in [name for name, (home, _) in homes.items() if home == f"{package}.{name}"]:
        load(name)
    return load, shown, public


def publish(module: dict[str, Any], names: Iterable[str] | None = None) -> None:
    """Completes a module as a public one, as `attach` does for a façade.

    Functions become boundaries, docstrings name their source, and `__all__` and `dir` list the
    public names.

    Args:
        module: the module's globals.
        names: the public names. By default all names except private ones, this module, packages
            that an `import a.b` binds, and the module's own submodules.
    """
    path = module["__spec__"].name  # `__name__` is `__main__` under `python -m`.
    if names is None:
        names = [n for n, value in module.items() if n[0] != "_" and not _is_tool(value, path)]
    for name in names:
        module[name] = _public(module[name], path, name)
    module["__all__"] = sorted(names)
    module["__dir__"] = lambda: list(module["__all__"])
    module["__getattr__"] = functools.partial(_look_up_fallback, path)


def _is_tool(value: Any, path: str) -> bool:
    """Returns whether the public module `path` only uses a value in order to define its names."""
    if not isinstance(value, ModuleType):
        return False
    name = value.__name__
    return name == __name__ or "." not in name or name.startswith(f"{path}.")


def _public(value: object, package: str, name: str) -> Any:
    """Returns `value` as users see it; our functions become boundaries with a source line."""
    if isinstance(value, FunctionType) and value.__module__.startswith(ROOT):
        boundary = sys.modules[f"{ROOT}.core.source"].public(value, package, name)
        if boundary is not value:
            package, name = boundary.__module__, boundary.__qualname__
        boundary.__doc__ = _with_source(value.__doc__, package, name)
        return boundary
    if isinstance(value, type) and value.__module__.startswith(ROOT):
        value.__doc__ = _with_source(value.__doc__, package, name)
    return value


def _look_up_fallback(package: str, name: str) -> Any:
    """Returns a name that a public module lacks from its fallback, or raises AttributeError."""
    if package in fallbacks and not name.startswith("__"):
        names = import_module(fallbacks[package])
        if hasattr(names, name):
            return getattr(names, name)
    try:
        raise _no_attribute(package, name)
    except AttributeError as missing:
        missing.__traceback__ = None  # The traceback ends with the user's line.
        raise


# What follows the paragraphs of a docstring.
_SECTION = re.compile(r"\n\n( *)(?:Args|Attributes|Returns|Raises|Examples?):\n")
_FACTS = re.compile(r" *\w+: ")


def _with_source(doc: str | None, package: str, name: str) -> str | None:
    """Returns a docstring with a line that names the function of JAX that it mirrors.

    A docstring that has such a line is returned unchanged.  Most public functions mirror the
    function of JAX with their path.  The docstring of any other has to contain the line
    `Source:     minijax's own.`; a test compares these lines with the names that JAX has.
    """
    if not doc or "Source:" in doc:
        return doc
    section = _SECTION.search(doc)
    paragraphs, rest = (doc[: section.start()], doc[section.start() :]) if section else (doc, "")
    # Python 3.13 removes the indentation of docstrings, earlier versions keep it.
    last_line = paragraphs.rpartition("\n")[2]
    indentation = section[1] if section else " " * (len(last_line) - len(last_line.lstrip()))
    first, _, last = paragraphs.rpartition("\n\n")
    gap = "\n" if first and _FACTS.match(last) else "\n\n"
    path = f"{package}.{name}".replace(ROOT, "jax", 1)
    return f"{paragraphs.rstrip()}{gap}{indentation}Source: mirrors {path} (0.10).{rest}"


_OF_TREES = ("map", "leaves", "flatten", "unflatten", "structure", "transpose", "all")
_OF_UPDATES = {"add": "add", "mul": "multiply", "min": "min", "max": "max", "update": "set"}

_OTHER_NAMES = {
    "minijax": {
        **{f"tree_{name}": f"minijax.tree.{name}" for name in _OF_TREES},
        "tree_multimap": "minijax.tree.map, which takes several trees",
        "partial": "functools.partial",
        "soft_pmap": "minijax.pmap",
        "abstract_arrays": "minijax.core.ShapedArray",
        "host_id": "minijax.process_index",
        "host_count": "minijax.process_count",
    },
    "minijax.ops": {
        "index": "x.at[index]",
        **{f"index_{old}": f"x.at[index].{new}(y)" for old, new in _OF_UPDATES.items()},
    },
    "minijax.lax": {"tie_in": "its second argument"},
    "minijax.numpy": {
        "bmm": "minijax.numpy.matmul",
        "cat": "minijax.numpy.concatenate",
        "clamp": "minijax.numpy.clip",
        "mm": "minijax.numpy.matmul",
        "normal": "minijax.random.normal(key, shape)",
        "rand": "minijax.random.uniform(key, shape)",
        "randn": "minijax.random.normal(key, shape)",
        "random": "minijax.random",
        "softmax": "minijax.nn.softmax",
        "relu": "minijax.nn.relu",
        "sigmoid": "minijax.nn.sigmoid",
        "tensor": "minijax.numpy.array",
        "unsqueeze": "minijax.numpy.expand_dims",
    },
}
"""Names of earlier versions and of other libraries, and what stands in their place."""


def _no_attribute(package: str, name: str) -> AttributeError:
    """The error of a name that a package does not have; Python proposes one like it."""
    text = f"module {package!r} has no attribute {name!r}"
    other = _OTHER_NAMES.get(package, {}).get(name)
    if other is not None:
        text += f": use {other}"
    return AttributeError(text, name=name, obj=sys.modules.get(package))


class Finder:
    """Finds our modules and jaxlib's MLIR dialects, which signals must not leave half loaded."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Returns the spec of Python's own finder, with a loader that signals cannot interrupt."""
        if not fullname.startswith((f"{ROOT}.", "jaxlib.mlir.")):
            if fullname == "jax" and f"{ROOT}.runtime.array" in sys.modules:
                importlib.import_module(f"{ROOT}.core.beside_jax")
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = whole(spec.loader.exec_module)  # type: ignore[method-assign]
        return spec


sys.meta_path.insert(0, Finder)


def exports(stub: str) -> dict[str, tuple[str, str]]:
    """The names that the text of a stub passes on, each with its module and its name there."""
    found = {shown: (module, name) for shown, module, name in _ALIAS.findall(stub)}
    for module, several, one in _IMPORT.findall(stub):
        for entry in (several or one).split(","):
            name, renamed, _ = entry.strip().partition(" as ")
            if renamed:
                found[name] = module, name
    return found


def loaded(package: str, name: str) -> Any:
    """What a package shows by a name, or None: if it has none, or has not loaded it."""
    value = getattr(sys.modules.get(package), "__dict__", {}).get(name)
    if value is None and name in homes_of.get(package, {}):
        home, original = homes_of[package][name]
        value = getattr(sys.modules.get(home), "__dict__", {}).get(original)
    return value


def shown(value: object) -> str | None:
    """What a notebook shows of a value: the `_repr_html_` of classes whose text is not all."""
    html: str | None = import_module(f"{ROOT}.explain.display.rich").html_of(value)
    return html


def module(name: str) -> Any:
    """A stand-in for a module, which is imported when one of its attributes is asked for.

    For what one function in a hundred programs needs:

        gzip = deferral.module("gzip")

    Of modules of the package type checkers should know more:

        if TYPE_CHECKING:
            from minijax.core import refs
        else:
            refs = deferral.module("minijax.core.refs")
    """
    return _Deferred(name)


class _Deferred(ModuleType):
    def __getattr__(self, name: str) -> Any:
        found = getattr(importlib.import_module(self.__name__), name)
        # Functions stay what they are; to find one again must cost no more than in a module.
        if isinstance(found, FunctionType):
            setattr(self, name, found)
        return found
