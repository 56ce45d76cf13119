"""Where arrays live and what devices send each other, as the examples show it."""

from __future__ import annotations

from collections.abc import Iterable

import minijax as jax


def table(tree: object) -> str:
    """A line for each array: its name, shape and spec, and how much of it one device holds."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    rows = [("array", "shape", "spec", "on each device")]
    for path, leaf in leaves:
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        held = jax.typeof(leaf.addressable_shards[0].data).str_short()
        rows.append((name, str(leaf.shape), _spec(leaf), held))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def bytes_on_each_device(tree: object) -> int:
    """What the first device holds of a tree; the placements here give each as much."""
    return sum(leaf.addressable_shards[0].data.nbytes for leaf in jax.tree.leaves(tree))


def sent(collectives: Iterable[jax.explain.Collective]) -> str:
    """A line for each collective of a program: how much it sends, and who wanted it."""
    lines = []
    for each in collectives:
        count = len(each.operands)
        what = str(each.operands[0]) if count == 1 else f"{count} arrays"
        over = f" over {', '.join(each.axes)}" if each.axes else ""
        lines.append(f"{each.kind}{over}: {what}, {each.bytes:,} bytes, for {each.line}")
    return "\n".join(lines)


def _spec(leaf: jax.Array) -> str:
    entries = ", ".join("–" if entry is None else str(entry) for entry in leaf.sharding.spec)
    return entries or "whole"
