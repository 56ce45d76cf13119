"""The StableHLO of collectives: groups of devices, attributes of each mode, platforms."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.lowering.device_axes import axis_groups
from minijax.sharding import PartitionSpec as P
from tests.lax.collectives import stacked

SIZES = {"x": 4, "y": 2}
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"


def lowered(
    f: Callable[[Any], Any], *, check_vma: bool = True, platform: str = "cpu", spec: Any = None
) -> str:
    """The module for `f` of a block f32[4,2] on a mesh of 4 x 2 devices."""
    spec = P(("x", "y")) if spec is None else spec
    mapped = minijax.shard_map(
        f, mesh=stacked.mesh_of(SIZES), in_specs=spec, out_specs=spec, check_vma=check_vma
    )
    count = 8 if spec == P(("x", "y")) else 4
    traced = minijax.jit(mapped).trace(jnp.zeros((4 * count, 2)))
    return str(traced.lower(lowering_platforms=(platform,)).as_text())


def replicas(f: Callable[[Any], Any]) -> str:
    """The module for `f` of f32[4,2] on four replicas."""
    with minijax.cpu_devices(8):
        devices = minijax.devices()[:4]
    mapped = minijax.pmap(f, axis_name="x", devices=devices)
    return str(mapped.lower(np.zeros((4, 4, 2), np.float32)).as_text())


def operation(text: str, name: str) -> str:
    """The line of an operation."""
    (line,) = [line for line in text.splitlines() if f"stablehlo.{name}" in line]
    return line


def groups_in(line: str) -> Any:
    """The replica groups of an operation."""
    found = re.search(r"replica_groups = dense<(.*?)> : tensor", line)
    assert found is not None
    text = found.group(1)
    return text if not text.startswith("[") else [list(row) for row in eval(text)]


CALLS = {
    "all_reduce": lambda v, a, **k: lax.psum(v, a, **k),
    "all_gather": lambda v, a, **k: lax.all_gather(v, a, tiled=True, **k),
    "reduce_scatter": lambda v, a, **k: lax.psum_scatter(v, a, tiled=True, **k),
    "all_to_all": lambda v, a, **k: lax.all_to_all(v, a, 0, 0, tiled=True, **k),
}
WITH_GLOBAL_IDS = {"all_reduce", "all_gather", "reduce_scatter"}


@pytest.mark.feature("CO-27")
@pytest.mark.parametrize("name", CALLS)
def test_partitions_share_a_channel(name: str) -> None:
    line = operation(lowered(lambda v: CALLS[name](v, "x"), check_vma=False), name)
    assert CHANNEL in line
    assert ("use_global_device_ids" in line) == (name in WITH_GLOBAL_IDS)
    assert groups_in(line) == [[0, 2, 4, 6], [1, 3, 5, 7]]


@pytest.mark.feature("CO-27")
@pytest.mark.parametrize("name", CALLS)
def test_replicas_share_none(name: str) -> None:
    line = operation(replicas(lambda v: CALLS[name](v, "x")), name)
    assert "channel_handle" not in line
    assert "use_global_device_ids" not in line
    assert groups_in(line) == [[0, 1, 2, 3]]


@pytest.mark.feature("CO-27", "CO-24")
@pytest.mark.parametrize("name", CALLS)
def test_groups_are_positions_along_the_axis(name: str) -> None:
    text = lowered(
        lambda v: CALLS[name](v, "x", axis_index_groups=[[3, 0], [1, 2]]), check_vma=False
    )
    assert groups_in(operation(text, name)) == [[6, 0], [2, 4], [7, 1], [3, 5]]


@pytest.mark.feature("CO-27")
@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("x", "y"), [[0, 1, 2, 3, 4, 5, 6, 7]]),
        (("y", "x"), [[0, 2, 4, 6, 1, 3, 5, 7]]),
        (("y",), [[0, 1], [2, 3], [4, 5], [6, 7]]),
    ],
)
def test_the_first_name_is_the_most_significant(names: Any, expected: Any) -> None:
    text = lowered(lambda v: lax.all_gather(v, names, tiled=True), check_vma=False)
    assert groups_in(operation(text, "all_gather")) == expected


@pytest.mark.feature("CO-27", "CO-24")
def test_rows_of_shorter_groups_end_in_minus_one() -> None:
    text = lowered(
        lambda v: lax.psum(v, ("x", "y"), axis_index_groups=[[0, 1, 2], [3, 4, 5, 6, 7]]),
        check_vma=False,
    )
    assert groups_in(operation(text, "all_reduce")) == [[0, 1, 2, -1, -1], [3, 4, 5, 6, 7]]


@pytest.mark.feature("CO-27")
def test_groups_of_huge_meshes_are_found_without_devices() -> None:
    groups = axis_groups(("pod", "data", "model"), (64, 128, 256), ("data",))
    assert len(groups) == 64 * 256
    assert groups[0] == tuple(range(0, 128 * 256, 256))


@pytest.mark.feature("CO-08", "CO-27")
def test_permutations_have_one_list_of_pairs_for_all_groups() -> None:
    line = operation(
        lowered(lambda v: lax.ppermute(v, "x", [(0, 1), (3, -2)])), "collective_permute"
    )
    assert "dense<[[0, 2], [6, 4], [1, 3], [7, 5]]>" in line
    assert CHANNEL in line


@pytest.mark.feature("CO-08")
@pytest.mark.parametrize("names", [("x", "y"), ("y", "x")])
def test_permutations_count_in_the_order_of_the_mesh(names: Any) -> None:
    line = operation(lowered(lambda v: lax.ppermute(v, names, [(0, 1)])), "collective_permute")
    assert "dense<[[0, 1]]>" in line


@pytest.mark.feature("CO-08", "CO-27")
def test_permutations_of_replicas_have_no_channel() -> None:
    line = operation(replicas(lambda v: lax.ppermute(v, "x", [(0, 1)])), "collective_permute")
    assert "channel_handle" not in line


@pytest.mark.feature("CO-07")
@pytest.mark.parametrize("platform", ["cuda", "rocm"])
def test_gpus_broadcast_from_the_first_of_each_group(platform: str) -> None:
    text = lowered(lambda v: lax.pbroadcast(v, "x", 2), platform=platform)
    line = operation(text, "collective_broadcast")
    assert groups_in(line) == [[4, 0, 2, 6], [5, 1, 3, 7]]
    assert CHANNEL in line


@pytest.mark.feature("CO-07")
@pytest.mark.parametrize("platform", ["cpu", "tpu"])
def test_elsewhere_a_broadcast_is_a_sum(platform: str) -> None:
    text = lowered(lambda v: lax.pbroadcast(v, "x", 2), platform=platform)
    assert "collective_broadcast" not in text
    assert groups_in(operation(text, "all_reduce")) == [[0, 2, 4, 6], [1, 3, 5, 7]]


@pytest.mark.feature("CO-14")
def test_gpus_exchange_slices_by_a_custom_call() -> None:
    numbers = np.ones(4, np.int32)

    def f(v: Any) -> Any:
        return lax.ragged_all_to_all(v, v, *[numbers] * 4, axis_name="x")

    line = operation(lowered(f, platform="cuda"), "custom_call @ragged_all_to_all")
    expected = (
        "{api_version = 4 : i32, backend_config = {channel_id = 1 : i64, replica_groups = "
        "dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>}}"
    )
    assert expected in line


@pytest.mark.feature("CO-15")
def test_untiled_gathers_add_a_dimension_first() -> None:
    text = lowered(lambda v: lax.all_gather(v, "x", axis=1)[:, 0])
    line = operation(text, "all_gather")
    assert "all_gather_dim = 1" in line
    assert "(tensor<4x1x2xf32>) -> tensor<4x4x2xf32>" in line


@pytest.mark.feature("CO-18")
def test_untiled_scatters_drop_the_dimension_afterwards() -> None:
    text = lowered(lambda v: lax.psum_scatter(v, "x"))
    assert "stablehlo.reshape" in text
    assert "tensor<1x2xf32>) -> tensor<2xf32>" in text


@pytest.mark.feature("CO-13")
def test_exchanges_within_groups_of_one_are_nothing() -> None:
    text = lowered(
        lambda v: lax.all_to_all(v, "x", 0, 0, tiled=True, axis_index_groups=[[0], [1], [2], [3]]),
        check_vma=False,
    )
    assert "all_to_all" not in text


@pytest.mark.feature("CO-21")
def test_indices_are_unsigned_until_they_are_found() -> None:
    text = lowered(lambda v: v + lax.axis_index("x"))
    assert "stablehlo.partition_id : tensor<ui32>" in text
    assert "stablehlo.divide" in text
    assert "stablehlo.remainder" in text
    assert "(tensor<ui32>) -> tensor<i32>" in text


@pytest.mark.feature("CO-21")
def test_replicas_ask_for_their_own_number() -> None:
    text = replicas(lambda v: v + lax.axis_index("x"))
    assert "stablehlo.replica_id" in text
    assert "partition_id" not in text


@pytest.mark.feature("CO-21")
def test_indices_of_partial_regions_are_found_where_all_axes_are_manual() -> None:
    mesh = stacked.mesh_of(SIZES)
    f = minijax.shard_map(
        lambda v: v + lax.axis_index("x"),
        mesh=mesh,
        in_specs=P("x"),
        out_specs=P("x"),
        axis_names={"x"},
    )
    text = minijax.jit(f).lower(jnp.zeros(4)).as_text()
    assert text.count("sdy.manual_computation") == 2
    np.testing.assert_array_equal(f(jnp.zeros(4)), [0, 1, 2, 3])


@pytest.mark.feature("CO-01", "CO-03")
@pytest.mark.parametrize(
    ("call", "region", "dtype"),
    # Devices of the host would drop NaNs, and combine integers of the same order instead.
    [(lax.psum, "add", "f32"), (lax.pmax, "maximum", "i32"), (lax.pmin, "minimum", "i32")],
)
def test_reductions_combine_scalars_in_a_region(call: Any, region: str, dtype: str) -> None:
    text = lowered(lambda v: call(v, "x"), spec=None, check_vma=False)
    assert re.search(rf"stablehlo.{region} %arg\d+, %arg\d+ : tensor<{dtype}>", text)
