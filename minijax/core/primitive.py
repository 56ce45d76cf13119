"""Primitives: the operations of the language, each one class whose methods are its rules.

`bind` hands an operation to the current trace; the trace asks the primitive for the rule it
needs.  Nothing is looked up by name: `PRIMITIVES` serves tools and tests.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NoReturn

from minijax.core.errors import MissingRule, error
from minijax.core.jaxpr import NO_EFFECTS
from minijax.core.trace import current

PRIMITIVES: dict[str, Primitive] = {}


class Primitive:
    """One operation and its rules.  Arrays are positional, parameters keyword-only and hashable.

    A subclass gives `abstract_eval` and `lower`, and whichever of `jvp`, `transpose` and `batch`
    make sense.  With `multiple_results`, rules take and return sequences; a primitive that runs
    programs of the user, jaxprs among its parameters, has it.

    Attributes:
        name: what jaxprs print.
        multiple_results: whether `bind` returns a list instead of one value.
        has_effects: whether `effects` must be asked for each equation.
        hidden_params: parameters that jaxprs do not print, because types tell them.
        hidden_when_empty: parameters that jaxprs print only where they are not empty, nor None.
        without: rules that make no sense for the operation, such as "jvp"; the docstring says why.
    """

    name: str = ""
    multiple_results: ClassVar[bool] = False
    has_effects: ClassVar[bool] = False
    hidden_params: ClassVar[frozenset[str]] = frozenset()
    hidden_when_empty: ClassVar[frozenset[str]] = frozenset()
    without: ClassVar[frozenset[str]] = frozenset()
    # Parameters that `lower` does not read: programs that differ in them alone compile to the same.
    unlowered_params: ClassVar[frozenset[str]] = frozenset()
    # Parameters that name axes which the operation uses, and the one that names an axis it binds.
    axis_params: tuple[str, ...] = ()
    binds_axis: ClassVar[str | None] = None
    # Over which mesh axes results vary: `vary(avals, outs, **params)`, a `ManualAxisType` or one of
    # each result; None: the operation is local, so its results vary where its operands do, see
    # `variance.join`.
    vary: Any = None
    # Casts operands that are of other kinds over mesh axes: `agree(trace, args, params)` gives the
    # arguments and parameters that fit together; asked where types speak of mesh axes.
    agree: Any = None
    # The context that jaxprs among the parameters are written for: `inside(**params)`, a context
    # manager; None: that of the equation.
    inside: Any = None
    # The parameter that says over how many devices the operation maps, each of which runs a
    # replica of the program; "" if over none.
    maps_devices: ClassVar[str] = ""
    # Whether devices wait for each other in it.
    communicates: ClassVar[bool] = False
    # Whether on devices of the host all devices of the program do, not only those along its axes.
    waits_for_all: bool = False
    # Whether, along the axes that it names, all devices get the same; and whether a device may get
    # something else than others from the same operands.
    makes_equal: bool = False
    makes_different: ClassVar[bool] = False
    # Along which axes the results differ between devices, where types do not tell:
    # `differ(flow, given, **params)`, see `interpreters/uniformity.py`; for operations that choose
    # what to do; None: along those along which the operands do, or the one jaxpr in it tells.
    differ: Any = None
    # Positions of operands in which the operation is linear together while the others are whole,
    # such as ((0,), (1,)) for products: where devices hold summands of those, they do of the
    # result.  `(1, ...)` are all from 1 on.  With `keeps_unreduced` they are all operands.
    linear_in: tuple[tuple[Any, ...], ...] = ()
    # The batching rule where the mapped axis is one that the operation itself names:
    # `batch_axis(size, name, args, dims, **params)`, asked even if no operand is mapped.
    batch_axis: Any = None
    # The batching rule where the user says that mesh axes split the batch, asked first there:
    # `batch_spmd(size, mesh axes, args, dims, **params)`.
    batch_spmd: Any = None
    # Whether parameters are Python functions, which may close over tracers.  `batch` is then given
    # the trace in place of the size, and a parameter `name` tells whose functions they are.
    holds_functions: ClassVar[bool] = False
    # Whether `lower` takes operands of extended dtypes, such as random keys, as they are.
    knows_extended: ClassVar[bool] = False
    # What an operation that gives no extended dtype says of its operands, from what it says of the
    # numbers underneath: `over_words(result, dim)`, where these are along `dim`.
    over_words: Any = None
    # The parameter that says how results are split, for operations that users may tell.
    sharding_param: ClassVar[str] = ""
    # Whether an operand of which devices hold summands gives a result of which they do.
    keeps_unreduced: bool = False
    # Whether `shard` itself gives the axes over which results are unreduced or reduced.
    knows_sums: ClassVar[bool] = False
    # Whether programs constrain results to their shardings; equations inside may have done so.
    constrains_results: ClassVar[bool] = True
    # Whether operands may be on other meshes than the results.
    changes_mesh: ClassVar[bool] = False
    # Whether results are references.  What is written to them later may belong to a trace that has
    # no part in the operands, so traces apply their rules to such an operation in any case.
    makes_references: ClassVar[bool] = False
    # An eager implementation in Python; None means: compile the operation as a program.
    impl: Any = None
    # Splits an operation that holds a jaxpr into a known and a staged part; None: opaque.
    partial_eval: Any = None
    # Drops unused outputs of an operation that holds a jaxpr; None: opaque.
    dead_code: Any = None
    # Divides an operation that holds a jaxpr between now and later, for `checkpoint`:
    # `divide(eqn, wanted, policy)` gives a `rematerialization.Division`; None: a policy is asked
    # about the operation as a whole.
    divide: Any = None
    # Makes the equation of an operation whose parameters are Python functions, by staging them
    # first: `stage(trace, args, params)`, which returns None where the parameters are those of the
    # equation already; without a rule they always are.
    stage: Any = None
    # Applies an operation on references to `refs.Cell`s in their place: reads values, applies what
    # is pure, writes values; None: references are no operands of it.
    discharge: Any = None
    # Applies an operation that holds jaxprs to traced references: `with_references(args, params)`
    # reads them before and writes them after, so that the other rules see values only.
    with_references: Any = None
    # The text of an equation that has a notation of its own: `notation(eqn, name, outs)`, where
    # `name(atom)` names an operand and `outs` are the results with their types.
    notation: Any = None
    # Walks through an operation that holds jaxprs: `walk(run, *args, **params)` evaluates them in
    # order with `run(closed, *args)`, for what is seen on the way; None: opaque.
    walk: Any = None
    # The placement on devices that one application demands: `names_placement(**params)`, a sharding
    # or None; without the rule no application demands any.
    names_placement: Any = None
    # What may go wrong in one application: `faults(args, outs, **params)`, a list of
    # `checking.Fault`; None: only what may happen to every operation, a NaN or an infinity.
    faults: Any = None
    # Checks the insides of an operation that holds jaxprs: `check_inside(checker, args, params)`
    # applies it with jaxprs that also return their first fault, and returns the results; None:
    # opaque.
    check_inside: Any = None
    # What becomes of faulty elements of the operands: "elementwise", those of the result in the
    # same places; "preserves", so too, and it makes none of its own; "moves", the operation puts
    # them elsewhere; "copies", the result holds elements of the operands and none of its own;
    # "selects", only those chosen; "inspects", the result tells which are faulty; "computes",
    # anything.
    fault_flow: str = "computes"
    # The operands whose random keys are used up.
    consumes_keys: tuple[int, ...] = ()
    # The keys of the results: `follow_keys(flow, keys of the operands, **params)`; None: those of
    # the one jaxpr that the operation holds, of the elements that it moves, or new ones.
    follow_keys: Any = None

    def __init__(self, name: str = "") -> None:
        self.name = name or self.name
        if self.name in PRIMITIVES:
            error(ValueError, self.name, "a primitive of this name exists already.")
        PRIMITIVES[self.name] = self
        caller = sys._getframe(1)
        self.declared_at = f"{caller.f_code.co_filename}:{caller.f_lineno}"

    def bind(self, *args: Any, **params: Any) -> Any:
        """Applies the operation in the current trace."""
        outs = current.value.process(self, args, params)
        return outs if self.multiple_results else outs[0]

    def bind_all(self, *args: Any, **params: Any) -> Sequence[Any]:
        """Applies the operation in the current trace; always a sequence of results."""
        return current.value.process(self, args, params)

    def shown_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters that jaxprs print, as they print them."""
        return {
            k: v
            for k, v in sorted(params.items())
            if k not in self.hidden_params
            and (k not in self.hidden_when_empty or (v is not None and v != ()))
        }

    def abstract_eval(self, *avals: Any, **params: Any) -> Any:
        """The type of the result, or the types of the results."""
        self._missing("abstract evaluation (abstract_eval)")

    def effects(self, *avals: Any, **params: Any) -> frozenset[Any]:
        """The side effects of one application."""
        return NO_EFFECTS

    def lower(self, ctx: Any, *values: Any, **params: Any) -> Any:
        """StableHLO for the operation: the value, or values, of its results."""
        self._missing("lowering to StableHLO (lower)")

    def jvp(self, *args: Any, **params: Any) -> Any:
        """Of `primals, tangents`: primal and tangent results; tangents may be `Zero`."""
        self._missing(
            "forward-mode differentiation (jvp)",
            "lax.stop_gradient on its operands where no derivative is meant, custom_jvp or "
            "custom_vjp around the call where one is, or the rule on its class",
        )

    def transpose(self, *args: Any, **params: Any) -> Any:
        """Of `ct, *args`: cotangents of the linear arguments, None for the others."""
        self._missing("reverse-mode differentiation (transpose)")

    def batch(self, *args: Any, **params: Any) -> Any:
        """Of `size, args, dims`: the result over a batch, and where its batch dimension is."""
        self._missing("batching (batch)")

    def shard(self, *args: Any, **params: Any) -> Any:
        """Of `avals, outs`, the types of operands and results: how the results are split.

        Asked for where Explicit mesh axes split an operand, or the user says how the results are
        split.  For the result, or each result, a `PartitionSpec` with an entry for each dimension;
        raises a `ShardingTypeError` where the operands' shardings do not fit together.
        """
        self._missing("shardings in types (shard)")

    def _missing(self, rule: str, fix: str = "") -> NoReturn:
        error(
            MissingRule,
            self.name,
            f"the primitive has no rule for {rule}.",
            fix=fix or "define the rule on its class, or wrap the call in custom_jvp or custom_vjp",
        )

    def __repr__(self) -> str:
        return self.name
