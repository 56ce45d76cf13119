"""`%load_ext minijax` in IPython: cells become pages, and errors name cells."""

import re

import pytest

import minijax as jax
from minijax.explain.pages.making import Page

IPython = pytest.importorskip(
    "IPython.core.interactiveshell", reason="IPython is missing: pip install ipython"
)

# History is kept in a file, which is written when the process ends.
WITHOUT_HISTORY = pytest.importorskip("traitlets.config").Config(
    {"HistoryManager": {"enabled": False}}
)

pytestmark = pytest.mark.feature("PG-04")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs cells of a notebook, and gives what each returns."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    shell = IPython.InteractiveShell.instance(config=WITHOUT_HISTORY)

    def cell(code):
        return shell.run_cell(code, store_history=True)

    cell("import minijax as jax, minijax.numpy as jnp\n%load_ext minijax")
    cell("def wave(w, x):\n    return jnp.sum(jnp.sin(w * x))")
    yield cell
    IPython.InteractiveShell.clear_instance()


def python_column(page):
    return [line["t"] for line in page.data["columns"][0]["lines"]]


def test_call_becomes_a_page_of_its_function(run):
    page = run("%%explain\nx = jnp.arange(4.0)\njax.grad(wave)(2.0, x)").result
    assert isinstance(page, Page)
    assert page.name == "wave"
    assert [c["key"] for c in page.data["columns"]][:2] == ["python", "original"]
    assert re.fullmatch(r"# cell In\[\d+\]", python_column(page)[0])


def test_expression_becomes_a_page_of_its_arrays(run):
    page = run("%%explain\nx = jnp.arange(4.0)\n\njnp.sum(jnp.sin(x) * x)").result
    assert [e["name"] for e in page.data["equations"]] == ["sin", "mul", "reduce_sum"]
    assert re.match(r"cell In\[\d+\], line 4", page.data["equations"][0]["line"])
    assert python_column(page)[1:] == ["jnp.sum(jnp.sin(x) * x)"]


def test_line_is_explained_and_keywords_pass(run):
    page = run("%explain wave(w=1.0, x=jnp.ones(3))").result
    assert [e["name"] for e in page.data["equations"]] == ["mul", "sin", "reduce_sum"]


def test_name_after_the_magic_is_a_file(run, tmp_path):
    run("%%explain wave.html\nwave(1.0, jnp.ones(3))")
    assert (tmp_path / "wave.html").stat().st_size > 10_000


def test_cell_without_expression_says_so(run, capsys):
    failed = run("%%explain\ny = 3").error_in_exec
    assert isinstance(failed, ValueError)
    assert "%%explain: the cell does not end in an expression." in str(failed)
    assert re.search(r"at        cell In\[\d+\], line 2$", str(failed))
    assert "minijax/explain/display" not in capsys.readouterr().out


def test_errors_name_the_cell_and_its_line(run, capsys):
    failed = run("def f(x):\n    if x > 0:\n        return x\njax.jit(f)(1.0)").error_in_exec
    assert isinstance(failed, jax.errors.TracerBoolConversionError)
    number = re.search(r"at        cell In\[(\d+)\], line 2 in f", str(failed))[1]
    shown = re.sub("\x1b\\[[0-9;]*m", "", capsys.readouterr().out)
    assert f"Cell In[{number}], line 2" in shown


def test_errors_in_an_explained_cell_name_its_lines(run, capsys):
    failed = run("%%explain\nx = jnp.ones(3)\nx + jnp.ones(4)").error_in_exec
    assert re.search(r"at        cell In\[\d+\], line 3", str(failed))
    failed = run("%%explain\n\n1 / 0\nwave(1.0, 2.0)").error_in_exec
    assert isinstance(failed, ZeroDivisionError)
    assert "line 3" in re.sub("\x1b\\[[0-9;]*m", "", capsys.readouterr().out)


def test_outputs_are_rich(run):
    shell = IPython.InteractiveShell.instance()
    shown, _ = shell.display_formatter.format(run("jax.make_mesh((1,), ('x',))").result)
    assert "Mesh of 1 device" in shown["text/html"]
    shown, _ = shell.display_formatter.format(run("jnp.float32(1)").result)
    assert set(shown) == {"text/plain"}


def test_terminal_of_ipython_gets_colours(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.delenv("NO_COLOR", raising=False)

    class TerminalInteractiveShell(IPython.InteractiveShell):
        pass

    shell = TerminalInteractiveShell(config=WITHOUT_HISTORY)
    jax.load_ipython_extension(shell)
    shown, _ = shell.display_formatter.format(jax.make_jaxpr(lambda x: x + 1)(1.0))
    assert "\x1b[33madd\x1b[0m" in shown["text/plain"]
