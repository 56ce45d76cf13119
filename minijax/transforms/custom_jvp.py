"""Custom forward derivatives: a function with a rule for its tangents.

Input: a user's function and rule.  Output: the primitive `custom_jvp_call`, which every
transformation but differentiation looks through.  Reverse mode transposes what the rule does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from minijax.core import printing, tree
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.interpreters import calls, checking, flattening, structure
from minijax.interpreters.batching import BatchTrace
from minijax.interpreters.calls import Call
from minijax.interpreters.structural import add_tangents, instantiate
from minijax.interpreters.tangents import Zero
from minijax.transforms import checked_calls, custom_rules
from minijax.transforms.custom_rules import FlatPrimal, Rule, SymbolicZero

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

FlatRule = Callable[[Sequence[Any], Sequence[Any]], tuple[list[Any], list[Any]]]


class CustomJvpCall(calls.FunctionCall):
    """Calls a function whose tangents come from the rule `jvp`.

    `jvp(primals, tangents)` gives results and their tangents, all flat; tangents may be `Zero`.
    The first `num_consts` operands are what the function closes over.
    """

    name = "custom_jvp_call"

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        name: str,
        call_jaxpr: Call,
        jvp: FlatRule,
        num_consts: int,
        symbolic_zeros: bool,
    ) -> tuple[list[Any], list[Any]]:
        calls.check_constants(name, tangents, num_consts)
        return jvp(primals[num_consts:], tangents[num_consts:])

    def batch(
        self, trace: BatchTrace, args: Sequence[Any], dims: Sequence[Any], **params: Any
    ) -> tuple[list[Any], Sequence[Any]]:
        return calls.batch_with(self, trace, args, dims, params, "jvp", _batched_rule)


structure.unlowered_params.set(frozenset({"jvp"}), CustomJvpCall)
checking.check_inside.rule(CustomJvpCall)(checked_calls.check_custom_jvp_call)


@printing.shows.rule(CustomJvpCall)
def _shown_params_of_custom_jvp_call(
    primitive: CustomJvpCall, params: Mapping[str, Any]
) -> dict[str, Any]:
    names = ("name", "call_jaxpr", "jvp", "num_consts", "symbolic_zeros")
    return {k: params[k] for k in names if k != "num_consts" or params[k]}


custom_jvp_call_p = CustomJvpCall()


def _batched_rule(
    trace: BatchTrace, rule: FlatRule, dims: Sequence[Any], out_dims: calls.OutDims
) -> FlatRule:
    """The rule on whole batches: a tangent is mapped where its primal is, a result's too."""

    @functools.wraps(rule, assigned=("__name__",), updated=())
    def on_batch(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        count = len(primals)
        moving = [i for i, t in enumerate(tangents) if type(t) is not Zero]
        out_dots: list[Any] = []

        def flat(*values: Any) -> list[Any]:
            dots = [Zero.like(x) for x in values[:count]]
            for i, t in zip(moving, values[count:], strict=True):
                dots[i] = t
            outs, out_dots[:] = rule(values[:count], dots)
            return outs + [t for t in out_dots if type(t) is not Zero]

        values, found = calls.run_again(
            trace,
            flat,
            [*primals, *(tangents[i] for i in moving)],
            [*dims, *(dims[i] for i in moving)],
        )
        num_outs = len(out_dots)
        given, given_dims = iter(values[num_outs:]), iter(found[num_outs:])
        dot_dims = [None if type(t) is Zero else next(given_dims) for t in out_dots]
        dots = [t if type(t) is Zero else next(given) for t in out_dots]
        joint = [a if a is not None else b for a, b in zip(found, dot_dims, strict=False)]
        out_dims.settle(joint)
        return out_dims.place(values[:num_outs], found[:num_outs]), out_dims.place(dots, dot_dims)

    return on_batch


class _FlatJvpRule:
    """A user's rule as one of leaves."""

    __slots__ = ("__name__", "held", "in_tree", "out_tree", "primal", "rule", "symbolic_zeros")

    def __init__(
        self, rule: Rule, primal: FlatPrimal, in_tree: Any, held: Any, symbolic_zeros: bool
    ) -> None:
        self.__name__ = rule.name
        self.rule = rule
        self.primal = primal
        self.in_tree = in_tree
        self.held = held
        self.symbolic_zeros = symbolic_zeros
        self.out_tree: Any = None

    def __call__(
        self, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        dots = [custom_rules.shown(t, self.symbolic_zeros) for t in tangents]
        args, _ = tree.unflatten(self.in_tree, custom_rules.as_arrays(primals))
        args_dot, _ = tree.unflatten(self.in_tree, custom_rules.as_arrays(dots))
        result = self.rule(*self.held, args, args_dot)
        out, out_dot = self.rule.pair(result, "(primal_out, tangent_out)")
        outs, self.out_tree = self.rule.primal_outs(out, self.primal.seen)
        out_dots, dots_tree = tree.flatten(out_dot)
        if dots_tree != self.out_tree:
            error(
                TypeError,
                self.rule.title,
                f"{self.rule} returns a tangent of another structure than its result.",
                got={"primal_out": self.out_tree, "tangent_out": dots_tree},
            )
        custom_rules.check_arrays(self.rule.title, f"a tangent of {self.rule}", out_dots, dots_tree)
        return outs, self._checked(outs, out_dots)

    def _checked(self, outs: Sequence[Any], out_dots: Sequence[Any]) -> list[Any]:
        wrong = []
        found: list[Any] = []
        for i, (x, t) in enumerate(zip(outs, out_dots, strict=True)):
            expected = aval_of(x).tangent_aval()
            given = t.aval if type(t) is SymbolicZero else aval_of(t)
            if not custom_rules.may_be_cast(given, expected):
                wrong.append((i, expected, given))
                continue
            is_zero = type(t) is SymbolicZero or custom_rules.is_float0(expected)
            found.append(Zero(expected) if is_zero else custom_rules.cast_like(t, expected))
        if wrong:
            names = flattening.result_paths(self.out_tree)
            error(
                TypeError,
                self.rule.title,
                f"{self.rule} returns tangents of the wrong type.",
                got="\n".join(
                    f"tangent of {names[i]}: {given}, where the result's type asks for {aval}"
                    for i, aval, given in wrong
                ),
                fix="tangents have the shape and dtype of their results, float0 where these "
                "are integers or booleans, and vary over no further mesh axes",
            )
        return found


class custom_jvp(Generic[R]):  # noqa: N801  mirrors jax.custom_jvp
    """A function whose forward derivative is given by a rule; reverse mode follows from it.

    The rule is set with `defjvp` or `defjvps`.  It is not differentiated through the function:
    what the rule computes is the derivative, also to higher orders.
    Source: mirrors jax.custom_jvp (0.10).

    Args:
        fun: the function, of trees.
        nondiff_argnums: positions of arguments that the rule takes first and does not
            differentiate, such as functions.
        nondiff_argnames: the same by name.

    Raises:
        AttributeError: it is called before it has a rule.
        TypeError: the arguments do not fit, or the rule returns trees or types that do not.
        UnexpectedTracerError: it closes over a value that is being differentiated.

    Example:
        >>> @jax.custom_jvp
        ... def clip(x):
        ...     return jnp.clip(x, 0.0, 1.0)
        >>> @clip.defjvp
        ... def rule(primals, tangents):
        ...     return clip(*primals), tangents[0]
        >>> jax.grad(clip)(5.0)
        Array(1., dtype=float32, weak_type=True)
    """

    def __init__(
        self,
        fun: Callable[..., R],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None:
        self._signature = custom_rules.Signature(
            "custom_jvp", fun, nondiff_argnums, nondiff_argnames
        )
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = self._signature.nondiff
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def defjvp(self, jvp: F, symbolic_zeros: bool = False) -> F:
        """Sets the rule `jvp(*nondiff, primals, tangents) -> (primal_out, tangent_out)`.

        Args:
            jvp: the rule; primals and tangents are tuples of trees.
            symbolic_zeros: whether tangents that are zero come as `SymbolicZero`, not as arrays;
                the rule may return such as well.

        Returns:
            `jvp`.
        """
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Sets a rule for each argument: `jvp(tangent, primal_out, *primals) -> tangent_out`.

        None stands for an argument that the result does not move with.

        Raises:
            TypeError: there are nondiff_argnums.
        """
        if self.nondiff_argnums:
            error(
                TypeError,
                self._signature.title,
                "defjvps cannot be used with nondiff_argnums.",
                fix="defjvp",
            )

        def jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
            if len(jvps) != len(primals):
                error(
                    TypeError,
                    self._signature.title,
                    "defjvps has not got one rule for each argument.",
                    got={"rules": len(jvps), "arguments": len(primals)},
                    fix="None for arguments that the result does not move with",
                )
            out = self(*primals)
            total = tree.map(SymbolicZero.from_primal_value, out)
            for rule, tangent in zip(jvps, tangents, strict=True):
                if rule is not None and any(map(_is_moving, tree.leaves(tangent))):
                    made = tree.map(_made, tangent)
                    total = tree.map(_sum, total, rule(made, out, *primals))
            return out, total

        self.defjvp(jvp, symbolic_zeros=True)

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        signature = self._signature
        if self.jvp is None:
            error(
                AttributeError,
                signature.title,
                "the function has no rule yet.",
                fix=f"{signature.name}.defjvp(rule)",
            )
        args = signature.positional(args, kwargs)
        held, rest, positions = signature.split(args)
        held = custom_rules.stop_tracers(held)
        given = signature.flatten(rest, positions)
        function = custom_rules.with_held(self.fun, len(args), held, positions)
        primal = FlatPrimal(function, given.in_tree, signature.name)
        rule = Rule(signature.title, "rule", self.jvp)
        flat_rule = _FlatJvpRule(rule, primal, given.in_tree, held, self.symbolic_zeros)
        outs = custom_jvp_call_p.bind(
            *given.leaves,
            name=signature.name,
            call_jaxpr=primal,
            jvp=flat_rule,
            num_consts=0,
            symbolic_zeros=self.symbolic_zeros,
        )
        seen = primal.seen.out_tree
        return tree.unflatten(flat_rule.out_tree if seen is None else seen, outs)


def _is_moving(tangent: Any) -> bool:
    return type(tangent) is not SymbolicZero


def _made(tangent: Any) -> Any:
    return instantiate(Zero(tangent.aval)) if type(tangent) is SymbolicZero else tangent


def _sum(x: Any, y: Any) -> Any:
    return y if type(x) is SymbolicZero else add_tangents(x, y)
