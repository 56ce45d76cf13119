"""Programs whose devices would wait for ever are not run by their page, which says who waits."""

import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.core import config
from tests.explain.pages import programs

pytestmark = pytest.mark.feature("PG-02")


def page_of(function):
    with jax.cpu_devices(4):
        mesh = jax.make_mesh((4,), ("x",))
        cut = {"mesh": mesh, "in_specs": jax.P("x"), "out_specs": jax.P("x")}
        with config.allow_divergent_collectives(True):
            return jax.explain.page(jax.shard_map(function, **cut))(jnp.arange(4.0))


def test_devices_that_wait_for_ever_are_told():
    data = page_of(programs.stuck).data
    assert [device["waits"] for device in data["stuck"]["devices"]] == [True, False, False, False]
    assert data["stuck"]["devices"][0]["name"] == "(x=0)"
    assert "waits in ppermute over x" in data["stuck"]["words"]
    # Arguments only: nothing was run.
    assert [value["role"] for value in data["values"]] == ["argument 0"]


def shown(data, title):
    """The devices of the last step of this title: what each holds, or that it waits."""
    (*_, step) = (step for step in data["devices"]["steps"] if step["title"].startswith(title))
    return [
        "for ever" if d["stuck"] else "waits" if d["waits"] else d["cells"][0]
        for d in step["devices"]
    ]


def test_devices_are_played_until_they_hang():
    data = page_of(programs.stuck).data
    assert shown(data, "add") == ["A+D", "B+A", "C+B", "D+C"]
    assert shown(data, "ppermute") == ["for ever", "waits", "waits", "waits"]
    assert shown(data, "result") == ["for ever", "2(B+A)", "2(C+B)", "2(D+C)"]


def test_devices_hang_in_a_loop_that_others_have_left():
    onward = [(i, (i + 1) % 4) for i in range(4)]

    def looped(a):
        turns = 1 + (jax.lax.axis_index("x") > 1)

        def body(state):
            return state[0] + 1, jax.lax.ppermute(state[1], "x", onward)

        return jax.lax.while_loop(lambda state: state[0] < turns, body, (0, a))[1]

    data = page_of(looped).data
    assert shown(data, "ppermute") == ["waits", "waits", "for ever", "for ever"]
    assert shown(data, "result") == ["D", "A", "for ever", "for ever"]


def test_devices_that_take_different_branches_are_played():
    def chosen(a):
        branches = [lambda: a, lambda: 2 * a, lambda: -a, lambda: 3 * a]
        return jax.lax.psum(jax.lax.switch(jax.lax.axis_index("x"), branches), "x") + a

    data = page_of(chosen).data
    assert data["stuck"] is None
    assert shown(data, "psum") == ["A+2B−C+3D"] * 4


def test_programs_that_come_to_an_end_are_run():
    data = page_of(programs.ring).data
    assert data["stuck"] is None
    assert len(data["values"]) > 1
