"""Compares what minijax computes with what JAX computes: results, types and jaxprs.

    python benchmarks/parity.py --jax-python .venv-jax/bin/python [--names]

First, the public names of all modules and their parameters; with `--names`, nothing else.  Then
programs of a list: results, types and jaxprs.  A second list of programs runs on eight host
devices: shardings of arguments, results and constraints, the StableHLO's operations, and the
collectives that are left once it is compiled.  A third list is written per device: collectives
and casts of jaxprs, of the StableHLO and of the compiled program.
Differences that have a reason stand in `parity_differences.toml`; any other makes the exit
status 1.
"""

from __future__ import annotations

import argparse
import json
import math
import operator
import sys
import tomllib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import api
from api import Names
from remote import FOLDER, RemoteWorker


def _main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jax-python", required=True, help="the interpreter that has JAX")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has minijax")
    parser.add_argument("--subject", default="minijax", help="the module compared with JAX")
    parser.add_argument("--only", action="append", default=[], help="compare this program")
    parser.add_argument("--names", action="store_true", help="compare names and parameters alone")
    parser.add_argument("--record", action="store_true", help="write JAX's names for the tests")
    options = parser.parse_args()
    ours = RemoteWorker(options.python, options.subject)
    theirs = RemoteWorker(options.jax_python, "jax")
    try:
        names = 0 if options.only else _compare_names(ours, theirs, record=options.record)
        if options.names:
            return names
        return max(names, *[_compare(each, ours, theirs, options.only) for each in COMPARISONS])
    finally:
        ours.close()
        theirs.close()


def _compare_names(ours: RemoteWorker, theirs: RemoteWorker, *, record: bool) -> int:
    """Reports on the public names of both libraries; the exit status."""
    expected = theirs.ask("api")
    if record:
        text = json.dumps(expected, indent=0, sort_keys=True)
        api.RECORDED.write_text(text + "\n", encoding="utf-8")
    return _report_names(ours.ask("api"), expected)


def _compare(
    comparison: Comparison, ours: RemoteWorker, theirs: RemoteWorker, only: list[str]
) -> int:
    """Runs one list of programs on both libraries and reports; the exit status."""
    # Host devices are made once in a process, and the lists want different numbers of them.
    ours.close()
    theirs.close()
    sides = [side.ask(comparison.request, names=only) for side in (ours, theirs)]
    return _report(comparison, *sides, only) if any(sides) else 0


def _report(
    comparison: Comparison, ours: dict[str, Any], theirs: dict[str, Any], names: list[str]
) -> int:
    known = tomllib.loads((FOLDER / "parity_differences.toml").read_text(encoding="utf-8"))
    reasons = {
        name: {aspect: known["reasons"][reason] for aspect, reason in aspects.items()}
        for name, aspects in known[comparison.table].items()
    }
    unexplained = agreeing = explained = 0
    for name, expected in theirs.items():
        found = dict(comparison.differences(ours[name], expected))
        agreeing += not found
        for aspect, detail in found.items():
            reason = reasons.get(name, {}).get(aspect)
            explained += reason is not None
            unexplained += reason is None
            print(f"{'known' if reason else 'DIFFERENT':9}  {name}: {aspect}")
            print(f"           {reason}" if reason else detail)
        for aspect in sorted(reasons.get(name, {}).keys() - found.keys()):
            unexplained += 1
            print(f"OUTDATED   {name}: {aspect} is the same now; its reason is no longer needed")
    for name in sorted(reasons.keys() - theirs.keys()) if not names else ():
        unexplained += 1
        print(f"OUTDATED   {name}: there is no such program")
    key, meaning = comparison.verbatim
    verbatim = sum(ours[name].get(key) == seen.get(key) for name, seen in theirs.items())
    print(
        f"{len(theirs)} {comparison.what}: {agreeing} agree in everything, {verbatim} {meaning}; "
        f"{explained} differences with a reason, {unexplained} without"
    )
    return int(unexplained > 0)


def _differences(ours: dict[str, Any], theirs: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The aspects in which two observations differ, each with both sides as text."""
    if "error" in ours or "error" in theirs:
        if ours.get("error") != theirs.get("error"):
            yield "error", _sides(_error(ours), _error(theirs))
        return
    for aspect in ("tree", "types"):
        if ours[aspect] != theirs[aspect]:
            yield aspect, _sides(ours[aspect], theirs[aspect])
    if not _close(ours["values"], theirs["values"]):
        yield "values", _sides(ours["values"], theirs["values"])
    if ours["equations"] != theirs["equations"]:
        lines = (f"\n{'':13}".join(x["equations"] or [x["jaxpr"]]) for x in (ours, theirs))
        yield "equations", _sides(*lines)
    elif ours["jaxpr"] != theirs["jaxpr"] and ours["calls"] == theirs["calls"]:
        yield "text", _sides(ours["jaxpr"], theirs["jaxpr"])


def _sharded_differences(ours: dict[str, Any], theirs: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """As `_differences`, for programs over several devices."""
    if "error" in ours or "error" in theirs:
        if ours.get("error") != theirs.get("error"):
            yield "error", _sides(_error(ours), _error(theirs))
        return
    for aspect, expected in theirs.items():
        same = _close if aspect == "values" else operator.eq
        if not same(ours[aspect], expected):
            yield aspect, _sides(ours[aspect], expected)


class Comparison(NamedTuple):
    """A list of programs, and how they are compared.

    Attributes:
        what: what the programs are called.
        request: what workers are asked.
        table: where the differences that have a reason stand.
        differences: the aspects in which two observations differ.
        verbatim: an aspect, and how to say that it is the same for both.
    """

    what: str
    request: str
    table: str
    differences: Callable[[dict[str, Any], dict[str, Any]], Iterator[tuple[str, str]]]
    verbatim: tuple[str, str]


COMPARISONS = (
    Comparison("programs", "compare", "programs", _differences, ("jaxpr", "print the same jaxpr")),
    Comparison(
        "sharded programs",
        "compare_sharded",
        "sharded",
        _sharded_differences,
        ("collectives", "have the same collectives"),
    ),
    Comparison(
        "programs per device",
        "compare_per_device",
        "per_device",
        _sharded_differences,
        ("communication", "communicate in the same way"),
    ),
)


def _error(observed: dict[str, Any]) -> str:
    if "error" not in observed:
        return f"no error: {observed['types']}"
    return f"{observed['error']}: {observed['message']}"


def _sides(ours: object, theirs: object) -> str:
    return f"  minijax    {str(ours)[:2000]}\n  jax        {str(theirs)[:2000]}"


def _close(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(_close, ours, theirs))
    if math.isnan(ours) or math.isnan(theirs):
        return math.isnan(ours) and math.isnan(theirs)
    return math.isclose(ours, theirs, rel_tol=2e-5, abs_tol=1e-6)


def _report_names(ours: dict[str, Names], theirs: dict[str, Names]) -> int:
    """Prints which public names are missing and which take less; the exit status."""
    reasons = api.reasons_for_names()
    total = 0
    modules = api.compared(ours, theirs)
    for module in modules:
        share = f"{100 * module.share:.1f} %"
        print(f"jax.{module.path}: {share} of {module.expected} names".replace("jax.:", "jax:"))
        for name in module.missing:
            reason = reasons.of(module.path, name, "missing")
            total += reason is None
            print(f"  {'known' if reason else 'MISSING':9}  {name}: {reason or 'not there'}")
        for name, (mine, parameters) in module.narrower.items():
            reason = reasons.of(module.path, name, "parameters")
            total += reason is None
            print(f"  {'known' if reason else 'DIFFERENT':9}  {name}: {reason or ''}")
            print(f"             minijax  {mine}\n             jax      {parameters}")
    for name in api.outdated(reasons, modules):
        total += 1
        print(f"OUTDATED   {name}: there is no such difference now")
    print(f"{total} differences of names or parameters without a reason")
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(_main())
