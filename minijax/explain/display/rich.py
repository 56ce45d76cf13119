"""What notebooks show of a value: the `_repr_html_` of the package's classes.

The classes hold `deferral.shown`, which imports this module when a notebook first asks; programs
that show nothing do not load it.
"""

from __future__ import annotations

import functools
from typing import Any

from minijax.core.jaxpr import ClosedJaxpr, Jaxpr
from minijax.core.meshes import MeshAxes
from minijax.explain import communication, pipeline
from minijax.explain.display import arrays, markup, meshes
from minijax.explain.pipeline import Stages
from minijax.explain.report import Report
from minijax.runtime.array import Array
from minijax.transforms.autodiff.grad import Linear
from minijax.transforms.jit.stages import Compiled, Lowered, Traced

_MOST_ELEMENTS = 32

LANGUAGES = {"jaxpr": "jaxpr", "stablehlo": "stablehlo", "propagated": "stablehlo"}
"""The languages of stages; those that are not named are programs of XLA."""


def html_of(value: Any) -> str | None:
    """The HTML of a value; None where its text says all.

    Args:
        value: of any class of which notebooks show more than text.
    """
    return _html(value)


@functools.singledispatch
def _html(value: Any) -> str | None:
    # What has no picture of its own is a report.
    if isinstance(value, Array):
        return arrays.array(value)
    return markup.block(markup.program(str(value), "report"))


@_html.register(Jaxpr)
@_html.register(ClosedJaxpr)
def _(value: Any) -> str:
    return markup.block(markup.program(str(value), "jaxpr"))


@_html.register
def _(value: Linear) -> str:
    kept = sum(getattr(x, "nbytes", 0) for x in value.residuals)
    plural = "" if len(value.residuals) == 1 else "s"
    detail = f"{len(value.residuals)} value{plural} kept, {communication.bytes_text(kept)}"
    head = markup.caption("linear function", detail)
    return markup.block(head, markup.program(str(value), "jaxpr"))


@_html.register
def _(value: Traced) -> str:
    return markup.block(_stage("Traced", value), markup.program(str(value.jaxpr), "jaxpr"))


@_html.register
def _(value: Lowered) -> str:
    return markup.block(_stage("Lowered", value), markup.program(_module(value), "stablehlo"))


def _module(value: Lowered) -> str:
    """The text of a module, without the elements of large constants."""
    asm: str = value.compiler_ir().operation.get_asm(large_elements_limit=_MOST_ELEMENTS)
    return asm


@_html.register
def _(value: Compiled) -> str:
    head = _stage("Compiled", value)
    if value.runtime_executable() is None:
        return markup.block(head, markup.caption("", "the back end has compiled for itself"))
    memory = value.memory_analysis()
    facts = [
        f"{communication.bytes_text(getattr(memory, f'{key}_size_in_bytes'))} of {what}"
        for key, what in (("argument", "arguments"), ("output", "results"), ("temp", "temporaries"))
        if memory is not None
    ]
    text = markup.program(pipeline.without_origins(value.as_text()), "hlo")
    return markup.block(head, markup.caption("", ", ".join(facts)), text)


def _stage(kind: str, value: Traced | Lowered | Compiled) -> str:
    taken = ", ".join(aval.str_short() for aval in value._in_avals)
    given = ", ".join(aval.str_short() for aval in value._closed.out_avals)
    return markup.caption(f"{kind} {value.fun_name}", f"({taken}) → ({given})")


@_html.register
def _(value: Stages) -> str:
    parts = [
        markup.folded(
            stage,
            markup.program(text, "cell" if stage == "shards" else LANGUAGES.get(stage, "hlo")),
            is_open=stage == "jaxpr",
        )
        for stage, text in value.items()
    ]
    return markup.block(markup.caption(f"stages of {value.name}"), *parts)


@_html.register
def _(value: MeshAxes) -> str:
    return meshes.mesh(value)


@_html.register
def _(value: Report) -> str:
    titles = ("call", "argument", "cause", "before", "after", "remedy")
    rows = [(x.at, x.argument, str(x.cause.value), x.before, x.after, x.remedy) for x in value]
    table = markup.table(titles, rows) if rows else ""
    return markup.block(markup.caption(value.headline), table)
