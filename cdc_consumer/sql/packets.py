"""Sends packets of statements to a MySQL server, and reads the answers to them later.

PyMySQL waits for each answer. What is here is its own halves that send and that read, which have no public names, and a
shorter way to read what has no rows and no counts that anybody asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pymysql
from pymysql.constants import COMMAND, CR

#: bytes of a packet of `load_rows` at most; larger ones would have to be cut
FILE_PIECE = 1 << 20


def send(connection: Any, packet: bytes) -> int:
    """Send statements without waiting for their results, which one of the others here then reads, packet by packet.

    Return the number of the first piece of the answer: it goes on from the pieces of the packet, of which there are
    more than one from 16 MB on. This is the half of PyMySQL's `query` that sends; it has no public name.
    """
    connection._execute_command(COMMAND.COM_QUERY, packet)
    piece: int = connection._next_seq_id
    return piece


def results(connection: Any, statements: int, piece: int) -> Iterator[tuple[int, int]]:
    """Yield the rows matched and the warnings of each of the statements that the next packet held.

    Answers come in the order of the packets; `piece` is what `send` returned for this one, which PyMySQL checks.
    """
    connection._next_seq_id = piece
    for _ in range(statements):
        yield connection.next_result(), connection._result.warning_count


def accepted(connection: Any) -> Iterator[tuple[int, int]]:
    """Yield a pair for each of the next statements that was not refused, without the counts that `results` reads.

    The statements give no rows. Raises the server's refusal, or a link error.
    """
    read = connection._rfile.read
    while True:
        # three bytes of length, one that counts; then 0 of an OK, or 255 of a refusal
        answer = read(int.from_bytes(read(4)[:3], "little"))
        if not answer:
            raise _gone()
        if answer[0]:
            pymysql.err.raise_mysql_exception(answer)
        yield 0, 0


def leave(connection: Any) -> None:
    """End a connection at once, without a word to the server, which undoes what is open: it may be dead."""
    connection._force_close()


def _gone() -> Exception:
    return pymysql.err.OperationalError(CR.CR_SERVER_LOST, "Lost connection to MySQL server during query")


class Answers:
    """Counts a server's answers to statements that give no rows, as they arrive; nobody else reads meanwhile."""

    def __init__(self, connection: Any) -> None:
        self._link: Any = connection._sock
        self._rest = b""

    def fileno(self) -> int:
        """Return what a poll waits for; see `waiting`."""
        return int(self._link.fileno())

    @property
    def waiting(self) -> bool:
        """Tell whether something has arrived that no poll tells of, as a TLS layer may hold."""
        return hasattr(self._link, "pending") and self._link.pending() > 0

    def read(self) -> int:
        """Return how many statements more were answered, once a poll says that something has arrived.

        Raises the server's refusal, behind which the answers are of no use, or a link error.
        """
        received = self._link.recv(1 << 16)
        if not received:
            raise _gone()
        data = self._rest + received
        answered = start = 0
        # three bytes of length, one that counts; then 0 of an OK, or 255 of a refusal
        while len(data) >= start + 4 and len(data) >= (
            end := start + 4 + int.from_bytes(data[start : start + 3], "little")
        ):
            if data[start + 4 : start + 5] != b"\0":
                pymysql.err.raise_mysql_exception(data[start + 4 : end])
            answered, start = answered + 1, end
        self._rest = data[start:]
        return answered


def allow_several(connection: Any, several: bool) -> None:
    """Let the server execute several statements of one packet, or only one, from here on."""
    connection._execute_command(COMMAND.COM_SET_OPTION, (0 if several else 1).to_bytes(2, "little"))
    connection._read_packet()


def load_rows(connection: Any, sql: str, text: Iterable[bytes]) -> tuple[int, str]:
    """Run LOAD DATA LOCAL with this text for its file; return the number of warnings, and the server's own words.

    No file is read, whatever the server asks for. What `text` raises leaves a connection that must be closed.
    """
    connection._execute_command(COMMAND.COM_QUERY, sql.encode())
    packet = connection._read_packet()
    if packet.is_load_local_packet():
        for piece in text:
            for start in range(0, len(piece), FILE_PIECE):
                connection.write_packet(piece[start : start + FILE_PIECE])
        connection.write_packet(b"")
        packet = connection._read_packet()
    answer = pymysql.connections.OKPacketWrapper(packet)  # type: ignore[attr-defined]  # not in the stubs
    return answer.warning_count, bytes(answer.message).decode()
