"""Jacobians and Hessians: derivatives in all directions at once, by `vmap` over a basis.

Input: a function of trees.  Output: for each pair of a result leaf and an argument leaf, an array
of shape (result's shape, argument's shape), as a tree of trees.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import dtypes, source, tree
from minijax.core.aval import AbstractValue, ShapedArray, aval_of
from minijax.core.errors import error
from minijax.interpreters import flattening
from minijax.lax import shape as lax_shape
from minijax.lax import slicing
from minijax.lowering import eager
from minijax.transforms.autodiff import grad
from minijax.transforms.vmap import vmap


def jacfwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """The Jacobian of `fun`, by forward mode: cheap where there are few inputs.

    Shapes: for a result of shape s and an argument of shape t, (*s, *t).

    Args:
        fun: a function of trees that returns a tree of arrays, or (tree, aux).
        argnums: position or positions of the arguments to differentiate.
        has_aux: whether `fun` returns a pair; the Jacobian comes with aux then.
        holomorphic: whether `fun` is promised to be holomorphic.

    Raises:
        TypeError: an argument's dtype cannot be differentiated.

    Example:
        >>> jax.jacfwd(lambda x: x * jnp.array([1.0, 2.0, 3.0]))(5.0)
        Array([1., 2., 3.], dtype=float32)
    """
    eager.check_callable("jacfwd", fun)

    @source.result_of(fun)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        positions, single = flattening.normalize_argnums("jacfwd", argnums, len(args))
        chosen = tuple(args[i] for i in positions)
        held = grad.with_held_arguments(fun, args, kwargs, positions)
        leaves, in_tree = tree.flatten((chosen, {}))
        names = functools.partial(grad.argument_names, fun, in_tree, positions)
        for aval in flattening.avals_of(leaves, names, "jacfwd"):
            _check_dtype("jacfwd", aval, holomorphic, real_only=True)

        def push(tangents: Any) -> Any:
            out, *found = grad.jvp(held, chosen, tangents, has_aux=has_aux)
            for y in tree.leaves(out):
                _check_dtype("jacfwd", aval_of(y), holomorphic, real_only=False, result=True)
            return tuple(found)

        columns, *aux = vmap(push, out_axes=(-1, None) if has_aux else (-1,))(_basis(chosen))
        example = chosen[0] if single else chosen
        jac = tree.map(lambda block: _split(block, example, -1), columns)
        return (jac, aux[0]) if has_aux else jac

    return jacobian


def jacrev(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """The Jacobian of `fun`, by reverse mode: cheap where there are few outputs.

    Shapes: for a result of shape s and an argument of shape t, (*s, *t).

    Args:
        fun: a function of trees that returns a tree of arrays, or (tree, aux).
        argnums: position or positions of the arguments to differentiate.
        has_aux: whether `fun` returns a pair; the Jacobian comes with aux then.
        holomorphic: whether `fun` is promised to be holomorphic.
        allow_int: whether arguments may be integers.

    Raises:
        TypeError: a dtype cannot be differentiated.

    Example:
        >>> jax.jacrev(lambda x: x**2)(jnp.array([1.0, 2.0]))
        Array([[2., 0.],
               [0., 4.]], dtype=float32)
    """
    eager.check_callable("jacrev", fun)

    @source.result_of(fun)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        positions, single = flattening.normalize_argnums("jacrev", argnums, len(args))
        chosen = tuple(args[i] for i in positions)
        leaves, in_tree = tree.flatten((chosen, {}))
        places = functools.partial(grad.argument_names, fun, in_tree, positions)
        avals = flattening.avals_of(leaves, places, "jacrev")
        for place, aval in zip(places(), avals, strict=True):
            if not dtypes.issubdtype(aval.dtype, np.floating) or holomorphic:
                grad.check_input("jacrev", place, aval, holomorphic, allow_int)
        held = grad.with_held_arguments(fun, args, kwargs, positions)
        results: tuple[Any, ...] = grad.vjp(held, *chosen, has_aux=has_aux)
        out, pull = results[0], results[1]
        for y in tree.leaves(out):
            _check_dtype("jacrev", aval_of(y), holomorphic, real_only=True, result=True)
        rows = vmap(pull)(_basis(out))
        rows = rows[0] if single else rows
        by_input = tree.map(lambda block: _split_rows(block, out), rows)
        jac = tree.transpose(
            tree.structure(chosen[0] if single else chosen), tree.structure(out), by_input
        )
        return (jac, results[2]) if has_aux else jac

    return jacobian


jacobian = jacrev


def hessian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """The matrix of second derivatives of `fun`: forward mode over reverse mode.

    Shapes: for a result of shape s and arguments of shapes t and u, (*s, *t, *u).

    Args:
        fun: a function of trees that returns a tree of arrays, or (tree, aux).
        argnums: position or positions of the arguments to differentiate.
        has_aux: whether `fun` returns a pair; the Hessian comes with aux then.
        holomorphic: whether `fun` is promised to be holomorphic.

    Raises:
        TypeError: a dtype cannot be differentiated.

    Example:
        >>> jax.hessian(lambda x: x[0] ** 2 * x[1])(jnp.array([1.0, 2.0]))
        Array([[4., 2.],
               [2., 0.]], dtype=float32)
    """
    return jacfwd(
        jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic),
        argnums,
        has_aux=has_aux,
        holomorphic=holomorphic,
    )


def _check_dtype(
    name: str, aval: AbstractValue, holomorphic: bool, *, real_only: bool, result: bool = False
) -> None:
    what = "results" if result else "inputs"
    if holomorphic:
        wrong = not dtypes.issubdtype(aval.dtype, np.complexfloating)
        expected = "complex"
    else:
        kind = np.floating if real_only else np.inexact
        wrong = not dtypes.issubdtype(aval.dtype, kind)
        expected = "real" if real_only else "real or complex"
    if wrong:
        error(
            TypeError,
            name,
            f"needs {expected} {what}.",
            got=str(aval),
            fix="holomorphic=True for holomorphic functions, else minijax.jvp or minijax.vjp"
            if dtypes.issubdtype(aval.dtype, np.complexfloating)
            else "pass floats (such as 3.0 in place of 3)",
        )


def _basis(example: object) -> Any:
    """For each leaf of shape s an array (n, *s): the n unit vectors of the whole tree."""
    leaves, treedef = tree.flatten(example)
    avals = [aval_of(x) for x in leaves]
    sizes = [math.prod(a.shape) for a in avals]
    total = sum(sizes)
    blocks = []
    start = 0
    for aval, size in zip(avals, sizes, strict=True):
        dtype = aval.tangent_aval().dtype
        block = np.zeros((total, size), dtype)
        if dtype != dtypes.float0:
            block[start + np.arange(size), np.arange(size)] = 1
        blocks.append(block.reshape(total, *aval.shape))
        start += size
    return tree.unflatten(treedef, blocks)


def _split(block: Any, example: object, axis: int) -> Any:
    """The parts of a block along its first or last dimension, for the leaves of a tree.

    Each gets the shape of its leaf in place of that dimension.
    """
    shape = aval_of(block).shape
    before, after = ((), shape[1:]) if axis == 0 else (shape[:-1], ())
    leaves, treedef = tree.flatten(example)
    parts = []
    start = 0
    for x in leaves:
        own = aval_of(x).shape
        size = math.prod(own)
        part = slicing.slice_in_dim(block, start, start + size, axis=axis)
        parts.append(lax_shape.reshape(part, (*before, *own, *after)))
        start += size
    return tree.unflatten(treedef, parts)


def _split_rows(block: ShapedArray, example: object) -> Any:
    """The rows of a block, for the leaves of a tree; float0 has no operations."""
    if aval_of(block).dtype == dtypes.float0:
        rest = aval_of(block).shape[1:]
        return tree.map(lambda y: np.zeros((*aval_of(y).shape, *rest), dtypes.float0), example)
    return _split(block, example, 0)
