"""The rules of the house, read off the source text: layers, sizes, names, docstrings.

Input: the root of a checkout.  Output: a `Violation` for every breach, with its file and line.
Nothing of the package is imported, so that a tree that does not run yet can be checked too:
`python -m tools.architecture` prints what it finds.

The layers of the package are the table `ROOMS` in `tools/rooms.py`.  A module imports its own room
and lower layers; `minijax/*.py` and every `__init__.py` are façades, which re-export and hold no
logic.
"""

from __future__ import annotations

import ast
import functools
import gc
import graphlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tools import size
from tools.rooms import (
    FACADE,
    MAX_ARROWS,
    MAX_UPWARD,
    OUTSIDE_OF_MODULE,
    ROOMS,
    UPWARD,
    room_of_module,
    top_room,
)

PACKAGE = "minijax"

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
MAX_CLASS_LINES = 200

LARGER_FILES = {
    "tests/core/test_tree.py": 563,
    "tests/lax/collectives/test_errors.py": 588,
}
"""Files that wait for being divided, with the lines of code that they may have until then."""


DYNAMIC_IMPORTERS = frozenset(
    {
        "minijax.as_jax.modules",
        "minijax.core.deferral",
        "minijax.runtime.call_targets",
    }
)
"""Modules that import within a changed environment, or find at run time what to import."""

ALIASES = frozenset({"np", "hlo"})
"""The only names that an imported module may take besides its own."""

HOMELESS_NAMES = frozenset({"util", "utils", "helper", "helpers", "common", "misc"})
PUBLIC_PATHS = frozenset(
    {
        "flatten_util",
        "mesh_utils",
        "multihost_utils",
        "test_util",
        "tree_util",
        "ad_util",
        "api_util",
        "linear_util",
        "source_info_util",
        "traceback_util",
    }
)
"""Module names owed to JAX's public paths, whatever we think of them."""

DOCUMENTED_ROOMS = frozenset(
    {"lax", "transforms", "numpy", "random", "nn", "scipy", "image", "ops"}
)

# The one-letter classes keep a pattern from matching the line that defines it.
FOREIGN_TEXT = {
    "a path of one machine": re.compile(r"(?<![\w.>])/(?:[w]ork|[r]oot|[h]ome|[U]sers|[o]pt)/\w"),
    "a package registry": re.compile(r"[p]ypi\b|[p]ythonhosted|[c]onda\.anaconda", re.IGNORECASE),
    "a document outside the project": re.compile(
        r"\b[d]esign\.md|\b[s]tyle\.md|\bspec/\w+\.md|[j]axlib-facts|\b[d]esign D\d|\.md [§]"
    ),
}
"""What the text of the project never mentions: it stands alone."""

_TEXT_SUFFIXES = frozenset(
    {
        "",
        ".cc",
        ".cfg",
        ".ini",
        ".jaxpr",
        ".json",
        ".md",
        ".mlir",
        ".py",
        ".pyi",
        ".sh",
        ".toml",
        ".txt",
        ".yaml",
        ".yml",
    }
)
_HIDDEN_BUT_WRITTEN = frozenset({".ci", ".github"})
_GENERATED_FOLDERS = frozenset({"__pycache__", "build", "dist", "out"})


class Violation(NamedTuple):
    """One breach of one rule."""

    path: str
    line: int
    problem: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.problem}"


class Import(NamedTuple):
    """One imported thing: `target` is its full dotted name, `bound` the name it gets."""

    node: ast.stmt
    target: str
    bound: str
    is_renamed: bool


class Source:
    """One parsed Python file of a checkout."""

    def __init__(self, root: Path, path: Path) -> None:
        relative = path.relative_to(root)
        self.path = str(relative)
        self.stem = path.stem
        self.parsed = size.parsed(root, path)
        self.tree = self.parsed.tree
        self.nodes = self.parsed.nodes
        parts = relative.with_suffix("").parts
        self.module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def in_package(self) -> bool:
        """Whether the file belongs to the package, not to its tests or programs."""
        return _is_within(self.module, PACKAGE)

    @property
    def is_facade(self) -> bool:
        """Whether the file may only re-export."""
        if self.stem == "__init__":
            return self.in_package
        return self.in_package and self.module.count(".") == 1 and not self.room

    @property
    def is_published(self) -> bool:
        """Returns whether the file is a public module without code: all its names are public."""
        return "\ndeferral.publish(globals())" in self.parsed.text

    @functools.cached_property
    def _lines_for_type_checkers(self) -> frozenset[int]:
        return frozenset(
            line
            for node in self.nodes
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for statement in node.body
            for line in size.lines_of(statement)
        )

    def is_for_type_checkers(self, node: ast.stmt) -> bool:
        """Returns whether a statement stands under `if TYPE_CHECKING:`."""
        return node.lineno in self._lines_for_type_checkers

    @property
    def room(self) -> str:
        """The room that the file belongs to; empty for a façade."""
        return room_of_module(self.module)

    @functools.cached_property
    def nodes_for_types(self) -> frozenset[ast.stmt]:
        """The statements that only type checkers read: under TYPE_CHECKING, without an else.

        With an else, the block names a module that `deferral` imports when it is first used.
        """
        return frozenset(
            statement
            for node in self.nodes
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for statement in node.body
            if not node.orelse
        )

    @functools.cached_property
    def imports(self) -> list[Import]:
        """Everything that any statement of the file imports."""
        found = []
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    bound = alias.asname or alias.name.partition(".")[0]
                    renamed = alias.asname is not None
                    found.append(Import(node, alias.name, bound, renamed))
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    target = f"{'.' * node.level}{node.module or ''}.{alias.name}"
                    bound = alias.asname or alias.name
                    found.append(Import(node, target, bound, bound != alias.name))
        return found

    def violation(self, node: ast.AST, problem: str) -> Violation:
        """A violation at the line of `node`."""
        return Violation(self.path, getattr(node, "lineno", 1), problem)


def project_files(root: Path) -> list[Path]:
    """Every file of the checkout that people write: hidden and generated folders are left out."""
    found: list[Path] = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(
            name
            for name in subfolders
            if name not in _GENERATED_FOLDERS
            and (name in _HIDDEN_BUT_WRITTEN or not name.startswith("."))
        )
        # In a second worktree `.git` is a file that says where the first one is.
        found.extend(Path(folder, name) for name in sorted(names) if name != ".git")
    return found


@functools.cache
def sources(root: Path) -> tuple[Source, ...]:
    """Returns all Python files of the checkout, parsed once."""
    # 1.6 million nodes survive, and the garbage collector would traverse them again each time
    # their number grew by a quarter: parsing took 27 s with it, and takes 5 s without.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return tuple(Source(root, path) for path in project_files(root) if path.suffix == ".py")
    finally:
        if was_enabled:
            gc.enable()


def package_sources(root: Path) -> list[Source]:
    """The Python files of the package alone."""
    return [source for source in sources(root) if source.in_package]


def _is_within(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(prefix + ".")


def check_layers(root: Path) -> Iterator[Violation]:
    """A module imports its own room and lower layers only."""
    for source in package_sources(root):
        own = ROOMS.get(source.room, FACADE)
        for imported in source.imports:
            if not _is_within(imported.target, PACKAGE):
                continue
            room = room_of_module(imported.target)
            layer = ROOMS.get(room, FACADE).layer
            if layer >= own.layer and room != source.room:
                problem = f"{source.module} imports {imported.target}, which is no lower layer"
                yield source.violation(imported.node, problem)


def check_outside_imports(root: Path) -> Iterator[Violation]:
    """A room imports from outside the package what its row of `ROOMS` names."""
    for source in package_sources(root):
        room = ROOMS.get(source.room, FACADE)
        allowed = room.outside + OUTSIDE_OF_MODULE.get(source.module, ())
        for imported in source.imports:
            target = imported.target
            top = target.partition(".")[0]
            if top == PACKAGE or top in sys.stdlib_module_names:
                continue
            if not any(_is_within(target, prefix) for prefix in allowed):
                yield source.violation(imported.node, f"{source.module} may not import {target}")


def check_cycles(root: Path) -> Iterator[Violation]:
    """No module imports itself by way of others; imports for annotations alone never run."""
    files = {source.module: source for source in package_sources(root)}
    graph: dict[str, set[str]] = {}
    for module, source in files.items():
        targets = (
            _module_of_target(imported.target, files)
            for imported in source.imports
            if imported.node not in source.nodes_for_types
        )
        graph[module] = {target for target in targets if target and target != module}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        cycle = error.args[1]
        yield Violation(files[cycle[0]].path, 1, "import cycle: " + " < ".join(cycle))


def _module_of_target(target: str, files: dict[str, Source]) -> str:
    """The module that an import runs: the name itself, or the module that the name lies in."""
    if target in files:
        return target
    parent = target.rpartition(".")[0]
    return parent if parent in files else ""


class Arrow(NamedTuple):
    """One import that crosses from a module of a room to another room."""

    source: Source
    node: ast.AST
    target: str
    is_deferred: bool

    @property
    def rooms(self) -> tuple[str, str]:
        """The top-level rooms that the import leads from and to."""
        return top_room(self.source.room), top_room(room_of_module(self.target))


def arrows(root: Path) -> Iterator[Arrow]:
    """Yields the imports between top-level rooms, deferred ones included.

    Façades and public modules do not count, on either side: they re-export.  Imports that only type
    checkers see do not count either.
    """
    for source in package_sources(root):
        if source.is_facade or source.is_published:
            continue
        imports = [
            Arrow(source, imported.node, imported.target, False)
            for imported in source.imports
            if not source.is_for_type_checkers(imported.node)
        ]
        for arrow in (*imports, *_deferred_imports(source)):
            room, other = arrow.rooms
            if _is_within(arrow.target, PACKAGE) and room and other and room != other:
                yield arrow


def _deferred_imports(source: Source) -> Iterator[Arrow]:
    """Yields the calls that import a module whose name is a literal.

    These are `deferral.module`, and `import_module` of any origin.
    """
    for node in source.nodes:
        match node:
            case ast.Call(func=function, args=[name, *_]):
                called = ast.unparse(function).rpartition(".")
                target = _literal_module(name)
                if (
                    called[2] == "import_module" or called[::2] == ("deferral", "module")
                ) and target:
                    yield Arrow(source, node, target, True)


def _literal_module(name: ast.expr) -> str:
    """Returns the module that an expression names; `{ROOT}` in a literal stands for the package."""
    match name:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(
            values=[ast.FormattedValue(value=ast.Name("ROOT")), ast.Constant(value=str(rest))]
        ):
            return f"{PACKAGE}{rest!s}"
    return ""


def check_arrows(root: Path) -> Iterator[Violation]:
    """The rooms import few others, and deferred imports of a higher layer are listed."""
    found = list(arrows(root))
    pairs = {arrow.rooms for arrow in found}
    if len(pairs) > MAX_ARROWS:
        problem = f"arrows between rooms: {len(pairs)}, at most {MAX_ARROWS}"
        yield Violation("tools/rooms.py", 1, problem)
    if len(UPWARD) > MAX_UPWARD:
        problem = f"imports in UPWARD: {len(UPWARD)}, at most {MAX_UPWARD}"
        yield Violation("tools/rooms.py", 1, problem)
    upward = {
        (arrow.source.module, arrow.target): arrow
        for arrow in found
        if arrow.is_deferred
        and ROOMS[room_of_module(arrow.target)].layer >= ROOMS[arrow.source.room].layer
    }
    for key, arrow in upward.items():
        if key not in UPWARD:
            problem = f"{key[0]} defers {key[1]}, which is no lower layer"
            yield arrow.source.violation(arrow.node, problem)
    for module, target in UPWARD.keys() - upward.keys():
        yield Violation("tools/rooms.py", 1, f"{module} no longer defers {target}")


def check_jax_is_not_imported(root: Path) -> Iterator[Violation]:
    """Neither the package nor its tests and examples import JAX; the benchmarks compare with it.

    In examples with packages, too, `jax` means minijax.
    """
    for source in sources(root):
        if any(_is_within(source.module, x) for x in ("benchmarks", "examples.packages")):
            continue
        for imported in source.imports:
            if _is_within(imported.target, "jax"):
                yield source.violation(imported.node, f"imports {imported.target}")


def check_imports_are_at_the_top(root: Path) -> Iterator[Violation]:
    """No function imports anything: an import inside one hides a cycle."""
    for source in package_sources(root):
        functions = [
            size.lines_of(node)
            for node in source.nodes
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        for node in source.nodes:
            if isinstance(node, ast.Import | ast.ImportFrom) and any(
                node.lineno in lines for lines in functions
            ):
                yield source.violation(node, "import inside a function")
        if source.module not in DYNAMIC_IMPORTERS:
            yield from _dynamic_imports(source)


def _dynamic_imports(source: Source) -> Iterator[Violation]:
    for node in source.nodes:
        match node:
            case ast.Call(
                func=ast.Name("__import__" | "import_module") | ast.Attribute(attr="import_module")
            ):
                yield source.violation(node, f"{ast.unparse(node.func)} hides an import")


def check_facades(root: Path) -> Iterator[Violation]:
    """`minijax/*.py`, every `__init__.py` and every public module re-export and hold no logic."""
    for source in package_sources(root):
        if not (source.is_facade or source.is_published):
            continue
        for node in source.tree.body:
            if not (_is_facade_statement(node) or _is_hook(node)):
                yield source.violation(node, f"a façade holds no {type(node).__name__}")


def check_stubs(root: Path) -> Iterator[Violation]:
    """Every stub belongs to the module beside it, which loads the stub's names."""
    attached = {s.path for s in package_sources(root) if "deferral.attach(" in s.parsed.text}
    for path in project_files(root):
        stub = str(path.relative_to(root))
        if path.suffix == ".pyi" and stub.removesuffix("i") not in attached:
            yield Violation(stub, 1, "no module beside it attaches the stub")


def _is_hook(node: ast.stmt) -> bool:
    """Whether a statement says what completion shows, or loads on demand what few programs need."""
    match node:
        case ast.FunctionDef(name="__dir__"):
            return True
        case ast.If():
            return ast.unparse(node.test) in {"TYPE_CHECKING", "__name__ == '__main__'"}
        case ast.Assign(value=ast.Call(func=function)) | ast.Expr(value=ast.Call(func=function)):
            return ast.unparse(function).startswith("deferral.")
    return False


def _is_facade_statement(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return node.value is not None and _is_plain(node.value)
    if isinstance(node, ast.AugAssign):
        # A façade may pass on all the names of another one.
        return ast.unparse(node.target) == "__all__" and _is_plain(node.value)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Import | ast.ImportFrom | ast.Delete)


def _is_plain(value: ast.expr) -> bool:
    """Whether an expression only names things: constants, names, attributes, displays of them."""
    plain = ast.Constant | ast.Name | ast.Attribute | ast.List | ast.Tuple | ast.Dict | ast.Starred
    return all(isinstance(node, plain) for node in ast.walk(value) if isinstance(node, ast.expr))


def check_sizes(root: Path) -> Iterator[Violation]:
    """Files, functions and classes stay short; docstrings do not count."""
    for source in sources(root):
        limit = LARGER_FILES.get(source.path, MAX_FILE_LINES)
        lines = source.parsed.code_lines
        if lines > limit:
            yield Violation(source.path, 1, f"{lines} lines of code, at most {limit}")
        for node in source.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                limit, kind = MAX_FUNCTION_LINES, "function"
            elif isinstance(node, ast.ClassDef):
                limit, kind = MAX_CLASS_LINES, "class"
            else:
                continue
            lines = _code_lines(node, source)
            if lines > limit:
                yield source.violation(
                    node, f"{kind} {node.name} has {lines} lines, at most {limit}"
                )


def check_splats(root: Path) -> Iterator[Violation]:
    """Elements and arguments are written one by one, not as tuples that are unpacked in place."""
    for source in sources(root):
        for node in source.nodes:
            match node:
                case ast.Starred(value=ast.Tuple() | ast.List()):
                    problem = "unpacks a literal: write its elements without `*(...)`"
                    yield source.violation(node, problem)


_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _code_lines(definition: _Definition, source: Source) -> int:
    """The lines from `def` or `class` to the last one, without docstrings at any depth."""
    own = size.lines_of(definition)
    docstrings = (size.lines_of(node) for node in source.parsed.docstrings if node.lineno in own)
    return len(own) - sum(map(len, docstrings))


def check_file_names(root: Path) -> Iterator[Violation]:
    """No file is called after having no subject."""
    for source in sources(root):
        words = set(source.stem.strip("_").split("_"))
        if words & HOMELESS_NAMES and source.stem not in PUBLIC_PATHS:
            yield Violation(source.path, 1, f"a file called {source.stem} has no subject")


def check_private_names(root: Path) -> Iterator[Violation]:
    """What starts with an underscore stays in its file."""
    modules = {source.module for source in sources(root)}
    for source in package_sources(root):
        bound = set()
        for imported in source.imports:
            if not _is_within(imported.target, PACKAGE):
                continue
            if imported.target in modules:
                bound.add(imported.bound)
            if _is_private(imported.target.rpartition(".")[2]):
                yield source.violation(imported.node, f"imports the private {imported.target}")
        for node in source.nodes:
            if not isinstance(node, ast.Attribute) or not _is_private(node.attr):
                continue
            if isinstance(node.value, ast.Name) and node.value.id in bound:
                yield source.violation(node, f"uses the private {ast.unparse(node)}")


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def check_module_aliases(root: Path) -> Iterator[Violation]:
    """Modules go by their own names, but for the few that everybody shortens alike.

    Where the name is taken, say by an argument called `shape`, the room goes first: `lax_shape`.
    """
    modules = {source.module for source in sources(root)}
    for source in package_sources(root):
        if source.is_facade:
            continue
        for imported in source.imports:
            is_module = (
                isinstance(imported.node, ast.Import)
                or imported.target in modules
                or _is_within(imported.target, "jaxlib.mlir")
            )
            room, _, name = imported.target.removeprefix("minijax.").rpartition(".")
            # `lax_shape`: a module is told apart from an argument or a function of its name.
            told_apart = imported.bound == f"{room}_{name}"
            if (
                imported.is_renamed
                and is_module
                and not told_apart
                and (imported.bound not in ALIASES)
            ):
                problem = f"{imported.target} is renamed to {imported.bound}"
                yield source.violation(imported.node, problem)


def check_docstrings(root: Path) -> Iterator[Violation]:
    """Public functions and classes of the rooms that users see say what they do."""
    for source in package_sources(root):
        if source.room not in DOCUMENTED_ROOMS:
            continue
        for node in source.tree.body:
            if not isinstance(node, _Definition) or node.name.startswith("_"):
                continue
            if ast.get_docstring(node) is None and not _is_overload(node):
                yield source.violation(node, f"{node.name} has no docstring")


def _is_overload(node: _Definition) -> bool:
    return any(ast.unparse(decorator).endswith("overload") for decorator in node.decorator_list)


def check_figures(root: Path) -> Iterator[Violation]:
    """Checks that the figures of `tools/size.py` are at most their limits."""
    for figure, value in size.breaches(root):
        problem = f"{figure.what}: {value:,}, at most {figure.limit:,}"
        yield Violation("tools/size.py", 1, problem)


def check_budgets(root: Path) -> Iterator[Violation]:
    """Checks that each room has a budget of lines of code, and keeps it."""
    for problem in size.budget_problems(root):
        yield Violation("tools/size.py", 1, problem)


def check_text(root: Path) -> Iterator[Violation]:
    """The project's text speaks of the project alone."""
    for path in project_files(root):
        if path.suffix not in _TEXT_SUFFIXES or path.name.startswith(".features"):
            continue
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        for number, line in enumerate(lines, 1):
            for what, pattern in FOREIGN_TEXT.items():
                if pattern.search(line):
                    name = str(path.relative_to(root))
                    yield Violation(name, number, f"mentions {what}: {line.strip()[:80]}")


CHECKS: tuple[Callable[[Path], Iterator[Violation]], ...] = (
    check_layers,
    check_outside_imports,
    check_cycles,
    check_arrows,
    check_jax_is_not_imported,
    check_imports_are_at_the_top,
    check_facades,
    check_stubs,
    check_sizes,
    check_splats,
    check_file_names,
    check_private_names,
    check_module_aliases,
    check_docstrings,
    check_figures,
    check_budgets,
    check_text,
)


def main() -> int:
    """Prints every violation of the checkout that this file lies in."""
    root = Path(__file__).resolve().parents[1]
    found = 0
    for check in CHECKS:
        for violation in sorted(check(root)):
            found += 1
            print(f"{violation}  [{check.__name__}]")
    pairs = {arrow.rooms for arrow in arrows(root)}
    print(f"{len(pairs)} arrows between rooms, at most {MAX_ARROWS}; {found} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
