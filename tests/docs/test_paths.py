"""Every file that the documents, and the package itself, name exists where it is named."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# A decision is never edited: the files that it names are those of its day.
PAGES = [
    *(path for path in sorted(ROOT.glob("*.md")) if path.name != "CHANGELOG.md"),
    ROOT / "examples" / "README.md",
    *sorted(DOCS.glob("*.md")),
    *sorted((DOCS / "recipes").glob("*.md")),
    *sorted((DOCS / "course").glob("*.md")),
]
NAMED = re.compile(r"`([\w./-]+\.(?:pyi?|md|txt|h|cc|json|toml))`")
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


def places(page: Path, name: str) -> list[Path]:
    """Where a page may mean a file to be: paths begin at the root, at the package, or beside it."""
    return [ROOT / name, ROOT / "minijax" / name, page.parent / name]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_that_a_page_names_exist(page: Path) -> None:
    named = NAMED.findall(page.read_text(encoding="utf-8"))
    # What `make` writes into `out` is not there at first.
    kept = [name for name in named if not name.startswith("out/")]
    assert [name for name in kept if not any(p.exists() for p in places(page, name))] == []


@pytest.mark.parametrize(
    "page", [*PAGES, *sorted((DOCS / "decisions").glob("*.md"))], ids=lambda page: page.name
)
def test_links_of_a_page_lead_to_files(page: Path) -> None:
    linked = LINK.findall(page.read_text(encoding="utf-8"))
    assert [name for name in linked if not (page.parent / name).exists()] == []


def test_files_that_sources_name_exist() -> None:
    wrong = [
        (path.relative_to(ROOT).as_posix(), name)
        for path in sorted((ROOT / "minijax").rglob("*.py"))
        for name in re.findall(r"`(\w[\w/]*\.pyi?)`", path.read_text(encoding="utf-8"))
        if not any(place.exists() for place in places(path, name))
    ]
    assert wrong == []


# What a checkout has and an installed package has not.
OF_THE_CHECKOUT = re.compile(
    r"\b(?:benchmarks|docs|examples|tests|tools|web)/\w|\b(?:CHANGELOG|CONTRIBUTING|README|SECURITY)\b|Makefile"
)


def texts(path: Path) -> list[tuple[int, str]]:
    """Returns the strings of a file with their lines, without the docstring of the module.

    They are what errors, reports and `help` print. Docstrings of modules are for developers.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    statements = tree.body[1:] if ast.get_docstring(tree) is not None else tree.body
    nodes = [node for statement in statements for node in ast.walk(statement)]
    return [
        (node.lineno, node.value)
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def test_texts_of_the_package_name_no_file_of_the_checkout() -> None:
    paths = [p for pattern in ("*.py", "*.pyi") for p in (ROOT / "minijax").rglob(pattern)]
    named = [
        (path.relative_to(ROOT).as_posix(), line, text)
        for path in sorted(paths)
        for line, text in texts(path)
        if OF_THE_CHECKOUT.search(text)
    ]
    assert named == []
    # The commands print the docstrings of their modules.
    commands = sorted((ROOT / "minijax").rglob("__main__.py"))
    assert [p for p in commands if OF_THE_CHECKOUT.search(p.read_text(encoding="utf-8"))] == []


def test_texts_are_found_wherever_they_are(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('"""See docs/a.md."""\n\ndef f():\n    """B."""\n    return f"c {1} d"\n')
    assert texts(path) == [(4, "B."), (5, "c "), (5, " d")]
    assert OF_THE_CHECKOUT.search("see docs/glossary.md")
    assert not OF_THE_CHECKOUT.search("see core/trace.py")
