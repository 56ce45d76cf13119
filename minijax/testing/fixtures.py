"""Fixtures for tests of per-device programs: `pytest_plugins = ["minijax.testing.fixtures"]`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from minijax.runtime import client


@pytest.fixture
def devices() -> Iterator[Callable[[int], list[Any]]]:
    """`devices(n)` is a list of n devices on the host, until the test ends."""
    with contextlib.ExitStack() as stack:

        def of_number(n: int) -> list[Any]:
            stack.enter_context(client.cpu_devices(n))
            return client.devices("cpu")

        yield of_number
