"""What is refused, by which error, in which words."""

import ctypes
import re
from typing import Any

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import P, ffi, lax
from minijax.core.errors import ShardingTypeError
from minijax.sharding import AxisType
from tests.extend.ffi.conftest import PREFIX

X = np.ones((2, 3), np.float32)
LIKE = jax.ShapeDtypeStruct((2, 3), np.float32)
ONE = [LIKE]


class Tiled:
    """A layout as accelerators have them."""

    major_to_minor = (0, 1)
    tiling = ((8, 128),)


CALLS: dict[str, tuple[type[Exception], str, dict[str, Any]]] = {
    "no name": (TypeError, "target_name must be a str", {"target_name": 3}),
    "no shape": (
        ValueError,
        "without shape and dtype at position 1",
        {"result_shape_dtypes": [LIKE, 3]},
    ),
    "method": (ValueError, "unknown vmap_method 'all'", {"vmap_method": "all"}),
    "version": (ValueError, "no such version", {"custom_call_api_version": 7}),
    "text": (ValueError, "legacy_backend_config is for", {"legacy_backend_config": "x"}),
    "attributes": (ValueError, "attributes need version 4", {"custom_call_api_version": 1}),
    "too many layouts": (
        ValueError,
        "input_layouts must have a layout for each of the operands.*2 layouts for 1 operands",
        {"input_layouts": [(0, 1)] * 2},
    ),
    "too few layouts": (
        ValueError,
        "output_layouts must have.*0 layouts for 1 results",
        {"result_shape_dtypes": ONE, "output_layouts": []},
    ),
    "tiles": (ValueError, r"input_layouts\[0\] is tiled", {"input_layouts": [Tiled()]}),
    "order": (ValueError, r"input_layouts\[0\] is no order", {"input_layouts": [(0, 0)]}),
    "no layout": (TypeError, r"output_layouts\[0\] is no layout", {"output_layouts": 3}),
    "no operand": (ValueError, "the operand 1, which is not", {"input_output_aliases": {1: 0}}),
    "no result": (ValueError, "the result 1, which is not", {"input_output_aliases": {0: 1}}),
    "other shape": (
        ValueError,
        "of another shape or dtype",
        {
            "result_shape_dtypes": jax.ShapeDtypeStruct((3, 2), np.float32),
            "input_output_aliases": {0: 0},
        },
    ),
    "other dtype": (
        ValueError,
        "of another shape or dtype",
        {
            "result_shape_dtypes": jax.ShapeDtypeStruct((2, 3), np.int32),
            "input_output_aliases": {0: 0},
        },
    ),
    "other layout": (
        ValueError,
        "in another layout",
        {"input_output_aliases": {0: 0}, "input_layouts": [(1, 0)]},
    ),
    "batch": (
        ValueError,
        "leading dimensions that num_batch_dims counts",
        {"result_shape_dtypes": jax.ShapeDtypeStruct((5, 3), np.float32), "num_batch_dims": 1},
    ),
}


@pytest.mark.feature("FF-10")
@pytest.mark.parametrize("case", CALLS)
def test_call_that_does_not_fit_together_is_refused(case: str) -> None:
    error, text, changes = CALLS[case]
    options = {"target_name": "unknown", "result_shape_dtypes": LIKE, **changes}

    with pytest.raises(error, match=re.compile(rf"ffi\.ffi_call: .*{text}", re.DOTALL)):
        ffi.ffi_call(**options)(X, a=1)


@pytest.mark.parametrize(
    "value",
    [None, [1, 2], {1: 2}, {"inner": [1]}, 1j, jnp.ones(2), np.array(["a"]), {1}],
    ids=lambda value: type(value).__name__,
)
def test_attribute_without_a_form_is_refused_by_name(value: Any) -> None:
    with pytest.raises(TypeError, match="the attribute 'strange' has no form"):
        ffi.ffi_call("unknown", LIKE)(X, strange=value)


def test_traced_attribute_and_argument_that_is_no_array_are_refused() -> None:
    call = ffi.ffi_call("unknown", LIKE)

    with pytest.raises(TypeError, match="attribute 'a' has no form"):
        jax.jit(lambda x: call(x, a=x))(X)
    with pytest.raises(TypeError, match=r"argument args\[1\] is neither an array nor a number"):
        call(X, "text")
    with pytest.raises(OverflowError, match="does not fit into 64 bits"):
        call(X, a=2**63)


@pytest.mark.feature("AD-07")
@pytest.mark.parametrize("transformed", [jax.grad, jax.linear_transpose], ids=["grad", "transpose"])
def test_derivative_is_refused_with_a_remedy(transformed: Any) -> None:
    def f(x: Any) -> Any:
        return ffi.ffi_call("unknown", jax.ShapeDtypeStruct((), np.float32))(x)

    with pytest.raises(ValueError, match=r"derivative of the foreign function 'unknown'.*\n.*vjp"):
        transformed(f)(1.0) if transformed is jax.grad else transformed(f, 1.0)(1.0)


def test_summands_of_devices_are_refused(devices: Any) -> None:
    devices(2)
    mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))
    call = ffi.ffi_call("unknown", jax.ShapeDtypeStruct((3,), np.float32))

    def f(x: Any) -> Any:
        return call(lax.pcast(x[0], "x", to="reduced"))

    with pytest.raises(ShardingTypeError, match="unreduced or reduced"):
        jax.make_jaxpr(jax.shard_map(f, mesh=mesh, in_specs=P(), out_specs=P()))(X)


@pytest.mark.usefixtures("kernels")
@pytest.mark.feature("FF-05")
def test_xla_tells_what_the_kernel_does_not_take() -> None:
    normalize = PREFIX + "normalize_rows"
    error = jax.errors.JaxRuntimeError

    with pytest.raises(error, match="NOT_FOUND: No FFI handler registered for not_there"):
        ffi.ffi_call("not_there", LIKE)(X)
    with pytest.raises(error, match=r"INVALID_ARGUMENT.*Wrong number of arguments"):
        ffi.ffi_call(normalize, LIKE)(X, X)
    with pytest.raises(error, match=r"INVALID_ARGUMENT.*Failed to decode"):
        ffi.ffi_call(normalize, LIKE)(X.astype(np.int32))
    with pytest.raises(error, match="INVALID_ARGUMENT: a scalar has no rows"):
        ffi.ffi_call(normalize, jax.ShapeDtypeStruct((), np.float32))(1.0)


@pytest.mark.feature("FF-05")
def test_registration_of_what_is_no_function_is_refused(kernels: ctypes.CDLL) -> None:
    error = jax.errors.JaxRuntimeError
    register = ffi.register_ffi_target
    note, follow = (ffi.pycapsule(getattr(kernels, name)) for name in ("note", "follow"))

    register(PREFIX + "note", note)
    with pytest.raises(error, match="INVALID_ARGUMENT: Duplicate"):
        register(PREFIX + "note", follow)
    with pytest.raises(error, match="INVALID_ARGUMENT: Unsupported"):
        register(PREFIX + "number", 3)
    with pytest.raises(TypeError, match="unexpected arguments: speed"):
        register(PREFIX + "note", note, speed=1)
    with pytest.raises(ValueError, match="no function at address 0"):
        ffi.pycapsule(0)
    with pytest.raises(error, match=r"INVALID_ARGUMENT.*must be a dictionary"):
        ffi.register_ffi_type(PREFIX + "type", note)
    with pytest.raises(TypeError, match="name must be a str"):
        ffi.register_ffi_target_as_batch_partitionable(3)  # type: ignore[arg-type]
