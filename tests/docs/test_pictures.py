"""The pictures of the guide to collectives are those that the oracle draws."""

import runpy
from pathlib import Path

import pytest

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"


@pytest.mark.feature("CO-32")
def test_pictures_are_what_the_oracle_draws() -> None:
    drawn = runpy.run_path(str(PICTURES / "draw.py"))["drawn"]()

    assert drawn == {path.stem: path.read_text(encoding="utf-8") for path in PICTURES.glob("*.svg")}
