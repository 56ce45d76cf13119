"""A third judge of collectives: StableHLO's reference interpreter, which jaxlib brings along.

Input: a function of one device's blocks, and a mesh.  Output: what the devices get, found by
running the lowered program on all of them without XLA.  It takes single operations well, and ends
the process on some that it does not know, so it runs in a process of its own.
"""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _stablehlo

from minijax.core import tree
from minijax.core.aval import ShapedArray
from minijax.core.errors import error
from minijax.core.jaxpr import ClosedJaxpr
from minijax.core.meshes import AbstractMesh
from minijax.core.value_placement import NOT_MANUAL, manual_type
from minijax.interpreters import flattening, staging
from minijax.lowering import stablehlo
from minijax.lowering.device_axes import DeviceAxes, PartitionAxes, ReplicaAxes
from minijax.lowering.module import Lowering
from minijax.transforms.per_device.region import Region

Block = np.ndarray[Any, Any]
_TIMEOUT = 120


def interpreted(
    f: Callable[..., Any],
    mesh: Mapping[Any, int],
    *,
    replicas: bool = False,
    check_vma: bool = True,
    platform: str = "cuda",
) -> Callable[..., Any]:
    """A function of stacked arrays that runs `f` on all devices by StableHLO's interpreter.

    It runs as many devices at once as the machine has processors; those that wait for more wait
    in vain.

    Source: an independent reading of the lowered program.

    Args:
        f: a function of one device's blocks, with collectives over the axes of the mesh.
        mesh: sizes of axes by their names.
        replicas: whether devices are replicas, as in `pmap`, instead of partitions.
        check_vma: whether types tell over which axes values vary; never for replicas.
        platform: what the program is lowered for.  GPUs have an operation for each collective.

    Returns:
        A function of arrays with a leading dimension for each axis; so have the results.

    Raises:
        RuntimeError: the interpreter does not know an operation, or refuses the program.

    Example:
        >>> from minijax.testing import interpreted
        >>> interpreted(lambda x: lax.psum(x, "x"), {"x": 2})(np.array([[1], [2]]))
        array([[3],
               [3]])
    """
    abstract = AbstractMesh(tuple(mesh.values()), tuple(mesh))
    region = Region(abstract, frozenset(mesh), check_vma and not replicas)

    def run(*args: Any) -> Any:
        blocks = [np.asarray(x) for x in args]
        blocks = [x.reshape(-1, *x.shape[len(mesh) :]) for x in blocks]
        flat = flattening.FlatFunction(f, tree.flatten((args, {}))[1], "interpreted")
        closed = _staged(flat, blocks, region)
        text = _program(closed, region, platform, replicas=replicas)
        stacks = [
            np.stack(own).reshape(*mesh.values(), *own[0].shape)
            for own in _results(text, blocks, closed.out_avals)
        ]
        return tree.unflatten(flat.out_tree, stacks)

    return run


def _staged(flat: flattening.FlatFunction, blocks: Sequence[Block], region: Region) -> ClosedJaxpr:
    kind = manual_type(region.outer.axis_names) if region.check_vma else NOT_MANUAL
    avals = [ShapedArray(x.shape[1:], x.dtype, manual_axis_type=kind) for x in blocks]
    with region.entered():
        return staging.stage_closed(flat, avals)


def _program(closed: ClosedJaxpr, region: Region, platform: str, *, replicas: bool) -> str:
    """A module in which `@p` is the program of one device, and `@main` runs it on all."""
    mesh = region.outer
    count = math.prod(mesh.axis_sizes)
    axes: DeviceAxes = PartitionAxes(region.inner, region.axes)
    if replicas:
        axes = ReplicaAxes(mesh.axis_names, mesh.axis_sizes, count)
    module = Lowering("interpreted", platform)
    with stablehlo.context(), module.unknown, region.entered(), module.inside(axes):
        module.function("p", closed.jaxpr, closed.consts)
    ins, outs = (
        [str(stablehlo.type_of(aval)) for aval in avals]
        for avals in (closed.in_avals, closed.out_avals)
    )
    programs = ["[@p]"] * count if replicas else [f"[{', '.join(['@p'] * count)}]"]
    values = [f"%{i}" for i in range(count * len(ins))]
    typed = ", ".join(f"{v}: {t}" for v, t in zip(values, ins * count, strict=True))
    results = ", ".join(outs * count)
    names = ", ".join(f"%r#{i}" for i in range(count * len(outs)))
    main = (
        f"func.func public @main({typed}) -> ({results}) {{\n"
        f'  %r:{count * len(outs)} = "interpreter.run_parallel"({", ".join(values)}) '
        f"{{programs = [{', '.join(programs)}]}} : ({', '.join(ins * count)}) -> ({results})\n"
        f"  return {names} : {results}\n}}\n"
    )
    return str(module.module).rstrip().removesuffix("}") + main + "}"


def _results(text: str, blocks: Sequence[Block], avals: Sequence[Any]) -> list[list[Block]]:
    """For each result what the devices get, from a process that interprets the module."""
    count = len(blocks[0]) if blocks else 0
    arguments = [x[i] for i in range(count) for x in blocks]
    done = subprocess.run(
        [sys.executable, "-c", "from minijax.testing import interpreter; interpreter.main()"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        input=pickle.dumps((text, arguments)),
        capture_output=True,
        timeout=_TIMEOUT,
        check=False,
    )
    if done.returncode:
        error(
            RuntimeError,
            "interpreted",
            "the interpreter of StableHLO cannot run the program.",
            got=done.stderr.decode(errors="replace")[-2000:],
        )
    found: list[Block] = pickle.loads(done.stdout)
    each = len(avals)
    return [
        [found[i].astype(aval.dtype, copy=False) for i in range(position, len(found), each)]
        for position, aval in enumerate(avals)
    ]


def main() -> None:
    """Reads a module and arguments from standard input, and writes the results to its output."""
    text, arguments = pickle.load(sys.stdin.buffer)
    context = stablehlo.context()
    _stablehlo.register_interpreter_dialect(context)
    with context, ir.Location.unknown():
        given = [stablehlo.dense(np.asarray(x)) for x in arguments]
        found = _stablehlo.eval_module(ir.Module.parse(text), given)
        results = [np.array(x) for x in found]
    pickle.dump(results, sys.stdout.buffer)
