"""Compares what minijax computes with what JAX computes: results, types and jaxprs.

    python benchmarks/parity.py --jax-python .venv-jax/bin/python [--api]

A second list of programs runs on eight host devices: shardings of arguments, results and
constraints, the StableHLO's operations, and the collectives that are left once it is compiled.
A third list is written per device: collectives and casts of jaxprs, of the StableHLO and of the
compiled program.
Differences that have a reason stand in `parity_differences.toml`; any other makes the exit
status 1.
With `--api` it reports instead which public names are missing and which signatures differ.
"""

from __future__ import annotations

import argparse
import math
import operator
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from remote import FOLDER, RemoteWorker

MODULES = (
    "",
    ".numpy",
    ".numpy.linalg",
    ".numpy.fft",
    ".lax",
    ".random",
    ".nn",
    ".nn.initializers",
    ".tree",
    ".tree_util",
    ".dtypes",
    ".errors",
    ".sharding",
    ".stages",
    ".scipy.special",
)
"""Where public names are compared."""


def _main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jax-python", required=True, help="the interpreter that has JAX")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has minijax")
    parser.add_argument("--subject", default="minijax", help="the module compared with JAX")
    parser.add_argument("--only", action="append", default=[], help="compare this program")
    parser.add_argument("--api", action="store_true", help="compare names and signatures instead")
    options = parser.parse_args()
    ours = RemoteWorker(options.python, options.subject)
    theirs = RemoteWorker(options.jax_python, "jax")
    try:
        if options.api:
            modules = list(MODULES)
            _report_api(ours.ask("api", modules=modules), theirs.ask("api", modules=modules))
            return 0
        return max([_compare(each, ours, theirs, options.only) for each in COMPARISONS])
    finally:
        ours.close()
        theirs.close()


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


def _report_api(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Prints what is missing; deprecated and internal names of JAX are counted like any other."""
    for path, expected in theirs.items():
        present = ours[path]
        missing = sorted(expected.keys() - present.keys())
        changed = [
            name
            for name in sorted(expected.keys() & present.keys())
            if _shape(expected[name]) != _shape(present[name])
        ]
        have = len(expected) - len(missing)
        print(f"\njax{path}: {have} of {len(expected)} names, {len(changed)} signatures differ")
        if missing:
            print(f"  missing: {', '.join(missing)}")
        for name in changed:
            print(f"  {name}\n    minijax  {present[name]}\n    jax      {expected[name]}")


def _shape(signature: str | None) -> str | None:
    """A signature without its defaults that are objects: those print differently everywhere."""
    return signature and re.sub(r"=<[^>]*>", "=<>", signature)


if __name__ == "__main__":
    sys.exit(_main())
