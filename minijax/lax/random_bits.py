"""Random bits: the Threefry hash that `random` is built on, and XLA's own generators.

Threefry-2x32 is the counter-based generator of Salmon et al., "Parallel random numbers: as easy
as 1, 2, 3" (SC 2011): twenty rounds of additions, rotations and exclusive ors.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import axes as core_axes
from minijax.core import dtypes
from minijax.core.aval import Shape, ShapedArray, canonicalize_shape, shaped_array
from minijax.core.errors import error
from minijax.core.meshes import PartitionSpec
from minijax.core.primitive import Batched, Primitive
from minijax.interpreters.jvp import jvp_of_constant
from minijax.interpreters.structural import moveaxis
from minijax.lax import families, slicing
from minijax.lax.families import Avals, Values, operands
from minijax.lowering.stablehlo import LoweringContext, Value
from minijax.runtime.annotations import ArrayLike, DTypeLike, ShardingLike
from minijax.runtime.array import Array
from minijax.sharding import rules
from minijax.sharding.named import NamedSharding

_UINT32 = np.dtype(np.uint32)
_UINT64 = np.dtype(np.uint64)
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


class Threefry2x32(Primitive):
    """Hashes pairs of counters under pairs of keys.

    Shapes: key0, key1, x0, x1: u32[s] -> u32[s], u32[s]; shapes are broadcast.
    The result does not follow any tangent.
    """

    name = "threefry2x32"
    multiple_results = True
    jvp = jvp_of_constant
    shard = rules.elementwise
    batch = families.batch_elementwise

    def abstract_eval(self, *operands: ShapedArray) -> list[ShapedArray]:
        if len(operands) != 4 or any(x.dtype != _UINT32 for x in operands):
            problem = "needs four operands of dtype uint32."
            error(TypeError, "threefry2x32", problem, got=", ".join(map(str, operands)))
        named = {f"operand {i}": x for i, x in enumerate(operands)}
        return [ShapedArray(families.broadcast_shape("threefry2x32", **named), _UINT32)] * 2

    def lower(self, ctx: LoweringContext, *values: Value) -> list[Any]:
        key0, key1, x0, x1 = families.broadcast_operands(ctx, values)
        shape = ctx.avals_out[0].shape
        tensor = ctx.type_of(ctx.avals_out[0])

        def op(name: str, x: Value, y: Value) -> Any:
            return ctx.op(f"stablehlo.{name}", [x, y], None, tensor)

        def number(value: int) -> Any:
            return ctx.full(shape, value, _UINT32)

        key2 = op("xor", op("xor", key0, key1), number(_PARITY))
        schedule = (key0, key1, key2)
        x0, x1 = op("add", x0, key0), op("add", x1, key1)
        for group in range(5):
            for distance in _ROTATIONS[group % 2]:
                x0 = op("add", x0, x1)
                left = op("shift_left", x1, number(distance))
                right = op("shift_right_logical", x1, number(32 - distance))
                x1 = op("xor", op("or", left, right), x0)
            x0 = op("add", x0, schedule[(group + 1) % 3])
            x1 = op("add", x1, schedule[(group + 2) % 3])
            x1 = op("add", x1, number(group + 1))
        return [x0, x1]


threefry2x32_p = Threefry2x32()


class RandomAlgorithm(enum.IntEnum):
    """XLA's random bit generators.

    RNG_DEFAULT is the one that is fast on the platform.

    Example:
        >>> lax.RandomAlgorithm.RNG_PHILOX
        <RandomAlgorithm.RNG_PHILOX: 2>
        >>> key = jnp.zeros(4, jnp.uint32)
        >>> lax.rng_bit_generator(key, (2,), algorithm=lax.RandomAlgorithm.RNG_PHILOX)[1].shape
        (2,)
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


class RngBitGenerator(Primitive):
    """Random bits of XLA's own generators, and the generator's new state.

    Shapes: key: u32[4] or u64[2] -> the same, U[shape].
    In a batch the first state serves all examples and is the only one that goes on; the bits
    differ from those of a loop.  The result does not follow any tangent.
    """

    name = "rng_bit_generator"
    multiple_results = True
    jvp = jvp_of_constant

    def abstract_eval(
        self, key: ShapedArray, *, shape: Shape, dtype: np.dtype[Any], **_: Any
    ) -> list[ShapedArray]:
        if (key.shape, key.dtype) not in (((4,), _UINT32), ((2,), _UINT64)):
            problem = "not a state."
            expected = "u32[4] or u64[2]"
            error(TypeError, "lax.rng_bit_generator", problem, got={"key": key}, expected=expected)
        if not dtypes.issubdtype(dtype, np.unsignedinteger) or dtype.itemsize not in (1, 2, 4, 8):
            problem = f"does not make bits of dtype {dtype}."
            expected = "uint8, uint16, uint32 or uint64"
            error(TypeError, "lax.rng_bit_generator", problem, expected=expected)
        return [key, shaped_array(shape, dtype)]

    def shard(
        self, avals: Avals, outs: Avals, *, out_sharding: NamedSharding | None, **params: Any
    ) -> list[PartitionSpec]:
        rules.check_unsharded(self, avals)
        state, bits = (rules.unsharded(aval.ndim) for aval in outs)
        if out_sharding is not None:
            bits = rules.given_spec(self, outs[1], out_sharding)
        return [state, bits]

    def lower(
        self,
        ctx: LoweringContext,
        key: Value,
        *,
        shape: Shape,
        dtype: np.dtype[Any],
        algorithm: RandomAlgorithm,
        **_: Any,
    ) -> list[Any]:
        words = ctx.avals_in[0].dtype == _UINT32
        state_type = ctx.tensor_type((2,), _UINT64)
        if words:
            key = ctx.reshape(key, (2, 2), _UINT32)
            key = ctx.op("stablehlo.bitcast_convert", [key], None, state_type)
        # Narrow bits are the low ones of 32.
        made = dtype if dtype.itemsize >= 4 else _UINT32
        name = algorithm.name.removeprefix("RNG_")
        state, bits = ctx.ops(
            "stablehlo.rng_bit_generator",
            [key],
            {"rng_algorithm": ctx.attribute(f"#stablehlo<rng_algorithm {name}>")},
            types=[state_type, ctx.tensor_type(shape, made)],
        )
        if words:
            pairs = ctx.tensor_type((2, 2), _UINT32)
            state = ctx.op("stablehlo.bitcast_convert", [state], None, pairs)
            state = ctx.reshape(state, (4,), _UINT32)
        return [state, bits if made == dtype else ctx.convert(bits, shape, dtype)]

    def batch(
        self, size: int, args: Values, dims: Sequence[int], *, shape: Shape, **params: Any
    ) -> Batched:
        keys = moveaxis(args[0], dims[0], 0)
        first = slicing.index_in_dim(keys, 0, keepdims=False)
        params["out_sharding"] = rules.batched(params["out_sharding"], 0)
        state, bits = self.bind(first, shape=(size, *shape), **params)
        return [slicing.dynamic_update_index_in_dim(keys, state, 0, 0), bits], [0, 0]


rules.sharding_param.set("out_sharding", RngBitGenerator)


rng_bit_generator_p = RngBitGenerator()


def rng_bit_generator(
    key: ArrayLike,
    shape: Sequence[int],
    dtype: DTypeLike = np.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: ShardingLike = None,
) -> tuple[Any, Any]:
    """Random bits of XLA's own generators, and the generator's new state.

    What a state gives may differ between platforms and versions; `minijax.random` does not.

    Shapes:     key: u32[4] or u64[2] -> the same, dtype[shape].
    Dtypes:     of bits: unsigned integers.
    Derivative: none.
    Lowers to:  stablehlo.rng_bit_generator.

    Raises:
        TypeError: the key is not a state, or the dtype is not one of bits.
        ValueError: there is no such algorithm.

    Example:
        >>> state, bits = lax.rng_bit_generator(jnp.zeros(4, jnp.uint32), (3,))
        >>> jax.typeof(state), jax.typeof(bits)
        (ShapedArray(uint32[4]), ShapedArray(uint32[3]))
    """
    name = "lax.rng_bit_generator"
    if algorithm not in set(RandomAlgorithm):
        problem = f"there is no algorithm {algorithm!r}."
        error(ValueError, name, problem, expected=", ".join(RandomAlgorithm.__members__))
    state, bits = rng_bit_generator_p.bind(
        key,
        shape=canonicalize_shape(shape, name),
        dtype=np.dtype(dtypes.canonicalize_user_dtype(dtype, name)),
        algorithm=RandomAlgorithm(algorithm),
        out_sharding=rules.resolve(out_sharding, name),
    )
    return state, bits


class RngUniform(Primitive):
    """Uniform random numbers of the device's own generator, whose state nobody holds.

    Shapes: a: T[], b: T[] -> T[shape].
    Not a function of its operands alone, hence without rules for derivatives and batches.
    """

    name = "rng_uniform"
    shard = rules.nothing_sharded

    def abstract_eval(self, a: ShapedArray, b: ShapedArray, *, shape: Shape) -> ShapedArray:
        families.check_same_dtype("rng_uniform", a=a, b=b)
        is_number = dtypes.issubdtype(a.dtype, np.floating) or (
            dtypes.issubdtype(a.dtype, np.integer) and a.dtype.itemsize >= 4
        )
        if a.shape or b.shape or not is_number:
            problem = "the bounds must be scalars, floats or integers of at least 32 bits."
            error(TypeError, "lax.rng_uniform", problem, got={"a": a, "b": b})
        return shaped_array(shape, a.dtype, a.weak_type and b.weak_type)

    def lower(self, ctx: LoweringContext, a: Value, b: Value, *, shape: Shape) -> Any:
        return ctx.op(
            "stablehlo.rng",
            [a, b, ctx.constant(np.array(shape, np.int64))],
            {"rng_distribution": ctx.attribute("#stablehlo<rng_distribution UNIFORM>")},
        )


core_axes.makes_different.set(True, RngUniform)


rng_uniform_p = RngUniform()


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Sequence[int]) -> Array:
    """Uniform random numbers from `a` to `b`, excluding `b`, of the device's own generator.

    The numbers follow from no key: use `minijax.random.uniform` for reproducible ones.

    Shapes:     a: T[], b: T[] -> T[shape].
    Dtypes:     floats, and integers of at least 32 bits.
    Derivative: none.
    Lowers to:  stablehlo.rng.

    Raises:
        TypeError: the bounds are not scalars of one such dtype.

    Example:
        >>> lax.rng_uniform(1.0, 2.0, (3,)).shape
        (3,)
    """
    low, high = operands(a, b)
    return rng_uniform_p.bind(low, high, shape=canonicalize_shape(shape, "lax.rng_uniform"))
