"""The checkout obeys the rules of the house, and each rule can tell a breach when it sees one."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tools import architecture, size
from tools.architecture import Violation

ROOT = Path(__file__).resolve().parents[2]

Check = Callable[[Path], Iterator[Violation]]


def write(root: Path, files: dict[str, str]) -> Path:
    """A checkout that holds `files`, with the `__init__.py` of every package folder."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


@pytest.mark.feature("NP-06")
@pytest.mark.parametrize("check", architecture.CHECKS, ids=lambda check: check.__name__)
def test_checkout_obeys(check: Check) -> None:
    found = sorted(check(ROOT))
    assert not found, "\n".join(map(str, found))


BREACHES = [
    (
        architecture.check_layers,
        "minijax/core/aval.py",
        "from minijax.lax import binary",
        "minijax.core.aval imports minijax.lax.binary, which is no lower layer",
    ),
    (
        architecture.check_layers,
        "minijax/nn/layers.py",
        "import minijax.scipy.fft",
        "minijax.nn.layers imports minijax.scipy.fft, which is no lower layer",
    ),
    (
        architecture.check_layers,
        "minijax/transforms/jit/jit.py",
        "from minijax import jit",
        "minijax.transforms.jit.jit imports minijax.jit, which is no lower layer",
    ),
    (
        architecture.check_outside_imports,
        "minijax/core/dtypes.py",
        "from jaxlib.mlir import ir",
        "minijax.core.dtypes may not import jaxlib.mlir.ir",
    ),
    (
        architecture.check_outside_imports,
        "minijax/sharding/mesh.py",
        "import scipy",
        "minijax.sharding.mesh may not import scipy",
    ),
    (
        architecture.check_cycles,
        "minijax/core/a.py",
        "from minijax.core import a as other, b",
        "import cycle: ",
    ),
    (
        architecture.check_arrows,
        "minijax/core/a.py",
        'binary = deferral.module("minijax.lax.binary")',
        "minijax.core.a defers minijax.lax.binary, which is no lower layer",
    ),
    (
        architecture.check_arrows,
        "minijax/core/a.py",
        'def f():\n    return importlib.import_module(f"{ROOT}.lax.binary")',
        "minijax.core.a defers minijax.lax.binary, which is no lower layer",
    ),
    (architecture.check_jax_is_not_imported, "tests/test_x.py", "import jax.numpy", "imports jax"),
    (
        architecture.check_imports_are_at_the_top,
        "minijax/core/a.py",
        "def f():\n    import os",
        "import inside a function",
    ),
    (
        architecture.check_imports_are_at_the_top,
        "minijax/core/a.py",
        "def f():\n    importlib.import_module('os')",
        "importlib.import_module hides an import",
    ),
    (
        architecture.check_facades,
        "minijax/debug.py",
        "def f(): pass",
        "a façade holds no FunctionDef",
    ),
    (
        architecture.check_facades,
        "minijax/core/__init__.py",
        "x = make()",
        "a façade holds no Assign",
    ),
    (
        architecture.check_sizes,
        "examples/a.py",
        "x = 1\n" * 501,
        "501 lines of code, at most 500",
    ),
    (
        architecture.check_sizes,
        "tests/test_a.py",
        "def f():\n" + "    x = 1\n" * 60,
        "function f has 61 lines, at most 60",
    ),
    (
        architecture.check_sizes,
        "minijax/core/a.py",
        "class C:\n" + "    x = 1\n" * 200,
        "class C has 201 lines, at most 200",
    ),
    (
        architecture.check_file_names,
        "minijax/core/array_utils.py",
        "",
        "a file called array_utils has no subject",
    ),
    (
        architecture.check_private_names,
        "minijax/core/a.py",
        "from minijax.core.b import _x",
        "imports the private minijax.core.b._x",
    ),
    (
        architecture.check_private_names,
        "minijax/core/a.py",
        "from minijax.core import b\nb._x()",
        "uses the private b._x",
    ),
    (
        architecture.check_splats,
        "tests/test_a.py",
        'x = ("a", *("b", "c"), *d)',
        "unpacks a literal",
    ),
    (
        architecture.check_module_aliases,
        "minijax/core/a.py",
        "import functools as ft",
        "functools is renamed to ft",
    ),
    (architecture.check_docstrings, "minijax/lax/a.py", "def f(): pass", "f has no docstring"),
    (
        architecture.check_figures,
        "minijax/core/primitive.py",
        "class Primitive:\n" + "".join(f"    rule_{k} = None\n" for k in range(100)),
        "members of Primitive: 100, at most ",
    ),
    (
        architecture.check_budgets,
        "minijax/nn/a.py",
        "x = 1\n" * 10_000,
        "minijax/nn has 10,000 lines of code, above its budget of ",
    ),
    (
        architecture.check_budgets,
        "minijax/kitchen/a.pyi",
        "x: int",
        "minijax/kitchen has no budget",
    ),
    (
        architecture.check_text,
        "docs/a.md",
        "Open /{}/someone/notes.".format("home"),
        "mentions a path of one machine",
    ),
]


@pytest.mark.parametrize(("check", "name", "text", "problem"), BREACHES)
def test_breach_is_reported(
    tmp_path: Path, check: Check, name: str, text: str, problem: str
) -> None:
    root = write(tmp_path, {"minijax/core/b.py": "from minijax.core import a\n", name: text})
    places = {name, "tools/size.py"}
    found = [violation.problem for violation in check(root) if violation.path in places]
    assert len(found) == 1
    assert found[0].startswith(problem)


def test_stub_without_its_module_is_reported(tmp_path: Path) -> None:
    facade = "minijax/lax/__init__.py"
    attached = "__getattr__, __dir__, __all__ = deferral.attach(__name__, __file__)\n"
    stubs = ("minijax/debug.pyi", "minijax/tree.pyi", f"{facade}i")
    texts = {**dict.fromkeys(stubs, ""), "minijax/debug.py": "", facade: attached}
    root = write(tmp_path, texts)
    assert sorted(architecture.check_stubs(root)) == [
        (name, 1, "no module beside it attaches the stub") for name in stubs[:2]
    ]


def test_docstrings_do_not_count_as_code(tmp_path: Path) -> None:
    text = 'def f():\n    """\n' + "    words\n" * 100 + '    """\n' + "    x = 1\n" * 59
    root = write(tmp_path, {"minijax/core/a.py": text})
    assert list(architecture.check_sizes(root)) == []


def test_lines_are_code_or_comments_or_docstrings(tmp_path: Path) -> None:
    text = '# Why.\n\nX = """\n# code\n"""  # code, too\n"""What.\n\nMore.\n"""\n\n# End.\n'
    root = write(tmp_path, {"minijax/core/a.py": text})
    counts = size.parsed(root, root / "minijax/core/a.py").line_counts
    assert counts == size.LineCounts(code=3, comments=2, docstrings=3)


def test_rooms_hold_stubs_and_root_modules_are_counted_together(tmp_path: Path) -> None:
    files = {
        "minijax/lax/linalg/__init__.py": "x = 1\n",
        "minijax/lax/linalg/__init__.pyi": "x: int\ny: int\n",
        "minijax/debug.py": "x = 1\n",
        "minijax/ref.pyi": "x: int\n",
        "tests/test_a.py": "x = 1\n",
    }
    counted = size.rooms(write(tmp_path, files))
    assert [(room.name, room.files, room.lines.code) for room in counted] == [
        ("lax", 2, 3),
        (size.ROOT_MODULES, 2, 2),
    ]


def test_rooms_within_their_budgets_are_not_reported(tmp_path: Path) -> None:
    text = "x = 1\n" * size.BUDGETS["nn"].lines
    root = write(tmp_path, {"minijax/nn/a.py": text})
    assert list(architecture.check_budgets(root)) == []


def test_budgets_are_those_of_rooms() -> None:
    assert set(size.BUDGETS) == {room.name for room in size.rooms(ROOT)}


def test_reading_path_that_mentions_placement_too_often_is_reported(tmp_path: Path) -> None:
    files = {
        "minijax/core/a.py": "# Meshes.\n" * 61 + "kvmap = 1\n",
        "docs/reading.md": "| 1 | [`core/a.py`](a) |\n",
    }
    root = write(tmp_path, files)
    assert [violation.problem for violation in architecture.check_figures(root)] == [
        "lines of the reading path that mention placement: 61, at most 60"
    ]


def test_limits_of_larger_files_have_a_purpose() -> None:
    lines = {s.path: s.parsed.code_lines for s in architecture.sources(ROOT)}
    needless = [
        path
        for path in architecture.LARGER_FILES
        if lines.get(path, 0) <= architecture.MAX_FILE_LINES
    ]
    assert needless == []


def test_size_counts_code_and_what_is_imported(tmp_path: Path) -> None:
    text = '"""Job.\n\nMore.\n"""\n\n# Why.\nx = [\n    1,  # one\n\n    2,\n]\ny = """\na\n"""\n'
    files = {
        "minijax/core/__init__.py": "",
        "minijax/core/a.py": text,
        "minijax/core/b.py": "from minijax.core import a\n",
        "minijax/core/c.py": "if TYPE_CHECKING:\n    from minijax.core import b\n",
        "minijax/core/d.py": "def f(x: Any, y: int, self, *args: Any): pass\n",
        "docs/reading.md": "| 1 | [`core/a.py`](a) |\n| 2 | [`core/b.py`](b) |\nSee `core/c.py`.\n",
    }
    package = size.Package(write(tmp_path, files))

    assert package.modules["minijax.core.a"].lines == 7
    assert [m.path for m in package.reached_from("minijax.core.b")] == [
        "minijax/core/b.py",
        "minijax/core/a.py",
    ]
    assert len(package.reached_from("minijax.core.c")) == 1
    assert package.share_of_any() == 50.0
    assert package.reading_path is not None
    assert [m.path for m in package.reading_path] == ["minijax/core/a.py", "minijax/core/b.py"]


def test_arrows_join_rooms_once(tmp_path: Path) -> None:
    facade = "from minijax.numpy import creation\n"
    files = {
        "minijax/lax/a.py": "from minijax.core import aval\nfrom minijax.lax import b\n",
        "minijax/lax/b.py": "from minijax.core import cache\n",
        "minijax/lax/c.py": "if TYPE_CHECKING:\n    from minijax.sharding import mesh\n",
        "minijax/explain/xla/a.py": "from minijax.explain import report\n",
        "minijax/lax/__init__.py": facade,
        "minijax/debug.py": facade,
        "minijax/scipy/fft.py": facade + "deferral.publish(globals())\n",
        "minijax/random/a.py": 'd = deferral.module("minijax.lax.a")\n',
    }
    pairs = {arrow.rooms for arrow in architecture.arrows(write(tmp_path, files))}
    assert pairs == {("lax", "core"), ("random", "lax")}


def test_too_many_arrows_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "from minijax.core import aval\nfrom minijax.lax import binary\n"
    root = write(tmp_path, {"minijax/numpy/a.py": text})
    monkeypatch.setattr(architecture, "UPWARD", {})
    monkeypatch.setattr(architecture, "MAX_ARROWS", 2)
    assert list(architecture.check_arrows(root)) == []
    monkeypatch.setattr(architecture, "MAX_ARROWS", 1)
    (violation,) = architecture.check_arrows(root)
    assert violation.problem == "arrows between rooms: 2, at most 1"


def test_lower_layers_may_be_imported(tmp_path: Path) -> None:
    text = "import functools\n\nfrom jaxlib import _jax\n\nfrom minijax.core import aval\n"
    root = write(tmp_path, {"minijax/runtime/array.py": text, "minijax/core/aval.py": ""})
    checks = (architecture.check_layers, architecture.check_outside_imports)
    assert [violation for check in checks for violation in check(root)] == []


def test_imports_for_annotations_alone_are_not_cycles(tmp_path: Path) -> None:
    for_types = "if TYPE_CHECKING:\n    from minijax.core import b\n"
    root = write(
        tmp_path,
        {"minijax/core/a.py": for_types, "minijax/core/b.py": "from minijax.core import a\n"},
    )
    assert list(architecture.check_cycles(root)) == []


def test_deferred_imports_are_cycles(tmp_path: Path) -> None:
    deferred = "if TYPE_CHECKING:\n    from minijax.core import b\nelse:\n    b = None\n"
    root = write(
        tmp_path,
        {"minijax/core/a.py": deferred, "minijax/core/b.py": "from minijax.core import a\n"},
    )
    assert len(list(architecture.check_cycles(root))) == 1


def test_size_counts_any_by_meaning(tmp_path: Path) -> None:
    files = {
        "minijax/core/a.py": "Tree: TypeAlias = Any\nLeaf = Tree\nShape = tuple\n",
        "minijax/core/b.py": "from minijax.core.a import Leaf\ndef f(x: Leaf, y: Any): pass\n",
    }
    package = size.Package(write(tmp_path, files))

    assert package.aliases_of_any["minijax.core.a"] == {"Tree", "Leaf"}
    assert package.uses_of_any() == {"explicit": 2, "aliased": 4}
    assert package.share_of_any() == 100.0


def test_room_may_go_before_the_name_of_a_module(tmp_path: Path) -> None:
    text = "from minijax.lax import shape as lax_shape\n"
    root = write(tmp_path, {"minijax/numpy/shaping.py": text, "minijax/lax/shape.py": ""})
    assert list(architecture.check_module_aliases(root)) == []


def test_worktrees_are_checkouts(tmp_path: Path) -> None:
    root = write(tmp_path, {".git": "gitdir: /{}/someone/notes".format("home"), "docs/a.md": ""})
    assert [path.name for path in architecture.project_files(root)] == ["a.md"]


def test_nodes_with_references_to_their_parents_are_visited_once() -> None:
    tree = ast.parse("f(x)\n")
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            child.parent = node  # type: ignore[attr-defined]
    try:
        assert [type(node) for node in size._all_nodes(tree)] == [type(n) for n in ast.walk(tree)]
    finally:
        # Python has one `Load` for all trees.
        for node in ast.walk(tree):
            vars(node).pop("parent", None)
