"""Tables of bytes in the FlatBuffers encoding: read with every bound checked, and written.

Input: a schema and bytes, or records.  Output: records, or bytes.  A record is a dictionary from
names of fields to numbers, texts, bytes, other records, or lists of such.  A schema says for each
kind of table which fields it has, in their order:

    {"Point": {"name": "string", "x": "int32", "next": "Point", "tags": "[string]"}}

Offsets lead forward, except those to the descriptions of tables, so that no record can hold itself;
how many tables are read is limited by the number of bytes.  A damaged file is a `DamagedError`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Record: TypeAlias = dict[str, "Field"]
Field: TypeAlias = "int | bool | str | bytes | Record | Sequence[Field] | None"
Schema: TypeAlias = Mapping[str, Mapping[str, str]]

_SCALARS = {
    name: struct.Struct("<" + code)
    for name, code in {
        "bool": "B",
        "int8": "b",
        "uint8": "B",
        "int16": "h",
        "uint16": "H",
        "int32": "i",
        "uint32": "I",
    }.items()
}
_OFFSET, _SIGNED, _ENTRY = _SCALARS["uint32"], _SCALARS["int32"], _SCALARS["uint16"]
_MOST_LEVELS = 200


class DamagedError(Exception):
    """Bytes are not what a schema says."""


class Reader:
    """Bytes being read as tables of a schema."""

    def __init__(self, schema: Schema, data: bytes) -> None:
        self._schema = schema
        self._data = data
        # A table takes four bytes at least.
        self._left = len(data) // 4

    def root(self, kind: str) -> Record:
        """The record that the bytes begin with.

        Raises:
            DamagedError: the bytes are no such record.
        """
        return self._table(kind, self._target(0), 0)

    def _number(self, scalar: struct.Struct, at: int) -> int:
        if not 0 <= at <= len(self._data) - scalar.size:
            raise DamagedError(f"an offset leads to byte {at} of {len(self._data)}")
        found: int = scalar.unpack_from(self._data, at)[0]
        return found

    def _target(self, at: int) -> int:
        """Where the offset that stands somewhere leads to."""
        return at + self._number(_OFFSET, at)

    def _table(self, kind: str, at: int, level: int) -> Record:
        self._left -= 1
        if self._left < 0 or level > _MOST_LEVELS:
            raise DamagedError("it holds more tables than bytes")
        layout = at - self._number(_SIGNED, at)
        entries = self._number(_ENTRY, layout) // 2 - 2
        record: Record = {}
        for i, (name, field) in enumerate(self._schema[kind].items()):
            place = self._number(_ENTRY, layout + 4 + 2 * i) if i < entries else 0
            record[name] = self._field(field, at + place, level) if place else _absent(field)
        return record

    def _field(self, field: str, at: int, level: int) -> Field:
        if field in _SCALARS:
            return self._number(_SCALARS[field], at)
        target = self._target(at)
        if field in self._schema:
            return self._table(field, target, level + 1)
        count = self._number(_OFFSET, target)
        start = target + 4
        inner = field[1:-1]
        size = 1 if field == "string" else _size(inner)
        if count * size > len(self._data) - start:
            raise DamagedError(f"a vector of {count} entries is longer than the file")
        if field == "string":
            return self._text(start, count)
        if inner == "uint8":
            return self._data[start : start + count]
        return [self._field(inner, start + i * size, level) for i in range(count)]

    def _text(self, start: int, count: int) -> str:
        try:
            return self._data[start : start + count].decode()
        except UnicodeDecodeError:
            raise DamagedError(f"a text at byte {start} is not in UTF-8") from None


def _absent(field: str) -> Field:
    """What stands for a field that a table does not have."""
    if field in _SCALARS:
        return 0
    return [] if field.startswith("[") else None


def _size(field: str) -> int:
    """How many bytes a field takes in a table or a vector: of what is elsewhere, an offset."""
    return _SCALARS[field].size if field in _SCALARS else _OFFSET.size


class Writer:
    """Records being written as tables of a schema."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._data = bytearray(_OFFSET.size)

    def bytes_of(self, kind: str, record: Record) -> bytes:
        """The bytes of a record; fields that are None, or that it lacks, are left out."""
        self._point(0, self._table(kind, record))
        return bytes(self._data)

    def _align(self, size: int, ahead: int = 0) -> None:
        self._data += bytes(-(len(self._data) + ahead) % size)

    def _point(self, at: int, target: int) -> None:
        _OFFSET.pack_into(self._data, at, target - at)

    def _table(self, kind: str, record: Record) -> int:
        fields = self._schema[kind]
        given = [n for n in fields if record.get(n) is not None]
        # The widest come first, so that each is aligned.
        ordered = sorted(given, key=lambda name: -_size(fields[name]))
        places, size = {}, _SIGNED.size
        for name in ordered:
            places[name] = size
            size += _size(fields[name])
        layout = [4 + 2 * len(fields), size, *(places.get(name, 0) for name in fields)]
        self._align(4, ahead=2 * len(layout))
        start = len(self._data) + 2 * len(layout)
        self._data += struct.pack(f"<{len(layout)}H", *layout)
        self._data += _SIGNED.pack(2 * len(layout)) + bytes(size - _SIGNED.size)
        for name in ordered:
            self._put(fields[name], start + places[name], record[name])
        return start

    def _put(self, field: str, at: int, value: Field) -> None:
        """Writes a value at its place, or elsewhere, with an offset at its place."""
        if field in _SCALARS:
            _SCALARS[field].pack_into(self._data, at, value)
        elif field in self._schema:
            assert isinstance(value, dict)
            self._point(at, self._table(field, value))
        else:
            assert isinstance(value, str | bytes | Sequence)
            self._point(at, self._vector(field, value))

    def _vector(self, field: str, value: str | bytes | Sequence[Field]) -> int:
        self._align(4)
        start = len(self._data)
        if isinstance(value, str | bytes):
            raw = value.encode() if isinstance(value, str) else value
            self._data += _OFFSET.pack(len(raw)) + raw + b"\0"
            return start
        inner = field[1:-1]
        size = _size(inner)
        self._data += _OFFSET.pack(len(value)) + bytes(size * len(value))
        for i, entry in enumerate(value):
            self._put(inner, start + 4 + i * size, entry)
        return start
