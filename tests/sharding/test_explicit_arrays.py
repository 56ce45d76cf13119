"""Arrays on Explicit meshes: their types, and the programs that they run."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minijax
from minijax import numpy as jnp
from minijax.sharding import AxisType, Mesh, NamedSharding, auto_axes, reshard
from minijax.sharding import PartitionSpec as P
from minijax.testing import assert_collectives

VALUES = np.arange(64, dtype=np.float32).reshape(8, 8)


@pytest.fixture
def mesh() -> Iterator[Mesh]:
    with minijax.cpu_devices(8):
        yield minijax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


def put(mesh: Mesh, *entries: Any) -> Any:
    return minijax.device_put(VALUES, NamedSharding(mesh, P(*entries)))


def shown(x: Any) -> str:
    return minijax.typeof(x).str_short()


def test_arrays_show_how_they_are_split(mesh: Mesh) -> None:
    assert shown(put(mesh, "x", "y")) == "f32[8@x,8@y]"


def test_single_operations_keep_types_and_values(mesh: Mesh) -> None:
    out = put(mesh, "x") + put(mesh, None, "y")
    assert shown(out) == "f32[8@x,8@y]"
    np.testing.assert_array_equal(out, 2 * VALUES)


def test_jit_keeps_types_and_values(mesh: Mesh) -> None:
    out = minijax.jit(lambda a: (a * 2).T + 1)(put(mesh, "x", "y"))
    assert shown(out) == "f32[8@y,8@x]"
    np.testing.assert_array_equal(out, (VALUES * 2).T + 1)


def test_results_live_as_their_types_say(mesh: Mesh) -> None:
    out = minijax.jit(lambda a: a.T)(put(mesh, "x", "y"))
    assert out.sharding.is_equivalent_to(NamedSharding(mesh, P("y", "x")), 2)


def test_gradients_are_split_as_the_primals(mesh: Mesh) -> None:
    loss = minijax.grad(lambda a, w: (a @ w).sum(), (0, 1))
    found = minijax.jit(loss)(put(mesh, "x"), put(mesh))
    assert list(map(shown, found)) == ["f32[8@x,8]", "f32[8,8]"]
    for ct, expected in zip(found, loss(VALUES, VALUES), strict=True):
        np.testing.assert_allclose(ct, expected)


@pytest.mark.parametrize("shape", [(), (8,), (1, 8)])
def test_gradients_of_repeated_operands_are_summed_where_they_are(
    mesh: Mesh, shape: tuple[int, ...]
) -> None:
    gradient = minijax.grad(lambda bias, a: ((a + bias) ** 2).sum())
    bias = minijax.device_put(np.ones(shape, np.float32), NamedSharding(mesh, P()))
    assert_collectives(gradient, all_reduce=1, all_gather=0)(bias, put(mesh, "x"))


def test_reshard_moves_arrays(mesh: Mesh) -> None:
    out = reshard(put(mesh, "x"), NamedSharding(mesh, P(None, "y")))
    assert shown(out) == "f32[8,8@y]"
    np.testing.assert_array_equal(out, VALUES)


def test_auto_axes_runs_outside_of_programs(mesh: Mesh) -> None:
    out = auto_axes(lambda a: a @ a, out_sharding=P("x", "y"))(put(mesh, "x", "y"))
    assert shown(out) == "f32[8@x,8@y]"
    np.testing.assert_allclose(out, VALUES @ VALUES)


def test_creation_takes_out_sharding(mesh: Mesh) -> None:
    with minijax.set_mesh(mesh):
        assert shown(jnp.ones((8, 2), out_sharding=P("x"))) == "f32[8@x,2]"
        key = minijax.random.key(0)
        assert shown(minijax.random.normal(key, (8, 2), out_sharding=P("x"))) == "f32[8@x,2]"


@pytest.mark.feature("SD-05", "SD-06")
def test_programs_constrain_results_to_their_types(mesh: Mesh) -> None:
    program = minijax.jit(lambda a: jnp.sin(a).sum(0))
    text = program.lower(put(mesh, "x", "y")).as_text()
    constraints = [line.split("<@mesh, ")[1] for line in text.splitlines() if "_constraint" in line]
    assert constraints == [
        '[{"x"}, {"y"}]> : tensor<8x8xf32>',
        '[{"y"}]> : tensor<8xf32>',
    ]


@pytest.mark.feature("SD-05", "SD-06")
def test_constraints_leave_auto_axes_open() -> None:
    with minijax.cpu_devices(8):
        types = (AxisType.Explicit, AxisType.Auto)
        mixed = minijax.make_mesh((4, 2), ("x", "y"), axis_types=types)
        text = minijax.jit(jnp.sin).lower(put(mixed, "x", "y")).as_text()
    assert 'sdy.sharding_constraint %0 <@mesh, [{"x", ?}, {?}]>' in text


@pytest.mark.feature("RB-12")
@pytest.mark.parametrize("entries", [("x",), (None, "y"), ("x", "y")])
def test_traces_are_those_of_whole_matrices(mesh: Mesh, entries: Any) -> None:
    # A diagonal need not be as long as a split dimension, so that it cannot be split evenly.
    for offset in (0, 1, -3):
        found = jnp.trace(put(mesh, *entries), offset)
        assert (shown(found), float(found)) == ("f32[]", np.trace(VALUES, offset))
    batches = minijax.device_put(VALUES.reshape(4, 2, 8), NamedSharding(mesh, P("x")))
    np.testing.assert_array_equal(
        jnp.trace(batches, 0, 2, 0), np.trace(VALUES.reshape(4, 2, 8), 0, 2, 0)
    )
