"""Describes one binlog event: its types, its header, its parts, and what is said of one that cannot be read."""

from __future__ import annotations

from struct import error as StructError
from typing import NamedTuple

from shared.binlog_format import HEADER_SIZE, EventType
from shared.errors import UnsupportedError
from shared.events import Position

#: types that stop the producer, with the reason a user understands
REFUSED = {
    17: "LOAD DATA as a statement (binlog_format=STATEMENT)",
    18: "LOAD DATA as a statement (binlog_format=STATEMENT)",
    23: "rows in the format before MySQL 5.6 (log_bin_use_v1_row_events)",
    24: "rows in the format before MySQL 5.6 (log_bin_use_v1_row_events)",
    25: "rows in the format before MySQL 5.6 (log_bin_use_v1_row_events)",
    26: "an incident: the leader itself lost changes",
}
TYPE_NAMES = {value: name for name, value in vars(EventType).items() if name.isupper()}
KNOWN = frozenset(TYPE_NAMES)

#: what to do where the binlog itself cannot be read on
START_BEHIND = "load the follower anew and start an empty topic behind it"
EXAMINE = f"examine the file on the leader (mysqlbinlog --verify-binlog-checksum); if that fails too, {START_BEHIND}"
#: what reading bytes raises that are not what they should be; anything else is a bug
UNREADABLE = (ArithmeticError, LookupError, ValueError, StructError)


class BinlogEvent(NamedTuple):
    """Holds one binlog event, cut into header and body."""

    type: int
    #: seconds since 1970
    timestamp: int
    flags: int
    #: what follows the header, without checksum
    body: bytes
    file: str
    #: offset where the event starts and ends; all events of a compressed transaction have those of its payload
    start: int
    end: int
    #: as the leader sent it: header, body and checksum; without checksum when the leader makes none, or inside a
    #: compressed transaction
    raw: bytes = b""

    @property
    def checksummed(self) -> bool:
        """Tell whether `raw` ends with a checksum."""
        return len(self.raw) > HEADER_SIZE + len(self.body)

    def where(self) -> str:
        """Say in messages which event it is."""
        return str(Position(self.file, self.start))


def way_past(where: str, *, inside: bool = True) -> str:
    """Say how the operator passes the transaction of a binlog event that cannot be carried; `inside` says it has one.

    Of what stands between two transactions, and of what begins one, nothing says which transaction --skip would mean.
    """
    if not inside:
        return "no --skip passes it, as it stands in no transaction that is known"
    return f"to leave its transaction out: cdc-producer --skip {where}"


def not_known(kind: int, where: str, *, inside: bool = True) -> UnsupportedError:
    """Return what to raise for a type that is not on the list, or not in that place."""
    what = "which has no place there" if kind in KNOWN else REFUSED.get(kind, "which this version does not know")
    return UnsupportedError(
        f"binlog event of type {kind} at {where}: {what}; it cannot be replicated; {START_BEHIND};"
        f" {way_past(where, inside=inside)}"
    )


def unreadable(kind: int, where: str, error: Exception, *, inside: bool = True) -> UnsupportedError:
    """Return what to raise, from `error`, when the bytes of a binlog event are not what its type says."""
    name = TYPE_NAMES.get(kind, "unknown")
    return UnsupportedError(
        f"binlog event of type {kind} ({name}) at {where} cannot be read ({type(error).__name__}: {error}): the"
        f" leader's file or what stands between is damaged, or this version does not know its format; {EXAMINE};"
        f" {way_past(where, inside=inside)}"
    )
