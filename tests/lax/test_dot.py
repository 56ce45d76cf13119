"""What records do not say of dots: dtypes of results, precisions, algorithms, texts of jaxprs."""

import ml_dtypes
import numpy as np
import pytest

import minijax
from minijax import lax

X = np.arange(12, dtype=np.float32).reshape(3, 4)
Y = np.arange(8, dtype=np.float32).reshape(4, 2)
BF16 = ml_dtypes.bfloat16


# Recorded from JAX 0.10.2.
@pytest.mark.feature("NP-01")
@pytest.mark.parametrize(
    ("lhs", "rhs", "expected"),
    [
        ("float16", "float32", "float32"),
        ("int8", "uint8", "int8"),
        ("uint16", "int16", "int16"),
        ("int32", "float16", "float16"),
        ("bool", "bool", "bool"),
        ("bool", "int32", "int32"),
        ("complex64", "float32", "complex64"),
        (BF16, "float32", "float32"),
        (BF16, "float16", BF16),
        ("float16", "complex64", "complex64"),
        ("int32", "uint32", "int32"),
    ],
)
def test_result_has_the_greater_of_two_dtypes(lhs, rhs, expected):
    assert lax.dot(X.astype(lhs), Y.astype(rhs)).dtype == np.dtype(expected)


@pytest.mark.parametrize(
    ("dtype", "preferred"),
    [
        ("float32", "int8"),
        ("float32", BF16),
        ("float32", "complex64"),
        ("int8", "int32"),
        ("int8", "float32"),
        ("bool", "int32"),
        ("float16", "float32"),
    ],
)
def test_preferred_type_is_that_of_the_result(dtype, preferred):
    out = lax.dot(X.astype(dtype), Y.astype(dtype), preferred_element_type=preferred)
    assert out.dtype == np.dtype(preferred)


@pytest.mark.parametrize(("dtype", "preferred"), [("int32", "int8"), ("complex64", "float16")])
def test_preferred_type_too_narrow_for_exact_results_is_refused(dtype, preferred):
    with pytest.raises(TypeError, match=r"^lax\.dot: .* is narrower"):
        lax.dot(X.astype(dtype), Y.astype(dtype), preferred_element_type=preferred)


def test_preferred_type_keeps_what_the_operands_cannot_hold():
    x = np.full((1, 300), 1, BF16)
    assert np.asarray(lax.dot(x, x.T)).item() != 300 or BF16(300) == 300
    assert np.asarray(lax.dot(x, x.T, preferred_element_type=np.float32)).item() == 300


def test_cotangents_have_the_dtypes_of_the_operands():
    x, y = X.astype(BF16), Y.astype(np.float16)
    out, vjp = minijax.vjp(lambda x, y: lax.dot(x, y, preferred_element_type=np.float32), x, y)
    assert [ct.dtype for ct in vjp(np.ones_like(out))] == [BF16, np.float16]


@pytest.mark.parametrize("preferred", [None, "float32"])
def test_weak_operands_give_a_weak_result(preferred):
    operand = minijax.jit(lambda: lax.broadcast(2.0, (4,)))()
    assert lax.dot(operand, operand, preferred_element_type=preferred).weak_type
    assert not lax.dot(X, operand, preferred_element_type=preferred).weak_type


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "c:f32[3,2] = dot_general[dimension_numbers=(([1], [0]), ([], []))] a b"),
        ({"precision": "highest"}, "precision=(Precision.HIGHEST, Precision.HIGHEST)"),
        ({"precision": ("fastest", "high")}, "precision=(Precision.DEFAULT, Precision.HIGH)"),
        ({"precision": "F32_F32_F32"}, "precision=F32_F32_F32"),
        ({"preferred_element_type": np.float32}, "preferred_element_type=float32"),
    ],
)
def test_jaxpr_shows_what_was_asked_for(options, expected):
    closed = minijax.make_jaxpr(lambda x, y: lax.dot(x, y, **options))(X, Y)
    assert expected in str(closed)


def test_default_precision_comes_from_the_configuration():
    with minijax.default_matmul_precision("float32"):
        closed = minijax.make_jaxpr(lax.dot)(X, Y)
    assert closed.eqns[0].params["precision"] == (lax.Precision.HIGHEST, lax.Precision.HIGHEST)


@pytest.mark.parametrize(
    "precision",
    [
        lax.DotAlgorithmPreset.F32_F32_F32,
        "F32_F32_F32",
        lax.DotAlgorithmPreset.BF16_BF16_F32_X6,
        lax.DotAlgorithm(np.float32, np.float32, np.float32),
    ],
)
def test_algorithm_computes_the_product(precision):
    out = lax.dot(X, Y, precision=precision)
    assert np.allclose(out, X @ Y, rtol=1e-5)


def test_algorithm_that_the_platform_lacks_is_refused():
    if minijax.default_backend() != "cpu":
        pytest.xfail("the algorithm runs here")
    with pytest.raises(ValueError, match="TF32_TF32_F32 does not run on CPUs"):
        lax.dot(X, Y, precision="TF32_TF32_F32")


# Recorded from JAX 0.10.2: where each operand's dimensions end up.
@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        ((0, None), "dimension_numbers=(([2], [0]), ([], []))"),
        ((None, 0), "dimension_numbers=(([1], [1]), ([], []))"),
        ((0, 0), "dimension_numbers=(([2], [1]), ([0], [0]))"),
    ],
)
def test_batched_dot_is_one_dot(axes, expected):
    args = [np.stack([a, a]) if axis == 0 else a for a, axis in zip((X, Y), axes, strict=True)]
    closed = minijax.make_jaxpr(minijax.vmap(lax.dot, axes))(*args)
    assert expected in str(closed)
    assert sum(eqn.primitive.name == "dot_general" for eqn in closed.eqns) == 1


def test_batched_operand_alone_gives_its_dimension_where_it_was():
    xs = np.stack([X, X + 1], 2)
    out = minijax.vmap(lax.dot, (2, None), 1)(xs, Y)
    assert np.array_equal(out, np.stack([X @ Y, (X + 1) @ Y], 1))


def test_dots_of_integers_have_no_tangents():
    _, tangent = minijax.jvp(
        lambda x: lax.dot(lax.convert_element_type(x, np.int32), Y.astype(np.int32)), (X,), (X,)
    )
    assert tangent.dtype == minijax.dtypes.float0


def test_complex_product_is_differentiated_without_conjugation():
    x, y = X * 1j, Y + 1j
    out, vjp = minijax.vjp(lax.dot, x, y)
    ct = np.ones_like(out)
    assert np.allclose(vjp(ct)[0], ct @ y.T)
