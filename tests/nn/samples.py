"""What `recorded.json` records of JAX: calls by name, on any library of its API.

A call takes the library.  `record.py` runs all of them on JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Call = Callable[[Any], Any]

ELEMENTWISE = (
    "relu",
    "relu6",
    "sigmoid",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "soft_sign",
    "silu",
    "mish",
    "log_sigmoid",
    "elu",
    "leaky_relu",
    "hard_tanh",
    "hard_sigmoid",
    "hard_silu",
    "celu",
    "selu",
    "gelu",
    "squareplus",
    "log1mexp",
    "tanh",
    "identity",
)

# The kinks of all of them, and what is not finite.
POINTS = np.array(
    [-np.inf, -50, -7, -3, -2, -1, -0.5, -0.0, 0.0, 0.5, 1, 2, 3, 6, 7, 50, np.inf, np.nan],
    np.float32,
)
DOMAINS = {"log1mexp": POINTS[POINTS >= 0]}

ARGUMENTS: dict[str, Callable[[Any], Any]] = {
    "float16": lambda jax: POINTS.astype(np.float16),
    "bfloat16": lambda jax: jax.numpy.asarray(POINTS).astype("bfloat16"),
    "int32": lambda jax: np.arange(-3, 4, dtype=np.int32),
    "uint8": lambda jax: np.arange(3, dtype=np.uint8),
    "Python float": lambda jax: 1.5,
    "Python int": lambda jax: 2,
    "Python bool": lambda jax: True,
    "weak array": lambda jax: jax.numpy.full((2,), -0.5),
    "empty array": lambda jax: np.zeros((0, 2), np.float32),
    "list": lambda jax: [1.0, 2.0],
}


def _values(name: str) -> Call:
    return lambda jax: getattr(jax.nn, name)(DOMAINS.get(name, POINTS))


def _derivatives(name: str) -> Call:
    return lambda jax: jax.vmap(jax.grad(getattr(jax.nn, name)))(DOMAINS.get(name, POINTS))


def _of_argument(name: str, argument: Callable[[Any], Any]) -> Call:
    return lambda jax: getattr(jax.nn, name)(argument(jax))


def _elementwise() -> dict[str, Call]:
    calls: dict[str, Call] = {}
    for name in ELEMENTWISE:
        calls[f"{name} values"] = _values(name)
        calls[f"{name} derivatives"] = _derivatives(name)
        for kind, argument in ARGUMENTS.items():
            calls[f"{name} of {kind}"] = _of_argument(name, argument)
    # JAX stumbles over the negation of a bool.
    del calls["log1mexp of Python bool"]
    return calls


_SMALL = POINTS[1:-2]
_ROWS = np.arange(8, dtype=np.float32).reshape(2, 4)

ACTIVATIONS: dict[str, Call] = {
    **_elementwise(),
    "gelu exact values": lambda jax: jax.nn.gelu(_SMALL, approximate=False),
    "gelu exact derivatives": lambda jax: jax.vmap(
        jax.grad(lambda x: jax.nn.gelu(x, approximate=False))
    )(_SMALL),
    "elu with alpha": lambda jax: jax.nn.elu(_SMALL, 0.5),
    "elu by alpha": lambda jax: jax.grad(lambda alpha: jax.nn.elu(-1.0, alpha))(2.0),
    "celu with alpha": lambda jax: jax.vmap(jax.grad(jax.nn.celu), (0, None))(_SMALL, 2.0),
    "leaky_relu with slope": lambda jax: jax.nn.leaky_relu(_SMALL, 0.2),
    "leaky_relu of integers": lambda jax: jax.nn.leaky_relu(np.arange(-2, 3), 2),
    "squareplus with b": lambda jax: jax.nn.squareplus(_SMALL, 1),
    "glu": lambda jax: jax.nn.glu(_ROWS),
    "glu of axis": lambda jax: jax.nn.glu(_ROWS, axis=0),
    "glu derivatives": lambda jax: jax.grad(lambda x: jax.nn.glu(x).sum())(_ROWS),
    "relu second derivatives": lambda jax: jax.vmap(jax.grad(jax.grad(jax.nn.relu)))(_SMALL),
    "silu second derivatives": lambda jax: jax.vmap(jax.grad(jax.grad(jax.nn.silu)))(_SMALL),
    "one_hot": lambda jax: jax.nn.one_hot(np.array([0, 2, -1, 3]), 3),
    "one_hot of matrix": lambda jax: jax.nn.one_hot(np.array([[0, 2], [-1, 1]]), 3),
    "one_hot of axis": lambda jax: jax.nn.one_hot(np.array([[0, 2], [-1, 1]]), 3, axis=0),
    "one_hot of axis -2": lambda jax: jax.nn.one_hot(np.array([[0, 2], [-1, 1]]), 3, axis=-2),
    "one_hot of scalar": lambda jax: jax.nn.one_hot(1, 3),
    "one_hot of float": lambda jax: jax.nn.one_hot(np.array([1.0, 1.5], np.float32), 3),
    "one_hot of list": lambda jax: jax.nn.one_hot([0, 1], 3),
    "one_hot of bool": lambda jax: jax.nn.one_hot(np.array([True, False]), 2),
    "one_hot to int": lambda jax: jax.nn.one_hot(np.array([0, 1]), 3, dtype="int8"),
    "one_hot to bool": lambda jax: jax.nn.one_hot(np.array([0, 1]), 3, dtype=bool),
    "one_hot to bfloat16": lambda jax: jax.nn.one_hot(np.array([0, 1]), 3, dtype="bfloat16"),
    "one_hot of no class": lambda jax: jax.nn.one_hot(np.array([0, 1]), 0),
}

_LOGITS = np.array([[-2, 0.5, 3], [1, -40, 0.25]], np.float32)
_NO_LOGITS = np.full((2, 3), -np.inf, np.float32)
_SOME, _NONE = _LOGITS > 0, _LOGITS > 100
_HUGE = np.array([1e30, 1e30, -1e30], np.float32)
_INFINITE = np.array([1, np.inf, 2], np.float32)
_FACTORS = np.array([1, 0, -2], np.float32)


def _squares(function: Callable[[Any, Any], Any]) -> Call:
    return lambda jax: jax.grad(lambda x: (function(jax, x) ** 2).sum())(_LOGITS)


NORMALIZATIONS: dict[str, Call] = {
    "softmax": lambda jax: jax.nn.softmax(_LOGITS),
    "softmax of axis": lambda jax: jax.nn.softmax(_LOGITS, 0),
    "softmax of axes": lambda jax: jax.nn.softmax(_LOGITS, (0, 1)),
    "softmax of all": lambda jax: jax.nn.softmax(_LOGITS, None),
    "softmax of no axis": lambda jax: jax.nn.softmax(_LOGITS, ()),
    "softmax where": lambda jax: jax.nn.softmax(_LOGITS, where=_SOME),
    "softmax where nowhere": lambda jax: jax.nn.softmax(_LOGITS, where=_NONE),
    "softmax of -inf": lambda jax: jax.nn.softmax(_NO_LOGITS),
    "softmax of inf": lambda jax: jax.nn.softmax(_INFINITE),
    "softmax of huge": lambda jax: jax.nn.softmax(_HUGE),
    "softmax of integers": lambda jax: jax.nn.softmax(np.arange(3)),
    "softmax of weak": lambda jax: jax.nn.softmax(jax.numpy.full((3,), 1.0)),
    "softmax of empty": lambda jax: jax.nn.softmax(np.zeros((3, 0), np.float32)),
    "softmax of bfloat16": lambda jax: jax.nn.softmax(jax.numpy.asarray(_LOGITS, "bfloat16")),
    "softmax of scalar": lambda jax: jax.nn.softmax(1.0),
    "softmax of axis out of range": lambda jax: jax.nn.softmax(_LOGITS, 2),
    "softmax derivatives": _squares(lambda jax, x: jax.nn.softmax(x)),
    "softmax where derivatives": _squares(lambda jax, x: jax.nn.softmax(x, where=_SOME)),
    "softmax Jacobian": lambda jax: jax.jacobian(jax.nn.softmax)(_LOGITS[0]),
    "softmax Hessian": lambda jax: jax.hessian(lambda x: (jax.nn.softmax(x) ** 2).sum())(
        _LOGITS[0]
    ),
    "log_softmax": lambda jax: jax.nn.log_softmax(_LOGITS),
    "log_softmax of axis": lambda jax: jax.nn.log_softmax(_LOGITS, 0),
    "log_softmax of axes": lambda jax: jax.nn.log_softmax(_LOGITS, (0, 1)),
    "log_softmax where": lambda jax: jax.nn.log_softmax(_LOGITS, where=_SOME),
    "log_softmax of -inf": lambda jax: jax.nn.log_softmax(_NO_LOGITS),
    "log_softmax of huge": lambda jax: jax.nn.log_softmax(_HUGE),
    "log_softmax of integers": lambda jax: jax.nn.log_softmax(np.arange(3)),
    "log_softmax derivatives": _squares(lambda jax, x: jax.nn.log_softmax(x)),
    "logsumexp": lambda jax: jax.nn.logsumexp(_LOGITS),
    "logsumexp of axis": lambda jax: jax.nn.logsumexp(_LOGITS, 0),
    "logsumexp of axes": lambda jax: jax.nn.logsumexp(_LOGITS, (0, 1)),
    "logsumexp of no axis": lambda jax: jax.nn.logsumexp(_LOGITS, ()),
    "logsumexp keeping dimensions": lambda jax: jax.nn.logsumexp(_LOGITS, -1, keepdims=True),
    "logsumexp with factors": lambda jax: jax.nn.logsumexp(_LOGITS, 1, b=_FACTORS),
    "logsumexp with factors and sign": lambda jax: jax.nn.logsumexp(
        _LOGITS, 1, _FACTORS, True, True
    ),
    "logsumexp with no factor": lambda jax: jax.nn.logsumexp(_LOGITS, 1, b=0),
    "logsumexp with sign": lambda jax: jax.nn.logsumexp(_LOGITS, 1, return_sign=True),
    "logsumexp where": lambda jax: jax.nn.logsumexp(_LOGITS, 1, where=_SOME),
    "logsumexp where nowhere": lambda jax: jax.nn.logsumexp(_LOGITS, 1, where=_NONE),
    "logsumexp of -inf": lambda jax: jax.nn.logsumexp(_NO_LOGITS, 1),
    "logsumexp of inf": lambda jax: jax.nn.logsumexp(_INFINITE),
    "logsumexp of both inf": lambda jax: jax.nn.logsumexp(np.array([-np.inf, np.inf], "float32")),
    "logsumexp of nothing": lambda jax: jax.nn.logsumexp(np.zeros((2, 0), np.float32), 1),
    "logsumexp of integers": lambda jax: jax.nn.logsumexp(np.arange(3)),
    "logsumexp of scalar": lambda jax: jax.nn.logsumexp(1.0),
    "logsumexp of complex": lambda jax: jax.nn.logsumexp(np.array([1 + 2j, 3], "complex64")),
    "logsumexp of complex with sign": lambda jax: jax.nn.logsumexp(
        np.array([1 + 2j, 3], "complex64"), return_sign=True
    ),
    "logsumexp of two dtypes": lambda jax: jax.nn.logsumexp(
        _LOGITS.astype(np.float16), 1, b=_FACTORS
    ),
    "logsumexp of axis out of range": lambda jax: jax.nn.logsumexp(_LOGITS, 5),
    "logsumexp derivatives": lambda jax: jax.grad(jax.nn.logsumexp)(_LOGITS),
    "logsumexp derivatives by factors": lambda jax: jax.grad(
        lambda b: jax.nn.logsumexp(_LOGITS, b=b)
    )(_LOGITS + 5),
    "logsumexp where derivatives": lambda jax: jax.grad(lambda x: jax.nn.logsumexp(x, where=_SOME))(
        _LOGITS
    ),
    "logmeanexp": lambda jax: jax.nn.logmeanexp(_LOGITS),
    "logmeanexp of axis": lambda jax: jax.nn.logmeanexp(_LOGITS, 0, keepdims=True),
    "logmeanexp where": lambda jax: jax.nn.logmeanexp(_LOGITS, 1, _SOME),
    "standardize": lambda jax: jax.nn.standardize(_LOGITS),
    "standardize of axis": lambda jax: jax.nn.standardize(_LOGITS, 0),
    "standardize of all": lambda jax: jax.nn.standardize(_LOGITS, None),
    "standardize with moments": lambda jax: jax.nn.standardize(
        _LOGITS, mean=0.5, variance=np.ones(3, np.float32), epsilon=0.0
    ),
    "standardize where": lambda jax: jax.nn.standardize(_LOGITS, where=_LOGITS > -10),
    "standardize stably": lambda jax: jax.nn.standardize(_LOGITS, algorithm="stable"),
    "standardize of integers": lambda jax: jax.nn.standardize(np.arange(3)),
    "standardize of constant": lambda jax: jax.nn.standardize(np.full((3,), 0.1, np.float32)),
}

# Two batches, three queries of four heads, four keys of two heads, size 2.
_Q = np.sin(np.arange(48, dtype=np.float32)).reshape(2, 3, 4, 2)
_KV = np.cos(np.arange(32, dtype=np.float32) * 1.75).reshape(2, 4, 2, 2)
_BIAS = np.sin(np.arange(96, dtype=np.float32) * 0.75).reshape(2, 4, 3, 4)
_MASK = np.cos(np.arange(96) * 0.9).reshape(2, 4, 3, 4) > -0.5


def _attention(**options: Any) -> Call:
    return lambda jax: jax.nn.dot_product_attention(_Q, _KV, _KV, **options)


def _narrow_attention(dtype: str) -> Call:
    def call(jax: Any) -> Any:
        q, kv = jax.numpy.asarray(_Q, dtype), jax.numpy.asarray(_KV, dtype)
        return jax.nn.dot_product_attention(q, kv, kv)

    return call


ATTENTIONS: dict[str, Call] = {
    "attention": _attention(),
    "attention of one head each": lambda jax: jax.nn.dot_product_attention(
        _Q[:, :, :2], _KV, _KV[:, ::-1]
    ),
    "attention without batch": lambda jax: jax.nn.dot_product_attention(_Q[0], _KV[0], _KV[0]),
    "attention scaled": _attention(scale=0.3),
    "attention causal": _attention(is_causal=True),
    "attention biased": _attention(bias=_BIAS),
    "attention biased alike": _attention(bias=_BIAS[:1, :1]),
    "attention masked": _attention(mask=_MASK),
    "attention masked for all": _attention(mask=_MASK[0, 0]),
    "attention masked whole": _attention(mask=np.zeros_like(_MASK)),
    "attention with lengths": _attention(
        query_seq_lengths=np.array([1, 3]), key_value_seq_lengths=np.array([2, 4])
    ),
    "attention with no length": _attention(query_seq_lengths=np.array([0, 2])),
    "attention of window": _attention(local_window_size=1),
    "attention of sides": _attention(local_window_size=(0, 2)),
    "attention of all": _attention(
        bias=_BIAS,
        mask=_MASK,
        is_causal=True,
        scale=0.5,
        local_window_size=(1, 1),
        key_value_seq_lengths=np.array([3, 4]),
    ),
    "attention with residual": _attention(mask=_MASK, return_residual=True),
    "attention by xla": _attention(implementation="xla"),
    "attention of float16": _narrow_attention("float16"),
    "attention of bfloat16": _narrow_attention("bfloat16"),
    "attention derivatives by query": lambda jax: jax.grad(
        lambda q: (jax.nn.dot_product_attention(q, _KV, _KV, _BIAS, is_causal=True) ** 2).sum()
    )(_Q),
    "attention derivatives by value": lambda jax: jax.grad(
        lambda v: (jax.nn.dot_product_attention(_Q, _KV, v, local_window_size=1) ** 2).sum()
    )(_KV),
    "attention of two dtypes": lambda jax: jax.nn.dot_product_attention(
        _Q, _KV, jax.numpy.asarray(_KV, "bfloat16")
    ),
    "attention of odd heads": lambda jax: jax.nn.dot_product_attention(_Q[:, :, :3], _KV, _KV),
    "attention of other size": lambda jax: jax.nn.dot_product_attention(
        _Q, _KV[..., :1], _KV[..., :1]
    ),
    "attention of other length": lambda jax: jax.nn.dot_product_attention(_Q, _KV[:, :3], _KV),
    "attention of integer mask": _attention(mask=_MASK.astype(np.int32)),
    "attention by another": _attention(implementation="x"),
    "attention of wrong bias": _attention(bias=np.ones((1, 1, 3, 2), np.float32)),
    "attention of too many lengths": _attention(query_seq_lengths=np.ones(5, np.int32)),
    "attention of float lengths": _attention(key_value_seq_lengths=np.ones(2, np.float32)),
}

SEED = 42


def _init(name: str, *args: Any, shape: Any = (4, 3), dtype: Any = None, **options: Any) -> Call:
    def call(jax: Any) -> Any:
        made = getattr(jax.nn.initializers, name)
        init = made if name in ("zeros", "ones") else made(*args, **options)
        key = jax.random.key(SEED)
        return init(key, shape) if dtype is None else init(key, shape, dtype)

    return call


SCALED = [
    f"{family}_{distribution}"
    for family in ("glorot", "xavier", "lecun", "he", "kaiming")
    for distribution in ("uniform", "normal")
]

INITIALIZERS: dict[str, Call] = {
    **{name: _init(name) for name in SCALED},
    **{
        f"{name} {dtype}": _init(name, dtype=dtype)
        for name in ("lecun_normal", "lecun_uniform", "normal", "zeros", "ones")
        for dtype in ("float16", "bfloat16", "complex64")
    },
    "lecun_normal of axes": _init("lecun_normal", (0, 1), 2, shape=(2, 3, 4)),
    "he_uniform of batch": _init("he_uniform", batch_axis=0, shape=(2, 3, 4)),
    "zeros": _init("zeros"),
    "ones int32": _init("ones", dtype="int32"),
    "constant": _init("constant", 2),
    "constant int32": _init("constant", 2.5, "int32"),
    "constant of array": _init("constant", np.arange(3, dtype=np.float32)),
    "uniform": _init("uniform", 0.3),
    "uniform of int": _init("uniform", dtype="int32"),
    "normal": _init("normal", 0.5),
    "normal of array": _init("normal", np.arange(3, dtype=np.float32)),
    "normal of own dtype": _init("normal", dtype="float16"),
    "truncated_normal": _init("truncated_normal", 0.02),
    "truncated_normal of bounds": _init("truncated_normal", 0.02, lower=-1.0, upper=0.5),
    "variance_scaling fan_out": _init("variance_scaling", 2.0, "fan_out", "normal"),
    "variance_scaling fan_geo_avg": _init("variance_scaling", 1.0, "fan_geo_avg", "uniform"),
    "variance_scaling of x": _init("variance_scaling", 1.0, "x", "normal"),
    "variance_scaling by x": _init("variance_scaling", 1.0, "fan_in", "x"),
    "lecun_normal of vector": _init("lecun_normal", shape=(3,)),
    "orthogonal": _init("orthogonal", 2.0),
    "orthogonal of axis complex64": _init("orthogonal", 1.0, 0, shape=(3, 2, 2), dtype="complex64"),
    "orthogonal of vector": _init("orthogonal", shape=(3,)),
    "orthogonal of no axis": _init("orthogonal", 1.0, 2),
    "orthogonal float16": _init("orthogonal", dtype="float16"),
    "delta_orthogonal": _init("delta_orthogonal", 3, shape=(3, 4, 2, 3)),
    "delta_orthogonal of rows": _init("delta_orthogonal", 1.0, -2, shape=(3, 2, 3)),
    "delta_orthogonal of matrix": _init("delta_orthogonal", shape=(3, 2)),
    "delta_orthogonal of many inputs": _init("delta_orthogonal", shape=(3, 4, 2)),
}

CALLS: dict[str, dict[str, Call]] = {
    "activations": ACTIVATIONS,
    "normalizations": NORMALIZATIONS,
    "attentions": ATTENTIONS,
    "initializers": INITIALIZERS,
}

FUNCTIONS = (
    *ELEMENTWISE,
    "dot_product_attention",
    "get_scaled_dot_general_config",
    "glu",
    "hard_swish",
    "log_softmax",
    "logmeanexp",
    "logsumexp",
    "one_hot",
    "scaled_dot_general",
    "scaled_matmul",
    "softmax",
    "standardize",
    "swish",
)
INITIALIZER_FUNCTIONS = (
    *SCALED,
    "constant",
    "delta_orthogonal",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "zeros",
)
