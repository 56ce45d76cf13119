"""Records of branches and loops.  The oracles are branches and loops of Python."""

from __future__ import annotations

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from tests.lax.records import Arg, ErrorSample, Record

_X = np.linspace(-1, 1, 4, dtype=np.float32)
_FLOATS = ("float32", "float64", "float16", "bfloat16")


def _cond(x, y):
    return lax.cond(x[0] > y[0], lambda x, y: jnp.sin(x) * y, lambda x, y: x + y * y, x, y)


def _cond_oracle(x, y):
    return np.sin(x) * y if x[0] > y[0] else x + y * y


def _scan(x, xs, w):
    def step(carry, x):
        total, _ = carry
        return (jnp.sin(total) * w + x, total), total * x

    return lax.scan(step, (x, x * w), xs)


def _scan_oracle(x, xs, w):
    total, last, ys = x, x * w, []
    for each in xs:
        ys.append(total * each)
        total, last = np.sin(total) * w + each, total
    return (total, last), np.stack(ys)


def _fori_oracle(x, y):
    for i in (1, 2, 3):
        x = np.cos(x * i) + y
    return x


def _newton(x):
    """The square root; the number of steps depends on the argument."""

    def is_far(state):
        _, error = state
        return jnp.max(jnp.abs(error)) > 1e-3

    def step(state):
        root, _ = state
        better = (root + x / root) / 2
        return better, better - root

    return lax.while_loop(is_far, step, (x, jnp.ones_like(x)))[0]


def _power(x):
    return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * x), (0, x))[1]


def _cube_root(a):
    def solve(function, guess):
        def step(_, x):
            value, slope = jax.jvp(function, (x,), (jnp.ones_like(x),))
            return x - value / slope

        return lax.fori_loop(0, 12, step, guess)

    return lax.custom_root(
        lambda x: x**3 - a, jnp.ones_like(a), solve, lambda linear, y: y / linear(jnp.ones_like(y))
    )


def _divide(weights, b):
    def solve(product, b):
        return b / product(jnp.ones_like(b))

    return lax.custom_linear_solve(lambda x: weights * x, b, solve, symmetric=True)


RECORDS = [
    Record(
        name="cond",
        call=_cond,
        oracle=_cond_oracle,
        args=(Arg((4,)), Arg((4,))),
        dtypes=_FLOATS,
        grad=(0, 1),
        errors=(
            ErrorSample(
                lambda x: lax.cond(True, lambda: x, lambda: x[1:]),
                (_X,),
                TypeError,
                "true_fun and false_fun return results of different types",
            ),
            ErrorSample(
                lambda x: lax.cond(x, lambda: 1, lambda: 2), (_X,), TypeError, "must be a scalar"
            ),
        ),
    ),
    Record(
        name="cond",
        case="switch",
        call=lambda i, x: lax.switch(i, [jnp.sin, jnp.square, lambda x: 2 * x], x),
        oracle=lambda i, x: [np.sin, np.square, lambda x: 2 * x][np.clip(i, 0, 2)](x),
        args=(Arg((), "int32", -1, 4), Arg((3,))),
        dtypes=_FLOATS,
        grad=(1,),
        errors=(ErrorSample(lax.switch, (0, []), ValueError, "at least one branch"),),
    ),
    Record(
        name="platform_index",
        call=lambda x: lax.platform_dependent(x, cpu=jnp.sin, tpu=jnp.cos, default=jnp.sin),
        oracle=np.sin,
        args=(Arg((3,)),),
        grad=(0,),
    ),
    Record(
        name="scan",
        call=_scan,
        oracle=_scan_oracle,
        args=(Arg((3,), low=-1, high=1), Arg((4, 3), low=-1, high=1), Arg((3,), low=-1, high=1)),
        dtypes=_FLOATS,
        grad=(0, 1, 2),
        tolerance={"float16": 1e-2, "bfloat16": 1e-1},
        errors=(
            ErrorSample(
                lambda x: lax.scan(lambda c, x: (c[1:], x), x, x),
                (_X,),
                TypeError,
                "another carry|other types than init",
            ),
            ErrorSample(
                lambda x: lax.scan(lambda c, x: c, x, x), (_X,), TypeError, r"a pair \(carry, y\)"
            ),
        ),
    ),
    Record(
        name="scan",
        case="fori_loop",
        call=lambda x, y: lax.fori_loop(1, 4, lambda i, c: jnp.cos(c * i) + y, x),
        oracle=_fori_oracle,
        args=(Arg((3,)), Arg((3,))),
        grad=(0, 1),
    ),
    Record(
        name="while",
        call=_newton,
        oracle=np.sqrt,
        args=(Arg((3,), low=0.5, high=4),),
        dtypes=("float32", "float64"),
        tolerance=1e-5,
        errors=(
            ErrorSample(
                lambda x: lax.while_loop(lambda x: x, lambda x: x, x),
                (_X,),
                TypeError,
                "cond_fun must return a boolean scalar",
            ),
        ),
    ),
    Record(
        name="while",
        case="power",
        call=_power,
        oracle=lambda x: x * x * x * x,
        args=(Arg((3,)),),
        dtypes=("float32", "float64", "int32", "complex64"),
    ),
    Record(
        name="custom_root",
        call=_cube_root,
        oracle=np.cbrt,
        args=(Arg((3,), low=0.5, high=2),),
        dtypes=("float32", "float64"),
        grad=(0,),
    ),
    Record(
        name="custom_linear_solve",
        call=_divide,
        oracle=lambda weights, b: b / weights,
        args=(Arg((3,), low=0.5, high=2), Arg((3,))),
        dtypes=("float32", "float64"),
        grad=(0, 1),
    ),
]
