"""`ShardingSpec`: the algebra of the time of `pmap`, compared with placement by hand."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies

from minijax.core.aval import ShapedArray, abstract_token
from minijax.sharding import hlo, older
from minijax.sharding.named import are_hlo_shardings_equal
from minijax.sharding.older import (
    Chunked,
    NoSharding,
    Replicated,
    ShardedAxis,
    ShardingSpec,
    Unstacked,
    create_pmap_sharding_spec,
    make_sharding_spec,
    mesh_sharding_specs,
    pmap_sharding_spec,
    spec_to_indices,
)

pytestmark = pytest.mark.feature("MS-14")


def aval(*shape: int) -> ShapedArray:
    return ShapedArray(shape, np.dtype("float32"))


@strategies.composite
def specs(draw: Any, unstacked: bool = True) -> tuple[ShardingSpec, tuple[int, ...]]:
    """A spec and the shape of an array that it can cut."""
    sizes = strategies.integers(1, 3)
    kinds = [strategies.just(NoSharding()), strategies.lists(sizes, min_size=1, max_size=2)]
    if unstacked:
        kinds.append(sizes)
    dims: list[Any] = []
    shape = []
    for drawn in draw(strategies.lists(strategies.one_of(kinds), max_size=3)):
        if isinstance(drawn, int):
            dims.append(Unstacked(drawn))
            shape.append(drawn)
        elif isinstance(drawn, list):
            dims.append(Chunked(drawn))
            shape.append(math.prod(drawn) * draw(sizes))
        else:
            dims.append(drawn)
            shape.append(draw(sizes))
    cuts = sum(len(d.chunks) if isinstance(d, Chunked) else isinstance(d, Unstacked) for d in dims)
    mapping: list[Any] = [ShardedAxis(i) for i in range(cuts)]
    mapping += map(Replicated, draw(strategies.lists(sizes, max_size=2)))
    return ShardingSpec(dims, draw(strategies.permutations(mapping))), tuple(shape)


def pieces(spec: ShardingSpec, x: np.ndarray) -> dict[tuple[int, ...], np.ndarray]:
    """The piece at each place of the devices: cut by cut, from the last dimension to the first."""
    cuts = []
    for dim, kind in enumerate(spec.sharding):
        chunks = kind.chunks if isinstance(kind, Chunked) else ()
        chunks = (kind.size,) if isinstance(kind, Unstacked) else chunks
        cuts += [(dim, size) for size in chunks]
    found = {}
    for place in np.ndindex(*spec.mesh_shape):
        piece = x
        for cut, (dim, size) in enumerate(cuts):
            at = next(
                p for p, m in zip(place, spec.mesh_mapping, strict=True) if m == ShardedAxis(cut)
            )
            piece = np.split(piece, size, axis=dim)[at]
        gone = tuple(d for d, kind in enumerate(spec.sharding) if isinstance(kind, Unstacked))
        found[place] = np.squeeze(piece, axis=gone)
    return found


@given(specs())
def test_indices_are_the_pieces(case: tuple[ShardingSpec, tuple[int, ...]]) -> None:
    spec, shape = case
    x = np.arange(math.prod(shape)).reshape(shape)
    indices = spec.indices(shape)
    assert indices.shape == spec.mesh_shape
    expected = pieces(spec, x)
    assert all(np.array_equal(x[indices[place]], expected[place]) for place in expected)


@given(specs())
def test_spec_to_indices_goes_row_by_row(case: tuple[ShardingSpec, tuple[int, ...]]) -> None:
    spec, shape = case
    assert spec_to_indices(shape, spec) == tuple(spec.indices(shape).ravel())


@given(specs(unstacked=False))
def test_indices_agree_with_the_form_of_xla(case: tuple[ShardingSpec, tuple[int, ...]]) -> None:
    spec, shape = case
    form = spec.sharding_proto()
    tiling = hlo.tiling_of(form, len(shape), math.prod(spec.mesh_shape))
    assert tiling.same_as(spec.tiling())


def test_replicated_specs_are_replicated_for_xla() -> None:
    spec = ShardingSpec([NoSharding(), Chunked([1])], [Replicated(4), ShardedAxis(0)])
    assert are_hlo_shardings_equal(spec.sharding_proto(), hlo.REPLICATED, 2)


def test_unstacked_specs_have_no_form_of_xla() -> None:
    with pytest.raises(RuntimeError, match=r"unstacked dimension cannot be expressed"):
        ShardingSpec([Unstacked(2)], [ShardedAxis(0)]).sharding_proto()


def test_every_cut_is_carried_once() -> None:
    with pytest.raises(ValueError, match=r"2 cut\(s\), of which \[0\] are carried"):
        ShardingSpec([Chunked([2, 2])], [ShardedAxis(0)])


def test_kinds_of_equal_numbers_differ() -> None:
    assert Unstacked(2) != Replicated(2)
    assert Chunked([2]) == Chunked((2,))
    assert hash(ShardingSpec([Chunked([2])], [ShardedAxis(0)])) == hash(
        ShardingSpec((Chunked((2,)),), (ShardedAxis(0),))
    )


@pytest.mark.parametrize("shape", [(3,), (4, 4)])
def test_spec_refuses_other_shapes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"cannot be cut|differ in rank"):
        ShardingSpec([Chunked([2])], [ShardedAxis(0)]).indices(shape)


@pytest.mark.parametrize(("size", "copies"), [(4, 1), (4, 2), (1, 3)])
def test_replica_holds_the_slice_of_its_group(size: int, copies: int) -> None:
    spec = pmap_sharding_spec(size * copies, size, (5,), 1)
    indices = spec_to_indices((5, size), spec)
    assert [index[1] for index in indices] == [
        k for k, _ in itertools.product(range(size), range(copies))
    ]
    assert len(spec.mesh_mapping) == 1 + (copies > 1)


def test_unmapped_arguments_are_on_every_device() -> None:
    spec = pmap_sharding_spec(6, 3, (5,), None)
    assert spec.mesh_mapping == (Replicated(3), Replicated(2))
    assert spec_to_indices((5,), spec) == ((slice(None),),) * 6


def test_slices_have_equally_many_replicas() -> None:
    with pytest.raises(ValueError, match=r"5 replicas, 2 slices"):
        pmap_sharding_spec(5, 2, (3,), 0)


@pytest.mark.parametrize(("dim", "expected"), [(0, 4), (-1, 3), (1, 3)])
def test_create_pmap_sharding_spec_has_a_device_for_each_slice(dim: int, expected: int) -> None:
    spec = create_pmap_sharding_spec((4, 3), dim)
    assert spec.mesh_shape == (expected,)
    assert spec.sharding[dim] == Unstacked(expected)


def test_create_pmap_sharding_spec_replicates() -> None:
    assert create_pmap_sharding_spec((4, 3), None, 2).mesh_mapping == (Replicated(2),)
    with pytest.raises(ValueError, match=r"needs the number of devices"):
        create_pmap_sharding_spec((4, 3), None)


def test_older_forms_take_avals() -> None:
    assert older._create_pmap_sharding_spec(aval(4, 3), 1) == create_pmap_sharding_spec((4, 3), 1)
    assert older._pmap_sharding_spec(4, 2, 1, None, aval(3), 0) == pmap_sharding_spec(4, 2, (3,), 0)
    with pytest.raises(ValueError, match=r"npart=2"):
        older._pmap_sharding_spec(4, 2, 2, None, aval(3), 0)


def test_mesh_axes_cut_the_dimensions_they_name() -> None:
    spec_of = mesh_sharding_specs({"x": 2, "y": 4, "z": 3}, ("x", "y", "z"))
    spec = spec_of(aval(8, 6), {"z": 1, "y": 0, "x": 0})
    assert spec.sharding == (Chunked([4, 2]), Chunked([3]))
    assert spec.mesh_mapping == (ShardedAxis(1), ShardedAxis(0), ShardedAxis(2))


def test_mesh_axes_that_cut_nothing_replicate() -> None:
    spec = mesh_sharding_specs({"x": 2, "y": 4}, ("x", "y"))(aval(8), {"y": 0})
    assert spec == make_sharding_spec({"x": 2, "y": 4}, {"x": 0, "y": 1}, 1, {"y": 0})
    assert spec.mesh_mapping == (Replicated(2), ShardedAxis(0))


def test_tokens_are_replicated() -> None:
    spec = mesh_sharding_specs({"x": 2, "y": 4}, ("x", "y"))(abstract_token, {})
    assert spec == ShardingSpec((), (Replicated(2), Replicated(4)))


@pytest.mark.feature("MS-15")
def test_uneven_axes_are_refused() -> None:
    sizes = {"x": 2, "y": 4}
    with pytest.raises(
        ValueError, match=r"(?s)dimension 1 of size 6 .*axis 'y'.*of size 4, remainder 2"
    ):
        mesh_sharding_specs(sizes, ("x", "y"))(aval(2, 6), {"y": 1})
    with pytest.raises(ValueError, match=r"remainder 3"):
        mesh_sharding_specs(sizes, ("x", "y"))(aval(6), {"x": 0, "y": 0})


@pytest.mark.feature("MS-15")
def test_uneven_axes_are_allowed_on_demand() -> None:
    spec_of = mesh_sharding_specs({"y": 4}, ("y",), allow_uneven_axes=True)
    assert spec_of(aval(6), {"y": 0}).sharding == (Chunked([4]),)


def test_mesh_axes_named_twice_are_refused() -> None:
    spec_of = mesh_sharding_specs({"x": 2}, ("x",))
    with pytest.raises(ValueError, match=r"named twice: \['x'\]"):
        spec_of(aval(4, 4), [("x", 0), ("x", 1)])
