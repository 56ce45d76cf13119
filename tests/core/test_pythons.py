"""What differs between Python 3.11 and 3.14, held by records of each and by the running one."""

from __future__ import annotations

import dis
import inspect
from types import SimpleNamespace
from typing import Any

import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax.core import deferral, source
from minijax.explain.pages.variables import stored_names
from minijax.testing.laws.collectives import statement_of

pytestmark = pytest.mark.feature("UX-01")

# A window of the instructions that each version compiles an expression to, which `dis` printed.
# The star marks the instruction that runs while the value is converted; the text in parentheses
# is `argrepr`.  Where versions are missing, they compile as the one before.
COMPILED = """
3.11 and:    RESUME LOAD_FAST *JUMP_IF_FALSE_OR_POP LOAD_FAST RETURN_VALUE
3.12 and:    RESUME LOAD_FAST COPY *POP_JUMP_IF_FALSE POP_TOP LOAD_FAST RETURN_VALUE
3.13 and:    RESUME LOAD_FAST COPY *TO_BOOL POP_JUMP_IF_FALSE POP_TOP LOAD_FAST RETURN_VALUE
3.14 and:    RESUME LOAD_FAST COPY *TO_BOOL POP_JUMP_IF_FALSE NOT_TAKEN POP_TOP LOAD_FAST
3.11 and:    SWAP COPY COMPARE_OP *JUMP_IF_FALSE_OR_POP LOAD_FAST COMPARE_OP
3.12 and:    COPY COMPARE_OP COPY *POP_JUMP_IF_FALSE POP_TOP LOAD_FAST COMPARE_OP
3.13 and:    COPY COMPARE_OP COPY *TO_BOOL POP_JUMP_IF_FALSE POP_TOP LOAD_FAST COMPARE_OP
3.14 and:    COPY COMPARE_OP COPY *TO_BOOL POP_JUMP_IF_FALSE NOT_TAKEN POP_TOP LOAD_FAST_BORROW
3.11 and:    SWAP COPY COMPARE_OP *POP_JUMP_FORWARD_IF_FALSE LOAD_FAST COMPARE_OP
3.12 and:    SWAP COPY COMPARE_OP *POP_JUMP_IF_FALSE LOAD_FAST COMPARE_OP POP_JUMP_IF_FALSE
3.13 and:    LOAD_FAST_LOAD_FAST SWAP COPY *COMPARE_OP POP_JUMP_IF_FALSE LOAD_FAST COMPARE_OP
3.14 and:    LOAD_FAST_LOAD_FAST SWAP COPY *COMPARE_OP POP_JUMP_IF_FALSE NOT_TAKEN LOAD_FAST_BORROW
3.11 not:    RESUME LOAD_FAST *UNARY_NOT RETURN_VALUE
3.13 not:    RESUME LOAD_FAST *TO_BOOL UNARY_NOT RETURN_VALUE
3.11 []:     RESUME LOAD_FAST LOAD_FAST *BINARY_SUBSCR RETURN_VALUE
3.13 []:     RESUME LOAD_FAST_LOAD_FAST *BINARY_SUBSCR RETURN_VALUE
3.14 []:     RESUME LOAD_FAST_BORROW_LOAD_FAST_BORROW *BINARY_OP([]) RETURN_VALUE
3.11 [:]:    LOAD_CONST LOAD_FAST BUILD_SLICE *BINARY_SUBSCR RETURN_VALUE
3.12 [:]:    LOAD_FAST LOAD_CONST LOAD_FAST *BINARY_SLICE RETURN_VALUE
3.14 [:]:    LOAD_CONST LOAD_FAST BUILD_SLICE *BINARY_OP([]) RETURN_VALUE
3.11 assert: RESUME LOAD_FAST *POP_JUMP_FORWARD_IF_TRUE LOAD_ASSERTION_ERROR RAISE_VARARGS
3.12 assert: RESUME LOAD_FAST *POP_JUMP_IF_TRUE LOAD_ASSERTION_ERROR RAISE_VARARGS
3.13 assert: RESUME LOAD_FAST *TO_BOOL POP_JUMP_IF_TRUE LOAD_ASSERTION_ERROR RAISE_VARARGS
3.14 assert: *TO_BOOL POP_JUMP_IF_TRUE NOT_TAKEN LOAD_COMMON_CONSTANT(AssertionError)
3.11 :       LOAD_FAST LOAD_FAST COMPARE_OP *POP_JUMP_FORWARD_IF_FALSE LOAD_CONST JUMP_FORWARD
3.12 :       LOAD_FAST LOAD_FAST COMPARE_OP *POP_JUMP_IF_FALSE LOAD_CONST RETURN_VALUE
3.13 :       RESUME LOAD_FAST *TO_BOOL POP_JUMP_IF_FALSE LOAD_CONST RETURN_VALUE LOAD_CONST
3.14 :       RESUME LOAD_FAST_BORROW *TO_BOOL POP_JUMP_IF_FALSE NOT_TAKEN LOAD_SMALL_INT
"""


@pytest.mark.parametrize("line", COMPILED.strip().splitlines())
def test_operation_is_read_from_the_bytecode_of_every_python(line: str) -> None:
    expected, _, text = line.partition(" ")[2].partition(": ")
    words = text.split()
    steps: list[Any] = []
    for offset, word in enumerate(words):
        name, _, argument = word.lstrip("*").partition("(")
        steps.append(SimpleNamespace(opname=name, argrepr=argument.rstrip(")"), offset=offset))
    running = next(i for i, word in enumerate(words) if word.startswith("*"))
    assert source.operation_at(steps, running) == expected.strip()


VALUES = (1.0, 2.0)

OPERATIONS = {
    "x and True": "& and |",
    "0 < x < 1": "& and |",
    "1 if 0 < x < 1 else 2": "& and |",
    "not x": "numpy.logical_not",
    "VALUES[x]": "lax.switch",
    "VALUES[:x]": "lax.dynamic_slice",
    "VALUES[::x]": "lax.dynamic_slice",
    "range(x)": "lax.fori_loop",
    "max(x, 1)": "numpy.maximum",
}


@pytest.mark.parametrize("expression", OPERATIONS)
def test_error_of_a_traced_value_proposes_what_replaces_the_operation(expression: str) -> None:
    function = eval(f"lambda x: {expression}", {"VALUES": VALUES})
    with pytest.raises(TypeError) as caught:
        jax.jit(function)(1)
    assert OPERATIONS[expression] in str(caught.value)


def test_error_of_a_traced_value_in_an_assertion_proposes_checkify() -> None:
    # pytest rewrites the assertions of this file.
    namespace: dict[str, Any] = {}
    exec("def checked(x):\n    assert x > 0\n    return x", namespace)
    with pytest.raises(TypeError, match=r"checkify\.check"):
        jax.jit(namespace["checked"])(1)


@pytest.mark.parametrize(
    ("opname", "argval", "names"),
    [
        ("STORE_FAST", "x", ["x"]),
        ("STORE_FAST_STORE_FAST", ("x", "y"), ["x", "y"]),
        ("STORE_FAST_LOAD_FAST", ("x", "y"), ["x"]),
        ("LOAD_FAST_LOAD_FAST", ("x", "y"), []),
        ("LOAD_FAST", "x", []),
    ],
)
def test_names_that_an_instruction_assigns_to(opname: str, argval: Any, names: list[str]) -> None:
    step: Any = SimpleNamespace(opname=opname, argval=argval)
    assert stored_names(step) == names


def test_assignments_of_the_running_python_are_read() -> None:
    def function(pair: Any) -> Any:
        x, y = pair
        with pair as z:
            return x, y, z

    found = [name for step in dis.get_instructions(function) for name in stored_names(step)]
    assert sorted(found) == ["x", "y", "z"]


INDENTED = "Adds.\n\n    More of it,\n    in two lines.\n    "


@pytest.mark.parametrize("doc", [INDENTED, inspect.cleandoc(INDENTED)], ids=["3.11", "3.13"])
def test_source_of_a_function_is_indented_as_its_docstring(doc: str) -> None:
    text = deferral._with_source(doc, "minijax.numpy", "add")
    expected = "Adds.\n\nMore of it,\nin two lines.\n\nSource: mirrors jax.numpy.add (0.10)."
    assert inspect.cleandoc(str(text)) == expected


@pytest.mark.parametrize("indentation", ["    ", ""], ids=["3.11", "3.13"])
def test_statement_of_a_law_ends_before_its_source(indentation: str) -> None:
    def law() -> None:
        pass

    law.__doc__ = f"A sum\n{indentation}is a sum.\n\n{indentation}Source: a book.\n{indentation}"
    assert statement_of(law) == "A sum is a sum."


def test_extra_attributes_of_classes_are_not_put_on_arrays() -> None:
    # Since Python 3.13, class statements define these two.
    names = {"__static_attributes__", "__firstlineno__"}
    assert not names & vars(type(jnp.ones(1))).keys()
