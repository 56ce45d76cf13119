"""What a derivative keeps for its backward pass, in words: `saved_residuals`.

Input: a function and arguments.  Output: the type of each value that reverse mode stores between
the two passes, and where it comes from.  Nothing is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minijax.core import source, tree
from minijax.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from minijax.interpreters import eager, flattening, partial_eval, passes, staging
from minijax.transforms.checkpoint import name_p
from minijax.transforms.jit_primitive import jit_p


def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[Any, str]]:
    """The values that reverse-mode differentiation of `f` stores: type and origin of each.

    Source:     minijax's own; JAX prints them only.

    Args:
        f: a function of trees of arrays, usually under `checkpoint`.
        args: its arguments; types suffice.
        kwargs: the same by name.

    Raises:
        TypeError: `f` is not callable, or an argument is no array and no number.

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
        slim, _ = passes.dead_code_elimination(linear.jaxpr)
        closed = ClosedJaxpr(slim, linear.residuals)
        return list(passes.prune_constants(closed).consts)

    jaxpr, _ = staging.stage(residuals, avals, info)
    slim, _ = passes.dead_code_elimination(jaxpr, keep_inputs=True)
    return _describe(slim, info.arg_names or ())


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Prints what reverse-mode differentiation of `f` stores, one value a line.

    Source: mirrors jax.ad_checkpoint.print_saved_residuals (0.10).

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
