"""Laws of single collectives and of pairs of them, and the cases on which laws are tried.

Input of a law: a `Case`, made of fields or of Hypothesis's choices: a mesh, axes, a dtype and a
seed.  It makes blocks, permutations and groups, runs per-device functions, and compares them.
`operations` has, for laws that hold of all collectives, each of these as a function of one block.

The laws are numbers 1 to 11, and 21 to 24; the docstring of each states it.  A `block` is what one
device holds, n the number of devices along the axes of the case.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from minijax import lax
from minijax.core import tree
from minijax.runtime.array import Array
from minijax.testing import programs
from minijax.testing.programs import DeviceProgram, check_agree
from minijax.testing.strategies import arguments
from minijax.testing.strategies.device_programs import SIZES

Collective = Callable[..., Any]
"""A function of a block, of axes, and of further options such as groups."""

Axes = str | Sequence[str]
"""What collectives go over: one axis, or several in their order."""


class Collectives:
    """The functions of `minijax.lax`, of which some are replaced by a user's own.

    Source: of the project; JAX has nothing like it.

    Attributes:
        used: the names that were asked for.

    Example:
        >>> from minijax.testing import laws
        >>> collectives = laws.Collectives(psum=lambda x, axis_name: 2 * x)
        >>> collectives.psum(3, "x"), collectives.used
        (6, {'psum'})
    """

    def __init__(self, **own: Callable[..., Any]) -> None:
        self._own = own
        self.used: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.used.add(name)
        return self._own[name] if name in self._own else getattr(lax, name)

    def take(self, name: str, option: str) -> bool:
        """Whether a collective has an argument of some name, which a user's own may lack."""
        parameters = inspect.signature(getattr(self, name)).parameters
        return option in parameters


class Case:
    """One instance of the laws of collectives.

    Source: of the project; JAX has nothing like it.

    Attributes:
        sizes: the mesh: sizes by names of axes.
        axes: the axes that collectives go over, in their order.
        dtype: the name of the dtype of blocks.
        tiled: whether gathers, scatters and exchanges keep dimensions.
        engine: which of `programs.ENGINES` runs the functions.
        lax: the collectives that the laws are about.
        n: how many devices the axes have together.

    Example:
        >>> from minijax.testing import laws
        >>> case = laws.Case({"x": 2, "y": 3}, ("y",))
        >>> case.n, case.blocks(4).shape
        (3, (2, 3, 4))
        >>> [total] = case.run(lambda x: lax.psum(x, "y"), np.arange(6).reshape(2, 3, 1))
        >>> total[..., 0]
        array([[ 3,  3,  3],
               [12, 12, 12]], dtype=int32)
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        axes: Sequence[str],
        *,
        dtype: str = "int32",
        tiled: bool = False,
        seed: int = 0,
        engine: str = "oracle",
        collectives: Collectives | None = None,
    ) -> None:
        self.sizes = dict(sizes)
        self.axes = tuple(axes)
        self.dtype = dtype
        self.tiled = tiled
        self.seed = seed
        self.engine = engine
        self.lax = Collectives() if collectives is None else collectives
        self.n = math.prod(self.sizes[a] for a in self.axes)
        self.random = np.random.default_rng(seed)

    def __repr__(self) -> str:
        return (
            f"Case({self.sizes}, {self.axes}, dtype={self.dtype!r}, tiled={self.tiled}, "
            f"seed={self.seed}, engine={self.engine!r})"
        )

    def changed(self, **changes: Any) -> Case:
        """The same case but for some fields."""
        fields: dict[str, Any] = {
            "sizes": self.sizes,
            "axes": self.axes,
            "dtype": self.dtype,
            "tiled": self.tiled,
            "seed": self.seed,
            "engine": self.engine,
            "collectives": self.lax,
        }
        fields.update(changes)
        return Case(**fields)

    def blocks(self, *shape: int) -> Any:
        """A block of this shape for each device: stacked, one leading dimension for each axis."""
        step = int(self.random.integers(1, 13))
        return arguments.array((*self.sizes.values(), *shape), self.dtype, step)

    def permutation(self) -> list[int]:
        """A permutation of the positions along the axes."""
        return [int(i) for i in self.random.permutation(self.n)]

    def groups(self, size: int) -> list[list[int]]:
        """Groups, of one size, of the positions along an axis; several of several, if possible."""
        divisors = [d for d in range(2, size) if size % d == 0]
        length = int(self.random.choice(divisors or [1, size]))
        order = [int(i) for i in self.random.permutation(size)]
        return [order[i : i + length] for i in range(0, size, length)]

    def program(self, function: Callable[..., Any], *stacked: Any) -> DeviceProgram:
        """A function of one device's blocks, as a program on this mesh."""
        return programs.stacked(function, self.sizes, stacked)

    def run(self, function: Callable[..., Any], *stacked: Any) -> list[Any]:
        """The stacked results of a function of one device's blocks."""
        return programs.run(self.program(function, *stacked), self.engine)

    def check(
        self,
        law: Callable[..., Any],
        left: Callable[..., Any],
        right: Callable[..., Any],
        *stacked: Any,
    ) -> None:
        """Checks that two functions of one device's blocks are equal.

        Raises:
            AssertionError: they are not.
        """

        def both(*blocks: Any) -> list[Any]:
            sides = (tree.leaves(left(*blocks)), tree.leaves(right(*blocks)))
            counts.append(len(sides[0]))
            return [x for side in sides for x in side]

        counts: list[int] = []
        outs = self.run(both, *stacked)
        self.compare(law, outs[: counts[-1]], outs[counts[-1] :])

    def compare(self, law: Callable[..., Any], left: Sequence[Any], right: Sequence[Any]) -> None:
        """Checks that stacked results are equal.

        Raises:
            AssertionError: they are not.
        """
        sides = {"the left side": left, "the right side": right}
        check_agree(f"laws.{law.__name__}", sides, self, statement_of(law))


def statement_of(law: Callable[..., Any]) -> str:
    """Returns the law in one sentence, for reports: its docstring up to `Source:`."""
    # Python 3.13 removes the indentation of docstrings; getdoc does so on every version.
    text = (inspect.getdoc(law) or "").partition("\n\nSource:")[0]
    return " ".join(text.split())


# So that every number of devices from one to eight comes.
_FURTHER_SIZES = ((5,), (6,), (7,), (3, 2))


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    sizes: Mapping[str, int] | None = None,
    axes: Sequence[str] | None = None,
    dtypes: Sequence[str] = ("int32", "float32"),
    engines: Sequence[str] = ("oracle",),
    max_devices: int = 8,
) -> Case:
    """Cases for laws of collectives.

    Source: a strategy of Hypothesis.

    Args:
        draw: given by Hypothesis.
        sizes: the mesh; any of one to three axes by default.
        axes: the axes; any ordered subset by default.
        dtypes: names of dtypes to choose from.
        engines: names of `programs.ENGINES` to choose from.
        max_devices: how many devices meshes have at most.

    Example:
        >>> from hypothesis import find
        >>> from minijax.testing import laws
        >>> find(laws.cases(), lambda case: case.n == 4)
        Case({'x': 4}, ('x',), dtype='int32', tiled=False, seed=0, engine='oracle')
    """
    if sizes is None:
        fitting = [s for s in (*SIZES, *_FURTHER_SIZES) if math.prod(s) <= max_devices]
        sizes = dict(zip("xyz", draw(st.sampled_from(fitting)), strict=False))
    return Case(
        sizes,
        draw(arguments.axis_subsets(list(sizes))) if axes is None else axes,
        dtype=draw(st.sampled_from(list(dtypes))),
        tiled=draw(st.booleans()),
        seed=draw(st.integers(0, 99)),
        engine=draw(st.sampled_from(list(engines))),
    )


class Operation(NamedTuple):
    """A collective, with all but its operand given.

    Attributes:
        name: its name.
        apply: the function of a block, of axes, and of further options such as groups.
        shape: of the block.
        is_linear: whether it is linear.
        takes_groups: whether it takes `axis_index_groups`.
        is_ordered: whether positions along several axes follow the order of their names; otherwise
            that of the mesh.
    """

    name: str
    apply: Collective
    shape: tuple[int, ...]
    is_linear: bool = True
    takes_groups: bool = True
    is_ordered: bool = True


def operations(case: Case, members: int | None = None) -> dict[str, Operation]:
    """All collectives, by name.

    Args:
        case: says over how many devices, and whether they are tiled.
        members: how many devices communicate, if not all along the axes.
    """
    lax, tiled = case.lax, case.tiled
    n = case.n if members is None else members
    scattered = (3, 2 * n) if tiled else (3, n)
    split = (2 * n, 3) if tiled else (n, 3)
    order = list(case.random.permutation(case.n))
    pairs = [(i, int(d)) for i, d in enumerate(order)]
    source = int(case.random.integers(case.n))

    def gather(x: Array, axes: Axes, **options: Any) -> Any:
        return lax.all_gather(x, axes, axis=1, tiled=tiled, **options)

    def scatter(x: Array, axes: Axes, **options: Any) -> Any:
        return lax.psum_scatter(x, axes, scatter_dimension=1, tiled=tiled, **options)

    def exchange(x: Array, axes: Axes, **options: Any) -> Any:
        return lax.all_to_all(x, axes, 0, 1, tiled=tiled, **options)

    def permute(x: Array, axes: Axes) -> Any:
        return lax.ppermute(x, axes, pairs[1:] or pairs)

    def broadcast(x: Array, axes: Axes) -> Any:
        return lax.pbroadcast(x, axes, source)

    found = [
        Operation("psum", lax.psum, (2, 3)),
        Operation("pmean", lax.pmean, (2, 3)),
        Operation("all_gather", gather, (2, 3)),
        Operation("psum_scatter", scatter, scattered),
        Operation("all_to_all", exchange, split),
        Operation("ppermute", permute, (2, 3), takes_groups=False, is_ordered=False),
        Operation("pbroadcast", broadcast, (2, 3), takes_groups=False),
        Operation("pmax", lax.pmax, (2, 3), is_linear=False),
        Operation("pmin", lax.pmin, (2, 3), is_linear=False),
    ]
    return {operation.name: operation for operation in found}


def linear_operations(case: Case) -> list[Operation]:
    """The linear ones."""
    return [operation for operation in operations(case).values() if operation.is_linear]


def psum_gathers_scatter(case: Case) -> None:
    """psum(x) = all_gather(psum_scatter(x)) along one dimension, tiled or not.

    And psum_scatter(x) is the slice of psum(x) at axis_index.

    Source: law 1 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.psum_gathers_scatter(laws.Case({"x": 4}, ("x",)))
    """
    size = 2 * case.n if case.tiled else case.n
    dim = int(case.random.integers(2))
    block = size // case.n

    def scattered(x: Array) -> Any:
        return case.lax.psum_scatter(x, case.axes, scatter_dimension=dim, tiled=case.tiled)

    def own_slice(x: Array) -> Any:
        total = case.lax.psum(x, case.axes)
        start = case.lax.axis_index(case.axes) * block
        found = lax.dynamic_slice_in_dim(total, start, block, dim)
        return found if case.tiled else lax.squeeze(found, (dim,))

    x = case.blocks(*((size, 3) if dim == 0 else (3, size)))
    case.check(
        psum_gathers_scatter,
        lambda x: (case.lax.psum(x, case.axes), scattered(x)),
        lambda x: (
            case.lax.all_gather(scattered(x), case.axes, axis=dim, tiled=case.tiled),
            own_slice(x),
        ),
        x,
    )


def collectives_are_linear(case: Case) -> None:
    """f(a·x + b·y) = a·f(x) + b·f(y) for every linear collective f.

    Source: law 2 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.collectives_are_linear(laws.Case({"x": 4}, ("x",)))
    """
    a, b = np.asarray(3, case.dtype)[()], np.asarray(-2, case.dtype)[()]
    for operation in linear_operations(case):

        def left(x: Array, y: Array, f: Collective = operation.apply) -> Any:
            return f(x * a + y * b, case.axes)

        def right(x: Array, y: Array, f: Collective = operation.apply) -> Any:
            return f(x, case.axes) * a + f(y, case.axes) * b

        inputs = case.blocks(*operation.shape), case.blocks(*operation.shape)
        case.check(collectives_are_linear, left, right, *inputs)


def reductions_go_axis_by_axis(case: Case) -> None:
    """A reduction over several axes is one over each of them in turn, in any order.

    The same for psum, pmax and pmin.

    Source: law 3 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.reductions_go_axis_by_axis(laws.Case({"x": 4}, ("x",)))
    """

    def in_turn(reduce: Collective, x: Array, axes: Sequence[str]) -> Any:
        for axis in axes:
            x = reduce(x, axis)
        return x

    def reductions() -> list[Any]:
        return [case.lax.psum, case.lax.pmax, case.lax.pmin]

    case.check(
        reductions_go_axis_by_axis,
        lambda x: [r(x, case.axes) for r in reductions()] * 2,
        lambda x: [
            in_turn(r, x, axes) for axes in (case.axes, case.axes[::-1]) for r in reductions()
        ],
        case.blocks(2, 3),
    )


def mean_is_sum_by_size(case: Case) -> None:
    """pmean(x) = psum(x) / n; psum of a constant is n times it, so that psum(1) = axis_size.

    Source: law 4 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.mean_is_sum_by_size(laws.Case({"x": 4}, ("x",)))
    """
    constant = np.arange(4, dtype=case.dtype)

    def left(x: Array) -> Any:
        return (
            case.lax.pmean(x, case.axes),
            case.lax.psum(constant, case.axes),
            np.int32(case.lax.psum(1, case.axes)),
        )

    def right(x: Array) -> Any:
        return (
            case.lax.psum(x, case.axes) / case.n,
            constant * np.asarray(case.n, case.dtype),
            np.int32(case.lax.axis_size(case.axes)),
        )

    case.check(mean_is_sum_by_size, left, right, case.blocks(2, 3))


def extremes_mirror(case: Case) -> None:
    """pmax(x) = -pmin(-x); pmax(pmax(x)) = pmax(x); pmax(x) ≥ x ≥ pmin(x).

    Source: law 5 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.extremes_mirror(laws.Case({"x": 4}, ("x",)))
    """

    def left(x: Array) -> Any:
        most, least = case.lax.pmax(x, case.axes), case.lax.pmin(x, case.axes)
        bounds = lax.bitwise_and(lax.ge(most, x), lax.ge(x, least))
        return most, case.lax.pmax(most, case.axes), bounds

    def right(x: Array) -> Any:
        most = case.lax.pmax(x, case.axes)
        return -case.lax.pmin(-x, case.axes), most, lax.full_like(x, True, dtype=np.bool_)

    case.check(extremes_mirror, left, right, case.blocks(2, 3))


def positions_of_extremes(case: Case) -> None:
    """The block at pargmax(x) is pmax(x), element by element.

    No earlier position has it; the same for pargmin and pmin.

    Source: law 6 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.positions_of_extremes(laws.Case({"x": 4}, ("x",)))
    """
    axis = case.axes[0]

    def left(x: Array) -> Any:
        return [case.lax.pargmax(x, axis), case.lax.pargmin(x, axis)]

    def right(x: Array) -> Any:
        all_blocks = lax.all_gather(x, axis)
        return [lax.argmax(all_blocks, 0, np.int32), lax.argmin(all_blocks, 0, np.int32)]

    case.check(positions_of_extremes, left, right, case.blocks(4, 3) // 2)


def gather_holds_own_block(case: Case) -> None:
    """all_gather(x)[axis_index] = x.

    Over several axes it is, reshaped, the gather over the last of them, then over those before it.

    Source: law 7 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.gather_holds_own_block(laws.Case({"x": 4}, ("x",)))
    """

    def left(x: Array) -> Any:
        gathered = case.lax.all_gather(x, case.axes)
        at = case.lax.axis_index(case.axes)
        return lax.dynamic_index_in_dim(gathered, at, 0, keepdims=False), gathered

    def right(x: Array) -> Any:
        gathered = x
        for axis in reversed(case.axes):
            gathered = case.lax.all_gather(gathered, axis)
        return x, lax.reshape(gathered, (case.n, *x.shape))

    case.check(gather_holds_own_block, left, right, case.blocks(2, 3))


def exchange_inverts(case: Case) -> None:
    """all_to_all(s, c) then all_to_all(c, s) gives x back, tiled or not.

    So does pswapaxes twice; and all_gather(x) is the all_to_all of n copies of x.

    Source: law 8 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.exchange_inverts(laws.Case({"x": 4}, ("x",)))
    """
    size = 2 * case.n if case.tiled else case.n

    def left(x: Array, y: Array) -> Any:
        there = case.lax.all_to_all(x, case.axes, 0, 1, tiled=case.tiled)
        back = case.lax.all_to_all(there, case.axes, 1, 0, tiled=case.tiled)
        swapped = case.lax.pswapaxes(y, case.axes, 1)
        return back, case.lax.pswapaxes(swapped, case.axes, 1), case.lax.all_gather(x, case.axes)

    def right(x: Array, y: Array) -> Any:
        copies = lax.broadcast(x, (case.n,))
        return x, y, case.lax.all_to_all(copies, case.axes, 0, 0)

    case.check(exchange_inverts, left, right, case.blocks(size, 3), case.blocks(2, case.n))


def permutations_compose(case: Case) -> None:
    """ppermute by p then by q is ppermute by their composition.

    The inverse of p undoes it; the identity changes nothing; after a partial one, the sum over
    devices is that of what was sent.

    Source: law 9 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.permutations_compose(laws.Case({"x": 4}, ("x",)))
    """
    p, q = case.permutation(), case.permutation()
    there = [(i, p[i]) for i in range(case.n)]
    some = there[: max(1, case.n // 2)]
    # Positions along several axes are counted in the order of the mesh.
    axes = tuple(a for a in case.sizes if a in case.axes)

    def left(x: Array) -> Any:
        moved = case.lax.ppermute(x, axes, there)
        return (
            case.lax.ppermute(moved, axes, list(enumerate(q))),
            case.lax.ppermute(moved, axes, [(d, s) for s, d in there]),
            case.lax.ppermute(x, axes, [(i, i) for i in range(case.n)]),
            lax.psum(case.lax.ppermute(x, axes, some), axes),
        )

    def right(x: Array) -> Any:
        sends = np.isin(np.arange(case.n), [s for s, _ in some]).astype(case.dtype)
        own = lax.dynamic_index_in_dim(sends, lax.axis_index(axes), 0, keepdims=False)
        return (
            case.lax.ppermute(x, axes, [(i, q[p[i]]) for i in range(case.n)]),
            x,
            x,
            lax.psum(x * own, axes),
        )

    case.check(permutations_compose, left, right, case.blocks(2, 3))


def shuffles_compose(case: Case) -> None:
    """pshuffle by p then by q is pshuffle by i ↦ p[q[i]].

    pbroadcast is the sum of what is zero elsewhere, and doing it twice changes nothing.

    Source: law 10 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.shuffles_compose(laws.Case({"x": 4}, ("x",)))
    """
    p, q = case.permutation(), case.permutation()
    source = int(case.random.integers(case.n))

    def left(x: Array) -> Any:
        sent = case.lax.pbroadcast(x, case.axes, source)
        shuffled = case.lax.pshuffle(case.lax.pshuffle(x, case.axes, p), case.axes, q)
        return shuffled, sent, case.lax.pbroadcast(sent, case.axes, source)

    def right(x: Array) -> Any:
        is_source = lax.eq(case.lax.axis_index(case.axes), np.int32(source))
        kept = lax.select(lax.broadcast(is_source, x.shape), x, lax.full_like(x, 0))
        total = case.lax.psum(kept, case.axes)
        both = [p[i] for i in q]
        return case.lax.pshuffle(x, case.axes, both), total, total

    case.check(shuffles_compose, left, right, case.blocks(2, 3))


def ragged_generalizes_exchange(case: Case) -> None:
    """ragged_all_to_all with blocks of one size is the tiled all_to_all of dimension 0.

    Source: law 11 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.ragged_generalizes_exchange(laws.Case({"x": 4}, ("x",)))
    """
    axis = case.axes[0]
    n = case.sizes[axis]
    length = 2

    def left(x: Array) -> Any:
        offsets = np.arange(n, dtype=np.int32) * np.int32(length)
        sizes = np.full(n, length, np.int32)
        own = case.lax.axis_index(axis) * np.int32(length)
        places = lax.broadcast(own, (n,))
        return case.lax.ragged_all_to_all(
            x, lax.full_like(x, 0), offsets, sizes, places, sizes, axis_name=axis
        )

    def right(x: Array) -> Any:
        return case.lax.all_to_all(x, axis, 0, 0, tiled=True)

    case.check(ragged_generalizes_exchange, left, right, case.blocks(n * length, 3))


def start_and_done_are_one(case: Case) -> None:
    """A collective that is started and done later equals the one that is not.

    Whatever is computed in between.

    Source: law 21 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.start_and_done_are_one(laws.Case({"x": 4}, ("x",)))
    """
    size = 2 * case.n
    ring = [(i, (i + 1) % case.n) for i in range(case.n)]

    def left(x: Array) -> Any:
        todos = [
            case.lax.psum_start(x, case.axes),
            case.lax.all_gather_start(x, case.axes, axis=0, tiled=True),
            case.lax.psum_scatter_start(x, case.axes, scatter_dimension=0, tiled=True),
            case.lax.all_to_all_start(x, case.axes, 0, 0, tiled=True),
            case.lax.ppermute_start(x, case.axes, ring),
        ]
        between = x * x
        return [between, *(todo.done() for todo in todos)]

    def right(x: Array) -> Any:
        return [
            x * x,
            case.lax.psum(x, case.axes),
            case.lax.all_gather(x, case.axes, axis=0, tiled=True),
            case.lax.psum_scatter(x, case.axes, scatter_dimension=0, tiled=True),
            case.lax.all_to_all(x, case.axes, 0, 0, tiled=True),
            case.lax.ppermute(x, case.axes, ring),
        ]

    case.check(start_and_done_are_one, left, right, case.blocks(size, 3))


def summands_are_sums(case: Case) -> None:
    """A program with unreduced and reduced values equals the one that adds up at once.

    Source: law 22 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.summands_are_sums(laws.Case({"x": 4}, ("x",)))
    """
    size = 2 * case.n

    def left(x: Array) -> Any:
        parts = case.lax.pcast(x, case.axes, to="unreduced")
        whole = case.lax.pcast(
            case.lax.all_gather_reduced(x, case.axes, axis=0, tiled=True), case.axes, to="varying"
        )
        return (
            case.lax.unreduced_psum(parts + parts, case.axes),
            case.lax.unreduced_psum_scatter(parts, case.axes, scatter_dimension=0, tiled=True),
            whole,
        )

    def right(x: Array) -> Any:
        return (
            case.lax.psum(x, case.axes) + case.lax.psum(x, case.axes),
            case.lax.psum_scatter(x, case.axes, scatter_dimension=0, tiled=True),
            case.lax.all_gather(x, case.axes, axis=0, tiled=True),
        )

    case.check(summands_are_sums, left, right, case.blocks(size, 3))


def axis_of_one_changes_nothing(case: Case) -> None:
    """A collective over an axis of one device is the identity, for other dtypes than bool.

    Source: law 23 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.axis_of_one_changes_nothing(laws.Case({"x": 4}, ("x",)))
    """
    alone = case.changed(sizes={**case.sizes, "one": 1}, axes=("one",))

    def left(x: Array) -> Any:
        return (
            case.lax.psum(x, "one"),
            case.lax.pmax(x, "one"),
            case.lax.all_gather(x, "one", axis=0, tiled=True),
            case.lax.psum_scatter(x, "one", scatter_dimension=0, tiled=True),
            case.lax.all_to_all(x, "one", 0, 1, tiled=True),
            case.lax.ppermute(x, "one", [(0, 0)]),
        )

    def right(x: Array) -> Any:
        return [x] * 6

    alone.check(axis_of_one_changes_nothing, left, right, alone.blocks(2, 3))


def index_is_mixed_radix(case: Case) -> None:
    """axis_index of several axes is the number with those of each as its digits.

    The first is the most significant; the sum of all is n(n - 1) / 2.

    Source: law 24 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.index_is_mixed_radix(laws.Case({"x": 4}, ("x",)))
    """

    def left(x: Array) -> Any:
        index = case.lax.axis_index(case.axes)
        return index, case.lax.psum(index, case.axes)

    def right(x: Array) -> Any:
        number = np.int32(0)
        for axis in case.axes:
            number = number * np.int32(case.sizes[axis]) + case.lax.axis_index(axis)
        return number, np.int32(case.n * (case.n - 1) // 2)

    case.check(index_is_mixed_radix, left, right, case.blocks(1))
