"""Policies of `checkpoint`: what to save for the backward pass.

A policy is asked `policy(primitive, *avals, **params)` about each operation whose result the
backward pass needs, and answers True (save it), False (compute it again), or how to offload it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core.errors import error
from minijax.interpreters.rematerialization import Decision, Offloadable, Recompute, Saveable
from minijax.lax.convolution import conv_general_dilated_p
from minijax.lax.dots import dot_general_p
from minijax.transforms.checkpoint import name_p

Policy = Callable[..., Any]


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Saves all: `checkpoint` then changes nothing.

    Source: mirrors jax.checkpoint_policies.everything_saveable (0.10).

    Example:
        >>> f = lambda x: jnp.sin(jnp.sin(x))
        >>> g = jax.checkpoint(f, policy=jax.checkpoint_policies.everything_saveable)
        >>> len(jax.ad_checkpoint.saved_residuals(g, 1.0))
        2
    """
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """Saves nothing but the arguments; what `checkpoint` does without a policy.

    Source: mirrors jax.checkpoint_policies.nothing_saveable (0.10).

    Example:
        >>> f = lambda x: jnp.sin(jnp.sin(x))
        >>> g = jax.checkpoint(f, policy=jax.checkpoint_policies.nothing_saveable)
        >>> jax.ad_checkpoint.print_saved_residuals(g, 1.0)
        f32[] from the argument x
    """
    return False


def _is_plain_product(prim: Any, params: dict[str, Any]) -> bool:
    """Whether an operation is a matrix product without batch dimensions: that of a layer."""
    if prim is not dot_general_p:
        return False
    _, (lhs_batch, rhs_batch) = params["dimension_numbers"]
    return not lhs_batch and not rhs_batch


def dots_saveable(prim: Any, *_: Any, **__: Any) -> bool:
    """Saves the results of matrix products and convolutions: dear to compute again.

    Source: mirrors jax.checkpoint_policies.dots_saveable (0.10).

    Example:
        >>> f = lambda x: jnp.sin(jnp.sin(x @ x))
        >>> g = jax.checkpoint(f, policy=jax.checkpoint_policies.dots_saveable)
        >>> jax.ad_checkpoint.print_saved_residuals(g, jnp.ones((2, 2)))
        f32[2,2] from the argument x
        f32[2,2] output of dot_general from ... (<lambda>)
    """
    return prim is dot_general_p or prim is conv_general_dilated_p


def dots_with_no_batch_dims_saveable(prim: Any, *_: Any, **params: Any) -> bool:
    """Saves matrix products without batch dimensions: those with weights, not those of attention.

    Source: mirrors jax.checkpoint_policies.dots_with_no_batch_dims_saveable (0.10).

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
class SaveNames:
    """Saves what bears one of some names, or any name but these; or anything without these."""

    names: frozenset[str]
    if_named_so: bool
    if_named_otherwise: bool
    if_nameless: bool

    def __call__(self, prim: Any, *_: Any, **params: Any) -> bool:
        if prim is not name_p:
            return self.if_nameless
        return self.if_named_so if params["name"] in self.names else self.if_named_otherwise


def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """A policy that saves the values that `checkpoint_name` gave one of these names.

    Source: mirrors jax.checkpoint_policies.save_only_these_names (0.10).

    Example:
        >>> keep = jax.checkpoint_policies.save_only_these_names("inner")
        >>> f = lambda x: jnp.sin(jax.ad_checkpoint.checkpoint_name(jnp.sin(x), "inner"))
        >>> jax.ad_checkpoint.print_saved_residuals(jax.checkpoint(f, policy=keep), 1.0)
        f32[] from the argument x
        f32[] named 'inner' from ... (<lambda>)
    """
    return SaveNames(frozenset(names_which_can_be_saved), True, False, False)


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """A policy that saves the values with a name, except with one of these.

    Source: mirrors jax.checkpoint_policies.save_any_names_but_these (0.10).

    Example:
        >>> name = jax.ad_checkpoint.checkpoint_name
        >>> f = lambda x: jnp.sin(name(jnp.sin(name(jnp.sin(x), "first")), "second"))
        >>> keep = jax.checkpoint_policies.save_any_names_but_these("first")
        >>> jax.ad_checkpoint.print_saved_residuals(jax.checkpoint(f, policy=keep), 1.0)
        f32[] from the argument x
        f32[] named 'second' from ... (<lambda>)
    """
    return SaveNames(frozenset(names_not_to_save), False, True, False)


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """A policy that saves everything, named or not, except values with one of these names.

    The operation under the name may be saved in its place: it bears no name itself.

    Source: mirrors jax.checkpoint_policies.save_anything_except_these_names (0.10).

    Example:
        >>> name = jax.ad_checkpoint.checkpoint_name
        >>> f = lambda x: jnp.sin(name(jnp.sin(x), "inner"))
        >>> keep = jax.checkpoint_policies.save_anything_except_these_names("inner")
        >>> len(jax.ad_checkpoint.saved_residuals(jax.checkpoint(f, policy=keep), 1.0))
        2
    """
    return SaveNames(frozenset(names_not_to_save), False, True, True)


@dataclasses.dataclass(frozen=True)
class SaveByEither:
    """Saves what either of two policies saves."""

    first: Policy
    second: Policy

    def __call__(self, prim: Any, *avals: Any, **params: Any) -> bool:
        answers = [ask(prim, *avals, **params) for ask in (self.first, self.second)]
        for answer in answers:
            if not isinstance(answer, (bool, np.bool_)):
                error(
                    ValueError,
                    "save_from_both_policies",
                    "both policies must answer True or False.",
                    got=f"{answers[0]!r} and {answers[1]!r}, asked about {prim}",
                    fix="write a policy that calls the two and decides",
                )
        return any(answers)


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """A policy that saves what at least one of two policies saves.

    Source: mirrors jax.checkpoint_policies.save_from_both_policies (0.10).

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

    def __call__(self, prim: Any, *_: Any, **params: Any) -> Decision | Offloadable:
        return self.where if _is_plain_product(prim, params) else Recompute


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """A policy that saves matrix products without batch dimensions in another memory.

    Source: mirrors jax.checkpoint_policies.offload_dot_with_no_batch_dims (0.10).

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


@dataclasses.dataclass(frozen=True)
class OffloadNames:
    """Saves some names where they are and others in another memory."""

    saved: frozenset[str]
    offloaded: frozenset[str]
    where: Offloadable

    def __call__(self, prim: Any, *_: Any, **params: Any) -> Decision | Offloadable:
        if prim is not name_p:
            return Recompute
        if params["name"] in self.saved:
            return Saveable
        return self.where if params["name"] in self.offloaded else Recompute


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Sequence[str],
    names_which_can_be_offloaded: Sequence[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """A policy that saves values with some names, and those with others in another memory.

    Source: mirrors jax.checkpoint_policies.save_and_offload_only_these_names (0.10).

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
    saved, offloaded = set(names_which_can_be_saved), set(names_which_can_be_offloaded)
    if saved & offloaded:
        error(
            ValueError,
            "save_and_offload_only_these_names",
            "names can be saved or offloaded, but not both.",
            got=f"in both lists: {sorted(saved & offloaded)}",
        )
    where = Offloadable(offload_src, offload_dst)
    return OffloadNames(frozenset(saved), frozenset(offloaded), where)
