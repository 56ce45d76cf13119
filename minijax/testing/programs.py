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
        source: the program as Python code, which can be pasted into a test.
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
        arrays = [eval(text, {"np": np}) for text in inputs]  # noqa: S307  our own text
        source = "\n".join(
            (
                f"{_HEADER}\n\n{body}\n",
                f"mesh = jax.make_mesh({tuple(sizes.values())}, {tuple(sizes)})",
                f"in_specs = {_tuple_text(map(spec_text, in_specs))}",
                f"out_specs = {_specs_text(out_specs)}",
                f"inputs = {_tuple_text(inputs)}",
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
    exec(compile(body, name, "exec"), namespace)  # noqa: S102  our own text
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
    """The blocks of an array: one leading dimension for each mesh axis, then a block's own.

    Args:
        x: a whole array.
        spec: along which axes each dimension is cut.
        sizes: of the mesh.
    """
    blocks = [_block(x, spec, sizes, at) for at in positions(sizes)]
    return np.stack(blocks).reshape(*sizes.values(), *blocks[0].shape)


def join(blocks: Any, spec: PartitionSpec, sizes: Mapping[str, int]) -> Any:
    """The whole array of which `cut` gives these blocks; the first one's where they are copies."""
    blocks = np.asarray(blocks)
    first = blocks[(0,) * len(sizes)]
    counts = [_count(names, sizes) for names in spec.dims(first.ndim)]
    whole = np.zeros([n * c for n, c in zip(first.shape, counts, strict=True)], first.dtype)
    for at in reversed(list(positions(sizes))):
        _block(whole, spec, sizes, at)[...] = blocks[tuple(at.values())]
    return whole


def positions(sizes: Mapping[str, int]) -> Any:
    """The coordinates of all devices of a mesh, in order, as dicts."""
    ranges = map(range, sizes.values())
    return (dict(zip(sizes, at, strict=True)) for at in itertools.product(*ranges))


def _count(names: Sequence[str], sizes: Mapping[str, int]) -> int:
    return math.prod(sizes[name] for name in names)


def _block(x: Any, spec: PartitionSpec, sizes: Mapping[str, int], at: Mapping[str, int]) -> Any:
    """One device's view of an array."""
    index: list[Any] = []
    for length, names in zip(x.shape, spec.dims(x.ndim), strict=True):
        position = 0
        for name in names:
            position = position * sizes[name] + at[name]
        size = length // _count(names, sizes)
        index.append(slice(position * size, (position + 1) * size))
    return x[(*index, ...)]


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
