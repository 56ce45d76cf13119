"""The sources as pages of the site: an extension of Sphinx.

Documents link to files of the checkout, `../minijax/core/trace.py`.  Each such link leads to a page
of that file, highlighted, with an anchor for each line; that of a folder lists its files.
"""

from __future__ import annotations

import html
import posixpath
import re
from pathlib import Path

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from pygments.lexers.special import TextLexer
from pygments.util import ClassNotFound
from sphinx import addnodes
from sphinx.application import Sphinx

_ROOT = Path(__file__).resolve().parents[2]
_FOLDER = "source"
_SHOWN = frozenset(
    {".py", ".pyi", ".cc", ".h", ".ts", ".tsx", ".mjs", ".css", ".toml", ".txt", ".json"}
)
_MOST_BYTES = 200_000
# What the reader chose on other pages of the site, or else what the system says.
_THEME = (
    "const m=localStorage.getItem('mode')||'auto';"
    "document.documentElement.dataset.theme="
    "m==='auto'?(matchMedia('(prefers-color-scheme: dark)').matches?'dark':'light'):m"
)
_LINK = re.compile(r"\]\((?!/|[a-z]+:)([^)#\s]+)")


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls when it loads the extension."""
    app.connect("doctree-read", _lead_to_sources)
    app.connect("build-finished", _write_pages)
    # README names the language of XLA's programs; Pygments knows none that is nearer.
    app.add_lexer("hlo", TextLexer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _lead_to_sources(app: Sphinx, doctree: nodes.document) -> None:
    """Turns links to files that are no documents into links to their pages."""
    here = app.env.docname
    for node in list(doctree.findall(_is_link_to_file)):
        path, _, anchor = node["reftarget"].partition("#")
        beside = path[1:] if path.startswith("/") else _joined(here, path)
        file = _ROOT / beside
        if (
            not path
            or not file.exists()
            or app.env.path2doc(str(Path(app.srcdir) / beside)) in (app.env.found_docs)
        ):
            continue
        name = _name(file)
        target = app.builder.get_relative_uri(here, name) if app.builder else ""
        uri = f"{target}#{anchor}" if anchor else target
        link = nodes.reference("", "", *node.children, refuri=uri, internal=True)
        node.replace_self(link)


def _is_link_to_file(node: nodes.Node) -> bool:
    is_link = isinstance(node, addnodes.pending_xref | addnodes.download_reference)
    return is_link and node.get("reftype") == "myst"


def _joined(docname: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(docname), path))


def _name(file: Path) -> str:
    """The name of the page of a file, or of the page that lists a folder."""
    inside = file.relative_to(_ROOT).as_posix()
    return f"{_FOLDER}/{inside}/index" if file.is_dir() else f"{_FOLDER}/{inside}"


def _write_pages(app: Sphinx, exception: Exception | None) -> None:
    """Writes the pages of files and folders that may be linked, but those that are up to date."""
    if exception is not None:
        return
    folders: dict[Path, set[Path]] = {}
    for file in _files(Path(app.srcdir)):
        target = Path(app.outdir) / f"{_name(file)}.html"
        if not target.exists() or target.stat().st_mtime < file.stat().st_mtime:
            _write(target, file, f'<div class="source">{_highlighted(file)}</div>')
        inner = file
        while inner != _ROOT:
            folders.setdefault(inner.parent, set()).add(inner)
            inner = inner.parent
    for folder, inside in folders.items():
        _write(Path(app.outdir) / f"{_name(folder)}.html", folder, _list(inside))


def _write(target: Path, shown: Path, body: str) -> None:
    """Writes a page that is plainer than those of the theme, which would take a minute for all."""
    inside = shown.relative_to(_ROOT)
    up = "../" * (len(inside.parts) + (1 if shown.is_dir() else 0))
    above = [*reversed(inside.parents), inside]
    links = " / ".join(
        f'<a href="{up}{_name(_ROOT / each)}.html">{html.escape(each.name or "sources")}</a>'
        for each in above
    )
    title = html.escape(inside.as_posix())
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<link rel="stylesheet" href="{up}_static/pygments.css">'
        f'<link rel="stylesheet" href="{up}_static/site.css"><script>{_THEME}</script></head>'
        f'<body class="plain"><nav><a href="{up}index.html">minijax</a> · {links}</nav>'
        f"{body}</body></html>\n",
        encoding="utf-8",
    )


def _files(documents: Path) -> list[Path]:
    """The files of the checkout that have pages: the package, and what documents link to."""
    roots = {_ROOT / "minijax", _ROOT / "examples"}
    for document in documents.rglob("*.md"):
        here = document.relative_to(documents).as_posix()
        for path in _LINK.findall(document.read_text(encoding="utf-8")):
            roots.add(_ROOT / _joined(here, path))
    inside = {file for root in roots for file in (root.rglob("*") if root.is_dir() else [root])}
    return sorted(
        file
        for file in inside
        if file.suffix in _SHOWN
        and file.is_file()
        and "node_modules" not in file.parts
        and file.stat().st_size < _MOST_BYTES
    )


def _highlighted(file: Path) -> str:
    text = file.read_text(encoding="utf-8")
    try:
        lexer = get_lexer_for_filename(file.name)
    except ClassNotFound:
        lexer = TextLexer()
    formatter = HtmlFormatter(lineanchors="L", linenos="inline")
    return str(highlight(text, lexer, formatter))


def _list(inside: set[Path]) -> str:
    def link(path: Path) -> str:
        name = html.escape(path.name)
        target = f"{name}/index.html" if path.is_dir() else f"{name}.html"
        return f'<li><a href="{target}"><code>{name}</code></a></li>'

    ordered = sorted(inside, key=lambda path: (path.is_file(), path.name))
    return f"<ul>{''.join(map(link, ordered))}</ul>"
