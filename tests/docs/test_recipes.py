"""The code blocks of the recipes run as they stand."""

import re
from pathlib import Path

import pytest

RECIPES = sorted((Path(__file__).parents[2] / "docs" / "recipes").glob("*.md"))


def _blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(), re.DOTALL)


def _run(path: Path) -> None:
    namespace: dict[str, object] = {"__name__": path.stem}
    exec(compile("\n".join(_blocks(path, "python")), str(path), "exec"), namespace)


@pytest.mark.feature("NP-07")
@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipe_runs(path: Path) -> None:
    assert _blocks(path, "python")
    _run(path)


@pytest.mark.feature("NP-07")
@pytest.mark.parametrize(
    "path", [path for path in RECIPES if _blocks(path, "text")], ids=lambda path: path.stem
)
def test_recipe_shows_what_it_prints(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _run(path)
    printed = capsys.readouterr().out
    assert [block for block in _blocks(path, "text") if block not in printed] == []
