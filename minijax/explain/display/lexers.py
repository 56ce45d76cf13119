"""Lexers of Pygments for jaxprs, StableHLO, HLO and the reports of `explain`.

`pygmentize -l jaxpr` and Sphinx find them by the entry points of the package.  Nothing else of
the package needs Pygments: `highlighting.py` does without where it is missing.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pygments.lexer import RegexLexer, bygroups
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, Punctuation, String
from pygments.token import Whitespace as Space

_STRING = r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\''
_NUMBER = r"-?\b\d+(?:\.\d*)?(?:e[+-]?\d+)?\b"
_KINDS = (
    r"\b(?:all_gather|all_reduce|all_to_all|collective_broadcast|collective_permute"
    r"|ragged_all_to_all|reduce_scatter)\b"
)
_REST = [(r"\s+", Space), (r"\w+", Name), (r".", Punctuation)]


class JaxprLexer(RegexLexer):  # type: ignore[misc]
    """Jaxprs, as minijax and JAX print them."""

    name = "jaxpr"
    aliases: ClassVar[list[str]] = ["jaxpr"]
    filenames: ClassVar[list[str]] = ["*.jaxpr"]
    url = "https://docs.jax.dev/en/latest/jaxpr.html"
    version_added = ""
    tokens: ClassVar[dict[str, list[Any]]] = {
        "root": [
            (_STRING, String),
            (r"\b(?:lambda|let|in)\b", Keyword),
            (r":(?:\w+(?:<[^>]*>)?\[[^\]]*\](?:\{[^}]*\})*|Ref\{[^}]*\}*)", Keyword.Type),
            (r"( = )([a-z_]\w*)", bygroups(Operator, Name.Function)),
            (r"(\w+)(=)", bygroups(Name.Attribute, Operator)),
            (_NUMBER, Number),
            *_REST,
        ]
    }


class StablehloLexer(RegexLexer):  # type: ignore[misc]
    """Modules of StableHLO and Shardy."""

    name = "StableHLO"
    aliases: ClassVar[list[str]] = ["stablehlo", "mlir"]
    filenames: ClassVar[list[str]] = ["*.mlir"]
    url = "https://openxla.org/stablehlo"
    version_added = ""
    tokens: ClassVar[dict[str, list[Any]]] = {
        "root": [
            (r"//.*$", Comment),
            (_STRING, String),
            (r"\b(?:tensor|memref|vector|tuple)<[^>]*>|![\w.]+", Keyword.Type),
            (r"\b(?:module|return|cond|do|public|private|attributes|applies)\b", Keyword),
            (r"\b(?:stablehlo|func|sdy|chlo)\.\w+", Name.Function),
            (r"%[\w#:]+", Name),
            (r"[@#]\w[\w.]*", Name.Attribute),
            (_NUMBER, Number),
            *_REST,
        ]
    }


class HloLexer(RegexLexer):  # type: ignore[misc]
    """Programs of XLA."""

    name = "HLO"
    aliases: ClassVar[list[str]] = ["hlo"]
    filenames: ClassVar[list[str]] = ["*.hlo"]
    url = "https://openxla.org/xla"
    version_added = ""
    tokens: ClassVar[dict[str, list[Any]]] = {
        "root": [
            (r"//.*$|/\*.*?\*/", Comment),
            (_STRING, String),
            (r"\b(?:HloModule|ENTRY|ROOT)\b", Keyword),
            (r"\b(?:pred|token|bf16|[sufc]\d+\w*)\[[^\]]*\](?:\{[^}]*\})?", Keyword.Type),
            (r"%[\w.-]+", Name),
            (r"\b[a-z][\w-]*(?=\()", Name.Function),
            (r"(\w+)(=)", bygroups(Name.Attribute, Operator)),
            (r"[A-Za-z_][\w.-]*", Name),
            (_NUMBER, Number),
            *_REST,
        ]
    }


class CellLexer(RegexLexer):  # type: ignore[misc]
    """The cells of the tables that `explain` prints: collectives, types, placements, lines."""

    name = "minijax cell"
    aliases: ClassVar[list[str]] = ["minijax-cell"]
    filenames: ClassVar[list[str]] = []
    url = ""
    version_added = ""
    tokens: ClassVar[dict[str, list[Any]]] = {
        "root": [
            (_KINDS, Name.Function),
            (r"(?:bool|key|u?int|bf16|[usifc]\d+)\w*\[[^\]]*\]|\bP\([^\n]*?\)", Keyword.Type),
            (r"[\w.]+\.py:\d+(?: in \S+)?|cell \S+, line \d+(?: in \S+)?", Name.Attribute),
            (r"(?:>= )?" + _NUMBER + r"(?: (?:[KMGT]i)?B\b)?(?: [nµm]?s\b)?", Number),
            *_REST,
        ]
    }


class ReportLexer(CellLexer):
    """What `explain` prints: a sentence, and tables."""

    name = "minijax report"
    aliases: ClassVar[list[str]] = ["minijax-report"]
    tokens: ClassVar[dict[str, list[Any]]] = {
        "root": [
            (r"\A.+$", Generic.Heading),
            (r"(?<=\n\n)(?:kind|total|axis|argument|result|choice)  .*$", Generic.Heading),
            *CellLexer.tokens["root"],
        ]
    }
