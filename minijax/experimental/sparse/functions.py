"""What makes sparse arrays, differentiates by them, and makes functions take them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from minijax import numpy, random
from minijax.core import dtypes, source, tree
from minijax.core.jaxpr import ClosedJaxpr, Eqn, Literal
from minijax.experimental.sparse import products
from minijax.experimental.sparse.arrays import JAXSparse, by_places, is_sparse
from minijax.experimental.sparse.coordinates import BCOO, bcoo_fromdense, over_batch, refuse
from minijax.experimental.sparse.layouts import (
    bcoo_concatenate,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
    bcoo_transpose,
)
from minijax.experimental.sparse.rows import BCSR, by_rows
from minijax.transforms.autodiff.grad import value_and_grad as dense_value_and_grad
from minijax.transforms.autodiff.jacobian import jacfwd as dense_jacfwd
from minijax.transforms.autodiff.jacobian import jacrev as dense_jacrev
from minijax.transforms.jit.stages import ShapeDtypeStruct
from minijax.transforms.jit.tracing import make_jaxpr

Positions: TypeAlias = int | Sequence[int]
Params: TypeAlias = Mapping[str, Any]


def todense(arr: Any) -> Any:
    """The dense array, of a sparse or a dense one.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.todense(sparse.eye(2)).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    return arr.todense() if is_sparse(arr) else arr


def _formatted(name: str, mat: BCOO, sparse_format: str) -> Any:
    if sparse_format not in ("bcoo", "bcsr"):
        problem = f"unknown format {sparse_format!r}."
        refuse(name, problem, expected="'bcoo' or 'bcsr'")
    return mat if sparse_format == "bcoo" else BCSR.from_bcoo(mat)


def empty(
    shape: Sequence[int],
    dtype: Any = None,
    index_dtype: Any = "int32",
    sparse_format: str = "bcoo",
    *,
    n_batch: int = 0,
    n_dense: int = 0,
    nse: int = 0,
) -> BCOO | BCSR:
    """A sparse array of zeros.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.empty((2, 3))
        BCOO(float32[2, 3], nse=0)
    """
    zeros = numpy.zeros(tuple(shape), dtype)
    layout = {"n_batch": n_batch, "n_dense": n_dense}
    found = bcoo_fromdense(zeros, nse=nse, index_dtype=index_dtype, **layout)
    return _formatted("empty", found, sparse_format)


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = None,
    index_dtype: Any = "int32",
    sparse_format: str = "bcoo",
) -> BCOO | BCSR:
    """A sparse matrix with ones on a diagonal.

    Args:
        N: the number of rows.
        M: the number of columns; N, if absent.
        k: which diagonal, above the main one.
        dtype: of the elements.
        index_dtype: of the coordinates.
        sparse_format: "bcoo" or "bcsr".

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.eye(2, 3, k=1).indices.tolist()
        [[0, 1], [1, 2]]
    """
    columns = N if M is None else M
    count = max(0, min(N + min(k, 0), columns - max(k, 0)))
    places = np.arange(count)[:, None] + np.array([max(-k, 0), max(k, 0)])
    data = numpy.ones(count, dtype)
    flags = {"indices_sorted": True, "unique_indices": True}
    found = BCOO((data, places.astype(index_dtype)), shape=(N, columns), **flags)
    return _formatted("eye", found, sparse_format)


def random_bcoo(
    key: Any,
    shape: Sequence[int],
    *,
    dtype: Any = None,
    indices_dtype: Any = None,
    nse: float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    generator: Callable[..., Any] = random.uniform,
    **kwds: Any,
) -> BCOO:
    """A sparse array of random elements at random places, no two at one.

    Args:
        key: a random key.
        shape: of the array.
        dtype: of the elements.
        indices_dtype: of the coordinates.
        nse: how many elements are stored for an example, or which share of the places.
        n_batch: the number of batch dimensions.
        n_dense: the number of dense dimensions.
        generator: makes the elements, called as `generator(key, shape=, dtype=, **kwds)`.
        **kwds: what `generator` takes besides.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.random_bcoo(jax.random.key(0), (10, 10), nse=0.1)
        BCOO(float32[10, 10], nse=10)
    """
    shape = tuple(shape)
    last = len(shape) - n_dense
    batch, inner, dense = shape[:n_batch], shape[n_batch:last], shape[last:]
    places = math.prod(inner)
    count = math.ceil(nse * places) if 0 < nse < 1 else int(nse)
    if not 0 <= count <= places:
        problem = "there are not so many places."
        refuse("random_bcoo", problem, got={"nse": nse, "places": places})
    of_data, of_indices = random.split(key)
    dtype = dtypes.default_float_dtype() if dtype is None else dtype
    data = generator(of_data, shape=(*batch, count, *dense), dtype=dtype, **kwds)

    def example(key: Any) -> Any:
        chosen = random.choice(key, places, (count,), replace=False)
        return numpy.stack(numpy.unravel_index(chosen, inner), -1)

    keys = random.split(of_indices, math.prod(batch)) if batch else of_indices
    indices = over_batch(example, int(bool(batch)))(keys)
    indices = indices.reshape(*batch, count, len(inner)).astype(indices_dtype or np.int32)
    return BCOO((data, indices), shape=shape, unique_indices=True)


def _by_data(transformation: Callable[..., Any]) -> Callable[..., Callable[..., Any]]:
    """A transformation that differentiates by the elements of sparse arguments."""

    def transformed(fun: Callable[..., Any], argnums: Positions = 0, **options: Any) -> Any:
        @source.result_of(fun)
        def of_sparse(*args: Any, **kwargs: Any) -> Any:
            pairs = [tree.flatten(arg, is_leaf=is_sparse) for arg in args]
            datas = [
                tree.unflatten(form, [x.data if is_sparse(x) else x for x in leaves])
                for leaves, form in pairs
            ]

            def rebuilt(number: int, data: Any, batch: int = 0) -> Any:
                leaves, form = pairs[number]
                given = form.flatten_up_to(data)
                found = [
                    _like(x, y) if is_sparse(x) else y for x, y in zip(leaves, given, strict=True)
                ]
                return tree.unflatten(form, found)

            def of_data(*datas: Any, **kwargs: Any) -> Any:
                return fun(*(rebuilt(i, data) for i, data in enumerate(datas)), **kwargs)

            found = transformation(of_data, argnums=argnums, **options)(*datas, **kwargs)
            return found, rebuilt

        return of_sparse

    return transformed


def _like(x: Any, data: Any) -> Any:
    """A sparse array with the places of another; with more batch dimensions, where data has."""
    more = np.ndim(data) - np.ndim(x.data)
    if not more:
        return x.replaced(data)
    lead = tuple(np.shape(data)[:more])
    (_, *places), form = x.tree_flatten()
    places = [numpy.broadcast_to(buffer, (*lead, *np.shape(buffer))) for buffer in places]
    return type(x).tree_unflatten(form, (data, *places))


def _positioned(argnums: Positions, found: Any, rebuilt: Callable[..., Any]) -> Any:
    if isinstance(argnums, int):
        return rebuilt(argnums, found)
    return tuple(rebuilt(i, one) for i, one in zip(argnums, found, strict=True))


def value_and_grad(
    fun: Callable[..., Any], argnums: Positions = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """`value_and_grad` by arguments that may be sparse: gradients have the places of these.

    Example:
        >>> from minijax.experimental import sparse
        >>> value, gradient = sparse.value_and_grad(lambda x: (x * x).sum())(3 * sparse.eye(2))
        >>> value, gradient.data
        (Array(18., dtype=float32), Array([6., 6.], dtype=float32))
    """
    made = _by_data(dense_value_and_grad)(fun, argnums, has_aux=has_aux, **kwargs)

    @source.result_of(fun)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        (value, found), rebuilt = made(*args, **kwargs)
        return value, _positioned(argnums, found, rebuilt)

    return differentiated


def grad(
    fun: Callable[..., Any], argnums: Positions = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """`grad` by arguments that may be sparse: gradients have the places of these.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.grad(lambda x: (x * x).sum())(3 * sparse.eye(2)).data
        Array([6., 6.], dtype=float32)
    """
    made = value_and_grad(fun, argnums, has_aux, **kwargs)

    @source.result_of(fun)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        value, found = made(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return differentiated


def _jacobian(transformation: Callable[..., Any]) -> Callable[..., Any]:
    def transformed(fun: Callable[..., Any], argnums: Positions = 0, **options: Any) -> Any:
        made = _by_data(transformation)(fun, argnums, **options)

        @source.result_of(fun)
        def differentiated(*args: Any, **kwargs: Any) -> Any:
            found, rebuilt = made(*args, **kwargs)
            if isinstance(found, tuple | list | dict) and isinstance(argnums, int):
                problem = "the function has to return one array."
                refuse("jacobian", problem, got=str(tree.structure(found)), kind=TypeError)
            return _positioned(argnums, found, rebuilt)

        return differentiated

    return transformed


def jacfwd(fun: Callable[..., Any], argnums: Positions = 0, **kwargs: Any) -> Callable[..., Any]:
    """`jacfwd` by arguments that may be sparse; the dimensions of the result are a batch.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.jacfwd(lambda x: x @ jnp.ones(2))(sparse.eye(2))
        BCOO(float32[2, 2, 2], nse=2, n_batch=1)
    """
    return _jacobian(dense_jacfwd)(fun, argnums, **kwargs)


def jacrev(fun: Callable[..., Any], argnums: Positions = 0, **kwargs: Any) -> Callable[..., Any]:
    """`jacrev` by arguments that may be sparse; the dimensions of the result are a batch.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.jacrev(lambda x: x @ jnp.ones(2))(sparse.eye(2))
        BCOO(float32[2, 2, 2], nse=2, n_batch=1)
    """
    return _jacobian(dense_jacrev)(fun, argnums, **kwargs)


_LINEAR = {"neg", "real", "imag", "conj", "copy", "convert_element_type", "reduce_precision"}
_KEEP_ZERO = {
    "abs",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cbrt",
    "ceil",
    "erf",
    "expm1",
    "floor",
    "log1p",
    "round",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
}
_INNER = {"jit": "jaxpr", "pjit": "jaxpr", "custom_jvp_call": "call_jaxpr", "checkpoint": "jaxpr"}


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """A function of dense arrays as one that takes sparse ones, and computes on what is stored.

    Args:
        f: the function, which sees arrays of the same shapes.
        use_tracer: accepted for compatibility.

    Raises:
        NotImplementedError: an operation would make a dense array of a sparse one, or has no rule.

    Example:
        >>> from minijax.experimental import sparse
        >>> sparse.sparsify(lambda x: 2 * jnp.sin(x))(sparse.eye(3))
        BCOO(float32[3, 3], nse=3)
    """

    @source.result_of(f)
    def of_sparse(*args: Any, **kwargs: Any) -> Any:
        leaves, form = tree.flatten((args, kwargs), is_leaf=is_sparse)

        def of_leaves(*dense: Any) -> Any:
            args, kwargs = tree.unflatten(form, dense)
            return f(*args, **kwargs)

        shown = [ShapeDtypeStruct(x.shape, x.dtype) if is_sparse(x) else x for x in leaves]
        staged, result = make_jaxpr(of_leaves, return_shape=True)(*shown)
        return tree.unflatten(tree.structure(result), _evaluated(staged, leaves))

    return of_sparse


def _evaluated(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    values = dict(zip(closed.jaxpr.invars, args, strict=True))
    values.update(zip(closed.jaxpr.constvars, closed.consts, strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else values[atom]

    for eqn in closed.jaxpr.eqns:
        operands = [read(atom) for atom in eqn.invars]
        given = [x for x in operands if is_sparse(x)]
        if given:
            outs = _applied(eqn, [by_places(x) for x in operands])
            if all(isinstance(x, BCSR) for x in given):
                outs = [by_rows(x) for x in outs]
        else:
            found = eqn.primitive.bind(*operands, **eqn.params)
            outs = found if eqn.primitive.multiple_results else [found]
        values.update(zip(eqn.outvars, outs, strict=True))
    return [read(atom) for atom in closed.jaxpr.outvars]


def _applied(eqn: Eqn, operands: list[Any]) -> list[Any]:
    """The results of an operation, of which an operand is sparse."""
    name, params, x = eqn.primitive.name, eqn.params, operands[0]
    if name in _INNER:
        return _evaluated(params[_INNER[name]], operands)
    if name in _LINEAR:
        return [x.replaced(eqn.primitive.bind(x.data, **params))]
    if name in _KEEP_ZERO or (name == "integer_pow" and params["y"] > 0):
        x = products.bcoo_sum_all(x)
        return [x.replaced(eqn.primitive.bind(x.data, **params))]
    if name in _RULES:
        return [_RULES[name](operands, params)]
    problem = f"sparse rule for {name} is not implemented: its result may be dense."
    fix = "sparse.todense(x) of the arguments"
    refuse("sparsify", problem, fix=fix, kind=NotImplementedError)


def _commuting(name: str) -> Callable[..., Any]:
    def rule(operands: list[Any], params: Params) -> Any:
        x, y = operands if is_sparse(operands[0]) else reversed(operands)
        return JAXSparse.operations[name](x, y)

    return rule


def _difference(operands: list[Any], params: Params) -> Any:
    x, y = operands
    return JAXSparse.operations["add"](x, -y) if is_sparse(x) else (-y) + x


def _quotient(operands: list[Any], params: Params) -> Any:
    x, y = operands
    if is_sparse(x):
        return JAXSparse.operations["div"](x, y)
    problem = "sparse rule for div is not implemented: what is not stored would divide by zero."
    refuse("sparsify", problem, fix="sparse.todense(y)", kind=NotImplementedError)


def _product(operands: list[Any], params: Params) -> Any:
    numbers, dtype = params["dimension_numbers"], params["preferred_element_type"]
    return products.bcoo_dot_general(
        *operands, dimension_numbers=numbers, preferred_element_type=dtype
    )


def _total(operands: list[Any], params: Params) -> Any:
    found = bcoo_reduce_sum(operands[0], axes=params["axes"])
    return found if found.n_sparse else found.todense()


def _joined(operands: list[Any], params: Params) -> Any:
    if not all(map(is_sparse, operands)):
        problem = "sparse arrays are joined with sparse arrays only."
        fix = "sparse.BCOO.fromdense(y)"
        refuse("sparsify", problem, fix=fix, kind=NotImplementedError)
    return bcoo_concatenate(operands, dimension=params["dimension"])


def _part(operands: list[Any], params: Params) -> Any:
    names = ("start_indices", "limit_indices", "strides")
    return bcoo_slice(operands[0], **{name: params[name] for name in names})


_RULES: dict[str, Callable[[list[Any], Params], Any]] = {
    "add": _commuting("add"),
    "add_any": _commuting("add"),
    "mul": _commuting("mul"),
    "sub": _difference,
    "div": _quotient,
    "dot_general": _product,
    "reduce_sum": _total,
    "concatenate": _joined,
    "slice": _part,
    "transpose": lambda xs, params: bcoo_transpose(xs[0], permutation=params["permutation"]),
    "reshape": lambda xs, params: bcoo_reshape(xs[0], new_sizes=params["new_sizes"]),
    "rev": lambda xs, params: bcoo_rev(xs[0], params["dimensions"]),
    "squeeze": lambda xs, params: bcoo_squeeze(xs[0], dimensions=params["dimensions"]),
}
