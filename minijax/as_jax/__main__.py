"""Runs a program for which `jax` means minijax: `python -m minijax.as_jax program.py`.

`python -m minijax.as_jax -m module` runs a module, as `python -m module` does, and
`python -m minijax.as_jax --wheel folder` writes a distribution named jax; docs/ecosystem.md tells
what it is for.
"""

from __future__ import annotations

import os
import runpy
import sys

from minijax import as_jax
from minijax.as_jax import distribution

_USAGE = f"python -m {as_jax.__name__} (program.py | -m module | --wheel folder) [args]"


def main() -> None:
    """Runs the program that the command line names, with the arguments that follow it."""
    given = sys.argv[1:]
    if not given or given[0] in {"-h", "--help"} or given in (["-m"], ["--wheel"]):
        sys.exit(f"{__doc__}\nusage: {_USAGE}")
    if given[0] == "--wheel":
        sys.stdout.write(f"{distribution.write_wheel(given[1])}\n")
    elif given[0] == "-m":
        sys.argv = given[1:]
        sys.path.insert(0, "")
        runpy.run_module(given[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = given
        sys.path.insert(0, os.path.dirname(os.path.abspath(given[0])))
        runpy.run_path(given[0], run_name="__main__")


if __name__ == "__main__":
    main()
