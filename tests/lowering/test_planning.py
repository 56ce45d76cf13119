"""Shardy's passes on modules given as text: what moves where, and how often."""

import numpy as np
import pytest
from jaxlib.mlir import ir

from minijax.core.errors import InternalError
from minijax.lowering import planning, stablehlo

MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'


def parse(body, mesh=MESH):
    with stablehlo.context():
        return ir.Module.parse(f"module {{ {mesh} {body} }}")


def sharding(*dims):
    entries = ", ".join("{" + ", ".join(f'"{axis}"' for axis in dim) + "}" for dim in dims)
    return f"sdy.sharding = #sdy.sharding<@mesh, [{entries}]>"


def reshard(before, after, shape="8x8"):
    return parse(
        f"func.func public @main(%x: tensor<{shape}xf32> {{{sharding(*before)}}}) -> "
        f"(tensor<{shape}xf32> {{{sharding(*after)}}}) {{ return %x : tensor<{shape}xf32> }}"
    )


def movements(module):
    return [(x.kind, x.axes) for x in planning.plan(module).movements]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (("x", ""), ("", ""), [("all_gather", (("x", 4),))]),
        (("x", "y"), ("", ""), [("all_gather", (("x", 4), ("y", 2)))]),
        (("x", ""), ("", "x"), [("all_to_all", (("x", 4),))]),
        (("xy", ""), ("yx", ""), [("collective_permute", (("x", 4), ("y", 2)))]),
        (("", ""), ("x", "y"), []),
    ],
)
def test_a_change_of_sharding_moves_data_over_its_axes(before, after, expected):
    assert movements(reshard(before, after)) == expected


def test_part_of_an_axis_is_named_as_shardy_writes_it():
    found = movements(reshard(("x", "y"), ("y", "x")))
    assert found[-1] == ("all_to_all", (("x:(2)2", 2),))


def test_the_module_that_was_given_stays_as_it_was():
    module = reshard(("x", ""), ("", ""))
    before = str(module)
    planning.plan(module)
    assert str(module) == before


def test_a_module_that_shardy_refuses_is_an_internal_error():
    module = reshard(("x", ""), ("", ""))
    with stablehlo.context():
        module.body.operations[1].attributes["arg_attrs"] = ir.Attribute.parse(
            '[{sdy.sharding = #sdy.sharding<@nowhere, [{"x"}, {}]>}]'
        )
    with pytest.raises(InternalError, match=r"explain.plan: Shardy refuses the module"):
        planning.plan(module)


def test_values_tell_how_much_each_device_holds():
    planned = planning.plan(reshard(("x", "y"), ("", "y")))
    assert [v.local_bytes for v in (*planned.arguments, *planned.results)] == [32, 128]


def test_uneven_parts_are_rounded_up():
    value = planning.Value("", "f32", (10,), ((("x", 4),),), (), 32)
    assert value.local_bytes == 12


def test_meshes_keep_the_order_of_their_devices():
    module = parse("", 'sdy.mesh @m = <["a"=2, "b"=2], device_ids=[3, 2, 1, 0]>')
    (mesh,) = planning.meshes(module)
    assert mesh.names == ("a", "b")
    np.testing.assert_array_equal(mesh.ids, [[3, 2], [1, 0]])


def loop(bound, step=1, start=0, direction="LT"):
    constant = "stablehlo.constant dense<{}> : tensor<i32>"
    return parse(f"""
      func.func public @main(%x: tensor<8xf32> {{{sharding("x")}}}) -> tensor<8xf32> {{
        %c = {constant.format(start)}
        %0:2 = stablehlo.while(%i = %c, %s = %x) : tensor<i32>, tensor<8xf32>
        cond {{
          %b = {constant.format(bound)}
          %p = stablehlo.compare {direction}, %i, %b, SIGNED : (tensor<i32>, tensor<i32>)
            -> tensor<i1>
          stablehlo.return %p : tensor<i1>
        }} do {{
          %z = stablehlo.constant dense<0.0> : tensor<f32>
          %r = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [0]
            : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
          %q = stablehlo.broadcast_in_dim %r, dims = [] : (tensor<f32>) -> tensor<8xf32>
          %t = {constant.format(step)}
          %j = stablehlo.add %i, %t : tensor<i32>
          stablehlo.return %j, %q : tensor<i32>, tensor<8xf32>
        }}
        return %0#1 : tensor<8xf32>
      }}""")


@pytest.mark.parametrize(
    ("module", "times", "is_bounded"),
    [
        (loop(5), 5, True),
        (loop(11, step=3, start=1), 4, True),
        (loop(0), 0, True),
        (loop(5, direction="NE"), 1, False),
        (loop(5, step=-1), 1, False),
    ],
)
def test_loops_over_constant_ranges_are_counted(module, times, is_bounded):
    (found,) = planning.plan(module).movements
    assert (found.kind, found.times, found.is_bounded) == ("all_reduce", times, is_bounded)


def test_collectives_that_the_user_wrote_keep_their_groups():
    place = '[<@mesh, [{"x"}]>]'
    module = parse(f"""
      func.func public @main(%a: tensor<8xf32>) -> tensor<8xf32> {{
        %0 = sdy.manual_computation(%a) in_shardings={place} out_shardings={place}
            manual_axes={{"x", "y"}} (%l: tensor<2xf32>) {{
          %1 = "stablehlo.all_reduce"(%l) <{{replica_groups = dense<[[0,2,4,6],[1,3,5,7]]> :
            tensor<2x4xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
            use_global_device_ids}}> ({{
            ^bb0(%p: tensor<f32>, %q: tensor<f32>):
              %s = stablehlo.add %p, %q : tensor<f32>
              stablehlo.return %s : tensor<f32> }}) : (tensor<2xf32>) -> tensor<2xf32>
          sdy.return %1 : tensor<2xf32>
        }} : (tensor<8xf32>) -> tensor<8xf32>
        return %0 : tensor<8xf32>
      }}""")
    (found,) = planning.plan(module).movements
    assert (found.kind, found.axes, found.values[0].local_bytes) == ("all_reduce", None, 8)
    np.testing.assert_array_equal(found.groups, [[0, 2, 4, 6], [1, 3, 5, 7]])


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        ("f32", ("f32", 32)),
        ("i1", ("bool", 8)),
        ("ui16", ("u16", 16)),
        ("i64", ("i64", 64)),
        ("bf16", ("bf16", 16)),
        ("complex<f32>", ("c64", 64)),
        ("f8E4M3FN", ("f8e4m3fn", 8)),
    ],
)
def test_dtypes_are_named_as_in_jaxprs(element, expected):
    module = parse(
        f"func.func public @main(%x: tensor<{element}>) -> tensor<{element}> "
        f"{{ return %x : tensor<{element}> }}"
    )
    (value,) = planning.plan(module).results
    assert (value.dtype, value.bits) == expected
