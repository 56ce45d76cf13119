"""Where the time of a call goes: Python, compilation, transfers, waiting, and each kernel.

Input: a function and arguments.  Output: what the thread that calls does, in seconds that add up to
the whole, and how long devices spend in each kernel meanwhile.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from minijax.core import deferral
from minijax.core.config import enable_compilation_cache
from minijax.core.errors import error
from minijax.core.source import Frame
from minijax.explain.communication import table
from minijax.explain.xla import programs, recording
from minijax.explain.xla.recording import RUN, Event, Interval
from minijax.interpreters.flattening import function_name
from minijax.lowering.eager import check_callable
from minijax.runtime import client
from minijax.runtime.hlo_text import HloModule, Instruction
from minijax.transforms.device_put import block_until_ready
from minijax.transforms.jit.stages import Compiled

_SHOWN = 15
"""How many kernels a report shows, so that it fits a screen."""

_PHASES: dict[str, tuple[str, ...]] = {
    "kernels": (),
    "waiting": (recording.WAIT,),
    "transfers": (
        "CopyTo",
        "D2H",
        "DevicePut",
        "H2D",
        "MakeArrayFromHostBuffer",
        "TransferTo",
        "place arguments",
        "place pieces",
        "replicate",
    ),
    "compiling": ("compile", "lower"),
    "starting": ("CommonPjRtLoadedExecutable::Execute", "PjRtStreamExecutorLoadedExecutable::"),
}
"""What the calling thread does, by how the names of events begin; the first that fits counts."""

PHASES = ("Python", *_PHASES)
"""What the calling thread does: `kernels` are small ones, which it runs itself."""

_CALL = "PjitFunction("


class KernelTime(NamedTuple):
    """A kernel, and how long devices spent in it.

    Source:     minijax's own.

    Attributes:
        program: the module: `jit_` and the name of the function.
        name: the instruction.
        operations: what the function calls the operations that it computes.
        times: how often it ran, on all devices.
        seconds: how long that took, on all devices.
        lines: the user's lines that it was made of; that of the result is the first.

    Example:
        >>> (kernel,) = jax.explain.profile(jax.jit(lambda x: jnp.cos(x)))(jnp.ones(8)).kernels
        >>> kernel.program, kernel.operations, kernel.times
        ('jit__lambda', ('cos',), 1)
    """

    program: str
    name: str
    operations: tuple[str, ...]
    times: int
    seconds: float
    lines: tuple[Frame, ...]


class Call(NamedTuple):
    """The calls of one jitted function.

    Source:     minijax's own.

    Attributes:
        name: the name of the function.
        times: how often it was called.
        seconds: how long the calls took; programs may run on after them.

    Example:
        >>> (call,) = jax.explain.profile(jax.jit(lambda x: jnp.cos(x)))(jnp.ones(8)).calls
        >>> call.name, call.times
        ('<lambda>', 1)
    """

    name: str
    times: int
    seconds: float


class Profile:
    """Where the time of a call went; prints as a table.

    Source:     minijax's own.

    Attributes:
        name: the name of the function.
        seconds: how long the call took, until all of its results were there.
        phases: what the calling thread did, in seconds, by `Python`, `kernels` that it ran itself,
            `waiting`, `transfers`, `compiling` and `starting` programs.  They add up to `seconds`.
        calls: the jitted functions that it called.
        kernels: what ran on devices, what took longest first.
        transfers: how long other threads moved data between host and devices, in seconds.

    Example:
        >>> import time
        >>> found = jax.explain.profile(lambda: time.sleep(0.01))()
        >>> found.phases["Python"] >= 0.01, found.kernels
        (True, ())
    """

    def __init__(self, name: str, threads: Sequence[Sequence[Event]]) -> None:
        self.name = name
        (own,) = [thread for thread in threads if any(event.name == RUN for event in thread)]
        whole = next(event.interval for event in own if event.name == RUN)
        self.seconds = whole[1] - whole[0]
        inside = [event for event in own if whole[0] <= event.start < whole[1]]
        self.phases = _phases(inside, whole)
        self.calls = tuple(_calls(inside))
        self.kernels = tuple(sorted(_kernels(threads), key=lambda x: -x.seconds))
        others = (event for thread in threads if thread is not own for event in thread)
        moving = _PHASES["transfers"]
        self.transfers = sum(x.end - x.start for x in others if x.name.startswith(moving))

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    _repr_html_ = deferral.shown

    def _lines(self) -> Iterator[str]:
        text = programs.seconds_text
        yield f"{self.name}: {text(self.seconds)}"
        rows = [
            (phase, text(taken), f"{taken / self.seconds:.0%}")
            for phase, taken in self.phases.items()
            if taken
        ]
        yield from ("", *table(("calling thread", "time", "part"), rows, ("time", "part")))
        if self.transfers:
            yield f"other threads moved data for {text(self.transfers)}"
        if self.calls:
            calls = [(x.name, str(x.times), text(x.seconds)) for x in self.calls[:_SHOWN]]
            yield from ("", *table(("jitted function", "calls", "time"), calls, ("calls", "time")))
        if self.kernels:
            yield from ("", *self._kernel_lines())

    def _kernel_lines(self) -> Iterator[str]:
        text = programs.seconds_text
        whole = sum(x.seconds for x in self.kernels) or 1.0
        rows = [
            (
                x.name,
                ", ".join(x.operations[:3]),
                x.program,
                str(x.times),
                text(x.seconds),
                f"{x.seconds / whole:.0%}",
                programs.lines_text(x.lines),
            )
            for x in self.kernels[:_SHOWN]
        ]
        titles = ("kernel", "operations", "program", "runs", "time", "part", "line")
        yield from table(titles, rows, ("runs", "time", "part"))
        rest = self.kernels[_SHOWN:]
        if rest:
            yield f"and {len(rest)} more: {text(sum(x.seconds for x in rest))}"


def profile(function: Callable[..., Any], *, warm_up: int = 1) -> Callable[..., Profile]:
    """Runs a function under jaxlib's profiler, and sums up where the time went.

    The call ends once all of its results are there.  The Python interpreter itself is not traced:
    `profiler.trace` writes a file with every Python function, which Perfetto opens.

    Source:     minijax's own.

    Args:
        function: any function, which may call jitted ones, move data and wait.
        warm_up: how often it is called before, so that what it calls is compiled.  With 0 the time
            of compilation is in the profile; so functions are called that give their arguments
            away.

    Returns:
        A function of the arguments that gives a `Profile`, which prints as a table.

    Raises:
        TypeError: `function` is not callable.
        ValueError: `warm_up` is negative.
        RuntimeError: a profile is being taken already.

    Example:
        >>> step = jax.jit(lambda x: jnp.tanh(x @ x))
        >>> found = jax.explain.profile(step)(jnp.ones((64, 64)))
        >>> [(call.name, call.times) for call in found.calls]
        [('<lambda>', 1)]
        >>> abs(sum(found.phases.values()) - found.seconds) < 1e-6
        True
    """
    check_callable("explain.profile", function)
    if warm_up < 0:
        problem = "warm_up must not be negative."
        error(ValueError, "explain.profile", problem, got=str(warm_up), expected="0 or more")
    name = function.fun_name if isinstance(function, Compiled) else function_name(function)

    def of(*args: Any, **kwargs: Any) -> Profile:
        def run() -> None:
            block_until_ready(function(*args, **kwargs))

        # A program from the store tells the lines of who has compiled it.
        with enable_compilation_cache(False):
            for _ in range(warm_up):
                run()
        return Profile(name, recording.recorded(run))

    return of


def _phases(events: Sequence[Event], whole: Interval) -> dict[str, float]:
    """How long the thread was in each phase; what lies in several counts for the first."""
    found = {}
    so_far: list[Interval] = []
    known = 0.0
    for phase, names in _PHASES.items():
        so_far += [
            (event.start, min(event.end, whole[1]))
            for event in events
            if (event.operation if phase == "kernels" else event.name.startswith(names))
        ]
        total = recording.covered(so_far)
        found[phase] = total - known
        known = total
    return {"Python": whole[1] - whole[0] - known, **found}


def _calls(events: Iterable[Event]) -> Iterator[Call]:
    """The jitted functions that were called, without those that they call."""
    times: dict[str, list[float]] = defaultdict(list)
    reached = -1.0
    for event in events:
        # Each call is there twice.
        if event.name.startswith(_CALL) and event.start >= reached:
            times[event.name.removeprefix(_CALL).removesuffix(")")].append(event.end - event.start)
            reached = event.end
    for name, taken in sorted(times.items(), key=lambda x: -sum(x[1])):
        yield Call(name, len(taken), sum(taken))


def _kernels(threads: Sequence[Sequence[Event]]) -> Iterator[KernelTime]:
    """The kernels that ran, each with the operations and lines that its program tells of it."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in recording.kernel_runs(threads):
        found[run.program][run.operation].append(run.seconds)
    for program, kernels in found.items():
        module = _module(program, kernels)
        known = {x.name: x for body in module.computations.values() for x in body.values()}
        for name, taken in kernels.items():
            yield _kernel(module, known.get(name), program, name, taken)


def _kernel(
    module: HloModule,
    instruction: Instruction | None,
    program: str,
    name: str,
    taken: Sequence[float],
) -> KernelTime:
    if instruction is None:
        return KernelTime(program, name, (), len(taken), sum(taken), ())
    operations = programs.names_of(module, instruction)
    lines = programs.lines_of(module, instruction)
    return KernelTime(program, name, operations, len(taken), sum(taken), lines)


def _module(program: str, kernels: Iterable[str]) -> HloModule:
    """The program of a name that has such kernels; an empty one where none is known."""
    wanted = set(kernels)
    best, most = HloModule(""), 0
    for backend in dict.fromkeys((client.get_backend(), client.cpu_client())):
        for executable in backend.live_executables():
            if all(module.name != program for module in executable.hlo_modules()):
                continue
            module = HloModule(executable.get_hlo_text())
            has = sum(len(wanted & body.keys()) for body in module.computations.values())
            if has > most:
                best, most = module, has
    return best
