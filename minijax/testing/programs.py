"""Per-device programs as values, the ways to run one, and whether their results agree.

A `DeviceProgram` is the text of a function of one device's blocks, sizes of mesh axes, specs, and
arrays as text; it runs as it prints.  `strategies.device_programs` draws them; laws take them as
well as functions that people write.

Each way to run is a function from a program to its whole results as NumPy arrays; `ENGINES` has
them by name.  One that cannot run a program says so by a `NotImplementedError`, whose reason is
documented with what it lacks.  Results agree where integers are equal bit by bit, and floats up to
a tolerance that their dtype allows.
"""

from __future__ import annotations

import itertools
import linecache
import math
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import lax
from minijax.core import config, tree
from minijax.core.errors import message
from minijax.core.meshes import AbstractMesh, PartitionSpec
from minijax.runtime import client
from minijax.runtime.annotations import ArrayLike
from minijax.runtime.array import Array
from minijax.sharding.mesh import Mesh
from minijax.testing import oracle
from minijax.testing.numpy_model import Block
from minijax.transforms.autodiff.checkpoint import checkpoint
from minijax.transforms.autodiff.grad import grad
from minijax.transforms.jit.jit import jit
from minijax.transforms.per_device.shard_map import shard_map
from minijax.transforms.pmap import pmap
from minijax.transforms.vmap import vmap

BOTH = frozenset({"checked", "unchecked"})

_HEADER = """\
import numpy as np

import minijax as jax
from minijax import lax
from minijax.sharding import PartitionSpec as P
from minijax.testing.oracle import simulate
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


Specs = PartitionSpec | Sequence[PartitionSpec]
"""How results are put together: a spec for each, or a single one."""


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
        out_specs: Specs,
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
        out_specs: Specs,
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
        fields: dict[str, Any] = {
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


def _specs_text(specs: Specs) -> str:
    if isinstance(specs, PartitionSpec):
        return spec_text(specs)
    return _tuple_text(map(spec_text, specs))


def _tuple_text(parts: Iterable[str]) -> str:
    found = list(parts)
    joined = ", ".join(found)
    if len(joined) > 80:
        lines = "".join(f"    {part},\n" for part in found)
        return f"(\n{lines})"
    return f"({joined},)" if len(found) == 1 else f"({joined})"


def cut(x: Array | Block, spec: PartitionSpec, sizes: Mapping[Any, int]) -> Any:
    """The blocks of an array: a leading dimension for each mesh axis that cuts it, then a block's.

    Args:
        x: a whole array, of NumPy or traced.
        spec: along which axes each dimension is cut.
        sizes: of the mesh.
    """
    shape: list[int] = []
    places: dict[Any, int] = {}
    own: list[int] = []
    for length, names in zip(x.shape, spec.dims(x.ndim), strict=True):
        for name in names:
            places[name] = len(shape)
            shape.append(sizes[name])
        own.append(len(shape))
        shape.append(length // math.prod(sizes[name] for name in names))
    order = [places[name] for name in sizes if name in places] + own
    return x.reshape(shape).transpose(order)


def join(blocks: Array, spec: PartitionSpec, sizes: Mapping[Any, int]) -> Any:
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


def _led(x: ArrayLike, k: int) -> Any:
    return lax.reshape(x, (*(1,) * k, *np.shape(x)))


TOLERANCES = {
    "float16": 1e-2,
    "bfloat16": 5e-2,
    "float32": 2e-5,
    "float64": 1e-12,
    "complex64": 2e-5,
    "complex128": 1e-12,
}
"""Of floats, relative to the greatest magnitude in an array."""


def disagreement(left: Sequence[Any], right: Sequence[Any]) -> str:
    """How two lists of arrays differ; empty if they agree.

    Floats may differ by a few units in the last place of the greatest magnitude in their array.
    """
    if len(left) != len(right):
        return f"{len(left)} results and {len(right)}"
    for k, (a, b) in enumerate(zip(left, right, strict=True)):
        x, y = np.asarray(a), np.asarray(b)
        if (x.shape, x.dtype) != (y.shape, y.dtype):
            return f"result {k} is {x.dtype}{list(x.shape)} and {y.dtype}{list(y.shape)}"
        if not _agree(x, y):
            return f"result {k} differs:\n{_shown(x)}\n{_shown(y)}"
    return ""


def _agree(x: Block, y: Block) -> bool:
    if x.dtype.kind in "biu":
        return bool((x == y).all())
    tolerance = TOLERANCES[x.dtype.name]
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    x, y = x.astype(wide), y.astype(wide)
    scale = 1.0 + float(np.max(np.abs(y[np.isfinite(y)]), initial=0))
    return bool(np.allclose(x, y, rtol=tolerance, atol=tolerance * scale, equal_nan=True))


def _shown(x: Block) -> str:
    text = np.array2string(x, threshold=64, max_line_width=90)
    return text if len(text) < 1500 else f"{text[:1500]} ..."


def check_agree(
    what: str, sides: Mapping[str, Sequence[Any]], program: object, statement: str = ""
) -> None:
    """Raises an error that shows both sides and the program, where two do not agree.

    Raises:
        AssertionError: the lists of arrays differ.
    """
    (first, left), (second, right) = sides.items()
    found = disagreement(left, right)
    if found:
        raise AssertionError(
            message(
                what,
                f"{first} and {second} do not agree: {found}",
                expected=statement or "the same",
            )
            + f"\nprogram\n{program!r}"
        )


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


def _axes_last(x: Array, count: int) -> Any:
    """Blocks with their dimensions of mesh axes behind their own, the first axis last."""
    return x.transpose([*range(count, x.ndim), *reversed(range(count))])


def _nested(
    program: DeviceProgram, transform: Callable[..., Callable[..., Any]], in_axis: int = 0
) -> Callable[..., Any]:
    """The function mapped over the mesh axes, the first outside; of copies there is one."""
    function: Callable[..., Any] = program.function
    for name in reversed(program.sizes):
        in_axes = tuple(in_axis if name in spec.names() else None for spec in program.in_specs)
        function = transform(
            function, in_axes=in_axes, axis_name=name, axis_size=program.sizes[name]
        )
    return function


def _joined(program: DeviceProgram, outs: object) -> Any:
    leaves, treedef = tree.flatten(outs)
    specs = tree.broadcast_prefix(
        program.out_specs, outs, is_leaf=lambda x: isinstance(x, PartitionSpec)
    )
    joined = [join(x, spec, program.sizes) for x, spec in zip(leaves, specs, strict=True)]
    return tree.unflatten(treedef, joined)


def _leaves(outs: object) -> Results:
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
