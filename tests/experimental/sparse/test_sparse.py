"""Sparse arrays of every layout compute what NumPy computes from the dense ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minijax as jax
import minijax.numpy as jnp
from minijax.experimental import sparse

pytestmark = pytest.mark.feature("EC-05")

# Each example has shapes of its own, for which some thirty programs are compiled.
few = settings(max_examples=settings().max_examples // 4)

MAT = np.array([[0, 1, 0, 2], [3, 0, 0, 0], [0, 0, 4, 0]], np.float32)


@st.composite
def arrays(draw: st.DrawFn, rank: int | None = None) -> tuple[np.ndarray, sparse.BCOO]:
    """A dense array of small integers, and the same as a sparse one of some layout."""
    rank = draw(st.integers(1, 4)) if rank is None else rank
    shape = tuple(draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank)))
    rng = np.random.default_rng(draw(st.integers(0, 100)))
    dense = rng.integers(-3, 4, shape) * (rng.random(shape) < 0.5)
    n_batch = draw(st.integers(0, rank - 1))
    n_dense = draw(st.integers(0, rank - 1 - n_batch))
    found = sparse.BCOO.fromdense(dense.astype(np.float32), n_batch=n_batch, n_dense=n_dense)
    if draw(st.booleans()):
        # Room for more, and elements that appear twice.
        found = found + found * 0
    return dense.astype(np.float32), found


@few
@given(pair=arrays())
def test_conversions_keep_elements(pair: tuple[np.ndarray, sparse.BCOO]) -> None:
    dense, found = pair
    flat = found.update_layout(n_batch=0, n_dense=0)

    for x in (found, flat, flat.T.T, flat.sort_indices(), found.sum_duplicates()):
        np.testing.assert_array_equal(x.todense(), dense)
    np.testing.assert_array_equal(flat.T.todense(), dense.T)
    np.testing.assert_array_equal(flat.reshape(-1).todense(), dense.ravel())
    axes = tuple(range(dense.ndim))
    np.testing.assert_array_equal(sparse.bcoo_rev(found, axes).todense(), np.flip(dense, axes))


@few
@given(pair=arrays(), data=st.data())
def test_sums_and_parts_equal_those_of_numpy(pair: Any, data: st.DataObject) -> None:
    dense, found = pair
    axis = tuple(data.draw(st.sets(st.integers(0, dense.ndim - 1))))
    cuts = [slice(*sorted(data.draw(st.tuples(*[st.integers(0, 3)] * 2)))) for _ in dense.shape]
    cut = tuple(cuts[: data.draw(st.integers(0, dense.ndim))])

    np.testing.assert_array_equal(sparse.todense(found.sum(axis)), dense.sum(axis))
    np.testing.assert_array_equal(found[cut].todense(), dense[cut])
    np.testing.assert_array_equal(found[0].todense(), dense[0])


@few
@given(pair=arrays(), seed=st.integers(0, 100))
def test_elementwise_results_equal_those_of_numpy(pair: Any, seed: int) -> None:
    dense, found = pair
    other = np.random.default_rng(seed).integers(1, 5, dense.shape).astype(np.float32)

    for result, expected in (
        (found * other, dense * other),
        (found * other[-1:], dense * other[-1:]),
        (found / other, dense / other),
        (found + other, dense + other),
        (found * found, dense * dense),
        (found - 2 * found, -dense),
        (abs(found), abs(dense)),
        (sparse.sparsify(jnp.sin)(found), np.sin(dense)),
    ):
        np.testing.assert_allclose(sparse.todense(result), expected, rtol=1e-6)


@pytest.mark.turns(3)
@few
@given(pair=arrays(), data=st.data())
def test_products_equal_those_of_numpy(pair: Any, data: st.DataObject) -> None:
    dense, found = pair
    axes = data.draw(st.permutations(range(dense.ndim)))
    count = data.draw(st.integers(0, dense.ndim))
    contracted = tuple(axes[:count])
    shape = [dense.shape[axis] for axis in contracted]
    other = np.random.default_rng(count).integers(-2, 3, (2, *shape)).astype(np.float32)
    numbers = ((contracted, tuple(range(1, count + 1))), ((), ()))
    expected = np.tensordot(dense, other, numbers[0])

    for y in (jnp.asarray(other), sparse.BCOO.fromdense(other)):
        product = sparse.bcoo_dot_general(found, y, dimension_numbers=numbers)
        np.testing.assert_array_equal(sparse.todense(product), expected)


@pytest.mark.turns(3)
@few
@given(pair=arrays(rank=2))
def test_rows_equal_coordinates(pair: tuple[np.ndarray, sparse.BCOO]) -> None:
    dense, found = pair
    rows = sparse.BCSR.from_bcoo(found.update_layout(n_batch=0, n_dense=0))
    vector = np.arange(1.0, 1 + dense.shape[1], dtype=np.float32)

    assert isinstance(-rows, sparse.BCSR)
    np.testing.assert_array_equal(rows.todense(), dense)
    np.testing.assert_array_equal(rows @ vector, dense @ vector)
    np.testing.assert_array_equal((rows.T @ rows).todense(), dense.T @ dense)
    np.testing.assert_array_equal((rows + rows).todense(), 2 * dense)
    counts = (np.arange(dense.shape[0])[:, None] == np.array(rows.to_bcoo().indices)[:, 0]).sum(1)
    np.testing.assert_array_equal(np.diff(rows.indptr), counts)


def test_derivatives_equal_those_of_dense_arrays() -> None:
    mat, vector = sparse.BCOO.fromdense(MAT), jnp.arange(1.0, 5)

    def loss(mat: Any, vector: Any) -> Any:
        return ((mat @ vector) ** 2).sum()

    of_mat, of_vector = sparse.grad(loss, (0, 1))(mat, vector)
    dense_mat, dense_vector = jax.grad(loss, (0, 1))(jnp.asarray(MAT), vector)

    np.testing.assert_allclose(of_mat.todense(), dense_mat * (MAT != 0))
    np.testing.assert_allclose(of_vector, dense_vector)
    second = jax.hessian(lambda data: loss(mat.replaced(data), vector))(mat.data)
    places = tuple(np.array(mat.indices).T)
    dense_second = jax.hessian(lambda m: loss(m, vector))(jnp.asarray(MAT))
    np.testing.assert_allclose(second, np.array(dense_second)[places][(slice(None), *places)])


def test_batch_of_sparse_arrays_goes_through_vmap_jit_and_grad() -> None:
    stack = np.stack([MAT, 2 * MAT])
    found = sparse.BCOO.fromdense(stack, n_batch=1)

    @jax.jit
    def losses(mats: sparse.BCOO) -> Any:
        return jax.vmap(lambda m: (m @ m.T).todense().sum())(mats)

    np.testing.assert_allclose(losses(found), [(m @ m.T).sum() for m in stack])
    slopes = sparse.grad(lambda m: losses(m).sum())(found)
    expected = 2 * np.ones((2, 3, 1)) * stack.sum(1, keepdims=True) * (stack != 0)
    np.testing.assert_allclose(slopes.todense(), expected)


def test_random_arrays_have_distinct_places() -> None:
    found = sparse.random_bcoo(jax.random.key(1), (3, 20, 30), nse=0.1, n_batch=1)

    assert (found.nse, found.dtype) == (60, np.float32)
    for indices in np.asarray(found.indices):
        assert len({tuple(row) for row in indices}) == 60
    assert (np.asarray(found.todense()) != 0).sum() == 180


def test_matrices_of_scipy_are_taken() -> None:
    scipy = pytest.importorskip("scipy.sparse").csr_matrix(MAT)

    for kind in (sparse.BCOO, sparse.BCSR):
        found = kind.from_scipy_sparse(scipy)
        np.testing.assert_array_equal(found.todense(), MAT)
        with pytest.raises(NotImplementedError, match="neither batch nor dense dimensions"):
            kind.from_scipy_sparse(scipy, n_batch=1)


def bcoo(**layout: Any) -> sparse.BCOO:
    return sparse.BCOO.fromdense(MAT, **layout)


WRONG: tuple[tuple[Callable[[], Any], type[Exception], str], ...] = (
    (lambda: bcoo(n_batch=3), ValueError, "an array of rank 2 has no such layout"),
    (lambda: jax.jit(sparse.BCOO.fromdense)(MAT), jax.errors.ConcretizationTypeError, "nse=n"),
    (lambda: jax.jit(lambda m: m.sum_duplicates())(bcoo()), TypeError, "depends on traced values"),
    (
        lambda: sparse.BCOO((np.ones(2), np.zeros((3, 2), int)), shape=(2, 2)),
        ValueError,
        r"the shapes do not fit[\s\S]*data\[nse\]",
    ),
    (lambda: sparse.BCOO((np.ones(2), np.ones(2)), shape=(2,)), TypeError, "must be integers"),
    (
        lambda: sparse.BCOO((np.ones((2, 2)), np.ones((2, 1), int)), shape=(3,)),
        ValueError,
        "the ranks do not fit",
    ),
    (
        lambda: sparse.BCSR((np.ones(2), np.zeros(2, int), np.zeros(3, int)), shape=(4, 4)),
        ValueError,
        r"the shapes do not fit[\s\S]*indptr\[batch, rows \+ 1\]",
    ),
    (
        lambda: sparse.BCSR((np.ones(2), np.zeros(2), np.zeros(3, int)), shape=(2, 4)),
        TypeError,
        "must be integers",
    ),
    (lambda: sparse.BCSR.fromdense(MAT[0]), ValueError, "two dimensions have to be left"),
    (lambda: sparse.BCSR.from_bcoo(bcoo()[0]), NotImplementedError, "two sparse dimensions"),
    (lambda: bcoo() @ np.ones(3), TypeError, "differ in size"),
    (lambda: bcoo() @ 2.0, ValueError, "scalars have no product"),
    (lambda: bcoo() + np.ones(4), NotImplementedError, "would be dense"),
    (lambda: bcoo() + bcoo().T, ValueError, "incompatible shapes"),
    (lambda: bcoo() * np.ones(3), ValueError, "not broadcast to the shape"),
    (lambda: 1 / bcoo(), TypeError, "unsupported operand"),
    (lambda: bcoo() / bcoo(), NotImplementedError, "divided by zero"),
    (lambda: bcoo() ** 0, NotImplementedError, "only a positive power keeps zeros"),
    (lambda: np.asarray(bcoo()), TypeError, r"would make it dense[\s\S]*x.todense\(\)"),
    (lambda: bcoo(n_batch=1).T, NotImplementedError, "with their like only"),
    (lambda: bcoo().transpose((0, 0)), TypeError, "no permutation"),
    (lambda: bcoo().update_layout(n_batch=1), sparse.SparseEfficiencyError, "more memory"),
    (lambda: bcoo().reshape(5), ValueError, "numbers of elements differ"),
    (lambda: bcoo(n_dense=1).reshape(12), NotImplementedError, "batch dimensions stay apart"),
    (lambda: bcoo()[3], IndexError, "index 3 is out of range for dimension 0 of size 3"),
    (lambda: bcoo()[0, 0, 0], IndexError, "more indices than dimensions"),
    (lambda: bcoo()[::-1], NotImplementedError, "slices of sparse arrays go forward"),
    (lambda: bcoo()[np.array([0])], NotImplementedError, "integers and slices that are known"),
    (lambda: sparse.bcoo_concatenate([], dimension=0), ValueError, "nothing to join"),
    (
        lambda: sparse.bcoo_concatenate([bcoo(), bcoo()[0]], dimension=0),
        ValueError,
        "the shapes differ",
    ),
    (lambda: sparse.bcoo_squeeze(bcoo(), dimensions=[0]), ValueError, "only dimensions of size 1"),
    (lambda: sparse.eye(3, sparse_format="csc"), ValueError, "unknown format 'csc'"),
    (
        lambda: sparse.random_bcoo(jax.random.key(0), (2, 2), nse=5),
        ValueError,
        "not so many places",
    ),
    (
        lambda: sparse.sparsify(jnp.cos)(bcoo()),
        NotImplementedError,
        "sparse rule for cos is not implemented",
    ),
    (
        lambda: sparse.sparsify(lambda x: 1 / x)(bcoo()),
        NotImplementedError,
        "sparse rule for div is not implemented",
    ),
    (
        lambda: sparse.sparsify(lambda x: jnp.concatenate([x, jnp.ones((3, 4))]))(bcoo()),
        NotImplementedError,
        "joined with sparse arrays only",
    ),
    (lambda: len(sparse.BCOO((np.ones(1), np.zeros((1, 0), int)), shape=())), TypeError, "length"),
)


@pytest.mark.parametrize(("call", "kind", "message"), WRONG, ids=[row[2] for row in WRONG])
def test_wrong_use_is_refused(call: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_inefficient_layout_warns_if_asked_to() -> None:
    with pytest.warns(sparse.SparseEfficiencyWarning, match="take more memory"):
        bcoo().update_layout(n_dense=1, on_inefficient="warn")
