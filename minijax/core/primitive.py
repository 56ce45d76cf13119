"""Primitives: the operations of the language, each one class whose methods are its rules.

`bind` hands an operation to the current trace; the trace asks the primitive for the rule it
needs.  Nothing is looked up by name: `PRIMITIVES` serves tools and tests.

`docs/reading.md`: read after `core/trace.py`; `interpreters/staging.py` is next.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn, TypeAlias

from minijax.core.errors import MissingRule, error
from minijax.core.jaxpr import NO_EFFECTS, Effects
from minijax.core.operators import Aval, BatchDim, Cotangent, Operand, Param, Result, Rule, Tangent
from minijax.core.trace import current

PRIMITIVES: dict[str, Primitive] = {}

Dual: TypeAlias = tuple[Operand, Tangent]
"""What a rule `jvp` gives: the result, or results, and how they move."""

Cotangents: TypeAlias = Sequence[Cotangent]
"""What a rule `transpose` gives: one for each operand."""

Batched: TypeAlias = tuple[Operand, BatchDim]
"""What a rule `batch` gives: the result, or results, for a batch, and where its dimension is."""

LoweringContext: TypeAlias = Any  # type: ignore[explicit-any]
"""Where a rule `lower` builds: a `stablehlo.LoweringContext`, of a room that uses this one."""


class Primitive:
    """One operation and its rules.  Arrays are positional, parameters keyword-only and hashable.

    A subclass gives `abstract_eval` and `lower`, and whichever of `jvp`, `transpose` and `batch`
    make sense.  With `multiple_results`, rules take and return sequences; a primitive that runs
    programs of the user, jaxprs among its parameters, has it.

    What a single analysis asks is not a member: it stands in a table that the analysis owns, see
    `core/rules.py`.

    Attributes:
        name: what jaxprs print.
        multiple_results: whether `bind` returns a list instead of one value.
        has_effects: whether `effects` must be asked for each equation.
        impl: an eager implementation in Python; None: the operation is compiled as a program.
        partial_eval: splits an operation that holds a jaxpr into a known and a staged part:
            `(trace, args, params)`; None: it is known or staged as a whole.
    """

    name: str = ""
    multiple_results: ClassVar[bool] = False
    has_effects: ClassVar[bool] = False
    impl: Rule = None
    partial_eval: Rule = None

    def __init__(self, name: str = "") -> None:
        self.name = name or self.name
        if self.name in PRIMITIVES:
            error(ValueError, self.name, "a primitive of this name exists already.")
        PRIMITIVES[self.name] = self
        caller = sys._getframe(1)
        self.declared_at = f"{caller.f_code.co_filename}:{caller.f_lineno}"

    def bind(self, *args: Operand, **params: Param) -> Result:
        """Applies the operation in the current trace."""
        outs = current.value.process(self, args, params)
        return outs if self.multiple_results else outs[0]

    def bind_all(self, *args: Operand, **params: Param) -> Sequence[Operand]:
        """Applies the operation in the current trace; always a sequence of results."""
        return current.value.process(self, args, params)

    def abstract_eval(self, *avals: Aval, **params: Param) -> Result:
        """The type of the result, or the types of the results."""
        self._missing("abstract evaluation (abstract_eval)")

    def effects(self, *avals: Aval, **params: Param) -> Effects:
        """The side effects of one application."""
        return NO_EFFECTS

    def lower(self, ctx: LoweringContext, *values: Operand, **params: Param) -> Result:
        """StableHLO for the operation: the value, or values, of its results."""
        self._missing("lowering to StableHLO (lower)")

    def jvp(self, *args: Operand, **params: Param) -> Dual:
        """Of `primals, tangents`: primal and tangent results.

        Tangents may be `Zero`, though not all of them: such an operation is not differentiated.
        """
        self._missing(
            "forward-mode differentiation (jvp)",
            "lax.stop_gradient on its operands where no derivative is meant, custom_jvp or "
            "custom_vjp around the call where one is, or the rule on its class",
        )

    def transpose(self, *args: Operand, **params: Param) -> Cotangents:
        """Of `ct, *args`: cotangents of the linear arguments, None for the others."""
        self._missing("reverse-mode differentiation (transpose)")

    def batch(self, *args: Operand, **params: Param) -> Batched:
        """Of `size, args, dims`: the result over a batch, and where its batch dimension is."""
        self._missing("batching (batch)")

    def shard(self, *args: Operand, **params: Param) -> Result:
        """Returns a `PartitionSpec` for the result, or one for each, given types `avals, outs`.

        Called if Explicit mesh axes partition an operand, or if the user specifies how the results
        are partitioned.  A spec has an entry for each dimension.  Without this rule, results whose
        type `abstract_eval` copied from an operand are partitioned as the operands are.

        Raises:
            ShardingTypeError: the operands' shardings are incompatible.
        """
        self._missing(
            "the shardings of results on Explicit mesh axes (shard)",
            "define shard(self, avals, outs, **params) on its class: it returns a PartitionSpec "
            "with an entry for each dimension of the result.  For an elementwise operation: "
            "shard = minijax.sharding.rules.elementwise.  Or wrap the call in "
            "minijax.sharding.auto_axes, where the compiler chooses",
            got=", ".join(map(str, args[0])) if args else None,
        )

    def _missing(self, rule: str, fix: str = "", got: str | None = None) -> NoReturn:
        error(
            MissingRule,
            self.name,
            f"the primitive has no rule for {rule}.",
            got=got,
            fix=fix or "define the rule on its class, or wrap the call in custom_jvp or custom_vjp",
        )

    def __repr__(self) -> str:
        return self.name
