"""Pages of the programs of all examples: every equation is linked, or says why it is not."""

import time

import pytest

from minijax.lowering import compilation
from tools.site import programs

pytestmark = [pytest.mark.feature("PG-01"), pytest.mark.slow]

MOST_PAGES = 4
MOST_SECONDS = 2.0
MOST_BYTES = 2 << 20


@pytest.fixture
def compiling(monkeypatch):
    """How long the processor has compiled."""
    spent = [0.0]
    compile_module = compilation.compile.compile_module

    def timed(*args, **kwargs):
        started = time.process_time()
        try:
            return compile_module(*args, **kwargs)
        finally:
            spent[0] += time.process_time() - started

    monkeypatch.setattr(compilation.compile, "compile_module", timed)
    return spent


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


@pytest.mark.turns(9)
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", programs.NAMES)
def test_programs_of_examples_are_linked(name):
    made = programs.pages_of(name, MOST_PAGES)
    assert made
    for page, _ in made:
        assert not unlinked(page)
        assert len(page.html().encode()) < MOST_BYTES


@pytest.mark.turns(3)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["charlm", "tensor_parallel", "vae_digits", "ring_attention"])
def test_largest_pages_are_made_quickly(name, compiling):
    ((page, seconds),) = programs.pages_of(name, 1)
    assert len(page.data["equations"]) > 100
    assert seconds - compiling[0] < MOST_SECONDS
