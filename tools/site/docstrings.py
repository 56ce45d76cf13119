"""Docstrings of the house template as MyST Markdown.

Input: a docstring whose first lines are text, followed by lines `Shapes: ...`, by sections such as
`Args:` with an entry on each line, and by examples.  Output: the same as paragraphs, a list of
fields that Sphinx knows, and blocks of code.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

_FACTS = ("Shapes", "Types", "Dtypes", "Varying", "Derivative", "Lowers to", "Source")
_ENTRIES = {"Args": "param", "Attributes": "var", "Raises": "raises"}
_OTHERS = ("Returns", "Example", "Examples")
_FIELD = re.compile(rf"^({'|'.join((*_FACTS, *_ENTRIES, *_OTHERS))}):(?: +(.*))?$")
_ENTRY = re.compile(r"^(\*{0,2}[\w.]+(?:, \*{0,2}[\w.]+)*): +(.*)$")
_SPECIAL = re.compile(r"([\\*_<>\[\]$#~|{}^])")


def markdown(text: str, *more: str) -> str:
    """A docstring as MyST Markdown.

    Args:
        text: the docstring, without indentation.
        more: lines for the end of the list of fields.
    """
    paragraphs: list[str] = []
    fields: list[str] = []
    examples: list[str] = []
    for name, body in _parts(text):
        if not name:
            paragraphs.extend(_paragraphs(body))
        elif name.startswith("Example"):
            examples.append(f"```pycon\n{textwrap.dedent(body).strip()}\n```")
        else:
            fields.extend(_fields(name, body))
    return "\n\n".join([*paragraphs, "\n".join([*fields, *more]), *examples]).strip()


def escaped(text: str) -> str:
    """Text as Markdown that shows it as it is, but for what stands between backticks."""
    parts = re.split(r"(`[^`]+`)", " ".join(text.split()))
    return "".join(part if part.startswith("`") else _SPECIAL.sub(r"\\\1", part) for part in parts)


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """The parts of a docstring in order: the name of a field, or nothing, and what stands there."""
    name, lines = "", list[str]()
    for line in text.splitlines():
        found = _FIELD.match(line)
        if found or (name and line and not line[0].isspace()):
            yield name, "\n".join(lines)
            name, lines = (found[1], [found[2] or ""]) if found else ("", [line])
        else:
            lines.append(line)
    yield name, "\n".join(lines)


def _paragraphs(body: str) -> Iterator[str]:
    for block in re.split(r"\n\s*\n", body):
        if block.startswith("    "):
            yield f"```text\n{textwrap.dedent(block).rstrip()}\n```"
        elif block.strip():
            yield escaped(block)


def _fields(name: str, body: str) -> Iterator[str]:
    """Lines of a list of fields: one for a fact, one for each argument."""
    if name not in _ENTRIES:
        yield f":{name.lower() if name == 'Returns' else name}: {escaped(body)}"
        return
    entries: list[list[str]] = []
    for line in textwrap.dedent(body).strip("\n").splitlines():
        if entries and line.startswith(" "):
            entries[-1].append(line)
        elif line.strip():
            entries.append([line])
    for entry in entries:
        found = _ENTRY.match(entry[0])
        names, first = (found[1], found[2]) if found else ("", entry[0])
        rest = escaped(" ".join([first, *entry[1:]]))
        label = f"{_ENTRIES[name]} {names.replace('*', chr(92) + '*')}" if names else name
        yield f":{label}: {rest}"
