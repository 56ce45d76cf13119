"""`python -m minijax.explain script.py:function` makes a page of a script's function."""

import subprocess
import sys

import pytest

from minijax.explain.pages import command

pytestmark = pytest.mark.feature("PG-01")

SCRIPT = """
import sys
import minijax as jax
import minijax.numpy as jnp

@jax.jit
def slope(w, x):
    return jax.grad(lambda w: jnp.sum(jnp.sin(w * x)))(w)

def scaled(x, *more, k=2):
    return jnp.sin(x) * k

if __name__ == "__main__":
    scaled(jnp.ones(int(sys.argv[1]) if len(sys.argv) > 1 else 3), k=3)
    slope(2.0, jnp.arange(3.0))
    print("not reached")
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def test_command_saves_the_page_of_a_function(script, tmp_path):
    file = tmp_path / "slope.html"
    argv = [sys.executable, "-m", "minijax.explain", f"{script}:slope", "-o", str(file)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Page of slope: ")
    assert file.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_arguments_are_those_of_the_first_call(script):
    page = command.page_of(str(script), "scaled", ["5"])
    assert page.data["values"][0]["shape"] == [5]
    assert page.data["equations"][-1]["name"] == "mul"


def test_traced_arguments_are_taken_by_their_types(script):
    page = command.page_of(str(script), "slope")
    assert page.data["values"] == []
    assert page.data["equations"][0]["types"] == ["f32[3]"]


def test_function_that_is_not_called_is_refused(script):
    with pytest.raises(ValueError, match="does not call a function 'other'"):
        command.page_of(str(script), "other")


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("nowhere.py:f", "expected a script and a function of it, script.py:function; got nowhere"),
        ("{script}", "expected a script and a function of it, script.py:function; got "),
        ("{script}:other", "does not call a function 'other'"),
    ],
)
def test_what_cannot_be_shown_is_refused_as_commands_do(script, capsys, place, says):
    with pytest.raises(SystemExit, match="2"):
        command.main([place.format(script=script)])
    told = capsys.readouterr().err
    assert told.startswith("usage: python -m minijax.explain ")
    assert says in told


def test_help_names_the_command_of_the_documents(capsys):
    with pytest.raises(SystemExit, match="0"):
        command.main(["--help"])
    assert capsys.readouterr().out.startswith("usage: python -m minijax.explain ")
