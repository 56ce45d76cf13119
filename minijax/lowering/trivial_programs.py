"""Programs that compute nothing, and programs that only change a layout.

A program without equations returns copies of arguments, and constants.  Its first call compiles
nothing.  The second one does: from then on jaxlib's C++ call path answers calls where it may, which
is faster than anything that Python could do.
"""

from __future__ import annotations

from typing import Any

from minijax.core import config, dtypes
from minijax.core.aval import AbstractValue, ShapedArray
from minijax.core.cache import Cache
from minijax.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, Literal, Var
from minijax.core.operators import Values
from minijax.lowering import module_hooks, program, program_shardings
from minijax.lowering.call_plan import ANYWHERE, CallPlan, ProgramOptions, RequestedPlacement
from minijax.runtime import compile, placement, transfer
from minijax.runtime.array import array_from_host, is_array, physical_aval, to_numpy, wrap
from minijax.sharding import hlo

_answered = Cache(
    "answered programs",
    "that a program without equations was answered without compiling once",
    key="none",
    owner="jaxpr",
    counted=False,
)


def first_results(
    closed: ClosedJaxpr, args: Values, plan: CallPlan, requested: RequestedPlacement
) -> list[Any] | None:
    """Returns the results of the first call of a program without equations, without compiling it.

    Returns None for later calls, and where the program must be compiled to have its effects, its
    options or its checks.

    Arguments that are results are copied, so that an argument outlives a result that the user
    deletes or donates.

    Args:
        closed: the program.
        args: its arguments, which are concrete.
        plan: where the call runs.
        requested: where the user wants it to run.
    """
    if _answered.find(closed) or requested != ANYWHERE or not _is_plain(closed, plan):
        return None
    if module_hooks.with_outfeeds(closed).jaxpr.eqns:
        return None
    _answered.keep(closed, None, True)
    if compile.compiler_of(plan.devices) is not None:
        return None
    if plan.mesh is not None and plan.mesh.explicit_axes:
        return None
    given: dict[Atom, Any] = dict(zip(closed.jaxpr.invars, args, strict=True))
    given.update(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    inputs: set[Atom] = set(closed.jaxpr.invars)
    outs = []
    for atom in closed.jaxpr.outvars:
        value = atom.value if type(atom) is Literal else given[atom]
        outs.append(_copied(value, atom.aval, plan, stays=atom in inputs))
    return outs


def _is_plain(closed: ClosedJaxpr, plan: CallPlan) -> bool:
    """Returns whether the user requested nothing about how the program is compiled or checked."""
    return (
        not closed.effects
        and not (
            any(plan.options.donated) or plan.options.compiler_options or plan.options.out_layouts
        )
        and not (config.debug_nans.value or config.debug_infs.value or config.debug_key_reuse.value)
        and all(
            isinstance(v.aval, ShapedArray) and v.aval.dtype != dtypes.float0
            for v in closed.jaxpr.outvars
        )
    )


def _copied(x: Any, aval: AbstractValue, plan: CallPlan, *, stays: bool) -> Any:
    """Copies a value for a result: where it is if it `stays`, else whole on all devices."""
    physical = physical_aval(aval)
    if stays and is_array(x) and x.committed:
        transfer.moved(x.buffer, x.buffer._sharding)  # raises if it is deleted
        return wrap(placement.copy_buffer(x.buffer, x.buffer._sharding), aval)
    if len(plan.devices) == 1 and plan.mesh is None:
        target = placement.native_sharding(plan.devices[0])
    else:
        whole = program_shardings.public_sharding(hlo.REPLICATED, physical, plan)
        target = placement.native(whole, physical.ndim)
    host = to_numpy(x.buffer) if is_array(x) else x
    made = array_from_host(host, physical, target=target, committed=plan.committed)
    return wrap(made.buffer, aval)


def _relaid(buffer: Any, target: Any) -> Any:
    """Returns a C++ array on the devices of `target`, in its layout."""
    var = Var(buffer.aval.update(sharding=None))
    options = ProgramOptions(
        "relayout", in_layouts=(buffer._sharding.layout,), out_layouts=(target.layout,)
    )
    requested = RequestedPlacement(out_shardings=(target.public,))
    closed = ClosedJaxpr(Jaxpr([], [var], [var], []), [])
    # Programs of equal structure are compiled once.
    return program.executable_for(closed, [buffer], options, requested)([buffer])[0]


transfer.relaid = _relaid
