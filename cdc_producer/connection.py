"""The replication connection: registers with the leader and delivers its binlog packets.

mysql-replication makes the connection (it registers as a replica and asks for the dump); from then on the socket is
read here, because its reader costs ten times more per packet and reconnects on its own at the wrong place.
"""

from __future__ import annotations

import select
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from pymysqlreplication import BinLogStreamReader

from cdc_producer.profile import Leader
from shared.errors import BinlogPurgedError, LeaderError, LeaderLinkError
from shared.events import Position
from shared.mysql import ER, MySQLError, connect, error_number, error_text, is_link_error
from shared.recovery import Stopping

#: seconds an answer may take while the dump is asked for
ANSWER_SECONDS = 30.0
#: seconds one wait for the socket lasts at most; those that the rest of a packet may still take after a request to stop
STEP_SECONDS, STOP_SECONDS = 0.5, 3.0
#: bytes a second of a binlog event that has begun to come; a slower one is a leader, or something between, that hangs
SLOWEST = 1 << 10
#: bytes asked of the socket at once: TLS never gives more than 16 KiB, and memory for more is dear to get each time
PIECE_BYTES = 1 << 16
#: bytes taken together, when so many have arrived
RECEIVE_BYTES = 1 << 18
#: a longer piece is received into its own buffer, so that joining stays linear
LARGE_BYTES = 1 << 20
#: bytes of the largest packet, which another one goes on; the three bytes of a length, and one that counts
MAX_PACKET, _LENGTH = 0xFFFFFF, struct.Struct("<I")

T = TypeVar("T", bytes, int)


class ReplicationConnection:
    """Reads one dump of the leader's binlog, from one position, until it breaks."""

    def __init__(
        self, leader: Leader, server_id: int, server_uuid: str, start: Position, stopping: Stopping = lambda: False
    ) -> None:
        """Connect, register as a replica under `server_id` and ask for the binlog from `start`.

        `stopping` ends the wait for a packet of which a part has come. Raises LeaderLinkError when trying again may
        help, LeaderError otherwise.
        """
        self.leader = leader
        self._silence = 3 * leader.heartbeat_seconds
        reader = BinLogStreamReader(
            {},
            server_id=server_id,
            slave_uuid=server_uuid,
            report_slave="cdc-producer",
            slave_heartbeat=leader.heartbeat_seconds,
            log_file=start.file,
            log_pos=start.offset,
            resume_stream=True,
            blocking=True,
            enable_logging=False,
            pymysql_wrapper=self._connect,
        )
        try:
            # The public way in, fetchone(), decodes; this is the part of it that registers and asks for the dump.
            reader._BinLogStreamReader__connect_to_stream()
        except (MySQLError, OSError) as error:
            raise self._named(error) from error
        self._connection: Any = reader._stream_connection
        self._socket = self._connection._sock
        self._socket.settimeout(STEP_SECONDS)
        self._stopping = stopping
        #: when to give up the packet in hand (seconds of time.monotonic), 0 as long as nobody asked to stop
        self._stop_by = 0.0
        #: when the leader gave its last sign of life (seconds of time.monotonic)
        self.heard = time.monotonic()
        self._buffer = b""
        #: since when the binlog event in hand comes (seconds of time.monotonic), and how many bytes have
        self._since, self._came = self.heard, 0

    def _connect(self, **_: Any) -> Any:
        """What mysql-replication calls to connect; the profile knows better than its settings."""
        connection = connect(self.leader, read_timeout=ANSWER_SECONDS)
        with connection.cursor() as cursor:
            # Asking always avoids the leader's refusal of files written with checksums while they are now off.
            cursor.execute("SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32'")
        return connection

    def _named(self, error: BaseException) -> LeaderError:
        text = f"leader {self.leader}: {error_text(error)}"
        return LeaderLinkError(text) if is_link_error(error) else LeaderError(text)

    def events(self) -> Iterator[bytes]:
        """The raw binlog events that have arrived, header first; waits for at least one packet.

        Raises LeaderLinkError when the link is down or silent for three heartbeats, BinlogPurgedError when the leader
        no longer has the binlog, LeaderError for any other refusal.
        """
        buffer = self._buffer
        position, self._stop_by = 0, 0.0
        self._since, self._came = time.monotonic(), len(buffer)
        parts: list[bytes] = []
        while not position or parts:
            buffer, position = self._receive(buffer[position:]), 0
            size = len(buffer)
            while (start := position + 4) <= size:
                length = _LENGTH.unpack_from(buffer, position)[0] & MAX_PACKET
                end = start + length
                if end > size:
                    break
                position = end
                if 0 < length < MAX_PACKET and not parts and not buffer[start]:
                    yield buffer[start + 1 : end]
                    continue
                parts.append(buffer[start:end])
                if length < MAX_PACKET:
                    packet, parts = b"".join(parts), []
                    if packet[:1] != b"\0":
                        raise self._refusal(packet)
                    yield packet[1:]
        self._buffer = buffer[position:]

    def _receive(self, rest: bytes) -> bytes:
        """`rest` and what comes next: at least the packet that `rest` begins, when that is large."""
        missing = int.from_bytes(rest[:3], "little") + 4 - len(rest) if len(rest) >= 3 else 0
        try:
            if missing > LARGE_BYTES:
                return rest + self._receive_exactly(missing)
            received = self._in_steps(lambda: self._socket.recv(PIECE_BYTES))
        except OSError as error:
            raise LeaderLinkError(f"leader {self.leader}: {error_text(error)}") from error
        if not received:
            raise LeaderLinkError(f"leader {self.leader} closed the connection")
        return b"".join((rest, received, *self._rest_received(RECEIVE_BYTES - len(received))))

    def _in_steps(self, receive: Callable[[], T]) -> T:
        """Receive something; wait for it in steps, so that silence and a request to stop are noticed."""
        while True:
            now = time.monotonic()
            if self._stopping():
                self._stop_by = self._stop_by or now + STOP_SECONDS
                if now > self._stop_by:
                    raise LeaderLinkError(
                        f"leader {self.leader}: asked to stop, and a binlog event has come only in part"
                    )
            try:
                received = receive()
            except TimeoutError:
                if now - self.heard > self._silence:
                    raise self._dead() from None
            else:
                self.heard = time.monotonic()
                self._came += received if isinstance(received, int) else len(received)
                self._require_pace(now - self._since)
                return received

    def _require_pace(self, seconds: float) -> None:
        """Raise LeaderLinkError when a binlog event that began to come so long ago comes too slowly."""
        if seconds > self._silence + self._came / SLOWEST:
            raise LeaderLinkError(
                f"leader {self.leader}: a binlog event comes too slowly, {self._came} bytes in {seconds:.0f} seconds:"
                " the leader, or what stands between, hangs"
            )

    def _rest_received(self, limit: int) -> list[bytes]:
        """What has arrived besides, about `limit` bytes at most."""
        pieces = []
        self._socket.settimeout(0)
        try:
            while limit > 0 and (piece := self._socket.recv(PIECE_BYTES)):
                pieces.append(piece)
                limit -= len(piece)
        except OSError:
            pass  # nothing more has arrived, or the link broke, which the next attempt to receive tells
        finally:
            self._socket.settimeout(STEP_SECONDS)
        return pieces

    def _receive_exactly(self, size: int) -> bytes:
        buffer = bytearray(size)
        view = memoryview(buffer)
        while view:
            count = self._in_steps(lambda view=view: self._socket.recv_into(view))  # type: ignore[misc]
            if not count:
                raise LeaderLinkError(f"leader {self.leader} closed the connection")
            view = view[count:]
        return bytes(buffer)

    def _refusal(self, packet: bytes) -> LeaderError:
        if packet[:1] in (b"", b"\xfe"):
            return LeaderLinkError(f"leader {self.leader} ended the binlog stream: it is shutting down")
        number = struct.unpack_from("<H", packet, 1)[0]
        text = packet[9:].decode(errors="replace")
        if number == ER.MASTER_FATAL_ERROR_READING_BINLOG:
            if "server_uuid" in text or "server_id" in text:
                return LeaderError(
                    f"leader {self.leader}: another replica took this producer's place: {text} ({number})"
                )
            return BinlogPurgedError(
                f"leader {self.leader} cannot give its binlog from where the topic ends, or where database.start says:"
                f" {text} ({number}); load the follower anew and start an empty topic where a binlog event begins"
            )
        error = MySQLError(number, text)
        return self._named(error) if error_number(error) else LeaderError(text)

    def more(self) -> bool:
        """Is true when something can be read without waiting."""
        pending = getattr(self._socket, "pending", None)
        if pending is not None and pending():
            return True
        return bool(select.select([self._socket], [], [], 0)[0])

    def wait(self, seconds: float) -> bool:
        """Wait until something can be read; False after `seconds` without. Raises LeaderLinkError on long silence."""
        if self.more() or select.select([self._socket], [], [], seconds)[0]:
            return True
        if time.monotonic() - self.heard > self._silence:
            raise self._dead()
        return False

    def _dead(self) -> LeaderLinkError:
        return LeaderLinkError(f"leader {self.leader}: no sign of life for {self._silence:g} seconds, the link is dead")

    def close(self) -> None:
        # not close(): that would wait to say goodbye on a link that may be dead
        self._connection._force_close()
