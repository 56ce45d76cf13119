"""The text of jaxprs, in JAX's notation.

Input: a jaxpr.  Output: `{ lambda consts ; inputs. let equations in (outputs,) }`.
Variables are named a, b, … in order of appearance; a variable that nobody reads is `_`.  A jaxpr
that several equations hold is written once, in front: `let name = {…} in`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from minijax.core import deferral, source
from minijax.core.rules import Facts, Rules

highlighting = deferral.module("minijax.explain.display.highlighting")

hidden_params: Facts[frozenset[str]] = Facts("hidden_params", frozenset())
"""Parameters that jaxprs do not print, because types tell them."""

hidden_when_empty: Facts[frozenset[str]] = Facts("hidden_when_empty", frozenset())
"""Parameters that jaxprs print only where they are not empty, nor None."""

shows = Rules("shows")
"""The parameters that jaxprs print, as they print them: `(primitive, params)` gives a dictionary.
Without a rule they print all that are not hidden."""

notation = Rules("notation")
"""The text of an equation that has a notation of its own: `(primitive, eqn, name, outs)`, where
`name(atom)` names an operand and `outs` are the results with their types."""

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

    def of(self, var: object) -> str:
        key = id(var)
        if key not in self._names:
            self._names[key] = next(self._fresh)
        return self._names[key]

    def of_atom(self, atom: Any) -> str:
        """A variable's name, or a literal's value and type."""
        if hasattr(atom, "value"):
            return f"{literal_text(atom.value)}:{atom.aval.str_short()}"
        return self.of(atom)

    def of_binder(self, var: Any, used: set[int] | None = None) -> str:
        """A variable's name and type where it is bound; an underscore if nobody reads it."""
        name = "_" if used is not None and id(var) not in used else self.of(var)
        return f"{name}:{var.aval.str_short()}"


def literal_text(value: Any) -> str:
    """A scalar, as briefly as its dtype allows."""
    if isinstance(value, (np.floating, np.complexfloating)):
        return str(value)
    return str(value.item() if hasattr(value, "item") else value)


def _used(jaxpr: Any) -> set[int]:
    used = {id(v) for v in jaxpr.outvars}
    for eqn in jaxpr.eqns:
        used.update(id(v) for v in eqn.invars)
    return used


def _indent(text: str, by: int) -> str:
    return text.replace("\n", "\n" + " " * by)


def _as_jaxpr(value: Any) -> Any:
    """The open jaxpr that a parameter is or holds, else None."""
    jaxpr = getattr(value, "jaxpr", value)
    return jaxpr if hasattr(jaxpr, "eqns") and hasattr(jaxpr, "invars") else None


def _inner(jaxpr: Any) -> Iterator[tuple[Any, Any]]:
    """Each equation that holds a jaxpr, with that jaxpr."""
    for eqn in jaxpr.eqns:
        for value in eqn.params.values():
            for item in value if isinstance(value, tuple) else (value,):
                held = _as_jaxpr(item)
                if held is not None:
                    yield eqn, held


class _Printer:
    """Prints one jaxpr with those inside it."""

    def __init__(self, source_info: bool) -> None:
        self.source_info = source_info
        self.shared: dict[int, str] = {}

    def whole(self, jaxpr: object) -> str:
        """The jaxpr, after those that it holds several times."""
        uses: dict[int, int] = {}
        held: dict[int, tuple[Any, str]] = {}

        def visit(outer: object) -> None:
            for eqn, inner in _inner(outer):
                uses[id(inner)] = uses.get(id(inner), 0) + 1
                if uses[id(inner)] == 1:
                    visit(inner)
                    held[id(inner)] = inner, str(eqn.params.get("name", "jaxpr"))

        visit(jaxpr)
        definitions = []
        for key, (inner, name) in held.items():
            if uses[key] > 1:
                body = self.jaxpr(inner)
                taken = self.shared.values()
                names = itertools.chain([name], (f"{name}{i}" for i in itertools.count(1)))
                self.shared[key] = next(n for n in names if n not in taken)
                definitions.append(f"let {self.shared[key]} = {body} in\n")
        return "".join(definitions) + self.jaxpr(jaxpr)

    def param(self, value: Any) -> str:
        """The text of one parameter of an equation."""
        jaxpr = _as_jaxpr(value)
        if jaxpr is not None:
            return self.shared.get(id(jaxpr)) or self.jaxpr(jaxpr)
        if isinstance(value, tuple) and any(_as_jaxpr(v) is not None for v in value):
            return "(\n" + "\n".join(f"  {_indent(self.param(v), 2)}" for v in value) + "\n)"
        if type(value).__module__ == "numpy" and hasattr(value, "name"):
            return str(value.name)
        if callable(value) and hasattr(value, "__name__"):
            return str(value.__name__)
        return str(value)

    def params(self, eqn: Any) -> str:
        """The parameters of an equation, in brackets."""
        shown = shown_params(eqn.primitive, eqn.params)
        items = [f"{key}={self.param(value)}" for key, value in shown.items()]
        if not items:
            return ""
        flat = f"[{' '.join(items)}]"
        if "\n" not in flat and len(flat) < _WIDTH // 2 + 15:
            return flat
        return "[\n" + "\n".join(f"  {_indent(item, 2)}" for item in items) + "\n]"

    def eqn(self, eqn: Any, names: _Names, used: set[int] | None) -> str:
        """The text of one equation."""
        outs = " ".join(names.of_binder(v, used) for v in eqn.outvars)
        args = " ".join(map(names.of_atom, eqn.invars))
        call = f"{eqn.primitive.name}{self.params(eqn)} {args}".rstrip()
        special = notation.of(eqn.primitive)
        if special is not None:
            outs, call = "", special(eqn, names.of_atom, outs)
        text = f"{outs} = {call}" if outs else call
        return f"{text}  # {source.summarize(eqn.source)}" if self.source_info else text

    def jaxpr(self, jaxpr: Any) -> str:
        """The text of one jaxpr."""
        names = _Names()
        used = _used(jaxpr)
        consts = " ".join(map(names.of_binder, jaxpr.constvars))
        inputs = " ".join(map(names.of_binder, jaxpr.invars))
        eqns = [self.eqn(eqn, names, used) for eqn in jaxpr.eqns]
        outs = ", ".join(map(names.of_atom, jaxpr.outvars))
        outs = f"({outs},)" if len(jaxpr.outvars) == 1 else f"({outs})"
        head = f"{{ lambda {consts}; {inputs}. let" if consts else f"{{ lambda ; {inputs}. let"
        flat = " ; ".join(eqns)
        if "\n" not in flat and len(eqns) <= 1 and len(head) + len(flat) + len(outs) < _WIDTH:
            return f"{head} {flat} in {outs} }}" if flat else f"{head} in {outs} }}"
        body = "\n".join(f"    {_indent(text, 4)}" for text in eqns)
        return f"{head}\n{body}\n  in {outs} }}"


def shown_params(primitive: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of an operation that jaxprs print, as they print them."""
    rule = shows.of(primitive)
    if rule is not None:
        found: dict[str, Any] = rule(params)
        return found
    hidden, empty = hidden_params.of(primitive), hidden_when_empty.of(primitive)
    return {
        k: v
        for k, v in sorted(params.items())
        if k not in hidden and (k not in empty or (v is not None and v != ()))
    }


def eqn_text(eqn: object) -> str:
    """The text of one equation by itself."""
    return _Printer(source_info=False).eqn(eqn, _Names(), None)


def jaxpr_text(
    jaxpr: object, *, source_info: bool = False, use_color: bool = False, **_: Any
) -> str:
    """The text of a jaxpr; with `source_info`, each equation shows the user's line."""
    text = _Printer(source_info).whole(jaxpr)
    return str(highlighting.to_ansi(text, "jaxpr")) if use_color else text
