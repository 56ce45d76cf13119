"""Custom reverse derivatives: a function with rules for its forward and its backward pass.

Input: a user's function and two rules.  Output: the primitives `custom_vjp_call`, and
`custom_lin`, which stands for the derivative until it is transposed: the backward rule is then
called on the residuals of the forward rule and the cotangents.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NoReturn, TypeVar

import numpy as np

from minijax.core import dtypes, printing, refs, source, tree, tree_registry, vma
from minijax.core.aval import aval_of
from minijax.core.errors import UnexpectedTracerError, error
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.operators import BatchDims, Values
from minijax.core.primitive import Batched, Cotangents, Dual, Primitive, Zero
from minijax.core.trace import Params, Tracer
from minijax.interpreters import checking, discharge, flattening, passes, staging, structural_keys
from minijax.interpreters.batching import BatchTrace
from minijax.interpreters.structural import reduce_sum, to_batch_dim
from minijax.lax import creation
from minijax.lowering import eager
from minijax.sharding import rules
from minijax.transforms import jaxpr_call
from minijax.transforms.autodiff import calls, custom_jvp
from minijax.transforms.autodiff.calls import Call
from minijax.transforms.autodiff.custom_jvp import Arguments, FlatPrimal, Rule, SymbolicZero

R = TypeVar("R")

FlatBackward = Callable[[Sequence[Any], Sequence[Any]], list[Any]]
FlatForward = Callable[..., tuple[list[Any], list[Any], FlatBackward]]


class CustomVjpCall(calls.FunctionCall):
    """Calls a function whose cotangents come from the rules `fwd` and `bwd`.

    `fwd(perturbed, *args)` gives results, residuals, and what maps residuals and cotangents of the
    results to cotangents of the arguments, all flat; `bwd` is the user's rule that this calls.
    The first `num_consts` operands are what the function closes over.  The last results are the
    last values of references, whose first values are the arguments `writes`.
    """

    name = "custom_vjp_call"

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        name: str,
        call_jaxpr: Call,
        fwd: FlatForward,
        bwd: str,
        num_consts: int,
        symbolic_zeros: bool,
        writes: tuple[int, ...] = (),
    ) -> Dual:
        calls.check_constants(name, tangents, num_consts)
        primals, tangents = primals[num_consts:], tangents[num_consts:]
        perturbed = tuple(
            not (type(t) is Zero or i in writes or refs.is_reference(x))
            for i, (x, t) in enumerate(zip(primals, tangents, strict=True))
        )
        outs, residuals, backward = fwd(perturbed, *primals)
        # Rules say nothing of what is written to references: its tangent stays what it was.
        written = [tangents[i] for i in writes]
        out_dots: list[Any] = [Zero.like(x) for x in outs[: len(outs) - len(writes)]]
        if not any(perturbed):
            return outs, out_dots + written
        moving = [i for i, t in enumerate(out_dots) if not custom_jvp.is_float0(t.aval)]
        found = custom_lin_p.bind(
            *residuals,
            *itertools.compress(tangents, perturbed),
            name=name,
            bwd=bwd,
            backward=backward,
            num_res=len(residuals),
            out_avals=tuple(t.aval for t in out_dots),
            perturbed=perturbed,
            symbolic_zeros=symbolic_zeros,
        )
        for i, t in zip(moving, found, strict=True):
            out_dots[i] = t
        return outs, out_dots + written

    def batch(self, trace: BatchTrace, args: Values, dims: BatchDims, **params: Any) -> Batched:
        return calls.batch_with(self, trace, args, dims, params, "fwd", _batched_forward)


structural_keys.unlowered_params.set(frozenset({"fwd"}), CustomVjpCall)
checking.check_inside.rule(CustomVjpCall)(jaxpr_call.check_custom_vjp_call)


@printing.shows.rule(CustomVjpCall)
def _shown_params_of_custom_vjp_call(primitive: CustomVjpCall, params: Params) -> dict[str, Any]:
    names = ("name", "bwd", "call_jaxpr", "fwd", "num_consts", "symbolic_zeros")
    return {k: params[k] for k in names if k != "num_consts" or params[k]}


@refs.discharge.rule(CustomVjpCall)
def _discharge_of_custom_vjp_call(
    primitive: CustomVjpCall, *args: Any, call_jaxpr: Call, fwd: FlatForward, **params: Any
) -> Sequence[Any]:
    """The function and its forward rule also return what the function writes to references."""
    if not isinstance(call_jaxpr, ClosedJaxpr):
        return calls.evaluate(call_jaxpr, args)
    pure, finals = discharge.discharge_jaxpr(call_jaxpr)
    first = params["num_consts"]
    are_refs = [type(aval) is refs.AbstractRef for aval in call_jaxpr.in_avals[first:]]
    params["writes"] = tuple(i - first for i in finals)
    params["fwd"] = _forward_of_values(fwd, are_refs, params["writes"], params["name"])
    outs = primitive.bind_all(*map(discharge.value_of, args), call_jaxpr=pure, **params)
    return discharge.write_finals(outs, [args[i] for i in finals])


def _forward_of_values(
    forward: FlatForward, are_refs: Sequence[bool], writes: Sequence[int], name: str
) -> FlatForward:
    """A forward rule that is given the values of references, and returns what is written to some.

    Raises:
        NotImplementedError: the rule uses other references, or writes or saves more.
    """

    @functools.wraps(forward, assigned=("__name__",), updated=())
    def of_values(
        perturbed: tuple[bool, ...], *values: Any
    ) -> tuple[list[Any], list[Any], FlatBackward]:
        residuals: list[Any] = []
        backward: list[FlatBackward] = []

        def flat(*args: Any) -> list[Any]:
            outs, residuals[:], given = forward(perturbed, *args)
            backward.append(given)
            if any(map(refs.is_reference, residuals)):
                _refuse_references(name)
            return [*outs, *residuals]

        avals = [
            refs.AbstractRef(aval_of(x)) if is_ref else aval_of(x)
            for x, is_ref in zip(values, are_refs, strict=True)
        ]
        jaxpr, consts = staging.stage(flat, avals)
        is_foreign = min(writes, default=0) < 0 or any(map(refs.is_reference, consts))
        if is_foreign or not set(writes).issuperset(discharge.written_references(jaxpr)):
            _refuse_references(name)
        whole = ClosedJaxpr(passes.close_over_constants(jaxpr))
        pure, _ = discharge.discharge_jaxpr(whole, [len(consts) + i for i in writes])
        found = staging.eval_closed_jaxpr(pure, *consts, *values)
        first = len(jaxpr.outvars) - len(residuals)
        last = len(jaxpr.outvars)
        return found[:first] + found[last:], found[first:last], backward[0]

    return of_values


def _refuse_references(name: str) -> NoReturn:
    error(
        NotImplementedError,
        f"custom_vjp of {name}",
        "inside control flow, checkpoint or shard_map, the forward rule can only use references "
        "that it is given, write those that the function writes, and save none.",
        fix="return what is to be added to a reference as a cotangent",
    )


class CustomLin(Primitive):
    """The derivative of a function with custom reverse rules, of which only the transpose is known.

    Operands: `num_res` residuals, then tangents of the `perturbed` arguments.  Results: tangents of
    the results that have any.  Linear in the tangents.
    """

    name = "custom_lin"
    multiple_results: ClassVar[bool] = True
    shard = rules.from_types

    def abstract_eval(self, *avals: Any, out_avals: tuple[Any, ...], **params: Any) -> list[Any]:
        return [a for a in out_avals if not custom_jvp.is_float0(a)]

    def transpose(
        self,
        cts: Cotangents,
        *args: Any,
        backward: FlatBackward,
        num_res: int,
        out_avals: tuple[Any, ...],
        perturbed: tuple[bool, ...],
        **params: Any,
    ) -> Cotangents:
        given = iter(cts)
        full = [Zero(a) if custom_jvp.is_float0(a) else next(given) for a in out_avals]
        found = backward(args[:num_res], full)
        return [None] * num_res + [ct for ct, p in zip(found, perturbed, strict=True) if p]

    def impl(self, *args: Any, name: str, **params: Any) -> NoReturn:
        error(
            TypeError,
            f"custom_vjp of {name}",
            "a function with custom reverse rules has no forward-mode derivative.",
            got="jvp, jacfwd or linearize of it, directly or inside hessian",
            expected="reverse mode: grad, vjp, jacrev",
            fix="minijax.custom_jvp, whose rule serves both modes; or do not call "
            f"{name} itself in its fwd rule, but what it computes",
        )

    lower = jvp = batch = impl


@printing.shows.rule(CustomLin)
def _shown_params_of_custom_lin(primitive: CustomLin, params: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "bwd": params["bwd"],
        "in_zeros": [not p for p in params["perturbed"]],
        "num_res": params["num_res"],
        "symbolic_zeros": params["symbolic_zeros"],
    }


vma.vary.rule(CustomLin)(vma.from_types)


custom_vjp_call_p = CustomVjpCall()
custom_lin_p = CustomLin()


def _batched_forward(
    trace: BatchTrace, forward: FlatForward, dims: BatchDims, out_dims: calls.OutDims
) -> FlatForward:
    """The forward rule on whole batches; the backward one sums what unmapped arguments get."""

    @functools.wraps(forward, assigned=("__name__",), updated=())
    def on_batch(
        perturbed: tuple[bool, ...], *args: Any
    ) -> tuple[list[Any], list[Any], FlatBackward]:
        of_example: list[FlatBackward] = []
        counts = []

        def flat(*values: Any) -> list[Any]:
            outs, residuals, backward = forward(perturbed, *values)
            of_example.append(backward)
            counts.append(len(outs))
            return outs + residuals

        values, found = calls.run_again(trace, flat, args, dims)
        (count,) = counts
        outs = out_dims.place(values[:count], found[:count])
        backward = _batched_backward(trace, of_example[0], found[count:], out_dims, dims)
        return outs, values[count:], backward

    return on_batch


def _batched_backward(
    trace: BatchTrace,
    backward: FlatBackward,
    residual_dims: Sequence[Any],
    out_dims: calls.OutDims,
    arg_dims: Sequence[Any],
) -> FlatBackward:
    def on_batch(residuals: Values, cts: Sequence[Any]) -> list[Any]:
        # Without what is written to references.
        ct_dims = (out_dims.dims or ())[: len(cts)]
        count = len(residuals)
        moving = [i for i, ct in enumerate(cts) if type(ct) is not Zero]
        found: list[Any] = []

        def flat(*values: Any) -> list[Any]:
            of_example: list[Any] = [
                Zero(ct.aval if d is None else ct.aval.without_dim(0)) if type(ct) is Zero else None
                for ct, d in zip(cts, ct_dims, strict=True)
            ]
            for i, ct in zip(moving, values[count:], strict=True):
                of_example[i] = ct
            found[:] = backward(values[:count], of_example)
            return [ct for ct in found if type(ct) is not Zero]

        values, dims = calls.run_again(
            trace,
            flat,
            [*residuals, *(cts[i] for i in moving)],
            [*residual_dims, *(ct_dims[i] for i in moving)],
        )
        given = iter(zip(values, dims, strict=True))
        return [
            _whole_cotangent(
                trace.size, None if type(ct) is Zero else next(given), ct, dim, out_dims
            )
            for ct, dim in zip(found, arg_dims, strict=True)
        ]

    return on_batch


def _whole_cotangent(
    size: int, found: tuple[Any, Any] | None, of_example: Any, arg_dim: Any, out_dims: calls.OutDims
) -> Any:
    """The cotangent of a whole argument from that of one example."""
    if found is None:
        aval = of_example.aval
        return Zero(aval if arg_dim is None else aval.with_dim(0, size))
    ct, dim = found
    if arg_dim is not None:
        return to_batch_dim(ct, dim, 0, size)
    if dim is None and not out_dims.mapped:
        return ct
    # All examples share the argument: it gets the sum of their cotangents, equal ones as well.
    return reduce_sum(to_batch_dim(ct, dim, 0, size), (0,))


@dataclasses.dataclass(frozen=True)
class CustomVJPPrimal:
    """An argument as forward rules with `symbolic_zeros=True` see it: a leaf of trees.

    Attributes:
        value: the argument.
        perturbed: whether it is being differentiated.

    Example:
        >>> @jax.custom_vjp
        ... def mul(x, y):
        ...     return x * y
        >>> def forward(x, y):
        ...     print(x.perturbed, y.perturbed)
        ...     return x.value * y.value, y.value
        >>> mul.defvjp(forward, lambda y, ct: (ct * y, None), symbolic_zeros=True)
        >>> jax.grad(mul)(2.0, 3.0)
        True False
        Array(3., dtype=float32, weak_type=True)
    """

    value: Any
    perturbed: bool


def custom_vjp_primal_tree_values(tree: object) -> Any:
    """The values in a tree of `CustomVJPPrimal`.

    Example:
        >>> from minijax.custom_derivatives import CustomVJPPrimal, custom_vjp_primal_tree_values
        >>> custom_vjp_primal_tree_values((CustomVJPPrimal(1, True), [CustomVJPPrimal(2, False)]))
        (1, [2])
    """
    return _values_in(tree)


def _values_in(primals: object) -> Any:
    return tree.map(lambda x: x.value if type(x) is CustomVJPPrimal else x, primals)


class _FlatForward:
    """A user's two rules as functions of leaves."""

    __slots__ = ("__name__", "backward", "given", "held", "out_tree", "primal", "rule", "symbolic")

    def __init__(
        self,
        rule: Rule,
        backward: Rule,
        primal: FlatPrimal,
        given: Arguments,
        held: tuple[Any, ...],
        symbolic_zeros: bool,
    ) -> None:
        self.__name__ = rule.name
        self.rule = rule
        self.backward = backward
        self.primal = primal
        # Without the values, which may be tracers and the rules outlive their traces.
        self.given = given._replace(leaves=[])
        self.held = held
        self.symbolic = symbolic_zeros
        self.out_tree: Any = None

    def __call__(
        self, perturbed: tuple[bool, ...], *leaves: Any
    ) -> tuple[list[Any], list[Any], FlatBackward]:
        shown: list[Any] = custom_jvp.as_arrays(leaves)
        if self.symbolic:
            shown = list(map(CustomVJPPrimal, shown, perturbed))
        args, _ = tree.unflatten(self.given.in_tree, shown)
        out, residual = self.rule.pair(self.rule(*args), "(primal_out, residuals)")
        outs, out_tree = self.rule.primal_outs(out, self.primal.seen)
        self.out_tree = out_tree
        residuals, residual_tree = tree.flatten(residual)
        custom_jvp.check_arrays(
            self.rule.title, f"a residual of {self.rule}", residuals, residual_tree
        )

        def backward(values: Values, cts: Cotangents) -> list[Any]:
            seen = custom_jvp.as_arrays(custom_jvp.shown(ct, self.symbolic) for ct in cts)
            ct = tree.unflatten(out_tree, seen)
            found = self.backward(*self.held, tree.unflatten(residual_tree, values), ct)
            return self._checked(found)

        return outs, residuals, backward

    def _checked(self, found: object) -> list[Any]:
        """A cotangent for each leaf of the arguments, from what the backward rule returned."""
        by_leaf = self._by_leaf(found)
        cotangents: list[Any] = []
        wrong: list[str] = []
        mixed: list[int] = []
        for i, (ct, aval) in enumerate(zip(by_leaf, self.given.avals, strict=True)):
            expected = aval.cotangent_aval()
            if ct is None or type(ct) is SymbolicZero or custom_jvp.is_float0(expected):
                cotangents.append(Zero(expected))
                continue
            given = aval_of(ct)
            if given.shape != expected.shape:
                wrong.append(f"{self.given.names()[i]}: {given}, for an argument of type {aval}")
                continue
            found_ct = self._converted(i, ct, given, expected)
            if custom_jvp.may_be_cast(aval_of(found_ct), expected):
                cotangents.append(custom_jvp.cast_like(found_ct, expected))
            else:
                mixed.append(i)
        if mixed:
            self._refuse_varying(mixed, by_leaf)
        if wrong:
            problem = f"{self.backward} returns cotangents of other shapes than the arguments."
            got = "\n".join(wrong)
            fix = "sum over the dimensions that the function repeated"
            error(
                ValueError, self.backward.title, problem, got=got, expected="equal shapes", fix=fix
            )
        return cotangents

    def _refuse_varying(self, numbers: Sequence[int], cotangents: Values) -> None:
        """The error for cotangents that are of another kind over mesh axes than they must be."""
        names = self.given.names()
        lines, fixes = [], []
        for i in numbers:
            given, aval = aval_of(cotangents[i]), self.given.avals[i]
            lines.append(f"{names[i]}: {given}, for an argument of type {aval}")
            more = vma.of(given).varying - vma.of(aval).varying
            if more:
                fixes.append(f"lax.psum(ct, {vma.argument_text(more)}) for {names[i]}")
        error(
            ValueError,
            self.backward.title,
            f"{self.backward} returns cotangents that vary over other mesh axes than the "
            "arguments do.",
            got="\n".join(lines),
            expected="for what all devices have the sum of what each contributes",
            fix="; ".join(fixes) or None,
        )

    def _by_leaf(self, found: object) -> list[Any]:
        """The result of the backward rule, a tree prefix of the arguments, for each leaf."""
        args_tree, _ = self.given.in_tree.children()
        cts = tuple(found) if isinstance(found, list) else found
        custom_jvp.check_arrays(
            self.backward.title, f"a cotangent of {self.backward}", *tree.flatten(cts)
        )
        if isinstance(cts, tuple):
            indices = tree.unflatten(args_tree, range(args_tree.num_leaves))
            try:
                return tree.broadcast_prefix(cts, indices, tree.is_none)
            except ValueError:
                pass
        problem = f"{self.backward} returns cotangents of another structure than the arguments."
        got = str(tree.structure(found))
        expected = f"{args_tree}: a tuple with an entry for each argument"
        fix = "return None for an argument, or a part of one, that gets no cotangent"
        error(TypeError, self.backward.title, problem, got=got, expected=expected, fix=fix)

    def _converted(self, index: int, ct: Any, given: Any, expected: Any) -> Any:
        if given.dtype == expected.dtype and hasattr(ct, "dtype"):
            return ct
        is_complex = dtypes.issubdtype(given.dtype, np.complexfloating)
        if is_complex and not dtypes.issubdtype(expected.dtype, np.complexfloating):
            problem = f"{self.backward} returns a complex cotangent for a real argument."
            got = {self.given.names()[index]: given}
            fix = "ct.real"
            error(TypeError, self.backward.title, problem, got=got, expected=str(expected), fix=fix)
        if not hasattr(ct, "dtype"):
            return np.asarray(ct, expected.dtype)[()]
        return creation.convert_to_type(ct, expected.dtype, given.weak_type)


@source.boundaries("defvjp", "__call__")
class custom_vjp(custom_jvp.CustomRules[R]):  # noqa: N801  mirrors jax.custom_vjp
    """A function whose reverse derivative is given by rules for a forward and a backward pass.

    The rules are set with `defvjp`.  Forward mode does not know the function's derivative.

    Args:
        fun: the function, of trees.
        nondiff_argnums: positions of arguments that are not differentiated and not traced, such as
            functions; the backward rule takes them first.
        nondiff_argnames: the same by name.

    Raises:
        AttributeError: it is called before it has rules.
        TypeError: the arguments do not fit, a rule returns trees or types that do not, or forward
            mode asks for the derivative.
        ValueError: the backward rule returns a cotangent of the wrong shape.
        UnexpectedTracerError: it closes over a value that is being differentiated, or one of the
            nondiff arguments is traced.

    Example:
        >>> @jax.custom_vjp
        ... def identity(x):
        ...     return x
        >>> identity.defvjp(lambda x: (x, None), lambda _, ct: (jnp.clip(ct, -1.0, 1.0),))
        >>> jax.grad(lambda x: 100 * identity(x))(2.0)
        Array(1., dtype=float32, weak_type=True)
    """

    _kind = "custom_vjp"
    _unset: ClassVar[Mapping[str, Any]] = {"fwd": None, "bwd": None, "optimize_remat": False}
    fwd: Callable[..., Any] | None
    bwd: Callable[..., Any] | None
    optimize_remat: bool

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Sets the rules `fwd(*args) -> (out, res)` and `bwd(*nondiff, res, ct) -> cts`.

        Args:
            fwd: takes the arguments of the function; returns its results, and what `bwd` needs.
            bwd: returns a tuple with the cotangent of each differentiated argument; None stands
                for no cotangent, of an argument or a part of it.
            symbolic_zeros: whether `fwd` gets leaves of type `CustomVJPPrimal`, and `bwd` zero
                cotangents as `SymbolicZero`, not as arrays.
            optimize_remat: accepted for compatibility: what nobody needs is never computed here.
        """
        for rule in (fwd, bwd):
            eager.check_callable(f"{self._signature.title}: defvjp", rule)
        self.fwd = fwd
        self.bwd = bwd
        self.symbolic_zeros = symbolic_zeros
        self.optimize_remat = optimize_remat

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        signature = self._signature
        if self.fwd is None or self.bwd is None:
            fix = f"{signature.name}.defvjp(fwd, bwd)"
            error(AttributeError, signature.title, "the function has no rules yet.", fix=fix)
        args = signature.positional(args, kwargs)
        held, rest, positions = signature.split(args)
        self._check_held(held)
        given = signature.flatten(rest, positions)
        function = custom_jvp.with_held(self.fun, len(args), held, positions)
        forward = custom_jvp.with_held(self.fwd, len(args), held, positions)
        primal = FlatPrimal(function, given.in_tree, signature.name)
        flat_forward = _FlatForward(
            Rule(signature.title, "fwd rule", forward),
            Rule(signature.title, "bwd rule", self.bwd),
            primal,
            given,
            held,
            self.symbolic_zeros,
        )
        outs = custom_vjp_call_p.bind(
            *given.leaves,
            name=signature.name,
            call_jaxpr=primal,
            fwd=flat_forward,
            bwd=flattening.function_name(self.bwd),
            num_consts=0,
            symbolic_zeros=self.symbolic_zeros,
        )
        seen = primal.seen.out_tree
        return tree.unflatten(flat_forward.out_tree if seen is None else seen, outs)

    def _check_held(self, held: tuple[Any, ...]) -> None:
        for x in tree.leaves(held):
            if isinstance(x, Tracer):
                error(
                    UnexpectedTracerError,
                    self._signature.title,
                    "a traced value was passed as an argument of nondiff_argnums.",
                    got=f"{x.aval}, {x.origin()}",
                    expected="values that are no arrays, such as functions",
                    fix="take the argument out of nondiff_argnums, and return None for its "
                    "cotangent",
                )


def custom_gradient(fun: Callable[..., tuple[R, Any]]) -> custom_vjp[R]:
    """A function that tells its gradient itself: `fun(*args)` returns `(out, rule)`.

    `rule(ct)` maps the cotangent of `out` to those of the arguments: a tuple of them, or the one
    of a single argument.  It may close over the arguments and everything computed from them.

    Derivative: what `rule` computes, which is itself differentiable.
    Source:     mirrors jax.custom_gradient (0.10); superset: arguments may be given by name.

    Raises:
        TypeError: `fun` does not return a pair, or `rule` trees that do not fit.

    Example:
        >>> @jax.custom_gradient
        ... def identity(x):
        ...     return x, lambda ct: jnp.clip(ct, -1.0, 1.0)
        >>> jax.grad(lambda x: 100 * identity(x))(2.0)
        Array(1., dtype=float32, weak_type=True)
    """
    name = flattening.function_name(fun)
    whole = Rule(f"custom_gradient of {name}", "function", fun)

    @functools.wraps(fun)
    def value(*args: Any) -> Any:
        return whole.pair(fun(*args), "(out, rule)")[0]

    def fwd(*args: Any) -> tuple[Any, Any]:
        out, rule = whole.pair(fun(*args), "(out, rule)")
        return out, _staged_rule(name, rule, out)

    def bwd(rule: Callable[[Any], Any], ct: object) -> Any:
        cts = rule(ct)
        is_one = not isinstance(cts, (tuple, list)) and tree.all_leaves([cts])
        return (cts,) if is_one else cts

    function = custom_vjp(value)
    function._signature.title = whole.title
    function.defvjp(fwd, bwd)
    return function


def _staged_rule(name: str, rule: Callable[[Any], Any], out: object) -> tree_registry.Partial:
    """`rule` with what it closes over as leaves of a tree, so that it can be a residual."""
    avals = [aval_of(x).tangent_aval() for x in tree.leaves(out)]
    flat = flattening.FlatFunction(rule, tree.structure(((out,), {})), name)
    jaxpr, consts = staging.stage(flat, avals)

    def run(*args: Any) -> Any:
        *values, ct = args
        cts = staging.eval_jaxpr(jaxpr, values, *tree.leaves(ct))
        return tree.unflatten(flat.out_tree, cts)

    return tree_registry.Partial(run, *consts)
