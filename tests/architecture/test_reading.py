"""The reading path of `docs/reading.md` is short, and traces do not name what hangs on them."""

import ast
import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
BLANK = LAYOUT | {tokenize.ENCODING, tokenize.ENDMARKER}


def code_lines(text: str) -> int:
    """How many lines hold code: no docstring, no comment, none that is blank."""
    docs: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                docs.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in BLANK:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docs)


def path_of(module: str) -> Path:
    """The file of a module."""
    return ROOT / (module.replace(".", "/") + ".py")


def imported(module: str) -> set[str]:
    """The modules that importing this one imports at once, those for type checkers left out."""
    found: set[str] = set()
    todo: list[ast.AST] = list(ast.parse(path_of(module).read_text(encoding="utf-8")).body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If):
            todo += node.orelse
            if "TYPE_CHECKING" not in ast.dump(node.test):
                todo += node.body
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            parts = {f"{node.module}.{alias.name}" for alias in node.names}
            found.update(part if path_of(part).exists() else node.module for part in parts)
    return {name for name in found if name.startswith("minijax.") and path_of(name).exists()}


def reached(module: str) -> set[str]:
    """All modules that importing one loads; façades are left out."""
    found: set[str] = set()
    todo = [module]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += imported(name)
    return found


def test_reading_path_is_short() -> None:
    page = (ROOT / "docs" / "reading.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \d+ \| \[`(.+?)`\]", page, re.MULTILINE)
    files = [ROOT / "minijax" / name for name in listed]
    assert 0 < len(files) <= 12
    assert sum(code_lines(file.read_text(encoding="utf-8")) for file in files) <= 3000


def test_derivatives_reach_few_files() -> None:
    assert len(reached("minijax.interpreters.jvp")) <= 20


def test_traces_do_not_name_what_hangs_on_them() -> None:
    others = {"casts", "named_batching", "placed_types", "references", "reshard"}
    for name in ("staging", "jvp", "partial_eval", "transpose", "batching"):
        own = imported(f"minijax.interpreters.{name}")
        assert not {f"minijax.interpreters.{other}" for other in others} & own, name
        assert not any(m.startswith(("minijax.sharding", "minijax.core.refs")) for m in own), name
