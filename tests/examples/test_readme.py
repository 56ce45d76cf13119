"""The README's programs print what it says they print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import minijax as jax
from tests.printed import agrees

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.slow
def test_readme_programs_print_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    text = README.read_text(encoding="utf-8")
    programs = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    outputs = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    namespace: dict[str, object] = {}

    # As in a process of its own: programs of other tests would not be compiled again.
    jax.clear_caches()
    printed = []
    for program in programs:
        exec(compile(program, README.name, "exec"), namespace)
        printed.append(capsys.readouterr().out.strip())

    assert len(printed) == len(outputs)
    for expected, found in zip(outputs, printed, strict=True):
        assert agrees(expected.strip(), found), found
