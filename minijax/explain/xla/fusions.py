"""Which operations became one kernel, what each kernel moves and computes, and how fast it ran.

Input: a function and arguments.  Output: a record for each kernel of the optimized program, in the
order in which they run.  A kernel is what XLA runs as one: a fusion of operations, or one that
stands alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from minijax.core.source import Frame
from minijax.explain.communication import Listing, bytes_text, table
from minijax.explain.xla import bandwidth, costs, programs, recording
from minijax.explain.xla.programs import Program
from minijax.runtime.hlo_text import Instruction, Tensor

_RUNS = 3
"""How often a function runs while it is measured, after once that does not count."""

_SHOWN = 12
"""How many kernels a report shows, so that it fits a screen."""


class Operand(NamedTuple):
    """What a kernel reads: an argument, a constant or what another kernel has written."""

    name: str
    tensors: tuple[Tensor, ...]

    def __str__(self) -> str:
        types = ", ".join(map(str, self.tensors))
        return f"{self.name} {types if len(self.tensors) == 1 else f'({types})'}"


class Kernel(NamedTuple):
    """What XLA runs as one.

    Source:     minijax's own.

    Attributes:
        name: the name of the instruction in the text of the program, and in profiles.
        kind: `fusion`, or the operation that stands alone.
        operations: the operations of the function that it computes, as jaxprs name them.
        reads: the operands, as each device sees them.
        writes: the arrays that it gives.
        flops: operations of floating point of one run on one device; None where XLA cannot tell.
        transcendentals: how many elements are exponentials, sines and their like.
        bytes: what one run reads and writes.
        times: how often it runs in one call; None inside a loop of unknown length.
        inside: the loops and branches that it stands in, the outermost first.
        lines: the user's lines that it was made of; that of the result is the first.
        by_xla: whether flops and bytes are those of XLA's cost analysis; else they are counted
            from the types.
        seconds: how long its runs in one call took a device; None if it was not measured.
        of_bandwidth: the bytes that it moved each second, as a part of those that the memory moves;
            more than 1 where caches help.  None if it was not measured.

    Example:
        >>> (kernel,) = jax.explain.fusions(jnp.cos, measure=False)(jnp.ones(8))
        >>> kernel.operations, kernel.bytes, kernel.times
        (('cos',), 64.0, 1)
    """

    name: str
    kind: str
    operations: tuple[str, ...]
    reads: tuple[Operand, ...]
    writes: tuple[Tensor, ...]
    flops: float | None
    transcendentals: float
    bytes: float
    times: int | None
    inside: tuple[str, ...]
    lines: tuple[Frame, ...]
    by_xla: bool
    seconds: float | None = None
    of_bandwidth: float | None = None


class Fusions(Listing[Kernel]):
    """The kernels of a program in the order in which they run; prints the costly ones.

    Source:     minijax's own.

    Attributes:
        name: the name of the function.
        kernels: all of them.
        devices: on how many devices the program runs.
        bandwidth: bytes a second that the memory of a device moves, as measured here.

    Example:
        >>> found = jax.explain.fusions(jnp.dot, measure=False)(jnp.ones((4, 8)), jnp.ones((8, 2)))
        >>> len(found), found.flops
        (1, 128.0)
    """

    def __init__(
        self, name: str, kernels: Sequence[Kernel], devices: int, bandwidth: float
    ) -> None:
        self.name = name
        self.kernels = self._found = tuple(kernels)
        self.devices = devices
        self.bandwidth = bandwidth

    @property
    def flops(self) -> float:
        """Operations of floating point of one call on one device, as far as they are known."""
        return sum((x.flops or 0.0) * (x.times or 1) for x in self)

    @property
    def bytes(self) -> float:
        """What one call reads and writes on one device."""
        return sum(x.bytes * (x.times or 1) for x in self)

    @property
    def seconds(self) -> float | None:
        """How long the kernels of one call took a device; None if they were not measured."""
        known = [x.seconds for x in self if x.seconds is not None]
        return sum(known) if known else None

    def _lines(self) -> Iterator[str]:
        where = f" on each of {self.devices} devices" if self.devices > 1 else ""
        took = "" if self.seconds is None else f" in {programs.seconds_text(self.seconds)}"
        plural = "" if len(self) == 1 else "s"
        yield (
            f"{self.name}: {len(self)} kernel{plural}, {_flops_text(self.flops)}, "
            f"{bytes_text(self.bytes)} read and written{where}{took}"
        )
        yield f"memory: {bytes_text(self.bandwidth)}/s, as measured"
        shown = self._most_costly()
        if not shown:
            return
        titles = ("kernel", "flops", "bytes", "runs", "time", "of memory", "line")
        titles = (*titles[:4], "time" if self.seconds is not None else "at least", *titles[5:])
        head, *rows = table(titles, [self._cells(x) for x in shown], titles[1:6])
        yield from ("", head)
        for kernel, row in zip(shown, rows, strict=True):
            yield row
            yield from _movement(kernel)
        if len(shown) < len(self):
            moved = sum(x.bytes * (x.times or 1) for x in shown) / (self.bytes or 1)
            yield f"and {len(self) - len(shown)} smaller kernels: {1 - moved:.0%} of the bytes"

    def _most_costly(self) -> list[Kernel]:
        """The kernels that a screen holds: those that took longest, in their order."""
        ranks = sorted(range(len(self)), key=lambda i: -self._cost(self[i]))
        return [self[i] for i in sorted(ranks[:_SHOWN])]

    def _cost(self, kernel: Kernel) -> float:
        at_least = kernel.bytes * (kernel.times or 1) / self.bandwidth
        return at_least if kernel.seconds is None else kernel.seconds

    def _cells(self, kernel: Kernel) -> tuple[str, ...]:
        part = kernel.of_bandwidth
        is_unknown = kernel.seconds is None and self.seconds is not None
        return (
            ", ".join((*kernel.inside, _what(kernel))),
            "?" if kernel.flops is None else _flops_text(kernel.flops),
            bytes_text(kernel.bytes),
            "?" if kernel.times is None else str(kernel.times) if kernel.times != 1 else "",
            "" if is_unknown else programs.seconds_text(self._cost(kernel)),
            "" if part is None else f"{part:.0%}",
            programs.lines_text(kernel.lines),
        )


def _what(kernel: Kernel) -> str:
    """What a kernel computes; of what stands alone, XLA's operation and what made it necessary."""
    more = len(kernel.operations) - 4
    shown = kernel.operations if more < 2 else (*kernel.operations[:4], f"{more} more")
    text = ", ".join(shown)
    return text if kernel.kind in ("fusion", text) else f"{kernel.kind} for {text}"


def _movement(kernel: Kernel) -> Iterator[str]:
    """What a kernel reads and writes."""
    reads = ", ".join(map(str, kernel.reads[:4]))
    more = len(kernel.reads) - 4
    reads += f" and {more} more" if more > 0 else ""
    yield f"  {kernel.name}: {reads or 'nothing'} -> {', '.join(map(str, kernel.writes[:4]))}"


def _flops_text(count: float) -> str:
    """A number of operations with a unit."""
    for unit, size in (("Tflop", 1e12), ("Gflop", 1e9), ("Mflop", 1e6), ("kflop", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} flop" if count else "-"


def fusions(function: Callable[..., Any], *, measure: bool = True) -> Callable[..., Fusions]:
    """Finds out which operations of a function became one kernel, and what each kernel costs.

    The result is to be called with the function's arguments: arrays, or `ShapeDtypeStruct`s with
    shardings.  The function is compiled for them.  With arrays it is also run, once and then three
    times under jaxlib's profiler, so that each kernel has the time that it took, and the ratio of
    what it moved to what the memory moves.  That is measured at the first call in a process.

    Source:     minijax's own.

    Args:
        function: a function, perhaps jitted, mapped or differentiated; or what `Lowered.compile`
            has given, to be called without arguments.
        measure: whether to run the function.

    Returns:
        A function of the arguments that gives a `Fusions`: a sequence that prints as a table.

    Raises:
        TypeError: `function` is not callable.
        RuntimeError: a profile is being taken already.

    Example:
        >>> x = jnp.ones((64, 32))
        >>> found = jax.explain.fusions(lambda x: jnp.tanh(x @ x.T + 1), measure=False)(x)
        >>> found[0].operations[0], found[0].flops == 2 * 64 * 64 * 32
        ('dot_general', True)
        >>> sorted(found[-1].operations), str(found[-1].writes[0])
        (['add', 'tanh'], 'f32[64,64]')
    """
    compile_for = programs.program_of("explain.fusions", function)

    def of(*args: Any, **kwargs: Any) -> Fusions:
        program = compile_for(*args, **kwargs)
        executable = program.compiled.runtime_executable()
        speed = bandwidth.bandwidth_of(executable.local_devices()[0])
        found = list(_Search(program).walk(program.module.entry, 1, ()))
        if measure and program.run is not None:
            found = _measured(program, found, speed)
        return Fusions(program.name, found, program.module.devices, speed)

    return of


def _measured(program: Program, kernels: Sequence[Kernel], speed: float) -> list[Kernel]:
    """The kernels with the times that they took."""
    run = program.run
    assert run is not None
    run()
    taken: dict[str, float] = defaultdict(float)
    for done in recording.kernel_runs(recording.recorded(lambda: [run() for _ in range(_RUNS)])):
        if done.program == program.module.name:
            taken[done.operation] += done.seconds / _RUNS / program.local_devices
    return [
        kernel._replace(
            seconds=taken[kernel.name],
            of_bandwidth=kernel.bytes * (kernel.times or 1) / taken[kernel.name] / speed,
        )
        if taken.get(kernel.name)
        else kernel
        for kernel in kernels
    ]


class _Search(NamedTuple):
    """Finds the kernels of a program."""

    program: Program

    def walk(
        self, computation: str, times: int | None, inside: tuple[str, ...]
    ) -> Iterator[Kernel]:
        """The kernels of a computation and of those that it runs."""
        neighbours = self.program.module.computations.get(computation, {})
        for instruction in neighbours.values():
            opcode = instruction.opcode
            if opcode in programs.CONTROL:
                for branch, (role, callee) in enumerate(instruction.calls):
                    here, often = inside, times
                    if opcode == "while":
                        trips = instruction.trip_count
                        extra = 1 if role == "condition" else 0
                        here = (*inside, f"while x{'?' if trips is None else trips}")
                        often = None if trips is None or times is None else times * (trips + extra)
                    elif opcode == "conditional":
                        here = (*inside, f"branch {branch}")
                    yield from self.walk(callee, often, here)
            elif opcode not in programs.COSTLESS and not opcode.endswith("-done"):
                yield self._kernel(neighbours, instruction, times, inside)

    def _kernel(
        self,
        neighbours: costs.Neighbours,
        instruction: Instruction,
        times: int | None,
        inside: tuple[str, ...],
    ) -> Kernel:
        module = self.program.module
        cost = costs.cost_of(module, neighbours, instruction, self.program.client)
        return Kernel(
            instruction.name,
            instruction.opcode.removesuffix("-start").replace("-", "_"),
            programs.names_of(module, instruction),
            tuple(_operand(neighbours, name) for name in dict.fromkeys(instruction.operands)),
            tuple(instruction.tensors),
            cost.flops,
            cost.transcendentals,
            cost.bytes,
            times,
            inside,
            programs.lines_of(module, instruction),
            cost.by_xla,
        )


def _operand(neighbours: costs.Neighbours, name: str) -> Operand:
    """An operand by the name of who made it."""
    known = neighbours.get(name)
    if known is None:
        return Operand(name, ())
    tensors = tuple(known.tensors)
    while known.opcode in ("bitcast", "get-tuple-element") and known.operands[0] in neighbours:
        known = neighbours[known.operands[0]]
    is_parameter = known.opcode == "parameter"
    return Operand(programs.argument_name(known) if is_parameter else known.name, tensors)
