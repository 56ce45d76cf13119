"""Tilings: what types and programs become where values are cut into parts over a mesh."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minijax as jax
from minijax import lax
from minijax.core.primitive import Primitive
from minijax.experimental import pxla
from minijax.extend import batching
from minijax.interpreters.named_batching import batch_flat
from minijax.sharding import AxisType, NamedSharding
from minijax.sharding import PartitionSpec as P

SIZES = {"x": 4, "y": 2}
X = np.arange(8 * 4.0, dtype=np.float32).reshape(8, 4)


@pytest.fixture(scope="module")
def mesh() -> Iterator[Any]:
    with jax.cpu_devices(8):
        yield jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


@pytest.fixture
def gspmd() -> Iterator[None]:
    jax.config.update("use_shardy_partitioner", False)
    yield
    jax.config.update("use_shardy_partitioner", True)


def typed(shape: tuple[int, ...]) -> Any:
    return jax.typeof(np.zeros(shape, np.float32))


@pytest.mark.feature("XM-02")
def test_tile_aval_divides_dimensions_and_adds_names() -> None:
    part = pxla.tile_aval_nd(SIZES, {"x": 0, "y": 1}, typed((8, 4)))
    assert part.shape == (2, 2)
    assert dict(part.named_shape) == SIZES


@pytest.mark.feature("XM-02")
def test_untile_aval_multiplies_dimensions_and_removes_names() -> None:
    part = pxla.tile_aval_nd(SIZES, {"x": 0, "y": 1}, typed((8, 4)))
    whole = pxla.untile_aval_nd(SIZES, {"x": 0}, part)
    assert whole.shape == (8, 2)
    assert dict(whole.named_shape) == {"y": 2}


@pytest.mark.feature("XM-02")
def test_untile_aval_repeats_what_has_not_the_name() -> None:
    assert pxla.untile_aval_nd(SIZES, {"x": 0}, typed((2, 2))).shape == (8, 2)


def test_two_axes_split_one_dimension() -> None:
    assert pxla.tile_aval_nd(SIZES, {"x": 0, "y": 0}, typed((8,))).shape == (1,)


def test_named_shapes_are_read_only() -> None:
    part: Any = pxla.tile_aval_nd(SIZES, {"x": 0}, typed((8, 4)))
    with pytest.raises(TypeError):
        part.named_shape["x"] = 3


@pytest.mark.parametrize(
    ("sizes", "axes", "text"),
    [
        (SIZES, {"x": 1}, "dimension 1 of size 6 cannot be cut into 4"),
        (SIZES, {"z": 0}, "the axis 'z' has no size"),
    ],
)
def test_tile_aval_refuses(sizes: Any, axes: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        pxla.tile_aval_nd(sizes, axes, typed((8, 6)))


def test_tile_aval_refuses_a_name_that_the_type_has() -> None:
    part = pxla.tile_aval_nd(SIZES, {"x": 0}, typed((8, 4)))
    with pytest.raises(ValueError, match="has the axis 'x' already"):
        pxla.tile_aval_nd(SIZES, {"x": 1}, part)


@pytest.mark.feature("BT-05")
def test_vtile_gives_parts_of_the_tiled_type() -> None:
    seen = []

    def f(x: Any, w: Any) -> list[Any]:
        seen.append((x.shape, w.shape))
        return [x * w.sum() + lax.axis_index("t"), lax.psum(x, "t")]

    found, total = pxla.vtile(f, [0, None], [0, None], 4, "t")(X, np.ones(3, np.float32))
    part = pxla.tile_aval_nd({"t": 4}, {"t": 0}, typed((8, 4)))
    assert seen == [(part.shape, (3,))]
    np.testing.assert_array_equal(found, X * 3 + np.repeat(np.arange(4), 2)[:, None])
    np.testing.assert_array_equal(total, X.reshape(4, 2, 4).sum(0))


def test_vtile_refuses_what_cannot_be_cut() -> None:
    with pytest.raises(ValueError, match="dimension 1 of size 4 cannot be cut into 3"):
        pxla.vtile(lambda x: [x], [1], [1], 3, "t")(X)


AXES: list[tuple[Any, Any]] = [
    ({"x": 0, "y": 1}, {"x": 0, "y": 1}),
    ({"x": 0, "y": 0}, {"x": 0, "y": 0}),
    ({"y": 0, "x": 0}, {"y": 0, "x": 0}),
    ({"x": 0, "y": 0}, {"y": 0, "x": 0}),
    ({"y": 1}, {"y": 1}),
]


def positions(x: Any) -> list[Any]:
    return [x * 0 + lax.axis_index("x") * 10 + lax.axis_index("y")]


@pytest.mark.feature("XM-03", "XM-04", "XM-09")
@pytest.mark.parametrize(("ins", "outs"), AXES[:-1])
def test_all_tilings_put_parts_in_the_same_places(mesh: Any, ins: Any, outs: Any) -> None:
    manual = pxla.TileManual(frozenset(mesh.axis_names))

    def run(tiling: Any, spmd: bool = True) -> Any:
        whole = pxla.mesh_computation(
            positions, mesh, [ins], [outs], tiling_method=tiling, spmd_lowering=spmd
        )
        return np.asarray((jax.jit(whole) if spmd else whole)(X)[0])

    expected = run(manual)
    np.testing.assert_array_equal(run(pxla.TileVectorize()), expected)
    np.testing.assert_array_equal(run(None, spmd=False), expected)
    assert len(np.unique(expected)) == 8


@pytest.mark.feature("XM-03")
def test_batches_of_parts_follow_the_order_of_the_mesh(mesh: Any) -> None:
    def f(x: Any) -> list[Any]:
        return [lax.with_sharding_constraint(x, NamedSharding(mesh, P()))]

    lowered = pxla.lower_mesh_computation(
        f, mesh, [AXES[0][0]], [AXES[0][1]], [typed((8, 4))], tiling_method=pxla.TileVectorize()
    )
    # Each batch stands before the rest of the dimension that it was cut from.
    assert '<@mesh, [{"x"}, {}, {"y"}, {}]> : tensor<4x2x2x2xf32>' in lowered.as_text()


@pytest.mark.feature("XM-03")
def test_batches_of_one_dimension_follow_the_order_of_the_mesh(mesh: Any) -> None:
    def f(x: Any) -> list[Any]:
        return [lax.with_sharding_constraint(x, NamedSharding(mesh, P()))]

    lowered = pxla.lower_mesh_computation(
        f, mesh, [{"x": 0, "y": 0}], [{}], [typed((8,))], tiling_method=pxla.TileVectorize()
    )
    assert '<@mesh, [{"x"}, {"y"}, {}]> : tensor<4x2x1xf32>' in lowered.as_text()


@pytest.mark.feature("XM-04")
def test_manual_tiling_is_one_operation_of_shardy(mesh: Any) -> None:
    lowered = pxla.lower_mesh_computation(
        lambda x: [x],
        mesh,
        [{"x": 0}],
        [{"x": 0}],
        [typed((8, 4))],
        tiling_method=pxla.TileManual(frozenset({"x"})),
    )
    text = lowered.as_text()
    assert text.count("sdy.manual_computation") == 1
    assert 'manual_axes={"x"}' in text
    np.testing.assert_array_equal(lowered.compile()(X)[0], X)


@pytest.mark.feature("XM-04")
@pytest.mark.parametrize("manual", [{"x"}, {"x", "y"}], ids=lambda manual: "".join(sorted(manual)))
def test_full_to_shard_and_back_is_the_identity(mesh: Any, gspmd: None, manual: Any) -> None:
    def f(x: Any) -> Any:
        block = pxla.full_to_shard(x, {"x": 0}, mesh, manual)
        assert block.shape == (2, 4)
        return pxla.shard_to_full(block, {"x": 0}, mesh, manual)

    np.testing.assert_array_equal(jax.jit(f)(X), X)
    text = jax.jit(f).lower(X).as_text()
    assert "SPMDFullToShardShape" in text
    assert "SPMDShardToFullShape" in text
    words = "{manual}" if len(manual) == 2 else "last_tile_dims={manual, replicated}"
    assert words in text


def test_full_to_shard_maps_and_differentiates(mesh: Any, gspmd: None) -> None:
    manual = {"x", "y"}

    def f(x: Any) -> Any:
        block = pxla.full_to_shard(x, {"x": 0}, mesh, manual)
        return pxla.shard_to_full(block * 3, {"x": 0}, mesh, manual)

    mapped = jax.jit(jax.vmap(f, 1, 1))
    np.testing.assert_array_equal(mapped(X), X * 3)
    primal, tangent = jax.jit(lambda x: jax.jvp(f, (x,), (x,)))(X)
    np.testing.assert_array_equal(primal, tangent)


def test_full_to_shard_needs_manual_axes(mesh: Any) -> None:
    with pytest.raises(ValueError, match="axes must be among manual_axes"):
        pxla.full_to_shard(X, {"x": 0}, mesh, {"y"})


def test_full_to_shard_needs_a_program(mesh: Any) -> None:
    with pytest.raises(ValueError, match="no array of its own"):
        pxla.full_to_shard(X, {"x": 0}, mesh, {"x"})


def test_one_border_alone_is_refused_in_shardy_s_words(mesh: Any) -> None:
    with pytest.raises(NotImplementedError, match="one operation for both borders"):
        jax.jit(lambda x: pxla.full_to_shard(x, {"x": 0}, mesh, {"x"}))(X)


@pytest.mark.feature("XM-05")
@pytest.mark.parametrize(
    ("manual", "tiles", "devices"),
    [
        ({"y"}, [1, 1, 4, 2], [0, 1, 2, 3, 4, 5, 6, 7]),
        ({"x"}, [1, 1, 2, 4], [0, 2, 4, 6, 1, 3, 5, 7]),
        ({"y", "x"}, [1, 1, 1, 8], [0, 1, 2, 3, 4, 5, 6, 7]),
    ],
    ids=["y", "x", "both"],
)
def test_manual_proto_lists_other_axes_first(
    mesh: Any, manual: Any, tiles: Any, devices: Any
) -> None:
    proto = pxla.manual_proto(typed((8, 4)), manual, mesh)
    assert proto.tile_assignment_dimensions == tiles
    assert proto.tile_assignment_devices == devices
    replicated, manual_kind = proto.type.REPLICATED.value, proto.type.MANUAL.value
    assert proto.last_tile_dims == [replicated, manual_kind]


@pytest.mark.feature("XM-05")
def test_manual_proto_sorts_manual_axes_by_name() -> None:
    abstract = jax.sharding.AbstractMesh((2, 4), ("y", "x"))
    proto = pxla.manual_proto(typed(()), {"x", "y"}, abstract)
    assert proto.tile_assignment_devices == [0, 4, 1, 5, 2, 6, 3, 7]


@pytest.mark.feature("XM-06", "JT-38")
def test_unknown_tiling_methods_are_refused(mesh: Any) -> None:
    with pytest.raises(NotImplementedError, match="unknown tiling method"):
        pxla.lower_mesh_computation(
            lambda x: [x], mesh, [{}], [{}], [typed((8, 4))], tiling_method="loop"
        )


@pytest.mark.feature("XM-07", "JT-38")
@pytest.mark.parametrize("spmd", [True, False])
def test_pmap_inside_a_mesh_computation_is_refused(mesh: Any, spmd: bool) -> None:
    with pytest.raises(RuntimeError, match="pmap cannot be inside"):
        pxla.lower_mesh_computation(
            lambda x: [jax.pmap(lambda y: y)(x)],
            mesh,
            [{"x": 0}],
            [{"x": 0}],
            [typed((8, 4))],
            tiling_method=pxla.TileManual(frozenset({"x"})),
            spmd_lowering=spmd,
        )


@pytest.mark.feature("XM-09", "JT-38")
def test_replicas_are_as_many_as_the_mesh_has_devices(mesh: Any) -> None:
    lowered = pxla.lower_mesh_computation(
        lambda x: [lax.psum(x, "x")],
        mesh,
        [{"x": 0}],
        [{}],
        [typed((8, 4))],
        tiling_method=None,
        spmd_lowering=False,
    )
    text = lowered.as_text()
    assert "mhlo.num_replicas = 8" in text
    assert "dense<[[0, 2, 4, 6], [1, 3, 5, 7]]>" in text


class Doubled(Primitive):
    """Twice its operand; for tests of batching rules."""

    name = "test_tiling_doubled"

    def abstract_eval(self, x: Any) -> Any:
        return x

    def impl(self, x: Any) -> Any:
        return x * 2

    def batch(self, size: int, args: Any, dims: Any) -> Any:
        return self.bind(args[0]), dims[0]


doubled_p = Doubled()


@pytest.mark.feature("BT-06")
def test_spmd_batchers_are_used_where_a_mesh_axis_splits_the_batch() -> None:
    def rule(size: int, axes: Any, args: Any, dims: Any) -> Any:
        assert (size, axes) == (8, ("x",))
        return args[0] * 5, dims[0]

    batching.spmd_primitive_batchers[doubled_p] = rule
    try:
        with_axis, _ = batch_flat(lambda v: [doubled_p.bind(v)], 8, [X], [0], spmd_axis_name="x")
        without, _ = batch_flat(lambda v: [doubled_p.bind(v)], 8, [X], [0])
    finally:
        del batching.spmd_primitive_batchers[doubled_p]
    np.testing.assert_array_equal(with_axis[0], X * 5)
    np.testing.assert_array_equal(without[0], X * 2)
