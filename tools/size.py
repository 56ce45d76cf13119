"""What a reader of minijax has to face, counted: `python -m tools.size`, or `make size`.

Input: the root of a checkout.  Output: figures, printed beside what is aimed at and beside the
limits that the architecture test holds.  Nothing of the package is imported: all is read off the
source text.

A line of code holds something other than a comment or a part of a docstring.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

PACKAGE = "minijax"
READING_PATH = Path("docs/reading.md")

ADDITIONS = frozenset({"as_jax", "experimental", "explain", "export"})
"""Rooms that no room below them imports, made after the limits of size; decision 0024."""

_FILE_NAME = re.compile(r"^\| \d+ \| \[`(\w+(?:/\w+)*\.py)`\]", re.MULTILINE)
"""A row of the page's table: a number, then the file."""


def _all_nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Returns the nodes of a tree in the order of `ast.walk`, in less than half of its time."""
    nodes = [tree]
    for node in nodes:  # the list grows while it is traversed
        # Not all attributes: libraries add references to parents, also to shared nodes like `Load`.
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                nodes.append(value)
            elif isinstance(value, list):
                nodes.extend(item for item in value if isinstance(item, ast.AST))
    return tuple(nodes)


class ParsedFile:
    """A Python file, read and parsed once for all that is asked about it.

    Attributes:
        text: what is in it.
        tree: its syntax.
        nodes: all nodes of the syntax.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text, name)
        self.nodes = _all_nodes(self.tree)

    @functools.cached_property
    def docstrings(self) -> tuple[ast.stmt, ...]:
        """The docstrings of the file, its classes and its functions."""
        documented = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        return tuple(
            node.body[0]
            for node in self.nodes
            if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None
        )

    @functools.cached_property
    def code_lines(self) -> int:
        """How many lines hold code."""
        lines = {
            number
            for number, line in enumerate(self.text.splitlines(), 1)
            if (stripped := line.strip()) and not stripped.startswith("#")
        }
        for node in self.nodes:
            # Lines of a string are code, whatever they look like.
            if isinstance(node, ast.JoinedStr) or (
                isinstance(node, ast.Constant) and isinstance(node.value, str)
            ):
                lines.update(lines_of(node))
        for docstring in self.docstrings:
            lines.difference_update(lines_of(docstring))
        return len(lines)


def lines_of(node: ast.expr | ast.stmt) -> range:
    """The numbers of the lines on which a node stands."""
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


@functools.cache
def parsed(root: Path, path: Path) -> ParsedFile:
    """A file of a checkout, parsed once."""
    return ParsedFile(path, str(path.relative_to(root)))


class Module(NamedTuple):
    """One file of the package."""

    path: str
    source: ParsedFile

    @property
    def lines(self) -> int:
        """How many of its lines hold code."""
        return self.source.code_lines

    @property
    def is_facade(self) -> bool:
        """Whether it is the face of a folder."""
        return self.path.endswith("__init__.py")

    @property
    def room(self) -> str:
        """The folder or the file in the package's own folder."""
        return self.path.split("/")[1]


class Package:
    """The files of the package in a checkout, by the names of their modules."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.modules: dict[str, Module] = {}
        for path in sorted((root / PACKAGE).rglob("*.py")):
            relative = path.relative_to(root)
            parts = relative.with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            self.modules[name] = Module(relative.as_posix(), parsed(root, path))

    def rooms(self) -> Counter[str]:
        """The lines of code of each room."""
        lines: Counter[str] = Counter()
        for module in self.modules.values():
            lines[module.room] += module.lines
        return lines

    def lines_without(self, rooms: Collection[str]) -> int:
        """The lines of code outside of some rooms."""
        return sum(module.lines for module in self.modules.values() if module.room not in rooms)

    def files(self) -> int:
        """How many files there are outside of additions."""
        return sum(module.room not in ADDITIONS for module in self.modules.values())

    @functools.cached_property
    def reading_path(self) -> list[Module] | None:
        """The files in the table of docs/reading.md; None if there is no such document."""
        document = self.root / READING_PATH
        if not document.exists():
            return None
        files = {module.path: module for module in self.modules.values()}
        named = _FILE_NAME.findall(document.read_text(encoding="utf-8"))
        paths = dict.fromkeys(f"{PACKAGE}/{name}" for name in named)
        return [files[path] for path in paths if path in files]

    def reached_from(self, name: str) -> list[Module]:
        """The files that importing a module runs, without façades."""
        seen: dict[str, Module] = {}
        todo = [name]
        while todo:
            one = todo.pop()
            if one not in seen and one in self.modules:
                seen[one] = self.modules[one]
                todo += [
                    target
                    for target in self._imports(self.modules[one].source.tree.body)
                    if target in self.modules and not self.modules[target].is_facade
                ]
        return list(seen.values())

    def imported_by(self, name: str) -> list[str]:
        """The modules that importing a module imports at once."""
        return list(self._imports(self.modules[name].source.tree.body))

    def _imports(self, statements: list[ast.stmt]) -> Iterator[str]:
        """The modules that statements at the top of a file import when they run."""
        for node in statements:
            if isinstance(node, ast.If):
                if "TYPE_CHECKING" not in ast.unparse(node.test):
                    yield from self._imports(node.body)
                yield from self._imports(node.orelse)
            elif isinstance(node, ast.Try):
                yield from self._imports(node.body)
            elif isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    yield full if full in self.modules else node.module

    def members(self, class_name: str, room: str) -> int | None:
        """How many attributes and public methods a class of a room declares."""
        for module in self.modules.values():
            for node in module.source.nodes if module.room == room else ():
                if isinstance(node, ast.ClassDef) and node.name == class_name:
                    return len({name for item in node.body for name in _members(item)})
        return None

    def share_of_any(self) -> float | None:
        """Returns the percentage of parameters whose type is `Any`, under any name."""
        found = []
        for name, module in self.modules.items():
            names = {"Any", *self.aliases_of_any[name]}
            for node in module.source.nodes:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                    types = [a.annotation for a in arguments if a.arg not in {"self", "cls"}]
                    found += [isinstance(t, ast.Name) and t.id in names for t in types]
        return round(100 * sum(found) / len(found), 1) if found else None

    @functools.cached_property
    def aliases_of_any(self) -> dict[str, frozenset[str]]:
        """The names that mean `Any` in each module, apart from `Any` itself.

        Four are left, which mirror public names of `jax.example_libraries`.
        """
        aliases: dict[str, frozenset[str]] = dict.fromkeys(self.modules, frozenset())
        while True:
            found = {name: self._aliases_in(name, aliases) for name in self.modules}
            if found == aliases:
                return found
            aliases = found

    def _aliases_in(self, name: str, aliases: Mapping[str, frozenset[str]]) -> frozenset[str]:
        """Returns the aliases of `Any` in a module, given those known in each module."""
        found: set[str] = set()
        meaning_any = {"Any", *aliases[name]}
        for node in self.modules[name].source.tree.body:
            if isinstance(node, ast.ImportFrom):
                known = aliases.get(node.module or "", frozenset())
                found.update(a.asname or a.name for a in node.names if a.name in known)
            elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Name):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if node.value.id in meaning_any:
                    found.update(ast.unparse(target) for target in targets)
        return frozenset(found)

    def uses_of_any(self) -> Counter[str]:
        """Counts the uses of `Any` in code and annotations: by its name, and by other names."""
        uses: Counter[str] = Counter()
        for name, module in self.modules.items():
            for node in module.source.nodes:
                if isinstance(node, ast.Name):
                    uses["explicit"] += node.id == "Any"
                    uses["aliased"] += node.id in self.aliases_of_any[name]
        return uses


def _members(item: ast.stmt) -> Iterator[str]:
    if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
        yield item.target.id
    elif isinstance(item, ast.Assign):
        yield from (target.id for target in item.targets if isinstance(target, ast.Name))
    elif isinstance(item, ast.FunctionDef) and not item.name.startswith("_"):
        yield item.name


def _lines(modules: list[Module] | None) -> int | None:
    return None if modules is None else sum(module.lines for module in modules)


def _count(modules: list[Module] | None) -> int | None:
    return None if modules is None else len(modules)


class Figure(NamedTuple):
    """One figure: what it counts, what is aimed at, and what the architecture test accepts.

    A limit follows the figure down, until it is what is aimed at.  A decision record alone raises
    it.
    """

    what: str
    goal: float
    limit: float
    measure: Callable[[Package], float | None]


FIGURES = (
    Figure(
        "lines of code, without testing/ and additions",
        60_900,
        60_900,
        lambda package: package.lines_without({"testing", *ADDITIONS}),
    ),
    Figure("files, without additions", 345, 345, Package.files),
    Figure("files of the reading path", 12, 12, lambda package: _count(package.reading_path)),
    Figure(
        "lines of code of the reading path",
        3_000,
        3_000,
        lambda package: _lines(package.reading_path),
    ),
    Figure(
        "files that importing interpreters/jvp.py reaches",
        20,
        20,
        lambda package: len(package.reached_from("minijax.interpreters.jvp")),
    ),
    Figure(
        "members of Primitive", 14, 14, lambda package: package.members("Primitive", room="core")
    ),
    Figure("per cent of Any among parameters", 6, 6.9, Package.share_of_any),
    Figure("uses of Any under other names", 4, 4, lambda package: package.uses_of_any()["aliased"]),
)


def breaches(root: Path) -> Iterator[tuple[Figure, float]]:
    """The figures of a checkout that are above their limits."""
    package = Package(root)
    for figure in FIGURES:
        value = figure.measure(package)
        if value is not None and value > figure.limit:
            yield figure, value


def report(root: Path) -> str:
    """All figures of a checkout as a table, then the lines of code of each room."""
    package = Package(root)
    lines = [f"{'':<50}{'now':>8}{'aim':>8}{'limit':>8}"]
    for figure in FIGURES:
        value = figure.measure(package)
        shown = "none" if value is None else f"{value:,}"
        lines.append(f"{figure.what:<50}{shown:>8}{figure.goal:>8,}{figure.limit:>8,}")
    rooms = package.rooms()
    files = Counter(module.room for module in package.modules.values())
    lines.append(f"\n{'room':<50}{'lines':>8}{'files':>8}")
    for room, count in rooms.most_common():
        mark = " (addition)" if room in ADDITIONS else ""
        lines.append(f"{room + mark:<50}{count:>8,}{files[room]:>8}")
    return "\n".join(lines)


def main() -> int:
    """Prints the table for the checkout that this file lies in."""
    print(report(Path(__file__).resolve().parents[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
