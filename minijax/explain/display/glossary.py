"""`help`: prints entries of the glossary of terms that errors and documents use.

Input: terms.  Output: their entries, printed.  The glossary is docs/glossary.md; a wheel contains a
copy of it next to this module (tools/build_hooks.py).
"""

from __future__ import annotations

import functools
import pydoc
import re
import sys
import textwrap
from pathlib import Path

from minijax.core import deferral
from minijax.core.errors import error

difflib = deferral.module("difflib")

_IN_WHEEL = Path(__file__).with_name("glossary.md")
_IN_CHECKOUT = Path(__file__).parents[3] / "docs" / "glossary.md"

_ENTRY = re.compile(r"^### ([^\n]+)\n\n(.+?)\s*(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"^```\w*\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`([\w/]+\.py)`")
_SEPARATORS = re.compile(r"[\s_-]+")


def help(*terms: object) -> None:
    """Prints the glossary's entries for terms, or a list of all terms if called without arguments.

    The last line of an error names the terms that the error uses: `more  minijax.help("tracer")`.
    Case does not matter, and hyphens and underscores are treated as spaces.  An argument that is
    not a string is passed to Python's built-in `help`.

    Source:     minijax's own.

    Args:
        terms: terms such as "weak type".

    Raises:
        ValueError: the glossary has no entry for a term.

    Example:
        >>> jax.help("leaf")
        leaf
        <BLANKLINE>
        What a pytree holds that is not itself a container: ...
    """
    if not terms:
        listed = _filled(", ".join(sorted(_entries(), key=str.casefold)))
        sys.stdout.write(f'minijax.help("jaxpr") explains a term. All terms:\n\n{listed}\n')
    for position, term in enumerate(terms):
        if position:
            sys.stdout.write("\n")
        if isinstance(term, str):
            sys.stdout.write(_explanation(term))
        else:
            pydoc.help(term)


def _explanation(term: str) -> str:
    """Returns the entry of a term as plain text: its title, then paragraphs and indented code."""
    titles = {_normalized(title): title for title in _entries()}
    key = _normalized(term)
    if key not in titles:
        near = difflib.get_close_matches(key, titles, 3, 0.6)
        near += [k for k in titles if k not in near and key and (key in k or k in key)]
        error(
            ValueError,
            "help",
            "the glossary has no entry for this term.",
            got=repr(term),
            expected=f"a term such as {', '.join(repr(titles[k]) for k in near)}" if near else None,
            fix="minijax.help() lists all terms",
        )
    title = titles[key]
    # Paths in the glossary are relative to the package. Prepend the package's name.
    text = _FILE.sub(rf"`{deferral.ROOT}/\1`", _entries()[title])
    # `split` by a pattern with one group returns text and group contents in turn, so the parts at
    # odd positions are code.
    parts = _CODE.split(text)
    blocks = [
        textwrap.indent(part, "    ") if position % 2 else _filled(part)
        for position, part in enumerate(parts)
    ]
    return "\n\n".join([title, *filter(None, blocks)]) + "\n"


def _filled(paragraph: str) -> str:
    return textwrap.fill(paragraph, 80, break_long_words=False, break_on_hyphens=False)


def _normalized(term: str) -> str:
    return _SEPARATORS.sub(" ", term.strip()).casefold()


@functools.cache
def _entries() -> dict[str, str]:
    """Reads the glossary and returns the Markdown text of each entry by its title."""
    path = _IN_WHEEL if _IN_WHEEL.exists() else _IN_CHECKOUT
    return dict(_ENTRY.findall(path.read_text(encoding="utf-8")))
