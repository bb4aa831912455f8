"""Several topics of one producer: read as one, or some of them; and a producer that goes on writing them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import closing
from random import Random

from kit.routed_history import EVERYWHERE, TABLES, Made, history, open_writer, publish
from kit.topics_in_memory import MemoryTopics

from cdc_consumer.transactions import Transactions
from fuzz.blocks import pack, unpack
from fuzz.targets import WrongResult
from shared.decode import decode
from shared.topic import Record
from shared.topic.marks import head_of, mark_of
from shared.topic.merged import MergedReader
from shared.topic.record import seal

JOURNAL = "main"
NAMES = tuple(TABLES.values())
#: bytes before the blocks: which topics are read, and where reading begins
READING, START, HEAD = range(3)
#: bits of READING: read all of them, and go on writing before that; the others are names
ALL, WRITE = 1 << 7, 1 << 6
#: bits of a block's kind, beside the number of its topic: the topic has lost it, or has it twice
LOST, TWICE = 1 << 7, 1 << 6
#: transactions, by the tables of their operations
SHAPE = (
    (("a",), ("other",)), ((EVERYWHERE,),), (("b",), ("a",), ("c",)), (("other",),), (("c", "other", "b2"),), ((),),
    (("a",),), (("b2",), ("b2",)), (("c",), ("other",), ("b",), ("a",)),
)  # fmt: skip


def merged(data: bytes) -> None:
    """HEAD bytes, then blocks of (number of a topic, record's JSON); each record gets a right checksum."""
    if len(data) < HEAD:
        return
    topics = MemoryTopics()
    topics.read_most = 3
    topics.records[JOURNAL] = []
    lost: list[tuple[str, bytes]] = []
    for kind, body in unpack(data[HEAD:]):
        name = NAMES[kind % 8 % len(NAMES)]
        times = 0 if kind & LOST else 2 if kind & TWICE else 1
        topics.records.setdefault(name, []).extend([seal(body, [b"raw"])] * times)
        if times == 0 and (name, body) in _written():
            lost.append((name, body))
    if data[READING] & WRITE:
        _go_on(topics)
    names = None if data[READING] & ALL else [name for bit, name in enumerate(NAMES) if data[READING] >> bit & 1]
    with closing(MergedReader(JOURNAL, names, topics.reader, 2)) as reader:
        first, end = reader.first_offset(), reader.next_offset()
        start = max(first, data[START] % 16)
        reader.seek(start)
        found = list(_read(reader))
    accepted = Transactions(start - 1, reader.gaps)
    taken = [record for record in found if accepted.accept(decode(record.value, "here"), record.offset) is not None]
    _judge(topics, names, range(start, end), taken)
    for name, body in lost:
        head = head_of(body, name)
        if not head.heartbeat and start <= head.sequence < end and (names is None or name in names):
            raise WrongResult("what a topic has lost is not missed")


def _go_on(topics: MemoryTopics) -> None:
    """Let the producer begin again on what is there, and write the rest."""
    with closing(open_writer(topics)) as writer:
        last = writer.last()
        start = 0 if last is None else head_of(last.value, "the last record").sequence + 1
        writer.append([one.record for one in _made()[max(start, 0) :]])


def _read(reader: MergedReader) -> Iterator[Record]:
    while found := reader.read(0.0):
        yield from found


def _judge(topics: MemoryTopics, names: Sequence[str] | None, wanted: range, taken: Sequence[Record]) -> None:
    """What is applied was written; with all topics nothing of what is `wanted` is missing."""
    read = topics.records if names is None else (JOURNAL, *names)
    held: dict[int, list[bytes]] = {}
    for name in read:
        for record in topics.held(name):
            held.setdefault(head_of(record.value, name).sequence, []).append(record.value)
    sequences = []
    for record in taken:
        head = head_of(record.value, "what is read")
        if record.offset != head.sequence:
            raise WrongResult("an offset that is not its own")
        if not head.heartbeat:
            sequences.append(head.sequence)
            # its end may have been told by another record
            if not any(record.value.startswith(value[:-2]) for value in held.get(head.sequence, ())):
                raise WrongResult("what nobody wrote")
    if names is None and sequences != list(wanted):
        raise WrongResult(f"{sequences} is not {wanted}")
    for name in names or ():
        there = set(wanted).intersection(_promised(topics, name))
        if not there.issubset(sequences):
            raise WrongResult(f"not all of {there} is in {sequences}")


def _promised(topics: MemoryTopics, name: str) -> Iterator[int]:
    """Sequences of the operations that a topic holds in their order, up to the last one that the marks tell of."""
    told = last = met = -1
    for record in topics.held(JOURNAL):
        mark = mark_of(record, JOURNAL)
        if mark is not None and mark.sequence > told:
            told, last = mark.sequence, max(last, mark.own if name == JOURNAL else mark.topics.get(name, -1))
    for record in topics.held(name):
        head = head_of(record.value, name)
        if not head.heartbeat and met < head.sequence <= last:
            met = head.sequence
            yield met


@functools.cache
def _made() -> list[Made]:
    """Return what the producer has to write in all."""
    return history(SHAPE)


@functools.cache
def _written() -> frozenset[tuple[str, bytes]]:
    """Every record of the seeds, with the name of its topic."""
    return frozenset((NAMES[kind], body) for seed in seeds_of_merged() for kind, body in unpack(seed[HEAD:]))


def seeds_of_merged() -> list[bytes]:
    """Topics as a producer leaves them, read in every way."""
    seeds = []
    for number in range(15):
        topics = MemoryTopics()
        publish(topics, history(SHAPE[: 2 + number % 8]), Random(number), beats=number % 2 == 0)
        blocks = pack(
            (NAMES.index(name), record.value) for name, records in topics.records.items() for record in records
        )
        some = 1 + number * 5 % 31
        seeds += [bytes(head) + blocks for head in ((ALL, number % 3), (ALL | WRITE, 0), (some, 0))]
    return seeds
