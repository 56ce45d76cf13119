"""Checks that the checkout can be released, and prints the commands to release it: `make release`.

It only writes to the folder `dist`.  It never tags, pushes or uploads; run the printed commands to
do so.
"""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]

_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_SECTION = re.compile(r"^## \[([^\]]+)\](?: - (\S+))?$", re.MULTILINE)


def settings(root: Path) -> dict[str, Any]:
    """Returns the contents of pyproject.toml."""
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


def version(root: Path) -> str:
    """Returns the version of a checkout, read from its source without importing the package."""
    text = (root / "minijax" / "__init__.py").read_text(encoding="utf-8")
    found: list[str] = _VERSION.findall(text)
    return found[0]


def sections(changelog: str) -> list[tuple[str, str]]:
    """Returns the version and the date of each section of a changelog; the date may be empty."""
    return _SECTION.findall(changelog)


def problems(root: Path) -> Iterator[str]:
    """Yields a message with a fix for each problem that prevents the release of a checkout.

    This checks git and the changelog; `main` also builds the distributions and tests the wheel.
    """
    number = version(root)
    if changed := _git(root, "status", "--porcelain"):
        yield f"the working tree has uncommitted changes; commit or discard them:\n{changed}"
    if _git(root, "tag", "--list", f"v{number}"):
        yield f"the tag v{number} already exists; increase __version__ in minijax/__init__.py"
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    first, date = next(iter(sections(changelog)), ("", ""))
    if first != number:
        yield f"CHANGELOG.md begins with [{first}], but must begin with [{number}] and a date"
    elif not _is_date(date):
        heading = f"## [{number}] - {datetime.date.today()}"
        yield f"the section [{number}] of CHANGELOG.md must have a date, as in '{heading}'"


def _is_date(text: str) -> bool:
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _git(root: Path, *arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout


def build(root: Path, folder: Path) -> list[Path]:
    """Builds the wheel and the source distribution in a folder, after deleting older ones there.

    Returns:
        the paths of the two files.
    """
    for pattern in ("*.whl", "*.tar.gz"):
        for older in folder.glob(pattern):
            older.unlink()
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    return sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])


def commands(root: Path, files: list[Path]) -> str:
    """Returns the commands that release a checkout, one per line."""
    name, number = settings(root)["project"]["name"], version(root)
    uploaded = " ".join(str(file.relative_to(root)) for file in files)
    return (
        f"git tag -a v{number} -m '{name} {number}'\n"
        f"git push origin HEAD v{number}\n"
        f"python -m twine upload {uploaded}"
    )


def main() -> int:
    """Runs all checks; with the argument `build`, only builds the distributions.

    Returns:
        the exit status.
    """
    if sys.argv[1:] == ["build"]:
        for file in build(_ROOT, _ROOT / "dist"):
            print(file.relative_to(_ROOT))
        return 0
    found = list(problems(_ROOT))
    if found:
        print(f"{version(_ROOT)} cannot be released:")
        for problem in found:
            print(f"- {problem}")
        return 1
    print("The tree is clean, the changelog has this version, and its tag is unused.", flush=True)
    files = build(_ROOT, _ROOT / "dist")
    tests = [sys.executable, "-m", "pytest", "-q", "tests/packaging"]
    if subprocess.run(tests, cwd=_ROOT, check=False).returncode != 0:
        print(f"{version(_ROOT)} cannot be released: the tests of the wheel failed.")
        return 1
    print("The tests of the wheel passed. Nothing has been tagged or pushed. To release, run:\n")
    print("\n".join(f"    {line}" for line in commands(_ROOT, files).splitlines()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
