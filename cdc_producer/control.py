"""Tells of binlog events that change nothing, for a topic of theirs: files of the binlog, their format, and GTIDs.

Such a record looks like an event, with `"operation":{"Control":{..}}`; its `sequence` is that of the last operation
before it, and `bn_file` where its binlog event starts:

    {"Gtid":{"gtid":G,"time":T}}             a transaction begins, of the filters or not; T in microseconds since 1970
    {"Rotate":{"fileName":F,"offset":O}}     the binlog goes on in another file
    {"FormatDescription":{"version":4,"server":V,"created":T}}   a file begins; T in seconds since 1970
    {"Heartbeat":{"time":T}}                 the leader was alive then, and nothing was published behind `bn_file`
"""

from __future__ import annotations

import json
from json.encoder import encode_basestring as json_string
from typing import Any

from cdc_producer.capture import Capture
from cdc_producer.decode.binlog_event import UNREADABLE, BinlogEvent, unreadable
from cdc_producer.decode.gtids import read_transaction
from cdc_producer.decode.rows_event import Operation
from shared.binlog_format import EventType
from shared.events import Draft, Position

GTIDS = frozenset({EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED})
#: bytes of a format description's version, and behind it of the server's
VERSION_SIZE, SERVER_SIZE = 2, 50
#: bytes of the offset in a rotation
OFFSET_SIZE = 8


class TellingCapture(Capture):
    """Adds to what is captured the records for a control topic."""

    @property
    def plain(self) -> bool:
        """Tell that every binlog event is to be fed: none is passed over in a run."""
        return False

    def feed(self, event: BinlogEvent) -> None:
        """Take the next binlog event, as `Capture` does."""
        try:
            told = control_json(event)
        except UNREADABLE as error:
            raise unreadable(event.type, event.where(), error, inside=not self.at_edge) from error
        if told is not None:
            self._tell(Position(event.file, event.start), told)
        super().feed(event)

    def heartbeat(self, heard: float) -> bool:
        """Add a heartbeat record, as `Capture` does, and another one for the control topic."""
        added = super().heartbeat(heard)
        if added:
            self._tell(self.edge, control("Heartbeat", time=int((heard + self._facts.clock) * 1e6)))
        return added

    def _tell(self, position: Position, told: bytes) -> None:
        draft = Draft(json_string(f"flv://{self._resource}"), position, None, 0)
        self._outgoing.add(draft, Operation(told), self.sequence, None)


def control_json(event: BinlogEvent) -> bytes | None:
    """Return what Draft.encode needs to tell of a binlog event; None for one that is not told of.

    Raises what UNREADABLE lists.
    """
    if event.end <= event.start:
        return None  # the leader made it up for this connection
    if event.type in GTIDS:
        transaction = read_transaction(event.type, event.body, event.start)
        return control("Gtid", gtid=transaction.gtid, time=transaction.time)
    if event.type == EventType.ROTATE:
        offset, name = event.body[:OFFSET_SIZE], event.body[OFFSET_SIZE:]
        return control("Rotate", fileName=name.decode(), offset=int.from_bytes(offset, "little"))
    if event.type == EventType.FORMAT_DESCRIPTION:
        server = event.body[VERSION_SIZE : VERSION_SIZE + SERVER_SIZE].rstrip(b"\0").decode()
        version = int.from_bytes(event.body[:VERSION_SIZE], "little")
        return control("FormatDescription", version=version, server=server, created=event.timestamp)
    return None


def control(kind: str, **facts: Any) -> bytes:
    """Return the JSON of one kind of control record, as Draft.encode needs it."""
    return b',"operation":' + json.dumps({"Control": {kind: facts}}, separators=(",", ":")).encode()
