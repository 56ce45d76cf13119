"""Programs in flight: how many may be, and the exceptions of Python functions that they call.

A client of n host devices has a pool of at least n threads.  Starting a program takes n of them,
each of which waits while its device has 32 programs in flight; running it takes n more, which wait
for one another.  Once threads that wait fill the pool nothing moves: collectives abort the process,
other programs hang.  So multi-device programs on host devices start one after the other, and only
so many before the oldest has finished: threads that start programs then never wait.

While a program calls a Python function it keeps a thread of the pool, on several devices most of
them.  What that call, or a thread that it has started, waits for must not come after the program.

Of an exception that a Python callback raises, XLA keeps no more than the text.  So the exception
itself is kept here under a number, and the text that XLA gets is that number: wherever the failure
of a program surfaces, it surfaces as the exception that the user's function has raised.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import os
import re
import sys
import threading
import time
import types
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.thread import ThreadPoolExecutor
from typing import Any, NoReturn

from jaxlib import _jax
from jaxlib.xla_client import XlaRuntimeError

from minijax.core import config, native, tree_registry
from minijax.core.errors import DeletedArrayError, error
from minijax.runtime import watch

# Below the 32 of XLA, with room for programs of single devices: decision 0008.
MOST_IN_FLIGHT = 24

# Reentrant, as handlers of signals and finalizers may run programs too.
lock = threading.RLock()
"""Held while a program waits for its turn and starts."""

memory_lock = threading.RLock()
"""Held while arguments are looked at and a program starts, and while memory is deleted."""

_running: deque[Any] = deque()


def check_alive(*buffers: Any) -> None:
    """Refuses memory that was freed.

    Raises:
        DeletedArrayError: a buffer, or a part of one, is deleted.
    """
    for buffer in buffers:
        # Of an array over several devices, C++ looks at the first part alone.
        if buffer.is_deleted() or any(p.is_deleted() for p in getattr(buffer, "parts", ())):
            refuse_deleted(str(buffer.aval), None)


def refuse_deleted(got: str | None, cause: Exception | None) -> NoReturn:
    """Raises the error about the use of memory that was freed.

    Raises:
        DeletedArrayError: always.
    """
    fix = "arrays donated to a jitted function (donate_argnums) cannot be used again; "
    fix += "keep the function's result instead"
    problem = "the array has been deleted."
    error(DeletedArrayError, "Array", problem, got=got, fix=fix, cause=cause)


# In seconds: for how long memory that is let go stays for threads that have begun to read it.
_FOR_READERS = 1.0
_unread: deque[tuple[float, Any]] = deque()


def keep_for_readers(buffer: object, make_room: Callable[[], Any]) -> None:
    """Keeps what is behind an array that is about to be deleted, while other threads may read it.

    C++ reads, and waits to, without a hold on what it reads.  `make_room` makes an array to keep
    it in.
    """
    with memory_lock:
        # One of the threads is that which lets go, later on, of what is kept.
        if len(sys._current_frames()) - bool(_unread) > 1:
            room = make_room()
            room._replace_with(buffer)
            room.is_no_users = True
            _unread.append((time.monotonic(), room))
            if len(_unread) == 1:
                _forget_later()


def _forget_later() -> None:
    _clock.timer = threading.Timer(_FOR_READERS, _forget_unread)
    _clock.timer.daemon = True
    _clock.timer.start()


def _forget_unread() -> None:
    """Lets go of what was kept for readers, if it was computed a while ago."""
    now = time.monotonic()
    with memory_lock:
        for _ in range(len(_unread)):
            since, kept = _unread.popleft()
            since = since if _is_computed(kept) else now
            if now < since + _FOR_READERS:
                _unread.append((since, kept))
        if _unread:
            _forget_later()


def _is_computed(buffer: object) -> bool:
    with contextlib.suppress(XlaRuntimeError):
        return bool(native.is_ready(buffer))
    return True


def block(buffer: object) -> None:
    """Waits for a C++ array.

    Raises:
        RuntimeError: its computation has failed.
    """
    watch.wait_for(buffer)
    native.block_until_ready(buffer)


def admit(others: int = MOST_IN_FLIGHT - 1) -> None:
    """Waits until no more than so many programs are under way; called with `lock` held."""
    while _running and len(_running) + starts.unmarked > others:
        oldest = _running[0]
        # Whether that program has failed is for those to find out who use its results.
        with contextlib.suppress(XlaRuntimeError):
            block(oldest)
        while _running and _running[0] is oldest:
            _running.popleft()


def started(token: _jax.Array | _jax.ShardedToken, client: object) -> None:
    """Remembers a program that runs, by the token it ends with; called with `lock` held."""
    count = 1
    if starts.alone is not None and starts.alone[1] == client:
        # Programs of a client run one after the other: its end is that of those before.
        count += starts.unmarked
        starts.unmarked = 0
    _running.extend([token] * count)


def wait_for_all() -> None:
    """Waits until no program is under way."""
    with lock:
        admit(0)


by_cpp: Any = _jax.config.Config("minijax_by_cpp", False, include_in_jit_key=True)
"""Whether C++ starts this thread's programs over several host devices: so long as it is the only
thread they start one after the other without a lock."""

# Part of the keys of calls as well: what C++ learns from the call that claims is under the old key.
_change: Any = _jax.config.Config("minijax_change", None, include_in_jit_key=True)

# The thread whose programs C++ starts, and their client; whether there have been other threads or
# clients since, so that C++ starts none; how many it has started of which no token tells the end.
starts = types.SimpleNamespace(alone=None, are_several=False, unmarked=0)
# What lets go of memory that was kept for readers.
_clock = types.SimpleNamespace(timer=threading.Timer(0.0, bool))


def claim(client: object) -> None:
    """Lets C++ start the programs of the only thread, until that starts another thread.

    Called with `lock` held before each start that is not C++'s, with the client of its devices.
    """
    me = threading.get_ident(), client
    if starts.alone == me or starts.are_several or inside.call in calls:
        return
    _mark_threads()
    starts.are_several = starts.alone is not None
    is_alone = not starts.are_several and len(sys._current_frames()) == 1
    by_cpp.set_local(is_alone)
    if is_alone:
        ask_python_again()
        starts.alone = me


def ask_python_again() -> None:
    """Makes C++ ask Python about the next call of each program, as if it knew none."""
    _change.set_global(object())


class Started:
    """A node of trees around the results of a program; C++ calls back where it makes them."""


def tree_of_started(results: Any) -> Any:
    """The tree that C++ makes of results if it starts the program.

    None where Python has to: there are several threads, or no result tells when the program ends.
    """
    if not by_cpp.value or not results.num_leaves:
        return None
    registry = tree_registry.dispatch_registry
    return results.from_node_data_and_children(registry, (Started, None), [results])


def _started_by_cpp(_: object, results: Sequence[Any]) -> Any:
    """Counts a program that C++ has started; waits for all of them once they are many."""
    starts.unmarked += 1
    if starts.are_several:
        # A thread that Python has not started, such as one of a GUI's library, runs programs too.
        by_cpp.set_local(False)
    if len(_running) + starts.unmarked >= MOST_IN_FLIGHT:
        with lock:
            result = tree_registry.dispatch_registry.flatten(results[0])[0][0]
            started(result, starts.alone[1])
            admit(0)
    return results[0]


tree_registry.dispatch_registry.register_node(Started, lambda _: ((), None), _started_by_cpp)


# In seconds: for how long the end waits for threads that compute, and how often it looks.
_PATIENCE = 20.0
_BETWEEN_LOOKS = 0.02


def end_threads() -> None:
    """Ends daemon threads that are at work, by `SystemExit`; called before the interpreter ends.

    After that Python ends a daemon thread where it comes back from C++, in the midst of C++, which
    ends the process.  Threads that sleep stay: they are at work if the process uses its processor.
    """
    with memory_lock:
        _clock.timer.cancel()
    end, quiet = time.monotonic() + _PATIENCE, 0
    while (threads := _daemons()) and quiet < 3 and time.monotonic() < end:
        for thread in threads:
            ident, ending = ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ending)
        used = time.process_time()
        time.sleep(_BETWEEN_LOOKS)
        quiet = quiet + 1 if time.process_time() - used < _BETWEEN_LOOKS / 20 else 0


def _daemons() -> list[threading.Thread]:
    """The daemon threads but those of XLA, by whose names Python knows them if they call it."""
    return [x for x in threading.enumerate() if x.daemon and not x.name.startswith("Dummy-")]


class _Inside(threading.local):
    call: object = None

    def __init__(self) -> None:
        # Asked first where a program calls Python; only there no frame of Python is below.
        self.is_xlas = sys._getframe(1).f_back is None


inside = _Inside()
"""The call that this thread is part of: it runs the function, or the function has started it; and
whether the thread is one of XLA's."""

calls: dict[object, bool] = {}
"""The calls that have not returned yet; whether the program that calls runs on several devices."""


@contextlib.contextmanager
def calling(of_several: bool) -> Iterator[None]:
    """While a Python function is called: this thread, and those that it starts, are part of it."""
    _mark_threads()
    call = object()
    calls[call] = of_several
    try:
        with _part_of(call), native.memory_hidden():
            yield
    finally:
        del calls[call]


@contextlib.contextmanager
def _part_of(call: object) -> Iterator[None]:
    outer, inside.call = inside.call, call
    try:
        with config.override(by_cpp, False):
            yield
    finally:
        inside.call = outer


@functools.cache
def _mark_threads() -> None:
    """From now on threads, and tasks of executors, are part of the call that starts them.

    Who starts a thread is alone no longer; it is in the midst of no start of a program.
    """
    start: Any = threading.Thread.start
    submit: Any = ThreadPoolExecutor.submit

    @functools.wraps(start)
    def start_marked(thread: threading.Thread) -> None:
        if inside.call in calls:
            thread.run = _part_of(inside.call)(thread.run)  # type: ignore[method-assign]
        starts.are_several |= starts.alone is not None
        by_cpp.set_local(False)
        start(thread)

    @functools.wraps(submit)
    def submit_marked(executor: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        if inside.call in calls:
            function = _part_of(inside.call)(function)
        return submit(executor, function, *args, **kwargs)

    threading.Thread.start = start_marked  # type: ignore[method-assign, assignment]
    ThreadPoolExecutor.submit = submit_marked  # type: ignore[method-assign]


_forked: set[int] = set()


def forked() -> None:
    """Called in a forked child, where the threads of the parent's pools are missing."""
    by_cpp.set_local(False)
    _forked.add(os.getpid())


UNFORKED = (
    'start processes with multiprocessing.get_context("spawn") or "forkserver", or fork before '
    "the first computation"
)
"""What to do in place of forking a process that has devices."""


def check_not_forked() -> None:
    """Refuses to compute in a forked child.

    Raises:
        RuntimeError: this process is one.
    """
    if _forked:
        problem = "this process was forked from one that had devices, whose threads are missing "
        problem += "here: what they were to compute would never be done."
        error(RuntimeError, "os.fork", problem, fix=UNFORKED)


def check_may_start() -> None:
    """Refuses multi-device programs that would wait for ever.

    Raises:
        RuntimeError: this is part of a call by such a program.
    """
    of_several = calls.get(inside.call)
    # There is a thread more than a program over several devices needs: one call may keep it.
    if of_several or (of_several is False and len(calls) > 1):
        problem = "a callback of a program over several devices cannot run another one"
        if not of_several:
            problem = "while another callback runs, none can run a program over several devices"
        problem += ": each would wait for the other for ever."
        fix = "compute the value before and close over it, return the operands from the program, "
        fix += "or compute with NumPy or on one device"
        error(RuntimeError, "jit", problem, fix=fix)


def refuse_to_wait() -> NoReturn:
    """Tells a part of a call that it waits for its own end.

    Raises:
        RuntimeError: always.
    """
    problem = "a callback would wait for ever for what comes after the program that calls it."
    fix = (
        "use the callback's arguments and arrays computed before; wait for others after the program"
    )
    error(RuntimeError, "callback", problem, fix=fix)


# In seconds.
_LONGEST_IDLE = 4.0


def check_may_wait(buffer: _jax.Array) -> None:
    """Waits for an array as part of a call, while the wait may have an end.

    Raises:
        RuntimeError: for seconds nothing was computed.  So the array comes after the program.
    """
    pause, idle = 1e-4, 0.0
    is_cpu = inside.call in calls and buffer._sharding.devices[0].platform == "cpu"
    while is_cpu and inside.call in calls and not native.is_ready(buffer):
        spent = time.process_time()
        time.sleep(pause)
        idle = idle + pause if time.process_time() - spent < pause / 20 else 0.0
        if idle > _LONGEST_IDLE:
            refuse_to_wait()
        pause = min(2 * pause, 0.1)


def wait(buffer: _jax.Array) -> None:
    """Waits for an array; a failure of a callback is the exception that it was.

    Raises:
        RuntimeError: the wait would have no end.
    """
    if calls:
        check_may_wait(buffer)
    surfacing(block, buffer)


_MARK = "minijax-callback-failure-"
_NUMBER_IN_TEXT = re.compile(_MARK + r"(\d+)")
# Exceptions hold the frames that raised them, and so the arrays in those.
_MOST_KEPT = 64


class Failure:
    """An exception of a Python function that a program has called.

    Attributes:
        error: the exception.
        traceback: its traceback, from the user's function inwards.
        has_surfaced: whether it was raised to the user.
    """

    __slots__ = ("error", "has_surfaced", "traceback")

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.traceback = error.__traceback__ and error.__traceback__.tb_next
        self.has_surfaced = False

    def surface(self) -> BaseException:
        """The exception, to be raised: each time with its own traceback alone."""
        self.has_surfaced = True
        return self.error.with_traceback(self.traceback)


_kept: dict[int, Failure] = {}
_FORGOTTEN = Failure(RuntimeError("callback: its exception is gone, as others failed since."))
_FORGOTTEN.has_surfaced = True
_numbers = itertools.count()
_keeping = threading.Lock()


def keep(failure: Failure) -> RuntimeError:
    """Keeps what a callback has raised; what to tell XLA in its place."""
    number = next(_numbers)
    with _keeping:
        _kept[number] = failure
        while len(_kept) > _MOST_KEPT:
            told = (i for i, failure in _kept.items() if failure.has_surfaced)
            del _kept[next(told, next(iter(_kept)))]
    return RuntimeError(f"{_MARK}{number}")


def behind(error: Exception) -> Failure:
    """The failure that an error of XLA tells of.

    Raises:
        Exception: the error itself, if no callback has caused it.
    """
    found = _NUMBER_IN_TEXT.search(str(error))
    if found is not None:
        return _kept.get(int(found.group(1)), _FORGOTTEN)
    if _OF_DELETED.search(str(error)):
        refuse_deleted(None, None)
    watch.explain(error)
    raise error


# jaxlib 0.11 and later say "mutated" if another thread deletes an array while it is copied.
_OF_DELETED = re.compile("deleted or donated|has been deleted|mutated concurrently")


def surfacing(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`function(*args, **kwargs)`, where failures of callbacks are the exceptions they were.

    Raises:
        DeletedArrayError: memory was freed before the call, or in its midst by another thread.
    """
    try:
        return function(*args, **kwargs)
    except (XlaRuntimeError, BufferError) as error:
        failure = behind(error)
    # Outside of the handler, so that XLA's error does not become the context of the user's.
    raise failure.surface()


def failure_of(buffer: object) -> Failure | None:
    """Waits for a C++ array, and gives the failure of the callback that has made waiting fail."""
    try:
        block(buffer)
    except XlaRuntimeError as error:
        return behind(error)
    return None
