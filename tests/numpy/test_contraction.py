"""Products of arrays are NumPy's, in every rank and dtype; their derivatives are theirs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minijax
import minijax.numpy as jnp
from tests.numpy import facts

FACTS = facts.load("contraction")
NAMES = facts.namespace(minijax, FACTS)


def array(*shape: int, dtype: str = "float32", offset: int = 0) -> np.ndarray[Any, Any]:
    """Small whole numbers, which all dtypes but bool hold exactly, and so do their products."""
    values = (np.arange(int(np.prod(shape))) + offset) % 5
    return values.reshape(shape).astype(dtype)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("expression", FACTS.answers)
def test_product_gives_what_jax_gives(expression: str) -> None:
    facts.check(expression, FACTS, NAMES)


# Pairs of shapes that fit, and the functions that take them.
MATMUL_SHAPES = [
    ((3,), (3,)),
    ((3,), (3, 2)),
    ((4, 3), (3,)),
    ((4, 3), (3, 2)),
    ((3,), (5, 3, 2)),
    ((5, 4, 3), (3,)),
    ((4, 3), (5, 3, 2)),
    ((5, 4, 3), (3, 2)),
    ((5, 4, 3), (5, 3, 2)),
    ((1, 4, 3), (5, 3, 2)),
    ((5, 4, 3), (1, 3, 2)),
    ((6, 1, 4, 3), (5, 3, 2)),
    ((6, 1, 4, 3), (1, 5, 3, 2)),
    ((6, 5, 4, 3), (6, 5, 3, 2)),
    ((1, 1, 4, 3), (6, 5, 3, 2)),
    ((1, 3), (2, 5, 3, 2)),
    ((0, 3), (3, 2)),
    ((4, 0), (0, 2)),
]
DOT_SHAPES = [
    *((a, b) for a, b in MATMUL_SHAPES if len(b) <= 2 or len(a) <= 2),
    ((), ()),
    ((), (4, 3)),
    ((4, 3), ()),
    ((5, 4, 3), (6, 5, 3, 2)),
]


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize(("left", "right"), MATMUL_SHAPES)
def test_matmul_of_any_ranks_is_that_of_numpy(left: Any, right: Any) -> None:
    a, b = array(*left), array(*right, offset=2)
    for found in (jnp.matmul(a, b), minijax.jit(jnp.matmul)(a, b), jnp.asarray(a) @ b):
        np.testing.assert_array_equal(np.asarray(found), a @ b)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize(("left", "right"), DOT_SHAPES)
def test_dot_of_any_ranks_is_that_of_numpy(left: Any, right: Any) -> None:
    a, b = array(*left), array(*right, offset=2)
    np.testing.assert_array_equal(np.asarray(jnp.dot(a, b)), np.dot(a, b))


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize(("left", "right"), MATMUL_SHAPES)
def test_cotangents_of_matmul_are_matmuls(left: Any, right: Any) -> None:
    a, b = array(*left), array(*right, offset=2)
    weights = array(*(a @ b).shape, offset=1)

    def loss(a: Any, b: Any) -> Any:
        return (jnp.matmul(a, b) * weights).sum()

    gradients = minijax.grad(loss, (0, 1))(a, b)
    for x, gradient, argnum in zip((a, b), gradients, (0, 1), strict=True):
        direction = array(*x.shape, offset=3)
        tangents = [np.zeros_like(a), np.zeros_like(b)]
        tangents[argnum] = direction
        expected = minijax.jvp(loss, (a, b), tuple(tangents))[1]
        np.testing.assert_allclose((gradient * direction).sum(), expected)


DTYPES = ["bool", "uint8", "int8", "int32", "float16", "bfloat16", "float32", "complex64"]


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize(("x", "y"), [*itertools.combinations_with_replacement(DTYPES, 2)])
def test_product_of_two_dtypes_is_that_of_the_promoted_operands(x: str, y: str) -> None:
    a, b = jnp.asarray(array(2, 3), x), jnp.asarray(array(3, 2, offset=1), y)
    dtype = jnp.promote_types(x, y)
    found = jnp.matmul(a, b)
    assert found.dtype == dtype
    wide = complex if x != "bool" or y != "bool" else bool
    expected = np.asarray(a).astype(wide) @ np.asarray(b).astype(wide)
    np.testing.assert_array_equal(np.asarray(found).astype(wide), expected)


EINSUMS = [
    ("ij->ji", [(2, 3)]),
    ("ij->", [(2, 3)]),
    ("ij->i", [(2, 3)]),
    ("ii", [(3, 3)]),
    ("ii->i", [(3, 3)]),
    ("iji->j", [(3, 2, 3)]),
    ("iij->ij", [(3, 3, 2)]),
    ("iijj->ji", [(3, 3, 2, 2)]),
    ("iiij->ij", [(2, 2, 2, 3)]),
    ("...i->...", [(2, 3, 4)]),
    ("i...j->j...i", [(2, 3, 4)]),
    ("ba", [(2, 3)]),
    (" i j , j k -> i k", [(2, 3), (3, 4)]),
    ("i,i->", [(3,), (3,)]),
    ("i,i->i", [(3,), (3,)]),
    ("i,j", [(3,), (2,)]),
    (",ij->ji", [(), (2, 3)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("ij,kj->ki", [(2, 3), (4, 3)]),
    ("ij,ij->j", [(2, 3), (2, 3)]),
    ("ij,kl->ljki", [(2, 3), (4, 5)]),
    ("ijk,ik->j", [(2, 3, 4), (2, 4)]),
    ("ii,ij->j", [(3, 3), (3, 2)]),
    ("bqhd,bkhd->bhqk", [(2, 3, 2, 4), (2, 5, 2, 4)]),
    ("...ij,...jk->...ik", [(5, 2, 3), (3, 4)]),
    ("...ij,...jk->...ik", [(4, 1, 2, 3), (5, 3, 2)]),
    ("...,...->...", [(2, 1), (3,)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
    ("ij,jk,kl,l->i", [(2, 3), (3, 4), (4, 2), (2,)]),
    ("i,i,i->i", [(3,), (3,), (3,)]),
    ("ij,ik,il->jkl", [(2, 3), (2, 2), (2, 4)]),
    ("a,b,c,d", [(2,), (3,), (2,), (2,)]),
    ("ij,jk", [(2, 1), (4, 3)]),
    ("ij,jk->ik", [(2, 4), (1, 3)]),
    ("ij,ij", [(1, 4), (2, 1)]),
    ("...i,...i", [(2, 1, 4), (1, 3, 1)]),
    ("ij,jk,kl->il", [(2, 1), (4, 1), (3, 2)]),
]


def operands(shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray[Any, Any]]:
    return [array(*shape, offset=i) for i, shape in enumerate(shapes)]


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize(("subscripts", "shapes"), EINSUMS)
def test_einsum_is_that_of_numpy(subscripts: str, shapes: Any) -> None:
    arrays = operands(shapes)
    expected = np.einsum(subscripts, *arrays)
    found = jnp.einsum(subscripts, *arrays)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize(("subscripts", "shapes"), EINSUMS)
def test_gradient_of_einsum_agrees_with_forward_mode(subscripts: str, shapes: Any) -> None:
    arrays = tuple(operands(shapes))

    def loss(*arrays: Any) -> Any:
        return (jnp.einsum(subscripts, *arrays) ** 2).sum()

    directions = tuple(np.ones_like(x) for x in arrays)
    expected = minijax.jvp(loss, arrays, directions)[1]
    found = minijax.grad(loss, tuple(range(len(arrays))))(*arrays)
    np.testing.assert_allclose(sum(float(x.sum()) for x in found), expected, rtol=1e-5)


@st.composite
def equations(draw: st.DrawFn) -> tuple[str, list[tuple[int, ...]]]:
    """Subscripts of one to three operands, and shapes that fit them."""
    sizes = dict(
        zip("abcd", draw(st.lists(st.integers(1, 3), min_size=4, max_size=4)), strict=True)
    )
    terms = draw(st.lists(st.text("abcd", max_size=4), min_size=1, max_size=3))
    names = sorted(set("".join(terms)))
    result = draw(st.permutations(names))[: draw(st.integers(0, len(names)))]
    return f"{','.join(terms)}->{''.join(result)}", [tuple(sizes[n] for n in t) for t in terms]


@given(case=equations())
def test_einsum_of_any_subscripts_is_that_of_numpy(case: Any) -> None:
    subscripts, shapes = case
    arrays = operands(shapes)
    found = jnp.einsum(subscripts, *arrays)
    np.testing.assert_array_equal(np.asarray(found), np.einsum(subscripts, *arrays))


@pytest.mark.parametrize("optimize", [True, False, "optimal", "greedy", [(0, 2), (0, 1)]])
def test_order_of_contraction_does_not_change_einsum(optimize: Any) -> None:
    arrays = operands([(2, 3), (3, 4), (4, 2)])
    found = jnp.einsum("ij,jk,kl->il", *arrays, optimize=optimize)
    np.testing.assert_array_equal(np.asarray(found), np.einsum("ij,jk,kl->il", *arrays))


def test_einsum_path_is_that_of_numpy() -> None:
    arrays = operands([(2, 3), (3, 4), (4, 2)])
    path, _ = jnp.einsum_path("ij,jk,kl->il", *arrays, optimize="optimal")
    expected = np.einsum_path("ij,jk,kl->il", *arrays, optimize="optimal")[0]
    assert path == expected[1:]


def test_two_operands_are_one_dot() -> None:
    jaxpr = minijax.make_jaxpr(lambda a, b: jnp.einsum("bhqd,bhkd->bhqk", a, b))(
        *operands([(2, 3, 4, 5), (2, 3, 6, 5)])
    )
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["dot_general"]


def test_operands_of_different_dtypes_are_not_converted_before_a_dot() -> None:
    jaxpr = minijax.make_jaxpr(jnp.matmul)(array(2, 3, dtype="int32"), array(3, 2))
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["dot_general"]


def test_precision_is_that_of_the_dot() -> None:
    jaxpr = minijax.make_jaxpr(lambda a, b: jnp.matmul(a, b, precision="highest"))(
        array(2, 3), array(3, 2)
    )
    highest = minijax.lax.Precision.HIGHEST
    assert jaxpr.eqns[0].params["precision"] in (highest, (highest, highest))


def test_preferred_element_type_is_that_of_the_result() -> None:
    a = jnp.ones((2, 2), jnp.int8)
    products = [
        f(a, a, preferred_element_type=jnp.int32)
        for f in (jnp.dot, jnp.matmul, jnp.inner, jnp.tensordot, jnp.vdot, jnp.vecdot)
    ]
    assert {str(x.dtype) for x in products} == {"int32"}


def test_einsum_multiplies_by_the_function_that_is_given() -> None:
    calls = []

    def multiply(*args: Any, **kwargs: Any) -> Any:
        calls.append(args[2])
        return minijax.lax.dot_general(*args, **kwargs)

    jnp.einsum("ij,jk->ik", array(2, 3), array(3, 2), _dot_general=multiply)
    assert len(calls) == 1


def test_repeated_eager_einsum_compiles_once() -> None:
    arrays = operands([(2, 37), (37, 3)])
    jnp.einsum("ij,jk->ik", *arrays)
    before = minijax.cache_stats()["compile"].misses
    jnp.einsum("ij,jk->ik", *arrays)
    assert minijax.cache_stats()["compile"].misses == before


@pytest.mark.feature("NP-01")
def test_dots_are_of_the_dtype_of_products_and_as_weak() -> None:
    whole, narrow = np.arange(3, dtype=np.int32), np.arange(3, dtype=np.uint8)
    weak = {2: jnp.full(3, 2), 2.5: jnp.full(3, 2.5)}
    for x, y in itertools.product((whole, narrow, *weak.values()), (2, 2.5)):
        product = jnp.multiply(x, y)
        for out in (jnp.dot(x, y), jnp.inner(x, y), jnp.tensordot(x, y, 0)):
            assert (out.aval, out.tolist()) == (product.aval, product.tolist())
        vectors = (jnp.matmul(x, weak[y]), jnp.vdot(x, weak[y]), jnp.einsum("i,i", x, weak[y]))
        for out in vectors:
            assert (out.dtype, out.weak_type) == (product.dtype, product.weak_type)
            assert out == product.sum()


ERRORS = {
    "jnp.matmul(2.0, a)": (ValueError, "fix +numpy.multiply for scalars"),
    "jnp.matmul(a, a)": (TypeError, "a: f32\\[2,3\\] +b: f32\\[2,3\\]\n.*they are 3 and 2"),
    "jnp.matmul(jnp.stack([a, a]), jnp.stack([a.T] * 3))": (ValueError, "do not fit together"),
    "jnp.dot(a, a)": (TypeError, "differ"),
    "jnp.dot(a, [1.0])": (TypeError, "fix +numpy.asarray"),
    "jnp.dot(a, a.T, precision='wrong')": (ValueError, "wrong"),
    "jnp.dot(a, a.T, preferred_element_type='wrong')": (TypeError, "wrong"),
    "jnp.tensordot(a, a, 3)": (TypeError, "axes=3 exceeds a rank"),
    "jnp.tensordot(a, a, ((0,), (0, 1)))": (TypeError, "differ in length"),
    "jnp.matvec(a, a[:, 0])": (ValueError, "2 and 1 dimensions at least"),
    "jnp.outer(a, a, out=a)": (NotImplementedError, "leave out= away"),
    "jnp.einsum('ij,jk', a, a)": (ValueError, "'j' stands for sizes 3 and 2"),
    "jnp.einsum('ijk', a)": (ValueError, "'ijk' names 3 dimensions of 2"),
    "jnp.einsum('ij->ik', a)": (ValueError, "do not fit the operands"),
    "jnp.einsum('ij->ii', a)": (ValueError, "do not fit the operands"),
    "jnp.einsum('ij,ij', a)": (ValueError, "do not fit the operands"),
}


@pytest.mark.parametrize("expression", ERRORS)
def test_error_says_what_does_not_fit(expression: str) -> None:
    kind, text = ERRORS[expression]
    names = {"jnp": jnp, "a": jnp.asarray(array(2, 3))}
    with pytest.raises(kind, match=text):
        eval(expression, names)


@pytest.mark.feature("NP-01")
def test_a_diagonal_is_of_one_size() -> None:
    with pytest.raises(ValueError, match="don't match"):
        np.einsum("ii", np.ones((4, 1)))
    with pytest.raises(ValueError, match="'i' stands for sizes 4 and 1"):
        jnp.einsum("ii", np.ones((4, 1)))
