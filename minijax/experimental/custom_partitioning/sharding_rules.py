"""Shardy's rules of operations: which dimensions of operands and results are cut together.

Input: a text such as `"b (h d), d -> b h"`, or a `SdyShardingRule`, and the shapes of an operation.
Output: the attribute in which Shardy reads it.  Each name is a *factor*; a dimension is one factor,
or several in parentheses, the outermost first, whose sizes must be told but for one; `...` stands
for leading dimensions that are the same in all arrays.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from minijax.core.aval import Shape
from minijax.core.errors import error

BATCHING = "..."
"""Stands for any number of leading dimensions."""

_NAME = "custom_partitioning.SdyShardingRule"
_TOKEN = re.compile(r"\s*(\.\.\.\w*|…\w*|[A-Za-z_]\w*|[(),]|\S)")


class CompoundFactor(tuple[str, ...]):
    """A dimension that is made of several factors, the outermost first.

    Example:
        >>> from minijax.experimental.custom_partitioning import CompoundFactor
        >>> CompoundFactor("h", "d")
        ('h', 'd')
    """

    __slots__ = ()

    def __new__(cls, *factors: str) -> CompoundFactor:
        if len(factors) < 2:
            problem, fix = "a compound has two factors or more.", "the name alone, for a single one"
            error(ValueError, "CompoundFactor", problem, got=repr(factors), fix=fix)
        return super().__new__(cls, factors)


class ArrayMapping(tuple[Any, ...]):
    """The dimensions of an array: a factor, a `CompoundFactor`, or first `BATCHING`, for each.

    Example:
        >>> from minijax.experimental.custom_partitioning import ArrayMapping
        >>> ArrayMapping("...", "i", "j")
        ('...', 'i', 'j')
    """

    __slots__ = ()

    def __new__(cls, *dim_mappings: Any) -> ArrayMapping:
        for i, dim in enumerate(dim_mappings):
            if not isinstance(dim, str | CompoundFactor):
                got = f"{dim!r} of type {type(dim).__name__}"
                problem, expected = "a dimension is no factor.", "a str or a CompoundFactor"
                error(ValueError, "ArrayMapping", problem, got=got, expected=expected)
            if i and dim.__class__ is str and dim.startswith((BATCHING, "…")):
                problem = "only the leading dimensions can be left open."
                error(ValueError, "ArrayMapping", problem, got=repr(dim_mappings))
        return super().__new__(cls, dim_mappings)


class SdyShardingRule:
    """How an operation may be cut: the factors of its operands and of its results.

    Args:
        operand_mappings: the dimensions of each operand.
        result_mappings: the dimensions of each result.
        reduction_factors: those over which the operation sums, which no result has.
        need_replication_factors: those that every device must have whole.
        permutation_factors: those along which devices exchange values.
        factor_sizes: sizes of the factors of compounds.

    Raises:
        ValueError: a factor is spoken of that no operand and no result has.

    Source:     mirrors jax.experimental.custom_partitioning.SdyShardingRule (0.10).

    Example:
        >>> from minijax.experimental.custom_partitioning import SdyShardingRule
        >>> SdyShardingRule((("i", "j"),), (("i", "j"),))
        SdyShardingRule((('i', 'j'),), (('i', 'j'),), {})
    """

    __slots__ = ("_facts",)

    def __init__(
        self,
        operand_mappings: Iterable[Iterable[Any]],
        result_mappings: Iterable[Iterable[Any]],
        *,
        reduction_factors: Iterable[str] = (),
        need_replication_factors: Iterable[str] = (),
        permutation_factors: Iterable[str] = (),
        **factor_sizes: int,
    ) -> None:
        sides = [
            tuple(ArrayMapping(*dims) for dims in side)
            for side in (operand_mappings, result_mappings)
        ]
        special = {
            "reduction": tuple(reduction_factors),
            "need_replication": tuple(need_replication_factors),
            "permutation": tuple(permutation_factors),
        }
        self._facts = sides[0], sides[1], special, factor_sizes
        known = _factors(array for side in sides for array in side)
        for name in (*(name for names in special.values() for name in names), *factor_sizes):
            if name not in known:
                problem = f"no operand and no result has a factor {name!r}."
                error(ValueError, _NAME, problem, got=repr(self), expected=f"one of {known}")
        in_results = [name for name in special["reduction"] if name in _factors(sides[1])]
        if in_results:
            problem = f"results have factors that are summed over: {in_results}."
            error(ValueError, _NAME, problem, got=repr(self), fix="leave them out of the results")

    def attribute(self, operands: Sequence[Shape], results: Sequence[Shape]) -> str:
        """The rule in Shardy's notation, for arrays of these shapes.

        Raises:
            ValueError: it does not fit them.
        """
        *sides, special, given = self._facts
        sizes: dict[str, int] = {}
        texts: list[list[Any]] = []
        for side, shapes, what in zip(sides, (operands, results), _SIDES, strict=True):
            if len(side) != len(shapes):
                problem = f"the rule has {len(side)} {what}s, the operation {len(shapes)}."
                error(ValueError, _NAME, problem, got=repr(self))
            texts.append([])
            for i, (dims, shape) in enumerate(zip(side, shapes, strict=True)):
                found = _spread(dims, shape, f"{what} {i}")
                for factors, size in zip(found, shape, strict=True):
                    _note(sizes, factors, size, given, f"{what} {i}")
                texts[-1].append(found)
        letters = {name: _letter(i) for i, name in enumerate(sizes)}

        def written(arrays: Sequence[Any]) -> str:
            dims = [[" ".join(letters[name] for name in dim) for dim in array] for array in arrays]
            compact = [[dim.replace(" ", "") for dim in array] for array in dims]
            return ", ".join(f"[{', '.join(array)}]" for array in compact)

        told = ", ".join(f"{letters[name]}={size}" for name, size in sizes.items())
        marks = "".join(
            f" {kind}={{{', '.join(letters[name] for name in names)}}}"
            for kind, names in special.items()
            if names
        )
        rule = f"({written(texts[0])})->({written(texts[1])})"
        return f"#sdy.op_sharding_rule<{rule} {{{told}}}{marks}, custom>"

    def __repr__(self) -> str:
        operands, results, _, sizes = self._facts
        return f"SdyShardingRule({operands!r}, {results!r}, {sizes!r})"


_SIDES = ("operand", "result")


def _letter(index: int) -> str:
    letters = "ijklmnopqrstuvwxyz"
    beyond = index - len(letters)
    return letters[index] if beyond < 0 else f"z_{beyond + 1}"


def _factors(arrays: Iterable[Sequence[Any]]) -> list[str]:
    """The names in some arrays, each once."""
    found = (
        name
        for array in arrays
        for dim in array
        for name in (dim if isinstance(dim, CompoundFactor) else (dim,))
    )
    return list(dict.fromkeys(found))


def _spread(dims: Sequence[Any], shape: Shape, what: str) -> list[tuple[str, ...]]:
    """The factors of each dimension of an array.

    Raises:
        ValueError: the rank is another.
    """
    found: list[tuple[str, ...]] = [
        dim if isinstance(dim, CompoundFactor) else (dim,) for dim in dims
    ]
    is_open = bool(dims) and isinstance(dims[0], str) and dims[0].startswith((BATCHING, "…"))
    batch = len(shape) - len(dims) + 1
    if is_open and batch >= 0:
        return [(f"{dims[0]}{i}",) for i in range(batch)] + found[1:]
    if is_open or len(dims) != len(shape):
        problem = f"the rule gives {what} {len(dims)} dimensions, the operation {len(shape)}."
        error(ValueError, _NAME, problem, got=f"{dims} for shape {tuple(shape)}")
    return found


def _note(
    sizes: dict[str, int], factors: tuple[str, ...], size: int, given: Mapping[str, int], what: str
) -> None:
    """Notes the sizes of the factors of one dimension.

    Raises:
        ValueError: they do not multiply to its size, or are not known.
    """
    told: list[int | None] = [given.get(name) for name in factors] if len(factors) > 1 else [size]
    if told.count(None) == 1:
        rest = math.prod(x for x in told if x is not None)
        told = [size // rest if x is None else x for x in told]
    if None in told or math.prod(x or 0 for x in told) != size:
        problem = f"the sizes of the factors {factors} of {what} do not make its size {size}."
        fix = "def_partition(..., " + ", ".join(f"{name}=…" for name in factors) + ")"
        error(ValueError, _NAME, problem, got=f"sizes {told}", fix=fix)
    for name, own in zip(factors, told, strict=True):
        if sizes.setdefault(name, int(own or 0)) != own:
            problem = f"the factor {name!r} has two sizes: {sizes[name]}, and {own} in {what}."
            error(ValueError, _NAME, problem)


def rule_of(text: object, **facts: Any) -> SdyShardingRule:
    """The rule that a text says.

    Raises:
        TypeError: it is no text.
        ValueError: it is no rule.
    """
    if not isinstance(text, str):
        got = f"{text!r} of type {type(text).__name__}"
        expected = (
            "a str such as 'i j, j k -> i k', a SdyShardingRule, or a function that gives one"
        )
        error(TypeError, _NAME, "takes rules as texts.", got=got, expected=expected)
    sides = text.split("->")
    if len(sides) != 2:
        _refuse(text, "has operands and results on the two sides of one '->'")
    return SdyShardingRule(*(_arrays(side, text) for side in sides), **facts)


def _arrays(side: str, text: str) -> list[list[Any]]:
    """What a text says of the operands, or of the results."""
    arrays: list[list[Any]] = [[]]
    compound: list[str] | None = None
    for token in _TOKEN.findall(side.strip()):
        if token == "," and compound is None:
            arrays.append([])
        elif token == "(" and compound is None:
            compound = []
        elif token == ")" and compound is not None:
            arrays[-1].append(CompoundFactor(*compound))
            compound = None
        elif re.fullmatch(r"(\.\.\.|…|[A-Za-z_])\w*", token):
            (arrays[-1] if compound is None else compound).append(token)
        else:
            _refuse(text, f"has no {token!r} there")
    if compound is not None:
        _refuse(text, "closes each parenthesis")
    return arrays


def _refuse(text: str, claim: str) -> NoReturn:
    example = "'... i j, j k -> ... i k', or 'b (h d) -> b h d'"
    error(ValueError, _NAME, f"a rule {claim}.", got=repr(text), expected=f"such as {example}")
