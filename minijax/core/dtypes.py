"""Element types: their names, the 64-bit switch, their kinds, and how they promote.

Input: whatever a user may write for a dtype, or values.  Output: `np.dtype` objects, or extended
dtypes, which NumPy cannot describe, such as those of random keys.  Used at every step.  Not here:
conversion of values.

Promotion is a join in a lattice whose nodes are the dtypes and the three weak kinds, which stand
for Python's `int`, `float` and `complex`: types without a width, that adapt to the other operand.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NoReturn, TypeAlias, TypeGuard, overload

import ml_dtypes
import numpy as np

from minijax.core import config, source
from minijax.core.cache import Cache
from minijax.core.errors import error, warn
from minijax.core.operators import Value
from minijax.core.rules import Facts, Rules

knows_extended: Facts[bool] = Facts("knows_extended", False)
"""Whether the rule `lower` takes operands of extended dtypes, such as random keys, as they are."""

over_words = Rules("over_words")
"""What an operation that gives no extended dtype says of its operands, from what it says of the
numbers underneath: `(primitive, result, dim)`, where these are along `dim`."""


class ExtendedDType:
    """Base of element types that NumPy cannot describe, such as those of random keys.

    A subclass sets `name` (its short notation), `itemsize` (bytes of one element), `type` (the
    abstract scalar type that `issubdtype` compares), and what XLA computes with: elements of
    `physical_shape` and `physical_dtype`.  It defines equality and hash.
    """

    name: str
    itemsize: int
    type: type[np.generic]
    physical_shape: tuple[int, ...]
    physical_dtype: np.dtype[Any]

    def element(self, value: Value) -> Any:
        """The element of which all physical numbers are `value`, a number."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.name


class extended(np.generic):  # noqa: N801 - named as the NumPy scalar types that it stands beside
    """Abstract scalar type of all extended dtypes.

    Example:
        >>> jnp.issubdtype(jax.random.key(0).dtype, jax.dtypes.extended)
        True
        >>> jnp.issubdtype(jnp.float32, jax.dtypes.extended)
        False
    """


class prng_key(extended):  # noqa: N801
    """Abstract scalar type of all random key dtypes.

    Example:
        >>> jnp.issubdtype(jax.random.key(0).dtype, jax.dtypes.prng_key)
        True
    """


DType: TypeAlias = np.dtype[Any] | ExtendedDType


class TypePromotionError(ValueError):
    """The operands' dtypes have no common type.  Mirrors jax.dtypes.TypePromotionError."""


class OpaquePromotionError(TypePromotionError, TypeError):
    """An extended dtype combines with no other."""


float0 = np.dtype([("float0", np.void, 0)])
"""Tangent type of integers and booleans: it holds no information."""

bool_ = np.dtype(np.bool_)
int2 = np.dtype(ml_dtypes.int2)
int4 = np.dtype(ml_dtypes.int4)
int8 = np.dtype(np.int8)
int16 = np.dtype(np.int16)
int32 = np.dtype(np.int32)
int64 = np.dtype(np.int64)
uint2 = np.dtype(ml_dtypes.uint2)
uint4 = np.dtype(ml_dtypes.uint4)
uint8 = np.dtype(np.uint8)
uint16 = np.dtype(np.uint16)
uint32 = np.dtype(np.uint32)
uint64 = np.dtype(np.uint64)
float4_e2m1fn = np.dtype(ml_dtypes.float4_e2m1fn)
float8_e3m4 = np.dtype(ml_dtypes.float8_e3m4)
float8_e4m3 = np.dtype(ml_dtypes.float8_e4m3)
float8_e4m3b11fnuz = np.dtype(ml_dtypes.float8_e4m3b11fnuz)
float8_e4m3fn = np.dtype(ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz = np.dtype(ml_dtypes.float8_e4m3fnuz)
float8_e5m2 = np.dtype(ml_dtypes.float8_e5m2)
float8_e5m2fnuz = np.dtype(ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu = np.dtype(ml_dtypes.float8_e8m0fnu)
bfloat16 = np.dtype(ml_dtypes.bfloat16)
float16 = np.dtype(np.float16)
float32 = np.dtype(np.float32)
float64 = np.dtype(np.float64)
complex64 = np.dtype(np.complex64)
complex128 = np.dtype(np.complex128)

SIGNED = (int2, int4, int8, int16, int32, int64)
UNSIGNED = (uint2, uint4, uint8, uint16, uint32, uint64)
NARROW_FLOATS = (
    float4_e2m1fn,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
)
FLOATS = (*NARROW_FLOATS, bfloat16, float16, float32, float64)
COMPLEXES = (complex64, complex128)
ALL = (bool_, *SIGNED, *UNSIGNED, *FLOATS, *COMPLEXES)
"""Every dtype that arrays can have, `float0` and extended dtypes apart."""

# NumPy's own kind letters do not serve: ml_dtypes calls all its types "V".
_KINDS: dict[np.dtype[Any], str] = (
    {bool_: "b"}
    | dict.fromkeys(SIGNED, "i")
    | dict.fromkeys(UNSIGNED, "u")
    | dict.fromkeys(FLOATS, "f")
    | dict.fromkeys(COMPLEXES, "c")
)
_WIDEST = {"b": bool_, "i": int64, "u": uint64, "f": float64, "c": complex128}
_PYTHON_TYPES: dict[str, type] = {"b": bool, "i": int, "u": int, "f": float, "c": complex}
_CANONICAL_32 = {int64: int32, uint64: uint32, float64: float32, complex128: complex64}
_SUB_BYTE_BITS = {int2: 2, uint2: 2, int4: 4, uint4: 4, float4_e2m1fn: 4}

python_scalar_dtypes: dict[type, np.dtype[Any]] = {
    bool: bool_,
    int: int64,
    float: float64,
    complex: complex128,
}

# The C++ objects behind the states, since hot functions read them on every call.
_x64 = config.enable_x64.native
_promotion = config.numpy_dtype_promotion.native


def is_extended(dtype: object) -> TypeGuard[ExtendedDType]:
    """Whether `dtype` is an extended dtype (not an abstract type such as `prng_key`)."""
    return isinstance(dtype, ExtendedDType)


_short_names: dict[DType, str] = {float0: "float0"}


def short_name(dtype: DType) -> str:
    """The notation of jaxprs: `f32`, `bf16`, `i4`, `bool`, `f8_e4m3fn`, `key<fry>`."""
    try:
        return _short_names[dtype]
    except KeyError:
        name = str(dtype.name)
        if isinstance(dtype, np.dtype) and dtype in _KINDS:
            for long, short in (("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
                name = name.replace(long, short)
        _short_names[dtype] = name
        return name


@source.boundaries("__call__")
class ScalarType(type):
    """Type of `minijax.numpy.float32` and its like: a name for a dtype that makes arrays.

    Each compares and hashes as the NumPy scalar type, and serves wherever a dtype is expected.
    `make_array(value, dtype)` is assigned by the room that has arrays.
    """

    dtype: np.dtype[Any]
    make_array: Callable[[Any, np.dtype[Any]], Any]

    def __new__(cls, name: str, dtype: np.dtype[Any]) -> ScalarType:
        namespace = {"__module__": "minijax.numpy", "dtype": dtype}
        return super().__new__(cls, name, (), namespace)

    def __init__(cls, name: str, dtype: np.dtype[Any]) -> None:
        super().__init__(name, (), {})
        cls.__doc__ = f"Makes arrays of dtype {dtype.name}; also names that dtype."

    def __call__(cls, value: object) -> Any:
        return ScalarType.make_array(value, cls.dtype)

    def __eq__(cls, other: object) -> bool:
        if isinstance(other, ScalarType):
            return cls is other
        if isinstance(other, np.dtype):
            return cls.dtype == other
        return cls.dtype.type is other

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.dtype.type)

    def __repr__(cls) -> str:
        return f"minijax.numpy.{cls.__name__}"


SCALAR_TYPES: dict[str, ScalarType] = {
    ("bool_" if dtype == bool_ else dtype.name): ScalarType(dtype.name, dtype) for dtype in ALL
}
"""The scalar types by the name they have in `minijax.numpy`."""


def np_dtype(dtype_like: Any, name: str) -> np.dtype[Any]:
    """`np.dtype(dtype_like)`, with our error texts; the same object for equal dtypes in `ALL`."""
    if hasattr(dtype_like, "shape") and not isinstance(dtype_like, (type, np.dtype, np.generic)):
        problem = "an array was given as a dtype."
        got = f"a value of type {type(dtype_like).__name__}"
        error(ValueError, name, problem, got=got, fix="pass its dtype: x.dtype")
    try:
        dtype: np.dtype[Any] = np.dtype(dtype_like)
    except TypeError as caught:
        problem = "not a dtype."
        expected = "a NumPy dtype, a scalar type such as minijax.numpy.float32, or a name"
        fix = None
        if isinstance(dtype_like, int):
            fix = "several sizes or axes in one tuple, as in (2, 3)"
        given = repr(dtype_like)
        error(TypeError, name, problem, got=given, expected=expected, fix=fix, cause=caught)
    return _SHARED.get(dtype, dtype)


_SHARED = {dtype: dtype for dtype in ALL}
_canonical: dict[bool, dict[Any, Any]] = {False: {}, True: {}}


def is_too_wide(dtype: object) -> bool:
    """Whether arrays of `dtype` are made under x64 alone, which is off; they may be from there."""
    return dtype in _CANONICAL_32 and not _x64.value


def canonicalize_dtype(dtype: object, allow_extended_dtype: bool = False) -> Any:
    """The dtype that arrays get for `dtype`: 64-bit types lose half unless x64 is on.

    Extended dtypes pass through, allowed or not, as do dtypes that arrays cannot have.

    Raises:
        TypeError: `dtype` does not name a dtype.

    Example:
        >>> jax.dtypes.canonicalize_dtype("float64")  # without x64
        dtype('float32')
    """
    cache = _canonical[_x64.value]
    try:
        return cache[dtype]
    except (KeyError, TypeError):
        pass
    if isinstance(dtype, ExtendedDType):
        return dtype
    found = np_dtype(dtype, "canonicalize_dtype")
    if not _x64.value:
        found = _CANONICAL_32.get(found, found)
    if isinstance(dtype, (type, np.dtype, str)):
        cache[dtype] = found
    return found


def check_user_dtype_supported(dtype_like: object, name: str) -> None:
    """Checks that arrays can have the dtype that a user passed to the function `name`.

    Raises:
        TypeError: it is not a dtype, or one that arrays cannot have (objects, text, dates, ...).
        ValueError: it is an array.
    """
    if isinstance(dtype_like, ExtendedDType):
        return
    dtype = np_dtype(dtype_like, name)
    if dtype not in _KINDS and dtype != float0:
        expected = "a boolean, integer, float or complex dtype in native byte order"
        error(TypeError, name, "arrays cannot have this dtype.", got=str(dtype), expected=expected)


def canonicalize_user_dtype(dtype_like: object, name: str) -> Any:
    """The dtype for the `dtype=` argument that a user passed to the function `name`.

    Warns when the user asked for 64 bits by name and x64 is off; `int`, `float` and `complex` ask
    for the default width instead.

    Raises:
        TypeError: it is not a dtype, or one that arrays cannot have.
        ValueError: it is an array.
    """
    check_user_dtype_supported(dtype_like, name)
    dtype = canonicalize_dtype(dtype_like)
    if dtype_like is None or is_extended(dtype_like) or _is_python_type(dtype_like):
        return dtype
    requested = np_dtype(dtype_like, name)
    if dtype != requested:
        problem = f"dtype {requested.name} is not available and becomes {dtype.name}."
        fix = 'minijax.config.update("enable_x64", True) before the first computation'
        if config.explicit_x64_dtypes.value == "error":
            error(ValueError, name, problem, fix=fix)
        warn(UserWarning, name, problem, fix=fix)
    return dtype


def _scalar_class(dtype_like: object) -> type[np.generic]:
    """The NumPy scalar type, concrete or abstract, that stands for `dtype_like`."""
    if isinstance(dtype_like, ExtendedDType):
        return dtype_like.type
    if isinstance(dtype_like, type) and issubclass(dtype_like, np.generic):
        return dtype_like
    return np_dtype(dtype_like, "issubdtype").type


# ml_dtypes' scalar types derive from np.generic only; these are the kinds they belong to.
_ABSTRACT_BASES: dict[type, type[np.generic]] = (
    {dtype.type: np.signedinteger for dtype in (int2, int4)}
    | {dtype.type: np.unsignedinteger for dtype in (uint2, uint4)}
    | {dtype.type: np.floating for dtype in (*NARROW_FLOATS, bfloat16)}
)
_promotions = Cache(
    "promotions",
    "which dtype others promote to, and of which kinds dtypes are",
    key="dtypes, weak types, modes of `config`",
    counted=False,
)
_subtypes: dict[tuple[Any, Any], bool] = _promotions.table()


def issubdtype(arg1: object, arg2: object) -> bool:
    """Whether dtype `arg1` is `arg2`, or one of the kind `arg2`.

    Unlike NumPy's, knows that `bfloat16` is a `np.floating`, `int4` a `np.integer`, and a random
    key's dtype a `prng_key`.

    Example:
        >>> jnp.issubdtype(jnp.bfloat16, jnp.floating)
        True
    """
    try:
        return _subtypes[arg1, arg2]
    except (KeyError, TypeError):
        pass
    if isinstance(arg2, ExtendedDType):
        answer = bool(arg1 == arg2)
    else:
        kind, wanted = _scalar_class(arg1), _scalar_class(arg2)
        answer = issubclass(kind, wanted) or issubclass(_ABSTRACT_BASES.get(kind, kind), wanted)
    _subtypes[arg1, arg2] = answer
    return answer


def finfo(dtype: Any) -> ml_dtypes.finfo:
    """Limits of a floating dtype; those of its parts for a complex one.

    Raises:
        ValueError: the dtype is not inexact.

    Example:
        >>> jnp.finfo(jnp.bfloat16).bits, float(jnp.finfo(jnp.float16).max)
        (16, 65504.0)
    """
    dtype = _dtype_of(dtype, "numpy.finfo")
    if _KINDS.get(dtype) not in ("f", "c"):
        error(ValueError, "numpy.finfo", "not a floating dtype.", got=str(dtype), fix="numpy.iinfo")
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]  # ml_dtypes is half typed


def iinfo(dtype: Any) -> ml_dtypes.iinfo:
    """Limits of an integer dtype.

    Raises:
        ValueError: the dtype is not an integer one.

    Example:
        >>> jnp.iinfo(jnp.int4).min, jnp.iinfo(jnp.int4).max
        (-8, 7)
    """
    dtype = _dtype_of(dtype, "numpy.iinfo")
    if _KINDS.get(dtype) not in ("i", "u"):
        error(ValueError, "numpy.iinfo", "not an integer dtype.", got=str(dtype), fix="numpy.finfo")
    return ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]


def bit_width(dtype: np.dtype[Any]) -> int:
    """Bits of one element: 4 for `int4`, 8 for `bool`, 64 for `complex64`.

    Raises:
        ValueError: elements of this dtype have no width (`float0`, extended dtypes).
    """
    if dtype not in _KINDS:
        problem = "elements of this dtype have no width."
        error(ValueError, "dtypes.itemsize_bits", problem, got=str(dtype))
    return _SUB_BYTE_BITS.get(dtype, dtype.itemsize * 8)


def default_int_dtype() -> np.dtype[Any]:
    """The dtype of Python's `int`: int64 with x64, else int32."""
    return int64 if _x64.value else int32


def default_uint_dtype() -> np.dtype[Any]:
    """The unsigned partner of `default_int_dtype()`."""
    return uint64 if _x64.value else uint32


def default_float_dtype() -> np.dtype[Any]:
    """The dtype of Python's `float`: float64 with x64, else float32."""
    return float64 if _x64.value else float32


def default_complex_dtype() -> np.dtype[Any]:
    """The dtype of Python's `complex`: complex128 with x64, else complex64."""
    return complex128 if _x64.value else complex64


def to_numeric_dtype(dtype: DType) -> np.dtype[Any]:
    """`dtype`, or int32 for booleans."""
    found: np.dtype[Any] = canonicalize_dtype(dtype)
    return int32 if found == bool_ else found


def to_inexact_dtype(dtype: DType) -> np.dtype[Any]:
    """`dtype` if inexact, else the float for it: float64 for 64-bit integers, or float32."""
    found: np.dtype[Any] = canonicalize_dtype(dtype)
    if _KINDS.get(found) not in ("b", "i", "u"):
        return found
    return float64 if found in (int64, uint64) else float32


def to_complex_dtype(dtype: DType) -> np.dtype[Any]:
    """The narrowest complex dtype for numbers of `dtype`; itself if complex."""
    found = to_inexact_dtype(dtype)
    if _KINDS.get(found) != "f":
        return found
    return complex128 if found == float64 else complex64


_COMPLEX_OF: dict[np.dtype[Any], np.dtype[Any]] = {float32: complex64, float64: complex128}
_REAL_OF: dict[np.dtype[Any], np.dtype[Any]] = {complex64: float32, complex128: float64}


def complex_dtype_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The complex dtype whose parts are of `dtype`; itself if complex.

    Raises:
        TypeError: there is none.
    """
    if dtype in _REAL_OF:
        return dtype
    if dtype not in _COMPLEX_OF:
        problem = "no complex dtype has parts of this dtype."
        error(TypeError, "complex", problem, got=str(dtype), expected="float32 or float64")
    return _COMPLEX_OF[dtype]


def real_dtype_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the real part; itself if not complex."""
    return _REAL_OF.get(dtype, dtype)


def _is_python_type(x: object) -> bool:
    # NumPy's dtypes are no types, yet compare equal to Python's: np.dtype("float64") == float.
    return isinstance(x, type) and x in python_scalar_dtypes


def is_python_scalar(x: object) -> bool:
    """Whether `x` is a Python bool, int, float or complex (of NumPy's scalars, none is)."""
    return isinstance(x, (int, float, complex)) and not isinstance(x, np.generic)


def _python_type(x: object) -> type | None:
    """The Python scalar type of which `x` is an instance, even by a subclass such as IntEnum."""
    kinds = python_scalar_dtypes if is_python_scalar(x) else ()
    return next((kind for kind in kinds if isinstance(x, kind)), None)


def is_weakly_typed(x: Value) -> bool:
    """Whether `x` adapts to the other operand's dtype: Python numbers, and arrays made of them."""
    if type(x) in python_scalar_dtypes:
        return type(x) is not bool
    if hasattr(x, "weak_type"):
        return bool(x.weak_type)
    aval = getattr(x, "aval", None)
    if aval is None:
        return is_python_scalar(x) and not isinstance(x, bool)
    return bool(getattr(aval, "weak_type", False))


def dtype(x: object, canonicalize: bool = False) -> Any:
    """The dtype of a value, or the one that `x` names: of Python's scalars, the 64-bit one.

    Args:
        canonicalize: reduce it to 32 bits unless x64 is on.

    Raises:
        ValueError: `x` is None.
        TypeError: `x` has no dtype, or one that arrays cannot have.
    """
    if x is None:
        error(ValueError, "dtype", "None has no dtype.")
    found = _dtype_of(x, "dtype")
    return canonicalize_dtype(found) if canonicalize else found


def _dtype_of(x: Any, name: str) -> Any:
    kind = type(x)
    if kind in python_scalar_dtypes:
        return python_scalar_dtypes[kind]
    if _is_python_type(x):
        return python_scalar_dtypes[x]
    if isinstance(x, ExtendedDType):
        return x
    if isinstance(x, (type, str, np.dtype)):
        found: Any = np_dtype(x, name)
    elif hasattr(x, "dtype"):
        found = x.dtype
    elif (python_type := _python_type(x)) is not None:
        return python_scalar_dtypes[python_type]
    else:
        error(TypeError, name, "this value has no dtype.", got=repr(x))
    check_user_dtype_supported(found, name)
    return found


def scalar_type_of(x: object) -> type:
    """The Python scalar type (bool, int, float or complex) of the elements of `x`, or of a dtype.

    Raises:
        TypeError: elements of `x` are none of these.

    Example:
        >>> jax.dtypes.scalar_type_of(jnp.array([1.5]))
        <class 'float'>
    """
    found = _dtype_of(x, "scalar_type_of")
    if found not in _KINDS:
        error(TypeError, "scalar_type_of", "no Python scalar holds this dtype.", got=str(found))
    return _PYTHON_TYPES[_KINDS[found]]


# A node of the promotion lattice; int, float and complex are the weak kinds.
_Node: TypeAlias = np.dtype[Any] | type
_WEAK_KINDS: dict[str, _Node] = {"b": bool_, "i": int, "u": int, "f": float, "c": complex}

# What each type promotes to directly.  The 2- and 4-bit integers and the floats of 8 bits or fewer
# lead nowhere: to leave them loses the point of using them, so it has to be explicit.
_STANDARD_EDGES: dict[_Node, tuple[_Node, ...]] = {
    bool_: (int,),
    int: (uint2, uint4, uint8, int2, int4, int8),
    uint8: (int16, uint16),
    uint16: (int32, uint32),
    uint32: (int64, uint64),
    uint64: (float,),
    int8: (int16,),
    int16: (int32,),
    int32: (int64,),
    int64: (float,),
    float: (*NARROW_FLOATS, bfloat16, float16, complex),
    bfloat16: (float32,),
    float16: (float32,),
    float32: (float64, complex64),
    float64: (complex128,),
    complex: (complex64,),
    complex64: (complex128,),
}
# Without x64 there is no int64 for uint32 and the signed integers to meet in.
_STANDARD_EDGES_32 = _STANDARD_EDGES | {uint32: (int32, uint64)}
_STRICT_EDGES: dict[_Node, tuple[_Node, ...]] = {
    int: (*SIGNED, *UNSIGNED, float),
    float: (*FLOATS, complex),
    complex: COMPLEXES,
}


def _upper_bounds(edges: dict[_Node, tuple[_Node, ...]]) -> dict[_Node, frozenset[_Node]]:
    """For each node, itself and all that can be reached from it."""
    bounds: dict[_Node, frozenset[_Node]] = {}

    def visit(node: _Node) -> frozenset[_Node]:
        if node not in bounds:
            bounds[node] = frozenset({node}).union(*map(visit, edges.get(node, ())))
        return bounds[node]

    for node in (*ALL, int, float, complex):
        visit(node)
    return bounds


_PROMOTION = "dtype promotion"


@_promotions.function
def _lattice(mode: str, x64: bool) -> dict[_Node, frozenset[_Node]]:
    if mode == "strict":
        return _upper_bounds(_STRICT_EDGES)
    return _upper_bounds(_STANDARD_EDGES if x64 else _STANDARD_EDGES_32)


def _join(nodes: Iterable[_Node], mode: str) -> _Node:
    """The least upper bound of `nodes`."""
    nodes = list(dict.fromkeys(nodes))
    bounds = _lattice(mode, _x64.value)
    common = frozenset.intersection(*(bounds[node] for node in nodes))
    for node in common:
        if bounds[node] == common:
            return node
    _refuse_to_join(nodes, mode)


def _refuse_to_join(nodes: list[_Node], mode: str) -> NoReturn:
    names = ", ".join(f"Python {n.__name__}" if isinstance(n, type) else n.name for n in nodes)
    if mode == "strict":
        problem = "operands of different dtypes, and numpy_dtype_promotion is 'strict'."
        expected = "equal dtypes, or Python scalars of a lower kind"
        fix = 'x.astype(...), or config.update("numpy_dtype_promotion", "standard")'
        error(TypePromotionError, _PROMOTION, problem, got=names, expected=expected, fix=fix)
    reason = "their dtypes have no implicit common type."
    if any(node in NARROW_FLOATS for node in nodes):
        reason = "floats of 8 bits or fewer never promote implicitly."
    elif any(node in (int2, int4, uint2, uint4) for node in nodes):
        reason = "integers of 2 or 4 bits never promote implicitly."
    expected, fix = "equal dtypes", "x.astype(...)"
    error(TypePromotionError, _PROMOTION, reason, got=names, expected=expected, fix=fix)


def _describe(x: Any) -> tuple[Any, bool]:
    """The dtype of an operand, and whether it is weak."""
    kind = type(x)
    if kind in python_scalar_dtypes:
        return python_scalar_dtypes[kind], kind is not bool
    if kind is np.ndarray:
        return x.dtype, False
    try:
        return x.dtype, x.weak_type
    except AttributeError:
        pass
    if x is None:
        return float64, False
    if _is_python_type(x):
        return python_scalar_dtypes[x], x is not bool
    return _dtype_of(x, "result_type"), is_weakly_typed(x)


def _promote_canonical(dtypes: Sequence[Any], weak: Sequence[bool]) -> tuple[Any, bool]:
    """Checks and promotes operands; 64-bit types lose half before and after, unless x64 is on."""
    if not dtypes:
        error(ValueError, "result_type", "needs at least one array or dtype.")
    for d in dtypes:
        check_user_dtype_supported(d, "result_type")
    operands = tuple(zip(map(canonicalize_dtype, dtypes), weak, strict=True))
    joined, joined_weak = _promote(operands, _promotion.value)
    return canonicalize_dtype(joined), joined_weak


def _promote(operands: tuple[tuple[Any, bool], ...], mode: str) -> tuple[Any, bool]:
    """Joins operands, given as (canonical dtype, weak) pairs."""
    dtypes = [dtype for dtype, _ in operands]
    opaque = [dtype for dtype in dtypes if dtype not in _KINDS]
    if opaque:
        return _promote_opaque(opaque[0], dtypes), False
    all_weak = all(weak for _, weak in operands)
    if len(operands) == 1 or (all_weak and mode == "standard"):
        # Weak arrays may have any width, and keep it among themselves.
        node = _join(dtypes, mode)
    else:
        node = _join((_WEAK_KINDS[_KINDS[d]] if weak else d for d, weak in operands), mode)
    if isinstance(node, type):
        return python_scalar_dtypes[node], True
    return node, all_weak and node != bool_


def _promote_opaque(opaque: DType, dtypes: list[DType]) -> DType:
    """Promotes operands of which one is `float0` or extended: all have to be equal."""
    if any(dtype != opaque for dtype in dtypes):
        problem = f"{short_name(opaque)} combines with no other dtype."
        got = ", ".join(map(short_name, dtypes))
        error(OpaquePromotionError, _PROMOTION, problem, got=got)
    return opaque


_lattice_results: dict[tuple[Any, ...], tuple[Any, bool]] = _promotions.table()


def lattice_result_type(*args: Any) -> tuple[Any, bool]:
    """The dtype that `args` promote to, and whether the result is weakly typed.

    Arguments are values, dtypes, or Python's scalar types.  Weak operands, if all are, keep their
    widths: two weak `bfloat16` give a weak `bfloat16`.

    Raises:
        ValueError: no argument.
        TypePromotionError: the dtypes have no common type.
    """
    if len(args) == 2:
        # Written out, because a comprehension would double the time of the commonest call.
        x, x_weak = _describe(args[0])
        y, y_weak = _describe(args[1])
        key: tuple[Any, ...] = (x, x_weak, y, y_weak, _x64.value, _promotion.value)
    else:
        key = (*itertools.chain(*map(_describe, args)), _x64.value, _promotion.value)
    try:
        return _lattice_results[key]
    except KeyError:
        result = _lattice_results[key] = _promote_canonical(key[:-2:2], key[1:-2:2])
        return result


@overload
def result_type(*args: Any, return_weak_type_flag: Literal[True]) -> tuple[np.dtype[Any], bool]: ...
@overload
def result_type(*args: Any, return_weak_type_flag: Literal[False] = ...) -> np.dtype[Any]: ...


def result_type(
    *args: Any, return_weak_type_flag: bool = False
) -> np.dtype[Any] | tuple[np.dtype[Any], bool]:
    """The dtype that operations give for `args`: values, dtypes, or Python's scalar types.

    A weak result has the default width of its kind.

    Raises:
        ValueError: no argument.
        TypePromotionError: the dtypes have no common type.

    Example:
        >>> jnp.result_type(jnp.int8, jnp.float16), jnp.result_type(jnp.bfloat16, 2.5)
        (dtype('float16'), dtype(bfloat16))
    """
    dtype, weak = lattice_result_type(*args)
    if weak:
        dtype = canonicalize_dtype(_WIDEST[_KINDS[dtype]])
    return (dtype, weak) if return_weak_type_flag else dtype


def promote_types(a: object, b: object) -> np.dtype[Any]:
    """The dtype that dtypes `a` and `b` promote to; 64-bit operands keep their width without x64.

    Python's `int`, `float` and `complex` are weak.

    Raises:
        TypePromotionError: the dtypes have no common type.

    Example:
        >>> jnp.promote_types("int8", "uint8"), jnp.promote_types("bfloat16", "float16")
        (dtype('int16'), dtype('float32'))
    """
    operands = tuple(
        (x, False)
        if isinstance(x, ExtendedDType)
        else (np_dtype(x, "numpy.promote_types"), _is_python_type(x) and x is not bool)
        for x in (a, b)
    )
    dtype, weak = _promote(operands, _promotion.value)
    return _WIDEST[_KINDS[dtype]] if weak else dtype
