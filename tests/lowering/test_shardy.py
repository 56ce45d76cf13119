"""What lowered programs say to Shardy: meshes, shardings of arguments and results, constraints."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minijax
from minijax import NamedSharding, P
from minijax import numpy as jnp
from minijax.core import config
from minijax.core.meshes import AbstractMesh, AxisType
from minijax.sharding.mesh import Mesh

Golden = Callable[[str, str], None]


@pytest.fixture
def mesh() -> Iterator[Mesh]:
    with minijax.cpu_devices(8):
        yield Mesh(np.array(minijax.devices()).reshape(4, 2), ("x", "y"))


def floats(mesh: Mesh, *entries: Any, shape: tuple[int, ...] = (8, 4)) -> Any:
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return minijax.device_put(values, NamedSharding(mesh, P(*entries)))


def text_of(function: Callable[..., Any], *args: Any, **options: Any) -> str:
    return minijax.jit(function, **options).lower(*args).as_text()


@pytest.mark.feature("SD-08")
def test_acceptance_module(mesh: Mesh, golden: Golden) -> None:
    sharding = NamedSharding(mesh, P("x", "y"))

    def f(x: Any) -> Any:
        return x * 2

    with minijax.enable_x64(True):
        x = minijax.device_put(np.arange(16).reshape(8, 2), sharding)
        golden("sharded_acceptance.mlir", text_of(f, x, out_shardings=sharding))


@pytest.mark.feature("SD-06")
def test_constraint_leaves_unconstrained_dimensions_open(mesh: Mesh) -> None:
    def f(x: Any) -> Any:
        return minijax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(P.UNCONSTRAINED, "y")))

    assert 'sdy.sharding_constraint %arg0 <@mesh, [{?}, {"y"}]>' in text_of(f, floats(mesh, "x"))


@pytest.mark.feature("SD-05")
def test_argument_split_over_two_axes_lists_both(mesh: Mesh) -> None:
    text = text_of(lambda x: x, floats(mesh, ("x", "y"), None))
    assert '%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}' in text


@pytest.mark.feature("SD-03", "SD-04")
def test_module_counts_partitions_and_names_each_mesh_once(mesh: Mesh) -> None:
    x = floats(mesh, "x")
    text = text_of(lambda x, y: x + y, x, x)
    assert "mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32" in text
    assert text.count('sdy.mesh @mesh = <["x"=4, "y"=2]>') == text.count("sdy.mesh") == 1


@pytest.mark.feature("SD-03")
def test_module_for_one_device_says_nothing_of_shardings() -> None:
    text = text_of(lambda x: x * 2.0, np.ones(4, np.float32))
    assert "mhlo.num_partitions = 1 : i32" in text
    assert "sdy" not in text


@pytest.mark.feature("SD-04")
def test_two_meshes_stand_in_order_of_use(mesh: Mesh) -> None:
    other = Mesh(mesh.devices.reshape(2, 4), ("a", "b"))

    def f(x: Any) -> Any:
        return minijax.lax.with_sharding_constraint(x, NamedSharding(other, P("a")))

    meshes = [
        line.strip() for line in text_of(f, floats(mesh, "x")).splitlines() if "@mesh" in line
    ]
    assert meshes[:2] == [
        'sdy.mesh @mesh = <["x"=4, "y"=2]>',
        'sdy.mesh @mesh_0 = <["a"=2, "b"=4]>',
    ]


def test_meshes_of_equal_axes_share_a_symbol(mesh: Mesh) -> None:
    sharding = NamedSharding(mesh.abstract_mesh, P(None, "y"))
    text = text_of(lambda x: minijax.lax.with_sharding_constraint(x, sharding), floats(mesh, "x"))
    assert text.count("sdy.mesh") == 1
    assert "<@mesh, [{}, {" in text


def test_function_called_mesh_is_called_otherwise_in_the_module(mesh: Mesh) -> None:
    def inner(x: Any) -> Any:
        return minijax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("y")))

    inner.__name__ = "mesh"
    lowered = minijax.jit(lambda x: minijax.jit(inner)(x) + 1.0).lower(floats(mesh, "x"))
    assert "call @mesh_0(%arg0)" in lowered.as_text()
    assert lowered.compile().output_shardings.spec == P("y")


def test_reversed_devices_need_no_ids_in_the_module(mesh: Mesh) -> None:
    """The order is the device assignment's: one module serves both meshes."""
    reverse = Mesh(mesh.devices[::-1, ::-1], ("x", "y"))
    double = minijax.jit(lambda x: x * 2.0)
    forth, back = floats(mesh, "x"), floats(reverse, "x")
    assert double.lower(forth).as_text() == double.lower(back).as_text()
    assert double(back).sharding.mesh is reverse
    np.testing.assert_array_equal(double(back), double(forth))


def test_spec_of_unreduced_axes_lists_them(mesh: Mesh) -> None:
    explicit = mesh.update(axis_types=(AxisType.Explicit,) * 2)
    sharding = NamedSharding(explicit, P(None, unreduced={"x"}))
    text = text_of(lambda x: x, minijax.ShapeDtypeStruct((8,), np.float32, sharding=sharding))
    assert '#sdy.sharding<@mesh, [{}], unreduced={"x"}>' in text


@pytest.mark.feature("SD-04")
def test_scalar_from_the_host_is_replicated(mesh: Mesh) -> None:
    text = text_of(lambda x, s: x * s, floats(mesh, "x"), 2.0)
    assert "sdy.mesh @empty_mesh = <[]>" in text
    assert "%arg1: tensor<f32> {sdy.sharding = #sdy.sharding<@empty_mesh, []>}" in text


def test_key_from_the_host_is_replicated_with_its_words(mesh: Mesh) -> None:
    text = text_of(lambda x, k: (x, k), floats(mesh, "x"), minijax.random.key(0))
    assert "tensor<2xui32> {sdy.sharding = #sdy.sharding<@empty_mesh, [{}]>}" in text


def test_array_from_the_host_is_left_to_the_partitioner(mesh: Mesh) -> None:
    text = text_of(lambda x, y: x * y, floats(mesh, "x"), np.ones(4, np.float32))
    assert "%arg1: tensor<4xf32>)" in text


def test_keys_are_split_by_their_logical_dimensions(mesh: Mesh) -> None:
    keys = minijax.device_put(
        minijax.random.split(minijax.random.key(0), 8), NamedSharding(mesh, P("x"))
    )
    assert 'tensor<8x2xui32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}' in text_of(
        lambda k: k, keys
    )


@pytest.mark.feature("SD-04")
def test_donated_argument_is_aliased_to_a_result_of_its_placement(mesh: Mesh) -> None:
    x = floats(mesh, "x")
    text = text_of(
        lambda x: x + 1.0, x, donate_argnums=0, out_shardings=NamedSharding(mesh, P("x"))
    )
    assert "tf.aliasing_output = 0 : i32" in text


@pytest.mark.feature("SD-04")
def test_donated_argument_is_offered_where_no_placement_is_given(mesh: Mesh) -> None:
    text = text_of(lambda x: x + 1.0, floats(mesh, "x"), donate_argnums=0)
    assert "jax.buffer_donor = true" in text
    assert "tf.aliasing_output" not in text


@pytest.mark.feature("SD-04")
def test_result_in_other_memory_says_so_and_is_put_there(mesh: Mesh) -> None:
    there = NamedSharding(mesh, P("x"), memory_kind="pinned_host")
    text = text_of(lambda x: x * 2.0, floats(mesh, "x"), out_shardings=there)
    assert 'mhlo.memory_kind = "pinned_host"' in text
    assert "@annotate_device_placement" in text
    assert '_xla_buffer_placement = "pinned_host"' in text


def test_value_put_into_other_memory_inside_is_returned_there(mesh: Mesh) -> None:
    there = NamedSharding(mesh, P("x"), memory_kind="pinned_host")
    out = minijax.jit(lambda x: minijax.device_put(x * 2.0, there))(floats(mesh, "x"))
    assert out.sharding.memory_kind == "pinned_host"
    np.testing.assert_array_equal(out, 2 * np.arange(32).reshape(8, 4))


def test_value_put_back_inside_is_returned_in_device_memory(mesh: Mesh) -> None:
    there = NamedSharding(mesh, P("x"), memory_kind="pinned_host")
    x = minijax.device_put(floats(mesh, "x"), there)
    out = minijax.jit(lambda x: minijax.device_put(x, there.with_memory_kind("device")) + 1.0)(x)
    assert out.sharding.memory_kind == "device"


def test_one_device_returns_results_in_the_memory_asked_for() -> None:
    there = minijax.sharding.SingleDeviceSharding(minijax.devices()[0], memory_kind="pinned_host")
    out = minijax.jit(lambda x: x * 2.0, out_shardings=there)(np.ones(4, np.float32))
    assert out.sharding == there


def test_constraint_in_a_scan_stands_in_its_body(mesh: Mesh, golden: Golden) -> None:
    def layer(x: Any, w: Any) -> Any:
        x = minijax.lax.with_sharding_constraint(jnp.tanh(x @ w), NamedSharding(mesh, P("x")))
        return x, None

    def network(x: Any, layers: Any) -> Any:
        return minijax.lax.scan(layer, x, layers)[0]

    layers = floats(mesh, None, "x", "y", shape=(3, 4, 4))
    golden("sharded_scan.mlir", text_of(network, floats(mesh, "x"), layers))


def test_private_function_is_lowered_once_for_all_its_calls(mesh: Mesh, golden: Golden) -> None:
    @minijax.jit
    def gathered(x: Any) -> Any:
        return minijax.lax.with_sharding_constraint(x * 2.0, NamedSharding(mesh, P()))

    def outer(x: Any) -> Any:
        return gathered(gathered(x))

    golden("sharded_call.mlir", text_of(outer, floats(mesh, "x")))


@pytest.mark.feature("SD-04")
def test_abstract_mesh_lowers_without_devices() -> None:
    mesh = AbstractMesh((256, 256), ("x", "y"))
    x = minijax.ShapeDtypeStruct((512, 512), np.float32, sharding=NamedSharding(mesh, P("x", "y")))
    text = text_of(lambda x: x @ x, x)
    assert "mhlo.num_partitions = 65536" in text
    assert 'sdy.mesh @mesh = <["x"=256, "y"=256]>' in text


def test_mesh_of_another_size_than_the_program_is_refused(mesh: Mesh) -> None:
    small = AbstractMesh((2,), ("x",))

    def f(x: Any) -> Any:
        return minijax.lax.with_sharding_constraint(x, NamedSharding(small, P("x")))

    with pytest.raises(ValueError, match="the mesh has 2 devices, the program runs on 8"):
        minijax.jit(f)(floats(mesh, "x"))


@pytest.mark.feature("SD-09")
def test_toggling_the_partitioner_lowers_again(mesh: Mesh) -> None:
    double = minijax.jit(lambda x: x * 2.0)
    x = floats(mesh, "x")
    assert "sdy.sharding" in double.lower(x).as_text()
    with config.use_shardy_partitioner(False):
        assert (
            'mhlo.sharding = "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"'
            in double.lower(x).as_text()
        )
    assert "sdy.sharding" in double.lower(x).as_text()
