"""Laws of how programs are run, and of where devices are: numbers 12 to 14, 18 to 20, and 25.

Each law is a function of a `DeviceProgram` or of a `Case`; its docstring states it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import tree
from minijax.core.aval import aval_of
from minijax.core.meshes import PartitionSpec
from minijax.runtime.array import Array
from minijax.testing import programs
from minijax.testing.laws.cases import Case, operations, statement_of
from minijax.testing.numpy_collectives import Block
from minijax.testing.programs import DeviceProgram, check_agree
from minijax.transforms.vmap import vmap

QUICK = ("checked", "unchecked", "vmap", "pmap")


def executions_agree(program: DeviceProgram, ways: Sequence[str] | None = None) -> None:
    """vmap(axis_name) = pmap = shard_map, eager or compiled = the oracle.

    Source: law 18 of the catalogue; JAX has nothing like it.

    Args:
        program: the program.
        ways: names of `programs.ENGINES`; all that the program allows by default.  One that lacks
            what the program needs is passed over.

    Raises:
        AssertionError: two ways do not agree.

    Example:
        >>> from minijax.testing import laws
        >>> def total(x):
        ...     return lax.psum(x * x, "x")
        >>> x = np.arange(4, dtype=np.float32)
        >>> laws.executions_agree(laws.program_of(total, {"x": 4}, jax.P("x"), jax.P(), x))
    """
    allowed = [way for way in programs.engines_for(program) if way != "oracle"]
    expected = programs.simulated(program)
    for way in allowed if ways is None else [w for w in ways if w in allowed]:
        try:
            found = programs.run(program, way)
        except NotImplementedError:
            continue
        sides = {way: found, "oracle": expected}
        check_agree("laws.executions_agree", sides, program, statement_of(executions_agree))


def vmap_stacks_results(program: DeviceProgram, engine: str = "oracle") -> None:
    """vmap over an axis that has nothing to do with the devices stacks results.

    Wherever arguments and results have it, be some of them without it.

    Source: law 19 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> def total(x):
        ...     return lax.psum(x * x, "x")
        >>> x = np.arange(4, dtype=np.float32)
        >>> laws.vmap_stacks_results(laws.program_of(total, {"x": 4}, jax.P("x"), jax.P(), x))
    """
    count = 2
    for at in (0, -1):
        batches = [_batch(x, count, at) for x in program.inputs]
        in_specs = [
            _with_dim(s, np.ndim(x), at)
            for s, x in zip(program.in_specs, program.inputs, strict=True)
        ]
        out_specs, out_at = _out_specs(program, at)
        batched = program.with_function(
            vmap(program.function, in_axes=at, out_axes=out_at),
            inputs=batches,
            in_specs=in_specs,
            out_specs=out_specs,
            source="",
        )
        found = programs.run(batched, engine)
        rows = []
        for i in range(count):
            inputs = [np.take(x, i, at) for x in batches]
            rows.append(
                programs.run(program.with_function(program.function, inputs=inputs), engine)
            )
        expected = [np.stack(outs, out_at) for outs in zip(*rows, strict=True)]
        sides = {"vmap": found, "one by one": expected}
        check_agree("laws.vmap_stacks_results", sides, program, statement_of(vmap_stacks_results))


def _batch(x: Block, count: int, at: int) -> Any:
    """Several arrays like `x`, none of them equal, stacked."""
    rows = [x]
    for i in range(1, count):
        rows.append(np.roll(x, i).astype(np.asarray(x).dtype))
        if np.asarray(x).dtype != np.bool_:
            rows[-1] = (rows[-1] + np.asarray(i, np.asarray(x).dtype)).astype(np.asarray(x).dtype)
    return np.stack(rows, at)


def _with_dim(spec: PartitionSpec, ndim: int, at: int) -> PartitionSpec:
    """A spec for one more dimension, the first or the last, which is not cut."""
    entries = [*spec, *[None] * (ndim - len(spec))]
    return PartitionSpec(*([None, *entries] if at == 0 else [*entries, None]))


def _out_specs(program: DeviceProgram, at: int) -> tuple[Any, int]:
    """The out_specs of a batch, and where results have it: last only where ranks are known."""
    if at == -1 and program.kinds:
        specs = tree.leaves(program.out_specs, is_leaf=_is_spec)
        found = [
            _with_dim(spec, len(kind.shape), -1)
            for spec, kind in zip(specs, program.kinds, strict=True)
        ]
        return (found[0] if _is_spec(program.out_specs) else tuple(found)), -1
    led = tree.map(lambda spec: _with_dim(spec, 0, 0), program.out_specs, is_leaf=_is_spec)
    return led, 0


def _is_spec(x: object) -> bool:
    return isinstance(x, PartitionSpec)


def checked_is_unchecked(program: DeviceProgram, engine: str = "oracle") -> None:
    """`check_vma` on and off give equal values, wherever the types are accepted.

    What types say to be the same on several devices is the same there.

    Source: law 20 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> def total(x):
        ...     return lax.psum(x * x, "x")
        >>> x = np.arange(4, dtype=np.float32)
        >>> laws.checked_is_unchecked(laws.program_of(total, {"x": 4}, jax.P("x"), jax.P(), x))
    """
    if "checked" not in program.modes or "unchecked" not in program.modes:
        return
    ways = ("oracle", "oracle_unchecked") if engine == "oracle" else ("checked", "unchecked")
    sides = {way: programs.run(program, way) for way in ways}
    check_agree("laws.checked_is_unchecked", sides, program, statement_of(checked_is_unchecked))


def lowerings_agree(program: DeviceProgram) -> None:
    """A program as replicas, and as partitions, gives equal values.

    As partitions by Shardy, and by GSPMD.

    Source: law 25 of the catalogue; JAX has nothing like it.

    Example:
        >>> from minijax.testing import laws
        >>> def total(x):
        ...     return lax.psum(x * x, "x")
        >>> x = np.arange(4, dtype=np.float32)
        >>> laws.lowerings_agree(laws.program_of(total, {"x": 4}, jax.P("x"), jax.P(), x))
    """
    ways = [w for w in ("checked", "gspmd", "pmap") if w in programs.engines_for(program)]
    first, *others = ways
    expected = programs.run(program, first)
    for way in others:
        sides: dict[str, Any] = {way: programs.run(program, way), first: expected}
        check_agree("laws.lowerings_agree", sides, program, statement_of(lowerings_agree))


def types_are_sound(program: DeviceProgram) -> None:
    """Results have the shapes, dtypes and varying axes that the collectives' tables say.

    The program must come from `strategies.device_programs`.

    Source: of the project; JAX has nothing like it.

    Example:
        >>> from hypothesis import given, settings
        >>> from minijax.testing import laws, strategies
        >>> check = given(strategies.device_programs(max_steps=3))(laws.types_are_sound)
        >>> settings(max_examples=5)(check)()
    """
    shapes = [kind.shape for kind in program.kinds]
    dtypes = [kind.dtype for kind in program.kinds]
    found: list[Any] = []

    def looking(*blocks: Any) -> Any:
        outs = program.function(*blocks)
        leaves = tree.leaves(outs)
        found[:] = [(leaf.shape, np.dtype(leaf.dtype).name, aval_of(leaf).vma) for leaf in leaves]
        return outs

    programs.run(program.with_function(looking), "oracle")
    expected = list(zip(shapes, dtypes, (k.varying for k in program.kinds), strict=True))
    if "checked" not in program.modes:
        found = [(*kind[:2], e[2]) for kind, e in zip(found, expected, strict=True)]
    if found != expected:
        raise AssertionError(
            f"laws.types_are_sound: results are {found}, expected {expected}\nprogram\n{program!r}"
        )


def _merged(case: Case, x: Block, axes: tuple[str, ...]) -> Any:
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

    def function(x: Array) -> Any:
        return case.lax.psum(x, axis), case.lax.pmax(x, axis), case.lax.all_gather(x, axis)

    total, most, gathered = case.run(function, x)
    own = case.run(function, permuted)
    in_order = np.take(gathered, order, len(case.sizes))
    case.compare(names_and_places_do_not_matter, own, [total, most, in_order])


def _check_devices(case: Case) -> None:
    def function(x: Array) -> Any:
        return case.lax.all_gather(x, case.axes), case.lax.psum_scatter(x, case.axes, tiled=True)

    program = case.program(function, case.blocks(case.n, 3))
    backwards = list(programs.devices_for(program))[::-1]
    found = programs.checked(program, devices=backwards)
    case.compare(names_and_places_do_not_matter, programs.checked(program), found)


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

        def cut(x: Block) -> Any:
            moved = np.take(x, order, at)
            return moved.reshape(*x.shape[:at], *shape, *x.shape[at + 1 :])

        (own,) = grouped.run(lambda x, f=f: f(x, axis, axis_index_groups=groups), x)
        (found,) = split.run(lambda x, f=f: f(x, "member"), cut(x))
        case.compare(groups_are_an_axis, [cut(own)], [found])
