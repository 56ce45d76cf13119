"""How the processes of one program find one another, before jaxlib's service connects them.

That service ends a process whose peers do not come; here all that may go wrong at the beginning
is an exception in every process that came.  The coordinator listens where the service will, the
others say who they are, and all are told to go on, or why not, once everyone is there.
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from typing import Any, NamedTuple

from minijax.core.errors import error, message

_USER = "distributed.initialize"
_GREETING = "minijax"
# Seconds between attempts to reach a coordinator that does not listen yet.
_GRACE = 1.0
"""Seconds that an answer may take on its way."""
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
            error(
                ValueError,
                _USER,
                f"{argument} is no address.",
                got=repr(text),
                expected="host:port, as in 'localhost:1234'",
            )
        return cls(host.removeprefix("[").removesuffix("]"), int(port))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def meet(coordinator: Address, bind: Address, process: int, processes: int, timeout: float) -> None:
    """Returns in each process once all of them are there.

    Args:
        coordinator: where processes reach the first one.
        bind: where that one listens.
        process: the number of this process.
        processes: how many there are.
        timeout: for how many seconds to wait.

    Raises:
        RuntimeError: some did not come in time, two say to be the same, or they disagree about
            how many there are; also where the coordinator cannot listen, or be reached.
    """
    deadline = time.monotonic() + timeout
    if process == 0:
        _wait_for_all(bind, processes, timeout, deadline)
    else:
        _announce(coordinator, process, processes, timeout, deadline)


def _wait_for_all(bind: Address, processes: int, timeout: float, deadline: float) -> None:
    present: set[int] = set()
    peers: list[socket.socket] = []
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(_listener(bind))
        problem = None
        while problem is None and len(present) < processes - 1:
            peer = _next_peer(listener, deadline)
            if peer is None:
                missing = sorted(set(range(1, processes)) - present)
                problem = _missing(missing, processes, timeout)
                break
            stack.enter_context(peer)
            greeting = _greeting_of(peer)
            if greeting is not None:
                problem = _objection(greeting, present, processes)
                present.add(greeting["process"])
                peers.append(peer)
        for peer in peers:
            with contextlib.suppress(OSError):
                peer.sendall(json.dumps({"problem": problem}).encode() + b"\n")
    if problem is not None:
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
        error(
            RuntimeError,
            _USER,
            "this process, the coordinator, cannot listen at its address.",
            got=f"{bind}: {caught}",
            fix="choose another port of this machine",
            cause=caught,
        )


def _next_peer(listener: socket.socket, deadline: float) -> socket.socket | None:
    """The next process that comes; None if none does in time."""
    listener.settimeout(max(deadline - time.monotonic(), 0.001))
    try:
        return listener.accept()[0]
    except TimeoutError:
        return None


def _greeting_of(peer: socket.socket) -> Any:
    """What a process says about itself; None from somebody who is none."""
    peer.settimeout(1.0)
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads(_line(peer))
        if found["program"] == _GREETING:
            return found
    return None


def _line(peer: socket.socket) -> bytes:
    """What a peer sends, up to the end of the line or of the connection."""
    text = b""
    while not text.endswith(b"\n") and len(text) < _MOST_BYTES:
        more = peer.recv(_MOST_BYTES)
        if not more:
            break
        text += more
    return text


def _missing(missing: list[int], processes: int, timeout: float) -> str:
    return message(
        _USER,
        f"not all processes have come within {timeout:g} seconds.",
        got=f"process(es) {', '.join(map(str, missing))} of {processes} missing",
        fix="start them, with the same coordinator_address and num_processes, or wait longer: "
        "initialization_timeout",
        at="",
    )


def _objection(greeting: Any, present: set[int], processes: int) -> str | None:
    """Why the processes cannot go on together, if they cannot."""
    process, count = greeting["process"], greeting["processes"]
    if count != processes:
        problem = "processes disagree about num_processes."
        got = f"{processes} from process 0, {count} from process {process}"
    elif process in present:
        problem = f"two processes have process_id={process}."
        got = "the second one has just come"
    else:
        return None
    fix = "start each process with the same num_processes and a process_id of its own"
    return message(_USER, problem, got=got, fix=fix, at="")


def _announce(
    coordinator: Address, process: int, processes: int, timeout: float, deadline: float
) -> None:
    reason: Any = "it has closed the connection"
    greeting = {"program": _GREETING, "process": process, "processes": processes}
    while (left := deadline - time.monotonic()) > 0:
        try:
            with socket.create_connection(coordinator, timeout=left) as peer:
                peer.sendall(json.dumps(greeting).encode() + b"\n")
                # The coordinator waits no longer than that for the others, and answers then.
                peer.settimeout(timeout + _GRACE)
                answer = _line(peer)
        except OSError as caught:
            reason, answer = caught, b""
        if answer:
            problem = json.loads(answer)["problem"]
            if problem is not None:
                raise RuntimeError(problem)
            return
        time.sleep(_PAUSE)
    error(
        RuntimeError,
        _USER,
        f"process {process} has not reached the coordinator within {timeout:g} seconds.",
        got=f"{coordinator}: {reason}",
        expected="process 0 of the same program, which listens there",
        fix="start it with the same coordinator_address, see that no firewall is between, or "
        "wait longer: initialization_timeout",
    )
