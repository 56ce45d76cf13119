"""Aligned tables of text, and numbers as people read them."""

from __future__ import annotations

from collections.abc import Sequence

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[str] = ()
) -> list[str]:
    """The lines of a table.

    Args:
        titles: a name for each column.
        rows: the cells of each row.  A column that is empty everywhere is left out.
        numeric: the titles of columns that are aligned on the right.
    """
    columns = [
        (title, [row[i] for row in rows])
        for i, title in enumerate(titles)
        if any(row[i] for row in rows)
    ]
    widths = [max(map(len, (title, *cells))) for title, cells in columns]
    lines = []
    for number in range(-1, len(rows)):
        cells = [title if number < 0 else column[number] for title, column in columns]
        lines.append(
            "  ".join(
                cell.rjust(width) if title in numeric else cell.ljust(width)
                for cell, width, (title, _) in zip(cells, widths, columns, strict=True)
            ).rstrip()
        )
    return lines


def bytes_text(count: float) -> str:
    """A number of bytes with a unit."""
    unit = 0
    while count >= 1024 and unit < len(_UNITS) - 1:
        count /= 1024
        unit += 1
    return f"{count:.4g} {_UNITS[unit]}"


def axes_text(axes: Sequence[str] | None) -> str:
    """Mesh axes as tables show them; a question mark where they are not known."""
    return "?" if axes is None else ",".join(axes) or "-"
