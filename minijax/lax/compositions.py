"""Operations that stand for a composition of others, and get their rules from it.

`Composed` is their family.  `composite` is the one whose composition the user writes: in a module
it has a name, by which a compiler may put its own in place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from minijax.core import tree, vma
from minijax.core.aval import ShapedArray, aval_of
from minijax.core.errors import UnexpectedTracerError, error
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.primitive import Primitive
from minijax.core.trace import Tracer
from minijax.interpreters import batching, jvp, staging, transpose
from minijax.interpreters.jvp import Zero, is_linear, with_zeros
from minijax.interpreters.structural import moveaxis
from minijax.lowering import custom_calls, eager, module, stablehlo
from minijax.sharding import rules


class Composed(Primitive):
    """Family: what is equal to a composition of other operations, given as a jaxpr.

    Under transformations the composition takes the place of the operation.
    """

    shard = rules.from_types

    def composition(self, avals: Sequence[Any], params: Mapping[str, Any]) -> ClosedJaxpr:
        """What the operation is equal to, for operands of some types."""
        raise NotImplementedError

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> Any:
        return self._outs(self.composition(avals, params).out_avals)

    def lower(self, ctx: Any, *values: Any, **params: Any) -> Any:
        closed = self.composition(ctx.avals_in, params)
        return self._outs(
            module.lower_jaxpr(ctx, closed.jaxpr, closed.consts, values, location=ctx.location)
        )

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        closed = self.composition([aval_of(x) for x in primals], params)
        nonzero = [type(t) is not Zero for t in tangents]
        derivative, out_nonzero = jvp.jvp_jaxpr(closed, nonzero)
        given = [t for t in tangents if type(t) is not Zero]
        outs = staging.eval_closed_jaxpr(derivative, *primals, *given)
        count = len(out_nonzero)
        dots = with_zeros(out_nonzero, outs[count:], closed.out_avals)
        return self._outs(outs[:count]), self._outs(dots)

    def transpose(self, ct: Any, *args: Any, **params: Any) -> list[Any]:
        linear = [is_linear(x) for x in args]
        closed = self.composition([x.aval if is_linear(x) else aval_of(x) for x in args], params)
        cts = ct if self.multiple_results else [ct]
        backward, nonzero = transpose.transpose_jaxpr(
            closed, linear, [type(c) is not Zero for c in cts]
        )
        known = [x for x, lin in zip(args, linear, strict=True) if not lin]
        given = [c for c in cts if type(c) is not Zero]
        found = staging.eval_closed_jaxpr(backward, *known, *given)
        return transpose.of_arguments(linear, nonzero, found)

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        moved = [x if d is None else moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
        avals = [
            aval_of(x).with_shape(aval_of(x).shape[d is not None :])
            for x, d in zip(moved, dims, strict=True)
        ]
        closed = self.composition(avals, params)
        body, batched = batching.batch_jaxpr(closed, size, [d is not None for d in dims])
        outs = staging.eval_closed_jaxpr(body, *moved)
        return self._outs(outs), self._outs([0 if b else None for b in batched])

    def _outs(self, outs: Sequence[Any]) -> Any:
        return list(outs) if self.multiple_results else outs[0]


class Composite(Composed):
    """A composition under a name that compilers may know.

    Shapes: those of the jaxpr.  Derivatives and batches are those of the composition.
    """

    name = "composite"
    multiple_results = True

    def composition(self, avals: Sequence[Any], params: Mapping[str, Any]) -> ClosedJaxpr:
        closed: ClosedJaxpr = params["jaxpr"]
        return closed

    def lower(
        self,
        ctx: Any,
        *values: Any,
        jaxpr: ClosedJaxpr,
        name: str,
        version: int,
        attributes: tuple[tuple[str, Any], ...],
    ) -> list[Any]:
        function = ctx.module.fresh_name(name)
        ctx.module.function(function, jaxpr.jaxpr, jaxpr.consts)
        entries = {key: custom_calls.to_mlir(value) for key, value in attributes}
        given = {
            "name": stablehlo.string(name),
            "decomposition": stablehlo.symbol(function),
            "version": stablehlo.integer(version, 32),
            "composite_attributes": stablehlo.dictionary(entries),
        }
        types = [stablehlo.type_of(aval) for aval in jaxpr.out_avals]
        return list(ctx.ops("stablehlo.composite", values, given, types=types))


vma.vary.rule(Composite)(vma.from_types)


composite_p = Composite()
# What the StableHLO specification takes for the name of an operation.
_NAMESPACED = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*([.][a-zA-Z0-9_$]+)+")


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """A function that a compiled module shows as one operation called `name`.

    A compiler that knows the name may compute it in its own way; any other calls `decomposition`.

    Derivative: that of the decomposition; with `custom_jvp` around it, another.
    Lowers to:  stablehlo.composite.
    Source:     mirrors jax.lax.composite (0.10); the StableHLO specification, "composite".

    Args:
        decomposition: a function of trees of arrays, and of keyword arguments that are known when
            the program is compiled: the attributes of the operation.
        name: of the operation, with the namespace of its library: "my.op".
        version: of what the name stands for.

    Raises:
        TypeError: `decomposition` is no function, or an attribute has no form in a module.
        UnexpectedTracerError: the decomposition closes over traced values, or one is an attribute.
        ValueError: the name has no namespace.

    Example:
        >>> square = lax.composite(lambda x: x * x, "my.square")
        >>> square(np.float32(3.0))
        Array(9., dtype=float32)
    """
    eager.check_callable("lax.composite", decomposition)
    if not _NAMESPACED.fullmatch(str(name)):
        error(
            ValueError,
            "lax.composite",
            "the name of an operation begins with that of its library.",
            got={"name": repr(name)},
            expected="letters, digits, underscores, and a dot between: 'my_library.my_op'",
        )

    def call(*args: Any, **attributes: Any) -> Any:
        leaves, in_tree = tree.flatten(args)
        out_trees = []

        def flat(*values: Any) -> list[Any]:
            outs = decomposition(*tree.unflatten(in_tree, values), **attributes)
            found, out_tree = tree.flatten(outs)
            out_trees.append(out_tree)
            return found

        known = _attributes(attributes)
        jaxpr, consts = staging.stage(flat, [aval_of(x) for x in leaves])
        _check_known("a constant of the decomposition", consts)
        outs = composite_p.bind(
            *leaves,
            jaxpr=ClosedJaxpr(jaxpr, consts),
            name=str(name),
            version=int(version),
            attributes=known,
        )
        return tree.unflatten(out_trees[0], outs)

    return call


def _attributes(given: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    _check_known("an attribute", tree.leaves(dict(given)))
    kept = {key: _with_tuples(value) for key, value in given.items() if value is not None}
    return custom_calls.attributes_of("lax.composite", kept)


def _with_tuples(value: Any) -> Any:
    """Attributes are compared, which lists cannot be."""
    if isinstance(value, list | tuple):
        return tuple(map(_with_tuples, value))
    if isinstance(value, dict):
        return {key: _with_tuples(part) for key, part in value.items()}
    return value


def _check_known(what: str, values: Sequence[Any]) -> None:
    for value in values:
        if isinstance(value, Tracer):
            error(
                UnexpectedTracerError,
                "lax.composite",
                f"{what} is traced.",
                got=str(aval_of(value)),
                expected="values that are known when the program is compiled",
                fix="pass it to the composite as a positional argument",
            )
