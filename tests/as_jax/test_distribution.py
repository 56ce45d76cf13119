"""The distribution named jax, which packages that require JAX are content with."""

import base64
import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import minijax
from minijax.as_jax.distribution import RELEASE, write_wheel

pytestmark = pytest.mark.feature("EC-08")

ROOT = Path(minijax.__file__).parents[1]


@pytest.fixture(name="wheel", scope="module")
def wheel_(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_wheel(tmp_path_factory.mktemp("wheels"))


def run(*arguments: str, path: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, env=environment
    )


@pytest.mark.turns(3)
def test_what_it_installs_makes_jax_mean_minijax(wheel: Path) -> None:
    # Python imports from a wheel as if it were installed.
    text = """
import jax.numpy as jnp, jax, minijax, importlib.metadata
from jax.experimental import sparse
print(jnp is minijax.numpy, jax.__version__, importlib.metadata.version("jax"))
print(jax.jit(lambda x: x + 1)(jnp.ones(2)), __import__("jax") is jax)
"""
    done = run("-c", text, path=os.pathsep.join([str(wheel), str(ROOT)]))
    assert done.stdout.splitlines() == ["True 0.10.2 0.10.2", "[2. 2.] True"], done.stderr


def test_without_minijax_it_says_what_is_missing(wheel: Path, tmp_path: Path) -> None:
    blocked = "import sys; sys.modules['minijax'] = None\nimport jax"
    done = run("-c", blocked, path=str(wheel))
    assert done.returncode == 1
    assert "minijax" in done.stderr.splitlines()[-1]


def test_it_is_a_wheel_of_jax_that_is_the_same_each_time(wheel: Path, tmp_path: Path) -> None:
    assert wheel.name == f"jax-{RELEASE}-py3-none-any.whl"
    assert RELEASE == "0.10.2+minijax"
    assert write_wheel(tmp_path / "new").read_bytes() == wheel.read_bytes()
    with zipfile.ZipFile(wheel) as files:
        about = f"jax-{RELEASE}.dist-info"
        recorded = files.read(f"{about}/RECORD").decode().splitlines()
        rows = [line.split(",") for line in recorded]
        assert sorted(name for name, *_ in rows) == sorted(files.namelist())
        for name, digest, size in rows:
            if name == f"{about}/RECORD":
                continue
            content = files.read(name)
            found = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            assert (digest, int(size)) == (f"sha256={found.decode()}", len(content))
        assert f"Version: {RELEASE}\n" in files.read(f"{about}/METADATA").decode()


@pytest.mark.turns(3)
def test_the_command_line_writes_it(tmp_path: Path) -> None:
    done = run("-m", "minijax.as_jax", "--wheel", str(tmp_path / "wheels"), path=str(ROOT))
    assert done.stdout.strip() == str(tmp_path / "wheels" / f"jax-{RELEASE}-py3-none-any.whl")
    assert Path(done.stdout.strip()).exists()
    assert run("-m", "minijax.as_jax", "--wheel", path=str(ROOT)).returncode == 1
