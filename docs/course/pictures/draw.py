"""Draws the pictures of lessons 0 to 4 anew: `python docs/course/pictures/draw.py`.

Each is made of what minijax says of a small program; a test compares the files with them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
from drawing import Arrow, Cell, Row, table

import minijax as jax
import minijax.numpy as jnp


def wave(x: Any) -> Any:
    """The function of lessons 1 and 2."""
    y = 3 * x
    return jnp.sin(y) + y


def loss(x: Any) -> Any:
    """The function of lesson 4."""
    y = jnp.sin(x)
    return jnp.sum(y * x)


COURSE = Path(__file__).parents[1]
X = jnp.arange(4.0)
_BEGIN = "{ lambda ; a:f32[4]. let"


def arrays() -> str:
    """What two names stand for, after one of them was used to change an element."""
    a = np.arange(4.0)
    b = a[:2]
    b[0] = 99.0
    x = jnp.arange(4.0)
    y = x.at[0].set(99.0)
    rows = [
        ["NumPy", "a = np.arange(4.0)", Cell("a", 7), Cell(f"{a}", 1)],
        ["", "b = a[:2]", Cell("b", 7), ""],
        ["", "b[0] = 99.0", "", ""],
        ["minijax", "x = jnp.arange(4.0)", Cell("x", 7), Cell(f"{x}", 0)],
        ["", "y = x.at[0].set(99.0)", Cell("y", 7), Cell(f"{y}", 2)],
    ]
    arrows = [Arrow((row, 2), (end, 3)) for row, end in ((0, 0), (1, 0), (3, 3), (4, 4))]
    return table(["", "what is said", "names", "arrays at the end"], rows, arrows)


def _lines(data: Any, key: str, numbers: Collection[int]) -> list[str]:
    """The lines of a column of a page that compute some equations and no others."""
    (lines,) = (column["lines"] for column in data["columns"] if column["key"] == key)
    own = [x["t"] for x in lines if x.get("n") and set(x["n"]) <= set(numbers)]
    return [text for text in own if " parameter(" not in text]


def tracing() -> str:
    """Which line wrote which equations, when a function was traced."""
    data = jax.explain.page(wave)(X).data
    rows: list[Row] = [["def wave(x):", f"x is a tracer: {jax.typeof(X)}", Cell(_BEGIN, 7)]]
    for numbers in ([0], [1, 2]):
        written = _lines(data, "jaxpr", numbers)
        met = f"{len(written)} operation{'s' * (len(written) > 1)} on tracers"
        (line,) = _lines(data, "python", numbers)
        rows.append([Cell(line, numbers[0]), met, Cell("\n".join(written), numbers[0])])
    rows.append(["", "all is written down", Cell("in (d,) }", 7)])
    return table(["Python, run once", "what happens", "the program"], rows)


def stages() -> str:
    """What each equation became in each stage."""
    data = jax.explain.page(wave)(X).data
    rows = []
    for n, python in enumerate(("3 * x", "jnp.sin(y)", "… + y")):
        texts = [_lines(data, key, [n]) for key in ("jaxpr", "stablehlo", "optimized")]
        shorter = [[text.partition(" : ")[0] for text in column] for column in texts]
        rows.append([Cell(python, n), *(Cell("\n".join(column), n) for column in shorter)])
    arrows = [Arrow((row, n), (row, n + 1)) for row in range(3) for n in range(3)]
    heads = ["Python", "jaxpr", "StableHLO", "optimized: one fusion"]
    return table(heads, rows, arrows)


def calls() -> str:
    """Which calls of a jitted function made a program, and which found one."""
    made: list[str] = []
    double = jax.jit(lambda x: (made.append(str(jax.typeof(x))), x * 2)[1])
    calls = [
        ("jnp.arange(3.0)", jnp.arange(3.0)),
        ("jnp.ones(3)", jnp.ones(3)),
        ("jnp.ones(4)", jnp.ones(4)),
        ("2.0", 2.0),
        ("3.0", 3.0),
        ("jnp.float32(2.0)", jnp.float32(2.0)),
        ("jnp.ones(4)", jnp.ones(4)),
    ]
    rows: list[Row] = []
    arrows: list[Arrow] = []
    places: dict[str, int] = {}
    for row, (text, x) in enumerate(calls):
        double(x)
        key = str(jax.typeof(x))
        is_new = len(made) > len(places)
        if is_new:
            places[key] = row
        program = Cell(f"program {len(made)}, for {key}", len(made) - 1) if is_new else ""
        rows.append([f"double({text})", Cell(key, made.index(key)), program])
        arrows.append(Arrow((row, 1), (places[key], 2)))
    return table(["call", "key", "programs that are kept"], rows, arrows)


def gradient() -> str:
    """A derivative forward and backward, and the residuals that lead from one to the other."""
    data = jax.explain.derivative(loss)(jnp.arange(3.0)).data
    rows: list[Row] = [["a:f32[3]", f"the gradient: {data['gradients'][0]}"]]
    needed: list[tuple[str, int]] = []
    holders = {"a": 0}
    for n, row in enumerate(data["rows"], 1):
        holders |= {text.partition(":")[0]: n for text in row["known"]}
        backward = sorted(row["transposed"], key=lambda x: -x["order"])
        known = Cell("\n".join(row["known"]), 0) if row["known"] else ""
        rows.append([known, Cell("\n".join(x["text"] for x in backward), 1)])
        needed += [(name, n) for x in row["transposed"] for name in x["needs"]]
    rows.append(["", "begins with c_a = 1.0"])
    arrows = [Arrow((holders[name], 0), (n, 1), name) for name, n in needed]
    return table(["forward, read downward", "backward, read upward"], rows, arrows, gap=130)


def traces() -> str:
    """What each trace of micro does when the sine of a tracer is asked for."""
    spec = importlib.util.spec_from_file_location("micro", COURSE / "micro.py")
    micro = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(micro)
    partial = micro.PartialTrace(micro.current)
    tangent = partial.new(())
    with micro.running(partial):
        _, [out] = micro.jvp_several(lambda x: [micro.sin(x)], [1.0], [tangent])
    linear = micro.Jaxpr([tangent.known], partial.equations, [out.known])
    both = micro.make_jaxpr(lambda x, t: micro.jvp(micro.sin, (x,), (t,)))(1.0, 1.0)
    batch = micro.make_jaxpr(micro.vmap(micro.sin))(np.ones(5))
    found = [
        ("EvalTrace", "it has none", "computes", micro.sin(1.0)),
        ("StagingTrace", "a variable", "writes", micro.make_jaxpr(micro.sin)(1.0)),
        ("JVPTrace", "a value and a tangent", "asks its parent for", both),
        ("PartialTrace,\naround a JVPTrace", "a variable", "computes sin and cos, writes", linear),
        ("BatchTrace", "all examples", "asks its parent for", batch),
    ]
    rows = [
        [Cell(trace, n), know, does, Cell(_body(program), n)]
        for n, (trace, know, does, program) in enumerate(found)
    ]
    return table(["current trace", "its tracers know", "what it does for sin(x)", ""], rows)


def _body(program: object) -> str:
    """The equations of a program, or a number as it is."""
    text = str(program).partition(" let")[2].rpartition("in (")[0] or str(program)
    return "\n".join(line.strip() for line in text.strip().splitlines())


DRAWN: dict[str, Callable[[], str]] = {
    "00-arrays": arrays,
    "01-tracing": tracing,
    "02-stages": stages,
    "03-compiled-again": calls,
    "04-grad": gradient,
    "micro": traces,
}


def drawn() -> dict[str, str]:
    """The pictures by name, as SVG."""
    return {name: draw() for name, draw in DRAWN.items()}


if __name__ == "__main__":
    for name, svg in drawn().items():
        Path(__file__).with_name(f"{name}.svg").write_text(svg, encoding="utf-8")
