"""Derivatives compared with slopes: what users' tests of their own rules need.

Input: a function and arguments.  Output: nothing, or an `AssertionError` that shows both numbers.
Along a direction t the slope of f at x is (f(x + εt) - f(x - εt)) / 2ε; forward mode has to give
the same, and reverse mode the same product with any cotangent.  Directions are random, and the
same in every run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes, tree
from minijax.core.aval import aval_of
from minijax.core.errors import error
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.transforms.autodiff.grad import jvp, vjp

_MODES = ("fwd", "rev")

# The step that balances what Taylor's formula leaves away and what rounding adds.
_STEPS = {dtypes.bfloat16: 0.25, dtypes.float16: 0.125, dtypes.float32: 1e-2, dtypes.float64: 1e-4}
_TOLERANCES = {
    dtypes.bfloat16: 1e-1,
    dtypes.float16: 2e-2,
    dtypes.float32: 2e-3,
    dtypes.float64: 1e-5,
}


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: str | Sequence[str] = _MODES,
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Checks the derivatives of a function up to an order against its slopes.

    Args:
        f: a function of trees of inexact arrays.
        args: where it is checked.
        order: the highest derivative.
        modes: "fwd" for `jvp`, "rev" for `vjp`, or both, of which all combinations are checked.
        atol: how far numbers may be apart; by default as the dtype allows.
        rtol: how far they may be apart relative to their size.
        eps: the step of the slopes; by default as the dtype allows.

    Raises:
        AssertionError: a derivative is not the slope.
        ValueError: a mode is neither "fwd" nor "rev".

    Example:
        >>> from minijax.test_util import check_grads
        >>> check_grads(jnp.sin, (1.0,), order=2)
        >>> check_grads(jnp.abs, (0.0,), order=1, modes=["fwd"])
        Traceback (most recent call last):
            ...
        AssertionError: test_util.check_jvp: the tangent is not the slope...
    """
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    unknown = [mode for mode in modes if mode not in _MODES]
    if unknown:
        error(
            ValueError,
            "test_util.check_grads",
            "there is no such mode.",
            got=f"modes: {', '.join(map(repr, unknown))}",
            expected="'fwd', 'rev' or both",
        )
    _check_to_order(f, tuple(args), order, modes, _Tolerances(atol, rtol, eps), "")


class _Tolerances(NamedTuple):
    atol: float | None
    rtol: float | None
    eps: float | None


def _check_to_order(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    order: int,
    modes: Sequence[str],
    allowed: _Tolerances,
    before: str,
) -> None:
    if order < 1:
        return
    for mode in modes:
        if mode == "fwd":
            check_jvp(f, functools.partial(jvp, f), args, *allowed, err_msg=before)
            tangents = _directions(args, seed=1)
            further = functools.partial(_tangent_of, f, tangents)
            _check_to_order(further, args, order - 1, modes, allowed, f"{before} jvp".strip())
        else:
            check_vjp(f, functools.partial(vjp, f), args, *allowed, err_msg=before)
            cotangents = _directions(f(*args), seed=1)
            further = functools.partial(_cotangent_of, f, cotangents)
            _check_to_order(further, args, order - 1, modes, allowed, f"{before} vjp".strip())


def _tangent_of(f: Callable[..., Any], tangents: tuple[Any, ...], *args: Any) -> Any:
    return jvp(f, args, tangents)[1]


def _cotangent_of(f: Callable[..., Any], cotangents: object, *args: Any) -> Any:
    return vjp(f, *args)[1](cotangents)


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Checks a function's tangents, at one place and along one direction, against its slope.

    Args:
        f: the function.
        f_jvp: takes a tuple of arguments and one of tangents, returns results and their tangents.
        args: where it is checked.
        atol: how far numbers may be apart; by default as the dtype allows.
        rtol: how far they may be apart relative to their size.
        eps: the step of the slope; by default as the dtype allows.
        err_msg: what the error says first.

    Raises:
        AssertionError: a result is not the function's, or a tangent not the slope.

    Example:
        >>> from minijax.test_util import check_jvp
        >>> check_jvp(jnp.square, lambda p, t: (p[0] ** 2, 2 * p[0] * t[0]), (3.0,))
    """
    args = tuple(args)
    user = "check_jvp"
    tangents = _directions(args, seed=0)
    expected = f(*args)
    found, found_tangents = f_jvp(args, tangents)
    _compare(user, err_msg, "the result is not the function's", found, expected, atol, rtol)
    slopes = _slopes(f, args, tangents, eps)
    _compare(user, err_msg, "the tangent is not the slope", found_tangents, slopes, atol, rtol)


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Checks a function's cotangents, at one place and for one direction, against its slope.

    Args:
        f: the function.
        f_vjp: takes the arguments, returns results and a function of their cotangents.
        args: where it is checked.
        atol: how far numbers may be apart; by default as the dtype allows.
        rtol: how far they may be apart relative to their size.
        eps: the step of the slope; by default as the dtype allows.
        err_msg: what the error says first.

    Raises:
        AssertionError: a result is not the function's, or cotangents do not belong to the slope.

    Example:
        >>> from minijax.test_util import check_vjp
        >>> check_vjp(jnp.square, lambda x: (x**2, lambda ct: (2 * x * ct,)), (3.0,))
    """
    args = tuple(args)
    user = "check_vjp"
    expected = f(*args)
    found, pullback = f_vjp(*args)
    _compare(user, err_msg, "the result is not the function's", found, expected, atol, rtol)
    tangents = _directions(args, seed=0)
    slopes = _slopes(f, args, tangents, eps)
    cotangents = _directions(expected, seed=1)
    along = _product(tangents, tuple(pullback(cotangents)))
    problem = "the cotangent does not belong to the slope"
    _compare(user, err_msg, problem, along, _product(slopes, cotangents), atol, rtol)


def _directions(values: object, seed: int) -> Any:
    """A random direction: floats like those of a tree, and `float0` for what has no derivative."""
    generator = np.random.default_rng(seed)

    def direction(x: ArrayLike) -> Any:
        aval = aval_of(x)
        if not dtypes.issubdtype(aval.dtype, np.inexact):
            return np.zeros(aval.shape, dtypes.float0)
        drawn = generator.standard_normal(aval.shape)
        if dtypes.issubdtype(aval.dtype, np.complexfloating):
            drawn = drawn + 1j * generator.standard_normal(aval.shape)
        return np.asarray(drawn, aval.dtype)

    return tree.map(direction, values)


def _slopes(
    f: Callable[..., Any], args: tuple[Any, ...], tangents: tuple[Any, ...], eps: float | None
) -> Any:
    """The change of a function's results along a direction, by the length of the step."""
    known = [aval_of(x).dtype for x in tree.leaves(args)]
    steps = [_STEPS.get(dtypes.real_dtype_of(d), 0.0) for d in known if _is_inexact(d)]
    step = max(steps, default=1.0) if eps is None else eps

    def moved(sign: float) -> Any:
        return f(*tree.map(functools.partial(_moved, sign * step), args, tangents))

    return tree.map(functools.partial(_quotient, 2 * step), moved(1.0), moved(-1.0))


def _is_inexact(dtype: np.dtype[Any]) -> bool:
    return dtypes.issubdtype(dtype, np.inexact)


def _moved(step: float, x: ArrayLike, direction: np.ndarray[Any, Any]) -> Any:
    if not _is_inexact(aval_of(x).dtype):
        return x
    x = np.asarray(x)
    return np.asarray(x + step * direction, direction.dtype)


def _quotient(step: float, after: ArrayLike, before: ArrayLike) -> Any:
    dtype = aval_of(after).dtype
    if not _is_inexact(dtype):
        return np.zeros(np.shape(after), dtypes.float0)
    wide = np.complex128 if dtypes.issubdtype(dtype, np.complexfloating) else np.float64
    change = np.asarray(after).astype(wide) - np.asarray(before).astype(wide)
    return (change / step).astype(dtype)


def _product(left: object, right: object) -> np.ndarray[Any, Any]:
    """The sum of products of two trees: the real part, since complex functions are so of reals."""
    total, kinds = 0.0, {dtypes.float64}
    for pair in zip(tree.leaves(left), tree.leaves(right), strict=True):
        x, y = map(np.asarray, pair)
        if dtypes.float0 not in (x.dtype, y.dtype):
            total += np.sum(x.astype(np.complex128) * y.astype(np.complex128)).real
            kinds |= {dtypes.real_dtype_of(v.dtype) for v in (x, y)}
    # As exact as the least exact of its terms.
    return np.asarray(total).astype(max(kinds, key=lambda kind: _TOLERANCES.get(kind, 0.0)))


def _compare(
    user: str,
    what: str,
    problem: str,
    found: object,
    expected: object,
    atol: float | None,
    rtol: float | None,
) -> None:
    """Refuses trees whose numbers are not close."""
    ours, theirs = tree.leaves(found), tree.leaves(expected)
    same_tree = tree.structure(found) == tree.structure(expected)
    if same_tree and all(_are_close(x, y, atol, rtol) for x, y in zip(ours, theirs, strict=True)):
        return
    error(
        AssertionError,
        f"test_util.{user}",
        f"{what}: {problem}." if what else f"{problem}.",
        got=str(tree.map(_shown, found)),
        expected=str(tree.map(_shown, expected)),
    )


def _shown(x: ArrayLike) -> Any:
    return np.asarray(x).tolist() if isinstance(x, Array | np.ndarray) else x


def _are_close(x: ArrayLike, y: ArrayLike, atol: float | None, rtol: float | None) -> bool:
    x, y = np.asarray(x), np.asarray(y)
    if x.shape != y.shape:
        return False
    if dtypes.float0 in (x.dtype, y.dtype) or not _is_inexact(x.dtype):
        return True
    least = max(_TOLERANCES.get(dtypes.real_dtype_of(aval_of(v).dtype), 0.0) for v in (x, y))
    wide = np.complex128
    return np.allclose(
        x.astype(wide),
        y.astype(wide),
        atol=least if atol is None else atol,
        rtol=least if rtol is None else rtol,
        equal_nan=True,
    )
