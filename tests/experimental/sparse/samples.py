"""Calls of `experimental.sparse`, which run on minijax and on JAX."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

DENSE = np.array([[0, 1, 0, 2], [3, 0, 0, 0], [0, 0, 4, 0]], np.float32)
VECTOR = np.array([1, 10, 100, 1000], np.float32)
STACK = np.stack([DENSE, 2 * DENSE + (DENSE == 4), np.zeros_like(DENSE)])


class Library:
    """The modules of one library."""

    def __init__(self, name: str) -> None:
        self.jax = importlib.import_module(name)
        self.numpy = importlib.import_module(f"{name}.numpy")
        self.sparse = importlib.import_module(f"{name}.experimental.sparse")

    def bcoo(self, dense: np.ndarray = DENSE, **layout: Any) -> Any:
        """A sparse array by coordinates."""
        return self.sparse.BCOO.fromdense(self.numpy.asarray(dense), **layout)

    def bcsr(self, dense: np.ndarray = DENSE, **layout: Any) -> Any:
        """A sparse array by rows."""
        return self.sparse.BCSR.fromdense(self.numpy.asarray(dense), **layout)

    def total(self, x: Any) -> Any:
        """A loss of a sparse argument."""
        return (self.numpy.asarray([1.0, 2.0, 4.0]) * (x @ VECTOR)).sum()

    def sparsified(self, function: Callable[..., Any], *args: Any) -> Any:
        """The result of a function of dense arrays."""
        return self.sparse.sparsify(function)(*args)


def _documented(x: Library) -> Any:
    """The example of JAX's documentation: a function of dense arrays, and its derivative."""
    mat, v = x.bcoo(), x.numpy.asarray(VECTOR)

    def f(mat: Any, v: Any) -> Any:
        return -(x.numpy.sin(mat) @ v).sum()

    value = x.jax.jit(x.sparse.sparsify(f))(mat, v)
    return value, x.sparse.grad(x.sparse.sparsify(f))(mat, v)


def _duplicates(x: Library) -> Any:
    indices = np.array([[2, 0], [0, 1], [2, 0], [5, 5], [0, 1]], np.int32)
    return x.sparse.BCOO((np.arange(1.0, 6, dtype=np.float32), indices), shape=(3, 2))


BUFFERS: dict[str, Callable[[Library], Any]] = {
    "bcoo": lambda x: x.bcoo(),
    "bcoo nse": lambda x: x.bcoo(nse=6),
    "bcoo too few": lambda x: x.bcoo(nse=2),
    "bcoo batch": lambda x: x.bcoo(n_batch=1),
    "bcoo dense": lambda x: x.bcoo(n_dense=1),
    "bcoo all batch": lambda x: x.bcoo(STACK, n_batch=1, n_dense=1),
    "bcoo indices": lambda x: x.bcoo(index_dtype=np.int16),
    "bcsr": lambda x: x.bcsr(),
    "bcsr nse": lambda x: x.bcsr(nse=6),
    "bcsr batch": lambda x: x.bcsr(STACK, n_batch=1),
    "bcsr dense": lambda x: x.bcsr(np.stack([DENSE, 2 * DENSE], -1), n_dense=1),
    "bcsr from bcoo": lambda x: x.sparse.BCSR.from_bcoo(x.bcoo().T),
    "bcoo from bcsr": lambda x: x.bcsr().to_bcoo(),
    "transposed": lambda x: x.bcoo().T,
    "sorted": lambda x: x.bcoo().T.sort_indices(),
    "duplicates": lambda x: _duplicates(x).sum_duplicates(),
    "eye": lambda x: x.sparse.eye(3, 5, k=1),
    "empty": lambda x: x.sparse.empty((3, 4)),
    "reshaped": lambda x: x.bcoo().reshape(2, 6),
    "scaled": lambda x: 2 * x.bcoo(),
    "scaled rows": lambda x: x.bcoo() * np.array([[1], [2], [3]], np.float32),
    "sine": lambda x: x.sparsified(x.numpy.sin, x.bcoo()),
    "sine of rows": lambda x: x.sparsified(x.numpy.sin, x.bcsr()),
    "gradient": lambda x: x.sparse.grad(x.total)(x.bcoo()),
    "gradient by rows": lambda x: x.sparse.grad(x.total)(x.bcsr()),
    "jacfwd": lambda x: x.sparse.jacfwd(lambda m: m @ VECTOR)(x.bcoo()),
    "jacrev": lambda x: x.sparse.jacrev(lambda m: m @ VECTOR)(x.bcoo()),
    "extract": lambda x: x.sparse.bcoo_extract(x.bcoo(), DENSE * 3),
}
"""Results of which the buffers are compared."""

VALUES: dict[str, Callable[[Library], Any]] = {
    "duplicates, with room": lambda x: _duplicates(x).sum_duplicates(nse=4),
    "matvec": lambda x: x.bcoo() @ VECTOR,
    "matmat": lambda x: x.bcoo() @ DENSE.T,
    "vecmat": lambda x: x.numpy.asarray(VECTOR[:3]) @ x.bcoo(),
    "sparse product": lambda x: x.bcoo() @ x.bcoo().T,
    "by rows": lambda x: x.bcsr() @ VECTOR,
    "by rows, matrix": lambda x: x.bcsr() @ DENSE.T,
    "batched product": lambda x: x.bcoo(STACK, n_batch=1) @ STACK.transpose(0, 2, 1),
    "sum": lambda x: [x.bcoo().sum(), x.bcoo().sum(0), x.bcoo().sum(axis=(1,))],
    "elements": lambda x: [x.bcoo() * x.bcoo(), x.bcoo() + x.bcoo(), x.bcoo() - x.bcoo().T.T],
    "dense": lambda x: [x.bcoo() * DENSE, x.bcoo() + DENSE, x.bcoo() / (DENSE + 1)],
    "unary": lambda x: [-x.bcoo(), abs(x.bcoo()), x.bcoo() ** 2, x.bcoo().astype(np.int32)],
    "indexed": lambda x: [x.bcoo()[0], x.bcoo()[1:], x.bcoo()[:, ::2], x.bcoo()[2, 2]],
    "concatenated": lambda x: x.sparse.bcoo_concatenate([x.bcoo(), x.bcoo()], dimension=1),
    "squeezed": lambda x: x.sparse.bcoo_squeeze(x.bcoo(DENSE[None]), dimensions=(0,)),
    "layout": lambda x: x.bcoo(STACK, n_batch=1, n_dense=1).update_layout(n_batch=0, n_dense=0),
    "wide layout": lambda x: x.bcoo().update_layout(n_batch=1, on_inefficient=None),
    "vmap": lambda x: x.jax.vmap(lambda m: m @ VECTOR)(x.bcoo(STACK, n_batch=1)),
    "vmap of rows": lambda x: x.jax.vmap(lambda m: m @ VECTOR)(x.bcsr(STACK, n_batch=1)),
    "vmap of results": lambda x: x.jax.vmap(lambda m: m.T)(x.bcoo(STACK, n_batch=1)),
    "jit": lambda x: x.jax.jit(lambda m, v: (m @ v, m.T))(x.bcoo(), VECTOR),
    "documented": _documented,
    "sampled": lambda x: x.sparse.bcoo_dot_general_sampled(
        x.numpy.asarray(DENSE),
        x.numpy.asarray(DENSE.T),
        x.bcoo(DENSE @ DENSE.T).indices,
        dimension_numbers=(((1,), (0,)), ((), ())),
    ),
    "sparsified sum": lambda x: x.sparsified(lambda m: m.sum(1), x.bcoo()),
    "sparsified product": lambda x: x.sparsified(lambda m, v: m @ v, x.bcoo(), VECTOR),
    "sparsified binary": lambda x: x.sparsified(lambda m, n: m * n - m / 2, x.bcoo(), x.bcoo()),
    "sparsified parts": lambda x: x.sparsified(
        lambda m: x.numpy.concatenate([m[1:], m[:1]], 0), x.bcoo()
    ),
    "sparsified logarithm": lambda x: x.sparsified(
        lambda m: x.numpy.log1p(m).T.reshape(3, 4), x.bcoo()
    ),
}
"""Results of which the dense arrays are compared."""


def outcome(library: Library, group: str, name: str) -> list[np.ndarray]:
    """The arrays of a result."""
    sparse = library.sparse.JAXSparse
    if group == "buffers":
        found = BUFFERS[name](library)
        return [np.asarray(x) for x in library.jax.tree.leaves(found)]
    found = VALUES[name](library)
    leaves = library.jax.tree.leaves(found, is_leaf=lambda x: isinstance(x, sparse))
    return [np.asarray(x.todense() if isinstance(x, sparse) else x) for x in leaves]


GROUPS = {"buffers": BUFFERS, "values": VALUES}
