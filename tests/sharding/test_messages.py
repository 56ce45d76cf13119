"""What refusals of placements say: which function, which leaf, what was given, how to mend it."""

from typing import Any

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax.core.errors import IndivisibleError, ShardingTypeError
from minijax.core.meshes import AxisType
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P

X = np.ones((8, 6), np.float32)
TREE = {"w": X, "b": X[0]}


def test_device_put_names_the_leaf_that_cannot_be_cut(mesh: Mesh) -> None:
    with pytest.raises(IndivisibleError, match=r"device_put: x\['w'\]: .* size 6 .* 4 equal"):
        minijax.device_put({"w": X}, NamedSharding(mesh, P(None, "x")))


def test_constraints_name_the_leaf_of_too_small_a_rank(mesh: Mesh) -> None:
    wanted = {"w": NamedSharding(mesh, P()), "b": NamedSharding(mesh, P("y", None))}
    with pytest.raises(ValueError, match=r"with_sharding_constraint: x\['b'\]: .*more entries"):
        lax.with_sharding_constraint(TREE, wanted)


def test_jit_names_the_argument_that_cannot_be_cut(mesh: Mesh) -> None:
    place = minijax.jit(lambda p: p, in_shardings=NamedSharding(mesh, P(None, "x")))
    with pytest.raises(IndivisibleError, match=r"in_shardings of p\['w'\]: "):
        place({"w": X})


def test_arrays_of_local_data_name_their_function(mesh: Mesh) -> None:
    with pytest.raises(IndivisibleError, match="make_array_from_process_local_data: "):
        minijax.make_array_from_process_local_data(NamedSharding(mesh, P("x")), X[:3])


def test_too_long_a_spec_is_answered_with_one_that_fits(mesh: Mesh) -> None:
    with pytest.raises(ValueError, match=r"fix .*P\('x', None\)"):
        minijax.device_put(X, NamedSharding(mesh, P("x", None, "y")))


@pytest.mark.parametrize(
    ("given", "fix"),
    [
        (("x", None), r"PartitionSpec\('x', None\)"),
        ("x", r"PartitionSpec\('x'\)"),
        (None, r"PartitionSpec\(\)"),
    ],
)
def test_what_is_no_spec_is_answered_with_the_spec_that_was_meant(
    mesh: Mesh, given: Any, fix: str
) -> None:
    with pytest.raises(TypeError, match=f"fix +{fix}"):
        NamedSharding(mesh, given)


def test_device_put_tells_where_the_trees_part(mesh: Mesh) -> None:
    with pytest.raises(ValueError, match=r"device_put: device is not a tree prefix of x(.|\n)*'b'"):
        minijax.device_put(TREE, {"w": NamedSharding(mesh, P())})


def test_constraints_tell_where_the_trees_part(mesh: Mesh) -> None:
    with pytest.raises(
        ValueError, match=r"with_sharding_constraint: shardings is not a tree prefix"
    ):
        lax.with_sharding_constraint(TREE, {"w": NamedSharding(mesh, P())})


def test_pieces_of_a_wrong_shape_are_answered_with_an_index(mesh: Mesh) -> None:
    with pytest.raises(ValueError, match=r"fix .*whole\[index\]"):
        minijax.make_array_from_callback((8, 6), NamedSharding(mesh, P("x")), lambda _: X)


@pytest.mark.parametrize(
    ("write", "fix"),
    [
        (lambda x: x[np.array([0, 1])], r"x\.at\[index\]\.get\(out_sharding=spec\)"),
        (lambda x: x.at[np.array([0, 1])].add(1.0), r"x\.at\[index\]\.set\(y, out_sharding=spec\)"),
    ],
)
def test_ambiguous_indexing_is_answered_with_out_sharding(
    devices: np.ndarray[Any, Any], write: Any, fix: str
) -> None:
    mesh = Mesh(devices.reshape(4, 2), ("x", "y"), (AxisType.Explicit,) * 2)
    x = minijax.device_put(X, NamedSharding(mesh, P("x")))
    with pytest.raises(ShardingTypeError, match=fix):
        minijax.jit(write)(x)
