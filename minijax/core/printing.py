"""The text of jaxprs, in JAX's notation.

Input: a jaxpr.  Output: `{ lambda consts ; inputs. let equations in (outputs,) }`.
Variables are named a, b, … in order of appearance; a variable that nobody reads is `_`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from minijax.core import source

_WIDTH = 90


def _letters() -> Iterator[str]:
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    for length in itertools.count(1):
        for letters in itertools.product(alphabet, repeat=length):
            yield "".join(letters)


class _Names:
    """Names of variables, given in order of appearance."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._fresh = _letters()

    def of(self, var: Any) -> str:
        key = id(var)
        if key not in self._names:
            self._names[key] = next(self._fresh)
        return self._names[key]


def _atom(atom: Any, names: _Names) -> str:
    if hasattr(atom, "value"):
        return f"{_literal(atom.value)}:{atom.aval.str_short()}"
    return names.of(atom)


def _literal(value: Any) -> str:
    item = value.item() if hasattr(value, "item") else value
    return str(item)


def _binder(var: Any, names: _Names, used: set[int] | None = None) -> str:
    name = "_" if used is not None and id(var) not in used else names.of(var)
    return f"{name}:{var.aval.str_short()}"


def _used(jaxpr: Any) -> set[int]:
    used = {id(v) for v in jaxpr.outvars}
    for eqn in jaxpr.eqns:
        used.update(id(v) for v in eqn.invars)
    return used


def _indent(text: str, by: int) -> str:
    return text.replace("\n", "\n" + " " * by)


def param_text(value: Any) -> str:
    """The text of one parameter of an equation."""
    jaxpr = getattr(value, "jaxpr", value)
    if hasattr(jaxpr, "eqns") and hasattr(jaxpr, "invars"):
        return jaxpr_text(jaxpr)
    if isinstance(value, tuple) and any(hasattr(getattr(v, "jaxpr", v), "eqns") for v in value):
        return "(\n" + "\n".join(f"  {_indent(param_text(v), 2)}" for v in value) + "\n)"
    if type(value).__module__ == "numpy" and hasattr(value, "name"):
        return str(value.name)
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    return str(value)


def _params(params: dict[str, Any]) -> str:
    items = [f"{k}={param_text(v)}" for k, v in sorted(params.items())]
    if not items:
        return ""
    flat = f"[{' '.join(items)}]"
    if "\n" not in flat and len(flat) < _WIDTH // 2 + 15:
        return flat
    return "[\n" + "\n".join(f"  {_indent(item, 2)}" for item in items) + "\n]"


def eqn_text(
    eqn: Any, names: _Names | None = None, used: set[int] | None = None, source_info: bool = False
) -> str:
    """The text of one equation."""
    names = names or _Names()
    outs = " ".join(_binder(v, names, used) for v in eqn.outvars)
    args = " ".join(_atom(v, names) for v in eqn.invars)
    shown = eqn.primitive.shown_params(eqn.params)
    call = f"{eqn.primitive.name}{_params(shown)} {args}".rstrip()
    text = f"{outs} = {call}" if outs else call
    return f"{text}  # {source.summarize(eqn.source)}" if source_info else text


def jaxpr_text(jaxpr: Any, *, source_info: bool = False, **_: Any) -> str:
    """The text of a jaxpr; with `source_info`, each equation shows the user's line."""
    names = _Names()
    used = _used(jaxpr)
    consts = " ".join(_binder(v, names) for v in jaxpr.constvars)
    inputs = " ".join(_binder(v, names, None) for v in jaxpr.invars)
    eqns = [eqn_text(eqn, names, used, source_info) for eqn in jaxpr.eqns]
    outs = ", ".join(_atom(v, names) for v in jaxpr.outvars)
    outs = f"({outs},)" if len(jaxpr.outvars) == 1 else f"({outs})"
    head = f"{{ lambda {consts}; {inputs}. let" if consts else f"{{ lambda ; {inputs}. let"
    flat = " ; ".join(eqns)
    if "\n" not in flat and len(eqns) <= 1 and len(head) + len(flat) + len(outs) < _WIDTH:
        return f"{head} {flat} in {outs} }}" if flat else f"{head} in {outs} }}"
    body = "\n".join(f"    {_indent(text, 4)}" for text in eqns)
    return f"{head}\n{body}\n  in {outs} }}"
