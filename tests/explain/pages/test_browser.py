"""Pages in a browser: what is pointed at lights, what is clicked is explained, players step."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.explain.pages import programs

ROOT = Path(__file__).parents[3]
WEB = ROOT / "web"
SHOTS = ROOT / "out" / "pages"

pytestmark = [pytest.mark.feature("PG-01"), pytest.mark.slow]


def missing() -> str:
    """What is missing to open a browser, and how it is installed; nothing if all is there."""
    chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    if not Path(chromium).exists():
        return "there is no Chromium: apt-get install chromium"
    if shutil.which("node") is None:
        return "there is no node: apt-get install nodejs npm"
    if not (WEB / "node_modules" / "playwright-core").exists():
        return "the tools of the page are missing: make web"
    return ""


@pytest.mark.skipif(bool(missing()), reason=missing() or "all is there")
def test_pages_light_explain_search_and_step(tmp_path: Path) -> None:
    for name, page in programs.pages():
        page.save(tmp_path / f"{name}.html")
    command = ["node", "tests/run.mjs", str(tmp_path), str(SHOTS)]
    done = subprocess.run(
        command, cwd=WEB, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" equations, open after ") == 14
