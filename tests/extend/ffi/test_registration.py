"""What is registered, and when: headers, names, types, and the lowering of primitives."""

import ctypes
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minijax as jax
from minijax import ffi
from minijax.extend import core, mlir
from minijax.lowering import stablehlo
from tests.extend.ffi.conftest import PREFIX


@pytest.mark.feature("FF-11")
def test_public_names_are_these() -> None:
    assert ffi.__all__ == [
        "build_ffi_lowering_function",
        "ffi_call",
        "ffi_lowering",
        "include_dir",
        "pycapsule",
        "register_ffi_target",
        "register_ffi_target_as_batch_partitionable",
        "register_ffi_type",
        "register_ffi_type_id",
    ]


@pytest.mark.feature("FF-03")
def test_headers_are_where_jaxlib_is() -> None:
    assert Path(ffi.include_dir(), "xla", "ffi", "api", "ffi.h").is_file()


@pytest.mark.feature("FF-04")
def test_capsules_hold_addresses() -> None:
    function = ctypes.pythonapi.Py_IsInitialized
    address = ctypes.cast(function, ctypes.c_void_p).value
    read = ctypes.pythonapi.PyCapsule_GetPointer
    read.restype, read.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

    assert [read(ffi.pycapsule(f), None) for f in (function, address)] == [address, address]


@pytest.mark.feature("FF-06")
def test_type_is_known_by_its_identity_alone(kernels: ctypes.CDLL) -> None:
    number = ctypes.c_int64(0)
    identity = ffi.pycapsule(ctypes.addressof(number))
    ffi.register_ffi_type_id(PREFIX + "number", identity)

    # XLA has given it a number of its own.
    assert number.value > 0


def test_function_of_a_platform_that_is_not_there_is_kept(kernels: ctypes.CDLL) -> None:
    ffi.register_ffi_target(PREFIX + "kept", ffi.pycapsule(kernels.note), platform="nowhere")


EARLY = """
import ctypes, sys
import numpy as np
import minijax as jax
from minijax import ffi

library = ctypes.CDLL(sys.argv[1])
for function in (library.counter_id, library.counter_info):
    function.restype = ctypes.c_void_p
parts = {"type_id": library.counter_id(), "type_info": library.counter_info()}
ffi.register_ffi_type("counter", {k: ffi.pycapsule(v) for k, v in parts.items()})
stages = {"instantiate": library.counter_instantiate, "execute": library.counter_execute}
ffi.register_ffi_target("counter", {k: ffi.pycapsule(v) for k, v in stages.items()})
print(ffi.ffi_call("counter", jax.ShapeDtypeStruct((), np.int32))(start=5))
"""


@pytest.mark.slow
@pytest.mark.feature("FF-06")
def test_state_may_be_registered_before_there_are_devices(kernels: ctypes.CDLL) -> None:
    command = [sys.executable, "-c", EARLY, kernels._name]

    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "5\n"


def lowered(name: str, *operands: Any, params: dict[str, Any] | None = None, **facts: Any) -> str:
    """The text of a program of one primitive that `ffi_lowering(name, **facts)` lowers."""
    made = core.Primitive(f"{PREFIX}{name}")
    made.def_abstract_eval(lambda x, *_, **__: x)
    mlir.register_lowering(made, ffi.ffi_lowering(name, **facts))
    return jax.jit(lambda *xs: made.bind(*xs, **(params or {}))).lower(*operands).as_text()


X = np.ones((2, 3), np.float32)


@pytest.mark.feature("FF-02")
def test_lowering_passes_parameters_as_attributes() -> None:
    config = {"mode": stablehlo.integer(4, 8)}
    text = lowered("with_config", X, params={"count": 2, "word": "w"}, backend_config=config)

    assert 'backend_config = {count = 2 : i64, mode = 4 : i8, word = "w"}' in text
    assert "operand_layouts = [dense<[1, 0]> : tensor<2xindex>]" in text


@pytest.mark.feature("FF-02")
def test_lowering_says_what_it_is_told() -> None:
    text = lowered(
        "with_facts",
        X,
        X,
        operand_layouts=[(0, 1), None],
        result_layouts=[(0, 1)],
        has_side_effect=True,
        operand_output_aliases={0: 0},
        called_computations=["inner"],
        extra_attributes={"mhlo.sharding": stablehlo.string("{replicated}")},
    )

    for written in (
        "operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[1, 0]> : tensor<2xindex>]",
        "result_layouts = [dense<[0, 1]> : tensor<2xindex>]",
        "has_side_effect = true",
        "operand_index = 0",
        "called_computations = [@inner]",
        'mhlo.sharding = "{replicated}"',
    ):
        assert written in text
    assert "layouts" not in lowered("bare", X, skip_ffi_layout_processing=True)
    old = lowered("old", X, api_version=2, backend_config="a text")
    assert 'api_version = 2 : i32, backend_config = "a text"' in old


@pytest.mark.feature("FF-02")
def test_lowering_that_does_not_fit_together_is_refused() -> None:
    with pytest.raises(ValueError, match="backend_config must be a dict"):
        ffi.ffi_lowering("name", backend_config="a text")
    with pytest.raises(TypeError, match="unexpected arguments: speed"):
        ffi.ffi_lowering("name", speed=1)
    with pytest.raises(ValueError, match="attributes need version 4"):
        lowered("older", X, params={"count": 2}, api_version=1)


def test_operation_can_be_built_for_rules_of_ones_own(kernels: ctypes.CDLL) -> None:
    build = ffi.build_ffi_lowering_function(PREFIX + "normalize_rows")
    made = core.Primitive(f"{PREFIX}twice")
    made.def_abstract_eval(lambda x: x)

    def twice(ctx: Any, x: Any) -> Any:
        first = build(ctx, x)
        return build(ctx, first.results[0]).results

    mlir.register_lowering(made, twice)

    assert made.bind(np.float32([3, 4])).tolist() == np.float32([0.6, 0.8]).tolist()
