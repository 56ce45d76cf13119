"""Array mappings, and shapes within one process."""

from collections import OrderedDict

import numpy as np
import pytest

from minijax import P
from minijax.core.aval import ShapedArray
from minijax.core.errors import IndivisibleError
from minijax.sharding import Mesh, older
from tests.sharding.mocks import mock


def two_processes() -> Mesh:
    """Sixteen devices, of which this process has the first half of the axis x."""
    box = np.array([mock(i, process=i // 8) for i in range(16)], object).reshape(4, 4)
    return Mesh(box, ("x", "y"))


@pytest.mark.feature("MS-20")
@pytest.mark.parametrize(
    ("spec", "pairs"),
    [
        (P(), []),
        (P("x", None, ("z", "y")), [("x", 0), ("z", 2), ("y", 2)]),
        (P(P.UNCONSTRAINED, "x"), [("x", 1)]),
    ],
)
def test_array_mapping_is_ordered(spec: P, pairs: list[tuple[str, int]]) -> None:
    assert older.get_array_mapping(spec) == OrderedDict(pairs)


@pytest.mark.feature("MS-20")
@pytest.mark.parametrize("spec", [P(), P("x"), P(None, ("z", "y"), "x")])
def test_spec_returns_from_its_mapping(spec: P) -> None:
    assert older.array_mapping_to_spec(older.get_array_mapping(spec)) == spec


@pytest.mark.feature("MS-08")
@pytest.mark.parametrize(
    ("axes", "whole", "part"),
    [
        ({"x": 0}, (8, 8), (4, 8)),
        ({"y": 0}, (8, 8), (8, 8)),
        ({"y": 1, "x": 1}, (2, 32), (2, 16)),
        ({}, (3, 3), (3, 3)),
    ],
)
def test_processes_hold_parts(
    axes: dict[str, int], whole: tuple[int, ...], part: tuple[int, ...]
) -> None:
    mesh = two_processes()
    everything = ShapedArray(whole, np.dtype("float32"))
    own = ShapedArray(part, np.dtype("float32"))
    assert older.mesh_global_to_local(mesh, axes, everything) == own
    assert older.mesh_local_to_global(mesh, axes, own) == everything


@pytest.mark.feature("MS-08")
def test_parts_must_be_equal() -> None:
    with pytest.raises(IndivisibleError, match=r"dimension 0 .*axis 'x' of size 4"):
        older.mesh_global_to_local(
            two_processes(), {"x": 0}, ShapedArray((6,), np.dtype("float32"))
        )
