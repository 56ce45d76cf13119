"""Runs the programs of docs/processes.md, in one of the processes that the page speaks of."""

import re

from tests.runtime.processes.launch import ROOT

PAGE = ROOT / "docs" / "processes.md"


def blocks(language: str) -> list[str]:
    """The blocks of the page in a language."""
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


if __name__ == "__main__":
    exec(compile("\n".join(blocks("python")), PAGE.name, "exec"), {})
