"""The wheel stands alone: where it is installed and no checkout is in reach, everything works."""

import ast
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT, Built

pytestmark = [pytest.mark.slow, pytest.mark.feature("HO-06")]

# Runs before each program.
ALONE = f"""\
import sys
import minijax
assert minijax.__file__.startswith(sys.prefix), minijax.__file__
assert {str(ROOT)!r} not in sys.path
"""


def printed(built: Built, program: str, folder: Path) -> str:
    """Runs a program with the installed wheel, and returns what it prints."""
    done = built.environment.run("-c", ALONE + program, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def command(built: Built, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a module of the installed wheel as a program."""
    done = built.environment.run("-m", *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done


def files_of(wheel: Path) -> set[str]:
    """Returns the names of the files in a wheel, without its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_wheel_contains_the_package_and_nothing_else(built: Built) -> None:
    package = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "minijax").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files_of(built.wheel) == package | {"minijax/explain/display/glossary.md"}
    assert {
        "minijax/py.typed",
        "minijax/explain/pages/assets/page.js",
        "minijax/__init__.pyi",
    } <= package
    assert not [name for name in package if name.endswith(".pth")]


def test_wheel_installs_no_hook(built: Built) -> None:
    hooks = {path.name for path in built.environment.site_directory.glob("*.pth")}
    # The file by which the environment of the tests finds jaxlib and NumPy.
    assert hooks == {"_dependencies.pth"}


def test_wheel_of_the_source_distribution_is_the_same(built: Built, tmp_path: Path) -> None:
    with tarfile.open(built.sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    [source] = tmp_path.iterdir()
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=source, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    assert wheel.read_bytes() == built.wheel.read_bytes()


def test_programs_of_the_readme(built: Built, tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    programs = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    outputs = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    (tmp_path / "programs.json").write_text(json.dumps(programs), encoding="utf-8")
    shown = printed(
        built,
        """
import json, pathlib
namespace = {}
for program in json.loads(pathlib.Path("programs.json").read_text()):
    exec(compile(program, "README.md", "exec"), namespace)
    print(chr(0), end="")
""",
        tmp_path,
    )
    assert [part.strip() for part in shown.split("\0")[:-1]] == [o.strip() for o in outputs]


PAGE = """
import minijax.numpy as jnp

def wave(w, x):
    return jnp.sum(jnp.sin(w * x))
"""


def test_command_makes_a_page_with_its_assets(built: Built, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(f"{PAGE}\nwave(2.0, jnp.ones(3))\n", encoding="utf-8")
    command(built, "minijax.explain", "script.py:wave", folder=tmp_path)
    text = (tmp_path / "wave.html").read_text(encoding="utf-8")
    for asset in ("page.css", "page.js"):
        path = ROOT / "minijax" / "explain" / "pages" / "assets" / asset
        assert path.read_text(encoding="utf-8") in text


def test_cell_becomes_the_page_of_its_call(built: Built, tmp_path: Path) -> None:
    pytest.importorskip("IPython", reason="IPython is missing: pip install ipython")
    program = f"""
import os
os.environ["IPYTHONDIR"] = os.getcwd()
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
shell = InteractiveShell.instance(config=Config({{"HistoryManager": {{"enabled": False}}}}))
shell.run_cell({PAGE!r})
shell.run_cell("%load_ext minijax").raise_error()
cell = shell.run_cell("%%explain\\nwave(2.0, jnp.ones(3))").result
wave, jnp = shell.user_ns["wave"], minijax.numpy
page = minijax.explain.page(wave)(2.0, jnp.ones(3))
print(cell.name, page.name, len(cell.html()) > 10_000, len(page.html()) > 10_000)
"""
    assert printed(built, program, tmp_path).splitlines()[-1] == "wave wave True True"


def test_processes_find_one_another(built: Built, tmp_path: Path) -> None:
    program = (ROOT / "tests" / "runtime" / "processes" / "started.py").read_text(encoding="utf-8")
    (tmp_path / "started.py").write_text(program, encoding="utf-8")
    done = command(built, "minijax.distributed", "-n", "2", "started.py", folder=tmp_path)
    lines = [line for line in done.stdout.splitlines() if "process " in line]
    assert sorted(lines) == ["0: process 0 of 2: 11", "1: process 1 of 2: 11"]


def test_jax_means_minijax(built: Built, tmp_path: Path) -> None:
    program = "import jax.numpy, minijax\nprint(jax.__version__, jax.numpy is minijax.numpy)\n"
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    done = command(built, "minijax.as_jax", "program.py", folder=tmp_path)
    assert done.stdout == "0.10.2 True\n"


DESCRIBED = (
    "jit",
    "grad",
    "value_and_grad",
    "vmap",
    "shard_map",
    "checkpoint",
    "device_put",
    "help",
    "make_mesh",
    "custom_vjp",
    "numpy.einsum",
    "numpy.linalg.svd",
    "lax.scan",
    "lax.psum",
    "random.normal",
    "nn.softmax",
    "scipy.special.gamma",
    "explain.page",
    "debug.print",
    "tree.map",
    "export.export",
)


def test_functions_are_described(built: Built, tmp_path: Path) -> None:
    program = f"""
import json, operator, pydoc
names = {DESCRIBED!r}
values = [operator.attrgetter(name)(minijax) for name in names]
print(json.dumps([pydoc.plain(pydoc.render_doc(value)) for value in values]))
"""
    descriptions = json.loads(printed(built, program, tmp_path))
    assert len(descriptions) == len(DESCRIBED) >= 20
    for name, description in zip(DESCRIBED, descriptions, strict=True):
        assert name.rpartition(".")[2] in description.splitlines()[0]
        assert len(description.splitlines()) > 5


def test_calls_and_paths_that_errors_name_work(built: Built, tmp_path: Path) -> None:
    recorded = (ROOT / "tests" / "golden" / "errors.txt").read_text(encoding="utf-8")
    calls = sorted(set(re.findall(r"minijax\.help\(.*?\)", recorded)))
    assert len(calls) >= 4
    program = "\n".join([*calls, 'minijax.help("mesh", "law")', "minijax.help()"])
    explained = printed(built, program, tmp_path)
    for call in calls:
        for term in ast.literal_eval(call.removeprefix("minijax.help").replace(")", ",)")):
            assert f"{term}\n\n" in explained
    paths = set(re.findall(r"`([\w/]+\.pyi?)`", explained))
    assert len(paths) >= 5
    site_directory = built.environment.site_directory
    assert [path for path in paths if not (site_directory / path).is_file()] == []


def test_all_modules_are_found_and_imported(built: Built, tmp_path: Path) -> None:
    program = """
import importlib, pkgutil

def fail(name):
    raise ImportError(name)

found = [module.name for module in pkgutil.walk_packages(minijax.__path__, "minijax.", fail)]
for name in found:
    importlib.import_module(name)
print("\\n".join(found))
"""
    found = set(printed(built, program, tmp_path).split())
    modules = {name for name in files_of(built.wheel) if name.endswith(".py")}
    paths = {name.removesuffix(".py").removesuffix("/__init__") for name in modules}
    assert found >= {path.replace("/", ".") for path in paths} - {"minijax"}
