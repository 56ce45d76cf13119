"""What is recorded of the steps of a call: history, logs, dumps, timings, profiles.

`program.py` and `compilation.py` announce each step here, and do not know what is recorded.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Iterator
from pathlib import Path

from minijax.core import config, history, monitoring
from minijax.core.jaxpr import ClosedJaxpr
from minijax.lowering.call_plan import CallPlan
from minijax.lowering.lowered import LoweredProgram
from minijax.runtime import profiling

_num_dumps = itertools.count()


def about_to_compile(closed: ClosedJaxpr, plan: CallPlan) -> None:
    """Announces that a program is about to be lowered and compiled for a plan.

    Raises:
        RetraceError: a guard, such as `explain.no_retrace`, forbids it.
    """
    history.compiling(
        closed,
        plan.devices if len(plan.devices) > 1 else plan.devices[0],
        committed=plan.committed,
        demanded_by=plan.committed_args,
        placed=plan.in_shardings,
    )


def about_to_compile_module(lowered: LoweredProgram, plan: CallPlan) -> None:
    """Announces that a module is about to be compiled."""
    _log_compilation(lowered, plan)
    if config.dump_ir_to.value:
        _dump(lowered)


@contextlib.contextmanager
def lowering(name: str) -> Iterator[None]:
    """Context manager: the function `name` is lowered inside it."""
    with (
        monitoring.timed("jaxpr_to_module", "jaxpr to StableHLO lowering", name),
        profiling.TraceAnnotation("lower", function=name),
    ):
        yield


@contextlib.contextmanager
def compiling(name: str) -> Iterator[None]:
    """Context manager: the function `name` is compiled inside it."""
    with (
        monitoring.timed("compile", "XLA compilation", name),
        profiling.TraceAnnotation("compile", function=name),
    ):
        yield


def _log_compilation(lowered: LoweredProgram, plan: CallPlan) -> None:
    """Logs that a program is compiled, as a warning with `log_compiles`."""
    level = logging.WARNING if config.log_compiles.value else logging.DEBUG
    if not monitoring.logger.isEnabledFor(level):
        return
    names = lowered.of_used(lowered.jaxpr.debug_info.arg_names or ())
    shardings = lowered.of_used(plan.in_shardings) or [None] * len(lowered.jaxpr.invars)
    mapping = []
    for i, (var, sharding) in enumerate(zip(lowered.jaxpr.invars, shardings, strict=True)):
        name = names[i] if i < len(names) else str(i)
        mapping.append(f"{name}: {var.aval!r} as {sharding or 'unspecified'}")
    monitoring.logger.log(
        level,
        "Compiling %s for jit on %d device(s) with global shapes and types. "
        "Argument mapping: (%s).",
        plan.options.name,
        len(plan.devices),
        ", ".join(mapping),
    )


def _dump(lowered: LoweredProgram) -> None:
    """Writes a program's module to the folder that the user has named."""
    folder = Path(config.dump_ir_to.value)
    folder.mkdir(parents=True, exist_ok=True)
    has_locations = config.include_debug_info_in_dumps.value
    text = str(lowered.module.operation.get_asm(enable_debug_info=has_locations))
    path = folder / f"minijax_ir{next(_num_dumps)}_jit_{lowered.plan.options.name}_compile.mlir"
    path.write_text(text, encoding="utf-8")
