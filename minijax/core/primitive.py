"""Primitives: the operations of the language, each one class whose methods are its rules.

`bind` hands an operation to the current trace; the trace asks the primitive for the rule it
needs.  Nothing is looked up by name: `PRIMITIVES` serves tools and tests.

`docs/reading.md`: read after `core/trace.py`; `interpreters/staging.py` is next.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NoReturn, Protocol, TypeAlias, final

from minijax.core import aval as core_aval
from minijax.core.aval import AbstractValue
from minijax.core.errors import MissingRule, error
from minijax.core.jaxpr import NO_EFFECTS, Effects
from minijax.core.meshes import PartitionSpec
from minijax.core.operators import Avals, BatchDims, Function, Value, Values
from minijax.core.trace import current

PRIMITIVES: dict[str, Primitive] = {}


@final
class Zero:
    """A tangent or cotangent known to be zero; `aval` is its type.

    Rules get it in place of an array of zeros, so that they can leave out what depends on it.

    Source:     mirrors jax.interpreters.ad.Zero (0.10).

    Example:
        >>> zero = jax.extend.ad.Zero(jax.typeof(jnp.arange(3.0)))
        >>> zero, jax.extend.ad.instantiate_zeros(zero)
        (Zero(f32[3]), Array([0., 0., 0.], dtype=float32))
    """

    __slots__ = ("aval",)

    aval: AbstractValue

    def __init__(self, aval: AbstractValue) -> None:
        self.aval = aval

    @staticmethod
    def like(primal: Value) -> Zero:
        """The zero tangent of a primal value."""
        return Zero(core_aval.aval_of(primal).tangent_aval())

    def made(self) -> Any:
        """The zeros as a value."""
        return core_aval.zeros(self.aval)

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


Tangent: TypeAlias = Value | Zero
"""A value of the tangent type of its primal, or a symbolic zero."""

Tangents: TypeAlias = Sequence[Tangent]

Cotangent: TypeAlias = Value | Zero | None
"""A value of the cotangent type of its primal, or zero: a `Zero`, or None."""

Dual: TypeAlias = tuple[Value | Values, Tangent | Tangents]
"""Primal and tangent of the result; with `multiple_results`, those of all results."""

Cotangents: TypeAlias = Sequence[Cotangent]
"""The cotangents of the operands; None for operands that are not linear."""

Batched: TypeAlias = tuple[Value | Values, int | BatchDims | None]
"""The result for a batch and its batch dimension; with `multiple_results`, those of all results."""


class LoweringContext(Protocol):
    """Builds the StableHLO of one equation: the part of `stablehlo.LoweringContext` used here.

    The values, types and attributes are MLIR's, whose classes cannot be imported below `lowering/`.
    """

    avals_in: Avals
    avals_out: Avals
    platform: str
    module: Any

    def op(
        self, name: str, operands: Sequence[Any], attributes: dict[str, Any] | None = None
    ) -> Any:
        """Builds an operation with one result."""

    def ops(
        self,
        name: str,
        operands: Sequence[Any],
        attributes: dict[str, Any] | None = None,
        types: Sequence[Any] | None = None,
        regions: Sequence[tuple[Sequence[Any], Function]] = (),
    ) -> list[Any]:
        """Builds an operation with any number of results."""

    def reduce(self, combiner: str, x: Any, axes: Sequence[int], init: Value) -> Any:
        """Builds a reduction over `axes`."""

    def tensor_type(self, shape: Sequence[int], dtype: Any) -> Any:
        """The type of tensors of a shape and dtype."""

    def i64_array(self, values: Iterable[int]) -> Any:
        """An attribute that holds integers."""

    def string(self, text: str) -> Any:
        """An attribute that holds text."""

    def boolean(self, value: bool) -> Any:
        """An attribute that is true or false."""

    def attribute(self, text: str) -> Any:
        """An attribute parsed from MLIR's text."""


class Primitive:
    """One operation and its rules.  Arrays are positional, parameters keyword-only and hashable.

    A subclass gives `abstract_eval` and `lower`, and whichever of `jvp`, `transpose` and `batch`
    make sense.  With `multiple_results`, rules take and return sequences; a primitive that runs
    programs of the user, jaxprs among its parameters, has it.

    Each rule names the types of its own operands and parameters.  Where the class here says `Any`
    for a result, it is one value, or with `multiple_results` a sequence: rules say `Dual`,
    `Batched`, and a type or types.

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
    impl: Function | None = None
    partial_eval: Function | None = None

    def __init__(self, name: str = "") -> None:
        self.name = name or self.name
        if self.name in PRIMITIVES:
            error(ValueError, self.name, "a primitive of this name exists already.")
        PRIMITIVES[self.name] = self
        caller = sys._getframe(1)
        self.declared_at = f"{caller.f_code.co_filename}:{caller.f_lineno}"

    def bind(self, *args: Value, **params: Any) -> Any:
        """Applies the operation in the current trace."""
        outs = current.value.process(self, args, params)
        return outs if self.multiple_results else outs[0]

    def bind_all(self, *args: Value, **params: Any) -> Sequence[Any]:
        """Applies the operation in the current trace; always a sequence of results."""
        return current.value.process(self, args, params)

    def abstract_eval(self, *avals: Any, **params: Any) -> Any:
        """The type of the result, or the types of the results."""
        self._missing("abstract evaluation (abstract_eval)")

    def effects(self, *avals: Any, **params: Any) -> Effects:
        """The side effects of one application."""
        return NO_EFFECTS

    def lower(self, *args: Any, **params: Any) -> Any:
        """Of `ctx, *values`: StableHLO for the operation; the value, or values, of its results."""
        self._missing("lowering to StableHLO (lower)")

    def jvp(self, *args: Any, **params: Any) -> Any:
        """Of `primals, tangents`: primal and tangent results.

        Tangents may be `Zero`, though not all of them: such an operation is not differentiated.
        """
        self._missing(
            "forward-mode differentiation (jvp)",
            "lax.stop_gradient on its operands where no derivative is meant, custom_jvp or "
            "custom_vjp around the call where one is, or the rule on its class",
        )

    def transpose(self, *args: Any, **params: Any) -> Cotangents:
        """Of `ct, *args`: cotangents of the linear arguments, None for the others."""
        self._missing("reverse-mode differentiation (transpose)")

    def batch(self, *args: Any, **params: Any) -> Any:
        """Of `size, args, dims`: the result over a batch, and where its batch dimension is."""
        self._missing("batching (batch)")

    def shard(self, *args: Any, **params: Any) -> PartitionSpec | Sequence[PartitionSpec]:
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
