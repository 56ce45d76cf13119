"""Tools that look for modules without importing the package's own finder find all of them."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import minijax
from tests.docs import public

ROOT = Path(minijax.__file__).parents[1]


def run(script: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def walked() -> set[str]:
    """The names that `pkgutil` finds, in a process of its own: the walk imports `as_jax`."""
    script = """
import json, pkgutil, minijax

def fail(name):
    raise

found = pkgutil.walk_packages(minijax.__path__, "minijax.", onerror=fail)
print(json.dumps([module.name for module in found]))
"""
    return {"minijax", *run(script)}


def test_walk_finds_every_file(walked: set[str]) -> None:
    assert walked == set(public.every_module())


def test_walk_finds_every_public_module(walked: set[str]) -> None:
    script = """
import json, types, minijax
values = {name: getattr(minijax, name) for name in dir(minijax)}
modules = [value.__name__ for value in values.values() if isinstance(value, types.ModuleType)]
print(json.dumps(modules))
"""
    shown = run(script)
    assert len(shown) > 30
    assert walked >= {*public.NAMES, *shown} - {*public.DISTRIBUTIONS}


def test_public_modules_need_no_finder_of_ours() -> None:
    script = """
import importlib, json, sys
from importlib.machinery import PathFinder
import minijax
from minijax.core import deferral

sys.meta_path.remove(deferral.Finder)
lacking = []
for name in sys.argv[1:]:
    parent = importlib.import_module(name.rpartition(".")[0])
    spec = PathFinder.find_spec(name, parent.__path__)
    if spec is None or not spec.origin.endswith(".py"):
        lacking.append(name)
    else:
        compile(spec.loader.get_source(name), spec.origin, "exec")
        importlib.import_module(name)
print(json.dumps(lacking))
"""
    names = [name for name in public.every_module() if name.startswith("minijax.as_jax.names.")]
    files = [name for name in public.NAMES[1:] if name not in public.DISTRIBUTIONS]
    assert run(script, *files, *names) == []


def test_distributions_exist_once_their_package_does() -> None:
    script = """
import json, sys
import minijax.scipy.stats
print(json.dumps([name for name in sys.argv[1:] if name not in sys.modules]))
"""
    assert run(script, *public.DISTRIBUTIONS) == []


def test_names_load_from_an_archive(tmp_path: Path) -> None:
    attached = (
        "from minijax.core import deferral\n"
        "__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)\n"
    )
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("zipped/__init__.py", attached)
        archive.writestr("zipped/__init__.pyi", "from zipped.part import double as double\n")
        archive.writestr("zipped/part.py", "def double(x): return 2 * x\n")
    script = """
import json, sys
sys.path.insert(0, sys.argv[1])
import zipped
print(json.dumps([zipped.__all__, zipped.double(4)]))
"""
    assert run(script, str(tmp_path / "archive.zip")) == [["double"], 8]
