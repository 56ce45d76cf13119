"""Results have JAX's dtypes, whatever the dtypes of arguments: every function that takes arrays."""

import json
from typing import Any

import pytest

import minijax
from tests.numpy import dtype_table

RECORDED = json.loads(dtype_table.RECORDED.read_text(encoding="utf-8"))

# Of weak operands: JAX's are weak or not as its operations happen to leave them.
WEAK = frozenset(
    {
        "numpy.angle",
        "numpy.argpartition",
        "numpy.place",
        "numpy.polydiv",
        "numpy.setdiff1d",
        "numpy.linalg.cholesky",
        "numpy.linalg.lstsq",
        "numpy.linalg.slogdet",
        "numpy.linalg.solve",
        "lax.approx_max_k",
        "lax.approx_min_k",
        "lax.associative_scan",
        "lax.ragged_dot",
        "lax.random_gamma_grad",
        "lax.reduce",
        "lax.reduce_and",
        "lax.reduce_or",
        "lax.reduce_xor",
        "lax.top_k",
        "scipy.special.kl_div",
        "scipy.special.logit",
        "scipy.special.rel_entr",
    }
)
# What is computed here and refused there, or the other way round.
REFUSALS = {
    "numpy.argmax": "complex numbers have no order",
    "numpy.argmin": "complex numbers have no order",
    "numpy.nanargmax": "complex numbers have no order",
    "numpy.nanargmin": "complex numbers have no order",
    "lax.argmax": "complex numbers have no order",
    "lax.argmin": "complex numbers have no order",
    "lax.cumlogsumexp": "integers have no logarithms",
    "numpy.argpartition": "positions in sorted order, for every dtype",
    "numpy.partition": "sorted, for every dtype",
    "numpy.interp": "any floats, and complex values",
    "numpy.kaiser": "the real part of a complex number",
    "numpy.polyadd": "booleans add up",
    "numpy.polyfit": "integers become floats",
    "numpy.vander": "booleans are numbers",
    "nn.log1mexp": "booleans become floats",
    "nn.log_softmax": "booleans become floats",
    "nn.softmax": "booleans become floats",
    "nn.standardize": "complex numbers have a mean",
    "nn.dot_product_attention": "complex numbers have no softmax",
    "scipy.special.log_softmax": "booleans become floats",
    "scipy.special.softmax": "booleans become floats",
    "scipy.special.owens_t": "complex numbers are not accepted",
}
WIDER = {
    "numpy.argpartition": "positions are of the default integer",
    "numpy.linalg.vector_norm": "the norm of int32 is a float32, also with x64",
    "scipy.special.owens_t": "float32 stays float32, also with x64",
    "scipy.special.sph_harm_y": "float32 gives complex64, also with x64",
}


def test_the_table_covers_every_function_of_numpy() -> None:
    known = {*RECORDED, *dtype_table.LEFT_OUT, *dtype_table.WITHOUT_ARRAYS}
    functions = dtype_table.functions("minijax")
    assert {path for path in functions if path.startswith("numpy.")} - known == set()


@pytest.mark.slow
@pytest.mark.feature("NP-01")
@pytest.mark.feature("CR-13")
@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("room", dtype_table.ROOMS)
def test_dtypes_are_those_of_jax(room: str, x64: bool) -> None:
    functions = dtype_table.functions("minijax")
    paths = [path for path in RECORDED if path.rpartition(".")[0] == room and path in functions]
    with minijax.enable_x64(x64):
        different = {path: _differences(functions[path], path, x64) for path in paths}
    assert {path: found for path, found in different.items() if found} == {}


def _differences(function: Any, path: str, x64: bool) -> dict[str, tuple[str, str]]:
    known = RECORDED[path]
    expected = known["x64" if x64 else "x32"].split(" ")
    found = [
        dtype_table.types_of("minijax", function, known["call"], kind)
        for kind in dtype_table.KINDS[x64]
    ]
    return {
        kind: (ours, theirs)
        for kind, ours, theirs in zip(dtype_table.KINDS[x64], found, expected, strict=True)
        if not _is_allowed(path, ours, theirs)
    }


def _is_allowed(path: str, ours: str, theirs: str) -> bool:
    if path in REFUSALS and "-" in (ours, theirs):
        return True
    if path in WEAK:
        ours, theirs = ours.replace("~", ""), theirs.replace("~", "")
    return ours == theirs or path in WIDER
