"""What laws of collectives are tried on: a mesh, axes, a dtype and a seed; and every collective.

Input: fields, or Hypothesis's choices.  Output: a `Case`, which makes blocks, permutations and
groups, runs per-device functions, and compares them; and, for laws that hold of all collectives,
each of these as a function of one device's block.
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
    """What a law says: its docstring up to the facts about it, in one line."""
    text = (law.__doc__ or "").partition("\n\n    Source:")[0]
    return " ".join(text.split())


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
        fitting = [s for s in SIZES if math.prod(s) <= max_devices]
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
