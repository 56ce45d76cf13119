"""Random keys: their dtype, the primitives that make, split and use them, and what takes them.

A key is an element of an extended dtype, which tells its generator (`generators.py`); underneath
are one, two or four 32-bit integers.  Old-style keys, plain arrays of these, are of the
generator in force (`minijax.default_prng_impl`); they are wrapped on entry, unwrapped on return.

`distribution` is what all distributions share: the checks of keys, dtypes, shapes and parameters.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np

from minijax.core import aval as core_aval
from minijax.core import config, dtypes
from minijax.core.aval import (
    AbstractValue,
    Shape,
    ShapedArray,
    aval_of,
    canonicalize_shape,
    shaped_array,
)
from minijax.core.errors import IncompatibleShapesError, error, explain_keyword, warn
from minijax.core.meshes import PartitionSpec
from minijax.core.operators import BatchDims, Values
from minijax.core.primitive import Batched, Primitive
from minijax.interpreters import key_reuse
from minijax.interpreters.jvp import jvp_of_constant
from minijax.interpreters.structural import broadcast_in_dim, in_front, moveaxis
from minijax.lax import creation
from minijax.lax import shape as lax_shape
from minijax.lowering import module
from minijax.numpy.creation import on_device
from minijax.numpy.promotion import check_array, check_choice, lenient, one_program
from minijax.random.generators import GENERATORS, Generator, arranged
from minijax.runtime import transfer
from minijax.runtime.annotations import ArrayLike, DTypeLike, ShapeLike, ShardingLike
from minijax.runtime.array import Array, ExtendedArray, array_from_host, is_array
from minijax.sharding import rules


class KeyDType(dtypes.ExtendedDType):
    """The dtype of random keys."""

    type = dtypes.prng_key
    physical_dtype = np.dtype(np.uint32)

    def __init__(self, impl: Generator) -> None:
        self.impl = impl
        self.name = f"key<{impl.tag}>"
        self.physical_shape = (impl.words,)
        self.itemsize = 4 * impl.words

    def element(self, value: Any) -> Any:
        if hasattr(value, "aval"):
            word = creation.convert_to_type(value, self.physical_dtype, weak_type=False)
        else:
            word = np.asarray(value).astype(self.physical_dtype)[()]
        return random_wrap_p.bind(broadcast_in_dim(word, self.physical_shape, ()), impl=self.impl)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyDType) and other.impl == self.impl

    def __hash__(self) -> int:
        return hash((KeyDType, self.impl))


_KEY_DTYPES = {generator: KeyDType(generator) for generator in GENERATORS.values()}
_UINT32 = np.dtype(np.uint32)


class _OfKeys(Primitive):
    """What is done to each key for itself; dimensions of results are those of keys and new ones."""

    jvp = jvp_of_constant

    def shard(self, avals: Sequence[Any], outs: Sequence[Any], **params: Any) -> PartitionSpec:
        return rules.spec_of(avals[0]).padded(outs[0].ndim)

    def batch(self, size: int, args: Values, dims: Sequence[int], **params: Any) -> Batched:
        return self.bind(moveaxis(args[0], dims[0], 0), **params), 0


dtypes.knows_extended.set(True, _OfKeys)


class RandomSeed(_OfKeys):
    """Makes keys from integers.  Shapes: seeds: int[s] -> key[s]."""

    name = "random_seed"

    def abstract_eval(self, seeds: AbstractValue, *, impl: Generator) -> ShapedArray:
        return shaped_array(seeds.shape, _KEY_DTYPES[impl])

    def lower(self, ctx: Any, seeds: Any, *, impl: Generator) -> Any:
        return module.lower_function(ctx, lambda s: [impl.seed(s)], seeds)[0]


class RandomWrap(_OfKeys):
    """Views pairs of integers as keys.  Shapes: u32[s, words] -> key[s]."""

    name = "random_wrap"

    def impl(self, data: Any, *, impl: Generator) -> Any:
        self.abstract_eval(aval_of(data), impl=impl)
        if not is_array(data):
            data = array_from_host(data)
        return ExtendedArray(transfer.view(data.buffer), _KEY_DTYPES[impl])

    def abstract_eval(self, data: AbstractValue, *, impl: Generator) -> ShapedArray:
        if data.dtype != _UINT32 or data.shape[-1:] != (impl.words,):
            problem = "not the data of random keys."
            expected = f"u32[..., {impl.words}]"
            error(TypeError, "random.wrap_key_data", problem, got=str(data), expected=expected)
        return shaped_array(data.shape[:-1], _KEY_DTYPES[impl])

    def shard(self, avals: Sequence[Any], outs: Sequence[Any], **params: Any) -> PartitionSpec:
        last = outs[0].ndim
        rules.check_unsharded(self, avals, (last,))
        return rules.dropped(rules.spec_of(avals[0]), (last,))

    def lower(self, ctx: Any, data: Any, *, impl: Generator) -> Any:
        return data


@key_reuse.follow_keys.rule(RandomWrap)
def _follow_keys_of_random_wrap(
    primitive: RandomWrap, flow: Any, keys: Sequence[Any], *, impl: Generator
) -> list[Any]:
    # The integers of a key have the number of the first.
    return [None if keys[0] is None else keys[0][..., 0]]


class RandomUnwrap(_OfKeys):
    """The integers underneath keys.  Shapes: key[s] -> u32[s, words]."""

    name = "random_unwrap"

    def impl(self, keys: Any) -> Any:
        return transfer.view(keys.buffer)

    def abstract_eval(self, keys: AbstractValue) -> AbstractValue:
        return shaped_array((*keys.shape, *keys.dtype.physical_shape), _UINT32)

    def lower(self, ctx: Any, keys: Any) -> Any:
        return keys


@key_reuse.follow_keys.rule(RandomUnwrap)
def _follow_keys_of_random_unwrap(
    primitive: RandomUnwrap, flow: Any, keys: Sequence[Any]
) -> list[Any]:
    return [None if keys[0] is None else np.stack([keys[0], keys[0]], -1)]


class RandomClone(_OfKeys):
    """The same keys, which may be used once more.  Shapes: key[s] -> key[s]."""

    name = "random_clone"

    def impl(self, keys: Any) -> Any:
        return ExtendedArray(transfer.copied(keys.buffer), keys.dtype)

    def abstract_eval(self, keys: AbstractValue) -> AbstractValue:
        return keys

    def lower(self, ctx: Any, keys: Any) -> Any:
        return keys


class RandomSplit(_OfKeys):
    """Makes new keys from each key.  Shapes: key[s] -> key[s, *shape]."""

    name = "random_split"

    def abstract_eval(
        self, keys: AbstractValue, *, shape: Shape, partitionable: bool = True
    ) -> ShapedArray:
        return shaped_array((*keys.shape, *shape), keys.dtype)

    def lower(self, ctx: Any, keys: Any, *, shape: Shape, partitionable: bool = True) -> Any:
        generator = arranged(ctx.avals_in[0].dtype.impl, partitionable)
        return _lower_on_data(ctx, lambda data: generator.split(data, shape), keys)


key_reuse.consumes_keys.set((0,), RandomSplit)


class RandomFoldIn(_OfKeys):
    """Mixes integers into keys.  Shapes: key[s], u32[s] -> key[s]; scalars are repeated."""

    name = "random_fold_in"

    def abstract_eval(self, keys: AbstractValue, data: ShapedArray) -> ShapedArray:
        return shaped_array(np.broadcast_shapes(keys.shape, data.shape), keys.dtype)

    def shard(self, avals: Sequence[Any], outs: Sequence[Any], **params: Any) -> PartitionSpec:
        return rules.join(self, avals, outs[0].ndim)

    def lower(self, ctx: Any, keys: Any, data: Any) -> Any:
        dims = ctx.avals_out[0].shape
        generator = ctx.avals_in[0].dtype.impl

        def fold_in(keys: Any, numbers: Any) -> Any:
            rank = aval_of(keys).ndim - 1
            kept = (*range(len(dims) - rank, len(dims)), len(dims))
            keys = broadcast_in_dim(keys, (*dims, generator.words), kept)
            return generator.fold_in(keys, numbers)

        return _lower_on_data(ctx, fold_in, keys, data)

    def batch(self, size: int, args: Values, dims: BatchDims, **params: Any) -> Batched:
        keys, data = in_front(args, dims)
        # Shapes are aligned at their ends, so only a batched scalar lacks dimensions.
        rank = aval_of(args[0]).ndim + 1
        if dims[0] is None and 1 < rank != aval_of(data).ndim:
            data = broadcast_in_dim(data, (size,) + (1,) * (rank - 1), (0,))
        if dims[0] is None:
            keys = broadcast_in_dim(keys, (size, *aval_of(keys).shape), range(1, rank))
        return self.bind(keys, data), 0


class RandomBits(_OfKeys):
    """Uniform random bits from each key.  Shapes: key[s] -> uint<bit_width>[s, *shape]."""

    name = "random_bits"

    def abstract_eval(
        self, keys: AbstractValue, *, bit_width: int, shape: Shape, partitionable: bool = True
    ) -> ShapedArray:
        return shaped_array((*keys.shape, *shape), np.dtype(f"uint{bit_width}"))

    def lower(
        self, ctx: Any, keys: Any, *, bit_width: int, shape: Shape, partitionable: bool = True
    ) -> Any:
        generator = arranged(ctx.avals_in[0].dtype.impl, partitionable)
        return _lower_on_data(ctx, lambda data: generator.bits(data, bit_width, shape), keys)


key_reuse.consumes_keys.set((0,), RandomBits)


random_seed_p = RandomSeed()
random_wrap_p = RandomWrap()
random_unwrap_p = RandomUnwrap()
random_clone_p = RandomClone()
random_split_p = RandomSplit()
random_fold_in_p = RandomFoldIn()
random_bits_p = RandomBits()


def new_keys(keys: Any, dims: Shape) -> Any:
    """New keys from each of `keys`: key[s] -> key[s, *dims]."""
    return random_split_p.bind(keys, shape=dims, **_arrangement())


def new_bits(keys: Any, bit_width: int, dims: Shape) -> Any:
    """Random bits from each of `keys`: key[s] -> uint<bit_width>[s, *dims]."""
    return random_bits_p.bind(keys, bit_width=bit_width, shape=dims, **_arrangement())


def _arrangement() -> dict[str, bool]:
    return {} if config.threefry_partitionable.value else {"partitionable": False}


def _lower_on_data(ctx: Any, function: Any, *values: Any) -> Any:
    """Lowers a function of the integers underneath keys."""
    return module.lower_physical_function(ctx, lambda *xs: [function(*xs)], *values)[0]


def resolve_impl(impl: Any, name: str, dtype: Any = None) -> Generator:
    """The generator that a user means, by either of two arguments.

    Raises:
        TypeError: `impl` names no generator.
        ValueError: there is no such generator, or both arguments are given.
    """
    if impl is not None and dtype is not None:
        error(ValueError, name, "give either impl or dtype.", got=f"{impl!r}, {dtype!r}")
    chosen = dtype if impl is None else impl
    if chosen is None:
        chosen = config.default_prng_impl.value
    if isinstance(chosen, KeyDType):
        return chosen.impl
    if isinstance(chosen, Generator):
        return chosen
    facts: dict[str, Any] = {"got": repr(chosen), "expected": ", ".join(map(repr, GENERATORS))}
    if not isinstance(chosen, str):
        error(TypeError, name, "a generator is named by a string.", **facts)
    if chosen not in GENERATORS:
        error(ValueError, name, "unknown random number generator.", **facts)
    return GENERATORS[chosen]


def _make(seed: Any, impl: Any, name: str, dtype: Any = None) -> Any:
    offset = config.random_seed_offset.value
    if isinstance(seed, (int, np.int64, np.uint64)):
        seed, offset = _known_seed(seed, offset, name), 0
    aval = aval_of(seed)
    if dtypes.is_extended(aval.dtype):
        error(TypeError, name, "a key was given in place of a seed.", got=str(aval))
    if aval.shape:
        error(TypeError, name, "needs one seed.", got=str(aval), fix="minijax.vmap over the seeds")
    if not dtypes.issubdtype(aval.dtype, np.integer):
        error(TypeError, name, "the seed must be an integer.", got=str(aval))
    if offset:
        seed = seed + offset
    return random_seed_p.bind(seed, impl=resolve_impl(impl, name, dtype))


def _known_seed(seed: int | np.integer[Any], offset: int, name: str) -> Any:
    if isinstance(seed, int) and not -(2**63) <= seed < 2**63:
        error(OverflowError, name, "the seed does not fit 64 bits.", got=str(seed))
    wide = np.array((int(seed) + offset) & (2**64 - 1), np.uint64)
    if config.enable_x64.value:
        return wide.view(np.int64)[()]
    return wide.astype(np.uint32).view(np.int32)[()]


def key(seed: int | ArrayLike, *, impl: Any = None, dtype: DTypeLike | None = None) -> Array:
    """A random key from an integer.

    Shapes: int[] -> key[].

    Raises:
        TypeError: the seed is not an integer scalar.
        ValueError: there is no generator called `impl`.

    Example:
        >>> key = jax.random.key(0)
        >>> key.shape, key.dtype
        ((), key<fry>)
        >>> jax.random.bits(key) == jax.random.bits(jax.random.key(0))
        Array(True, dtype=bool)
    """
    return _make(seed, impl, "random.key", dtype)


def PRNGKey(seed: int | ArrayLike, *, impl: Any = None) -> Array:  # noqa: N802  mirrors jax.random.PRNGKey
    """An old-style random key from an integer.

    Shapes: int[] -> u32[2], or u32[4].

    Raises:
        TypeError: the seed is not an integer scalar.
        ValueError: there is no generator called `impl`.

    Example:
        >>> jax.random.PRNGKey(7)
        Array([0, 7], dtype=uint32)
    """
    return random_unwrap_p.bind(_make(seed, impl, "random.PRNGKey"))


def as_keys(name: str, keys: Any, *, single: bool = True) -> tuple[Any, bool]:
    """Keys of the new style, and whether they were given in the old style.

    Args:
        name: the public function that the user called.
        keys: what the user gave.
        single: whether it must be one key.

    Raises:
        TypeError: `keys` are not random keys.
        ValueError: there are several where one is needed.
    """
    if type(keys) is ExtendedArray and len(keys.buffer.aval.shape) == 1:
        return keys, False
    aval = aval_of(keys) if core_aval.has_aval(keys) else None
    generator = GENERATORS[config.default_prng_impl.value]
    if aval is not None and dtypes.issubdtype(aval.dtype, dtypes.prng_key):
        wrapped, old = keys, False
    elif aval is not None and aval.dtype == _UINT32 and aval.shape[-1:] == (generator.words,):
        _check_old_style(name)
        wrapped, old = random_wrap_p.bind(keys, impl=generator), True
    else:
        got = f"{keys!r} of type {type(keys).__name__}" if aval is None else str(aval)
        expected = "a key made by minijax.random.key or minijax.random.PRNGKey"
        fix = f"{name}(key, ...), where key = random.key(seed)"
        problem = "the first argument, `key`, is not a random key."
        error(TypeError, name, problem, got={"key": got}, expected=expected, fix=fix)
    if single and aval_of(wrapped).shape:
        got = f"an array of keys of shape {aval_of(wrapped).shape}"
        error(ValueError, name, "needs one key.", got=got, fix="minijax.vmap over the keys")
    return wrapped, old


def _check_old_style(name: str) -> None:
    """Refuses an old-style key, or warns of it, where the user wants that.

    Raises:
        ValueError: `minijax.legacy_prng_key` is "error".
    """
    mode = config.legacy_prng_key.value
    if mode == "allow":
        return
    expected = f"a key made by minijax.random.key, because legacy_prng_key is {mode!r}"
    fix = "random.key(seed) in place of random.PRNGKey(seed), or random.wrap_key_data(key)"
    if mode == "error":
        error(ValueError, name, "old-style keys are refused.", expected=expected, fix=fix)
    warn(UserWarning, name, "an old-style key was given.", expected=expected, fix=fix)


def _in_style(keys: Any, old: bool) -> Any:
    return random_unwrap_p.bind(keys) if old else keys


def split(key: ArrayLike, num: int | Sequence[int] = 2) -> Array:
    """New keys from one key, which should not be used again.

    Shapes: key[] -> key[num].

    Example:
        >>> key, other = jax.random.split(jax.random.key(0))
        >>> jax.random.bits(key) == jax.random.bits(other)
        Array(False, dtype=bool)
        >>> jax.random.split(jax.random.key(0), (2, 3)).shape
        (2, 3)
    """
    keys, old = as_keys("random.split", key)
    dims = canonicalize_shape(num, "random.split num")
    return _in_style(new_keys(keys, dims), old)


def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """A new key from a key and an integer.

    Shapes: key[], int[] -> key[].

    Raises:
        OverflowError: a Python integer does not fit 32 bits.
        TypeError: `data` is not an integer scalar.

    Example:
        >>> key = jax.random.key(0)
        >>> keys = jax.vmap(lambda step: jax.random.fold_in(key, step))(jnp.arange(3))
        >>> jnp.unique(jax.vmap(jax.random.bits)(keys)).size
        3
    """
    keys, old = as_keys("random.fold_in", key)
    if isinstance(data, int):
        if not 0 <= data < 2**32:
            error(OverflowError, "random.fold_in", "the data must fit 32 bits.", got=str(data))
        return _in_style(random_fold_in_p.bind(keys, np.uint32(data)), old)
    aval = aval_of(data)
    if aval.shape or not dtypes.issubdtype(aval.dtype, np.integer):
        error(TypeError, "random.fold_in", "the data must be an integer scalar.", got=str(aval))
    number = creation.convert_element_type(data, _UINT32)
    return _in_style(random_fold_in_p.bind(keys, number), old)


def key_data(keys: ArrayLike) -> Array:
    """The integers underneath keys.

    Shapes: key[s] -> u32[s, words].

    Example:
        >>> jax.random.key_data(jax.random.key(7))
        Array([0, 7], dtype=uint32)
    """
    wrapped, old = as_keys("random.key_data", keys, single=False)
    return cast(Array, keys) if old else random_unwrap_p.bind(wrapped)


def wrap_key_data(
    key_bits_array: ArrayLike, *, impl: Any = None, dtype: DTypeLike | None = None
) -> Array:
    """Integers as keys.

    Shapes: u32[s, words] -> key[s].

    Raises:
        TypeError: the array is not u32[..., words].

    Example:
        >>> key = jax.random.wrap_key_data(np.array([0, 7], np.uint32))
        >>> jax.random.bits(key) == jax.random.bits(jax.random.key(7))
        Array(True, dtype=bool)
    """
    chosen = resolve_impl(impl, "random.wrap_key_data", dtype)
    return random_wrap_p.bind(key_bits_array, impl=chosen)


def key_impl(keys: Any) -> Any:
    """The name of the generator of keys.

    Example:
        >>> jax.random.key_impl(jax.random.key(0, impl="rbg"))
        'rbg'
    """
    wrapped, _ = as_keys("random.key_impl", keys, single=False)
    name: str = aval_of(wrapped).dtype.impl.name
    return name


def key_dtype(impl_spec: Any = None) -> np.dtype[Any]:
    """The dtype of the keys of a generator.

    Example:
        >>> jax.random.key_dtype("threefry2x32") == jax.random.key(0).dtype
        True
    """
    # An extended dtype, which stands for one of NumPy's wherever a type is asked for.
    dtype: Any = _KEY_DTYPES[resolve_impl(impl_spec, "random.key_dtype")]
    return dtype


def clone(key: ArrayLike) -> Array:
    """The same key again, with the promise that using it twice is meant.

    Example:
        >>> key = jax.random.key(0)
        >>> with jax.debug_key_reuse(True):
        ...     same = jax.random.bits(key) == jax.random.bits(jax.random.clone(key))
        >>> same
        Array(True, dtype=bool)
    """
    keys, old = as_keys("random.clone", key, single=False)
    return _in_style(random_clone_p.bind(keys), old)


F = TypeVar("F", bound=Callable[..., Any])


class Kind(NamedTuple):
    """Which dtypes the samples of a distribution may have.

    Attributes:
        accepts: the class of NumPy that a dtype must belong to; None for any dtype.
        word: what errors call it.
        default: gives the dtype for None.
    """

    accepts: type | None
    word: str
    default: Callable[[], np.dtype[Any]]


FLOAT = Kind(np.floating, "float", dtypes.default_float_dtype)
INEXACT = Kind(np.inexact, "float or complex", dtypes.default_float_dtype)
INTEGER = Kind(np.integer, "an integer", dtypes.default_int_dtype)
UNSIGNED = Kind(np.unsignedinteger, "an unsigned integer", dtypes.default_uint_dtype)
ANY_OR_INTEGER = Kind(None, "", dtypes.default_int_dtype)

_STATIC = ("shape", "dtype", "mode")


def distribution(
    kind: Kind | None = FLOAT, params: str = "", *, same_dtype: bool = False
) -> Callable[[F], F]:
    """Decorator: makes the formula of samples the public function of a distribution.

    The formula has the signature of the public function.  What it gets has been checked: a key,
    parameters that fit the shape, a shape that is a tuple, a dtype of NumPy, a mode.

    Args:
        kind: which dtypes the samples may have; None where they cannot be chosen.
        params: the names of the parameters that the shape must hold.
        same_dtype: whether parameters must not be of wider dtypes than the samples.
    """

    def decorate(formula: F) -> F:
        name, checked_params = formula.__name__, params.split()
        signature = inspect.signature(formula).parameters
        names = [n for n in signature if n not in ("key", "out_sharding")]
        defaults = {n: signature[n].default for n in names if signature[n].default is not _EMPTY}
        static = [n for n in _STATIC if n in names and n not in checked_params]
        samples = one_program(static)(formula)

        @functools.wraps(samples)
        def checked(key: ArrayLike, *args: Any, **kwargs: Any) -> Any:
            keys, _ = as_keys(f"random.{name}", key)
            target = kwargs.pop("out_sharding", None) if "out_sharding" in signature else None
            given = {**defaults, **dict(zip(names, args, strict=False)), **kwargs}
            if len(given) != len(names) or not kwargs.keys().isdisjoint(names[: len(args)]):
                explain_keyword(f"random.{name}", formula, kwargs)
                return formula(key, *args, **kwargs)  # Python says which argument is wrong.
            if kind is not None:
                given["dtype"] = check_dtype(name, given["dtype"], kind)
            values = [check_array(name, given[param]) for param in checked_params]
            given.update(zip(checked_params, values, strict=True))
            if same_dtype:
                check_params(name, given["dtype"], *values)
            given["shape"] = check_shape(name, given["shape"], *values)
            if "mode" in static:
                given["mode"] = check_mode(name, given["mode"])
            out = samples(keys, *[given[n] for n in names])
            return on_device(out, None, target, name=f"random.{name}")

        return cast(F, checked)

    return decorate


_EMPTY = inspect.Parameter.empty


class Sampler(Protocol):
    """A distribution without parameters: a function of a key, a shape and a dtype."""

    def __call__(
        self,
        key: ArrayLike,
        shape: ShapeLike = (),
        dtype: DTypeLike | None = None,
        *,
        out_sharding: ShardingLike = None,
    ) -> Array:
        """The samples."""


_OF_SAMPLERS = inspect.signature(functools.partial(Sampler.__call__, cast(Sampler, None)))


def standard(kind: Kind) -> Callable[[Callable[[Any, Shape, np.dtype[Any]], Array]], Sampler]:
    """Decorator: `distribution`, where there are no parameters; the signature is a sampler's."""

    def decorate(formula: Callable[[Any, Shape, np.dtype[Any]], Array]) -> Sampler:
        vars(formula)["__signature__"] = _OF_SAMPLERS
        formula.__annotations__ = Sampler.__call__.__annotations__
        return distribution(kind)(cast(Sampler, formula))

    return decorate


def unchecked(function: F) -> F:
    """The formula of a distribution, for checked arguments; it takes arrays of keys as well."""
    return cast(F, vars(function)["__wrapped__"])


def sampler(name: str) -> Callable[[F], F]:
    """Decorator for public functions: checks the key, which comes first, and hides nothing else."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def sample(key: ArrayLike, *args: Any, **kwargs: Any) -> Any:
            keys, _ = as_keys(f"random.{name}", key)
            out = function(keys, *args, **kwargs)
            return on_device(out, None, kwargs.get("out_sharding"), name=f"random.{name}")

        return cast(F, sample)

    return decorate


def check_shape(name: str, given: ShapeLike | None, *params: ArrayLike) -> Shape:
    """The shape of samples: as given, or that of the parameters where None.

    Raises:
        ValueError: the parameters do not fit the shape.
    """
    shapes = [aval_of(param).shape for param in params]
    needed = lax_shape.broadcast_shapes(*shapes) if any(shapes) else ()
    if given is None and params:
        return needed
    dims = canonicalize_shape(given, f"random.{name} shape")
    if not needed:
        return dims
    lead = len(dims) - len(needed)
    if lead < 0 or any(n not in (1, d) for n, d in zip(needed, dims[lead:], strict=True)):
        problem = "the parameters do not fit the shape."
        got = {"shape": dims, "parameters": needed}
        expected = "parameters that broadcast to the shape"
        error(IncompatibleShapesError, f"random.{name}", problem, got=got, expected=expected)
    return dims


def check_dtype(name: str, dtype: DTypeLike | None, kind: Kind) -> np.dtype[Any]:
    """The dtype that a user means, which must be of a kind.

    Raises:
        ValueError: it is not.
    """
    if dtype is None:
        return kind.default()
    wanted = dtypes.canonicalize_user_dtype(dtype, f"random.{name}")
    if kind.accepts is not None and not dtypes.issubdtype(wanted, kind.accepts):
        problem = f"the dtype must be {kind.word}."
        error(ValueError, f"random.{name}", problem, got=f"dtype: {wanted}")
    return cast("np.dtype[Any]", wanted)


def check_params(name: str, dtype: np.dtype[Any], *params: ArrayLike) -> None:
    """Refuses parameters that the dtype of the samples cannot hold.

    Raises:
        TypePromotionError: there is one.
    """
    for param in params:
        with lenient():
            fits = dtypes.result_type(param, dtype) == dtype
        if not fits:
            problem = "the dtype of the samples cannot hold that of a parameter."
            got = {"parameter": aval_of(param), "dtype": dtype}
            fix = "parameter.astype(dtype)"
            error(dtypes.TypePromotionError, f"random.{name}", problem, got=got, fix=fix)


def check_mode(name: str, mode: str | None) -> str:
    """The mode of a sampler: "low" by default.

    Raises:
        ValueError: it is neither "low" nor "high".
    """
    check_choice(f"random.{name}", "mode", mode, (None, "low", "high"))
    return mode or ("high" if config.high_dynamic_range_gumbel.value else "low")
