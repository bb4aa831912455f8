"""The hand and the eyes of end_to_end.py, each in a process of its own.

    python probe.py write OUT HOST PORT ROWS RATE   insert ROWS rows, RATE a second, or with 0 as fast as it goes
    python probe.py watch OUT HOST PORT             look at the newest row of a server until SIGTERM
    python probe.py topic OUT PROFILE               look at the newest row in a topic until SIGTERM

OUT gets pairs of doubles: the id of a row, and the moment it was committed or first seen, by the clock that all
processes of a machine share. Ids rise by one.
"""

from __future__ import annotations

import array
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import bench  # noqa: F401  # makes the project importable
from workloads import DATABASE

from cdc_producer.profile import load_producer
from docker.local.mysql_servers import Server
from shared.decode import decode
from shared.events import Rows
from shared.topic import embedded, open_reader

#: seconds between two looks
LOOK_SECONDS = 0.0005

Moments = Iterator[tuple[float, float]]


class Stop(Exception):
    """SIGTERM."""


def write(host: str, port: str, rows: str, rate: str) -> Moments:
    """Commit one row after the other; the moment is when the leader has said so."""
    pause = 1 / float(rate) if float(rate) else 0.0
    with Server(host, int(port)).connect(DATABASE) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COALESCE(MAX(id) + 1, 0) FROM ticks")
        ((first,),) = cursor.fetchall()
        began = time.monotonic()
        for number in range(int(rows)):
            time.sleep(max(0.0, began + number * pause - time.monotonic()))
            cursor.execute("INSERT INTO ticks VALUES (%s, REPEAT('x', 50))", (first + number,))
            yield first + number, time.monotonic()


def watch(host: str, port: str) -> Moments:
    """Ask for the newest row; the moment is when the answer is here."""
    last = -1
    with Server(host, int(port)).connect(DATABASE) as connection, connection.cursor() as cursor:
        while True:
            cursor.execute("SELECT COALESCE(MAX(id), -1) FROM ticks")
            ((newest,),) = cursor.fetchall()
            if newest > last:
                last = newest
                yield newest, time.monotonic()
            time.sleep(LOOK_SECONDS)


def topic(profile: str) -> Moments:
    """Read as a consumer does, only that it looks more often."""
    embedded.LONGEST_PAUSE = LOOK_SECONDS
    reader = open_reader(load_producer(profile).topic)
    reader.seek(reader.next_offset())
    while True:
        records = reader.read(0.5)
        moment = time.monotonic()
        for record in records:
            operation = decode(record.value, "a record").operation
            if isinstance(operation, Rows):
                yield operation.rows[-1][0]["SignedInteger"], moment


def main(what: str, out: str, *arguments: str) -> None:
    def stop(*_: object) -> None:
        raise Stop

    signal.signal(signal.SIGTERM, stop)
    pairs = array.array("d")
    try:
        probes: dict[str, Callable[..., Moments]] = {"write": write, "watch": watch, "topic": topic}
        for pair in probes[what](*arguments):
            pairs.extend(pair)
    except Stop:
        pass
    Path(out).write_bytes(pairs.tobytes())


if __name__ == "__main__":
    main(*sys.argv[1:])
