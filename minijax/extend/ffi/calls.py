"""Foreign functions as functions of arrays, and as the lowering rules of primitives.

Input: a function's name in XLA's table, the types of its results, and what XLA may know of it.
Output: a function of arrays and attributes that can be used like those of `lax` (`ffi_call`), or a
rule for `extend.mlir.register_lowering` (`ffi_lowering`).

Users list the dimensions of a layout from major to minor, which is `(0, 1, …)` in C's order; XLA
the other way round.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from minijax.core.aval import AbstractToken, ShapedArray
from minijax.core.errors import error
from minijax.interpreters import flattening
from minijax.lax import callbacks, foreign
from minijax.lowering import custom_calls, stablehlo
from minijax.lowering.custom_calls import DimOrder, attributes_of, to_mlir
from minijax.lowering.stablehlo import LoweringContext
from minijax.runtime import call_targets
from minijax.runtime.array import physical_aval
from minijax.sharding import rules
from minijax.sharding.named import NamedSharding


class MajorToMinor(Protocol):
    """A layout as an object, such as JAX's."""

    @property
    def major_to_minor(self) -> Sequence[int]:
        """The dimensions in order."""


LayoutLike = Sequence[int] | MajorToMinor | None
"""What users say of the memory of an array."""


def minor_to_major(
    name: str, argument: str, layout: LayoutLike, ndim: int, *, reverse: bool = True
) -> DimOrder | None:
    """The layout of one array in XLA's order; None for None.

    Args:
        name: the public function, for messages.
        argument: what the user calls it.
        layout: what the user gave: a sequence of dimensions, an object with the attribute
            `major_to_minor`, or None.
        ndim: the rank of the array.
        reverse: whether a sequence goes from major to minor.

    Raises:
        TypeError: it is none of these.
        ValueError: it is tiled, or no order of the array's dimensions.
    """
    if layout is None:
        return None
    given = layout
    if hasattr(layout, "major_to_minor"):
        if getattr(layout, "tiling", None) is not None:
            problem = f"{argument} is tiled, and foreign functions get arrays in strides."
            error(ValueError, name, problem, got=str(given), expected="a layout without tiling")
        layout, reverse = layout.major_to_minor, True
    if not isinstance(layout, Iterable) or isinstance(layout, str | bytes):
        got = f"{given!r} of type {type(given).__name__}"
        expected = "dimensions from major to minor, such as (0, 1), or None for C's order"
        error(TypeError, name, f"{argument} is no layout.", got=got, expected=expected)
    dims = tuple(map(operator.index, layout))
    if sorted(dims) != list(range(ndim)):
        problem = f"{argument} is no order of the dimensions of its array."
        expected = f"the numbers from 0 to {ndim - 1}, each once" if ndim else "() for a scalar"
        error(ValueError, name, problem, got=f"{given!r} for rank {ndim}", expected=expected)
    return dims[::-1] if reverse else dims


def all_minor_to_major(
    name: str,
    argument: str,
    layouts: Iterable[LayoutLike] | None,
    ranks: Sequence[int],
    of_what: str,
) -> list[DimOrder | None]:
    """The layouts of several arrays in XLA's order.

    Args:
        name: the public function, for messages.
        argument: what the user calls them.
        layouts: one for each array, or None for none.
        ranks: of the arrays.
        of_what: what the arrays are, for messages: operands or results.

    Raises:
        TypeError: one is not a layout.
        ValueError: there are more or fewer than arrays, or one does not fit to its array.
    """
    if layouts is None:
        return [None] * len(ranks)
    given = list(layouts)
    if len(given) != len(ranks):
        problem = f"{argument} must have a layout for each of the {of_what}."
        got = f"{len(given)} layouts for {len(ranks)} {of_what}"
        error(ValueError, name, problem, got=got, fix="None stands for C's order")
    return [
        minor_to_major(name, f"{argument}[{i}]", layout, ndim)
        for i, (layout, ndim) in enumerate(zip(given, ranks, strict=True))
    ]


_NAME = "ffi.ffi_call"


def ffi_call(
    target_name: str,
    result_shape_dtypes: object,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[LayoutLike] | None = None,
    output_layouts: Sequence[LayoutLike] | LayoutLike = None,
    input_output_aliases: Mapping[int, int] | None = None,
    custom_call_api_version: int = custom_calls.TYPED,
    legacy_backend_config: str | None = None,
    num_batch_dims: int | None = None,
) -> Callable[..., Any]:
    """Makes a function of arrays of one that `register_ffi_target` has made known.

    The result takes arrays by position, and by keyword attributes: values that are known when the
    program is compiled. These are bool, int (64 bits), float (64 bits), str, dtypes, scalars of
    NumPy with their own width, small arrays of NumPy, tuples, and dicts with names as keys.

    Shapes:     operands and results as the foreign function has them.
    Dtypes:     as promised, also 64-bit ones where x64 is off.
    Varying:    results vary over the mesh axes over which any operand does.
    Derivative: none; wrap the call in custom_jvp or custom_vjp.
    Lowers to:  stablehlo.custom_call.
    Source:     mirrors jax.ffi.ffi_call (0.10), and has num_batch_dims besides.

    Args:
        target_name: the name of the foreign function.
        result_shape_dtypes: what it returns: something with shape and dtype, or a sequence of
            these; the abstract token is one, too.
        has_side_effect: whether it is called for more than its results: then the call stays where
            nobody uses these.
        vmap_method: what vmap does: `"sequential"` calls it once per example, in a loop,
            `"sequential_unrolled"` without one; `"expand_dims"` and `"broadcast_all"` call it once
            with a leading batch axis on all arguments, which has length 1 with `"expand_dims"`
            where an argument is not mapped; `"legacy_vectorized"` leaves such arguments as they
            are; None refuses.
        input_layouts: for each operand the order of its dimensions in memory, from major to minor;
            None stands for C's order.
        output_layouts: likewise for the result, or for each result.
        input_output_aliases: which operands' memory results take: operand to result. Arrays that
            others still use are copied first.
        custom_call_api_version: of the interface between XLA and the function; 4 is that of
            `xla/ffi/api/ffi.h`.
        legacy_backend_config: a text that it gets in place of attributes before version 4.
        num_batch_dims: how many leading dimensions all operands and results share, on whose
            entries the function works one by one. Devices may divide these among them, if
            `register_ffi_target_as_batch_partitionable` has told so.

    Returns:
        A function of arrays and attributes, which returns an array, or a list or tuple of them as
        `result_shape_dtypes` is one.

    Raises:
        TypeError: `target_name` is not a string, or a layout is invalid.
        ValueError: what was given does not fit together; the text names it.

    Example:
        >>> call = minijax.ffi.ffi_call("my_kernel", minijax.ShapeDtypeStruct((2, 2), jnp.float32))
        >>> minijax.eval_shape(call, jnp.ones(4))
        ShapeDtypeStruct(shape=(2, 2), dtype=float32)
    """
    callbacks.check(_NAME, vmap_method)
    _check_target(target_name, custom_call_api_version, legacy_backend_config)
    is_sequence = isinstance(result_shape_dtypes, Sequence)
    promises: Any = result_shape_dtypes if is_sequence else [result_shape_dtypes]
    result_avals = [_promised(i, promise) for i, promise in enumerate(promises)]
    layouts: Any = output_layouts if is_sequence or output_layouts is None else [output_layouts]
    order_out = all_minor_to_major(
        _NAME, "output_layouts", layouts, _ranks(result_avals), "results"
    )
    aliases = dict(input_output_aliases or {})

    def call(*args: Any, **attributes: Any) -> Any:
        avals = flattening.avals_of(args, lambda: [f"args[{i}]" for i in range(len(args))], _NAME)
        order_in = all_minor_to_major(
            _NAME, "input_layouts", input_layouts, _ranks(avals), "operands"
        )
        _check_attributes(attributes, custom_call_api_version)
        _check_aliases(aliases, avals, result_avals, order_in, order_out)
        _check_batch(num_batch_dims, [*avals, *result_avals])
        outs = foreign.call(
            target_name,
            args,
            result_avals,
            attributes=attributes,
            input_layouts=order_in,
            output_layouts=order_out,
            aliases=aliases,
            has_side_effect=has_side_effect,
            api_version=custom_call_api_version,
            legacy_backend_config=legacy_backend_config,
            num_batch_dims=num_batch_dims,
            vmap_method=vmap_method,
        )
        if not is_sequence:
            return outs[0]
        return tuple(outs) if isinstance(result_shape_dtypes, tuple) else outs

    call.__name__ = call.__qualname__ = target_name
    return call


def _promised(position: int, promise: object) -> Any:
    """The type that a promise of a result promises.

    Raises:
        ValueError: it has no shape, or no dtype.
    """
    if isinstance(promise, AbstractToken):
        return promise
    if not (hasattr(promise, "shape") and hasattr(promise, "dtype")):
        problem = (
            f"result_shape_dtypes has something without shape and dtype at position {position}."
        )
        got = f"{promise!r} of type {type(promise).__name__}"
        expected = "minijax.ShapeDtypeStruct(shape, dtype), or an array"
        error(ValueError, _NAME, problem, got=got, expected=expected)
    aval = ShapedArray(promise.shape, promise.dtype, getattr(promise, "weak_type", False))
    sharding = getattr(promise, "sharding", None)
    if isinstance(sharding, NamedSharding) and sharding.mesh.explicit_axes:
        return rules.typed_aval(aval, sharding)
    return aval


def _ranks(avals: Sequence[Any]) -> list[int]:
    return [0 if isinstance(a, AbstractToken) else physical_aval(a).ndim for a in avals]


def _check_target(name: str, version: int, config: str | None) -> None:
    """Refuses what is not a name or a version, and a text for an interface that has attributes.

    Raises:
        TypeError: the name is not a string.
        ValueError: there is no such version, or it takes no text.
    """
    check_name(_NAME, name)
    if version not in range(1, custom_calls.TYPED + 1):
        problem = "there is no such version of the interface."
        got = f"custom_call_api_version={version!r}"
        expected = f"{custom_calls.TYPED} for functions by xla/ffi/api/ffi.h, or 1 to 3"
        error(ValueError, _NAME, problem, got=got, expected=expected)
    if version >= custom_calls.TYPED and config is not None:
        problem = "legacy_backend_config is for versions before 4 of the interface."
        got = f"custom_call_api_version={version}, legacy_backend_config={config!r}"
        fix = "pass attributes to the function by keyword"
        error(ValueError, _NAME, problem, got=got, fix=fix)


# XLA's own names: the operands of the first are indices into its list of Python functions, and it
# ends the process where those of the others are not as it makes them.
_XLAS_OWN = re.compile(
    r"xla_\w*python_\w+_callback|xla\.sdy\.\w+|__\w+\$\w+|SPMD\w+|Sharding|LayoutConstraint|TopK"
    r"|SliceToDynamic|Qr|Eigh|ProductOfElementaryHouseholderReflectors"
)


def check_name(user: str, name: str) -> None:
    """Refuses what is no name of a user's function.

    Raises:
        TypeError: the name is not a string.
        ValueError: it is no text, or XLA's.
    """
    call_targets.check_text(user, "target_name", name)
    if _XLAS_OWN.fullmatch(name):
        problem = f"{name!r} is what XLA itself calls, and nobody else can."
        error(ValueError, user, problem, fix="the public function, as pure_callback")


def _check_attributes(attributes: Mapping[str, Any], version: int) -> None:
    """Refuses attributes for an interface without them.

    Raises:
        ValueError: there are some.
    """
    if attributes and version < custom_calls.TYPED:
        problem = f"attributes need version {custom_calls.TYPED} of the interface."
        got = f"custom_call_api_version={version}, attributes {', '.join(attributes)}"
        error(ValueError, _NAME, problem, got=got, fix="legacy_backend_config passes a text")


def _check_aliases(
    aliases: Mapping[int, int],
    avals: Sequence[Any],
    result_avals: Sequence[Any],
    order_in: Sequence[DimOrder | None],
    order_out: Sequence[DimOrder | None],
) -> None:
    """Refuses results that cannot take the memory of operands.

    Raises:
        ValueError: there is no such operand or result, or they differ in type or layout.
    """
    filled_in = custom_calls.filled(avals, order_in)
    filled_out = custom_calls.filled(result_avals, order_out)
    for i, o in aliases.items():
        for what, index, count in (("operand", i, len(avals)), ("result", o, len(result_avals))):
            if not 0 <= index < count:
                problem = f"input_output_aliases names the {what} {index}, which is not there."
                expected = f"{what}s from 0 to {count - 1}"
                error(ValueError, _NAME, problem, got=f"{{{i}: {o}}}", expected=expected)
        given, promised = avals[i], result_avals[o]
        facts = {f"operand {i}": given, f"result {o}": promised}
        problem = f"the result {o} cannot take the memory of the operand {i}, which is"
        if (given.shape, given.dtype) != (promised.shape, promised.dtype):
            fix = f"leave {i} out of input_output_aliases"
            error(ValueError, _NAME, f"{problem} of another shape or dtype.", got=facts, fix=fix)
        if filled_in[i] != filled_out[o]:
            got = {
                f"operand {i}": f"{filled_in[i][::-1]} major to minor",
                f"result {o}": str(filled_out[o][::-1]),
            }
            fix = "say the same in input_layouts and output_layouts"
            error(ValueError, _NAME, f"{problem} in another layout.", got=got, fix=fix)


def _check_batch(count: int | None, avals: Sequence[Any]) -> None:
    """Refuses operands and results that do not share their leading dimensions.

    Raises:
        ValueError: they do not, or there are not as many.
    """
    if count is None:
        return
    batches = {tuple(aval.shape[:count]) for aval in avals if isinstance(aval, ShapedArray)}
    if count < 0 or len(batches) > 1 or any(len(batch) < count for batch in batches):
        problem = (
            "not all operands and results share the leading dimensions that num_batch_dims counts."
        )
        got = f"num_batch_dims={count} for {', '.join(map(str, avals))}"
        error(ValueError, _NAME, problem, got=got)


_LOWERING_NAME = "ffi.ffi_lowering"


def build_ffi_lowering_function(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Any]:
    """As `ffi_lowering`, for rules that build more: the function returns the MLIR operation.

    Args:
        call_target_name: as for `ffi_lowering`, and so are the other arguments.
        operand_layouts: the order of dimensions of each operand.
        result_layouts: likewise of each result.
        backend_config: attributes in MLIR by name, or a text.
        skip_ffi_layout_processing: whether to say nothing of layouts that are not given.
        lowering_args: more facts of the call.

    Returns:
        A function of a context, MLIR values and attributes.

    Example:
        >>> from minijax.extend import core, mlir
        >>> call = minijax.ffi.build_ffi_lowering_function("my_doubling_kernel")
        >>> double_p = core.Primitive("double_by_ffi")
        >>> _ = double_p.def_abstract_eval(lambda x: x)
        >>> _ = mlir.register_lowering(double_p, lambda ctx, x: call(ctx, x).results)
        >>> "@my_doubling_kernel(%arg0)" in minijax.jit(double_p.bind).lower(jnp.ones(2)).as_text()
        True
    """
    _check_known(lowering_args)
    check_name(_LOWERING_NAME, call_target_name)
    given = dict(lowering_args)
    version = given.pop("api_version", custom_calls.TYPED)
    aliases = given.pop("operand_output_aliases", None)
    if version >= custom_calls.TYPED and isinstance(backend_config, str):
        problem = "backend_config must be a dict where the interface has attributes."
        got = f"{backend_config!r} with api_version={version}"
        expected = "MLIR attributes by name, or None"
        fix = "api_version=3 or lower takes a text"
        error(ValueError, _LOWERING_NAME, problem, got=got, expected=expected, fix=fix)

    def lower(ctx: LoweringContext, *operands: Any, **params: Any) -> Any:
        config = _config(backend_config, params, version)
        facts = {"result_types": list(map(stablehlo.type_of, ctx.avals_out)), **given}
        if not skip_ffi_layout_processing:
            facts["operand_layouts"] = _filled("operand_layouts", ctx.avals_in, operand_layouts)
            facts["result_layouts"] = _filled("result_layouts", ctx.avals_out, result_layouts)
        elif operand_layouts is not None or result_layouts is not None:
            facts["operand_layouts"], facts["result_layouts"] = operand_layouts, result_layouts
        return custom_calls.build(
            ctx,
            call_target_name,
            operands,
            config=config,
            aliases=aliases,
            api_version=version,
            **facts,
        )

    return lower


def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Sequence[Any]]:
    """The lowering rule of a primitive that calls a foreign function.

    The rule passes the primitive's operands, and its parameters as attributes.

    Lowers to:  stablehlo.custom_call.

    Args:
        call_target_name: the name that `register_ffi_target` was given.
        operand_layouts: for each operand the order of its dimensions in memory, from minor to
            major, unlike `ffi_call`; None stands for C's order.
        result_layouts: likewise of each result.
        backend_config: more attributes, in MLIR, by name; before version 4 of the interface a text.
        skip_ffi_layout_processing: whether to leave layouts that are not given to XLA.
        lowering_args: more facts of the call: `has_side_effect`, `operand_output_aliases` (a dict),
            `api_version` of the interface (4), `result_types` in MLIR, `result_shapes` (MLIR
            values, where types leave shapes open), `called_computations` (names of functions in the
            module) and `extra_attributes` of the operation, in MLIR.

    Returns:
        A rule for `minijax.extend.mlir.register_lowering`.

    Raises:
        TypeError: `lowering_args` has something else.
        ValueError: `backend_config` is a text and the interface is the typed one; or a primitive
            has parameters, and the interface is an older one.

    Example:
        >>> from minijax.extend import core, mlir
        >>> halve_p = core.Primitive("halve_by_ffi")
        >>> _ = halve_p.def_abstract_eval(lambda x: x)
        >>> _ = mlir.register_lowering(halve_p, minijax.ffi.ffi_lowering("my_halving_kernel"))
        >>> "@my_halving_kernel(%arg0)" in minijax.jit(halve_p.bind).lower(jnp.ones(2)).as_text()
        True
    """
    lower = build_ffi_lowering_function(
        call_target_name,
        operand_layouts=operand_layouts,
        result_layouts=result_layouts,
        backend_config=backend_config,
        skip_ffi_layout_processing=skip_ffi_layout_processing,
        **lowering_args,
    )

    def rule(ctx: LoweringContext, *operands: Any, **params: Any) -> Sequence[Any]:
        return list(lower(ctx, *operands, **params).results)

    return rule


_KNOWN = (
    "api_version",
    "called_computations",
    "extra_attributes",
    "has_side_effect",
    "operand_output_aliases",
    "result_shapes",
    "result_types",
)


def _check_known(lowering_args: Mapping[str, Any]) -> None:
    """Refuses arguments that calls do not have.

    Raises:
        TypeError: there is one.
    """
    unknown = sorted(set(lowering_args) - set(_KNOWN))
    if unknown:
        problem = f"unexpected arguments: {', '.join(unknown)}."
        error(TypeError, _LOWERING_NAME, problem, expected=f"among {', '.join(_KNOWN)}")


def _config(
    given: Mapping[str, Any] | str | None, params: Mapping[str, Any], version: int
) -> Mapping[str, Any] | str | None:
    """What the foreign function gets besides arrays, in MLIR.

    Raises:
        ValueError: the primitive has parameters, which the interface does not pass on.
    """
    if version < custom_calls.TYPED:
        if params:
            problem = f"attributes need version {custom_calls.TYPED} of the interface."
            got = f"api_version={version}, parameters {', '.join(params)}"
            error(ValueError, _LOWERING_NAME, problem, got=got)
        return given
    assert not isinstance(given, str)
    attributes = {name: to_mlir(value) for name, value in attributes_of(_LOWERING_NAME, params)}
    return {**(given or {}), **attributes}


def _filled(
    argument: str, avals: Sequence[Any], given: Sequence[Any] | None
) -> tuple[DimOrder, ...]:
    if given is None:
        return custom_calls.filled(avals)
    orders = [
        minor_to_major(
            _LOWERING_NAME, f"{argument}[{i}]", layout, physical_aval(aval).ndim, reverse=False
        )
        for i, (layout, aval) in enumerate(zip(given, avals, strict=True))
    ]
    return custom_calls.filled(avals, orders)
