"""Functions take the arguments that JAX's take, by the same names, with the same defaults."""

from __future__ import annotations

import pytest

import minijax
from tests.numpy import facts

FACTS = facts.load("signatures")
NAMES = facts.namespace(minijax, FACTS)


@pytest.mark.feature("NP-01")
@pytest.mark.parametrize("expression", FACTS.answers)
def test_parameters_are_those_of_jax(expression: str) -> None:
    facts.check(expression, FACTS, NAMES)
