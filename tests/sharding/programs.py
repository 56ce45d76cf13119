"""Random programs of array operations: each a list of steps on values computed so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import minijax as jax
from minijax import lax
from minijax import numpy as jnp
from minijax.errors import ShardingTypeError
from minijax.sharding import PartitionSpec, reshard

SIZES = (1, 2, 4, 8)


class Step(NamedTuple):
    """One operation: what it is called, what it does, and which values it takes."""

    name: str
    function: Callable[..., Any]
    operands: tuple[int, ...]


class Program(NamedTuple):
    """Inputs, and steps; the value of the last step is the result."""

    inputs: tuple[np.ndarray, ...]
    steps: tuple[Step, ...]

    def __repr__(self) -> str:
        shapes = ", ".join(f"{x.dtype}{list(x.shape)}" for x in self.inputs)
        return f"Program({shapes}; {'; '.join(f'{s.name}{list(s.operands)}' for s in self.steps)})"

    def __call__(self, *values: Any, place: Callable[[int, Any], Any] | None = None) -> Any:
        """The result; `place(step, value)` may constrain what each step computes."""
        known = list(values)
        for i, step in enumerate(self.steps):
            value = unsharded_if_refused(step.function, *[known[k] for k in step.operands])
            known.append(value if place is None else place(i, value))
        return known[-1]


def unsharded_if_refused(function: Callable[..., Any], *operands: Any) -> Any:
    """`function` of the operands; unsharded where types refuse the way they are split."""
    try:
        return function(*operands)
    except ShardingTypeError:
        return function(*[reshard(x, PartitionSpec()) for x in operands])


def _unary(shape: tuple[int, ...]) -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {
        "sin": jnp.sin,
        "tanh": jnp.tanh,
        "negative": jnp.negative,
        "double": lambda x: x * 2,
        "ravel": jnp.ravel,
        "transpose": jnp.transpose,
        "expand": lambda x: jnp.expand_dims(x, 0),
        "total": jnp.sum,
    }
    for dim, size in enumerate(shape):
        last = len(shape) - 1
        found |= {
            f"sum{dim}": lambda x, d=dim: x.sum(d),
            f"max{dim}": lambda x, d=dim: x.max(d),
            f"mean{dim}": lambda x, d=dim: x.mean(d, keepdims=True),
            f"cumsum{dim}": lambda x, d=dim: jnp.cumsum(x, d),
            f"sort{dim}": lambda x, d=dim: jnp.sort(x, d),
            f"flip{dim}": lambda x, d=dim: jnp.flip(x, d),
            f"roll{dim}": lambda x, d=dim: jnp.roll(x, 1, d),
            f"pad{dim}": lambda x, d=dim: jnp.pad(
                x, [(1, 1) if i == d else (0, 0) for i in range(x.ndim)]
            ),
            f"twice{dim}": lambda x, d=dim: jnp.concatenate([x, x], d),
            f"first{dim}": lambda x, d=dim: lax.index_in_dim(x, 0, d, keepdims=False),
            f"half{dim}": lambda x, d=dim, n=size: lax.slice_in_dim(x, 0, max(n // 2, 1), axis=d),
            f"every_other{dim}": lambda x, d=dim: lax.slice_in_dim(x, 0, None, 2, d),
            f"swap{dim}": lambda x, d=dim, e=last: jnp.swapaxes(x, d, e),
            f"softmax{dim}": lambda x, d=dim: jax.nn.softmax(x, d),
            f"take{dim}": lambda x, d=dim: jnp.take(x, jnp.array([0, -1]), axis=d),
        }
        if size % 2 == 0:
            split = (*shape[:dim], size // 2, 2, *shape[dim + 1 :])
            found[f"split{dim}"] = lambda x, s=split: x.reshape(s)
        if dim < last:
            merged = (*shape[:dim], size * shape[dim + 1], *shape[dim + 2 :])
            found[f"merge{dim}"] = lambda x, s=merged: x.reshape(s)
    return found


def _scanned(x: Any) -> Any:
    return lax.scan(lambda c, row: (c + row, c * row), jnp.zeros_like(x[0]), x)[1]


def _of_two(a: tuple[int, ...], b: tuple[int, ...]) -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {}
    if a == b:
        found |= {
            "add": jnp.add,
            "multiply": jnp.multiply,
            "maximum": jnp.maximum,
            "where": lambda x, y: jnp.where(x > 0, x, y),
        }
    if len(a) == len(b) == 2 and a[1] == b[0]:
        found["matmul"] = jnp.matmul
    if len(a) == len(b) == 2 and a[0] == b[0]:
        found["einsum"] = lambda x, y: jnp.einsum("bi,bj->ij", x, y)
    if len(a) == 1 and len(b) == 2 and a[0] == b[1]:
        found["broadcast_add"] = jnp.add
    return found


@st.composite
def programs(draw: Any, dtypes: tuple[str, ...] = ("float32",), most_steps: int = 5) -> Program:
    """Programs of one to `most_steps` operations on one or two arrays of rank 1 to 3."""
    dtype = draw(st.sampled_from(dtypes))
    inputs = []
    for _ in range(draw(st.integers(1, 2))):
        shape = tuple(draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=3)))
        seed = draw(st.integers(0, 3))
        values = np.random.default_rng(seed).normal(size=shape) * 2
        inputs.append(
            values.astype(dtype) if dtype != "int32" else np.round(values * 3).astype(dtype)
        )
    shapes = [x.shape for x in inputs]
    steps: list[Step] = []
    for _ in range(draw(st.integers(1, most_steps))):
        first = draw(st.integers(0, len(shapes) - 1))
        options = {(name, (first,)): f for name, f in _unary(shapes[first]).items()}
        if len(shapes[first]) >= 2:
            options["scan", (first,)] = _scanned
        for second, shape in enumerate(shapes):
            two = _of_two(shapes[first], shape)
            options |= {(name, (first, second)): f for name, f in two.items()}
        name, operands = draw(st.sampled_from(sorted(options)))
        step = Step(name, options[name, operands], operands)
        operand_types = [jax.ShapeDtypeStruct(shapes[k], np.float32) for k in operands]
        shape = jax.eval_shape(step.function, *operand_types).shape
        if len(shape) > 4 or np.prod(shape) > 4096:
            continue
        shapes.append(shape)
        steps.append(step)
    return Program(tuple(inputs), tuple(steps) or (Step("negative", jnp.negative, (0,)),))
