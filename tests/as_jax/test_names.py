"""Names of JAX that packages ask for are there while `jax` means minijax, but for a few."""

import subprocess
import sys
from pathlib import Path

import pytest

import minijax
from tools import package_names

pytestmark = pytest.mark.feature("EC-02")

ROOT = Path(minijax.__file__).parents[1]
NAMES = ROOT / "benchmarks" / "packages" / "names.txt"

LEFT = {
    "jax._src.checkify.Out": "in an annotation",
    "jax._src.core.physical_aval": "dtypes of flax.linen.fp8_ops, which packages define",
    "jax._src.dispatch.wait_for_tokens": "asked for by hasattr",
    "jax._src.dtypes.supports_inf": "dtypes of flax.linen.fp8_ops",
    "jax._src.interpreters.pxla.global_result_handlers": "dtypes of flax.linen.fp8_ops",
    "jax._src.literals.TypedNdArray": "asked for by hasattr",
    "jax.experimental.colocated_python": "devices of hosts far away",
    "jax.interpreters.pxla.global_avals_to_results_handler": "devices of hosts far away",
    "jax.typing.ArrayLike.__qualname__": "asked for under try",
}
"""What is left out, and what for packages ask for it; whole modules without their parts."""

RESOLVE = """
import importlib, sys
import minijax.as_jax, jax

def is_there(name):
    parts = name.split(".")
    for i in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:i]))
            break
        except ImportError:
            continue
    for part in parts[i:]:
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True

for line in open(sys.argv[1]):
    if not is_there(line.split()[0]):
        print(line.split()[0])
"""


def test_what_packages_ask_for_is_there() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RESOLVE, str(NAMES)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    missing = [n for n in done.stdout.split() if not any(f"{n}.".startswith(f"{m}.") for m in LEFT)]
    assert missing == []
    assert len(NAMES.read_text().splitlines()) > 700


def test_private_names_are_few_and_tell_who_needs_them() -> None:
    """What `jax._src` has is asked for by a package, or says why it is there."""
    folder = ROOT / "minijax" / "as_jax" / "names" / "_src"
    modules = [path for path in folder.rglob("*.py") if path.name != "__init__.py"]
    assert len(modules) > 10
    for path in modules:
        assert any(word in path.read_text() for word in ("Needed by", "Named by")), path


def test_names_are_read_from_code() -> None:
    text = """
import jax, jax.numpy as jnp, numpy as np
import jax.experimental.sparse
from jax.sharding import PartitionSpec as P
from . import other
def f(x):
    return jnp.linalg.norm(x), jax.lax.add(x, x), np.linalg.norm(x), other.jax, P.y, P(x).z
"""
    assert package_names.names_in(text) >= {
        "jax.experimental.sparse",
        "jax.numpy.linalg.norm",
        "jax.lax.add",
        "jax.sharding.PartitionSpec.y",
    }
    assert not any("other" in name for name in package_names.names_in(text))
