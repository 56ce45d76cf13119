"""Execution: buffers in, buffers out.  Step 7 of a call.

Input: an executable and flat arguments.  Output: arrays; also the data that lets jaxlib's C++ call
path do the same without Python.  Where `debug_nans` or `debug_infs` asks for it, results are
searched for NaNs and infinities.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib import xla_client

from minijax.core import config, dtypes, tree_registry
from minijax.core.errors import error, message
from minijax.runtime import effect_tokens, in_flight, placement, watch
from minijax.runtime.array import Array, Token, is_array
from minijax.runtime.callbacks import HostCallback
from minijax.runtime.transfer import InputsHandler, ResultsHandler, copied, own_part


class Bad(NamedTuple):
    """The first element of an array that is not finite: what it is, and where."""

    word: str
    position: tuple[int, ...]


class Looking(NamedTuple):
    """What to look for."""

    nans: bool
    infs: bool


def looking_for() -> Looking:
    """What the flags in force ask for."""
    return Looking(config.debug_nans.value, config.debug_infs.value)


def find_bad(x: Any, looking: Looking | None = None) -> Bad | None:
    """The first element of `x` that must not be, or None."""
    looking = looking_for() if looking is None else looking
    if isinstance(x, Token) or not dtypes.issubdtype(x.dtype, np.inexact):
        return None
    value = np.asarray(x)
    for wanted, test, word in ((looking.nans, np.isnan, "NaN"), (looking.infs, np.isinf, "inf")):
        if wanted:
            bad = test(value)
            if bad.any():
                return Bad(word, tuple(map(int, np.argwhere(bad)[0])))
    return None


def not_finite(
    name: str, bad: Bad, x: Any, *, more: str = "", fix: str | None = None, at: str | None = None
) -> FloatingPointError:
    """The error for `x`, made by what is called `name`, which holds a bad element."""
    return FloatingPointError(
        message(
            name,
            f"produced {'a' if bad.word == 'NaN' else 'an'} {bad.word} at index {bad.position}.",
            got=x.aval.str_short() + more,
            fix=fix,
            at=at,
        )
    )


class FastPathData(NamedTuple):
    """What jaxlib's call path needs to run an executable; the field names are jaxlib's."""

    xla_executable: Any
    out_pytree_def: Any
    in_shardings: Any
    out_shardings: Any
    out_avals: Any
    out_committed: Any
    kept_var_bitvec: Any
    in_device_local_layouts: Any
    const_args: Any


class Executable:
    """A compiled program: called with all its arguments, used or not.

    Attributes:
        loaded: jaxlib's executable; None where a back end has compiled for itself.
        foreign: what runs the program then: it takes the arguments and returns the results.
        devices: where it runs.
        place: puts arguments where it needs them, of which it knows types and placements.
        build: makes arrays of what it returns, of which it knows the same.
        committed: whether its results stay where they are.
        donated: indices of arguments whose memory it takes.
        ordered: its ordered effects, whose tokens come before arguments and results.
        has_effects: whether it has any effect.
        callbacks: the Python functions that it calls, which may fail.
        code: XLA's bytes that it was loaded from; None where it was compiled here.
        joint: what says to other processes that it runs, if it needs some of their devices.
        waits: whether it waits for its turn, as programs on several host devices do: `window`.
        returns_parts: whether its results are those of this process's devices only.
        diagnose: of what is bad in which result, and the arguments: raises an error that says why.
    """

    def __init__(
        self,
        loaded: Any,
        devices: tuple[Any, ...],
        place: InputsHandler,
        build: ResultsHandler,
        *,
        committed: bool = False,
        donated: Sequence[int] = (),
        ordered: Sequence[Any] = (),
        has_effects: bool = False,
        callbacks: Sequence[HostCallback] = (),
        code: bytes | None = None,
        joint: watch.Joint | None = None,
        diagnose: Callable[..., None] | None = None,
    ) -> None:
        self.loaded = loaded
        self.foreign: Callable[[Sequence[Any]], Sequence[Any]] | None = None
        self.devices = devices
        self.place = place
        self.build = build
        self.committed = committed
        self.donated = tuple(donated)
        self.ordered = tuple(ordered)
        self.has_effects = has_effects
        self.callbacks = tuple(callbacks)
        self.code = code
        self.joint = joint
        self.waits = len(devices) > 1 and devices[0].platform == "cpu"
        self.diagnose = diagnose
        self.returns_parts = any(target.devices != devices for target in build.targets)

    def shared_with(self, diagnose: Callable[..., None]) -> Executable:
        """The same executable for another program of the same structure."""
        twin = copy.copy(self)
        twin.diagnose = diagnose
        return twin

    def __call__(self, args: Sequence[Any]) -> Sequence[Array | Token]:
        """Runs the program; `args` are arrays or host values of the types it was made for.

        Raises:
            Exception: what a Python function raised that the program calls.
            FloatingPointError: a result is not finite, where the user wants to know.
            RuntimeError: the user has forbidden it.
        """
        if config.no_execution.value:
            problem = "a compiled program would run, which `no_execution` forbids."
            got = f"a program with results {', '.join(map(str, self.build.avals))}"
            error(RuntimeError, "no_execution", problem, got=got)
        in_flight.check_not_forked()
        if self.foreign is not None:
            return self.foreign(args)
        buffers = self.place(args)
        if len(self.devices) == 1:
            in_flight.check_alive(*buffers)
        if self.donated:
            self._leave_shared(buffers, args)
        if len(self.devices) > 1:
            results = self._run_on_mesh(buffers, args)
        elif self.has_effects:
            results = self._start(buffers)[0]
        else:
            results = in_flight.surfacing(self.loaded.execute_sharded, buffers)
            results = results.consume_with_handlers(self.build.native)
        if self.returns_parts:
            results = list(map(own_part, results))
        outs = self.build.wrapped(results)
        if config.debug_nans.value or config.debug_infs.value:
            self._check_finite(outs, args)
        return outs

    def _leave_shared(self, buffers: list[Any], args: Sequence[Any]) -> None:
        """Copies memory that the program would take from arrays other than its arguments."""
        consts, kept = self.place.consts, self.place.kept
        for i in self.donated:
            if kept is not None and i not in kept:
                continue
            at = len(consts) + (i if kept is None else kept.index(i))
            if is_array(args[i]) and placement.is_shared(buffers[at]):
                buffers[at] = copied(buffers[at])
                args[i].delete()

    def _run_on_mesh(self, buffers: Sequence[Any], args: Sequence[Any]) -> Sequence[Any]:
        """Runs the program on several devices, where XLA does not look at what it is given."""
        if self.donated:
            _check_donations(args, self.donated)
        if self.waits:
            in_flight.check_may_start()

        def start() -> tuple[Sequence[Any], Any]:
            with in_flight.lock:
                if self.waits:
                    in_flight.claim(self.devices[0].client)
                    in_flight.admit()
                results, running = self._start_and_donate(buffers, args)
                if self.waits:
                    in_flight.started(running, self.devices[0].client)
            return results, running

        return self.callbacks[0].turns.run(start, self.joint) if self.callbacks else start()[0]

    def _start_and_donate(
        self, buffers: Sequence[Any], args: Sequence[Any]
    ) -> tuple[Sequence[Any], Any]:
        # Between the look at an argument and the start no other thread may delete it.
        with in_flight.memory_lock:
            in_flight.check_alive(*buffers)
            started = self._start(buffers)
            for i in self.donated:
                if is_array(args[i]):
                    args[i].delete()
        return started

    def _start(self, buffers: Sequence[Any]) -> tuple[Sequence[Any], Any]:
        """Runs the program after those that had the same ordered effects on its devices."""
        taken = [effect_tokens.take(effect, self.devices) for effect in self.ordered]
        if self.joint is not None:
            self.joint.begin()
        running = in_flight.surfacing(
            self.loaded.execute_sharded, [*taken, *buffers], with_tokens=True
        )
        ended = running.consume_token()
        if self.has_effects:
            effect_tokens.add_pending(ended)
        results: Sequence[Any] = running.consume_with_handlers(self.build.native)
        for effect, token in zip(self.ordered, results, strict=False):
            effect_tokens.leave(effect, self.devices, token)
        return results[len(self.ordered) :], ended

    def _check_finite(self, outs: Sequence[Array | Token], args: Sequence[Any]) -> None:
        for out in outs:
            found = find_bad(out)
            if found is not None:
                if self.diagnose is not None:
                    self.diagnose(found, out, args)
                raise not_finite("a program", found, out)

    @property
    def may_be_called_by_cpp(self) -> bool:
        """Whether jaxlib's call path may run the program: nothing is to be done before or after."""
        if self.has_effects or self.callbacks or self.joint or self.foreign:
            return False
        is_usual = self.build.are_buffers and not any(x.layout for x in self.place.targets)
        if self.donated:
            return is_usual and len(self.devices) == 1 and placement.may_donate_in_cpp()
        return is_usual

    def fast_path(self, num_args: int, result: object) -> FastPathData | None:
        """What C++ needs to make the same call, whose results are a tree like `result`."""
        out_tree = tree_registry.dispatch_registry.flatten(result)[1]
        if self.waits:
            out_tree = in_flight.tree_of_started(out_tree)
            if out_tree is None:
                return None
        consts, kept = self.place.consts, self.place.kept
        used = frozenset(range(num_args) if kept is None else kept)
        bits = [i in used for i in range(num_args)]
        placements = [buffer._sharding for buffer in consts] + self.place.targets
        return FastPathData(
            xla_executable=self.loaded,
            out_pytree_def=out_tree,
            in_shardings=placements,
            out_shardings=self.build.targets,
            out_avals=self.build.buffer_avals,
            out_committed=[self.committed] * len(self.build.avals),
            kept_var_bitvec=[True] * len(consts) + bits,
            in_device_local_layouts=[None] * len(placements),
            const_args=consts,
        )


def _check_donations(args: Sequence[Any], donated: Sequence[int]) -> None:
    """Refuses to take the memory of an array that the program is given once more.

    Raises:
        RuntimeError: the text names the argument.
    """
    used = [id(x.buffer) for x in args if is_array(x)]
    if len(set(used)) == len(used):
        return
    for i in donated:
        x = args[i]
        if is_array(x) and used.count(id(x.buffer)) > 1:
            problem = f"the donated argument {i} is given more than once."
            got = f"an array {x.aval.str_short()}, for several arguments"
            expected = "an array of its own: its memory will hold a result"
            fix = "pass a copy, such as x + 0, or do not donate it"
            error(xla_client.XlaRuntimeError, "jit", problem, got=got, expected=expected, fix=fix)
