"""Writes BINLOG statements: changes of one or more tables, applied as one."""

from __future__ import annotations

from binascii import b2a_base64

from cdc_consumer.binlog.changes import Changes, event
from shared.binlog_format import HEADER_SIZE, EventType

#: what is added to the binlog events: BINLOG '' and the like
FRAME_SIZE = 64

#: a format without checksums; the sizes are those of the binlog events of MySQL 8.0, and the same since. Source:
#: MySQL's control_events.cpp, Format_description_event
_VERSION = b"8.0.36"
_POST_HEADER_SIZES = bytes.fromhex("000d0008000000000400040000006200041a08000000080808020000000a0a0a2a2a001234000a2800")


def statement(events: bytes) -> str:
    """Return the BINLOG statement of these binlog events."""
    return f"BINLOG '{b2a_base64(events, newline=False).decode('ascii')}'"


def format_description() -> str:
    """Return the statement that a session must run once before any other of its kind; it applies nothing.

    After it `gtid_next` must be set, or the next transaction fails.
    """
    body = (
        b"\4\0" + _VERSION.ljust(50, b"\0") + bytes(4) + bytes((HEADER_SIZE,)) + _POST_HEADER_SIZES
        + bytes(1 + 4)  # no algorithm, and room for the checksum that this binlog event has all the same
    )  # fmt: skip
    return statement(event(EventType.FORMAT_DESCRIPTION, body))


class ChangesStatement:
    """Writes changes into one BINLOG statement: the table maps first, then the rows in their order.

    MySQL ignores rows whose table map is not active, without a word. So each table map stands in the same statement,
    under an id that no other table has there, and only the last rows end it.
    """

    def __init__(self) -> None:
        self._maps: dict[bytes, bytes] = {}
        self._changes: list[Changes] = []
        #: bytes of what was added
        self.size = 0

    def __bool__(self) -> bool:
        return bool(self._changes)

    def takes(self, changes: Changes) -> bool:
        """Tell whether these changes can stand in this statement.

        Of a statement's binlog events the first one decides for all whether foreign keys are checked.
        """
        if self._changes and self._changes[0].foreign_key_checks != changes.foreign_key_checks:
            return False
        return self._maps.get(changes.table_id, changes.table_map) == changes.table_map

    def add(self, changes: Changes) -> None:
        """Add changes that the statement takes."""
        if changes.table_id not in self._maps:
            self._maps[changes.table_id] = changes.table_map
            self.size += len(changes.table_map)
        self._changes.append(changes)
        self.size += changes.size

    def sql(self) -> str:
        """Return the statement."""
        last = len(self._changes) - 1
        rows = [changes.rows_event(last=index == last) for index, changes in enumerate(self._changes)]
        return statement(b"".join([*self._maps.values(), *rows]))

    @property
    def foreign_key_checks(self) -> bool:
        """Tell what rows that are added must say of themselves."""
        return not self._changes or self._changes[0].foreign_key_checks
