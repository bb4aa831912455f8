"""Defines which topic an event goes to, and what such a topic holds beside it: what follows what, and where it is.

A producer with routes writes several topics, and one sequence spans them. The default topic is the journal: when all
that was appended at once is durable in every other topic, what belongs to the default topic is appended to it, and a
mark behind it. Four keys and two kinds of record come of that, in JSON as everything:

    route   {"of":"events","follows":41}    of each operation, before `transaction`: the journal's name, and the
                                            sequence of the operation before it in this very topic, -1 for none
    mark    {"after":9,"own":7,"beyond":0,"open":[],"last":"a","topics":{"a":12},"roster":[..]}
                                            of a Heartbeat in the journal: all operations behind sequence `after`, up to
                                            the record's own, are durable. `topics` has the sequence of the last record
                                            that each other topic got of them, `own` that of the journal's last one;
                                            `beyond` is how many later operations the journal holds before the mark;
                                            `open` those whose part of a transaction has no end yet, `last` a topic that
                                            holds the last operation; `roster`, now and then, all topics but the journal
    closes  120                             of a Heartbeat in a topic whose part of a transaction has ended, the last
                                            operation of all being in another: the offset after the transaction
    of      "events"                        the journal's name, on all of these Heartbeats and the journal's others

A reader that wants operations only skips all of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from shared.errors import TopicError
from shared.filters import TablePatterns
from shared.profile_table import topic_name
from shared.topic.record import ALTERED_ADVICE, Record, Sealed, enclose, seal

_CHARACTERS = rb'[^"\\]*(?:\\.[^"\\]*)*'
#: the first keys of a record: uri and file as they stand in the JSON text, the number in the name of the file
HEAD = re.compile(
    rb'\{"uri":"(' + _CHARACTERS + rb')","sequence":(-?\d{1,18}),"bn_file":\{"fileName":"(' + _CHARACTERS
    + rb'\.(\d{1,18}))","offset":(\d{1,18})\}(,"operation":"Heartbeat")?'
)  # fmt: skip
_TRANSACTION = b',"transaction":{'
_ROUTE = re.compile(rb',"route":\{"of":"([a-z0-9-]+)","follows":(-?\d{1,18})\}\Z')
_QUERY = re.compile(rb',"bn_file":\{"fileName":"' + _CHARACTERS + rb'","offset":\d+\},"operation":\{"Query":')
_OF = re.compile(rb',"of":"([a-z0-9-]+)"\}\Z')
_END = re.compile(rb',"end":(\d{1,18})\}\}\Z')
#: the last bytes before `transaction` that hold a route, and of a record that hold `end`
_ROUTE_BYTES, _END_BYTES = 300, 40


class Head(NamedTuple):
    """Holds what routing must know of a record, read from its first and last bytes."""

    #: as it stands in the JSON text
    uri: bytes
    sequence: int
    #: as it stands in the JSON text
    file: bytes
    offset: int
    heartbeat: bool
    #: offset after the transaction, on its last operation only
    end: int | None

    @property
    def place(self) -> tuple[int, int]:
        """Return its position in the order of positions: the number in the file's name, and the offset."""
        return int(self.file.rpartition(b".")[2]), self.offset


class Route(NamedTuple):
    """Says of an operation which producer's topics it belongs to, and what stands before it in its topic."""

    #: name of the journal
    of: str
    follows: int


class JournalMark(NamedTuple):
    """Says what is durable, and where."""

    sequence: int
    after: int
    own: int
    beyond: int
    topics: Mapping[str, int]
    open: tuple[str, ...]
    last: str
    roster: tuple[str, ...] | None


def head_of(value: bytes, where: str) -> Head:
    """Read a record's head; `where` names it in errors. Raises TopicError."""
    found = HEAD.match(value)
    if found is None:
        raise TopicError(f"{where} is not an event: {value[:60]!r}...")
    uri, sequence, file, _, offset, heartbeat = found.groups()
    return Head(uri, int(sequence), file, int(offset), heartbeat is not None, None if heartbeat else end_of(value))


def end_of(value: bytes) -> int | None:
    """Return the offset after the transaction that a record ends; None of another one."""
    found = _END.search(value, max(0, len(value) - _END_BYTES))
    return None if found is None else int(found[1])


def routed(record: Sealed, of: str, follows: int) -> Sealed:
    """Return an operation's record with its route."""
    at = record.value.rfind(_TRANSACTION)
    route = b',"route":{"of":"%s","follows":%d}' % (of.encode(), follows)
    value = b"".join((record.value[:at], route, record.value[at:]))
    return enclose(value, record.key[4], record.key[5:])


def route_of(value: bytes) -> Route | None:
    """Return the route of an operation's record; None when it has none."""
    at = value.rfind(_TRANSACTION)
    found = _ROUTE.search(value, max(0, at - _ROUTE_BYTES), max(0, at))
    return None if found is None else Route(found[1].decode(), int(found[2]))


def closed(record: Record, end: int) -> Record:
    """Return an operation's record as the last one of its transaction, which ends at offset `end`."""
    return record._replace(value=b'%s,"end":%d}}' % (record.value[:-2], end))


def marked_heartbeat(record: Sealed, of: str) -> Sealed:
    """Return a heartbeat's record as one of a journal, whose name is `of`."""
    return enclose(b'%s,"of":"%s"}' % (record.value[:-1], of.encode()), record.key[4], record.key[5:])


def journal_of(record: Record) -> str | None:
    """Return the name of the journal of the producer that has written this record; None when it has no routes."""
    value = record.value
    found = _OF.search(value, max(0, len(value) - _ROUTE_BYTES))
    route = route_of(value) if found is None else Route(found[1].decode(), 0)
    return None if route is None else route.of


def require_journal(name: str, last: Record | None) -> bool:
    """Tell whether a producer with routes has written the last record of topic `name`, which is to be its journal.

    Raises TopicError when the topic is another one of that producer's.
    """
    journal = None if last is None else journal_of(last)
    if journal not in (None, name):
        raise TopicError(
            f'topic {name} is one of several topics of a producer: under [topic], a reader of it has name = "{journal}"'
            f' and names = ["{name}"], and another producer another name'
        )
    return journal is not None


def plain_heartbeat(record: Record) -> Record:
    """Return the record of a mark as a heartbeat that tells only the leader's position."""
    at = record.value.index(b',"mark":')
    return record._replace(value=record.value[:at] + b',"leader":""}')


def has_tables(record: Record) -> bool:
    """Tell whether an operation is of certain tables: a row's, or those of a Query; else it is of all topics."""
    if not _QUERY.search(record.value):
        return True
    try:
        return json.loads(record.value).get("tables") is not None
    except (ValueError, RecursionError):
        return False  # whoever decodes it says what is wrong


def mark_record(head: Head, of: str, mark: JournalMark) -> Sealed:
    """Make the record of a mark in the journal `of`, behind the record of this head."""
    told = mark._asdict()
    del told["sequence"]
    if mark.roster is None:
        del told["roster"]
    return _heartbeat(head._replace(sequence=mark.sequence), "mark", told, of=of)


def closing_record(head: Head, of: str, follows: int) -> Sealed:
    """Make the record that ends a topic's part of a transaction, whose last operation of all has this head."""
    return _heartbeat(head, "closes", head.end, follows=follows, of=of)


def _heartbeat(head: Head, key: str, told: Any, **more: Any) -> Sealed:
    offset = head.offset if head.end is None else head.end
    tail = json.dumps({key: told, **more}, separators=(",", ":")).encode()
    start = b'{"uri":"%s","sequence":%d,"bn_file":{"fileName":"%s","offset":%d},"operation":"Heartbeat",'
    return seal(b"".join((start % (head.uri, head.sequence, head.file, offset), tail[1:])))


def mark_of(record: Record, where: str) -> JournalMark | None:
    """Return the mark that a record holds; None when it is another record. Raises TopicError."""
    found = _told(record, where, b'"Heartbeat","mark":')
    if found is None:
        return None
    try:
        told, sequence = found["mark"], found["sequence"]
        topics = {_name(name): _number(last) for name, last in told["topics"].items()}
        roster = tuple(map(_name, told["roster"])) if "roster" in told else None
        after, own, beyond = (_number(told[key]) for key in ("after", "own", "beyond"))
        unclosed = tuple(map(_name, told["open"]))
        if _number(sequence) < after:
            raise ValueError(f"it goes back from sequence {after} to {sequence}")
        mark = JournalMark(sequence, after, own, beyond, topics, unclosed, _name(told["last"]), roster)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TopicError(f"{where} is no mark of a producer ({error}); {ALTERED_ADVICE}") from None
    return mark


def closing_of(record: Record, where: str) -> tuple[Route, int] | None:
    """Return the route and the end that a record closes its topic's part with; None of another record."""
    found = _told(record, where, b'"Heartbeat","closes":')
    if found is None:
        return None
    try:
        return Route(_name(found["of"]), _number(found["follows"])), _number(found["closes"])
    except (KeyError, TypeError, ValueError) as error:
        raise TopicError(f"{where} closes no transaction ({error}); {ALTERED_ADVICE}") from None


def _told(record: Record, where: str, begins: bytes) -> dict[str, Any] | None:
    head = HEAD.match(record.value)
    if head is None or head[6] is None or not record.value.startswith(begins, head.end() - len(b'"Heartbeat"')):
        return None
    try:
        found = json.loads(record.value)
    except (ValueError, RecursionError) as error:
        raise TopicError(f"{where} is not an event ({error}); {ALTERED_ADVICE}") from None
    return dict(found)


def _name(value: Any) -> str:
    if type(value) is not str or re.fullmatch(r"[a-z0-9-]{1,200}", value) is None:
        raise ValueError("a topic's name was expected")
    return value


def _number(value: Any) -> int:
    if type(value) is not int or value < -1:
        raise ValueError("a number was expected")
    return value


class Routes:
    """Finds the topic of a table: that of the first pattern which is the table's, else the default one."""

    def __init__(self, default: str, routes: Mapping[str, str]) -> None:
        """`routes` maps patterns of `database.table` to templates."""
        self.default = default
        self._routes = [(TablePatterns([pattern]), template) for pattern, template in routes.items()]

    def topic(self, database: str, table: str) -> str:
        """Return the name of the table's topic."""
        for pattern, template in self._routes:
            if pattern.match(database, table):
                return topic_name(template, database, table)
        return self.default

    def topics(self, tables: Iterable[tuple[str, str]]) -> list[str]:
        """Return the topics of some tables, each once; the default one for no table."""
        return list(dict.fromkeys(self.topic(*table) for table in tables)) or [self.default]
