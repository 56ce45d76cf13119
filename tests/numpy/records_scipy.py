"""Records of the parts of SciPy that compute with matrices, signals and samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.numpy.records import Record
from tests.numpy.records_linalg import LOOSE, RECTANGLES, moments, positive, regular

ONE = ((3, 3),)
NO_ARRAYS = {"grad": "it takes no arrays", "vmap": "it takes no arrays"}
INTEGERS = "its values are integers"


def record(name: str, draw: Any, oracle: Any = None, **options: Any) -> Record:
    return Record(f"scipy.{name}", draw, oracle, **{"tolerance": LOOSE, **options})


def linalg(name: str, draw: Any, **options: Any) -> Record:
    return record(f"linalg.{name}", draw, **options)


def of_matrix(name: str, make: Any = regular, kinds: str = "rc", **options: Any) -> Record:
    """A record of a function of one square matrix."""
    return linalg(name, lambda d: d.call(make(d, kinds, ONE)), **options)


def of_vectors(name: str, *sizes: int, kinds: str = "fi", **options: Any) -> Record:
    draw = lambda d: d.call(*(d.array(kinds, [(n,)], (1, 4)) for n in sizes))
    return linalg(name, draw, **{"grad": tuple(range(len(sizes))), **options})


def of_size(name: str, *sizes: int, **options: Any) -> Record:
    return linalg(name, lambda d: d.call(n=d.of(*sizes)), **NO_ARRAYS, **options)


def hermitian(x: Any) -> Any:
    """The Hermitian part of a matrix: differences go into half of it alone otherwise."""
    return (x + x.conj().T) / 2


def upper(factor: Any) -> Any:
    """A triangular matrix without what is left beside it."""
    return factor[0] * (np.tri(factor[0].shape[-1]).T > 0)


MATRICES = [
    linalg(
        "block_diag",
        lambda d: d.call(d.array("fi", [(2, 3)]), d.array("fi", [(2,), (1, 1)])),
        grad=(0, 1),
    ),
    of_vectors("circulant", 3),
    of_vectors("companion", 4, kinds="f"),
    of_vectors("fiedler", 3),
    of_vectors("fiedler_companion", 4, kinds="f"),
    of_vectors("hankel", 3, 2),
    of_vectors("toeplitz", 3, 2),
    of_vectors("leslie", 3, 2, kinds="f"),
    linalg(
        "convolution_matrix",
        lambda d: d.call(d.array("fi", [(3,)]), n=d.of(4, 2), mode=d.of("full", "same", "valid")),
    ),
    *(of_size(name, 3, 1) for name in ("hilbert", "invhilbert", "helmert", "dft")),
    *(of_size(name, 3, 4, kinds="it is of JAX's dtype") for name in ("pascal", "invpascal")),
    of_size("hadamard", 4, 1),
]

FACTORS = [
    of_matrix("cholesky", positive, call=lambda f, x: f(hermitian(x))),
    of_matrix("cho_factor", positive, call=lambda f, x: upper(f(hermitian(x)))),
    of_matrix("lu", call=lambda f, x: tuple(f(x))),
    of_matrix("lu_factor", call=lambda f, x: f(x)[0]),
    linalg(
        "qr",
        lambda d: d.call(regular(d, "rc", [(3, 2)])),
        call=lambda f, x: tuple(f(x, mode="economic")),
    ),
    linalg(
        "qr_multiply",
        lambda d: d.call(regular(d, "r", ONE), d.array("r", ONE)),
        call=lambda f, a, c: f(a, c.astype(a.dtype))[0],
        grad=(0, 1),
    ),
    linalg(
        "svd",
        lambda d: d.call(d.array("rc", RECTANGLES[:2])),
        call=lambda f, x: f(x, compute_uv=False),
    ),
    of_matrix("eigh", positive, call=lambda f, x: f(x, eigvals_only=True)),
    linalg(
        "eigh_tridiagonal",
        lambda d: d.call(
            d.array("float64" if d.x64 else "float32", [(4,)]),
            np.array([1, 2, 0.5], "float64" if d.x64 else "float32"),
        ),
        call=lambda f, x, y: f(x, y, eigvals_only=True),
        grad="JAX has none either",
    ),
    of_matrix("hessenberg", grad="JAX has none either"),
    of_matrix(
        "schur",
        positive,
        call=lambda f, x: moments(f(x)[0].diagonal().real),
        grad="JAX has none either",
    ),
    of_matrix(
        "polar",
        kinds="r",
        call=lambda f, x: tuple(f(x)),
        grad="its loop ends when it has converged",
    ),
]

FUNCTIONS = [
    of_matrix("det"),
    of_matrix("inv"),
    linalg("expm", lambda d: d.call(d.array("rc", ONE, (-1, 1)))),
]

SYSTEMS = [
    linalg(
        "solve",
        lambda d: d.call(a := regular(d, "rc", ONE), d.array(a.dtype.name, [(3,), (3, 2)])),
        grad=(0, 1),
    ),
    linalg(
        "solve_triangular",
        lambda d: d.call(
            a := regular(d, "rc", ONE),
            d.array(a.dtype.name, [(3,), (3, 2)]),
            lower=d.of(True, False),
            trans=d.of(0, 1, 2),
        ),
        grad=(0, 1),
    ),
    linalg(
        "cho_solve",
        lambda d: d.call(
            c := np.linalg.cholesky(positive(d, "r", ONE)), d.array(c.dtype.name, [(3,), (3, 2)])
        ),
        call=lambda f, c, b: f((c, True), b),
        grad=(0, 1),
    ),
    linalg(
        "lu_solve",
        lambda d: d.call(
            a := regular(d, "r", ONE), d.array(a.dtype.name, [(3,), (3, 2)]), trans=d.of(0, 1)
        ),
        call=lambda f, a, b, trans: f((a, np.array([1, 2, 2], "int32")), b, trans),
        grad=(0, 1),
    ),
    linalg(
        "solve_sylvester",
        lambda d: d.call(
            a := regular(d, "r", ONE), regular(d, a.dtype.name, ONE), d.array(a.dtype.name, ONE)
        ),
        grad="JAX has none either",
    ),
]

SIGNALS = [
    *(
        record(
            f"signal.{name}",
            lambda d: d.call(
                x := d.array("r", [(5,)]),
                d.array(x.dtype.name, [(3,), (5,)]),
                mode=d.of("full", "same", "valid"),
            ),
            grad=(0, 1),
        )
        for name in ("convolve", "correlate", "fftconvolve")
    ),
    *(
        record(
            f"signal.{name}",
            lambda d: d.call(
                x := d.array("r", [(4, 3)]),
                d.array(x.dtype.name, [(2, 2)]),
                mode=d.of("full", "same", "valid"),
            ),
            grad=(0, 1),
        )
        for name in ("convolve2d", "correlate2d")
    ),
    record(
        "signal.detrend",
        lambda d: d.call(d.array("r", [(6,), (2, 5)]), type=d.of("linear", "constant")),
    ),
    *(
        record(f"signal.{name}", lambda d: d.call(d.array("r", [(32,)])), call=call)
        for name, call in (
            ("welch", lambda f, x: f(x, nperseg=8)),
            ("stft", lambda f, x: f(x, nperseg=8)),
        )
    ),
    record(
        "signal.csd",
        lambda d: d.call(x := d.array("r", [(32,)]), d.array(x.dtype.name, [(32,)])),
        call=lambda f, x, y: f(x, y, nperseg=8),
        grad=(0, 1),
    ),
    *(
        record(
            f"fft.{name}",
            lambda d: d.call(d.array("r", [(2, 4), (3, 5)]), norm=d.of(None, "ortho")),
        )
        for name in ("dct", "idct", "dctn", "idctn")
    ),
    record(
        "ndimage.map_coordinates",
        lambda d: d.call(
            x := d.array("r", [(3, 4)]),
            list(d.array(x.dtype.name, [(2, 5)], (-1, 4)) + x.dtype.type(0.125)),
            order=1,
            mode=d.of("nearest", "mirror", "wrap"),
        ),
        grad=(0, 1),
    ),
    record(
        "integrate.trapezoid",
        lambda d: d.call(x := d.array("fi", [(2, 3), (4,)]), dx=d.of(2.0, 1), axis=d.axis(x)),
    ),
]

SAMPLES = [
    record(
        "stats.rankdata",
        lambda d: d.call(
            d.array("fi", [(2, 3), (5,)]),
            method=d.of("average", "min", "max", "dense", "ordinal"),
            axis=d.of(None, -1),
        ),
        grad=INTEGERS,
        kinds="ranks are floats",
    ),
    record(
        "stats.sem",
        lambda d: d.call(d.array("fi", [(2, 3), (4,)]), axis=d.of(0, -1), ddof=d.of(1, 0)),
    ),
    record(
        "stats.mode",
        lambda d: d.call(
            d.array("i", [(2, 4), (5,)]), axis=d.of(0, -1), keepdims=d.of(False, True)
        ),
        call=lambda f, x, **o: tuple(f(x, **o)),
        grad=INTEGERS,
    ),
    record(
        "cluster.vq.vq",
        lambda d: d.call(x := d.array("r", [(4, 2)]), d.array(x.dtype.name, [(3, 2)])),
        grad="JAX has none either",
    ),
]

RECORDS = [*MATRICES, *FACTORS, *FUNCTIONS, *SYSTEMS, *SIGNALS, *SAMPLES]
