"""Whether all processes do the same: run the same program, or place parts of the same value.

They compare digests, through process 0: no device takes part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.core import deferral
from minijax.core.errors import error
from minijax.runtime import watch
from minijax.runtime.watch import Joint
from minijax.sharding.base import Sharding
from minijax.sharding.mesh import device_list

hashlib = deferral.module("hashlib")


def joint_program(name: str, jaxpr: Any, devices: Any, module: Any) -> Joint | None:
    """A program as something that several processes do; None where one has all of its devices.

    Args:
        name: what it is called.
        jaxpr: what it does.
        devices: where it runs.
        module: the MLIR module, whose text all processes must share.
    """
    group = device_list(devices).process_indices
    if watch.current() is None or len(group) == 1:
        return None
    types = ", ".join(v.aval.str_short() for v in jaxpr.invars)
    text = module.operation.get_asm(enable_debug_info=False)
    return Joint(f"{name}({types})", tuple(group), _digest(text.encode()), str(jaxpr))


def check_same(user: str, value: np.ndarray[Any, Any], sharding: Sharding) -> None:
    """Refuses to place a value that is another one in another process.

    All processes that have some of the devices call this, in the same order.

    Raises:
        ValueError: the values differ.
        RuntimeError: a process does something else, or is gone.
    """
    current, group = watch.current(), device_list(sharding.device_assignment).process_indices
    if current is None or current.process not in group or len(group) == 1:
        return
    what = f"{value.dtype}{list(value.shape)}"
    own = _digest(what.encode(), np.ascontiguousarray(value).tobytes())
    found = Joint(user, tuple(group), user).exchange(own)
    others = [process for process in sorted(found) if found[process] != own]
    if others:
        problem = "the processes have different values, of which each would place a part."
        got = f"{what} in process {current.process}, and something "
        got += f"else in process(es) {', '.join(map(str, others))}"
        expected = "the whole value, the same in all processes"
        fix = "minijax.make_array_from_process_local_data(sharding, part), where each "
        fix += "process has a part of its own"
        error(ValueError, user, problem, got=got, expected=expected, fix=fix)


def _digest(*parts: bytes) -> str:
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        found.update(part)
    return str(found.hexdigest())
