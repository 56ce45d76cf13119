"""Tells which names of JAX packages ask for: `python -m tools.package_names site-packages optax`.

Input: folders of packages.  Output: a line for each dotted name that their code imports from `jax`,
or reaches from what it has imported, with the packages that do so.  Tests of packages do not count.
`benchmarks/packages/names.txt` was written so, without the names that JAX 0.10.2 does not have.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

_JAX = "jax"


def names_in(text: str) -> set[str]:
    """The names of JAX in the text of a module: imported ones, and attributes of these."""
    tree = ast.parse(text)
    imported = dict(_imports(tree))
    found = set(imported.values())
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            first, *parts = ast.unparse(node).split(".")
            if first in imported and all(map(str.isidentifier, parts)):
                found.add(".".join([imported[first], *parts]))
    return found


def _imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Names that a module has for something of JAX, and the dotted names of these."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == _JAX:
                    yield (alias.asname, alias.name) if alias.asname else (_JAX, _JAX)
                    yield alias.name, alias.name
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == _JAX:
            for alias in node.names:
                if not node.level:
                    yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def collected(site_packages: Path, packages: list[str]) -> dict[str, list[str]]:
    """The names, each with the packages that ask for it."""
    found: dict[str, set[str]] = defaultdict(set)
    for package in packages:
        for file in (site_packages / package).rglob("*.py"):
            if "test" not in file.name and "benchmarks" not in file.parts:
                for name in names_in(file.read_text(encoding="utf-8")):
                    found[name].add(package)
    return {name: sorted(found[name]) for name in sorted(found)}


def main() -> int:
    """Prints the names."""
    parser = argparse.ArgumentParser(description=__doc__, prog="tools.package_names")
    parser.add_argument("site_packages", type=Path)
    parser.add_argument("packages", nargs="+")
    given = parser.parse_args()
    for name, asked_by in collected(given.site_packages, given.packages).items():
        print(name, *asked_by)
    return 0


if __name__ == "__main__":
    sys.exit(main())
