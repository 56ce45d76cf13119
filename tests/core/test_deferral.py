"""Parts of packages that load when they are first named."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import minijax
from minijax.core import deferral

ROOT = Path(minijax.__file__).parent


def _promised() -> list[tuple[str, str, str, str]]:
    """What façades promise to type checkers: façade, name there, module, and name in it."""
    found = []
    for path in sorted(ROOT.rglob("__init__.py")):
        package = ".".join((ROOT.name, *path.relative_to(ROOT).parts[:-1]))
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
                continue
            for imported in ast.walk(node):
                if isinstance(imported, ast.ImportFrom):
                    module = str(imported.module)
                    names = [(alias.asname or alias.name, alias.name) for alias in imported.names]
                    found += [(package, shown, module, name) for shown, name in names]
    return [entry for entry in found if entry[1] != "*"]


def test_facades_hold_what_they_promise_to_type_checkers():
    promised = _promised()
    assert len(promised) > 200
    for package, shown, module, name in promised:
        source = importlib.import_module(module)
        if not hasattr(source, name):
            importlib.import_module(f"{module}.{name}")
        expected = getattr(source, name)

        assert getattr(importlib.import_module(package), shown) is expected, (package, shown)


def test_name_that_loads_later_is_found_once(tmp_path, monkeypatch):
    folder = tmp_path / "lazypackage"
    folder.mkdir()
    folder.joinpath("__init__.py").write_text(
        "from minijax.core import deferral\n"
        "__all__ = deferral.shown(__name__, modules=('part',), names={'numpy.windows': 'kaiser'})\n"
        "__getattr__ = deferral.attributes(\n"
        "    __name__, modules=('part',), names={'numpy.windows': 'kaiser'})\n",
        encoding="utf-8",
    )
    folder.joinpath("part.py").write_text("loads = []\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    package = importlib.import_module("lazypackage")

    assert package.__all__ == ["kaiser", "part"]
    assert "kaiser" not in vars(package)
    assert package.kaiser is minijax.numpy.kaiser
    assert vars(package)["kaiser"] is package.kaiser
    assert package.part.loads == []
    with pytest.raises(AttributeError, match="module 'lazypackage' has no attribute 'hanning'"):
        _ = package.hanning
    del sys.modules["lazypackage"], sys.modules["lazypackage.part"]


def test_star_import_brings_what_loads_later():
    names: dict[str, object] = {}
    exec("from minijax.numpy import *", names)

    assert set(dir(minijax.numpy)) <= set(names)
    assert names["maximum"] is minijax.numpy.maximum


def test_plain_import_leaves_what_few_programs_use():
    script = "import sys, minijax; print(*(m for m in sys.modules if m.startswith('minijax.')))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT.parent
    )
    loaded = set(done.stdout.split())

    assert "minijax.transforms.jit" in loaded
    for module in (
        *("lax.convolution", "lax.control_flow.scanning", "lax.collectives.reductions", "scipy"),
        *("numpy.statistics", "transforms.shard_map", "lax.linalg", "nn", "random", "testing"),
    ):
        assert f"minijax.{module}" not in loaded


def test_names_are_given_as_text_or_as_a_list():
    assert "kaiser" in deferral.shown("minijax.numpy", names={"numpy.ranges": ["kaiser"]})
