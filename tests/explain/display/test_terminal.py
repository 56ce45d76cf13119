"""`explain.show` prints in colours where the output is a terminal; `str()` stays plain."""

import re
import sys
import types

import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import explain
from minijax.explain.display import terminal
from minijax.sharding import AbstractMesh, NamedSharding, PartitionSpec

P = PartitionSpec

pytestmark = pytest.mark.feature("PG-04")


def plain(text):
    return re.sub("\x1b\\[[0-9;]*m", "", text)


def make_terminal(monkeypatch):
    """The output counts as a terminal from here on."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)


def test_terminal_gets_colours(monkeypatch, capsys):
    make_terminal(monkeypatch)
    closed = jax.make_jaxpr(jnp.sin)(1.0)
    explain.show(closed)
    shown = capsys.readouterr().out
    assert "\x1b[33msin\x1b[0m" in shown
    assert plain(shown) == f"{closed}\n"
    assert "\x1b" not in str(closed) + repr(closed)


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_can_be_declined(monkeypatch, capsys, name, value):
    make_terminal(monkeypatch)
    monkeypatch.setenv(name, value)
    explain.show(jax.make_jaxpr(jnp.sin)(1.0))
    assert "\x1b" not in capsys.readouterr().out


def test_files_get_no_colours_unless_forced(monkeypatch, capsys):
    make_terminal(monkeypatch)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    explain.show(jax.make_jaxpr(jnp.sin)(1.0))
    assert "\x1b" not in capsys.readouterr().out
    monkeypatch.setenv("FORCE_COLOR", "1")
    explain.show(jax.make_jaxpr(jnp.sin)(1.0))
    assert "\x1b" in capsys.readouterr().out


def test_everything_with_a_picture_can_be_shown():
    with jax.cpu_devices(4):
        mesh = jax.make_mesh((4,), ("x",))
        x = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, P("x")))
        traced = jax.jit(jnp.sum).trace(x)
        values = [
            traced.jaxpr,
            traced.lower(),
            traced.lower().compile(),
            explain.stages(jnp.sum)(x),
            explain.collectives(jnp.sum)(x),
            explain.plan(jnp.sum, mesh)(x),
            mesh,
            AbstractMesh((2, 2, 2), ("a", "b", "c")),
            x,
            jax.vjp(jnp.sin, 1.0)[1],
        ]
        for value in values:
            colored = terminal.text_of(value, True)
            assert "\x1b[" in colored, type(value)
            assert plain(colored).split() == terminal.text_of(value, False).split()


def test_anything_else_is_its_text(capsys):
    explain.show({"a": 1}, color=True)
    assert capsys.readouterr().out == "{'a': 1}\n"


def test_split_array_is_drawn(capsys):
    with jax.cpu_devices(2):
        mesh = jax.make_mesh((2,), ("x",))
        explain.show(jax.device_put(jnp.arange(4.0), NamedSharding(mesh, P("x"))))
    shown = capsys.readouterr().out
    assert shown.startswith("Array([0., 1., 2., 3.], dtype=float32)\n┌")
    assert "CPU 1" in shown


def test_notebook_shows_it_as_it_shows_outputs(monkeypatch, capsys):
    shown = []
    shell = type("ZMQInteractiveShell", (), {})()
    stand_in = types.SimpleNamespace(
        get_ipython=lambda: shell, display=types.SimpleNamespace(display=shown.append)
    )
    monkeypatch.setitem(sys.modules, "IPython", stand_in)
    closed = jax.make_jaxpr(jnp.sin)(1.0)
    explain.show(closed)
    assert shown == [closed]
    assert capsys.readouterr().out == ""
