"""`checkpoint`: which values a derivative saves and which it computes again, by a policy.

Input: a function of trees.  Output: the same function, whose derivative stores only its arguments
and what a policy says.  A policy is asked `policy(primitive, *avals, **params)` about each
operation whose result the backward pass needs, and answers True (save it), False (compute it
again), or how to offload it.  `saved_residuals` gives the type of each value that reverse mode
stores, and where it comes from, without computing anything.

The primitive is in `transforms/autodiff/remat.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from minijax.core import dtypes, source, tree, vma
from minijax.core.aval import ShapedArray
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from minijax.core.operators import BatchDims, Values
from minijax.core.primitive import Batched, Cotangents, Dual, Primitive, Tangents
from minijax.core.sequences import UNSPECIFIED
from minijax.interpreters import checking, flattening, partial_eval, passes, staging
from minijax.interpreters.remat import Decision, Offloadable, Recompute, Saveable
from minijax.lax.convolution import conv_general_dilated_p
from minijax.lax.dots import dot_general_p
from minijax.lax.families import operand as as_operand
from minijax.lowering import eager
from minijax.sharding import rules
from minijax.transforms.autodiff.remat import PreventCse, remat_p
from minijax.transforms.jit import arguments, jit
from minijax.transforms.jit.arguments import JitSettings
from minijax.transforms.jit.primitive import jit_p

if TYPE_CHECKING:
    from minijax.lowering.stablehlo import LoweringContext

R = TypeVar("R")
T = TypeVar("T")


def checkpoint(
    fun: Callable[..., R],
    *,
    prevent_cse: bool | Sequence[Any] = True,
    policy: Callable[..., Any] | None = None,
    static_argnums: int | tuple[int, ...] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: object = UNSPECIFIED,
) -> Callable[..., R]:
    """`fun`, with a derivative that computes intermediate values again instead of storing them.

    Between the forward and the backward pass only the arguments of `fun` are alive, and the values
    that `policy` saves.  The rest is computed twice: memory is bought with time.

    Derivative: that of `fun`, to any order and in both modes.
    Lowers to:  the operations of `fun`; where they are repeated, behind an optimization barrier.

    Args:
        fun: a function of trees of arrays; it is traced once for each signature.
        prevent_cse: whether to keep the compiler from merging the repeated operations with the
            first ones, which would undo the saving; may be False inside `lax.scan`.  A tuple gives
            one flag, or a tree prefix of flags, for each positional argument.
        policy: asked `policy(primitive, *avals, **params)` whether to save an operation's results;
            one of `minijax.checkpoint_policies`, or None to save nothing.
        static_argnums: positions of arguments that are passed on as they are, traced by nobody.
        static_argnames: the same by name.
        concrete: removed; a value for it is refused.

    Raises:
        TypeError: `fun` or `policy` is not callable, or the policy gives no decision.
        ValueError: static_argnums is out of range, or prevent_cse does not fit the arguments.
        NotImplementedError: `concrete` is given.

    Example:
        >>> from minijax.ad_checkpoint import print_saved_residuals
        >>> f = lambda x: jnp.sin(jnp.sin(x))
        >>> print_saved_residuals(f, 1.0)
        f32[] output of cos from ... (<lambda>)
        f32[] output of cos from ... (<lambda>)
        >>> print_saved_residuals(jax.checkpoint(f), 1.0)
        f32[] from the argument x
        >>> jax.grad(jax.checkpoint(f))(1.0) == jax.grad(f)(1.0)
        Array(True, dtype=bool)
    """
    eager.check_callable("checkpoint", fun)
    if concrete is not UNSPECIFIED:
        fix = "mark arguments that Python code depends on with static_argnums"
        error(NotImplementedError, "checkpoint", "the option concrete exists no longer.", fix=fix)
    if policy is not None:
        _check_policy(policy)
    static_nums, static_names = arguments.resolve_names(
        fun, static_argnums, static_argnames or None, "static", "checkpoint"
    )
    half = _Checkpointed(fun, prevent_cse, policy, static_nums, static_names)

    @source.result_of(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        return half.call(args, kwargs)

    return call


remat = checkpoint


def _check_policy(policy: object) -> None:
    if not callable(policy):
        problem = "the policy is not callable."
        got = f"{policy!r} of type {type(policy).__name__}"
        expected = "a function of a primitive, the types of its arguments, and parameters"
        fix = "take one of minijax.checkpoint_policies"
        error(TypeError, "checkpoint", problem, got=got, expected=expected, fix=fix)


class _Checkpointed:
    """A function to compute again, and how."""

    def __init__(
        self,
        function: Callable[..., Any],
        prevent_cse: bool | Sequence[Any],
        policy: object,
        static_argnums: tuple[int, ...],
        static_argnames: tuple[str, ...],
    ) -> None:
        self.function = function
        self.prevent_cse = prevent_cse
        self.policy = policy
        self.static_argnums = static_argnums
        self.static_argnames = static_argnames
        self.stager = _stager(function, static_argnums, static_argnames)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Stages the function, once for each signature, and calls what was staged."""
        static = self._static_positions(len(args))
        stager, dynamic_args = self.stager, args
        if static or self.static_argnames:
            dynamic_args = tuple(x for i, x in enumerate(args) if i not in static)
            fixed: list[Any] = [(i, None, args[i]) for i in sorted(static)]
            fixed += [(k, None, v) for k, v in kwargs.items() if k in self.static_argnames]
            if not all(isinstance(value, Hashable) for _, _, value in fixed):
                # Nothing can be remembered under these values: the function is staged anew.
                positions = [i for i in range(len(args)) if i not in static]
                bound = arguments.with_statics(self.function, fixed, positions)
                bound.__name__ = stager.name
                stager = _stager(bound)
                args = dynamic_args
                kwargs = {k: v for k, v in kwargs.items() if k not in self.static_argnames}
        leaves, staged = stager.infer(args, kwargs)
        outs = remat_p.bind_all(
            *staged.outer,
            *leaves,
            jaxpr=staged.closed,
            prevent_cse=self._flags(dynamic_args, static, len(staged.outer), len(leaves)),
            differentiated=False,
            policy=self.policy,
        )
        return tree.unflatten(staged.out_tree, outs)

    def _static_positions(self, count: int) -> set[int]:
        wrong = [i for i in self.static_argnums if not -count <= i < count]
        # A static parameter may also be given by name, or left to its default.
        if wrong and not self.static_argnames:
            problem = f"static_argnums {wrong[0]} is out of range."
            error(ValueError, "checkpoint", problem, got=f"{count} positional argument(s)")
        return {i % count for i in self.static_argnums if -count <= i < count}

    def _flags(
        self, args: tuple[Any, ...], static: set[int], num_outer: int, num_leaves: int
    ) -> PreventCse:
        """Which flat arguments to guard: what the function closes over always is."""
        given = self.prevent_cse
        if isinstance(given, bool):
            return given
        prefix = tuple(flag for i, flag in enumerate(given) if i not in static)
        flags = tree.flatten_axes("checkpoint prevent_cse", tree.structure(args), prefix)
        flags = [True] * num_outer + [bool(flag) for flag in flags]
        return tuple(flags) + (True,) * (num_outer + num_leaves - len(flags))


def _stager(
    function: Callable[..., Any],
    static_argnums: tuple[int, ...] = (),
    static_argnames: tuple[str, ...] = (),
) -> jit.JitFunction:
    """What stages the function, and remembers it as `jit` does."""
    settings = JitSettings(static_argnums, static_argnames)
    return jit.JitFunction(function, settings)


class Name(Primitive):
    """Returns `x`, whose name policies can refer to.

    Shapes: x: T[s] -> T[s].  Linear in x; tangents bear no name.
    """

    name = "name"
    shard = rules.elementwise

    def impl(self, x: object, *, name: str) -> Any:
        return x

    def abstract_eval(self, x: ShapedArray, *, name: str) -> ShapedArray:
        return x

    def lower(self, ctx: LoweringContext, x: object, *, name: str) -> Any:
        return x

    def jvp(self, primals: Values, tangents: Tangents, *, name: str) -> Dual:
        return self.bind(*primals, name=name), tangents[0]

    def transpose(self, ct: Any, x: Any, *, name: str) -> Cotangents:
        return (ct,)

    def batch(self, size: int, args: Values, dims: BatchDims, *, name: str) -> Batched:
        return self.bind(args[0], name=name), dims[0]


checking.fault_flow.set(checking.PRESERVES, Name)
dtypes.knows_extended.set(True, Name)
vma.keeps_unreduced.set(True, Name)


name_p = Name()


def checkpoint_name(x: T, name: str) -> T:
    """Returns `x`, and gives its arrays a name that policies of `checkpoint` refer to.

    Shapes:     x: a tree of T_i[s_i] -> T_i[s_i].
    Derivative: tangents and cotangents pass unchanged.
    Lowers to:  nothing.

    Example:
        >>> from minijax.ad_checkpoint import checkpoint_name, print_saved_residuals
        >>> keep = jax.checkpoint_policies.save_only_these_names("inner")
        >>> f = jax.checkpoint(lambda x: jnp.sin(checkpoint_name(jnp.sin(x), "inner")), policy=keep)
        >>> print_saved_residuals(f, 1.0)
        f32[] from the argument x
        f32[] named 'inner' from ... (<lambda>)
    """
    return tree.map(lambda leaf: name_p.bind(as_operand(leaf), name=name), x)


Policy = Callable[..., Any]


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Saves all: `checkpoint` then changes nothing.

    Example:
        >>> f = lambda x: jnp.sin(jnp.sin(x))
        >>> g = jax.checkpoint(f, policy=jax.checkpoint_policies.everything_saveable)
        >>> len(jax.ad_checkpoint.saved_residuals(g, 1.0))
        2
    """
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """Saves nothing but the arguments; what `checkpoint` does without a policy.

    Example:
        >>> f = lambda x: jnp.sin(jnp.sin(x))
        >>> g = jax.checkpoint(f, policy=jax.checkpoint_policies.nothing_saveable)
        >>> jax.ad_checkpoint.print_saved_residuals(g, 1.0)
        f32[] from the argument x
    """
    return False


def _is_plain_product(prim: Primitive, params: dict[str, Any]) -> bool:
    """Whether an operation is a matrix product without batch dimensions: that of a layer."""
    if prim is not dot_general_p:
        return False
    _, (lhs_batch, rhs_batch) = params["dimension_numbers"]
    return not lhs_batch and not rhs_batch


def dots_saveable(prim: Primitive, *_: Any, **__: Any) -> bool:
    """Saves the results of matrix products and convolutions: dear to compute again.

    Example:
        >>> f = lambda x: jnp.sin(jnp.sin(x @ x))
        >>> g = jax.checkpoint(f, policy=jax.checkpoint_policies.dots_saveable)
        >>> jax.ad_checkpoint.print_saved_residuals(g, jnp.ones((2, 2)))
        f32[2,2] from the argument x
        f32[2,2] output of dot_general from ... (<lambda>)
    """
    return prim is dot_general_p or prim is conv_general_dilated_p


def dots_with_no_batch_dims_saveable(prim: Primitive, *_: Any, **params: Any) -> bool:
    """Saves matrix products without batch dimensions: those with weights, not those of attention.

    Example:
        >>> f = lambda x: jnp.sin(x @ x)
        >>> g = jax.checkpoint(f, policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable)
        >>> len(jax.ad_checkpoint.saved_residuals(g, jnp.ones((2, 2))))
        2
        >>> len(jax.ad_checkpoint.saved_residuals(g, jnp.ones((5, 2, 2))))
        1
    """
    return _is_plain_product(prim, params)


checkpoint_dots = dots_saveable
checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable


@dataclasses.dataclass(frozen=True)
class ByName:
    """A policy that goes by the names that `checkpoint_name` gives.

    Attributes:
        decisions: sets of names, each with the decision about values named so.
        otherwise: the decision about values of other names.
        nameless: the decision about values without a name.
    """

    decisions: tuple[tuple[frozenset[str], Any], ...]
    otherwise: Any
    nameless: Any

    def __call__(self, prim: Primitive, *_: Any, **params: Any) -> Any:
        if prim is not name_p:
            return self.nameless
        found = (what for names, what in self.decisions if params["name"] in names)
        return next(found, self.otherwise)


def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """A policy that saves the values that `checkpoint_name` gave one of these names.

    Example:
        >>> keep = jax.checkpoint_policies.save_only_these_names("inner")
        >>> f = lambda x: jnp.sin(jax.ad_checkpoint.checkpoint_name(jnp.sin(x), "inner"))
        >>> jax.ad_checkpoint.print_saved_residuals(jax.checkpoint(f, policy=keep), 1.0)
        f32[] from the argument x
        f32[] named 'inner' from ... (<lambda>)
    """
    return ByName(((frozenset(names_which_can_be_saved), True),), False, False)


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """A policy that saves the values with a name, except with one of these.

    Example:
        >>> name = jax.ad_checkpoint.checkpoint_name
        >>> f = lambda x: jnp.sin(name(jnp.sin(name(jnp.sin(x), "first")), "second"))
        >>> keep = jax.checkpoint_policies.save_any_names_but_these("first")
        >>> jax.ad_checkpoint.print_saved_residuals(jax.checkpoint(f, policy=keep), 1.0)
        f32[] from the argument x
        f32[] named 'second' from ... (<lambda>)
    """
    return ByName(((frozenset(names_not_to_save), False),), True, False)


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """A policy that saves everything, named or not, except values with one of these names.

    The operation under the name may be saved in its place: it bears no name itself.

    Example:
        >>> name = jax.ad_checkpoint.checkpoint_name
        >>> f = lambda x: jnp.sin(name(jnp.sin(x), "inner"))
        >>> keep = jax.checkpoint_policies.save_anything_except_these_names("inner")
        >>> len(jax.ad_checkpoint.saved_residuals(jax.checkpoint(f, policy=keep), 1.0))
        2
    """
    return ByName(((frozenset(names_not_to_save), False),), True, True)


@dataclasses.dataclass(frozen=True)
class SaveByEither:
    """Saves what either of two policies saves."""

    first: Policy
    second: Policy

    def __call__(self, prim: Primitive, *avals: Any, **params: Any) -> bool:
        answers = [ask(prim, *avals, **params) for ask in (self.first, self.second)]
        for answer in answers:
            if not isinstance(answer, (bool, np.bool_)):
                problem = "both policies must answer True or False."
                got = f"{answers[0]!r} and {answers[1]!r}, asked about {prim}"
                fix = "write a policy that calls the two and decides"
                error(ValueError, "save_from_both_policies", problem, got=got, fix=fix)
        return any(answers)


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """A policy that saves what at least one of two policies saves.

    Raises:
        ValueError: when asked, if a policy answers neither True nor False.

    Example:
        >>> policies = jax.checkpoint_policies
        >>> named = policies.save_only_these_names("inner")
        >>> keep = policies.save_from_both_policies(policies.checkpoint_dots, named)
        >>> f = lambda x: jnp.sin(jax.ad_checkpoint.checkpoint_name(x @ x, "inner"))
        >>> len(jax.ad_checkpoint.saved_residuals(jax.checkpoint(f, policy=keep), jnp.ones((2, 2))))
        2
    """
    return SaveByEither(policy_1, policy_2)


@dataclasses.dataclass(frozen=True)
class OffloadDots:
    """Saves plain matrix products in another memory."""

    where: Offloadable

    def __call__(self, prim: Primitive, *_: Any, **params: Any) -> Decision | Offloadable:
        return self.where if _is_plain_product(prim, params) else Recompute


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """A policy that saves matrix products without batch dimensions in another memory.

    Args:
        offload_src: the memory they are computed in, such as "device".
        offload_dst: the memory they wait in, such as "pinned_host".

    Example:
        >>> away = jax.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
        >>> f = jax.checkpoint(lambda x: jnp.sin(x @ x), policy=away)
        >>> jax.grad(lambda x: f(x).sum())(jnp.zeros((1, 1)))
        Array([[0.]], dtype=float32)
    """
    return OffloadDots(Offloadable(offload_src, offload_dst))


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Sequence[str],
    names_which_can_be_offloaded: Sequence[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """A policy that saves values with some names, and those with others in another memory.

    Args:
        names_which_can_be_saved: names of values that stay where they are.
        names_which_can_be_offloaded: names of values that go to `offload_dst`.
        offload_src: the memory they are computed in, such as "device".
        offload_dst: the memory they wait in, such as "pinned_host".

    Raises:
        ValueError: a name is in both lists.

    Example:
        >>> away = jax.checkpoint_policies.save_and_offload_only_these_names(
        ...     names_which_can_be_saved=["a"],
        ...     names_which_can_be_offloaded=["b"],
        ...     offload_src="device",
        ...     offload_dst="pinned_host",
        ... )
        >>> f = lambda x: jnp.sin(jax.ad_checkpoint.checkpoint_name(jnp.sin(x), "b"))
        >>> jax.grad(jax.checkpoint(f, policy=away))(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    saved = frozenset(names_which_can_be_saved)
    offloaded = frozenset(names_which_can_be_offloaded)
    if saved & offloaded:
        problem = "names can be saved or offloaded, but not both."
        got = f"in both lists: {sorted(saved & offloaded)}"
        error(ValueError, "save_and_offload_only_these_names", problem, got=got)
    where = Offloadable(offload_src, offload_dst)
    return ByName(((saved, Saveable), (offloaded, where)), Recompute, Recompute)


def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[Any, str]]:
    """The values that reverse-mode differentiation of `f` stores: type and origin of each.

    Source:     minijax's own; JAX prints them only.

    Args:
        f: a function of trees of arrays, usually under `checkpoint`.
        args: its arguments; types suffice.
        kwargs: the same by name.

    Raises:
        TypeError: `f` is not callable, or an argument is neither an array nor a number.

    Example:
        >>> f = lambda x, y: jnp.sin(x) * y
        >>> for aval, origin in jax.ad_checkpoint.saved_residuals(f, jnp.ones(3), 2.0):
        ...     print(aval, origin)
        ~f32[] from the argument y
        f32[3] output of sin from ... (<lambda>)
        f32[3] output of cos from ... (<lambda>)
    """
    eager.check_callable("saved_residuals", f)
    leaves, in_tree = tree.flatten((args, kwargs))
    info = flattening.debug_info("saved_residuals", f, in_tree)
    avals = flattening.avals_of(leaves, lambda: info.arg_names or (), "saved_residuals")
    flat = flattening.FlatFunction(f, in_tree, info.func_name)

    def residuals(*primals: Any) -> list[Any]:
        linear = partial_eval.linearize_flat(flat, primals, [True] * len(primals), info)
        slim, _ = passes.dce_jaxpr(linear.jaxpr)
        closed = ClosedJaxpr(slim, linear.residuals)
        return list(passes.prune_constants(closed).consts)

    jaxpr, _ = staging.stage(residuals, avals, info)
    slim, _ = passes.dce_jaxpr(jaxpr, keep_inputs=True)
    return _describe(slim, info.arg_names or ())


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Prints what reverse-mode differentiation of `f` stores, one value a line.

    Args:
        f: a function of trees of arrays, usually under `checkpoint`.
        args: its arguments; types suffice.
        kwargs: the same by name.

    Example:
        >>> jax.ad_checkpoint.print_saved_residuals(lambda x, y: x * y, 1.0, jnp.ones(3))
        f32[] from the argument x
        f32[3] from the argument y
    """
    for aval, origin in saved_residuals(f, *args, **kwargs):
        print(f"{aval.str_short()} {origin}")  # noqa: T201  it is what the function is for


def _describe(jaxpr: Jaxpr, arg_names: tuple[str, ...]) -> list[tuple[Any, str]]:
    """A line for each result: constants, then arguments, then what is computed, in order."""
    wanted = [v for v in jaxpr.outvars if type(v) is Var]
    found = [(v.aval, "from a constant") for v in jaxpr.constvars if v in wanted]
    for i, v in enumerate(jaxpr.invars):
        if v in wanted:
            found.append((v.aval, f"from the argument {arg_names[i]}"))
    for eqn in jaxpr.eqns:
        found += [(v.aval, _origin(eqn)) for v in eqn.outvars if v in wanted]
    return found


def _origin(eqn: Eqn) -> str:
    frame = source.user_frame(eqn.source)
    place = "" if frame is None else f" from {frame.file_name}:{frame.line} ({frame.function_name})"
    if eqn.primitive is name_p:
        return f"named {eqn.params['name']!r}{place}"
    if eqn.primitive is jit_p:
        return f"output of jitted function {eqn.params['name']!r}{place}"
    return f"output of {eqn.primitive.name}{place}"
