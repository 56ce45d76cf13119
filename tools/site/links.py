"""Dead links of a built site: `python -m tools.site.links FOLDER`.

Input: a folder of HTML.  Output: each link within the site whose file or anchor is not there, and
each picture, frame, script or style that would be asked of a network.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

_LOADED = {"img": "src", "iframe": "src", "script": "src", "source": "src", "link": "href"}
_NOT_LOADED = frozenset({"canonical", "index", "search", "next", "prev", "author", "copyright"})


class Fault(NamedTuple):
    """A link that leads nowhere, or out of the site.

    Attributes:
        page: the file that has it, within the site.
        target: what it says.
        problem: what is wrong.
    """

    page: str
    target: str
    problem: str

    def __str__(self) -> str:
        return f"{self.page}: {self.target}: {self.problem}"


class _Reader(HTMLParser):
    """Gathers the anchors of a page, where it leads to, and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.targets: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value is not None}
        self.anchors.update(found[name] for name in ("id", "name") if name in found)
        if tag == "a" and "href" in found:
            self.targets.append(found["href"])
        attribute = _LOADED.get(tag)
        if attribute in found and not _NOT_LOADED & set(found.get("rel", "").split()):
            self.loaded.append(found[attribute])


def faults(folder: Path) -> list[Fault]:
    """The dead links of a site, and what it would ask of a network.

    Args:
        folder: the site.
    """
    pages = {}
    for file in sorted(folder.rglob("*.html")):
        # Pages of programs are tested on their own, and themes carry templates.
        if file.relative_to(folder).parts[0] not in {"pages", "_static"}:
            pages[file.resolve()] = reader = _Reader()
            reader.feed(file.read_text(encoding="utf-8"))
    found: dict[Fault, None] = {}
    for file, reader in pages.items():
        name = file.relative_to(folder.resolve()).as_posix()
        for target in reader.loaded:
            if urlsplit(target).scheme not in {"", "data"}:
                found[Fault(name, target, "a network would be asked for it")] = None
        for target, problem in _dead(file, [*reader.targets, *reader.loaded], pages):
            found[Fault(name, target, problem)] = None
    return list(found)


def _dead(file: Path, targets: list[str], pages: dict[Path, _Reader]) -> Iterator[tuple[str, str]]:
    for target in targets:
        parts = urlsplit(target)
        if parts.scheme or parts.netloc:
            continue
        aim = (file.parent / unquote(parts.path)).resolve() if parts.path else file
        anchor = unquote(parts.fragment)
        if not aim.is_file():
            yield target, "there is no such file"
        elif anchor and aim in pages and anchor not in pages[aim].anchors:
            yield target, "there is no such anchor"


def main(folder: Path) -> int:
    """Prints the faults of a site; 1 if there are any."""
    found = faults(folder)
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
