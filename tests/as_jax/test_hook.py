"""A command installs the hook that reads `MINIJAX_AS_JAX`, and removes it again."""

import site
import sys
from pathlib import Path

import pytest

import minijax
from minijax.as_jax import hook
from tests.environments import Environment

IMPORTED = "import sys; print('minijax.as_jax' in sys.modules, 'minijax' in sys.modules)"


@pytest.mark.slow
@pytest.mark.feature("EC-01")
def test_variable_is_read_while_the_hook_is_installed(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "env", paths=[Path(minijax.__file__).parents[1]])
    path = environment.site_directory / hook.FILE_NAME

    def imported(value: str) -> str:
        done = environment.run("-c", IMPORTED, MINIJAX_AS_JAX=value)
        assert done.stderr == ""
        return done.stdout.strip()

    assert imported("1") == "False False"
    done = environment.run("-m", "minijax.as_jax", "--install-hook")
    assert done.stdout.startswith(f"wrote {path}\n"), done.stderr
    assert "undo      python -m minijax.as_jax --remove-hook" in done.stdout
    assert imported("true") == "True True"
    assert [imported(value) for value in ("0", "No", "")] == ["False False"] * 3

    done = environment.run("-m", "minijax.as_jax", "--remove-hook")
    assert done.stdout.startswith(f"removed {path}\n"), done.stderr
    assert imported("1") == "False False"
    done = environment.run("-m", "minijax.as_jax", "--remove-hook")
    assert (done.returncode, done.stdout) == (1, "")
    assert "the hook is not installed: there is nothing to remove." in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture(name="directory")
def directory_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site directory of this process, until the end of the test."""
    directory = tmp_path / "site-packages"
    monkeypatch.setattr(site, "getsitepackages", lambda: [str(directory)])
    return directory


def test_hook_is_installed_once(directory: Path) -> None:
    assert str(directory / hook.FILE_NAME) in hook.install_hook(str(directory))
    with pytest.raises(FileExistsError, match=r"already installed[^$]*--remove-hook removes it"):
        hook.install_hook(str(directory))
    hook.remove_hook(str(directory))
    assert list(directory.iterdir()) == []


def test_hook_is_written_where_python_reads_it(directory: Path, tmp_path: Path) -> None:
    for command in (hook.install_hook, hook.remove_hook):
        with pytest.raises(ValueError, match="site directories only") as failure:
            command(str(tmp_path))
        assert f"got       {tmp_path}\n" in str(failure.value)
        assert str(directory) in str(failure.value)


def test_outside_an_environment_the_directory_must_be_named(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    with pytest.raises(ValueError, match="no virtual environment is active") as failure:
        hook.install_hook()
    assert f"name the site directory, such as {directory}" in str(failure.value)


@pytest.mark.parametrize("method", ["write_text", "unlink"])
def test_unwritable_directory_is_reported(
    method: str, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Tests may run as root, who can write to any directory.
    def denied(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    if method == "unlink":
        hook.install_hook(str(directory))
    monkeypatch.setattr(Path, method, denied)
    command = hook.remove_hook if method == "unlink" else hook.install_hook
    with pytest.raises(PermissionError, match="the site directory is not writable"):
        command(str(directory))
