"""`Mesh` and `AbstractMesh`: facts, identity, refusals, and parts of processes."""

import ast
import gc
import pickle
from pathlib import Path

import numpy as np
import pytest

import minijax
from minijax.core import meshes
from minijax.sharding import AbstractMesh, AxisType, Mesh
from minijax.sharding import mesh as mesh_module
from tests.sharding.mocks import Mock, mock, mocks


def grid(*sizes: int) -> np.ndarray:
    return np.array(mocks(int(np.prod(sizes))), dtype=object).reshape(sizes)


@pytest.mark.feature("MS-01")
def test_mesh_tells_its_axes() -> None:
    mesh = Mesh(grid(4, 2), ("x", "y"))
    assert list(mesh.shape.items()) == [("x", 4), ("y", 2)]
    assert mesh.shape_tuple == (("x", 4), ("y", 2))
    assert (mesh.axis_sizes, mesh.size, mesh.empty) == ((4, 2), 8, False)
    assert mesh.device_ids.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]


@pytest.mark.feature("MS-01")
def test_mesh_devices_are_read_only() -> None:
    mesh = Mesh(grid(2), "x")
    with pytest.raises(ValueError, match="read-only"):
        mesh.devices[0] = None


@pytest.mark.feature("MS-01")
def test_mesh_prints_like_jax(mesh: Mesh) -> None:
    assert str(mesh) == "Mesh('x': 4, 'y': 2, axis_types=(Auto, Auto))"
    assert repr(mesh) == ("Mesh(axis_sizes=(4, 2), axis_names=('x', 'y'), axis_types=(Auto, Auto))")


@pytest.mark.feature("MS-01")
def test_mesh_update_replaces_what_is_named() -> None:
    mesh = Mesh(grid(4, 2), ("x", "y"))
    assert mesh.update(axis_names=("a", "b")) is Mesh(grid(4, 2), ("a", "b"))


@pytest.mark.feature("MS-01")
@pytest.mark.parametrize(
    ("devices", "names", "size", "empty", "scalar"),
    [
        (np.empty((), object), (), 0, True, False),
        (mock(0), (), 1, False, True),
        (grid(1), "x", 1, False, False),
        (np.empty((0,), object), "x", 0, True, False),
    ],
)
def test_mesh_of_few_devices(
    devices: object, names: object, size: int, empty: bool, scalar: bool
) -> None:
    mesh = Mesh(devices, names)
    assert (mesh.size, mesh.empty, mesh.is_scalar) == (size, empty, scalar)


@pytest.mark.feature("MS-02")
def test_equal_meshes_are_one_object() -> None:
    assert Mesh(grid(2), "x") is Mesh(list(grid(2)), ["x"])
    assert Mesh(grid(2), "x") is not Mesh(grid(2)[::-1], "x")
    assert Mesh(grid(2), "x") is not Mesh(grid(2), "x", axis_types=AxisType.Explicit)


@pytest.mark.usefixtures("young_heap")
@pytest.mark.feature("MS-02")
def test_meshes_are_held_weakly() -> None:
    before = len(mesh_module._interned)
    mesh = Mesh(grid(3), "only here")
    assert len(mesh_module._interned) == before + 1
    del mesh
    gc.collect()
    assert len(mesh_module._interned) == before


@pytest.mark.feature("MS-03")
def test_any_hashable_object_is_a_device() -> None:
    class Anything:
        pass

    mesh = Mesh([Anything(), Anything()], "x")
    assert hash(mesh) == hash(mesh.update())
    assert minijax.NamedSharding(mesh, minijax.P("x")).shard_shape((4,)) == (2,)


@pytest.mark.feature("MS-04")
@pytest.mark.parametrize(
    ("names", "types", "error", "text"),
    [
        (("x",), None, ValueError, r"2 dimension\(s\), 1 name\(s\)"),
        (("x", None), None, ValueError, "must not be None"),
        (("x", "x"), None, ValueError, "must differ"),
        (("x", "y"), ("auto", "auto"), TypeError, "'auto' of type str"),
        (("x", "y"), (AxisType.Auto,), ValueError, "2 axes .*, 1 types"),
        (("x", "y"), {AxisType.Auto: "z"}, ValueError, r"no axis of the mesh: \['z'\]"),
    ],
)
def test_mesh_refuses(names: object, types: object, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Mesh(grid(4, 2), names, axis_types=types)


@pytest.mark.feature("MS-01")
def test_local_mesh_is_the_box_of_this_process() -> None:
    box = np.array([mock(i, process=i // 4) for i in range(8)], object).reshape(4, 2)
    mesh = Mesh(box, ("x", "y"))
    assert mesh.is_multi_process
    assert mesh.local_mesh is Mesh(box[:2], ("x", "y"))
    assert mesh.local_devices == list(box[:2].flat)


@pytest.mark.feature("MS-01")
def test_local_mesh_refuses_scattered_devices() -> None:
    mesh = Mesh([mock(i, process=i % 2) for i in range(4)], "x")
    with pytest.raises(ValueError, match="do not fill a box"):
        _ = mesh.local_mesh


@pytest.mark.feature("MS-01")
def test_mesh_survives_pickling(mesh: Mesh) -> None:
    assert pickle.loads(pickle.dumps(mesh)) is mesh


@pytest.mark.feature("MS-01")
def test_devices_that_are_missing_are_named_when_loaded(mesh: Mesh) -> None:
    saved = pickle.dumps(mesh)
    with minijax.cpu_devices(2), pytest.raises(RuntimeError, match="no CPU device of number 2"):
        pickle.loads(saved)


@pytest.mark.feature("MS-07")
@pytest.mark.parametrize("module", [mesh_module, meshes])
def test_meshes_know_no_avals(module: object) -> None:
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    imports = [ast.unparse(node) for node in tree.body if "import" in ast.unparse(node)[:30]]
    assert not any("aval" in line for line in imports)


@pytest.mark.feature("MS-05")
def test_abstract_meshes_are_one_object() -> None:
    assert AbstractMesh((4, 2), ("x", "y")) is AbstractMesh((("x", 4), ("y", 2)))
    assert Mesh(grid(4, 2), ("x", "y")).abstract_mesh is AbstractMesh((4, 2), ("x", "y"))
    assert Mesh(grid(2)[::-1], "x").abstract_mesh is Mesh(grid(2), "x").abstract_mesh


@pytest.mark.feature("MS-05")
@pytest.mark.parametrize(
    "member", ["devices", "device_ids", "local_devices", "local_mesh", "is_multi_process"]
)
def test_abstract_mesh_refuses_to_name_devices(member: str) -> None:
    with pytest.raises(ValueError, match=f"has no {member}"):
        getattr(AbstractMesh((2,), ("x",)), member)


@pytest.mark.feature("MS-05")
def test_abstract_mesh_cannot_be_entered() -> None:
    mesh = AbstractMesh((2,), ("x",))
    with pytest.raises(ValueError, match="use_abstract_mesh"), mesh:
        pass


@pytest.mark.feature("MS-05")
def test_empty_abstract_mesh_has_no_size() -> None:
    mesh = AbstractMesh((), ())
    assert (mesh.size, mesh.empty) == (0, True)


@pytest.mark.feature("MS-05")
def test_abstract_mesh_survives_pickling() -> None:
    mesh = AbstractMesh((2, 4), ("x", "y"), (AxisType.Auto, AxisType.Explicit))
    assert pickle.loads(pickle.dumps(mesh)) is mesh


@pytest.mark.feature("MS-06")
def test_axis_types_are_told_apart() -> None:
    mesh = AbstractMesh(
        (2, 2, 2), ("x", "y", "z"), {AxisType.Explicit: "y", AxisType.Manual: ("z",)}
    )
    assert (mesh.auto_axes, mesh.explicit_axes, mesh.manual_axes) == (("x",), ("y",), ("z",))
    assert not mesh.are_all_axes_auto
    assert mesh.update(axis_types=AxisType.Explicit).are_all_axes_explicit
    assert mesh.update_axis_types({"x": AxisType.Manual}).manual_axes == ("x", "z")


@pytest.mark.feature("MS-06")
def test_axis_types_keep_their_older_names() -> None:
    assert AxisType.User is AxisType.Explicit
    assert AxisType.Collective is AxisType.Manual


def test_mocks_are_told_apart_by_process() -> None:
    assert isinstance(mock(1, 2), Mock)
    assert mock(1, 2) is not mock(1, 0)
