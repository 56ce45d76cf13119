"""The page on several processes says what is so."""

import pytest

from tests.runtime.processes import launch, page


@pytest.mark.slow
@pytest.mark.feature("NP-07", "NP-09")
def test_page_prints_what_it_shows() -> None:
    ended = launch.run("page")

    lines = {line for each in ended for line in each.text.splitlines()}
    shown = {line for block in page.blocks("text") for line in block.splitlines()}
    assert [each.status for each in ended] == [0, 0], ended
    assert shown - lines == set()
