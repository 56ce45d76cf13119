"""Installs and removes the hook that reads the variable `MINIJAX_AS_JAX` when Python starts.

    python -m minijax.as_jax --install-hook

The hook is a `.pth` file in a site directory.  Python runs its code at every start in that
environment, so the file is written only on request, and is not part of the wheel.
"""

from __future__ import annotations

import contextlib
import os
import site
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from minijax.core.deferral import ROOT
from minijax.core.errors import error

FILE_NAME = f"{ROOT}_as_jax.pth"

_VARIABLE = f"{ROOT.upper()}_AS_JAX"
_NAME = "as_jax"
_COMMAND = f"python -m {ROOT}.as_jax"

# Of a `.pth` file Python runs the lines that begin with `import`, and skips comments.
_TEXT = f"""\
# Written by `{_COMMAND} --install-hook`; `{_COMMAND} --remove-hook` removes it.
import os; os.environ.get("{_VARIABLE}", "").lower() not in ("", "0", "false", "no", "off") \
and __import__("{ROOT}.as_jax")
"""

_INSTALLED = f"""\
wrote {{path}}
  effect    `import jax` imports {ROOT} in every program of this environment that is started with
            {_VARIABLE}=1
  cost      one look-up of {_VARIABLE} each time Python starts
  undo      {_COMMAND} --remove-hook"""


def install_hook(folder: str | None = None) -> str:
    """Writes the hook into a site directory.

    Args:
        folder: the site directory; by default, that of the active virtual environment.

    Returns:
        a message with the path of the file, its effect, and the command that removes it.

    Raises:
        ValueError: no virtual environment is active, or `folder` is not a site directory.
        FileExistsError: the hook is already installed.
        PermissionError: the directory is not writable.
    """
    path = _site_directory(folder) / FILE_NAME
    if path.exists():
        problem = "the hook is already installed."
        fix = f"{_COMMAND} --remove-hook removes it"
        error(FileExistsError, _NAME, problem, got=str(path), fix=fix, at="")
    with _explained_permission(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_TEXT, encoding="utf-8")
    return _INSTALLED.format(path=path)


def remove_hook(folder: str | None = None) -> str:
    """Removes the hook from a site directory.

    Args:
        folder: the site directory; by default, that of the active virtual environment.

    Returns:
        a message with the path of the removed file.

    Raises:
        ValueError: no virtual environment is active, or `folder` is not a site directory.
        FileNotFoundError: the hook is not installed.
        PermissionError: the directory is not writable.
    """
    path = _site_directory(folder) / FILE_NAME
    if not path.exists():
        problem = "the hook is not installed: there is nothing to remove."
        error(FileNotFoundError, _NAME, problem, expected=str(path), at="")
    with _explained_permission(path):
        path.unlink()
    return f"removed {path}\n  effect    Python no longer reads {_VARIABLE} in this environment"


def _site_directory(folder: str | None) -> Path:
    """Returns the directory for the hook, after checking that Python reads `.pth` files there."""
    directories = site.getsitepackages()
    if site.ENABLE_USER_SITE:
        directories.append(site.getusersitepackages())
    if folder is not None:
        if os.path.realpath(folder) not in map(os.path.realpath, directories):
            problem = "Python reads hooks from its site directories only."
            error(ValueError, _NAME, problem, got=folder, expected=" or ".join(directories), at="")
        return Path(folder)
    if sys.prefix == sys.base_prefix:
        problem = (
            "no virtual environment is active, so every program of this Python would run the hook."
        )
        fix = f"activate one, or name the site directory, such as {directories[0]}"
        error(ValueError, _NAME, problem, got=sys.executable, fix=fix, at="")
    return Path(sysconfig.get_path("purelib"))


@contextlib.contextmanager
def _explained_permission(path: Path) -> Iterator[None]:
    try:
        yield
    except PermissionError:
        problem = "the site directory is not writable."
        fix = "run the command as the owner of the directory"
        error(PermissionError, _NAME, problem, got=str(path), fix=fix, at="", cause=None)
