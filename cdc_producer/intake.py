"""Takes packets from the leader: runs of short transactions at once, everything else binlog event by binlog event."""

from __future__ import annotations

from collections.abc import Sequence

from cdc_producer.capture import Capture
from cdc_producer.decode.binlog import BinlogReader
from cdc_producer.decode.short import ShortRun, end_of_run, types_of
from cdc_producer.decode.table_decoders import TableDecoders
from cdc_producer.outgoing import Outgoing
from shared.errors import LeaderError
from shared.topic import Sealed


class Intake:
    """Stands between the packets and `Capture`, which knows what they mean."""

    def __init__(self, capture: Capture, tables: TableDecoders, outgoing: Outgoing) -> None:
        """Packets begin where the capture is; records go to `outgoing`."""
        self._capture = capture
        self._reader = BinlogReader(capture.edge)
        self._tables = tables
        self._outgoing = outgoing

    def take(self, packets: Sequence[bytes]) -> None:
        """Take the next packets from the leader. Raises what `Capture.feed` raises."""
        types = types_of(packets)
        first = 0
        while first < len(packets):
            last = end_of_run(types, first)
            if last > first and self._capture.plain and self._reader.checksums and self._run(packets[first:last]):
                first = last
            else:
                last = max(last, first + 1)
                for packet in packets[first:last]:
                    for event in self._reader.read(packet, self._capture):
                        self._capture.feed(event)
                first = last

    def _run(self, packets: Sequence[bytes]) -> bool:
        """Take a run of short transactions; False when it is not one, and nothing was done."""
        capture, outgoing = self._capture, self._outgoing
        run = ShortRun(packets, self._reader.position, capture.sequence, self._tables, outgoing.raw, self._one_by_one)
        if not run.begin():
            return False
        self._reader.position = run.end
        capture.pass_over(run)
        if run.total:
            outgoing.add_run(run)
        return True

    def _one_by_one(self, run: ShortRun) -> tuple[list[Sealed], LeaderError | None]:
        """Make the records of a run again, event by event: those before an error, and the error."""
        reader = BinlogReader(run.start)
        reader.checksums = True
        outgoing = self._outgoing.beside(self._tables)
        capture = self._capture.again(run, outgoing)
        try:
            for packet in run.packets:
                for event in reader.read(packet, capture):
                    capture.feed(event)
        except LeaderError as error:
            return outgoing.withdraw(), error
        return outgoing.withdraw(), None
