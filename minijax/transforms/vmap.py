"""`vmap`: a function of one example becomes a function of a batch.

Input: a function of trees.  Output: the same over a new leading, or any other, dimension.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from minijax.core import config, source, tree, tree_errors
from minijax.core.aval import aval_of, has_aval
from minijax.core.errors import error
from minijax.core.operators import Avals
from minijax.interpreters import flattening, named_batching
from minijax.interpreters.structural import to_batch_dim
from minijax.lowering import eager
from minijax.transforms import vmap_primitive

if TYPE_CHECKING:
    from minijax.core.native import PyTreeDef

P = ParamSpec("P")
R = TypeVar("R")


def vmap(
    fun: Callable[P, R],
    in_axes: int | Sequence[Any] | None = 0,
    out_axes: object = 0,
    axis_name: Hashable = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable = None,
    sum_match: bool = False,
) -> Callable[P, R]:
    """Maps `fun` over a dimension of its arguments, all at once.

    Shapes: an argument leaf of shape s with axis a is seen by `fun` without dimension a; a result
        leaf gets a dimension of the batch's size at its out axis.

    Args:
        fun: a function of trees.
        in_axes: for each positional argument an int, None, or a tree prefix of them; keyword
            arguments are mapped over dimension 0.
        out_axes: the same for the results.
        axis_name: a name under which collectives in `fun` can refer to the batch.
        axis_size: the size of the batch; needed where no argument is mapped.
        spmd_axis_name: the mesh axis, or a tuple of axes, that the batch is split over: where `fun`
            places values, the batch dimension is.
        sum_match: accepted for compatibility.

    Raises:
        TypeError: in_axes is of the wrong kind.
        ValueError: sizes disagree, an axis is out of range, nothing is mapped, or a result is
            mapped where out_axes says None.

    Example:
        >>> jax.vmap(jnp.dot)(jnp.ones((5, 3)), jnp.ones((5, 3)))
        Array([3., 3., 3., 3., 3.], dtype=float32)
        >>> jax.vmap(lambda x, y: x + y, in_axes=(0, None))(jnp.arange(3), 10)
        Array([10, 11, 12], dtype=int32)
        >>> jax.vmap(lambda x: x, in_axes=1, out_axes=0)(jnp.ones((2, 3))).shape
        (3, 2)
    """
    eager.check_callable("vmap", fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (in_axes is None or type(in_axes) in (int, tuple, dict)):
        got = f"{in_axes!r} of type {type(in_axes).__name__}"
        expected = "an int, None, or a tuple with one entry for each positional argument"
        error(TypeError, "vmap", "in_axes has the wrong type.", got=got, expected=expected)
    _check_axis_leaves("in_axes", in_axes)
    _check_axis_leaves("out_axes", out_axes)
    mapped = _Mapped(fun, in_axes, out_axes, axis_name, axis_size, spmd_axis_name)

    @source.result_of(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        return mapped.call(args, kwargs)

    return call


class _Mapped(NamedTuple):
    """A function to map, and how."""

    function: Callable[..., Any]
    in_axes: Any
    out_axes: Any
    axis_name: Any
    axis_size: int | None
    spmd_axis_name: Any

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs the function once on whole batches."""
        fun = self.function
        leaves, in_tree = tree.flatten((args, kwargs))
        axes = self._axes_of(args, kwargs, in_tree, len(leaves))
        if None in axes and not all(map(has_aval, leaves)):
            held = [axis is None and not has_aval(x) for x, axis in zip(leaves, axes, strict=True)]
            if any(held):
                return self._call_holding(held, leaves, axes, in_tree)
        paths = functools.partial(_paths, fun, in_tree)
        avals = flattening.avals_of(leaves, paths, "vmap")
        dims, size = mapped_dims("vmap", axes, avals, paths, "are not mapped", self.axis_size)
        if size is None:
            problem = "no argument is mapped, so the size of the batch is unknown."
            error(ValueError, "vmap", problem, fix="map an argument (in_axes), or give axis_size")
        name = flattening.function_name(fun)
        flat = flattening.FlatFunction(fun, in_tree, name)
        names = {"axis_name": self.axis_name, "spmd_axis_name": self.spmd_axis_name}
        if config.checking.value:
            info = flattening.debug_info("vmap", fun, in_tree)
            outs, out_dims = vmap_primitive.map_unbatched(
                flat, size, leaves, dims, info, lambda: None in self._out_axes(flat), **names
            )
        else:
            outs, out_dims = named_batching.batch_flat(
                flat, size, leaves, dims, function_name=f"vmap of {name}", **names
            )
        wanted = self._out_axes(flat)
        placed = [
            _place(fun, flat.out_tree, i, out, dim, axis, size)
            for i, (out, dim, axis) in enumerate(zip(outs, out_dims, wanted, strict=True))
        ]
        return tree.unflatten(flat.out_tree, placed)

    def _call_holding(
        self, held: Sequence[bool], leaves: Sequence[Any], axes: Sequence[Any], in_tree: PyTreeDef
    ) -> Any:
        """Runs the function with those leaves as they are that are held: they are not arrays."""
        places = [i for i, is_held in enumerate(held) if not is_held]

        @functools.wraps(self.function)
        def function(*given: Any) -> Any:
            whole = list(leaves)
            for i, x in zip(places, given, strict=True):
                whole[i] = x
            args, kwargs = tree.unflatten(in_tree, whole)
            return self.function(*args, **kwargs)

        rest = self._replace(function=function, in_axes=tuple(axes[i] for i in places))
        return rest.call(tuple(leaves[i] for i in places), {})

    def _out_axes(self, flat: flattening.FlatFunction) -> Sequence[int | None]:
        """The axis of each result, from the prefix that the user gave."""
        out_tree = flat.out_tree
        if type(self.out_axes) is int:
            return [self.out_axes] * int(out_tree.num_leaves)
        axes: Sequence[int | None] = tree.flatten_axes(
            "vmap out_axes", out_tree, self.out_axes, value="the results"
        )
        return axes

    def _axes_of(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], in_tree: PyTreeDef, count: int
    ) -> Sequence[int | None]:
        """The axis of each leaf, from the prefix that the user gave."""
        in_axes = self.in_axes
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            problem = "in_axes must have one entry for each positional argument."
            got = f"{len(in_axes)} entries, {len(args)} arguments"
            fix = "keyword arguments are always mapped over dimension 0"
            error(ValueError, "vmap", problem, got=got, fix=fix)
        if type(in_axes) is int and not kwargs:
            return [in_axes] * count
        axes: Sequence[int | None] = tree.flatten_in_axes("vmap in_axes", in_tree, in_axes)
        return axes


def _check_axis_leaves(name: str, axes: object) -> None:
    for leaf in tree.leaves(axes):
        if type(leaf) is not int and not hasattr(leaf, "__index__"):
            got = f"{leaf!r} of type {type(leaf).__name__} in {axes!r}"
            error(TypeError, "vmap", f"{name} must hold integers and None only.", got=got)


def _paths(fun: Callable[..., Any], in_tree: PyTreeDef) -> Sequence[str]:
    return tree_errors.argument_paths(in_tree, flattening.parameter_names(fun))


def mapped_dims(
    user: str,
    axes: Sequence[int | None],
    avals: Avals,
    names: Callable[[], Sequence[str]],
    others: str,
    size: int | None = None,
) -> tuple[tuple[int | None, ...], int | None]:
    """The dimension of slices of each leaf of arguments, and the number of slices, if any.

    Args:
        user: the transformation.
        axes: the dimension of each leaf, which may count from the end, or None.
        avals: the types of the leaves.
        names: tells what messages call the leaves.
        others: what messages say of arguments that have no axis.
        size: the number of slices, if the user says it.

    Raises:
        ValueError: a leaf has no such dimension, or the sizes disagree.
    """
    fix = f"in_axes=None for arguments that {others}"
    dims = []
    for i, (axis, aval) in enumerate(zip(axes, avals, strict=True)):
        if axis is not None and not -aval.ndim <= axis < aval.ndim:
            problem = f"axis {axis} of the argument {names()[i]} does not exist."
            rank = axis + 1 if axis >= 0 else -axis
            expected = f"an argument of rank at least {rank}, or {fix}"
            error(ValueError, user, problem, got=str(aval), expected=expected)
        dims.append(None if axis is None else int(axis % aval.ndim))
    sizes = {int(a.shape[d]) for a, d in zip(avals, dims, strict=True) if d is not None}
    if size is not None:
        sizes.add(size)
    if len(sizes) > 1:
        mapped = [
            f"{name}: {aval}, dimension {d} has size {aval.shape[d]}"
            for name, aval, d in zip(names(), avals, dims, strict=True)
            if d is not None
        ]
        if size is not None:
            mapped.append(f"axis_size: {size}")
        problem = "the sizes of the mapped dimensions disagree."
        error(ValueError, user, problem, got="\n".join(mapped), expected=f"one size; {fix}")
    return tuple(dims), next(iter(sizes), None)


def _place(
    fun: Any, out_tree: Any, index: int, out: Any, dim: int | None, axis: int | None, size: int
) -> Any:
    """A result with its batch dimension where `out_axes` wants it."""
    if axis is None:
        if dim is None:
            return out
        path = flattening.result_paths(out_tree)[index]
        problem = f"out_axes is None for {path}, which differs between examples."
        fix = "give it an axis in out_axes, or reduce over the batch"
        error(ValueError, "vmap", problem, got=str(aval_of(out)), fix=fix)
    rank = aval_of(out).ndim + (dim is None)
    if not -rank <= axis < rank:
        problem = f"out_axes {axis} is out of range for {flattening.result_paths(out_tree)[index]}."
        error(ValueError, "vmap", problem, got=f"a result of rank {rank} with its batch dimension")
    return to_batch_dim(out, dim, axis % rank, size)
