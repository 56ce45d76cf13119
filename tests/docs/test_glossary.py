"""The glossary explains each word once, names its file, and `help` prints what errors refer to."""

import ast
import re
from pathlib import Path

import pytest

import minijax
from minijax.core import errors
from tools import architecture

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ENTRIES = dict(re.findall(r"^### ([^\n]+)\n\n(.+?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
CALL = re.compile(r"  more      minijax\.help\((.+)\)")


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
    calls = [ast.literal_eval(f"({words},)") for words in CALL.findall(recorded)]
    assert len(calls) >= 30
    assert {word for words in calls for word in words} <= ENTRIES.keys()


def test_words_of_the_notation_are_added_to_those_given() -> None:
    def last_line(got: str, more: str | None) -> str:
        return errors.message("f", "is wrong.", got=got, at="a.py:1", more=more).splitlines()[-1]

    traced = last_line("~f32[], the argument x", "tracer")
    assert traced == '  more      minijax.help("tracer", "weak type")'
    varying = last_line("f32[2]{V:x, U:y}", "")
    assert varying == '  more      minijax.help("varying", "unreduced")'
    assert last_line("f32[2]", "").endswith("a.py:1")
    assert last_line("~f32[]", None).endswith("a.py:1")


@pytest.mark.feature("HO-04")
@pytest.mark.parametrize("term", ["weak type", "Weak-Type", "weak_type "])
def test_help_prints_an_entry(term: str, capsys: pytest.CaptureFixture[str]) -> None:
    minijax.help(term)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["weak type", ""]
    assert lines[2].startswith("The type of a Python number")
    assert lines[-3:] == ["    ~f32[]", "    f16[]", "    f32[]"]
    assert "`minijax/core/dtypes.py`." in lines[5]
    assert "```" not in "".join(lines)


def test_help_prints_several_entries(capsys: pytest.CaptureFixture[str]) -> None:
    minijax.help("leak", "stablehlo")
    titles = [line for line in capsys.readouterr().out.splitlines() if line in ENTRIES]
    assert titles == ["leak", "StableHLO"]


def test_help_lists_all_terms(capsys: pytest.CaptureFixture[str]) -> None:
    minijax.help()
    listed = capsys.readouterr().out.partition("\n\n")[2]
    assert listed.replace("\n", " ").strip().split(", ") == sorted(ENTRIES, key=str.casefold)


@pytest.mark.parametrize(
    ("term", "near"), [("tracers", "tracer"), ("manual", "Manual axis"), ("lineariz", "linearize")]
)
def test_help_proposes_terms_for_an_unknown_one(term: str, near: str) -> None:
    with pytest.raises(ValueError, match="the glossary has no entry for this term") as failure:
        minijax.help(term)
    text = str(failure.value)
    assert f"  got       {term!r}\n" in text
    assert re.search(rf"  expected  a term such as .*{near!r}", text)
    assert "  fix       minijax.help() lists all terms" in text


def test_help_of_a_word_without_neighbours_points_to_the_list() -> None:
    with pytest.raises(ValueError, match=r"minijax\.help\(\) lists all terms") as failure:
        minijax.help("xyzzy")
    assert "expected" not in str(failure.value)


def test_help_passes_other_objects_to_python(capsys: pytest.CaptureFixture[str]) -> None:
    minijax.help(minijax.grad)
    assert "grad(" in capsys.readouterr().out.splitlines()[2]
