"""Folders and names of code that the documents mention in backticks exist.

`test_paths.py` checks names of files.  Nothing here lists paths or names: what exists is found in
the package, in the sources of the repository, and in Python.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import inspect
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import minijax
from tests.docs import public

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "minijax"
DOCS = ROOT / "docs"
DECISIONS = DOCS / "decisions"
PAGES = [
    *(page for page in sorted(ROOT.glob("*.md")) if page.name != "CHANGELOG.md"),
    ROOT / "examples" / "README.md",
    ROOT / "benchmarks" / "README.md",
    *sorted(DOCS.rglob("*.md")),
]
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())

FENCED = re.compile(r"^ *(`{3,}).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
IN_BACKTICKS = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
FOLDER = re.compile(r"[\w.-]+(?:/[\w.-]+)*/")
FILE = re.compile(r"[\w.-]+(?:/[\w.-]+)*\.(?:pyi?|md|toml|json|txt|cc|pth|yml|yaml)")
DOTTED = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\(.*\))?")
IN_SOURCES = re.compile(r"[A-Za-z_]\w*(?:\.\w+)+")


def prose(page: Path) -> str:
    """Returns the text of a page without code blocks.

    A decision is never edited.  The paragraphs above its first heading say what has changed since:
    that a later decision supersedes it, or which of its names are other ones today.
    """
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    if page.parent != DECISIONS:
        return text
    note, _, rest = text.partition("\n## ")
    if "Superseded by" in note and "the rest holds" not in note:
        return ""
    for name in IN_BACKTICKS.findall(note):
        rest = rest.replace(f"`{name}`", "")
    return rest


def ignored_folders(page: Path) -> set[str]:
    """Returns the names of folders that are generated, which git ignores."""
    lists = [path for path in (ROOT / ".gitignore", page.parent / ".gitignore") if path.exists()]
    return {Path(line).name for path in lists for line in path.read_text("utf-8").splitlines()}


def missing_folders(page: Path) -> Iterator[str]:
    """Yields the folders that a page mentions and that do not exist.

    A folder is relative to the root, the package, the page, or a folder that precedes it in the
    same line: `transforms/` has `jit/` and `pmap/`.
    """
    ignored = ignored_folders(page)
    for line in prose(page).splitlines():
        bases = [ROOT, PACKAGE, page.parent]
        for name in IN_BACKTICKS.findall(line):
            if not FOLDER.fullmatch(name):
                continue
            found = [base / name for base in bases if (base / name).is_dir()]
            bases += found
            if not found and not ignored.intersection(Path(name).parts):
                yield name


def missing_files(page: Path) -> Iterator[str]:
    """Yields the files with a folder in their path that a decision mentions and that do not exist.

    Files are moved after a decision, which is not edited: the name of the file has to exist.
    """
    for name in IN_BACKTICKS.findall(prose(page)):
        if FILE.fullmatch(name) and "/" in name and Path(name).name not in files():
            yield name


@cache
def files() -> frozenset[str]:
    """Returns the names of all files of the repository's folders with sources and documents."""
    folders = [ROOT / name for name in ("minijax", "tests", "tools", "benchmarks", "docs", "web")]
    found = {
        p.name for folder in folders for p in folder.rglob("*") if "node_modules" not in p.parts
    }
    return frozenset(found | {p.name for p in ROOT.iterdir()})


class Index:
    """What dotted names may mean.

    Attributes:
        values: modules by each end of their path, and classes, functions and primitives by name.
        members: the names of attributes of the classes that a module defines, by its name.
        sources: dotted names in Python files of the repository.
        variables: the first parts of these names.
        jax: the public names of JAX.
    """

    def __init__(self) -> None:
        self.values: dict[str, list[Any]] = defaultdict(list)
        self.members: dict[str, set[str]] = defaultdict(set)
        for path in public.every_module():
            self._add_module(path, importlib.import_module(path))
        # One of the modules has made `jax` mean minijax, for programs.
        minijax.as_jax.uninstall()
        for name in ("jax", "minijax"):
            self.values[name].append(minijax)
        self.values["jnp"].append(minijax.numpy)
        self.values["np"].append(importlib.import_module("numpy"))
        self.sources = frozenset(self._in_sources())
        self.variables = {name.partition(".")[0] for name in self.sources}
        record = json.loads((ROOT / "benchmarks" / "jax_api.json").read_text(encoding="utf-8"))
        self.jax = {
            ".".join(part for part in ("jax", path.strip("()"), name) if part)
            for path, names in record.items()
            for name in names
        }

    def _add_module(self, path: str, module: ModuleType) -> None:
        parts = path.split(".")
        for start in range(1, len(parts)):
            self.values[".".join(parts[start:])].append(module)
        for name, value in list(vars(module).items()):
            self.values[name].append(value)
            if inspect.isclass(value) and value.__module__ == path:
                for part in parts:
                    self.members[part] |= _attributes(value)

    @staticmethod
    def _in_sources() -> Iterator[str]:
        for folder in ("minijax", "tests", "tools", "benchmarks", "examples"):
            for path in (ROOT / folder).rglob("*.py*"):
                if path.suffix in (".py", ".pyi") and path != Path(__file__):
                    for name in IN_SOURCES.findall(path.read_text(encoding="utf-8")):
                        parts = name.split(".")
                        yield from (".".join(parts[:end]) for end in range(2, len(parts) + 1))

    def has(self, name: str, code: str = "") -> bool:
        """Returns whether a dotted name means something on a page with this code."""
        first, _, rest = name.partition(".")
        last = name.rpartition(".")[2]
        if name in self.sources or name in self.jax or name in code or self._resolves(name):
            return True
        if f"\n{first} = " not in code:
            if first in self.members:  # A value is called like its module, as `config`.
                return last in self.members[first]
            if first not in self.variables and len(first) > 1:
                return False
        return "." not in rest and any(last in names for names in self.members.values())

    def is_of_package(self, name: str) -> bool:
        """Returns whether a dotted name begins with a module or class of the package."""
        first = name.partition(".")[0]
        values = self.values.get(first, ())
        homes = (value.__module__ for value in values if inspect.isclass(value))
        return first in self.members or any(home.startswith("minijax.") for home in homes)

    def _resolves(self, name: str) -> bool:
        parts = name.split(".")
        for end in range(len(parts) - 1, 0, -1):
            start = ".".join(parts[:end])
            values = [*self.values.get(start, ()), *_of_python(start)]
            if any(_has_attributes(value, parts[end:]) for value in values):
                return True
        return False


def _of_python(name: str) -> list[Any]:
    """Returns the builtin of this name, and the installed module of this name."""
    found = [vars(builtins)[name]] if name in vars(builtins) else []
    if name.partition(".")[0] in sys.stdlib_module_names or name.startswith(("jaxlib", "numpy")):
        with contextlib.suppress(ImportError):
            found.append(importlib.import_module(name))
    return found


def _has_attributes(value: Any, names: list[str]) -> bool:
    for name in names[:-1]:
        value = getattr(value, name, None)
    return hasattr(value, names[-1]) or (inspect.isclass(value) and names[-1] in _attributes(value))


@cache
def _attributes(cls: type) -> frozenset[str]:
    """Returns the names of methods, fields, and attributes that methods assign."""
    found = set(dir(cls))
    for base in cls.__mro__:
        found.update(inspect.get_annotations(base))
        path = base.__module__
        if isinstance(path, str) and path.startswith("minijax."):
            file = Path(sys.modules[path].__file__ or "")
            found.update(re.findall(r"\bself\.(\w+)", file.read_text(encoding="utf-8")))
    return frozenset(found)


@pytest.fixture(scope="module")
def index() -> Index:
    return Index()


@each_page
def test_folders_that_a_page_mentions_exist(page: Path) -> None:
    assert list(missing_folders(page)) == []


@pytest.mark.parametrize("page", sorted(DECISIONS.glob("0*.md")), ids=lambda page: page.stem)
def test_files_that_a_decision_mentions_exist(page: Path) -> None:
    assert list(missing_files(page)) == [], "say below its title what they are called today"


@each_page
def test_names_that_a_page_mentions_exist(page: Path, index: Index) -> None:
    text = page.read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python(\n.*?)```", text, re.DOTALL))
    names = [
        match[1] for name in IN_BACKTICKS.findall(prose(page)) if (match := DOTTED.fullmatch(name))
    ]
    if page.parent == DECISIONS:
        # Records also name what other programs and files contain.
        names = [name for name in names if index.is_of_package(name)]
    assert [n for n in names if not FILE.fullmatch(n) and not index.has(n, code)] == []


@pytest.mark.parametrize(
    ("name", "exists"),
    [
        ("lax.psum", True),
        ("deferral.attach", True),
        ("core.deferral.attach", True),
        ("JitFunction.signature", True),
        ("Executable.returns_parts", True),
        ("x.block_until_ready", True),
        ("ctx.avals_in", True),
        ("stablehlo.add", True),
        ("functools.lru_cache", True),
        ("jax.errors.JAXTypeError", True),
        ("JitFunction.look_up_programs", False),
        ("deferral.attach_all", False),
        ("lax.sinc", False),
        ("no_such_module.function", False),
        ("x.no_such_method", False),
        ("removed_module.append", False),
    ],
)
def test_names_that_exist_are_found(name: str, exists: bool, index: Index) -> None:
    assert index.has(name) == exists


def test_missing_folders_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "`core/` `lax/` `collectives/`\n`collectives/` `nowhere/at_all/` `out/pages/`\n"
    )
    assert list(missing_folders(page)) == ["collectives/", "nowhere/at_all/"]
