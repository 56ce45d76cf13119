"""Distributed programs: processes that find one another, and see the devices of all.

Every process has its own devices, runs the same program and starts the same computations in the
same order.  Jaxlib's service, which lives in process 0, tells who is there; devices of the host
exchange data by Gloo.

That service ends a process whose peers do not come.  So the processes meet before it connects them:
the coordinator listens where the service will, the others say who they are, and all are told to go
on, or why not, once everyone is there.  Whatever goes wrong until then is an exception in every
process that came.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import operator
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from jaxlib import _jax

from minijax.core import deferral
from minijax.core.errors import error, message
from minijax.core.operators import Value
from minijax.runtime import client, effect_tokens, in_flight, watch
from minijax.runtime.processes import clusters
from minijax.runtime.processes.watch import Watch, Wire

if TYPE_CHECKING:
    import ctypes
else:
    ctypes = deferral.module("ctypes")

_INITIALIZE = "distributed.initialize"
_GREETING = "minijax"
# Seconds between attempts to reach a coordinator that does not listen yet.
_GRACE = 1.0
"""Seconds that an answer may take on its way."""
_SECONDS_TO_ANSWER = 10.0
_PAUSE = 0.05
_MOST_BYTES = 4096


class Address(NamedTuple):
    """Where the coordinator listens."""

    host: str
    port: int

    @classmethod
    def parsed(cls, text: str, argument: str) -> Address:
        """The address that a user has written as host:port; the host may be an [IPv6] one.

        Raises:
            ValueError: it is none.
        """
        host, _, port = text.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            problem = f"{argument} is no address."
            expected = "host:port, as in 'localhost:1234'"
            error(ValueError, _INITIALIZE, problem, got=repr(text), expected=expected)
        return cls(host.removeprefix("[").removesuffix("]"), int(port))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def meet(
    coordinator: Address, bind: Address, process: int, processes: int, timeout: float
) -> dict[int, Wire]:
    """Connections between process 0 and the others, once all of them are there.

    Args:
        coordinator: where processes reach the first one.
        bind: where that one listens.
        process: the number of this process.
        processes: how many there are.
        timeout: for how many seconds to wait.

    Raises:
        RuntimeError: some did not come in time, two say to be the same, or they disagree about
            how many there are; also where the coordinator cannot listen, or be reached, or where
            somebody else listens in its place.
    """
    deadline = time.monotonic() + timeout
    if process == 0:
        return _wait_for_all(bind, processes, timeout, deadline)
    return {0: _announce(coordinator, process, processes, timeout, deadline)}


def _wait_for_all(
    bind: Address, processes: int, timeout: float, deadline: float
) -> dict[int, Wire]:
    peers: dict[int, Wire] = {}
    problem = None
    with contextlib.ExitStack() as stack:
        with _listener(bind) as listener:
            while problem is None and len(peers) < processes - 1:
                arrived = _next_peer(listener, deadline)
                if arrived is None:
                    missing = sorted(set(range(1, processes)) - peers.keys())
                    problem = _missing(missing, processes, timeout)
                    break
                wire = Wire(arrived)
                stack.callback(wire.close)
                claim = _claim(wire)
                if claim is None:
                    wire.close()
                    continue
                problem = _objection(*claim, peers, processes)
                # Who is refused is told so, too.
                peers[claim[0] if problem is None else -1] = wire
        for process, wire in peers.items():
            if problem is None and wire.has_ended():
                problem = message(_INITIALIZE, f"process {process} has gone again.", at="")
        for wire in peers.values():
            with contextlib.suppress(OSError):
                wire.say(_GREETING, problem)
        if problem is None:
            stack.pop_all()
            return peers
    raise RuntimeError(problem)


def _listener(bind: Address) -> socket.socket:
    try:
        is_any = bind.host in ("", "::", "0.0.0.0")
        if is_any and socket.has_dualstack_ipv6():
            return socket.create_server(
                ("", bind.port), family=socket.AF_INET6, dualstack_ipv6=True
            )
        host = "" if is_any else bind.host
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, bind.port), family=family)
    except OSError as caught:
        problem = "this process, the coordinator, cannot listen at its address."
        fix = "choose another port of this machine"
        error(RuntimeError, _INITIALIZE, problem, got=f"{bind}: {caught}", fix=fix, cause=caught)


def _next_peer(listener: socket.socket, deadline: float) -> socket.socket | None:
    """The next process that comes; None if none does in time."""
    listener.settimeout(max(deadline - time.monotonic(), 0.001))
    try:
        return listener.accept()[0]
    except TimeoutError:
        return None


def _claim(wire: Wire) -> tuple[int, int] | None:
    """The number of a process and how many it knows of; None from somebody who is none."""
    with contextlib.suppress(OSError, ValueError):
        greeting, process, processes = wire.hear(_GRACE, _MOST_BYTES)
        if greeting == _GREETING and type(process) is type(processes) is int:
            wire.say(_GREETING)
            return process, processes
    return None


def _missing(missing: list[int], processes: int, timeout: float) -> str:
    return message(
        _INITIALIZE,
        f"not all processes have come within {timeout:g} seconds.",
        got=f"process(es) {', '.join(map(str, missing))} of {processes} missing",
        fix="start them, with the same coordinator_address and num_processes, or wait longer: "
        "initialization_timeout",
        at="",
    )


def _objection(process: int, count: int, present: Container[int], processes: int) -> str | None:
    """Why the processes cannot go on together, if they cannot."""
    if count != processes:
        problem = "processes disagree about num_processes."
        got = f"{processes} from process 0, {count} from process {process}"
    elif process in present:
        problem = f"two processes have process_id={process}."
        got = "the second one has just come"
    elif not 0 < process < processes:
        problem = f"a process says to have process_id={process}."
        got = f"num_processes={processes}, of which this is number 0"
    else:
        return None
    fix = "start each process with the same num_processes and a process_id of its own"
    return message(_INITIALIZE, problem, got=got, fix=fix, at="")


def _announce(
    coordinator: Address, process: int, processes: int, timeout: float, deadline: float
) -> Wire:
    reason = None
    while (left := deadline - time.monotonic()) > 0:
        try:
            return _attempt(coordinator, process, processes, left, timeout)
        except OSError as caught:
            reason = caught
        time.sleep(_PAUSE)
    error(
        RuntimeError,
        _INITIALIZE,
        f"process {process} has not reached the coordinator within {timeout:g} seconds.",
        got=f"{coordinator}: {reason}",
        expected="process 0 of the same program, which listens there",
        fix="start it with the same coordinator_address, see that no firewall is between, or "
        "wait longer: initialization_timeout",
    )


def _attempt(
    coordinator: Address, process: int, processes: int, left: float, timeout: float
) -> Wire:
    """A connection with the coordinator, once all processes have come to it.

    Raises:
        OSError: nobody listens there so far.
        RuntimeError: somebody else does, or the coordinator has gone; or says what is wrong.
    """
    with contextlib.ExitStack() as stack:
        wire = Wire(socket.create_connection(coordinator, timeout=left))
        stack.callback(wire.close)
        wire.say(_GREETING, process, processes)
        problem = "who listens at the coordinator's address does not answer as one."
        got: Any = None
        try:
            got = wire.hear(_SECONDS_TO_ANSWER, _MOST_BYTES)
            if got == [_GREETING]:
                problem = "the coordinator has gone before all processes had come."
                # It waits no longer than that for the others, and answers then.
                _, answer = wire.hear(timeout + _GRACE, _MOST_BYTES)
                if answer is not None:
                    raise RuntimeError(answer)
                stack.pop_all()
                return wire
        except ConnectionError:
            if got is None:
                raise
        except (OSError, ValueError) as caught:
            got = caught
        fix = "choose another port, which is free on the machine of process 0"
        error(RuntimeError, _INITIALIZE, problem, got=f"{coordinator}: {got}", fix=fix)


logger = logging.getLogger("minijax")

_CONNECT = "distributed.initialize"
# How long a process that has failed waits for the others, which most often have failed, too.
_SECONDS_AFTER_FAILURE = 10
_SECONDS_TO_END = 60


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
    is_abandoned = False
    # What C calls must not be freed.
    abort_handler: Any = None

    def __init__(self) -> None:
        self.last_words: list[Callable[[], object]] = []


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
    address and number of processes, and then starts the same computations in the same order.  What
    is omitted is read from the environment: MINIJAX_COORDINATOR_ADDRESS, MINIJAX_NUM_PROCESSES and
    MINIJAX_PROCESS_ID, as `python -m minijax.distributed -n 4 program.py` sets them; or what Slurm,
    Open MPI, Hydra (MPICH, Intel MPI), Kubernetes in indexed jobs, or torchrun set.

    Args:
        coordinator_address: where process 0 is reached, as host:port, with any free port.
        num_processes: how many processes there are.
        process_id: the number of this one, counted from 0.
        local_device_ids: the accelerators that this process uses; host devices are not shared.
        cluster_detection_method: who is asked for the rest: 'slurm', 'ompi', 'hydra', 'k8s',
            'torchrun', or 'mpi4py', which asks that package; None for whoever of them but the last
            has started this process, 'deactivate' for nobody.
        initialization_timeout: for how many seconds to wait for the other processes.
        heartbeat_timeout_seconds: after how many seconds without a sign of life a process counts
            as gone, of which the others are told by an exception.
        shutdown_timeout_seconds: for how many seconds to wait for the others at the end.
        coordinator_bind_address: where process 0 listens, if not on all its interfaces.
        slice_index: a number for groups of accelerators; host devices have none.
        partition_index: the same, under its other name.

    Raises:
        ValueError: an argument is missing, or no address, or the numbers do not fit; or
            `cluster_detection_method` has not started this process.
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
    _check_other_arguments(local_device_ids, slice_index, partition_index)
    given = (coordinator_address, num_processes, process_id)
    address, processes, process = _identity(*given, cluster_detection_method)
    _check_first()
    coordinator = Address.parsed(address, "coordinator_address")
    bind = Address("", coordinator.port)
    if coordinator_bind_address is not None:
        bind = Address.parsed(coordinator_bind_address, "coordinator_bind_address")
    wires = meet(coordinator, bind, process, processes, initialization_timeout)
    service = None
    if process == 0:
        service = _jax.get_distributed_runtime_service(
            str(bind._replace(host=bind.host or "::")),
            processes,
            heartbeat_timeout=heartbeat_timeout_seconds,
            cluster_register_timeout=initialization_timeout,
            shutdown_timeout=shutdown_timeout_seconds,
            # Otherwise the service ends all processes where one has gone.
            recoverable=True,
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
    _outlive_aborts()
    _state.membership = _Membership(connection, service, shutdown_timeout_seconds)
    watch.start(Watch(process, processes, wires, heartbeat_timeout_seconds))
    client.join_processes(connection, process, processes)
    logger.info("Process %d of %d, coordinated at %s.", process, processes, coordinator)


def on_failure(function: Callable[[], object]) -> None:
    """Has a function called where XLA ends this process, and no exception can be raised.

    It may save what is on the host; computations may hang there.

    Source:     minijax's own.

    Example:
        >>> jax.distributed.on_failure(lambda: print("the last words"))
    """
    _state.last_words.append(function)


def _outlive_aborts() -> None:
    """Has this process live on where XLA would end it because process 0 has gone.

    XLA ends it from a thread of its own, as soon as the service does not answer, while the user is
    told by an exception.  That thread is kept for ever.
    """

    def handle(_: int) -> None:
        current = watch.current()
        if current is not None and threading.get_ident() != threading.main_thread().ident:
            deadline = time.monotonic() + _SECONDS_AFTER_FAILURE
            while current.stop is None and time.monotonic() < deadline:
                time.sleep(_PAUSE)
            if current.stop is not None:
                # Python would end the thread when it ends, and C++ the process.
                signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
                ctypes.CDLL(None).pause()
        for function in _state.last_words:
            function()

    _state.abort_handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(handle)
    ctypes.CDLL(None).signal(signal.SIGABRT, _state.abort_handler)


def _identity(
    address: Any, processes: Any, process: Any, method: str | None
) -> tuple[str, int, int]:
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
    clusters.check_method(method)
    is_known = all(value is not None for value in given.values())
    member = None if is_known or method == "deactivate" else clusters.found(method)
    if member is not None:
        told = member._asdict()
        given = {name: told[name] if value is None else value for name, value in given.items()}
    for argument, value in given.items():
        if value is None:
            error(
                ValueError,
                _CONNECT,
                f"{argument} is needed.",
                got=", ".join(f"{name}={x!r}" for name, x in given.items()),
                fix="pass the coordinator's address, how many processes there are and the "
                f"number of this one, or set {names[argument]}; on one machine, start the program "
                "by python -m minijax.distributed -n 2 program.py",
            )
    address, *numbers = given.values()
    if not isinstance(address, str):
        error(TypeError, _CONNECT, "coordinator_address must be a text.", got=repr(address))
    processes, process = map(_number, list(names)[1:], numbers)
    if not 0 <= process < processes:
        problem = "there is no such process."
        got = f"process_id={process}, num_processes={processes}"
        error(ValueError, _CONNECT, problem, got=got, expected="0 <= process_id < num_processes")
    return address, processes, process


def _number(argument: str, value: Value) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        problem = f"{argument} must be an integer."
        error(TypeError, _CONNECT, problem, got=f"{value!r} of type {type(value).__name__}")
    return operator.index(value)


def _check_other_arguments(local_device_ids: Any, slice_index: Any, partition_index: Any) -> None:
    if local_device_ids is not None:
        several = isinstance(local_device_ids, Sequence)
        for number in local_device_ids if several else (local_device_ids,):
            _number("local_device_ids", number)
    if slice_index is not None and partition_index is not None:
        error(
            ValueError,
            _CONNECT,
            "slice_index and partition_index are two names of one number.",
            got=f"slice_index={slice_index!r}, partition_index={partition_index!r}",
            fix="give one of them",
        )


def _check_first() -> None:
    if is_initialized():
        fix = "call it once, or distributed.shutdown() before the second time"
        error(RuntimeError, _CONNECT, "this process has been initialized already.", fix=fix)
    if client.is_any_made():
        error(
            RuntimeError,
            _CONNECT,
            "this process has made its devices already, without those of others.",
            fix="call it at the beginning: before devices(), before any computation, and "
            "before arrays are made, also by modules that are imported",
        )


def is_initialized() -> bool:
    """Whether this process is one of several.

    Example:
        >>> jax.distributed.is_initialized()
        False
    """
    return _state.membership is not None


def connection() -> Any:
    """jaxlib's client of the service by which processes have met; None where there is one only."""
    return None if _state.membership is None else _state.membership.connection


@atexit.register
def _end() -> None:
    """Leaves the other processes at the end of the program."""
    try:
        shutdown()
    finally:
        if _state.is_abandoned:
            # XLA may be about to end this process, from a thread that cannot enter Python any more.
            libc = ctypes.CDLL(None)
            libc.signal(signal.SIGABRT, ctypes.cast(libc.pause, ctypes.c_void_p))
            signal.alarm(_SECONDS_TO_END)


def shutdown() -> None:
    """Leaves the other processes, once all of them do; at the end of a program by itself.

    Waits for all computations.  A process that has failed does not wait long for others, which may
    wait for it.  Arrays stay, but there are no more computations among processes.

    Raises:
        RuntimeError: the others did not come to their end in time, or are gone.

    Example:
        >>> jax.distributed.shutdown()
    """
    membership, current = _state.membership, watch.current()
    if membership is None or current is None:
        return
    failure = getattr(sys, "last_value", None)
    try:
        if failure is None and not current.was_told:
            effect_tokens.effects_barrier()
            in_flight.wait_for_all()
            seconds = membership.shutdown_seconds
            if not current.end(seconds):
                error(
                    RuntimeError,
                    "distributed.shutdown",
                    f"the other processes have not come to their end within {seconds} seconds.",
                    got=current.places(),
                    fix="let all processes run the same program to its end, or wait longer: "
                    "shutdown_timeout_seconds of initialize",
                    at="",
                )
    except BaseException as caught:
        failure = caught
        raise
    finally:
        _state.membership = None
        client.leave_processes()
        _leave(membership, current, failure)


def _leave(membership: _Membership, current: Watch, failure: BaseException | None) -> None:
    """Leaves the service; the process in which it lives leaves last."""
    if failure is not None:
        name = f"{type(failure).__name__}: {failure}".partition("\n")[0]
        current.refuse(f"process {current.process} has ended with {name}.")
    if is_fine := failure is None and current.stop is None:
        membership.connection.shutdown()
    else:
        # What has been started may never end, and the service may be gone.
        _state.is_abandoned = True
        atexit.unregister(effect_tokens.effects_barrier)
        # A connection that is closed while the interpreter ends finds modules that are gone.
        client.abandon(membership.connection, membership.service, current)
    if membership.service is not None:
        current.wait_for_others(_SECONDS_AFTER_FAILURE)
    if is_fine:
        current.close()
        watch.start(None)
        if membership.service is not None:
            membership.service.shutdown()
