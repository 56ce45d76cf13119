"""Differentiation of users' functions: jvp, linearize, vjp, grad and what is built on them.

Input: a function of trees.  Output: its derivatives, as trees.  Forward mode is one trace
(`interpreters/jvp.py`); reverse mode linearizes, then transposes.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, overload

import numpy as np

from minijax.core import config, dtypes, refs, source, tree, tree_errors, tree_registry, vma
from minijax.core.aval import AbstractValue, ShapedArray, aval_of, has_aval
from minijax.core.check import same_type
from minijax.core.errors import error
from minijax.core.jaxpr import DebugInfo, Jaxpr
from minijax.core.operators import Avals, Value, Values
from minijax.core.primitive import Tangents, Zero
from minijax.core.trace import Tracer, current
from minijax.interpreters import casts, discharge, flattening, partial_eval, staging, transpose
from minijax.interpreters.jvp import jvp_flat
from minijax.interpreters.structural import instantiate, zeros
from minijax.lax import creation, references
from minijax.lowering import eager
from minijax.runtime.array import Array, array_from_host
from minijax.transforms.jit.jit import jit

if TYPE_CHECKING:
    from minijax.core.native import PyTreeDef

A = TypeVar("A")
R = TypeVar("R")


def _flat(function: Callable[..., Any], args: Any) -> tuple[list[Any], flattening.FlatFunction]:
    """The leaves of positional arguments, and the function of them."""
    leaves, in_tree = tree.flatten((tuple(args), {}))
    return leaves, flattening.FlatFunction(function, in_tree, flattening.function_name(function))


def _info(transformation: str, function: Callable[..., Any]) -> DebugInfo:
    name = flattening.function_name(function)
    return DebugInfo(transformation, name, func_name=f"{transformation} of {name}")


class _Aux:
    """Sets aside the auxiliary results of a function that returns a pair."""

    __slots__ = ("__name__", "function", "name")

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = name
        self.__name__ = flattening.function_name(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        out = self.function(*args, **kwargs)
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            problem = f"with has_aux=True {self.__name__} must return a pair (value, aux)."
            got = tree_errors.describe(tree.structure(out), tree.leaves(out))
            error(TypeError, self.name, problem, got=got, fix="return value, aux")
        return out[0], tree.map(lambda x: x if has_aval(x) else _Beside(x), out[1])


@tree_registry.register_static
class _Beside:
    """An auxiliary result that is neither an array nor a number."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


def _is_beside(x: object) -> bool:
    return type(x) is _Beside


def _split_aux(has_aux: bool, out_tree: PyTreeDef, outs: Values) -> tuple[Any, int, Any]:
    """For a pair (value, aux): the tree of value, its number of leaves, and aux itself."""
    if not has_aux:
        return out_tree, len(outs), None
    value_tree, aux_tree = out_tree.children()
    count = value_tree.num_leaves
    aux = tree.unflatten(aux_tree, outs[count:])
    aux = tree.map(lambda x: x.value if _is_beside(x) else x, aux, is_leaf=_is_beside)
    return value_tree, count, aux


@overload
def jvp(
    fun: Callable[..., R], primals: Values, tangents: Tangents, has_aux: Literal[False] = ...
) -> tuple[R, R]: ...
@overload
def jvp(
    fun: Callable[..., tuple[R, A]], primals: Values, tangents: Tangents, has_aux: Literal[True]
) -> tuple[R, R, A]: ...
@overload
def jvp(
    fun: Callable[..., Any], primals: Values, tangents: Tangents, has_aux: bool
) -> tuple[Any, ...]: ...


def jvp(
    fun: Callable[..., Any], primals: Values, tangents: Tangents, has_aux: bool = False
) -> tuple[Any, ...]:
    """The value of `fun` at `primals`, and its derivative in the direction `tangents`.

    Shapes: tangents have the trees and shapes of primals; out_tangents those of the result.
    Dtypes: tangents have the dtypes of primals, float0 for integers and booleans.

    Args:
        fun: a function of trees.
        primals: its positional arguments.
        tangents: one for each.
        has_aux: whether `fun` returns (value, aux), and aux is only passed on.

    Returns:
        (out, out_tangent), or (out, out_tangent, aux).

    Raises:
        TypeError: primals and tangents do not match.

    Example:
        >>> jax.jvp(lambda x: x**2, (3.0,), (1.0,))
        (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    eager.check_callable("jvp", fun)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        got = {"primals": type(primals).__name__, "tangents": type(tangents).__name__}
        error(TypeError, "jvp", "primals and tangents must be tuples or lists.", got=got)
    name = flattening.function_name(fun)
    leaves, flat = _flat(_Aux("jvp", fun) if has_aux else fun, primals)
    dots, dots_tree = tree.flatten((tuple(tangents), {}))
    if dots_tree != flat.in_tree:
        problem = "primals and tangents have different trees."
        error(TypeError, "jvp", problem, got={"primals": flat.in_tree, "tangents": dots_tree})
    names = tree_errors.argument_paths(flat.in_tree, flattening.parameter_names(fun))
    dots = [_checked_tangent(name, x, t) for name, x, t in zip(names, leaves, dots, strict=True)]
    outs, out_dots = jvp_flat(flat, leaves, dots, f"jvp of {name}")
    value_tree, count, aux = _split_aux(has_aux, flat.out_tree, outs)
    made = list(map(_derivative, out_dots[:count]))
    pair = tree.unflatten(value_tree, outs[:count]), tree.unflatten(value_tree, made)
    return (*pair, aux) if has_aux else pair


def _of_kind(x: Value, aval: AbstractValue) -> Any:
    """A tangent or cotangent that the user gives, varying where what it belongs to does."""
    varying = vma.of(aval).varying
    return casts.varied(current.value, x, varying) if varying else x


def _checked_tangent(name: str, primal: Value, tangent: Value) -> Any:
    expected = aval_of(primal).tangent_aval()
    tangent = _of_kind(tangent, expected)
    given = aval_of(tangent)
    if given.shape != expected.shape or given.dtype != expected.dtype:
        kind = ValueError if given.dtype == expected.dtype else TypeError
        problem = f"the tangent of {name} has the wrong type."
        got = {"primal": aval_of(primal), "tangent": given}
        error(kind, "jvp", problem, got=got, expected=f"a tangent of type {expected}")
    return Zero(expected) if expected.dtype == dtypes.float0 else tangent


class _LinearCall(NamedTuple):
    """Static data of a linearized function."""

    jaxpr: Jaxpr
    in_tree: Any
    out_tree: Any
    in_avals: tuple[Any, ...]
    out_avals: tuple[Any, ...]
    nonzero: tuple[bool, ...]
    out_nonzero: tuple[bool, ...]
    # For each residual: which leaf of the arguments it is, if it is one.
    of_argument: tuple[int | None, ...]

    def __hash__(self) -> int:
        return id(self.jaxpr)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _LinearCall) and self.jaxpr is other.jaxpr


class Linear:
    """A linearized function: a tree whose leaves are the residuals, so jit can return it."""

    __slots__ = ("__weakref__", "call", "residuals")

    def __init__(self, residuals: Values, call: _LinearCall) -> None:
        self.residuals = residuals
        self.call = call

    def kept(self) -> Values:
        """What the linear program reads of the point where it was made."""
        return self.residuals

    def __repr__(self) -> str:
        return str(self.call.jaxpr)

    _repr_html_ = Jaxpr._repr_html_


def _checked_leaves(
    name: str,
    given: object,
    expected_tree: object,
    avals: Avals,
    kind: type[Exception] = ValueError,
) -> list[Any]:
    """The leaves of tangents or cotangents that a user gives to a linear function."""
    leaves, given_tree = tree.flatten(given)
    if given_tree != expected_tree:
        problem = "the argument has the wrong tree."
        error(kind, name, problem, got=str(given_tree), expected=str(expected_tree))
    leaves = [_of_kind(x, aval) for x, aval in zip(leaves, avals, strict=True)]
    for x, aval in zip(leaves, avals, strict=True):
        given = aval_of(x)
        # Whatever the cotangent of integers is, it says nothing.
        is_nothing = name == "vjp" and aval.dtype == dtypes.float0
        if not same_type(given.update(dtype=aval.dtype) if is_nothing else given, aval):
            problem = "an argument has the wrong type."
            error(kind, name, problem, got=str(aval_of(x)), expected=str(aval))
    return leaves


@source.boundaries("__call__")
class _PushForward(Linear):
    """Maps tangents of arguments to tangents of results."""

    __slots__ = ()

    def __call__(self, *tangents: Any) -> Any:
        call = self.call
        dots = _checked_leaves("linearize", (tangents, {}), call.in_tree, call.in_avals)
        given = [t for t, nz in zip(dots, call.nonzero, strict=True) if nz]
        outs = iter(staging.eval_jaxpr(call.jaxpr, self.residuals, *given))
        made = [
            _derivative(next(outs) if nz else Zero(aval))
            for nz, aval in zip(call.out_nonzero, call.out_avals, strict=True)
        ]
        return tree.unflatten(call.out_tree, made)


class NotNeeded(NamedTuple):
    """Stands in `args_res` for an argument that the derivative does not read."""


@source.boundaries()
class _PullBack(Linear):
    """Maps cotangents of results to cotangents of arguments."""

    __slots__ = ("args_res",)

    def __init__(self, residuals: Values, call: _LinearCall) -> None:
        super().__init__(residuals, call)
        found = dict(zip(call.of_argument, residuals, strict=True))
        leaves = [found.get(i, NotNeeded()) for i in range(call.in_tree.num_leaves)]
        args, _ = tree.unflatten(call.in_tree, leaves)
        self.args_res = list(args)

    @property
    def opaque_residuals(self) -> list[Value]:
        """What the derivative keeps beside the arguments."""
        return [x for i, x in zip(self.call.of_argument, self.residuals, strict=True) if i is None]

    def kept(self) -> Values:
        """What the derivative reads: of the arguments, what stands in `args_res` by now."""
        given: list[Any] = [(tuple(self.args_res), {})]
        (args,) = tree.flatten_up_to("vjp: args_res", self.call.in_tree, given)
        pairs = zip(self.call.of_argument, self.residuals, strict=True)
        return [x if i is None else args[i] for i, x in pairs]

    in_tree = property(lambda self: self.call.in_tree.children()[0], doc="Of the arguments.")
    out_tree = property(lambda self: self.call.out_tree, doc="Of the result, and of cotangents.")
    jaxpr = property(lambda self: self.call.jaxpr, doc="The linear program, from tangents.")

    def __call__(self, cotangent: object, *more: Any) -> tuple[Any, ...]:
        call = self.call
        if more:
            problem = "one cotangent is needed, of the structure of the result."
            got = f"{1 + len(more)} arguments"
            error(TypeError, "vjp", problem, got=got, expected=f"one of structure {call.out_tree}")
        expected = [aval.cotangent_aval() for aval in call.out_avals]
        cts = _checked_leaves("vjp", cotangent, call.out_tree, expected)
        cts = [like_primal(ct, aval) for ct, aval in zip(cts, call.out_avals, strict=True)]
        given = [ct for ct, nz in zip(cts, call.out_nonzero, strict=True) if nz]
        kept = self.kept()
        if any(x is None or isinstance(x, NotNeeded) for x in kept):
            problem = "args_res lacks an argument that the derivative reads."
            error(ValueError, "vjp", problem, got=str(self.args_res), fix="put it back")
        grads = iter(transpose.backward_pass(call.jaxpr, kept, given))
        made = [
            like_primal(_derivative(next(grads) if nz else Zero(aval)), aval)
            for nz, aval in zip(call.nonzero, call.in_avals, strict=True)
        ]
        args, _ = tree.unflatten(call.in_tree, made)
        return tuple(args)

    def with_refs(self, *wanted: Any) -> Callable[..., tuple[Any, ...]]:
        """The same function, which adds cotangents to references in place of returning them.

        Source:     mirrors jax.vjp(...).with_refs (0.10).

        Args:
            wanted: trees like the primals: a reference, or a part of one, gets the cotangent added,
                and `GradRef()` is returned for it; for anything else, such as True, the cotangent
                is returned.  Without any, all are returned.

        Raises:
            ValueError: the trees differ from those of the primals; or, in a call, a reference has
                another shape or dtype than the cotangent.

        Example:
            >>> total = jax.new_ref(jnp.zeros(2))
            >>> _, pull_back = jax.vjp(lambda x: (x * x).sum(), jnp.array([1.0, 2.0]))
            >>> pull_back.with_refs(total)(1.0), pull_back.with_refs(total)(10.0)
            ((GradRef(),), (GradRef(),))
            >>> total[...]
            Array([22., 44.], dtype=float32)
        """
        if not wanted:
            return self
        leaves, given_tree = tree.flatten((wanted, {}))
        if given_tree != self.call.in_tree:
            problem = "the arguments have another tree than the primals."
            expected = str(self.call.in_tree)
            error(ValueError, "with_refs", problem, got=str(given_tree), expected=expected)

        def pull_back(cotangent: object) -> tuple[Any, ...]:
            found = tree.leaves(self(cotangent))
            kept = [_kept(ct, want) for ct, want in zip(found, leaves, strict=True)]
            args, _ = tree.unflatten(self.call.in_tree, kept)
            return tuple(args)

        return pull_back


class GradRef(NamedTuple):
    """Stands for a cotangent that was added to a reference.

    Source:     mirrors jax.ad.GradRef (0.10).
    """


def _kept(ct: Array, wanted: Value) -> Any:
    """What is returned of a cotangent, after it was added to a reference that wants it."""
    if not refs.is_reference(wanted):
        return ct
    if aval_of(ct).dtype != dtypes.float0:
        references.addupdate(wanted, ..., ct)
    return GradRef()


for _class in (_PushForward, _PullBack):
    tree_registry.register_pytree_node(
        _class,
        lambda linear: (tuple(linear.kept()), linear.call),
        functools.partial(lambda cls, call, residuals: cls(list(residuals), call), _class),
    )


def _linearized(
    name: str, fun: Callable[..., Any], primals: Values, has_aux: bool, made: Any
) -> Any:
    eager.check_callable(name, fun)
    leaves, flat = _flat(_Aux(name, fun) if has_aux else fun, primals)
    avals = flattening.avals_of(
        leaves,
        lambda: tree_errors.argument_paths(flat.in_tree, flattening.parameter_names(fun)),
        name,
    )
    nonzero = tuple(a.tangent_aval().dtype != dtypes.float0 for a in avals)
    # What has derivatives is as weakly typed as what it is the derivative by.
    tangent_avals = tuple(
        a if nz else a.tangent_aval() for a, nz in zip(avals, nonzero, strict=True)
    )
    lin = partial_eval.linearize_flat(flat, leaves, nonzero, _info(name, fun))
    out_tree, count, aux = _split_aux(has_aux, flat.out_tree, lin.outs)
    positions = {id(x): i for i, x in reversed(list(enumerate(leaves)))}
    call = _LinearCall(
        lin.jaxpr.replace(outvars=lin.jaxpr.outvars[: sum(lin.out_nonzero[:count])]),
        flat.in_tree,
        out_tree,
        tangent_avals,
        tuple(lin.out_tangent_avals[:count]),
        nonzero,
        tuple(lin.out_nonzero[:count]),
        tuple(positions.get(id(x)) for x in lin.residuals),
    )
    out = tree.unflatten(out_tree, lin.outs[:count])
    linear = made(lin.residuals, call)
    return (out, linear, aux) if has_aux else (out, linear)


@overload
def linearize(
    fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = ...
) -> tuple[R, Callable[..., R]]: ...
@overload
def linearize(
    fun: Callable[..., tuple[R, A]], *primals: Any, has_aux: Literal[True]
) -> tuple[R, Callable[..., R], A]: ...
@overload
def linearize(
    fun: Callable[..., Any], *primals: Any, has_aux: bool
) -> tuple[Any, Callable[..., Any]] | tuple[Any, Callable[..., Any], Any]: ...


def linearize(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False
) -> tuple[Any, Callable[..., Any]] | tuple[Any, Callable[..., Any], Any]:
    """The value of `fun` at `primals`, and its derivative there as a linear function.

    `fun` runs once; each call of the linear function then costs only the derivative's operations.

    Args:
        fun: a function of trees.
        primals: its positional arguments.
        has_aux: whether `fun` returns (value, aux), and aux is only passed on.

    Returns:
        (out, push_forward), or (out, push_forward, aux) with `has_aux`; `push_forward(*tangents)`
        takes a tangent for each primal and returns that of `out`, as `jvp` does.

    Example:
        >>> y, push_forward = jax.linearize(lambda x: x**2, 3.0)
        >>> push_forward(1.0), push_forward(10.0)
        (Array(6., dtype=float32, weak_type=True), Array(60., dtype=float32, weak_type=True))
    """
    return _linearized("linearize", fun, primals, has_aux, _PushForward)


@overload
def vjp(
    fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = ..., reduce_axes: object = ...
) -> tuple[R, Callable[..., tuple[Any, ...]]]: ...
@overload
def vjp(
    fun: Callable[..., tuple[R, A]],
    *primals: Any,
    has_aux: Literal[True],
    reduce_axes: object = ...,
) -> tuple[R, Callable[..., tuple[Any, ...]], A]: ...
@overload
def vjp(
    fun: Callable[..., Any], *primals: Any, has_aux: bool, reduce_axes: object = ...
) -> tuple[Any, Callable[..., Any]] | tuple[Any, Callable[..., Any], Any]: ...


def vjp(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False, reduce_axes: object = ()
) -> tuple[Any, Callable[..., Any]] | tuple[Any, Callable[..., Any], Any]:
    """The value of `fun` at `primals`, and a function that pulls its cotangents back to them.

    What `grad` is made of: for a scalar result, `pull_back(1.0)` are the gradients.

    Args:
        fun: a function of trees.
        primals: its positional arguments.
        has_aux: whether `fun` returns (value, aux), and aux is only passed on.
        reduce_axes: accepted for compatibility; must be empty.

    Returns:
        (out, pull_back), or (out, pull_back, aux) with `has_aux`; `pull_back(ct)` is a tuple with
        one cotangent for each primal.

    Raises:
        TypeError: an argument is neither an array nor a number.
        ValueError: `pull_back` is called with a cotangent of another tree or type.

    Example:
        >>> y, pull_back = jax.vjp(lambda a, b: a * b, 2.0, 3.0)
        >>> pull_back(10.0)
        (Array(30., dtype=float32, weak_type=True), Array(20., dtype=float32, weak_type=True))
    """
    return _linearized("vjp", fun, primals, has_aux, _PullBack)


def fwd_and_bwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Two functions in place of `vjp`: one for the value, one for the cotangents, compiled apart.

    Args:
        fun: a function of trees.
        argnums: the positions of the arguments by which it is differentiated.
        has_aux: whether `fun` returns (out, aux), of which aux has no derivative.
        jitted: whether the two functions are jitted.

    Returns:
        `fwd`, which takes the arguments and returns (out, residuals), or (out, residuals, aux);
        and `bwd`, which takes these residuals and a cotangent and returns what `vjp`'s function
        does: a tuple, or one tree where `argnums` is an int.

    Example:
        >>> forward, backward = jax.fwd_and_bwd(jnp.multiply, argnums=(0, 1))
        >>> product, residuals = forward(2.0, 5.0)
        >>> backward(residuals, 1.0)
        (Array(5., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    eager.check_callable("fwd_and_bwd", fun)
    positions = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def forward(*args: Any, **kwargs: Any) -> Any:
        held = with_held_arguments(fun, args, kwargs, positions)
        return vjp(held, *[args[i] for i in positions], has_aux=has_aux)

    def backward(residuals: Any, cotangent: Any) -> Any:
        found = residuals(cotangent)
        return found[0] if isinstance(argnums, int) else found

    return (jit(forward), jit(backward)) if jitted else (forward, backward)


def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """The gradient of a function with a scalar result.

    Shapes: of each gradient: those of the argument.
    Dtypes: of each gradient: those of the argument; float0 for integers, with `allow_int`.

    Args:
        fun: a function of trees that returns a scalar, or (scalar, aux).
        argnums: position or positions of the arguments to differentiate.
        has_aux: whether `fun` returns a pair; the gradient comes with aux then.
        holomorphic: whether `fun` is promised to be holomorphic.
        allow_int: whether arguments may be integers.
        reduce_axes: accepted for compatibility; must be empty.

    Raises:
        TypeError: the result is not a scalar, or a dtype cannot be differentiated.

    Example:
        >>> jax.grad(lambda x: x**3)(2.0)
        Array(12., dtype=float32, weak_type=True)
        >>> jax.grad(jax.grad(lambda x: x**3))(2.0)
        Array(12., dtype=float32, weak_type=True)
        >>> jax.grad(lambda p: p["w"] * p["x"])({"w": jnp.float32(2), "x": jnp.float32(5)})
        {'w': Array(5., dtype=float32), 'x': Array(2., dtype=float32)}
    """
    both = _value_and_grad("grad", fun, argnums, has_aux, holomorphic, allow_int)

    @source.result_of(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        if has_aux:
            (_, aux), grads = both(*args, **kwargs)
            return grads, aux
        return both(*args, **kwargs)[1]

    return gradient


def value_and_grad(
    fun: Callable[..., R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., tuple[R, Any]]:
    """The value of a function with a scalar result, and its gradient, of one run of the function.

    Args:
        fun: a function of trees that returns a scalar, or (scalar, aux).
        argnums: position or positions of the arguments to differentiate.
        has_aux: whether `fun` returns a pair.
        holomorphic: whether `fun` is promised to be holomorphic.
        allow_int: whether arguments may be integers.
        reduce_axes: accepted for compatibility; must be empty.

    Returns:
        A function that returns (value, gradients), or ((value, aux), gradients).

    Example:
        >>> value, gradients = jax.value_and_grad(lambda x, y: x * y, argnums=(0, 1))(2.0, 3.0)
        >>> [float(g) for g in (value, *gradients)]
        [6.0, 3.0, 2.0]
    """
    return _value_and_grad("value_and_grad", fun, argnums, has_aux, holomorphic, allow_int)


def _value_and_grad(
    name: str,
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
) -> Callable[..., Any]:
    """`value_and_grad`, in whose messages the function is called `name`."""
    eager.check_callable(name, fun)

    @source.result_of(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        positions, single = flattening.normalize_argnums(name, argnums, len(args))
        chosen = [args[i] for i in positions]
        held = with_held_arguments(fun, args, kwargs, positions)
        leaves, flat = _flat(_Aux(name, held) if has_aux else held, chosen)
        avals = flattening.avals_of(
            leaves, lambda: argument_names(fun, flat.in_tree, positions), name
        )
        for i, aval in enumerate(avals):
            if not dtypes.issubdtype(aval.dtype, np.floating) or holomorphic:
                place = argument_names(fun, flat.in_tree, positions)[i]
                check_input(name, place, aval, holomorphic, allow_int)
        nonzero = [dtypes.issubdtype(aval.dtype, np.inexact) for aval in avals]
        lin = partial_eval.linearize_flat(flat, leaves, nonzero, _info(name, fun))
        out_tree, count, aux = _split_aux(has_aux, flat.out_tree, lin.outs)
        value = tree.unflatten(out_tree, lin.outs[:count])
        _check_scalar(name, fun, value, out_tree, holomorphic)
        dtype = aval_of(value).dtype
        cts: list[Any] = [
            Zero(a) for a, nz in zip(lin.out_tangent_avals, lin.out_nonzero, strict=True) if nz
        ]
        if lin.out_nonzero[0]:
            cts[0] = np.ones((), dtype)[()]
        # A program of wide numbers was staged with them, and is transposed with them.
        is_wide = any(map(dtypes.is_too_wide, {dtype, *(aval.dtype for aval in avals)}))
        with config.enable_x64(True) if is_wide else contextlib.nullcontext():
            given = iter(transpose.backward_pass(lin.jaxpr, lin.residuals, cts))
        grads = [
            like_primal(_derivative(next(given)), aval) if nz else zeros(aval.tangent_aval())
            for nz, aval in zip(nonzero, avals, strict=True)
        ]
        result, _ = tree.unflatten(flat.in_tree, grads)
        result = result[0] if single else tuple(result)
        return ((value, aux), result) if has_aux else (value, result)

    return wrapped


def _derivative(x: Any) -> Any:
    """A tangent or cotangent as users get it: outside of traces an array, never a NumPy scalar."""
    made = instantiate(x)
    if isinstance(made, np.generic) and current.value is eager.EAGER:
        return array_from_host(made)
    return made


def like_primal(gradient: object, aval: ShapedArray) -> Any:
    """A gradient as weakly typed as the value that it belongs to."""
    given = aval_of(gradient)
    if given.weak_type == aval.weak_type:
        return gradient
    return creation.convert_to_type(gradient, given.dtype, aval.weak_type)


def argument_names(fun: Any, in_tree: Any, positions: Sequence[int]) -> Sequence[str]:
    """The names of the leaves of the arguments at `positions`; none where they cannot be told."""
    return flattening.debug_info("grad", fun, in_tree, positions).arg_names or ()


def with_held_arguments(
    fun: Callable[..., Any], args: Values, kwargs: dict[str, Any], positions: Sequence[int]
) -> Callable[..., Any]:
    """`fun` of the arguments at `positions` alone."""

    def held(*chosen: Any) -> Any:
        full_args = list(args)
        for i, x in zip(positions, chosen, strict=True):
            full_args[i] = x
        return fun(*full_args, **kwargs)

    held.__name__ = flattening.function_name(fun)
    return held


def check_input(name: str, place: str, aval: Any, holomorphic: bool, allow_int: bool) -> None:
    """Refuses an argument of `grad` or `jacrev` whose dtype cannot be differentiated.

    Raises:
        TypeError: it cannot.
    """
    dtype = aval.dtype
    if dtypes.is_extended(dtype):
        if not allow_int:
            error(TypeError, name, f"cannot differentiate with respect to {place}.", got=str(aval))
        return
    if holomorphic and not dtypes.issubdtype(dtype, np.complexfloating):
        problem = f"holomorphic=True needs complex inputs, but {place} is not."
        error(TypeError, name, problem, got={place: aval})
    integral = dtypes.issubdtype(dtype, np.integer) or dtype == np.bool_
    if integral and not allow_int:
        problem = f"needs real or complex inputs, but {place} is not."
        fix = "pass a float (such as 3.0 in place of 3), differentiate with respect to "
        fix += "other arguments (argnums), or give allow_int=True"
        error(TypeError, name, problem, got={place: aval}, fix=fix)


def _check_scalar(name: str, fun: Any, value: Any, out_tree: Any, holomorphic: bool) -> None:
    function = flattening.function_name(fun)
    if out_tree.num_leaves != 1 or out_tree != tree.structure(0):
        problem = f"{function} must return a scalar."
        fix = "return one scalar, or has_aux=True and (scalar, aux)"
        if tree_errors.forgets_return(out_tree):
            fix = f"a `return` in {function}: without one, a function returns None"
        error(TypeError, name, problem, got=tree_errors.describe(out_tree), fix=fix)
    aval = aval_of(value)
    if aval.shape:
        problem = f"{function} must return a scalar."
        fix = "reduce it, with .sum() or .mean(), or use jacrev"
        error(TypeError, name, problem, got=f"a result of type {aval}", fix=fix)
    wanted = np.complexfloating if holomorphic else np.floating
    if not dtypes.issubdtype(aval.dtype, wanted):
        problem = f"{function} must return a {'complex' if holomorphic else 'real'} scalar."
        fix = "return a float"
        if dtypes.issubdtype(aval.dtype, np.complexfloating):
            fix = "holomorphic=True for holomorphic functions, else minijax.vjp"
        error(TypeError, name, problem, got=f"a result of type {aval}", fix=fix)


def linear_transpose(
    fun: Callable[..., Any], *primals: Any, reduce_axes: object = ()
) -> Callable[[Any], tuple[Any, ...]]:
    """The transpose of a function promised to be linear.

    Args:
        fun: a linear function of trees.
        primals: its arguments, or anything with their shapes and dtypes.
        reduce_axes: accepted for compatibility; must be empty.

    Returns:
        A function from a cotangent of the result to a tuple of cotangents of the arguments.

    Raises:
        TypeError: a dtype is not real or complex, or the cotangent does not match the result.

    Example:
        >>> A = jnp.array([[1.0, 2.0], [3.0, 4.0]])
        >>> jax.linear_transpose(lambda x: A @ x, jnp.ones(2))(jnp.array([1.0, 0.0]))
        (Array([1., 2.], dtype=float32),)
    """
    eager.check_callable("linear_transpose", fun)
    leaves, flat = _flat(fun, primals)
    avals = [aval_of(x).strip_weak_type() for x in leaves]
    jaxpr, consts = staging.stage(flat, avals, _info("linear_transpose", fun))
    out_tree = flat.out_tree
    out_avals = [v.aval for v in jaxpr.outvars]
    for aval in (*avals, *out_avals):
        if not dtypes.issubdtype(aval.dtype, np.inexact):
            problem = "arguments and results must be real or complex."
            error(TypeError, "linear_transpose", problem, got=str(aval))

    def transposed(cotangent: object) -> tuple[Any, ...]:
        cts = _checked_leaves("linear_transpose", cotangent, out_tree, out_avals, TypeError)
        linear, residuals = discharge.without_references_open(jaxpr, consts)
        outs = transpose.backward_pass(linear, residuals, cts)
        args, _ = tree.unflatten(flat.in_tree, list(map(_derivative, outs)))
        return tuple(args)

    return transposed


def closure_convert(
    fun: Callable[..., R], *example_args: Any
) -> tuple[Callable[..., R], list[Any]]:
    """`fun` with the traced values that it closes over as further arguments.

    Returns:
        (converted, values) such that `converted(*args, *values)` equals `fun(*args)`.

    Example:
        >>> def scaled(y):
        ...     convert, values = jax.closure_convert(lambda x: x * y, 1.0)
        ...     return convert(10.0, *values)
        >>> jax.grad(scaled)(3.0)
        Array(10., dtype=float32, weak_type=True)
    """
    leaves, flat = _flat(fun, example_args)
    jaxpr, consts = staging.stage(flat, list(map(aval_of, leaves)), _info("closure_convert", fun))
    hoist = [isinstance(c, Tracer) and dtypes.issubdtype(c.dtype, np.inexact) for c in consts]
    hoisted = [c for c, h in zip(consts, hoist, strict=True) if h]
    count = len(example_args)

    def converted(*args: Any) -> Any:
        values = iter(args[count:])
        given, in_tree = tree.flatten((args[:count], {}))
        if in_tree != flat.in_tree:
            problem = "the arguments have another tree than the example's."
            expected = str(flat.in_tree)
            error(TypeError, "closure_convert", problem, got=str(in_tree), expected=expected)
        merged = [next(values) if h else c for c, h in zip(consts, hoist, strict=True)]
        return tree.unflatten(flat.out_tree, staging.eval_jaxpr(jaxpr, merged, *given))

    return converted, hoisted
