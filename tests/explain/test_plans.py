"""`explain.plan` tells what Shardy does on a mesh that need not exist."""

import time

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import explain
from minijax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

P = PartitionSpec
MESH = AbstractMesh((4, 2), ("x", "y"))
HUGE = AbstractMesh((256, 256), ("data", "model"))


def struct(shape, *entries, mesh=MESH, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*entries)))


def open_struct(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def matmul(x, y):
    return x @ y


def test_a_plan_names_kind_axes_and_line():
    (found,) = explain.plan(matmul, MESH)(struct((64, 32), "x"), struct((32, 16), "x"))
    line = matmul.__code__.co_firstlineno + 1
    assert (found.kind, found.axes, found.result) == ("all_gather", ("x",), "f32[32,16]")
    assert str(found.line) == f"test_plans.py:{line} in matmul"


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        # Each device holds 64 of the 512 bytes; a part of the axis x has 2 of its 4 devices.
        (("x", "y"), (), {"x": 512 * 3 / 4, "y": 512 / 4 / 2}),
        (("x", "y"), ("x",), {"y": 128 / 2}),
        (("x",), (None, "x"), {"x": 128 * 3 / 4}),
        ((("x", "y"),), (("y", "x"),), {"x": 64}),
        (("x", "y"), ("y", "x"), {"x": 64 + 64 / 2}),
        ((), ("x", "y"), {}),
    ],
)
def test_bytes_move_as_the_model_says(before, after, moved):
    f = jax.jit(lambda x: x, out_shardings=NamedSharding(MESH, P(*after)))
    found = explain.plan(f, MESH)(struct((16, 8), *before))
    assert found.moved_by_axis == moved


def test_a_reduction_moves_its_operand_twice():
    found = explain.plan(matmul, MESH)(struct((8, 32), None, "x"), struct((32, 16), "x"))
    assert found.moved_by_axis == {"x": 2 * (8 * 16 * 4) * 3 / 4}


def test_loops_multiply_what_is_moved():
    def f(x, ws):
        return jax.lax.scan(lambda carry, w: (jnp.tanh(carry @ w), None), x, ws)[0]

    (found,) = explain.plan(f, MESH)(struct((64, 32), "x"), struct((5, 32, 32), None, "x"))
    assert (found.times, found.is_bounded, found.inside) == (5, True, ("while x5",))
    assert found.moved == 5 * (32 * 32 * 4) * 3 / 4


def test_loops_of_unknown_length_count_once_and_say_so():
    def f(x):
        return jax.lax.while_loop(lambda x: x[0] < 9, lambda x: x + jnp.sum(x), x)

    found = explain.plan(f, MESH)(struct((64,), "x"))
    assert {x.times for x in found} == {1}
    assert "loops of unknown length are counted once" in repr(found)


def test_results_show_what_propagation_chose():
    found = explain.plan(matmul, MESH)(struct((64, 32), "x"), struct((32, 16), None, "y"))
    (result,) = found.results
    assert (result.spec, result.local_bytes) == (P("x", "y"), 64 * 16 * 4 // 8)


def test_shardy_decides_about_arguments_without_sharding():
    found = explain.plan(jnp.add, MESH)(struct((64, 32), "x"), open_struct(64, 32))
    assert [x.spec for x in found.arguments] == [P("x"), P("x")]


def test_placements_inside_the_program_speak_of_the_mesh():
    def f(x):
        return jax.lax.with_sharding_constraint(x, P("y")).sum()

    found = explain.plan(f, MESH)(open_struct(8, 8))
    assert [(x.kind, x.axes) for x in found] == [("all_reduce", ("y",))]


def test_a_mesh_with_devices_serves_as_well():
    with jax.cpu_devices(8):
        mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
        x = jax.device_put(np.ones((8, 8), np.float32), NamedSharding(mesh, P("x")))
        found = explain.plan(jnp.sum, mesh)(x)
    assert [(x.kind, x.axes) for x in found] == [("all_reduce", ("x",))]


def test_a_plan_for_65536_devices_takes_less_than_a_second():
    def loss(params, x, y):
        hidden = jnp.tanh(x @ params["w"] + params["b"])
        return jnp.mean((hidden - y) ** 2)

    params = {
        "w": struct((8192, 8192), "data", "model", mesh=HUGE),
        "b": struct((8192,), "model", mesh=HUGE),
    }
    x = struct((65536, 8192), "data", mesh=HUGE)
    start = time.perf_counter()
    found = explain.plan(jax.grad(loss), HUGE)(params, x, open_struct(65536, 8192))
    elapsed = time.perf_counter() - start
    assert set(found.moved_by_axis) == {"data"}
    assert elapsed < 1


def test_the_plan_prints_as_tables():
    found = explain.plan(matmul, MESH)(struct((64, 32), "x"), struct((32, 16), "x"))
    line = matmul.__code__.co_firstlineno + 1
    assert repr(found).splitlines() == [
        "matmul on 8 devices (x=4, y=2): 1 collective planned",
        "",
        "kind        axes  result      bytes  times    moved  line",
        f"all_gather  x     f32[32,16]  2 KiB      1  1.5 KiB  test_plans.py:{line} in matmul",
        "",
        "axis  sent by each device",
        "x     1.5 KiB",
        "",
        "argument  type        sharding  bytes on each device",
        "x         f32[64,32]  P('x',)   2 KiB",
        "y         f32[32,16]  P('x',)   512 B",
        "",
        "result  type        sharding  bytes on each device",
        "result  f32[64,16]  P('x',)   1 KiB",
    ]


def test_axes_may_have_any_names():
    odd = AbstractMesh((4, 2), ('a "b"', "é%\\"))
    found = explain.plan(jnp.sum, odd)(struct((8, 8), 'a "b"', "é%\\", mesh=odd))
    assert set(found.moved_by_axis) == {'a "b"', "é%\\"}


def test_types_of_explicit_meshes_are_planned_with():
    mesh = AbstractMesh((4, 2), ("x", "y"), AxisType.Explicit)
    x, y = struct((64, 32), "x", mesh=mesh), struct((32, 16), None, "y", mesh=mesh)
    found = explain.plan(matmul, mesh)(x, y)
    assert ([*found], found.results[0].spec) == ([], P("x", "y"))


def test_uneven_arguments_are_refused():
    with pytest.raises(ValueError, match=r"dimension 0 of size 7 cannot be cut into 4"):
        explain.plan(jnp.sum, MESH)(struct((7,), "x"))


def test_an_argument_on_another_mesh_is_refused():
    with pytest.raises(ValueError, match=r"placed on another mesh than the one to plan for"):
        explain.plan(jnp.sum, HUGE)(struct((8, 8), "x"))


@pytest.mark.parametrize(
    ("function", "mesh", "problem"),
    [(3, MESH, "expected a function"), (jnp.sum, (4, 2), "expected a mesh")],
)
def test_arguments_of_wrong_types_are_refused(function, mesh, problem):
    with pytest.raises(TypeError, match=f"explain.plan: {problem}"):
        explain.plan(function, mesh)


@pytest.mark.feature("PG-06")
def test_plan_of_a_pmap_counts_the_bytes_along_its_axis():
    total = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")
    mesh = AbstractMesh((8,), ("i",))
    with jax.cpu_devices(8):
        planned = jax.explain.plan(total, mesh)(jnp.ones((8, 4)))
    assert planned.moved_by_axis == {"i": 2 * 16 * 7 / 8}
