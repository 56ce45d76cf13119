"""Programs whose devices would wait for ever are not run by their page, which says who waits."""

import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.core import config
from tests.page import programs

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


def test_programs_that_come_to_an_end_are_run():
    data = page_of(programs.ring).data
    assert data["stuck"] is None
    assert len(data["values"]) > 1
