"""A sample keeps every test and every row, and its seed selects the same tests again."""

import datetime
import os
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from tests import cpu_time, sampling

ROOT = Path(__file__).resolve().parents[2]

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="makes git repositories")

SUITE = """
import pytest

@pytest.mark.parametrize("x", range(100))
def test_law(x):
    pass

@pytest.mark.sampled(3)
@pytest.mark.parametrize("x", range(20))
def test_costly_law(x):
    pass

@pytest.mark.parametrize("x", range(4))
def test_few(x):
    pass

@pytest.mark.parametrize(
    "x", [pytest.param(i, marks=pytest.mark.feature(f"CR-{i:02d}")) for i in range(30)]
)
def test_rows(x):
    pass

def test_alone():
    pass
"""
TURNS = """
import pytest

@pytest.mark.turns(3)
@pytest.mark.feature("CR-01")
def test_row():
    pass
""" + "".join(
    f"""
@pytest.mark.turns(3)
@pytest.mark.parametrize("x", range(2))
def test_program_{number}(x):
    pass
"""
    for number in range(60)
)


def node_ids(pytester: pytest.Pytester, *arguments: str) -> list[str]:
    """Returns the tests of the suite that run with these arguments, in their order."""
    result = pytester.inline_run("-p", "tests.sampling", *arguments)
    reports = result.getreports("pytest_runtest_logreport")
    return [report.nodeid for report in reports if report.when == "call"]


def names(pytester: pytest.Pytester, *arguments: str) -> list[str]:
    """Returns what `node_ids` does, without the names of files."""
    return [node_id.partition("::")[2] for node_id in node_ids(pytester, *arguments)]


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeini("[pytest]\nmarkers = feature(*ids): rows")
    pytester.makepyfile(SUITE)
    return pytester


@pytest.mark.feature("HO-05")
def test_sample_keeps_every_test_and_every_row(suite: pytest.Pytester) -> None:
    numbers = Counter(name.partition("[")[0] for name in names(suite, "--sample=7"))
    assert numbers == {
        "test_law": 8,
        "test_costly_law": 3,
        "test_few": 2,
        "test_rows": 30,
        "test_alone": 1,
    }


@pytest.mark.feature("HO-05")
def test_a_seed_selects_the_same_tests_again_and_another_seed_selects_others(
    suite: pytest.Pytester,
) -> None:
    first, again, other = (names(suite, f"--sample={seed}") for seed in (7, 7, 8))
    assert first == again
    assert set(first) != set(other)


@pytest.mark.feature("HO-05")
def test_turns_keeps_a_test_in_one_sample_of_n_but_always_keeps_its_rows(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeini("[pytest]\nmarkers = feature(*ids): rows")
    pytester.makepyfile(TURNS)
    runs = [names(pytester, f"--sample={seed}") for seed in (1, 2)]
    programs = []
    for run in runs:
        assert "test_row" in run
        counts = Counter(name.partition("[")[0] for name in run if name != "test_row")
        assert set(counts.values()) == {2}  # a test is kept with all of its sample or not at all
        assert 10 <= len(counts) <= 30  # a third of 60, within three standard deviations
        programs.append(set(counts))
    assert programs[0] != programs[1]


@pytest.mark.feature("HO-05")
def test_tests_of_a_module_can_take_their_turn_together(pytester: pytest.Pytester) -> None:
    tests = "".join(f"def test_{number}(): pass\n" for number in range(5))
    text = f"import pytest\npytestmark = pytest.mark.turns(2, together=True)\n{tests}"
    pytester.makepyfile(**{f"test_module_{number}": text for number in range(20)})
    modules = Counter(name.partition("::")[0] for name in node_ids(pytester, "--sample=1"))
    assert set(modules.values()) == {5}
    assert 3 <= len(modules) <= 17  # half of 20, within three standard deviations


@pytest.mark.feature("HO-05")
def test_without_a_seed_all_run(suite: pytest.Pytester) -> None:
    assert len(names(suite)) == 100 + 20 + 4 + 30 + 1


def commit(root: Path, message: str) -> str:
    """Commits nothing in a repository at `root`, which is made if need be; returns the hash."""
    # Neither the user's settings nor the date may change the hash.
    fixed = {
        "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "HOME": str(root),
        "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a", "GIT_AUTHOR_DATE": "2026-01-01T00:00Z",
        "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a",
        "GIT_COMMITTER_DATE": "2026-01-01T00:00Z",
    }  # fmt: skip
    for arguments in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", message]):
        environment = {"PATH": os.environ["PATH"], **fixed}
        subprocess.run(["git", "-C", str(root), *arguments], check=True, env=environment)
    head = ["git", "-C", str(root), "rev-parse", "HEAD"]
    return subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()


def advance_clock(monkeypatch: pytest.MonkeyPatch, days: int) -> None:
    """Sets the clock that Python programs read forward by some days."""
    now, date_time = time.time, datetime.datetime

    class Later(date_time):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
            return date_time.now(tz) + datetime.timedelta(days)

    class LaterDate(datetime.date):
        @classmethod
        def today(cls) -> datetime.date:
            return Later.now().date()

    monkeypatch.setattr(time, "time", lambda: now() + 86400 * days)
    monkeypatch.setattr(datetime, "datetime", Later)
    monkeypatch.setattr(datetime, "date", LaterDate)


@needs_git
@pytest.mark.feature("HO-05")
def test_sample_depends_on_the_commit_and_not_on_the_day(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_hash = commit(suite.path, "first")
    first = names(suite, "--sample=commit")
    with monkeypatch.context() as patch:
        advance_clock(patch, days=2)
        assert names(suite, "--sample=commit") == first
    assert names(suite, f"--sample={int(first_hash[:8], 16)}") == first
    assert commit(suite.path, "second") != first_hash
    assert set(names(suite, "--sample=commit")) != set(first)


@pytest.mark.feature("HO-05")
def test_without_a_git_checkout_the_seed_is_fixed(suite: pytest.Pytester) -> None:
    expected = names(suite, f"--sample={sampling.SEED_WITHOUT_COMMIT}")
    assert names(suite, "--sample=commit") == expected


@needs_git
def test_a_repository_around_the_tree_is_not_its_commit(tmp_path: Path) -> None:
    assert sampling.commit_of(tmp_path) is None
    assert commit(tmp_path, "outer") == sampling.commit_of(tmp_path)
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    assert sampling.commit_of(unpacked) is None


def test_a_machine_without_git_has_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    assert sampling.commit_of(tmp_path) is None  # not a repository that git can read
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sampling.commit_of(tmp_path) is None


def test_workers_select_the_same_sample_and_the_header_names_the_seed(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    # Importing all plugins that are installed takes most of the time of such short processes.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    plugins = ("-p", "xdist", "-p", "tests.sampling")
    result = suite.runpytest_subprocess(*plugins, "-n", "2", "--sample=commit")
    result.stdout.fnmatch_lines(["sample: seed 1, fixed, *; `make test SEED=1` *"])
    result.assert_outcomes(passed=8 + 3 + 2 + 30 + 1)


def test_seed_is_a_number_or_a_word(tmp_path: Path) -> None:
    assert sampling.resolve_seed("20260101", tmp_path).value == "20260101"
    assert sampling.resolve_seed("all", tmp_path).value == "all"
    for option in ("some", "today", "-1", "²"):
        with pytest.raises(pytest.UsageError, match="expected a number, `commit` or `all`"):
            sampling.resolve_seed(option, tmp_path)


def test_tests_of_one_record_are_drawn_together(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_records="""
        import pytest

        class Record:
            def __init__(self, number):
                self.id = f"record {number}"

        RECORDS = [Record(i) for i in range(60)]

        @pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.id)
        def test_law(record):
            pass

        @pytest.mark.parametrize("seed", range(2))
        @pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.id)
        def test_seeded(record, seed):
            pass
        """
    )
    found = names(suite, "--sample=7", "test_records.py")
    plain = {name.partition("[")[2][:-1] for name in found if name.startswith("test_law")}
    seeded = {name.partition("[")[2].rpartition("-")[0] for name in found if "seeded" in name}
    assert seeded <= plain


def test_quick_keeps_one_parameter_of_each_test_and_few_expensive_tests(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeini("[pytest]\nmarkers = feature(*ids): rows\n  slow: slow")
    slow = "".join(f"@pytest.mark.slow\ndef test_slow_{number}(): pass\n" for number in range(40))
    pytester.makepyfile(test_small=SUITE + slow)
    counts = Counter(name.partition("[")[0] for name in names(pytester, "--sample=7", "--quick"))
    assert set(counts.values()) == {1}
    # Five cheap tests leave 395 of 400, which 20 expensive ones use up.
    assert len(counts) == 5 + 20
    assert {"test_law", "test_costly_law", "test_few", "test_rows", "test_alone"} <= set(counts)
    result = pytester.inline_run("-p", "tests.sampling", "--quick")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


class Unmarked:
    """A test without marks, as far as the selection of turns looks at it."""

    def __init__(self, name: str) -> None:
        self.nodeid = name

    def get_closest_marker(self, name: str) -> None:
        return None


def test_expensive_tests_take_turns_by_their_measured_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "_COSTS", {"test_long": 9.0, "test_longer_than_most": 2.0})
    tests = [Unmarked(name) for name in ("test_long", "test_longer_than_most[3]", "test_cheap")]
    counts = [sum(sampling._has_its_turn(test, str(seed)) for seed in range(900)) for test in tests]
    assert 75 < counts[0] < 125
    assert 250 < counts[1] < 350
    assert counts[2] == 900


def test_costs_are_those_of_the_last_report() -> None:
    costs = "   3.0 tests/a.py::test_old\n   2.0 tests/b.py::test_x\n"
    report = "     1.50      2  tests/b.py::test_y\n     0.20      1  tests/b.py::test_x\n"
    assert cpu_time.updated_costs(costs, report) == (
        "   3.0 tests/a.py::test_old\n   1.5 tests/b.py::test_y\n"
    )


def test_tests_with_a_cost_exist() -> None:
    lines = (ROOT / "tests" / "costs.txt").read_text(encoding="utf-8").splitlines()
    for name in [line.split()[1] for line in lines]:
        path, _, function = name.partition("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        assert f"def {function.rpartition('::')[2]}(" in text
