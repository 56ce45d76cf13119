"""Hooks of users into lowering: shape refinement and outfeeds.

Some programs need a partner outside of this package: those with symbolic shapes one who knows the
sizes, those with outfeeds one who reads what they send.  Such a partner installs a step of
lowering.  Input: a closed jaxpr or a module.  Output: another one, which takes its place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from jaxlib.mlir import ir

from minijax.core.cache import Cache
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr

Refinement = Callable[[Any], Any]
OutfeedRewriter = Callable[[ClosedJaxpr], ClosedJaxpr]


def _no_refinement(module: ir.Module) -> Any:
    error(
        NotImplementedError,
        "compile",
        "the module has dimensions of unknown size, which XLA cannot compile.",
        got="a function of tensors with dimensions '?'",
        expected="sizes that are numbers",
        fix="lower the program for fixed shapes, or install what puts numbers for the "
        "dimensions with minijax.extend.hooks.set_shape_refinement",
    )


class _Hooks:
    """What users have installed."""

    refine: Refinement = staticmethod(_no_refinement)
    rewrite_outfeed: OutfeedRewriter | None = None


def set_shape_refinement(refine: Refinement | None) -> None:
    """Installs what puts numbers for dimensions of unknown size, before a module is compiled.

    Args:
        refine: takes an MLIR module some of whose functions have such dimensions, and returns a
            module, or its bytes, without; None for the default, which raises NotImplementedError.

    Source:     own.

    Example:
        >>> jax.extend.hooks.set_shape_refinement(lambda module: module)
        >>> jax.extend.hooks.set_shape_refinement(None)
    """
    _Hooks.refine = staticmethod(_no_refinement if refine is None else refine)


def set_outfeed_rewriter(rewrite: OutfeedRewriter | None) -> None:
    """Installs what puts the tokens of outfeeds into programs, before they are lowered.

    Programs that are there already are not rewritten: see `minijax.clear_caches`.

    Args:
        rewrite: takes a closed jaxpr and returns one of the same inputs and results; None for
            none, which is the default.

    Source:     own.

    Example:
        >>> def rewrite(closed):
        ...     print(closed)
        ...     return closed
        >>> jax.extend.hooks.set_outfeed_rewriter(rewrite)
        >>> _ = jax.jit(lambda x: x + 1).lower(2)
        { lambda ; a:i32[]. let b:i32[] = add a 1:i32[] in (b,) }
        >>> jax.extend.hooks.set_outfeed_rewriter(None)
    """
    _Hooks.rewrite_outfeed = rewrite


_rewritten = Cache(
    "outfeeds", "programs as the outfeed rewriter wants them", key="the rewriter", owner="jaxpr"
)


def with_outfeeds(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program as the outfeed rewriter wants it: itself, if there is no rewriter."""
    rewrite = _Hooks.rewrite_outfeed
    if rewrite is None:
        return closed
    return _rewritten.of(closed, rewrite, lambda: rewrite(closed))


def refined(module: ir.Module) -> Any:
    """A module whose dimensions are all known: itself, if they are."""
    return _Hooks.refine(module) if uses_dimension_variables(module) else module


def uses_dimension_variables(module: ir.Module) -> bool:
    """Whether a function of a module takes or returns tensors with dimensions of unknown size."""
    for operation in module.body.operations:
        if operation.operation.name != "func.func":
            continue
        signature = cast("Any", operation.attributes["function_type"]).value
        for kind in (*signature.inputs, *signature.results):
            if isinstance(kind, ir.RankedTensorType) and not kind.has_static_shape:
                return True
    return False
