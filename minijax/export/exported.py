"""`Exported`: a program that has left the function it was made of.

What it holds is data: names, types, placements, and the program as a portable artifact.  The
functions that read it are elsewhere: `calls` calls it, `files` writes it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir

from minijax.core import effects, source
from minijax.core.aval import AbstractValue
from minijax.core.errors import error
from minijax.core.meshes import MeshAxes
from minijax.export import artifacts, calls, writing
from minijax.export.checks import DisabledSafetyCheck
from minijax.sharding.named import NamedSharding

if TYPE_CHECKING:
    from minijax.core.native import PyTreeDef


@dataclasses.dataclass(frozen=True, eq=False)
@source.boundaries("mlir_module", "in_shardings_jax", "out_shardings_jax", "vjp", "serialize")
@source.boundaries("call")
class Exported:
    """A function as StableHLO, with all that is needed to call it.

    Attributes:
        fun_name: the function's name.
        in_tree: the structure of (args, kwargs).
        in_avals: the types of the arguments, whose sizes may be symbols.
        out_tree: the structure of the results.
        out_avals: the types of the results, in the same symbols.
        in_shardings_hlo: placements as older files have them; None for each argument.
        out_shardings_hlo: likewise for each result.
        nr_devices: the number of devices that the program is for.
        platforms: the platforms that it is for; of several, the module takes the position of one.
        ordered_effects: its effects whose order counts; each is a token to the module.
        unordered_effects: its other effects.
        disabled_safety_checks: which checks were left out.
        mlir_module_serialized: the module as a portable artifact of StableHLO.
        calling_convention_version: of what the module takes and returns.
        module_kept_var_idx: the arguments that the module takes, by position; others are unused.
        uses_global_constants: whether sizes are symbols, or the platform is one of several.

    Example:
        >>> exported = jax.export.export(jax.jit(jnp.sin))(jnp.ones(3))
        >>> exported.in_avals, exported.platforms
        ((ShapedArray(float32[3]),), ('cpu',))
        >>> exported.call(jnp.zeros(3))
        Array([0., 0., 0.], dtype=float32)
    """

    fun_name: str
    in_tree: PyTreeDef
    in_avals: tuple[AbstractValue, ...]
    out_tree: PyTreeDef
    out_avals: tuple[AbstractValue, ...]
    _has_named_shardings: bool
    _in_named_shardings: tuple[NamedSharding | None, ...]
    _out_named_shardings: tuple[NamedSharding | None, ...]
    in_shardings_hlo: tuple[Any, ...]
    out_shardings_hlo: tuple[Any, ...]
    nr_devices: int
    platforms: tuple[str, ...]
    ordered_effects: tuple[effects.Effect, ...]
    unordered_effects: tuple[effects.Effect, ...]
    disabled_safety_checks: Sequence[DisabledSafetyCheck]
    mlir_module_serialized: bytes
    calling_convention_version: int
    module_kept_var_idx: tuple[int, ...]
    uses_global_constants: bool
    _get_vjp: Callable[[Exported], Exported] | None

    def __str__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    def mlir_module(self, serialized: bool = True) -> str | ir.Module:
        """The module as text, or as jaxlib's object where `serialized` is False."""
        module = artifacts.module_of(self.mlir_module_serialized)
        if not serialized:
            return module
        return str(module.operation.get_asm(enable_debug_info=True))

    def in_shardings_jax(self, mesh: MeshAxes) -> Sequence[NamedSharding | None]:
        """How arguments are placed on a mesh of the shape that the program was made for.

        Raises:
            ValueError: the mesh has other axes.
        """
        return _on_mesh(self._in_named_shardings, mesh, "Exported.in_shardings_jax")

    def out_shardings_jax(self, mesh: MeshAxes) -> Sequence[NamedSharding | None]:
        """How results are placed on a mesh of the shape that the program was made for.

        Raises:
            ValueError: the mesh has other axes.
        """
        return _on_mesh(self._out_named_shardings, mesh, "Exported.out_shardings_jax")

    def has_vjp(self) -> bool:
        """Whether there is a program for the derivative."""
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """The derivative in reverse mode: takes arguments and cotangents of results, all flat.

        Raises:
            ValueError: there is none, as the file was written without.
        """
        if self._get_vjp is None:
            problem = f"{self.fun_name} has no derivative."
            fix = "write the file with exported.serialize(vjp_order=1)"
            error(ValueError, "Exported.vjp", problem, fix=fix)
        return self._get_vjp(self)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The bytes of a file, which this library and JAX read.

        Args:
            vjp_order: how many times the program that reads it may differentiate.

        Raises:
            ValueError: a tree has nodes that have no form in files, or there is no such derivative.
            TypeError: a dictionary has keys that are no strings.
            NotImplementedError: an effect or a dtype has no form in files.
        """
        return writing.serialized(self, vjp_order)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the program, also inside of `jit`, `grad` or what is exported.

        Raises:
            ValueError: arguments have another structure, or other types, than it was made for, or
                it was made for other platforms or another number of devices.
        """
        return calls.call(self, args, kwargs)


def _on_mesh(
    shardings: Sequence[NamedSharding | None], mesh: MeshAxes, name: str
) -> tuple[NamedSharding | None, ...]:
    abstract: Any = getattr(mesh, "abstract_mesh", None)
    for sharding in filter(None, shardings):
        own = sharding.mesh.abstract_mesh
        if abstract is not own and not own.empty:
            problem = "the mesh has other axes than that of the exported program."
            error(ValueError, name, problem, got=str(mesh), expected=str(own))
    return tuple(None if s is None else s.update(mesh=mesh) for s in shardings)
