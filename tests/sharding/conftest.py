"""Devices for tests of placements: eight of the host, or none at all."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minijax
from minijax.sharding import Mesh


@pytest.fixture
def devices() -> Iterator[np.ndarray[Any, Any]]:
    with minijax.cpu_devices(8):
        yield np.array(minijax.devices())


@pytest.fixture
def mesh(devices: np.ndarray[Any, Any]) -> Mesh:
    return Mesh(devices.reshape(4, 2), ("x", "y"))
