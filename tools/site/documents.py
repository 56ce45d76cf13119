"""The documents of the checkout, as Sphinx is to read them.

They lie as in the checkout, so that their links hold; README is the first page, and gets the
contents of the site.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]

# The other documents of this folder are guides.
_ABOUT_THE_COMPILER = (
    "where_is_what",
    "reading",
    "architecture",
    "decisions/README",
    "differences",
    "performance",
    "reliability",
    "mutants",
    "features",
)
_GUIDES_FIRST = ("page", "sharding", "collectives")
_LESSONS_BEFORE_THE_LECTURE = 4
_TO_README = re.compile(r"(\]\((?:\.\./)*)README\.md(?=[)#])")


def copied(folder: Path) -> Iterator[Path]:
    """Copies the documents, and what they show, into a folder; the documents that are there then.

    Args:
        folder: what Sphinx is to read.
    """
    for path in sorted((_ROOT / "docs").rglob("*")):
        if path.is_file() and "static" not in path.parts and "__pycache__" not in path.parts:
            yield _copied(path, folder)
    for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"):
        yield _copied(_ROOT / name, folder)
    for path in sorted((_ROOT / "examples").glob("*.*")):
        if path.suffix in {".py", ".cc"}:
            yield _copied(path, folder)
    readme = (_ROOT / "README.md").read_text(encoding="utf-8")
    yield from written(folder, [("index", f"{readme}\n{contents()}")])


def _copied(path: Path, folder: Path) -> Path:
    target = folder / path.relative_to(_ROOT)
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix != ".md":
        shutil.copy2(path, target)
        return target
    text = path.read_text(encoding="utf-8")
    if path == _ROOT / "docs" / "decisions" / "README.md":
        text = f"{text}\n{_toctree(['[0-9]*'])}"
    inside_of_docs = path.parent != _ROOT / "docs" / "decisions"
    _write(target, _TO_README.sub(_to_index, text) if inside_of_docs else text)
    return target


def _to_index(found: re.Match[str]) -> str:
    """README of the checkout is `index` of the site; those of folders keep their names."""
    return f"{found[1]}index.md" if "../" in found[1] else found[0]


def written(folder: Path, pages: Iterable[tuple[str, str]]) -> Iterator[Path]:
    """Writes pages, leaves those that are as they were, and says which are there.

    Args:
        folder: where to.
        pages: names and texts.
    """
    for name, text in pages:
        path = folder / f"{name}.md"
        _write(path, text)
        yield path


def _write(path: Path, text: str) -> None:
    # What Sphinx has read it reads again if the file is younger.
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def contents() -> str:
    """The contents of the site, hidden in its first page, from which the theme takes them."""
    names = sorted(path.stem for path in (_ROOT / "docs").glob("*.md"))
    rest = [name for name in names if name not in (*_GUIDES_FIRST, *_ABOUT_THE_COMPILER)]
    guides = [f"docs/{name}" for name in (*_GUIDES_FIRST, *rest)]
    about = [f"docs/{name}" for name in _ABOUT_THE_COMPILER]
    lessons = sorted((_ROOT / "docs" / "course").glob("[0-9]*.md"))
    course = [f"docs/course/{path.stem}" for path in lessons]
    # The lecture comes before the derivatives.
    course.insert(_LESSONS_BEFORE_THE_LECTURE, "docs/course/micro")
    return "\n".join(
        [
            _toctree(["docs/course/README", *course], "Course"),
            _toctree(guides, "Guides"),
            _toctree(["docs/recipes/README", "docs/recipes/*"], "Recipes"),
            _toctree(["examples/README", "reference/index"], "Examples and reference"),
            _toctree([*about, "CONTRIBUTING", "CHANGELOG", "SECURITY"], "The compiler"),
        ]
    )


def _toctree(entries: Iterable[str], caption: str = "") -> str:
    title = f":caption: {caption}\n" if caption else ""
    return f"```{{toctree}}\n:hidden:\n:glob:\n{title}\n" + "\n".join(entries) + "\n```\n"
