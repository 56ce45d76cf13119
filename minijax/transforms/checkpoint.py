"""`checkpoint`: a function whose intermediate values are computed again for its derivative.

Input: a function of trees.  Output: the same function, whose derivative stores only its arguments
and what a policy says.  Policies are in `policies.py`, the primitive in `remat_primitive.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from minijax.core import extended_dtypes, tree, variance
from minijax.core.aval import ShapedArray
from minijax.core.errors import error
from minijax.core.primitive import Primitive
from minijax.core.unspecified import UNSPECIFIED
from minijax.interpreters import checking, eager
from minijax.lax.families import operand as as_operand
from minijax.sharding import rules
from minijax.transforms import jit, jit_arguments
from minijax.transforms.remat_primitive import PreventCse, remat_p

R = TypeVar("R")
T = TypeVar("T")


def checkpoint(
    fun: Callable[..., R],
    *,
    prevent_cse: bool | Sequence[Any] = True,
    policy: Callable[..., Any] | None = None,
    static_argnums: int | tuple[int, ...] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: Any = UNSPECIFIED,
) -> Callable[..., R]:
    """`fun`, with a derivative that computes intermediate values again instead of storing them.

    Between the forward and the backward pass only the arguments of `fun` are alive, and the values
    that `policy` saves.  The rest is computed twice: memory is bought with time.

    Derivative: that of `fun`, to any order and in both modes.
    Lowers to:  the operations of `fun`; where they are repeated, behind an optimization barrier.
    Source: mirrors jax.checkpoint (0.10).

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
        error(
            NotImplementedError,
            "checkpoint",
            "the option concrete exists no longer.",
            fix="mark arguments that Python code depends on with static_argnums",
        )
    if policy is not None:
        _check_policy(policy)
    static_nums, static_names = jit_arguments.resolve_names(
        fun, _check_argnums(static_argnums), static_argnames or None, "static", "checkpoint"
    )
    half = _Checkpointed(fun, prevent_cse, policy, static_nums, static_names)

    @functools.wraps(fun, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def call(*args: Any, **kwargs: Any) -> Any:
        return half.call(args, kwargs)

    return call


remat = checkpoint


def _check_policy(policy: Any) -> None:
    if not callable(policy):
        error(
            TypeError,
            "checkpoint",
            "the policy is not callable.",
            got=f"{policy!r} of type {type(policy).__name__}",
            expected="a function of a primitive, the types of its arguments, and parameters",
            fix="take one of minijax.checkpoint_policies",
        )


def _check_argnums(argnums: Any) -> tuple[int, ...]:
    """Argument positions as a tuple.

    Raises:
        TypeError: they are no integers.
    """
    given = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    if not all(hasattr(i, "__index__") for i in given):
        error(
            TypeError,
            "checkpoint",
            "static_argnums must be integers.",
            got=repr(argnums),
            fix="name parameters with static_argnames",
        )
    return tuple(i.__index__() for i in given)


class _Checkpointed:
    """A function to compute again, and how."""

    def __init__(
        self,
        function: Callable[..., Any],
        prevent_cse: bool | Sequence[Any],
        policy: Any,
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
                bound = jit_arguments.with_statics(self.function, fixed, positions)
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
            error(
                ValueError,
                "checkpoint",
                f"static_argnums {wrong[0]} is out of range.",
                got=f"{count} positional argument(s)",
            )
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
    settings = jit.Settings(static_argnums, static_argnames, (), (), False, False, None, ())
    return jit.JitFunction(function, settings)


class Name(Primitive):
    """Returns `x`, whose name policies can refer to.

    Shapes: x: T[s] -> T[s].  Linear in x; tangents bear no name.
    """

    name = "name"
    shard = rules.elementwise

    def impl(self, x: Any, *, name: str) -> Any:
        return x

    def abstract_eval(self, x: ShapedArray, *, name: str) -> ShapedArray:
        return x

    def lower(self, ctx: Any, x: Any, *, name: str) -> Any:
        return x

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, name: str) -> tuple[Any, Any]:
        return self.bind(*primals, name=name), tangents[0]

    def transpose(self, ct: Any, x: Any, *, name: str) -> tuple[Any]:
        return (ct,)

    def batch(
        self, size: int, args: Sequence[Any], dims: Sequence[Any], *, name: str
    ) -> tuple[Any, Any]:
        return self.bind(args[0], name=name), dims[0]


checking.fault_flow.set(checking.PRESERVES, Name)
extended_dtypes.knows_extended.set(True, Name)
variance.keeps_unreduced.set(True, Name)


name_p = Name()


def checkpoint_name(x: T, name: str) -> T:
    """Returns `x`, and gives its arrays a name that policies of `checkpoint` refer to.

    Shapes:     x: a tree of T_i[s_i] -> T_i[s_i].
    Derivative: tangents and cotangents pass unchanged.
    Lowers to:  nothing.
    Source:     mirrors jax.ad_checkpoint.checkpoint_name (0.10).

    Example:
        >>> from minijax.ad_checkpoint import checkpoint_name, print_saved_residuals
        >>> keep = jax.checkpoint_policies.save_only_these_names("inner")
        >>> f = jax.checkpoint(lambda x: jnp.sin(checkpoint_name(jnp.sin(x), "inner")), policy=keep)
        >>> print_saved_residuals(f, 1.0)
        f32[] from the argument x
        f32[] named 'inner' from ... (<lambda>)
    """
    return tree.map(lambda leaf: name_p.bind(as_operand(leaf), name=name), x)
