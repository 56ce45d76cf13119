"""Records of functions that make arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.numpy.records import Record

CONSTANT = "it does not depend on its operand"
NO_ARRAYS = {"grad": "it takes no arrays", "vmap": "it takes no arrays"}
DTYPES = ("float32", "int8", "complex64", "bool")


def made(name: str, case: str = "", call: Any = None, jit: Any = True, **choices: Any) -> Record:
    """A record of a function that takes no arrays: of each option it draws one choice."""
    draw = lambda d: d.call(**{key: d.of(*values) for key, values in choices.items()})
    call = call or (lambda f, **options: f(*options.values()))
    return Record(f"numpy.{name}", draw, call=call, jit=jit, case=case, tolerance=4, **NO_ARRAYS)


def like(name: str, *values: Any, **options: Any) -> Record:
    """A record of a function that makes an array like another one."""
    draw = lambda d: d.call(d.array(), dtype=d.of(None, *DTYPES), shape=d.of(None, (2, 2), 3))
    call = lambda f, x, **options: f(x, *values, **options)
    return Record(f"numpy.{name}", draw, call=call, grad=CONSTANT, **options)


def indices_from(name: str) -> Record:
    draw = lambda d: d.call(d.array("f", [(3, 3)]))
    return Record(f"numpy.{name}", draw, call=lambda f, x: tuple(f(x)), grad=CONSTANT)


SHAPES = ((2, 3), (0, 3), (), 4)
FILLED = [
    *(made(name, shape=SHAPES, dtype=DTYPES) for name in ("zeros", "ones")),
    made("full", shape=SHAPES, fill_value=(1.5, 2, True), dtype=(None, *DTYPES)),
    made("empty", shape=SHAPES, call=lambda f, shape: f(shape) * 0),
    *(like(name) for name in ("zeros_like", "ones_like")),
    like("full_like", 1),
    Record(
        "numpy.empty_like", lambda d: d.call(d.array()), call=lambda f, x: f(x) * 0, grad=CONSTANT
    ),
    made("eye", N=(3, 0), M=(4, None), k=(1, -1, 0), dtype=DTYPES),
    made("identity", n=(3, 0), dtype=DTYPES),
    made("tri", N=(3, 0), M=(4, None), k=(1, -1, 0), dtype=DTYPES),
]

RANGES = [
    made("arange", start=(0, 2, 5), stop=(9, 5), step=(1, 3, -2), dtype=(None, "float32")),
    made("arange", "floats", start=(0.0, 1.5), stop=(3.0,), step=(0.25, 1)),
    made("linspace", start=(0, -1.5), stop=(1, 3), num=(5, 1, 0), endpoint=(True, False)),
    made(
        "linspace",
        "integers",
        start=(0, 2),
        stop=(9,),
        num=(4,),
        endpoint=(True, False),
        retstep=(False,),
        dtype=("int32",),
    ),
    Record(
        "numpy.linspace",
        lambda d: d.call(d.array("f", [(2, 1), ()]), d.array("f", [(3,)]), num=4, axis=d.of(-1, 0)),
        grad=(0, 1),
        case="arrays",
        tolerance=2,
    ),
    Record(
        "numpy.logspace",
        lambda d: d.call(d.array("f", [(3,), ()]), 2.0, num=d.of(4, 1), base=d.of(10.0, 2)),
        call=lambda f, x, y, **options: f(x, y, **options),
        tolerance=10,
        vmap="one argument is a number",
    ),
    Record(
        "numpy.geomspace",
        lambda d: d.call(
            d.array("f", [(3,), ()], (1, 2)),
            d.array("f", [(3,)], (3, 5)),
            num=d.of(4, 1),
            endpoint=d.of(True, False),
        ),
        grad=(0, 1),
        tolerance=10,
    ),
]

INDICES = [
    *(made(name, n=(3, 0), k=(1, -1, 0), m=(4, None)) for name in ("tril_indices", "triu_indices")),
    *(
        indices_from(name)
        for name in ("tril_indices_from", "triu_indices_from", "diag_indices_from")
    ),
    made("diag_indices", n=(3, 0), ndim=(2, 3)),
    made("mask_indices", call=lambda f: f(3, np.triu, 1), jit="NumPy makes the mask"),
    made("indices", dimensions=((2, 3), (4,)), dtype=("int32", "float32"), sparse=(False, True)),
    made("fromfunction", call=lambda f: f(lambda i, j: i * 10 + j, (2, 3), dtype=np.float32)),
    Record(
        "numpy.ix_", lambda d: d.call(d.array("i", [(3,)]), d.array("i", [(2,)])), grad="integers"
    ),
    Record(
        "numpy.meshgrid",
        lambda d: d.call(
            d.array(shape=[(3,)]),
            d.array(shape=[(2,), (0,)]),
            indexing=d.of("xy", "ij"),
            sparse=d.of(False, True),
        ),
        call=lambda f, *xs, **options: list(f(*xs, **options)),
    ),
]

CONVERTED = [
    Record(
        "numpy.array",
        lambda d: d.call([d.array(shape=[(3,)]), d.array(shape=[(3,)])], ndmin=d.of(0, 4)),
    ),
    Record("numpy.asarray", lambda d: d.call(d.array()), grad=(0,)),
    Record("numpy.copy", lambda d: d.call(d.array())),
    Record(
        "numpy.astype",
        lambda d: d.call(d.array("fiub"), d.of(np.float32, np.int8, np.bool_)),
        call=lambda f, x, dtype: f(x, dtype),
        jit="a dtype is no array",
        vmap="a dtype is no array",
        grad="a dtype is no array",
    ),
    made("frombuffer", buffer=(b"abcdefgh",), dtype=("uint8", "float32")),
    made(
        "fromstring",
        string=("1 2 3",),
        dtype=("float32", "int32"),
        call=lambda f, string, dtype: f(string, dtype, sep=" "),
    ),
]

RECORDS = [*FILLED, *RANGES, *INDICES, *CONVERTED]
