"""The machine that plants faults: a few of them, and what it says where there is none."""

import json

import pytest

import minijax as jax
from tests.mutants import detector, run
from tests.mutants.catalogue import mutations
from tests.mutants.mutation import Mutation

FAULTS = list(mutations())
CHEAP = [
    ("lax.collectives.gathers:Gather.batch", "b + (dim <= b)"),
    ("lax.collectives.permutations:PPermute.transpose", "(d, s) for"),
    ("lax.collectives.reductions:_batch_axis_of_all_reduce", "dim if a == name"),
    ("interpreters.casts:_vary_of_psum_invariant", "given.varying - named"),
]


@pytest.fixture(autouse=True)
def eight_devices():
    with jax.cpu_devices(8):
        yield


def test_there_are_more_than_a_hundred_faults():
    assert len(FAULTS) >= 100


def test_faults_are_told_apart():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault_fits_the_rule_and_can_be_undone(fault):
    own = fault.function().__code__
    with fault.applied():
        assert fault.function().__code__ is not own
    assert fault.function().__code__ is own


@pytest.mark.slow
@pytest.mark.parametrize(("target", "old"), CHEAP)
def test_fault_is_noticed_and_shrunk(target, old, monkeypatch):
    # What compiles takes longest, and is not needed for these.
    monkeypatch.delitem(detector.CHECKS, "XLA")
    fault = next(f for f in FAULTS if (f.target, f.old) == (target, old))
    with fault.applied():
        found = detector.detect(fault.steps, shrinking=10)
    assert found.check
    assert 1 <= found.size <= run.SMALL_ENOUGH


@pytest.mark.turns(3)
@pytest.mark.slow
def test_rules_without_a_fault_are_not_complained_of(monkeypatch):
    monkeypatch.delitem(detector.CHECKS, "XLA")
    search = detector.Search((), 30, 10, lambda _: None)
    search.run(examples=40, seed=1)
    assert search.best is None


def test_results_make_a_table():
    fault = Mutation("lax:f", "a | b", "a & b")
    result = detector.Finding("XLA", 2, "", "", 1.0)._asdict()
    page = run.table([(0, fault)], {fault.name: result})
    assert "| lax:f | `a \\| b` | `a & b` | XLA | 2 |" in page


def test_results_are_counted():
    found = [detector.Finding(*fields, "", "", 1.0)._asdict() for fields in (("XLA", 7), ("", 0))]
    assert run.summary(json.loads(json.dumps(found))) == {"planted": 2, "noticed": 1, "small": 0}
