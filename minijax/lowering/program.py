"""Programs: closed jaxprs made runnable.  Steps 4 to 6 of a call.

Input: a closed jaxpr and the arguments of a call.  Output: an executable, compiled once for each
plan and kept with the jaxpr.  The file is read downward, as a call goes: the call is planned; there
may be an executable for the plan, or one of an equal program; else the jaxpr is cleaned, lowered
and compiled.

`docs/reading.md`: read after `lowering/module.py`; `transforms/jit/jit.py` is next.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Sequence
from typing import Any

from minijax.core import config, effects, monitoring
from minijax.core.cache import Cache
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.operators import Values
from minijax.core.sequences import partition_list
from minijax.interpreters import discharge, key_reuse, passes, structural_keys
from minijax.lowering import compilation, device_assignment, module_hooks, observers
from minijax.lowering.call_plan import (
    ANYWHERE,
    AbstractPlan,
    CallPlan,
    ProgramOptions,
    RequestedPlacement,
    select,
)
from minijax.lowering.lowered import LoweredProgram
from minijax.lowering.module import lower_to_module
from minijax.runtime.execute import Executable

_LARGE_CONSTANT_BYTES = 4096
_MOST_SHARED = 512
_cleaned = Cache(
    "cleaned programs",
    "programs without references and dead code, and the arguments they use",
    key="whether unused arguments stay",
    owner="jaxpr",
    counted=False,
)
# Executables by the structure of their programs, the last used at the end: decision 0006.  A plain
# dict, as keys compare in Python: where threads change it meanwhile an OrderedDict crashes.
_shared: dict[Hashable, Executable] = Cache(
    "executables by structure",
    "executables that equal programs of functions with one name share",
    key="equations, types and constants, and the key of executables, with the name",
    most=_MOST_SHARED,
    emptied=True,
    counted=False,
).table()


def executable_for(
    closed: ClosedJaxpr,
    args: Values,
    options: ProgramOptions,
    requested: RequestedPlacement = ANYWHERE,
) -> Executable:
    """Returns the executable for a call with `args`; compiled on the first such call.

    Args:
        closed: the program.
        args: its arguments: arrays or host values.
        options: how it is compiled.
        requested: where the user wants it to run.
    """
    return executable_of(closed, plan_call(closed, args, options, requested))


def run(closed: ClosedJaxpr, args: Values, name: str) -> Sequence[Any]:
    """Runs a program with default options, and returns its results."""
    return executable_for(closed, args, ProgramOptions(name))(args)


def plan_call(
    closed: ClosedJaxpr,
    args: Values,
    options: ProgramOptions,
    requested: RequestedPlacement = ANYWHERE,
) -> CallPlan:
    """Begins a call: checks random keys if configured, and decides where and how it runs."""
    if config.debug_key_reuse.value:
        key_reuse.use_arguments(closed, args)
    used = used_arguments(closed, options)
    return device_assignment.plan_call(closed, args, options, requested, used)


def executable_of(closed: ClosedJaxpr, plan: CallPlan) -> Executable:
    """Returns the executable for a plan; compiled on the first call with it."""
    executable: Executable | None = monitoring.compilation.find(closed, plan)
    if executable is not None:
        monitoring.compilation.hits += 1
        return executable
    structure = structural_keys.key_of(module_hooks.with_outfeeds(closed))
    # Lowering stages functions, which may read the configuration.  The cache above needs no such
    # key: the jaxpr itself was staged under one configuration.
    shared_key = structure, plan, config.trace_context()
    executable = None if structure is None else _shared.pop(shared_key, None)
    if executable is None:
        observers.about_to_compile(closed, plan)
        executable = compilation.compile_lowered(lower(closed, plan.abstract), plan)
    else:
        # Counted as a hit: nothing is compiled.
        monitoring.compilation.hits += 1
        executable = compilation.for_equal_program(executable, closed, plan)
    if structure is not None:
        _shared[shared_key] = executable
        for oldest in list(_shared)[:-_MOST_SHARED]:
            _shared.pop(oldest, None)
    return monitoring.compilation.keep(closed, plan, executable)


def lower(closed: ClosedJaxpr, plan: AbstractPlan) -> LoweredProgram:
    """Cleans and lowers a program; done once for each plan."""
    lowered: LoweredProgram | None = monitoring.lowering.find(closed, plan)
    if lowered is not None:
        monitoring.lowering.hits += 1
        return lowered
    monitoring.lowering.misses += 1
    name = plan.options.name
    outer_effects = plan.outer_effects(module_hooks.with_outfeeds(closed).effects)
    if outer_effects:
        effects.check_lowerable(name, outer_effects, plan.shape.num_devices)
    with observers.lowering(name):
        clean, used = cleaned(closed, keep_unused=plan.options.keep_unused)
        lifted, large_consts = _lift_large_constants(clean)
        info = closed.jaxpr.debug_info
        arg_names: Sequence[str] | None = info.arg_names
        if arg_names is not None:
            arg_names = ["constant"] * len(large_consts) + list(select(arg_names, used))
        module = lower_to_module(
            lifted,
            name,
            plan.for_parameters(used, len(large_consts)),
            arg_names=arg_names,
            result_names=info.result_paths,
        )
    lowered = LoweredProgram(
        module.module,
        plan,
        clean.jaxpr,
        used,
        large_consts,
        module.host_callbacks,
        module.choices,
        module.inspected,
        weakref.ref(closed),
    )
    return monitoring.lowering.keep(closed, plan, lowered)


def cleaned(
    closed: ClosedJaxpr, *, keep_unused: bool
) -> tuple[ClosedJaxpr, tuple[int, ...] | None]:
    """Removes dead code, and returns which arguments are still used; None for all of them."""
    result = _cleaned.find(closed, keep_unused)
    if result is None:
        pure = module_hooks.with_outfeeds(discharge.without_references(closed))
        clean, flags = passes.clean(pure, keep_inputs=keep_unused)
        used = None if all(flags) else tuple(i for i, keep in enumerate(flags) if keep)
        result = _cleaned.keep(closed, keep_unused, (clean, used))
    return result


def used_arguments(closed: ClosedJaxpr, options: ProgramOptions) -> tuple[int, ...] | None:
    """Returns the positions of the arguments that a program uses, or None for all of them."""
    return None if options.keep_unused else cleaned(closed, keep_unused=False)[1]


def _lift_large_constants(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """Turns large constants into leading parameters; the module's text would contain them."""
    jaxpr = closed.jaxpr
    is_large = [
        v.aval.size * v.aval.dtype.itemsize > _LARGE_CONSTANT_BYTES for v in jaxpr.constvars
    ]
    if not any(is_large):
        return closed, []
    small_vars, large_vars = partition_list(is_large, jaxpr.constvars)
    small, large = partition_list(is_large, closed.consts)
    invars = large_vars + jaxpr.invars
    lifted = jaxpr.replace(constvars=small_vars, invars=invars, effects=jaxpr.effects)
    return ClosedJaxpr(lifted, small), large
