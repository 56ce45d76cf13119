"""Runs a program in which `jax` means minijax: `python -m minijax.as_jax program.py`.

`python -m minijax.as_jax -m module` runs a module, as `python -m module` does.
`--wheel folder` writes a distribution named jax, with which installers satisfy the requirements of
packages written for JAX.  `--install-hook` lets the variable MINIJAX_AS_JAX=1 do the same for all
programs of a virtual environment, and `--remove-hook` undoes that.
"""

from __future__ import annotations

import os
import runpy
import sys

from minijax import as_jax
from minijax.as_jax import distribution, hook

_USAGE = (
    f"python -m {as_jax.__name__} "
    "(program.py | -m module | --wheel folder | --install-hook [folder] | --remove-hook [folder]) "
    "[args]"
)
_HOOK_COMMANDS = {"--install-hook": hook.install_hook, "--remove-hook": hook.remove_hook}


def main() -> None:
    """Runs the program or the command that the command line names."""
    words = sys.argv[1:]
    if not words or words[0] in {"-h", "--help"} or words in (["-m"], ["--wheel"]):
        sys.exit(f"{__doc__}\nusage: {_USAGE}")
    if words[0] == "--wheel":
        sys.stdout.write(f"{distribution.write_wheel(words[1])}\n")
    elif words[0] in _HOOK_COMMANDS:
        try:
            sys.stdout.write(f"{_HOOK_COMMANDS[words[0]](*words[1:2])}\n")
        except (OSError, ValueError) as failure:
            sys.exit(str(failure))
    elif words[0] == "-m":
        sys.argv = words[1:]
        sys.path.insert(0, "")
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path.insert(0, os.path.dirname(os.path.abspath(words[0])))
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main()
