"""Both libraries in one process: each array is of the one that made it."""

import os
import pathlib
import subprocess

import pytest

_ROOT = pathlib.Path(__file__).parents[2]
_PYTHON = _ROOT / ".venv-jax/bin/python"


@pytest.mark.turns(3)
@pytest.mark.feature("CW-01")
@pytest.mark.sampled(1)
@pytest.mark.parametrize("order", [("minijax", "jax"), ("jax", "minijax")])
def test_both_libraries_compute_in_one_process(order: tuple[str, str]) -> None:
    if not _PYTHON.exists():
        pytest.skip("needs JAX in .venv-jax: make bench installs it")
    env = os.environ | {
        "PYTHONPATH": str(_ROOT),
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        "JAX_NUM_CPU_DEVICES": "4",
        "MINIJAX_NUM_CPU_DEVICES": "4",
    }
    command = [str(_PYTHON), str(pathlib.Path(__file__).with_name("beside_jax.py")), *order]
    found = subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert found.stdout == "fine\n", found.stderr[-3000:]
