"""Pages of the programs of all examples: every equation is linked, or says why it is not."""

import contextlib
import importlib
import io
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import minijax as jax
from minijax import explain
from minijax.core.trace import Tracer
from minijax.transforms.jit import jit

pytestmark = [pytest.mark.feature("PG-01"), pytest.mark.slow]

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(
    path.stem
    for path in EXAMPLES.glob("*.py")
    if "def main(" in path.read_text() and path.stem not in {"two_processes", "terminal"}
)
MOST_SECONDS = 2.0
MOST_BYTES = 2 << 20


def held(function):
    """A jitted function as `explain` takes it."""

    def call(*args, **kwargs):
        raise AssertionError

    call.trace = function.trace
    call.__wrapped__ = function.function
    return call


@pytest.fixture
def pages(monkeypatch):
    """Makes a page of each program of the examples, at its first call, before it runs."""
    found, seen = [], set()
    answer = jit.JitFunction.answer
    working = SimpleNamespace(now=False)

    def spied(self, args, kwargs):
        code = getattr(self.function, "__code__", None)
        leaves = jax.tree.leaves((args, kwargs))
        is_own = code is not None and str(EXAMPLES) in code.co_filename
        if is_own and id(self) not in seen and not working.now and len(seen) < 4:
            seen.add(id(self))
            if not any(isinstance(x, Tracer) for x in leaves):
                working.now = True
                try:
                    started = time.process_time()
                    page = explain.page(held(self))(*args, **kwargs)
                    found.append((page, time.process_time() - started))
                finally:
                    working.now = False
        return answer(self, args, kwargs)

    monkeypatch.setattr(jit.JitFunction, "answer", spied)
    return found


def unlinked(page):
    """The equations with a user's line that have no operation, and do not say why."""
    columns = {column["key"]: column["lines"] for column in page.data["columns"]}
    linked = {number for line in columns["stablehlo"] for number in line.get("n", ())}
    return [
        equation
        for equation in page.data["equations"]
        if equation["line"]
        and equation["number"] not in linked
        and not equation["fate"].get("stablehlo")
    ]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NAMES)
def test_programs_of_examples_are_linked(name, pages, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    example = importlib.import_module(name)
    with jax.cpu_devices(8), contextlib.redirect_stdout(io.StringIO()):
        example.main()
    for page, _ in pages:
        assert not unlinked(page)
        assert len(page.html().encode()) < MOST_BYTES
