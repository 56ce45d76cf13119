"""Counts what a reader of minijax may open: `python -m tools.size`, or `make size`.

Input: the root of a checkout.  Output: the lines of each room of the package beside the room's
budget, then figures about the reading path and the types beside their limits.  The architecture
test reports a room above its budget, a room without one, and a figure above its limit.  The
package is not imported: everything is read from the source text.

Each line that is not blank is counted once, as code, as a comment, or as a part of a docstring.  A
comment that follows code on the same line does not count.  Stubs count like other files.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

PACKAGE = "minijax"
READING_PATH = Path("docs/reading.md")

OTHER_FOLDERS = ("tests", "tools", "examples", "benchmarks")
"""Folders whose Python files `make size` counts too, without budgets."""

ROOT_MODULES = "*.py"
"""The name under which the modules beside the rooms are counted together."""

PLACEMENT = re.compile(r"mesh|sharding|device|replica|memory.?kind|\bvma\b", re.IGNORECASE)
"""Matches lines that mention where values are."""

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


class LineCounts(NamedTuple):
    """Numbers of lines that are not blank."""

    code: int
    comments: int
    docstrings: int


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
    def docstrings(self) -> tuple[ast.Expr, ...]:
        """The strings that are statements: docstrings, also those below constants."""
        return tuple(
            node
            for node in self.nodes
            if isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        )

    @functools.cached_property
    def line_counts(self) -> LineCounts:
        """The lines of code, of comments and of docstrings."""
        text = {number: line.strip() for number, line in enumerate(self.text.splitlines(), 1)}
        docstrings = {number for node in self.docstrings for number in lines_of(node)}
        # All lines of any other string are code, also blank ones and those that begin with "#".
        code = {
            number
            for node in self.nodes
            if isinstance(node, ast.JoinedStr)
            or (isinstance(node, ast.Constant) and isinstance(node.value, str))
            for number in lines_of(node)
        } - docstrings
        comments: set[int] = set()
        for number, line in text.items():
            if not line or number in docstrings or number in code:
                continue
            (comments if line.startswith("#") else code).add(number)
        return LineCounts(len(code), len(comments), sum(bool(text[n]) for n in docstrings))

    @property
    def code_lines(self) -> int:
        """The number of lines of code."""
        return self.line_counts.code

    @property
    def placement_lines(self) -> list[str]:
        """The lines, of code or not, that mention where values are."""
        return [line for line in self.text.splitlines() if PLACEMENT.search(line)]


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


class Room(NamedTuple):
    """What a reader finds in a folder of the package, or in the modules beside the folders."""

    name: str
    files: int
    lines: LineCounts


def rooms(root: Path) -> list[Room]:
    """Counts the files and lines of each room of a checkout, the largest room first."""
    package = root / PACKAGE
    files: dict[str, list[ParsedFile]] = {}
    for path in _python_files(package):
        name = ROOT_MODULES if path.parent == package else path.relative_to(package).parts[0]
        files.setdefault(name, []).append(parsed(root, path))
    counted = [_room(name, sources) for name, sources in files.items()]
    return sorted(counted, key=lambda room: (-room.lines.code, room.name))


def _python_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py*") if path.suffix in {".py", ".pyi"})


def _room(name: str, sources: Sequence[ParsedFile]) -> Room:
    lines = [source.line_counts for source in sources]
    totals = (sum(counts[kind] for counts in lines) for kind in range(3))
    return Room(name, len(sources), LineCounts(*totals))


class Budget(NamedTuple):
    """How many lines of code a room may have, and what they give the reader."""

    lines: int
    reason: str


BUDGETS = {
    "core": Budget(6_100, "the language: types, jaxprs, primitives, the current trace"),
    "sharding": Budget(1_800, "meshes, shardings, and their rules in types"),
    "runtime": Budget(4_400, "devices, arrays, running programs, several processes"),
    "interpreters": Budget(3_500, "derivatives, batches and other transformations of jaxprs"),
    "lowering": Budget(3_600, "from jaxprs to programs that run"),
    "lax": Budget(17_200, "every primitive with all its rules, in one class each"),
    "transforms": Budget(8_200, "jit, grad, vmap, shard_map, pmap, checkpoint"),
    "numpy": Budget(9_300, "NumPy's functions"),
    "random": Budget(1_900, "keys, and samples of distributions"),
    "nn": Budget(900, "activations, initializers and attention"),
    "scipy": Budget(5_600, "SciPy's functions: linear algebra, special functions, statistics"),
    "extend": Budget(900, "primitives and machine code of a user's own"),
    "export": Budget(3_200, "programs as files, for any size of array"),
    "explain": Budget(7_600, "what a program does, what XLA made of it, and why it was compiled"),
    "testing": Budget(5_000, "models and random programs with which users test their own code"),
    "experimental": Budget(4_800, "sparse arrays, ODEs, Pallas kernels, xmap"),
    "as_jax": Budget(1_000, "libraries written for JAX run unmodified"),
    "example_libraries": Budget(200, "the import paths of JAX's example libraries"),
    ROOT_MODULES: Budget(900, "public modules such as `debug`, `tree` and `image`"),
}
"""The budget of each room: its size in November 2026 and at least 5 % more (decision 0047).

A decision record raises a budget, and says what the reader gets for it."""


def budget_problems(root: Path) -> Iterator[str]:
    """Yields a sentence for each room that is above its budget or has none."""
    for room in rooms(root):
        path = f"{PACKAGE}/{room.name}"
        if room.name not in BUDGETS:
            yield f"{path} has no budget; add one to BUDGETS, with a decision record"
        elif room.lines.code > BUDGETS[room.name].lines:
            budget = BUDGETS[room.name].lines
            yield (
                f"{path} has {room.lines.code:,} lines of code, above its budget of {budget:,}; "
                "a decision record may raise it"
            )


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


def _mentions_of_placement(modules: list[Module] | None) -> int | None:
    if modules is None:
        return None
    return sum(len(module.source.placement_lines) for module in modules)


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
    Figure("files of the reading path", 12, 12, lambda package: _count(package.reading_path)),
    Figure(
        "lines of code of the reading path",
        3_000,
        3_000,
        lambda package: _lines(package.reading_path),
    ),
    Figure(
        "lines of the reading path that mention placement",
        60,
        60,
        lambda package: _mentions_of_placement(package.reading_path),
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
    """Returns the tables of rooms, of other folders and of figures of a checkout."""
    return "\n".join([*_table_of_rooms(root), "", *_table_of_figures(root)])


def _table_of_rooms(root: Path) -> Iterator[str]:
    titles = f"{'files':>6}{'code':>8}{'comments':>10}{'docstrings':>12}{'budget':>8}"
    yield f"{f'room of {PACKAGE}/':<20}{titles}  what the reader gets"
    for room in rooms(root):
        name = room.name if room.name == ROOT_MODULES else f"{room.name}/"
        budget = BUDGETS.get(room.name)
        limit, reason = ("none", "") if budget is None else (f"{budget.lines:,}", budget.reason)
        yield _row(name, room, limit, reason)
    total = sum(budget.lines for budget in BUDGETS.values())
    yield _row("total", _whole(root, PACKAGE), f"{total:,}")
    yield ""
    yield f"{'beside the package':<20}{titles}"
    for folder in OTHER_FOLDERS:
        yield _row(f"{folder}/", _whole(root, folder), "none")


def _whole(root: Path, folder: str) -> Room:
    return _room(folder, [parsed(root, path) for path in _python_files(root / folder)])


def _row(title: str, room: Room, budget: str, reason: str = "") -> str:
    code, comments, docstrings = room.lines
    counts = f"{room.files:>6,}{code:>8,}{comments:>10,}{docstrings:>12,}{budget:>8}"
    return f"{title:<20}{counts}  {reason}".rstrip()


def _table_of_figures(root: Path) -> Iterator[str]:
    package = Package(root)
    yield f"{'':<50}{'now':>8}{'aim':>8}{'limit':>8}"
    for figure in FIGURES:
        value = figure.measure(package)
        shown = "none" if value is None else f"{value:,}"
        yield f"{figure.what:<50}{shown:>8}{figure.goal:>8,}{figure.limit:>8,}"


def main() -> int:
    """Prints the tables for the checkout that this file lies in."""
    print(report(Path(__file__).resolve().parents[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
