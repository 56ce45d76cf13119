"""Modules of one function at several probes, followed side by side.

Input: modules of which each has other numbers for the symbols.  Output: the steps of the first one,
with what differs in the others; an error where they differ in more than numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
from jaxlib.mlir import ir

from minijax.core.errors import InconclusiveDimensionOperation, error
from minijax.export import artifacts, symbols
from minijax.export.polynomials import Polynomial
from minijax.export.scopes import PROBES, SymbolicScope

Size = int | Polynomial


class Step(NamedTuple):
    """An operation of the first module, and how the others differ.

    Attributes:
        operation: the operation.
        types: the shapes of its results, which may be of symbols.
        attributes: those that differ, of each module.
    """

    operation: ir.Operation
    types: list[Any]
    attributes: Mapping[str, Sequence[ir.Attribute]]

    def numbers(self, key: str) -> list[tuple[int, ...]]:
        """An attribute's numbers, each with those of the other modules."""
        given = self.attributes.get(key)
        own = [self.operation.attributes[key]] * PROBES if given is None else given
        return list(zip(*map(_numbers, own), strict=True))


def _numbers(attribute: ir.Attribute) -> list[int]:
    if isinstance(attribute, ir.DenseI64ArrayAttr):
        return list(attribute)
    return np.array(ir.DenseIntElementsAttr(attribute)).reshape(-1).tolist()


class Meanings:
    """Which sizes the numbers of a program stand for."""

    def __init__(self, scope: SymbolicScope) -> None:
        self._scope = scope
        self._known: dict[tuple[int, ...], Polynomial] = {}
        for polynomial in scope.noted:
            names = polynomial.names()
            numbers = [polynomial.number(scope.sizes(i, names)) for i in range(PROBES)]
            self._known.setdefault(tuple(numbers), polynomial)

    def resolved(self, numbers: Sequence[int], *, is_factor: bool = False) -> Size | None:
        """What has these numbers at the probes, or a product of two such; None if nothing has."""
        first = numbers[0]
        if all(n == first for n in numbers):
            return int(first)
        found = self._known.get(tuple(numbers))
        if found is not None:
            return found
        for known, polynomial in self._known.items():
            # What NumPy or C have multiplied a size by, or added to it.
            if known[0] == known[1]:
                continue
            times = (first - numbers[1]) // (known[0] - known[1])
            more = first - times * known[0]
            if all(n == k * times + more for n, k in zip(numbers, known, strict=True)):
                return polynomial * Polynomial.of(times) + Polynomial.of(more)
        for known, polynomial in () if is_factor else self._known.items():
            if all(k > 1 and n % k == 0 for n, k in zip(numbers, known, strict=True)):
                rest = [n // k for n, k in zip(numbers, known, strict=True)]
                factor = self.resolved(rest, is_factor=True)
                if isinstance(factor, Polynomial):
                    return polynomial * factor
        return None

    def ratio(self, numbers: Sequence[float], dtype: np.dtype[Any]) -> tuple[Any, Any] | None:
        """The quotient of sizes that has these values at the probes."""
        candidates = list(self._scope.ratios)
        candidates += [(1, p) for p in self._known.values()]
        for x, y in candidates:
            if any(self._at(y, i) == 0 for i in range(PROBES)):
                continue
            quotients = [self._at(x, i) / self._at(y, i) for i in range(PROBES)]
            if all(dtype.type(q) == dtype.type(n) for q, n in zip(quotients, numbers, strict=True)):
                return x, y
        return None

    def scaled(
        self, numbers: Sequence[float], dtype: np.dtype[Any]
    ) -> tuple[Polynomial, float, float] | None:
        """A size, a factor and a summand, short decimals, that give these values at the probes."""
        for known in self._known.values():
            sizes = [self._at(known, i) for i in range(PROBES)]
            first, size = numbers[0], sizes[0]
            if size == sizes[1] or not size:
                continue
            factors = [(_short(first / size, digits), 0.0) for digits in range(1, 8)]
            sums = [(k, _short(first - k * size, n)) for k in (1.0, -1.0) for n in range(1, 5)]
            for factor, more in (*factors, *sums):
                values = [dtype.type(factor * x + more) for x in sizes]
                if all(x == dtype.type(n) for x, n in zip(values, numbers, strict=True)):
                    return known, factor, more
        return None

    def _at(self, value: Any, probe: int) -> Any:
        if not isinstance(value, Polynomial):
            return value
        return value.number(self._scope.sizes(probe, value.names()))


def _short(x: float, digits: int) -> float:
    return float(f"{x:.{digits}g}")


class Follower:
    """Modules of one function at several probes."""

    def __init__(self, name: str, modules: Sequence[ir.Module], scope: SymbolicScope) -> None:
        self.name = name
        self.module = modules[0]
        self.scope = scope
        self.meanings = Meanings(scope)
        self.steps: list[Step] = []
        self.blocks: list[tuple[ir.Value[Any], Any]] = []
        mains = [artifacts.functions(module) for module in modules]
        if any(functions.keys() != {"main"} for functions in mains):
            self.refuse("it calls functions that cannot be written out.", "")
        self.mains = [functions["main"] for functions in mains]
        self._numbers: list[dict[Any, int]] = [{} for _ in modules]
        self._follow_regions(self.mains)

    def refuse(self, problem: str, at: str, got: str = "") -> NoReturn:
        """Raises the error of what follows from a size in a way that nothing knows."""
        error(
            InconclusiveDimensionOperation,
            "export.export",
            f"{self.name} depends on a size that is a symbol: {problem}",
            got="\n".join(filter(None, [got, at])) or None,
            expected="operations whose results have sizes that follow from those of operands",
            fix="export it for known sizes, or compute with x.shape[0] itself",
        )

    def _follow_regions(self, parents: Sequence[ir.Operation]) -> None:
        for regions in zip(*(op.regions for op in parents), strict=True):
            for blocks in zip(*map(list, regions), strict=True):
                for arguments in zip(*(b.arguments for b in blocks), strict=True):
                    self._name_values(arguments)
                    self.blocks.append((arguments[0], self._type(arguments, parents[0])))
                self._follow_block([[op.operation for op in block] for block in blocks])

    def _follow_block(self, blocks: Sequence[Sequence[ir.Operation]]) -> None:
        for i, first in enumerate(blocks[0]):
            ops = [block[i] for block in blocks if i < len(block)]
            if len(ops) < len(blocks) or any(op.name != first.name for op in ops):
                self.refuse("its operations are others for other sizes.", line(first))
            self._follow(ops)
        if any(len(block) != len(blocks[0]) for block in blocks):
            self.refuse("its operations are others for other sizes.", line(blocks[0][-1]))

    def _follow(self, ops: Sequence[ir.Operation]) -> None:
        first = ops[0]
        operands = {
            tuple(names[x] for x in op.operands)
            for op, names in zip(ops, self._numbers, strict=True)
        }
        keys = {tuple(sorted(op.attributes)) for op in ops}
        if len(operands) > 1 or len(keys) > 1:
            self.refuse("its operations are others for other sizes.", line(first))
        self._follow_regions(ops)
        types = [
            self._type(results, first) for results in zip(*(op.results for op in ops), strict=True)
        ]
        for results in zip(*(op.results for op in ops), strict=True):
            self._name_values(results)
        differing = {}
        for key in next(iter(keys)):
            given = [op.attributes[key] for op in ops]
            if any(a != given[0] for a in given):
                differing[key] = given
        self.steps.append(Step(first, types, differing))

    def _name_values(self, values: Sequence[ir.Value[Any]]) -> None:
        for names, value in zip(self._numbers, values, strict=True):
            names[value] = len(names)

    def _type(self, values: Sequence[ir.Value[Any]], op: ir.Operation) -> Any:
        """The shape of values, with symbols; None if all agree on the type."""
        first = values[0].type
        if all(v.type == first for v in values):
            return None
        shapes = [ir.RankedTensorType(v.type).shape for v in values]
        if len({len(shape) for shape in shapes}) > 1:
            self.refuse("a rank is another for other sizes.", line(op))
        return [self.size(numbers, op) for numbers in zip(*shapes, strict=True)]

    def size(self, numbers: Sequence[int], op: ir.Operation) -> Size:
        """The size that has these numbers at the probes."""
        found = self.meanings.resolved(numbers)
        if found is None:
            got = f"numbers {', '.join(map(str, numbers))} at three probes"
            self.refuse("a number follows from it in an unknown way.", line(op), got)
        return found

    def dimension(self, numbers: Sequence[int]) -> int:
        """The dimension that has these numbers at the probes."""
        found = self.meanings.resolved([int(n) for n in numbers])
        if found is None:
            got = f"numbers {', '.join(str(int(n)) for n in numbers)} at three probes"
            self.refuse("a size of a result follows from it in an unknown way.", "", got)
        return found if isinstance(found, int) else symbols.Dimension(found, self.scope)

    def sizes(self, step: Step, key: str) -> list[Size]:
        """The numbers of an attribute, with symbols."""
        return [self.size(numbers, step.operation) for numbers in step.numbers(key)]


def line(op: ir.Operation) -> str:
    """Where an operation comes from, for messages."""
    return f"{op.name} at {op.location}"
