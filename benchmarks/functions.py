"""The hundred most used functions, for the sweep of `sweep.py`: how each is called, and on what.

`FUNCTIONS` maps a name to a function of the library that gives the function to call, and the kinds
of its arguments: `m` a matrix of floats, `p` one of positive floats, `S` a symmetric positive
definite one, `i` a matrix of small integers, `b` one of booleans, `v` a vector of floats,
`n` a vector of indices, `k` a random key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Call = Callable[[Any], Callable[..., Any]]

SMALL, LARGE, LARGE_MATRIX = 8, 1024, 192
"""Rows of a matrix where a call costs nothing but itself, where it costs the work, and where the
work grows faster than the matrix."""

ELEMENTWISE = {
    name: (lambda jax, name=name: getattr(jax.numpy, name), kinds)
    for kinds, names in {
        "m": "abs exp expm1 sin cos tan arctan sinh tanh sign square negative floor round "
        "isnan isfinite nan_to_num sinc",
        "p": "log log1p log2 sqrt cbrt reciprocal",
        "mm": "add subtract multiply divide maximum minimum arctan2 hypot logaddexp "
        "equal less greater_equal isclose",
        "ii": "floor_divide remainder gcd bitwise_and left_shift",
        "bb": "logical_and logical_or",
        "pp": "power",
    }.items()
    for name in names.split()
}

REDUCING = {
    name: (lambda jax, name=name: lambda x: getattr(jax.numpy, name)(x, axis=1), kinds)
    for kinds, names in {
        "m": "sum mean prod max min argmax argmin var std cumsum cumprod sort argsort median "
        "nansum nanmean ptp",
        "b": "all any count_nonzero",
    }.items()
    for name in names.split()
}

SHAPING = {
    "reshape": (lambda jax: lambda x: jax.numpy.reshape(x, -1), "m"),
    "transpose": (lambda jax: jax.numpy.transpose, "m"),
    "concatenate": (lambda jax: lambda x, y: jax.numpy.concatenate([x, y], axis=1), "mm"),
    "stack": (lambda jax: lambda x, y: jax.numpy.stack([x, y]), "mm"),
    "split": (lambda jax: lambda x: jax.numpy.split(x, 4), "m"),
    "squeeze": (lambda jax: lambda x: jax.numpy.squeeze(x[None]), "m"),
    "expand_dims": (lambda jax: lambda x: jax.numpy.expand_dims(x, 1), "m"),
    "broadcast_to": (lambda jax: lambda x: jax.numpy.broadcast_to(x, (2, *x.shape)), "m"),
    "tile": (lambda jax: lambda x: jax.numpy.tile(x, (2, 1)), "m"),
    "repeat": (lambda jax: lambda x: jax.numpy.repeat(x, 2, axis=0), "m"),
    "roll": (lambda jax: lambda x: jax.numpy.roll(x, 3, axis=1), "m"),
    "flip": (lambda jax: jax.numpy.flip, "m"),
    "pad": (lambda jax: lambda x: jax.numpy.pad(x, 1), "m"),
    "moveaxis": (lambda jax: lambda x: jax.numpy.moveaxis(x, 0, 1), "m"),
    "tril": (lambda jax: jax.numpy.tril, "m"),
    "diagonal": (lambda jax: jax.numpy.diagonal, "m"),
}

SELECTING = {
    "where": (lambda jax: jax.numpy.where, "bmm"),
    "clip": (lambda jax: lambda x: jax.numpy.clip(x, -0.5, 0.5), "m"),
    "take": (lambda jax: lambda x, n: jax.numpy.take(x, n, axis=0), "mn"),
    "take_along_axis": (lambda jax: lambda x, i: jax.numpy.take_along_axis(x, i, axis=1), "mi"),
    "x[n]": (lambda jax: lambda x, n: x[n], "mn"),
    "x[1:-1, ::2]": (lambda jax: lambda x: x[1:-1, ::2], "m"),
    "x.at[n].add": (lambda jax: lambda x, n: x.at[n].add(1), "mn"),
    "searchsorted": (lambda jax: lambda v, x: jax.numpy.searchsorted(v, x[0]), "vm"),
    "digitize": (lambda jax: lambda x, v: jax.numpy.digitize(x[0], v), "mv"),
    "interp": (lambda jax: lambda x, v, w: jax.numpy.interp(x[0], v, w), "mvv"),
    "bincount": (lambda jax: lambda n: jax.numpy.bincount(n, length=16), "n"),
    "histogram": (lambda jax: lambda v: jax.numpy.histogram(v, 10), "v"),
    "unique": (lambda jax: lambda n: jax.numpy.unique(n, size=4), "n"),
    "percentile": (lambda jax: lambda x: jax.numpy.percentile(x, 30, axis=1), "m"),
    "top_k": (lambda jax: lambda x: jax.lax.top_k(x, 4), "m"),
}

CREATING = {
    "zeros": (lambda jax: lambda x: jax.numpy.zeros(x.shape), "m"),
    "full_like": (lambda jax: lambda x: jax.numpy.full_like(x, 2), "m"),
    "arange": (lambda jax: lambda x: jax.numpy.arange(x.shape[0]), "m"),
    "linspace": (lambda jax: lambda x: jax.numpy.linspace(0, 1, x.shape[0]), "m"),
    "eye": (lambda jax: lambda x: jax.numpy.eye(x.shape[0]), "m"),
    "astype": (lambda jax: lambda x: x.astype("int32"), "m"),
}

CONTRACTING = {
    "matmul": (lambda jax: jax.numpy.matmul, "SS"),
    "dot": (lambda jax: jax.numpy.dot, "SS"),
    "einsum": (lambda jax: lambda x, y: jax.numpy.einsum("ij,kj->ik", x, y), "SS"),
    "tensordot": (lambda jax: lambda x, y: jax.numpy.tensordot(x, y, 1), "SS"),
    "outer": (lambda jax: jax.numpy.outer, "vv"),
    "convolve": (lambda jax: lambda v: jax.numpy.convolve(v, v[:7]), "v"),
    "linalg.norm": (lambda jax: jax.numpy.linalg.norm, "m"),
    "linalg.solve": (lambda jax: jax.numpy.linalg.solve, "SS"),
    "linalg.inv": (lambda jax: jax.numpy.linalg.inv, "S"),
    "linalg.det": (lambda jax: jax.numpy.linalg.det, "S"),
    "linalg.cholesky": (lambda jax: jax.numpy.linalg.cholesky, "S"),
    "linalg.qr": (lambda jax: jax.numpy.linalg.qr, "S"),
    "linalg.svd": (lambda jax: lambda x: jax.numpy.linalg.svd(x)[1], "S"),
    "linalg.eigh": (lambda jax: lambda x: jax.numpy.linalg.eigh(x)[0], "S"),
    "fft.fft": (lambda jax: jax.numpy.fft.fft, "m"),
    "fft.rfft2": (lambda jax: jax.numpy.fft.rfft2, "m"),
}

BEYOND = {
    "random.uniform": (lambda jax: lambda k, x: jax.random.uniform(k, x.shape), "km"),
    "random.normal": (lambda jax: lambda k, x: jax.random.normal(k, x.shape), "km"),
    "random.randint": (lambda jax: lambda k, x: jax.random.randint(k, x.shape, 0, 9), "km"),
    "random.bernoulli": (lambda jax: lambda k, x: jax.random.bernoulli(k, 0.3, x.shape), "km"),
    "random.categorical": (lambda jax: jax.random.categorical, "km"),
    "random.permutation": (lambda jax: jax.random.permutation, "kn"),
    "random.gamma": (lambda jax: lambda k, v: jax.random.gamma(k, 2.0, v.shape), "kv"),
    "random.split": (lambda jax: jax.random.split, "k"),
    "nn.relu": (lambda jax: jax.nn.relu, "m"),
    "nn.gelu": (lambda jax: jax.nn.gelu, "m"),
    "nn.sigmoid": (lambda jax: jax.nn.sigmoid, "m"),
    "nn.softmax": (lambda jax: jax.nn.softmax, "m"),
    "nn.log_softmax": (lambda jax: jax.nn.log_softmax, "m"),
    "nn.one_hot": (lambda jax: lambda n: jax.nn.one_hot(n, 16), "n"),
    "scipy.logsumexp": (lambda jax: lambda x: jax.scipy.special.logsumexp(x, axis=1), "m"),
    "scipy.gammaln": (lambda jax: jax.scipy.special.gammaln, "p"),
    "scipy.erf": (lambda jax: jax.scipy.special.erf, "m"),
    "scipy.norm.logpdf": (lambda jax: jax.scipy.stats.norm.logpdf, "m"),
}

FUNCTIONS: dict[str, tuple[Call, str]] = {
    **ELEMENTWISE,
    **REDUCING,
    **SHAPING,
    **SELECTING,
    **CREATING,
    **CONTRACTING,
    **BEYOND,
}


def arguments(jax: Any, kinds: str, rows: int) -> list[Any]:
    """Arrays on the device, the same for both libraries."""
    rng = np.random.default_rng(0)
    return [_argument(jax, kind, rows, rng) for kind in kinds]


def _argument(jax: Any, kind: str, rows: int, rng: np.random.Generator) -> Any:
    if kind == "k":
        return jax.random.key(0)
    if kind == "S":
        rows = min(rows, LARGE_MATRIX)
        x = rng.uniform(-1, 1, (rows, rows)).astype(np.float32)
        return jax.numpy.asarray(x @ x.T + rows * np.eye(rows, dtype=np.float32))
    made = {
        "m": lambda: rng.uniform(-1, 1, (rows, rows)).astype(np.float32),
        "p": lambda: rng.uniform(0.1, 2, (rows, rows)).astype(np.float32),
        "i": lambda: rng.integers(1, 7, (rows, rows)).astype(np.int32),
        "b": lambda: rng.integers(0, 2, (rows, rows)).astype(np.bool_),
        "v": lambda: np.sort(rng.uniform(-1, 1, rows)).astype(np.float32),
        "n": lambda: rng.integers(0, 7, rows).astype(np.int32),
    }
    return jax.numpy.asarray(made[kind]())
