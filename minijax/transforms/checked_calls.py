"""How calls are checked: what is called returns its first fault before its results.

Input: an operation that calls a jaxpr, and the functionalization of what is around it.  Output:
its results.  Rules of the user's for derivatives stay, and return the fault of the function too,
so that a checked function can still be differentiated from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minijax.core.aval import aval_of
from minijax.interpreters import calls, staging
from minijax.interpreters.tangents import Zero
from minijax.lax.functionalization import STATE_SIZE, Checked, Checker


def check_call(
    primitive: Any, checker: Checker, args: Sequence[Any], params: dict[str, Any]
) -> Sequence[Any]:
    """The rule of operations that call the parameter `jaxpr` with all their operands."""
    inner = checker.inner(params["jaxpr"])
    return _call(primitive, checker, args, {**params, "jaxpr": inner.closed}, inner)


def check_custom_jvp_call(
    primitive: Any, checker: Checker, args: Sequence[Any], params: dict[str, Any]
) -> Sequence[Any]:
    """The rule of `custom_jvp_call`."""
    return _call_with_rule(primitive, checker, args, params, "jvp", _with_state_jvp)


def check_custom_vjp_call(
    primitive: Any, checker: Checker, args: Sequence[Any], params: dict[str, Any]
) -> Sequence[Any]:
    """The rule of `custom_vjp_call`."""
    return _call_with_rule(primitive, checker, args, params, "fwd", _with_state_fwd)


def check_custom_vmap_call(
    primitive: Any, checker: Checker, args: Sequence[Any], params: dict[str, Any]
) -> Sequence[Any]:
    """The rule of `custom_vmap_call`: the function itself, which is batched as it stands.

    A rule of the user's maps a function that does not return its fault.
    """
    inner = checker.inner(params["call_jaxpr"])
    if not inner.sites:
        return list(primitive.bind(*args, **{**params, "call_jaxpr": inner.closed}))
    outs = staging.eval_closed_jaxpr(inner.closed, *args)
    checker.add(outs[:STATE_SIZE], inner.sites)
    return outs[STATE_SIZE:]


def _call_with_rule(
    primitive: Any,
    checker: Checker,
    args: Sequence[Any],
    params: dict[str, Any],
    rule: str,
    with_state: Callable[[Callable[..., Any], Checked, int, str], Callable[..., Any]],
) -> Sequence[Any]:
    """A call whose parameter `rule` is the user's: it gives the state, too, as the call does."""
    inner = checker.inner(params["call_jaxpr"])
    if inner.sites:
        changed = with_state(params[rule], inner, params["num_consts"], params["name"])
        params = {**params, rule: changed, "num_consts": 0}
    return _call(primitive, checker, args, {**params, "call_jaxpr": inner.closed}, inner)


def _call(
    primitive: Any,
    checker: Checker,
    args: Sequence[Any],
    params: dict[str, Any],
    inner: Checked,
) -> Sequence[Any]:
    outs = list(primitive.bind(*args, **params))
    if not inner.sites:
        return outs
    checker.add(outs[:STATE_SIZE], inner.sites)
    return outs[STATE_SIZE:]


def _state(inner: Checked, args: Sequence[Any]) -> list[Any]:
    return staging.eval_closed_jaxpr(inner.closed, *args)[:STATE_SIZE]


def _with_state_jvp(
    rule: Callable[..., Any], inner: Checked, num_consts: int, name: str
) -> Callable[..., Any]:
    """The rule of a function that returns its state, too; what it closed over are arguments."""

    def with_state(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        calls.check_constants(name, tangents, num_consts)
        state = _state(inner, primals)
        outs, out_dots = rule(primals[num_consts:], tangents[num_consts:])
        return [*state, *outs], [*map(Zero.like, state), *out_dots]

    with_state.__name__ = getattr(rule, "__name__", name)
    return with_state


def _with_state_fwd(
    rule: Callable[..., Any], inner: Checked, num_consts: int, name: str
) -> Callable[..., Any]:
    def with_state(
        perturbed: tuple[bool, ...], *args: Any
    ) -> tuple[list[Any], list[Any], Callable[..., Any]]:
        state = _state(inner, args)
        outs, residuals, backward = rule(perturbed[num_consts:], *args[num_consts:])
        nothing = [Zero(aval_of(x).tangent_aval()) for x in args[:num_consts]]

        def backward_with_state(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            return [*nothing, *backward(residuals, cts[STATE_SIZE:])]

        return [*state, *outs], residuals, backward_with_state

    with_state.__name__ = getattr(rule, "__name__", name)
    return with_state
