"""Which parameters of the tests a run takes: `make test` takes a sample, `make test-all` takes all.

A test with many parameters holds one law against many programs.  With `--sample=SEED` a run takes
a few of them, drawn by the seed, and another seed takes others.  Each test stays, with two
parameters at least, and so does each row of docs/features.md that some parameter of it shows.
A test that costs more than most says how many it keeps: `@pytest.mark.sampled(4)`.

Tests that cost as much as hundreds of others, such as whole programs, take turns:
`@pytest.mark.turns(3)` has each in the samples of one day in three; decision 0033.
"""

from __future__ import annotations

import datetime
import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence

import pytest

_FEW = 4
"""A test with as many parameters keeps them all; of what it has beyond, it keeps one in twelve."""

_LEAST = 2


def seed_from_option(option: str) -> str:
    """The seed that an option means: `all` and numbers are themselves, `today` is the date.

    Raises:
        UsageError: the option is none of them.
    """
    if option == "today":
        return f"{datetime.datetime.now(datetime.UTC):%Y%m%d}"
    if option != "all" and not option.isdecimal():
        raise pytest.UsageError(f"--sample={option}: expected a number, `today` or `all`")
    return option


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--sample`."""
    parser.addoption(
        "--sample",
        default="all",
        metavar="SEED",
        help="run a few parameters of each test, drawn by this number or by `today`; or `all`",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Settles the seed before workers start: all of them have to draw the same tests."""
    config.addinivalue_line(
        "markers", "sampled(n): a sample keeps about n of the test's parameters, which cost much"
    )
    config.addinivalue_line("markers", "turns(n): one sample in n has the test, which costs much")
    config.option.sample = seed_from_option(config.getoption("--sample"))


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Says in one line what is run, and how to run the same again."""
    seed = config.getoption("--sample")
    if seed == "all":
        return []
    return [f"sample: --sample={seed} draws the same parameters again, --sample=all takes all"]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects what the sample leaves out."""
    seed = config.getoption("--sample")
    if seed == "all":
        return
    of_test = defaultdict(list)
    for item in items:
        of_test[item.nodeid.partition("[")[0]].append(item)
    kept = {item for test in of_test.values() for item in drawn(test, seed)}
    waiting = [item for item in items if item in kept and not _has_its_turn(item, seed)]
    kept -= set(waiting)
    shown = _features(kept)
    for item in waiting:
        if new := _features([item]) - shown:
            kept.add(item)
            shown |= new
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def drawn(items: Sequence[pytest.Item], seed: str) -> list[pytest.Item]:
    """The sample of one test's items, in an order that depends on the seed."""
    ranked = sorted(items, key=lambda item: _rank(item, seed))
    sample = ranked[: _size(items)]
    shown = _features(sample)
    for item in ranked[len(sample) :]:
        if new := _features([item]) - shown:
            sample.append(item)
            shown |= new
    return sample


def _has_its_turn(item: pytest.Item, seed: str) -> bool:
    """Whether a test is in the sample of a seed; seeds in a row take all tests in turn."""
    mark = item.get_closest_marker("turns")
    name = item.nodeid.partition("[")[0]
    return mark is None or (zlib.crc32(name.encode()) + int(seed)) % mark.args[0] == 0


def _size(items: Sequence[pytest.Item]) -> int:
    mark = items[0].get_closest_marker("sampled")
    if mark is not None:
        return max(_LEAST, mark.args[0])
    return len(items) if len(items) <= _FEW else _FEW + (len(items) - _FEW) // 12


def _rank(item: pytest.Item, seed: str) -> tuple[int, int, str]:
    """Where a seed puts an item: those of one record together, so that they share programs."""
    callspec = getattr(item, "callspec", None)
    record = callspec.params.get("record") if callspec else None
    name = getattr(record, "id", item.name.partition("[")[2])
    return _hash(seed, name), _hash(seed, item.name), item.name


def _hash(seed: str, text: str) -> int:
    return zlib.crc32(f"{seed} {text}".encode())


def _features(items: Iterable[pytest.Item]) -> set[str]:
    marks = (mark for item in items for mark in item.iter_markers("feature"))
    return {row for mark in marks for row in mark.args}
