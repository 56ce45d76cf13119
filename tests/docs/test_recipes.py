"""The code blocks of the recipes run as they stand."""

import re
from pathlib import Path

import pytest

RECIPES = sorted((Path(__file__).parents[2] / "docs" / "recipes").glob("*.md"))


@pytest.mark.feature("NP-07")
@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipe_runs(path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL)
    assert blocks
    namespace: dict[str, object] = {"__name__": path.stem}
    exec(compile("\n".join(blocks), str(path), "exec"), namespace)
