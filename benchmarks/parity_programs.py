"""The programs that both libraries run for the comparison of their meaning.

Each is a function and its arguments, small enough for its jaxpr to be read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

Programs = dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]

X = np.linspace(0.1, 0.9, 6, dtype=np.float32)
Y = np.linspace(-1, 1, 6, dtype=np.float32)
M = np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4)
I = np.array([3, 1, 2, 0, 5, 4], np.int32)  # noqa: E741 - integers, as M is a matrix
B = np.array([True, False, True, True, False, False])
H = X.astype(np.float16)
BF = X.astype(ml_dtypes.bfloat16)
C = (X + 1j * Y).astype(np.complex64)
IMAGE = np.linspace(-1, 1, 2 * 6 * 6 * 3, dtype=np.float32).reshape(2, 6, 6, 3)
KERNEL = np.linspace(-1, 1, 3 * 3 * 3 * 2, dtype=np.float32).reshape(3, 3, 3, 2)


def build(jax: Any) -> Programs:
    """Every program by its name."""
    groups = (
        _elementwise,
        _types,
        _reductions,
        _contractions,
        _shapes,
        _indexing,
        _derivatives,
        _batching,
        _nesting,
        _branches,
        _loops,
        _scans,
        _control_flow_derivatives,
        _control_flow_batching,
        _numpy,
        _nn,
        _random,
        _errors,
        _control_flow_errors,
    )
    programs: Programs = {}
    for group in groups:
        for name, program in group(jax).items():
            if name in programs:
                raise ValueError(f"two programs are called {name}")
            programs[name] = program
    return programs


def _elementwise(jax: Any) -> Programs:
    lax = jax.lax
    return {
        "lax-arithmetic": (lambda x, y: lax.div(lax.mul(lax.add(x, y), x), x - 3.0), (X, Y)),
        "lax-transcendental": (lambda x: lax.exp(lax.sin(lax.log(x))), (X,)),
        "lax-inverse": (lambda x: [lax.asin(x), lax.acos(x), lax.atan2(x, x), lax.atanh(x)], (X,)),
        "lax-special": (lambda x: [lax.erf(x), lax.lgamma(x), lax.digamma(x), lax.rsqrt(x)], (X,)),
        "lax-round": (lambda x: [lax.floor(x), lax.ceil(x), lax.round(x), lax.sign(x)], (Y,)),
        "lax-compare": (lambda x, y: [lax.lt(x, y), lax.eq(x, x), lax.ne(x, y)], (X, Y)),
        "lax-bits": (lambda i: lax.bitwise_xor(lax.shift_left(i, 2), lax.bitwise_not(i)), (I,)),
        "lax-integer": (lambda i: [lax.rem(i, 3), lax.population_count(i), lax.clz(i)], (I,)),
        "lax-integer-power": (lambda x: lax.integer_pow(x, 3), (X,)),
        "lax-power": (lax.pow, (X, Y)),
        "lax-complex": (lambda c: [lax.real(c), lax.conj(c), lax.abs(c), lax.exp(c)], (C,)),
        "lax-clamp-select": (lambda b, x: lax.select(b, lax.clamp(0.2, x, 0.6), x), (B, X)),
        "lax-bitcast": (lambda x: lax.bitcast_convert_type(x, np.int32), (X,)),
    }


def _types(jax: Any) -> Programs:
    jnp = jax.numpy
    return {
        "weak-scalar": (lambda x: [x * 2, x + 1.5, 3 - x], (X,)),
        "weak-input": (jax.jit(lambda a: [a + 1, a * 2.0]), (2,)),
        "weak-float-integer": (lambda i: i * 2.5, (I,)),
        "weak-where": (lambda b: jnp.where(b, 1, 2.0), (B,)),
        "promote-half-bfloat": (lambda h, b: h + b, (H, BF)),
        "promote-half-integer": (lambda h, i: h * i, (H, I)),
        "promote-bool-integer": (lambda b, i: b + i, (B, I)),
        "promote-complex": (lambda c, x: c * x + 1, (C, X)),
        "convert": (lambda x: [x.astype(jnp.int8), x.astype(bool), x.astype(jnp.bfloat16)], (Y,)),
        "divide-integers": (lambda i: [i / 2, i // 2, i % 3, -i // 2], (I,)),
        "asarray-python": (lambda: [jnp.asarray(1), jnp.asarray(2.5), jnp.asarray([1, 2])], ()),
    }


def _reductions(jax: Any) -> Programs:
    jnp, lax = jax.numpy, jax.lax
    return {
        "sum": (lambda m: [jnp.sum(m), jnp.sum(m, axis=1), jnp.sum(m, 0, keepdims=True)], (M,)),
        "sum-half": (jnp.sum, (H,)),
        "sum-bool": (jnp.sum, (B,)),
        "mean-variance": (lambda m: [jnp.mean(m, axis=0), jnp.var(m), jnp.std(m, axis=1)], (M,)),
        "extrema": (lambda m: [jnp.max(m, axis=1), jnp.argmin(m), jnp.argmax(m, axis=0)], (M,)),
        "logical": (lambda b: [jnp.all(b), jnp.any(b)], (B,)),
        "cumulative": (lambda m: [jnp.cumsum(m, axis=1), jnp.cumprod(m, axis=0)], (M,)),
        "lax-cumulative": (lambda m: [lax.cumsum(m), lax.cummax(m, axis=1, reverse=True)], (M,)),
        "sort": (lambda y: [jnp.sort(-y), jnp.argsort(-y)], (Y,)),
        "top-k": (lambda y: lax.top_k(y, 3), (Y,)),
        "reduce-window": (
            lambda m: lax.reduce_window(m, -jnp.inf, lax.max, (2, 2), (1, 2), "VALID"),
            (M,),
        ),
    }


def _contractions(jax: Any) -> Programs:
    jnp, lax = jax.numpy, jax.lax
    dimensions = ("NHWC", "HWIO", "NHWC")
    return {
        "dot-general": (lambda m: lax.dot_general(m, m, (((1,), (1,)), ((), ()))), (M,)),
        "matmul": (lambda m: m @ m.T, (M,)),
        "matmul-half": (lambda h: jnp.dot(h, h, preferred_element_type=jnp.float32), (H,)),
        "matmul-batched": (lambda x: jnp.matmul(x, x.swapaxes(-1, -2)), (IMAGE,)),
        "einsum": (lambda m: jnp.einsum("ij,kj->ik", m, m), (M,)),
        "tensordot-outer": (lambda x, y: [jnp.outer(x, y), jnp.vdot(x, y)], (X, Y)),
        "conv": (
            lambda x, k: lax.conv_general_dilated(
                x, k, (2, 1), "SAME", dimension_numbers=dimensions
            ),
            (IMAGE, KERNEL),
        ),
        "conv-grad": (
            jax.grad(
                lambda x, k: lax.conv_general_dilated(
                    x, k, (1, 2), "VALID", rhs_dilation=(2, 1), dimension_numbers=dimensions
                ).sum(),
                argnums=(0, 1),
            ),
            (IMAGE, KERNEL),
        ),
    }


def _shapes(jax: Any) -> Programs:
    jnp, lax = jax.numpy, jax.lax
    return {
        "reshape": (lambda m: [m.reshape(2, -1), m.ravel(), m.T], (M,)),
        "broadcast": (lambda x: jnp.broadcast_to(x, (2, 6)), (X,)),
        "broadcasting": (lambda m: m + m[:, :1] * m[0], (M,)),
        "concatenate": (lambda x, y: [jnp.concatenate([x, y]), jnp.stack([x, y], 1)], (X, Y)),
        "lax-pad": (lambda m: lax.pad(m, 0.0, ((1, -1, 0), (0, 2, 1))), (M,)),
        "lax-rev-transpose": (lambda m: lax.rev(lax.transpose(m, (1, 0)), (0,)), (M,)),
        "lax-slice": (lambda x: lax.slice(x, (1,), (5,), (2,)), (X,)),
        "lax-iota": (lambda: lax.broadcasted_iota(np.int32, (2, 3), 1), ()),
        "squeeze-expand": (lambda m: jnp.squeeze(jnp.expand_dims(m, (0, 2)), 0), (M,)),
        "split": (lambda m: jnp.split(m, 2, axis=1), (M,)),
        "repeat-tile": (lambda x: [jnp.tile(x, 2), jnp.repeat(x, 2)], (X,)),
    }


def _indexing(jax: Any) -> Programs:
    jnp, lax = jax.numpy, jax.lax
    return {
        "index-slice": (lambda m: m[1:, ::2], (M,)),
        "index-integer": (lambda m: [m[1], m[-1, 2]], (M,)),
        "index-traced": (lambda m, i: m[i], (M, np.int32(1))),
        "index-array": (lambda x, i: x[i], (X, I)),
        "index-mixed": (lambda m, i: m[None, i[1:3], ..., 1:], (M, I)),
        "index-mask": (lambda x, b: jnp.where(b, x, 0), (X, B)),
        "take": (lambda x, i: jnp.take(x, i, mode="clip"), (X, I)),
        "take-along-axis": (lambda m: jnp.take_along_axis(m, jnp.argsort(m, axis=1), 1), (M,)),
        "at-set": (lambda x: x.at[2].set(7.0), (X,)),
        "at-add": (lambda x, i: x.at[i].add(x), (X, I)),
        "at-multiply-slice": (lambda m: m.at[:, 1:3].multiply(2), (M,)),
        "at-max-drop": (lambda x: x.at[jnp.array([1, 9])].max(5.0, mode="drop"), (X,)),
        "dynamic-slice": (lambda x, i: lax.dynamic_slice(x, (i,), (3,)), (X, np.int32(2))),
        "dynamic-update": (
            lambda x, i: lax.dynamic_update_slice(x, x[:2], (i,)),
            (X, np.int32(3)),
        ),
        "gather-grad": (lambda x, i: jax.grad(lambda x: (x[i] ** 2).sum())(x), (X, I)),
    }


def _derivatives(jax: Any) -> Programs:
    jnp = jax.numpy
    return {
        "grad-sin": (jax.grad(lambda x: jnp.sum(jnp.sin(x) * x)), (X,)),
        "grad-polynomial": (jax.grad(lambda a: a**3 + 2 * a), (2.0,)),
        "grad-second": (jax.grad(jax.grad(jnp.tanh)), (0.5,)),
        "grad-matmul": (jax.grad(lambda m: jnp.sum(jnp.tanh(m @ m.T))), (M,)),
        "grad-max": (jax.grad(lambda x: jnp.max(x) + jnp.sum(jnp.maximum(x, 0.5))), (X,)),
        "grad-tree": (
            jax.grad(lambda p: jnp.sum(p["w"] * p["b"][0])),
            ({"w": X, "b": (np.float32(2.0),)},),
        ),
        "value-and-grad": (jax.value_and_grad(lambda x: (jnp.mean(x**2), x), has_aux=True), (X,)),
        "grad-complex": (jax.grad(lambda c: jnp.sum(jnp.abs(c) ** 2)), (C,)),
        "jvp": (lambda x: jax.jvp(lambda x: jnp.log(x) / x, (x,), (jnp.ones_like(x),)), (X,)),
        "vjp": (lambda x: jax.vjp(lambda x: (jnp.sin(x), x.sum()), x)[1]((x, 1.0)), (X,)),
        "linearize": (lambda x: jax.linearize(lambda x: jnp.exp(-x), x)[1](x), (X,)),
        "jacobians": (lambda x: [jax.jacfwd(jnp.sin)(x[:3]), jax.jacrev(jnp.sin)(x[:3])], (X,)),
        "hessian": (jax.hessian(lambda x: jnp.prod(x[:3])), (X,)),
        "stop-gradient": (jax.grad(lambda x: jnp.sum(x * jax.lax.stop_gradient(x))), (X,)),
        "grad-cumulative": (jax.grad(lambda x: jnp.sum(jnp.cumsum(x) ** 2)), (X,)),
    }


def _batching(jax: Any) -> Programs:
    jnp = jax.numpy
    return {
        "vmap-dot": (jax.vmap(jnp.dot, in_axes=(0, None)), (M, M[0])),
        "vmap-axes": (jax.vmap(lambda a, b: a * b, in_axes=(1, None), out_axes=1), (M, M[:, 0])),
        "vmap-reduce": (jax.vmap(lambda x: [x.sum(), x - x.max()]), (M,)),
        "vmap-grad": (jax.vmap(jax.grad(lambda a: jnp.sin(a) * a)), (X,)),
        "vmap-index": (jax.vmap(lambda x, i: x[i]), (M, np.array([0, 2, 1], np.int32))),
        "vmap-update": (
            jax.vmap(lambda x, i: x.at[i].add(1.0)),
            (M, np.array([0, 2, 1], np.int32)),
        ),
        "vmap-nested": (jax.vmap(jax.vmap(lambda a: a * 2 + 1)), (M,)),
        "vmap-axis-name": (
            jax.vmap(lambda x: x - jax.lax.pmean(x, "batch"), axis_name="batch"),
            (M,),
        ),
        "vmap-sort": (jax.vmap(jnp.sort), (-M,)),
    }


def _nesting(jax: Any) -> Programs:
    jnp = jax.numpy

    @jax.jit
    def inner(x: Any) -> Any:
        return jnp.sin(x) * 2

    def outer(x: Any) -> Any:
        return inner(x) + inner(inner(x))

    return {
        "jit": (inner, (X,)),
        "jit-nested": (jax.jit(outer), (X,)),
        "jit-grad": (jax.grad(lambda x: inner(x).sum()), (X,)),
        "jit-jvp": (lambda x: jax.jvp(inner, (x,), (x,)), (X,)),
        "jit-vmap": (jax.vmap(inner), (M,)),
        "jit-static": (
            lambda x: jax.jit(lambda x, n: x**n, static_argnums=1)(x, 3),
            (X,),
        ),
        "jit-inline": (jax.jit(lambda x: x + 1, inline=True), (X,)),
        "jit-unused": (jax.jit(lambda x, y: (x, x, 1)), (X, Y)),
    }


def _branches(jax: Any) -> Programs:
    jnp, lax = jax.numpy, jax.lax
    cases = [jnp.sin, lambda x: x * 2, lambda x: x]
    yes = np.bool_(True)
    return {
        "cond": (lambda p, x: lax.cond(p, jnp.sin, lambda x: x * 2, x), (yes, X)),
        "cond-constant": (lambda x: lax.cond(0, jnp.sin, lambda x: x * 2, x), (X,)),
        "cond-number": (lambda i, x: lax.cond(i, lambda: x, lambda: -x), (np.int32(3), X)),
        "cond-operand": (lambda p, x: lax.cond(p, lambda x: x, lambda x: -x, operand=x), (yes, X)),
        "cond-tree": (
            lambda p, x: lax.cond(
                p, lambda d: (d["a"], None), lambda d: (d["b"], None), {"a": x, "b": -x}
            ),
            (yes, X),
        ),
        "cond-closure": (lambda p, x, y: lax.cond(p, lambda: x * 2, lambda: y), (yes, X, Y)),
        "cond-weak": (lambda p: lax.cond(p, lambda: 1, lambda: 2), (yes,)),
        "cond-weak-branch": (lambda p, a: lax.cond(p, lambda: a, lambda: 2.0), (yes, X[0])),
        "cond-weak-other": (lambda p, a: lax.cond(p, lambda: 2.0, lambda: a), (yes, X[0])),
        "switch": (lambda i, x: lax.switch(i, cases, x), (np.int32(1), X)),
        "switch-unsigned": (lambda i, x: lax.switch(i, cases, x), (np.uint8(9), X)),
        "switch-one": (lambda i, x: lax.switch(i, cases[:1], x), (np.int32(1), X)),
        "platform": (lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos), (X,)),
    }


def _loops(jax: Any) -> Programs:
    jnp, lax = jax.numpy, jax.lax
    n = np.int32(3)

    def powers(x: Any, n: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * x), (n - n, x))

    return {
        "while": (lambda a: lax.while_loop(lambda a: a < 10.0, lambda a: a * 2, a), (X[0],)),
        "while-closure": (powers, (X, n)),
        "while-weak": (lambda: lax.while_loop(lambda a: a < 10, lambda a: a * 2, 1), ()),
        "while-promoted": (lambda: lax.while_loop(lambda a: a < 10, lambda a: a * 2.5, 1), ()),
        "while-constant-part": (
            lambda x: lax.while_loop(
                lambda c: c[0].sum() < 10.0, lambda c: (c[0] * 2, c[1], None), (x, x, None)
            ),
            (X,),
        ),
        "fori": (lambda x: lax.fori_loop(0, 3, lambda i, x: x * i, x), (X,)),
        "fori-index": (lambda: lax.fori_loop(2, 5, lambda i, _: i, 0), ()),
        "fori-narrow": (lambda a: lax.fori_loop(0, 3, lambda i, a: a + i, a), (np.int8(1),)),
        "fori-unroll": (lambda x: lax.fori_loop(0, 5, lambda i, c: c * x, x, unroll=2), (X,)),
        "fori-traced": (lambda n, x: lax.fori_loop(n, 5, lambda i, x: x * i, x), (n, X)),
        "map": (lambda x: lax.map(jnp.sin, x), (X,)),
        "map-blocks": (lambda x: lax.map(lambda a: a * 2, x, batch_size=3), (X,)),
        "associative-scan": (lambda x: lax.associative_scan(jnp.add, x), (X,)),
        "associative-scan-back": (
            lambda m: lax.associative_scan(jnp.maximum, m, reverse=True, axis=1),
            (M,),
        ),
    }


def _scans(jax: Any) -> Programs:
    jnp, lax = jax.numpy, jax.lax

    def running(carry: Any, x: Any) -> Any:
        return carry + x, carry

    return {
        "scan": (lambda x, a: lax.scan(running, a, x), (X, X[0])),
        "scan-reverse": (lambda x, a: lax.scan(running, a, x, reverse=True, unroll=4), (X, X[0])),
        "scan-length": (lambda x: lax.scan(lambda c, _: (c * 2, c), x, None, length=3), (X,)),
        "scan-tree": (
            lambda x: lax.scan(
                lambda c, x: ({"a": c["a"] + x["u"], "b": None}, [x["u"] * 2, None]),
                {"a": x[0], "b": None},
                {"u": x},
            ),
            (X,),
        ),
        "scan-weak": (lambda: lax.scan(lambda c, _: (c + 1, c), 0, None, length=3), ()),
        "scan-promoted": (lambda: lax.scan(lambda c, _: (c + 1.5, c), 0, None, length=3), ()),
        "scan-constant-part": (
            lambda x, y: lax.scan(lambda c, x: ((c[0], c[1] * x), c[0]), (y, y[0]), x),
            (X, Y),
        ),
        "scan-slices-returned": (lambda x: lax.scan(lambda c, x: (c + x, x), x[0], x), (X,)),
        "scan-pair-kept": (lambda x: lax.scan(lambda c, x: [c + x, -x], x[0], x), (X,)),
        "scan-nothing": (lambda x: lax.scan(running, x[0], x[:0]), (X,)),
        "scan-keys": (
            lambda: jax.random.key_data(
                lax.scan(lambda k, _: (jax.random.fold_in(k, 1), k), jax.random.key(0), None, 3)[1]
            ),
            (),
        ),
        "scan-narrow": (lambda b: lax.scan(running, b[0], b), (BF,)),
        "scan-nested": (
            lambda m: lax.scan(lambda c, x: lax.scan(running, c, x), m[0, 0], m),
            (M,),
        ),
        "scan-cond": (
            lambda x: lax.scan(
                lambda c, x: (lax.cond(c > x, jnp.sin, lambda c: c * x, c), c), x[0], x
            ),
            (X,),
        ),
    }


def _control_flow_derivatives(jax: Any) -> Programs:
    jnp, lax = jax.numpy, jax.lax
    yes = np.bool_(True)

    def chain(x: Any) -> Any:
        return lax.scan(lambda c, x: (jnp.sin(c * x), c), x[0], x)[0]

    def counted(x: Any) -> Any:
        return lax.scan(lambda c, x: ((c[0] + 1, c[1] * x * c[0]), None), (1, x[0]), x)[0][1]

    def tripled(x: Any) -> Any:
        step = lambda c: (c[0] + 1, c[1] * x)  # noqa: E731 - shorter than the program it is for
        return lax.while_loop(lambda c: c[0] < 3, step, (np.int32(0), x))[1]

    def weighted(w: Any) -> Any:
        return lax.scan(lambda c, _: (jnp.exp(w) * c, None), w, None, length=3)[0]

    return {
        "cond-grad": (
            jax.grad(lambda x, p: lax.cond(p, jnp.sin, lambda x: x * x, x).sum()),
            (X, yes),
        ),
        "cond-jvp": (
            lambda x, p: jax.jvp(lambda x: lax.cond(p, jnp.sin, jnp.cos, x), (x,), (x,)),
            (X, yes),
        ),
        "while-jvp": (lambda x: jax.jvp(tripled, (x,), (x,)), (X,)),
        "while-linearize": (lambda x: jax.linearize(tripled, x)[1](x), (X,)),
        "fori-grad": (jax.grad(lambda a: lax.fori_loop(0, 3, lambda i, c: c * a, a)), (X[0],)),
        "scan-jvp": (lambda x: jax.jvp(chain, (x,), (x,)), (X,)),
        "scan-grad": (jax.grad(chain), (X,)),
        "scan-grad-counter": (jax.grad(counted), (X,)),
        "scan-grad-invariant": (jax.grad(weighted), (X[0],)),
        "scan-grad-second": (jax.grad(lambda x: jax.grad(chain)(x).sum()), (X,)),
        "scan-transpose": (
            lambda x: jax.linear_transpose(
                lambda x: lax.scan(lambda c, x: ((c[0] + 1, c[1] + x * c[0]), c[1]), (0, 0.0), x)[
                    1
                ],
                x,
            )(x),
            (X,),
        ),
        "map-grad": (jax.grad(lambda x: lax.map(lambda a: a * a, x).sum()), (X,)),
    }


def _control_flow_batching(jax: Any) -> Programs:
    jnp, lax = jax.numpy, jax.lax

    def chain(x: Any) -> Any:
        return lax.scan(lambda c, x: (jnp.sin(c * x), c), x[0], x)[0]

    def doubled(a: Any) -> Any:
        return lax.while_loop(lambda a: a < 10.0, lambda a: a * 2, a)

    return {
        "cond-vmap": (
            jax.vmap(lambda p, x: lax.cond(p, jnp.sin, lambda x: x * 3.0, x)),
            (B, X),
        ),
        "cond-vmap-operand": (
            jax.vmap(lambda x, p: lax.cond(p, jnp.sin, lambda x: x * 3.0, x), in_axes=(0, None)),
            (X, np.bool_(True)),
        ),
        "switch-vmap": (
            jax.vmap(lambda i, x: lax.switch(i, [jnp.sin, lambda x: x * 2, jnp.cos], x)),
            (I, X),
        ),
        "while-vmap": (jax.vmap(doubled), (X,)),
        "fori-vmap": (jax.vmap(lambda n: lax.fori_loop(0, n, lambda i, c: c + i, 0)), (I,)),
        "scan-vmap": (jax.vmap(chain), (M,)),
        "scan-vmap-part": (
            jax.vmap(
                lambda a, y: lax.scan(lambda c, b: ((c[0] + b, c[1] * a), c[0]), (y[0], y[0]), y),
                in_axes=(0, None),
            ),
            (X, Y),
        ),
        "scan-vmap-grad": (jax.vmap(jax.grad(chain)), (M,)),
        "scan-jit-grad-vmap": (
            jax.jit(jax.grad(lambda m: jax.vmap(chain)(m).sum())),
            (M,),
        ),
    }


def _numpy(jax: Any) -> Programs:
    jnp = jax.numpy
    return {
        "numpy-creation": (lambda: [jnp.zeros(2), jnp.ones((2, 1), int), jnp.full(3, 2)], ()),
        "numpy-ranges": (lambda: [jnp.arange(5), jnp.arange(1.0, 2.0, 0.25), jnp.eye(2, 3)], ()),
        "numpy-linspace": (lambda: jnp.linspace(0, 1, 5), ()),
        "numpy-where": (lambda x, y: jnp.where(x > y, x, -1), (X, Y)),
        "numpy-clip": (lambda y: jnp.clip(y, -0.5, 0.5), (Y,)),
        "numpy-triangles": (lambda m: [jnp.tril(m), jnp.triu(m, 1)], (M,)),
        "numpy-ufuncs": (lambda x, y: [jnp.hypot(x, y), jnp.logaddexp(x, y)], (X, Y)),
        "numpy-nan": (lambda y: [jnp.nan_to_num(y / 0), jnp.isfinite(jnp.log(y))], (Y,)),
        "numpy-roll-flip": (lambda m: [jnp.roll(m, 1, axis=1), jnp.flip(m, 0)], (M,)),
        "numpy-diff": (lambda x: [jnp.diff(x), jnp.convolve(x, x[:2])], (X,)),
    }


def _nn(jax: Any) -> Programs:
    nn = jax.nn
    return {
        "nn-softmax": (lambda m: [nn.softmax(m), nn.log_softmax(m, axis=0)], (M,)),
        "nn-logsumexp": (lambda m: nn.logsumexp(m, axis=1), (M,)),
        "nn-activations": (lambda y: [nn.relu(y), nn.gelu(y), nn.silu(y), nn.sigmoid(y)], (Y,)),
        "nn-one-hot": (lambda i: nn.one_hot(i, 6), (I,)),
        "nn-relu-grad": (jax.grad(lambda y: nn.relu(y).sum()), (Y,)),
        "nn-softmax-grad": (jax.grad(lambda m: (nn.softmax(m) ** 2).sum()), (M,)),
    }


def _random(jax: Any) -> Programs:
    random = jax.random
    key = random.key
    return {
        "random-key-data": (lambda: random.key_data(random.split(key(7), 3)), ()),
        "random-fold-in": (lambda: random.key_data(random.fold_in(key(7), 5)), ()),
        "random-old-key": (lambda: random.split(random.PRNGKey(7)), ()),
        "random-bits": (lambda: random.bits(key(1), (5,)), ()),
        "random-uniform": (lambda: random.uniform(key(1), (3, 2), minval=-1, maxval=2), ()),
        "random-normal": (lambda: random.normal(key(2), (7,)), ()),
        "random-integers": (lambda: random.randint(key(3), (6,), -3, 10), ()),
        "random-bernoulli": (lambda: random.bernoulli(key(4), 0.3, (8,)), ()),
        "random-categorical": (lambda m: random.categorical(key(5), m, axis=1), (M,)),
        "random-permutation": (lambda: random.permutation(key(6), 9), ()),
        "random-choice": (lambda x: random.choice(key(8), x, (4,), replace=False), (X,)),
        "random-truncated": (lambda: random.truncated_normal(key(9), -1.0, 1.0, (5,)), ()),
    }


def _errors(jax: Any) -> Programs:
    jnp, lax = jax.numpy, jax.lax
    return {
        "error-shapes": (lax.add, (X, M)),
        "error-dtypes": (lax.mul, (X, I)),
        "error-broadcast": (lambda x, m: x + m, (X, M)),
        "error-traced-bool": (jax.jit(lambda x: 1 if x[0] > 0 else 2), (X,)),
        "error-traced-shape": (jax.jit(lambda i: jnp.zeros(i[0])), (I,)),
        "error-traced-numpy": (jax.jit(lambda x: np.sin(x) + 1), (X,)),
        "error-grad-integer": (jax.grad(lambda i: i * 2), (3,)),
        "error-grad-vector": (jax.grad(lambda x: x * 2), (X,)),
        "error-argument": (jax.jit(lambda x: x), ("text",)),
        "error-vmap-sizes": (jax.vmap(lambda x, m: x), (X, M)),
        "error-static": (lambda x: jax.jit(lambda x, n: x, static_argnums=1)(x, [1]), (X,)),
        "error-mask": (jax.jit(lambda x, b: x[b]), (X, B)),
        "error-concatenate": (lambda x, m: jnp.concatenate([x, m]), (X, M)),
    }


def _control_flow_errors(jax: Any) -> Programs:
    lax = jax.lax
    return {
        "error-cond-types": (lambda x: lax.cond(True, lambda: x, lambda: x[1:]), (X,)),
        "error-cond-trees": (lambda x: lax.cond(True, lambda: (x,), lambda: [x]), (X,)),
        "error-cond-predicate": (lambda b: lax.cond(b, lambda: 1, lambda: 2), (B,)),
        "error-switch-float": (lambda x: lax.switch(1.5, [lambda: x, lambda: x]), (X,)),
        "error-switch-none": (lambda i: lax.switch(i[0], []), (I,)),
        "error-platform": (lambda x: lax.platform_dependent(x, tpu=lambda x: x), (X,)),
        "error-while-types": (
            lambda x: lax.while_loop(lambda x: x[0] < 1, lambda x: x.astype(int), x),
            (X,),
        ),
        "error-while-condition": (lambda x: lax.while_loop(lambda x: x, lambda x: x, x), (X,)),
        "error-while-reverse": (
            jax.grad(lambda a: lax.while_loop(lambda a: a < 3, lambda a: a * 2, a)),
            (X[0],),
        ),
        "error-fori-bounds": (lambda: lax.fori_loop(0, 3.5, lambda i, c: c, 0), ()),
        "error-fori-unroll": (
            jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c, 0, unroll=2)),
            (3,),
        ),
        "error-scan-pair": (lambda x: lax.scan(lambda c, x: c, x[0], x), (X,)),
        "error-scan-carry": (lambda x: lax.scan(lambda c, x: (c[:1], x), x, x), (X,)),
        "error-scan-lengths": (lambda x: lax.scan(lambda c, x: (c, 1), 0, (x, x[1:])), (X,)),
        "error-scan-traced": (
            jax.jit(lambda n: lax.scan(lambda c, _: (c, 1), 0, None, length=n)),
            (3,),
        ),
        "error-scan-unroll": (lambda x: lax.scan(lambda c, x: (c, x), 0, x, unroll=-1), (X,)),
        "error-map-nothing": (lambda: lax.map(lambda x: x, None), ()),
        "error-associative-scan": (lambda x: lax.associative_scan(lambda a, b: (a, b), x), (X,)),
    }
