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
from tests.sharding.programs import Program, programs

DTYPES = ("float32", "int32", "bfloat16", "complex64")
TOLERANCES = {"bfloat16": 5e-2, "complex64": 1e-4, "float32": 1e-4, "int32": 0}


@pytest.fixture(autouse=True)
def eight_devices():
    with jax.cpu_devices(8):
        yield


def _check_equal(found: Any, expected: Any) -> None:
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    tolerance = TOLERANCES[expected.dtype.name]
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
