"""The ways to run a per-device program, all of which must agree.

Input: a `DeviceProgram`.  Output: its whole results, as NumPy arrays.  Each way is a function of a
program; `ENGINES` has them by name.  One that cannot run a program says so by a
`NotImplementedError`, whose reason is documented with what it lacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.core import config, tree
from minijax.core.specs import PartitionSpec
from minijax.runtime import client
from minijax.sharding.mesh import Mesh
from minijax.testing import oracle
from minijax.testing.programs import DeviceProgram, cut, join
from minijax.transforms.jit import jit
from minijax.transforms.pmap import pmap
from minijax.transforms.shard_map import shard_map
from minijax.transforms.vmap import vmap

Results = list[Any]
"""The leaves of the results, as whole NumPy arrays."""


def devices_for(program: DeviceProgram) -> Sequence[Any]:
    """The first devices, as many as the mesh needs.

    Raises:
        ValueError: there are fewer.
    """
    found = client.devices()[: program.num_devices]
    if len(found) < program.num_devices:
        raise ValueError(
            f"testing: {program.num_devices} devices are needed, there are {len(found)}"
        )
    return found


def device_mesh(program: DeviceProgram, devices: Sequence[Any] | None = None) -> Mesh:
    """The mesh of a program, over some devices; the first ones by default."""
    found = np.empty(program.num_devices, object)
    found[:] = list(devices_for(program) if devices is None else devices)
    return Mesh(found.reshape(tuple(program.sizes.values())), tuple(program.sizes))


def run(program: DeviceProgram, engine: str) -> Results:
    """The results of a program in one of the ways of `ENGINES`."""
    return ENGINES[engine](program)


def simulated(program: DeviceProgram) -> Results:
    """By the oracle: no XLA, no rule of lowering."""
    return _simulated(program, check_vma="checked" in program.modes)


def simulated_unchecked(program: DeviceProgram) -> Results:
    """By the oracle, without types that tell what varies."""
    return _simulated(program, check_vma=False)


def _simulated(program: DeviceProgram, *, check_vma: bool) -> Results:
    run_it = oracle.simulate(
        program.function, program.mesh, program.in_specs, program.out_specs, check_vma=check_vma
    )
    return _leaves(run_it(*program.inputs))


def mapped(
    program: DeviceProgram, devices: Sequence[Any] | None = None, **options: Any
) -> Callable[..., Any]:
    """`shard_map` of a program's function, over some devices; the first ones by default."""
    return shard_map(
        program.function,
        mesh=device_mesh(program, devices),
        in_specs=program.in_specs,
        out_specs=program.out_specs,
        **options,
    )


def checked(program: DeviceProgram, devices: Sequence[Any] | None = None) -> Results:
    """By `jit` of `shard_map`, with types that tell what varies."""
    return _leaves(jit(mapped(program, devices))(*program.inputs))


def unchecked(program: DeviceProgram) -> Results:
    """By `jit` of `shard_map(check_vma=False)`."""
    return _leaves(jit(mapped(program, check_vma=False))(*program.inputs))


def eager(program: DeviceProgram) -> Results:
    """By `shard_map`, operation by operation."""
    with config.disable_jit(True):
        return _leaves(mapped(program, check_vma="checked" in program.modes)(*program.inputs))


def gspmd(program: DeviceProgram) -> Results:
    """By `jit` of `shard_map`, with XLA's older partitioner."""
    with config.use_shardy_partitioner(False):
        return _leaves(jit(mapped(program, check_vma="checked" in program.modes))(*program.inputs))


def by_vmap(program: DeviceProgram) -> Results:
    """By one `vmap(axis_name=...)` for each mesh axis, on one device.

    It lacks groups, and several axes at once in what is not a reduction.
    """
    return _leaves(jit(unsharded(program))(*program.inputs))


def by_pmap(program: DeviceProgram) -> Results:
    """By one `pmap(axis_name=...)` for each mesh axis."""
    # Each pmap must map something, so that there is one more argument, cut along every axis.
    counted = program.with_function(
        lambda _, *blocks: program.function(*blocks),
        inputs=(np.zeros(tuple(program.sizes.values()), np.float32), *program.inputs),
        in_specs=(PartitionSpec(*program.sizes), *program.in_specs),
    )
    blocks = [
        cut(np.asarray(x), spec, program.sizes)
        for x, spec in zip(counted.inputs, counted.in_specs, strict=True)
    ]
    return _leaves(_joined(program, _nested(counted, pmap)(*blocks)))


def by_eager_pmap(program: DeviceProgram) -> Results:
    """By `pmap`, operation by operation."""
    with config.disable_jit(True):
        return by_pmap(program)


def unsharded(program: DeviceProgram, in_axis: int = 0) -> Callable[..., Any]:
    """A program as a function of whole arrays on one device: by `vmap` over each mesh axis.

    Args:
        program: the program.
        in_axis: which dimension of its arguments each `vmap` maps over, the first or the last.
    """

    def whole(*args: Any) -> Any:
        blocks = [cut(x, s, program.sizes) for x, s in zip(args, program.in_specs, strict=True)]
        if in_axis == -1:
            blocks = [
                _axes_last(x, len(set(spec.names())))
                for x, spec in zip(blocks, program.in_specs, strict=True)
            ]
        return _joined(program, _nested(program, vmap, in_axis)(*blocks))

    return whole


def _axes_last(x: Any, count: int) -> Any:
    """Blocks with their dimensions of mesh axes behind their own, the first axis last."""
    return x.transpose([*range(count, x.ndim), *reversed(range(count))])


def _nested(program: DeviceProgram, transform: Any, in_axis: int = 0) -> Callable[..., Any]:
    """The function mapped over the mesh axes, the first outside; of copies there is one."""
    function: Callable[..., Any] = program.function
    for name in reversed(program.sizes):
        in_axes = tuple(in_axis if name in spec.names() else None for spec in program.in_specs)
        function = transform(
            function, in_axes=in_axes, axis_name=name, axis_size=program.sizes[name]
        )
    return function


def _joined(program: DeviceProgram, outs: Any) -> Any:
    leaves, treedef = tree.flatten(outs)
    specs = tree.broadcast_prefix(
        program.out_specs, outs, is_leaf=lambda x: isinstance(x, PartitionSpec)
    )
    joined = [join(x, spec, program.sizes) for x, spec in zip(leaves, specs, strict=True)]
    return tree.unflatten(treedef, joined)


def _leaves(outs: Any) -> Results:
    return [np.asarray(leaf) for leaf in tree.leaves(outs)]


def run_together(programs: Sequence[DeviceProgram], *, check_vma: bool = True) -> list[Results]:
    """The results of several programs, compiled as one: they must need equally many devices.

    XLA takes most of the time for each program it gets, however short.
    """

    def all_of_them(inputs: Sequence[Any]) -> list[Any]:
        return [
            mapped(program, check_vma=check_vma)(*given)
            for program, given in zip(programs, inputs, strict=True)
        ]

    outs = jit(all_of_them)([program.inputs for program in programs])
    return [_leaves(out) for out in outs]


ENGINES: dict[str, Callable[[DeviceProgram], Results]] = {
    "oracle": simulated,
    "oracle_unchecked": simulated_unchecked,
    "checked": checked,
    "unchecked": unchecked,
    "gspmd": gspmd,
    "eager": eager,
    "vmap": by_vmap,
    "pmap": by_pmap,
    "eager_pmap": by_eager_pmap,
}


def engines_for(program: DeviceProgram) -> tuple[str, ...]:
    """The ways that a program allows, but for what they lack."""
    checked_only = {"oracle_unchecked", "unchecked", "vmap", "pmap", "eager_pmap"}
    excluded: set[str] = set()
    if "unchecked" not in program.modes:
        excluded |= checked_only
    if "checked" not in program.modes:
        excluded |= {"checked"}
    if math.prod(program.sizes.values()) == 1:
        excluded |= {"gspmd"}
    return tuple(name for name in ENGINES if name not in excluded)
