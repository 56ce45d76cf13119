"""The glossary explains each word once, says where it lives, and has the words of errors."""

import ast
import re
from pathlib import Path

import pytest

from minijax.core import errors
from tools import architecture

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ENTRIES = dict(re.findall(r"^### ([^\n]+)\n\n(.+?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
POINTER = re.compile(r"  more      docs/glossary\.md: (.+)")


def words_of_errors() -> set[str]:
    """The words that calls of `error` and `message`, and classes of errors, refer to."""
    found = {word for cls in vars(errors).values() for word in [getattr(cls, "_glossary", "")]}
    for source in architecture.sources(ROOT):
        if source.path.startswith("minijax/"):
            for node in ast.walk(source.tree):
                if isinstance(node, ast.keyword) and node.arg == "more":
                    found |= {v for v in [getattr(node.value, "value", "")] if type(v) is str}
    return {word for words in found for word in words.split(", ") if word}


@pytest.mark.feature("HO-04")
@pytest.mark.parametrize("word", ENTRIES)
def test_entry_is_short_and_says_where_the_thing_lives(word: str) -> None:
    prose = re.sub(r"```.*?```", "", ENTRIES[word], flags=re.DOTALL)
    sentences, place = prose.rsplit("In `" if "In `" in prose else "In\n`", 1)
    assert 1 <= len(re.findall(r"[.](?=\s|$)", sentences)) <= 3
    files = re.findall(r"([\w/]+\.py)`", place)
    assert files
    assert [name for name in files if not (ROOT / "minijax" / name).exists()] == []


@pytest.mark.feature("HO-04")
def test_index_lists_the_entries_in_their_order() -> None:
    listed = re.findall(r"\[([^\]]+)\]\(#([\w-]+)\)", PAGE)
    assert [word for word, _ in listed] == sorted(ENTRIES, key=str.casefold)
    assert [anchor for _, anchor in listed] == [w.lower().replace(" ", "-") for w, _ in listed]


@pytest.mark.feature("HO-04")
def test_words_that_errors_refer_to_are_explained() -> None:
    used = words_of_errors() | set(errors._NOTATION)
    assert {"tracer", "leak", "weak type", "varying"} <= used <= ENTRIES.keys()


@pytest.mark.feature("HO-04")
def test_recorded_errors_refer_to_entries() -> None:
    recorded = (ROOT / "tests" / "golden" / "errors.txt").read_text(encoding="utf-8")
    pointers = POINTER.findall(recorded)
    assert len(pointers) >= 30
    assert {word for words in pointers for word in words.split(", ")} <= ENTRIES.keys()


def test_words_of_the_notation_are_added_to_those_given() -> None:
    def last_line(got: str, more: str | None) -> str:
        return errors.message("f", "is wrong.", got=got, at="a.py:1", more=more).splitlines()[-1]

    assert last_line("~f32[], the argument x", "tracer").endswith("glossary.md: tracer, weak type")
    assert last_line("f32[2]{V:x, U:y}", "").endswith("glossary.md: varying, unreduced")
    assert last_line("f32[2]", "").endswith("a.py:1")
    assert last_line("~f32[]", None).endswith("a.py:1")
