"""State that threads share in `lax`, `transforms`, `lowering`, `explain` and `testing`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import children

CHILD = Path(__file__).with_name("stressed.py")
STATES = [
    "caches",
    "bodies",
    "rules",
    "effects",
    "inspections",
    "devices",
    "reports",
    "simulations",
    "keys",
]


@pytest.mark.turns(3)
@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.feature("RB-11")
@pytest.mark.parametrize("state", STATES)
def test_threads_share_state(state: str) -> None:
    found = children.run(CHILD, state, devices=4, timeout=150)
    assert (found.returncode, found.stdout) == (0, ""), found.stderr[-3000:]
