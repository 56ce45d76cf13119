"""State that threads share in `lax`, `transforms`, `lowering`, `explain` and `testing`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = Path(__file__).with_name("stressed.py")
STATES = [
    *("caches", "bodies", "rules", "effects", "inspections"),
    *("devices", "reports", "simulations", "keys"),
]


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.feature("RB-11")
@pytest.mark.parametrize("state", STATES)
def test_threads_share_state(state: str) -> None:
    found = subprocess.run(
        [sys.executable, CHILD, state],
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        },
    )
    assert (found.returncode, found.stdout) == (0, ""), found.stderr[-3000:]
