"""Every public function and class has a docstring by the template, and its examples hold."""

import doctest
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import minijax
from tests.docs import public
from tests.printed import agrees, shows

SCOPE = {
    "minijax": minijax,
    "jax": minijax,
    "jnp": minijax.numpy,
    "lax": minijax.lax,
    "np": np,
}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# So many examples are one test: the runner of tests spreads these over processes.
EXAMPLES_PER_TEST = 40
LACKING = Path(__file__).with_name("lacking.txt")

Described = tuple[str, Any]


def _each_once() -> Iterator[Described]:
    """What is described, under the first of its names: `numpy.abs` is `numpy.absolute`."""
    seen: set[int] = set()
    for module in public.MODULES:
        for name, value in public.described(module):
            if id(value) not in seen:
                seen.add(id(value))
                yield name, value


DESCRIBED = list(_each_once())


def _texts(described: list[Described]) -> Iterator[tuple[str, str]]:
    """The docstrings, those of methods included, each of them once."""
    seen: set[str] = set()
    for name, value in described:
        for place, documented in [(name, value), *public.methods(name, value)]:
            text = inspect.getdoc(documented) or ""
            if text not in seen:
                seen.add(text)
                yield place, text


TEXTS = [(name, text) for name, text in _texts(DESCRIBED) if ">>>" in text]
CHUNKS = [TEXTS[n : n + EXAMPLES_PER_TEST] for n in range(0, len(TEXTS), EXAMPLES_PER_TEST)]


class _Checker(doctest.OutputChecker):
    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return super().check_output(want, got, optionflags) or agrees(want, got)


# What an example registers is there for that example only.
@patch.dict("minijax.runtime.client._factories")
@patch.dict("minijax.runtime.client._clients")
def _failures(name: str, text: str) -> str:
    test = doctest.DocTestParser().get_doctest(text, dict(SCOPE), name, None, None)
    report: list[str] = []
    doctest.DocTestRunner(_Checker(), optionflags=FLAGS).run(test, out=report.append)
    return "".join(report)


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("chunk", range(len(CHUNKS)))
def test_examples_print_what_they_show(chunk: int) -> None:
    with minijax.cpu_devices(8):
        reports = [_failures(name, text) for name, text in CHUNKS[chunk]]

    assert "".join(reports) == ""


def test_wrong_example_is_reported() -> None:
    report = _failures("sum", "The sum.\n\nExample:\n    >>> jnp.sum(jnp.arange(3))\n    4\n")

    assert "Expected:\n    4\nGot:\n    Array(3, dtype=int32)" in report


@pytest.mark.parametrize(
    ("printed", "same"),
    [
        ("Array([ 0.8414710,  3.], dtype=float32)", True),
        ("Array([0.84146, 3.], dtype=float32)", False),
        ("Array([0.8414709, 4.], dtype=float32)", False),
        ("Array([0.8414709, 3.], dtype=float64)", False),
        ("Array([0.8414709], dtype=float32)", False),
        ("Array([0.8414709, 3., 1.], dtype=float32)", False),
    ],
)
def test_last_digits_may_differ(printed: str, same: bool) -> None:
    expected = "Array([0.8414709, 3.], dtype=float32)"
    assert agrees(expected, printed) == same
    assert shows(f"before\n{printed}\nafter\n", f"before\n{expected}\n") == same


def _lacks(text: str) -> list[str]:
    """Which parts of the template a docstring does not have."""
    first, _, rest = text.partition("\n")
    wanted = {
        "first line": first.endswith(".") and rest[:1] in ("", "\n"),
        "source": re.search(r"^Source: +\S", text, re.MULTILINE),
        "example": re.search(r"^Examples?:\n +>>> ", text, re.MULTILINE),
    }
    return [part for part, found in wanted.items() if not found]


def _all_lacking() -> list[str]:
    texts = [(name, inspect.getdoc(value) or "") for name, value in DESCRIBED]
    return sorted(f"{name}: {part}" for name, text in texts for part in _lacks(text))


def test_template_is_kept_but_where_recorded(request: pytest.FixtureRequest) -> None:
    """`pytest --update-golden` strikes from the list what lacks nothing any more."""
    lacking = _all_lacking()
    recorded = LACKING.read_text(encoding="utf-8").splitlines()
    if request.config.getoption("--update-golden"):
        recorded = [line for line in recorded if line in lacking]
        LACKING.write_text("".join(f"{line}\n" for line in recorded), encoding="utf-8")

    assert [line for line in lacking if line not in recorded] == [], "new, and by no template"
    assert [line for line in recorded if line not in lacking] == [], "strike it from the list"
    assert recorded == sorted(recorded)


JAX = json.loads(Path(__file__).parents[2].joinpath("benchmarks/jax_api.json").read_text("utf-8"))
# The record omits what JAX decorates with functools: its value seems to come from that module.
NOT_RECORDED = ("jax.checking_leaks", "jax.core.eval_jaxpr", "jax.debug.log")


def _sources_that_jax_lacks(name: str, text: str) -> list[str]:
    """Returns a message for each recorded module of JAX that lacks the function of a docstring."""
    messages = []
    for path in re.findall(r"^Source: +mirrors jax\.?([\w.]*\w) \(0\.10\)", text, re.MULTILINE):
        module, _, function = path.rpartition(".")
        # An empty record is that of a path that is not a module, such as jax.checkpoint_policies.
        is_known = function in JAX.get(module, ()) or f"jax.{path}" in NOT_RECORDED
        if JAX.get(module) and not is_known:
            fix = "write `Source:     minijax's own.` below the first paragraph of its docstring"
            messages.append(f"{name}: JAX has no jax.{path}; {fix}")
    return messages


def test_docstrings_name_functions_that_jax_has() -> None:
    texts = [(name, inspect.getdoc(value) or "") for name, value in DESCRIBED]
    assert [line for entry in texts for line in _sources_that_jax_lacks(*entry)] == []


@pytest.mark.parametrize(
    ("source", "is_wrong"),
    [
        ("mirrors jax.lax.sin (0.10).", False),
        ("mirrors jax.jit (0.10).", False),
        ("mirrors jax.lax.sinc (0.10).", True),
        ("mirrors jax.sinc (0.10); more.", True),
        ("mirrors jax.sharding.PmapSharding, which JAX has since dropped.", False),
        ("minijax's own.", False),
    ],
)
def test_source_that_jax_lacks_is_reported(source: str, is_wrong: bool) -> None:
    assert bool(_sources_that_jax_lacks("f", f"Sums.\n\nSource:     {source}\n")) == is_wrong


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("The sum.\n\nSource:     mirrors x.\n\nExample:\n    >>> 1 + 1\n    2\n", []),
        ("The sum", ["first line", "source", "example"]),
        ("The sum.\n\nSource:     mirrors x.\n", ["example"]),
        ("", ["first line", "source", "example"]),
    ],
)
def test_template_is_checked(text: str, parts: list[str]) -> None:
    assert _lacks(text) == parts
