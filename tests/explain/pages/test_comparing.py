"""`explain.compare` tells what follows from each way to place the arguments."""

import json
import re

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import explain
from minijax.explain.pages import comparing
from minijax.sharding import AbstractMesh, NamedSharding, PartitionSpec

P = PartitionSpec
MESH = AbstractMesh((4, 2), ("x", "y"))

pytestmark = pytest.mark.feature("PG-07")


def loss(w, x):
    return jnp.mean(jnp.tanh(x @ w) ** 2)


W = jax.ShapeDtypeStruct((64, 32), jnp.float32)
X = jax.ShapeDtypeStruct((16, 64), jnp.float32)
CHOICES = {
    "data": (P(), P("x")),
    "model": (P(None, "y"), P("x")),
    "inner": (P("x"), P(None, "x")),
    "free": (None, P("x")),
}


@pytest.fixture(scope="module")
def found():
    return explain.compare(loss, MESH, CHOICES)(W, X)


def test_each_choice_is_what_plan_says(found):
    for choice, (w, x) in zip(found, list(CHOICES.values())[:3], strict=False):
        placed = [
            jax.ShapeDtypeStruct(v.shape, v.dtype, sharding=NamedSharding(MESH, spec))
            for v, spec in ((W, w), (X, x))
        ]
        assert repr(explain.plan(loss, MESH)(*placed)) == repr(choice.plan)


def test_memory_and_time_follow_from_the_plan(found):
    data, model, inner, _ = found
    # w: 8 KiB, x: 4 KiB, a scalar.
    assert data.memory == 8192 + 1024 + 4
    assert model.memory == 4096 + 1024 + 4
    assert inner.counts == {"all_reduce": 1}
    (moved,) = [x.moved for x in inner.plan]
    assert inner.seconds_by_axis == {"x": moved / comparing.LINK_SPEED}
    assert inner.seconds == moved / 50e9


def test_none_leaves_an_argument_to_shardy(found):
    assert found[3].plan.arguments[0].spec == P()


def test_speeds_may_differ_by_axis():
    speeds = {"x": 1e9, "y": 1e6}
    (choice,) = explain.compare(loss, MESH, [(P(None, "y"), P("x"))], link_speed=speeds)(W, X)
    moved = choice.plan.moved_by_axis
    assert set(moved) == {"x", "y"}
    assert choice.seconds == moved["x"] / 1e9 + moved["y"] / 1e6


def test_it_prints_as_tables(found):
    lines = str(found).splitlines()
    assert lines[0] == "loss on 8 devices (x=4, y=2), links of 50 GB/s"
    titles = r"choice  collectives +sent over x  sent over y +memory +time"
    assert re.fullmatch(titles, lines[2])
    assert lines[3].split()[:3] == ["data", "1", "all_reduce"]
    assert lines[3].split()[-4:] == ["9.004", "KiB", "0.12", "ns"]
    assert [line.split()[0] for line in lines if " type " in line] == list(CHOICES)
    text = str(explain.compare(loss, MESH, [P()], link_speed={"x": 1e9, "y": 2e9})(W, X))
    assert text.startswith("loss on 8 devices (x=4, y=2), links of 1 GB/s over x, 2 GB/s over y\n")


def test_unnamed_choices_are_called_by_their_specs():
    short = explain.compare(jnp.sum, MESH, [P("x"), P("y")])(W)
    assert [choice.name for choice in short] == ["P('x',)", "P('y',)"]
    long = explain.compare(loss, MESH, [(P("x", "y"), P(None, ("x", "y"))), P()])(W, X)
    assert [choice.name for choice in long] == ["1", "2"]


def test_trees_arrays_and_numbers_are_arguments():
    def f(params, x, scale):
        return scale * (x @ params["w"])

    choices = {"split": ({"w": P("x")}, P(None, "x"), P())}
    (choice,) = explain.compare(f, MESH, choices)({"w": np.ones((8, 4))}, jnp.ones((2, 8)), 2.0)
    assert [x.name for x in choice.plan.arguments] == ["params['w']", "x", "scale"]


def test_a_mesh_of_devices_serves():
    with jax.cpu_devices(4):
        mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        x = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, P("x")))
        found = explain.compare(jnp.sum, mesh, {"split": P("x"), "whole": P()})(x)
    assert [len(choice.plan) for choice in found] == [1, 0]


def test_thousands_of_devices_cost_no_more():
    mesh = AbstractMesh((64, 64), ("x", "y"))
    found = explain.compare(loss, mesh, {"data": (P(), P("x"))})(
        W, jax.ShapeDtypeStruct((64, 64), "f4")
    )
    assert found.data["choices"][0]["arguments"][1]["tiles"] is None
    assert "f32[64,64]" in found._repr_html_()


@pytest.mark.parametrize(
    ("spec", "tiles"),
    [
        (P("x", "y"), [[[0], [1]], [[2], [3]], [[4], [5]], [[6], [7]]]),
        (P(None, "x"), [[[0, 1], [2, 3], [4, 5], [6, 7]]]),
        (
            P(
                ("y", "x"),
            ),
            [[[0]], [[2]], [[4]], [[6]], [[1]], [[3]], [[5]], [[7]]],
        ),
        (P(), [[[0, 1, 2, 3, 4, 5, 6, 7]]]),
    ],
)
def test_tiles_tell_who_holds_what(spec, tiles):
    (choice,) = explain.compare(jnp.sum, MESH, [spec])(jax.ShapeDtypeStruct((8, 8), "f4")).data[
        "choices"
    ]
    assert choice["arguments"][0]["tiles"] == tiles


def test_tiles_are_of_the_dimensions_that_are_split():
    x = jax.ShapeDtypeStruct((4, 3, 2, 5), jnp.float32)
    (choice,) = explain.compare(jnp.sum, MESH, [P("x", None, "y")])(x).data["choices"]
    assert len(choice["arguments"][0]["tiles"]) == 4
    assert len(choice["arguments"][0]["tiles"][0]) == 2


def test_data_is_json(found):
    data = json.loads(json.dumps(found.data))
    assert data == found.data
    assert data["speeds"] == {"x": 50e9, "y": 50e9}
    assert data["choices"][2]["collectives"][0]["line"].startswith("test_comparing.py:")


def test_a_notebook_shows_table_and_pictures(found):
    shown = found._repr_html_()
    assert shown.count("<table") == 1 + 2 * len(CHOICES)
    assert "1 all_reduce" in shown
    assert 'title="0, 1"' in shown


def test_page_steps_through_choices(found, tmp_path):
    page = found.page()
    keys = [c["key"] for c in page.data["columns"]]
    assert keys == ["python", "jaxpr", "stablehlo", "choice0", "choice1", "choice2", "choice3"]
    (first,) = page.data["whatIf"]["choices"][2]["collectives"]
    names = [page.data["equations"][n]["name"] for n in first["n"]]
    assert names == ["dot_general"]
    column = page.data["columns"][5]["lines"]
    assert any("sdy.all_reduce" in line["t"] and line["n"] == first["n"] for line in column)
    assert found.save(tmp_path / "loss.html").stat().st_size > 10_000


def test_times_have_units():
    texts = [comparing.seconds_text(x) for x in (0, 2e-10, 3e-9, 4.5e-6, 0.012, 3)]
    assert texts == ["0 s", "0.2 ns", "3 ns", "4.5 µs", "12 ms", "3 s"]


@pytest.mark.parametrize(
    ("specs", "options", "message"),
    [
        ([], {}, "explain.compare: expected at least one choice of specs"),
        (P("x"), {}, "explain.compare: expected at least one choice of specs"),
        ([P()], {"link_speed": 0}, "the axis x needs a speed above zero"),
        ([P()], {"link_speed": {"x": 1.0}}, "the axis y needs a speed above zero"),
        ([(P(), P(), P())], {}, "explain.compare: a choice of specs is not a tree prefix"),
    ],
)
def test_wrong_uses_are_refused(specs, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        explain.compare(loss, MESH, specs, **options)(W, X)


def test_a_choice_that_cannot_be_planned_is_named():
    with pytest.raises(ValueError, match="x") as caught:
        explain.compare(loss, MESH, {"odd": (P(), P("x"))})(W, jax.ShapeDtypeStruct((3, 64), "f4"))
    assert "while planning the choice odd" in caught.value.__notes__


def test_no_mesh_and_no_function_are_refused():
    with pytest.raises(TypeError, match="expected a mesh"):
        explain.compare(loss, 3, [P()])
    with pytest.raises(TypeError, match=r"explain\.compare: expected a function"):
        explain.compare(3, MESH, [P()])
