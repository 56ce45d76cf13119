"""Every lesson runs, prints what it shows, has a picture, three exercises, and a note for teachers.

The form of a lesson is told in docs/course/README.md.
"""

import ast
import contextlib
import io
import linecache
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from minijax.explain import Page
from minijax.explain.pages.exercises import Exercise
from minijax.testing.pictures import Picture
from tests.printed import agrees

COURSE = Path(__file__).parents[2] / "docs" / "course"
LESSONS = [*sorted(COURSE.glob("[0-9][0-9]-*.md")), *COURSE.glob("micro.md")]
HEADINGS = ("## Predict, then run", "## What to keep", "## For the teacher")
_CELL = re.compile(
    r"^```\{code-cell\} ipython3\n((?::[^\n]*\n)*)(.*?)^```$", re.MULTILINE | re.DOTALL
)
_OUTPUT = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ANSWER = re.compile(r"^- `(\w+)`: `([^`]+)`", re.MULTILINE)
_PICTURE = re.compile(r"!\[[^\]]+\]\((pictures/[\w.-]+\.svg)\)")
_PROMPT = "Put your prediction in the place of the dots.\n"

pytestmark = pytest.mark.feature("PG-05")


class Cell(NamedTuple):
    """A cell, the output that the lesson shows under it, and whether it shows its own."""

    code: str
    expected: str
    is_shown: bool


class Lesson(NamedTuple):
    """A lesson, and what its cells printed and made."""

    text: str
    cells: list[Cell]
    printed: list[str]
    values: list[Any]
    namespace: dict[str, Any]

    @property
    def exercises(self) -> dict[str, Exercise]:
        """The exercises by name."""
        return {k: x for k, x in self.namespace.items() if isinstance(x, Exercise)}


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _cells(text: str) -> list[Cell]:
    found = list(_CELL.finditer(text))
    ends = [*(match.start() for match in found[1:]), len(text)]
    cells = []
    for match, end in zip(found, ends, strict=True):
        output = _OUTPUT.search(text, match.end(), end)
        is_shown = "remove_code_outputs: false" in match[1]
        cells.append(Cell(match[2], output[1] if output else "", is_shown))
    return cells


def _run(code: str, name: str, namespace: dict[str, Any]) -> Any:
    """Runs a cell as a notebook does: the value of an expression that ends it is printed."""
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    body = ast.parse(code, name).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), name, "exec"), namespace)
    if last is None:
        return None
    value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
    if value is not None:
        sys.stdout.write(f"{value!r}\n")
    return value


@pytest.fixture(scope="module", params=LESSONS, ids=lambda path: path.stem)
def lesson(request: pytest.FixtureRequest) -> Lesson:
    """A lesson whose cells were run in order, in its folder."""
    text = _text(request.param)
    ran = Lesson(text, _cells(text), [], [], {"__name__": "__main__"})
    with contextlib.chdir(COURSE), pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(COURSE))
        patch.delitem(sys.modules, "micro", raising=False)
        for number, cell in enumerate(ran.cells, 1):
            name = f"In[{number}]"
            with contextlib.redirect_stdout(io.StringIO()) as out:
                ran.values.append(_run(cell.code, name, ran.namespace))
            # A notebook calls the lines of its cells so.
            ran.printed.append(re.sub(r"\b(In\[\d+\]):(\d+)", r"cell \1, line \2", out.getvalue()))
    return ran


def test_lesson_prints_what_it_shows(lesson: Lesson) -> None:
    for cell, printed, value in zip(lesson.cells, lesson.printed, lesson.values, strict=True):
        assert cell.is_shown == isinstance(value, Page | Picture), cell.code
        if not cell.is_shown and not printed.endswith(_PROMPT):
            assert agrees(cell.expected.rstrip("\n"), printed.rstrip("\n")), (cell.code, printed)


def test_lesson_has_a_picture_or_a_player(lesson: Lesson) -> None:
    linked = _PICTURE.findall(lesson.text)
    shown = [value for value in lesson.values if isinstance(value, Page | Picture)]

    assert linked or shown
    assert [name for name in linked if not (COURSE / name).exists()] == []


def test_lesson_has_three_exercises_that_help_and_are_not_solved(lesson: Lesson) -> None:
    assert len(lesson.exercises) == 3
    for name, exercise in lesson.exercises.items():
        assert exercise.question
        assert (exercise.tries, exercise.solved) == (0, False), name
        with contextlib.redirect_stdout(io.StringIO()) as out:
            while "The answer is" not in out.getvalue():
                exercise("not a prediction")
        assert exercise.tries > 1, f"{name} gives no hint"


def test_answers_for_the_teacher_are_those_of_the_programs(lesson: Lesson) -> None:
    told = lesson.text.partition("## For the teacher")[2]

    assert dict(_ANSWER.findall(told)) == {k: str(x.answer) for k, x in lesson.exercises.items()}


def test_lesson_has_its_parts_in_order(lesson: Lesson) -> None:
    front, _, _ = lesson.text.partition("\n---\n")
    places = [lesson.text.find(f"\n{heading}\n") for heading in HEADINGS]

    assert front.startswith("---\nfile_format: mystnb\nkernelspec:\n")
    assert "remove_code_outputs: true" in front
    assert places == sorted(places)
    assert places[0] > 0


def test_index_links_the_lessons_in_order() -> None:
    linked = re.findall(r"\]\(([\w-]+\.md)\)", _text(COURSE / "README.md"))
    found = [name for name in dict.fromkeys(linked) if COURSE / name in LESSONS]

    assert set(found) == {path.name for path in LESSONS}
    assert [x for x in found if x != "micro.md"] == sorted(x for x in found if x != "micro.md")


def test_pictures_are_what_is_drawn() -> None:
    """`python docs/course/pictures/draw.py` draws them anew, and so do others beside it."""
    drawn: dict[str, str] = {}
    for path in sorted((COURSE / "pictures").glob("draw*.py")):
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(path.parent))
            drawn |= getattr(__import__(path.stem), "drawn", dict)()

    files = {path.stem: _text(path) for path in (COURSE / "pictures").glob("*.svg")}
    assert drawn == files
