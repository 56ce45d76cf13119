"""Hypothesis strategies for what programs and collectives are given, which shrink to small cases.

They give types, trees, arrays and blocks; meshes, partition specs and shardings; axes,
permutations, groups and sizes of ragged exchanges.  Arrays print as short code.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import Phase, given, settings, strategies
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from minijax.core import dtypes as core_dtypes
from minijax.core.aval import ShapedArray, shaped_array
from minijax.core.errors import error
from minijax.core.meshes import AxisType, MeshAxes, PartitionSpec
from minijax.runtime import client
from minijax.runtime.annotations import DTypeLike
from minijax.sharding.mesh import Mesh
from minijax.testing import pictures
from minijax.testing.numpy_model import Block

DTYPES = ("float32", "int32", "bool", "uint8")


def pattern(shape: Sequence[int], dtype: str, step: int = 5) -> str:
    """An array as code: multiples of `step`, modulo a prime, about zero.

    Source: of the project; JAX has nothing like it.

    Args:
        shape: of the array.
        dtype: the name of its dtype.
        step: a number from 1 to 12.

    Example:
        >>> from minijax.testing import strategies
        >>> strategies.pattern((2, 3), 'int32')
        "(np.arange(6).reshape((2, 3)) * 5 % 13 - 6).astype('int32')"
    """
    count = f"np.arange({math.prod(shape)})"
    shaped = count if len(shape) == 1 else f"{count}.reshape({tuple(shape)})"
    varied = f"{shaped} * {step} % 13"
    if dtype == "bool":
        return f"({varied} > 5)"
    if dtype.startswith("u"):
        return f"({varied}).astype('{dtype}')"
    if dtype.startswith("int"):
        return f"({varied} - 6).astype('{dtype}')"
    return f"(({varied} - 6) / 4).astype('{dtype}')"


def array(shape: Sequence[int], dtype: DTypeLike, step: int = 5) -> Any:
    """The array that `pattern` writes down, of any dtype.

    Source: of the project; JAX has nothing like it.

    Example:
        >>> from minijax.testing import strategies
        >>> strategies.array((2, 3), 'int32')
        array([[-6, -1,  4],
               [-4,  1,  6]], dtype=int32)
    """
    found = np.dtype(dtype)
    values = np.arange(math.prod(shape)).reshape(tuple(shape)) * step % 13
    if found == np.bool_:
        return values > 5
    if found.kind == "u":
        return values.astype(found)
    if found.kind == "i":
        return (values - 6).astype(found)
    real = (values - 6) / 4
    if found.kind == "c":
        return (real + 1j * ((values * 3) % 5 - 2)).astype(found)
    return real.astype(found)


def shapes(*, max_rank: int = 3, sizes: Sequence[int] = (2, 1, 3, 4)) -> Any:
    """Small shapes.

    Source: a strategy of Hypothesis.

    Args:
        max_rank: how many dimensions at most.
        sizes: the sizes of dimensions, the simplest first.

    Example:
        >>> from hypothesis import find
        >>> from minijax.testing import strategies
        >>> find(strategies.shapes(), lambda shape: len(shape) == 2)
        (2, 2)
    """
    return strategies.lists(strategies.sampled_from(list(sizes)), max_size=max_rank).map(tuple)


@strategies.composite
def avals(
    draw: st.DrawFn, *, dtypes: Sequence[str] = DTYPES, max_rank: int = 3, weak: bool = False
) -> ShapedArray:
    """Types of arrays.

    Source: a strategy of Hypothesis.

    Args:
        draw: given by Hypothesis.
        dtypes: names of dtypes to choose from.
        max_rank: how many dimensions at most.
        weak: whether they may be those of Python numbers.

    Example:
        >>> from hypothesis import find
        >>> from minijax.testing import strategies
        >>> find(strategies.avals(), lambda aval: aval.ndim == 1)
        ShapedArray(float32[2])
    """
    dtype = core_dtypes.canonicalize_dtype(draw(strategies.sampled_from(list(dtypes))))
    shape = draw(shapes(max_rank=max_rank))
    return shaped_array(shape, dtype, weak_type=weak and draw(strategies.booleans()))


def trees(leaves: st.SearchStrategy[Any], *, max_leaves: int = 5) -> Any:
    """Nested tuples, lists and dicts of leaves; a leaf alone is the simplest.

    Source: a strategy of Hypothesis.

    Args:
        leaves: a strategy of leaves.
        max_leaves: how many there are at most.

    Example:
        >>> from hypothesis import find
        >>> from minijax.testing import strategies
        >>> from hypothesis import strategies as st
        >>> find(strategies.trees(st.integers()), lambda tree: isinstance(tree, dict) and tree)
        {'a': 0}
    """
    return strategies.recursive(
        leaves,
        lambda children: (
            strategies.lists(children, max_size=3)
            | strategies.lists(children, max_size=3).map(tuple)
            | strategies.dictionaries(strategies.sampled_from("abc"), children, max_size=3)
        ),
        max_leaves=max_leaves,
    )


@strategies.composite
def per_device_inputs(
    draw: st.DrawFn,
    sizes: Mapping[Any, int],
    *,
    shape: Sequence[int] | None = None,
    dtypes: Sequence[str] = ("float32", "int32"),
) -> Any:
    """Arrays with one block for each device: a dimension for each mesh axis, then a block's own.

    A value shows whose it is: what is before the point of a float, or before the last digits of an
    integer, is the number of the device, and the rest is the place in its block, counted from one.
    2.25 and 21 are the first elements of device 2.  Any of them may be negative, and unsigned ones
    have a further digit, so that the greatest may be anybody's.

    Source: a strategy of Hypothesis.

    Args:
        draw: given by Hypothesis.
        sizes: of the mesh, by names of axes; `mesh.shape`, for example.
        shape: of one block; any small one by default.
        dtypes: names of dtypes to choose from.

    Example:
        >>> from hypothesis import find
        >>> from minijax.testing import strategies
        >>> find(strategies.per_device_inputs({"x": 2}, shape=(3,)), lambda x: True)
        array([[0.25, 0.5 , 0.75],
               [1.25, 1.5 , 1.75]], dtype=float32)
        >>> find(strategies.per_device_inputs({"x": 2}, dtypes=["int32"]), lambda x: x.size > 2)
        array([[ 1,  2],
               [11, 12]], dtype=int32)
    """
    block = draw(shapes(max_rank=2)) if shape is None else tuple(shape)
    dtype = np.dtype(draw(strategies.sampled_from(list(dtypes))))
    found = (*sizes.values(), *block)
    # Counted from the last place, so that it keeps its sign where shrinking takes away others.
    drawn = np.frombuffer(draw(strategies.binary(min_size=8, max_size=8)), np.uint8)
    bits = np.resize(np.unpackbits(drawn, bitorder="little"), math.prod(found))[::-1]
    bits = bits.reshape(found).astype(bool)
    if dtype == np.bool_:
        return bits
    return _marked(np.arange(math.prod(found)).reshape(found), math.prod(block), dtype, bits)


def _marked(index: Block, elements: int, dtype: np.dtype[Any], bits: Block) -> Any:
    """For each place in an array of blocks a number that shows the device and the element."""
    # Short dtypes have room for few of them.
    places = max(1, min(elements, 7 if dtype.itemsize < 4 else elements))
    device, place = index // max(1, elements), index % max(1, elements) % places + 1
    if dtype.kind in "iu":
        digits = 10 ** len(str(places))
        values = device * digits + place
        other = values + 10 * digits if dtype.kind == "u" else -values
    else:
        # A power of two below the point, so that sums are exact.
        values = device + place / 2 ** places.bit_length()
        other = -values
    found = np.where(bits, other, values)
    return (found * (1 + 1j) if dtype.kind == "c" else found).astype(dtype)


SHAPES_OF_MESHES: tuple[tuple[int, ...], ...] = (
    (1,),
    (2,),
    (1, 2),
    (2, 1),
    (4,),
    (2, 2),
    (8,),
    (2, 4),
    (4, 2),
    (2, 2, 2),
)


@strategies.composite
def meshes(
    draw: st.DrawFn,
    devices: Sequence[Any],
    axis_types: Sequence[AxisType] = (AxisType.Auto,),
    *,
    shapes: Sequence[tuple[int, ...]] = SHAPES_OF_MESHES,
) -> Mesh:
    """Meshes over some of `devices`, from one device to eight, of one to three axes.

    Source: a strategy of Hypothesis.

    Args:
        draw: given by Hypothesis.
        devices: the devices to choose from; the first ones are taken, in any order.
        axis_types: the types that axes may have.
        shapes: the sizes that axes may have.

    Example:
        >>> from hypothesis import find
        >>> from minijax.testing import strategies
        >>> dict(find(strategies.meshes(jax.devices()), lambda mesh: mesh.size == 4).shape)
        {'x': 4}
    """
    possible = [shape for shape in shapes if math.prod(shape) <= len(devices)]
    shape = draw(strategies.sampled_from(possible))
    order = draw(strategies.permutations(range(math.prod(shape))))
    box = np.empty(len(order), object)
    box[:] = [devices[i] for i in order]
    types = tuple(draw(strategies.sampled_from(axis_types)) for _ in shape)
    return Mesh(box.reshape(shape), tuple("xyz"[: len(shape)]), types)


@strategies.composite
def specs(draw: st.DrawFn, mesh: MeshAxes, shape: Sequence[int]) -> PartitionSpec:
    """Specs on `mesh` that cut an array of this shape into equal parts.

    Every such spec may come: several axes on a dimension in any order, trailing entries left out.

    Source: a strategy of Hypothesis.

    Example:
        >>> from hypothesis import find
        >>> from minijax.testing import strategies
        >>> mesh = jax.sharding.AbstractMesh((2, 2), ("x", "y"))
        >>> find(strategies.specs(mesh, (4, 3)), lambda spec: len(set(spec.names())) == 2)
        P(('x', 'y'), None)
    """
    entries: list[Any] = [[] for _ in shape]
    for name in draw(strategies.permutations(mesh.axis_names)):
        size = mesh.axis_size(name)
        fitting = [
            dim
            for dim, length in enumerate(shape)
            if length % (size * math.prod(map(mesh.axis_size, entries[dim]))) == 0
        ]
        dim = draw(strategies.sampled_from([None, *fitting]))
        if dim is not None:
            entries[dim].append(name)
    found = [tuple(names) or None for names in entries]
    while found and found[-1] is None and draw(strategies.booleans()):
        found.pop()
    return PartitionSpec(*found)


partition_specs = specs


@strategies.composite
def axis_subsets(draw: st.DrawFn, names: Sequence[str], *, max_size: int = 3) -> tuple[str, ...]:
    """Some of these names, at least one, in any order; one alone is the simplest.

    Source: a strategy of Hypothesis.

    Args:
        draw: given by Hypothesis.
        names: the names to choose from.
        max_size: how many at most.

    Example:
        >>> from hypothesis import find
        >>> from minijax.testing import strategies
        >>> find(strategies.axis_subsets(["x", "y"]), lambda axes: len(axes) == 2)
        ('x', 'y')
    """
    first = draw(strategies.sampled_from(list(names)))
    if len(names) == 1 or max_size == 1 or not draw(strategies.booleans()):
        return (first,)
    order = draw(strategies.permutations(list(names)))
    count = draw(strategies.integers(2, min(len(names), max_size)))
    return tuple(order[:count])


@strategies.composite
def axis_index_groups(draw: st.DrawFn, size: int, *, equal: bool = True) -> list[list[int]]:
    """Groups of the positions along an axis: each position in one group, in any order.

    Source: a strategy of Hypothesis.

    Args:
        draw: given by Hypothesis.
        size: how long the axis is.
        equal: whether all groups are of one size; otherwise they may be of any.

    Example:
        >>> from hypothesis import find
        >>> from minijax.testing import strategies
        >>> find(strategies.axis_index_groups(4), lambda groups: len(groups) == 2)
        [[0, 1], [2, 3]]
    """
    order = draw(strategies.permutations(range(size)))
    if equal:
        divisors = [d for d in range(1, size + 1) if size % d == 0]
        length = draw(strategies.sampled_from(divisors[::-1]))
        return [list(order[i : i + length]) for i in range(0, size, length)]
    cuts = sorted(draw(strategies.sets(strategies.integers(1, size - 1)))) if size > 1 else []
    bounds = [0, *cuts, size]
    return [list(order[a:b]) for a, b in itertools.pairwise(bounds)]


@strategies.composite
def permutations(draw: st.DrawFn, size: int, *, partial: bool = True) -> list[tuple[int, int]]:
    """Pairs (source, destination) of positions, as `ppermute` takes them; a ring is the simplest.

    Source: a strategy of Hypothesis.

    Args:
        draw: given by Hypothesis.
        size: how long the axis is.
        partial: whether some positions may send, or receive, nothing.

    Example:
        >>> from hypothesis import find
        >>> from minijax.testing import strategies
        >>> find(strategies.permutations(3), lambda pairs: True)
        [(0, 1), (1, 2), (2, 0)]
    """
    ring = [(i, (i + 1) % size) for i in range(size)]
    if not draw(strategies.booleans()):
        pairs = ring
    else:
        order = draw(strategies.permutations(range(size)))
        pairs = list(enumerate(order))
    if partial and size > 1 and draw(strategies.booleans()):
        count = draw(strategies.integers(1, size - 1))
        pairs = pairs[:count]
    return pairs


class RaggedSizes(NamedTuple):
    """The arguments of `ragged_all_to_all`, device by device: arrays of shape (devices, devices).

    Source: of the project; JAX has nothing like it.

    Attributes:
        input_offsets: where a device's block for another one begins.
        send_sizes: how long it is.
        output_offsets: where it begins on the receiver.
        recv_sizes: how long the blocks are that a device receives.
        operand_size: how long operands must be at least.
        output_size: how long outputs must be at least.

    Example:
        >>> from minijax.testing import strategies
        >>> strategies.RaggedSizes._fields[:4]
        ('input_offsets', 'send_sizes', 'output_offsets', 'recv_sizes')
    """

    input_offsets: Any
    send_sizes: Any
    output_offsets: Any
    recv_sizes: Any
    operand_size: int
    output_size: int


@strategies.composite
def ragged_sizes(draw: st.DrawFn, size: int, *, longest: int = 3) -> RaggedSizes:
    """Sizes and offsets of blocks that devices send each other; those that follow are disjoint.

    Source: a strategy of Hypothesis.

    Args:
        draw: given by Hypothesis.
        size: how many devices there are.
        longest: the size of a block at most.

    Example:
        >>> from hypothesis import find
        >>> from minijax.testing import strategies
        >>> find(strategies.ragged_sizes(2), lambda sizes: sizes.send_sizes.any()).recv_sizes
        array([[0, 0],
               [0, 1]], dtype=int32)
    """
    lengths = strategies.integers(0, longest)
    row = strategies.lists(lengths, min_size=size, max_size=size)
    send = np.array(draw(strategies.lists(row, min_size=size, max_size=size)), np.int32)
    starts = np.cumsum(send, 1, dtype=np.int32) - send
    # Receivers keep blocks in the order of the senders: column by column.
    places = np.cumsum(send, 0, dtype=np.int32) - send
    return RaggedSizes(
        input_offsets=starts,
        send_sizes=send,
        output_offsets=places,
        recv_sizes=send.T.copy(),
        operand_size=max(1, int(send.sum(1).max())),
        output_size=max(1, int(send.sum(0).max())),
    )


def given_mesh(
    *axis_names: str,
    shapes: Sequence[tuple[int, ...]] | None = None,
    max_devices: int = 8,
    **strategies: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: a test of Hypothesis, which gets meshes of devices on the host.

    It is `given` of Hypothesis: `settings`, `example`, `seed` and `reproduce_failure` may stand
    above or below it, further arguments are fixtures and parameters of pytest, and methods of
    classes are tests too.  The mesh is the argument called `mesh`, or the first where none is
    called so.  A report shows its sizes, `mesh={'x': 3}`, which `example` takes as well as a mesh;
    failures shrink to small ones.  Where one array of blocks was drawn, and `numpy.testing` has
    compared what is linear in it, the report says whose contribution is missing.

    Two of Hypothesis's defaults are left out, since tests compile programs: the deadline of 200 ms,
    and the phase `explain`.  Other deadlines and phases that `settings` asks for are in force.

    Source: of the project; JAX has nothing like it.

    Args:
        *axis_names: the names of axes; one to three axes called x, y and z by default.
        shapes: the sizes that axes may have; by default all with `max_devices` devices at most.
        max_devices: how many devices a mesh has at most.
        **strategies: further arguments of the test: Hypothesis strategies, or functions that make
            one for the sizes of the mesh, such as `per_device_inputs`.

    Returns:
        A decorator of tests.

    Raises:
        ValueError: no mesh has such axes.
        TypeError: the test takes no argument; or an example's mesh is none.

    Example:
        >>> from minijax.testing import given_mesh
        >>> @given_mesh("x")
        ... def test_that_a_sum_of_ones_counts_devices(mesh):
        ...     count = jax.shard_map(
        ...         lambda: lax.psum(np.int32(1), "x"), mesh=mesh, in_specs=(), out_specs=jax.P()
        ...     )
        ...     assert count() == mesh.size
        >>> test_that_a_sum_of_ones_counts_devices()
    """
    ranks = (len(axis_names),) if axis_names else (1, 2, 3)
    known = _shapes_up_to(max_devices) if shapes is None else tuple(shapes)
    fitting = [
        dict(zip(axis_names or "xyz", shape, strict=False))
        for shape in known
        if math.prod(shape) <= max_devices and len(shape) in ranks
    ]
    if not fitting:
        error(
            ValueError,
            "given_mesh",
            "no mesh has such axes.",
            got=f"axes {axis_names}, max_devices={max_devices}",
            expected="one to three axes" if shapes is None else f"axes as in one of {list(known)}",
            fix="shapes=[...], with the sizes that the axes may have",
        )

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        name = _mesh_argument(test)
        any_sizes = st.shared(st.sampled_from(fitting))
        last: list[tuple[Any, Any, BaseException]] = []

        @functools.wraps(test)
        def on_devices(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True  # pytest shows the lines of the test
            sizes = kwargs[name]
            needed = math.prod(sizes.values()) if isinstance(sizes, Mapping) else 1
            with client.cpu_devices(max(needed, max_devices)):
                try:
                    return test(*args, **{**kwargs, name: _mesh_of(sizes)})
                except AssertionError as failure:
                    last[:] = [(args, kwargs, failure)]
                    raise

        def in_terms(failure: BaseException) -> str | None:
            given_args, known, own = last.pop()
            blocks = {key: x for key, x in known.items() if isinstance(x, np.ndarray)}
            if own is not failure or len(blocks) != 1 or not isinstance(known[name], Mapping):
                return None
            ((key, block),) = blocks.items()
            return pictures.contributions(
                lambda x: on_devices(*given_args, **{**known, key: x}), block, known[name], failure
            )

        drawn = {key: _for_sizes(any_sizes, strategy) for key, strategy in strategies.items()}
        found: Any = given(**{name: any_sizes}, **drawn)(test)
        found.hypothesis.inner_test = on_devices
        # Without settings it only says, when it is called, which argument is wrong.
        has_settings = hasattr(found, "_hypothesis_internal_use_settings")
        return _with_own_defaults(found, in_terms) if has_settings else found

    return decorate


def _shapes_up_to(count: int) -> list[tuple[int, ...]]:
    """The sizes of all meshes of one to three axes, those of few devices first."""

    def of_rank(rank: int, count: int) -> list[tuple[int, ...]]:
        if rank == 0:
            return [()]
        return [
            (size, *rest)
            for size in range(1, count + 1)
            for rest in of_rank(rank - 1, count // size)
        ]

    return sorted((shape for rank in (1, 2, 3) for shape in of_rank(rank, count)), key=math.prod)


def _mesh_argument(test: Callable[..., Any]) -> str:
    """The name of a test's argument that is a mesh."""
    names = [name for name in inspect.signature(test).parameters if name not in ("self", "cls")]
    if not names:
        error(
            TypeError,
            "given_mesh",
            "the test takes no argument.",
            got=f"{getattr(test, '__name__', test)}()",
            expected="a mesh as the first argument, or as the one called mesh",
        )
    return "mesh" if "mesh" in names else names[0]


def _for_sizes(sizes: SearchStrategy[dict[str, int]], strategy: Any) -> Any:
    """A strategy, made for the sizes of each mesh where a function makes it."""
    return sizes.flatmap(lambda found: strategy(dict(found))) if callable(strategy) else strategy


def _mesh_of(sizes: Any) -> Mesh:
    """The mesh of the first devices on the host with some sizes, or one that an example has."""
    if isinstance(sizes, Mesh):
        return sizes
    if not isinstance(sizes, Mapping):
        error(
            TypeError,
            "given_mesh",
            "an example's mesh is neither a mesh nor sizes by names of axes.",
            got=repr(sizes),
            fix="{'x': 3}, for example",
        )
    own = client.devices("cpu")[: math.prod(sizes.values())]
    box = np.empty(len(own), object)
    box[:] = own
    return Mesh(box.reshape(tuple(sizes.values())), tuple(sizes))


def _with_own_defaults(
    test: Any, in_terms: Callable[[BaseException], str | None]
) -> Callable[..., Any]:
    """A test of Hypothesis without two defaults that do not suit programs that are compiled.

    The deadline, and the phase that looks for lines of Python which only failures run: those that
    it finds are of the compiler, and it traces each of a hundred further calls.

    What `in_terms` says of a counterexample is added to it.
    """

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        # What decorators above have left belongs to Hypothesis's own function.
        for name, value in vars(run).items():
            if "hypothesis" in name:
                setattr(test, name, value)
        chosen = vars(run)["_hypothesis_internal_use_settings"]
        stock = settings.get_profile("default")
        if chosen.deadline == stock.deadline:
            chosen = settings(chosen, deadline=None)
        if chosen.phases == stock.phases:
            chosen = settings(chosen, phases=set(chosen.phases) - {Phase.explain})
        test._hypothesis_internal_use_settings = chosen
        try:
            return test(*args, **kwargs)
        except AssertionError as failure:
            if text := in_terms(failure):
                failure.add_note(text)
            raise

    return run
