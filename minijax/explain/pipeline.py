"""What becomes of a function: `stages` shows every form it takes on its way to the devices.

Input: a function and its arguments.  Output: the texts of its jaxpr, of its StableHLO, of that with
the shardings that Shardy finds, of XLA's program before and after partitioning, of the optimized
program, and which device holds what.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from minijax.core import deferral, tree, tree_errors
from minijax.lowering import planning
from minijax.transforms.jit.jit import jitted
from minijax.transforms.jit.stages import Compiled, Lowered

_PARTITIONER = "spmd-partitioning"
# What tells where an instruction comes from is most of its text.
_ORIGINS = re.compile(r"(?:, metadata=\{[^}]*\}|, origin=\{[^\n]*\})")
_TABLES = re.compile(r"\n(?:FileNames|FunctionNames|FileLocations|StackFrames)\n(?:.+\n)*")


class Stages(Mapping[str, str]):
    """The forms of one function, the first first: a mapping from names to texts, which prints.

    Source:     minijax's own.

    Example:
        >>> forms = jax.explain.stages(lambda x: 2 * x)(1.0)
        >>> list(forms)
        ['jaxpr', 'stablehlo', 'optimized', 'shards']
    """

    def __init__(self, name: str, texts: Mapping[str, str]) -> None:
        self.name = name
        self._texts = dict(texts)

    def __getitem__(self, stage: str) -> str:
        return self._texts[stage]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __repr__(self) -> str:
        parts = [f"{self.name}: {stage}\n{text.rstrip()}" for stage, text in self.items()]
        return "\n\n".join(parts)

    _repr_html_ = deferral.shown


def stages(function: Callable[..., Any]) -> Callable[..., Stages]:
    """Shows every form that a function takes on its way to the devices.

    Source:     minijax's own.

    Args:
        function: a function, perhaps jitted.

    Returns:
        A function of the arguments, arrays or `ShapeDtypeStruct`s, that gives a mapping from names
        of stages to texts: `"jaxpr"`; `"stablehlo"`; `"propagated"`, with the shardings that Shardy
        finds; `"hlo"`, what XLA partitions; `"partitioned"`, what each device runs, with its
        collectives; `"optimized"`; and `"shards"`, which devices hold what.  For one device the
        three about partitioning are missing, for arguments on an abstract mesh the four that
        need devices.

    Raises:
        TypeError: `function` is not callable.

    Example:
        >>> print(jax.explain.stages(lambda x: 2 * x)(1.0)["jaxpr"])
        { lambda ; a:f32[]. let b:f32[] = mul 2.0:f32[] a in (b,) }
    """
    given = jitted("explain.stages", function)

    def of(*args: Any, **kwargs: Any) -> Stages:
        traced = given.trace(*args, **kwargs)
        lowered = traced.lower()
        return Stages(lowered.fun_name, dict(_texts(traced.jaxpr, lowered)))

    return of


def _texts(jaxpr: Any, lowered: Lowered) -> Iterator[tuple[str, str]]:
    yield "jaxpr", str(jaxpr)
    yield "stablehlo", lowered.as_text()
    if planning.meshes(lowered.compiler_ir()):
        yield "propagated", planning.propagated(lowered.compiler_ir())
    if not lowered.has_devices:
        return
    with tempfile.TemporaryDirectory() as folder:
        options = {
            "xla_dump_to": folder,
            "xla_dump_hlo_as_text": True,
            "xla_dump_hlo_pass_re": _PARTITIONER,
        }
        compiled = lowered.compile(options)
        dumped = Path(folder)
        for stage, when in (("hlo", "before"), ("partitioned", "after")):
            for path in sorted(dumped.glob(f"*{when}_{_PARTITIONER}*.txt")):
                yield stage, without_origins(path.read_text(encoding="utf-8"))
    yield "optimized", without_origins(compiled.as_text())
    yield "shards", "\n".join(_shards(compiled))


def without_origins(hlo: str) -> str:
    """HLO without notes on where its instructions come from."""
    return re.sub(r"\n{3,}", "\n\n", _ORIGINS.sub("", _TABLES.sub("", hlo)))


def _shards(compiled: Compiled) -> Iterator[str]:
    """For each argument and result: its type, its placement, and which devices hold what of it."""
    types = *compiled.in_avals, compiled.out_avals
    given = *compiled.input_shardings, compiled.output_shardings
    for side, avals, shardings in zip(("args", "kwargs", "result"), types, given, strict=True):
        places = tree.leaves(shardings, is_leaf=tree.is_none)
        for (path, aval), place in zip(tree.leaves_with_path(avals), places, strict=True):
            name = side + tree_errors.keystr(path)
            if place is None:
                yield f"{name}: {aval}, not used"
                continue
            yield f"{name}: {aval}, {place}"
            holders: dict[str, list[str]] = {}
            for device, index in place.devices_indices_map(aval.shape).items():
                holders.setdefault(_index_text(index, aval.shape), []).append(str(device))
            for piece, devices in holders.items():
                yield f"  {piece} on {', '.join(devices)}"


def _index_text(index: tuple[Any, ...], shape: tuple[int, ...]) -> str:
    def bounds(part: Any, size: int) -> str:
        # A slice of a `pmap` may be without the mapped dimension.
        return "{}:{}".format(*part.indices(size)) if type(part) is slice else str(part)

    return f"[{', '.join(map(bounds, index, shape))}]"
