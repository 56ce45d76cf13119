"""What tests of the checkout share."""

from collections.abc import Iterator

import pytest

from tools import architecture


@pytest.fixture(scope="package", autouse=True)
def sources_are_forgotten() -> Iterator[None]:
    """Gives back the memory of all syntax trees before other tests run in this process."""
    yield
    architecture.sources.cache_clear()
