"""What operations and collectives compute, in NumPy, written from their definitions alone.

Nothing here knows how either is staged, typed or lowered: compiled programs are judged by it.

`compute` takes the name of an operation without communication, arrays, and parameters; it gives an
array, or `NotImplemented` where NumPy has no counterpart or differs from XLA: such operations are
left to the compiled primitive.  `exchange` takes the operands of the members of an axis, in the
order of the axis, and gives their results; `fault` says what is wrong with them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minijax.core import dtypes

Block = np.ndarray[Any, Any]
# For each member of a group its operands, or its results.
Group = Sequence[Sequence[Block]]


def _total(blocks: Sequence[Block]) -> Block:
    """The sum, of booleans as integers; added one by one, so that the dtype stays."""
    numbers = [b.astype(np.int32) if b.dtype == np.bool_ else b for b in blocks]
    return functools.reduce(np.add, numbers)


@dataclass(frozen=True)
class ReductionModel:
    """The model of a reduction over devices.

    Axes that are integers are dimensions of each block, which are reduced first.  The operator
    must therefore be associative and commutative.

    Attributes:
        combine: combines a sequence of blocks, element by element.
        symbol: how pictures write it: `+` between elements, another symbol as a function.
    """

    combine: Callable[[Sequence[Block]], Block]
    symbol: str

    def __call__(self, group: Group, *, axes: Sequence[Any] = (), **_: Any) -> Group:
        blocks = [x for (x,) in group]
        for d in sorted((a for a in axes if type(a) is int), reverse=True):
            blocks = [self.combine([np.take(x, i, d) for i in range(x.shape[d])]) for x in blocks]
        return [(self.combine(blocks),)] * len(blocks)


def _all_gather(group: Group, *, all_gather_dimension: int, tiled: bool, **_: Any) -> Group:
    join = np.concatenate if tiled else np.stack
    return [(join([x for (x,) in group], all_gather_dimension),)] * len(group)


def _reduce_scatter(group: Group, *, scatter_dimension: int, tiled: bool, **_: Any) -> Group:
    total = _total([x for (x,) in group])
    if tiled:
        return [(part,) for part in np.split(total, len(group), scatter_dimension)]
    return [(np.take(total, j, scatter_dimension),) for j in range(len(group))]


def _all_to_all(group: Group, *, split_axis: int, concat_axis: int, **_: Any) -> Group:
    parts = [np.split(x, len(group), split_axis) for (x,) in group]
    return [(np.concatenate([own[j] for own in parts], concat_axis),) for j in range(len(group))]


def _ppermute(group: Group, *, perm: Sequence[tuple[int, int]], **_: Any) -> Group:
    outs = [np.zeros_like(x) for (x,) in group]
    for source, destination in perm:
        outs[destination] = group[source][0]
    return [(out,) for out in outs]


def _pbroadcast(group: Group, *, source: int, **_: Any) -> Group:
    return [group[source]] * len(group)


def _ragged_all_to_all(group: Group, **_: Any) -> Group:
    """Each member's operands: the array to send from, the one to write to, where slices start,
    how long they are, where they go on the receiver, and how long those received are.
    """
    outs = [operands[1].copy() for operands in group]
    for operand, _output, starts, sizes, targets, _received in group:
        per_member = len(sizes) // len(group)
        for k, (start, size, target) in enumerate(zip(starts, sizes, targets, strict=True)):
            outs[k // per_member][target : target + size] = operand[start : start + size]
    return [(out,) for out in outs]


_maximum = ReductionModel(functools.partial(functools.reduce, np.maximum), "max")
_minimum = ReductionModel(functools.partial(functools.reduce, np.minimum), "min")
_psum = ReductionModel(_total, "+")

MODELS: dict[str, Callable[..., Group]] = {
    "psum": _psum,
    "psum_invariant": _psum,
    "unreduced_psum": _psum,
    "pmax": _maximum,
    "pmin": _minimum,
    "all_gather": _all_gather,
    "all_gather_invariant": _all_gather,
    "all_gather_reduced": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "unreduced_reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "ppermute": _ppermute,
    "pbroadcast": _pbroadcast,
    "ragged_all_to_all": _ragged_all_to_all,
}
"""The collectives, by the names of their primitives."""

STARTS = {**{f"{name}_start": name for name in MODELS}, "psend": "ppermute"}
"""Collectives of which the result is asked for later, and those that give it at once."""

ENDS = frozenset({*(f"{name}_done" for name in MODELS), "precv"})
"""Operations that give what a collective, of which they take the promise, has brought."""

PUBLIC = {
    "psum_invariant": "psum",
    "unreduced_psum": "psum",
    "all_gather_invariant": "all_gather",
    "all_gather_reduced": "all_gather",
    "reduce_scatter": "psum_scatter",
    "unreduced_reduce_scatter": "psum_scatter",
}
"""The functions of `lax` that apply collectives of other names: what a program says."""

IN_MESH_ORDER = frozenset({"ppermute"})
"""Collectives that count the members of several axes in the order of the mesh, not of the names."""

CASTS = {
    "pvary": "varying",
    "preduced": "reduced",
    "reduced_vary_cast": "varying",
    "vary_unreduced_cast": "unreduced",
}
"""Operations that change what types say, and no value; and the state they give to their axes."""

RESULT_STATES = {
    **CASTS,
    "psum_invariant": "invarying",
    "unreduced_psum": "invarying",
    "pmax": "invarying",
    "pmin": "invarying",
    "all_gather_invariant": "invarying",
    "all_gather_reduced": "reduced",
}
"""How results stand to the axes of an operation; those of the others vary over them."""


def result_state(name: str, params: Mapping[str, Any]) -> str:
    """How the result stands to the axes: with groups, members of different ones differ."""
    if params.get("axis_index_groups") is not None:
        return "varying"
    return RESULT_STATES.get(name, "varying")


def exchange(name: str, params: Mapping[str, Any], members: Group) -> list[Sequence[Block]]:
    """What each member of an axis gets; groups within the axis work each for themselves.

    Args:
        name: the collective.
        params: its parameters.
        members: the operands of each member, in the order of the axis.
    """
    groups = params.get("axis_index_groups") or [range(len(members))]
    outs: list[Any] = [None] * len(members)
    with np.errstate(all="ignore"):
        for group in groups:
            results = MODELS[name]([members[i] for i in group], **params)
            for i, result in zip(group, results, strict=True):
                outs[i] = result
    return outs


def fault(name: str, params: Mapping[str, Any], members: Group) -> str | None:
    """What is wrong with a collective in which all members agree; None where nothing is."""
    size = len(members)
    groups = params.get("axis_index_groups")
    if groups is not None and sorted(i for g in groups for i in g) != list(range(size)):
        return f"axis_index_groups {groups} do not name each of {size} members once"
    if name == "ppermute" and (found := _permutation_fault(params["perm"], size)):
        return found
    if name == "pbroadcast" and not 0 <= params["source"] < size:
        return f"source {params['source']} is none of {size} members"
    return None


def _permutation_fault(perm: Sequence[tuple[int, int]], size: int) -> str | None:
    for what, ends in (("source", [s for s, _ in perm]), ("destination", [d for _, d in perm])):
        for end in ends:
            if not 0 <= end < size:
                return f"{what} {end} in perm {tuple(perm)} is none of {size} members"
            if ends.count(end) > 1:
                return f"{what} {end} appears twice in perm {tuple(perm)}"
    return None


Operation = Callable[..., Any]


def compute(name: str, args: Sequence[Block], params: Mapping[str, Any]) -> Any:
    """The result of an operation, or `NotImplemented`; several results are a list.

    Results may be of a wider dtype than the operation's own.
    """
    operation = OPERATIONS.get(name)
    if operation is None:
        return NotImplemented
    # How accurate a function shall be makes no difference here.
    params = {key: value for key, value in params.items() if key != "accuracy"}
    widened = [_widened(x) for x in args]
    if any(x is None for x in widened):
        return NotImplemented
    try:
        with np.errstate(all="ignore"):
            return operation(*widened, **params)
    except TypeError:
        # NumPy has the function, but not for this dtype.
        return NotImplemented


def _widened(x: Block) -> Block | None:
    """Narrow floats as float32, as XLA computes with them; None for other dtypes of our own."""
    if x.dtype.kind != "V" and x.dtype != np.float16:
        return x
    return x.astype(np.float32) if dtypes.issubdtype(x.dtype, np.floating) else None


def _is_integer(x: Block) -> bool:
    return x.dtype.kind in "iu"


def _div(x: Block, y: Block) -> Any:
    if not _is_integer(x):
        return x / y
    if np.any(y == 0):
        return NotImplemented
    # Towards zero, where NumPy rounds down.
    quotient = x // y
    return quotient + ((x % y != 0) & ((x < 0) != (y < 0))).astype(x.dtype)


def _rem(x: Block, y: Block) -> Any:
    return NotImplemented if _is_integer(x) and np.any(y == 0) else np.fmod(x, y)


def _pow(x: Block, y: Block) -> Any:
    return NotImplemented if _is_integer(x) or _is_integer(y) else np.power(x, y)


def _integer_pow(x: Block, *, y: int) -> Any:
    return NotImplemented if _is_integer(x) and y < 0 else x**y


def _shifted(shift: Callable[..., Any]) -> Operation:
    def operation(x: Block, y: Block) -> Any:
        outside = np.any(y < 0) or np.any(y >= 8 * x.dtype.itemsize)
        return NotImplemented if outside else shift(x, y)

    return operation


def _logical_right(x: Block, y: Block) -> Any:
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    return np.right_shift(x.view(unsigned), y.view(unsigned)).view(x.dtype)


def _convert(x: Block, *, new_dtype: np.dtype[Any], **_: Any) -> Any:
    target = np.dtype(new_dtype)
    if target == np.bool_:
        return x != 0
    if target.kind == "c" or x.dtype.kind != "c":
        if target.kind in "iu" and x.dtype.kind == "f":
            limits = np.iinfo(target)
            # NumPy says nothing of numbers out of range, nor of NaNs.
            if not np.all((x > limits.min - 1) & (x < limits.max)):
                return NotImplemented
        return x.astype(target)
    return x.real.astype(target)


def _clamp(low: Block, x: Block, high: Block) -> Block:
    return np.minimum(np.maximum(x, low), high)


def _select(which: Block, *cases: Block) -> Block:
    if len(cases) == 2:
        return np.where(which, cases[1], cases[0])
    number = np.clip(which, 0, len(cases) - 1)
    return functools.reduce(
        lambda found, i: np.where(number == i, cases[i], found), range(1, len(cases)), cases[0]
    )


def _round(x: Block, *, rounding_method: int) -> Any:
    return np.rint(x) if int(rounding_method) == 1 else NotImplemented


def _broadcast_in_dim(
    x: Block, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], **_: Any
) -> Block:
    own = [1] * len(shape)
    for d, size in zip(broadcast_dimensions, x.shape, strict=True):
        own[d] = size
    return np.broadcast_to(x.reshape(own), shape)


def _reshape(
    x: Block, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None, **_: Any
) -> Block:
    return (x if dimensions is None else x.transpose(dimensions)).reshape(new_sizes)


def _slice(
    x: Block,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None,
) -> Block:
    steps = strides or [1] * x.ndim
    return x[tuple(map(slice, start_indices, limit_indices, steps))]


def _window(x: Block, starts: Sequence[Block], sizes: Sequence[int]) -> tuple[slice, ...]:
    """Where a slice lies; starts are moved so that all of it is inside."""
    places = zip(starts, sizes, x.shape, strict=True)
    firsts = [min(max(int(start), 0), whole - size) for start, size, whole in places]
    return tuple(slice(i, i + size) for i, size in zip(firsts, sizes, strict=True))


def _dynamic_slice(x: Block, *starts: Block, slice_sizes: Sequence[int]) -> Block:
    return x[_window(x, starts, slice_sizes)]


def _dynamic_update_slice(x: Block, update: Block, *starts: Block) -> Block:
    out = x.copy()
    out[_window(x, starts, update.shape)] = update
    return out


def _pad(x: Block, value: Block, *, padding_config: Sequence[tuple[int, int, int]]) -> Block:
    sizes = [
        low + high + n + max(n - 1, 0) * interior
        for n, (low, high, interior) in zip(x.shape, padding_config, strict=True)
    ]
    out = np.full([max(size, 0) for size in sizes], value, x.dtype)
    target, source = [], []
    for n, size, (low, _, interior) in zip(x.shape, sizes, padding_config, strict=True):
        # Elements that negative padding moves out at either end are dropped.
        kept = [i for i in range(n) if 0 <= low + i * (interior + 1) < size]
        source.append(kept)
        target.append([low + i * (interior + 1) for i in kept])
    out[np.ix_(*target)] = x[np.ix_(*source)]
    return out


def _iota(*, dtype: np.dtype[Any], shape: Sequence[int], dimension: int, **_: Any) -> Block:
    own = [size if d == dimension else 1 for d, size in enumerate(shape)]
    return np.broadcast_to(np.arange(shape[dimension]).astype(dtype).reshape(own), shape)


def _dot_general(
    x: Block,
    y: Block,
    *,
    dimension_numbers: Any,
    preferred_element_type: np.dtype[Any] | None,
    **_: Any,
) -> Any:
    (x_summed, y_summed), (x_batch, y_batch) = dimension_numbers
    if preferred_element_type is not None and _is_integer(x):
        x, y = x.astype(preferred_element_type), y.astype(preferred_element_type)
    x_free = [d for d in range(x.ndim) if d not in (*x_summed, *x_batch)]
    y_free = [d for d in range(y.ndim) if d not in (*y_summed, *y_batch)]
    batch = [x.shape[d] for d in x_batch]
    summed = int(np.prod([x.shape[d] for d in x_summed], dtype=int))
    rows, columns = [x.shape[d] for d in x_free], [y.shape[d] for d in y_free]
    left = x.transpose([*x_batch, *x_free, *x_summed])
    right = y.transpose([*y_batch, *y_summed, *y_free])
    product = np.matmul(
        left.reshape([*batch, int(np.prod(rows, dtype=int)), summed]),
        right.reshape([*batch, summed, int(np.prod(columns, dtype=int))]),
    )
    return product.reshape([*batch, *rows, *columns])


def _reduced(reduce: Callable[..., Any], needs_elements: bool = False) -> Operation:
    def operation(x: Block, *, axes: Sequence[int], **_: Any) -> Any:
        if needs_elements and x.size == 0:
            return NotImplemented
        return reduce(x, axis=tuple(axes))

    return operation


def _sum(x: Block, axis: tuple[int, ...]) -> Any:
    return np.sum(x, axis=axis, dtype=x.dtype)


def _prod(x: Block, axis: tuple[int, ...]) -> Any:
    return np.prod(x, axis=axis, dtype=x.dtype)


def _position(find: Callable[..., Any]) -> Operation:
    return lambda x, *, axes, index_dtype: find(x, axis=axes[0]).astype(index_dtype)


def _cumulative(accumulate: Callable[..., Any]) -> Operation:
    def operation(x: Block, *, axis: int, reverse: bool) -> Block:
        ordered = np.flip(x, axis) if reverse else x
        found = accumulate(ordered, axis=axis, dtype=x.dtype)
        return np.flip(found, axis) if reverse else found

    return operation


def _concatenate(*args: Block, dimension: int) -> Block:
    return np.concatenate(args, dimension)


def _stack(*args: Block, axis: int) -> Block:
    return np.stack(args, axis)


def _split(x: Block, *, sizes: Sequence[int], axis: int) -> list[Block]:
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def _unstack(x: Block, *, axis: int) -> list[Block]:
    return list(np.moveaxis(x, axis, 0))


def _sort(*args: Block, dimension: int, num_keys: int, **_: Any) -> Any:
    if len(args) > 1 or args[0].dtype.kind not in "iub":
        return NotImplemented
    return [np.sort(args[0], axis=dimension)]


def _conj(x: Block, *, input_dtype: np.dtype[Any]) -> Any:
    return np.conj(x)


def _logistic(x: Block) -> Any:
    return 1 / (1 + np.exp(-x))


OPERATIONS: dict[str, Operation] = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "floor": np.floor,
    "imag": np.imag,
    "is_finite": np.isfinite,
    "log": np.log,
    "log1p": np.log1p,
    "logistic": _logistic,
    "neg": np.negative,
    "not": np.invert,
    "real": np.real,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sign": np.sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "square": np.square,
    "tan": np.tan,
    "tanh": np.tanh,
    "add": np.add,
    "add_any": np.add,
    "and": np.bitwise_and,
    "argmax": _position(np.argmax),
    "argmin": _position(np.argmin),
    "atan2": np.arctan2,
    "broadcast_in_dim": _broadcast_in_dim,
    "clamp": _clamp,
    "complex": lambda x, y: x + 1j * y,
    "concatenate": _concatenate,
    "conj": _conj,
    "convert_element_type": _convert,
    "cummax": _cumulative(np.maximum.accumulate),
    "cummin": _cumulative(np.minimum.accumulate),
    "cumprod": _cumulative(np.cumprod),
    "cumsum": _cumulative(np.cumsum),
    "div": _div,
    "dot_general": _dot_general,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "eq": np.equal,
    "ge": np.greater_equal,
    "gt": np.greater,
    "integer_pow": _integer_pow,
    "iota": _iota,
    "le": np.less_equal,
    "lt": np.less,
    "max": np.maximum,
    "min": np.minimum,
    "mul": np.multiply,
    "ne": np.not_equal,
    "or": np.bitwise_or,
    "pad": _pad,
    "pow": _pow,
    "reduce_and": _reduced(np.bitwise_and.reduce),
    "reduce_max": _reduced(np.max, needs_elements=True),
    "reduce_min": _reduced(np.min, needs_elements=True),
    "reduce_or": _reduced(np.bitwise_or.reduce),
    "reduce_prod": _reduced(_prod),
    "reduce_sum": _reduced(_sum),
    "reduce_xor": _reduced(np.bitwise_xor.reduce),
    "rem": _rem,
    "reshape": _reshape,
    "rev": lambda x, *, dimensions: np.flip(x, dimensions),
    "round": _round,
    "select_n": _select,
    "shift_left": _shifted(np.left_shift),
    "shift_right_arithmetic": _shifted(np.right_shift),
    "shift_right_logical": _shifted(_logical_right),
    "slice": _slice,
    "sort": _sort,
    "split": _split,
    "squeeze": lambda x, *, dimensions: x.squeeze(dimensions),
    "stack": _stack,
    "sub": np.subtract,
    "tile": lambda x, *, reps: np.tile(x, reps),
    "transpose": lambda x, *, permutation: x.transpose(permutation),
    "unstack": _unstack,
    "xor": np.bitwise_xor,
    **{
        # Without devices there is one placement only, and without compilation nothing to hold back.
        name: lambda x, **_: x
        for name in (
            "copy",
            "device_put",
            "move_to_memory",
            "name",
            "reshard",
            "sharding_constraint",
            "stop_gradient",
        )
    },
    "optimization_barrier": lambda *args: list(args),
}
"""The operations, by the names of their primitives."""
