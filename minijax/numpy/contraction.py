"""Products of arrays: dot, matmul, einsum, tensordot and their like.

Input: arrays.  Output: sums of products; all become `dot_general`.  Paths of contraction of
three and more operands come from `opt_einsum`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import deferral, dtypes, source
from minijax.core.aval import Shape, aval_of
from minijax.core.cache import cached
from minijax.core.errors import error
from minijax.lax import binary, creation, dots, families, reduction, shape, slicing, unary
from minijax.lax.dots import PrecisionLike
from minijax.numpy import elementary, promotion, shaping
from minijax.numpy.promotion import check_array, check_out, check_that, one_program
from minijax.numpy.shaping import array_argument
from minijax.runtime.annotations import ArrayLike, DTypeLike, ShardingLike
from minijax.runtime.array import Array
from minijax.sharding import rules
from minijax.transforms import explicit

# Programs that never call einsum start sooner without it.
opt_einsum = deferral.module("opt_einsum")

_DOT_OPTIONS = ("precision", "preferred_element_type")
_SHARDED_DOT_OPTIONS = (*_DOT_OPTIONS, "out_sharding")


def _product(
    name: str,
    x: Array,
    y: Array,
    numbers: Any,
    precision: PrecisionLike,
    preferred: DTypeLike | None,
    sharding: ShardingLike = None,
) -> Any:
    """The dot of two operands; as weak as their sum."""
    a, b = aval_of(x), aval_of(y)
    weak = a.weak_type and b.weak_type
    if preferred is not None:
        preferred = dtypes.canonicalize_user_dtype(preferred, f"numpy.{name}")
        weak = False
    elif a.dtype == b.dtype:
        preferred = a.dtype
    else:
        preferred, weak = dtypes.lattice_result_type(a, b)
        if (a.weak_type or b.weak_type) and dtypes.issubdtype(preferred, np.integer):
            # Products of a weak integer as it is would not fit into a narrower dtype.
            x, y = promotion.promote_dtypes(name, x, y)
    out = dots.dot_general(
        x, y, numbers, precision=precision, preferred_element_type=preferred, out_sharding=sharding
    )
    aval = aval_of(out)
    return out if aval.weak_type == weak else creation.convert_to_type(out, aval.dtype, weak)


@one_program(static=_SHARDED_DOT_OPTIONS)
def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Computes the dot product over the last axis of `a` and the second-to-last of `b`.

    Shapes:     a: T[s, k], b: T[t, k, n] -> T[s, t, n]; vectors and scalars as NumPy.
    Dtypes:     promoted; the result is of `preferred_element_type` where that is given.
    Derivative: linear in each operand.
    Lowers to:  stablehlo.dot_general.

    Raises:
        TypeError: the sizes differ.

    Example:
        >>> jnp.dot(jnp.array([1, 2]), jnp.array([10, 100]))
        Array(210, dtype=int32)
        >>> jnp.dot(jnp.ones((2, 3, 5)), jnp.ones((4, 5, 6))).shape
        (2, 3, 4, 6)
    """
    a, b = array_argument("dot", a), array_argument("dot", b)
    ranks = a.aval.ndim, b.aval.ndim
    contract = ((), ()) if 0 in ranks else ((ranks[0] - 1,), (max(ranks[1] - 2, 0),))
    numbers = (contract, ((), ()))
    return _product("dot", a, b, numbers, precision, preferred_element_type, out_sharding)


@one_program(static=_SHARDED_DOT_OPTIONS)
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Computes matrix products, broadcasting the leading dimensions.

    Shapes:     a: T[..., m, k], b: T[..., k, n] -> T[..., m, n]; a vector is a row, or a column.
    Dtypes:     promoted; the result is of `preferred_element_type` where that is given.
    Derivative: linear in each operand.
    Lowers to:  stablehlo.dot_general.

    Raises:
        ValueError: an operand is a scalar, or leading dimensions do not fit.
        TypeError: the inner sizes differ.

    Example:
        >>> jnp.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([10, 1]))
        Array([12, 34], dtype=int32)
        >>> jnp.matmul(jnp.ones((7, 2, 3)), jnp.ones((3, 5))).shape
        (7, 2, 5)
    """
    a, b = array_argument("matmul", a), array_argument("matmul", b)
    left, right = a.aval.shape, b.aval.shape
    inner = max(len(right) - 2, 0)
    if not (left and right):
        problem, fix = "operands must have at least one dimension.", "numpy.multiply for scalars"
        check_that(False, "matmul", problem, a=a, b=b, fix=fix)
    if left[-1] != right[inner]:
        got = {"a": a.aval, "b": b.aval}
        expected = f"equal sizes; they are {left[-1]} and {right[inner]}"
        error(TypeError, "numpy.matmul", "the inner sizes differ.", got=got, expected=expected)
    if len(right) > 2:
        return _batched_matmul(a, b, precision, preferred_element_type, out_sharding)
    numbers = (((len(left) - 1,), (inner,)), ((), ()))
    return _product("matmul", a, b, numbers, precision, preferred_element_type, out_sharding)


def _batched_matmul(
    a: Array,
    b: Array,
    precision: PrecisionLike,
    preferred: DTypeLike | None,
    sharding: ShardingLike,
) -> Any:
    """Matrix products over leading dimensions; those of size 1 or absent are not repeated."""
    left, right = a.aval.shape, b.aval.shape
    rank = len(shaping.broadcast_shapes(left[:-2], right[:-2]))
    left_lead = (1,) * (rank - len(left[:-2])) + left[:-2]
    right_lead = (1,) * (rank - len(right[:-2])) + right[:-2]
    both = [i for i, (m, n) in enumerate(zip(left_lead, right_lead, strict=True)) if m == n]
    in_left = [i for i in range(rank) if i in both or right_lead[i] == 1]
    in_right = [i for i in range(rank) if i in both or i not in in_left]
    a = _with_lead(a, rank, in_left)
    b = _with_lead(b, rank, in_right)
    batch = ([in_left.index(i) for i in both], [in_right.index(i) for i in both])
    contract = ((a.aval.ndim - 1,), (b.aval.ndim - 2,))
    # dot_general puts batch dimensions first, then those of a, then those of b.
    rows = ["row"] if len(left) > 1 else []
    alone = [[i for i in found if i not in both] for found in (in_left, in_right)]
    order = [*both, *alone[0], *rows, *alone[1], "column"]
    permutation = [order.index(d) for d in (*range(rank), *rows, "column")]
    wanted = rules.resolve(sharding, "numpy.matmul")
    if wanted is not None:
        spec = wanted.spec.padded(len(permutation))
        wanted = wanted.with_spec(rules.permuted(spec, np.argsort(permutation).tolist()))
    out = _product("matmul", a, b, (contract, batch), precision, preferred, wanted)
    return shape.transpose(out, permutation)


def _with_lead(x: Array, rank: int, kept: Sequence[int]) -> Any:
    """Matrices without the leading dimensions, of `rank` after broadcasting, that are not kept."""
    lead = max(x.aval.ndim - 2, 0)
    missing = rank - lead
    dropped = [i - missing for i in range(missing, rank) if i not in kept]
    x = shape.squeeze(x, dropped) if dropped else x
    new = sum(i < missing for i in kept)
    return shape.expand_dims(x, range(new)) if new else x


@one_program(static=_DOT_OPTIONS)
def vdot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Computes the dot product of two flattened arrays, conjugating the first.

    Shapes:     a, b: T[s] -> T[].

    Raises:
        TypeError: the sizes differ.

    Example:
        >>> jnp.vdot(jnp.array([1j, 2]), jnp.array([1j, 1]))
        Array(3.+0.j, dtype=complex64)
    """
    return dot(
        _conjugated(shaping.ravel(array_argument("vdot", a))),
        shaping.ravel(array_argument("vdot", b)),
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def _conjugated(x: Array) -> Any:
    return unary.conj(x) if dtypes.issubdtype(x.dtype, np.complexfloating) else x


@one_program(static=_DOT_OPTIONS)
@source.hands_over
def inner(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Computes the inner product over the last axes of two arrays.

    Shapes:     a: T[s, k], b: T[t, k] -> T[s, t].

    Raises:
        TypeError: the sizes differ.

    Example:
        >>> jnp.inner(jnp.array([[1, 2], [3, 4]]), jnp.array([10, 1]))
        Array([12, 34], dtype=int32)
    """
    a, b = array_argument("inner", a), array_argument("inner", b)
    axes = 0 if not a.aval.ndim or not b.aval.ndim else (-1, -1)
    return tensordot(a, b, axes, precision=precision, preferred_element_type=preferred_element_type)


@one_program(static=("out",))
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """Computes the outer product of two flattened arrays.

    Shapes:     a: T[s], b: T[t] -> T[prod(s), prod(t)].

    Raises:
        NotImplementedError: `out` is given.

    Example:
        >>> jnp.outer(jnp.array([1, 2]), jnp.array([10, 20, 30]))
        Array([[10, 20, 30],
               [20, 40, 60]], dtype=int32)
    """
    check_out("outer", out)
    a, b = promotion.promote_dtypes("outer", a, b)
    rows = shape.expand_dims(shaping.ravel(a), (1,))
    columns = shape.expand_dims(shaping.ravel(b), (0,))
    return elementary.multiply(rows, columns)


@one_program()
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Computes the Kronecker product of two arrays.

    Shapes:     a: T[s], b: T[t] -> T[s * t], where the shorter is filled up with ones in front.

    Example:
        >>> jnp.kron(jnp.array([[1, 2]]), jnp.array([[1, 1], [0, 1]]))
        Array([[1, 1, 2, 2],
               [0, 1, 0, 2]], dtype=int32)
    """
    a, b = promotion.promote_dtypes("kron", a, b)
    rank = max(aval_of(a).ndim, aval_of(b).ndim)
    product = binary.mul(_interleaved(a, rank, 0), _interleaved(b, rank, 1))
    dims = aval_of(product).shape
    return shape.reshape(product, tuple(dims[2 * d] * dims[2 * d + 1] for d in range(rank)))


def _interleaved(x: Array, rank: int, offset: int) -> Any:
    """`x` with its dimensions as every second one of twice as many as `rank`; others are 1."""
    own = [2 * d + offset for d in range(rank - aval_of(x).ndim, rank)]
    return shape.expand_dims(x, [d for d in range(2 * rank) if d not in own])


@one_program(static=("axes", *_SHARDED_DOT_OPTIONS))
def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike = None,
) -> Array:
    """Computes the tensor dot product along the given axes.

    Args:
        a: the first operand.
        b: the second operand.
        axes: how many: the last ones of `a` with the first ones of `b`; or two lists of them.
        precision: of the dot.
        preferred_element_type: the dtype of the result.
        out_sharding: of the result.

    Shapes:     a: T[s, k], b: T[k, t] -> T[s, t], where s, t and k are any number of dimensions.

    Raises:
        TypeError: `axes` does not fit the operands.
        ValueError: an axis is out of range, or named twice.

    Example:
        >>> jnp.tensordot(jnp.ones((2, 3, 4)), jnp.ones((4, 3, 5)), axes=([1, 2], [1, 0]))
        Array([[12., 12., 12., 12., 12.],
               [12., 12., 12., 12., 12.]], dtype=float32)
    """
    a, b = array_argument("tensordot", a), array_argument("tensordot", b)
    numbers = (_summed_axes(axes, a.aval, b.aval), ((), ()))
    return _product("tensordot", a, b, numbers, precision, preferred_element_type, out_sharding)


def _summed_axes(axes: Any, a: Any, b: Any) -> tuple[Sequence[int], Sequence[int]]:
    if isinstance(axes, (int, np.integer)):
        fits = 0 <= axes <= min(a.ndim, b.ndim)
        check_that(fits, "tensordot", f"axes={axes} exceeds a rank.", error=TypeError, a=a, b=b)
        return range(a.ndim - axes, a.ndim), range(axes)
    if not isinstance(axes, (tuple, list)) or len(axes) != 2:
        problem = "axes must be an integer or a pair of lists."
        error(TypeError, "numpy.tensordot", problem, got=repr(axes))
    left, right = (x if isinstance(x, (tuple, list)) else (x,) for x in axes)
    if len(left) != len(right):
        error(TypeError, "numpy.tensordot", "the lists of axes differ in length.", got=repr(axes))
    return (
        families.canonicalize_axes(left, a.ndim, "numpy.tensordot"),
        families.canonicalize_axes(right, b.ndim, "numpy.tensordot"),
    )


def _check_core(
    name: str, x: Array, y: Array, ranks: tuple[int, int], places: tuple[int, int]
) -> None:
    """Refuses operands of too low ranks, or that differ in the size of the summed dimension."""
    a, b = x.aval, y.aval
    fit = a.ndim >= ranks[0] and b.ndim >= ranks[1]
    if not fit or a.shape[places[0]] != b.shape[places[1]]:
        problem = "the operands do not fit together."
        expected = f"{ranks[0]} and {ranks[1]} dimensions at least, and equal inner sizes"
        error(ValueError, f"numpy.{name}", problem, got={"x1": a, "x2": b}, expected=expected)


@one_program()
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Computes matrix-vector products, broadcasting the leading dimensions.

    Shapes:     x1: T[..., m, n], x2: T[..., n] -> T[..., m].

    Raises:
        ValueError: the shapes do not fit.

    Example:
        >>> jnp.matvec(jnp.array([[1, 2], [3, 4]]), jnp.array([[10, 1], [0, 1]]))
        Array([[12, 34],
               [ 2,  4]], dtype=int32)
    """
    x1, x2 = array_argument("matvec", x1), array_argument("matvec", x2)
    _check_core("matvec", x1, x2, (2, 1), (-1, -1))
    product = matmul(x1, shape.expand_dims(x2, (-1,)))
    return shape.squeeze(product, (-1,))


@one_program()
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Computes vector-matrix products, conjugating the vectors.

    Shapes:     x1: T[..., n], x2: T[..., n, m] -> T[..., m].

    Raises:
        ValueError: the shapes do not fit.

    Example:
        >>> jnp.vecmat(jnp.array([10, 1]), jnp.array([[1, 2], [3, 4]]))
        Array([13, 24], dtype=int32)
    """
    x1, x2 = array_argument("vecmat", x1), array_argument("vecmat", x2)
    _check_core("vecmat", x1, x2, (1, 2), (-1, -2))
    product = matmul(shape.expand_dims(_conjugated(x1), (-2,)), x2)
    return shape.squeeze(product, (-2,))


@one_program(static=("axis", *_DOT_OPTIONS))
def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Computes the dot product of vectors along `axis`, conjugating the first.

    Shapes:     x1: T[.., n, ..], x2: T[.., n, ..] -> T[.., ..]; other dimensions are broadcast.

    Raises:
        ValueError: the shapes do not fit.

    Example:
        >>> jnp.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([10, 1]))
        Array([12, 34], dtype=int32)
    """
    x1, x2 = array_argument("vecdot", x1), array_argument("vecdot", x2)
    _check_core("vecdot", x1, x2, (1, 1), (axis, axis))
    return einsum(
        "...i,...i->...",
        shaping.moveaxis(_conjugated(x1), axis, -1),
        shaping.moveaxis(x2, axis, -1),
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: str | bool | Sequence[Any] = "auto",
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    _dot_general: Callable[..., Any] = dots.dot_general,
    out_sharding: ShardingLike = None,
) -> Array:
    """Evaluates sums of products in the Einstein summation convention.

    Args:
        subscripts: such as `"ij,jk->ik"`, or NumPy's alternating form of operands and lists.
        operands: the arrays.
        out: nothing; NumPy has it.
        optimize: how `opt_einsum` orders the contractions.
        precision: of the dots.
        preferred_element_type: the dtype of the result.
        _dot_general: what multiplies two operands.
        out_sharding: of the result.

    Lowers to:  stablehlo.dot_general for two operands, and for each contraction of more.

    Raises:
        ValueError: the subscripts do not fit the operands.
        NotImplementedError: `out` is given.

    Example:
        >>> a, b = jnp.array([[1, 2], [3, 4]]), jnp.array([10, 1])
        >>> jnp.einsum("ij,j->i", a, b)
        Array([12, 34], dtype=int32)
        >>> jnp.einsum("ii", a)
        Array(5, dtype=int32)
    """
    check_out("einsum", out)
    spec, arrays = _einsum_arguments(subscripts, operands)
    if isinstance(optimize, list):
        optimize = tuple(map(tuple, optimize))
    if preferred_element_type is not None:
        preferred_element_type = dtypes.canonicalize_user_dtype(
            preferred_element_type, "numpy.einsum"
        )
    run: Callable[..., Any] = functools.partial(
        _einsum,
        spec=spec,
        optimize=optimize,
        precision=precision,
        preferred=preferred_element_type,
        multiply=_dot_general,
    )
    if out_sharding is not None:
        run = explicit.auto_axes(run, out_sharding=out_sharding)
    return run(*arrays)


@one_program(static=("spec", "optimize", "precision", "preferred", "multiply"))
def _einsum(
    *operands: Any,
    spec: str,
    optimize: str | bool | Sequence[Any],
    precision: PrecisionLike,
    preferred: DTypeLike | None,
    multiply: Callable[..., Any],
) -> Any:
    arrays = [check_array("einsum", x) for x in operands]
    dtype, weak = dtypes.lattice_result_type(*arrays)
    if preferred is not None:
        dtype, weak = preferred, False
    plan = _plan(spec, tuple(aval_of(x).shape for x in arrays), optimize)
    arrays = promotion.promote_dtypes("einsum", *arrays)
    dot_of_two = functools.partial(multiply, precision=precision, preferred_element_type=dtype)
    terms = list(zip(plan.terms, arrays, strict=True))
    for step in plan.steps:
        chosen = [terms.pop(i) for i in sorted(step, reverse=True)][::-1]
        later = set(plan.result).union(*(names for names, _ in terms))
        while len(chosen) > 2:
            needed = later.union(*(names for names, _ in chosen[2:]))
            chosen[:2] = [_contract(chosen[:2], needed, dot_of_two)]
        terms.append(_contract(chosen, later, dot_of_two))
    ((names, value),) = terms
    value = shape.transpose(value, [names.index(n) for n in plan.result])
    return creation.convert_to_type(value, dtype, weak)


def _einsum_arguments(subscripts: Any, operands: Sequence[Any]) -> tuple[str, list[Any]]:
    if isinstance(subscripts, str):
        return subscripts, list(operands)
    items = [subscripts, *operands]
    arrays, lists = items[0::2], items[1::2]
    tail = None
    if len(items) % 2:
        arrays, tail = arrays[:-1], arrays[-1]

    def letters(entries: Any) -> str:
        return "".join("..." if e is Ellipsis else opt_einsum.get_symbol(e) for e in entries)

    spec = ",".join(letters(entries) for entries in lists)
    return (spec if tail is None else f"{spec}->{letters(tail)}"), list(arrays)


class _Plan(NamedTuple):
    """What an einsum does.

    Attributes:
        terms: one letter for each dimension of each operand.
        result: the letters of the result.
        steps: which operands are contracted one after another; each result goes to the end.
    """

    terms: tuple[str, ...]
    result: str
    steps: tuple[tuple[int, ...], ...]


@cached("contraction paths", key="subscripts, shapes, optimize", most=1024)
def _plan(spec: str, shapes: tuple[Shape, ...], optimize: str | bool | Sequence[Any]) -> _Plan:
    """In which order `einsum` contracts."""
    try:
        parser = opt_einsum.parser
        inputs, result, _ = parser.parse_einsum_input((spec, *shapes), shapes=True)
        terms = tuple(inputs.split(","))
        _check_subscripts(terms, result, shapes)
    except (ValueError, TypeError) as caught:
        problem = f"the subscripts do not fit the operands: {caught}"
        got = {"subscripts": repr(spec), "shapes": shapes}
        error(ValueError, "numpy.einsum", problem, got=got, cause=None)
    if len(shapes) <= 2:
        return _Plan(terms, result, (tuple(range(len(shapes))),))
    path, _ = opt_einsum.contract_path(
        f"{inputs}->{result}",
        *shapes,
        shapes=True,
        optimize="auto" if optimize is True else optimize,
    )
    return _Plan(terms, result, tuple(map(tuple, path)))


def _check_subscripts(terms: Sequence[str], result: str, shapes: Sequence[Shape]) -> None:
    sizes: dict[str, int] = {}
    for term, dims in zip(terms, shapes, strict=True):
        if len(term) != len(dims):
            raise ValueError(f"{term!r} names {len(term)} dimensions of {len(dims)}")
        for name, size in zip(term, dims, strict=True):
            known = sizes.setdefault(name, size)
            if known != size and (1 not in (known, size) or term.count(name) > 1):
                raise ValueError(f"{name!r} stands for sizes {known} and {size}")
            sizes[name] = max(known, size)
    if len(set(result)) != len(result) or not set(result) <= set(sizes):
        raise ValueError(f"the result {result!r} repeats a name, or has one that no operand has")


def _contract(
    terms: Sequence[tuple[str, Any]], later: set[str], dot_of_two: Callable[..., Any]
) -> tuple[str, Any]:
    """Contracts one or two operands over the names that nothing later needs."""
    if len(terms) == 1:
        return _reduced(*terms[0], later)
    (left, a), (right, b) = terms
    left, a = _reduced(left, a, later.union(right))
    right, b = _reduced(right, b, later.union(left))
    left, a, right, b = _without_ones(left, a, right, b)
    # A name that only one operand has now may be summed there.
    left, a = _reduced(left, a, later.union(right))
    right, b = _reduced(right, b, later.union(left))
    shared = [n for n in left if n in right]
    batch = [n for n in shared if n in later]
    summed = [n for n in shared if n not in later]
    numbers = (
        ([left.index(n) for n in summed], [right.index(n) for n in summed]),
        ([left.index(n) for n in batch], [right.index(n) for n in batch]),
    )
    rest = [n for n in (*left, *right) if n not in shared]
    return "".join([*batch, *rest]), dot_of_two(a, b, numbers)


def _without_ones(left: str, a: Array, right: str, b: Array) -> tuple[str, Any, str, Any]:
    """Drops dimensions of size 1 that stand for a larger one in the other operand."""
    sizes = dict(zip(left, aval_of(a).shape, strict=True))
    other = dict(zip(right, aval_of(b).shape, strict=True))
    if all(other.get(name, size) == size for name, size in sizes.items()):
        return left, a, right, b
    drop_left = [n for n in left if n in other and sizes[n] == 1 != other[n]]
    drop_right = [n for n in right if n in sizes and other[n] == 1 != sizes[n]]
    a = shape.squeeze(a, [left.index(n) for n in drop_left])
    b = shape.squeeze(b, [right.index(n) for n in drop_right])
    left = "".join(n for n in left if n not in drop_left)
    right = "".join(n for n in right if n not in drop_right)
    return left, a, right, b


def _reduced(names: str, x: Array, needed: set[str]) -> tuple[str, Any]:
    """Diagonals of repeated names, then sums over names that nobody else needs."""
    for name in names:
        while names.count(name) > 1:
            i = names.index(name)
            j = names.index(name, i + 1)
            x = _diagonal(x, i, j)
            names = names[:j] + names[j + 1 :]
    gone = [i for i, n in enumerate(names) if n not in needed]
    if not gone:
        return names, x
    is_bool = aval_of(x).dtype == dtypes.bool_
    x = (reduction.reduce_or if is_bool else reduction.reduce_sum)(x, gone)
    return "".join(n for n in names if n in needed), x


def _diagonal(x: Array, i: int, j: int) -> Any:
    """`x` with dimensions i and j, of one size, run through together at i."""
    dims = aval_of(x).shape
    size = dims[i]
    order = [d for d in range(len(dims)) if d not in (i, j)]
    moved = shape.transpose(x, [i, j, *order])
    flat = shape.reshape(moved, (size * size, *(dims[d] for d in order)))
    return shaping.moveaxis(slicing.slice_in_dim(flat, 0, None, size + 1), 0, i)


def einsum_path(
    subscripts: Any, /, *operands: Any, optimize: str | bool | Sequence[Any] = "auto"
) -> tuple[list[tuple[int, ...]], Array]:
    """Finds the order in which `einsum` would contract its operands, and describes it.

    Example:
        >>> path, text = jnp.einsum_path("ij,jk,kl->il", *(jnp.ones((2, 2)),) * 3)
        >>> path
        [(0, 1), (0, 1)]
    """
    spec, arrays = _einsum_arguments(subscripts, operands)
    shapes = [aval_of(x).shape for x in arrays]
    path, info = opt_einsum.contract_path(spec, *shapes, shapes=True, optimize=optimize)
    return path, info
