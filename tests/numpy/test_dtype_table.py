"""Results have JAX's dtypes, whatever the dtypes of arguments: every function that takes arrays."""

import json
from typing import Any

import pytest

import minijax
from tests.numpy import dtype_table

RECORDED = json.loads(dtype_table.RECORDED.read_text(encoding="utf-8"))

# What JAX refuses or rounds otherwise, by the reason.
DEVIATIONS: dict[str, str] = {}


def test_the_table_covers_every_function_of_numpy() -> None:
    lacking = {
        path
        for path in dtype_table.functions("minijax")
        if path.startswith("numpy.") and path not in RECORDED | dict.fromkeys(dtype_table.LEFT_OUT)
    }
    assert lacking == set()


@pytest.mark.slow
@pytest.mark.feature("NP-01")
@pytest.mark.feature("CR-13")
@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("room", dtype_table.ROOMS)
def test_dtypes_are_those_of_jax(room: str, x64: bool) -> None:
    functions = dtype_table.functions("minijax")
    different: dict[str, Any] = {}
    with minijax.enable_x64(x64):
        for path, known in RECORDED.items():
            if path.rpartition(".")[0] != room or path in DEVIATIONS:
                continue
            for kind, expected in zip(
                dtype_table.KINDS[x64], known["x64" if x64 else "x32"].split(" "), strict=True
            ):
                found = dtype_table.types_of("minijax", functions[path], known["call"], kind)
                if found != expected:
                    different[f"{path}: {known['call']} of {kind}"] = (found, expected)
    assert different == {}
