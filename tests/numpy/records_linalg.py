"""Records of linear algebra: of matrices that are far from singular, and of their factors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.numpy.records import Record

SQUARE = ((3, 3), (2, 2, 2), (1, 1))
RECTANGLES = ((3, 2), (2, 3), (2, 3, 2))
# The error of a solution grows with the condition of the matrix.
LOOSE = 100
SMALL = (-1, 1)
NO_ARRAYS = {"grad": "it takes no arrays", "vmap": "it takes no arrays"}


def regular(d: Any, kinds: str = "rc", shapes: Any = SQUARE) -> Any:
    """A matrix whose diagonal dominates."""
    x = d.array(kinds, shapes, SMALL)
    return x + (4 * np.eye(x.shape[-2], x.shape[-1])).astype(x.dtype)


def positive(d: Any, kinds: str = "rc", shapes: Any = SQUARE) -> Any:
    """A positive definite matrix, whose eigenvalues are apart."""
    x = d.array(kinds, shapes, (-0.5, 0.5))
    return (
        x
        + np.conj(np.swapaxes(x, -1, -2))
        + np.diag(3.0 + 3 * np.arange(x.shape[-1])).astype(x.dtype)
    )


def record(name: str, draw: Any, oracle: Any = None, **options: Any) -> Record:
    return Record(f"numpy.linalg.{name}", draw, oracle, **{"tolerance": LOOSE, **options})


def of_regular(name: str, **options: Any) -> Record:
    return record(name, lambda d: d.call(regular(d)), **options)


def two(name: str, *shapes: Any, grad: Any = (0, 1), **options: Any) -> Record:
    """A record of a function of two arrays of one dtype."""

    def draw(d: Any) -> Any:
        left, right = d.of(*shapes)
        return d.call(x := d.array("rc", [left]), d.array(x.dtype.name, [right]))

    return record(name, draw, grad=grad, **options)


def rebuilt(f: Any, x: Any, **options: Any) -> Any:
    """Singular values, and the product of all factors: the signs of vectors are free."""
    u, s, v = f(x, full_matrices=False)
    return s, (u * s[..., None, :]) @ v


def spectrum(f: Any, x: Any) -> Any:
    """Eigenvalues, and the matrix rebuilt from them: the phases of vectors are free."""
    w, v = f(x)
    return w, (v * w[..., None, :]) @ v.conj().swapaxes(-1, -2)


def moments(w: Any) -> Any:
    """What eigenvalues in any order have in common."""
    return [w.sum(-1), (w**2).sum(-1), w.prod(-1)]


FACTORS = [
    record("cholesky", lambda d: d.call(positive(d), upper=d.of(False, True))),
    record(
        "qr",
        lambda d: d.call(d.array("rc", RECTANGLES[:1]) + np.eye(3, 2).astype(int) * 4),
        call=lambda f, x: tuple(f(x)),
    ),
    record("svd", lambda d: d.call(positive(d)), call=rebuilt),
    record(
        "svd",
        lambda d: d.call(d.array("rc", RECTANGLES)),
        call=lambda f, x: f(x, compute_uv=False),
        case="values",
    ),
    record("svdvals", lambda d: d.call(d.array("rc", RECTANGLES))),
    record("eigh", lambda d: d.call(positive(d)), call=spectrum),
    record("eigvalsh", lambda d: d.call(positive(d))),
    record(
        "eig",
        lambda d: d.call(regular(d)),
        call=lambda f, x: moments(f(x)[0]),
        kinds="eigenvalues are complex",
        grad="eigvals has a derivative, eigenvectors need not",
    ),
    record(
        "eigvals",
        lambda d: d.call(regular(d)),
        call=lambda f, x: moments(f(x)),
        kinds="eigenvalues are complex",
    ),
]

NUMBERS = [
    of_regular("det"),
    of_regular("slogdet", call=lambda f, x: tuple(f(x))),
    of_regular("cond"),
    record(
        "matrix_rank", lambda d: d.call(d.array("r", RECTANGLES)), grad="its values are integers"
    ),
    record(
        "matrix_norm",
        lambda d: d.call(
            d.array("rc", RECTANGLES),
            ord=d.of("fro", "nuc", 1, -1, 2, np.inf),
            keepdims=d.of(False, True),
        ),
    ),
    record(
        "vector_norm",
        lambda d: d.call(
            x := d.array("rc", RECTANGLES),
            ord=d.of(2, 1, 3, np.inf, -np.inf, 0),
            axis=d.axis(x, none=True),
            keepdims=d.of(False, True),
        ),
    ),
    record(
        "norm",
        lambda d: d.call(
            x := d.array("fi", RECTANGLES),
            axis=d.axis(x),
            ord=d.of(None, 1, 2),
            keepdims=d.of(False, True),
        ),
    ),
    record(
        "norm",
        lambda d: d.call(
            d.array("rc", RECTANGLES), axis=d.of((0, 1), (-1, -2)), ord=d.of("fro", 1, -2)
        ),
        case="matrix",
    ),
    record("trace", lambda d: d.call(d.array("fiuc", RECTANGLES), offset=d.of(0, 1, -1))),
]

SOLUTIONS = [
    of_regular("inv"),
    record("pinv", lambda d: d.call(regular(d, shapes=((3, 2), (2, 3))))),
    record(
        "solve",
        lambda d: d.call(a := regular(d, shapes=[(3, 3)]), d.array(a.dtype.name, [(3, 2), (3,)])),
        grad=(0, 1),
    ),
    record(
        "solve",
        lambda d: d.call(
            a := regular(d, shapes=[(2, 3, 3)]), d.array(a.dtype.name, [(3, 2), (2, 3, 1)])
        ),
        grad=(0, 1),
        case="batches",
    ),
    record(
        "lstsq",
        lambda d: d.call(a := regular(d, "r", [(4, 2)]), d.array(a.dtype.name, [(4, 3), (4,)])),
        call=lambda f, a, b: f(a, b)[0],
        grad=(0, 1),
    ),
    record("matrix_power", lambda d: d.call(regular(d), n=d.of(3, 0, 1, -2))),
    record("tensorinv", lambda d: d.call(regular(d, "r", [(6, 6)]).reshape(2, 3, 6), ind=2)),
    record(
        "tensorsolve",
        lambda d: d.call(
            a := regular(d, "r", [(6, 6)]).reshape(2, 3, 6), d.array(a.dtype.name, [(2, 3)])
        ),
        grad=(0, 1),
    ),
]

PRODUCTS = [
    record(
        "multi_dot",
        lambda d: d.call(
            [d.array("fi", [s]) for s in d.of(((2, 3), (3, 4), (4, 1)), ((3,), (3, 2), (2,)))]
        ),
    ),
    two("matmul", ((2, 3), (3, 4)), ((2, 1, 3), (3, 2))),
    two("outer", ((3,), (2,))),
    two("vecdot", ((2, 3), (2, 3)), ((3,), (2, 3))),
    two("tensordot", ((2, 3), (2, 3))),
    record(
        "cross",
        lambda d: d.call(x := d.array("fi", [(2, 3)]), d.array(x.dtype.name, [(2, 3)])),
        grad=(0, 1),
    ),
    record("diagonal", lambda d: d.call(d.array(shape=RECTANGLES), offset=d.of(0, 1, -1))),
    record("matrix_transpose", lambda d: d.call(d.array(shape=RECTANGLES))),
]

RECORDS = [*FACTORS, *NUMBERS, *SOLUTIONS, *PRODUCTS]
