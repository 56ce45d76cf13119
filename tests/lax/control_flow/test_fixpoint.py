"""The fixpoint of loops: what is known of a carry grows until a step adds nothing."""

import re

import pytest

from minijax.core.errors import InternalError
from minijax.lax.control_flow import bodies


def test_what_is_known_of_a_carry_goes_from_part_to_part() -> None:
    def step(known: list[bool]) -> tuple[int, list[bool]]:
        return sum(known), [known[0], known[0] or known[1], known[1] or known[2]]

    assert bodies.fixpoint("lax.scan", [True, False, False], step) == (3, [True, True, True])


def test_rules_that_take_back_what_they_said_are_a_fault() -> None:
    with pytest.raises(InternalError, match=re.escape("lax.scan: what is known of the carry")):
        bodies.fixpoint("lax.scan", [True], lambda known: (None, [not known[0]]))
