"""The inventory is well-formed, marks refer to it, and reports are read rightly."""

import ast
from pathlib import Path

import pytest

from tools import features
from tools.features import Feature

ROOT = Path(__file__).resolve().parents[2]
PATH = ROOT / features.INVENTORY


def test_marks_name_rows_of_the_inventory(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers = feature(*ids): rows")
    pytester.makepyfile("import pytest\n@pytest.mark.feature('CR-02')\ndef test_it(): pass")
    inventory = pytester.path / features.INVENTORY
    inventory.parent.mkdir()
    inventory.write_text("| CR-01 | a | b | c |\n", encoding="utf-8")
    result = pytester.runpytest_inprocess("-p", "tools.features")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    message = "*test_it: feature('CR-02') names no row of docs/features.md*"
    result.stderr.fnmatch_lines([message])
    inventory.write_text("| CR-02 | a | b | c |\n", encoding="utf-8")
    assert pytester.runpytest_inprocess("-p", "tools.features").ret == pytest.ExitCode.OK


def test_every_row_belongs_to_an_area() -> None:
    areas = features.areas(PATH)
    assert {name[:2] for name in features.inventory(PATH)} == set(areas)


def test_rows_of_an_area_are_numbered_without_gaps() -> None:
    names = list(features.inventory(PATH))
    expected = [
        f"{area}-{number:02d}"
        for area in features.areas(PATH)
        for number in range(1, 1 + sum(name.startswith(area) for name in names))
    ]
    assert names == expected


def test_inventory_refuses_a_repeated_id(tmp_path: Path) -> None:
    path = tmp_path / "features.md"
    path.write_text("| CR-01 | a | b | c |\n| CR-01 | d | e | f |\n", encoding="utf-8")
    with pytest.raises(ValueError, match="two rows are called CR-01"):
        features.inventory(path)


def test_shown_needs_a_passing_test_and_no_failing_one() -> None:
    outcomes = {
        "CR-01": {"a": "passed", "b": "skipped"},
        "CR-02": {"a": "passed", "b": "failed"},
        "CR-03": {"a": "skipped"},
    }
    assert features.shown(outcomes) == {"CR-01"}


def test_summary_lists_what_is_not_shown() -> None:
    rows = {name: Feature(name, f"name {name}", "", "") for name in ("CR-01", "CR-02", "CR-03")}
    outcomes = {"CR-01": {"a": "passed"}, "CR-02": {"b": "failed"}}
    text = features.summary(rows, {"CR": "Core"}, outcomes)
    missing = text.partition("Without a passing test:\n")[2]
    assert missing.splitlines() == ["  CR-02  name CR-02   FAILED: b", "  CR-03  name CR-03"]


@pytest.mark.slow
def test_report_records_outcomes_by_row(
    tmp_path: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    # Importing all plugins that are installed takes most of the time of such short processes.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.feature("CR-01", "CR-02")
        def test_works():
            pass

        @pytest.mark.feature("CR-02")
        def test_fails():
            assert False

        @pytest.mark.feature("CR-03")
        @pytest.mark.skip
        def test_skipped():
            pass
        """
    )
    path = tmp_path / "report.json"
    plugins = ("-p", "xdist", "-p", "tools.features")
    pytester.runpytest_subprocess(*plugins, "-n", "2", "--features-report", str(path))
    recorded = ast.literal_eval(path.read_text(encoding="utf-8"))
    results = {row: sorted(tests.values()) for row, tests in recorded.items()}
    assert results == {"CR-01": ["passed"], "CR-02": ["failed", "passed"], "CR-03": ["skipped"]}
