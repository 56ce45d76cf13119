"""Programs that compute nothing: their results are copies of arguments, and constants.

The first call of such a program compiles nothing.  The second one does: from then on C++ answers
calls where it may, which is faster than anything that Python could do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minijax.core import config
from minijax.core.aval import ShapedArray
from minijax.core.cache import Cache
from minijax.core.jaxpr import ClosedJaxpr, Literal
from minijax.interpreters import assignment, module_hooks, program
from minijax.interpreters.assignment import Assignment
from minijax.runtime import compile, placement, transfer
from minijax.runtime.array import Array, array_from_host, physical_aval, to_numpy, wrap
from minijax.sharding import hlo

_answered = Cache(
    "answered programs",
    "that a program without equations was answered without compiling once",
    key="none",
    owner="jaxpr",
    counted=False,
)


def results(
    closed: ClosedJaxpr, args: Sequence[Any], options: program.Options, device: Any
) -> list[Any] | None:
    """The results of a first call with `args`, if the program computes nothing; else None.

    Arguments that are results are copied: who deletes or donates a result keeps the argument.

    Args:
        closed: the program.
        args: its arguments, which are concrete.
        options: how it is compiled.
        device: where it runs, if the user has said so.
    """
    if closed.jaxpr.eqns or _answered.find(closed) or not _is_plain(closed, options, device):
        return None
    if module_hooks.with_outfeeds(closed).jaxpr.eqns:
        return None
    _answered.keep(closed, None, True)
    where = program.place(closed, args, options)
    if compile.compiler_of(where.devices) is not None:
        return None
    if where.mesh is not None and where.mesh.explicit_axes:
        return None
    given: dict[Any, Any] = dict(zip(closed.jaxpr.invars, args, strict=True))
    given.update(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    inputs: set[Any] = set(closed.jaxpr.invars)
    outs = []
    for atom in closed.jaxpr.outvars:
        value = atom.value if type(atom) is Literal else given[atom]
        outs.append(_copied(value, atom.aval, where, stays=atom in inputs))
    return outs


def _is_plain(closed: ClosedJaxpr, options: program.Options, device: Any) -> bool:
    """Whether nobody has said anything about how the program is compiled or checked."""
    return (
        device is None
        and not (closed.effects or options.in_shardings or options.out_shardings)
        and not (any(options.donated) or options.compiler_options)
        and not (config.debug_nans.value or config.debug_infs.value or config.debug_key_reuse.value)
        and all(isinstance(v.aval, ShapedArray) for v in closed.jaxpr.outvars)
    )


def _copied(x: Any, aval: ShapedArray, where: Assignment, *, stays: bool) -> Any:
    """A value as a result: where it is if it `stays`, else whole on all devices."""
    physical = physical_aval(aval)
    is_array = type.__instancecheck__(Array, x)
    if stays and is_array and x.committed:
        transfer.moved(x.buffer, x.buffer._sharding)  # raises if it is deleted
        return wrap(placement.copy_buffer(x.buffer, x.buffer._sharding), aval)
    if len(where.devices) == 1 and where.mesh is None:
        target = placement.native_sharding(where.devices[0])
    else:
        whole = assignment.public_sharding(hlo.REPLICATED, physical, where, ())
        target = placement.native(whole, physical.ndim)
    host = to_numpy(x.buffer) if is_array else x
    made = array_from_host(host, physical, target=target, committed=where.committed)
    return wrap(made.buffer, aval)
