"""The law of sharding: however values are split, a program computes what it does on one device."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minijax as jax
from minijax import lax
from minijax import numpy as jnp
from minijax.sharding import AxisType, NamedSharding, PartitionSpec, set_mesh
from minijax.testing.strategies import meshes, specs
from tests.sharding.operations import OPERATIONS
from tests.sharding.programs import Program, programs

DTYPES = ("float32", "int32", "bfloat16", "complex64")
TOLERANCES = {"bfloat16": 5e-2, "float16": 5e-3, "complex64": 1e-4, "float32": 1e-4}
MORE_SHAPES = ((2,), (3,), (5,), (6,), (8,), (2, 3), (4, 2), (2, 2, 2))


@pytest.fixture(autouse=True)
def eight_devices():
    with jax.cpu_devices(8):
        yield


def _check_equal(found: Any, expected: Any) -> None:
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    tolerance = TOLERANCES.get(expected.dtype.name, 0)
    scale = 1 + float(np.max(np.abs(np.asarray(expected, np.complex64)), initial=0))
    np.testing.assert_allclose(
        np.asarray(found).astype(np.complex64),
        np.asarray(expected).astype(np.complex64),
        rtol=tolerance,
        atol=tolerance * scale,
    )


def _place_inputs(data: Any, program: Program, mesh: Any) -> list[Any]:
    return [
        jax.device_put(x, NamedSharding(mesh, data.draw(specs(mesh, x.shape), label="spec")))
        for x in program.inputs
    ]


def _loss(program: Program) -> Any:
    return lambda *args, **options: jnp.sum(jnp.abs(program(*args, **options)) ** 2)


@pytest.mark.feature("JT-01", "SD-05", "SD-06")
@pytest.mark.slow
@given(data=st.data())
def test_auto_sharding_changes_no_value(data: Any) -> None:
    program = data.draw(programs(DTYPES), label="program")
    mesh = data.draw(meshes(jax.devices()), label="mesh")
    expected = jax.jit(program)(*program.inputs)
    _check_equal(jax.jit(program)(*_place_inputs(data, program, mesh)), expected)


@pytest.mark.feature("JT-35", "MS-10")
@pytest.mark.slow
@given(data=st.data())
def test_constraints_and_out_shardings_change_no_value(data: Any) -> None:
    program = data.draw(programs(DTYPES), label="program")
    mesh = data.draw(meshes(jax.devices()), label="mesh")
    expected = jax.jit(program)(*program.inputs)
    placed = _place_inputs(data, program, mesh)
    shapes = jax.eval_shape(lambda *xs: _all_values(program, xs), *program.inputs)
    wanted = [NamedSharding(mesh, data.draw(specs(mesh, s.shape), label="at")) for s in shapes]

    def constrained(*args: Any) -> Any:
        return program(*args, place=lambda i, x: lax.with_sharding_constraint(x, wanted[i]))

    found = jax.jit(constrained, out_shardings=wanted[-1])(*placed)
    _check_equal(found, expected)
    assert found.sharding.is_equivalent_to(wanted[-1], found.ndim)


def _all_values(program: Program, args: Any) -> list[Any]:
    values = []
    program(*args, place=lambda i, x: values.append(x) or x)
    return values


@pytest.mark.feature("JT-01")
@pytest.mark.slow
@given(data=st.data())
def test_auto_sharding_changes_no_gradient(data: Any) -> None:
    program = data.draw(programs(("float32",)), label="program")
    mesh = data.draw(meshes(jax.devices()), label="mesh")
    gradient = jax.jit(jax.grad(_loss(program), argnums=tuple(range(len(program.inputs)))))
    expected = gradient(*program.inputs)
    for found, right in zip(gradient(*_place_inputs(data, program, mesh)), expected, strict=True):
        _check_equal(found, right)


@pytest.mark.feature("MS-06")
@pytest.mark.slow
@given(data=st.data())
def test_explicit_sharding_changes_no_value(data: Any) -> None:
    program = data.draw(programs(DTYPES), label="program")
    kinds = (AxisType.Explicit, AxisType.Auto)
    mesh = data.draw(meshes(jax.devices(), kinds), label="mesh")
    expected = jax.jit(program)(*program.inputs)
    with set_mesh(mesh):
        found = jax.jit(program)(*_place_inputs(data, program, mesh))
    _check_equal(found, expected)


@pytest.mark.feature("MS-06")
@pytest.mark.slow
@given(data=st.data())
def test_explicit_sharding_changes_no_gradient_and_gradients_keep_it(data: Any) -> None:
    program = data.draw(programs(("float32",)), label="program")
    mesh = data.draw(meshes(jax.devices(), (AxisType.Explicit,)), label="mesh")
    gradient = jax.jit(jax.grad(_loss(program), argnums=tuple(range(len(program.inputs)))))
    expected = gradient(*program.inputs)
    with set_mesh(mesh):
        placed = _place_inputs(data, program, mesh)
        found = gradient(*placed)
    for own, right, x in zip(found, expected, placed, strict=True):
        _check_equal(own, right)
        assert jax.typeof(own) == jax.typeof(x)


@pytest.mark.feature("JT-01", "JT-35", "SD-05")
@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=4 * settings().max_examples)
def test_every_operation_computes_the_same_on_any_mesh(data: Any) -> None:
    operation = OPERATIONS[data.draw(st.sampled_from(sorted(OPERATIONS)), label="operation")]
    dtype = data.draw(st.sampled_from(operation.dtypes), label="dtype")
    mesh = data.draw(meshes(jax.devices(), shapes=MORE_SHAPES), label="mesh")

    def place(x: Any) -> NamedSharding:
        return NamedSharding(mesh, data.draw(specs(mesh, x.shape), label="spec"))

    operands = operation.operands(dtype, seed=0)
    expected = jax.jit(operation.function)(*operands)
    placed = [jax.device_put(x, place(x)) for x in operands]
    outs = jax.tree.map(place, expected) if data.draw(st.booleans(), label="given outs") else None
    found = jax.jit(lambda *args: operation.function(*args), out_shardings=outs)(*placed)
    jax.tree.map(_check_equal, found, expected)


@pytest.mark.feature("AR-05", "AR-10")
@given(data=st.data())
@settings(max_examples=60)
def test_every_device_holds_its_part_of_the_array(data: Any) -> None:
    shape = tuple(data.draw(st.lists(st.sampled_from((1, 2, 4, 8)), max_size=3)))
    mesh = data.draw(meshes(jax.devices()))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    placed = jax.device_put(x, NamedSharding(mesh, data.draw(specs(mesh, shape))))
    moved = jax.device_put(placed, NamedSharding(mesh, data.draw(specs(mesh, shape))))
    for array in (placed, moved):
        for shard in array.addressable_shards:
            np.testing.assert_array_equal(shard.data, x[shard.index])


REDUCTIONS_WITHOUT_A_SUM = {
    "complex max": (lambda x: jnp.max(x), np.complex64, np.max),
    "bitwise and": (lambda x: jnp.bitwise_and.reduce(x), np.int32, np.bitwise_and.reduce),
    "bitwise or": (lambda x: jnp.bitwise_or.reduce(x), np.int32, np.bitwise_or.reduce),
    "bitwise xor": (lambda x: jnp.bitwise_xor.reduce(x), np.int32, np.bitwise_xor.reduce),
    "any function": (
        lambda x: lax.reduce(x, np.float32(1), lambda a, b: a * b + a + b, (0,)),
        np.float32,
        lambda x: np.prod(x + 1) * 2 - 1,
    ),
}


@pytest.mark.feature("SD-01")
@pytest.mark.parametrize("name", REDUCTIONS_WITHOUT_A_SUM)
def test_reductions_that_devices_cannot_share_are_done_by_each(name: str) -> None:
    function, dtype, expected = REDUCTIONS_WITHOUT_A_SUM[name]
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    x = np.arange(1, 9).astype(dtype)
    found = jax.jit(function)(jax.device_put(x, NamedSharding(mesh, PartitionSpec("x"))))
    np.testing.assert_allclose(found, expected(x), rtol=1e-6)


@pytest.fixture
def auto_mesh() -> Any:
    return jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


OUTSIDE = [(0, 0), (7, 3), (8, 4), (100, 0), (-1, 3), (-100, 100)]


@pytest.mark.feature("SD-05")
@pytest.mark.parametrize("sizes", [(1, 1), (8, 1), (2, 4)])
def test_an_update_outside_of_a_split_dimension_is_moved_inside(
    auto_mesh: Any, sizes: tuple[int, ...]
) -> None:
    x, update = np.zeros((8, 4), np.float32), np.ones(sizes, np.float32)
    written = jax.jit(lambda *args: lax.dynamic_update_slice(*args, allow_negative_indices=False))
    placed = jax.device_put(x, NamedSharding(auto_mesh, PartitionSpec("x", "y")))
    for starts in [list(map(np.int32, pair)) for pair in OUTSIDE]:
        found = written(placed, update, starts)
        np.testing.assert_array_equal(found, written(x, update, starts))


@pytest.mark.feature("SD-05")
def test_a_slice_outside_of_the_array_may_be_split(auto_mesh: Any) -> None:
    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    whole, split = (
        NamedSharding(auto_mesh, PartitionSpec()),
        NamedSharding(auto_mesh, PartitionSpec("y")),
    )
    taken = jax.jit(lambda x, i: lax.dynamic_slice(x, i, (2, 4)), out_shardings=split)
    for row, column in OUTSIDE:
        found = taken(jax.device_put(x, whole), [np.int32(row), np.int32(column)])
        first = min(max(row + 8 if row < 0 else row, 0), 6)
        np.testing.assert_array_equal(found, x[first : first + 2])


@pytest.mark.feature("SD-05")
@pytest.mark.parametrize(("window", "stride"), [(3, 1), (3, 2), (2, 2), (4, 3)])
def test_gradients_of_overlapping_windows_cross_borders(
    auto_mesh: Any, window: int, stride: int
) -> None:
    def loss(x: Any) -> Any:
        pooled = lax.reduce_window(x, -np.inf, lax.max, (window,), (stride,), "SAME")
        return (pooled * jnp.arange(1.0, pooled.size + 1)).sum()

    x = np.random.default_rng(0).permutation(16).astype(np.float32)
    placed = jax.device_put(x, NamedSharding(auto_mesh, PartitionSpec(("x", "y"))))
    gradient = jax.jit(jax.grad(loss))
    np.testing.assert_array_equal(gradient(placed), gradient(x))


@pytest.mark.feature("MS-06", "MS-07")
def test_results_stay_split_over_auto_axes_beside_explicit_ones() -> None:
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
    x = jax.device_put(np.ones((8, 8), np.float32), NamedSharding(mesh, PartitionSpec("x", "y")))
    assert jnp.sin(x).sharding.spec == PartitionSpec("x", "y")
    assert jax.jit(jnp.transpose)(x).sharding.spec == PartitionSpec("y", "x")


@pytest.mark.feature("MS-10")
def test_a_constraint_that_types_fulfil_brings_values_to_its_mesh() -> None:
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    whole = NamedSharding(mesh, PartitionSpec())
    for x in (np.ones(8, np.float32), jnp.ones(8)):
        for constrain in (
            lax.with_sharding_constraint,
            jax.jit(lax.with_sharding_constraint, static_argnums=1),
        ):
            found = constrain(x, whole)
            assert found.committed
            assert found.sharding.is_equivalent_to(whole, 1)


@pytest.mark.feature("MS-06", "JT-35")
def test_types_of_inner_results_show_their_out_shardings() -> None:
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    split = NamedSharding(mesh, PartitionSpec("x"))
    shown = []

    def outer(x: Any) -> Any:
        y = jax.jit(lambda x: x * 2, out_shardings=split)(x)
        shown.append(str(jax.typeof(y)))
        return y

    found = jax.jit(outer)(np.ones(8, np.float32))
    assert shown == [str(jax.typeof(found))]
    assert found.sharding.is_equivalent_to(split, 1)


@pytest.mark.feature("MS-06")
def test_random_keys_are_split_as_their_types_say() -> None:
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    keys = jax.random.split(jax.random.key(0), 8)
    placed = jax.device_put(keys, NamedSharding(mesh, PartitionSpec("x")))
    found = jax.jit(lambda keys: jnp.stack([keys, keys[::-1]], 1))(placed)
    assert found.sharding.shard_shape(found.shape) == (2, 2)


@pytest.mark.feature("JT-01")
def test_placements_of_keys_have_the_rank_of_the_keys(auto_mesh: Any) -> None:
    words = np.arange(16, dtype=np.uint32).reshape(8, 2)
    placed = jax.device_put(words, NamedSharding(auto_mesh, PartitionSpec("x", None)))
    found = jax.jit(jax.random.wrap_key_data)(placed)
    assert found.sharding.shard_shape(found.shape) == (2,)


@pytest.mark.feature("MS-06")
def test_tokens_are_results_beside_split_arrays() -> None:
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    placed = jax.device_put(np.ones(8), NamedSharding(mesh, PartitionSpec("x")))
    doubled, token = jax.jit(lambda x: (x * 2, lax.create_token()))(placed)
    assert str(jax.typeof(doubled)) == "f32[8@x]"
    assert repr(token) == "Token()"


@pytest.mark.feature("SD-01")
@pytest.mark.parametrize(
    "spec", [PartitionSpec(None, "x"), PartitionSpec(None, None, "y")], ids=str
)
@pytest.mark.parametrize("strides", [(1, 1), (2, 2)], ids=str)
def test_gradient_of_a_kernel_is_right_where_images_are_split(
    spec: PartitionSpec, strides: tuple[int, int]
) -> None:
    rng = np.random.default_rng(0)
    images = rng.normal(size=(2, 8, 8, 3)).astype(np.float32)
    kernel = rng.normal(size=(3, 3, 3, 4)).astype(np.float32)

    def loss(kernel: Any, images: Any) -> Any:
        numbers = ("NHWC", "HWIO", "NHWC")
        out = lax.conv_general_dilated(images, kernel, strides, "SAME", dimension_numbers=numbers)
        return (out**2).sum()

    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    split = jax.device_put(images, NamedSharding(mesh, spec))
    gradient = jax.jit(jax.grad(loss))
    np.testing.assert_allclose(
        gradient(kernel, split), gradient(kernel, images), rtol=1e-4, atol=1e-3
    )
