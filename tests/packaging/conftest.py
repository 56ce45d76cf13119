"""Builds the distributions once, and installs the wheel in an environment without the checkout."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.environments import Environment

ROOT = Path(__file__).parents[2]


class Built(NamedTuple):
    """The distributions, and an environment in which the wheel is installed."""

    wheel: Path
    sdist: Path
    environment: Environment


def run(*command: str) -> None:
    """Runs a module of Python in the checkout; its output is part of the error if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Builds and installs, in whichever worker of this run of tests comes first."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    distributions = folder / "distributions"
    with (folder / "distributions.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        exists = distributions.exists()
        if not exists:
            run("hatchling", "build", "--directory", str(distributions))
        [wheel], [sdist] = distributions.glob("*.whl"), distributions.glob("*.tar.gz")
        environment = Environment(folder / "environment")
        if not exists:
            # Each program compiles what it imports, which is less than everything.
            options = ("--quiet", "--no-deps", "--no-index", "--no-compile")
            python = str(environment.python)
            run("pip", "--python", python, "install", *options, str(wheel))
    return Built(wheel, sdist, environment)
