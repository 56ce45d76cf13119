"""Functions of several primitives as one compiled program each, where nothing is traced.

Eagerly, `numpy.var(x)` would run five programs; decorated, it runs one, dispatched in C++.  While
something is traced the body runs as it stands, so jaxprs never show a call.  Decision 0003.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from minijax.core.trace import current
from minijax.interpreters import recordings
from minijax.interpreters.staging import StagingTrace
from minijax.lowering import eager
from minijax.runtime import client
from minijax.transforms.jit import arguments, jit

F = TypeVar("F", bound=Callable[..., Any])

_UNHASHABLE = "Non-hashable static"


def native_program(function: Callable[..., Any], static: Sequence[str] = ()) -> Any:
    """The C++ callable behind `one_program`: right only for concrete arguments and no statics
    that lack a hash, but with nothing of Python before it.
    """
    nums, names = arguments.resolve_names(function, None, tuple(static), "static")
    settings = jit.Settings(
        static_argnums=nums,
        static_argnames=names,
        donate_argnums=(),
        donate_argnames=(),
        keep_unused=False,
        inline=False,
        device=None,
        compiler_options=tuple(client.ONE_OP_OPTIONS.items()),
    )
    half = jit.JitFunction(function, settings, transparent=True)
    return eager.native_function(
        half.name,
        half.python,
        half.call,
        static_argnums=nums,
        static_argnames=names,
        key=settings,
        function=function,
    )


def one_program(static: Sequence[str] = ()) -> Callable[[F], F]:
    """Decorator: outside traces, a call is one compiled program; inside, just the body.

    Args:
        static: names of parameters that are no arrays; they are part of the signature.
    """

    def decorate(function: F) -> F:
        native: Callable[..., Any] | None = None

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal native
            trace = current.value
            if trace is not eager.EAGER:
                if type(trace) is StagingTrace:
                    return recordings.call(trace, function, args, kwargs)
                return function(*args, **kwargs)
            if native is None:
                # Made on demand: an import declares hundreds of functions and calls few.
                native = native_program(function, static)
            try:
                return native(*args, **kwargs)
            except ValueError as error:
                # A list for a shape or an axis: the body takes it, one program a primitive.
                if str(error).startswith(_UNHASHABLE):
                    return function(*args, **kwargs)
                raise

        return cast(F, call)

    return decorate
