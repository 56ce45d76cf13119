"""Building StableHLO: one shared MLIR context, cached types and attributes, thin emitters.

Input: avals and NumPy values.  Output: MLIR types, attributes and operations.  The generated
builders of the bindings cost five times as much per operation as `ir.Operation.create`, so
every operation is made by `LoweringContext.op`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import ml_dtypes
import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _mlirHlo, _sdy, _stablehlo

from minijax.core import deferral, dtypes, operators
from minijax.core.aval import AbstractTodo, AbstractToken, AbstractValue, ShapedArray
from minijax.core.cache import Cache, cached
from minijax.core.dtypes import DType
from minijax.core.errors import error

if TYPE_CHECKING:
    from minijax.lowering.module import Lowering

if TYPE_CHECKING:
    Value: TypeAlias = ir.Value[Any]
    """A result of an operation in a module, or an argument of a block."""
else:
    Value = ir.Value

_create = ir.Operation.create
_pieces = Cache(
    "MLIR types and attributes",
    "types and attributes in MLIR's context",
    key="what they say",
    emptied=True,
    counted=False,
)


_contexts: dict[str, Any] = {}
_changing_context = threading.Lock()


def context() -> Any:
    """The MLIR context of the process; made when needed, shared by all threads."""
    found = _contexts.get("shared")
    if found is None:
        # Threads that come at once must not get one each: what is made in two does not mix.
        with _changing_context:
            found = _contexts.get("shared") or _contexts.setdefault("shared", _new_context())
    return found


@deferral.whole
def forget_context() -> None:
    """Lets go of the context with every type and attribute that was ever made in it.

    It stays if something refers to it, as do all that is made in it and threads that are in it.
    """
    with _changing_context:
        # Nobody gets it while references are counted: that of the list, and the argument's.
        held = [*_contexts.values()]
        _contexts.clear()
        if held and sys.getrefcount(held[0]) > 2:
            _contexts["shared"] = held[0]


@deferral.whole
def _new_context() -> Any:
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    ctx = ir.Context()
    ctx.append_dialect_registry(registry)
    ctx.load_all_available_dialects()
    _sdy.register_dialect(ctx)
    _stablehlo.register_dialect(ctx)
    _chlo.register_dialect(ctx)
    # XLA would load it on the first compilation, while other threads read what is loaded.
    _mlirHlo.register_mhlo_dialect(ctx)
    # With the first type or attribute of a dialect MLIR loads its Python: hundreds of classes, most
    # of the time of a first lowering; and what is raised while C++ imports leaves frames of Python
    # broken.  It believes to have done so; who imports them gets them.
    for dialect, text in (("builtin", "i1"), ("stablehlo", "#stablehlo<precision DEFAULT>")):
        name = f"jaxlib.mlir.dialects.{dialect}"
        if name not in sys.modules:
            sys.modules[name] = ModuleType(name)
            ir.Attribute.parse(text, ctx)
            del sys.modules[name]
    return ctx


_ELEMENT_TYPES: dict[str, Callable[[], Any]] = {
    "bool": lambda: ir.IntegerType.get_signless(1),
    "bfloat16": ir.BF16Type.get,
    "float16": ir.F16Type.get,
    "float32": ir.F32Type.get,
    "float64": ir.F64Type.get,
    "complex64": lambda: ir.ComplexType.get(ir.F32Type.get()),
    "complex128": lambda: ir.ComplexType.get(ir.F64Type.get()),
}


# The stub of jaxlib 0.10.2 takes arrays for objects without the buffer protocol.
_dense_elements: Callable[..., ir.DenseElementsAttr] = ir.DenseElementsAttr.get


@_pieces.function
def element_type(dtype: Any) -> Any:
    """The MLIR type of one element of a dtype."""
    with context():
        if dtype == dtypes.float0:
            return ir.IntegerType.get_signless(1)
        if dtype.name in _ELEMENT_TYPES:
            return _ELEMENT_TYPES[dtype.name]()
        if dtype.name.startswith(("float4_", "float8_")):
            return getattr(ir, f"Float{dtype.name[5:].upper().replace('_', '')}Type").get()
        kind = "uint" if dtype.name.startswith("uint") else "int"
        if not dtype.name.startswith(kind):
            error(TypeError, "lowering", f"XLA has no element type for {dtype}.")
        bits = int(dtype.name[len(kind) :])
        signless, unsigned = ir.IntegerType.get_signless, ir.IntegerType.get_unsigned
        return unsigned(bits) if kind == "uint" else signless(bits)


_types: dict[Any, Any] = _pieces.table()


def type_of(aval: Any) -> Any:
    """The MLIR type of values of a type; the same object each time.

    Source:     mirrors jax.interpreters.mlir.aval_to_ir_type (0.10).

    Example:
        >>> jax.extend.mlir.aval_to_ir_type(jax.typeof(jnp.zeros((2, 3))))
        RankedTensorType(tensor<2x3xf32>)
    """
    found = _types.get(aval)
    if found is None:
        found = _types.setdefault(aval, _make_type(aval))
    return found


def _make_type(aval: AbstractValue) -> Any:
    with context(), ir.Location.unknown():
        if isinstance(aval, AbstractToken):
            return ir.Type.parse("!stablehlo.token")
        if isinstance(aval, AbstractTodo):
            return ir.Type.parse(f"!stablehlo.future<{type_of(aval.inner_aval)}>")
        dtype: DType = aval.dtype
        shape = aval.shape
        if dtypes.is_extended(dtype):
            shape = (*shape, *dtype.physical_shape)
            dtype = dtype.physical_dtype
        return ir.RankedTensorType.get(shape, element_type(dtype))


_tensor_types: dict[Any, Any] = _pieces.table()


def tensor_type(shape: Sequence[int], dtype: object) -> Any:
    """The MLIR type of tensors of a shape and dtype."""
    key = tuple(shape), dtype
    found = _tensor_types.get(key)
    if found is None:
        found = _tensor_types[key] = type_of(ShapedArray(*key))
    return found


@_pieces.function
def attribute(text: str) -> Any:
    """The attribute that `text` denotes in MLIR's syntax."""
    return ir.Attribute.parse(text, context())


@_pieces.function
def i64_array(values: tuple[int, ...]) -> Any:
    """`array<i64: ...>`."""
    if any(not -(2**63) <= n < 2**63 for n in values):
        error(OverflowError, "", "not all numbers fit into 64 bits.", got=str(values))
    return ir.DenseI64ArrayAttr.get(values, context())


@_pieces.function
def bool_array(values: tuple[bool, ...]) -> Any:
    """`array<i1: ...>`."""
    return ir.DenseBoolArrayAttr.get(values, context())


@_pieces.function
def i64_matrix(rows: tuple[tuple[int, ...], ...], columns: int) -> Any:
    """`dense<[[...], ...]> : tensor<r x c x i64>`, such as paddings and replica groups."""
    with context(), ir.Location.unknown():
        return _dense_elements(np.array(rows, np.int64).reshape(len(rows), columns))


@_pieces.function
def integer(value: int, bits: int = 64) -> Any:
    """`value : i<bits>`."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(bits, context()), value)


@_pieces.function
def boolean(value: bool) -> Any:
    """`true` or `false`."""
    return ir.BoolAttr.get(value, context())


@_pieces.function
def string(value: str) -> Any:
    """`"value"`."""
    return ir.StringAttr.get(value, context())


@_pieces.function
def symbol(value: str) -> Any:
    """`@value`."""
    return ir.FlatSymbolRefAttr.get(value, context())


def dictionary(entries: dict[str, Any]) -> Any:
    """`{name = attribute, ...}`."""
    return ir.DictAttr.get(entries, context())


def dense(value: np.ndarray[Any, Any]) -> Any:
    """A dense attribute of the elements of an array of any dtype; repeated ones are stored once."""
    dtype = value.dtype
    kind = element_type(dtype)
    with context(), ir.Location.unknown():
        tensor = ir.RankedTensorType.get(value.shape, kind)
        if dtypes.bit_width(dtype) < 8 and dtype != ml_dtypes.float4_e2m1fn:
            value = value.astype(np.uint8 if dtype.name.startswith("uint") else np.int8)
        elif dtype.kind == "V" or dtype.name.startswith(("float4", "float8", "bfloat16")):
            value = value.view(np.uint8 if dtype.itemsize == 1 else np.uint16)
        return _dense_elements(np.ascontiguousarray(value), type=tensor)


class LoweringContext:
    """What a lowering rule builds with: where operations go, and the types of its equation.

    Source:     mirrors jax.interpreters.mlir.LoweringRuleContext (0.10).

    Attributes:
        avals_in: types of the equation's arguments.
        avals_out: types of its results.
        platform: `"cpu"`, `"cuda"`, … : what the module is for.
        point: where new operations are inserted.
        location: the user's line, given to new operations.
        module: state shared by the whole module (`lowering/module.py`).
        tokens: the token of each ordered effect here; a rule with the effect replaces it.

    Example:
        >>> flip = jax.extend.core.Primitive("flipped_sign")
        >>> _ = flip.def_abstract_eval(lambda x: x)
        >>> def rule(ctx, x):
        ...     print(ctx.avals_in, ctx.platform)
        ...     return [ctx.op("stablehlo.negate", [x])]
        >>> _ = jax.extend.mlir.register_lowering(flip, rule)
        >>> _ = jax.jit(flip.bind).lower(jnp.arange(3.0))
        [ShapedArray(float32[3])] cpu
    """

    __slots__ = (
        "avals_in",
        "avals_out",
        "location",
        "module",
        "platform",
        "point",
        "scalars",
        "tokens",
    )

    def __init__(
        self, module: Lowering, platform: str, point: object, location: ir.Location
    ) -> None:
        self.module = module
        self.platform = platform
        self.point = point
        self.location = location
        self.avals_in: Sequence[Any] = ()
        self.avals_out: Sequence[Any] = ()
        # Scalar constants already made in this block, by value and type.
        self.scalars: dict[Any, Any] = {}
        self.tokens: dict[Any, Any] = {}

    i64_array = staticmethod(lambda values: i64_array(tuple(map(int, values))))
    bool_array = staticmethod(lambda values: bool_array(tuple(map(bool, values))))
    integer = staticmethod(integer)
    boolean = staticmethod(boolean)
    string = staticmethod(string)
    attribute = staticmethod(attribute)
    dense = staticmethod(dense)
    type_of = staticmethod(type_of)
    tensor_type = staticmethod(tensor_type)

    def op(
        self,
        name: str,
        operands: Sequence[ir.Value[Any]],
        attributes: dict[str, Any] | None = None,
        type: Any = None,
    ) -> Any:
        """Builds an operation with one result, of the equation's result type by default."""
        if type is None:
            aval = self.avals_out[0]
            type = _types.get(aval) or type_of(aval)
        return _create(name, [type], operands, attributes, loc=self.location, ip=self.point).result

    def ops(
        self,
        name: str,
        operands: Sequence[ir.Value[Any]],
        attributes: dict[str, Any] | None = None,
        types: Sequence[Any] | None = None,
        regions: Sequence[tuple[Sequence[Any], Callable[..., Sequence[Any]]]] = (),
    ) -> list[Any]:
        """Builds an operation with any number of results, and regions.

        Args:
            name: the operation, such as `stablehlo.sort`.
            operands: its operands.
            attributes: its attributes by name.
            types: its result types; those of the equation by default.
            regions: for each region, the types of its block arguments and a function that is
                called with this context and those arguments, and returns the results.
        """
        return list(self.operation(name, operands, attributes, types, regions).results)

    def operation(
        self,
        name: str,
        operands: Sequence[ir.Value[Any]],
        attributes: dict[str, Any] | None = None,
        types: Sequence[Any] | None = None,
        regions: Sequence[tuple[Sequence[Any], Callable[..., Sequence[Any]]]] = (),
    ) -> Any:
        """As `ops`; the operation itself."""
        if types is None:
            types = [type_of(aval) for aval in self.avals_out]
        where: dict[str, Any] = {"loc": self.location, "ip": self.point}
        operation = _create(name, types, operands, attributes, regions=len(regions), **where)
        for region, (arg_types, body) in zip(operation.regions, regions, strict=True):
            block = region.blocks.append(*arg_types, arg_locs=[self.location] * len(arg_types))
            inner = self.at(ir.InsertionPoint(block))
            results = list(body(inner, *block.arguments))
            _create("stablehlo.return", [], results, loc=self.location, ip=inner.point)
        return operation

    def loop(
        self, state: Sequence[Any], condition: Callable[..., Any], body: Callable[..., Any]
    ) -> list[Any]:
        """The state after a loop; both functions take a context and the values of a state."""
        types = [x.type for x in state]
        regions = [(types, condition), (types, body)]
        return self.ops("stablehlo.while", state, types=types, regions=regions)

    def at(self, point: object) -> LoweringContext:
        """A context that builds elsewhere, with no constants made yet."""
        ctx = LoweringContext(self.module, self.platform, point, self.location)
        ctx.avals_in, ctx.avals_out = self.avals_in, self.avals_out
        return ctx

    def constant(self, value: operators.Value, dtype: Any = None) -> Any:
        """A constant of the elements of `value`; scalars are made once per block."""
        is_nothing = dtypes.float0 in (dtype, getattr(value, "dtype", None))
        array = (
            np.zeros(getattr(value, "shape", ()), np.bool_)
            if is_nothing
            else np.asarray(value, dtype)
        )
        if array.ndim:
            return self.op(
                "stablehlo.constant",
                [],
                {"value": dense(array)},
                tensor_type(array.shape, array.dtype),
            )
        key = (array.tobytes(), array.dtype)
        found = self.scalars.get(key)
        if found is None:
            found = self.scalars[key] = self.op(
                "stablehlo.constant", [], {"value": dense(array)}, tensor_type((), array.dtype)
            )
        return found

    def full(self, shape: Sequence[int], value: operators.Value, dtype: Any) -> Any:
        """A tensor of one repeated number."""
        return self.broadcast(self.constant(value, dtype), shape, dtype)

    def broadcast(
        self,
        x: ir.Value[Any],
        shape: Sequence[int],
        dtype: DType | type[Any],
        dimensions: Sequence[int] = (),
    ) -> Any:
        """`x` repeated to `shape`; unchanged where it is a scalar and stays one."""
        if not shape:
            return x
        return self.op(
            "stablehlo.broadcast_in_dim",
            [x],
            {"broadcast_dimensions": self.i64_array(dimensions)},
            tensor_type(shape, dtype),
        )

    def compare(
        self, direction: str, x: Any, y: Any, aval: ShapedArray, *, total_order: bool = False
    ) -> Any:
        """`x < y` and its like (LT, LE, GT, GE, EQ, NE) for operands of type `aval`."""
        attributes = self.comparison(direction, aval.dtype, total_order=total_order)
        return self.op("stablehlo.compare", [x, y], attributes, tensor_type(aval.shape, np.bool_))

    @staticmethod
    def comparison(direction: str, dtype: DType, *, total_order: bool = False) -> dict[str, Any]:
        """The attributes of `stablehlo.compare` for operands of a dtype."""
        kind = _comparison(dtype, total_order)
        return {
            "comparison_direction": attribute(f"#stablehlo<comparison_direction {direction}>"),
            "compare_type": attribute(f"#stablehlo<comparison_type {kind}>"),
        }

    def convert(self, x: Value, shape: Sequence[int], dtype: object) -> Any:
        """`x`, of the given shape, converted to another dtype by StableHLO's own rules."""
        return self.op("stablehlo.convert", [x], None, tensor_type(shape, dtype))

    def reshape(self, x: ir.Value[Any], shape: Sequence[int], dtype: DType) -> Any:
        """`x` in another shape of as many elements."""
        return self.op("stablehlo.reshape", [x], None, tensor_type(shape, dtype))

    def reduce(
        self,
        combiner: str,
        x: ir.Value[Any],
        axes: Sequence[int],
        init: Any,
        types: Sequence[Any] | None = None,
        dtype: DType | type[Any] | None = None,
    ) -> Any:
        """Reduces `x` over `axes` by the binary operation called `combiner`, from `init`.

        The result is of the equation's result type, if not `types` has another one, and `x` of
        the dtype of the equation's first operand, if it is not `dtype`.
        """
        start = self.constant(init, self.avals_in[0].dtype if dtype is None else dtype)
        (result,) = types or (type_of(self.avals_out[0]),)
        model, _ = _reduction(combiner, x.type, start.type, result, tuple(axes))
        operation = model.clone(self.point)
        operands = operation.operands
        operands[0] = x
        operands[1] = start
        operation.location = self.location
        return operation.result


@cached("reductions", key="combiner, types, axes", most=1024, emptied=True)
def _reduction(
    combiner: str,
    operand: ir.Type,
    scalar: object,
    result: ir.Type,
    axes: tuple[int, ...],
) -> tuple[Any, Any]:
    """A reduction to copy, and the module it stands in.

    Regions are slow to build: a copy with other operands takes a fifth of the time.
    """
    with context(), ir.Location.unknown() as unknown:
        module = ir.Module.create()
        ctx = LoweringContext(cast("Lowering", None), "", ir.InsertionPoint(module.body), unknown)
        x, start = (
            ctx.op("builtin.unrealized_conversion_cast", [], None, t) for t in (operand, scalar)
        )
        operation = ctx.operation(
            "stablehlo.reduce",
            [x, start],
            {"dimensions": i64_array(axes)},
            [result],
            [([scalar, scalar], lambda inner, a, b: [inner.op(combiner, [a, b], None, scalar)])],
        )
    return operation, module


def _comparison(dtype: DType, total_order: bool) -> str:
    if dtypes.issubdtype(dtype, np.inexact):
        return "TOTALORDER" if total_order else "FLOAT"
    unsigned = dtype == np.bool_ or dtypes.issubdtype(dtype, np.unsignedinteger)
    return "UNSIGNED" if unsigned else "SIGNED"
