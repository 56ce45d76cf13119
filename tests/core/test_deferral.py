"""Parts of packages that load when they are first named."""

import ast
import importlib
import importlib.util
import inspect
import pickle
import pydoc
import subprocess
import sys
from pathlib import Path

import pytest

import minijax
from minijax.core import deferral

ROOT = Path(minijax.__file__).parent


# Packages import modules of JAX of which they need nothing, or one private name.
MAY_BE_EMPTY = {
    path for path in (ROOT / "as_jax" / "names").rglob("*") if path.suffix in {".py", ".pyi"}
}
PUBLISHED = [
    path
    for path in sorted(ROOT.rglob("*.py"))
    if "\ndeferral.publish(globals())\n" in path.read_text(encoding="utf-8")
]


def _package(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(text: str) -> dict[str, tuple[str, str]]:
    """Parses the names that a stub or a public module re-exports, with module and name there."""
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom):
            module = str(node.module)
            found.update({str(a.asname): (module, a.name) for a in node.names if a.asname})
        elif isinstance(node, ast.Assign):
            module, _, name = ast.unparse(node.value).rpartition(".")
            found[ast.unparse(node.targets[0])] = module, name
    return found


def _promised() -> list[tuple[str, str, str, str]]:
    """What façades promise to type checkers: façade, name there, module, and name in it."""
    found = []
    for path in [*sorted(ROOT.rglob("*.pyi")), *PUBLISHED]:
        exports = _imports(path.read_text(encoding="utf-8"))
        found += [(_package(path), shown, *home) for shown, home in exports.items()]
    for path in sorted(ROOT.rglob("__init__.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
                continue
            for imported in ast.walk(node):
                if isinstance(imported, ast.ImportFrom):
                    module = str(imported.module)
                    names = [(alias.asname or alias.name, alias.name) for alias in imported.names]
                    found += [(_package(path), shown, module, name) for shown, name in names]
    return [entry for entry in found if entry[1] != "*"]


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.pyi")), ids=_package)
def test_stub_is_read_as_python_reads_it(path: Path):
    text = path.read_text(encoding="utf-8")
    expected = _imports(text)

    assert deferral.exports(text) == expected
    assert expected or path in MAY_BE_EMPTY
    assert not any(
        isinstance(node, ast.ImportFrom) and [a for a in node.names if a.asname != a.name]
        for node in ast.parse(text).body
    )


def test_facades_hold_what_they_promise_to_type_checkers():
    promised = _promised()
    assert len(promised) > 1000
    for package, shown, module, name in promised:
        source = importlib.import_module(module)
        if not hasattr(source, name):
            importlib.import_module(f"{module}.{name}")
        expected = getattr(source, name)

        found = getattr(importlib.import_module(package), shown)
        # A function is shown behind its boundary.
        assert expected in (found, getattr(found, "__wrapped__", None)), (package, shown)


def test_name_that_loads_later_is_found_once(tmp_path, monkeypatch):
    folder = tmp_path / "lazypackage"
    folder.mkdir()
    folder.joinpath("__init__.py").write_text(
        "from minijax.core import deferral\n"
        "__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)\n",
        encoding="utf-8",
    )
    folder.joinpath("__init__.pyi").write_text(
        "import minijax.numpy.ranges\n"
        "from lazypackage import part as part\n"
        "from lazypackage.twin import twin as twin\n"
        "from minijax.numpy.ranges import (\n    kaiser as kaiser,\n)\n\n"
        "other = minijax.numpy.ranges.hamming\n"
        "__version__: str\n",
        encoding="utf-8",
    )
    folder.joinpath("twin.py").write_text("def twin(): pass\n", encoding="utf-8")
    folder.joinpath("part.py").write_text("loads = []\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    package = importlib.import_module("lazypackage")

    assert package.__all__ == ["kaiser", "other", "part", "twin"]
    assert dir(package) == ["__version__", "kaiser", "other", "part", "twin"]
    assert callable(package.twin)
    assert package.other is minijax.numpy.hamming
    assert "kaiser" not in vars(package)
    assert package.kaiser is minijax.numpy.kaiser
    assert vars(package)["kaiser"] is package.kaiser
    assert package.part.loads == []
    with pytest.raises(AttributeError, match="module 'lazypackage' has no attribute 'hanning'"):
        _ = package.hanning
    for module in ("lazypackage", "lazypackage.part", "lazypackage.twin"):
        del sys.modules[module]


@pytest.mark.parametrize("path", PUBLISHED, ids=_package)
def test_public_module_lists_what_it_imports(path):
    name, text = _package(path), path.read_text("utf-8")
    module = importlib.import_module(name)
    exported = sorted(shown for shown in _imports(text) if not shown.startswith("_"))

    assert module.__file__ == str(path)
    assert module.__all__ == dir(module) == exported
    assert exported or path in MAY_BE_EMPTY
    assert inspect.getsource(module) == text
    assert str(module.__doc__).splitlines()[0] in pydoc.plain(pydoc.render_doc(module))
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        _ = module.nothing


def test_function_of_two_public_modules_has_its_shortest_name():
    script = (
        "from minijax import tree_util\n"
        "print(tree_util.tree_map.__module__, tree_util.tree_map.__qualname__)\n"
        "from minijax import tree\n"
        "print(tree.map is tree_util.tree_map, tree.map.__module__, tree.map.__qualname__)\n"
        "print('mirrors jax.tree.map' in tree.map.__doc__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == [
        "minijax.tree_util",
        "tree_map",
        "True",
        "minijax.tree",
        "map",
        "True",
    ]


def test_public_modules_are_found_by_every_kind_of_import():
    script = (
        "import minijax.stages; print(minijax.stages.Traced.__name__)\n"
        "from minijax.tree_util import tree_map; print(tree_map.__name__)\n"
        "import minijax.experimental.checkify as checkify; print(checkify.check.__name__)\n"
        "import minijax, sys; print('minijax.debug' in sys.modules, minijax.debug.print.__name__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["Traced", "map", "check", "False", "debug_print"]
    assert minijax.debug is sys.modules["minijax.debug"]
    assert importlib.reload(minijax.debug).print.__wrapped__ is minijax.lax.debugging.debug_print
    assert pickle.loads(pickle.dumps(minijax.errors.KeyReuseError)) is minijax.errors.KeyReuseError
    assert importlib.util.find_spec("minijax.nothing") is None
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'minijax\.nothing'"):
        importlib.import_module("minijax.nothing")


def test_finder_serves_no_other_package(tmp_path):
    tmp_path.joinpath("alone.py").write_text("", "utf-8")

    assert deferral.Finder.find_spec("alone", [str(tmp_path)]) is None
    assert deferral.Finder.find_spec("other.alone", [str(tmp_path)]) is None
    assert deferral.Finder.find_spec("minijax.alone", None) is None
    assert deferral.Finder.find_spec("minijax.alone", [str(tmp_path)]) is not None


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

    assert "minijax.transforms.jit.jit" in loaded
    for module in (
        "lax.convolution",
        "lax.control_flow.scanning",
        "lax.collectives.reductions",
        "scipy",
        "numpy.statistics",
        "transforms.per_device.shard_map",
        "lax.linalg",
        "nn",
        "random",
        "testing",
        "debug",
        "tree_util",
    ):
        assert f"minijax.{module}" not in loaded
