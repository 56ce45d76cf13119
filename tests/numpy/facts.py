"""What JAX 0.10.2 answers to expressions, as `facts/*.txt` have it; `record_facts.py` writes them.

A line is `expression  ==>  answer`.  Lines that start with `!` are statements, run first.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FOLDER = Path(__file__).parent / "facts"
ARROW = "  ==>  "


class Facts(NamedTuple):
    """The statements to run first, and expressions with their answers."""

    setup: list[str]
    answers: dict[str, str]


def load(name: str) -> Facts:
    lines = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    setup = [line[1:] for line in lines if line.startswith("!")]
    answers = dict(line.split(ARROW) for line in lines if ARROW in line)
    return Facts(setup, answers)


def namespace(jax: Any, facts: Facts) -> dict[str, Any]:
    """The names that expressions use, with `jax` the library to ask."""
    names = {"jax": jax, "jnp": jax.numpy, "np": np, "signature": signature}
    for statement in facts.setup:
        exec(statement, names)
    return names


def described(value: Any) -> str:
    """A value as answers write it: dtype, shape, `w` for a weak type, elements."""
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__.lstrip('_')}({', '.join(map(described, value))})"
    if not hasattr(value, "weak_type"):
        return f"{type(value).__name__} {value!r}"
    host = np.asarray(value)
    if host.dtype.name == "bfloat16":
        host = host.astype(np.float32)
    with np.printoptions(precision=4, linewidth=1000, threshold=1000):
        text = np.array2string(host, separator=",").replace("\n", "")
    weak = "w" if value.weak_type else ""
    return f"{np.dtype(value.dtype).name}{list(host.shape)}{weak} {text}"


def answer(expression: str, names: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """What an expression evaluates to; for an error, also the names of its class and bases."""
    try:
        return described(eval(expression, names)), ()
    except Exception as error:
        classes = tuple(kind.__name__ for kind in type(error).__mro__)
        return f"raises {classes[0]}", tuple(f"raises {name}" for name in classes)


def signature(function: Any) -> str:
    """The parameters of a function without types; a default that is a function has its name."""
    parameters = inspect.signature(function).parameters.values()
    plain = []
    for parameter in parameters:
        default = parameter.default
        if inspect.isroutine(default):
            default = default.__name__
        plain.append(parameter.replace(annotation=parameter.empty, default=default))
    return str(inspect.Signature(plain))


def check(expression: str, facts: Facts, names: dict[str, Any]) -> None:
    """Asserts that an expression is answered as recorded; an error may be of a subclass."""
    found, alternatives = answer(expression, names)
    assert facts.answers[expression] in (found, *alternatives)
