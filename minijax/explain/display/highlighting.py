"""Text in colours, told by Pygments where it is installed; plain text where it is not.

Input: a text and its language: `jaxpr`, `stablehlo`, `hlo`, `report`, or `cell` of one.
Output: HTML, or text with ANSI sequences.

The colours of HTML are equally light, so that each can be read on white and on black, whatever the
theme of the notebook is (decision 0031).
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

try:
    from minijax.explain.display import lexers
except ModuleNotFoundError as _missing:
    if _missing.name is None or not _missing.name.startswith("pygments"):
        raise
    lexers = None  # type: ignore[assignment]

MUTED = "#787878"
"""A grey that can be read on white and on black."""


class _Style(NamedTuple):
    """How a kind of words looks: in HTML, and by the numbers of ANSI sequences."""

    css: str
    ansi: str


# Each has 4.3 : 1 or more against white, and 4.1 : 1 or more against nearly black.
STYLES = {
    "Keyword": _Style("color:#ab4dcb", "35"),
    "Keyword.Type": _Style("color:#107ac6", "34"),
    "Name.Function": _Style("color:#c15a10", "33"),
    "Name.Attribute": _Style("color:#0f8570", "36"),
    "Literal.Number": _Style("color:#0f8570", "36"),
    "Literal.String": _Style("color:#238b33", "32"),
    "Comment": _Style(f"color:{MUTED}", "90"),
    "Generic.Heading": _Style("font-weight:600", "1"),
}

_lexers: dict[str, Any] = (
    {}
    if lexers is None
    else {
        "jaxpr": lexers.JaxprLexer,
        "stablehlo": lexers.StablehloLexer,
        "hlo": lexers.HloLexer,
        "report": lexers.ReportLexer,
        "cell": lexers.CellLexer,
    }
)


def to_html(text: str, language: str) -> str:
    """A text as HTML, without the element around it."""
    return _written(
        text,
        language,
        html.escape,
        lambda value, style: f'<span style="{style.css}">{html.escape(value)}</span>',
    )


def to_ansi(text: str, language: str) -> str:
    """A text for terminals."""
    return _written(text, language, str, lambda value, style: f"\x1b[{style.ansi}m{value}\x1b[0m")


def _written(
    text: str, language: str, plain: Callable[[str], str], styled: Callable[[str, _Style], str]
) -> str:
    return "".join(
        plain(value) if style is None else styled(value, style)
        for style, value in _words(text, language)
    )


def _words(text: str, language: str) -> Iterator[tuple[_Style | None, str]]:
    if language not in _lexers:
        yield None, text
        return
    lexer = _lexers[language](stripnl=False, ensurenl=False)
    for token, value in lexer.get_tokens(text):
        yield STYLES.get(str(token).removeprefix("Token.")), value
