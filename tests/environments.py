"""Virtual environments for tests of installations, made without the network and without pip."""

import importlib.util
import os
import subprocess
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

DEPENDENCIES = (
    "jaxlib",
    "numpy",
    "ml_dtypes",
    "opt_einsum",
    "IPython",
    "pygments",
    "hypothesis",
    "pytest",
)
"""Packages that an environment imports from where the tests import them."""


class Environment:
    """A virtual environment that sees the dependencies of minijax, but no checkout of it.

    Args:
        folder: where it is made.
        paths: other directories to import from.
    """

    def __init__(self, folder: Path, paths: Sequence[Path] = ()) -> None:
        self.folder = folder
        if not folder.exists():
            venv.create(folder, symlinks=os.name != "nt")
        scheme = {"base": str(folder), "platbase": str(folder)}
        self.site_directory = Path(sysconfig.get_path("purelib", "venv", scheme))
        self.python = Path(sysconfig.get_path("scripts", "venv", scheme)) / "python"
        # Python follows these lines, but not the `.pth` files in the directories that they name.
        # One of those leads to the checkout, where the tests run in an editable installation.
        lines = [str(path) for path in (*paths, *_directories_of_dependencies())]
        dependencies = self.site_directory / "_dependencies.pth"
        dependencies.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def run(
        self, *arguments: str, cwd: Path | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs its Python in a directory, by default its own, without the paths of this process."""
        inherited = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "PYTHONHOME"}}
        return subprocess.run(
            [str(self.python), *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=cwd or self.folder,
            env={**inherited, **variables},
        )


def _directories_of_dependencies() -> list[Path]:
    """Returns the site directories that contain the dependencies, each once."""
    specs = [importlib.util.find_spec(name) for name in DEPENDENCIES]
    origins = [Path(spec.origin) for spec in specs if spec is not None and spec.origin]
    return list(dict.fromkeys(origin.parents[1] for origin in origins))
