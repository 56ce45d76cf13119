"""Compilation of a lowered program for the devices of a plan.  Step 6 of a call.

Input: a lowered program and the plan of the call.  Output: an `Executable`, which runs on arrays.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir

from minijax.core import deferral, effects, monitoring
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr
from minijax.lowering import (
    diagnosis,
    inspection,
    module_hooks,
    observers,
    partitioning,
    program_shardings,
)
from minijax.lowering.call_plan import CallPlan, Partitioned, Replicated
from minijax.lowering.lowered import LoweredProgram
from minijax.lowering.module import verify
from minijax.runtime import agreement, compile, placement
from minijax.runtime.effect_tokens import TOKEN
from minijax.runtime.execute import Executable
from minijax.runtime.transfer import InputsHandler, ResultsHandler, buffer_on

if TYPE_CHECKING:
    from minijax.lowering import contractions
else:
    contractions = deferral.module("minijax.lowering.contractions")


def compile_lowered(
    lowered: LoweredProgram, plan: CallPlan, *, options: Mapping[str, Any] | None = None
) -> Executable:
    """Compiles a lowered program.

    Args:
        lowered: the program.
        plan: where and how it runs; its abstract half is that of `lowered`.
        options: further fields of XLA's DebugOptions by name.
    """
    monitoring.compilation.misses += 1
    name = plan.options.name
    in_avals, out_avals = program_shardings.global_avals(lowered, plan)
    observers.about_to_compile_module(lowered, plan)
    is_replicated = isinstance(plan.shape, Replicated)
    compile_options = compile.options_for(
        plan.devices,
        options={**dict(plan.options.compiler_options), **(options or {})},
        free=_chosen_by_xla(lowered),
        num_args=len(lowered.large_consts) + len(in_avals),
        replicas=plan.shape.num_devices if is_replicated else 1,
        use_shardy=plan.abstract.use_shardy,
    )
    module = module_hooks.refined(lowered.module)
    if len(plan.devices) > 1 and not is_replicated and plan.abstract.use_shardy:
        module = contractions.guarded(module)
    foreign_compiler = compile.compiler_of(plan.devices)
    loaded = code = None
    if foreign_compiler is None:
        loaded, code = _compile(lowered, module, plan, compile_options)
    consts = lowered.large_consts
    ins, outs = program_shardings.native_shardings(loaded, lowered, plan)
    program_effects = plan.abstract.outer_effects(lowered.jaxpr.effects)
    ordered = effects.ordered_among(program_effects)
    token_sharding = placement.on_all(plan.devices, TOKEN.ndim)
    const_buffers = [
        buffer_on(c, aval_of(c), sharding) for c, sharding in zip(consts, ins, strict=False)
    ]
    executable = Executable(
        loaded,
        plan.devices,
        InputsHandler(in_avals, ins[len(consts) :], lowered.used, const_buffers),
        ResultsHandler(out_avals, outs, plan.committed, [token_sharding] * len(ordered)),
        committed=plan.committed,
        donated=[i for i, is_donated in enumerate(plan.options.donated) if is_donated],
        ordered=ordered,
        has_effects=bool(program_effects),
        callbacks=lowered.host_callbacks,
        code=code,
        joint=agreement.joint_program(name, lowered.jaxpr, plan.devices, module),
        diagnose=_diagnosis(plan, lowered.origin),
    )
    if foreign_compiler is not None:
        is_trivial = not (lowered.jaxpr.eqns or lowered.jaxpr.effects)
        compile.hand_over(
            foreign_compiler, executable, name, module, compile_options, is_trivial=is_trivial
        )
    return executable


def for_equal_program(executable: Executable, closed: ClosedJaxpr, plan: CallPlan) -> Executable:
    """Returns the executable of a program for another one with the same equations."""
    return executable.shared_with(_diagnosis(plan, weakref.ref(closed)))


def _diagnosis(plan: CallPlan, origin: weakref.ref[ClosedJaxpr]) -> Any:
    """Returns the function that explains results that are not finite, or None."""
    # What a replica does to its shards makes no sense for global arrays.
    if isinstance(plan.shape, Replicated) and plan.shape.axis_names:
        return None
    return functools.partial(diagnosis.explain_bad_result, plan.options.name, origin)


def _chosen_by_xla(lowered: LoweredProgram) -> tuple[list[bool], list[bool]]:
    """Returns for each parameter, and for each result, whether XLA chooses its sharding."""
    shape = lowered.plan.for_parameters(lowered.used, len(lowered.large_consts)).shape
    if not isinstance(shape, Partitioned):
        return [], []
    return [s is None for s in shape.in_shardings], [s is None for s in shape.out_shardings]


def _compile(
    lowered: LoweredProgram, module: ir.Module, plan: CallPlan, compile_options: Any
) -> tuple[Any, bytes | None]:
    """Returns jaxlib's executable, and its code if it came from a store of programs."""
    name = plan.options.name
    on_host = plan.devices[0].platform == "cpu"
    if on_host and len(plan.devices) > 1 and "i2>" in str(lowered.module):
        problem = "programs over several devices of the host cannot hold integers of two bits."
        got = f"{name}; what XLA exchanges between devices would be written beyond its memory"
        error(NotImplementedError, "jit", problem, got=got, fix="x.astype(jnp.int4), or int8")
    with (
        observers.compiling(name),
        inspection.compiling(lowered.jaxpr, plan, lowered.inspected),
    ):
        try:
            may_store = not (inspection.effect in lowered.jaxpr.effects or lowered.inspected)
            loaded, code = compile.compile_module(
                module, plan.devices, compile_options, lowered.host_callbacks, may_store=may_store
            )
        except RuntimeError:
            verify(lowered.module, lowered.jaxpr)
            raise
    if on_host:
        partitioning.check(loaded, lowered.choices)
    return loaded, code
