"""The mesh in force: `set_mesh`, `use_abstract_mesh`, and specs that name no mesh.

Input: a mesh, for a `with` block or from now on.  Output: what bare specs mean.  All of it is
thread-local; the older `with mesh:` stands in `sharding/mesh.py`.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from minijax.core import meshes, source, trace
from minijax.core.errors import NoMeshError, error
from minijax.core.meshes import AbstractMesh, MeshAxes, PartitionSpec
from minijax.sharding.mesh import Mesh, mesh_stack
from minijax.sharding.named import NamedSharding, named

_NO_DEVICES = Mesh(np.empty((), object), ())


class _MeshSetting:
    """What `set_mesh` returns: leaving it as a context restores what was in force before."""

    __slots__ = ("_before",)

    def __init__(self, mesh: AbstractMesh, devices: Mesh | None) -> None:
        self._before = (
            meshes.abstract_mesh.swap_local(mesh),
            meshes.device_context.swap_local(devices),
        )

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        mesh, devices = self._before
        meshes.abstract_mesh.set_local(mesh)
        meshes.device_context.set_local(devices)


def set_mesh(mesh: Mesh | None) -> _MeshSetting:
    """Makes a mesh the one that programs are traced with and run on, in this thread.

    It holds from the call on; `with set_mesh(mesh):` holds it for a block.  Bare `PartitionSpec`s
    refer to it, and computations without committed arguments run on all its devices.

    Raises:
        ValueError: `mesh` has no devices, or a function is being traced.

    Example:
        >>> with jax.set_mesh(jax.make_mesh((8,), ("x",))):
        ...     x = jax.device_put(jnp.arange(16), jax.P("x"))
        >>> jax.typeof(x)
        ShapedArray(int32[16@x])
    """
    _check_not_tracing("set_mesh", "sharding.use_abstract_mesh(mesh.abstract_mesh)")
    if mesh is None or mesh is _NO_DEVICES:
        return _MeshSetting(meshes.EMPTY, None)
    if not isinstance(mesh, Mesh):
        problem = "needs a mesh with devices."
        got = f"{mesh!r} of type {type(mesh).__name__}"
        expected = "a Mesh, such as minijax.make_mesh gives"
        fix = "sharding.use_abstract_mesh for an AbstractMesh"
        error(ValueError, "set_mesh", problem, got=got, expected=expected, fix=fix)
    if mesh.manual_axes:
        problem = f"the mesh has axes of type Manual: {mesh.manual_axes}."
        fix = "set a mesh of Auto or Explicit axes; shard_map makes them Manual in its body"
        error(ValueError, "set_mesh", problem, got=str(mesh), fix=fix)
    return _MeshSetting(mesh.abstract_mesh, mesh)


use_mesh = set_mesh
"""The name of `set_mesh` in earlier versions."""


@source.boundaries("__init__", "__enter__")
class use_abstract_mesh:  # noqa: N801  mirrors the public name
    """Context manager: an abstract mesh for what is traced inside; devices stay as they are.

    Raises:
        ValueError: `mesh` is not an `AbstractMesh`, or not of the size of the one in force.

    Example:
        >>> with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((8,), ("x",))):
        ...     print(jax.sharding.get_abstract_mesh().shape["x"])
        8
    """

    __slots__ = ("_before", "mesh")

    def __init__(self, mesh: AbstractMesh) -> None:
        if not isinstance(mesh, AbstractMesh):
            got = f"{mesh!r} of type {type(mesh).__name__}"
            fix = "mesh.abstract_mesh, or set_mesh for a mesh with devices"
            error(ValueError, "use_abstract_mesh", "needs an AbstractMesh.", got=got, fix=fix)
        self.mesh = mesh

    def __enter__(self) -> None:
        outer = meshes.get_abstract_mesh()
        if not (outer.empty or self.mesh.empty) and outer.size != self.mesh.size:
            problem = "the mesh differs in size from the one in force."
            got = f"{self.mesh} of size {self.mesh.size} inside {outer} of size {outer.size}"
            expected = "the same number of devices"
            error(ValueError, "use_abstract_mesh", problem, got=got, expected=expected)
        self._before = meshes.abstract_mesh.swap_local(self.mesh)

    def __exit__(self, *_: object) -> None:
        meshes.abstract_mesh.set_local(self._before)


def get_mesh() -> Mesh:
    """The mesh that `set_mesh` has set, or a mesh of no devices.

    Raises:
        ValueError: a function is being traced; traced programs know abstract meshes only.

    Example:
        >>> with jax.set_mesh(jax.make_mesh((8,), ("x",))):
        ...     print(jax.sharding.get_mesh().devices.shape)
        (8,)
    """
    _check_not_tracing("get_mesh", "sharding.get_abstract_mesh()")
    return current_devices_mesh() or _NO_DEVICES


def current_devices_mesh() -> Mesh | None:
    """The mesh that `set_mesh` has set."""
    mesh: Mesh | None = meshes.device_context.value
    return mesh


def resolve(spec: PartitionSpec, user: str) -> NamedSharding:
    """The placement that a bare spec means for arrays: on the devices of the mesh in force.

    Raises:
        NoMeshError: there is no mesh; the text names `user`, the public function.
    """
    mesh = mesh_of_arrays()
    if mesh is None:
        _refuse_without_mesh(spec, user)
    return named(mesh, spec)


def resolve_for_tracing(spec: PartitionSpec, user: str) -> NamedSharding:
    """The placement that a bare spec means in a program: it names devices only if it must.

    Raises:
        NoMeshError: there is no mesh; the text names `user`, the public function.
    """
    traced = meshes.get_abstract_mesh()
    mesh: MeshAxes | None = _entered_mesh() if traced.empty else traced
    if mesh is None:
        _refuse_without_mesh(spec, user)
    return named(mesh, spec)


def mesh_of_arrays() -> Mesh | None:
    """The mesh that bare specs of arrays refer to: set by `set_mesh`, or by `with mesh:`."""
    return current_devices_mesh() or _entered_mesh()


def _entered_mesh() -> Mesh | None:
    stack = mesh_stack.value
    return stack[-1] if stack and not stack[-1].empty else None


def _refuse_without_mesh(spec: PartitionSpec, user: str) -> NoReturn:
    problem = "a PartitionSpec needs a mesh, and none is set."
    fix = "call it inside `with minijax.set_mesh(mesh):`, or give a NamedSharding"
    error(NoMeshError, user, problem, got=str(spec), fix=fix)


def _check_not_tracing(user: str, instead: str) -> None:
    tracing = trace.current.value
    if tracing is not trace.current.get_global():
        problem = "can only be used outside of jit and other transformations."
        got = f"a call while {tracing!r} is under way"
        expected = "programs that name no devices, so that they run on any"
        error(ValueError, user, problem, got=got, expected=expected, fix=instead)
