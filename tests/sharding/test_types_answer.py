"""Types answer with a sharding, also where nothing is split."""

from typing import Any

import numpy as np
import pytest

import minijax
from minijax import numpy as jnp
from minijax.core.aval import ShapedArray
from minijax.core.meshes import AbstractMesh, AxisType
from minijax.sharding import Mesh, NamedSharding, use_abstract_mesh
from minijax.sharding import PartitionSpec as P

pytestmark = pytest.mark.feature("CR-05")

EXPLICIT = AbstractMesh((4, 2), ("x", "y"), AxisType.Explicit)


def test_types_of_unsplit_values_have_an_entry_for_each_dimension() -> None:
    assert minijax.typeof(np.ones((8, 4), np.float32)).sharding.spec == P(None, None)


def test_types_of_scalars_have_an_empty_spec() -> None:
    assert minijax.typeof(2.0).sharding.spec == P()


def test_types_of_unsplit_values_answer_with_the_mesh_in_force() -> None:
    with use_abstract_mesh(EXPLICIT):
        assert minijax.typeof(jnp.ones(3)).sharding.mesh is EXPLICIT


def test_types_of_unsplit_values_answer_with_no_mesh_outside_of_meshes() -> None:
    assert minijax.typeof(jnp.ones(3)).sharding.mesh.empty


def test_types_of_tracers_answer_with_a_spec(mesh: Mesh) -> None:
    seen: list[Any] = []
    x = minijax.device_put(np.ones((8, 4), np.float32), NamedSharding(mesh, P("x")))
    minijax.jit(lambda v: seen.append(minijax.typeof(v.T).sharding.spec))(x)
    assert seen == [P(None, None)]


def test_types_of_split_values_tell_how(mesh: Mesh) -> None:
    explicit = mesh.update(axis_types=(AxisType.Explicit,) * 2)
    x = minijax.device_put(np.ones((8, 4), np.float32), NamedSharding(explicit, P("x")))
    assert minijax.typeof(x).sharding.spec == P("x", None)


def test_types_take_back_the_sharding_that_they_answer_with() -> None:
    aval = ShapedArray((8, 4), "float32")
    assert aval.update(sharding=aval.sharding) is aval


def test_types_answer_with_what_creation_takes(mesh: Mesh) -> None:
    x = jnp.ones((8, 4))
    zeros = minijax.jit(lambda v: jnp.zeros(v.shape, out_sharding=minijax.typeof(v).sharding))
    assert zeros(x).shape == (8, 4)


def test_references_answer_with_a_spec() -> None:
    assert minijax.typeof(minijax.new_ref(jnp.ones((8, 4)))).sharding.spec == P(None, None)


def test_results_under_an_explicit_mesh_have_an_entry_for_each_dimension(
    devices: np.ndarray[Any, Any],
) -> None:
    mesh = Mesh(devices.reshape(4, 2), ("x", "y"), (AxisType.Explicit,) * 2)
    with minijax.set_mesh(mesh):
        specs = [
            jnp.ones((8, 4)).sharding.spec,
            minijax.jit(lambda: jnp.ones((8, 4)) * 2)().sharding.spec,
            jnp.ones((8, 4), out_sharding=P("x")).sharding.spec,
            minijax.sharding.reshard(np.ones((8, 4)), P("x")).sharding.spec,
        ]
    assert specs == [P(None, None), P(None, None), P("x", None), P("x", None)]
