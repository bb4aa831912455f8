"""Runs the command cdc-topic, which prints the records of a topic, one JSON line each."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import BinaryIO

from shared import program
from shared.errors import OffsetGoneError
from shared.profile import load_topic
from shared.topic import Record, TopicReader, open_one_reader, open_reader

#: a follower waits this long for records before it waits again (seconds)
WAIT_SECONDS = 1.0

DESCRIPTION = """\
Print the records of the topic that the profile of any program names, one JSON line each, oldest first.

A line holds one operation of the leader: `uri` says which database and table, `sequence` counts the operations,
`bn_file` says where in the leader's binlog the operation starts, `operation` is Query, Add, Update or Delete with its
values. What follows `operation` belongs to the replication: transaction, key, types, session. Heartbeats, which only
say how far the leader's binlog was read, are left out. Reading changes nothing; it may be done while all is running.
"""

EXAMPLES = """\
examples:
  cdc-topic producer_profile.toml                    everything, then stop
  cdc-topic producer_profile.toml --tail 5 --follow  the last five records, then whatever comes, until Ctrl-C
  cdc-topic producer_profile.toml --cut              lines that end after `operation`, as the original demo printed
  cdc-topic consumer_profile.toml --from 1200 | head -1    the record a message calls "offset 1200"

exit status: 0 done, 1 the topic cannot be read, 2 usage or a bad profile, 3 a bug, 130 Ctrl-C or SIGTERM
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    options = _options(arguments)

    def action() -> None:
        program.interrupt_on_signals()
        settings = load_topic(options.profile)
        with closing(open_one_reader(settings, options.topic) if options.topic else open_reader(settings)) as reader:
            try:
                _print(reader, options, sys.stdout.buffer)
            except BrokenPipeError:
                # who reads this has seen enough; Python would complain once more when it flushes at exit
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    return program.run("cdc-topic", action)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    profile = "the TOML file of a cdc-producer, cdc-consumer, cdc-copy or cdc-parity"
    parser = program.parser("cdc-topic", DESCRIPTION, EXAMPLES, profile)
    start = parser.add_mutually_exclusive_group()
    start.add_argument("-B", "--beginning", action="store_true", help="start at the oldest record (the default)")
    start.add_argument("--from", dest="start", type=_count, metavar="N", help="start at offset N")
    start.add_argument("--tail", type=_count, metavar="N", help="start with the last N that are printed")
    parser.add_argument("--follow", action="store_true", help="at the end wait for more instead of stopping")
    parser.add_argument("--all", action="store_true", help="print heartbeats too")
    parser.add_argument("--topic", metavar="NAME", help="print this one of a producer's topics, as it is")
    parser.add_argument("--cut", action="store_true", help="end each line after `operation`")
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of records")
    return int(text)


def _print(reader: TopicReader, options: argparse.Namespace, out: BinaryIO) -> None:
    end = reader.next_offset()
    if options.start is not None:
        start = options.start
    else:
        start = reader.first_offset()
        if options.tail is not None:
            start = max(start, end - options.tail) if options.all else _tail_start(reader, options.tail, start, end)
    if start > end:
        raise OffsetGoneError(f"the topic ends at offset {end}, and offset {start} is asked for")
    if start == end and not options.follow:
        return
    reader.seek(start)
    for batch in _batches(reader, start, None if options.follow else end):
        for record in batch:
            if not options.all and _is_heartbeat(record.value):
                continue
            out.write(cut(record.value) if options.cut else record.value)
            out.write(b"\n")
        out.flush()


def _tail_start(reader: TopicReader, count: int, first: int, end: int) -> int:
    """Return where the last `count` records before `end` begin that are no heartbeats, looking ever further back.

    It is `first`, the topic's oldest, when there are fewer.
    """
    found: deque[int] = deque([end], maxlen=max(count, 1))
    reach = count
    while count and first < end:
        start = max(first, end - reach)
        found.clear()
        reader.seek(start)
        for batch in _batches(reader, start, end):
            found.extend(record.offset for record in batch if not _is_heartbeat(record.value))
        if len(found) == count:
            break
        if start == first:
            return first
        reach *= 4
    return found[0]


def _batches(reader: TopicReader, offset: int, end: int | None) -> Iterator[list[Record]]:
    """Records from `offset` up to `end`, or without end."""
    while end is None or offset < end:
        records = reader.read(WAIT_SECONDS)
        if records:
            yield [record for record in records if end is None or record.offset < end]
            offset = records[-1].offset + 1


def _is_heartbeat(value: bytes) -> bool:
    # no string in a record can hold these bytes, its quotes would be escaped; but a JSON column could hold such a key
    return b'"operation":"Heartbeat"' in value and cut(value).endswith(b'"operation":"Heartbeat"}')


def cut(value: bytes) -> bytes:
    """Return the record up to the end of its `operation`, closed with a brace.

    A value that has none comes back whole.
    """
    decode = json.JSONDecoder().raw_decode
    try:
        text = value.decode()
        position = 0
        while text[position] in "{,":
            key, position = decode(text, position + 1)
            _, position = decode(text, position + 1)  # behind the colon
            if key == "operation":
                return text[:position].encode() + b"}"
    except (ValueError, IndexError):
        pass
    return value
