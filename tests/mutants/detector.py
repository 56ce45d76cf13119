"""What is to notice a planted fault: generated programs and the laws, with a small budget.

Input: nothing; the fault is in the library.  Output: a `Finding`: which check noticed it, and the
smallest program that shows it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import hypothesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from minijax.testing import laws, oracle
from minijax.testing.programs import (
    DeviceProgram,
    check_agree,
    disagreement,
    run,
    run_together,
    simulated,
    unsharded,
)
from minijax.testing.strategies import collective_steps, device_programs

NOT_DIFFERENTIABLE = ("pmax", "pmin", "while_loop")
# A counterexample of this size is small enough: what shrinks it further is time.
SMALL = 3
# XLA takes most of the time for each program that it gets, so it gets several at once.
AT_ONCE = 12


class Finding(NamedTuple):
    """How a fault was noticed.

    Attributes:
        check: the check that did; empty where none did.
        size: the operations of the smallest program found; 0 for a law of collectives.
        source: the program.
        error: what the check said.
        seconds: how long it took.
    """

    check: str
    size: int
    source: str
    error: str
    seconds: float


class _Enough(KeyboardInterrupt):
    """Ends a search: Hypothesis lets it pass."""


def _way(program: DeviceProgram) -> str:
    return "checked" if "checked" in program.modes else "unchecked"


def _xla(program: DeviceProgram) -> None:
    way = _way(program)
    sides = {way: run(program, way), "oracle": simulated(program)}
    check_agree("XLA", sides, program)


def _batch_of_devices(program: DeviceProgram) -> None:
    """vmap in place of devices, computed by the oracle, so that nothing is compiled."""
    if "unchecked" not in program.modes:
        return
    expected = simulated(program)
    for in_axis in (0, -1):
        try:
            found = oracle.simulate_program(unsharded(program, in_axis))(*program.inputs)
        except NotImplementedError:
            return
        leaves = list(found) if isinstance(found, (tuple, list)) else [found]
        check_agree("vmap", {"vmap": leaves, "oracle": expected}, program)


def _adjoint(program: DeviceProgram) -> None:
    if not any(word in program.source for word in NOT_DIFFERENTIABLE):
        skipped = laws.derivatives_are_adjoint(program)
        # All of their operations have derivatives: a rule that is missing is a fault.
        assert skipped is None or skipped.endswith("is a float"), skipped


CHECKS: dict[str, Callable[[DeviceProgram], None]] = {
    "types": laws.types_are_sound,
    "check_vma": laws.checked_is_unchecked,
    "vmap inside": laws.vmap_stacks_results,
    "derivative": _adjoint,
    "vmap of devices": _batch_of_devices,
    "XLA": _xla,
}
COMPILED = "XLA"


def programs(steps: Sequence[str] = ()) -> st.SearchStrategy[DeviceProgram]:
    """Small programs of every kind, with collectives among some."""
    chosen = {"collectives": [getattr(collective_steps, name) for name in steps] or None}
    both = frozenset({"checked", "unchecked"})
    floats = {"differentiable": True, "dtypes": ("float32", "int32")}
    # Three axes, for what depends on their order.
    cube = {"sizes": {"x": 2, "y": 2, "z": 2}}
    kinds = [
        device_programs(
            max_steps=6, modes=modes, control_flow=control_flow, **options, **mesh, **chosen
        )
        for modes in (both, frozenset({"unchecked"}), frozenset({"checked"}))
        for mesh in ({}, cube)
        for options in ({}, floats)
        for control_flow in (False, True)
    ]
    return st.one_of(*kinds)


def _error_of(check: Callable[[DeviceProgram], None], program: DeviceProgram) -> str:
    try:
        check(program)
    # Whatever a fault raises betrays it: errors of the library as well as those of the checks.
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


class Search:
    """Looks for a program that shows a fault, then for a small one.

    Attributes:
        check: the check that noticed the fault.
        best: the smallest program so far.
        error: what the check said of it.
    """

    def __init__(
        self,
        steps: Sequence[str],
        seconds: float,
        shrinking: float,
        note: Callable[[str], None],
        at_once: int = AT_ONCE,
    ) -> None:
        self.programs = programs(steps)
        self.deadline = time.monotonic() + seconds
        self.shrinking = shrinking
        self.note = note
        self.at_once = at_once
        self.check = ""
        self.best: DeviceProgram | None = None
        self.error = ""
        self._waiting: dict[tuple[int, str], list[DeviceProgram]] = {}

    def run(self, examples: int, seed: int) -> None:
        """Tries that many programs at most."""
        _each(self._try, self.programs, examples, seed, (Phase.generate,))
        for group in list(self._waiting.values()):
            if self.best is None:
                # A search ends where it found something, however it was found.
                with contextlib.suppress(_Enough):
                    self._compile(group)
        if self.best is None or self.best.size <= SMALL:
            return
        self.deadline = time.monotonic() + self.shrinking
        first = self.best.source

        def shrink(program: DeviceProgram) -> None:
            is_one = program.source == first or self._still_fails(program)
            assert not is_one

        _each(shrink, self.programs, examples, seed, (Phase.generate, Phase.shrink))

    def _try(self, program: DeviceProgram) -> None:
        if time.monotonic() > self.deadline:
            raise _Enough
        self.note(program.source)
        for name, check in CHECKS.items():
            if name != COMPILED:
                error = _error_of(check, program)
                if error:
                    self._found(name, program, error)
        if COMPILED in CHECKS:
            group = self._waiting.setdefault((program.num_devices, _way(program)), [])
            group.append(program)
            if len(group) >= self.at_once:
                self._compile(group)
                group.clear()

    def _compile(self, group: Sequence[DeviceProgram]) -> None:
        """Checks some programs together; one by one where something is wrong."""
        with contextlib.suppress(Exception):
            outs = run_together(group, check_vma=_way(group[0]) == "checked")
            sides = zip(group, outs, strict=True)
            if not any(disagreement(out, simulated(p)) for p, out in sides):
                return
        for program in sorted(group, key=_weight):
            self.note(program.source)
            error = _error_of(CHECKS[COMPILED], program)
            if error:
                self._found(COMPILED, program, error)

    def _found(self, check: str, program: DeviceProgram, error: str) -> None:
        self.check, self.best, self.error = check, program, error
        raise _Enough

    def _still_fails(self, program: DeviceProgram) -> bool:
        """Whether a program shows the fault in the way in which it was found."""
        assert self.best is not None
        if self.best.size <= SMALL or time.monotonic() > self.deadline:
            raise _Enough
        self.note(program.source)
        error = _error_of(CHECKS[self.check], program)
        if error and _weight(program) < _weight(self.best):
            self.best, self.error = program, error
        return bool(error)


def _each(
    function: Callable[[DeviceProgram], None],
    drawn: st.SearchStrategy[DeviceProgram],
    examples: int,
    seed: int,
    phases: Sequence[Phase],
) -> None:
    """Calls a function with generated programs, until it raises; the same ones each time."""
    options = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
        verbosity=hypothesis.Verbosity.quiet,
    )
    look = hypothesis.seed(seed)(options(hypothesis.given(drawn)(function)))
    # What was found is kept by the function, however the search ends.
    with contextlib.suppress(_Enough, Exception, BaseExceptionGroup):
        look()


def _weight(program: DeviceProgram) -> tuple[int, int]:
    return program.size, len(program.source)


def detect(
    steps: Sequence[str] = (),
    seconds: float = 60,
    shrinking: float = 20,
    examples: int = 600,
    seed: int = 0,
    at_once: int = AT_ONCE,
    note: Callable[[str], None] = lambda _: None,
) -> Finding:
    """Looks for the fault: by programs first, which shrink, then by the laws of collectives.

    Args:
        steps: the collectives of programs, if not all; names in `strategies.collective_steps`.
        seconds: how long to look.
        shrinking: how long to look for a smaller program then.
        examples: how many programs to try at most.
        seed: for Hypothesis.
        at_once: how many programs are compiled together.
        note: gets the code of each program before it runs, in case it ends the process.
    """
    start = time.monotonic()
    search = Search(steps, seconds, shrinking, note, at_once)
    # What the oracle runs too, because it is made of other collectives, only a law can tell.
    search.run(examples // 4, seed)
    found = _broken_law() if search.best is None else None
    if found is None and search.best is None:
        search.run(examples, seed + 1)
    took = time.monotonic() - start
    if search.best is not None:
        return Finding(search.check, search.best.size, search.best.source, search.error, took)
    if found is not None:
        return Finding(*found, took)
    return Finding("", 0, "", "", took)


def _broken_law() -> tuple[str, int, str, str] | None:
    """The first law of collectives that does not hold."""
    for mesh in ({"x": 4}, {"x": 2, "y": 3}):
        for law in laws.LAWS:
            error = _law_error(mesh, law) if law.subject == "collectives" else ""
            if error:
                return f"law {law.number}", 0, law.statement, error
    return None


def _law_error(mesh: dict[str, int], law: laws.Law) -> str:
    try:
        laws.check_collectives(mesh, laws=[law.number])
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""
