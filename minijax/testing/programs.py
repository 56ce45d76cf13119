"""Per-device programs as values: Python code, what it is applied to, and how that is cut.

Input: the text of a function of one device's blocks, sizes of mesh axes, specs, and arrays as text.
Output: a `DeviceProgram`, which runs as it prints.  `strategies.device_programs` draws them; laws
take them as well as functions that people write.
"""

from __future__ import annotations

import itertools
import linecache
import math
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import lax
from minijax.core.meshes import AbstractMesh
from minijax.core.specs import PartitionSpec
from minijax.transforms.checkpoint import checkpoint
from minijax.transforms.grad import grad
from minijax.transforms.jit import jit
from minijax.transforms.vmap import vmap

BOTH = frozenset({"checked", "unchecked"})

_HEADER = """\
import numpy as np

import minijax as jax
from minijax import lax
from minijax.sharding import PartitionSpec as P
from minijax.testing import simulate
"""
# What follows a program: the same on simulated devices and on real ones.
_FOOTER = """\
expected = simulate(program, mesh, in_specs, out_specs, check_vma={checked})(*inputs)
on_devices = jax.shard_map(
    program, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma={checked}
)
found = on_devices(*inputs)
jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, 1e-4, 1e-4), found, expected)\
"""

# What the names of the header mean, as far as generated code goes.
_NAMES: dict[str, Any] = {
    "np": np,
    "lax": lax,
    "P": PartitionSpec,
    "jax": types.SimpleNamespace(vmap=vmap, jit=jit, checkpoint=checkpoint, grad=grad),
}
_numbers = itertools.count(1)


class Kind(NamedTuple):
    """What is known of one result: its shape, its dtype, and the axes that it may vary over."""

    shape: tuple[int, ...]
    dtype: str
    varying: frozenset[str]


class DeviceProgram:
    """A function of one device's blocks, with a mesh, specs, and whole arguments.

    Attributes:
        function: the function itself.
        sizes: the mesh: sizes by names of axes, in order.
        in_specs: for each argument, how it is cut.
        out_specs: for each result, how it is put together; a single spec for a single result.
        inputs: the whole arguments, NumPy arrays.
        source: the program as Python code, which can be pasted into a test: it compares what
            simulated devices and real ones compute.
        size: how many operations it has, those of inner functions included; 0 if unknown.
        modes: `"checked"`, `"unchecked"`, or both: the settings of `check_vma` that it is for.
        kinds: what the results are, if that is known.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        sizes: Mapping[str, int],
        in_specs: Sequence[PartitionSpec],
        out_specs: Any,
        inputs: Sequence[Any],
        *,
        source: str = "",
        size: int = 0,
        modes: frozenset[str] = BOTH,
        kinds: Sequence[Kind] = (),
    ) -> None:
        self.function = function
        self.sizes = dict(sizes)
        self.in_specs = tuple(in_specs)
        self.out_specs = out_specs
        self.inputs = tuple(inputs)
        self.source = source
        self.size = size
        self.modes = modes
        self.kinds = tuple(kinds)

    @classmethod
    def from_source(
        cls,
        body: str,
        sizes: Mapping[str, int],
        in_specs: Sequence[PartitionSpec],
        out_specs: Any,
        inputs: Sequence[str],
        **facts: Any,
    ) -> DeviceProgram:
        """A program from the text of its function `program` and the texts of its arguments."""
        arrays = [eval(text, {"np": np}) for text in inputs]
        count = max(8, math.prod(sizes.values()))
        checked = "checked" in facts.get("modes", BOTH)
        source = "\n".join(
            (
                f"{_HEADER}\n\n{body}\n",
                f"with jax.cpu_devices({count}):",
                f"    mesh = jax.make_mesh({tuple(sizes.values())}, {tuple(sizes)})",
                f"in_specs = {_tuple_text(map(spec_text, in_specs))}",
                f"out_specs = {_specs_text(out_specs)}",
                f"inputs = {_tuple_text(inputs)}\n",
                _FOOTER.format(checked=checked),
            )
        )
        function = _function_of(body)
        return cls(function, sizes, in_specs, out_specs, arrays, source=source, **facts)

    @property
    def mesh(self) -> AbstractMesh:
        """The mesh, without devices."""
        return AbstractMesh(tuple(self.sizes.values()), tuple(self.sizes))

    @property
    def num_devices(self) -> int:
        """How many devices the mesh has."""
        return math.prod(self.sizes.values())

    def with_function(self, function: Callable[..., Any], **changes: Any) -> DeviceProgram:
        """Another program: another function, and whatever else changes."""
        fields = {
            "sizes": self.sizes,
            "in_specs": self.in_specs,
            "out_specs": self.out_specs,
            "inputs": self.inputs,
            "source": self.source,
            "size": self.size,
            "modes": self.modes,
            "kinds": self.kinds,
        }
        fields.update(changes)
        return DeviceProgram(function, **fields)

    def __repr__(self) -> str:
        if self.source:
            return self.source
        name = getattr(self.function, "__name__", repr(self.function))
        shapes = ", ".join(f"{x.dtype}{list(x.shape)}" for x in map(np.asarray, self.inputs))
        return (
            f"{name} on mesh {self.sizes}\n"
            f"in_specs = {_tuple_text(map(spec_text, self.in_specs))}\n"
            f"out_specs = {_specs_text(self.out_specs)}\n"
            f"inputs: {shapes}"
        )


def _function_of(body: str) -> Any:
    """The function called `program` that a text defines; tracebacks show the text."""
    name = f"<generated program {next(_numbers)}>"
    linecache.cache[name] = (len(body), None, body.splitlines(keepends=True), name)
    namespace = dict(_NAMES)
    exec(compile(body, name, "exec"), namespace)
    return namespace["program"]


def spec_text(spec: PartitionSpec) -> str:
    """A spec as code: `P('x', None)`."""
    return f"P({', '.join(map(repr, spec))})"


def _specs_text(specs: Any) -> str:
    if isinstance(specs, PartitionSpec):
        return spec_text(specs)
    return _tuple_text(map(spec_text, specs))


def _tuple_text(parts: Any) -> str:
    found = list(parts)
    joined = ", ".join(found)
    if len(joined) > 80:
        lines = "".join(f"    {part},\n" for part in found)
        return f"(\n{lines})"
    return f"({joined},)" if len(found) == 1 else f"({joined})"


def cut(x: Any, spec: PartitionSpec, sizes: Mapping[str, int]) -> Any:
    """The blocks of an array: a leading dimension for each mesh axis that cuts it, then a block's.

    Args:
        x: a whole array, of NumPy or traced.
        spec: along which axes each dimension is cut.
        sizes: of the mesh.
    """
    shape: list[int] = []
    places: dict[str, int] = {}
    own: list[int] = []
    for length, names in zip(x.shape, spec.dims(x.ndim), strict=True):
        for name in names:
            places[name] = len(shape)
            shape.append(sizes[name])
        own.append(len(shape))
        shape.append(length // math.prod(sizes[name] for name in names))
    order = [places[name] for name in sizes if name in places] + own
    return x.reshape(shape).transpose(order)


def join(blocks: Any, spec: PartitionSpec, sizes: Mapping[str, int]) -> Any:
    """The whole array that blocks make up, the first one's where they are copies.

    Args:
        blocks: a leading dimension for each mesh axis, then a block's own.
        spec: along which axes each dimension is cut.
        sizes: of the mesh.
    """
    kept = [name for name in sizes if name in spec.names()]
    first = blocks[tuple(slice(None) if name in kept else 0 for name in sizes)]
    order: list[int] = []
    shape: list[int] = []
    for dim, names in enumerate(spec.dims(first.ndim - len(kept))):
        order += [kept.index(name) for name in names] + [len(kept) + dim]
        length = first.shape[len(kept) + dim]
        shape.append(length * math.prod(sizes[name] for name in names))
    return first.transpose(order).reshape(shape)


def stacked(
    function: Callable[..., Any], sizes: Mapping[str, int], inputs: Sequence[Any]
) -> DeviceProgram:
    """A program whose arguments and results are given device by device.

    Args:
        function: a function of one device's blocks.
        sizes: the mesh.
        inputs: stacked blocks: one leading dimension for each mesh axis.
    """
    k = len(sizes)
    spec = PartitionSpec(*sizes)

    def program(*blocks: Any) -> Any:
        outs = function(*(lax.reshape(x, x.shape[k:]) for x in blocks))
        if isinstance(outs, (tuple, list)):
            return tuple(_led(out, k) for out in outs)
        return _led(outs, k)

    program.__name__ = getattr(function, "__name__", "program")
    return DeviceProgram(program, sizes, [spec] * len(inputs), spec, inputs)


def _led(x: Any, k: int) -> Any:
    return lax.reshape(x, (*(1,) * k, *np.shape(x)))
