"""`jet`: higher derivatives along a curve, in one pass.

Input: a function, its arguments and their derivatives.  Output: those of the results.  The
mechanism is `interpreters/taylor.py`; the rules of single primitives are in `jet_rules.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes, tree
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.interpreters import eager, flattening, taylor
from minijax.interpreters.structural import instantiate
from minijax.lax import binary, families
from minijax.lax.convert import convert_element_type
from minijax.transforms import jet_rules


def jet(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    series: Sequence[Sequence[Any]],
    factorial_scaled: bool = True,
) -> tuple[Any, Any]:
    """The derivatives of `fun` along a curve, of every order that `series` gives, in one pass.

    Where arguments follow x(t), the results follow f(x(t)); this turns the derivatives of x at one
    t into those of f∘x.  With x' = 1 and the rest 0, they are the derivatives of f itself.
    Differentiating n times costs 2ⁿ; a series of length n costs about n² for each product.

    Args:
        fun: a function of arrays; its results may be a tree.
        primals: its arguments, one array each.
        series: for each argument the derivatives of its curve: first, second, and so on; all of
            one length.
        factorial_scaled: whether derivatives are meant, and not the coefficients of the Taylor
            polynomial, which are the derivatives over n!.

    Returns:
        `fun(*primals)`, and the same tree with a list of derivatives in place of each leaf.

    Source: mirrors jax.experimental.jet.jet (0.10); Griewank and Walther, Evaluating Derivatives,
        chapter 13.

    Raises:
        TypeError: `fun` is not callable, or an argument is not of a floating-point type.
        ValueError: the numbers or lengths of the series do not fit, or an argument is a tree.

    Example:
        >>> from minijax.experimental.jet import jet
        >>> value, derivatives = jet(lambda x: x**3, (2.0,), ((1.0, 0.0, 0.0),))
        >>> value, [float(d) for d in derivatives]
        (Array(8., dtype=float32, weak_type=True), [12.0, 12.0, 6.0])
    """
    eager.check_callable("jet", fun)
    _check_arguments(primals, series)
    order = len(series[0]) if series else 0
    avals = [aval_of(x) for x in primals]
    scales = [1 if factorial_scaled else math.factorial(n + 1) for n in range(order)]
    flat = flattening.FlatFunction(
        fun, tree.structure((tuple(primals), {})), flattening.function_name(fun)
    )
    outs, out_series = taylor.taylor_flat(
        flat,
        list(primals),
        [
            [jet_rules.times(scale, _term(x, aval)) for x, scale in zip(terms, scales, strict=True)]
            for terms, aval in zip(series, avals, strict=True)
        ],
        order,
        jet_rules.RULES,
        flat.name,
    )
    results = []
    for terms in out_series:
        made = map(instantiate, terms)
        results.append([x if s == 1 else _over(x, s) for x, s in zip(made, scales, strict=True)])
    return tree.unflatten(flat.out_tree, outs), tree.unflatten(flat.out_tree, results)


def _over(x: Any, number: int) -> Any:
    return binary.div(x, families.scalar_like(number, x))


def _term(x: Any, aval: Any) -> Any:
    """One derivative of an argument, of its type; a scalar is meant for every element."""
    if aval_of(x).dtype != aval.dtype:
        x = convert_element_type(x, aval.dtype)
    return families.broadcast_to(x, np.broadcast_to(np.float32(0), aval.shape))


def _check_arguments(primals: Any, series: Any) -> None:
    for name, value in (("primals", primals), ("series", series)):
        if not isinstance(value, (tuple, list)):
            error(
                TypeError,
                "jet",
                f"{name} must be a tuple or a list.",
                got=type(value).__name__,
                expected="one entry for each argument of the function",
            )
    if len(primals) != len(series):
        error(
            ValueError,
            "jet",
            "there must be one series for each argument.",
            got=f"{len(primals)} primals and {len(series)} series",
        )
    for i, x in enumerate(primals):
        if not tree.all_leaves([x]):
            error(
                ValueError,
                "jet",
                f"primals[{i}] is a tree.",
                got=f"{x!r}",
                expected="arrays",
                fix="flatten the tree: leaves, treedef = tree.flatten(x)",
            )
        aval = aval_of(x)
        if not dtypes.issubdtype(aval.dtype, np.inexact):
            error(
                TypeError,
                "jet",
                f"primals[{i}] is of a type that does not change continuously.",
                got=str(aval),
                expected="a floating-point or complex type",
                fix="convert it, or close over it",
            )
        _check_terms(i, aval, series)


def _check_terms(i: int, aval: Any, series: Any) -> None:
    if not isinstance(series[i], (tuple, list)) or len(series[i]) != len(series[0]):
        lengths = [len(s) if isinstance(s, (tuple, list)) else type(s).__name__ for s in series]
        error(
            ValueError,
            "jet",
            "the series are not all sequences of one length.",
            got=f"lengths {lengths}",
            fix="pad the shorter ones with zeros",
        )
    for n, x in enumerate(series[i]):
        if aval_of(x).shape not in ((), aval.shape):
            error(
                ValueError,
                "jet",
                f"series[{i}][{n}] has another shape than its argument.",
                got=f"{aval_of(x)} for {aval}",
            )
