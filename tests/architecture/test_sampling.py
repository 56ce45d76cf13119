"""A sample of the parameters loses no test and no row, and its seed draws it again."""

from collections import Counter
from pathlib import Path

import pytest

from tests import sampling

ROOT = Path(__file__).resolve().parents[2]
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
@pytest.mark.parametrize("x", range(2))
def test_program(x):
    pass

@pytest.mark.turns(3)
@pytest.mark.feature("CR-01")
def test_row():
    pass
"""


def names(pytester: pytest.Pytester, *arguments: str) -> list[str]:
    """The tests of the suite that run with these arguments, in their order."""
    result = pytester.inline_run("-p", "tests.sampling", *arguments)
    return [
        report.nodeid.partition("::")[2]
        for report in result.getreports("pytest_runtest_logreport")
        if report.when == "call"
    ]


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeini("[pytest]\nmarkers = feature(*ids): rows")
    pytester.makepyfile(SUITE)
    return pytester


@pytest.mark.feature("HO-05")
def test_sample_keeps_every_test_and_every_row(suite: pytest.Pytester) -> None:
    numbers = Counter(name.partition("[")[0] for name in names(suite, "--sample=7"))
    assert numbers == {
        "test_law": 12,
        "test_costly_law": 3,
        "test_few": 4,
        "test_rows": 30,
        "test_alone": 1,
    }


@pytest.mark.feature("HO-05")
def test_seed_draws_the_same_sample_again_and_another_draws_another(
    suite: pytest.Pytester,
) -> None:
    first, again, other = (names(suite, f"--sample={seed}") for seed in (7, 7, 8))
    assert first == again
    assert set(first) != set(other)


@pytest.mark.feature("HO-05")
def test_costly_tests_take_turns_but_keep_their_rows(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers = feature(*ids): rows")
    pytester.makepyfile(TURNS)
    runs = [names(pytester, f"--sample={seed}") for seed in range(20260101, 20260107)]
    assert all("test_row" in run for run in runs)
    counts = [sum(name.startswith("test_program") for name in run) for run in runs]
    assert sorted(counts[:3]) == sorted(counts[3:]) == [0, 0, 2]


@pytest.mark.feature("HO-05")
def test_without_a_seed_all_run(suite: pytest.Pytester) -> None:
    assert len(names(suite)) == 100 + 20 + 4 + 30 + 1


@pytest.mark.slow
def test_workers_draw_the_same_sample_and_the_header_names_the_seed(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    result = suite.runpytest_subprocess("-p", "tests.sampling", "-n", "2", "--sample=today")
    result.stdout.fnmatch_lines(["sample: --sample=20?????? draws *"])
    result.assert_outcomes(passed=12 + 3 + 4 + 30 + 1)


def test_seed_is_a_number_or_a_word() -> None:
    assert sampling.seed_from_option("20260101") == "20260101"
    assert sampling.seed_from_option("all") == "all"
    with pytest.raises(pytest.UsageError, match="--sample=some: expected a number"):
        sampling.seed_from_option("some")


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
    assert seeded < plain
