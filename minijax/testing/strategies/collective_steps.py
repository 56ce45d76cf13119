"""Steps of generated programs that communicate: every collective, and casts between kinds.

Shapes and variance of results are computed here once more, by the tables of what collectives do.
Axes of `vmap` take part as those of the mesh do, but for groups, which are not to be had of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from minijax.testing.strategies import arguments
from minijax.testing.strategies.local_steps import (
    MAX_ELEMENTS,
    NUMBERS,
    Scope,
    Variable,
    axes_text,
    elements,
    inserted,
    pick,
    replaced,
)

ANY = (*NUMBERS, "bool")


def draw_axes(draw: Any, scope: Scope) -> tuple[str, ...]:
    """Axes to communicate along; empty if there are none."""
    if not scope.sizes:
        return ()
    names = list(scope.sizes)
    mapped = [a for a in names if a not in scope.mesh_axes]
    if mapped and len(names) > 1 and draw(st.booleans()):
        # An axis of vmap beside another one, as rules of batching find it.
        others = draw(st.permutations([a for a in names if a != mapped[-1]]))
        return tuple(draw(st.permutations([mapped[-1], *others[: draw(st.integers(1, 2))]])))
    found: tuple[str, ...] = draw(arguments.axis_subsets(names))
    return found


def count_of(scope: Scope, axes: Sequence[str]) -> int:
    """How many devices, or examples, the axes have together."""
    return math.prod(scope.sizes[a] for a in axes)


def of_one_kind(scope: Scope, x: Variable, axes: Sequence[str]) -> Variable:
    """`x` as a value that varies over all of the mesh axes, or over none, as sums demand."""
    typed = scope.typed(axes)
    return x if typed <= x.varying or not typed & x.varying else scope.cast(x, typed)


def draw_groups(
    draw: Any, scope: Scope, axes: Sequence[str], *, equal: bool = True
) -> tuple[str, int]:
    """The text of an argument `axis_index_groups`, maybe empty, and the size of a group."""
    size = count_of(scope, axes)
    grouped = "checked" not in scope.modes and set(axes) <= set(scope.mesh_axes)
    if not grouped or not draw(st.booleans()):
        return "", size
    groups = draw(arguments.axis_index_groups(size, equal=equal or draw(st.booleans())))
    return f", axis_index_groups={groups}", len(groups[0])


def draw_divisible(
    draw: Any, scope: Scope, size: int, dtypes: Sequence[str], *, tiled: bool
) -> tuple[Variable, int] | None:
    """A variable, and a dimension of it that `size` devices can share; None if there is none."""
    fitting = [
        (v, d)
        for v in scope.variables[::-1]
        if v.dtype in dtypes
        for d, n in enumerate(v.shape)
        if (n % size == 0 if tiled else n == size)
    ]
    return draw(st.sampled_from(fitting)) if fitting else None


def all_reduce(draw: Any, scope: Scope) -> bool:
    """A reduction over devices: varying over the axes no more, unless it is taken in groups."""
    return _all_reduce(draw, scope, ("psum", "pmax", "pmin"))


def psum(draw: Any, scope: Scope) -> bool:
    """A sum over devices."""
    return _all_reduce(draw, scope, ("psum",))


def _all_reduce(draw: Any, scope: Scope, names: Sequence[str]) -> bool:
    axes = draw_axes(draw, scope)
    x = pick(draw, scope, *ANY)
    if not axes or x is None:
        return False
    name = draw(st.sampled_from(list(names)))
    if name == "psum":
        x = of_one_kind(scope, x, axes)
    groups, _ = draw_groups(draw, scope, axes, equal=False)
    shape, text = x.shape, axes_text(axes)
    has_dims = x.ndim and "checked" not in scope.modes and draw(st.integers(0, 3)) > 0
    if has_dims and not groups:
        # Where types do not tell what varies, dimensions may be among the axes.
        dim = draw(st.integers(0, x.ndim - 1))
        shape, text = replaced(x.shape, dim), repr((*axes, dim))
    dtype = "int32" if (name, x.dtype) == ("psum", "bool") else x.dtype
    varying = x.varying | set(axes) if groups else x.varying - set(axes)
    scope.let(f"lax.{name}({x.name}, {text}{groups})", [x], shape, dtype, varying)
    return True


def mean(draw: Any, scope: Scope) -> bool:
    """The mean of floats."""
    axes = draw_axes(draw, scope)
    x = pick(draw, scope, "float32")
    if not axes or x is None:
        return False
    x = of_one_kind(scope, x, axes)
    groups, _ = draw_groups(draw, scope, axes)
    varying = x.varying | set(axes) if groups else x.varying - set(axes)
    scope.let(f"lax.pmean({x.name}, {axes_text(axes)}{groups})", [x], x.shape, x.dtype, varying)
    return True


def where_extreme(draw: Any, scope: Scope) -> bool:
    """At which position the greatest or least integer is."""
    axes = draw_axes(draw, scope)[:1]
    x = pick(draw, scope, "int32")
    if not axes or x is None:
        return False
    name = draw(st.sampled_from(["pargmax", "pargmin"]))
    varying = x.varying - set(axes)
    scope.let(f"lax.{name}({x.name}, {axes[0]!r})", [x], x.shape, "int32", varying)
    return True


def all_gather(draw: Any, scope: Scope) -> bool:
    """The blocks of all devices, stacked or joined."""
    axes = draw_axes(draw, scope)
    x = pick(draw, scope, *ANY)
    if not axes or x is None:
        return False
    groups, size = draw_groups(draw, scope, axes)
    if elements(x.shape) * size > MAX_ELEMENTS:
        return False
    tiled = x.ndim > 0 and draw(st.booleans())
    if not tiled and x.ndim > 3:
        return False
    dim = draw(st.integers(0, x.ndim - 1 if tiled else x.ndim))
    to = "" if groups else draw(st.sampled_from(["", ", to='invarying'"]))
    shape = replaced(x.shape, dim, x.shape[dim] * size) if tiled else inserted(x.shape, dim, size)
    varying = x.varying - set(axes) if to else x.varying | set(axes)
    options = f", axis={dim}, tiled={tiled}{to}{groups}"
    text = f"lax.all_gather({x.name}, {axes_text(axes)}{options})"
    scope.let(text, [x], shape, x.dtype, varying)
    return True


def psum_scatter(draw: Any, scope: Scope) -> bool:
    """A sum of which each device keeps a block."""
    axes = draw_axes(draw, scope)
    if not axes:
        return False
    groups, size = draw_groups(draw, scope, axes)
    tiled = draw(st.booleans())
    found = draw_divisible(draw, scope, size, NUMBERS, tiled=tiled)
    if found is None:
        return False
    x, dim = of_one_kind(scope, found[0], axes), found[1]
    shape = replaced(x.shape, dim, *((x.shape[dim] // size,) if tiled else ()))
    options = f", scatter_dimension={dim}, tiled={tiled}{groups}"
    text = f"lax.psum_scatter({x.name}, {axes_text(axes)}{options})"
    scope.let(text, [x], shape, x.dtype, x.varying | set(axes))
    return True


def all_to_all(draw: Any, scope: Scope) -> bool:
    """A block from every device to every other."""
    axes = draw_axes(draw, scope)
    if not axes:
        return False
    groups, size = draw_groups(draw, scope, axes)
    tiled = draw(st.booleans())
    found = draw_divisible(draw, scope, size, ANY, tiled=tiled)
    if found is None:
        return False
    x, split = found
    concat = draw(st.integers(0, x.ndim - 1))
    if tiled:
        shape = replaced(x.shape, split, x.shape[split] // size)
        shape = replaced(shape, concat, shape[concat] * size)
    else:
        shape = inserted(replaced(x.shape, split), concat, size)
    options = f", {split}, {concat}, tiled={tiled}{groups}"
    text = f"lax.all_to_all({x.name}, {axes_text(axes)}{options})"
    if not tiled and split == concat and draw(st.booleans()):
        text = f"lax.pswapaxes({x.name}, {axes_text(axes)}, {split}{groups})"
    scope.let(text, [x], shape, x.dtype, x.varying | set(axes))
    return True


def permute(draw: Any, scope: Scope) -> bool:
    """Blocks from device to device."""
    axes = draw_axes(draw, scope)
    x = pick(draw, scope, *ANY)
    if not axes or x is None or not scope.all_enter:
        return False
    size = count_of(scope, axes)
    if draw(st.integers(0, 3)) == 3:
        order = list(draw(st.permutations(range(size))))
        text = f"lax.pshuffle({x.name}, {axes_text(axes)}, {order})"
    else:
        pairs = draw(arguments.permutations(size))
        text = f"lax.ppermute({x.name}, {axes_text(axes)}, {pairs})"
    scope.let(text, [x], x.shape, x.dtype, x.varying | set(axes))
    return True


def broadcast(draw: Any, scope: Scope) -> bool:
    """The block of one device, on all: of a value that varies, and types go on saying so."""
    axes = draw_axes(draw, scope)
    fitting = [v for v in scope.variables[::-1] if v.varying >= scope.typed(axes)]
    if not axes or not fitting:
        return False
    x = draw(st.sampled_from(fitting))
    source = draw(st.integers(0, count_of(scope, axes) - 1))
    text = f"lax.pbroadcast({x.name}, {axes_text(axes)}, {source})"
    scope.let(text, [x], x.shape, x.dtype, x.varying | set(axes))
    return True


def axis_index(draw: Any, scope: Scope) -> bool:
    """Where a device is."""
    if not scope.sizes:
        return False
    axes = draw_axes(draw, scope)
    scope.let(f"lax.axis_index({axes_text(axes)})", [], (), "int32", set(axes))
    return True


def own_block(draw: Any, scope: Scope) -> bool:
    """The block of an array at a device's own position."""
    axes = draw_axes(draw, scope)
    if not axes:
        return False
    size = count_of(scope, axes)
    found = draw_divisible(draw, scope, size, ANY, tiled=True)
    if found is None:
        return False
    x, dim = found
    block = x.shape[dim] // size
    start = f"lax.axis_index({axes_text(axes)}) * {block}"
    text = f"lax.dynamic_slice_in_dim({x.name}, {start}, {block}, {dim})"
    scope.let(text, [x], replaced(x.shape, dim, block), x.dtype, x.varying | set(axes))
    return True


def ragged(draw: Any, scope: Scope) -> bool:
    """Blocks of different sizes from every device to every other."""
    axes = [a for a in scope.mesh_axes if a in scope.sizes][:1]
    fitting = [v for v in scope.variables[::-1] if v.dtype in ("int32", "float32") and v.ndim == 1]
    if not axes or not fitting or scope.depth:
        return False
    axis, size = axes[0], scope.sizes[axes[0]]
    sizes = draw(arguments.ragged_sizes(size, longest=2))
    x = draw(st.sampled_from(fitting))
    if x.shape[0] < sizes.operand_size:
        return False
    tables = np.stack(sizes[:4]).tolist()
    rows = scope.let(
        f"lax.dynamic_index_in_dim(np.array({tables}, np.int32), lax.axis_index({axis!r}), 1, "
        "keepdims=False)",
        [],
        (4, size),
        "int32",
        {axis},
    )
    longer = [v for v in fitting if v.dtype == x.dtype and v.shape[0] >= sizes.output_size]
    output = draw(st.sampled_from([None, *longer]))
    if output is None:
        length = (sizes.output_size,)
        start, varying = f"lax.full({length}, np.{x.dtype}(7))", x.varying
    else:
        length, start, varying = output.shape, output.name, x.varying | output.varying
    used = [v for v in (x, output, rows) if v is not None]
    text = f"lax.ragged_all_to_all({x.name}, {start}, *{rows.name}, axis_name={axis!r})"
    scope.let(text, used, length, x.dtype, varying | {axis}, size=3)
    return True


def sum_of_summands(draw: Any, scope: Scope) -> bool:
    """A varying value taken as summands, added up now or scattered: V to U to I, or to V."""
    axes = [a for a in scope.mesh_axes if a in scope.sizes]
    fitting = [
        (v, a)
        for v in scope.variables[::-1]
        if v.dtype in ("int32", "float32")
        for a in axes
        if a in v.varying
    ]
    if "unchecked" in scope.modes or not fitting:
        return False
    x, axis = draw(st.sampled_from(fitting))
    parts = f"lax.pcast({x.name}, {axis!r}, to='unreduced')"
    form = draw(st.sampled_from(["{}", "{} + {}", "-{}"]))
    summands = form.format(parts, parts)
    dims = [d for d, n in enumerate(x.shape) if n % scope.sizes[axis] == 0][::-1]
    if dims and draw(st.integers(0, 3)) > 0:
        dim = draw(st.sampled_from(dims))
        shape = replaced(x.shape, dim, x.shape[dim] // scope.sizes[axis])
        name = draw(st.sampled_from(["unreduced_psum_scatter", "psum_scatter"]))
        text = f"lax.{name}({summands}, {axis!r}, scatter_dimension={dim}, tiled=True)"
        scope.let(text, [x], shape, x.dtype, x.varying, size=2)
    else:
        name = draw(st.sampled_from(["unreduced_psum", "psum"]))
        text = f"lax.{name}({summands}, {axis!r})"
        scope.let(text, [x], x.shape, x.dtype, x.varying - {axis}, size=2)
    return True


def reduced(draw: Any, scope: Scope) -> bool:
    """A value on its way through a reduced type: I to R to V, or gathered to R and on to V."""
    axes = [a for a in scope.mesh_axes if a in scope.sizes]
    x = pick(draw, scope, "int32", "float32")
    if "unchecked" in scope.modes or not axes or x is None:
        return False
    axis = draw(st.sampled_from(axes))
    if axis in x.varying:
        if elements(x.shape) * scope.sizes[axis] > MAX_ELEMENTS or x.ndim > 3:
            return False
        dim = draw(st.integers(0, x.ndim))
        tiled = dim < x.ndim and draw(st.booleans())
        gathered = f"lax.all_gather_reduced({x.name}, {axis!r}, axis={dim}, tiled={tiled})"
        size = scope.sizes[axis]
        shape = inserted(x.shape, dim, size)
        if tiled:
            shape = replaced(x.shape, dim, x.shape[dim] * size)
    else:
        gathered = f"lax.pcast({x.name}, {axis!r}, to='reduced')"
        shape = x.shape
    text = f"lax.pcast({gathered}, {axis!r}, to='varying')"
    scope.let(text, [x], shape, x.dtype, x.varying | {axis}, size=2)
    return True


STEPS = (
    all_reduce,
    all_gather,
    psum_scatter,
    all_to_all,
    permute,
    broadcast,
    axis_index,
    mean,
    where_extreme,
    own_block,
    ragged,
)
OF_SUMS = (sum_of_summands, reduced)
