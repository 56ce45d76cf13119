"""`show`: a value in a terminal, in colours where the terminal shows them.

`str()` and `print()` stay plain, so that what programs write into files and compare is the same
everywhere.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

from minijax.core import deferral
from minijax.core.jaxpr import ClosedJaxpr, Jaxpr
from minijax.core.meshes import MeshAxes
from minijax.explain import pipeline
from minijax.explain.display import drawing, highlighting, meshes
from minijax.explain.pipeline import Stages
from minijax.runtime.array import Array
from minijax.transforms.autodiff.grad import Linear
from minijax.transforms.jit.stages import Compiled, Lowered, Traced

_LANGUAGES = {
    "jaxpr": "jaxpr",
    "stablehlo": "stablehlo",
    "propagated": "stablehlo",
    "shards": "cell",
}


def show(x: Any, *, color: bool | None = None) -> None:
    """Prints a value, in colours where the output is a terminal; in a notebook, shows it.

    For jaxprs, lowered and compiled functions, what `explain` finds, results of `linearize` and
    `vjp`, meshes, and arrays, whose shardings are drawn.  Anything else is printed as `print` does.
    Colours are left out if the variable `NO_COLOR` is set, as https://no-color.org asks, or the
    package Pygments is missing.

    Source:     minijax's own.

    Args:
        x: the value.
        color: whether to use colours; None: if the output is a terminal that has them.

    Example:
        >>> jax.explain.show(jax.make_jaxpr(lambda x: 2 * x)(1.0))
        { lambda ; a:f32[]. let b:f32[] = mul 2.0:f32[] a in (b,) }
        >>> jax.explain.show(jax.make_mesh((4, 2), ("x", "y")))
        Mesh('x': 4, 'y': 2, axis_types=(Explicit, Explicit))
        x ↓  y →  0      1
        0         cpu:0  cpu:1
        1         cpu:2  cpu:3
        2         cpu:4  cpu:5
        3         cpu:6  cpu:7
    """
    if color is None and drawing.in_notebook() and hasattr(type(x), "_repr_html_"):
        sys.modules["IPython"].display.display(x)
        return
    sys.stdout.write(text_of(x, has_colors() if color is None else color) + "\n")


def has_colors() -> bool:
    """Returns whether output may have colours, by the same rules as Python's own tracebacks.

    `NO_COLOR` wins over `FORCE_COLOR`, which wins over what is known about the terminal.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.environ.get("TERM") != "dumb" and sys.stdout.isatty()


def text_of(x: Any, color: bool) -> str:
    """The text of a value for terminals.

    Args:
        x: the value.
        color: whether it may have ANSI sequences.
    """
    text, language = _text(x, color)
    return highlighting.to_ansi(text, language) if color and language else text


@functools.singledispatch
def _text(x: Any, color: bool) -> tuple[str, str]:
    """The text of a value, and the language that it is to be highlighted in, if it still is."""
    if isinstance(x, Array):
        return _array_text(x, color), ""
    is_report = getattr(type(x), "_repr_html_", None) is deferral.shown
    return str(x), "report" if is_report else ""


@_text.register(Jaxpr)
@_text.register(ClosedJaxpr)
@_text.register(Linear)
def _(x: Any, color: bool) -> tuple[str, str]:
    return str(x), "jaxpr"


@_text.register
def _(x: Traced, color: bool) -> tuple[str, str]:
    return str(x.jaxpr), "jaxpr"


@_text.register
def _(x: Lowered, color: bool) -> tuple[str, str]:
    return x.as_text(), "stablehlo"


@_text.register
def _(x: Compiled, color: bool) -> tuple[str, str]:
    return pipeline.without_origins(x.as_text()), "hlo"


@_text.register
def _(x: Stages, color: bool) -> tuple[str, str]:
    parts = []
    for stage, text in x.items():
        language = _LANGUAGES.get(stage, "hlo")
        title = f"{x.name}: {stage}"
        bare = text.rstrip()
        if color:
            title, bare = bold(title), highlighting.to_ansi(bare, language)
        parts.append(f"{title}\n{bare}")
    return "\n\n".join(parts), ""


@_text.register
def _(x: MeshAxes, color: bool) -> tuple[str, str]:
    return meshes.drawn(x, color), ""


def _array_text(x: Any, color: bool) -> str:
    text = repr(x)
    if x.is_deleted() or x.ndim not in (1, 2) or len(x.sharding.device_set) == 1:
        return text
    return f"{text}\n{drawing.drawn(x.shape, x.sharding, color=color)}"


def bold(text: str) -> str:
    """A text in bold letters."""
    return f"\x1b[1m{text}\x1b[0m"
