"""The workflow of continuous integration fits the Makefile and pyproject.toml."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from minijax.core import capabilities
from tools import check

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def matrix(name: str) -> list[str]:
    """Returns a list of the matrix, all of which are written in the syntax of JSON."""
    (text,) = re.findall(rf"^ +{name}: (\[.*\])$", WORKFLOW, re.MULTILINE)
    values: list[str] = json.loads(text)
    return values


def test_matrix_has_the_pythons_of_the_classifiers_and_the_oldest_required() -> None:
    prefix = "Programming Language :: Python :: 3."
    classified = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if c.startswith(prefix)]
    assert matrix("python") == classified
    assert PROJECT["requires-python"] == f">={classified[0]}"


def test_matrix_has_the_oldest_jaxlib_of_the_pin_and_the_newest() -> None:
    (pin,) = (text for text in PROJECT["dependencies"] if text.startswith("jaxlib"))
    assert matrix("jaxlib") == [capabilities.OLDEST, ""]
    # In a copy of the checkout one version may be pinned, to run the tests with it.
    oldest = re.escape(capabilities.OLDEST)
    assert re.fullmatch(rf"jaxlib(>={oldest},<[\d.]+|==[\d.]+)", pin)


def test_workflow_calls_targets_of_the_makefile() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):.*##", text, re.MULTILINE))
    called = {line.split()[-1] for line in re.findall(r"- run: (make .*)", WORKFLOW)}
    assert called >= {"test", "wheel", "check", "docs"}
    assert called <= targets


def test_actions_are_pinned_to_commits_of_named_releases() -> None:
    uses = re.findall(r"uses: (.*)", WORKFLOW)
    pinned = re.compile(r"actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert uses
    assert [action for action in uses if not pinned.fullmatch(action)] == []


def test_jobs_may_only_read_and_end_in_time() -> None:
    assert re.findall(r"permissions:\n((?:  .*\n)+)", WORKFLOW) == ["  contents: read\n"]
    assert WORKFLOW.count("timeout-minutes:") == WORKFLOW.count("runs-on:")
    assert WORKFLOW.count("persist-credentials: false") == WORKFLOW.count("actions/checkout@")


def test_hooks_are_local_and_run_tools_of_make_check() -> None:
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    commands = {" ".join(part for part in command if part != ".") for _, command in check.STEPS}
    hooks = re.findall(r"entry: \.venv/bin/python -m (.*)", text)
    assert {"ruff format --check", "ruff check", "mypy"} == set(hooks) <= commands
    # Hooks of other repositories would be downloaded.
    assert re.findall(r"- repo: (.*)", text) == ["local"]
    assert text.count("language: system") == text.count("entry:") == len(hooks)
