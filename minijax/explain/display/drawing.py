"""Pictures of shardings: which devices hold which part of an array.

Input: a shape and a placement.  Output: boxes drawn with characters, in colours where the output
is a terminal, or a picture where it is a notebook.
"""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from minijax.core.errors import error
from minijax.runtime.array import is_array
from minijax.sharding.base import Sharding
from minijax.sharding.named import is_abstract

# Backgrounds that black text can be read on: the numbers of a terminal's 256 colours, and the
# same for pictures.
_PALETTE = (
    (117, "#87d7ff"), (222, "#ffd787"), (120, "#87ff87"), (217, "#ffafaf"),
    (183, "#d7afff"), (229, "#ffffaf"), (152, "#afd7d7"), (216, "#ffaf87"),
    (110, "#87afd7"), (180, "#d7af87"), (114, "#87d787"), (176, "#d787d7"),
)  # fmt: skip
_RESET = "\x1b[0m"
# The size of a whole drawing, in characters, unless its labels need more.
_WIDTH = 40.0
_HEIGHT = 8.0
_HEIGHT_OF_VECTORS = 3.0

ColorMap = Callable[[float], tuple[float, float, float, float]]


class _Tile(NamedTuple):
    """A part of an array of a rank, from 0 to 1 in both directions, and who holds it."""

    rank: int
    top: float
    bottom: float
    left: float
    right: float
    label: str


def visualize_array_sharding(arr: Any, **kwargs: Any) -> Any:
    """Draws which devices hold which part of an array of rank 1 or 2.

    Args:
        arr: an array.
        **kwargs: as for `visualize_sharding`.

    Source: mirrors jax.debug.visualize_array_sharding, without the package `rich`.

    Raises:
        ValueError: the array's rank is neither 1 nor 2.
        TypeError: `arr` has no sharding.

    Example:
        >>> x = jnp.zeros((8, 8))
        >>> spread = jax.NamedSharding(jax.make_mesh((4, 2), ("x", "y")), jax.P("x", "y"))
        >>> jax.debug.visualize_array_sharding(jax.device_put(x, spread))
        ┌────────────────────┬────────────────────┐
        │       CPU 0        │       CPU 1        │
        │                    │                    │
        ├────────────────────┼────────────────────┤
        │       CPU 2        │       CPU 3        │
        │                    │                    │
        ├────────────────────┼────────────────────┤
        │       CPU 4        │       CPU 5        │
        │                    │                    │
        ├────────────────────┼────────────────────┤
        │       CPU 6        │       CPU 7        │
        │                    │                    │
        └────────────────────┴────────────────────┘
    """
    if not is_array(arr):
        problem = "needs a concrete array."
        got = f"{type(arr).__name__}: {arr!r}"
        fix = "debug.inspect_array_sharding(x, callback=print) inside jit"
        error(TypeError, "debug.visualize_array_sharding", problem, got=got, fix=fix)
    return visualize_sharding(arr.shape, arr.sharding, **kwargs)


def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool | Literal["always"] = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: ColorMap | None = None,
) -> Any:
    """Draws which devices hold which part of an array of rank 1 or 2.

    Prints boxes with the numbers of devices.  In a notebook nothing is printed and a picture is
    returned.

    Args:
        shape: the shape of the array.
        sharding: the placement.
        use_color: whether parts on different devices get different colours; in text, only where
            the output is a terminal, unless it is "always".
        scale: how large the drawing is.
        min_width: the least width of the drawing of one part, in characters.
        max_width: the greatest width of the drawing, in characters.
        color_map: gives red, green, blue and opacity for numbers from 0 to 1.

    Source: mirrors jax.debug.visualize_sharding, without the package `rich`.

    Raises:
        ValueError: the rank is neither 1 nor 2, the mesh has no devices, or the parts are uneven.

    Example:
        >>> spread = jax.NamedSharding(jax.make_mesh((4, 2), ("x", "y")), jax.P("y"))
        >>> jax.debug.visualize_sharding((8,), spread)
        ┌────────────────────┬────────────────────┐
        │                    │                    │
        │    CPU 0,2,4,6     │    CPU 1,3,5,7     │
        │                    │                    │
        └────────────────────┴────────────────────┘
    """
    tiles = _tiles(tuple(shape), sharding)
    colors = _colors(tiles, color_map) if use_color else None
    if in_notebook():
        return Picture(tiles, scale, colors)
    if use_color != "always" and not sys.stdout.isatty():
        colors = None
    sys.stdout.write(_drawn(tiles, scale, min_width, max_width, colors) + "\n")
    return None


def drawn(shape: tuple[int, ...], sharding: Sharding, *, color: bool) -> str:
    """The same as text.

    Args:
        shape: the shape of the array, of rank 1 or 2.
        sharding: the placement.
        color: whether it may have ANSI sequences.
    """
    tiles = _tiles(shape, sharding)
    return _drawn(tiles, 1.0, 9, 80, _colors(tiles, None) if color else None)


def _tiles(shape: tuple[int, ...], sharding: Sharding) -> list[_Tile]:
    if len(shape) not in (1, 2):
        problem = "draws arrays of rank 1 and 2 only."
        fix = "reshape the array, or print its sharding"
        error(ValueError, "debug.visualize_sharding", problem, got=f"shape {shape}", fix=fix)
    if is_abstract(sharding):
        problem = "needs devices, and the mesh is abstract."
        fix = "a NamedSharding on a Mesh with devices"
        error(ValueError, "debug.visualize_sharding", problem, got=str(sharding), fix=fix)
    sharding.shard_shape(shape)  # refuses uneven parts
    holders: dict[tuple[tuple[float, float], ...], list[Any]] = {}
    for device, index in sharding.devices_indices_map(shape).items():
        key = tuple(_span(cut, size) for cut, size in zip(index, shape, strict=True))
        holders.setdefault(((0.0, 1.0), *key)[-2:], []).append(device)
    return [
        _Tile(len(shape), top, bottom, left, right, _label(devices))
        for ((top, bottom), (left, right)), devices in sorted(holders.items(), key=lambda x: x[0])
    ]


def _span(cut: slice | int, size: int) -> tuple[float, float]:
    """From where to where an index reaches in a dimension, from 0 to 1."""
    start, stop = (cut, cut + 1) if isinstance(cut, int) else cut.indices(size)[:2]
    return (start / size, stop / size) if size else (0.0, 1.0)


def _label(devices: Sequence[Any]) -> str:
    platform = str(getattr(devices[0], "platform", "device")).upper()
    return f"{platform} {','.join(str(getattr(d, 'id', d)) for d in devices)}"


def _colors(tiles: Sequence[_Tile], color_map: ColorMap | None) -> dict[str, tuple[int, str]]:
    """For each label a colour: its number in terminals, and as pictures name it."""
    labels = list(dict.fromkeys(tile.label for tile in tiles))
    if color_map is None:
        return {label: _PALETTE[i % len(_PALETTE)] for i, label in enumerate(labels)}
    found = {}
    for i, label in enumerate(labels):
        red, green, blue = (float(part) for part in color_map(i / len(labels))[:3])
        cube = [round(5 * part) for part in (red, green, blue)]
        number = 16 + 36 * cube[0] + 6 * cube[1] + cube[2]
        found[label] = (number, "#" + "".join(f"{round(255 * x):02x}" for x in (red, green, blue)))
    return found


def _drawn(
    tiles: Sequence[_Tile],
    scale: float,
    min_width: int,
    max_width: int,
    colors: Mapping[str, tuple[int, str]] | None,
) -> str:
    """The boxes as text; every box of a column is as wide as the longest label needs."""
    columns = sorted({tile.left for tile in tiles})
    rows = sorted({tile.top for tile in tiles})
    longest = max(len(tile.label) for tile in tiles)
    width = max(min_width, longest + 2, round(_WIDTH * scale / len(columns)))
    width = max(3, min(width, max_width // len(columns) - 1))
    whole = _HEIGHT if tiles[0].rank == 2 else _HEIGHT_OF_VECTORS
    height = max(1, round(whole * scale / len(rows)))
    by_place = {(tile.top, tile.left): tile for tile in tiles}
    lines = [_rule("┌┬┐", len(columns), width)]
    for row in rows:
        if row != rows[0]:
            lines.append(_rule("├┼┤", len(columns), width))
        cells = [_cell(by_place[row, left].label, width, height) for left in columns]
        labels = [by_place[row, left].label for left in columns]
        for parts in zip(*cells, strict=True):
            painted = [_painted(p, label, colors) for p, label in zip(parts, labels, strict=True)]
            lines.append(f"│{'│'.join(painted)}│")
    lines.append(_rule("└┴┘", len(columns), width))
    return "\n".join(lines)


def _rule(corners: Sequence[str], count: int, width: int) -> str:
    left, middle, right = corners
    return left + middle.join("─" * width for _ in range(count)) + right


def _cell(label: str, width: int, height: int) -> list[str]:
    """The lines of one box: the label in the middle, in several lines where it is too long."""
    pieces = _wrapped(label, width)
    height = max(height, len(pieces))
    above = (height - len(pieces)) // 2
    lines = [""] * above + pieces + [""] * (height - above - len(pieces))
    return [line.center(width) for line in lines]


def _wrapped(label: str, width: int) -> list[str]:
    if len(label) <= width:
        return [label]
    lines = [""]
    for word in label.replace(",", ", ").split():
        joiner = " " if lines[-1] and not lines[-1].endswith(",") else ""
        if lines[-1] and len(lines[-1]) + len(joiner) + len(word) > width:
            lines.append("")
            joiner = ""
        lines[-1] += joiner + word
    return [line[:width] for line in lines]


def _painted(text: str, label: str, colors: Mapping[str, tuple[int, str]] | None) -> str:
    if colors is None:
        return text
    return f"\x1b[30;48;5;{colors[label][0]}m{text}{_RESET}"


def on_color(text: str, number: int) -> str:
    """A text on the colour of a device, by its number."""
    return f"\x1b[30;48;5;{_PALETTE[number % len(_PALETTE)][0]}m{text}{_RESET}"


def in_notebook() -> bool:
    """Whether a notebook shows what expressions return."""
    # Asked of the modules that are loaded: the package itself does not depend on IPython.
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


class Picture:
    """A drawing of a sharding for notebooks."""

    def __init__(
        self, tiles: Sequence[_Tile], scale: float, colors: Mapping[str, tuple[int, str]] | None
    ) -> None:
        self._tiles = tiles
        self._scale = scale
        self._colors = colors

    def _repr_svg_(self) -> str:
        width = 400 * self._scale
        height = (200 if self._tiles[0].rank == 2 else 40) * self._scale
        shapes = "".join(self._box(tile, width, height) for tile in self._tiles)
        size = f'width="{width:g}" height="{height:g}"'
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{shapes}</svg>'

    _repr_html_ = _repr_svg_

    def _box(self, tile: _Tile, width: float, height: float) -> str:
        x, y = tile.left * width, tile.top * height
        across, down = (tile.right - tile.left) * width, (tile.bottom - tile.top) * height
        fill = "white" if self._colors is None else self._colors[tile.label][1]
        font = min(14.0, 1.6 * across / max(1, len(tile.label)), 0.8 * down)
        where = f'x="{x + across / 2:g}" y="{y + down / 2:g}"'
        return (
            f'<rect x="{x:g}" y="{y:g}" width="{across:g}" height="{down:g}" fill="{fill}" '
            f'stroke="black"/><text {where} text-anchor="middle" dominant-baseline="central" '
            f'font-family="sans-serif" font-size="{font:g}">{html.escape(tile.label)}</text>'
        )

    def __repr__(self) -> str:
        return _drawn(self._tiles, self._scale, 9, 80, None)
