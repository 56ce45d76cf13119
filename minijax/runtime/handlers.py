"""Handlers: what puts the arguments of a program where it needs them, and wraps its results.

Input: arguments, or C++ arrays.  Output: C++ arrays, or the values that users get.  Executables
have one of each, which a back end that compiles for itself is handed instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core.aval import ShapedArray, abstract_token
from minijax.core.errors import error
from minijax.runtime import placement, profiling, tokens, versions
from minijax.runtime.array import Array, Token, physical_aval, wrap
from minijax.runtime.transfer import buffer_on


class InputsHandler:
    """Puts the arguments of a program where it needs them.

    Called with all arguments, used or not, it returns a C++ array for each parameter.

    Attributes:
        avals: types of the arguments that the program uses.
        targets: their native shardings.
        kept: indices of the arguments that it uses, or None for all of them.
        consts: C++ arrays of constants that come before the arguments.

    Source:     after jax.interpreters.pxla.InputsHandler, which JAX has since dropped.

    Example:
        >>> from minijax.experimental import pxla
        >>> pxla.InputsHandler([], [])([])
        []
    """

    __slots__ = ("avals", "consts", "kept", "targets")

    def __init__(
        self,
        avals: Sequence[Any],
        targets: Sequence[Any],
        kept: Sequence[int] | None = None,
        consts: Sequence[Any] = (),
    ) -> None:
        self.avals = list(avals)
        self.targets = list(targets)
        self.kept = kept
        self.consts = list(consts)

    def __call__(self, args: Sequence[Any]) -> list[Any]:
        """The C++ arrays for a call with `args`."""
        with profiling.TraceAnnotation("place arguments"):
            used = args if self.kept is None else [args[i] for i in self.kept]
            buffers = list(self.consts)
            for x, aval, target in zip(used, self.avals, self.targets, strict=True):
                buffers.append(
                    x.buffer
                    if type(x) is Array and x.buffer._sharding is target
                    else buffer_on(x, aval, target)
                )
            return buffers

    def __repr__(self) -> str:
        consts = f"{len(self.consts)} constants, " if self.consts else ""
        return f"InputsHandler({consts}{_listed(self.avals, self.targets)})"


class ResultsHandler:
    """Makes the values that users get of the results of a program.

    Called with a C++ array for each result, or a list of the pieces of each, it returns arrays.

    Attributes:
        avals: types of the results.
        buffer_avals: types of the C++ arrays behind them.
        targets: their native shardings.
        native: jaxlib's handlers of all that a program returns, tokens of ordered effects first.

    Source:     after jax.interpreters.pxla.ResultsHandler, which JAX has since dropped.

    Example:
        >>> from minijax.experimental import pxla
        >>> pxla.ResultsHandler([], [], committed=False)([])
        []
    """

    __slots__ = ("_num_tokens", "_plain", "avals", "buffer_avals", "native", "targets")

    def __init__(
        self,
        avals: Sequence[Any],
        targets: Sequence[Any],
        committed: bool,
        token_devices: Sequence[Any] = (),
    ) -> None:
        self.avals = list(avals)
        self.targets = list(targets)
        self.buffer_avals = list(map(_buffer_aval, avals, targets))
        self.native = [
            versions.result_handler(tokens.TOKEN, placement.native_sharding(device), committed)
            for device in token_devices
        ] + [
            versions.result_handler(aval, target, committed)
            for aval, target in zip(self.buffer_avals, targets, strict=True)
        ]
        self._num_tokens = len(token_devices)
        self._plain = not any(aval.is_extended for aval in avals)

    def __call__(self, results: Sequence[Any]) -> list[Array | Token]:
        """The values for C++ arrays, one or a list of pieces for each result."""
        own = self.native[self._num_tokens :]
        return self.wrapped([make(x) for make, x in zip(own, results, strict=True)])

    def wrapped(self, buffers: Sequence[Any]) -> list[Array | Token]:
        """The values for C++ arrays that jaxlib's handlers have made already."""
        if self._plain:
            return list(map(Array, buffers))
        return list(map(wrap, buffers, self.avals))

    def __repr__(self) -> str:
        return f"ResultsHandler({_listed(self.avals, self.targets)})"


def _listed(avals: Sequence[Any], targets: Sequence[Any]) -> str:
    return ", ".join(
        f"{aval} on {target.public}" for aval, target in zip(avals, targets, strict=True)
    )


def _typed_array(aval: Any, target: Any) -> Any:
    return placement.typed(physical_aval(aval), target)


result_types: dict[type, Callable[[Any, Any], Any]] = {
    ShapedArray: _typed_array,
    type(abstract_token): _typed_array,
}
"""For each kind of aval that programs return: its aval and native sharding give the type of the
C++ array behind it.  One table serves programs over the whole and over parts of an array, as what
an array over several devices is does not depend on who has cut it."""


def _buffer_aval(aval: Any, target: Any) -> Any:
    """The type of the C++ array behind a result.

    Raises:
        TypeError: programs return no values of such a type.
    """
    rule = result_types.get(type(aval))
    if rule is None:
        kinds = ", ".join(kind.__name__ for kind in result_types)
        error(
            TypeError,
            "results",
            "no array can be made of a result of this type.",
            got=f"{aval} of type {type(aval).__name__}",
            expected=f"an aval of type {kinds}",
            fix="return the value of a reference, ref[...], and not the reference",
        )
    return rule(aval, target)
