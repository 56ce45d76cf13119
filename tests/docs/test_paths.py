"""Every file that the documents, and the package itself, name exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# A decision is never edited: the files that it names are those of its day.
PAGES = [
    ROOT / "README.md",
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
