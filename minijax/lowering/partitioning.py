"""Shardings in the MLIR module: Shardy's or GSPMD's meshes, attributes and sharding constraints.

Input: shardings.  Output: attributes and operations of the module being built, in the notation of
Shardy, or of GSPMD where the user prefers it.

Here is also the check of branches and loops that only some devices enter, inside manual regions of
which the compiler splits the rest.  Input: a manual region over some axes of a mesh (`lines`), and
later the program that XLA has made of it (`check`).  Output: an error where XLA has put a
`collective-permute` into such a branch or loop: on the host all devices of a program wait for each
other in it, for ever if some do not come.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir

from minijax.core import config, deferral, source
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr, Eqn
from minijax.core.meshes import UNCONSTRAINED, MeshAxes, PartitionSpec
from minijax.interpreters import uniformity
from minijax.interpreters.uniformity import Names
from minijax.lowering import stablehlo
from minijax.lowering.stablehlo import LoweringContext, string
from minijax.sharding import hlo
from minijax.sharding.base import Sharding
from minijax.sharding.named import NamedSharding

if TYPE_CHECKING:
    from minijax.runtime import hlo_text
else:
    hlo_text = deferral.module("minijax.runtime.hlo_text")


def lines(closed: ClosedJaxpr, given: Sequence[Names], axes: Names) -> list[str]:
    """The user's lines of the choices in a jaxpr that differ between devices along the axes."""
    found: dict[str, None] = {}

    def note(eqn: Eqn, part: str, jaxprs: Sequence[ClosedJaxpr], over: Names) -> None:
        found[f"{eqn.primitive} at {source.summarize(eqn.source)}"] = None

    uniformity.follow(closed, given, axes, on_choice=note)
    return list(found)


def check(loaded: Any, choices: Sequence[str]) -> None:
    """Refuses a compiled program of which some device would wait for others for ever.

    Raises:
        NotImplementedError: a `collective-permute` is in a branch or a loop.
    """
    if not choices:
        return
    modules = [hlo_text.HloModule(module.to_string()) for module in loaded.hlo_modules()]
    if any(map(_waits_in_choice, modules)):
        error(
            NotImplementedError,
            "shard_map",
            "the compiler moves values between devices inside of a branch or a loop that not "
            "all devices enter; on the host all devices of a program take part in that.",
            got="a collective-permute under " + ", or ".join(choices),
            expected="a predicate that is the same on all devices, or values in there that the "
            "compiler does not split",
            fix="compute all branches and select with jnp.where, or make all axes of the mesh "
            "manual",
            at="",
        )


_BRANCHES = ("branch_computations", "true_computation", "false_computation")


def _waits_in_choice(module: hlo_text.HloModule) -> bool:
    everything = [x for body in module.computations.values() for x in body.values()]
    pending = [name for x in everything for role, name in x.calls if _is_chosen(x, role)]
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        for instruction in module.computations.get(name, {}).values():
            if instruction.opcode.startswith("collective-permute"):
                return True
            pending += [callee for _, callee in instruction.calls]
    return False


def _is_chosen(instruction: hlo_text.Instruction, role: str) -> bool:
    """Whether devices may differ in how often they run what an instruction calls in a role."""
    # A loop whose trips are counted takes as many of them on each device.
    is_loop = role in ("body", "condition") and instruction.trip_count is None
    return role in _BRANCHES or is_loop


Attributes = dict[str, Any]


class Partitioning:
    """The meshes of a module under construction, and what refers to them.

    Attributes:
        devices: the number of devices.
        is_manual: whether the part being built is written per device of all mesh axes, so that
            there is nothing to partition.
        with_shardy: whether Shardy partitions the program, or its predecessor.
    """

    def __init__(
        self, module: ir.Module, partitions: int, fresh_name: Callable[[str], str]
    ) -> None:
        self.devices = partitions
        self.is_manual = False
        self.with_shardy = config.use_shardy_partitioner.value
        self._module = module
        self._fresh_name = fresh_name
        self._meshes: dict[str, str] = {}
        self._last_mesh: Any = None
        self._placements: dict[Any, Attributes] = {}

    @property
    def partitions(self) -> int:
        """Among how many devices values of the part being built may be cut."""
        return 1 if self.is_manual else self.devices

    def symbol_of(self, mesh: MeshAxes) -> str:
        """The symbol of a mesh.

        Raises:
            ValueError: it has another number of devices than the program.
        """
        self.check_size(mesh)
        return self.symbol_of_text(hlo.mesh_text(mesh), "mesh")

    def symbol_of_text(self, text: str, name: str) -> str:
        """The symbol of a mesh, which stands before all functions, after those made earlier."""
        symbol = self._meshes.get(text)
        if symbol is None:
            symbol = self._meshes[text] = self._fresh_name(name)
            last = self._last_mesh
            self._last_mesh = ir.Operation.create(
                "sdy.mesh",
                [],
                [],
                {"sym_name": string(symbol), "mesh": stablehlo.attribute(text)},
                loc=ir.Location.unknown(stablehlo.context()),
                ip=ir.InsertionPoint.at_block_begin(self._module.body)
                if last is None
                else ir.InsertionPoint.after(last),
            )
        return symbol

    def placement(self, sharding: Sharding, ndim: int, *, is_open: bool = False) -> Attributes:
        """The attribute that places a value of rank `ndim`.

        Args:
            sharding: where it lives.
            ndim: the rank of what XLA computes with.
            is_open: whether the partitioner may split dimensions over further axes, which are
                Auto.

        Raises:
            ValueError: the sharding's mesh has another number of devices than the program, or
                GSPMD cannot express it.
        """
        key = sharding, ndim, is_open
        found = self._placements.get(key)
        if found is None:
            found = self._placements[key] = self._make_placement(sharding, ndim, is_open)
        return found

    def _make_placement(self, sharding: Sharding, ndim: int, is_open: bool) -> Attributes:
        if isinstance(sharding, NamedSharding):
            self.check_size(sharding.mesh)
        if not self.with_shardy:
            _check_expressible(sharding)
            return {"mhlo.sharding": string(str(sharding.to_hlo(ndim)))}
        if isinstance(sharding, NamedSharding):
            mesh, spec = hlo.mesh_text(sharding.mesh), sharding.spec
        else:
            mesh, spec = hlo.attribute_of_tiling(sharding.tiling(ndim))
        closed = _explicit_axes_left(sharding) if is_open else []
        symbol = self.symbol_of_text(mesh, "mesh")
        return self._sharding(symbol, spec, ndim, is_open=is_open, replicated=closed)

    def _sharding(
        self,
        symbol: str,
        spec: PartitionSpec,
        ndim: int,
        *,
        is_open: bool = False,
        replicated: Collection[Any] = (),
    ) -> Attributes:
        text = hlo.sharding_text(symbol, spec, ndim, is_open=is_open, replicated=replicated)
        return {"sdy.sharding": stablehlo.attribute(text)}

    def check_size(self, mesh: MeshAxes) -> None:
        if mesh.size != self.devices:
            problem = f"the mesh has {mesh.size} devices, the program runs on {self.devices}."
            fix = "place the arguments on all devices of the mesh, or call under set_mesh"
            error(ValueError, "sharding", problem, got=str(mesh), fix=fix)

    def replicated(self, ndim: int, open_dims: Collection[int] = ()) -> Attributes:
        """The attribute of a value that every device holds as a whole, whatever the meshes are.

        Args:
            ndim: the rank of what XLA computes with.
            open_dims: dimensions that the partitioner may split nevertheless.
        """
        if not self.with_shardy:
            return {"mhlo.sharding": string("{replicated}")}
        spec = PartitionSpec(*(UNCONSTRAINED if d in open_dims else None for d in range(ndim)))
        return self._sharding(self.symbol_of_text(hlo.EMPTY_MESH, "empty_mesh"), spec, ndim)

    def on_first_device(self, results: int) -> Attributes:
        """The attribute of an operation that the first device runs alone: a call of Python.

        Args:
            results: how many results it has; only the first device holds them, see `broadcast`.
        """
        if self.partitions == 1:
            return {}
        if not self.with_shardy:
            one = "{maximal device=0}"
            all_of_them = f"{{{', '.join([one] * results)}}}"
            return {"mhlo.sharding": string(all_of_them if results > 1 else one)}
        mesh = self.symbol_of_text(hlo.FIRST_DEVICE, "maximal_mesh_0")
        places = ", ".join([f"<@{mesh}, []>"] * max(results, 1))
        return {"sdy.sharding": stablehlo.attribute(f"#sdy.sharding_per_value<[{places}]>")}

    def broadcast(self, ctx: LoweringContext, value: ir.Value[Any], ndim: int) -> Any:
        """A value that the first device holds, on all devices."""
        return self.whole_along(ctx, value, range(ndim), ndim)

    def whole_along(
        self, ctx: LoweringContext, value: ir.Value[Any], dims: Collection[int], ndim: int
    ) -> Any:
        """A value that each device holds whole along some dimensions; others are left open.

        For what devices cannot compute together, such as reductions XLA knows no sum for.
        """
        if self.partitions == 1:
            return value
        open_dims = [d for d in range(ndim) if d not in dims]
        return _constraint(ctx, value, self.replicated(ndim, open_dims), open_dims)

    def constrained(
        self,
        ctx: LoweringContext,
        value: ir.Value[Any],
        sharding: Sharding,
        ndim: int,
        *,
        is_open: bool = False,
    ) -> Any:
        """A value that is placed as `sharding` says; see `placement`."""
        if self.is_manual or (self.devices == 1 and sharding.num_devices == 1):
            return value
        placement = self.placement(sharding, ndim, is_open=is_open)
        spec = sharding.spec if isinstance(sharding, NamedSharding) else PartitionSpec()
        open_dims = [d for d, entry in enumerate(spec) if entry is UNCONSTRAINED]
        if is_open:
            open_dims += [d for d, names in enumerate(spec.dims(ndim)) if not names]
        return _constraint(ctx, value, placement, open_dims)


def _constraint(
    ctx: LoweringContext, value: ir.Value[Any], placement: Attributes, open_dims: Sequence[int]
) -> Any:
    if "sdy.sharding" in placement:
        attributes = {"sharding": placement["sdy.sharding"]}
        return ctx.op("sdy.sharding_constraint", [value], attributes, value.type)
    attributes = {"call_target_name": string("Sharding"), **placement}
    if open_dims:
        listed = ",".join(map(str, sorted(set(open_dims))))
        attributes["backend_config"] = string(f"unspecified_dims=[{listed}]")
    return ctx.op("stablehlo.custom_call", [value], attributes, value.type)


def _explicit_axes_left(sharding: Sharding) -> list[Any]:
    """The axes over which nothing else may be split, because types would show it."""
    if not isinstance(sharding, NamedSharding):
        return []
    used = {*sharding.spec.names(), *sharding.spec.unreduced}
    return [name for name in sharding.mesh.explicit_axes if name not in used]


def _check_expressible(sharding: Sharding) -> None:
    """Refuses what GSPMD has no words for.

    Raises:
        ValueError: devices hold summands of the value.
    """
    if isinstance(sharding, NamedSharding) and sharding.spec.unreduced:
        problem = "GSPMD cannot keep the summands of a value apart."
        expected = "a spec without unreduced axes"
        fix = "leave use_shardy_partitioner on"
        error(ValueError, "sharding", problem, got=str(sharding.spec), expected=expected, fix=fix)
