"""What the functions with custom derivatives share: their arguments, symbolic zeros, checks.

Input: a user's function and rules, of trees.  Output: functions of flat values, which check what
the rules return and name the leaf that is wrong.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes, tree, variance
from minijax.core.aval import aval_of, manual_type
from minijax.core.check import same_type
from minijax.core.errors import UnexpectedTracerError, error
from minijax.core.trace import Tracer, current
from minijax.interpreters import casts, eager, flattening, staging
from minijax.interpreters.structural import instantiate, zeros
from minijax.interpreters.tangents import Zero
from minijax.lax import convert, unary
from minijax.runtime.array import array_from_host


class SymbolicZero:
    """A tangent or cotangent known to be zero, as rules with `symbolic_zeros=True` see it.

    Source: mirrors jax.custom_derivatives.SymbolicZero (0.10).

    Example:
        >>> zero = jax.custom_derivatives.SymbolicZero(jax.typeof(jnp.ones(3)))
        >>> zero.shape, zero.dtype
        ((3,), dtype('float32'))
    """

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return self.aval.ndim

    @property
    def size(self) -> int:
        return self.aval.size

    @staticmethod
    def from_primal_value(value: Any) -> SymbolicZero:
        """The zero tangent of a value."""
        return SymbolicZero(aval_of(value).tangent_aval())

    def __repr__(self) -> str:
        return "SymbolicZero"


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangent of a value: symbolic, or an array.

    Source: mirrors jax.custom_derivatives.zero_from_primal (0.10).

    Example:
        >>> jax.custom_derivatives.zero_from_primal(jnp.array([1.0, 2.0]))
        Array([0., 0.], dtype=float32)
        >>> jax.custom_derivatives.zero_from_primal(jnp.array([1, 2]), symbolic_zeros=True)
        SymbolicZero
    """
    zero = SymbolicZero.from_primal_value(val)
    return zero if symbolic_zeros else zeros(zero.aval)


def shown(tangent: Any, symbolic_zeros: bool) -> Any:
    """A tangent or cotangent as a rule sees it: zeros are made, or stay symbolic."""
    if symbolic_zeros and type(tangent) is Zero:
        return SymbolicZero(tangent.aval)
    return instantiate(tangent)


def as_arrays(values: Iterable[Any]) -> list[Any]:
    """Values fit for a user's function: NumPy arrays would compute by NumPy's rules in it."""
    return [
        array_from_host(x) if isinstance(x, np.ndarray) and x.dtype != dtypes.float0 else x
        for x in values
    ]


class Signature:
    """How a function with custom rules is called, and which arguments its rules differentiate."""

    def __init__(
        self,
        kind: str,
        function: Callable[..., Any],
        nondiff_argnums: int | Sequence[int],
        nondiff_argnames: str | Sequence[str],
    ) -> None:
        eager.check_callable(kind, function)
        self.name = flattening.function_name(function)
        self.title = f"{kind} of {self.name}"
        self._signature: inspect.Signature | None = None
        with contextlib.suppress(TypeError, ValueError):
            self._signature = inspect.signature(function)
        parameters = self._signature.parameters.values() if self._signature else ()
        is_plain = all(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
        self._count = len(parameters) if self._signature and is_plain else None
        self.nondiff = self._positions(nondiff_argnums, nondiff_argnames)

    def _positions(self, argnums: Any, argnames: Any) -> tuple[int, ...]:
        given = argnums if isinstance(argnums, Iterable) else (argnums,)
        names = (argnames,) if isinstance(argnames, str) else tuple(argnames)
        parameters = list(self._signature.parameters) if self._signature else []
        unknown = [name for name in names if name not in parameters]
        if unknown:
            error(
                ValueError,
                self.title,
                "nondiff_argnames names no parameter.",
                got=", ".join(unknown),
                expected=f"some of {', '.join(parameters) or 'no parameters'}",
            )
        return tuple(dict.fromkeys([*map(int, given), *map(parameters.index, names)]))

    def positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, with defaults.

        Raises:
            TypeError: they do not fit the function, or one can only be given by name.
        """
        if not kwargs and (self._signature is None or len(args) == self._count):
            return args
        try:
            if self._signature is None:
                raise TypeError("the function has no signature")
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as caught:
            error(
                TypeError,
                self.title,
                "the arguments do not fit the function's parameters.",
                got=str(caught),
                cause=None,
            )
        bound.apply_defaults()
        if bound.kwargs:
            error(
                TypeError,
                self.title,
                "rules take arguments by position, and some can only be given by name.",
                got=", ".join(bound.kwargs),
                fix="make them positional parameters of the function",
            )
        return bound.args

    def split(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...], list[int]]:
        """The held arguments, the differentiated ones, and the positions of the latter.

        Raises:
            IndexError: nondiff_argnums is out of range.
        """
        if not self.nondiff:
            return (), args, list(range(len(args)))
        count = len(args)
        for i in self.nondiff:
            if not -count <= i < count:
                error(
                    IndexError,
                    self.title,
                    f"nondiff_argnums {i} is out of range.",
                    got=f"{count} positional argument(s)",
                )
        held = [i % count for i in self.nondiff]
        rest = [i for i in range(count) if i not in held]
        return tuple(args[i] for i in held), tuple(args[i] for i in rest), rest

    def flatten(self, args: tuple[Any, ...], positions: Sequence[int]) -> Arguments:
        """The leaves of the differentiated arguments.

        Raises:
            TypeError: one is no array and no number.
        """
        leaves, in_tree = tree.flatten((args, {}))
        names = functools.partial(self._names, in_tree, tuple(positions))
        return Arguments(leaves, in_tree, flattening.avals_of(leaves, names, self.title), names)

    def _names(self, in_tree: Any, positions: tuple[int, ...]) -> Sequence[str]:
        names: tuple[str, ...] = ()
        if self._signature is not None:
            names = tuple(
                f"*{p.name}" if p.kind is p.VAR_POSITIONAL else p.name
                for p in self._signature.parameters.values()
                if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)
            )
        return tree.argument_paths(
            in_tree, tuple(flattening.argument_name(names, i) for i in positions)
        )


class Arguments(NamedTuple):
    """The differentiated arguments of one call, flat: values, tree of (args, {}), types, names."""

    leaves: list[Any]
    in_tree: Any
    avals: Sequence[Any]
    names: Callable[[], Sequence[str]]


def with_held(
    function: Callable[..., Any], count: int, held: Sequence[Any], positions: Sequence[int]
) -> Callable[..., Any]:
    """`function` of the arguments at `positions` alone, the other `count - len(positions)` held."""
    if not held:
        return function
    others = [i for i in range(count) if i not in positions]

    @functools.wraps(function, assigned=("__name__",), updated=())
    def of_rest(*args: Any) -> Any:
        full: list[Any] = [None] * count
        for i, x in (*zip(others, held, strict=True), *zip(positions, args, strict=True)):
            full[i] = x
        return function(*full)

    return of_rest


def stop_tracers(held: Any) -> Any:
    """Arguments that rules do not differentiate, those that are traced held constant."""
    return tree.map(lambda x: unary.stop_gradient(x) if isinstance(x, Tracer) else x, held)


class Primal(NamedTuple):
    """What the function itself returned when it ran; empty until then."""

    out_tree: Any = None
    avals: Sequence[Any] = ()


class FlatPrimal:
    """The function as one of leaves; remembers the tree and the types of its results."""

    __slots__ = ("__name__", "_flat", "seen")

    def __init__(self, function: Callable[..., Any], in_tree: Any, name: str) -> None:
        self._flat = flattening.FlatFunction(function, in_tree, name)
        self.__name__ = name
        self.seen = Primal()

    def __call__(self, *leaves: Any) -> list[Any]:
        outs = self._flat(*as_arrays(leaves))
        self.seen = Primal(self._flat.out_tree, list(map(aval_of, outs)))
        return outs


class Rule(NamedTuple):
    """A user's rule, for messages: what it is called, and whose it is."""

    title: str
    kind: str
    function: Callable[..., Any]

    @property
    def name(self) -> str:
        return flattening.function_name(self.function)

    def __str__(self) -> str:
        return f"the {self.kind} {self.name}"

    def __call__(self, *args: Any) -> Any:
        try:
            with staging.own_lines():
                return self.function(*args)
        except UnexpectedTracerError as error:
            error.add_note(
                f"while running {self} of {self.title}: a rule runs when the function is "
                "differentiated, so it must not use traced values other than its arguments"
            )
            raise

    def pair(self, result: Any, parts: str) -> tuple[Any, Any]:
        """The result, which has to be a pair.

        Raises:
            TypeError: it is none.
        """
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            error(
                TypeError,
                self.title,
                f"{self} must return a pair {parts}.",
                got=f"{type(result).__name__}: {result!r}",
            )
        first, second = result
        return first, second

    def primal_outs(self, out: Any, primal: Primal) -> tuple[list[Any], Any]:
        """The flat results of the function as the rule computes them, and their tree.

        Raises:
            TypeError: they are not those of the function itself, as far as that has run.
        """
        outs, out_tree = tree.flatten(out)
        check_arrays(self.title, f"a result of {self}", outs, out_tree)
        if primal.out_tree is None:
            return outs, out_tree
        if out_tree != primal.out_tree:
            error(
                TypeError,
                self.title,
                f"{self} returns results of another structure than the function.",
                got={"rule": out_tree, "function": primal.out_tree},
            )
        names = flattening.result_paths(out_tree)
        wrong = [
            f"{name}: {aval_of(x)} from the rule, {aval} from the function"
            for name, x, aval in zip(names, outs, primal.avals, strict=True)
            if not may_be_cast(aval_of(x), aval)
        ]
        if wrong:
            error(
                TypeError,
                self.title,
                f"{self} returns results of other types than the function.",
                got="\n".join(wrong),
                expected="equal shapes and dtypes, and to vary over no further mesh axes",
            )
        outs = [cast_like(x, aval) for x, aval in zip(outs, primal.avals, strict=True)]
        return [
            x if aval_of(x) is aval else convert.convert_to_type(x, aval.dtype, aval.weak_type)
            for x, aval in zip(outs, primal.avals, strict=True)
        ], out_tree


def may_be_cast(given: Any, wanted: Any) -> bool:
    """Whether a value of type `given` is one of type `wanted`, at least after a cast."""
    if same_type(given, wanted):
        return True
    own, other = variance.of(given), variance.of(wanted)
    return same_type(given.with_manual_type(other), wanted) and own == manual_type(
        other.varying & own.varying, other.unreduced, other.reduced
    )


def cast_like(x: Any, wanted: Any) -> Any:
    """A value that varies over mesh axes as type `wanted` says; cast where it is the same there."""
    missing = variance.of(wanted).varying
    return casts.varied(current.value, x, missing) if missing else x


def check_arrays(title: str, what: str, leaves: Sequence[Any], treedef: Any) -> None:
    """Refuses leaves that are no arrays and no numbers.

    Raises:
        TypeError: one is neither; the text names it.
    """
    for i, x in enumerate(leaves):
        if hasattr(x, "aval"):
            continue
        try:
            aval_of(x)
        except TypeError:
            error(
                TypeError,
                title,
                f"{what} is no array and no number.",
                got=f"{flattening.result_paths(treedef)[i]}: {x!r} of type {type(x).__name__}",
                cause=None,
            )


def is_float0(aval: Any) -> bool:
    """Whether tangents of this type carry no information."""
    return bool(aval.dtype == dtypes.float0)
