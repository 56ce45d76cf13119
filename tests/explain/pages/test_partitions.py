"""The player of devices for `jit` over a mesh, by pieces; a `pmap` beside its partitions."""

import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.explain.pages import partitions
from minijax.sharding import AxisType, NamedSharding, PartitionSpec

P = PartitionSpec

pytestmark = pytest.mark.feature("PG-02")


def project(w, x):
    return jnp.sum(jnp.tanh(x @ w), axis=1)


@pytest.fixture(scope="module")
def played():
    with jax.cpu_devices(4):
        mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
        w = jax.device_put(jnp.ones((4, 60)), NamedSharding(mesh, P("y")))
        x = jax.device_put(jnp.ones((8, 4)), NamedSharding(mesh, P("x", "y")))
        return jax.explain.page(project)(w, x).data


def test_devices_begin_and_end_with_their_pieces(played):
    first, *_, last = played["devices"]["steps"]
    assert played["devices"]["names"] == ["0 x=0, y=0", "1 x=0, y=1", "2 x=1, y=0", "3 x=1, y=1"]
    assert first["devices"][1]["cells"] == ["w[2:4, :]", "x[0:4, 2:4]"]
    assert first["devices"][2]["cells"] == ["w[0:2, :]", "x[4:8, 0:2]"]
    assert [device["cells"] for device in last["devices"]] == [
        ["result 0[0:4]"],
        ["result 0[0:4]"],
        ["result 0[4:8]"],
        ["result 0[4:8]"],
    ]


def test_collectives_of_the_partitioner_are_steps_with_arrows(played):
    (moves,) = (step for step in played["devices"]["steps"] if step["kind"] == "moves")
    assert moves["title"] == "all_reduce over y"
    assert played["equations"][moves["number"]]["name"] == "dot_general"
    assert moves["line"].startswith("test_partitions.py:")
    assert sorted(moves["arrows"]) == [
        [0, 0],
        [0, 1],
        [1, 0],
        [1, 1],
        [2, 2],
        [2, 3],
        [3, 2],
        [3, 3],
    ]
    assert moves["devices"][0]["cells"] == ["f32[4,60]"]


def test_what_devices_compute_between_is_named_after_its_equation(played):
    titles = [step["title"] for step in played["devices"]["steps"]]
    assert titles == [
        "start",
        "dot_general",
        "all_reduce over y",
        "tanh",
        "reduce_sum",
        "result",
    ]


def test_long_programs_show_only_what_moves(monkeypatch):
    monkeypatch.setattr(partitions, "_MOST_STEPS", 3)
    with jax.cpu_devices(2):
        mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))
        x = jax.device_put(jnp.ones(8), NamedSharding(mesh, P("x")))
        steps = jax.explain.page(lambda x: jnp.sum(jnp.sin(x)))(x).data["devices"]["steps"]
    assert [step["title"] for step in steps] == ["start", "all_reduce over x", "result"]


def test_pmap_stands_beside_the_partitions_of_its_program():
    with jax.cpu_devices(4):
        scale = jax.pmap(
            lambda x, k: x / jax.lax.psum(x, "i") + k, axis_name="i", in_axes=(1, None)
        )
        data = jax.explain.page(scale)(jnp.ones((3, 4)), 2.0).data
    columns = {column["key"]: column["lines"] for column in data["columns"]}
    texts = [line["t"] for line in columns["partitions"]]
    assert "mhlo.num_partitions = 4" in texts[0]
    assert "mhlo.num_replicas = 4" in columns["stablehlo"][0]["t"]
    assert any("sdy.manual_computation" in text for text in texts)
    for name in ("psum", "div", "add"):
        number = next(e["number"] for e in data["equations"] if e["name"] == name)
        for key in ("stablehlo", "partitions"):
            assert any(number in line.get("n", ()) for line in columns[key]), (name, key)
