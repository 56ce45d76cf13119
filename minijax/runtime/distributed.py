"""Programs of several processes: each has its own devices, and all see those of all.

Every process runs the same program and starts the same computations in the same order.  Jaxlib's
service, which lives in process 0, tells who is there; devices of the host exchange data by Gloo.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import operator
import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from jaxlib import _jax, xla_client

from minijax.core import config
from minijax.core.errors import error
from minijax.runtime import client, rendezvous, tokens, window
from minijax.runtime.rendezvous import Address

logger = logging.getLogger("minijax")

_USER = "distributed.initialize"
_LAST_BARRIER = "minijax: leaving"
# How long a process that has failed waits for the others, which most often have failed, too.
_SECONDS_AFTER_FAILURE = 10


class _Membership(NamedTuple):
    """What this process has to do with the others.

    Attributes:
        connection: jaxlib's client of the service.
        service: the service itself, in process 0.
        shutdown_seconds: how long to wait for the others at the end.
    """

    connection: Any
    service: Any
    shutdown_seconds: int


class _State:
    """Whether this process is one of several."""

    membership: _Membership | None = None


_state = _State()


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
) -> None:
    """Makes this process one of several that run one program; called before all else.

    Afterwards `devices()` are those of all processes.  Every process calls this, with the same
    address and number of processes, and then starts the same computations in the same order.  The
    three are also read from the environment: MINIJAX_COORDINATOR_ADDRESS, MINIJAX_NUM_PROCESSES
    and MINIJAX_PROCESS_ID.

    Source:     mirrors jax.distributed.initialize (0.10).

    Args:
        coordinator_address: where process 0 is reached, as host:port, with any free port.
        num_processes: how many processes there are.
        process_id: the number of this one, counted from 0.
        local_device_ids: the accelerators that this process uses; host devices are not shared.
        cluster_detection_method: 'deactivate' or None: clusters are not asked for the rest.
        initialization_timeout: for how many seconds to wait for the other processes.
        heartbeat_timeout_seconds: after how many seconds without a sign of life a process counts
            as dead, which ends the others.
        shutdown_timeout_seconds: for how many seconds to wait for the others at the end.
        coordinator_bind_address: where process 0 listens, if not on all its interfaces.
        slice_index: a number for groups of accelerators; host devices have none.
        partition_index: the same, under its other name.

    Raises:
        ValueError: an argument is missing, or no address, or the numbers do not fit.
        TypeError: a number is none.
        RuntimeError: it was called before, or devices were asked for before, or not all processes
            come in time.

    Example:
        >>> jax.device_count()
        8
        >>> jax.distributed.initialize("localhost:1234", num_processes=2, process_id=0)
        Traceback (most recent call last):
        RuntimeError: distributed.initialize: this process has made its devices already...
    """
    address, processes, process = _identity(coordinator_address, num_processes, process_id)
    _check_other_arguments(local_device_ids, cluster_detection_method, slice_index, partition_index)
    _check_first()
    coordinator = Address.parsed(address, "coordinator_address")
    bind = Address("", coordinator.port)
    if coordinator_bind_address is not None:
        bind = Address.parsed(coordinator_bind_address, "coordinator_bind_address")
    rendezvous.meet(coordinator, bind, process, processes, initialization_timeout)
    service = None
    if process == 0:
        service = _jax.get_distributed_runtime_service(
            str(bind._replace(host=bind.host or "::")),
            processes,
            heartbeat_timeout=heartbeat_timeout_seconds,
            cluster_register_timeout=initialization_timeout,
            shutdown_timeout=shutdown_timeout_seconds,
            recoverable=config.enable_recoverability.value,
        )
    connection = _jax.get_distributed_runtime_client(
        str(coordinator),
        process,
        init_timeout=initialization_timeout,
        heartbeat_timeout=heartbeat_timeout_seconds,
        shutdown_timeout=shutdown_timeout_seconds,
        use_compression=True,
    )
    connection.connect()
    _state.membership = _Membership(connection, service, shutdown_timeout_seconds)
    client.join_processes(connection, process, processes)
    logger.info("Process %d of %d, coordinated at %s.", process, processes, coordinator)


def _identity(address: Any, processes: Any, process: Any) -> tuple[str, int, int]:
    """The address of the coordinator, the number of processes and that of this one."""
    names = {
        "coordinator_address": "MINIJAX_COORDINATOR_ADDRESS",
        "num_processes": "MINIJAX_NUM_PROCESSES",
        "process_id": "MINIJAX_PROCESS_ID",
    }
    given: dict[str, Any] = dict(zip(names, (address, processes, process), strict=True))
    for argument, variable in names.items():
        if given[argument] is None and variable in os.environ:
            text = os.environ[variable]
            given[argument] = int(text) if text.isdecimal() else text
    for argument, value in given.items():
        if value is None:
            error(
                ValueError,
                _USER,
                f"{argument} is needed.",
                got=", ".join(f"{name}={x!r}" for name, x in given.items()),
                fix="pass the coordinator's address, how many processes there are and the "
                f"number of this one, or set {names[argument]}",
            )
    address, *numbers = given.values()
    if not isinstance(address, str):
        error(TypeError, _USER, "coordinator_address must be a text.", got=repr(address))
    processes, process = map(_number, list(names)[1:], numbers)
    if not 0 <= process < processes:
        error(
            ValueError,
            _USER,
            "there is no such process.",
            got=f"process_id={process}, num_processes={processes}",
            expected="0 <= process_id < num_processes",
        )
    return address, processes, process


def _number(argument: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        error(
            TypeError,
            _USER,
            f"{argument} must be an integer.",
            got=f"{value!r} of type {type(value).__name__}",
        )
    return operator.index(value)


def _check_other_arguments(
    local_device_ids: Any, cluster_detection_method: Any, slice_index: Any, partition_index: Any
) -> None:
    if local_device_ids is not None:
        several = isinstance(local_device_ids, Sequence)
        for number in local_device_ids if several else (local_device_ids,):
            _number("local_device_ids", number)
    if cluster_detection_method not in (None, "deactivate"):
        error(
            ValueError,
            _USER,
            "clusters are not asked who takes part.",
            got=f"cluster_detection_method={cluster_detection_method!r}",
            expected="None or 'deactivate'",
            fix="pass coordinator_address, num_processes and process_id",
        )
    if slice_index is not None and partition_index is not None:
        error(
            ValueError,
            _USER,
            "slice_index and partition_index are two names of one number.",
            got=f"slice_index={slice_index!r}, partition_index={partition_index!r}",
            fix="give one of them",
        )


def _check_first() -> None:
    if is_initialized():
        error(
            RuntimeError,
            _USER,
            "this process has been initialized already.",
            fix="call it once, or distributed.shutdown() before the second time",
        )
    if client.is_any_made():
        error(
            RuntimeError,
            _USER,
            "this process has made its devices already, without those of others.",
            fix="call it at the beginning: before devices(), before any computation, and "
            "before arrays are made, also by modules that are imported",
        )


def is_initialized() -> bool:
    """Whether this process is one of several.

    Source:     mirrors jax.distributed.is_initialized (0.10).

    Example:
        >>> jax.distributed.is_initialized()
        False
    """
    return _state.membership is not None


@atexit.register
def shutdown() -> None:
    """Leaves the other processes, once all of them do; at the end of a program by itself.

    Waits for all computations.  A process that has failed does not wait long for others, which may
    wait for it.  Arrays stay, but there are no more computations among processes.

    Source:     mirrors jax.distributed.shutdown (0.10).

    Raises:
        RuntimeError: the others did not come to their end in time.

    Example:
        >>> jax.distributed.shutdown()
    """
    membership = _state.membership
    if membership is None:
        return
    _state.membership = None
    client.leave_processes()
    has_failed = getattr(sys, "last_value", None) is not None
    try:
        if not has_failed:
            tokens.effects_barrier()
            window.wait_for_all()
    finally:
        if has_failed:
            # The error that it has ended with is what the user shall read.
            with contextlib.suppress(RuntimeError):
                _leave(membership, _SECONDS_AFTER_FAILURE)
        else:
            _leave(membership, membership.shutdown_seconds)


def _leave(membership: _Membership, seconds: int) -> None:
    """Leaves together with the others.

    Raises:
        RuntimeError: they did not come in time.
    """
    try:
        membership.connection.wait_at_barrier(_LAST_BARRIER, seconds * 1000)
    except xla_client.XlaRuntimeError as caught:
        error(
            RuntimeError,
            "distributed.shutdown",
            f"the other processes have not come to their end within {seconds} seconds.",
            got=str(caught).partition("\n")[0],
            fix="let all processes run the same program to its end, or wait longer: "
            "shutdown_timeout_seconds of initialize",
            at="",
            cause=caught,
        )
    membership.connection.shutdown()
    if membership.service is not None:
        membership.service.shutdown()
