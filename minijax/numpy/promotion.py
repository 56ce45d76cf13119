"""What functions do around their bodies: operands of one dtype, and one compiled program.

Input: arrays, tracers, NumPy arrays and scalars, Python scalars.  Output: operands fit for `bind`.

The common case comes first: two arrays of one type pass untouched.  A Python scalar beside an
array becomes a NumPy scalar of the array's dtype, which jaxprs show as a literal.  All else goes
by the promotion lattice of `core/dtypes.py`.

Eagerly, `numpy.var(x)` would run five programs; decorated by `one_program` it runs one, dispatched
in C++.  While something is traced the body runs as it stands, so jaxprs never show a call.
Decision 0003.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar, cast

import numpy as np

from minijax.core import config, dtypes, source
from minijax.core.aval import AbstractValue, Shape, aval_of, shown
from minijax.core.errors import ConcretizationTypeError, error, explain_keyword, message, warn
from minijax.core.trace import Tracer, current
from minijax.interpreters import recordings
from minijax.interpreters.staging import StagingTrace
from minijax.interpreters.structural import broadcast_in_dim_p
from minijax.lax import families
from minijax.lax.binary import select_n_p
from minijax.lax.creation import convert_element_type_p, convert_to_type
from minijax.lowering import eager
from minijax.runtime import client
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array, array_from_host, explain_deleted
from minijax.transforms.jit import arguments, jit
from minijax.transforms.jit.arguments import JitSettings

_rank_promotion = config.numpy_rank_promotion.native
_dtype_promotion = config.numpy_dtype_promotion.native
_PYTHON_SCALARS = frozenset(dtypes.python_scalar_dtypes)
_INEXACT = frozenset((*dtypes.FLOATS, *dtypes.COMPLEXES))
_REAL_INEXACT = frozenset(dtypes.FLOATS)
_NUMERIC = frozenset(dtypes.ALL) - {dtypes.bool_}

# Python scalars that leave a dtype as it is, each with the class that makes the NumPy scalar.
_ADAPTING: dict[tuple[np.dtype[Any], type], Callable[[Any], Any]] = (
    {(dtype, int): dtype.type for dtype in _NUMERIC}
    | {(dtype, float): dtype.type for dtype in _INEXACT}
    | {(dtype, complex): dtype.type for dtype in dtypes.COMPLEXES}
)


def promote(name: str, x: Any, y: Any) -> tuple[Array, Array]:
    """Two operands of the public function `name` with one dtype, and one rank unless it is 0.

    Raises:
        TypeError: an operand is neither an array nor a number.
        TypePromotionError: the dtypes have no common type.
    """
    try:
        # What stands for an array has no type as a class, whatever it passes on.
        a, b, _, _ = x.aval, y.aval, type(x).aval, type(y).aval
    except AttributeError:
        return _promote_host_values(name, x, y)
    if a is b:
        return x, y
    if a.dtype != b.dtype:
        return _converted(name, x, y, *dtypes.lattice_result_type(a, b))
    if a.ndim != b.ndim and a.ndim and b.ndim:
        x, y = with_one_rank(name, x, y)
    return x, y


def _converted(
    name: str, x: Array, y: Array, dtype: np.dtype[Any], weak: bool
) -> tuple[Array, Array]:
    """Two operands of a dtype, and of one rank unless it is 0."""
    a, b = aval_of(x), aval_of(y)
    x, y = convert(x, dtype, weak), convert(y, dtype, weak)
    if a.ndim != b.ndim and a.ndim and b.ndim:
        x, y = with_one_rank(name, x, y)
    return x, y


def promote_inexact(name: str, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """As `promote`; integers and booleans become floats."""
    return _promote_further(name, x, y, dtypes.to_inexact_dtype)


def promote_numeric(name: str, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """As `promote`; booleans become integers."""
    return _promote_further(name, x, y, dtypes.to_numeric_dtype)


def _promote_further(
    name: str, x: Any, y: Any, widened: Callable[[np.dtype[Any]], np.dtype[Any]]
) -> tuple[Array, Array]:
    if getattr(x, "aval", None) is getattr(y, "aval", x) and x.aval.dtype in _INEXACT:
        return x, y
    x, y = check_array(name, x, "x"), check_array(name, y, "y")
    dtype, weak = dtypes.lattice_result_type(x, y)
    return _converted(name, x, y, widened(dtype), weak)


def promote_all_inexact(name: str, *args: Any) -> list[Array]:
    """Any number of operands with one inexact dtype, and one rank unless it is 0."""
    arrays = [check_array(name, x) for x in args]
    dtype, weak = dtypes.lattice_result_type(*arrays)
    dtype = dtypes.to_inexact_dtype(dtype)
    return with_one_rank(name, *[convert(x, dtype, weak) for x in arrays])


def promote_dtypes(name: str, *args: Any) -> list[Array]:
    """Any number of operands with one dtype; shapes stay."""
    arrays = [check_array(name, x) for x in args]
    dtype, weak = dtypes.lattice_result_type(*arrays)
    return [convert(x, dtype, weak) for x in arrays]


def promote_inexact_dtypes(name: str, *args: Any) -> list[Array]:
    """As `promote_dtypes`; integers and booleans become floats."""
    arrays = [check_array(name, x) for x in args]
    dtype, weak = dtypes.lattice_result_type(*arrays)
    return [convert(x, dtypes.to_inexact_dtype(dtype), weak) for x in arrays]


def inexact(name: str, x: Any) -> Array:
    """One operand of a function of floats and complex numbers."""
    try:
        aval, _ = x.aval, type(x).aval
    except AttributeError:
        x = check_array(name, x)
        aval = aval_of(x)
    if aval.dtype in _INEXACT:
        return x
    return convert(x, dtypes.to_inexact_dtype(aval.dtype), aval.weak_type)


def numeric(name: str, x: ArrayLike) -> Array:
    """One operand of a function of numbers: booleans become integers."""
    x = check_array(name, x)
    return convert(x, dtypes.int32, False) if aval_of(x).dtype == dtypes.bool_ else x


def real_inexact(name: str, x: ArrayLike) -> Array:
    """One operand of a function of floats.

    Raises:
        TypeError: it is complex, or not an array.
    """
    x = inexact(name, x)
    if aval_of(x).dtype not in _REAL_INEXACT:
        problem = "complex numbers are not accepted."
        expected = "a real array"
        fix = "numpy.real, numpy.imag or numpy.abs first"
        error(TypeError, title(name), problem, got={"x": aval_of(x)}, expected=expected, fix=fix)
    return x


def title(name: str) -> str:
    """How texts name a function: one of `numpy`, unless its name says where it lives."""
    return name if "." in name else f"numpy.{name}"


def check_array(name: str, x: Any, argument: str = "x") -> Array:
    """`x` itself, or the array that it stands for by `__jax_array__`.

    Raises:
        TypeError: it is neither an array nor a number.
    """
    if (
        type(x) in _PYTHON_SCALARS
        or families.is_array(x)
        or isinstance(x, (np.ndarray, np.generic))
    ):
        return x
    if hasattr(x, "__jax_array__"):
        return x.__jax_array__()
    if isinstance(x, (bool, int, float, complex)):
        kind: Any = next(kind for kind in (bool, int, float, complex) if isinstance(x, kind))
        return kind(x)
    is_list = isinstance(x, (list, tuple))
    problem = "operands must be arrays or numbers."
    fix = f"numpy.asarray({argument})" if is_list else None
    error(TypeError, title(name), problem, got={argument: shown(x)}, fix=fix)


def check_mask(name: str, where: Any) -> Array:
    """The argument `where` of a reduction, which must be boolean.

    Raises:
        TypeError: it is neither an array nor a number.
        ValueError: it is not boolean.
    """
    where = check_array(name, where, "where")
    if aval_of(where).dtype != dtypes.bool_:
        problem = "where must be boolean: it says which elements count."
        error(ValueError, title(name), problem, got={"where": aval_of(where)}, fix="where != 0")
    return where


def check_that(
    holds: bool,
    name: str,
    problem: str,
    *,
    error: type[Exception] = ValueError,
    got: str | Mapping[str, object] | None = None,
    expected: str | None = None,
    fix: str | None = None,
    **given: object,
) -> None:
    """Refuses arguments of which something does not hold.

    Args:
        holds: whether they fit.
        name: the public function.
        problem: what is wrong where they do not fit.
        error: the class of the error.
        got: what was given, where that is not an argument.
        expected: what would fit.
        fix: what the user can do.
        given: the arguments to show, by name; of arrays, the types.
    """
    if not holds:
        types = {k: aval_of(x) if hasattr(x, "__array__") else x for k, x in given.items()}
        raise error(message(title(name), problem, got=got or types, expected=expected, fix=fix))


_UNKNOWN_SHAPE = "the array is traced, so the shape of the result is unknown."


def known(
    name: str, x: Any, fix: str | None = None, problem: str = _UNKNOWN_SHAPE
) -> np.ndarray[Any, Any]:
    """The value of an operand on the host, where the shape of a result depends on it.

    Args:
        name: the public function.
        x: an array, or what NumPy makes one of.
        fix: what the message about a traced operand proposes.
        problem: what that message says.

    Raises:
        ConcretizationTypeError: it is traced, and its value unknown.
    """
    value = x.concrete() if isinstance(x, Tracer) else x
    if value is None:
        got = f"{x.aval}, {x.origin()}"
        error(ConcretizationTypeError, title(name), problem, got=got, fix=fix)
    return np.asarray(value)


def check_choice(name: str, argument: str, given: object, choices: Collection[object]) -> None:
    """Refuses an argument that is none of a few known ones.

    Raises:
        ValueError: it is another.
    """
    if given not in choices:
        *others, last = map(repr, choices)
        expected = f"{', '.join(others)} or {last}"
        error(ValueError, title(name), f"unknown {argument} {given!r}.", expected=expected)


def check_out(name: str, out: None) -> None:
    """Refuses the argument `out`, which NumPy has.

    Raises:
        NotImplementedError: `out` is given.
    """
    if out is not None:
        problem = "results cannot be written into an array."
        error(NotImplementedError, title(name), problem, fix="leave out= away")


def convert(x: Any, dtype: np.dtype[Any], weak: bool) -> Array:
    """An operand with the dtype of a result; it keeps its own weak type if only that differs."""
    kind = type(x)
    if kind in _PYTHON_SCALARS:
        return _convert_python_scalar(x, kind, dtype, weak)
    aval = aval_of(x)
    if aval.dtype == dtype:
        return x
    if kind is np.ndarray or isinstance(x, np.generic):
        return convert_to_type(x, dtype, weak)
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak, sharding=None)


def _convert_python_scalar(x: Any, kind: type, dtype: np.dtype[Any], weak: bool) -> Any:
    if not weak:
        return _numpy_scalar(x, dtype)
    if dtypes.canonicalize_dtype(dtypes.python_scalar_dtypes[kind]) == dtype:
        return x
    target = dtypes.scalar_type_of(dtype)
    if dtypes.canonicalize_dtype(dtypes.python_scalar_dtypes[target]) == dtype:
        return target(x)
    return convert_to_type(_numpy_scalar(x, dtype), dtype, weak)


def strong(x: Any) -> Array:
    """`x` no longer weakly typed."""
    aval = aval_of(x)
    return convert_to_type(x, aval.dtype, weak_type=False) if aval.weak_type else x


def strong_array(x: Array) -> Array:
    """`x` no longer weakly typed, but for scalars, which stay as they are."""
    return strong(x) if aval_of(x).ndim else x


def _numpy_scalar(x: complex, dtype: np.dtype[Any]) -> Any:
    try:
        return dtype.type(x)
    except OverflowError:
        # Integers wrap, as they do when arrays are converted.
        return np.asarray(x).astype(dtype)[()]


def _promote_host_values(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """`promote` where an operand is not an array of ours."""
    x_scalar, y_scalar = type(x) in _PYTHON_SCALARS, type(y) in _PYTHON_SCALARS
    if y_scalar and not x_scalar and families.is_array(x):
        adapted = _adapt(y, x.aval)
        if adapted is not None:
            return x, adapted
    elif x_scalar and not y_scalar and families.is_array(y):
        adapted = _adapt(x, y.aval)
        if adapted is not None:
            return adapted, y
    x, y = check_array(name, x, "x"), check_array(name, y, "y")
    return _converted(name, x, y, *dtypes.lattice_result_type(x, y))


def _adapt(value: complex, aval: AbstractValue) -> Any:
    """A Python scalar as a NumPy scalar of the dtype of the array beside it, where that stays."""
    make = None if aval.weak_type else _ADAPTING.get((aval.dtype, type(value)))
    # Arrays of 64 bits that were made under x64 are promoted to what there is without it.
    if make is None or dtypes.is_too_wide(aval.dtype):
        return None
    try:
        return make(value)
    except OverflowError:
        return _numpy_scalar(value, aval.dtype)


def with_one_rank(name: str, *arrays: Array) -> list[Array]:
    """Operands with new leading dimensions where their ranks differ and are not 0."""
    rank = max(aval_of(x).ndim for x in arrays)
    raised = [_raised(x, rank) for x in arrays]
    if any(map(operator.is_not, arrays, raised)):
        # An error tells the shapes that the user has, not those made of them here.
        avals = list(map(aval_of, arrays))
        shapes = [aval.shape for aval in avals]
        longest = max(shapes, key=len)
        are_ends = all(longest[rank - len(shape) :] == shape for shape in shapes)
        if not are_ends and families.common_shape(shapes) is None:
            names = "xy" if len(avals) == 2 else [f"operands[{i}]" for i in range(len(avals))]
            families.refuse_shapes(title(name), dict(zip(names, avals, strict=True)))
        if _rank_promotion.value != "allow":
            _check_rank_promotion(name, arrays)
    return raised


def _raised(x: Array, rank: int) -> Array:
    """`x` with new leading dimensions up to a rank, unless it is a scalar."""
    aval = aval_of(x)
    missing = rank - aval.ndim
    if not missing or not aval.ndim:
        return x
    return repeated(x, (1,) * missing + aval.shape, tuple(range(missing, rank)))


def repeated(x: ArrayLike, shape: Shape, dims: Shape) -> Array:
    """`lax.broadcast_in_dim` of arguments that are known to fit."""
    return broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=dims, sharding=None)


def _check_rank_promotion(name: str, arrays: Sequence[Array]) -> None:
    mode = _rank_promotion.value
    text = title(name), "operands of different ranks are broadcast."
    got = " and ".join(str(aval_of(x)) for x in arrays)
    expected = f"equal ranks, because numpy_rank_promotion is {mode!r}"
    fix = 'x[None], or config.update("numpy_rank_promotion", "allow")'
    if mode == "raise":
        error(ValueError, *text, got=got, expected=expected, fix=fix)
    if not source.is_called_by_library():
        warn(UserWarning, *text, got=got, expected=expected, fix=fix)


def unchecked() -> AbstractContextManager[None] | None:
    """In what a function of the library that was refused is called again; None if it is not.

    The strict settings are about operands that users combine.  Functions of the library combine
    what they have computed as they like, and are called once more without these settings.
    """
    if _rank_promotion.value == "allow" and _dtype_promotion.value == "standard":
        return None
    return lenient() if source.is_called_by_library() else None


@contextlib.contextmanager
def lenient() -> Iterator[None]:
    """Context manager: inside it, dtypes and ranks are promoted as they are by default."""
    with config.numpy_rank_promotion("allow"), config.numpy_dtype_promotion("standard"):
        yield


def broadcast_shapes(name: str, *shapes: Shape) -> Shape:
    """The common shape of operands of the public function `name`.

    Raises:
        ValueError: the shapes do not fit together.
    """
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        problem = "operand shapes do not fit together: Incompatible shapes for broadcasting."
        got = "shapes " + ", ".join(map(str, shapes))
        expected = "dimensions, aligned at the end, that are equal or 1"
        error(ValueError, title(name), problem, got=got, expected=expected, cause=None)


def pick(mask: ArrayLike, x: ArrayLike, y: ArrayLike) -> Array:
    """`x` where the mask holds, else `y`; all are broadcast, x and y have one dtype.

    Python scalars take the dtype of the other choice.
    """
    x, y = families.operands(x, y)
    shapes = [aval_of(v).shape for v in (mask, x, y)]
    shape = shapes[0]
    if not shapes[0] == shapes[1] == shapes[2]:
        shape = broadcast_shapes("where", *shapes)
    if shapes[0]:
        mask = broadcast_to(mask, shape)
    return select_n_p.bind(mask, broadcast_to(y, shape), broadcast_to(x, shape))


def broadcast_to(x: Any, shape: Shape) -> Array:
    """`x` repeated to a shape that it is known to fit, by NumPy's rules."""
    aval = aval_of(x)
    if aval.shape == shape:
        return x
    return repeated(x, shape, tuple(range(len(shape) - aval.ndim, len(shape))))


F = TypeVar("F", bound=Callable[..., Any])

_UNHASHABLE = "Non-hashable static"


def native_program(function: Callable[..., Any], static: Sequence[str] = ()) -> Any:
    """The C++ callable behind `one_program`: right only for concrete arguments and no statics
    that lack a hash, but with nothing of Python before it.
    """
    nums, names = arguments.resolve_names(function, None, tuple(static), "static")
    settings = JitSettings(
        static_argnums=nums,
        static_argnames=names,
        # Where an operand is, there the result is, also if it does not depend on the elements.
        keep_unused=True,
        compiler_options=tuple(client.ONE_OPERATION.items()),
    )
    return jit.native_half(jit.JitFunction(function, settings, transparent=True))


def one_program(static: Sequence[str] = ()) -> Callable[[F], F]:
    """Decorator: outside traces, a call is one compiled program; inside, just the body.

    Args:
        static: names of parameters that are not arrays; they are part of the signature.
    """
    return functools.partial(_one_program, static=static)


def _as_array(x: Any) -> Any:
    """A result, as an array where a number or an array of NumPy's was returned as it was given."""
    known = (int, float, complex, np.generic, np.ndarray)
    return array_from_host(x) if isinstance(x, known) else x


def _one_program(function: F, static: Sequence[str]) -> F:
    native: Callable[..., Any] | None = None

    @source.is_boundary
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal native
        trace = current.value
        try:
            try:
                if trace is not eager.EAGER:
                    if type(trace) is StagingTrace:
                        return _as_array(recordings.call(trace, function, args, kwargs))
                    return _as_array(function(*args, **kwargs))
                if native is None:
                    # Made on demand: an import declares hundreds of functions and calls few.
                    native = native_program(function, static)
                return native(*args, **kwargs)
            except TypeError:
                explain_keyword(title(function.__name__), function, kwargs)
                raise
            except ValueError as error:
                # A list for a shape or an axis: the body takes it, one program a primitive.
                if str(error).startswith(_UNHASHABLE):
                    return function(*args, **kwargs)
                explain_deleted(error, args, kwargs)
                raise
        except Exception as exception:
            again = unchecked()
            if again is None:
                source.filter_frames(exception)
                raise
        with again:
            return call(*args, **kwargs)

    return cast(F, call)


def named(function: F, name: str, **parts: Any) -> F:
    """A function under its public name, which fills its docstring in, as do the other parts."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = inspect.cleandoc(function.__doc__ or "").format(name=name, **parts)
    return function


def elementwise(operation: Callable[..., Any], operands: Callable[..., Any]) -> Callable[[F], F]:
    """Decorator: the declaration of a public function, for what one operation computes.

    The declaration has a signature and a docstring, and no body.

    Args:
        operation: what computes the result from the operands.
        operands: `promote`, `inexact` or another function that prepares operands, of which the
            first argument is the name of the public function.
    """

    def decorate(declared: F) -> F:
        name = declared.__name__

        @functools.wraps(declared)
        def function(*args: Any, **kwargs: Any) -> Any:
            # The declaration raises Python's own errors, which name its parameters.
            declared(*args, **kwargs)
            prepared = operands(name, *args)
            return operation(prepared) if len(args) == 1 else operation(*prepared)

        return one_program()(cast(F, function))

    return decorate
