"""Importing the package loads what every program needs, and nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOADED = """
import sys
import minijax, minijax.numpy
print(*sorted(sys.modules))
"""


@pytest.mark.feature("NP-05", "CW-03")
def test_import_loads_no_room_that_few_programs_use() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    unused = (
        "minijax.lax.linalg",
        "minijax.numpy.linalg",
        "minijax.numpy.fft",
        "minijax.scipy",
        "minijax.image",
        "minijax.ops",
        "minijax.ffi",
        "minijax.nn",
        "minijax.random",
        "minijax.testing",
        "minijax.explain",
        "minijax.explain.display",
        "minijax.experimental",
        "scipy",
        "jaxlib.lapack",
    )
    assert "minijax.numpy.reductions" in loaded
    assert [name for name in loaded if name.startswith(unused)] == []


def test_rooms_are_loaded_when_they_are_named() -> None:
    code = (
        "import minijax as jax; print(jax.numpy.linalg.det.__name__, jax.scipy.special.expit(0.0))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "det 0.5\n"


LOWERED = """
import sys
import minijax as jax
lowered = jax.jit(lambda x: x @ x + 1).lower(jax.ShapeDtypeStruct((3, 3), "float32"))
assert "dot_general" in lowered.as_text()
# From 0.11 on jaxlib imports the classes of sdy itself, with its extension module.
assert not [name for name in sys.modules if name.startswith("jaxlib.mlir.dialects._stablehlo")]
from jaxlib.mlir.dialects import stablehlo
main = lowered.compiler_ir().body.operations[0]
assert isinstance(main.regions[0].blocks[0].operations[0], stablehlo.DotGeneralOp)
"""


@pytest.mark.feature("CW-03")
def test_lowering_loads_no_classes_of_operations_that_a_user_may_load() -> None:
    subprocess.run([sys.executable, "-c", LOWERED], check=True)
