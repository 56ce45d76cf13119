"""Products of arrays: dot, matmul, einsum, tensordot and their like.

Input: arrays.  Output: sums of products; all become `dot_general`.  Paths of contraction of
three and more operands come from `opt_einsum`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import opt_einsum

from minijax.core import dtypes
from minijax.core.aval import aval_of
from minijax.core.errors import message
from minijax.lax import arguments, binary, convert, dots, reduction, shape
from minijax.numpy import shaping
from minijax.numpy.promotion import promote_dtypes
from minijax.numpy.shaping import check_arraylike


def _product(
    x: Any, y: Any, numbers: Any, precision: Any, preferred: Any, weak: bool
) -> Any:
    out = dots.dot_general(
        x, y, numbers, precision=precision, preferred_element_type=preferred
    )
    return convert.convert_to_type(out, aval_of(out).dtype, weak) if weak else out


def _prepared(
    name: str, x: Any, y: Any, preferred: Any
) -> tuple[Any, Any, Any, bool]:
    """Operands of one dtype, the dtype of the result, and whether that is weak."""
    check_arraylike(name, x, y)
    weak = bool(aval_of(x).weak_type and aval_of(y).weak_type)
    x, y = promote_dtypes(name, x, y)
    if preferred is not None:
        preferred = dtypes.canonicalize_user_dtype(preferred, f"numpy.{name}")
    else:
        preferred = aval_of(x).dtype
    return x, y, preferred, weak


def dot(
    a: Any,
    b: Any,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """The product over the last dimension of `a` and the second to last of `b`.

    Shapes: T[s, k], T[t, k, n] -> T[s, t, n]; vectors and scalars as NumPy.
    Source: mirrors jax.numpy.dot (0.10).

    Raises:
        TypeError: the sizes differ.
    """
    a, b, preferred, weak = _prepared("dot", a, b, preferred_element_type)
    ranks = aval_of(a).ndim, aval_of(b).ndim
    if 0 in ranks:
        out = binary.mul(a, b)
        return convert.convert_to_type(out, preferred, weak)
    contract = ((ranks[0] - 1,), (max(ranks[1] - 2, 0),))
    return _product(a, b, (contract, ((), ())), precision, preferred, weak)


def matmul(
    a: Any,
    b: Any,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Matrix products, over broadcast leading dimensions.

    Shapes: T[..., m, k], T[..., k, n] -> T[..., m, n]; a vector is a row, or a column.
    Source: mirrors jax.numpy.matmul (0.10).

    Raises:
        ValueError: an operand is a scalar.
        TypeError: the sizes differ.
    """
    a, b, preferred, weak = _prepared("matmul", a, b, preferred_element_type)
    left, right = aval_of(a).shape, aval_of(b).shape
    if not left or not right:
        raise ValueError(
            message(
                "numpy.matmul",
                "operands must have at least one dimension.",
                got={"a": aval_of(a), "b": aval_of(b)},
                fix="numpy.multiply for scalars",
            )
        )
    rows = left[-2:-1]
    columns = right[-1:] if len(right) > 1 else ()
    inner = max(len(right) - 2, 0)
    if left[-1] != right[inner]:
        raise TypeError(
            message(
                "numpy.matmul",
                "the inner sizes differ.",
                got={"a": aval_of(a), "b": aval_of(b)},
                expected=f"equal sizes; they are {left[-1]} and {right[inner]}",
            )
        )
    if len(right) <= 2:
        numbers = (((len(left) - 1,), (inner,)), ((), ()))
        return _product(a, b, numbers, precision, preferred, weak)
    return _batched(a, b, rows, columns, precision, preferred, weak)


def _batched(
    a: Any, b: Any, rows: Any, columns: Any, precision: Any, preferred: Any, weak: bool
) -> Any:
    """Matrix products over leading dimensions; those of size 1 or absent are not repeated."""
    left, right = aval_of(a).shape, aval_of(b).shape
    lead = shaping.broadcast_shapes(left[:-2], right[:-2])
    left_lead = (1,) * (len(lead) - len(left[:-2])) + left[:-2]
    right_lead = (1,) * (len(lead) - len(right[:-2])) + right[:-2]
    both = [i for i, (m, n) in enumerate(zip(left_lead, right_lead, strict=True)) if m == n]
    only_left = [i for i, n in enumerate(right_lead) if i not in both and n == 1]
    only_right = [i for i in range(len(lead)) if i not in both and i not in only_left]
    a = shape.reshape(
        a,
        (*(n for i, n in enumerate(left_lead) if i not in only_right), *left[-2:]),
    )
    b = shape.reshape(
        b,
        (*(n for i, n in enumerate(right_lead) if i not in only_left), *right[-2:]),
    )
    left_places = [i for i in range(len(lead)) if i not in only_right]
    right_places = [i for i in range(len(lead)) if i not in only_left]
    batch = (
        tuple(left_places.index(i) for i in both),
        tuple(right_places.index(i) for i in both),
    )
    contract = ((aval_of(a).ndim - 1,), (aval_of(b).ndim - 2,))
    out = _product(a, b, (contract, batch), precision, preferred, weak)
    # dot_general puts batch dimensions first, then those of a, then those of b.
    order = [*both, *only_left, *(["row"] if rows else []), *only_right, "column"]
    wanted = [*range(len(lead)), *(["row"] if rows else []), "column"]
    return shape.transpose(out, [order.index(d) for d in wanted])


def vdot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The product of two arrays as vectors, the first conjugated.  Mirrors jax.numpy.vdot."""
    check_arraylike("vdot", a, b)
    a = shaping.ravel(a)
    if dtypes.issubdtype(aval_of(a).dtype, np.complexfloating):
        a = a.conj()
    return dot(
        a,
        shaping.ravel(b),
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def inner(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The product over the last dimensions.  Mirrors jax.numpy.inner (0.10)."""
    check_arraylike("inner", a, b)
    if not aval_of(a).ndim or not aval_of(b).ndim:
        return dot(a, b, precision=precision, preferred_element_type=preferred_element_type)
    return tensordot(
        a, b, (-1, -1), precision=precision, preferred_element_type=preferred_element_type
    )


def outer(a: Any, b: Any, out: None = None) -> Any:
    """All products of elements of two vectors.  Mirrors jax.numpy.outer (0.10)."""
    check_arraylike("outer", a, b)
    a, b = promote_dtypes("outer", a, b)
    rows = shape.expand_dims(shaping.ravel(a), (1,))
    columns = shape.expand_dims(shaping.ravel(b), (0,))
    return binary.mul(rows, columns)


def kron(a: Any, b: Any) -> Any:
    """The Kronecker product.  Mirrors jax.numpy.kron (0.10)."""
    check_arraylike("kron", a, b)
    a, b = promote_dtypes("kron", a, b)
    rank = max(aval_of(a).ndim, aval_of(b).ndim)
    left = (1,) * (rank - aval_of(a).ndim) + aval_of(a).shape
    right = (1,) * (rank - aval_of(b).ndim) + aval_of(b).shape
    a = shape.reshape(a, tuple(n for pair in zip(left, [1] * rank, strict=True) for n in pair))
    b = shape.reshape(b, tuple(n for pair in zip([1] * rank, right, strict=True) for n in pair))
    return shape.reshape(
        binary.mul(a, b), tuple(m * n for m, n in zip(left, right, strict=True))
    )


def tensordot(
    a: Any,
    b: Any,
    axes: Any = 2,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """The product over several dimensions: the last of `a` with the first of `b`, or those named.

    Source: mirrors jax.numpy.tensordot (0.10).

    Raises:
        TypeError: `axes` does not fit the operands.
    """
    a, b, preferred, weak = _prepared("tensordot", a, b, preferred_element_type)
    ranks = aval_of(a).ndim, aval_of(b).ndim
    if isinstance(axes, (int, np.integer)):
        if axes > min(ranks):
            raise TypeError(
                message(
                    "numpy.tensordot",
                    f"axes={axes} exceeds a rank.",
                    got={"a": aval_of(a), "b": aval_of(b)},
                )
            )
        contract = tuple(range(ranks[0] - axes, ranks[0])), tuple(range(axes))
    elif isinstance(axes, (tuple, list)) and len(axes) == 2:
        left = axes[0] if isinstance(axes[0], (tuple, list)) else (axes[0],)
        right = axes[1] if isinstance(axes[1], (tuple, list)) else (axes[1],)
        if len(left) != len(right):
            raise TypeError(
                message(
                    "numpy.tensordot", "the lists of axes differ in length.", got=repr(axes)
                )
            )
        contract = (
            arguments.canonicalize_axes(left, ranks[0], "numpy.tensordot"),
            arguments.canonicalize_axes(right, ranks[1], "numpy.tensordot"),
        )
    else:
        raise TypeError(
            message(
                "numpy.tensordot",
                "axes must be an integer or a pair of lists.",
                got=repr(axes),
            )
        )
    return _product(a, b, (contract, ((), ())), precision, preferred, weak)


def matvec(x1: Any, x2: Any, /) -> Any:
    """Products of matrices and vectors.  Mirrors jax.numpy.matvec (0.10)."""
    return matmul(x1, shape.expand_dims(x2, (aval_of(x2).ndim,))).squeeze(-1)


def vecmat(x1: Any, x2: Any, /) -> Any:
    """Products of conjugated vectors and matrices.  Mirrors jax.numpy.vecmat (0.10)."""
    check_arraylike("vecmat", x1, x2)
    if dtypes.issubdtype(aval_of(x1).dtype, np.complexfloating):
        x1 = x1.conj()
    return matmul(shape.expand_dims(x1, (aval_of(x1).ndim - 1,)), x2).squeeze(-2)


def vecdot(
    x1: Any,
    x2: Any,
    /,
    *,
    axis: int = -1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Products of vectors along `axis`, the first conjugated.  Mirrors jax.numpy.vecdot (0.10)."""
    check_arraylike("vecdot", x1, x2)
    x1, x2 = shaping.moveaxis(x1, axis, -1), shaping.moveaxis(x2, axis, -1)
    if dtypes.issubdtype(aval_of(x1).dtype, np.complexfloating):
        x1 = x1.conj()
    return einsum(
        "...i,...i->...",
        x1,
        x2,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: Any = "auto",
    precision: Any = None,
    preferred_element_type: Any = None,
    _dot_general: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Sums of products in Einstein's notation.

    Args:
        subscripts: such as `"ij,jk->ik"`, or NumPy's alternating form of operands and lists.
        operands: the arrays.
        optimize: how `opt_einsum` orders the contractions.
        precision: of the dots.
        preferred_element_type: the dtype of the result.

    Source: mirrors jax.numpy.einsum (0.10).

    Raises:
        ValueError: the subscripts do not fit the operands.
    """
    spec, arrays = _einsum_arguments(subscripts, operands)
    check_arraylike("einsum", *arrays)
    weak = all(aval_of(x).weak_type for x in arrays)
    dtype = dtypes.result_type(*arrays) if preferred_element_type is None else (
        dtypes.canonicalize_user_dtype(preferred_element_type, "numpy.einsum")
    )
    arrays = promote_dtypes("einsum", *arrays)
    inputs, result = _parse(spec, arrays)
    steps = _path(inputs, result, arrays, optimize)
    terms = list(zip(inputs, arrays, strict=True))
    for step in steps:
        chosen = [terms.pop(i) for i in sorted(step, reverse=True)][::-1]
        later = set(result).union(*(set(names) for names, _ in terms))
        terms.append(_contract(chosen, later, precision, dtype))
    ((names, value),) = terms
    value = _arrange(names, value, result)
    return convert.convert_to_type(value, dtype, weak)


def _einsum_arguments(subscripts: Any, operands: Sequence[Any]) -> tuple[str, list[Any]]:
    if isinstance(subscripts, str):
        return subscripts.replace(" ", ""), list(operands)
    items = [subscripts, *operands]
    arrays, lists = items[0::2], items[1::2]
    tail = None
    if len(items) % 2:
        arrays, tail = arrays[:-1], arrays[-1]

    def letters(entries: Any) -> str:
        return "".join("..." if e is Ellipsis else opt_einsum.get_symbol(e) for e in entries)

    spec = ",".join(letters(entries) for entries in lists)
    return (spec if tail is None else f"{spec}->{letters(tail)}"), list(arrays)


def _parse(spec: str, arrays: Sequence[Any]) -> tuple[list[str], str]:
    """One string of distinct letters' names for each operand, and one for the result."""
    shapes = [aval_of(x).shape for x in arrays]
    try:
        inputs, result, _ = opt_einsum.parser.parse_einsum_input(
            (spec, *shapes), shapes=True
        )
    except (ValueError, TypeError) as error:
        raise ValueError(
            message(
                "numpy.einsum",
                f"the subscripts do not fit: {error}",
                got={"subscripts": repr(spec), "shapes": shapes},
            )
        ) from None
    terms = inputs.split(",")
    sizes: dict[str, int] = {}
    for term, dims in zip(terms, shapes, strict=True):
        if len(term) != len(dims):
            raise ValueError(
                message(
                    "numpy.einsum",
                    f"the subscripts {term!r} name {len(term)} dimensions of an operand with "
                    f"{len(dims)}.",
                    got={"subscripts": repr(spec), "shapes": shapes},
                )
            )
        for name, size in zip(term, dims, strict=True):
            if sizes.setdefault(name, size) != size:
                if 1 not in (size, sizes[name]):
                    raise ValueError(
                        message(
                            "numpy.einsum",
                            f"the subscript {name!r} stands for sizes {sizes[name]} and {size}.",
                            got={"subscripts": repr(spec), "shapes": shapes},
                        )
                    )
                sizes[name] = max(size, sizes[name])
    return terms, result


def _path(
    inputs: list[str], result: str, arrays: Sequence[Any], optimize: Any
) -> list[tuple[int, ...]]:
    if len(arrays) <= 2:
        return [tuple(range(len(arrays)))]
    path, _ = opt_einsum.contract_path(
        ",".join(inputs) + "->" + result,
        *(aval_of(x).shape for x in arrays),
        shapes=True,
        optimize="auto" if optimize is True else optimize or "auto",
    )
    return [tuple(step) for step in path]


def _contract(
    terms: Sequence[tuple[str, Any]], later: set[str], precision: Any, dtype: Any
) -> tuple[str, Any]:
    """Contracts one or two operands over the names that nothing later needs."""
    prepared = []
    for i, (names, x) in enumerate(terms):
        others = later.union(*(set(n) for j, (n, _) in enumerate(terms) if j != i))
        prepared.append(_reduced(names, x, others))
    if len(prepared) == 1:
        return prepared[0]
    (left, a), (right, b) = prepared
    if len(prepared) > 2:
        first = _contract(prepared[:2], later.union(*(set(n) for n, _ in prepared[2:])), precision, dtype)
        return _contract([first, *prepared[2:]], later, precision, dtype)
    left, a, right, b = _without_ones(left, a, right, b)
    shared = [n for n in left if n in right]
    batch = [n for n in shared if n in later]
    summed = [n for n in shared if n not in later]
    numbers = (
        (tuple(left.index(n) for n in summed), tuple(right.index(n) for n in summed)),
        (tuple(left.index(n) for n in batch), tuple(right.index(n) for n in batch)),
    )
    out = dots.dot_general(a, b, numbers, precision=precision, preferred_element_type=dtype)
    rest = [n for n in left if n not in shared] + [n for n in right if n not in shared]
    return "".join([*batch, *rest]), out


def _without_ones(left: str, a: Any, right: str, b: Any) -> tuple[str, Any, str, Any]:
    """Drops dimensions of size 1 that stand for a larger one in the other operand."""
    sizes = dict(zip(left, aval_of(a).shape, strict=True))
    other = dict(zip(right, aval_of(b).shape, strict=True))
    drop_left = [n for n in left if n in other and sizes[n] == 1 != other[n]]
    drop_right = [n for n in right if n in sizes and other[n] == 1 != sizes[n]]
    a = shape.squeeze(a, tuple(left.index(n) for n in drop_left)) if drop_left else a
    b = shape.squeeze(b, tuple(right.index(n) for n in drop_right)) if drop_right else b
    left = "".join(n for n in left if n not in drop_left)
    right = "".join(n for n in right if n not in drop_right)
    return left, a, right, b


def _reduced(names: str, x: Any, needed: set[str]) -> tuple[str, Any]:
    """Diagonals of repeated names, then sums over names that nobody else needs."""
    for name in sorted(set(names), key=names.index):
        while names.count(name) > 1:
            i = names.index(name)
            j = names.index(name, i + 1)
            x = _diagonal(x, i, j)
            names = names[:j] + names[j + 1 :]
    gone = tuple(i for i, n in enumerate(names) if n not in needed)
    if gone:
        x = reduction.reduce_sum(x, gone)
        names = "".join(n for n in names if n in needed)
    return names, x


def _diagonal(x: Any, i: int, j: int) -> Any:
    """`x` with dimensions i and j, of one size, run through together at i."""
    dims = aval_of(x).shape
    size = dims[i]
    order = [d for d in range(len(dims)) if d not in (i, j)]
    moved = shape.transpose(x, [i, j, *order])
    rest = tuple(dims[d] for d in order)
    flat = shape.reshape(moved, (size * size, *rest))
    picked = shaping.slicing_take(flat, (np.arange(size) * (size + 1)).astype(np.int32), 0)
    return shaping.moveaxis(picked, 0, i)


def _arrange(names: str, value: Any, result: str) -> Any:
    """The dimensions in the order of the result."""
    if sorted(names) != sorted(result):
        raise ValueError(
            message(
                "numpy.einsum",
                "the result names a subscript that no operand has.",
                got=f"result {result!r}",
            )
        )
    return shape.transpose(value, [names.index(n) for n in result])


def einsum_path(subscripts: Any, /, *operands: Any, optimize: Any = "greedy") -> Any:
    """The order in which `einsum` would contract.  Mirrors jax.numpy.einsum_path (0.10)."""
    spec, arrays = _einsum_arguments(subscripts, operands)
    path, info = opt_einsum.contract_path(
        spec, *(aval_of(x).shape for x in arrays), shapes=True, optimize=optimize
    )
    return ["einsum_path", *path], info

