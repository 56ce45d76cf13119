"""The fuzzer draws valid programs, sees how results differ, and makes programs small."""

import ast
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minijax as jax
from benchmarks import observe_random
from tools.fuzz import calls, compare, programs
from tools.fuzz.compare import Difference
from tools.fuzz.programs import Program
from tools.fuzz.shrink import shrink

pytestmark = pytest.mark.feature("RB-12")

PLAIN = {"jax_enable_x64": False, "jax_disable_most_optimizations": False}


@pytest.fixture
def settings_return() -> Iterator[None]:
    before = {name: getattr(jax.config, name) for name in PLAIN}
    yield
    for name, value in before.items():
        jax.config.update(name, value)


def program(text: str) -> Program:
    return Program(tuple(text.strip().split("\n")), dict(PLAIN))


def seen(text: str) -> list[dict[str, Any]]:
    statements = list(program(text).statements)
    return observe_random.observe(jax, statements, PLAIN)


def test_a_seed_is_a_program() -> None:
    assert programs.program(17) == programs.program(17)
    assert len({programs.program(seed).statements for seed in range(50)}) == 50


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_programs_name_what_was_there_before(first: int) -> None:
    for seed in range(first, first + 50):
        known = {"jax", "jnp", "lax", "np", "random", "nn", "scipy", "nan", "inf", "int", "sum"}
        known |= {"P", "NamedSharding", "mesh", "typed_mesh", "map", "abs"}
        for statement in programs.program(seed).statements:
            tree = ast.parse(statement)
            parameters = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
            used = programs.used_by(statement) - {programs.name_of(statement)}
            assert used <= known | parameters
            known.add(programs.name_of(statement))


def test_every_template_can_be_filled() -> None:
    draw = programs.Draw(0, (calls.call,))
    for template in (each for section in calls.templates() for each in section):
        for _ in range(3):
            value = calls.Call(draw, template).value()
            ast.parse(value.text, mode="eval")
            assert not re.search(r"<[a-z]+[^<=>]*>|\{[a-z]", value.text), value.text


@pytest.mark.usefixtures("settings_return")
def test_most_statements_have_a_result() -> None:
    answers = []
    for seed in range(8):
        drawn = programs.program(seed)
        answers += observe_random.observe(jax, list(drawn.statements), drawn.settings)
    assert sum("leaves" in answer for answer in answers) > 0.8 * len(answers)


@pytest.mark.parametrize(
    ("ours", "theirs", "aspect"),
    [
        ("jnp.array([1.0, nan])", "jnp.array([1.0, nan])", None),
        ("jnp.array([1.0, 2.0])", "jnp.array([1.00001, 2.0])", None),
        ("jnp.array([1.0, 2.0])", "jnp.array([1.1, 2.0])", "values"),
        ("jnp.array([0.0, 2.0])", "jnp.array([-0.0, 2.0])", "values"),
        ("jnp.array([nan, 2.0])", "jnp.array([inf, 2.0])", "values"),
        ("jnp.array([1j * nan, 2])", "jnp.array([2j, 2])", "values"),
        ("jnp.array([1, 2])", "jnp.array([1, 3])", "values"),
        ("jnp.array([1.0], 'bfloat16')", "jnp.array([2.0], 'bfloat16')", "values"),
        ("random.key(1)", "random.key(2)", "values"),
        ("jnp.array([1, 2])", "jnp.array([1.0, 2.0])", "dtype"),
        ("jnp.zeros((0, 2))", "jnp.zeros((0, 3))", "shape"),
        ("jnp.asarray(2)", "jnp.int32(2)", "weak"),
        ("(1, 2)", "[1, 2]", "tree"),
        ("jnp.ones(3) + jnp.ones(4)", "jnp.ones(4) + jnp.ones(3)", None),
        ("jnp.ones(3) + jnp.ones(4)", "jnp.ones(4)", "error"),
        ("jnp.ones(3) + jnp.ones(4)", "jnp.ones(4)[1, 2]", "error"),
        ("3", "4", "repr"),
    ],
)
@pytest.mark.usefixtures("settings_return")
def test_differences_are_seen(ours: str, theirs: str, aspect: str | None) -> None:
    found = compare.differences(program(f"v = {ours}"), seen(f"v = {ours}"), seen(f"v = {theirs}"))
    assert [each.aspect for each in found] == ([] if aspect is None else [aspect])


@pytest.mark.usefixtures("settings_return")
def test_what_uses_a_difference_says_no_more() -> None:
    text = "v0 = jnp.array({})\nv1 = v0 + 1\nv2 = v1 * 2\nv3 = jnp.ones({})"
    ours, theirs = seen(text.format(1.0, 2)), seen(text.format(2.0, 3))
    found = compare.differences(program(text), ours, theirs)
    assert [each.statement[:2] for each in found] == ["v0", "v3"]


@pytest.mark.usefixtures("settings_return")
def test_nudged_operands_show_what_is_rounding() -> None:
    statements = ["x = jnp.array([1.0, 2.0])", "v = jnp.floor(x * (1 + 1e-12))"]
    exact, nudged = (
        observe_random.observe(jax, statements, PLAIN, nudged=nudged) for nudged in (False, True)
    )
    assert compare.depends_on_rounding(1, exact, nudged)
    assert not compare.depends_on_rounding(0, exact, nudged)
    assert np.allclose(compare.array(exact[1]["leaves"][0]), [1, 2])


def test_reasons_explain_what_they_name() -> None:
    for each in compare.reasons():
        assert each.text
        assert set(each.aspects) <= {
            "error",
            "tree",
            "dtype",
            "shape",
            "weak",
            "spec",
            "repr",
            "values",
        }
    refused = Difference("v = jnp.sum(x, axis=3)", "error", "AxisError: a", "ValueError: b")
    assert compare.reason(refused) is not None
    assert compare.reason(refused._replace(aspect="values")) is None


def test_programs_are_made_small() -> None:
    text = """
x0 = jnp.array([[1.0, 2.5], [3.0, nan]], 'float32')
x1 = jnp.array([4, 7], 'int32')
x2 = (lambda a, b: a)(*(x1, x1))
v2 = jnp.cos(x0) + x1
v3 = jax.jit(lambda a: jnp.sin(jnp.flip(jnp.tanh(a), axis=0)) * 3 - x1)(v2)
"""
    small = shrink(
        program(text)._replace(settings={"jax_enable_x64": True}),
        lambda smaller: "jnp.tanh" in str(smaller) and "x0" in str(smaller),
    )
    assert not small.settings["jax_enable_x64"]
    assert len(small.statements) <= 2
    assert len(small.statements[-1]) < len("v3 = jax.jit(lambda a: jnp.tanh(x0))(v2)")
