"""Python functions that compiled programs call.

Input: a function of arrays.  Output: what XLA calls with views of its memory.  XLA believes what
it is told, so types of results are checked here.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes
from minijax.core.aval import ShapedArray
from minijax.core.errors import error
from minijax.runtime import client, in_flight, placement, transfer
from minijax.runtime.array import array_from_host, is_array, physical_aval, to_numpy, wrap
from minijax.runtime.watch import Joint

_DEVICES = {"cpu": "cpu", "cuda": "gpu", "gpu": "gpu", "rocm": "gpu"}

CUSTOM_CALL_TARGETS = {p: f"xla_ffi_python_{d}_callback" for p, d in _DEVICES.items()}
"""What XLA calls Python by, on the platforms where it can."""

PARTITIONED_TARGETS = {p: f"xla_ffi_partitioned_python_{d}_callback" for p, d in _DEVICES.items()}
"""The same for calls by each device of several, with its own pieces of the arguments."""


class HostCallback:
    """A Python function as XLA calls it.

    Attributes:
        name: the public function that made it, for messages.
        function: takes arrays, returns a flat sequence of results.
        in_avals: types of the arguments, which may be logical types of extended dtypes.
        out_avals: types of the results.
        takes_token: whether a token comes before the arguments and before the results.
        goes_on: whether a call that fails gives zeros, and `Turns` says so.  On several
            devices the others wait for its results, for ever if there are none.
        turns: the runs of the program that calls this function; its other functions have the same.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Sequence[Any]],
        in_avals: Sequence[Any],
        out_avals: Sequence[Any],
        *,
        takes_token: bool,
        goes_on: bool = False,
    ) -> None:
        self.name = name
        self.function = function
        self.in_avals = in_avals
        self.out_avals = out_avals
        self.takes_token = takes_token
        self.goes_on = goes_on
        self.turns = Turns()

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        inside = in_flight.inside
        if (inside.is_xlas or self.goes_on) and inside.call not in in_flight.calls:
            with in_flight.calling(self.goes_on):
                return self(*values)
        token, operands = values[: self.takes_token], values[self.takes_token :]
        try:
            host = placement.native_sharding(client.cpu_client().local_devices()[0])
            # XLA frees its memory after the call, so the arrays are copies.
            arrays = [
                wrap(array_from_host(x, _type_of_piece(x, aval), target=host).buffer, aval)
                for x, aval in zip(operands, self.in_avals, strict=True)
            ]
            hosts = host_results(self.name, self.function, arrays, self.out_avals)
            return *token, *(part for x in hosts for part in (_bits(x) if self.goes_on else [x]))
        except BaseException as error:
            failure = in_flight.Failure(error)
        if not self.goes_on:
            raise in_flight.keep(failure)
        if not self.turns.failed:
            self.turns.failed.append(failure)
        types = [t for a in self.out_avals for t in types_of_bits(physical_aval(a))]
        return *token, *(np.zeros(t.shape, t.dtype) for t in types)


def types_of_bits(aval: ShapedArray) -> list[ShapedArray]:
    """The types in which several devices get a value: as integers, if it consists of floats.

    All but the first device add zeros to what that one has, which makes 0.0 of -0.0.
    """
    if not dtypes.issubdtype(aval.dtype, np.inexact) or dtypes.bit_width(aval.dtype) < 8:
        return [aval]
    part = dtypes.finfo(aval.dtype).dtype
    integers = aval.update(dtype=np.dtype(f"i{part.itemsize}"), weak_type=False)
    return [integers] * (aval.dtype.itemsize // part.itemsize)


def _bits(host: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """A value as `types_of_bits` says; of complex numbers both parts."""
    types = types_of_bits(ShapedArray(host.shape, host.dtype))
    parts = [host] if len(types) == 1 else [host.real, host.imag]
    return [np.asarray(x, order="C").view(t.dtype) for x, t in zip(parts, types, strict=True)]


class Turns:
    """Runs of one program that goes on where a Python function fails: one after the other.

    XLA does not say for which run it calls a function, so while one may fail there is no other.

    Attributes:
        failed: what the first call of the current run has raised that has failed.
    """

    def __init__(self) -> None:
        self.failed: list[in_flight.Failure] = []
        self._lock = threading.RLock()
        self._running: Any = None

    def run(self, start: Callable[[], tuple[Any, Any]], joint: Joint | None) -> Any:
        """The results of a run, whose `start` gives them and a token that it ends with.

        Args:
            start: starts the run.
            joint: the program, if other processes run it too.

        Raises:
            Exception: what the first call that failed has raised.
            RuntimeError: a call has failed in another process.
        """
        with self._lock:
            if self._running is not None:
                # An interrupt has left that run behind.
                with contextlib.suppress(RuntimeError):
                    in_flight.block(self._running)
            self.failed = []
            results, self._running = start()
            in_flight.block(self._running)
            self._running = None
            failed, self.failed = self.failed, []
        elsewhere = joint.outcome(repr(failed[0].error) if failed else "") if joint else {}
        if failed:
            raise failed[0].surface()
        if joint and elsewhere:
            problem = "a Python function that the program calls has failed in another process."
            got = {f"process {i}": text for i, text in elsewhere.items()}
            error(RuntimeError, joint.name, problem, got=got)
        return results


def _type_of_piece(x: Any, aval: ShapedArray) -> Any:
    """The physical type of an operand, which may be a piece of a value of type `aval`.

    It is strong: what a program hands over has a dtype of its own.
    """
    physical = physical_aval(aval).update(weak_type=False)
    return physical if x.shape == physical.shape else physical.with_shape(x.shape)


def host_results(
    name: str, function: Callable[..., Sequence[Any]], args: Sequence[Any], avals: Sequence[Any]
) -> list[np.ndarray[Any, Any]]:
    """The results of a user's function on arrays, as NumPy arrays of the types it has promised.

    Raises:
        RuntimeError: it returns something else.
    """
    results = function(*args)
    if len(results) != len(avals):
        problem = f"{function!r} returned {len(results)} array(s) in place of {len(avals)}."
        error(RuntimeError, name, problem, expected="a tree like result_shape_dtypes", at="")
    hosts = list(map(_host_value, results, avals))
    wrong = [
        f"result {i}: promised {aval.str_short()}, "
        f"returned {dtypes.short_name(host.dtype)}{list(host.shape)}"
        for i, (host, aval) in enumerate(zip(hosts, avals, strict=True))
        if (host.shape, host.dtype) != (aval.shape, aval.dtype)
    ]
    if wrong:
        problem = f"{function!r} returned arrays of other types than it promised."
        fix = "return numpy.asarray(result, dtype) of the promised shape, "
        fix += "or correct result_shape_dtypes"
        error(RuntimeError, name, problem, got="\n".join(wrong), fix=fix, at="")
    return hosts


def _host_value(x: object, aval: ShapedArray) -> np.ndarray[Any, Any]:
    host = to_numpy(x.buffer) if is_array(x) else np.asarray(x, order="C")
    if host.dtype != aval.dtype:
        host = host.astype(dtypes.canonicalize_dtype(host.dtype), copy=False)
    return host


def call_at_once(
    name: str, function: Callable[..., Sequence[Any]], args: Sequence[Any], avals: Sequence[Any]
) -> list[Any]:
    """Calls a user's function on values where nothing is compiled; its results as arrays."""
    arrays = [x if is_array(x) else array_from_host(x) for x in args]
    hosts = host_results(name, function, arrays, avals)
    where = transfer.placement_beside((), args)
    made = []
    for host, aval in zip(hosts, avals, strict=True):
        target = where and placement.native(placement.whole_on(where, host.ndim), host.ndim)
        made.append(array_from_host(host, aval, target=target, committed=True))
    return made
