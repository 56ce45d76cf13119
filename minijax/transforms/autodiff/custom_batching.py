"""Custom batching: a function with a rule for how `vmap` maps it.

Input: a user's function and rule.  Output: the primitive `custom_vmap_call`, which every
transformation but batching looks through.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from minijax.core import printing, source, tree
from minijax.core.aval import aval_of
from minijax.core.check import same_type
from minijax.core.errors import error
from minijax.core.operators import BatchDims, Values
from minijax.core.primitive import Batched, Dual, Zero
from minijax.interpreters import checking, flattening, jvp, structural_keys
from minijax.interpreters.batching import BatchTrace
from minijax.interpreters.confinement import Confined, closed_over, confine
from minijax.interpreters.structural import instantiate, to_batch_dim
from minijax.lax.control_flow.scanning import map as map_slices
from minijax.transforms import jaxpr_call
from minijax.transforms.autodiff import calls, custom_jvp
from minijax.transforms.autodiff.calls import Call
from minijax.transforms.autodiff.custom_jvp import FlatPrimal, Rule

if TYPE_CHECKING:
    from minijax.core.native import PyTreeDef

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

FlatRule = Callable[..., tuple[list[Any], list[bool]]]


class CustomVmapCall(calls.FunctionCall):
    """Calls a function that `vmap` maps by `rule`.

    `rule(size, batched, *args)` takes arguments mapped along dimension 0 where `batched` says so,
    and gives results and which of them are mapped, all flat.  The first `num_consts` operands are
    what the function closes over; the rule does not take them.
    """

    name = "custom_vmap_call"

    def partial_eval(self, trace: object, args: Values, params: dict[str, Any]) -> list[Any]:
        # Known results must not wait for unknown tangents: the function in place of the call.
        return calls.evaluate(params["call_jaxpr"], args)

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        name: str,
        call_jaxpr: Call,
        rule: FlatRule,
        num_consts: int,
    ) -> Dual:
        calls.check_constants(name, tangents, num_consts)
        moving = [i for i, t in enumerate(tangents) if type(t) is not Zero]
        joint = _Joint(len(primals), num_consts, moving)
        results = self.bind(
            *primals,
            *(tangents[i] for i in moving),
            name=name,
            call_jaxpr=joint.call(call_jaxpr),
            rule=joint.rule(rule),
            num_consts=num_consts,
        )
        outs = results[: len(joint.has_tangent)]
        out_dots = iter(results[len(outs) :])
        return outs, [
            next(out_dots) if has_tangent else Zero.like(x)
            for x, has_tangent in zip(outs, joint.has_tangent, strict=True)
        ]

    def batch(
        self,
        trace: BatchTrace,
        args: Values,
        dims: BatchDims,
        *,
        name: str,
        call_jaxpr: Call,
        rule: FlatRule,
        num_consts: int,
    ) -> Batched:
        args, dims = calls.batched_args(args, dims)
        batched = [d is not None for d in dims]
        for x, is_mapped in zip(args[:num_consts], batched, strict=False):
            if is_mapped:
                raise closed_over(name, f"{aval_of(x)}, mapped by vmap")
        if any(batched):
            confined = Confined(rule, trace, name)
            outs, out_batched = confined(trace.size, batched[num_consts:], *args[num_consts:])
            return outs, [0 if b else None for b in out_batched]
        params = {"name": name, "call_jaxpr": call_jaxpr, "rule": rule, "num_consts": num_consts}
        results = self.bind(*args, **confine(params, trace))
        return results, [None] * len(results)


structural_keys.unlowered_params.set(frozenset({"rule"}), CustomVmapCall)
checking.check_inside.rule(CustomVmapCall)(jaxpr_call.check_custom_vmap_call)


@printing.shows.rule(CustomVmapCall)
def _shown_params_of_custom_vmap_call(
    primitive: CustomVmapCall, params: Mapping[str, Any]
) -> dict[str, Any]:
    shown = {"call": params["call_jaxpr"], "rule": params["rule"]}
    return {**shown, "num_consts": params["num_consts"]} if params["num_consts"] else shown


custom_vmap_call_p = CustomVmapCall()


class _Joint:
    """A function and its rule, both with tangents: what they compute, and how it moves.

    Operands are those of the function, then the tangents of the `moving` ones; results are those
    of the function, then the tangents of those that `has_tangent`, known once one of both has run.
    """

    def __init__(self, count: int, num_consts: int, moving: Sequence[int]) -> None:
        self._count = count
        self._num_consts = num_consts
        self._moving = moving
        self.has_tangent: list[bool] = []

    def _run(
        self, function: Callable[..., Sequence[Any]], args: Sequence[Any], moving: Sequence[int]
    ) -> list[Any]:
        count = len(args) - len(moving)
        tangents = [Zero.like(x) for x in args[:count]]
        for i, t in zip(moving, args[count:], strict=True):
            tangents[i] = t
        outs, out_dots = jvp.jvp_flat(function, args[:count], tangents)
        self.has_tangent = [not custom_jvp.is_float0(aval_of(x).tangent_aval()) for x in outs]
        return outs + [
            instantiate(t) for t, has in zip(out_dots, self.has_tangent, strict=True) if has
        ]

    def call(self, call: Call) -> Callable[..., list[Any]]:
        """The function with tangents."""
        return lambda *args: self._run(lambda *xs: calls.evaluate(call, xs), args, self._moving)

    def rule(self, rule: FlatRule) -> FlatRule:
        """The rule with tangents: a tangent and its primal are mapped both, or neither."""
        count = self._count - self._num_consts
        moving = [i - self._num_consts for i in self._moving]

        @functools.wraps(rule, assigned=("__name__",), updated=())
        def with_tangents(
            size: int, batched: Sequence[bool], *args: Any
        ) -> tuple[list[Any], list[bool]]:
            whole = list(batched[:count])
            for i, is_mapped in zip(moving, batched[count:], strict=True):
                whole[i] = whole[i] or is_mapped
            placed = [
                to_batch_dim(x, 0 if given else None, 0, size) if wanted else x
                for x, given, wanted in zip(
                    args, batched, [*whole, *(whole[i] for i in moving)], strict=True
                )
            ]
            out_batched: list[bool] = []

            def outs_of(*xs: Any) -> list[Any]:
                outs, out_batched[:] = rule(size, whole, *xs)
                return outs

            results = self._run(outs_of, placed, moving)
            dots = [b for b, has in zip(out_batched, self.has_tangent, strict=True) if has]
            return results, out_batched + dots

        return with_tangents


class _FlatVmapRule:
    """A user's rule as one of leaves."""

    __slots__ = ("__name__", "_in_tree", "_primal", "_rule", "out_tree")

    def __init__(self, rule: Rule, primal: FlatPrimal, in_tree: PyTreeDef) -> None:
        self.__name__ = rule.name
        self._rule = rule
        self._primal = primal
        self._in_tree = in_tree
        self.out_tree: Any = None

    def __call__(
        self, size: int, batched: Sequence[bool], *leaves: Any
    ) -> tuple[list[Any], list[bool]]:
        args, _ = tree.unflatten(self._in_tree, custom_jvp.as_arrays(leaves))
        in_batched, _ = tree.unflatten(self._in_tree, batched)
        result = self._rule(size, list(in_batched), *args)
        out, out_batched = self._rule.pair(result, "(out, out_batched)")
        outs, self.out_tree = tree.flatten(out)
        flags, flags_tree = tree.flatten(out_batched)
        title = self._rule.title
        custom_jvp.check_arrays(title, f"a result of {self._rule}", outs, self.out_tree)
        if flags_tree != self.out_tree:
            problem = f"{self._rule} returns out_batched of another structure than out."
            got = {"out": self.out_tree, "out_batched": flags_tree}
            expected = "True or False for each leaf of out"
            error(ValueError, title, problem, got=got, expected=expected)
        flags = list(map(bool, flags))
        self._check(size, outs, flags)
        return outs, flags

    def _check(self, size: int, outs: Values, flags: Sequence[bool]) -> None:
        names = flattening.result_paths(self.out_tree)
        avals = [aval_of(x) for x in outs]
        wrong = [
            f"{name}: {aval}"
            for name, aval, mapped in zip(names, avals, flags, strict=True)
            if mapped and aval.shape[:1] != (size,)
        ]
        if wrong:
            problem = f"{self._rule} returns results whose first dimension is not the batch."
            expected = f"a first dimension of {size}, as out_batched says"
            error(ValueError, self._rule.title, problem, got="\n".join(wrong), expected=expected)
        seen = self._primal.seen
        if seen.out_tree is None:
            return
        if self.out_tree != seen.out_tree:
            problem = f"{self._rule} returns results of another structure than the function."
            got = {"rule": self.out_tree, "function": seen.out_tree}
            error(ValueError, self._rule.title, problem, got=got)
        of_example = [a.without_dim(0) if b else a for a, b in zip(avals, flags, strict=True)]
        wrong = [
            f"{name}: {given} for an example, {aval} from the function"
            for name, given, aval in zip(names, of_example, seen.avals, strict=True)
            if not same_type(given, aval)
        ]
        if wrong:
            problem = f"{self._rule} returns results of other types than the function."
            error(ValueError, self._rule.title, problem, got="\n".join(wrong))


@source.boundaries("__init__", "def_vmap", "__call__")
class custom_vmap(Generic[R]):  # noqa: N801  mirrors jax.custom_batching.custom_vmap
    """A function that `vmap` maps by a rule, which is set with `def_vmap`.

    Forward mode differentiates both, the function and its rule; reverse mode differentiates
    through the function.
    Source: mirrors jax.custom_batching.custom_vmap (0.10); superset: it can be differentiated in
        reverse mode.

    Args:
        fun: the function, of trees.

    Raises:
        AttributeError: it is called before it has a rule.
        TypeError: the arguments do not fit the function.
        ValueError: the rule returns trees or types that do not fit.
        UnexpectedTracerError: it closes over a value that is mapped or differentiated.

    Example:
        >>> @jax.custom_batching.custom_vmap
        ... def total(x, y):
        ...     return jnp.sum(x) + jnp.sum(y)
        >>> @total.def_vmap
        ... def rule(axis_size, in_batched, x, y):
        ...     print(axis_size, in_batched)
        ...     return jnp.sum(x, axis=1) + jnp.sum(y), True
        >>> jax.vmap(total, in_axes=(0, None))(jnp.ones((2, 3)), jnp.ones(5))
        2 [True, False]
        Array([8., 8.], dtype=float32)
    """

    def __init__(self, fun: Callable[..., R]) -> None:
        self._signature = custom_jvp.Signature("custom_vmap", fun, (), ())
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.vmap_rule: Callable[..., Any] | None = None

    __getattr__ = custom_jvp.CustomRules.__getattr__

    def def_vmap(self, vmap_rule: F) -> F:
        """Sets the rule `vmap_rule(axis_size, in_batched, *args) -> (out, out_batched)`.

        Args:
            vmap_rule: takes whole batches, along dimension 0 of the leaves that `in_batched`, a
                list with a tree for each argument, marks True; `out_batched` tells the same of
                `out`.

        Returns:
            `vmap_rule`.
        """
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        signature = self._signature
        if self.vmap_rule is None:
            problem = "the function has no rule yet."
            error(AttributeError, signature.title, problem, fix=f"{signature.name}.def_vmap(rule)")
        args = signature.positional(args, kwargs)
        given = signature.flatten(args, range(len(args)))
        primal = FlatPrimal(self.fun, given.in_tree, signature.name)
        rule = _FlatVmapRule(Rule(signature.title, "rule", self.vmap_rule), primal, given.in_tree)
        outs = custom_vmap_call_p.bind(
            *given.leaves, name=signature.name, call_jaxpr=primal, rule=rule, num_consts=0
        )
        seen = primal.seen.out_tree
        return tree.unflatten(rule.out_tree if seen is None else seen, outs)


def sequential_vmap(f: Callable[..., R]) -> custom_vmap[R]:
    """`f`, which `vmap` applies to one example after the other.

    Lowers to:  stablehlo.while where it is mapped.

    Example:
        >>> f = jax.custom_batching.sequential_vmap(lambda x: x * 2)
        >>> jax.vmap(f)(jnp.arange(3))
        Array([0, 2, 4], dtype=int32)
    """
    function = custom_vmap(f)

    @function.def_vmap
    def one_by_one(_size: int, in_batched: list[Any], *args: Any) -> tuple[Any, Any]:
        leaves, args_tree = tree.flatten(args)
        batched = tree.leaves(tuple(in_batched))

        def of_example(mapped: Sequence[Any]) -> Any:
            given = iter(mapped)
            merged = [next(given) if b else x for x, b in zip(leaves, batched, strict=True)]
            return function(*tree.unflatten(args_tree, merged))

        out = map_slices(of_example, [x for x, b in zip(leaves, batched, strict=True) if b])
        return out, tree.map(lambda _: True, out)

    return function
