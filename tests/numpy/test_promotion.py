"""Operands become arrays of one dtype and rank, as JAX has it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as numpy_strategies

import minijax
import minijax.numpy as jnp
import minijax.scipy.fft
from minijax.core import config, dtypes

# What JAX 0.10.2 answers for every pair of kinds; "~" marks weak types.
RECORDED = json.loads((Path(__file__).parent / "result_types.json").read_text(encoding="utf-8"))
KINDS = RECORDED["kinds"]
PYTHON_SCALARS = {"True": True, "int": 2, "float": 2.5, "complex": 1j}


def operand(kind: str) -> Any:
    if kind in PYTHON_SCALARS:
        return PYTHON_SCALARS[kind]
    if kind.startswith("~"):
        return jnp.full((2,), 1 if "int" in kind else 1.0)
    return jnp.ones((2,), kind)


def result_type(name: str, *kinds: str) -> str:
    """The type of a result as the table writes it; or the name of the error."""
    operands = [operand(kind) for kind in kinds]
    arrays = [x for x in operands if hasattr(x, "aval")]

    def call(*traced: Any) -> Any:
        given = iter(traced)
        return getattr(jnp, name)(*(next(given) if hasattr(x, "aval") else x for x in operands))

    try:
        aval = minijax.make_jaxpr(call)(*arrays).out_avals[0]
    except (TypeError, ValueError) as error:
        return type(error).__name__
    is_weak = aval.weak_type and aval.dtype != np.bool_
    return ("~" if is_weak else "") + str(aval.dtype)


@pytest.mark.feature("CR-13")
@pytest.mark.parametrize("name", RECORDED["binary"])
def test_binary_functions_promote_as_jax(name: str) -> None:
    found = [" ".join(result_type(name, a, b) for b in KINDS) for a in KINDS]
    assert found == RECORDED["binary"][name]


@pytest.mark.feature("CR-13")
@pytest.mark.parametrize("name", RECORDED["unary"])
def test_unary_functions_promote_as_jax(name: str) -> None:
    assert " ".join(result_type(name, kind) for kind in KINDS) == RECORDED["unary"][name]


@pytest.mark.feature("CR-13")
@pytest.mark.parametrize("name", RECORDED["reductions"])
def test_reductions_promote_as_jax(name: str) -> None:
    assert " ".join(result_type(name, kind) for kind in KINDS) == RECORDED["reductions"][name]


def jaxpr_text(function: Any, *args: Any) -> str:
    return " ".join(str(minijax.make_jaxpr(function)(*args)).split())


def test_python_scalar_becomes_literal_of_array_dtype() -> None:
    text = jaxpr_text(lambda x: x + 1, jnp.ones(3))
    assert text == "{ lambda ; a:f32[3]. let b:f32[3] = add a 1.0:f32[] in (b,) }"


def test_float_beside_integers_converts_weakly() -> None:
    text = jaxpr_text(lambda x: x + 1.5, jnp.arange(3))
    assert "convert_element_type[new_dtype=float32 weak_type=True] a" in text


def test_lower_rank_gets_leading_dimensions() -> None:
    text = jaxpr_text(jnp.add, jnp.ones(3), jnp.ones((2, 3)))
    assert "b:f32[2,3]. let c:f32[1,3] = broadcast_in_dim[broadcast_dimensions=(1,)] a" in text


def test_integers_beyond_a_narrow_dtype_wrap() -> None:
    assert int(jnp.int8(1) + 300) == 45


@pytest.mark.parametrize("bad", [[1, 2], (1, 2), None, "a", object()])
def test_functions_refuse_what_is_no_array(bad: Any) -> None:
    with pytest.raises(TypeError):
        jnp.add(jnp.ones(2), bad)


def test_refusal_of_lists_names_the_function_and_the_remedy() -> None:
    with pytest.raises(TypeError, match=r"numpy\.add: .*\n(.*\n)*.*numpy\.asarray"):
        minijax.jit(lambda x: jnp.add(x, [1, 2]))(jnp.ones(2))


def test_incompatible_shapes_are_refused() -> None:
    with pytest.raises(TypeError, match="do not fit together"):
        jnp.add(jnp.ones((2, 3)), jnp.ones((4, 3)))


def test_objects_that_stand_for_arrays_are_taken() -> None:
    class Standing:
        def __jax_array__(self) -> Any:
            return jnp.arange(3.0)

    staged = minijax.make_jaxpr(lambda x: jnp.add(x, Standing()))(jnp.ones(3))
    assert staged.out_avals[0].shape == (3,)


def test_strict_promotion_refuses_two_dtypes() -> None:
    with config.numpy_dtype_promotion("strict"), pytest.raises(ValueError, match="strict"):
        jnp.add(jnp.ones(2), jnp.ones(2, "int32"))


def test_strict_promotion_takes_python_scalars() -> None:
    with config.numpy_dtype_promotion("strict"):
        assert (jnp.ones(2) + 1).dtype == jnp.float32


def test_rank_promotion_can_be_refused() -> None:
    with (
        config.numpy_rank_promotion("raise"),
        pytest.raises(ValueError, match="different ranks"),
    ):
        jnp.add(jnp.ones(3), jnp.ones((2, 3)))


def test_rank_promotion_can_warn() -> None:
    with config.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="ranks"):
        jnp.add(jnp.ones(3), jnp.ones((5, 3)))


def test_scalars_are_no_promotion_of_rank() -> None:
    with config.numpy_rank_promotion("raise"):
        assert (jnp.ones(3) + jnp.float32(1)).shape == (3,)


@given(numpy_strategies.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3))
def test_broadcasting_is_that_of_numpy(shapes: numpy_strategies.BroadcastableShapes) -> None:
    x, y = (np.arange(np.prod(s), dtype=np.float32).reshape(s) for s in shapes.input_shapes)
    np.testing.assert_array_equal(jnp.subtract(x, y), np.subtract(x, y))


# What JAX 0.10.2 answers with 64-bit types on, where operands of two dtypes meet in stages.
WIDE = {
    "jnp.convolve(i64, i64)": "float64",
    "jnp.correlate(i64, i8)": "float64",
    "jnp.polymul(i8, i8)": "float32",
    "jnp.argpartition(f16, 1)": "int32",
    "jnp.setdiff1d(i8, i64)": "int8",
    "jnp.histogram(i8, weights=f16)[1]": "float16",
    "jnp.histogram(bf16, weights=i64)[0]": "bfloat16",
    "jnp.histogram2d(f16, f16)[0]": "int64",
    "jnp.histogram2d(f32, f32, weights=f16)[0]": "float32",
    "jnp.average(i8, weights=f16)": "float16",
    "jnp.vander(i8)": "int8",
}


@pytest.mark.feature("CR-13")
def test_results_of_several_stages_are_of_the_dtypes_of_jax() -> None:
    short = {"i": "int", "f": "float", "bf": "bfloat"}
    kinds = ["i8", "i64", "f16", "f32", "bf16"]
    with config.enable_x64(True):
        names = {
            k: jnp.array([1, 2, 3], short[k.rstrip("0123456789")] + k.lstrip("ibf")) for k in kinds
        }
        found = {call: str(eval(call, {"jnp": jnp, **names}).dtype) for call in WIDE}
    assert found == WIDE


X, SHORT = jnp.ones((2, 3)), jnp.ones((2, 3), jnp.float16)
COMBINED: dict[str, Callable[[Any, Any], Any]] = {
    "operator": lambda x, y: x + y,
    "reflected": lambda x, y: np.asarray(x) * y,
    "function": jnp.add,
    "method": lambda x, y: x.dot(y.T),
    "jit": minijax.jit(jnp.subtract),
    "vmap": minijax.vmap(jnp.multiply),
    "cond": lambda x, y: minijax.lax.cond(True, jnp.add, jnp.subtract, x, y),
    "tree.map": lambda x, y: minijax.tree.map(jnp.add, x, y),
    "where": lambda x, y: jnp.where(x > 0, x, y),
    "power": lambda x, y: x**y,
    "einsum": lambda x, y: jnp.einsum("ij,ij", x, y),
    "append": jnp.append,
    "concat": lambda x, y: jnp.concat([x, y]),
    "allclose": jnp.allclose,
    "clip": jnp.clip,
    "linalg": lambda x, y: jnp.linalg.matmul(x, y.T),
}


@pytest.mark.feature("UX-03")
@pytest.mark.parametrize("name", COMBINED)
def test_strict_settings_refuse_what_users_combine(name: str) -> None:
    with config.numpy_dtype_promotion("strict"):
        jnp.std(SHORT, dtype=jnp.float32)
        for _ in range(2):
            with pytest.raises(dtypes.TypePromotionError, match="'strict'"):
                COMBINED[name](X, SHORT)


@pytest.mark.feature("UX-03")
@pytest.mark.parametrize(
    "call", [lambda f, *args: f(*args), lambda f, *args: minijax.jit(f)(*args)]
)
@pytest.mark.parametrize("add", [jnp.add, lambda x, y: x + y])
def test_refusals_do_not_depend_on_what_the_library_has_called_before(
    call: Callable[..., Any], add: Callable[..., Any]
) -> None:
    path = Path(minijax.__file__).parent / "numpy" / "imagined.py"
    scope: dict[str, Any] = {"jnp": jnp}
    text = "def of_library(x, y): return jnp.add(x, y) * (x + y)"
    exec(compile(text, path, "exec"), scope)
    x, y = jnp.ones((2, 7)), jnp.ones(7)
    with config.numpy_rank_promotion("raise"):
        for _ in range(2):
            assert call(scope["of_library"], x, y).shape == (2, 7)
            with pytest.raises(ValueError, match="different ranks"):
                call(add, x, y)


@pytest.mark.feature("UX-03")
def test_what_the_library_broadcasts_is_no_reason_to_warn() -> None:
    x = jnp.ones((2, 3))
    with config.numpy_rank_promotion("warn"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert minijax.scipy.fft.dct(x).shape == (2, 3)


@pytest.mark.feature("NP-01")
def test_questions_about_shapes_take_lists() -> None:
    table = [[1, 2, 3], [4, 5, 6]]
    assert jnp.shape(table) == np.shape(table)
    assert jnp.ndim(table) == np.ndim(table)
    for axis in (None, 0, -1, (0, 1)):
        assert jnp.size(table, axis) == np.size(table, axis)
    for other in ([1, 2], [1, 2, 3], table, 1, [[1, 2, 3]] * 2):
        assert jnp.array_equal(table, other) == np.array_equal(table, other)
        assert jnp.array_equiv([1, 2, 3], other) == np.array_equiv([1, 2, 3], other)
    assert jnp.array_equal([1.0, np.nan], (1.0, np.nan), equal_nan=True)
    assert minijax.jit(lambda x: jnp.array_equal([x, 2], [1, 2]))(1)


@pytest.mark.feature("NP-01")
def test_dtypes_are_those_of_types_too() -> None:
    for kind in (np.float32, "float32", np.dtype("int8"), jnp.bfloat16, bool):
        assert minijax.lax.dtype(kind) == np.dtype(kind)
    for value in (1, 1.5, 2j, np.float64(1)):
        assert minijax.lax.dtype(value) == jnp.asarray(value).dtype
        assert minijax.lax.dtype(type(value)) == jnp.asarray(value).dtype
    key = minijax.random.key(0)
    assert minijax.lax.dtype(key) == key.dtype
    with pytest.raises(TypeError, match="no dtype"):
        minijax.lax.dtype([1])
    with pytest.raises(ValueError, match="None"):
        minijax.lax.dtype(None)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, np.float32])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_spacing_has_the_sign_that_numpy_gives(dtype: Any) -> None:
    largest = jnp.finfo(dtype).max
    x = np.array([-1, 1, -2.5, -1.5, 0, largest, -largest, np.nan, -np.inf]).astype(dtype)
    found = np.asarray(jnp.spacing(x)).astype(float)
    np.testing.assert_array_equal(found, np.spacing(x).astype(float))
    assert not np.signbit(jnp.spacing(jnp.array(-0.0, dtype)))


@pytest.mark.feature("NP-01")
def test_arrays_made_under_x64_are_computed_with_without_it() -> None:
    with minijax.enable_x64(True):
        x = jnp.arange(3.0)
    for function in (lambda v: v * 2, lambda v: jnp.maximum(v, 1), lambda v: 2 / (v + 1)):
        wanted = function(np.asarray(x))
        for call in (function, minijax.jit(function), minijax.vmap(function)):
            assert call(x).dtype == np.float32
            np.testing.assert_allclose(call(x), wanted, rtol=1e-6)
        assert minijax.grad(lambda v, f=function: f(v).sum())(x).dtype == np.float64


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize(
    "function",
    [
        lambda v: (v * v).sum(),
        lambda v: (v**2).sum(),
        lambda v: v[0] * v[1],
        lambda v: jnp.pad(v, 1).sum(),
        lambda v: minijax.lax.scan(lambda c, y: (c + y * y, c), v[0], v)[0],
        lambda v: v[1].astype("float32") ** 3,
        lambda v: jnp.sum(v // 2),
    ],
)
def test_gradients_are_taken_of_arrays_made_under_x64_without_it(function: Any) -> None:
    with minijax.enable_x64(True):
        x = jnp.arange(3.0)
        wanted = minijax.grad(function)(x)
    for call in (minijax.grad(function), minijax.jit(minijax.grad(function))):
        found = call(x)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.feature("NP-01")
def test_functions_that_enter_x64_have_gradients_outside() -> None:
    def function(v: Any) -> Any:
        with minijax.enable_x64(True):
            return jnp.sum(jnp.asarray(v, "float64") * 2)

    value, found = minijax.value_and_grad(function)(jnp.ones(2))
    assert value.dtype == np.float64
    assert found.dtype == np.float32
    assert found.tolist() == [2.0, 2.0]
