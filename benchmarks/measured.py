"""What the benchmarks measure: programs, and the usual ways to make one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import models

LAYERS = 12
EXAMPLES = 4
LENGTH = 32


class Program(NamedTuple):
    """What a worker measures.

    Attributes:
        result: gives what both libraries must agree on, a tree of arrays or types.
        action: is run again and again.
        fresh: where `action` is absent, makes, untimed, an action that is run only once.
        equations: counts the equations that one action makes.
        stablehlo: gives the program that one action executes, for the raw floor.
        figure: in place of an action, gives a figure that is no time.
    """

    result: Callable[[], Any]
    action: Callable[[], Any] | None = None
    fresh: Callable[[], Callable[[], Any]] | None = None
    equations: Callable[[], int] | None = None
    stablehlo: Callable[[], str] | None = None
    figure: Callable[[], float] | None = None


Builder = Callable[[Any], Program]
"""Takes the library and makes a program."""


def unseen(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function under a new identity, which no cache has met."""

    def call(*args: Any) -> Any:
        return function(*args)

    return call


def _count(jaxpr: Any) -> int:
    """Equations of a jaxpr and of those nested in it."""
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    total = 0
    for eqn in jaxpr.eqns:
        total += 1
        for value in eqn.params.values():
            nested = value if isinstance(value, (tuple, list)) else (value,)
            total += sum(_count(each) for each in nested if hasattr(each, "eqns"))
    return total


def staging(jax: Any, function: Callable[..., Any], *args: Any) -> Program:
    """Staging of a function that no cache has met."""

    def fresh() -> Callable[[], Any]:
        return functools.partial(lambda f: jax.jit(f).trace(*args), unseen(function))

    return Program(
        result=lambda: jax.eval_shape(function, *args),
        fresh=fresh,
        equations=lambda: _count(fresh()().jaxpr),
    )


def lowering(jax: Any, function: Callable[..., Any], *args: Any) -> Program:
    """Lowering of a function that is staged beforehand."""

    def trace() -> Any:
        return jax.jit(unseen(function)).trace(*args)

    return Program(
        result=lambda: jax.eval_shape(function, *args),
        fresh=lambda: trace().lower,
        equations=lambda: _count(trace().jaxpr),
    )


def training(jax: Any, loss: Callable[..., Any], params: Any, *batch: Any) -> Program:
    """Steps of Adam, one after the other."""
    step = jax.jit(functools.partial(models.adam_step, jax, functools.partial(loss, jax)))
    start, batch = jax.device_put(((params, models.adam_state(params)), batch))
    program = steps(step, start, batch)
    return program._replace(stablehlo=lambda: step.lower(*start, *batch).as_text())


def steps(step: Callable[..., Any], start: Any, batch: Any) -> Program:
    """Steps from `start` on, each of which gives a value and what the next one takes."""
    current = start

    def advance() -> Any:
        nonlocal current
        value, *current = step(*current, *batch)
        return value

    def losses() -> list[Any]:
        nonlocal current
        current = start
        return [advance() for _ in range(4)]

    return Program(result=losses, action=advance)


def repeated(action: Callable[[], Any], stablehlo: Callable[[], str] | None = None) -> Program:
    """The same action again and again; its result is what both libraries must agree on."""
    return Program(result=action, action=action, stablehlo=stablehlo)
