"""What holds for every test: the inventory's marks, Hypothesis profiles, and a wall before JAX."""

import importlib.abc
import sys

import pytest
from hypothesis import settings

from minijax.core.config import config

pytest_plugins = ["minijax.testing.features"]

# `--hypothesis-profile=deep` chooses the other one.
settings.register_profile("fast", max_examples=25, derandomize=True, deadline=None)
settings.register_profile("deep", max_examples=1000, deadline=None)
settings.load_profile("fast")

config.update("check", True)


class JaxFinder(importlib.abc.MetaPathFinder):
    """Refuses to import JAX and remembers that somebody tried: jaxlib swallows the error."""

    def __init__(self):
        self.attempts = []

    def find_spec(self, name, path=None, target=None):
        """Refuses JAX and leaves everything else to the finders behind this one."""
        if name == "jax" or name.startswith("jax."):
            self.attempts.append(name)
            raise ImportError(f"{name} is not to be imported here")


_finder = JaxFinder()
sys.meta_path.insert(0, _finder)


@pytest.fixture(autouse=True)
def jax_stays_unimported():
    """Fails the test during which anything, jaxlib's C++ included, tries to import JAX."""
    _finder.attempts.clear()
    yield
    assert _finder.attempts == []
