"""The part of a module that concerns devices: shardings, memory kinds, layouts and replicas.

Input: an `AbstractPlan`, which describes how a program runs without naming devices.  Output:
attributes of the module and of its function `main`, and sharding constraints on results.  A program
for one device has none of these; `lowering/module.py` builds everything else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jaxlib.mlir import ir

from minijax.core import effects
from minijax.core.aval import AbstractToken
from minijax.core.jaxpr import Atom, Eqn, Jaxpr
from minijax.core.meshes import PartitionSpec
from minijax.lowering import stablehlo
from minijax.lowering.call_plan import AbstractPlan, Partitioned, PlanShape, Replicated
from minijax.lowering.device_axes import DeviceAxes, NoDeviceAxes
from minijax.lowering.inspection import Inspected
from minijax.lowering.partitioning import Partitioning
from minijax.lowering.stablehlo import LoweringContext, integer, string
from minijax.runtime.array import physical_aval
from minijax.sharding import rules
from minijax.sharding.base import Sharding
from minijax.sharding.named import NamedSharding, named

Attributes = dict[str, ir.Attribute]


class PlacedModule:
    """The state of a module under construction that concerns devices; base of `Lowering`.

    Attributes:
        devices: how many devices run the module at once, as partitions or replicas.
        device_axes: the axes of devices for which the part being built is written per device.
        partitioning: the meshes of the module and the shardings that refer to them.
        choices: the branches and loops that may differ between devices while the compiler
            partitions values.
        inspected: the values whose shardings are shown to the user during compilation.
    """

    def __init__(
        self, module: ir.Module, shape: PlanShape, fresh_name: Callable[[str], str]
    ) -> None:
        self.devices = shape.num_devices
        replica_count = shape.num_devices if isinstance(shape, Replicated) else 1
        partitions = shape.num_devices // replica_count
        module.operation.attributes["mhlo.num_replicas"] = integer(replica_count, 32)
        module.operation.attributes["mhlo.num_partitions"] = integer(partitions, 32)
        self.device_axes: DeviceAxes = NoDeviceAxes()
        if isinstance(shape, Replicated):
            self.device_axes = shape.axes
        self.partitioning = Partitioning(module, partitions, fresh_name)
        self.choices: list[str] = []
        self.inspected: list[Inspected] = []

    @property
    def is_partitioned(self) -> bool:
        """Whether the compiler partitions values of the part being built."""
        return self.partitioning.partitions > 1

    @contextlib.contextmanager
    def inside(self, device_axes: DeviceAxes) -> Iterator[None]:
        """Context manager: what is built inside is written per device along these axes."""
        before = self.device_axes, self.partitioning.is_manual
        self.device_axes = device_axes
        self.partitioning.is_manual = device_axes.are_all_manual
        try:
            yield
        finally:
            self.device_axes, self.partitioning.is_manual = before

    def main_attributes(
        self, jaxpr: Jaxpr, plan: AbstractPlan
    ) -> tuple[list[Attributes], list[Attributes]]:
        """Returns the attributes of each argument and of each result of `main`.

        Args:
            jaxpr: what `main` computes.
            plan: how the program runs, with one entry for each argument of `main`.
        """
        shape, options = plan.shape, plan.options
        arg_attributes = _donation_attributes(jaxpr, options.donated, shape)
        result_attributes: list[Attributes] = [{} for _ in jaxpr.outvars]
        if isinstance(shape, Partitioned):
            ins, outs = shape.in_shardings, shape.out_shardings
            self._add_shardings(arg_attributes, jaxpr.invars, ins, replicate_scalars=True)
            self._add_shardings(result_attributes, jaxpr.outvars, outs)
        _add_layouts(arg_attributes, options.in_layouts)
        _add_layouts(result_attributes, options.out_layouts)
        if isinstance(shape, Replicated):
            for attributes, is_shared in zip(arg_attributes, shape.broadcast_args, strict=False):
                if is_shared:
                    attributes["mhlo.is_same_data_across_replicas"] = stablehlo.boolean(True)
        variables = *jaxpr.invars, *jaxpr.outvars
        for attributes, var in zip((*arg_attributes, *result_attributes), variables, strict=True):
            if var.aval.memory_kind is not None:
                attributes.setdefault("mhlo.memory_kind", string(var.aval.memory_kind))
        return arg_attributes, result_attributes

    def _add_shardings(
        self,
        attributes: Sequence[Attributes],
        variables: Sequence[Atom],
        shardings: Sequence[Sharding | None],
        *,
        replicate_scalars: bool = False,
    ) -> None:
        """Adds the shardings of arguments or results that have one.

        There is nothing to choose for a scalar, keys included, so arguments that are scalars can be
        declared as replicated.
        """
        for own, var, sharding in zip(attributes, variables, shardings, strict=True):
            ndim = physical_aval(var.aval).ndim
            if sharding is not None:
                own.update(self.partitioning.placement(sharding, ndim))
                if sharding.special_memory_kind is not None:
                    own["mhlo.memory_kind"] = string(sharding.special_memory_kind)
            elif replicate_scalars and var.aval.shape == ():
                own.update(self.partitioning.replicated(ndim))

    def constrain_results(
        self, ctx: LoweringContext, eqn: Eqn, values: dict[Atom, ir.Value[Any]]
    ) -> None:
        """Constrains an equation's results to the shardings of their types or of its parameter.

        Args:
            ctx: where the constraints are added.
            eqn: the equation.
            values: the values of variables; those of the results are replaced.
        """
        if not rules.constrains_results.of(eqn.primitive):
            return
        requested = eqn.params.get(rules.sharding_param.of(eqn.primitive))
        typed = [s for v in (*eqn.outvars, *eqn.invars) if (s := v.aval.split) is not None]
        if not typed and not isinstance(requested, NamedSharding):
            return
        mesh = (requested or typed[0]).mesh
        for var in eqn.outvars:
            if isinstance(var.aval, AbstractToken):
                continue
            sharding = requested or var.aval.split or named(mesh, PartitionSpec())
            ndim = physical_aval(var.aval).ndim
            names = set(sharding.spec.names()) | sharding.spec.unreduced
            is_open = bool(mesh.auto_axes) and not names.intersection(mesh.auto_axes)
            if names or not is_open or self.partitioning.with_shardy:
                values[var] = self.partitioning.constrained(
                    ctx, values[var], sharding, ndim, is_open=is_open
                )


def annotate_memory(
    ctx: LoweringContext, values: Sequence[ir.Value[Any]], attributes: Sequence[Attributes]
) -> list[ir.Value[Any]]:
    """Returns the results of a function, annotated where an attribute gives a kind of memory."""
    return [
        _in_memory(ctx, value, own["mhlo.memory_kind"]) if "mhlo.memory_kind" in own else value
        for value, own in zip(values, attributes, strict=True)
    ]


def _in_memory(ctx: LoweringContext, value: ir.Value[Any], kind: ir.Attribute) -> ir.Value[Any]:
    attributes = {
        "call_target_name": string("annotate_device_placement"),
        "has_side_effect": stablehlo.boolean(True),
        "mhlo.frontend_attributes": stablehlo.attribute(f"{{_xla_buffer_placement = {kind}}}"),
    }
    return ctx.op("stablehlo.custom_call", [value], attributes, value.type)


def _add_layouts(attributes: Sequence[Attributes], layouts: Sequence[Any]) -> None:
    """Adds the layouts in memory of arguments or results that have one."""
    for own, layout in zip(attributes, layouts, strict=False):
        if layout is not None:
            own["mhlo.layout_mode"] = string(layout.text.lower())


def _donation_attributes(
    jaxpr: Jaxpr, donated: Sequence[bool], shape: PlanShape
) -> list[Attributes]:
    """Returns attributes that pair donated arguments with results of the same type and sharding.

    A donated argument without such a result is marked as free for any other use.
    """
    attributes: list[Attributes] = [{} for _ in jaxpr.invars]
    if not any(donated):
        return attributes
    free: dict[tuple[object, ...], list[int]] = {}
    tokens = len(effects.ordered_among(jaxpr.effects))
    in_shardings: Sequence[object] = (None,) * max(len(jaxpr.invars), len(jaxpr.outvars))
    out_shardings = in_shardings
    is_partitioned = isinstance(shape, Partitioned)
    if isinstance(shape, Partitioned):
        in_shardings, out_shardings = shape.in_shardings, shape.out_shardings
    for i, (out, sharding) in enumerate(zip(jaxpr.outvars, out_shardings, strict=False)):
        if isinstance(out.aval, AbstractToken) or (is_partitioned and sharding is None):
            continue
        free.setdefault((out.aval.shape, out.aval.dtype, sharding), []).append(i + tokens)
    for i, (var, is_donated) in enumerate(zip(jaxpr.invars, donated, strict=False)):
        if not is_donated:
            continue
        fitting = free.get((var.aval.shape, var.aval.dtype, in_shardings[i]))
        if fitting:
            attributes[i]["tf.aliasing_output"] = integer(fitting.pop(0), 32)
        else:
            attributes[i]["jax.buffer_donor"] = stablehlo.boolean(True)
    return attributes
