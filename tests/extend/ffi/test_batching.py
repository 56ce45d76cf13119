"""`vmap` of foreign functions: each method gives what a loop gives."""

import functools
from typing import Any

import numpy as np
import pytest

import minijax as jax
from minijax import ffi
from tests.extend.ffi.conftest import PREFIX

pytestmark = [pytest.mark.usefixtures("kernels"), pytest.mark.feature("FF-09")]

METHODS = [
    "sequential",
    "sequential_unrolled",
    "expand_dims",
    "broadcast_all",
    "legacy_vectorized",
]
X = np.arange(1, 31, dtype=np.float32).reshape(5, 2, 3)
W = np.float32([1, -2, 3])


def weigh(x: Any, w: Any, **options: Any) -> Any:
    call = ffi.ffi_call(PREFIX + "weigh", jax.ShapeDtypeStruct(x.shape, x.dtype), **options)
    return call(x, w)


@pytest.mark.parametrize("method", METHODS)
def test_method_gives_what_a_loop_gives(method: str) -> None:
    f = functools.partial(weigh, vmap_method=method)
    over_last = X.transpose(1, 2, 0)
    over_first = jax.vmap(f, (2, None), 1)
    by_row = jax.vmap(jax.vmap(f, (0, None)), (0, None))

    np.testing.assert_array_equal(jax.jit(over_first)(over_last, W), (X * W).transpose(1, 0, 2))
    np.testing.assert_array_equal(jax.jit(by_row)(X, W), X * W)


def types_of_operands(method: str, **options: Any) -> list[str]:
    mapped = jax.vmap(functools.partial(weigh, vmap_method=method, **options), (0, None))
    (eqn,) = [e for e in jax.make_jaxpr(mapped)(X, W).eqns if e.primitive.name == "ffi_call"]
    return [str(v.aval) for v in eqn.invars]


def test_methods_differ_in_what_the_kernel_gets() -> None:
    assert {m: types_of_operands(m) for m in METHODS[2:]} == {
        "expand_dims": ["f32[5,2,3]", "f32[1,3]"],
        "broadcast_all": ["f32[5,2,3]", "f32[5,3]"],
        "legacy_vectorized": ["f32[5,2,3]", "f32[3]"],
    }


def test_operand_that_gives_its_memory_has_the_whole_batch() -> None:
    like = jax.ShapeDtypeStruct((3,), np.float32)
    for method in METHODS[2:]:
        f = ffi.ffi_call("unknown", like, vmap_method=method, input_output_aliases={0: 0})
        (out,) = jax.make_jaxpr(jax.vmap(f, (None, 0)))(W, X[:, 0]).eqns[-1:]
        assert [str(v.aval) for v in out.invars] == ["f32[5,3]", "f32[5,3]"], method


def test_batch_is_the_slowest_dimension_of_layouts() -> None:
    f = ffi.ffi_call(
        "unknown",
        jax.ShapeDtypeStruct((2, 3), np.float32),
        vmap_method="legacy_vectorized",
        input_layouts=[(1, 0), None],
        output_layouts=(1, 0),
    )
    text = jax.jit(jax.vmap(f, (0, None))).lower(X, W).as_text()

    layout = "dense<[1, 2, 0]> : tensor<3xindex>"
    assert f"operand_layouts = [{layout}, dense<0> : tensor<1xindex>]" in text
    assert f"result_layouts = [{layout}]" in text


def test_batch_of_nothing_has_results_of_no_size() -> None:
    for method in METHODS:
        f = functools.partial(weigh, vmap_method=method)
        assert jax.eval_shape(jax.vmap(f, (0, None)), X[:0], W).shape == (0, 2, 3), method


def test_batch_dimensions_grow_by_one() -> None:
    like = jax.ShapeDtypeStruct((2, 3), np.float32)
    found = {}
    for method in METHODS[2:]:
        f = ffi.ffi_call("unknown", like, vmap_method=method, num_batch_dims=1)
        text = jax.jit(jax.vmap(f, (0, None))).lower(X, X[0]).as_text()
        found[method] = ('num_batch_dims = "2"' in text, "([i, j, k], [i, j, l])" in text)

    # What is not mapped lacks the new dimension with the last one, so that nothing is divided.
    assert found == {
        "expand_dims": (True, True),
        "broadcast_all": (True, True),
        "legacy_vectorized": (False, False),
    }


def test_vmap_without_a_method_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="vmap does not know how to call 'tested_weigh'"):
        jax.vmap(weigh, (0, None))(X, W)
