"""What `recorded.json` records of JAX: calls by name, on any library of its API.

A call takes the library and a key.  `record.py` runs all of them on JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Call = Callable[[Any, Any], Any]

FLOATS = ("float16", "bfloat16", "float32")
INTEGERS = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
SEED = 42

SEEDS: dict[str, Any] = {
    "0": 0,
    "1": 1,
    "-1": -1,
    "2**31-1": 2**31 - 1,
    "2**31": 2**31,
    "2**32-1": 2**32 - 1,
    "2**32": 2**32,
    "2**40+5": 2**40 + 5,
    "-2**31": -(2**31),
    "-2**40": -(2**40),
    "2**63-1": 2**63 - 1,
    "-2**63": -(2**63),
    "True": True,
    "int8 -3": np.int8(-3),
    "uint8 200": np.uint8(200),
    "int64 2**40+5": np.int64(2**40 + 5),
    "uint64 2**63": np.uint64(2**63),
}

# Of a shape and a dtype alone.
PLAIN = (
    "uniform",
    "normal",
    "gumbel",
    "exponential",
    "laplace",
    "logistic",
    "cauchy",
    "maxwell",
    "rademacher",
)


def _plain(name: str, shape: tuple[int, ...], dtype: str) -> Call:
    return lambda jax, key: getattr(jax.random, name)(key, shape, dtype)


def _calls_of_plain() -> dict[str, Call]:
    shapes = ((), (5,), (2, 3), (0, 2))
    return {f"{name} {dims}": _plain(name, dims, "float32") for name in PLAIN for dims in shapes}


def _calls_of_floats(floats: Sequence[str], complexes: Sequence[str]) -> dict[str, Call]:
    calls = {f"{name} {dtype}": _plain(name, (7,), dtype) for name in PLAIN for dtype in floats}
    calls |= {f"normal {dtype}": _plain("normal", (5,), dtype) for dtype in complexes}
    for name, call in PARAMETRIC.items():
        # NumPy itself cannot make an array of bfloat16 by name.
        of_array = "array" in name
        calls |= {
            f"{name} {d}": _of_dtype(call, d) for d in floats if not (of_array and d == "bfloat16")
        }
    return calls


def _calls_of_integers(integers: Sequence[str]) -> dict[str, Call]:
    calls = {}
    for dtype in integers:
        calls[f"rademacher {dtype}"] = _plain("rademacher", (7,), dtype)
        if dtype.startswith("u"):
            calls[f"bits {dtype}"] = _plain("bits", (2, 3), dtype)
        info = np.iinfo(dtype)
        # Bounds are given in the default integer dtype.
        largest = min(int(info.max), 2 ** (max(info.bits, 32) - 1) - 1)
        calls[f"randint {dtype} small"] = _randint(3, 17, dtype)
        calls[f"randint {dtype} whole"] = _randint(int(info.min), largest, dtype)
    return calls


def _randint(low: Any, high: Any, dtype: str) -> Call:
    return lambda jax, key: jax.random.randint(key, (2, 3), low, high, dtype)


def _calls_of_randint() -> dict[str, Call]:
    calls = {}
    for dtype in ("int8", "uint8", "int16", "uint16"):
        calls[f"randint {dtype} beyond"] = _randint(-(10**6), 10**6, dtype)
    rows = np.array([[0], [10]], np.int32), np.array([2, 30, 1000], np.int32)
    calls["randint arrays"] = _randint(*rows, "int32")
    calls["randint empty interval"] = _randint(5, 5, "int32")
    calls["randint int8 bounds"] = _randint(np.int8(-128), np.int8(127), "int32")
    calls["randint float bounds"] = _randint(0.0, 10.5, "int32")
    return calls


_ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)
_WEIGHTS = np.array([0.1, 0, 0.4, 0.2, 0.3], np.float32)
_HALVES = np.array([0.5, 0.25], np.float16)

DISCRETE: dict[str, Call] = {
    "bernoulli": lambda jax, key: jax.random.bernoulli(key, 0.3, (7,)),
    "bernoulli default": lambda jax, key: jax.random.bernoulli(key),
    "bernoulli of array": lambda jax, key: jax.random.bernoulli(key, _WEIGHTS),
    "bernoulli of broadcast array": lambda jax, key: jax.random.bernoulli(key, _WEIGHTS, (3, 5)),
    "bernoulli of float16": lambda jax, key: jax.random.bernoulli(key, _HALVES, (5, 2)),
    "bernoulli high": lambda jax, key: jax.random.bernoulli(key, 0.3, (7,), mode="high"),
    "categorical": lambda jax, key: jax.random.categorical(key, np.log(_ROWS + 1)),
    "categorical of axis": lambda jax, key: jax.random.categorical(key, _ROWS, axis=0),
    "categorical of shape": lambda jax, key: jax.random.categorical(key, _ROWS, shape=(4, 2)),
    "categorical of many": lambda jax, key: jax.random.categorical(key, _ROWS, 0, (2, 2, 3)),
    "categorical once each": lambda jax, key: jax.random.categorical(
        key, _ROWS, shape=(3, 2), replace=False
    ),
    "categorical high": lambda jax, key: jax.random.categorical(key, _ROWS, mode="high"),
    "categorical float16": lambda jax, key: jax.random.categorical(key, _HALVES, shape=(6,)),
    "permutation of range": lambda jax, key: jax.random.permutation(key, 9),
    "permutation of nothing": lambda jax, key: jax.random.permutation(key, 0),
    "permutation of vector": lambda jax, key: jax.random.permutation(key, _WEIGHTS),
    "permutation of rows": lambda jax, key: jax.random.permutation(key, _ROWS),
    "permutation of columns": lambda jax, key: jax.random.permutation(key, _ROWS, -1),
    "permutation in rows": lambda jax, key: jax.random.permutation(key, _ROWS, 1, True),
    "permutation of 3000": lambda jax, key: jax.random.permutation(key, 3000)[:20],
    "choice": lambda jax, key: jax.random.choice(key, 9, (2, 3)),
    "choice of array": lambda jax, key: jax.random.choice(key, _WEIGHTS, (4,)),
    "choice of columns": lambda jax, key: jax.random.choice(key, _ROWS, (2, 2), axis=1),
    "choice once each": lambda jax, key: jax.random.choice(key, 9, (2, 3), replace=False),
    "choice of columns once each": lambda jax, key: jax.random.choice(
        key, _ROWS, (3, 1), False, axis=1
    ),
    "choice weighted": lambda jax, key: jax.random.choice(key, 5, (3, 4), p=_WEIGHTS),
    "choice weighted once each": lambda jax, key: jax.random.choice(key, 5, (4,), False, _WEIGHTS),
    "choice weighted high": lambda jax, key: jax.random.choice(
        key, 5, (4,), False, _WEIGHTS, mode="high"
    ),
    "choice of nothing": lambda jax, key: jax.random.choice(key, _WEIGHTS[:0], (0, 2)),
    "geometric": lambda jax, key: jax.random.geometric(key, 0.3, (7,)),
    "geometric of array": lambda jax, key: jax.random.geometric(key, _HALVES, (3, 2)),
    "geometric int8": lambda jax, key: jax.random.geometric(key, 0.1, (5,), "int8"),
    "gumbel high": lambda jax, key: jax.random.gumbel(key, (7,), mode="high"),
    "gumbel high float16": lambda jax, key: jax.random.gumbel(key, (7,), "float16", mode="high"),
}

PARAMETRIC: dict[str, Callable[[Any, Any, str], Any]] = {
    "uniform bounds": lambda jax, key, d: jax.random.uniform(key, (7,), d, -2, 3.5),
    "uniform array": lambda jax, key, d: jax.random.uniform(
        key, (3, 2), d, np.array([0, 1], d), np.array([[1], [5], [9]], d)
    ),
    "truncated_normal": lambda jax, key, d: jax.random.truncated_normal(key, -1.5, 2, (7,), d),
    "truncated_normal array": lambda jax, key, d: jax.random.truncated_normal(
        key, np.array([-9, 1.5], d), np.array([-1, 1.625], d), (3, 2), d
    ),
    "rayleigh": lambda jax, key, d: jax.random.rayleigh(key, 2, (7,), d),
    "rayleigh array": lambda jax, key, d: jax.random.rayleigh(key, np.array([1, 2], d), (3, 2), d),
    "pareto": lambda jax, key, d: jax.random.pareto(key, 1.5, (7,), d),
    "lognormal": lambda jax, key, d: jax.random.lognormal(key, 0.5, (7,), d),
    "triangular": lambda jax, key, d: jax.random.triangular(key, -1, 0.5, 2, (7,), d),
    "triangular array": lambda jax, key, d: jax.random.triangular(
        key, np.array([-1, 0], d), 0.5, 2, (3, 2), d
    ),
    "wald": lambda jax, key, d: jax.random.wald(key, 1.5, (7,), d),
    "weibull_min": lambda jax, key, d: jax.random.weibull_min(key, 2, 1.5, (7,), d),
    "double_sided_maxwell": lambda jax, key, d: jax.random.double_sided_maxwell(
        key, 1, 2.0, (7,), d
    ),
    "double_sided_maxwell array": lambda jax, key, d: jax.random.double_sided_maxwell(
        key, np.array([1, 2], d), 2.0, (3,), d
    ),
}

KEYS: dict[str, Call] = {
    "split": lambda jax, key: jax.random.key_data(jax.random.split(key)),
    "split 5": lambda jax, key: jax.random.key_data(jax.random.split(key, 5)),
    "split 0": lambda jax, key: jax.random.key_data(jax.random.split(key, 0)),
    "split (2, 3)": lambda jax, key: jax.random.key_data(jax.random.split(key, (2, 3))),
    "split of split": lambda jax, key: jax.random.key_data(
        jax.random.split(jax.random.split(key, 3)[1], 2)
    ),
    "fold_in 0": lambda jax, key: jax.random.key_data(jax.random.fold_in(key, 0)),
    "fold_in 7": lambda jax, key: jax.random.key_data(jax.random.fold_in(key, 7)),
    "fold_in 2**32-1": lambda jax, key: jax.random.key_data(jax.random.fold_in(key, 2**32 - 1)),
    "fold_in int64": lambda jax, key: jax.random.key_data(jax.random.fold_in(key, np.int64(-1))),
    "fold_in of fold_in": lambda jax, key: jax.random.key_data(
        jax.random.fold_in(jax.random.fold_in(key, 1), 2)
    ),
    "normal of fold_in of split": lambda jax, key: jax.random.normal(
        jax.random.fold_in(jax.random.split(key)[0], 3), (4,)
    ),
    "bits over 2**16": lambda jax, key: jax.random.bits(key, (70000,))[65530:65550],
}


def _of_dtype(call: Callable[[Any, Any, str], Any], dtype: str) -> Call:
    return lambda jax, key: call(jax, key, dtype)


def _of_seed(seed: Any, style: str) -> Call:
    return lambda jax, key: jax.random.key_data(getattr(jax.random, style)(seed))


_OF_SEEDS = {
    f"{style} {name}": _of_seed(seed, style)
    for name, seed in SEEDS.items()
    for style in ("key", "PRNGKey")
}

GRADIENTS: dict[str, Call] = {
    "gradient of uniform by minval": lambda jax, key: jax.grad(
        lambda low: jax.random.uniform(key, (3,), minval=low).sum()
    )(0.25),
    "gradient of truncated_normal by lower": lambda jax, key: jax.grad(
        lambda low: jax.random.truncated_normal(key, low, 2.0, (3,)).sum()
    )(-1.0),
    "gradient of lognormal by sigma": lambda jax, key: jax.grad(
        lambda sigma: jax.random.lognormal(key, sigma)
    )(0.5),
    "gradient of scaled normal by key too": lambda jax, key: jax.grad(
        lambda x, k: x * jax.random.normal(k)
    )(2.0, key),
}

_SHAPES = np.array([0.01, 0.5, 1, 2, 10, 300], np.float32)
_EXPECTED = np.array([0, -1, np.nan, 0.1, 1, 5, 9.9, 10, 11, 100, 1e4, 1e9, np.inf], np.float32)
_TRIALS = np.array([0, -1, np.nan, 1, 5, 10, 50, 1000, 1e6, np.inf, 7.5], np.float32)
_CHANCES = np.array([[0.001], [0.3], [0.5], [0.9], [1.2], [-0.1], [np.nan]], np.float32)
_SHARES = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
COVARIANCE = np.array([[2, 0.5, 0.1], [0.5, 1, 0.2], [0.1, 0.2, 3]], np.float32)
MEANS = np.array([[1, 2, 3], [-1, 0, 1]], np.float32)

GAMMA_FAMILY: dict[str, Call] = {
    "gamma": lambda jax, key: jax.random.gamma(key, _SHAPES, (2, 6)),
    "gamma float16": lambda jax, key: jax.random.gamma(key, _SHAPES, dtype="float16"),
    "loggamma": lambda jax, key: jax.random.loggamma(key, _SHAPES),
    "beta": lambda jax, key: jax.random.beta(key, _SHAPES, 2, (2, 6)),
    "chisquare": lambda jax, key: jax.random.chisquare(key, _SHAPES),
    "f": lambda jax, key: jax.random.f(key, _SHAPES, 3.0),
    "t": lambda jax, key: jax.random.t(key, _SHAPES),
    "dirichlet": lambda jax, key: jax.random.dirichlet(key, _SHAPES, (2,)),
    "generalized_normal float16": lambda jax, key: jax.random.generalized_normal(
        key, 3, (5,), "float16"
    ),
    "ball": lambda jax, key: jax.random.ball(key, 3, 2.5, (4,)),
    "gradient of gamma": lambda jax, key: jax.grad(lambda a: jax.random.gamma(key, a).sum())(
        _SHAPES[:5]
    ),
    "gradient of loggamma": lambda jax, key: jax.grad(lambda a: jax.random.loggamma(key, a).sum())(
        _SHAPES[:5]
    ),
}

COUNTS: dict[str, Call] = {
    "poisson": lambda jax, key: jax.random.poisson(key, _EXPECTED),
    "poisson int8": lambda jax, key: jax.random.poisson(key, _EXPECTED, (2, 13), "int8"),
    "binomial": lambda jax, key: jax.random.binomial(key, _TRIALS, _CHANCES),
    "binomial float16": lambda jax, key: jax.random.binomial(key, 30, _CHANCES, dtype="float16"),
    "multinomial": lambda jax, key: jax.random.multinomial(key, 1000, _SHARES, shape=(3, 4)),
    "multinomial int32": lambda jax, key: jax.random.multinomial(
        key, 100, _SHARES, dtype="int32", unroll=2
    ),
}

MULTIVARIATE: dict[str, Call] = {
    "multivariate_normal": lambda jax, key: jax.random.multivariate_normal(
        key, MEANS, COVARIANCE, (2, 2)
    ),
    "multivariate_normal by eigh": lambda jax, key: jax.random.multivariate_normal(
        key, MEANS, COVARIANCE, method="eigh"
    ),
    "multivariate_normal by svd": lambda jax, key: jax.random.multivariate_normal(
        key, MEANS[0], COVARIANCE, (2, 1), "bfloat16", "svd"
    ),
    "orthogonal": lambda jax, key: jax.random.orthogonal(key, 3, (2,)),
    "orthogonal rows complex64": lambda jax, key: jax.random.orthogonal(key, 2, (), "complex64", 3),
}


def _of_generator(name: str, call: Call) -> Call:
    return lambda jax, key: call(jax, jax.random.key(SEED, impl=name))


_OF_ANY_GENERATOR: dict[str, Call] = {
    "key": lambda jax, key: jax.random.key_data(key),
    "split": lambda jax, key: jax.random.key_data(jax.random.split(key, (2, 3))),
    "fold_in": lambda jax, key: jax.random.key_data(jax.random.fold_in(key, 7)),
    "bits uint8": lambda jax, key: jax.random.bits(key, (5,), "uint8"),
    "bits uint32": lambda jax, key: jax.random.bits(jax.random.split(key)[1], (5,)),
    "bits of a batch": lambda jax, key: jax.vmap(jax.vmap(lambda k: jax.random.bits(k, (2,))))(
        jax.random.split(key, (2, 3))
    ),
    "split of a batch": lambda jax, key: jax.random.key_data(
        jax.vmap(jax.random.split)(jax.random.split(key, 3))
    ),
    "fold_in of a batch": lambda jax, key: jax.random.key_data(
        jax.vmap(lambda k: jax.random.fold_in(k, 3))(jax.random.split(key, 3))
    ),
    "fold_in of numbers": lambda jax, key: jax.random.key_data(
        jax.vmap(lambda i: jax.random.fold_in(key, i))(np.arange(3, dtype=np.uint32))
    ),
    "normal": lambda jax, key: jax.random.normal(key, (3,)),
    "gamma": lambda jax, key: jax.random.gamma(key, _SHAPES),
}

OF_XLA = ("rbg", "unsafe_rbg")
HASHES = ("philox2x32", "philox4x32", "threefry4x32")

GENERATORS = {
    f"{generator} {name}": _of_generator(generator, call)
    for generator in OF_XLA
    for name, call in _OF_ANY_GENERATOR.items()
} | {
    f"{generator} {name}": _of_generator(generator, _OF_ANY_GENERATOR[name])
    for generator in HASHES
    for name in ("key", "split", "fold_in", "bits uint8", "bits of a batch")
}
FLAT = {
    "split": GENERATORS["rbg split"],
    "threefry split": lambda jax, key: jax.random.key_data(jax.random.split(key, (2, 3))),
    "bits uint8": lambda jax, key: jax.random.bits(key, (2, 5), "uint8"),
    "bits uint16": lambda jax, key: jax.random.bits(key, (2, 3), "uint16"),
    "bits of a batch": lambda jax, key: jax.vmap(lambda k: jax.random.bits(k, (3,)))(
        jax.random.split(key)
    ),
    "normal": lambda jax, key: jax.random.normal(key, (5,)),
    "gamma": lambda jax, key: jax.random.gamma(key, _SHAPES),
}
"""Calls without `threefry_partitionable`."""


def _wide_bits(jax: Any, key: Any) -> Any:
    return jax.random.bits(key, (3,), "uint64")


def _flat(call: Call) -> Call:
    def called(jax: Any, key: Any) -> Any:
        with jax.threefry_partitionable(False):
            return call(jax, key)

    return called


_RANDINTS = _calls_of_randint()

CALLS: dict[str, dict[str, Call]] = {
    "keys": {**KEYS, **_OF_SEEDS},
    "distributions": {
        **_calls_of_plain(),
        **_calls_of_floats(FLOATS, ("complex64",)),
        **GRADIENTS,
    },
    "discrete": {**_calls_of_integers(INTEGERS), **_RANDINTS, **DISCRETE},
    "gamma family": GAMMA_FAMILY,
    "counts": COUNTS,
    "multivariate": MULTIVARIATE,
    "generators": GENERATORS,
    "flat": {f"flat {name}": _flat(call) for name, call in FLAT.items()},
}

CALLS_X64: dict[str, dict[str, Call]] = {
    "keys": {**KEYS, **_OF_SEEDS},
    "distributions": _calls_of_floats(("float64",), ("complex128",)),
    "discrete": {
        **_calls_of_integers(("int64", "uint64")),
        **{name: call for name, call in _RANDINTS.items() if "bounds" not in name},
        **DISCRETE,
    },
    "gamma family": {name: GAMMA_FAMILY[name] for name in ("gamma", "dirichlet")},
    "counts": {name: COUNTS[name] for name in ("poisson", "binomial")},
    "multivariate": {"orthogonal": MULTIVARIATE["orthogonal"]},
    "generators": {
        f"{generator} {name}": GENERATORS[f"{generator} {name}"]
        for generator in OF_XLA
        for name in ("key", "normal")
    }
    | {f"{generator} bits uint64": _of_generator(generator, _wide_bits) for generator in HASHES},
    "flat": {"flat bits uint64": _flat(_wide_bits)},
}
"""Calls for programs with 64-bit types."""

FUNCTIONS = sorted(
    {name.split()[0] for calls in CALLS.values() for name in calls}
    - {"flat", "gradient", *OF_XLA, *HASHES}
    | {"clone", "key_data", "key_dtype", "key_impl", "wrap_key_data"}
)
"""The functions of `jax.random` whose signatures are recorded."""
