"""The code blocks of the recipes and of the other pages run, and print what is shown."""

import re
import shutil
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.printed import shows

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [
    *sorted(page for page in (DOCS / "recipes").glob("*.md") if page.name != "README.md"),
    DOCS / "sharding.md",
    DOCS / "collectives.md",
    DOCS / "foreign.md",
    DOCS / "cores.md",
    DOCS / "glossary.md",
    DOCS / "notebooks.md",
    DOCS / "page.md",
    DOCS / "what_xla_did.md",
]


_A_FOLDER = pytest.mark.feature("HO-02")


def _blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)


# What a page declares is removed again: another test, or the same one, may declare it once more.
@patch.dict("minijax.core.cache.CACHES")
@patch.dict("minijax.core.config.config._states")
@patch.dict("minijax.core.primitive.PRIMITIVES")
@patch.dict("minijax.testing.numpy_model.MODELS")
@patch.dict("minijax.testing.numpy_model.RESULT_STATES")
@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.feature("NP-07")
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=_A_FOLDER if path.stem == "add_a_transformation" else ())
        for path in PAGES
    ],
    ids=lambda path: path.stem,
)
def test_page_prints_what_it_shows(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if path.stem == "call_your_own_kernel" and shutil.which("g++") is None:
        pytest.skip("no g++ to compile the kernel with")
    programs = _blocks(path, "python")
    namespace: dict[str, object] = {"__name__": path.stem}

    assert programs
    exec(compile("\n".join(programs), path.name, "exec"), namespace)

    # The partitioner of jaxlib 0.11 records its gathers with an argument's name and no line.
    printed = capsys.readouterr().out.replace("  near ", "  ")
    assert [block for block in _blocks(path, "text") if not shows(printed, block)] == []
