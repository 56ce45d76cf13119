"""A primitive whose rules are given one by one, as JAX's registration functions do.

A thin view of `minijax.core.primitive.Primitive`: each registration sets the method of one object.
Whoever writes a new operation may as well subclass `Primitive` with the rules as methods.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from minijax.core import primitive as core_primitive
from minijax.core.jaxpr import ClosedJaxpr
from minijax.interpreters import evaluation


class Primitive(core_primitive.Primitive):
    """An operation by name, which gets its rules one by one.

    With `def_impl` it runs eagerly; with `def_abstract_eval` it can be staged, and with
    `extend.mlir.register_lowering` compiled.  `extend.ad` has its derivatives, `extend.batching`
    what it does to batches.  Set `multiple_results = True` for one that returns a sequence.

    Source:     mirrors jax.extend.core.Primitive (0.10).

    Example:
        >>> double = jax.extend.core.Primitive("doubled")
        >>> _ = double.def_impl(lambda x: x + x), double.def_abstract_eval(lambda x: x)
        >>> double.bind(21)
        42
        >>> jax.make_jaxpr(double.bind)(21)
        { lambda ; a:i32[]. let b:i32[] = doubled a in (b,) }
    """

    multiple_results = False

    def __init__(self, name: str) -> None:
        # Users declare the same name again when they run a cell or a test twice.
        core_primitive.PRIMITIVES.pop(name, None)
        super().__init__(name)

    def def_impl(self, impl: Callable[..., Any]) -> Callable[..., Any]:
        """Gives the eager implementation.  Returns `impl`, so it is a decorator as well."""
        self.impl = impl
        return impl

    def def_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Gives the rule from types of arguments to types of results."""
        self.abstract_eval = rule  # type: ignore[method-assign]
        return rule

    def def_effectful_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """As `def_abstract_eval`, for a rule that returns (types, effects)."""
        self.abstract_eval = lambda *a, **k: rule(*a, **k)[0]  # type: ignore[method-assign]
        self.effects = lambda *a, **k: frozenset(rule(*a, **k)[1])  # type: ignore[method-assign]
        self.has_effects = True  # type: ignore[misc]
        return rule


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Callable[..., Any]:
    """A closed jaxpr as a function of its arguments, which returns a list of results.

    Source:     mirrors jax.extend.core.jaxpr_as_fun (0.10).

    Example:
        >>> jaxpr = jax.make_jaxpr(lambda x: x * x + 1)(2)
        >>> jax.extend.core.jaxpr_as_fun(jaxpr)(5)
        [Array(26, dtype=int32, weak_type=True)]
    """
    return functools.partial(evaluation.eval_closed_jaxpr, closed_jaxpr)
