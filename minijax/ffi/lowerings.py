"""`ffi_lowering`: the lowering rule of a primitive that is a foreign function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from minijax.core.errors import error
from minijax.ffi import layouts
from minijax.interpreters import custom_calls, hlo_build
from minijax.interpreters.custom_calls import Layout
from minijax.interpreters.foreign_attributes import attributes_of, to_mlir
from minijax.runtime.array import physical_aval

_NAME = "ffi.ffi_lowering"


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

    Source: mirrors jax.ffi.build_ffi_lowering_function (0.10).

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
    given = dict(lowering_args)
    version = given.pop("api_version", custom_calls.TYPED)
    aliases = given.pop("operand_output_aliases", None)
    if version >= custom_calls.TYPED and isinstance(backend_config, str):
        error(
            ValueError,
            _NAME,
            "backend_config must be a dict where the interface has attributes.",
            got=f"{backend_config!r} with api_version={version}",
            expected="MLIR attributes by name, or None",
            fix="api_version=3 or lower takes a text",
        )

    def lower(ctx: Any, *operands: Any, **params: Any) -> Any:
        config = _config(backend_config, params, version)
        facts = {"result_types": list(map(hlo_build.type_of, ctx.avals_out)), **given}
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
    Source:     mirrors jax.ffi.ffi_lowering (0.10).

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

    def rule(ctx: Any, *operands: Any, **params: Any) -> Sequence[Any]:
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
        error(
            TypeError,
            _NAME,
            f"unexpected arguments: {', '.join(unknown)}.",
            expected=f"among {', '.join(_KNOWN)}",
        )


def _config(
    given: Mapping[str, Any] | str | None, params: Mapping[str, Any], version: int
) -> Mapping[str, Any] | str | None:
    """What the foreign function gets besides arrays, in MLIR.

    Raises:
        ValueError: the primitive has parameters, which the interface does not pass on.
    """
    if version < custom_calls.TYPED:
        if params:
            error(
                ValueError,
                _NAME,
                f"attributes need version {custom_calls.TYPED} of the interface.",
                got=f"api_version={version}, parameters {', '.join(params)}",
            )
        return given
    assert not isinstance(given, str)
    attributes = {name: to_mlir(value) for name, value in attributes_of(_NAME, params)}
    return {**(given or {}), **attributes}


def _filled(argument: str, avals: Sequence[Any], given: Sequence[Any] | None) -> tuple[Layout, ...]:
    if given is None:
        return custom_calls.filled(avals)
    orders = [
        layouts.minor_to_major(
            _NAME, f"{argument}[{i}]", layout, physical_aval(aval).ndim, reverse=False
        )
        for i, (layout, aval) in enumerate(zip(given, avals, strict=True))
    ]
    return custom_calls.filled(avals, orders)
