"""Custom forward derivatives, and what functions with custom derivatives share.

Input: a user's function and rule, of trees.  Output: the primitive `custom_jvp_call`, which every
transformation but differentiation looks through.  Reverse mode transposes what the rule does.
Rules become functions of flat values, which check what the user's return and name the leaf that
is wrong; `custom_vjp.py` uses the same arguments, symbolic zeros and checks.

Staging and batching of such calls are in `calls.py`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from minijax.core import dtypes, printing, source, tree, tree_errors, vma
from minijax.core.aval import AbstractValue, Typed, aval_of
from minijax.core.check import same_type
from minijax.core.errors import UnexpectedTracerError, error
from minijax.core.operators import Avals, BatchDims, Value, Values
from minijax.core.primitive import Batched, Dual, Tangents, Zero
from minijax.core.trace import Params, Tracer, current
from minijax.core.value_placement import manual_type
from minijax.interpreters import casts, checking, flattening, staging, structural_keys
from minijax.interpreters.batching import BatchTrace
from minijax.interpreters.structural import add_tangents, instantiate, zeros
from minijax.lax import creation, unary
from minijax.lowering import eager
from minijax.runtime.array import array_from_host
from minijax.transforms import jaxpr_call
from minijax.transforms.autodiff import calls
from minijax.transforms.autodiff.calls import Call

if TYPE_CHECKING:
    from minijax.core.native import PyTreeDef


class SymbolicZero(Typed):
    """A tangent or cotangent known to be zero, as rules with `symbolic_zeros=True` see it.

    Example:
        >>> zero = jax.custom_derivatives.SymbolicZero(jax.typeof(jnp.ones(3)))
        >>> zero.shape, zero.dtype
        ((3,), dtype('float32'))
    """

    __slots__ = ("aval",)

    def __init__(self, aval: AbstractValue) -> None:
        self.aval = aval

    @staticmethod
    def from_primal_value(value: object) -> SymbolicZero:
        """The zero tangent of a value."""
        return SymbolicZero(aval_of(value).tangent_aval())

    def __repr__(self) -> str:
        return "SymbolicZero"


def zero_from_primal(val: object, symbolic_zeros: bool = False) -> Any:
    """The zero tangents of a tree of values: symbolic, or arrays.

    Example:
        >>> jax.custom_derivatives.zero_from_primal(jnp.array([1.0, 2.0]))
        Array([0., 0.], dtype=float32)
        >>> jax.custom_derivatives.zero_from_primal(jnp.array([1, 2]), symbolic_zeros=True)
        SymbolicZero
    """
    made = tree.map(SymbolicZero.from_primal_value, val)
    return made if symbolic_zeros else tree.map(lambda zero: zeros(zero.aval), made)


def shown(tangent: Any, symbolic_zeros: bool) -> Any:
    """A tangent or cotangent as a rule sees it: zeros are made, or stay symbolic."""
    if symbolic_zeros and type(tangent) is Zero:
        return SymbolicZero(tangent.aval)
    return instantiate(tangent)


def as_arrays(values: Iterable[Any]) -> list[Any]:
    """Values fit for a user's function: NumPy arrays would compute by NumPy's rules in it."""
    known = (np.ndarray, np.generic)
    return [
        array_from_host(x) if isinstance(x, known) and x.dtype != dtypes.float0 else x
        for x in values
    ]


class Signature:
    """How a function with custom rules is called, and which arguments its rules differentiate."""

    def __init__(
        self,
        kind: str,
        function: Callable[..., Any],
        nondiff_argnums: int | Sequence[int],
        nondiff_argnames: str | Sequence[str],
    ) -> None:
        eager.check_callable(kind, function)
        self.name = flattening.function_name(function)
        self.title = f"{kind} of {self.name}"
        self._signature: inspect.Signature | None = None
        with contextlib.suppress(TypeError, ValueError):
            self._signature = inspect.signature(source.unwrapped(function))
        parameters = self._signature.parameters.values() if self._signature else ()
        is_plain = all(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
        self._count = len(parameters) if self._signature and is_plain else None
        self.nondiff = self._positions(nondiff_argnums, nondiff_argnames)

    def _positions(self, argnums: object, argnames: Any) -> tuple[int, ...]:
        given = argnums if isinstance(argnums, Iterable) else (argnums,)
        names = (argnames,) if isinstance(argnames, str) else tuple(argnames)
        parameters = list(self._signature.parameters) if self._signature else []
        unknown = [name for name in names if name not in parameters]
        if unknown:
            problem = "nondiff_argnames names no parameter."
            expected = f"some of {', '.join(parameters) or 'no parameters'}"
            error(ValueError, self.title, problem, got=", ".join(unknown), expected=expected)
        return tuple(dict.fromkeys([*map(int, given), *map(parameters.index, names)]))

    def positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, with defaults.

        Raises:
            TypeError: they do not fit the function, or one can only be given by name.
        """
        if not kwargs and (self._signature is None or len(args) == self._count):
            return args
        try:
            if self._signature is None:
                raise TypeError("the function has no signature")
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as caught:
            problem = "the arguments do not fit the function's parameters."
            error(TypeError, self.title, problem, got=str(caught), cause=None)
        bound.apply_defaults()
        if bound.kwargs:
            problem = "rules take arguments by position, and some can only be given by name."
            fix = "make them positional parameters of the function"
            error(TypeError, self.title, problem, got=", ".join(bound.kwargs), fix=fix)
        return bound.args

    def split(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...], list[int]]:
        """The held arguments, the differentiated ones, and the positions of the latter.

        Raises:
            IndexError: nondiff_argnums is out of range.
        """
        if not self.nondiff:
            return (), args, list(range(len(args)))
        count = len(args)
        for i in self.nondiff:
            if not -count <= i < count:
                problem = f"nondiff_argnums {i} is out of range."
                error(IndexError, self.title, problem, got=f"{count} positional argument(s)")
        held = [i % count for i in self.nondiff]
        rest = [i for i in range(count) if i not in held]
        return tuple(args[i] for i in held), tuple(args[i] for i in rest), rest

    def flatten(self, args: tuple[Any, ...], positions: Sequence[int]) -> Arguments:
        """The leaves of the differentiated arguments.

        Raises:
            TypeError: one is neither an array nor a number.
        """
        leaves, in_tree = tree.flatten((args, {}))
        names = functools.partial(self._names, in_tree, tuple(positions))
        return Arguments(leaves, in_tree, flattening.avals_of(leaves, names, self.title), names)

    def _names(self, in_tree: PyTreeDef, positions: tuple[int, ...]) -> Sequence[str]:
        names: tuple[str, ...] = ()
        if self._signature is not None:
            names = tuple(
                f"*{p.name}" if p.kind is p.VAR_POSITIONAL else p.name
                for p in self._signature.parameters.values()
                if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)
            )
        return tree_errors.argument_paths(
            in_tree, tuple(flattening.argument_name(names, i) for i in positions)
        )


class Arguments(NamedTuple):
    """The differentiated arguments of one call, flat: values, tree of (args, {}), types, names."""

    leaves: list[Any]
    in_tree: Any
    avals: Avals
    names: Callable[[], Sequence[str]]


def with_held(
    function: Callable[..., Any], count: int, held: Sequence[Any], positions: Sequence[int]
) -> Callable[..., Any]:
    """`function` of the arguments at `positions` alone, the other `count - len(positions)` held."""
    if not held:
        return function
    others = [i for i in range(count) if i not in positions]

    @functools.wraps(function, assigned=("__name__",), updated=())
    def of_rest(*args: Any) -> Any:
        full: list[Any] = [None] * count
        for i, x in (*zip(others, held, strict=True), *zip(positions, args, strict=True)):
            full[i] = x
        return function(*full)

    return of_rest


def stop_tracers(held: object) -> Any:
    """Arguments that rules do not differentiate, those that are traced held constant."""
    return tree.map(lambda x: unary.stop_gradient(x) if isinstance(x, Tracer) else x, held)


class Primal(NamedTuple):
    """What the function itself returned when it ran; empty until then."""

    out_tree: Any = None
    avals: Avals = ()


class FlatPrimal:
    """The function as one of leaves; remembers the tree and the types of its results."""

    __slots__ = ("__name__", "_flat", "seen")

    def __init__(self, function: Callable[..., Any], in_tree: PyTreeDef, name: str) -> None:
        self._flat = flattening.FlatFunction(function, in_tree, name)
        self.__name__ = name
        self.seen = Primal()

    def __call__(self, *leaves: Any) -> list[Any]:
        outs = self._flat(*as_arrays(leaves))
        self.seen = Primal(self._flat.out_tree, list(map(aval_of, outs)))
        return outs


class Rule(NamedTuple):
    """A user's rule, for messages: what it is called, and whose it is."""

    title: str
    kind: str
    function: Callable[..., Any]

    @property
    def name(self) -> str:
        return flattening.function_name(self.function)

    def __str__(self) -> str:
        return f"the {self.kind} {self.name}"

    def __call__(self, *args: Any) -> Any:
        try:
            with staging.own_lines():
                return self.function(*args)
        except UnexpectedTracerError as error:
            error.add_note(
                f"while running {self} of {self.title}: a rule runs when the function is "
                "differentiated, so it must not use traced values other than its arguments"
            )
            raise

    def pair(self, result: object, parts: str) -> tuple[Any, Any]:
        """The result, which has to be a pair.

        Raises:
            TypeError: it is none.
        """
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            problem = f"{self} must return a pair {parts}."
            error(TypeError, self.title, problem, got=f"{type(result).__name__}: {result!r}")
        first, second = result
        return first, second

    def primal_outs(self, out: object, primal: Primal) -> tuple[list[Any], Any]:
        """The flat results of the function as the rule computes them, and their tree.

        Raises:
            TypeError: they are not those of the function itself, as far as that has run.
        """
        outs, out_tree = tree.flatten(out)
        check_arrays(self.title, f"a result of {self}", outs, out_tree)
        if primal.out_tree is None:
            return outs, out_tree
        if out_tree != primal.out_tree:
            problem = f"{self} returns results of another structure than the function."
            got = {"rule": out_tree, "function": primal.out_tree}
            error(TypeError, self.title, problem, got=got)
        names = flattening.result_paths(out_tree)
        wrong = [
            f"{name}: {aval_of(x)} from the rule, {aval} from the function"
            for name, x, aval in zip(names, outs, primal.avals, strict=True)
            if not may_be_cast(aval_of(x), aval)
        ]
        if wrong:
            problem = f"{self} returns results of other types than the function."
            expected = "equal shapes and dtypes, and to vary over no further mesh axes"
            error(TypeError, self.title, problem, got="\n".join(wrong), expected=expected)
        outs = [cast_like(x, aval) for x, aval in zip(outs, primal.avals, strict=True)]
        return [
            x if aval_of(x) is aval else creation.convert_to_type(x, aval.dtype, aval.weak_type)
            for x, aval in zip(outs, primal.avals, strict=True)
        ], out_tree


def may_be_cast(given: Any, wanted: Any) -> bool:
    """Whether a value of type `given` is one of type `wanted`, at least after a cast."""
    if same_type(given, wanted):
        return True
    own, other = vma.of(given), vma.of(wanted)
    return same_type(given.with_manual_type(other), wanted) and own == manual_type(
        other.varying & own.varying, other.unreduced, other.reduced
    )


def cast_like(x: Value, wanted: AbstractValue) -> Any:
    """A value that varies over mesh axes as type `wanted` says; cast where it is the same there."""
    missing = vma.of(wanted).varying
    return casts.varied(current.value, x, missing) if missing else x


def check_arrays(title: str, what: str, leaves: Values, treedef: PyTreeDef) -> None:
    """Refuses leaves that are neither arrays nor numbers.

    Raises:
        TypeError: one is neither; the text names it.
    """
    for i, x in enumerate(leaves):
        if hasattr(x, "aval"):
            continue
        try:
            aval_of(x)
        except TypeError:
            problem = f"{what} is neither an array nor a number."
            got = f"{flattening.result_paths(treedef)[i]}: {x!r} of type {type(x).__name__}"
            error(TypeError, title, problem, got=got, cause=None)


def is_float0(aval: AbstractValue) -> bool:
    """Whether tangents of this type carry no information."""
    return bool(aval.dtype == dtypes.float0)


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
        primals: Values,
        tangents: Tangents,
        *,
        name: str,
        call_jaxpr: Call,
        jvp: FlatRule,
        num_consts: int,
        symbolic_zeros: bool,
    ) -> Dual:
        calls.check_constants(name, tangents, num_consts)
        return jvp(primals[num_consts:], tangents[num_consts:])

    def batch(self, trace: BatchTrace, args: Values, dims: BatchDims, **params: Any) -> Batched:
        return calls.batch_with(self, trace, args, dims, params, "jvp", _batched_rule)


structural_keys.unlowered_params.set(frozenset({"jvp"}), CustomJvpCall)
checking.check_inside.rule(CustomJvpCall)(jaxpr_call.check_custom_jvp_call)


@printing.shows.rule(CustomJvpCall)
def _shown_params_of_custom_jvp_call(primitive: CustomJvpCall, params: Params) -> dict[str, Any]:
    names = ("name", "call_jaxpr", "jvp", "num_consts", "symbolic_zeros")
    return {k: params[k] for k in names if k != "num_consts" or params[k]}


custom_jvp_call_p = CustomJvpCall()


def _batched_rule(
    trace: BatchTrace, rule: FlatRule, dims: BatchDims, out_dims: calls.OutDims
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
        self,
        rule: Rule,
        primal: FlatPrimal,
        in_tree: PyTreeDef,
        held: Sequence[Any],
        symbolic_zeros: bool,
    ) -> None:
        self.__name__ = rule.name
        self.rule = rule
        self.primal = primal
        self.in_tree = in_tree
        self.held = held
        self.symbolic_zeros = symbolic_zeros
        self.out_tree: Any = None

    def __call__(self, primals: Values, tangents: Tangents) -> tuple[list[Any], list[Any]]:
        dots = [shown(t, self.symbolic_zeros) for t in tangents]
        args, _ = tree.unflatten(self.in_tree, as_arrays(primals))
        args_dot, _ = tree.unflatten(self.in_tree, as_arrays(dots))
        result = self.rule(*self.held, args, args_dot)
        out, out_dot = self.rule.pair(result, "(primal_out, tangent_out)")
        outs, self.out_tree = self.rule.primal_outs(out, self.primal.seen)
        out_dots, dots_tree = tree.flatten(out_dot)
        if dots_tree != self.out_tree:
            problem = f"{self.rule} returns a tangent of another structure than its result."
            got = {"primal_out": self.out_tree, "tangent_out": dots_tree}
            error(TypeError, self.rule.title, problem, got=got)
        check_arrays(self.rule.title, f"a tangent of {self.rule}", out_dots, dots_tree)
        return outs, self._checked(outs, out_dots)

    def _checked(self, outs: Values, out_dots: Sequence[Any]) -> list[Any]:
        wrong = []
        found: list[Any] = []
        for i, (x, t) in enumerate(zip(outs, out_dots, strict=True)):
            expected = aval_of(x).tangent_aval()
            given = t.aval if type(t) is SymbolicZero else aval_of(t)
            if not may_be_cast(given, expected):
                wrong.append((i, expected, given))
                continue
            is_zero = type(t) is SymbolicZero or is_float0(expected)
            found.append(Zero(expected) if is_zero else cast_like(t, expected))
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


@source.boundaries("__init__")
class CustomRules(Generic[R]):
    """A function with rules of the user's: its attributes, and how a call reaches them."""

    _kind: ClassVar[str]
    _unset: ClassVar[Mapping[str, Any]]

    def __init__(
        self,
        fun: Callable[..., R],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None:
        self._signature = Signature(self._kind, fun, nondiff_argnums, nondiff_argnames)
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = self._signature.nondiff
        self.symbolic_zeros = False
        # The wrapped function may be one with rules, too, and have attributes of these names.
        vars(self).update(self._unset)

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        # The wrapped function may be one with rules, too, which are set here as well.
        return getattr(vars(self).get("fun"), name)


@source.boundaries("defjvp", "defjvps", "__call__")
class custom_jvp(CustomRules[R]):  # noqa: N801  mirrors jax.custom_jvp
    """A function whose forward derivative is given by a rule; reverse mode follows from it.

    The rule is set with `defjvp` or `defjvps`.  It is not differentiated through the function:
    what the rule computes is the derivative, also to higher orders.

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

    _kind = "custom_jvp"
    _unset: ClassVar[Mapping[str, Any]] = {"jvp": None}
    jvp: Callable[..., Any] | None

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
            problem = "defjvps cannot be used with nondiff_argnums."
            error(TypeError, self._signature.title, problem, fix="defjvp")

        def jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
            if len(jvps) != len(primals):
                problem = "defjvps has not got one rule for each argument."
                got = {"rules": len(jvps), "arguments": len(primals)}
                fix = "None for arguments that the result does not move with"
                error(TypeError, self._signature.title, problem, got=got, fix=fix)
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
            problem = "the function has no rule yet."
            error(AttributeError, signature.title, problem, fix=f"{signature.name}.defjvp(rule)")
        args = signature.positional(args, kwargs)
        held, rest, positions = signature.split(args)
        held = stop_tracers(held)
        given = signature.flatten(rest, positions)
        function = with_held(self.fun, len(args), held, positions)
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


def _is_moving(tangent: object) -> bool:
    return type(tangent) is not SymbolicZero


def _made(tangent: object) -> Any:
    return instantiate(Zero(tangent.aval)) if type(tangent) is SymbolicZero else tangent


def _sum(x: object, y: object) -> Any:
    return y if type(x) is SymbolicZero else add_tangents(x, y)
