"""Arrays in notebooks: cells with numbers, pictures of what is large, and who holds which part.

Input: a concrete array.  Output: HTML.  Rows of the picture are all dimensions but the last.
"""

from __future__ import annotations

import base64
import html
import itertools
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax.explain import communication
from minijax.explain.display import markup
from minijax.runtime import placement

_MOST_NUMBERS = 128
_MOST_COLUMNS = 16
_MOST_ELEMENTS = 1 << 20
_SIDE = 64
_MOST_FRAMES = 256
_MOST_CHIPS = 16
_MOST_KEYS = 32
_PIXELS = 320
_WIDTH, _HEIGHT = 52, 20

Numbers = np.ndarray[Any, Any]
Bounds = tuple[tuple[int, int], ...]
"""From where to where a part reaches in each dimension."""

_LOW = np.array([64, 156, 220])
_MIDDLE = np.array([247, 247, 247])
_HIGH = np.array([235, 130, 60])
_NOTHING = np.array([150, 150, 150])


class _Part(NamedTuple):
    """A part of an array, and the devices that hold it."""

    bounds: Bounds
    devices: tuple[Any, ...]

    @property
    def color(self) -> str:
        """The fill of the first of its devices."""
        return markup.device_color(int(getattr(self.devices[0], "id", 0)))

    @property
    def label(self) -> str:
        """Its devices, and what of the array they hold."""
        where = ", ".join(f"{start}:{stop}" for start, stop in self.bounds)
        return f"{', '.join(map(str, self.devices))} [{where}]"


def array(x: Any) -> str | None:
    """An array as HTML; None for a scalar, whose text says all."""
    is_key = x.aval.is_extended
    if x.is_deleted() or not (x.ndim or is_key or _is_split(x)):
        return None
    parts = list(_parts(x)) if _is_split(x) else []
    caption = markup.caption(x.aval.str_short(), _facts(x))
    chips = markup.chips((part.label, part.color) for part in parts[:_MOST_CHIPS])
    if len(parts) > _MOST_CHIPS:
        chips += markup.caption("", f"… and {len(parts) - _MOST_CHIPS} more parts")
    if not _is_readable(x):
        return markup.block(caption, chips)
    if is_key:
        return markup.block(caption, _keys(x), chips)
    values = np.asarray(x)
    picture = _drawn(values, parts)
    details = "" if _has_numbers(values) else markup.folded("numbers", _text(x))
    return markup.block(caption, picture, chips, details)


def _is_split(x: Any) -> bool:
    return len(x.sharding.device_set) > 1


def _is_readable(x: Any) -> bool:
    where = x.sharding
    is_whole = placement.is_readable(where) and not placement.is_unreduced(where)
    return bool(is_whole and 0 < x.size <= _MOST_ELEMENTS)


def _text(x: Any) -> str:
    return markup.program(repr(x), "plain")


def _facts(x: Any) -> str:
    facts = [communication.bytes_text(x.nbytes)]
    spec = getattr(x.sharding, "spec", None)
    if spec is not None and _is_split(x):
        sizes = ", ".join(f"{name}={size}" for name, size in x.sharding.mesh.shape_tuple)
        facts.append(f"{spec!r} on ({sizes})")
    elif not _is_split(x):
        facts.append(str(next(iter(x.sharding.device_set))))
    if _is_readable(x) and not x.aval.is_extended and x.dtype.kind not in "bc":
        values = np.asarray(x).astype(np.float64)
        finite = values[np.isfinite(values)]
        if finite.size:
            facts.append(f"{finite.min():.4g} … {finite.max():.4g}")
        if np.isnan(values).any():
            facts.append(f"{np.isnan(values).sum()} NaN")
    return " · ".join(facts)


def _parts(x: Any) -> Iterator[_Part]:
    holders: dict[Bounds, list[Any]] = {}
    for device, index in x.sharding.devices_indices_map(x.shape).items():
        bounds = tuple(map(_span, index, x.shape))
        holders.setdefault(bounds, []).append(device)
    for bounds, devices in holders.items():
        yield _Part(bounds, tuple(devices))


def _span(cut: Any, size: int) -> tuple[int, int]:
    if not isinstance(cut, slice):
        return int(cut), int(cut) + 1
    start, stop, _ = cut.indices(size)
    return start, stop


def _keys(x: Any) -> str:
    """Random keys: equal ones have equal colours."""
    data = np.asarray(x.buffer)
    rows = data.reshape(x.size, -1)
    found = []
    for index, row in zip(np.ndindex(x.shape), rows[:_MOST_KEYS], strict=False):
        words = " ".join(f"{int(word):08x}" for word in row)
        hue = zlib.crc32(row.tobytes()) % 360
        place = ", ".join(map(str, index))
        found.append((f"[{place}] {words}" if place else words, f"hsl({hue},70%,78%)"))
    rest = len(rows) - _MOST_KEYS
    return markup.chips(found) + (markup.caption("", f"… {rest} more") if rest > 0 else "")


def _has_numbers(values: Numbers) -> bool:
    columns = values.shape[-1] if values.ndim else 1
    return values.size <= _MOST_NUMBERS and columns <= _MOST_COLUMNS


def _drawn(values: Numbers, parts: Sequence[_Part]) -> str:
    """The picture of an array, with a frame around each part."""
    matrix = values.reshape(-1, values.shape[-1] if values.ndim else 1)
    rows, columns = matrix.shape
    if _has_numbers(values):
        width, height = _WIDTH * columns, _HEIGHT * rows
        inside = "".join(_cells(values, matrix))
    else:
        pixels = shrunk(_magnitudes(matrix))
        factor = max(1, min(16, _PIXELS // max(pixels.shape)))
        height, width = max(14, pixels.shape[0] * factor), max(14, pixels.shape[1] * factor)
        inside = (
            f'<image width="{width}" height="{height}" preserveAspectRatio="none" '
            f'style="image-rendering:pixelated" href="{_png(_colored(pixels))}"/>'
        )
    frames = "".join(_frames(values.shape, parts, width / columns, height / rows))
    margin = 2
    box = f"{-margin} {-margin} {width + 2 * margin} {height + 2 * margin}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 2 * margin}" '
        f'height="{height + 2 * margin}" viewBox="{box}" style="display:block;max-width:none">'
        f"{inside}{frames}</svg>"
    )


def _cells(values: Numbers, matrix: Numbers) -> Iterator[str]:
    """The elements of a small array: their numbers on their colours."""
    colors = _colored(_magnitudes(matrix)).reshape(-1, 3)
    for flat, index in enumerate(np.ndindex(values.shape)):
        row, column = divmod(flat, matrix.shape[1])
        value = values[index]
        fill = "#" + "".join(f"{int(part):02x}" for part in colors[flat])
        place = ", ".join(map(str, index))
        x, y = column * _WIDTH, row * _HEIGHT
        yield (
            f"<g><title>[{place}] = {html.escape(str(value))}</title>"
            f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" fill="{fill}" '
            f'stroke="#fff" stroke-width="1"/><text x="{x + _WIDTH / 2:g}" y="{y + 14}" '
            f'text-anchor="middle" font-size="11" font-family="ui-monospace,monospace" '
            f'fill="{markup.INK}">{html.escape(_short(value))}</text></g>'
        )


def _short(value: Any) -> str:
    """A number in at most seven letters, if that is possible."""
    if isinstance(value, np.bool_ | bool):
        return str(value)
    text = str(value)
    if len(text) <= 7:
        return text
    if np.iscomplexobj(value):
        return f"{complex(value):.2g}"
    return f"{float(value):.3g}"


def _magnitudes(matrix: Numbers) -> Numbers:
    """What the colours tell: numbers themselves, and how large complex ones are."""
    return (np.abs(matrix) if matrix.dtype.kind == "c" else matrix).astype(np.float64)


def shrunk(matrix: Numbers) -> Numbers:
    """The means of parts of a large matrix, at most `_SIDE` in each direction."""
    for axis in (0, 1):
        size = matrix.shape[axis]
        if size > _SIDE:
            starts = np.arange(_SIDE) * size // _SIDE
            counts = np.diff(np.append(starts, size))
            shape = (-1, 1) if axis == 0 else (1, -1)
            matrix = np.add.reduceat(matrix, starts, axis) / counts.reshape(shape)
    return matrix


def _colored(matrix: Numbers) -> Numbers:
    """Blue below zero, white at zero, orange above; grey for what is not finite."""
    finite = np.isfinite(matrix)
    known = np.where(finite, matrix, 0.0)
    most = np.abs(known).max(initial=0.0) or 1.0
    part = (known / most)[..., None]
    mixed = _MIDDLE + np.abs(part) * (np.where(part < 0, _LOW, _HIGH) - _MIDDLE)
    return np.where(finite[..., None], mixed, _NOTHING).round().astype(np.uint8)


def _png(colors: Numbers) -> str:
    """An image as the address that holds it."""
    height, width, _ = colors.shape
    rows = b"".join(b"\0" + row.tobytes() for row in colors)

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    image = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )
    return f"data:image/png;base64,{base64.b64encode(image).decode()}"


def _frames(
    shape: Sequence[int], parts: Sequence[_Part], across: float, down: float
) -> Iterator[str]:
    """A frame around each part, in the colour of its device."""
    framed = [(part, *box) for part in parts for box in boxes(part.bounds, shape)]
    if len(parts) < 2 or len(framed) > _MOST_FRAMES:
        return
    for part, top, bottom, left, right in framed:
        where = (
            f'x="{left * across + 1.5:g}" y="{top * down + 1.5:g}" '
            f'width="{max(0, (right - left) * across - 3):g}" '
            f'height="{max(0, (bottom - top) * down - 3):g}" fill="none"'
        )
        yield (
            f"<g><title>{html.escape(part.label)}</title>"
            f'<rect {where} stroke="{markup.INK}" stroke-width="4.5"/>'
            f'<rect {where} stroke="{part.color}" stroke-width="3"/></g>'
        )


def boxes(bounds: Bounds, shape: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
    """Where a part stands in the picture: from which row and column to which."""
    if not shape:
        yield 0, 1, 0, 1
        return
    *leading, (left, right) = bounds
    # Dimensions at the end of which all is held give rows that follow one another.
    whole = 1
    while leading and leading[-1] == (0, shape[len(leading) - 1]):
        whole *= leading.pop()[1]
    run = 1
    if leading:
        start, stop = leading.pop()
        run = stop - start
    else:
        start = 0
    sizes = shape[: len(leading) + 1]
    for index in itertools.product(*(range(*bound) for bound in leading)):
        row = 0
        for place, size in zip((*index, start), sizes, strict=False):
            row = row * size + place
        yield row * whole, (row + run) * whole, left, right
