"""Selects the tests of a sample: `make test` runs a sample, `make test-all` runs everything.

A test with many parameters checks one property on many programs.  `--sample=SEED` keeps at least
two parameters of each test; another seed keeps other parameters.  Every row of docs/features.md
that has a test is covered by each sample.

Two marks make a sample cheaper (decisions 0020, 0033 and 0041):

- `@pytest.mark.sampled(4)` keeps four parameters of an expensive test, instead of two and one in
  16 of the rest.
- `@pytest.mark.turns(3)` keeps an expensive test, such as one that runs a whole program and costs
  as much as hundreds of others, with probability 1/3.

A test without a `turns` mark whose CPU time in tests/costs.txt is half a second or more is treated
like one with `turns(3)`, and from four seconds on like one with `turns(9)`.

`--sample=commit` derives the seed from the commit that is checked out, so that all runs on a
commit select the same tests, on every day and on every machine.

`--quick` selects a smaller sample, for `make quick ROOM=lax`: one parameter of each test, and only
some tests of a large folder.  It does not cover all rows of docs/features.md.
"""

from __future__ import annotations

import subprocess
import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

SEED_WITHOUT_COMMIT = 1
"""The seed in a tree that is not a git checkout, such as an unpacked source distribution."""

_COSTS = {
    name: float(seconds)
    for seconds, name in map(
        str.split, Path(__file__).with_name("costs.txt").read_text("utf-8").splitlines()
    )
}
"""CPU seconds of expensive test functions by name; `python -m tests.cpu_time` writes the file."""

_TURNS_BY_COST = ((4.0, 9), (0.5, 3))
"""Pairs of a minimum CPU time in seconds and the `n` of the `turns(n)` that applies from there on.

The first pair that matches applies."""

_MIN_KEPT = 2
_KEPT_OF_REST = 16
"""A sample keeps two parameters of each test, and one in 16 of the rest."""

_QUICK_BUDGET = 400
_QUICK_COST_OF_SLOW = 20
"""The number of tests that `--quick` runs, where an expensive test counts as 20 tests.

A test is expensive if it is marked `slow` or takes turns.  Other tests take about a tenth of a
second of CPU time each."""


class Seed(NamedTuple):
    """A seed and its origin.

    Attributes:
        value: a decimal number, or `all`, which keeps every test.
        origin: a description of where the value comes from, for the header of the report.
    """

    value: str
    origin: str


def commit_of(root: Path) -> str | None:
    """Returns the hash of the commit checked out at `root`, or None if `root` is not a checkout.

    A repository that merely contains `root`, for example one in which a source distribution was
    unpacked, is ignored, because its commits are unrelated to these tests.
    """
    if not (root / ".git").exists():
        return None
    # git rejects a checkout that belongs to another user, as is common in containers, because its
    # hooks and configuration could run programs.  `rev-parse` runs none of them.
    command = ("git", "-c", "safe.directory=*", "-C", str(root), "rev-parse", "--verify", "HEAD")
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return result.stdout.strip() if result.returncode == 0 else None


def resolve_seed(option: str, root: Path) -> Seed:
    """Returns the seed for `--sample=option` in the checkout at `root`.

    Raises:
        UsageError: the option is not a number, `commit` or `all`.
    """
    if option == "commit":
        commit = commit_of(root)
        if commit is None:
            return Seed(str(SEED_WITHOUT_COMMIT), "fixed, because this is not a git checkout")
        return Seed(str(int(commit[:8], 16)), f"from commit {commit[:8]}")
    if option != "all" and not (option.isascii() and option.isdecimal()):
        raise pytest.UsageError(f"--sample={option}: expected a number, `commit` or `all`")
    return Seed(option, "as specified")


_SEED = pytest.StashKey[Seed]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--sample` and `--quick`."""
    parser.addoption(
        "--sample",
        default="all",
        metavar="SEED",
        help="run a sample of the tests, selected by a number or `commit`; `all` runs every test",
    )
    parser.addoption(
        "--quick",
        action="store_true",
        help="with --sample: keep one parameter of each test, and only some tests of large folders",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Resolves the seed before workers start, so that all of them select the same tests."""
    config.addinivalue_line(
        "markers", "sampled(n): a sample keeps about n parameters of this expensive test"
    )
    config.addinivalue_line(
        "markers",
        "turns(n, together=False): a sample keeps this test with probability 1/n, "
        "or all marked tests of its module together",
    )
    seed = resolve_seed(config.getoption("--sample"), config.rootpath)
    if config.getoption("--quick") and seed.value == "all":
        raise pytest.UsageError("--quick: expected a sample too, such as --sample=commit")
    config.stash[_SEED] = seed
    config.option.sample = seed.value


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Returns a line with the seed, its origin, and the command that repeats the sample."""
    seed = config.stash[_SEED]
    if seed.value == "all":
        return []
    if config.getoption("--quick"):
        return [f"quick sample: seed {seed.value}, {seed.origin}; SEED={seed.value} repeats it"]
    return [
        f"sample: seed {seed.value}, {seed.origin}; `make test SEED={seed.value}` "
        f"(pytest --sample={seed.value}) repeats it, `make test-all` runs everything"
    ]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects the tests that are not in the sample."""
    seed = config.getoption("--sample")
    if seed == "all":
        return
    items_by_test = defaultdict(list)
    for item in items:
        items_by_test[_test_name(item)].append(item)
    tests = list(items_by_test.values())
    select = quick_sample if config.getoption("--quick") else full_sample
    kept = select(tests, seed)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def full_sample(tests: Sequence[Sequence[pytest.Item]], seed: str) -> set[pytest.Item]:
    """Returns the sample of `make test`, which covers each row of docs/features.md."""
    sampled = [item for test in tests for item in sample(test, seed)]
    kept = {item for item in sampled if _has_its_turn(item, seed)}
    shown = _features(kept)
    # A row that is not covered yet gets its cheapest test back.  Tests with a larger `n` in
    # `turns(n)` are more expensive, so they come last.
    out_of_turn = [item for item in sampled if item not in kept]
    out_of_turn.sort(key=_turns)
    for item in out_of_turn:
        if new := _features([item]) - shown:
            kept.add(item)
            shown |= new
    return kept


def quick_sample(tests: Sequence[Sequence[pytest.Item]], seed: str) -> set[pytest.Item]:
    """Returns one item of each test, cheap tests first, until the budget is used up."""
    candidates = [min(test, key=lambda item: _rank(item, seed)) for test in tests]
    candidates.sort(key=lambda item: (_is_slow(item), _hash(seed, _test_name(item))))
    kept: set[pytest.Item] = set()
    budget = _QUICK_BUDGET
    for item in candidates:
        if budget <= 0:
            break
        kept.add(item)
        budget -= _QUICK_COST_OF_SLOW if _is_slow(item) else 1
    return kept


def _is_slow(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is not None or _turns(item) > 1


def sample(items: Sequence[pytest.Item], seed: str) -> list[pytest.Item]:
    """Returns the items of one test to keep: a sample, and items needed to cover a row."""
    ranked = sorted(items, key=lambda item: _rank(item, seed))
    size = _sample_size(items)
    kept = ranked[:size]
    shown = _features(kept)
    for item in ranked[size:]:
        if new := _features([item]) - shown:
            kept.append(item)
            shown |= new
    return kept


def _turns(item: pytest.Item) -> int:
    """Returns `n` if the test is in one sample of `n`, by its `turns` mark or else by its cost."""
    mark = item.get_closest_marker("turns")
    if mark is not None:
        return int(mark.args[0])
    cost = _COSTS.get(_test_name(item), 0.0)
    return next((turns for seconds, turns in _TURNS_BY_COST if cost >= seconds), 1)


def _has_its_turn(item: pytest.Item, seed: str) -> bool:
    mark = item.get_closest_marker("turns")
    # With `together=True` the hash is that of the module: its tests share an expensive fixture,
    # so running only some of them would save little.
    module = item.nodeid.partition("::")[0]
    name = module if mark is not None and mark.kwargs.get("together") else _test_name(item)
    return _hash(seed, name) % _turns(item) == 0


def _sample_size(items: Sequence[pytest.Item]) -> int:
    mark = items[0].get_closest_marker("sampled")
    if mark is not None:
        return max(_MIN_KEPT, mark.args[0])
    return _MIN_KEPT + max(0, len(items) - _MIN_KEPT) // _KEPT_OF_REST


def _rank(item: pytest.Item, seed: str) -> tuple[int, int, str]:
    """Returns an item's sort key; a sample keeps the items with the smallest keys.

    The key starts with a hash of the item's record, so that a sample tends to keep the same records
    in all tests, and the tests share compiled programs.
    """
    callspec = getattr(item, "callspec", None)
    record = callspec.params.get("record") if callspec else None
    name = getattr(record, "id", item.name.partition("[")[2])
    return _hash(seed, name), _hash(seed, item.name), item.name


def _test_name(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _hash(seed: str, text: str) -> int:
    return zlib.crc32(f"{seed} {text}".encode())


def _features(items: Iterable[pytest.Item]) -> set[str]:
    marks = (mark for item in items for mark in item.iter_markers("feature"))
    return {row for mark in marks for row in mark.args}
