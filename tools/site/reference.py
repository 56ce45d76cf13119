"""The reference: a page for each public module, of the docstrings of what it shows.

A function may be public in several modules (decisions 0017 and 0038): the first one describes it,
and the others link to that description.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.docs import public
from tools.site import docstrings

_ROOT = Path(__file__).resolve().parents[2]


def pages() -> Iterator[tuple[str, str]]:
    """The name and the text of each page of the reference, that of its index at the end."""
    homes: dict[int, str] = {}
    rows = []
    for module in public.MODULES:
        shown = [(name, value) for name, value in public.described(module)]
        for name, value in shown:
            homes.setdefault(id(value), name)
        yield module.__name__, _page(module, shown, homes)
        first = docstrings.escaped(_first_line(module.__doc__ or ""))
        rows.append(f"| [{module.__name__}]({module.__name__}.md) | {first} | {len(shown)} |")
    table = "\n".join(["| module | | functions and classes |", "|---|---|---|", *rows])
    toctree = "```{toctree}\n:hidden:\n:glob:\n\nminijax*\n```"
    opening = (
        "Every public function and class, from its docstring, with the line of the source that "
        "defines it. What two modules show is described in the first of them."
    )
    yield "index", f"# Reference\n\n{opening}\n\n{table}\n\n{toctree}\n"


def _page(module: ModuleType, shown: list[tuple[str, Any]], homes: dict[int, str]) -> str:
    title = module.__name__
    parts = [
        f"# {title}",
        f"```{{py:module}} {title}\n```",
        docstrings.markdown(inspect.cleandoc(module.__doc__ or "")),
    ]
    if shown:
        rows = [
            f"| {{py:obj}}`{_within(name, module)} <{homes[id(value)]}>` | "
            f"{docstrings.escaped(_first_line(inspect.getdoc(value) or ''))} |"
            for name, value in shown
        ]
        parts.append("\n".join(["| name | what it is |", "|---|---|", *rows]))
    parts += [_entry(name, value) for name, value in shown if homes[id(value)] == name]
    return "\n\n".join(part for part in parts if part) + "\n"


def _within(name: str, module: ModuleType) -> str:
    return name.removeprefix(f"{module.__name__}.")


def _first_line(text: str) -> str:
    return text.partition("\n\n")[0]


def _entry(name: str, value: Any) -> str:
    """The description of one function, class or object that is used by brackets."""
    is_function = callable(value) and not inspect.isclass(value)
    kind = "function" if is_function else "class" if inspect.isclass(value) else "data"
    text = [docstrings.markdown(inspect.getdoc(value) or "", *_source(value))]
    if kind == "class":
        text += [_method(name, path, member) for path, member in public.methods(name, value)]
    inside = "\n\n".join(part for part in text if part)
    has_signature = callable(value) and not isinstance(value, enum.EnumMeta)
    signature = _signature(value) if has_signature else ""
    return f"::::::{{py:{kind}}} {name}{signature}\n\n{inside}\n::::::"


def _method(owner: str, path: str, member: Any) -> str:
    kind = "property" if isinstance(member, property) else "method"
    own = path.removeprefix(f"{owner}.")
    wrapped = getattr(member, "__func__", member)
    signature = "" if kind == "property" else _signature(wrapped)
    text = docstrings.markdown(inspect.getdoc(member) or "")
    return f":::::{{py:{kind}}} {own}{signature}\n\n{text}\n:::::"


def _signature(value: Any) -> str:
    """The parameters of a function with their defaults; what has no short form is three dots."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    parameters = []
    for parameter in found.parameters.values():
        if parameter.name == "self":
            continue
        bare = parameter.replace(annotation=inspect.Parameter.empty)
        if parameter.default is not inspect.Parameter.empty and not _is_short(parameter.default):
            bare = bare.replace(default=...)
        parameters.append(bare)
    return str(inspect.Signature(parameters)).replace("Ellipsis", "...")


def _is_short(value: Any) -> bool:
    plain = isinstance(value, bool | int | float | complex | str | tuple | None)
    return plain and len(repr(value)) <= 40 and "<" not in repr(value)


def _source(value: Any) -> Iterator[str]:
    """A field with a link to the line that defines a function, if it is one of the package."""
    try:
        code = inspect.unwrap(value)
        file = inspect.getsourcefile(code)
        _, line = inspect.getsourcelines(code)
    except (TypeError, OSError):
        return
    if file is not None and Path(file).is_relative_to(_ROOT / "minijax"):
        path = Path(file).relative_to(_ROOT).as_posix()
        yield f":Defined in: [`{path}`, line {line}](/{path}#L-{line})"
