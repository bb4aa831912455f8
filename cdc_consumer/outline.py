"""Reads the outline of an event: all that stands around its row images, which are left unread.

The keys stand in the order in which shared/events.py writes them, and inside of a JSON string no quote stands without
a backslash before it: what is sought here cannot be part of a value.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from shared.events import Event, Position, Rows, Transaction
from shared.values import LATEST_TIME

_HEAD = re.compile(
    rb'\{"uri":"flv://[^/"\\]*/([^/"\\]+)/([^/"\\]+)","sequence":(\d{1,18}),'
    rb'"bn_file":\{"fileName":"([^"\\]{1,500}\.\d{1,10})","offset":(\d{1,18})\},"columns":\['
)
_OPERATION = b',"operation":{"'
_KIND = re.compile(rb'(Add|Update|Delete)":\{"rows":\[')
_TRANSACTION = b',"transaction":{'
_TAIL = re.compile(
    rb',"transaction":\{(?:"gtid":"([0-9a-fA-F-]{36}(?::[a-z_0-9]{1,32})?:\d{1,19})",)?"begin":(\d{1,18}),'
    rb'"event":(\d{1,18}),"time":(\d{1,18}),"clock":\[(\d{1,18}),(\d{1,18})\](?:,"end":(\d{1,18}))?\}\}'
)
#: what each row begins with
_ROW = {b"Add": b'{"cols":[', b"Update": b'{"before_cols":[', b"Delete": b'{"cols":['}


class Outline(NamedTuple):
    """Holds an event of row changes whose `Rows` name only the kind and the table."""

    event: Event
    #: rows that were changed
    rows: int


def read_outline(value: bytes) -> Outline | None:
    """Return the outline of an event; None for an event of another kind, and for what is not one."""
    head = _HEAD.match(value)
    tail = _TAIL.fullmatch(value, value.rfind(_TRANSACTION))
    # sought as bytes: an expression would take as long for it as for all the rest
    at = -1 if head is None else value.find(_OPERATION, head.end())
    operation = None if at < 0 else _KIND.match(value, at + len(_OPERATION))
    if head is None or tail is None or operation is None:
        return None
    gtid, begin, index, time, committed, number, end = tail.groups()
    if int(time) > LATEST_TIME:
        return None
    kind = operation[1]
    try:
        rows = Rows(_text(kind), _name(head[1]), _name(head[2]), (), [], (), (), True)
        position = Position(_text(head[4]), int(head[5]))
    except UnicodeDecodeError:
        return None
    clock = (int(committed), int(number))
    transaction = Transaction(None if gtid is None else gtid.decode(), int(begin), int(time), clock)
    event = Event(int(head[3]), position, rows, transaction, int(index), None if end is None else int(end))
    return Outline(event, value.count(_ROW[kind], operation.end()))


@lru_cache(maxsize=4096)
def _name(quoted: bytes) -> str:
    return unquote(_text(quoted), errors="strict")


@lru_cache(maxsize=4096)
def _text(data: bytes) -> str:
    return data.decode()
