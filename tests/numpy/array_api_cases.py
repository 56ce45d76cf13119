"""Calls of the Python array API standard 2024.12, made with one namespace and with NumPy.

NumPy follows the standard since 2.0, so that it says what dtype, shape and values a result has;
where the standard leaves a choice, `OPEN` says so.  `python array_api_cases.py jax.numpy` prints
which calls another namespace answers otherwise; 64-bit dtypes have to be on.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import operator
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

Call = tuple[str, Callable[[Any, Callable[[np.ndarray], Any]], Any]]
"""Its name, and a function of a namespace and of what makes its arrays of NumPy's."""

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
REAL = INTEGERS + FLOATS
NUMERIC = REAL + COMPLEX
ALL = ("bool", *NUMERIC)
INEXACT = FLOATS + COMPLEX

UNARY = {
    **dict.fromkeys(("ceil", "floor", "round", "trunc"), REAL),
    **dict.fromkeys(("abs", "negative", "positive", "sign", "square"), NUMERIC),
    **dict.fromkeys(("isfinite", "isinf", "isnan"), NUMERIC),
    **dict.fromkeys(
        ("exp", "expm1", "log", "log10", "log1p", "log2", "sqrt", "reciprocal"), INEXACT
    ),
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan"), INEXACT),
    **dict.fromkeys(("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"), INEXACT),
    **dict.fromkeys(("real", "imag"), COMPLEX),
    "conj": NUMERIC,
    "signbit": FLOATS,
    "bitwise_invert": ("bool", *INTEGERS),
    "logical_not": ("bool",),
}
"""Elementwise functions of one array, and the dtypes that the standard lets them take."""

BINARY = {
    **dict.fromkeys(("add", "subtract", "multiply", "pow"), NUMERIC),
    **dict.fromkeys(("equal", "not_equal"), ALL),
    **dict.fromkeys(("less", "less_equal", "greater", "greater_equal"), REAL),
    **dict.fromkeys(("maximum", "minimum", "floor_divide", "remainder"), REAL),
    **dict.fromkeys(("atan2", "copysign", "hypot", "logaddexp", "nextafter"), FLOATS),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), ("bool", *INTEGERS)),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), INTEGERS),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), ("bool",)),
    "divide": INEXACT,
}

OPERATORS = {
    **dict.fromkeys(("add", "sub", "mul", "pow"), BINARY["add"]),
    **dict.fromkeys(("floordiv", "mod", "lt", "le", "gt", "ge"), REAL),
    **dict.fromkeys(("and_", "or_", "xor"), BINARY["bitwise_and"]),
    **dict.fromkeys(("lshift", "rshift"), INTEGERS),
    **dict.fromkeys(("eq", "ne"), ALL),
    "truediv": INEXACT,
}

REDUCTIONS = {
    **dict.fromkeys(("all", "any", "count_nonzero"), ALL),
    **dict.fromkeys(("max", "min"), REAL),
    **dict.fromkeys(("sum", "prod"), NUMERIC),
    **dict.fromkeys(("mean", "std", "var"), FLOATS),
}

SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.5, -2.5, 1e-3)

OPEN = {
    "floor_divide": lambda x, y: np.isinf(x) | np.isinf(y),
    "remainder": lambda x, y: np.isinf(y) & np.isfinite(x),
}
"""Where the standard lets a function answer as Python does, or otherwise."""


def random_array(dtype: str, shape: Sequence[int] = (3, 4), seed: int = 0) -> np.ndarray:
    """Small numbers of both signs, if the dtype has them; integers are at least -9."""
    draws = np.random.default_rng([seed, *shape])
    if dtype == "bool":
        return draws.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        return draws.integers(0 if dtype in UNSIGNED else -9, 10, shape).astype(dtype)
    parts = draws.normal(size=(2, *shape))
    return (parts[0] + 1j * parts[1] if dtype in COMPLEX else parts[0]).astype(dtype)


def promoted(dtypes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of dtypes whose common dtype the standard defines: those of one kind."""
    kinds = (("bool",), SIGNED, UNSIGNED, INTEGERS, INEXACT)
    for one, other in itertools.product(dtypes, repeat=2):
        if "uint64" in {one, other} and {one, other} & set(SIGNED):
            continue
        if any(one in kind and other in kind for kind in kinds):
            yield one, other


def of_arrays(label: str, name: str, *arrays: np.ndarray, **keywords: Any) -> Call:
    """A call of a function by name."""

    def call(xp: Any, make: Callable[[np.ndarray], Any]) -> Any:
        return operator.attrgetter(name)(xp)(*map(make, arrays), **keywords)

    return f"{name} {label}", call


def domain(name: str, x: np.ndarray) -> np.ndarray:
    """Arguments at which a function is real."""
    if name in {"log", "log10", "log2", "sqrt"} and x.dtype.kind == "f":
        return np.abs(x)
    if name in {"asin", "acos", "atanh"} and x.dtype.kind == "f":
        return np.tanh(x)
    return np.abs(x) + 1 if name in {"acosh", "reciprocal", "log1p"} and x.dtype.kind == "f" else x


def right_operand(name: str, x: np.ndarray) -> np.ndarray:
    """A second operand that the standard defines an answer for."""
    if x.dtype.kind in "iu" and ("pow" in name or "shift" in name):
        return np.abs(x) % x.dtype.type(4)
    return np.where(x == 0, x.dtype.type(1), x) if x.dtype.kind in "iufc" else x


def elementwise() -> Iterator[Call]:
    for name, dtypes in UNARY.items():
        for dtype in dtypes:
            yield of_arrays(dtype, name, domain(name, random_array(dtype)))
    for name, dtypes in BINARY.items():
        for one, other in promoted(dtypes):
            x, y = random_array(one), right_operand(name, random_array(other, (4,), 1))
            if name == "pow" and one in FLOATS and other in FLOATS:
                x = np.abs(x)
            yield of_arrays(f"{one} {other}", name, x, y)
    for name, dtypes in OPERATORS.items():
        yield from of_operator(name, dtypes)


def of_operator(name: str, dtypes: Sequence[str]) -> Iterator[Call]:
    """An operator between arrays, and between arrays and numbers of Python on either side."""
    function = getattr(operator, name)
    for dtype in dtypes:
        x = random_array(dtype)
        x = np.abs(x) if name == "pow" else x
        y = right_operand(name, random_array(dtype, (4,), 1))
        number = {"b": True, "u": 2, "i": 2, "f": 2.0, "c": 2.0 + 1j}[np.dtype(dtype).kind]
        yield f"{name} {dtype}", lambda xp, make, x=x, y=y, f=function: f(make(x), make(y))
        yield f"{name} {dtype} number", lambda xp, make, x=x, n=number, f=function: f(make(x), n)
        yield f"{name} number {dtype}", lambda xp, make, y=y, n=number, f=function: f(n, make(y))


def special_values() -> Iterator[Call]:
    for dtype in FLOATS:
        values = np.array(SPECIAL, dtype)
        for name, dtypes in UNARY.items():
            if dtype in dtypes:
                yield of_arrays(f"special {dtype}", name, values)
        x, y = (part.ravel() for part in np.meshgrid(values, values))
        for name, dtypes in BINARY.items():
            if dtype in dtypes:
                open_ones = OPEN[name](x, y) if name in OPEN else np.zeros(x.shape, bool)
                yield of_arrays(f"special {dtype}", name, x[~open_ones], y[~open_ones])
        for name in REDUCTIONS:
            yield of_arrays(f"special {dtype}", name, x.reshape(12, 12), axis=1)
        for name in ("cumulative_sum", "argmax", "argmin"):
            yield of_arrays(f"special {dtype}", name, values)
        # Zeros of both signs are equal, so that their order is open.
        yield of_arrays(f"specials {dtype}", "sort", values)


def special_complex_values() -> Iterator[Call]:
    parts = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.0])
    for dtype in COMPLEX:
        grid = np.empty((7, 7), dtype)
        grid.real, grid.imag = parts[:, None], parts
        for name, dtypes in UNARY.items():
            for z in grid.ravel() if dtype in dtypes else ():
                yield of_arrays(f"special {dtype} {z}", name, np.array([z]))


def reductions() -> Iterator[Call]:
    for name, dtypes in REDUCTIONS.items():
        for dtype in dtypes:
            yield of_arrays(dtype, name, random_array(dtype))
            yield of_arrays(f"{dtype} scalar", name, random_array(dtype, ()))
        x = random_array("float64", (2, 3, 4))
        for axis, keepdims in ((0, False), (-1, True), ((0, 2), False), ((), True), (None, True)):
            label = f"axis={axis} keepdims={keepdims}"
            yield of_arrays(label, name, x, axis=axis, keepdims=keepdims)
    for name, correction in itertools.product(("std", "var"), (0, 1, 0.5)):
        yield of_arrays(
            f"correction={correction}", name, random_array("float64"), correction=correction
        )
    for name, dtype in itertools.product(("sum", "prod"), ("int8", "uint8", "float32")):
        yield of_arrays(f"dtype {dtype}", name, random_array(dtype), dtype=np.dtype("float64"))
        yield of_arrays(f"empty {dtype}", name, random_array(dtype, (0, 2)), axis=0)
    for name, dtype in itertools.product(("cumulative_sum", "cumulative_prod"), NUMERIC):
        yield of_arrays(dtype, name, random_array(dtype), axis=1)
        yield of_arrays(f"{dtype} initial", name, random_array(dtype), axis=0, include_initial=True)
    for name, dtype in itertools.product(("argmax", "argmin"), REAL):
        yield of_arrays(dtype, name, random_array(dtype))
        yield of_arrays(f"{dtype} axis", name, random_array(dtype), axis=1, keepdims=True)


def creation() -> Iterator[Call]:
    def of(label: str, name: str, *arguments: Any, **keywords: Any) -> Call:
        return f"{name} {label}", lambda xp, make: getattr(xp, name)(*arguments, **keywords)

    for dtype in (None, *ALL):
        named = {} if dtype is None else {"dtype": np.dtype(dtype)}
        for name in ("ones", "zeros"):
            yield of(f"{dtype}", name, (2, 3), **named)
        yield of(f"{dtype}", "eye", 3, 4, k=1, **named)
        yield of(f"{dtype}", "full", (2,), 1, **named)
        if dtype in (None, *REAL):
            yield of(f"{dtype}", "arange", 1, 7, 2, **named)
        if dtype in (None, *FLOATS):
            yield of(f"{dtype}", "linspace", 0, 5, 11, **named)
            yield of(f"{dtype} open", "linspace", -1, 5, 4, endpoint=False, **named)
    for name, dtype in itertools.product(("zeros_like", "ones_like"), ALL):
        yield of_arrays(dtype, name, random_array(dtype))
    for name, dtype in itertools.product(("tril", "triu"), ALL):
        yield of_arrays(dtype, name, random_array(dtype, (2, 3, 3)), k=-1)


def creation_from_values() -> Iterator[Call]:
    def of(label: str, name: str, *arguments: Any) -> Call:
        return f"{name} {label}", lambda xp, make: getattr(xp, name)(*arguments)

    for value in (True, 3, 2.5, 1j):
        yield of(repr(value), "full", (2, 0), value)
        yield of(repr(value), "asarray", value)
        yield of(f"nested {value!r}", "asarray", [[value, value], [value, value]])
    for arguments in ((4,), (0.5, 3), (5, 0, -1), (3, 1), (0, 1, 0.25)):
        yield of(repr(arguments), "arange", *arguments)
    for indexing in ("ij", "xy"):
        x, y = random_array("int8", (2,)), random_array("float32", (3,))
        yield of_arrays(indexing, "meshgrid", x, y, indexing=indexing)


def manipulation() -> Iterator[Call]:
    x, y = random_array("float32", (2, 3, 4)), random_array("float64", (2, 3, 4), 1)
    for axis in (0, -1, None):
        yield of_arrays(f"axis={axis}", "flip", x, axis=axis)
        yield of_arrays(f"axis={axis}", "roll", x, shift=5, axis=axis)
        yield of_arrays(f"axis={axis}", "repeat", x, repeats=2, axis=axis)
        joined = {"axis": axis}
        yield f"concat {axis}", lambda xp, make, k=joined: xp.concat([make(x), make(y)], **k)
    for axis in (0, 1, -1):
        yield f"stack {axis}", lambda xp, make, a=axis: xp.stack([make(x), make(y)], axis=a)
        yield of_arrays(f"axis={axis}", "unstack", x, axis=axis)
        yield of_arrays(f"axis={axis}", "expand_dims", x, axis=axis)
        yield of_arrays(f"axis={axis}", "diff", x, axis=axis)
    yield of_arrays("n", "diff", x, n=2, axis=-1)
    yield of_arrays("", "broadcast_arrays", x, random_array("int8", (3, 1)))
    yield of_arrays("", "broadcast_to", random_array("int8", (3, 1)), shape=(2, 3, 4))
    yield of_arrays("", "permute_dims", x, axes=(2, 0, 1))
    yield of_arrays("", "matrix_transpose", x)
    yield of_arrays("", "moveaxis", x, source=0, destination=-1)
    yield of_arrays("", "reshape", x, shape=(4, -1))
    yield of_arrays("", "squeeze", random_array("int8", (1, 3, 1)), axis=(0, 2))
    yield "tile", lambda xp, make: xp.tile(make(x), (2, 1, 2))
    yield of_arrays("pair", "roll", x, shift=(1, -2), axis=(0, 2))


def searching() -> Iterator[Call]:
    for dtype in REAL:
        x = random_array(dtype)
        for name in ("sort", "argsort"):
            yield of_arrays(dtype, name, x, axis=0)
            yield of_arrays(f"{dtype} stable", name, x, axis=-1, stable=True)
        line = np.sort(random_array(dtype, (6,)))
        for side in ("left", "right"):
            yield of_arrays(f"{dtype} {side}", "searchsorted", line, x, side=side)
        yield of_arrays(dtype, "clip", x, min=1, max=4)
        low, high = random_array(dtype, (4,), 1), random_array(dtype, (4,), 2)
        yield of_arrays(f"{dtype} arrays", "clip", x, np.minimum(low, high), np.maximum(low, high))
    for dtype in ALL:
        x = random_array(dtype)
        yield of_arrays(dtype, "nonzero", x)
        yield of_arrays(dtype, "take", x, np.array([2, 0, 2]), axis=0)
        yield of_arrays(dtype, "take_along_axis", x, np.array([[1], [0], [3]]), axis=1)
        if dtype not in COMPLEX:
            for name in ("counts", "inverse", "all"):
                yield of_arrays(dtype, f"unique_{name}", x)
            # Their order is open.
            yield (
                f"unique_values {dtype}",
                lambda xp, make, x=x: np.sort(np.asarray(xp.unique_values(make(x)))),
            )
    for one, other in promoted(ALL):
        x, y = random_array(one), random_array(other, (4,), 1)
        yield of_arrays(f"{one} {other}", "where", random_array("bool", (3, 1)), x, y)
        yield of_arrays(f"{one} {other}", "result_type", x, y)
    for one, other in itertools.product(ALL, ALL):
        yield (
            f"can_cast {one} {other}",
            lambda xp, make, p=(one, other): xp.can_cast(*map(np.dtype, p)),
        )
        yield (
            f"astype {one} {other}",
            lambda xp, make, p=(one, other): xp.astype(
                make(np.abs(random_array(p[0]))), np.dtype(p[1])
            ),
        )


def linear_algebra() -> Iterator[Call]:
    for dtype in FLOATS + COMPLEX:
        square = random_array(dtype, (2, 3, 3))
        positive = square @ np.swapaxes(square.conj(), -1, -2) + np.eye(3, dtype=dtype)
        tall = random_array(dtype, (2, 5, 3))
        for name in ("cholesky", "det", "inv", "slogdet", "eigvalsh", "trace", "diagonal"):
            yield of_arrays(dtype, f"linalg.{name}", positive)
        for name in ("pinv", "svdvals", "matrix_norm", "matrix_rank", "matrix_transpose"):
            yield of_arrays(dtype, f"linalg.{name}", tall)
        yield of_arrays(f"{dtype} upper", "linalg.cholesky", positive, upper=True)
        for order in (1, -1, 2, -2, np.inf, -np.inf, "fro", "nuc"):
            yield of_arrays(
                f"{dtype} {order}", "linalg.matrix_norm", tall, ord=order, keepdims=True
            )
        for order in (1, 2, 0, -1, 3.5, np.inf, -np.inf):
            yield of_arrays(f"{dtype} {order}", "linalg.vector_norm", tall, ord=order, axis=(0, 2))
        yield of_arrays(dtype, "linalg.vector_norm", tall)
        yield of_arrays(dtype, "linalg.solve", positive, tall[:, :3])
        yield of_arrays(f"{dtype} vector", "linalg.solve", positive[0], tall[0, :3, 0])
        for power in (-1, 0, 3):
            yield (
                "linalg.matrix_power " + f"{dtype} {power}",
                functools.partial(
                    lambda xp, make, x, n: xp.linalg.matrix_power(make(x), n), x=positive, n=power
                ),
            )
        for name, full in (("qr", None), ("svd", False), ("svd", True), ("eigh", None)):
            keywords = {} if full is None else {"full_matrices": full}
            given = positive if name == "eigh" else tall
            yield (
                f"linalg.{name} {dtype} {full}",
                functools.partial(factored, name=name, x=given, keywords=keywords),
            )
    for one, other in promoted(NUMERIC):
        x, y = random_array(one, (2, 3, 4)), random_array(other, (4, 3), 1)
        yield of_arrays(f"{one} {other}", "matmul", x, y)
        yield of_arrays(f"{one} {other}", "vecdot", x, np.swapaxes(y, 0, 1))
        yield of_arrays(f"{one} {other}", "tensordot", x, y, axes=([2], [0]))
        yield of_arrays(f"{one} {other}", "linalg.outer", x[0, 0], y[:, 0])
        yield of_arrays(f"{one} {other}", "linalg.cross", x[0, :, :3], y[:3], axis=-1)


def factored(xp: Any, make: Any, *, name: str, x: np.ndarray, keywords: Any) -> Any:
    """The product of a decomposition, and what its parts are, whose signs are open."""
    parts = getattr(xp.linalg, name)(make(x), **keywords)
    arrays = [np.asarray(part) for part in parts]
    if name == "qr":
        whole = arrays[0] @ arrays[1]
    elif name == "eigh":
        whole = arrays[1] * arrays[0][..., None, :] @ np.swapaxes(arrays[1].conj(), -1, -2)
    else:
        n = arrays[1].shape[-1]
        whole = arrays[0][..., :n] * arrays[1][..., None, :] @ arrays[2][..., :n, :]
    told = (type(parts)._fields, *((str(part.dtype), part.shape) for part in arrays))
    return whole, repr(told)


def fourier() -> Iterator[Call]:
    for name, dtypes in {
        **dict.fromkeys(("fft", "ifft", "fftn", "ifftn", "irfft", "irfftn", "hfft"), COMPLEX),
        **dict.fromkeys(("rfft", "rfftn", "ihfft"), FLOATS),
        **dict.fromkeys(("fftshift", "ifftshift"), NUMERIC),
    }.items():
        for dtype in dtypes:
            x = random_array(dtype, (4, 6))
            yield of_arrays(dtype, f"fft.{name}", x)
            if "shift" in name:
                yield of_arrays(f"{dtype} axes", f"fft.{name}", x, axes=(0,))
                continue
            for norm in ("ortho", "forward"):
                yield of_arrays(f"{dtype} {norm}", f"fft.{name}", x, norm=norm)
            sizes = {"s": (3, 5), "axes": (0, 1)} if name.endswith("n") else {"n": 5, "axis": 0}
            yield of_arrays(f"{dtype} sizes", f"fft.{name}", x, **sizes)
    for name, n in itertools.product(("fftfreq", "rfftfreq"), (5, 6)):
        yield f"fft.{name} {n}", lambda xp, make, n=n, name=name: getattr(xp.fft, name)(n, d=0.5)


def types() -> Iterator[Call]:
    kinds = ("bool", "signed integer", "unsigned integer", "integral", "real floating")
    for dtype in ALL:
        for kind in (*kinds, "complex floating", "numeric", ("bool", "integral")):
            yield (
                f"isdtype {dtype} {kind}",
                lambda xp, make, d=dtype, k=kind: xp.isdtype(np.dtype(d), k),
            )
    for dtype in INTEGERS:
        yield (
            f"iinfo {dtype}",
            lambda xp, make, d=dtype: [
                int(getattr(xp.iinfo(np.dtype(d)), key)) for key in ("bits", "min", "max")
            ],
        )
    keys = ("bits", "eps", "max", "min", "smallest_normal")
    for dtype in FLOATS + COMPLEX:
        yield (
            f"finfo {dtype}",
            lambda xp, make, d=dtype: [float(getattr(xp.finfo(np.dtype(d)), k)) for k in keys],
        )


GROUPS: dict[str, Callable[[], Iterator[Call]]] = {
    function.__name__: function
    for function in (
        elementwise,
        special_values,
        special_complex_values,
        reductions,
        creation,
        creation_from_values,
        manipulation,
        searching,
        linear_algebra,
        fourier,
        types,
    )
}


def flat(result: Any) -> list[Any]:
    """The arrays of a result."""
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in flat(part)]
    return [result]


def problem(call: Call, xp: Any, make: Callable[[np.ndarray], Any]) -> str:
    """What is wrong with a namespace's answer to a call; nothing if it is NumPy's."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = flat(call[1](np, np.asarray))
        try:
            found = flat(call[1](xp, make))
        except Exception as error:
            return f"{type(error).__name__}: {error}".partition("\n")[0][:100]
        if len(expected) != len(found):
            return f"{len(found)} results, not {len(expected)}"
        signed = " special " in call[0]
        return next(
            filter(None, (apart(*pair, signed) for pair in zip(expected, found, strict=True))), ""
        )


def apart(expected: Any, found: Any, signed: bool) -> str:
    """What differs between two results; zeros have a sign if they are asked for it."""
    if isinstance(expected, (str, np.dtype)):
        return "" if found == expected else f"{found}, not {expected}"
    x, y = np.asarray(expected), np.asarray(found)
    if x.dtype != y.dtype and not isinstance(expected, (bool, int, float)):
        return f"{y.dtype}, not {x.dtype}"
    if x.shape != y.shape:
        return f"shape {y.shape}, not {x.shape}"
    if x.dtype.kind not in "fc":
        return "" if np.array_equal(x, y) else f"{y.ravel()[:4]}, not {x.ravel()[:4]}"
    tolerance = 2e-4 if x.dtype in (np.float32, np.complex64) else 1e-9
    parts = ((x.real, y.real), (x.imag, y.imag)) if x.dtype.kind == "c" else ((x, y),)
    for one, other in parts:
        near = np.isclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)
        zeros = (one == 0) & (other == 0)
        wrong = ~near | (signed & zeros & (np.signbit(one) != np.signbit(other)))
        if wrong.any():
            return f"{y[wrong][:3]}, not {x[wrong][:3]}"
    return ""


def main(namespace: str) -> None:
    """Prints the calls that a namespace answers otherwise."""
    root = importlib.import_module(namespace.partition(".")[0])
    root.config.update("jax_enable_x64", True)
    xp = importlib.import_module(namespace)
    made = 0
    for calls in GROUPS.values():
        for call in calls():
            made += 1
            wrong = problem(call, xp, xp.asarray)
            if wrong:
                sys.stdout.write(f"{call[0]}: {wrong}\n")
    sys.stderr.write(f"{made} calls\n")


if __name__ == "__main__":
    main(sys.argv[1])
