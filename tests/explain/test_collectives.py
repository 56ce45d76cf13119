"""`explain.collectives` finds what a compiled program sends between devices, and why."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import explain
from minijax.core import config
from minijax.explain import groups
from minijax.explain.communication import of_text
from minijax.sharding import Mesh, NamedSharding, PartitionSpec

P = PartitionSpec
BOX = groups.Box(("x", "y"), np.arange(8).reshape(4, 2))

ASYNCHRONOUS = """\
HloModule m, num_partitions=8

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

%wrapped (p: f32[8]) -> f32[2] {
  %p = f32[8]{0} parameter(0)
  ROOT %rs = f32[2]{0} reduce-scatter(%p), channel_id=4, replica_groups={{0,2,4,6},{1,3,5,7}}, \
dimensions={0}, to_apply=%add
}

ENTRY %main (x: f32[8], h: bf16[4,2]) -> f32[2] {
  %x = f32[8]{0:T(8,128)} parameter(0)
  %h = bf16[4,2]{1,0} parameter(1)
  %ags = (bf16[4,2]{1,0}, /*index=1*/bf16[8,2]{1,0}) all-gather-start(%h), channel_id=1, \
replica_groups=[4,2]<=[8], dimensions={0}, use_global_device_ids=true, metadata={op_name=\
"jit(f)/mul[a={1, 2}]" source_file="/models/a.py" source_line=7}
  %agd = bf16[8,2]{1,0} all-gather-done(%ags)
  %ars = f32[8]{0} all-reduce-start(%x), replica_groups={}, to_apply=%add
  %ard = f32[8]{0} all-reduce-done(%ars)
  %cps = (f32[8]{0}, f32[8]{0}, u32[], u32[]) collective-permute-start(%x), \
source_target_pairs={{0,1},{1,0}}
  %cpd = f32[8]{0} collective-permute-done(%cps)
  %cb = f32[8]{0} collective-broadcast(f32[8]{0} %x), replica_groups={{0,1,2,3,4,5,6,7}}
  %rss = ((f32[8]{0}), f32[2]{0}, s32[]) async-start(%x), calls=%wrapped
  ROOT %rsd = f32[2]{0} async-done(%rss)
}
"""

NESTED_LOOPS = """\
HloModule jit_f, is_scheduled=true, num_partitions=8

FileNames
1 "/models/b.py"

FunctionNames
1 "<module>"
2 "f.<locals>.body"

FileLocations
1 {file_name_id=1 function_name_id=1 line=30 end_line=30 column=0 end_column=0}
2 {file_name_id=1 function_name_id=2 line=12 end_line=12 column=4 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

%inner_condition (p: f32[]) -> pred[] {
  %p = f32[] parameter(0)
  %r = f32[] all-reduce(%p), replica_groups={}, to_apply=%add
  ROOT %c = pred[] compare(%r, %p), direction=LT
}

%inner_body (p: f32[]) -> f32[] {
  %p = f32[] parameter(0)
  ROOT %r = f32[] all-reduce(%p), replica_groups={{0,1},{2,3},{4,5},{6,7}}, to_apply=%add, \
metadata={op_name="jit(f)/while/body/psum" stack_frame_id=2}
}

%branch_0 (p: f32[]) -> f32[] {
  ROOT %p = f32[] parameter(0)
}

%branch_1 (p: f32[]) -> f32[] {
  %p = f32[] parameter(0)
  ROOT %w = f32[] while(%p), condition=%inner_condition, body=%inner_body, \
backend_config={"known_trip_count":{"n":"3"}}
}

%outer_condition (p: f32[]) -> pred[] {
  %p = f32[] parameter(0)
  ROOT %c = pred[] compare(%p, %p), direction=LT
}

%outer_body (p: f32[]) -> f32[] {
  %p = f32[] parameter(0)
  %i = s32[] constant(0)
  ROOT %q = f32[] conditional(%i, %p, %p), branch_computations={%branch_0, %branch_1}
}

%open_body (p: f32[]) -> f32[] {
  %p = f32[] parameter(0)
  ROOT %g = f32[] collective-permute(%p), source_target_pairs={{0,2},{2,0}}
}

ENTRY %main (x: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %w = f32[] while(%x), condition=%outer_condition, body=%outer_body, \
backend_config={"known_trip_count":{"n":"5"},"dynamic_variables":[]}
  ROOT %v = f32[] while(%w), condition=%outer_condition, body=%open_body, metadata={op_name="w" \
stack_frame_id=1}
}
"""


@pytest.fixture(scope="module")
def mesh():
    with jax.cpu_devices(8):
        yield Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))


def struct(mesh, shape, *entries, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*entries)))


def summary(found):
    return [(x.kind, x.axes, str(x.operands[0]), x.times) for x in found]


def matmul(x, y):
    return x @ y


def test_asynchronous_forms_are_found_where_they_start():
    found = of_text("m", ASYNCHRONOUS, [BOX])
    assert [(x.kind, x.axes, x.bytes) for x in found] == [
        ("all_gather", ("y",), 16),
        ("all_reduce", ("x", "y"), 32),
        ("collective_permute", ("y",), 32),
        ("collective_broadcast", ("x", "y"), 32),
        ("reduce_scatter", ("x",), 32),
    ]


def test_a_line_stands_in_the_metadata_of_older_texts():
    first = of_text("m", ASYNCHRONOUS, [BOX])[0]
    assert (str(first.line), first.is_own_line) == ("a.py:7", True)


def test_trip_counts_of_nested_loops_are_multiplied():
    found = of_text("f", NESTED_LOOPS, [BOX])
    assert [(x.name, x.inside, x.times) for x in found if x.kind == "all_reduce"] == [
        ("r", ("while x5", "branch 1", "while x3"), 20),
        ("r", ("while x5", "branch 1", "while x3"), 15),
    ]


def test_a_loop_of_unknown_length_has_no_count():
    last = of_text("f", NESTED_LOOPS, [BOX])[-1]
    assert (last.kind, last.inside, last.times) == ("collective_permute", ("while x?",), None)


def test_a_line_is_looked_up_in_the_tables_of_frames():
    found = of_text("f", NESTED_LOOPS, [BOX])
    assert str(found[1].line) == "b.py:12 in f.<locals>.body"


def test_a_program_without_collectives_says_so():
    assert repr(explain.collectives(matmul)(np.ones((2, 2)), np.ones((2, 2)))) == (
        "matmul: no collectives on 1 device"
    )


def test_a_sharded_contraction_is_reduced_once(mesh):
    found = explain.collectives(matmul)(
        struct(mesh, (64, 32), None, "x"), struct(mesh, (32, 16), "x")
    )
    assert summary(found) == [("all_reduce", ("x",), "f32[64,16]", 1)]


def test_fully_sharded_weights_are_gathered_once(mesh):
    found = explain.collectives(matmul)(struct(mesh, (64, 32), "x"), struct(mesh, (32, 16), "x"))
    assert summary(found) == [("all_gather", ("x",), "f32[8,16]", 1)]


def test_a_record_names_the_users_line(mesh):
    (found,) = explain.collectives(matmul)(struct(mesh, (64, 32), "x"), struct(mesh, (32, 16), "x"))
    line = matmul.__code__.co_firstlineno + 1
    assert str(found.line) == f"test_collectives.py:{line} in matmul"
    # Newer versions of XLA name the operand where an operand is what is gathered.
    assert found.operation in ("jit(matmul)/dot_general", "y")


def test_operations_that_are_lowered_as_several_keep_the_users_line(mesh):
    def total(x):
        return jnp.cumsum(x)

    found = explain.collectives(total)(struct(mesh, (64,), "x"))
    line = f"test_collectives.py:{total.__code__.co_firstlineno + 1} in {total.__qualname__}"
    assert {str(x.line) for x in found} == {line}


def test_axes_may_have_any_names(mesh):
    # XLA would end the process over what it cannot unescape.
    odd = Mesh(mesh.devices, ('a "b"', "é%\\"))
    found = explain.collectives(jnp.sum)(struct(odd, (8, 8), 'a "b"', "é%\\"))
    assert {axis for x in found for axis in x.axes} == {'a "b"', "é%\\"}


def test_moving_the_split_to_another_dimension_is_all_to_all(mesh):
    f = jax.jit(lambda x: x * 2, out_shardings=NamedSharding(mesh, P(None, "x")))
    found = explain.collectives(f)(struct(mesh, (64, 32), "x"))
    assert [(x.kind, x.axes, x.bytes) for x in found] == [("all_to_all", ("x",), 2048)]


def test_a_gather_of_results_finds_the_nearest_line(mesh):
    f = jax.jit(lambda x: x * 2, out_shardings=NamedSharding(mesh, P("x")))
    (found,) = explain.collectives(f)(struct(mesh, (64, 32), "x", "y"))
    assert (found.kind, found.is_own_line) == ("all_gather", False)
    assert str(found.line).startswith("test_collectives.py:")


def test_a_data_parallel_gradient_is_reduced_once(mesh):
    def loss(params, x):
        return jnp.mean((x @ params["w"] + params["b"]) ** 2)

    params = {"w": struct(mesh, (32, 16)), "b": struct(mesh, (16,))}
    found = explain.collectives(jax.grad(loss))(params, struct(mesh, (64, 32), ("x", "y")))
    assert {(x.kind, x.axes) for x in found} == {("all_reduce", ("x", "y"))}
    assert sorted(str(t) for x in found for t in x.operands) == ["f32[16,32]", "f32[16]"]


def test_scans_count_as_often_as_they_run(mesh):
    def f(x, ws):
        def outer(carry, w):
            def inner(carry, _):
                return jnp.tanh(carry @ w) + jnp.sum(carry), None

            return jax.lax.scan(inner, carry, None, length=3)[0], None

        return jax.lax.scan(outer, x, ws)[0]

    found = explain.collectives(f)(
        struct(mesh, (64, 32), "x"), struct(mesh, (5, 32, 32), None, "x")
    )
    assert summary(found) == [
        ("all_gather", ("x",), "f32[8,32]", 5),
        ("all_reduce", ("x",), "f32[]", 15),
    ]


def test_arrays_serve_as_arguments(mesh):
    x = jax.device_put(np.ones((8, 4), np.float32), NamedSharding(mesh, P("x")))
    found = explain.collectives(jnp.sum)(x)
    assert found.counts == {"all_reduce": 1}


@pytest.mark.feature("SD-09")
def test_programs_partitioned_without_shardy_have_axes_too(mesh):
    with config.use_shardy_partitioner(False):
        found = explain.collectives(jnp.sum)(struct(mesh, (8, 4), "y"))
    assert [(x.kind, x.axes) for x in found] == [("all_reduce", ("y",))]


def test_a_compiled_program_is_read_without_arguments(mesh):
    compiled = jax.jit(jnp.sum).lower(struct(mesh, (8, 4), "x")).compile()
    assert [(x.kind, x.axes) for x in explain.collectives(compiled)()] == [("all_reduce", ("x",))]


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match=r"explain.collectives: expected a function"):
        explain.collectives(3)


def test_the_table_shows_totals():
    text = repr(of_text("f", NESTED_LOOPS, [BOX]))
    assert text.splitlines() == [
        "f: 3 collectives on 8 devices (x=4, y=2)",
        "",
        "kind                axes    operand  bytes  times  inside                          line",
        "all_reduce          x,y     f32[]      4 B     20  while x5 > branch 1 > while x3  ?",
        "all_reduce          y       f32[]      4 B     15  while x5 > branch 1 > while x3  "
        "b.py:12 in f.<locals>.body",
        "collective_permute  x:(2)2  f32[]      4 B      ?  while x?                        ?",
        "",
        "total               axes    instructions  times   bytes",
        "all_reduce          x,y                1     20    80 B",
        "all_reduce          y                  1     15    60 B",
        "collective_permute  x:(2)2             1   >= 1  >= 4 B",
    ]


@pytest.mark.feature("PG-06")
@pytest.mark.usefixtures("mesh")
def test_collectives_of_a_pmap_name_its_axis():
    scale = jax.pmap(lambda x: x / jax.lax.psum(x, "i"), axis_name="i")
    found = jax.explain.collectives(scale)(jnp.ones((8, 3)))
    assert [(x.kind, x.axes, x.bytes) for x in found] == [("all_reduce", ("i",), 12)]


@pytest.mark.feature("PG-06")
@pytest.mark.usefixtures("mesh")
def test_collective_of_a_constraint_is_on_the_line_of_the_constraint():
    mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))

    def function(x):
        y = jnp.sin(x * 2)
        z = jax.lax.with_sharding_constraint(y, jax.NamedSharding(mesh, jax.P()))
        return z + 1

    x = jax.device_put(jnp.ones((8, 3)), jax.NamedSharding(mesh, jax.P("x")))
    line = function.__code__.co_firstlineno + 2
    found = jax.explain.collectives(function)(x)
    assert [(c.kind, c.line.line) for c in found] == [("all_gather", line)]
    planned = jax.explain.plan(function, mesh)(x)
    assert [(c.kind, c.line.line) for c in planned] == [("all_gather", line)]


@pytest.mark.feature("PG-06")
def test_lines_are_those_of_the_function_though_an_equal_program_is_stored(tmp_path):
    def first(x):
        return x - jnp.sum(x)

    def second(x):
        return x - jnp.sum(x)

    first.__name__ = second.__name__ = "centered"
    with jax.cpu_devices(8):
        spread = NamedSharding(jax.make_mesh((8,), ("x",)), P("x"))
    many = jax.device_put(jnp.ones(8), spread)
    with (
        config.compilation_cache_dir(str(tmp_path)),
        config.persistent_cache_min_compile_time_secs(0),
    ):
        for x in many, jnp.ones(8):
            jax.jit(first).lower(x).compile()
        assert len(list(tmp_path.iterdir())) == 2
        assert str(explain.collectives(second)(many)[0].line).endswith("second")
        columns = {c["key"]: c for c in explain.page(second)(jnp.ones(8)).data["columns"]}
        assert any(line.get("n") for line in columns["optimized"]["lines"])
