"""The pictures of the documents are those that their programs draw."""

import runpy
from pathlib import Path

import pytest

from tools import draw_rooms

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"


@pytest.mark.feature("CO-32")
def test_pictures_are_what_the_oracle_draws() -> None:
    drawn = runpy.run_path(str(PICTURES / "draw.py"))["drawn"]()
    pictures = {path.stem: path.read_text(encoding="utf-8") for path in PICTURES.glob("*.svg")}

    del pictures["rooms"]

    assert drawn == pictures


def test_picture_of_the_rooms_shows_their_imports() -> None:
    # Draw it again with `python -m tools.draw_rooms`, and look at it.
    assert draw_rooms.svg() == draw_rooms.PICTURE.read_text(encoding="utf-8")


def test_every_room_is_in_the_picture() -> None:
    folders = {path.parent.name for path in draw_rooms.ROOT.glob("minijax/*/__init__.py")}
    # `example_libraries` has public modules only, without code.
    assert {name for room in draw_rooms.BOXES for name in room.split(", ")} == {
        *(folders - {"example_libraries"}),
        "image",
        "ops",
    }
