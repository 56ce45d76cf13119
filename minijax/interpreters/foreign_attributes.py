"""Values that foreign functions get besides arrays: known when a program is compiled.

Input: Python and NumPy values.  Output: MLIR attributes; and copies that nobody changes, which can
stand among the parameters of an equation because they are compared by value and type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from minijax.core import dtypes
from minijax.core.errors import error
from minijax.interpreters import hlo_build

EXPECTED = (
    "a bool, int, float, str, dtype, NumPy scalar or array, or a tuple or dict (with names as "
    "keys) of these"
)


class Attribute:
    """A value of such a kind.  1, True, 1.0 and np.int32(1) are four different ones.

    Attributes:
        value: a copy of what was given.
    """

    __slots__ = ("_facts", "value")

    def __init__(self, value: Any) -> None:
        self.value, self._facts = _frozen(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attribute) and self._facts == other._facts

    def __hash__(self) -> int:
        return hash(self._facts)

    def __repr__(self) -> str:
        return repr(self.value)


def attributes_of(name: str, given: Mapping[str, Any]) -> tuple[tuple[str, Attribute], ...]:
    """Attributes by name, as a parameter of an equation.

    Args:
        name: the public function that was given them, for messages.
        given: their values.

    Raises:
        TypeError: there is no attribute for such a value.
        OverflowError: an integer needs more than 64 bits.
    """
    frozen = []
    for key, value in sorted(given.items()):
        try:
            frozen.append((key, Attribute(value)))
        except TypeError as caught:
            error(
                TypeError,
                name,
                f"the attribute {key!r} has no form that foreign functions know: {caught}.",
                got=f"{value!r} of type {type(value).__name__}",
                expected=EXPECTED,
                fix="pass arrays that the program computes by position, and lists as tuples or "
                "as np.array(...)",
                cause=None,
            )
        except OverflowError:
            error(
                OverflowError,
                name,
                f"the attribute {key!r} does not fit into 64 bits.",
                got=repr(value),
                expected="an integer from -2**63 to 2**63 - 1",
                cause=None,
            )
    return tuple(frozen)


def _frozen(value: Any) -> tuple[Any, tuple[Any, ...]]:
    """A copy of a value, and what tells it from others.

    Raises:
        TypeError: it is of no kind that there are attributes for.
        OverflowError: it is an integer of more than 64 bits.
    """
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("the keys of a dict must be str")
        parts = {key: _frozen(value[key]) for key in sorted(value)}
        frozen = {key: part for key, (part, _) in parts.items()}
        return frozen, (dict, tuple((key, facts) for key, (_, facts) in parts.items()))
    if isinstance(value, tuple):
        each = [_frozen(part) for part in value]
        return tuple(part for part, _ in each), (tuple, *(facts for _, facts in each))
    if isinstance(value, str):
        return str(value), (str, str(value))
    if isinstance(value, bytes):
        return bytes(value), (bytes, bytes(value))
    if isinstance(value, np.ndarray | np.generic):
        return _frozen_array(value)
    return _frozen_scalar(value)


def _frozen_scalar(value: Any) -> tuple[Any, tuple[Any, ...]]:
    if isinstance(value, bool | np.dtype):
        return value, (type(value), value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise OverflowError
        return int(value), (int, int(value))
    if isinstance(value, float):
        return float(value), (float, value.hex())
    raise TypeError(f"nothing stands for values of type {type(value).__name__}")


def _frozen_array(value: Any) -> tuple[Any, tuple[Any, ...]]:
    dtype = value.dtype
    if dtype.kind not in "biufc" and not dtypes.issubdtype(dtype, np.inexact):
        raise TypeError(f"nothing stands for elements of dtype {dtype}")
    if isinstance(value, np.generic):
        if dtype.kind == "c":
            raise TypeError("nothing stands for a complex number")
        return value, (np.generic, dtype, value.tobytes())
    copied = value.copy()
    copied.flags.writeable = False
    return copied, (np.ndarray, dtype, copied.shape, copied.tobytes())


def to_mlir(value: Any) -> Any:
    """The MLIR attribute of a value.

    bool is i1, int i64, float f64; NumPy scalars keep their width, arrays are dense.

    Raises:
        TypeError: it is of no kind that there are attributes for.
    """
    return _to_mlir(value.value if isinstance(value, Attribute) else _frozen(value)[0])


def _to_mlir(value: Any) -> Any:
    if isinstance(value, dict):
        return hlo_build.dictionary({key: _to_mlir(part) for key, part in value.items()})
    if isinstance(value, tuple):
        return ir.ArrayAttr.get(list(map(_to_mlir, value)), hlo_build.context())
    if isinstance(value, np.ndarray):
        return hlo_build.dense(value)
    if isinstance(value, str):
        return hlo_build.string(value)
    if isinstance(value, bytes):
        return ir.StringAttr.get(value, hlo_build.context())
    if isinstance(value, np.dtype):
        return ir.TypeAttr.get(hlo_build.element_type(value), hlo_build.context())
    return _number_to_mlir(value)


def _number_to_mlir(value: Any) -> Any:
    if isinstance(value, bool | np.bool_):
        return hlo_build.boolean(bool(value))
    dtype = value.dtype if isinstance(value, np.generic) else np.dtype(type(value))
    kind = hlo_build.element_type(dtype)
    with hlo_build.context(), ir.Location.unknown():
        if dtype == np.uint64:
            value = value.view(np.int64)
        if dtypes.issubdtype(dtype, np.integer):
            return ir.IntegerAttr.get(kind, int(value))
        return ir.FloatAttr.get(kind, float(value))
