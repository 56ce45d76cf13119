"""How processes find one another, and leave: what goes wrong is an error, and nothing hangs."""

import socket
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

import minijax
from minijax.runtime.processes import distributed
from minijax.runtime.processes.distributed import Address
from tests.runtime.processes import launch

pytestmark = pytest.mark.feature("NP-09")


def meeting(claims: Sequence[tuple[int, int]], timeout: float = 10) -> list[str]:
    """What each thread that says to be process i of n is told, where i, n are its claim."""
    address = Address.parsed(launch.free_address(), "address")

    def part(claim: tuple[int, int]) -> str:
        try:
            for wire in distributed.meet(address, address, *claim, timeout).values():
                wire.close()
        except RuntimeError as error:
            return str(error)
        return "met"

    with ThreadPoolExecutor(len(claims)) as pool:
        return list(pool.map(part, claims))


def test_processes_meet() -> None:
    assert meeting([(2, 4), (0, 4), (3, 4), (1, 4)]) == ["met"] * 4


@pytest.mark.slow
def test_missing_processes_are_named_to_all() -> None:
    # Long enough for a busy machine to let the other one come.
    told = meeting([(0, 4), (2, 4)], timeout=3)
    assert all("process(es) 1, 3 of 4 missing" in text for text in told), told


def test_unreachable_coordinator_is_named() -> None:
    (told,) = meeting([(1, 2)], timeout=0.2)
    assert "process 1 has not reached the coordinator within 0.2 seconds" in told
    assert "initialization_timeout" in told


def test_two_processes_of_one_number_are_refused() -> None:
    told = meeting([(0, 3), (1, 3), (1, 3)])
    assert all("two processes have process_id=1" in text for text in told)


def test_processes_agree_how_many_they_are() -> None:
    told = meeting([(0, 2), (1, 3)])
    assert all("2 from process 0, 3 from process 1" in text for text in told)


def test_strangers_are_not_heard() -> None:
    address = Address.parsed(launch.free_address(), "address")
    with ThreadPoolExecutor(2) as pool:
        coordinator = pool.submit(distributed.meet, address, address, 0, 2, 10)
        other = None
        while other is None:
            try:
                other = socket.create_connection(address)
            except ConnectionRefusedError:
                continue
        with other:
            other.sendall(b"GET / HTTP/1.1\n")
        own, others = distributed.meet(address, address, 1, 2, 10), coordinator.result()
        assert (own.keys(), others.keys()) == ({0}, {1})
        for wire in (own[0], others[1]):
            wire.close()


BAD_WORDS = [
    b"",
    b"\n",
    b"{\n",
    b"[" * 4096,
    b"\xff\xfe\n",
    b'["minijax"]\n',
    b'["minijax", "1", 2]\n',
    b'["minijax", true, 2]\n',
    b'["other", 1, 2]\n',
    b'{"program": "minijax"}\n',
    b"GET / HTTP/1.1\r\n\r\n",
]


def test_bad_words_of_strangers_disturb_nobody() -> None:
    address = Address.parsed(launch.free_address(), "address")

    def stranger(words: bytes) -> None:
        with socket.create_connection(address) as other:
            other.sendall(words)

    with ThreadPoolExecutor(1) as pool:
        coordinator = pool.submit(distributed.meet, address, address, 0, 2, 30)
        while not _answers(address):
            time.sleep(0.01)
        for words in BAD_WORDS:
            stranger(words)
        wires = [distributed.meet(address, address, 1, 2, 10)[0], coordinator.result()[1]]
    for wire in wires:
        wire.close()


def _answers(address: Address) -> bool:
    try:
        socket.create_connection(address).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("process", [-1, -2, 7])
def test_numbers_that_no_process_has_are_refused_to_all(process: int) -> None:
    told = meeting([(0, 2), (process, 2)])
    assert all(f"a process says to have process_id={process}" in text for text in told), told


@pytest.mark.parametrize("words", [words for words in BAD_WORDS[1:] if words != b'["minijax"]\n'])
def test_foreign_server_is_named_at_once(words: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        address = Address("127.0.0.1", server.getsockname()[1])
        told = pool.submit(_told, address)
        other = server.accept()[0]
        with other:
            other.sendall(words)
            other.shutdown(socket.SHUT_WR)
            text = told.result(timeout=5)
    assert "who listens at the coordinator's address does not answer as one" in text
    assert f"127.0.0.1:{address.port}: " in text
    assert "choose another port" in text


def _told(address: Address) -> str:
    try:
        distributed.meet(address, address, 1, 2, 60)
    except RuntimeError as error:
        return str(error)
    return "met"


def test_silent_server_is_named_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed, "_SECONDS_TO_ANSWER", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        text = _told(Address("127.0.0.1", server.getsockname()[1]))
    assert "who listens at the coordinator's address does not answer as one" in text


def test_coordinator_that_goes_while_others_wait_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        told = pool.submit(_told, Address("127.0.0.1", server.getsockname()[1]))
        with server.accept()[0] as other:
            assert other.recv(100) == b'["minijax", 1, 2]\n'
            other.sendall(b'["minijax"]\n')
        assert "the coordinator has gone before all processes" in told.result(timeout=5)


@pytest.mark.slow
def test_process_that_goes_while_others_meet_does_not_count() -> None:
    address = Address.parsed(launch.free_address(), "address")
    with ThreadPoolExecutor(1) as pool:
        coordinator = pool.submit(distributed.meet, address, address, 0, 3, 3)
        while not _answers(address):
            time.sleep(0.01)
        with socket.create_connection(address) as gone:
            gone.sendall(b'["minijax", 1, 3]\n')
            assert gone.recv(100) == b'["minijax"]\n'
        with pytest.raises(RuntimeError, match="process 1 has gone again"):
            distributed.meet(address, address, 2, 3, 10)
        with pytest.raises(RuntimeError, match="process 1 has gone again"):
            coordinator.result()


def test_coordinator_says_that_it_cannot_listen() -> None:
    with socket.create_server(("localhost", 0)) as taken:
        address = Address("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(RuntimeError, match=r"(?s)cannot listen at its address.*another port"):
            distributed.meet(address, address, 0, 2, 1)


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({}, ValueError, "coordinator_address is needed"),
        ({"num_processes": None}, ValueError, r"(?s)num_processes is needed.*MINIJAX_NUM_PROCES"),
        ({"process_id": None}, ValueError, "process_id is needed"),
        ({"process_id": 2}, ValueError, "process_id=2, num_processes=2"),
        ({"process_id": -1}, ValueError, "process_id=-1, num_processes=2"),
        ({"process_id": "1"}, TypeError, "process_id must be an integer"),
        ({"local_device_ids": ["a"]}, TypeError, "local_device_ids must be an integer"),
        ({"cluster_detection_method": "mpi"}, ValueError, "no such way to find the other"),
        ({"slice_index": 0, "partition_index": 0}, ValueError, "two names of one number"),
    ],
)
def test_arguments_of_initialize_are_checked(
    given: dict[str, object], error: type[Exception], text: str
) -> None:
    whole = {"coordinator_address": "localhost:1234", "num_processes": 2, "process_id": 0}
    arguments = {**whole, **given} if given else {}
    with pytest.raises(error, match=text):
        minijax.distributed.initialize(**arguments)


@pytest.mark.parametrize("text", ["localhost", "localhost:", ":80", "localhost:0", "h:99999"])
def test_addresses_have_host_and_port(text: str) -> None:
    with pytest.raises(ValueError, match=r"(?s)coordinator_address is no address.*host:port"):
        Address.parsed(text, "coordinator_address")


def test_addresses_of_version_6_are_in_brackets() -> None:
    address = Address.parsed("[::1]:80", "coordinator_address")
    assert address == ("::1", 80)
    assert str(address) == "[::1]:80"


def test_initialization_comes_before_devices() -> None:
    minijax.devices()
    with pytest.raises(RuntimeError, match="has made its devices already"):
        minijax.distributed.initialize("localhost:1234", 2, 0)


def test_process_alone_is_not_initialized() -> None:
    assert not minijax.distributed.is_initialized()
    minijax.distributed.shutdown()


@pytest.mark.slow
def test_process_that_fails_ends_no_other() -> None:
    first, second = launch.run("leaving")
    assert (first.status, first.facts) == (0, {"devices": 4})
    assert second.status == 1
    assert second.text.rstrip().endswith("ValueError: this process has failed")


@pytest.mark.slow
def test_nothing_outlives_its_time() -> None:
    with pytest.raises(AssertionError, match=r"after 0\.01 s leaving still runs"):
        launch.run("leaving", seconds=0.01)
