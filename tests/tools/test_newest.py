"""`make newest` runs a command in a container, and without one says what to do by hand."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# They answer `info` with a status, and note down the arguments of any other call.
ENGINE = """#!/bin/sh
if [ "$1" = info ]; then exit {status}; fi
for argument in "$@"; do printf '%s\\0' "$argument"; done > "{log}"
exit 3
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs the script where the only container engines are those that the test names."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "dirname", "cat"):
        (programs / name).symlink_to(str(shutil.which(name)))

    def start(engines: dict[str, int], **variables: str) -> subprocess.CompletedProcess[str]:
        for name, status in engines.items():
            text = ENGINE.format(status=status, log=tmp_path / name)
            (programs / name).write_text(text, encoding="utf-8")
            (programs / name).chmod(0o755)
        return subprocess.run(
            ["sh", str(ROOT / "tools" / "newest.sh")],
            env={"PATH": str(programs), **variables},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    return start


def arguments_of(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8").split("\0")[:-1]


def test_command_runs_in_a_container_that_cannot_write_the_checkout(
    run: Run, tmp_path: Path
) -> None:
    done = run({"docker": 0})
    assert done.returncode == 3, "the status is the container's"
    *options, image, shell, _, _, _, source, _, command = arguments_of(tmp_path / "docker")
    assert options[:2] == ["run", "--rm"]
    assert options[options.index("--volume") + 1] == f"{ROOT}:/checkout:ro"
    assert options[options.index("--env") + 1] == "JAXLIB="
    assert (image, shell, source, command) == ("python:3.14", "sh", "/checkout", "make test")


def test_image_command_and_jaxlib_can_be_chosen(run: Run, tmp_path: Path) -> None:
    run({"podman": 0}, PYTHON_IMAGE="python:3.15", COMMAND="make demo", JAXLIB="0.12.0.1")
    arguments = arguments_of(tmp_path / "podman")
    assert {"python:3.15", "make demo", "JAXLIB=0.12.0.1"} <= set(arguments)


def test_engine_that_does_not_answer_is_passed_over(run: Run, tmp_path: Path) -> None:
    run({"docker": 1, "podman": 0})
    assert not (tmp_path / "docker").exists()
    assert (tmp_path / "podman").exists()


@pytest.mark.parametrize(
    ("engines", "reason"),
    [({}, "Neither is installed."), ({"docker": 1}, "'docker info' fails")],
)
def test_without_a_container_the_message_says_what_to_type(
    run: Run, engines: dict[str, int], reason: str
) -> None:
    done = run(engines, JAXLIB="0.12.0.1")
    assert done.returncode == 1
    assert reason in done.stderr
    assert "make PYTHON=python3.14 VENV=.venv-3.14 JAXLIB=0.12.0.1 test" in done.stderr


def test_copy_in_the_container_leaves_environments_out(run: Run, tmp_path: Path) -> None:
    run({"docker": 0})
    script = arguments_of(tmp_path / "docker")[-5]
    checkout, copy = tmp_path / "checkout", tmp_path / "copy"
    for name in (".venv/x", ".venv-3.14/x", "web/node_modules/x", "out/x", "minijax/x", ".git/x"):
        (checkout / name).parent.mkdir(parents=True)
        (checkout / name).touch()
    subprocess.run(["sh", "-c", script, "sh", checkout, copy, "pwd > here"], check=True)
    files = {str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()}
    assert files == {"minijax/x", ".git/x", "here"}
    here = (copy / "here").read_text(encoding="utf-8").strip()
    assert os.path.realpath(here) == os.path.realpath(copy)


def test_make_passes_its_variables_on(run: Run, tmp_path: Path) -> None:
    run({"docker": 0})
    for name in ("make", "awk", "find"):
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    done = subprocess.run(
        ["make", "-s", "newest", "PYTHON=python", "COMMAND=make 'demo'", "JAXLIB=0.11.2"],
        cwd=ROOT,
        env={"PATH": str(tmp_path / "bin")},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    arguments = arguments_of(tmp_path / "docker")
    assert done.returncode != 0
    assert arguments[-1] == "make 'demo'"
    assert "JAXLIB=0.11.2" in arguments
