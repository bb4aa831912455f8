"""Row images of events as literals, and the rows they may be of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from cdc_consumer.parity.model import Column, Difference, Key, Shape
from cdc_consumer.parity.witness.wire_literals import literal_of
from shared.errors import EventError
from shared.events import Rows, Value

#: literals of some columns; None where one cannot be told
Literals = tuple[str | None, ...]

#: combinations of parts that cannot be told for which an index is kept; memory grows with them
MOST_PATTERNS = 16
_NAMED = frozenset({"enum", "set"})


def key_of(difference: Difference, shape: Shape) -> Key:
    """Return what a proven row is asked for by."""
    row = difference.leader or difference.follower or {}
    return tuple(difference.key.values()) if shape.key else tuple(row[column.name] for column in shape.columns)


def changes(rows: Rows) -> Iterator[tuple[Sequence[Value] | None, Sequence[Value] | None]]:
    """Yield each row before and after; None where it was not there."""
    for row in rows.rows:
        if rows.kind == "Update":
            yield row
        else:
            yield (None, row) if rows.kind == "Add" else (row, None)


class RowReader:
    """Reads the images of one table."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        names = [column.name for column in shape.columns]
        self._key = [names.index(name) for name in shape.key or names]
        self._layouts: dict[tuple[tuple[str, ...], tuple[str, ...]], list[tuple[int, Column] | None]] = {}

    def key(self, rows: Rows, image: Sequence[Value]) -> Literals:
        """Raises EventError."""
        layout = self._layout(rows)
        return _literals(rows, image, [layout[index] for index in self._key])

    def row(self, rows: Rows, image: Sequence[Value]) -> Literals:
        """Return all columns of the shape. Raises EventError."""
        return _literals(rows, image, self._layout(rows))

    def _layout(self, rows: Rows) -> list[tuple[int, Column] | None]:
        """Where each column of the shape is in the images."""
        layout = self._layouts.get((rows.columns, rows.types))
        if layout is None:
            layout = self._layouts[rows.columns, rows.types] = [
                self._place(column, rows) for column in self.shape.columns
            ]
        return layout

    def _place(self, column: Column, rows: Rows) -> tuple[int, Column] | None:
        if column.name not in rows.columns:
            return None
        index = rows.columns.index(column.name)
        if column.data_type not in _NAMED:
            return index, column
        # the numbers in the image are those of the members the column had then
        kind = rows.types[index] if rows.types else ""
        return (index, replace(column, type=kind)) if kind.startswith(column.data_type) else None


def _literals(rows: Rows, image: Sequence[Value], layout: Iterable[tuple[int, Column] | None]) -> Literals:
    try:
        return tuple(None if place is None else literal_of(image[place[0]], place[1]) for place in layout)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise EventError(
            f"a row in an event of {rows.database}.{rows.table} cannot be read ({type(error).__name__}: {error})"
        ) from error


def certain(known: Literals) -> Key | None:
    """Return the key, or None when part of it cannot be told."""
    key = tuple(part for part in known if part is not None)
    return key if len(key) == len(known) else None


class KeyIndex:
    """Finds keys that were asked for by what is known of one."""

    def __init__(self, keys: Collection[Key]) -> None:
        self.keys = frozenset(keys)
        self._patterns: dict[tuple[bool, ...], dict[Literals, list[Key]]] = {}

    def match(self, known: Literals) -> Collection[Key]:
        """The keys this may be."""
        key = certain(known)
        if key is not None:
            return [key] if key in self.keys else []
        pattern = tuple(part is None for part in known)
        found = self._patterns.get(pattern)
        if found is None:
            if len(self._patterns) >= MOST_PATTERNS:
                return self.keys
            found = self._patterns[pattern] = {}
            for wanted in self.keys:
                shown = tuple(None if hidden else part for part, hidden in zip(wanted, pattern, strict=True))
                found.setdefault(shown, []).append(wanted)
        return found.get(known, [])
