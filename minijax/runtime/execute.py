"""Execution: buffers in, buffers out.  Step 7 of the walk of an argument.

Input: an executable and flat arguments.  Output: arrays.  Also the data that lets jaxlib's C++
call path do the same without Python.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import config, dtypes
from minijax.core.trace import Tracer, leaked
from minijax.runtime import failures, finiteness, placement, tokens, versions
from minijax.runtime.array import Array, Token, array_from_host, physical_aval, to_numpy, wrap


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
    """A compiled program on one device: called with all its arguments, used or not.

    Attributes:
        loaded: jaxlib's executable.
        device: where it runs.
        in_avals: types of the arguments it uses.
        out_avals: types of its results.
        kept: indices of the arguments it uses, or None for all of them.
        committed: whether its results stay where they are.
        donated: indices of arguments whose memory it takes.
        ordered: its ordered effects, whose tokens come before arguments and results.
        has_effects: whether it has any effect.
        calls_python: whether it calls Python functions, which may fail.
        diagnose: of what is bad in which result, and the arguments: raises an error that says why.
    """

    __slots__ = (
        "calls_python",
        "committed",
        "consts",
        "device",
        "diagnose",
        "donated",
        "handlers",
        "has_effects",
        "in_avals",
        "kept",
        "loaded",
        "ordered",
        "out_avals",
        "plain_outs",
    )

    def __init__(
        self,
        loaded: Any,
        device: Any,
        in_avals: Sequence[Any],
        out_avals: Sequence[Any],
        *,
        kept: Sequence[int] | None = None,
        consts: Sequence[Any] = (),
        committed: bool = False,
        donated: Sequence[int] = (),
        ordered: Sequence[Any] = (),
        has_effects: bool = False,
        calls_python: bool = False,
        diagnose: Callable[..., None] | None = None,
    ) -> None:
        self.loaded = loaded
        self.device = device
        self.in_avals = list(in_avals)
        self.out_avals = list(out_avals)
        self.kept = kept
        self.consts = list(consts)
        self.committed = committed
        self.donated = tuple(donated)
        self.ordered = tuple(ordered)
        self.has_effects = has_effects
        self.calls_python = calls_python
        self.diagnose = diagnose
        sharding = placement.native_sharding(device)
        self.handlers = [
            versions.result_handler(aval, sharding, committed)
            for aval in [tokens.TOKEN] * len(ordered) + list(map(physical_aval, out_avals))
        ]
        self.plain_outs = not any(aval.is_extended for aval in out_avals)

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
        """
        used = args if self.kept is None else [args[i] for i in self.kept]
        buffers = list(self.consts)
        for x, aval in zip(used, self.in_avals, strict=True):
            buffers.append(
                x.buffer
                if type(x) is Array and x.buffer._sharding.device is self.device
                else buffer_on(x, aval, self.device)
            )
        if self.has_effects:
            results = self._run_in_order(buffers)
        else:
            results = failures.surfacing(self.loaded.execute_sharded, buffers)
            results = results.consume_with_handlers(self.handlers)
        outs: Sequence[Array | Token] = (
            list(map(Array, results))
            if self.plain_outs
            else list(map(wrap, results, self.out_avals))
        )
        if config.debug_nans.value or config.debug_infs.value:
            self._check_finite(outs, args)
        return outs

    def _run_in_order(self, buffers: Sequence[Any]) -> Sequence[Any]:
        """Runs the program after those that had the same ordered effects on this device."""
        taken = [tokens.take(effect, self.device) for effect in self.ordered]
        running = failures.surfacing(
            self.loaded.execute_sharded, [*taken, *buffers], with_tokens=True
        )
        tokens.add_pending(running.consume_token())
        results: Sequence[Any] = running.consume_with_handlers(self.handlers)
        for effect, token in zip(self.ordered, results, strict=False):
            tokens.leave(effect, self.device, token)
        return results[len(self.ordered) :]

    def _check_finite(self, outs: Sequence[Array | Token], args: Sequence[Any]) -> None:
        for out in outs:
            found = finiteness.find_bad(out)
            if found is not None:
                if self.diagnose is not None:
                    self.diagnose(found, out, args)
                raise finiteness.error("a program", found, out)

    def fast_path(self, num_args: int, out_tree: Any) -> FastPathData:
        """What C++ needs to make the same call."""
        sharding = placement.native_sharding(self.device)
        kept = range(num_args) if self.kept is None else self.kept
        bits = [False] * num_args
        for i in kept:
            bits[i] = True
        num_inputs = len(self.consts) + len(self.in_avals)
        return FastPathData(
            xla_executable=self.loaded,
            out_pytree_def=out_tree,
            in_shardings=[sharding] * num_inputs,
            out_shardings=[sharding] * len(self.out_avals),
            out_avals=list(map(physical_aval, self.out_avals)),
            out_committed=[self.committed] * len(self.out_avals),
            kept_var_bitvec=[True] * len(self.consts) + bits,
            in_device_local_layouts=[None] * num_inputs,
            const_args=self.consts,
        )


def buffer_on(x: Any, aval: Any, device: Any) -> Any:
    """The C++ array behind an argument, on the device where it is needed."""
    if isinstance(x, Tracer):
        raise leaked(x)
    if isinstance(x, Token):
        return x.buffer
    if not type.__instancecheck__(Array, x):
        if aval.dtype == dtypes.float0:
            x, aval = np.zeros(aval.shape, np.bool_), aval.update(dtype=np.dtype(np.bool_))
        return array_from_host(x, aval, device=device).buffer
    buffer = x.buffer
    if buffer.is_deleted():
        to_numpy(buffer)  # raises, and says why
    source = buffer._sharding.device
    if source is device or source == device:
        return buffer
    if source.client is device.client:
        return placement.copy_to_device(buffer, device)
    host = to_numpy(buffer)
    return placement.put_host_value(host, physical_aval(aval), device, committed=False)
