"""Pictures of collectives are readable."""

import re

import numpy as np
import pytest

from minijax import lax
from minijax.sharding import PartitionSpec as P
from minijax.testing import pictures

pytestmark = pytest.mark.feature("CO-32")


@pytest.mark.parametrize("name", ["x", "examples"])
def test_places_of_devices_fit_beside_the_first_column(name):
    draw = pictures.pictures(lambda x: lax.psum(x, name), {name: 2}, P(name))
    svg = draw(np.arange(2))[0].svg()
    first = min(float(x) for x in re.findall(r'<rect x="(\d+)', svg))
    assert first >= 8 + 7 * len(f"({name}=0)")
