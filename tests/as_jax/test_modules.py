"""`jax` means minijax where `minijax.as_jax` is imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import minijax

ROOT = Path(minijax.__file__).parents[1]


def run(*arguments: str, cwd: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**os.environ, **variables},
    )


def answers(text: str) -> list[str]:
    done = run("-c", text)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.feature("EC-01")
def test_modules_are_the_same_objects() -> None:
    text = """
import minijax, minijax.as_jax
import jax, jax.numpy as jnp, jax.interpreters.ad, jax.debug
from jax.numpy import linalg
from jax.experimental.shard_map import shard_map
print(jax.numpy is minijax.numpy, jnp is minijax.numpy, linalg is minijax.numpy.linalg)
print(jax.Array is minijax.Array, jax.interpreters.ad is minijax.extend.ad)
print(shard_map.__name__, jax.debug.print is minijax.debug.print)
print(minijax.numpy.__spec__.name, jax.jit(lambda x: x + 1)(jnp.ones(2)))
"""
    assert answers(text) == [
        "True True True",
        "True True",
        "shard_map True",
        "minijax.numpy [2. 2.]",
    ]


@pytest.mark.turns(3)
@pytest.mark.feature("EC-01")
def test_versions_are_those_of_jax() -> None:
    text = """
import minijax, minijax.as_jax, jax, importlib.metadata
print(jax.__version__, jax.__version_info__, importlib.metadata.version("jax"))
print(minijax.__version__ == importlib.metadata.version("minijax-compiler"))
print(importlib.metadata.version("numpy") == __import__("numpy").__version__)
"""
    assert answers(text) == ["0.10.2 (0, 10, 2) 0.10.2", "True", "True"]


@pytest.mark.turns(3)
def test_a_module_that_is_not_there_is_missing() -> None:
    text = """
import minijax.as_jax, jax, traceback
for statement in ("import jax.absent", "from jax import absent", "jax.absent", "import jax.jit"):
    try:
        exec(statement)
    except (ImportError, AttributeError) as error:
        print(type(error).__name__, error)
        if statement == "jax.absent":
            print(traceback.extract_tb(error.__traceback__)[-1].filename)
"""
    assert answers(text) == [
        "ModuleNotFoundError No module named 'jax.absent'",
        "ImportError cannot import name 'absent' from 'jax' (unknown location)",
        "AttributeError module 'minijax' has no attribute 'absent'",
        "<string>",
        "ModuleNotFoundError No module named 'jax.jit'",
    ]


@pytest.mark.turns(3)
def test_two_lines_undo_it() -> None:
    text = """
import minijax.as_jax, jax.numpy, sys
minijax.as_jax.uninstall()
print([name for name in sys.modules if name.partition(".")[0] == "jax"])
try:
    import jax
except ImportError as error:
    print(error)
minijax.as_jax.install()
import jax
print(jax.__version__)
"""
    assert answers(text) == ["[]", "No module named 'jax'", "0.10.2"]


@pytest.mark.turns(3)
def test_jax_itself_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "jax.py").write_text('__version__ = "0.10.2"\n')
    done = run("-c", "import jax, minijax.as_jax", cwd=tmp_path)
    assert done.returncode == 1
    assert "JAX itself has been imported in this process" in done.stderr
    assert "import minijax.as_jax before anything that imports jax" in done.stderr


@pytest.mark.turns(3)
@pytest.mark.feature("EC-01")
def test_programs_and_modules_run_so(tmp_path: Path) -> None:
    program = "import sys, beside, jax\nprint(__name__, sys.argv[1:], beside.x, jax.__version__)\n"
    (tmp_path / "program.py").write_text(program)
    (tmp_path / "beside.py").write_text("x = 1\n")
    told = "__main__ ['-a', 'b'] 1 0.10.2\n"
    assert run("-m", "minijax.as_jax", f"{tmp_path}/program.py", "-a", "b").stdout == told
    assert run("-m", "minijax.as_jax", "-m", "program", "-a", "b", cwd=tmp_path).stdout == told
    (tmp_path / "test_it.py").write_text(
        "import jax\ndef test_it(): assert jax.numpy.ones(2).sum() == 2\n"
    )
    done = run("-m", "pytest", "-q", "-p", "minijax.as_jax", "test_it.py", cwd=tmp_path)
    assert "1 passed" in done.stdout
    assert run("-m", "minijax.as_jax").returncode == 1


@pytest.mark.turns(3)
def test_it_is_not_imported_with_the_package() -> None:
    text = "import minijax, sys; minijax.jit; print('minijax.as_jax' in sys.modules)"
    assert answers(text) == ["False"]


@pytest.mark.turns(3)
@pytest.mark.feature("EC-01")
def test_variables_of_jax_are_heard_until_it_is_imported() -> None:
    text = """
import os
import minijax.as_jax
os.environ["JAX_ENABLE_X64"] = "1"
import jax
print(jax.numpy.ones(2).dtype, jax.config.jax_debug_nans, jax.config.jax_numpy_rank_promotion)
"""
    ours, theirs = {"MINIJAX_DEBUG_NANS": "0"}, {"JAX_DEBUG_NANS": "1"}
    told = run("-c", text, JAX_NUMPY_RANK_PROMOTION="raise", **theirs)
    assert told.stdout.split() == ["float64", "True", "raise"], told.stderr
    assert run("-c", text, **ours, **theirs).stdout.split() == ["float64", "False", "allow"]


@pytest.mark.turns(3)
@pytest.mark.feature("EC-01")
def test_flags_of_jax_are_heard_where_a_program_parses_them() -> None:
    text = """
import minijax.as_jax, jax
jax.config.parse_flags_with_absl()
print(jax.config.jax_enable_x64, jax.config.jax_numpy_rank_promotion)
minijax.as_jax.uninstall()
print(hasattr(minijax.config, "parse_flags_with_absl"))
"""
    flags = ["--jax_enable_x64", "--jax_numpy_rank_promotion=warn", "--other=1"]
    told = run("-c", text, *flags)
    assert told.stdout.split() == ["True", "warn", "False"], told.stderr
    assert "jax_absent" in run("-c", text, "--jax_absent").stderr
