"""What holds for every test: marks, Hypothesis profiles, golden files, and a wall before JAX."""

import gc
import importlib.abc
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

from minijax.core.config import config, disable_most_optimizations

pytest_plugins = [
    "tools.features",
    "minijax.testing.fixtures",
    "pytester",
    "tests.cpu_time",
    "tests.sampling",
]

# `--hypothesis-profile=deep` chooses another one; with `--sample` it is the first.
# How long examples take to draw says how busy a machine is, and nothing about what is tested.
_CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("sample", _CALM, max_examples=12, derandomize=True)
settings.register_profile("fast", _CALM, max_examples=25, derandomize=True)
settings.register_profile("deep", max_examples=1000, deadline=None)
settings.register_profile("deepest", _CALM, max_examples=2000)
settings.load_profile("fast")

config.update("check", True)

# Shells start background jobs with SIGINT ignored, which programs that tests start would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Nor do the programs that tests start write among the user's caches.
config.update("compilation_cache_dir", os.environ.setdefault("MINIJAX_COMPILATION_CACHE_DIR", ""))


def pytest_configure(config: pytest.Config) -> None:
    """Tries fewer examples of each property in a sample, unless a profile is asked for."""
    if config.getoption("--sample") != "all" and not config.getoption("--hypothesis-profile"):
        settings.load_profile("sample")


# Nearly all objects that collection makes live until the end: modules, tests, their parameters.
# The garbage collector would spend a fifth of collection on traversing them again and again.
gc.disable()


def pytest_collection_finish() -> None:
    """Exempts the collected tests from garbage collection, which starts here."""
    if "minijax.as_jax" in sys.modules:
        # Some modules of tests import parts of it, and with them `jax` comes to mean minijax.
        sys.modules["minijax.as_jax"].uninstall()
    gc.collect()
    gc.freeze()
    gc.enable()


class JaxFinder(importlib.abc.MetaPathFinder):
    """Refuses to import JAX and remembers that somebody tried: jaxlib swallows the error."""

    def __init__(self) -> None:
        self.attempts: list[str] = []

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        if name == "jax" or name.startswith("jax."):
            self.attempts.append(name)
            raise ImportError(f"{name} is not to be imported here")


_finder = JaxFinder()
sys.meta_path.insert(0, _finder)


@pytest.fixture(autouse=True)
def jax_stays_unimported() -> Iterator[None]:
    """Fails the test during which anything, jaxlib's C++ included, tries to import JAX."""
    _finder.attempts.clear()
    yield
    assert _finder.attempts == []


# Tests of what functions compute, over very many small programs.  How well machine code is
# made is the subject of none of them; tests of transformations compile as users do, but not in a
# sample.  Examples are large programs, and what is recorded to the bit is of optimized ones.
_MANY_SMALL_PROGRAMS = ("lax", "numpy", "scipy", "testing")
_ALWAYS_AS_USERS_DO = ("course", "examples", "nn", "random")


@pytest.fixture(autouse=True)
def cheap_machine_code(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compiles the programs of some folders in less time, to slower code."""
    folder = request.path.relative_to(Path(__file__).parent).parts[0]
    cheap = folder in _MANY_SMALL_PROGRAMS
    if request.config.getoption("--sample") != "all":
        cheap = folder not in _ALWAYS_AS_USERS_DO
    with disable_most_optimizations(cheap):
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the golden files that a test compares"
    )


@pytest.fixture
def young_heap() -> None:
    """Lets `gc.collect` look at what the test makes alone: a long session's heap takes seconds."""
    gc.freeze()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)` compares a text with the file tests/golden/name."""

    def compare(name: str, text: str) -> None:
        path = Path(__file__).parent / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.rstrip() + "\n", encoding="utf-8")
        assert text.rstrip() == path.read_text(encoding="utf-8").rstrip()

    return compare
