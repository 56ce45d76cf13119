"""The player of devices: terms are carried through what is linear, and the rest gets names."""

import functools

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.core.primitive import PRIMITIVES
from minijax.explain.pages import terms
from minijax.lax.collectives import reductions
from minijax.sharding import PartitionSpec
from tests.explain.pages.reading import Reader

P = PartitionSpec
pytestmark = pytest.mark.feature("PG-02")


@pytest.fixture(autouse=True)
def _devices():
    with jax.cpu_devices(8):
        yield


def steps(function, x, count=4):
    mesh = jax.make_mesh((count,), ("x",))
    mapped = jax.shard_map(function, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    found = jax.explain.page(mapped)(x).data["devices"]
    return [(s["title"], [" ".join(d["cells"]) for d in s["devices"]]) for s in found["steps"]]


def test_ring_adds_one_term_at_each_step():
    def ring(a):
        total = piece = a
        for _ in range(2):
            piece = jax.lax.ppermute(piece, "x", [(i, (i + 1) % 4) for i in range(4)])
            total = total + piece
        return total

    found = steps(ring, jnp.arange(4.0))
    assert [cells[0] for title, cells in found if title in ("start", "add")] == [
        "A",
        "A+D",
        "A+D+C",
    ]


def test_loop_with_known_selections_carries_terms():
    def ring(x):
        n, here = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        onward = [(i, (i + 1) % n) for i in range(n)]

        def collect(step, parts):
            arrived = jax.lax.ppermute(parts[(here - step) % n], "x", onward)
            return parts.at[(here - step - 1) % n].add(arrived)

        return jax.lax.fori_loop(0, n - 1, collect, x)

    found = steps(ring, jnp.ones(9), count=3)
    assert found[-1] == (
        "result",
        ["A₀ A₁+C₁+B₁ A₂+C₂", "B₀+A₀ B₁ B₂+A₂+C₂", "C₀+B₀+A₀ C₁+B₁ C₂"],
    )


@pytest.mark.parametrize(
    ("name", "function", "expected"),
    [
        ("psum", lambda a: jax.lax.psum(a, "x"), ["A+B", "A+B"]),
        ("pmax", lambda a: jax.lax.pmax(a, "x"), ["max(A,B)", "max(A,B)"]),
        ("all_gather", lambda a: jax.lax.all_gather(a, "x", tiled=True), ["A B", "A B"]),
        ("div", lambda a: jax.lax.pmean(a, "x"), ["(A+B)/2", "(A+B)/2"]),
        ("mul", lambda a: 3 * a - a, ["3A", "3B"]),
        ("sin", jnp.sin, ["sin(A)", "sin(B)"]),
    ],
)
def test_step_names_what_each_device_holds(name, function, expected):
    assert (name, expected) in steps(function, jnp.arange(2.0), count=2)


def test_step_of_a_collective_of_a_user_names_what_is_combined():
    class Greatest(reductions.AllReduce):
        name = "greatest"
        combiner = "stablehlo.maximum"

    class Product(reductions.AllReduce):
        name = "product"
        combiner = "stablehlo.multiply"

    try:
        for declare, cell in [(Greatest, "max(A,B)"), (Product, "product(A, B)")]:
            options = {"axis_name": "x", "axis_index_groups": None}
            apply = functools.partial(reductions.combined, declare(), **options)
            assert (declare.name, [cell, cell]) in steps(apply, jnp.arange(2.0), count=2)
    finally:
        PRIMITIVES.pop("greatest", None)
        PRIMITIVES.pop("product", None)


def test_parts_are_handed_out():
    def exchange(a):
        return jax.lax.all_to_all(a, "x", 0, 0, tiled=True)

    assert steps(exchange, jnp.arange(4.0), count=2)[1] == ("all_to_all", ["A₀ B₀", "A₁ B₁"])

    def scatter(a):
        return jax.lax.psum_scatter(a, "x", tiled=True)

    assert steps(scatter, jnp.arange(4.0), count=2)[1] == ("reduce_scatter", ["A₀+B₀", "A₁+B₁"])


def test_device_that_neither_gives_nor_takes_waits():
    mesh = jax.make_mesh((3,), ("x",))
    mapped = jax.shard_map(
        lambda a: jax.lax.ppermute(a, "x", [(0, 1)]), mesh=mesh, in_specs=P("x"), out_specs=P("x")
    )
    step = jax.explain.page(mapped)(jnp.arange(3.0)).data["devices"]["steps"][1]
    assert step["arrows"] == [[0, 1]]
    assert [d["waits"] for d in step["devices"]] == [False, False, True]
    assert [d["cells"] for d in step["devices"]] == [["0"], ["A"], ["0"]]


def test_pmap_has_a_player():
    scale = jax.pmap(lambda x: x / jax.lax.psum(x, "i"), axis_name="i")
    found = jax.explain.page(scale)(jnp.ones(2)).data["devices"]
    assert found["names"] == ["A i=0", "B i=1"]
    assert found["steps"][-1]["devices"][1]["cells"] == ["B/(A+B)"]


def test_numbers_of_several_devices_add_up():
    total = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")
    found = jax.explain.page(total)(jnp.ones(4)).data["devices"]
    assert found["steps"][1]["devices"][3]["cells"] == ["A+B+C+D"]


def test_large_values_on_devices_are_shown_by_pieces_and_types():
    mesh = jax.make_mesh((2,), ("x",))
    mapped = jax.shard_map(lambda a: 2 * a, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    found = jax.explain.page(mapped)(jnp.ones(1000)).data["devices"]
    assert found["names"] == ["0 x=0", "1 x=1"]
    assert found["steps"][-1]["devices"][1]["cells"] == ["result 0[500:1000]"]


def test_sums_agree_with_numbers():
    rng = np.random.default_rng(0)
    numbers = dict(zip("ABC", rng.normal(size=3), strict=True))
    a, b, c = (terms.named(letter) for letter in "ABC")
    found = (2 * a - b) / 4 + 1 - (c - a)
    value = sum(f * numbers.get(term, 1.0) for term, f in found.parts.items())
    expected = (2 * numbers["A"] - numbers["B"]) / 4 + 1 - (numbers["C"] - numbers["A"])
    np.testing.assert_allclose(value, expected)
    assert str(found) == "1.5A−B/4+1−C"
    assert (a - a).known == 0


NAMED = {
    "powers": lambda a: a**3 - a**2,
    "products": lambda a: a @ a - a @ a.T,
    "greatest": lambda a: a + jax.lax.pmax(a, "x") * jax.lax.pmin(a, "x"),
    "least": lambda a: a.max(1, keepdims=True) * a - a.min(0) * (a > a[:1]),
    "quotients": lambda a: (a / 2) / (a * (a + 3)) - 1 / (2 / (a + 3)),
    "whole": lambda a: (5 * a).astype(int) / 2 + (5 * a).astype(int) // 2,
    "shifted": lambda a: jax.lax.ppermute(3 * a, "x", [(0, 1)]) * a / (a - 4),
}


@pytest.mark.parametrize("name", NAMED)
def test_names_in_numbers_are_what_devices_compute(name):
    mesh = jax.make_mesh((2,), ("x",))
    cut = {"mesh": mesh, "in_specs": P("x"), "out_specs": P("x"), "check_vma": False}
    mapped = jax.shard_map(NAMED[name], **cut)
    x = np.random.default_rng(3).normal(size=(4, 2)).astype(np.float32)
    found = jax.explain.page(mapped)(x).data["devices"]
    numbers = {
        f"{letter}{'₀₁₂₃'[i]}": v
        for letter, piece in zip("AB", np.split(x, 2), strict=True)
        for i, v in enumerate(piece.ravel())
    }
    reader = Reader(numbers, found["legend"])
    shown = [[reader.value(t) for t in d["cells"]] for d in found["steps"][-1]["devices"]]
    np.testing.assert_allclose(np.reshape(shown, (4, 2)), mapped(x), rtol=2e-3)


def test_sorted_along_other_dimensions_have_other_names():
    def spread(a):
        return jnp.sort(a, 0) - jnp.sort(a, 1)

    found = steps(spread, jnp.arange(4.0).reshape(4, 1), count=2)
    assert found[-1][1] == ["t1−t5 t2−t6", "t3−t7 t4−t8"]


def test_short_names_are_none_of_the_arguments():
    mesh = jax.make_mesh((2,), ("x",))
    mapped = jax.shard_map(
        lambda t1, u: jnp.sin(t1 + u + t1 * u * t1 + u * u * u),
        mesh=mesh,
        in_specs=(P(), P("x")),
        out_specs=P("x"),
    )
    found = jax.explain.page(mapped)(2.0, jnp.ones(2)).data["devices"]
    assert [entry["name"] for entry in found["legend"]] == ["t2", "t3"]
    assert found["legend"][0]["meaning"] == "sin(t1+uA+t1·uA·t1+uA·uA·uA)"
