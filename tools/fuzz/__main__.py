"""The command: `python -m tools.fuzz --jax-python .venv-jax/bin/python --minutes 10`.

Without JAX, what minijax computes statement by statement is compared with what it compiles.  It
prints a line for each difference that has no reason: the seed, the shortest program that shows
it, and what both libraries give.  The exit status is 1 if there is one.  `--seed 17` runs the
program of that seed alone; `--first` says with which seed to begin.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from benchmarks.remote import RemoteWorker, WorkerError
from tools.fuzz import compare, programs
from tools.fuzz.compare import Difference, Seen
from tools.fuzz.programs import Program
from tools.fuzz.shrink import shrink

_DEVICES = 4
_PATIENCE = 60.0
_BETWEEN_CLEARINGS = 150
_BETWEEN_REPORTS = 250
_ROUNDING = "the result depends on rounding: JAX's own differs as much where operands do"
_DIED = "JAX's process died, or gave no answer"


class Fuzzer:
    """Runs programs on both libraries.

    Attributes:
        programs: how many were run.
        statements: how many statements had a result, or an error, in both.
        explained: how many differences had each reason.
        found: the smallest programs that differ without a reason, by what they show.
    """

    def __init__(self, python: str, jax_python: str | None, mode: str | None = None) -> None:
        self._ours = RemoteWorker(python, "minijax", _DEVICES, _PATIENCE)
        library = "minijax" if jax_python is None else "jax"
        self._theirs = RemoteWorker(jax_python or python, library, _DEVICES, _PATIENCE)
        # Without JAX, programs run statement by statement are compared with compiled ones.
        self._is_alone = jax_python is None
        self._mode = mode
        self._workers = self._ours, self._theirs
        self._both = ThreadPoolExecutor(2)
        self.programs = 0
        self.statements = 0
        self.errors = 0
        self.explained: Counter[str] = Counter()
        self.found: Counter[tuple[str, ...]] = Counter()

    def close(self) -> None:
        """Ends both processes."""
        self._both.shutdown()
        for worker in self._workers:
            worker.close()

    def run(self, seed: int) -> None:
        """Runs the program of a seed, and reports what differs without a reason."""
        program = programs.program(seed, self._mode)
        self.programs += 1
        if self.programs % _BETWEEN_CLEARINGS == 0:
            for worker in self._workers:
                worker.ask("clear")
        if self.programs % _BETWEEN_REPORTS == 0:
            print(f"# {self.programs} programs, {self.found.total()} without a reason", flush=True)
        for difference in self.differences(program, count=True):
            if (reason := self.reason(program, difference)) is not None:
                self.explained[reason] += 1
                continue
            self._report(seed, program, difference)

    def differences(self, program: Program, *, count: bool = False) -> list[Difference]:
        """The differences of a program."""
        asked = [self._both.submit(self._seen, each, program) for each in self._workers]
        ours, theirs = (each.result() for each in asked)
        if theirs is None:
            self.explained[_DIED] += count
            return []
        if ours is None:
            return [self._death(program)]
        if count:
            self.statements += sum("skipped" not in each for each in theirs)
            self.errors += sum("error" in each for each in theirs)
        return list(compare.differences(program, ours, theirs))

    def _death(self, program: Program) -> Difference:
        """The difference that minijax's process dies: in the last statement, unless it is alone."""
        fatal = program.statements[-1]
        for number in range(1, len(program.statements)):
            first = program._replace(statements=program.statements[:number])
            if self._seen(self._ours, first) is None:
                fatal = first.statements[-1]
                break
        return Difference(fatal, "error", "Death: of the process", "value")

    def reason(self, program: Program, difference: Difference) -> str | None:
        """Why a difference is as it should be, if it is."""
        found = compare.reason(difference)
        if found is not None or difference.aspect in ("error", "tree", "dtype", "weak", "spec"):
            return found
        statements = programs.needed(program.statements, [difference.statement])
        alone = program._replace(statements=statements)
        theirs, nudged = (self._seen(self._theirs, alone, nudged=on) for on in (False, True))
        if theirs is None or nudged is None:
            return _DIED
        return _ROUNDING if compare.depends_on_rounding(-1, theirs, nudged) else None

    def _seen(
        self, worker: RemoteWorker, program: Program, *, nudged: bool = False
    ) -> list[Seen] | None:
        """What a library gives; None if its process dies."""
        mode = program.mode
        if self._is_alone:
            is_eager = worker is self._ours or nudged or programs.is_eager_alone(program)
            mode = "eager" if is_eager else "jit"
        details = {"settings": program.settings, "mode": mode, "nudged": nudged}
        try:
            answer = worker.ask("run_random", statements=list(program.statements), **details)
        except WorkerError:
            return None
        seen: list[Seen] = answer["seen"]
        return seen

    def _may_show(self, program: Program, wanted: tuple[str, str, str]) -> bool:
        """Whether minijax alone, which is faster, says nothing against it."""
        ours = self._seen(self._ours, program)
        return wanted[0] != "error" or ours is None or compare.kind_of(ours[-1]) == wanted[1]

    def _report(self, seed: int, program: Program, difference: Difference) -> None:
        """Makes a program small, and prints it if nothing like it was printed before."""
        wanted = difference.signature
        latest = difference
        start = time.monotonic()

        def shows(smaller: Program) -> bool:
            nonlocal latest
            if not self._may_show(smaller, wanted):
                return False
            found = [x for x in self.differences(smaller) if x.signature == wanted]
            if not found or found[-1].statement != smaller.statements[-1]:
                return False
            if self.reason(smaller, found[-1]) is not None:
                return False
            latest = found[-1]
            return True

        needed = programs.needed(program.statements, [difference.statement])
        small = shrink(program._replace(statements=needed), shows)
        key = (*wanted, *sorted(programs.used_by(" ".join(latest.statement.split()))))
        self.found[key] += 1
        print(f"\n# seed {seed}: {latest}\n{small}\n# {time.monotonic() - start:.0f} s", flush=True)


def fuzz(fuzzer: Fuzzer, seeds: Iterable[int], seconds: float) -> None:
    """Runs the programs of some seeds, until the time is over."""
    end = time.monotonic() + seconds
    for seed in seeds:
        fuzzer.run(seed)
        if time.monotonic() > end:
            break


def main() -> int:
    """Runs the command; its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jax-python", help="the interpreter that has JAX; without it, minijax")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has minijax")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long")
    parser.add_argument("--programs", type=int, default=10**9, help="how many programs at most")
    parser.add_argument("--mode", choices=programs.MODES, help="how all programs are run")
    parser.add_argument("--first", type=int, default=int(time.time()), help="the first seed")
    parser.add_argument("--seed", type=int, action="append", help="run the program of this seed")
    options = parser.parse_args()
    seeds = options.seed or range(options.first, options.first + options.programs)
    fuzzer = Fuzzer(options.python, options.jax_python, options.mode)
    print(f"seeds from {seeds[0]}", flush=True)
    try:
        fuzz(fuzzer, seeds, 60 * options.minutes)
    finally:
        fuzzer.close()
        for reason, count in fuzzer.explained.most_common():
            print(f"{count:6}  {reason}")
        print(
            f"{fuzzer.programs} programs from seed {seeds[0]}, {fuzzer.statements} statements, "
            f"{fuzzer.errors} of them errors in JAX: {fuzzer.explained.total()} differences with "
            f"a reason, {fuzzer.found.total()} without"
        )
    return int(bool(fuzzer.found))


if __name__ == "__main__":
    sys.exit(main())
