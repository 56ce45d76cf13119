"""Families of distributions: what all of them share, around the formulas that make each special.

Input: a class that declares its parameters and, as `_logpdf`, `_cdf` and so on, formulas of the
standard distribution.  Output: a module such as `scipy.stats.norm` with public functions, which
promote their arguments, move and scale them by `loc` and `scale`, and describe themselves.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import MappingProxyType, ModuleType
from typing import ClassVar, Protocol

import numpy as np

from minijax.core.aval import aval_of
from minijax.lax.unary import exp, expm1, log, log1p, stop_gradient
from minijax.numpy.creation import asarray
from minijax.numpy.promotion import one_program
from minijax.numpy.selection import where
from minijax.numpy.shaping import broadcast_arrays
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.scipy.special.elementwise import real_operands

_TITLES = {
    "cdf": "Cumulative distribution function.",
    "entropy": "Entropy of the distribution, in nats; it does not depend on `loc`.",
    "isf": "Inverse survival function (the inverse of `sf`).",
    "logcdf": "Log of the cumulative distribution function.",
    "logpdf": "Log of the probability density function.",
    "logpmf": "Log of the probability mass function.",
    "logsf": "Log of the survival function.",
    "pdf": "Probability density function.",
    "pmf": "Probability mass function.",
    "ppf": "Percent point function (the inverse of `cdf`).",
    "sf": "Survival function (1 - `cdf`).",
}

# What follows from another function where a distribution has no formula of its own.
_DERIVED: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "logcdf": ("cdf", log),
    "logsf": ("sf", log),
    "pdf": ("logpdf", exp),
    "pmf": ("logpmf", exp),
}

_PACKAGE = "minijax.scipy.stats"
_PARAMETER = inspect.Parameter.POSITIONAL_OR_KEYWORD
_DEFAULTS = {"loc": 0, "scale": 1}


class Function(Protocol):
    """A function of a distribution: of points or probabilities, and of the parameters."""

    def __call__(self, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
        """The values, of the shape that all arguments broadcast to."""


class Distribution(ModuleType):
    """A distribution, as the module of its functions.

    The docstring of a distribution has one example for each function, which goes into that
    function's description.

    Attributes:
        _functions: names of the public functions; those that the class itself does not have
            are made of formulas.
        _shapes: names of the parameters before `loc` and `scale`.
        _others: signatures that are not made of these, for the functions that have them.
    """

    _functions: ClassVar[str]
    _shapes: ClassVar[str] = ""
    _others: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def __init__(self, name: str) -> None:
        path = f"{_PACKAGE}.{name}"
        # What equals the class's own docstring, `help` takes for inherited, and leaves out.
        super().__init__(path, inspect.cleandoc(type(self).__doc__ or "") + "\n")
        self.__spec__ = ModuleSpec(path, None)
        self.__package__ = _PACKAGE
        self.__all__ = self._functions.split()
        for function in self.__all__:
            if not hasattr(self, function):
                setattr(self, function, self._function(function))
        # Programs may import it by its path, too.
        sys.modules[path] = self

    def __dir__(self) -> list[str]:
        """The public functions."""
        return sorted(self.__all__)

    def _parameters(self, function: str) -> list[str]:
        """The names of the arguments of a function."""
        raise NotImplementedError

    def _value(self, function: str, arguments: dict[str, Array]) -> Array:
        """The value of a function that has a formula."""
        raise NotImplementedError

    def _function(self, name: str) -> Function:
        names = self._others[name].split() if name in self._others else self._parameters(name)
        signature = inspect.Signature(
            [
                inspect.Parameter(
                    each,
                    _PARAMETER,
                    default=_DEFAULTS.get(each, inspect.Parameter.empty),
                    annotation="ArrayLike",
                )
                for each in names
            ],
            return_annotation="Array",
        )

        def function(*args: ArrayLike, **kwargs: ArrayLike) -> Array:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{name}() {error}") from None
            bound.apply_defaults()
            if hasattr(self, f"_{name}"):
                return self._value(name, self._operands(name, bound.arguments))
            source, transform = _DERIVED[name]
            return transform(getattr(self, source)(*bound.args))

        function.__name__ = function.__qualname__ = name
        function.__module__ = self.__name__
        function.__doc__ = self._description(name, names)
        function.__annotations__ = {**dict.fromkeys(names, "ArrayLike"), "return": "Array"}
        function.__signature__ = signature  # type: ignore[attr-defined]
        return one_program()(function)

    def _operands(self, function: str, arguments: Mapping[str, ArrayLike]) -> dict[str, Array]:
        """Arguments as real floats of one dtype and one rank, so that operators apply to them.

        Raises:
            TypeError: an argument is complex, or neither an array nor a number.
        """
        name = f"{self.__name__.removeprefix('minijax.')}.{function}"
        first, *others = real_operands(name, **arguments)
        first = first if hasattr(first, "aval") else asarray(first)
        # Beside the first, numbers may stay numbers: programs show them as literals.  Those of
        # dtypes that NumPy does not have may not: its operators make other dtypes of them.
        is_foreign = aval_of(first).dtype.kind == "V"
        others = [asarray(x) if is_foreign or isinstance(x, np.ndarray) else x for x in others]
        return dict(zip(arguments, [first, *others], strict=True))

    def _description(self, function: str, names: Sequence[str]) -> str:
        path = self.__name__.removeprefix("minijax.")
        shapes = ", ".join(f"{x}: T[{letter}]" for x, letter in zip(names, "rstuv", strict=False))
        return "\n".join(
            (
                _TITLES[function],
                "",
                f"Shapes: {shapes} -> T[broadcast of all].",
                "Dtypes: real; integers and booleans become floats.",
                f"Source: mirrors jax.{path}.{function} (0.10).",
                "",
                "Example:",
                *_example(self.__doc__ or "", f">>> minijax.{path}.{function}("),
                "",
            )
        )


def _example(description: str, start: str) -> list[str]:
    """The lines of the example that starts with a call."""
    _, _, rest = description.partition(start)
    lines = (start + rest).split("\n")
    ends = [i for i, line in enumerate(lines) if i and (">>>" in line or not line.strip())]
    return [f"    {line.strip()}" for line in lines[: ends[0] if ends else None]]


class Continuous(Distribution):
    """A distribution with a density.

    Formulas are of the standard distribution: those of `pdf`, `cdf`, `sf` and their logarithms of
    `z = (x - loc) / scale` and the shapes, those of `ppf` and `isf` of a probability and the
    shapes.  The density is that of x, not of z; hence its formula takes `scale` at the end.

    Attributes:
        _positive: parameters that are above 0; results are NaN where they are not.
        _is_standardised: whether `loc` and `scale` move and scale the standard distribution.
        _unit: what `scale` is multiplied by to be that of the standard distribution.
        _probability: what `ppf` and `isf` call their first argument.
    """

    cdf: Function
    isf: Function
    logcdf: Function
    logpdf: Function
    logsf: Function
    pdf: Function
    ppf: Function
    sf: Function

    _positive: ClassVar[str] = ""
    _is_standardised: ClassVar[bool] = True
    _unit: ClassVar[float | None] = None
    _probability: ClassVar[str] = "q"

    def _parameters(self, function: str) -> list[str]:
        first = self._probability if function in ("ppf", "isf") else "x"
        standard = ["loc", "scale"] if self._is_standardised else []
        return [first, *self._shapes.split(), *standard]

    def _value(self, function: str, arguments: dict[str, Array]) -> Array:
        formula = getattr(self, f"_{function}")
        if not self._is_standardised:
            return formula(*arguments.values())
        x, *shapes, loc, scale = arguments.values()
        if self._positive:
            scale = _where_positive([arguments[name] for name in self._positive.split()], scale)
        scale = scale if self._unit is None else scale * self._unit
        if function in ("ppf", "isf"):
            return loc + scale * formula(x, *shapes)
        z = (x - loc) / scale
        return formula(z, *shapes, scale) if function in ("pdf", "logpdf") else formula(z, *shapes)


class Discrete(Distribution):
    """A distribution of integers.

    Formulas are of `k - loc`, or of a probability, and the shapes.
    """

    cdf: Function
    entropy: Function
    logpmf: Function
    pmf: Function
    ppf: Function

    def _parameters(self, function: str) -> list[str]:
        return ["k", *self._shapes.split(), "loc"]

    def _value(self, function: str, arguments: dict[str, Array]) -> Array:
        loc = arguments.pop("loc", None)
        if loc is not None and "k" in arguments:
            arguments["k"] = arguments["k"] - loc
        elif loc is not None:
            *values, _ = broadcast_arrays(*arguments.values(), loc)
            arguments = dict(zip(arguments, values, strict=True))
        return getattr(self, f"_{function}")(*arguments.values())


def _where_positive(parameters: Sequence[Array], scale: Array) -> Array:
    """`scale`, and NaN where a parameter is not above zero: no such distribution."""
    first, *others = parameters
    exists = first > 0.0
    for parameter in others:
        exists = exists & (parameter > 0.0)
    return where(exists, scale, np.nan)


def log_complement(y: Array) -> Array:
    """`log(1 - exp(y))` for y <= 0: the log of a probability from that of the complement."""
    # Either form is exact where the other is not; at 0 the second has no finite derivative.
    near = y > -0.7
    return where(near, log(-expm1(y)), log1p(-exp(where(near, -1.0, y))))


def zero_where(condition: Array, x: Array) -> Array:
    """`x` with its slopes, without the rounding errors where it is known to be 0."""
    return where(condition, x - stop_gradient(x), x)
