"""Carries exported programs from JAX to minijax, and the other way: all files are written anew.

    python -m benchmarks.export_files --jax-python .venv-jax/bin/python

JAX writes the programs of `record_exports.py`, which run here; the programs of
`tests/export/test_files_in_jax.py` are written here and run in JAX.  What the two libraries compute
must agree; the exit status says so.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import tempfile

import minijax
from tests.export import test_files_in_jax as there
from tests.export import test_files_of_jax as here

_RECORDER = pathlib.Path(__file__).with_name("record_exports.py")
_EIGHT = "--xla_force_host_platform_device_count=8"


def main() -> None:
    """Runs what the module's text says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jax-python", required=True, help="the interpreter that has JAX")
    python = pathlib.Path(parser.parse_args().jax_python).absolute()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        environment = {**os.environ, "XLA_FLAGS": _EIGHT, "JAX_PLATFORMS": "cpu"}
        subprocess.run([python, _RECORDER, folder], check=True, env=environment)
        names = sorted(path.stem for path in folder.glob("*.bin"))
        with minijax.cpu_devices(8):
            for each in names:
                here.check_results(folder, each)
        print(f"{len(names)} programs of JAX give the results of JAX here")
    with tempfile.TemporaryDirectory() as name:
        there.check_in_jax(python, pathlib.Path(name))
        print(f"{len(there.PROGRAMS)} programs of minijax give its results in JAX")


if __name__ == "__main__":
    main()
