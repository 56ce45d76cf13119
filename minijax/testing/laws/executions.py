"""Laws of how programs are run: numbers 18 to 20, and 25.

Each law is a function of a `DeviceProgram`; its docstring states it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.core import tree
from minijax.core.aval import aval_of
from minijax.core.specs import PartitionSpec
from minijax.testing import engines
from minijax.testing.agreement import check_agree
from minijax.testing.laws.cases import statement_of
from minijax.testing.programs import DeviceProgram
from minijax.transforms.vmap import vmap

QUICK = ("checked", "unchecked", "vmap", "pmap")


def executions_agree(program: DeviceProgram, ways: Sequence[str] | None = None) -> None:
    """vmap(axis_name) = pmap = shard_map, eager or compiled = the oracle.

    Source: law 18 of the catalogue; JAX has nothing like it.

    Args:
        program: the program.
        ways: names of `engines.ENGINES`; all that the program allows by default.  One that lacks
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
    allowed = [way for way in engines.engines_for(program) if way != "oracle"]
    expected = engines.simulated(program)
    for way in allowed if ways is None else [w for w in ways if w in allowed]:
        try:
            found = engines.run(program, way)
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
        found = engines.run(batched, engine)
        rows = []
        for i in range(count):
            inputs = [np.take(x, i, at) for x in batches]
            rows.append(engines.run(program.with_function(program.function, inputs=inputs), engine))
        expected = [np.stack(outs, out_at) for outs in zip(*rows, strict=True)]
        sides = {"vmap": found, "one by one": expected}
        check_agree("laws.vmap_stacks_results", sides, program, statement_of(vmap_stacks_results))


def _batch(x: Any, count: int, at: int) -> Any:
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


def _is_spec(x: Any) -> bool:
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
    sides = {way: engines.run(program, way) for way in ways}
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
    ways = [w for w in ("checked", "gspmd", "pmap") if w in engines.engines_for(program)]
    first, *others = ways
    expected = engines.run(program, first)
    for way in others:
        sides: dict[str, Any] = {way: engines.run(program, way), first: expected}
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

    engines.run(program.with_function(looking), "oracle")
    expected = list(zip(shapes, dtypes, (k.varying for k in program.kinds), strict=True))
    if "checked" not in program.modes:
        found = [(*kind[:2], e[2]) for kind, e in zip(found, expected, strict=True)]
    if found != expected:
        raise AssertionError(
            f"laws.types_are_sound: results are {found}, expected {expected}\nprogram\n{program!r}"
        )
