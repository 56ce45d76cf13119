"""What `shard_map` becomes: regions written per device, in Shardy's words and in GSPMD's."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax import numpy as jnp
from minijax.core import config
from minijax.sharding import AxisType, Mesh
from minijax.sharding import PartitionSpec as P

Golden = Callable[[str, str], None]
X = np.arange(64, dtype=np.float32).reshape(8, 8)


@pytest.fixture(scope="module")
def mesh() -> Iterator[Mesh]:
    with minijax.cpu_devices(8):
        yield minijax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def text_of(mesh: Mesh, function: Callable[..., Any], **options: Any) -> str:
    mapped = minijax.shard_map(function, **{"mesh": mesh, **options})
    return str(minijax.jit(mapped).lower(X).as_text())


def psum(a: Any) -> Any:
    return lax.psum(a, "x")


@pytest.mark.feature("SD-02", "SD-07")
def test_region_over_all_axes(mesh: Mesh, golden: Golden) -> None:
    text = text_of(mesh, psum, in_specs=P("x", "y"), out_specs=P(None, "y"))
    golden("shard_map.mlir", text)


@pytest.mark.feature("SD-02", "SD-07", "SM-07")
def test_region_over_some_axes_asks_for_the_index_in_a_region_of_its_own(
    mesh: Mesh, golden: Golden
) -> None:
    def f(a: Any) -> Any:
        return lax.psum(a, "x") + lax.axis_index("x").astype(a.dtype)

    text = text_of(mesh, f, in_specs=P("x"), out_specs=P(), axis_names={"x"}, check_vma=False)
    golden("shard_map_partial.mlir", text)


@pytest.mark.feature("SD-07", "SM-08")
def test_region_inside_a_region(mesh: Mesh, golden: Golden) -> None:
    inner = minijax.shard_map(
        lambda b: lax.psum(b, "y"), in_specs=P(None, "y"), out_specs=P(), axis_names={"y"}
    )
    text = text_of(mesh, inner, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    golden("shard_map_nested.mlir", text)


@pytest.mark.feature("SD-07", "PE-04")
def test_region_for_the_older_partitioner(mesh: Mesh, golden: Golden) -> None:
    with config.use_shardy_partitioner(False):
        text = text_of(mesh, psum, in_specs=P("x", "y"), out_specs=P(None, "y"))
    golden("shard_map_gspmd.mlir", text)


@pytest.mark.feature("SD-07")
def test_casts_become_nothing(mesh: Mesh) -> None:
    def f(a: Any) -> Any:
        return lax.pcast(lax.psum(a, "x"), "x", to="varying")

    text = text_of(mesh, f, in_specs=P("x", "y"), out_specs=P("x", "y"))
    region = text.split("sdy.manual_computation")[1].split("sdy.return")[0]
    # The reduction, and what stands inside it.
    assert region.count(" = ") == 2 + 4


@pytest.mark.feature("SD-02")
def test_number_of_a_device_is_that_of_its_partition(mesh: Mesh) -> None:
    text = text_of(mesh, lambda a: a + lax.axis_index("y"), in_specs=P("x"), out_specs=P("x", "y"))
    assert "stablehlo.partition_id" in text
    assert "replica_id" not in text


@pytest.mark.feature("SD-02")
def test_index_along_an_axis_of_one_device_is_zero(mesh: Mesh) -> None:
    thin = Mesh(mesh.devices.reshape(8, 1), ("x", "y"))
    text = text_of(thin, lambda a: a + lax.axis_index("y"), in_specs=P("x"), out_specs=P("x", "y"))
    assert "partition_id" not in text


@pytest.mark.feature("SD-07")
def test_mesh_of_one_device_needs_no_region(mesh: Mesh) -> None:
    one = Mesh(mesh.devices.reshape(-1)[:1].reshape(1, 1), ("x", "y"))
    text = text_of(one, psum, in_specs=P("x", "y"), out_specs=P(None, "y"))
    assert "manual_computation" not in text


@pytest.mark.feature("SD-07")
def test_constraints_inside_name_the_axes_left(mesh: Mesh) -> None:
    text = text_of(
        mesh,
        lambda a: lax.with_sharding_constraint(a * 2, P(None, "y")),
        in_specs=P("x"),
        out_specs=P("x"),
        axis_names={"x"},
    )
    inside = text.split("sdy.manual_computation")[1]
    assert "sdy.sharding_constraint %" in inside
    assert '[{}, {"y"}]' in inside


@pytest.mark.feature("SD-07")
def test_abstract_and_concrete_meshes_give_one_module(mesh: Mesh) -> None:
    specs = {"in_specs": P("x", "y"), "out_specs": P(None, "y")}
    x = minijax.device_put(X, minijax.sharding.NamedSharding(mesh, P()))

    def text(given: Any) -> str:
        return str(minijax.jit(minijax.shard_map(psum, mesh=given, **specs)).lower(x).as_text())

    assert text(mesh) == text(mesh.abstract_mesh)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "psum": lambda a: a + lax.psum(a, "x"),
    "axis_index": lambda a: a * lax.axis_index(("y", "x")),
    "all_gather": lambda a: lax.all_gather(a, "y", tiled=True)[:, :4],
    "ppermute": lambda a: lax.ppermute(a, "x", [(0, 1), (1, 2), (2, 3), (3, 0)]),
    "all_to_all": lambda a: lax.all_to_all(a, "y", 0, 1, tiled=True)[:, :4].repeat(2, 0),
    "psum_scatter": lambda a: lax.psum_scatter(a, "y", tiled=True).repeat(2, 0),
    "scan": lambda a: lax.scan(lambda c, r: (c + lax.psum(r, "x"), c), a[0], a)[1],
    "cond": lambda a: lax.cond(jnp.sum(a) > 99, lambda: a * 2, lambda: a),
    "callback": lambda a: minijax.pure_callback(lambda v: np.asarray(v) * 2, a, a),
}


@pytest.mark.slow
@pytest.mark.feature("SD-07", "PE-04")
@pytest.mark.parametrize("name", PROGRAMS)
def test_partitioners_agree(name: str, mesh: Mesh) -> None:
    def run() -> Any:
        f = minijax.shard_map(
            PROGRAMS[name],
            mesh=mesh,
            in_specs=P("x", "y"),
            out_specs=P("x", "y"),
            check_vma=False,
        )
        return np.asarray(minijax.jit(f)(X))

    expected = run()
    with config.use_shardy_partitioner(False):
        np.testing.assert_allclose(run(), expected, rtol=1e-6)


@pytest.mark.feature("SD-07")
def test_older_partitioner_refuses_regions_over_some_axes(mesh: Mesh) -> None:
    f = minijax.shard_map(
        lambda a: a + 1, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}
    )
    with (
        config.use_shardy_partitioner(False),
        pytest.raises(NotImplementedError, match=r"shard_map: .*cannot be compiled by GSPMD"),
    ):
        minijax.jit(f).lower(X)
