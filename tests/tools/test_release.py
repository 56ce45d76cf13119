"""`make release` finds what keeps a checkout from being released."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tools import release

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

CHANGELOG = (
    "# Changelog\n\n## [1.2.0] - 2026-01-31\n\n### Added\n\n- A.\n\n## [1.1.0] - 2025-01-31\n"
)


def git(root: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)


@pytest.fixture(name="checkout")
def checkout_(tmp_path: Path) -> Path:
    """A checkout of version 1.2.0 that can be released."""
    (tmp_path / "minijax").mkdir()
    (tmp_path / "minijax" / "__init__.py").write_text('"""A."""\n\n__version__ = "1.2.0"\n')
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "a-name"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "A")
    return tmp_path


def test_clean_checkout_has_no_problems(checkout: Path) -> None:
    assert list(release.problems(checkout)) == []
    files = [checkout / "dist" / name for name in ("a.whl", "a.tar.gz")]
    assert release.commands(checkout, files).splitlines() == [
        "git tag -a v1.2.0 -m 'a-name 1.2.0'",
        "git push origin HEAD v1.2.0",
        "python -m twine upload dist/a.whl dist/a.tar.gz",
    ]


def test_uncommitted_changes_are_found(checkout: Path) -> None:
    (checkout / "new.py").touch()
    [problem] = release.problems(checkout)
    assert problem.startswith("the working tree has uncommitted changes")
    assert "new.py" in problem


def test_existing_tag_is_found(checkout: Path) -> None:
    git(checkout, "tag", "-a", "v1.2.0", "-m", "A")
    [problem] = release.problems(checkout)
    assert problem == "the tag v1.2.0 already exists; increase __version__ in minijax/__init__.py"


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("## [1.3.0] - 2026-01-31", "begins with [1.3.0]"),
        ("## [1.2.0]", "must have a date"),
        ("## [1.2.0] - unreleased", "must have a date"),
        ("## [1.2.0] - 2026-02-30", "must have a date"),
    ],
)
def test_section_of_the_changelog_has_version_and_date(
    checkout: Path, heading: str, expected: str
) -> None:
    changelog = CHANGELOG.replace("## [1.2.0] - 2026-01-31", heading)
    (checkout / "CHANGELOG.md").write_text(changelog)
    git(checkout, "commit", "--quiet", "--all", "--message", "B")
    [problem] = release.problems(checkout)
    assert expected in problem


def test_changelog_of_this_checkout_has_a_section_for_each_release() -> None:
    root = Path(release.__file__).parents[1]
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = release.sections(text)
    assert [name for name, _ in sections][-2:] == ["0.2.0", "0.1.0"]
    assert sections[0][0] in {release.version(root), "Unreleased"}
