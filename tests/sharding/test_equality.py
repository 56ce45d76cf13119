"""XLA's tilings: the same ones are equal, and specs survive the way there and back."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies
from jaxlib import xla_client

from minijax import P
from minijax.sharding import AbstractMesh, AxisType, GSPMDSharding, NamedSharding, hlo
from minijax.sharding.named import SemanticallyEqualShardings, are_hlo_shardings_equal
from tests.sharding.mocks import mocks

pytestmark = pytest.mark.feature("MS-13", "MS-19")

KINDS = xla_client.OpSharding.Type


def tiles(devices: Any, kinds: Any = ()) -> Any:
    """A tiling with the devices of each tile listed."""
    return hlo.HloSharding.subgroup_with_device_ordering(
        np.array(devices, np.int64), subgroup_types=list(kinds)
    )


@strategies.composite
def meshes_and_specs(draw: Any) -> tuple[AbstractMesh, P, int]:
    sizes = draw(strategies.lists(strategies.integers(2, 3), min_size=1, max_size=3))
    names = tuple("xyz"[: len(sizes)])
    ndim = draw(strategies.integers(1, 3))
    where = {n: draw(strategies.integers(-1, ndim)) for n in names}
    order = draw(strategies.permutations(names))
    entries = [tuple(n for n in order if where[n] == dim) for dim in range(ndim)]
    spec = P(*entries, unreduced={n for n in names if where[n] == ndim})
    return AbstractMesh(tuple(sizes), names, AxisType.Explicit), spec, ndim


@given(meshes_and_specs())
def test_spec_returns_from_its_tiling(case: tuple[AbstractMesh, P, int]) -> None:
    mesh, spec, ndim = case
    there = NamedSharding(mesh, spec).to_hlo(ndim)
    back = hlo.spec_of(there, mesh, ndim)
    assert back.dims(ndim) == spec.dims(ndim)
    assert back.unreduced == spec.unreduced


@given(meshes_and_specs())
def test_tiling_has_one_meaning_by_device_and_by_axis(case: tuple[AbstractMesh, P, int]) -> None:
    mesh, spec, ndim = case
    spec = P(*spec)
    sharding = NamedSharding(mesh, spec)
    by_device = hlo.of_tiling(sharding.tiling(ndim))
    assert are_hlo_shardings_equal(by_device, sharding.to_hlo(ndim), ndim)
    assert hlo.tiling_of(by_device, ndim, mesh.size).same_as(sharding.tiling(ndim))


@given(meshes_and_specs(), meshes_and_specs())
def test_tilings_are_equal_if_every_device_has_the_same(
    one: tuple[AbstractMesh, P, int], other: tuple[AbstractMesh, P, int]
) -> None:
    ndim = 3
    shape = (36,) * ndim
    pair = [NamedSharding(mesh, P(*spec)) for mesh, spec, _ in (one, other)]
    first, second = (sharding.indices(shape) for sharding in pair)
    replicated = all(sharding.is_fully_replicated for sharding in pair)
    assert are_hlo_shardings_equal(*(s.to_hlo(ndim) for s in pair), ndim) == (
        first == second or replicated
    )


@pytest.mark.parametrize(
    "form", [tiles([[0]]), tiles([[[0, 1]]], [KINDS.REPLICATED]), hlo.HloSharding.replicate()]
)
def test_replicated_forms_are_equal(form: Any) -> None:
    assert are_hlo_shardings_equal(form, hlo.REPLICATED, 2)


def test_order_of_copies_makes_no_difference() -> None:
    one = tiles([[0, 1], [2, 3]], [KINDS.REPLICATED])
    other = tiles([[1, 0], [3, 2]], [KINDS.REPLICATED])
    assert are_hlo_shardings_equal(one, other, 1)


def test_order_of_tiles_makes_a_difference() -> None:
    assert not are_hlo_shardings_equal(tiles([0, 1]), tiles([1, 0]), 1)


def test_manual_parts_are_more_than_tiles() -> None:
    manual = tiles([[0, 1], [2, 3]], [KINDS.MANUAL])
    assert not are_hlo_shardings_equal(manual, tiles([[0, 1], [2, 3]], [KINDS.REPLICATED]), 1)
    assert are_hlo_shardings_equal(manual, manual, 1)


def test_shardings_are_keys_by_meaning() -> None:
    devices = mocks(4)
    one = GSPMDSharding(devices, tiles([[0, 1], [2, 3]], [KINDS.REPLICATED]))
    other = GSPMDSharding(devices, tiles([[1, 0], [3, 2]], [KINDS.REPLICATED]))
    key = SemanticallyEqualShardings((one, None), (1, 1))
    assert key == SemanticallyEqualShardings((other, None), (1, 1))
    assert hash(key) == hash(SemanticallyEqualShardings((other, None), (1, 1)))
    assert key != SemanticallyEqualShardings((other, one), (1, 1))
    assert key != SemanticallyEqualShardings((GSPMDSharding.get_replicated(devices), None), (1, 1))


def test_named_keys_are_equal_if_the_shardings_are() -> None:
    mesh = AbstractMesh((2,), ("x",))
    named = NamedSharding(mesh, P("x"))
    assert SemanticallyEqualShardings([named], [1]) == SemanticallyEqualShardings([named], [1])
    assert SemanticallyEqualShardings([named], [1]) != SemanticallyEqualShardings(
        [NamedSharding(mesh, P())], [1]
    )


def test_tiles_of_a_permuted_mesh_list_their_devices() -> None:
    order = np.arange(8).reshape(4, 2).T
    tiling = hlo.tiling_of(tiles(order), 2, 8)
    assert np.array_equal(tiling.devices_by_tile()[..., 0], order)
    assert math.prod(tiling.factors) == 8
