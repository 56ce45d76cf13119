"""The metadata of the distributions are right, and no text installs another distribution."""

import email
import email.message
import importlib.metadata
import re
import zipfile

import pytest

import minijax
from tests.packaging.conftest import ROOT, Built
from tools import architecture, build_hooks, release

PROJECT = release.settings(ROOT)["project"]


@pytest.fixture(name="metadata", scope="module")
def metadata_(built: Built) -> email.message.Message:
    with zipfile.ZipFile(built.wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(archive.read(name))


@pytest.mark.slow
def test_name_and_version(metadata: email.message.Message, built: Built) -> None:
    assert metadata["Name"] == PROJECT["name"] == "minijax-compiler"
    assert metadata["Version"] == minijax.__version__ == release.version(ROOT)
    assert built.wheel.name == f"minijax_compiler-{minijax.__version__}-py3-none-any.whl"
    assert built.sdist.name == f"minijax_compiler-{minijax.__version__}.tar.gz"


def test_installation_has_the_version_of_the_source() -> None:
    # `make` installs the checkout anew when minijax/__init__.py changes.
    assert importlib.metadata.version("minijax-compiler") == minijax.__version__
    assert "version" in PROJECT["dynamic"]
    assert "version" not in PROJECT


@pytest.mark.slow
def test_supported_pythons_are_declared(metadata: email.message.Message) -> None:
    versions = [
        c.rpartition(" ")[2]
        for c in metadata.get_all("Classifier", [])
        if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", c)
    ]
    assert versions == ["3.11", "3.12", "3.13", "3.14"]
    assert metadata["Requires-Python"] == f">={versions[0]}"


@pytest.mark.slow
def test_links_of_the_description_work_elsewhere(metadata: email.message.Message) -> None:
    description = metadata.get_payload(decode=True)
    assert isinstance(description, bytes)
    prose = re.sub(r"```.*?```", "", description.decode(), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)\s]+)\)", prose)
    assert len(links) > 20
    assert [link for link in links if not link.startswith("https://")] == []

    [repository] = [
        url.partition(", ")[2]
        for url in metadata.get_all("Project-URL", [])
        if url.startswith("Repository")
    ]
    prefix = re.compile(rf"{repository}/(?:blob|raw|tree)/v{re.escape(minijax.__version__)}/")
    files = [prefix.sub("", link) for link in links if prefix.match(link)]
    assert len(files) > 20
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_links_become_absolute() -> None:
    text = (
        "[a](docs/a.md#b) ![c](d.png) [e](#f) [g](https://example.org)\n```\nx[i](j)\n```\n[k](l)"
    )
    assert build_hooks.with_absolute_links(text, "https://host/r", "v1") == (
        "[a](https://host/r/blob/v1/docs/a.md#b) ![c](https://host/r/raw/v1/d.png) [e](#f) "
        "[g](https://example.org)\n```\nx[i](j)\n```\n[k](https://host/r/blob/v1/l)"
    )


def test_one_file_names_the_repository() -> None:
    hooks = release.settings(ROOT)["tool"]["hatch"]["metadata"]["hooks"]
    repository = hooks["custom"]["repository"]
    naming = [
        path.relative_to(ROOT).as_posix()
        for path in architecture.project_files(ROOT)
        if path.suffix in {".md", ".py", ".pyi", ".toml", ""}
        and repository in path.read_text(encoding="utf-8", errors="ignore")
    ]
    assert naming == ["pyproject.toml"]


_INSTALLING = re.compile(r"\b(?:pip3?|pipx|uv|poetry|conda)\b.*?\b(?:install|add)\b([^`]*)")
_OTHER_DISTRIBUTION = re.compile(r"(?<![\w./-])minijax(?![\w./-])")


def installs_other_distribution(line: str) -> bool:
    """Returns whether a line installs the distribution `minijax`, which is another project's."""
    commands = _INSTALLING.findall(line)
    return any(_OTHER_DISTRIBUTION.search(arguments) for arguments in commands)


@pytest.mark.parametrize("package", ["minijax", "minijax[display]", "-U minijax==0.1", "a minijax"])
def test_commands_that_install_it_are_recognized(package: str) -> None:
    assert installs_other_distribution(f"elsewhere `pip install {package}`. Without it")
    assert installs_other_distribution(f"    python -m pip install {package}")


@pytest.mark.parametrize("package", ["minijax-compiler[test]", "./minijax", "dist/minijax.whl"])
def test_commands_that_install_minijax_pass(package: str) -> None:
    assert not installs_other_distribution(f"`pip install {package}` where minijax is installed")


def test_no_text_installs_the_distribution_of_another_project() -> None:
    suffixes = {".md", ".py", ".pyi", ".toml", ".yml", ".yaml", ".txt", ".json", ""}
    paths = [p for p in architecture.project_files(ROOT) if p.suffix in suffixes]
    assert {ROOT / "README.md", ROOT / "docs" / "notebooks.md", ROOT / "Makefile"} <= set(paths)
    lines = [
        (path.relative_to(ROOT).as_posix(), line)
        for path in paths
        for line in path.read_text(encoding="utf-8", errors="ignore").splitlines()
        if installs_other_distribution(line)
    ]
    assert lines == []
