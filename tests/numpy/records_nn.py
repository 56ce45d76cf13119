"""Records of `nn`, whose oracles are formulas, and of functions of segments."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from tests.numpy.records import ANY, FULL, Record

FORMULAS: dict[str, Any] = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "sigmoid": scipy.special.expit,
    "softplus": lambda x: np.logaddexp(x, 0),
    "sparse_plus": lambda x: np.where(x <= -1, 0, np.where(x >= 1, x, (x + 1) ** 2 / 4)),
    "sparse_sigmoid": lambda x: np.clip((x + 1) / 2, 0, 1),
    "soft_sign": lambda x: x / (1 + np.abs(x)),
    "silu": lambda x: x * scipy.special.expit(x),
    "swish": lambda x: x * scipy.special.expit(x),
    "mish": lambda x: x * np.tanh(np.logaddexp(x, 0)),
    "log_sigmoid": lambda x: -np.logaddexp(-x, 0),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "celu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: (
        1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0)))
    ),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hard_swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "gelu": lambda x: x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2,
    "squareplus": lambda x: (x + np.sqrt(x**2 + 4)) / 2,
    "tanh": np.tanh,
    "identity": lambda x: x,
}


def record(name: str, draw: Any, oracle: Any = None, **options: Any) -> Record:
    return Record(f"nn.{name}", draw, oracle, **options)


def activation(name: str) -> Record:
    """A record of an activation, whose slope is compared where it has no kink."""
    values = (-0.75, 0.75) if name in {"hard_tanh", "sparse_sigmoid"} else (-4, 7)
    draw = lambda d: d.call(d.array("f", values=values))
    return record(name, draw, FORMULAS[name], tolerance=2)


def softmax(x: Any, axis: int) -> Any:
    return scipy.special.softmax(x, axis)


def attention(q: Any, k: Any, v: Any, is_causal: bool) -> Any:
    logits = np.einsum("btnh,bsnh->bnts", q, k) / np.sqrt(q.shape[-1])
    if is_causal:
        logits = np.where(np.tri(*logits.shape[-2:]), logits, -np.inf)
    return np.einsum("bnts,bsnh->btnh", softmax(logits, -1), v)


def glu(x: Any, axis: int) -> Any:
    left, right = np.split(x, 2, axis)
    return left * scipy.special.expit(right)


def standardize(x: Any, axis: Any) -> Any:
    deviation = x - x.mean(axis, keepdims=True)
    return deviation / np.sqrt(x.var(axis, keepdims=True) + 1e-5)


def segments(name: str, combine: Any, start: float, **options: Any) -> Record:
    """A record of a reduction of the elements that have a number in common."""

    def oracle(x: Any, places: Any, num_segments: int) -> Any:
        result = np.full((num_segments, *x.shape[1:]), start)
        inside = (places >= 0) & (places < num_segments)
        combine.at(result, places[inside], x[inside])
        return result

    draw = lambda d: d.call(
        d.array("f", [(4, 2), (4,)]), d.array("i", [(4,)], (0, 2)), num_segments=d.of(3, 2)
    )
    return Record(f"ops.{name}", draw, oracle, **options)


RECORDS = [
    *map(activation, FORMULAS),
    record(
        "gelu",
        lambda d: d.call(d.array("f"), approximate=False),
        lambda x, approximate: x * scipy.special.ndtr(x),
        case="exact",
    ),
    record(
        "log1mexp",
        lambda d: d.call(d.array("f", values=(0.25, 4))),
        lambda x: np.log1p(-np.exp(-x)),
        tolerance=2,
    ),
    *(
        record(name, lambda d: d.call(x := d.array("f", FULL), axis=d.axis(x)), oracle, tolerance=2)
        for name, oracle in (
            ("softmax", softmax),
            ("log_softmax", scipy.special.log_softmax),
            ("logsumexp", scipy.special.logsumexp),
            ("logmeanexp", lambda x, axis: np.log(np.mean(np.exp(x), axis))),
            ("standardize", standardize),
        )
    ),
    record("glu", lambda d: d.call(d.array("f", [(2, 4), (4, 2, 2)]), axis=d.of(-1, 0)), glu),
    record(
        "one_hot",
        lambda d: d.call(d.array("i", ANY, (-1, 3)), num_classes=d.of(3, 2, 0), axis=d.of(-1, 0)),
        lambda x, num_classes, axis: np.moveaxis(
            np.float64(x[..., None] == np.arange(num_classes)), -1, axis
        ),
        grad="its values are 0 and 1",
    ),
    record(
        "dot_product_attention",
        lambda d: d.call(
            *(d.array("float32", [(2, 3, 2, 4)]) for _ in range(3)),
            is_causal=d.of(True, False),
        ),
        attention,
        grad="its sums are of float32, too coarse for differences; test_activations.py has figures",
        tolerance=4,
    ),
    segments("segment_sum", np.add, 0.0),
    segments("segment_prod", np.multiply, 1.0, grad="JAX has none either where places are equal"),
    segments("segment_max", np.maximum, -np.inf),
    segments("segment_min", np.minimum, np.inf),
]
