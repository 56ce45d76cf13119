"""The player of the trace: which tracers Python's variables hold while an equation is written."""

import sys

import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.interpreters import staging

pytestmark = pytest.mark.feature("PG-02")


def wave(w, x):
    angle = w * x
    return jnp.sum(x * jnp.sin(angle))


def held(page, name):
    """What variables hold at the first equation of a name: line, name, type, tracer, equation."""
    found = next(e for e in page.data["equations"] if e["name"] == name)
    lines = page.data["columns"][0]["lines"]
    moment = [] if found["moment"] is None else page.data["moments"][found["moment"]]
    return [(lines[h["line"]]["t"], h["name"], h["type"], h["tracer"], h["n"]) for h in moment]


DEFINED = "def wave(w, x):"


def test_variables_stand_beside_the_lines_that_gave_them_their_values():
    page = jax.explain.page(wave)(2.0, jnp.arange(4.0))
    arguments = [
        (DEFINED, "w", "f32[]", "StagingTracer", None),
        (DEFINED, "x", "f32[4]", "StagingTracer", None),
    ]
    assert held(page, "mul") == arguments
    angle = ("angle = w * x", "angle", "f32[4]", "StagingTracer", 0)
    assert held(page, "sin") == [*arguments, angle]


def test_tracers_of_transformations_are_told_apart():
    page = jax.explain.page(jax.vmap(jax.grad(wave), (None, 0)))(2.0, jnp.ones((3, 4)))
    assert [(name, kind) for _, name, _, kind, _ in held(page, "sin")] == [
        ("w", "JVPTracer"),
        ("x", "BatchTracer"),
        ("angle", "JVPTracer"),
    ]
    # The backward pass is made when the function has returned.
    backward = [e for e in page.data["equations"] if e["role"] == "derivative"]
    assert backward
    assert all(e["moment"] is None for e in backward)


def test_function_that_was_traced_before_is_traced_again_for_its_variables(capsys):
    @jax.jit
    def called(x):
        sys.stdout.write("traced\n")
        doubled = x + x
        return jnp.sin(doubled)

    called(jnp.arange(4.0))
    page = jax.explain.page(called)(jnp.arange(4.0))
    assert [name for _, name, *_ in held(page, "sin")] == ["x", "doubled"]
    assert capsys.readouterr().out == "traced\n"
    # That leaves no trace in what is remembered of its calls: the call of the page fits.
    traced, own = page.data["calls"]["calls"]
    assert (own["nearest"], own["key"]) == (0, traced["key"])


def test_loops_hold_what_they_held_in_each_turn():
    def doubled(x):
        for _ in range(3):
            x = x + x
        return x

    page = jax.explain.page(doubled)(1.0)
    moments = [page.data["moments"][e["moment"]] for e in page.data["equations"]]
    assert [[h["n"] for h in moment] for moment in moments] == [[None], [0], [1]]


def test_trees_tell_the_types_of_their_leaves():
    def total(params):
        return params["a"] + params["b"][0]

    page = jax.explain.page(total)({"a": 1.0, "b": [2, 3]})
    (found,) = held(page, "add")
    assert found[1:] == ("params", "f32[] i32[] i32[]", "StagingTracer", None)


def test_objects_that_are_not_whole_are_passed_over():
    @jax.tree_util.register_pytree_node_class
    class Doubled:
        def __init__(self, x):
            twice = x + x
            self.twice = twice * 1.0

        def tree_flatten(self):
            return (self.twice,), None

        @classmethod
        def tree_unflatten(cls, _, leaves):
            raise AssertionError

    page = jax.explain.page(lambda x: Doubled(x).twice)(1.0)
    assert [name for _, name, *_ in held(page, "add")] == ["x", "x"]


def test_pmap_and_shard_map_hold_what_one_device_holds():
    with jax.cpu_devices(4):
        mapped = jax.pmap(lambda x: x / jax.lax.psum(x, "i"), axis_name="i")
        page = jax.explain.page(mapped)(jnp.ones((4, 3)))
        assert [h[1:3] for h in held(page, "psum")] == [("x", "f32[3]")]


def test_other_calls_are_not_watched():
    seen = []

    def asking(x):
        seen.append(sys.getprofile())
        return x + 1

    before = sys.getprofile(), staging.StagingTrace.process
    jax.jit(asking)(1)
    assert seen == [before[0]]
    jax.explain.page(asking)(1.0)
    assert seen[1] is not before[0]
    assert (sys.getprofile(), staging.StagingTrace.process) == before
