"""Laws of where devices are: product axes, other names and places, groups.  Numbers 12 to 14.

Each law is a function of a `Case`; its docstring states it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minijax.testing import engines
from minijax.testing.laws.cases import Case
from minijax.testing.laws.operations import operations


def _merged(case: Case, x: Any, axes: tuple[str, ...]) -> Any:
    """Stacked blocks with some mesh axes merged into one, after the others."""
    names = list(case.sizes)
    rest = [i for i, name in enumerate(names) if name not in axes]
    own = [names.index(axis) for axis in axes]
    blocks = list(range(len(names), x.ndim))
    moved = np.transpose(x, rest + own + blocks)
    sizes = [case.sizes[names[i]] for i in rest]
    return moved.reshape(*sizes, case.n, *x.shape[len(names) :])


def product_axis_is_one_axis(case: Case) -> None:
    """A collective over axes (a, b) is that over one axis of |a|·|b| devices.

    In the order of the names; for ppermute, in the order of the mesh.

    Source: law 12 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.product_axis_is_one_axis(laws.Case({"x": 4}, ("x",)))
    """
    rest = {name: size for name, size in case.sizes.items() if name not in case.axes}
    one = case.changed(sizes={**rest, "merged": case.n}, axes=("merged",))
    for operation in operations(case).values():
        axes = case.axes
        if not operation.is_ordered:
            axes = tuple(a for a in case.sizes if a in case.axes)
        x = case.blocks(*operation.shape)
        (several,) = case.run(lambda x, f=operation.apply: f(x, case.axes), x)
        (single,) = one.run(lambda x, f=operation.apply: f(x, "merged"), _merged(case, x, axes))
        found = _merged(case, several, axes)
        case.compare(product_axis_is_one_axis, [found], [single])


def names_and_places_do_not_matter(case: Case) -> None:
    """Other names of axes change nothing, nor do other devices.

    Devices in another order along an axis change no sum and no extreme, and gather blocks in that
    order.

    Source: law 13 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.names_and_places_do_not_matter(laws.Case({"x": 4}, ("x",)))
    """
    renamed = {name: f"axis {i}" for i, name in enumerate(case.sizes)}
    other = case.changed(
        sizes={renamed[name]: size for name, size in case.sizes.items()},
        axes=[renamed[axis] for axis in case.axes],
    )
    for operation in operations(case).values():
        x = case.blocks(*operation.shape)
        own = case.run(lambda x, f=operation.apply: f(x, case.axes), x)
        case.compare(
            names_and_places_do_not_matter,
            own,
            other.run(lambda x, f=operation.apply: f(x, other.axes), x),
        )
    axis = case.axes[0]
    _check_order(case, axis)
    if case.engine not in ("oracle", "oracle_unchecked", "vmap", "pmap", "eager_pmap"):
        _check_devices(case)


def _check_order(case: Case, axis: str) -> None:
    at, size = list(case.sizes).index(axis), case.sizes[axis]
    order = case.random.permutation(size)
    x = case.blocks(2, 3)
    permuted = np.take(x, order, at)

    def function(x: Any) -> Any:
        return case.lax.psum(x, axis), case.lax.pmax(x, axis), case.lax.all_gather(x, axis)

    total, most, gathered = case.run(function, x)
    own = case.run(function, permuted)
    in_order = np.take(gathered, order, len(case.sizes))
    case.compare(names_and_places_do_not_matter, own, [total, most, in_order])


def _check_devices(case: Case) -> None:
    def function(x: Any) -> Any:
        return case.lax.all_gather(x, case.axes), case.lax.psum_scatter(x, case.axes, tiled=True)

    program = case.program(function, case.blocks(case.n, 3))
    backwards = list(engines.devices_for(program))[::-1]
    found = engines.checked(program, devices=backwards)
    case.compare(names_and_places_do_not_matter, engines.checked(program), found)


def groups_are_an_axis(case: Case) -> None:
    """A collective in groups along an axis is that over an axis of their members.

    On a mesh where two axes, of the groups and of their members, stand for the one.

    Source: law 14 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> laws.groups_are_an_axis(laws.Case({"x": 4}, ("x",)))
    """
    axis = case.axes[0]
    at = list(case.sizes).index(axis)
    groups = case.groups(case.sizes[axis])
    order = [i for group in groups for i in group]
    shape = (len(groups), len(groups[0]))
    sizes: dict[str, int] = {}
    for name, length in case.sizes.items():
        sizes.update({"group": shape[0], "member": shape[1]} if name == axis else {name: length})
    engine = {"oracle": "oracle_unchecked", "checked": "unchecked"}.get(case.engine, case.engine)
    grouped = case.changed(axes=(axis,), engine=engine)
    split = case.changed(sizes=sizes, axes=("member",), engine=engine)
    for operation in operations(split).values():
        if not operation.takes_groups or not case.lax.take(operation.name, "axis_index_groups"):
            continue
        f = operation.apply
        x = case.blocks(*operation.shape)

        def cut(x: Any) -> Any:
            moved = np.take(x, order, at)
            return moved.reshape(*x.shape[:at], *shape, *x.shape[at + 1 :])

        (own,) = grouped.run(lambda x, f=f: f(x, axis, axis_index_groups=groups), x)
        (found,) = split.run(lambda x, f=f: f(x, "member"), cut(x))
        case.compare(groups_are_an_axis, [cut(own)], [found])
