"""Composites by name, ragged and scaled products, sinks, and small facts of values."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.core.errors import UnexpectedTracerError

X = np.arange(3, dtype=np.float32)


def scaled_sum(x, y, *, alpha=1.0, dims=None):
    return x + y * jnp.float32(alpha)


def test_composite_is_one_operation_of_the_module():
    named = lax.composite(scaled_sum, "my.scaled_sum", 2)
    attributes = {"alpha": 2.0, "dims": [1, (True, "a")]}
    text = jax.jit(lambda x: named(x, x, **attributes)).lower(X).as_text()
    (line,) = (line for line in text.splitlines() if "composite" in line)
    assert 'stablehlo.composite "my.scaled_sum" %arg0, %arg0' in line
    assert 'composite_attributes = {alpha = 2.000000e+00 : f64, dims = [1, [true, "a"]]}' in line
    assert "version = 2 : i32" in line
    np.testing.assert_array_equal(jax.jit(lambda x: named(x, x, **attributes))(X), 3 * X)


def test_composite_leaves_out_attributes_that_are_none():
    eqn = jax.make_jaxpr(lambda x: lax.composite(scaled_sum, "a.b")(x, x, dims=None))(X).eqns[0]
    assert eqn.params["attributes"] == ()


@pytest.mark.parametrize("what", ["an attribute", "a constant"])
def test_composite_refuses_traced_values_that_are_no_operands(what):
    def call(x, traced):
        if what == "an attribute":
            return lax.composite(scaled_sum, "a.b")(x, x, alpha=traced)
        return lax.composite(lambda y: y + traced, "a.b")(x)

    with pytest.raises(UnexpectedTracerError, match=f"{what}.*traced"):
        jax.jit(call)(X, X)


def test_composite_keeps_known_constants():
    np.testing.assert_array_equal(lax.composite(lambda y: y + X, "a.b")(X), 2 * X)


def test_ragged_dot_maps_any_dimension_of_any_operand():
    rows, matrices = np.arange(12.0).reshape(4, 3), np.arange(18.0).reshape(3, 3, 2)
    sizes = np.array([[1, 2, 1], [0, 4, 0]])
    wide = np.stack([rows, rows + 1], -1)
    out = jax.jit(jax.vmap(lax.ragged_dot, (2, None, 0)))(wide, matrices, sizes)
    expected = [lax.ragged_dot(wide[..., i], matrices, sizes[i]) for i in range(2)]
    np.testing.assert_array_equal(out, np.stack(expected))


def test_ragged_numbers_are_compared_by_value():
    make = lax.RaggedDotDimensionNumbers
    listed, tupled = (
        make([[[1], [1]], [[], []]], [0], [0]),
        make((((1,), (1,)), ((), ())), (0,), (0,)),
    )
    assert (listed, hash(listed)) == (tupled, hash(tupled))
    assert repr(tupled) == (
        "RaggedDotDimensionNumbers(dot_dimension_numbers=(((1,), (1,)), ((), ())), "
        "lhs_ragged_dimensions=(0,), rhs_group_dimensions=(0,))"
    )


@pytest.mark.parametrize("kept", [False, True])
def test_dce_sink_keeps_values_in_the_jaxpr_and_if_asked_in_the_module(kept):
    def f(x):
        lax.dce_sink(lax.sin(x), prevent_mlir_dce=kept)
        return x

    jaxpr = jax.make_jaxpr(jax.jit(f))(X).eqns[0].params["jaxpr"]
    assert [str(eqn.primitive) for eqn in jaxpr.eqns] == ["sin", "dce_sink"]
    assert ("@dce_sink" in jax.jit(f).lower(X).as_text()) == kept
    np.testing.assert_array_equal(jax.jit(f)(X), X)


def test_values_tell_their_dtype_and_shapes_are_values():
    given = (1, 1.5, True, 1j, np.float64(1), np.ones(2, np.int8))
    assert [lax.dtype(x).name for x in given] == [
        "int32",
        "float32",
        "bool",
        "complex64",
        "float32",
        "int8",
    ]
    assert lax.shape_as_value((2, np.int64(3))).tolist() == [2, 3]
    assert jax.jit(lambda n: lax.shape_as_value((n, 2)))(3).tolist() == [3, 2]
    assert lax.stage(1.5).weak_type
    for call in (
        lambda: lax.dtype([1]),
        lambda: lax.shape_as_value((0.5,)),
        lambda: lax.stage("a"),
    ):
        with pytest.raises(TypeError):
            call()
