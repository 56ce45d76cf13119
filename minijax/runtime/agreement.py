"""Whether all processes have brought the same value, where each places its part of it.

Each writes down a digest of what it has for the others to read, at the service that knows all
processes: no device takes part.
"""

from __future__ import annotations

import collections
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxlib import xla_client

from minijax.core import deferral
from minijax.core.errors import error
from minijax.runtime import client
from minijax.sharding.base import Sharding
from minijax.sharding.mesh import device_list

if TYPE_CHECKING:
    import hashlib
else:
    hashlib = deferral.module("hashlib")

# How long to wait for a process that has not come so far.
_SECONDS = 300

_lock = threading.Lock()
# How many values each group of processes has compared.
_compared: collections.Counter[tuple[int, ...]] = collections.Counter()


def check_same(user: str, value: np.ndarray[Any, Any], sharding: Sharding) -> None:
    """Refuses to place a value that is another one in another process.

    All processes that have some of the devices call this, in the same order.

    Raises:
        ValueError: the values differ.
        RuntimeError: a process does not come.
    """
    peers = client.peers()
    processes = device_list(sharding.device_assignment).process_indices
    if peers is None or peers.process not in processes or len(processes) == 1:
        return
    group = tuple(sorted(processes))
    with _lock:
        number = _compared[group]
        _compared[group] += 1
    own = _digest(value)
    peers.connection.key_value_set(_key(group, number, peers.process), own)
    found = {process: _of_process(user, peers, group, number, process) for process in group}
    if number:
        # Whoever has come this far has read the former ones.
        peers.connection.key_value_delete(_key(group, number - 1, peers.process))
    others = [process for process, digest in found.items() if digest != own]
    if others:
        error(
            ValueError,
            user,
            "the processes have different values, of which each would place a part.",
            got=f"{value.dtype}{list(value.shape)} in process {peers.process}, and something "
            f"else in process(es) {', '.join(map(str, others))}",
            expected="the whole value, the same in all processes",
            fix="minijax.make_array_from_process_local_data(sharding, part), where each "
            "process has a part of its own",
        )


def _digest(value: np.ndarray[Any, Any]) -> str:
    found = hashlib.blake2b(f"{value.dtype}{value.shape}".encode(), digest_size=16)
    found.update(np.ascontiguousarray(value).tobytes())
    return found.hexdigest()


def _key(group: tuple[int, ...], number: int, process: int) -> str:
    return f"minijax/same/{'-'.join(map(str, group))}/{number}/{process}"


def _of_process(
    user: str, peers: client.Peers, group: tuple[int, ...], number: int, process: int
) -> str:
    try:
        found: str = peers.connection.blocking_key_value_get(
            _key(group, number, process), _SECONDS * 1000
        )
    except xla_client.XlaRuntimeError as caught:
        problem = f"process {process} has not placed its part within {_SECONDS} seconds."
        got = str(caught).partition("\n")[0]
        expected = f"the same call in processes {', '.join(map(str, group))}"
        error(RuntimeError, user, problem, got=got, expected=expected, cause=caught)
    return found
