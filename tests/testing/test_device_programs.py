"""Whole generated programs: what XLA computes is what the oracle says they mean.

XLA takes most of the time for each program that it gets, so it gets several at once.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import minijax as jax
from minijax.testing.programs import check_agree, run_together, simulated
from minijax.testing.strategies import device_programs

UNCHECKED = frozenset({"unchecked"})
CHECKED = frozenset({"checked"})
# Three thousand programs a test in the deep profile, several dozen otherwise.
many = settings(
    max_examples=settings.default.max_examples // 4,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.fixture(autouse=True)
def eight_devices():
    with jax.cpu_devices(8):
        yield


def programs(num_devices, **options):
    one = device_programs(num_devices=num_devices, **options)
    return st.lists(one, min_size=8, max_size=16)


def check_oracle(found, *, check_vma):
    expected = list(map(simulated, found))
    outs = run_together(found, check_vma=check_vma)
    for program, own, other in zip(found, outs, expected, strict=True):
        check_agree("XLA", {"XLA": own, "the oracle": other}, program)


@pytest.mark.feature(
    "CO-01", "CO-03", "CO-04", "CO-07", "CO-08", "CO-09", "CO-13", "CO-15", "CO-18"
)
@pytest.mark.slow
@pytest.mark.parametrize("num_devices", [8, 4, 2, 1])
@many
@given(data=st.data())
def test_xla_computes_what_the_oracle_does(num_devices, data):
    check_oracle(data.draw(programs(num_devices)), check_vma=True)


@pytest.mark.slow
@many
@given(found=programs(8))
def test_xla_computes_the_same_without_types(found):
    check_oracle(found, check_vma=False)


@pytest.mark.feature("CO-24", "CO-25")
@pytest.mark.slow
@many
@given(found=programs(8, modes=UNCHECKED))
def test_xla_computes_what_the_oracle_does_in_groups(found):
    check_oracle(found, check_vma=False)


@pytest.mark.feature("CO-17", "CO-19", "CO-20")
@pytest.mark.slow
@many
@given(found=programs(8, modes=CHECKED))
def test_xla_computes_what_the_oracle_does_of_summands(found):
    check_oracle(found, check_vma=True)
