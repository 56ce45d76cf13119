"""`checkify`: a function that also returns what went wrong in it, for the caller to look at.

Input: a Python function.  Output: the same, which returns an `Error` before its result.  This is
`checked` (`checked.py`) with the report as a value; `check` adds assertions of the user's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import numpy as np

from minijax.core import tree, tree_registry
from minijax.core.aval import aval_of, has_aval
from minijax.core.errors import CheckError, error, message
from minijax.core.trace import Tracer
from minijax.interpreters import checking, eager
from minijax.lax import unary
from minijax.lax.functionalization import STATE_SIZE
from minijax.runtime.array import Array
from minijax.transforms.checked import CheckedFunction, Sites, report_p

R = TypeVar("R")

ErrorCategory = str

user_checks = frozenset({checking.USER})
nan_checks = frozenset({checking.NAN})
index_checks = frozenset({checking.INDEX})
div_checks = frozenset({checking.DIVISION})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


class Error:
    """What went wrong in a function that `checkify` has made, if anything did.

    It is a tree of arrays, so that it passes through `jit`; under `vmap` it stands for the errors
    of all examples.

    Source:     mirrors jax.experimental.checkify.Error (0.10).

    Example:
        >>> from minijax.experimental import checkify
        >>> error, _ = checkify.checkify(lambda x: checkify.check(x > 0, "x is {}", x))(-1)
        >>> print(error.get())
        x is -1 (check at ... in <lambda>)
    """

    __slots__ = ("_sites", "_state")

    def __init__(self, state: tuple[Any, ...], sites: Sites) -> None:
        self._state = state
        self._sites = sites

    def get(self) -> str | None:
        """What went wrong, in words, or None: for a batch, a line for each example that failed."""
        found = self._errors()
        lines = [
            f"at mapped index {', '.join(map(str, place))}: {_text(error)}"
            if place
            else _text(error)
            for place, error in found
        ]
        return "\n".join(lines) or None

    def throw(self) -> None:
        """Raises the error, that of the first example that failed, if there is one.

        Raises:
            JaxRuntimeError: something went wrong.
        """
        for _, found in self._errors():
            raise found

    def get_exception(self) -> CheckError | None:
        """The error that `throw` raises, or None."""
        return next((error for _, error in self._errors()), None)

    def _errors(self) -> list[tuple[tuple[int, ...], CheckError]]:
        if any(isinstance(x, Tracer) for x in self._state):
            _refuse_traced()
        codes, places, words = map(np.asarray, self._state)
        found = []
        for index in map(tuple, np.argwhere(codes)):
            error = self._sites.error(codes[index], places[index], words[index])
            assert error is not None
            found.append((tuple(map(int, index)), error))
        return found

    def report(self) -> None:
        """Reports the error to whoever runs the program."""
        report_p.bind(*self._state, sites=self._sites)

    def flatten(self) -> tuple[tuple[Any, ...], Sites]:
        """The arrays of the error, and what they stand for."""
        return self._state, self._sites

    def __repr__(self) -> str:
        if any(isinstance(x, Tracer) or not has_aval(x) for x in self._state):
            return f"Error({self._state[0]!r})"
        return f"Error({self.get()})"


tree_registry.register_pytree_node(
    Error, Error.flatten, lambda sites, state: Error(tuple(state), sites)
)

init_error = Error((np.int32(0), np.int32(0), np.zeros(0, np.uint32)), Sites((), "init_error"))
"""The error of a function in which nothing went wrong."""


def _text(error: CheckError) -> str:
    return f"{error.detail} ({error.primitive} at {error.line or 'an unknown line'})"


def _refuse_traced() -> NoReturn:
    error(
        ValueError,
        "checkify.Error",
        "a traced error has no text yet.",
        fix="return it from the traced function, and look at it outside; or check_error(err) "
        "inside, under another checkify",
    )


class _UserText:
    """The text of a user's check, with the tree of the values that it shows."""

    __slots__ = ("template", "values_tree")

    def __init__(self, template: str, values_tree: Any) -> None:
        self.template = template
        self.values_tree = values_tree

    def format(self, *values: Any) -> str:
        args, kwargs = tree.unflatten(self.values_tree, values)
        return self.template.format(*args, **kwargs)

    def __repr__(self) -> str:
        return repr(self.template)


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Asserts that `pred` is true, for `checkify` and `checked` to look at.

    Outside of traced functions, it raises at once.

    Source: mirrors jax.experimental.checkify.check (0.10).

    Args:
        pred: a boolean scalar.
        msg: what is wrong if it is false, with fields for the other arguments.
        fmt_args: trees of arrays.
        debug: whether the check is left out where nobody looks at its outcome.
        fmt_kwargs: trees of arrays.

    Raises:
        JaxRuntimeError: `pred` is false, and nothing is traced.
        TypeError: `pred` is no boolean scalar, or another argument is no tree of arrays.
        ValueError: a program with the check is compiled where nobody looks at its outcome.

    Example:
        >>> from minijax.experimental import checkify
        >>> def root(x):
        ...     checkify.check(x >= 0, "no root of {x}", x=x)
        ...     return jnp.sqrt(x)
        >>> error, out = jax.jit(checkify.checkify(root))(-4.0)
        >>> print(error.get())
        no root of -4.0 (check at ... in root)
    """
    aval = aval_of(pred) if has_aval(pred) else None
    if aval is None or aval.shape or aval.dtype != np.bool_:
        error(
            TypeError,
            "checkify.check",
            "the predicate must be a boolean scalar.",
            got=repr(pred) if aval is None else str(aval),
            fix="reduce it with .all() or .any()",
        )
    values, values_tree = tree.flatten((fmt_args, fmt_kwargs))
    for x in values:
        if not isinstance(x, (Array, Tracer, np.ndarray)):
            error(
                TypeError,
                "checkify.check",
                "the message can show trees of arrays only.",
                got=f"{x!r} of type {type(x).__name__}",
                fix="write what is known into the message: f'...'",
            )
    if debug and not checking.is_checking(checking.USER):
        return
    bad = unary.bitwise_not(pred)
    text = _UserText(msg, values_tree)
    checking.check(checking.Fault(checking.USER, bad, text, payload=tuple(values)))


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """As `check`, but it does nothing where nobody looks at its outcome.

    Source: mirrors jax.experimental.checkify.debug_check (0.10).

    Example:
        >>> from minijax.experimental import checkify
        >>> def root(x):
        ...     checkify.debug_check(x >= 0, "no root of {x}", x=x)
        ...     return jnp.sqrt(x)
        >>> jax.jit(root)(-4.0)
        Array(nan, dtype=float32, weak_type=True)
        >>> print(checkify.checkify(root)(-4.0)[0].get())
        no root of -4.0 (check at ... in root)
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raises an error, if it is one; under `checkify`, it becomes that of the function around it.

    Source: mirrors jax.experimental.checkify.check_error (0.10).

    Raises:
        JaxRuntimeError: something went wrong.
        TypeError: the argument is no `Error`.

    Example:
        >>> from minijax.experimental import checkify
        >>> error, _ = checkify.checkify(lambda x: checkify.check(x > 0, "x is {}", x))(1)
        >>> checkify.check_error(error)
    """
    if not isinstance(error, Error):
        raise TypeError(
            message("checkify.check_error", "expected an Error.", got=f"{type(error).__name__}")
        )
    error.report()


def checkify(
    f: Callable[..., R], errors: frozenset[ErrorCategory] = user_checks
) -> Callable[..., tuple[Error, R]]:
    """`f`, returning what went wrong in it along with its result.

    Source: mirrors jax.experimental.checkify.checkify (0.10).  What counts as a fault is what
    `minijax.checked` says, which differs where JAX is strict: an index out of bounds is none where
    a mode says that it is meant, and a NaN is none that a selection leaves out.

    Args:
        f: a function of trees of arrays.
        errors: what to look for: `user_checks`, `nan_checks`, `index_checks`, `div_checks`,
            `float_checks`, `automatic_checks`, `all_checks`, or a union of them.

    Returns:
        A function that returns (error, result); error.get() is None if nothing went wrong.

    Example:
        >>> from minijax.experimental import checkify
        >>> f = jax.jit(checkify.checkify(jnp.log, errors=checkify.nan_checks))
        >>> error, out = f(1.0)
        >>> error.get(), out
        (None, Array(0., dtype=float32, weak_type=True))
        >>> f(-1.0)[0].get() is None
        False
    """
    eager.check_callable("checkify", f)
    half = CheckedFunction(f, frozenset(errors))

    @functools.wraps(f, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def call(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        sites, state, result = half.call(args, kwargs)
        if len(state) < STATE_SIZE:
            return Error(init_error.flatten()[0], sites), result
        return Error(tuple(state), sites), result

    return call
