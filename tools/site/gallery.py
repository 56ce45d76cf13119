"""The gallery: a page of the site for each example, with the pages of its programs.

Pages of programs are made by processes of their own, and kept until the package or an example
changes.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tools.site import docstrings, programs

_ROOT = Path(__file__).resolve().parents[2]
_MOST_SECONDS = 300
_ROW = re.compile(r"^\| `(\w+)\.py` \|", re.MULTILINE)


def make_pages(folder: Path) -> None:
    """Makes the pages of all examples, but those that are there and up to date.

    Args:
        folder: gets a folder for each example.
    """
    digest = sources_digest("minijax", "examples")
    stale = [name for name in programs.NAMES if _stamp(folder / name) != digest]

    def make(name: str) -> None:
        most = 3 if programs.draws(name) else 1
        command = [sys.executable, "-m", "tools.site.programs", name, str(folder / name), str(most)]
        subprocess.run(command, cwd=_ROOT, check=True, timeout=_MOST_SECONDS)
        (folder / name / "sources.sha256").write_text(digest, encoding="utf-8")

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(make, stale))


def sources_digest(*folders: str) -> str:
    """A digest of all files of Python, and of the built front end, in some folders of the root."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted((_ROOT / folder).rglob("*")):
            if path.suffix in {".py", ".pyi", ".cc", ".js", ".css"}:
                digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _stamp(folder: Path) -> str:
    file = folder / "sources.sha256"
    return file.read_text(encoding="utf-8") if file.exists() else ""


def pages(folder: Path) -> Iterator[tuple[str, str]]:
    """The name and the text of each page of the gallery.

    Args:
        folder: has the pages of programs, a folder for each example.
    """
    names = [path.stem for path in sorted(programs.EXAMPLES.glob("*.py"))]
    for name in names:
        yield name, _page(name, folder)
    readme = (programs.EXAMPLES / "README.md").read_text(encoding="utf-8")
    linked = _ROW.sub(r"| [`\1.py`](\1.md) |", readme)
    toctree = "\n".join(["```{toctree}", ":hidden:", "", *names, "```"])
    yield "README", f"{linked}\n{toctree}\n"


def _page(name: str, folder: Path) -> str:
    text = (programs.EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    described = docstrings.markdown(ast.get_docstring(ast.parse(text)) or "")
    parts = [f"# {name}.py", described, *_shown(name, folder / name)]
    parts += ["## Source", f"```{{literalinclude}} {name}.py\n:language: python\n```"]
    return "\n\n".join(parts) + "\n"


def _shown(name: str, folder: Path) -> Iterable[str]:
    """The pictures that an example draws, and the pages of its programs."""
    if not (folder / "pages.json").exists():
        return
    found: dict[str, Any] = json.loads((folder / "pages.json").read_text(encoding="utf-8"))
    place = f"../pages/{name}"
    for picture in found["pictures"]:
        yield "## Picture"
        yield f'<img src="{place}/{picture}" alt="what {name}.py draws">'
    if found["pages"]:
        yield "## Its program, stage by stage"
        yield "Made by [`explain.page`](../docs/page.md): point at a line, or click it."
    for page in found["pages"]:
        file, title = page["file"], docstrings.escaped(page["title"])
        yield f'**{title}**, in <a href="{place}/{file}">a window of its own</a>:'
        shown = f'loading="lazy" title="{title}" src="{place}/{file}"'
        yield f'<iframe class="program" {shown}></iframe>'
