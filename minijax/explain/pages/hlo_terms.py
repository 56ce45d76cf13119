"""One operation of HLO on one device, over numbers where they are known, and terms.

Input: an instruction and the values of its operands.  Output: the value that it gives: an array of
numbers with its dtype, or an array of sums of terms.  Collectives and control flow are in
`explain/pages/partition_terms.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.core import dtypes
from minijax.explain.pages import naming, terms
from minijax.explain.pages.moving import MOST_DEVICES, MOST_ELEMENTS, Unshown
from minijax.explain.pages.naming import Legend
from minijax.explain.pages.terms import Sum, Terms
from minijax.runtime.hlo_text import Instruction, Tensor

_MOST_NUMBERS = 1 << 16
_MOST_PRODUCTS = 1 << 14
EITHER = "either"
"""How values are joined of which all but one are zeros."""
_LITERAL = re.compile(r"constant\(([^()]*)\)")
_SLICE = re.compile(r"\[(\d+):(\d+)(?::(\d+))?\]")


class Operation(NamedTuple):
    """An instruction that each device runs by itself.

    Attributes:
        instruction: the instruction.
        tensor: the type of its result.
        given: the dtypes of its operands.
        joins: the operation of the computation that it is given, such as `add`; empty if there is
            none, or if that does more.
        legend: the short names.
    """

    instruction: Instruction
    tensor: Tensor
    given: Sequence[np.dtype[Any]]
    joins: str
    legend: Legend

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its result."""
        return self.tensor.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of its result."""
        return dtype_of(self.tensor)

    def dims(self, attribute: str) -> list[int]:
        """The numbers of an attribute: `dimensions={0,1}`."""
        found = re.search(rf"\b{attribute}=\{{([\d,]*)\}}", self.instruction.attributes)
        return [int(part) for part in found.group(1).split(",") if part] if found else []

    def word(self, attribute: str) -> str:
        """An attribute of one word: `direction=LT`."""
        found = re.search(rf"\b{attribute}=([\w\-]+)", self.instruction.attributes)
        return found.group(1) if found else ""


def dtype_of(tensor: Tensor) -> np.dtype[Any]:
    """NumPy's dtype of a type of HLO."""
    name = tensor.dtype
    if name == "bool":
        return np.dtype(bool)
    if name == "bf16":
        return dtypes.bfloat16
    if name not in ("f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"):
        raise Unshown
    return np.dtype(f"{name[0]}{int(name[1:]) // 8}")


def settled(values: Any, tensor: Tensor) -> Terms:
    """A value as instructions give it: numbers with their dtype where all of it is known."""
    found = terms.simplified(values)
    most = _MOST_NUMBERS if terms.is_known(found) else MOST_ELEMENTS * MOST_DEVICES
    if found.shape != tensor.shape or found.size > most:
        raise Unshown
    with np.errstate(all="ignore"):
        return found.astype(dtype_of(tensor)) if terms.is_known(found) else found


def applied(operation: Operation, args: Sequence[Terms]) -> Terms:
    """The value that an instruction gives.

    Args:
        operation: the instruction.
        args: the values of its operands.

    Raises:
        Unshown: it is not among those that carry terms.
    """
    opcode = operation.instruction.opcode
    with np.errstate(all="ignore"):
        if opcode in _MOVING:
            found = _MOVING[opcode](operation, args)
        elif opcode in _ELEMENTWISE:
            found = _elementwise(operation, _ELEMENTWISE[opcode], args)
        elif opcode in _OTHER:
            found = _OTHER[opcode](operation, args)
        else:
            raise Unshown
    return settled(found, operation.tensor)


def _constant(operation: Operation, args: Sequence[Terms]) -> Terms:
    found = _LITERAL.search(operation.instruction.text)
    if found is None or "..." in found.group(1):
        raise Unshown
    words = re.findall(r"[^\s{},]+", found.group(1))
    numbers = [word == "true" if word in ("true", "false") else _number(word) for word in words]
    # Literals of several dimensions repeat what all of them have.
    if len(numbers) != math.prod(operation.shape):
        raise Unshown
    return np.array(numbers, operation.dtype).reshape(operation.shape)


def _number(word: str) -> float:
    try:
        return float(word) if re.search(r"[.eni]", word) else int(word)
    except ValueError:
        raise Unshown from None


def _iota(operation: Operation, args: Sequence[Terms]) -> Terms:
    along = int(operation.word("iota_dimension"))
    sizes = [1] * len(operation.shape)
    sizes[along] = operation.shape[along]
    line = np.arange(operation.shape[along]).reshape(sizes)
    return np.broadcast_to(line, operation.shape).astype(operation.dtype)


def _same(operation: Operation, args: Sequence[Terms]) -> Terms:
    return args[0]


def _reshape(operation: Operation, args: Sequence[Terms]) -> Terms:
    return args[0].reshape(operation.shape)


def _broadcast(operation: Operation, args: Sequence[Terms]) -> Terms:
    if math.prod(operation.shape) > _MOST_NUMBERS:
        raise Unshown
    sizes = [1] * len(operation.shape)
    for d, size in zip(operation.dims("dimensions"), args[0].shape, strict=True):
        sizes[d] = size
    return np.broadcast_to(args[0].reshape(sizes), operation.shape)


def _transpose(operation: Operation, args: Sequence[Terms]) -> Terms:
    return args[0].transpose(operation.dims("dimensions"))


def _reverse(operation: Operation, args: Sequence[Terms]) -> Terms:
    return np.flip(args[0], tuple(operation.dims("dimensions")))


def _concatenate(operation: Operation, args: Sequence[Terms]) -> Terms:
    return np.concatenate(args, operation.dims("dimensions")[0])


def _slice(operation: Operation, args: Sequence[Terms]) -> Terms:
    text = operation.instruction.attributes.partition("slice={")[2].partition("}")[0]
    parts = [(int(a), int(b), int(c or 1)) for a, b, c in _SLICE.findall(text)]
    return args[0][tuple(slice(*part) for part in parts)]


def _starts(indices: Sequence[Terms], shape: Sequence[int], sizes: Sequence[int]) -> list[slice]:
    if not all(map(terms.is_known, indices)):
        raise Unshown
    found = []
    for index, whole, size in zip(indices, shape, sizes, strict=True):
        start = min(max(int(index), 0), whole - size)
        found.append(slice(start, start + size))
    return found


def _dynamic_slice(operation: Operation, args: Sequence[Terms]) -> Terms:
    return args[0][tuple(_starts(args[1:], args[0].shape, operation.shape))]


def _dynamic_update_slice(operation: Operation, args: Sequence[Terms]) -> Terms:
    base, update, *indices = args
    is_known = terms.is_known(base) and terms.is_known(update)
    found = np.array(base) if is_known else terms.as_terms(base)
    found[tuple(_starts(indices, base.shape, update.shape))] = update
    return found


def _pad(operation: Operation, args: Sequence[Terms]) -> Terms:
    data, filler = args
    text = operation.instruction.attributes.partition("padding=")[2].split(",")[0].strip()
    parts = text.split("x") if data.ndim else []
    edges = [tuple(int(n) for n in part.split("_")) for part in parts]
    return padded(data, filler, [(*edge, 0)[:3] for edge in edges])


def padded(data: Terms, filler: Terms, edges: Sequence[Sequence[int]]) -> Terms:
    """An array with more or fewer elements at its edges, and others between its own.

    Args:
        data: the array.
        filler: what stands in what is added.
        edges: for each dimension how many come before, after, and between two.
    """
    spread = [
        (size - 1) * (between + 1) + 1 if size else 0
        for size, between in zip(data.shape, (edge[2] for edge in edges), strict=True)
    ]
    widths = [(max(low, 0), max(high, 0)) for low, high, _ in edges]
    shape = [low + size + high for size, (low, high) in zip(spread, widths, strict=True)]
    if math.prod(shape) > _MOST_NUMBERS:
        raise Unshown
    is_known = terms.is_known(data) and terms.is_known(filler)
    found = np.empty(shape, data.dtype if is_known else object)
    found[...] = filler[()]
    inner = [
        slice(low, low + size, edge[2] + 1)
        for (low, _), size, edge in zip(widths, spread, edges, strict=True)
    ]
    found[tuple(inner)] = data
    cut = [
        slice(max(-low, 0), size - max(-high, 0))
        for size, (low, high, _) in zip(shape, edges, strict=True)
    ]
    return found[tuple(cut)]


_MOVING: dict[str, Callable[[Operation, Sequence[Terms]], Terms]] = {
    "bitcast": _reshape,
    "broadcast": _broadcast,
    "concatenate": _concatenate,
    "constant": _constant,
    "copy": _same,
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update_slice,
    "iota": _iota,
    "optimization-barrier": _same,
    "pad": _pad,
    "reshape": _reshape,
    "reverse": _reverse,
    "slice": _slice,
    "transpose": _transpose,
}


class _Function(NamedTuple):
    """An elementwise function: what jaxprs call it, and what it makes of numbers."""

    name: str
    compute: Callable[..., Any]


def _divided(x: Any, y: Any) -> Any:
    if np.asarray(x).dtype.kind not in "iub":
        return np.true_divide(x, y)
    safe = np.where(np.asarray(y) == 0, 1, y)
    return np.where(np.asarray(y) == 0, -1, (x - np.fmod(x, safe)) // safe)


def _rounded(x: Any) -> Any:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


def _shifted_right(x: Any, y: Any) -> Any:
    unsigned = np.asarray(x).astype(f"u{np.asarray(x).itemsize}")
    return np.right_shift(unsigned, np.asarray(y).astype(unsigned.dtype)).astype(x.dtype)


_ELEMENTWISE: dict[str, _Function] = {
    "abs": _Function("abs", np.abs),
    "add": _Function("add", np.add),
    "and": _Function("and", np.bitwise_and),
    "atan2": _Function("atan2", np.arctan2),
    "cbrt": _Function("cbrt", np.cbrt),
    "ceil": _Function("ceil", np.ceil),
    "cosine": _Function("cos", np.cos),
    "divide": _Function("div", _divided),
    "erf": _Function("erf", np.vectorize(math.erf, otypes=[float])),
    "exponential": _Function("exp", np.exp),
    "exponential-minus-one": _Function("expm1", np.expm1),
    "floor": _Function("floor", np.floor),
    "is-finite": _Function("is_finite", np.isfinite),
    "log": _Function("log", np.log),
    "log-plus-one": _Function("log1p", np.log1p),
    "logistic": _Function("logistic", _logistic),
    "maximum": _Function("max", np.maximum),
    "minimum": _Function("min", np.minimum),
    "multiply": _Function("mul", np.multiply),
    "negate": _Function("neg", np.negative),
    "not": _Function("not", np.invert),
    "or": _Function("or", np.bitwise_or),
    "power": _Function("pow", np.power),
    "remainder": _Function("rem", np.fmod),
    "round-nearest-afz": _Function("round", _rounded),
    "round-nearest-even": _Function("round", np.rint),
    "rsqrt": _Function("rsqrt", _rsqrt),
    "shift-left": _Function("shift_left", np.left_shift),
    "shift-right-arithmetic": _Function("shift_right_arithmetic", np.right_shift),
    "shift-right-logical": _Function("shift_right_logical", _shifted_right),
    "sign": _Function("sign", np.sign),
    "sine": _Function("sin", np.sin),
    "sqrt": _Function("sqrt", np.sqrt),
    "subtract": _Function("sub", np.subtract),
    "tan": _Function("tan", np.tan),
    "tanh": _Function("tanh", np.tanh),
    "xor": _Function("xor", np.bitwise_xor),
}
_LINEAR: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "divide": np.true_divide,
    "multiply": np.multiply,
    "negate": np.negative,
    "subtract": np.subtract,
}
_COMPARISONS = {
    "EQ": _Function("eq", np.equal),
    "NE": _Function("ne", np.not_equal),
    "LT": _Function("lt", np.less),
    "LE": _Function("le", np.less_equal),
    "GT": _Function("gt", np.greater),
    "GE": _Function("ge", np.greater_equal),
}


def _elementwise(operation: Operation, function: _Function, args: Sequence[Terms]) -> Terms:
    opcode, dtype = operation.instruction.opcode, operation.dtype
    if all(map(terms.is_known, args)):
        return np.asarray(function.compute(*args))
    is_number = dtype.kind != "b" and not (opcode == "divide" and dtype.kind in "iu")
    if opcode in _LINEAR and is_number:
        given = list(map(terms.as_terms, args))
        if opcode in ("divide", "multiply") and not any(map(terms.is_known, args)):
            given = [naming.factors(value, operation.legend) for value in given]
        return np.asarray(_LINEAR[opcode](*given))
    if opcode in ("maximum", "minimum") or (dtype.kind == "b" and opcode in ("and", "or")):
        return _each(operation, args, lambda *own: extreme_of(opcode, own, dtype))
    return _each(operation, args, lambda *own: _by_name(operation, function, own))


def _each(operation: Operation, args: Sequence[Terms], make: Callable[..., Sum]) -> Terms:
    """Makes each element of the result of those of the operands."""
    found = np.empty(operation.shape, object)
    wide = [np.broadcast_to(value, operation.shape) for value in args]
    for index in np.ndindex(*operation.shape):
        found[index] = make(*(terms.sum_of(value[index]) for value in wide))
    return found


def _by_name(operation: Operation, function: _Function, own: Sequence[Sum]) -> Sum:
    known = [value.known for value in own]
    if None in known:
        return naming.by_name(function.name, own, operation.legend)
    pairs = zip(known, operation.given, strict=True)
    return terms.sum_of(function.compute(*(np.asarray(value, dtype) for value, dtype in pairs)))


def extreme_of(opcode: str, values: Sequence[Sum], dtype: np.dtype[Any]) -> Sum:
    """The greatest or least of some sums, by name."""
    if dtype.kind == "b":
        is_or = opcode in ("maximum", "or")
        return naming.extreme("or" if is_or else "and", values, not is_or, is_or)
    low, high = -math.inf, math.inf
    if dtype.kind in "iu":
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    if opcode == "maximum":
        return naming.extreme("max", values, low, high)
    return naming.extreme("min", values, high, low)


def _compare(operation: Operation, args: Sequence[Terms]) -> Terms:
    return _elementwise(operation, _COMPARISONS[operation.word("direction")], args)


def _select(operation: Operation, args: Sequence[Terms]) -> Terms:
    test, chosen, other = args
    if terms.is_known(test):
        is_known = terms.is_known(chosen) and terms.is_known(other)
        first, second = (chosen, other) if is_known else map(terms.as_terms, (chosen, other))
        return np.where(test, first, second)

    def make(own_test: Sum, own: Sum, own_other: Sum) -> Sum:
        if own_test.known is not None:
            return own if own_test.known else own_other
        if own.parts == own_other.parts:
            return own
        return naming.by_name("select", [own_test, own, own_other], operation.legend)

    return _each(operation, args, make)


def _clamp(operation: Operation, args: Sequence[Terms]) -> Terms:
    low, data, high = args
    if all(map(terms.is_known, args)):
        return np.minimum(np.maximum(data, low), high)
    function = _Function("clamp", lambda a, x, b: np.minimum(np.maximum(x, a), b))
    return _each(operation, args, lambda *own: _by_name(operation, function, own))


def _convert(operation: Operation, args: Sequence[Terms]) -> Terms:
    (given,), made = operation.given, operation.dtype
    is_wider = given.kind == "b" or (given.kind in "iu" and made.itemsize >= given.itemsize)
    keeps = made.kind not in "iub" or (is_wider and made.kind != "b")
    if keeps or terms.is_known(args[0]):
        return args[0]
    function = _Function("convert", lambda x: np.asarray(x).astype(made))
    return _each(operation, args, lambda *own: _by_name(operation, function, own))


def joined(operation: Operation, values: Sequence[Sum]) -> Sum:
    """What becomes of several values in a reduction.

    Raises:
        Unshown: it is neither a sum nor an extreme nor a product.
    """
    is_truth = operation.dtype.kind == "b"
    if operation.joins in ("maximum", "minimum") or (is_truth and operation.joins in ("and", "or")):
        return extreme_of(operation.joins, values, operation.dtype)
    if operation.joins == EITHER:
        others = [value for value in values if value.known != 0]
        if len(others) > 1:
            raise Unshown
        return others[0] if others else values[0]
    if operation.joins == "add" and not is_truth:
        return terms.added(values)
    if operation.joins == "multiply" and not is_truth:
        return naming.multiplied(values, operation.legend)
    raise Unshown


_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "add": np.add.reduce,
    "and": np.bitwise_and.reduce,
    "maximum": np.maximum.reduce,
    "minimum": np.minimum.reduce,
    "multiply": np.multiply.reduce,
    "or": np.bitwise_or.reduce,
}


def _reduce(operation: Operation, args: Sequence[Terms]) -> Terms:
    if len(args) != 2:
        raise Unshown
    return reduced(operation, args[0], args[1], operation.dims("dimensions"))


def reduced(operation: Operation, data: Terms, start: Terms, axes: Sequence[int]) -> Terms:
    """What a reduction makes of an array along some of its dimensions.

    Args:
        operation: the reduction.
        data: the array.
        start: what it begins with.
        axes: the dimensions.
    """
    if terms.is_known(data) and terms.is_known(start):
        if operation.joins not in _REDUCTIONS:
            raise Unshown
        return np.asarray(
            _REDUCTIONS[operation.joins](data, axis=tuple(axes), initial=start[()], keepdims=False)
        )
    begun = terms.sum_of(start[()])
    return naming.along(data, axes, lambda own: joined(operation, [begun, *own]))


def _window(operation: Operation, name: str, rank: int, missing: str) -> list[str]:
    text = operation.instruction.attributes.partition("window={")[2].partition("}")[0]
    found = re.search(rf"\b{name}=(\S+)", text)
    return found.group(1).split("x") if found else [missing] * rank


def _reduce_window(operation: Operation, args: Sequence[Terms]) -> Terms:
    if len(args) != 2:
        raise Unshown
    data, start = args
    rank = data.ndim
    sizes, strides, spread, between = (
        [int(n) for n in _window(operation, name, rank, "1")]
        for name in ("size", "stride", "rhs_dilate", "lhs_dilate")
    )
    edges = [
        (*map(int, edge.split("_")), gap - 1)
        for edge, gap in zip(_window(operation, "pad", rank, "0_0"), between, strict=True)
    ]
    wide = padded(data, start, edges)
    windows = math.prod(sizes) * math.prod(operation.shape)
    if windows > _MOST_PRODUCTS:
        raise Unshown
    places = [
        (stride * np.arange(out))[:, None] + (step * np.arange(size))[None]
        for out, stride, size, step in zip(operation.shape, strides, sizes, spread, strict=True)
    ]
    # Dimensions of the result and of the window alternate.
    picked = wide[np.ix_(*(place.ravel() for place in places))]
    shape = [n for out, size in zip(operation.shape, sizes, strict=True) for n in (out, size)]
    return reduced(operation, picked.reshape(shape), start, range(1, 2 * rank, 2))


def _dot(operation: Operation, args: Sequence[Terms]) -> Terms:
    names = ("lhs_contracting", "rhs_contracting", "lhs_batch", "rhs_batch")
    axes = [operation.dims(f"{name}_dims") for name in names]
    left, right = args
    products = math.prod(operation.shape) * math.prod(left.shape[d] for d in axes[0])
    if products > _MOST_PRODUCTS or operation.dtype.kind == "b":
        raise Unshown
    return naming.contracted(left, right, axes, operation.legend)


def _bits(operation: Operation, args: Sequence[Terms]) -> Terms:
    if not terms.is_known(args[0]) or args[0].dtype.itemsize != operation.dtype.itemsize:
        raise Unshown
    return np.ascontiguousarray(args[0]).view(operation.dtype).reshape(operation.shape)


def _gather(operation: Operation, args: Sequence[Terms]) -> Terms:
    data, indices = args
    if not terms.is_known(indices) or math.prod(operation.shape) > _MOST_NUMBERS:
        raise Unshown
    offsets, mapped = operation.dims("offset_dims"), operation.dims("start_index_map")
    beside = operation.dims("operand_batching_dims")
    left_out = {*operation.dims("collapsed_slice_dims"), *beside}
    kept = [d for d in range(data.ndim) if d not in left_out]
    along = int(operation.word("index_vector_dim"))
    rows = np.moveaxis(indices if along < indices.ndim else indices[..., None], along, -1)
    sizes = operation.dims("slice_sizes")
    found = np.empty(operation.shape, data.dtype)
    for index in np.ndindex(*operation.shape):
        batch = [n for d, n in enumerate(index) if d not in offsets]
        place = [0] * data.ndim
        for d, start in zip(mapped, rows[tuple(batch)], strict=True):
            place[d] = min(max(int(start), 0), data.shape[d] - sizes[d])
        for d, side in zip(beside, operation.dims("start_indices_batching_dims"), strict=True):
            place[d] = batch[side - (side > along)]
        for d, offset in zip(kept, offsets, strict=True):
            place[d] += index[offset]
        found[index] = data[tuple(place)]
    return found


_OTHER: dict[str, Callable[[Operation, Sequence[Terms]], Terms]] = {
    "bitcast-convert": _bits,
    "clamp": _clamp,
    "compare": _compare,
    "convert": _convert,
    "dot": _dot,
    "gather": _gather,
    "reduce": _reduce,
    "reduce-window": _reduce_window,
    "select": _select,
}
