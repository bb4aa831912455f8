"""Reading a record: whatever its bytes are, an exact event or the named error, and nothing untyped behind it."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_consumer.follower.row_statements import RowWriter
from cdc_consumer.follower.tables import FollowerColumn, FollowerTable
from cdc_consumer.sql.positions import PositionTables, mark_of
from cdc_consumer.sql.session import of_query
from cdc_consumer.transactions import Transactions
from shared.decode import decode
from shared.errors import CdcError, EventError
from shared.events import Heartbeat, Query, Rows
from shared.statements.tokens import Tokens

#: what tells of the code and not of the record
PYTHONS_WORDS = re.compile("KeyError|TypeError|ValueError|object is not|not subscriptable|unpack")
#: one of each variant
VALUES: list[Any] = [
    {"SignedInteger": -1}, {"UnsignedInteger": 1 << 63}, {"Float": 0.5}, {"Double": 1e300}, {"Decimal": "-1.10"},
    {"String": "o'\\n"}, {"EncodedString": {"charset": "latin1", "base64": "gQ=="}}, {"Blob": "AP8="}, {"Enum": 2},
    {"Set": 5}, {"Bit": 513}, {"Year": 1999}, {"Date": {"year": 1999, "month": 3, "day": 30}}, "Null",
    {"Time": {"hours": 838, "minutes": 59, "seconds": 59, "subseconds": 0, "negative": True}},
    {"DateTime": {"year": 1, "month": 2, "day": 3, "hour": 4, "minute": 5, "second": 6, "subsecond": 7}},
    {"Timestamp": {"unix_time": 1700000000, "subsecond": 0}}, {"Json": '{"a": "\'"}'},
    {"JsonTyped": {"text": "[1.10]", "typed": [["$[0]", "decimal(3,2)", "1.10"]]}}, {"Geometry": "AAAAAAEB"},
    {"Vector": "AACAPw=="},
]  # fmt: skip
COLUMNS = [f"c{number}" for number in range(len(VALUES))]
TABLE = FollowerTable(
    "d", "t", {name: FollowerColumn(name, "int", False, False, False) for name in COLUMNS}, ("c0",), False
)
TRANSACTION = {
    "gtid": "6b377eb2-e57a-11f1-9bfd-02fc00000001:5", "begin": 4, "event": 2, "time": 5, "clock": [1, 2], "end": 9
}  # fmt: skip


def record(operation: Any, **more: Any) -> dict[str, Any]:
    place = {"fileName": "binlog.000001", "offset": 8}
    head = {"uri": "flv://m/d/t", "sequence": 0, "bn_file": place, "columns": COLUMNS, "operation": operation}
    return {**head, "types": ["int"] * len(COLUMNS), "key": ["c0"], **more, "transaction": TRANSACTION}


RECORDS = [
    record({"Add": {"rows": [{"cols": VALUES}]}}),
    record({"Update": {"rows": [{"before_cols": VALUES, "after_cols": VALUES}]}}, foreign_key_checks=0),
    record({"Delete": {"rows": [{"cols": VALUES}]}}),
    record({"Query": "CREATE TABLE t (a int)"}, database="d", writes=["d"], session={"sql_mode": 4, "time_zone": "x"}),
    record("Heartbeat", leader="6b377eb2-e57a-11f1-9bfd-02fc00000001"),
]

#: what may stand in the place of anything
STRANGE = st.sampled_from(
    [None, True, False, 0, -1, 1.5, 1 << 63, -(1 << 63), 10**17, 1e300, "", "'", "\\", "0", "Null", "x'; DROP TABLE v; --",
     [], ["'); drop table v.x; --"], {}, {"'": 1}, {"String": "x"}, [[[[]]]], "\ufffd", "a" * 5000, "\x00"]
)  # fmt: skip


def places(value: Any) -> list[tuple[Any, Any]]:
    """Each container of a document with each of its keys."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, part in items for place in [(value, key), *places(part)]]


def apply(value: bytes) -> list[str]:
    """SQL of a record, by every way the replay has."""
    event = decode(value, "topic t offset 7", check_values=False)
    beats = isinstance(event.operation, Heartbeat)
    Transactions(event.sequence if beats else event.sequence - 1).accept(event, 7)
    sql = [PositionTables("cdc", "t").write(mark_of(event, 7))]
    if isinstance(event.operation, Rows):
        writer = RowWriter(1 << 20)
        for key in (("c0",), ()):
            table = FollowerTable("d", "t", TABLE.columns, key, False)
            sql += [one.sql for one in writer.write(event.operation, table, 0, 7)]
        sql += [one.sql for one in writer.finish()]
    elif isinstance(event.operation, Query):
        sql += of_query(event.operation.session).values()
    return sql


def statements(sql: str) -> int:
    """How many statements a server would see."""
    tokens, count = Tokens(sql.encode("utf-8", "surrogateescape"), 0, "utf8mb4"), 1
    while not tokens.at_end:
        count += tokens.word == ";"
        tokens.advance()
    return count


@pytest.mark.parametrize("value", RECORDS, ids=["add", "update", "delete", "query", "heartbeat"])
def test_what_is_right_is_read(value: Any) -> None:
    assert apply(json.dumps(value).encode())
    decode(json.dumps(value).encode(), "here")


@given(st.sampled_from(RECORDS), st.data())
def test_whatever_stands_anywhere_is_exact_or_named(original: Any, data: st.DataObject) -> None:
    value = json.loads(json.dumps(original))
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(places(value)))
        if data.draw(st.booleans()) or isinstance(container, list):
            # a copy: a later change must not reach what the next example draws
            container[key] = deepcopy(data.draw(STRANGE))
        else:
            del container[key]
    changed = json.dumps(value).encode()
    try:
        sql = apply(changed)
    except (CdcError, ValueError) as error:
        assert "is not an event" not in str(error) or not PYTHONS_WORDS.search(str(error))
        # of_query raises ValueError, which queries.py names
        assert isinstance(error, CdcError) or "Query" in original["operation"]
        return
    assert [statements(one) for one in sql] == [1] * len(sql)
    assert not any("drop table v.x" in one.split("'")[0] for one in sql)


@given(st.sampled_from(RECORDS), st.data())
def test_damaged_bytes_are_exact_or_named(original: Any, data: st.DataObject) -> None:
    value = bytearray(json.dumps(original).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode(bytes(value[: data.draw(st.integers(0, len(value)))]), "here")
    except EventError as error:
        assert len(str(error)) < 500
        assert not PYTHONS_WORDS.search(str(error))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sequence": "0"}, "sequence must be a whole number from 0 to 9223372036854775807, not '0'"),
        ({"sequence": 0.0}, "sequence must be a whole number"),
        ({"sequence": True}, "sequence must be a whole number"),
        ({"sequence": -2}, "sequence must be a whole number"),
        ({"uri": 7}, "uri must be flv://, resource, database and table, not 7"),
        ({"bn_file": None}, "bn_file must be an object, not None"),
        ({"bn_file": {"offset": 4}}, r"the key bn_file\.fileName is missing"),
        ({"transaction": None}, "transaction must be an object, not None"),
        ({"transaction": {**TRANSACTION, "gtid": ["x"]}}, r"transaction\.gtid must be a text, not \['x'\]"),
        ({"transaction": {**TRANSACTION, "gtid": "x"}}, "no GTID"),
        ({"transaction": {**TRANSACTION, "time": "now"}}, r"transaction\.time must be a whole number"),
        ({"transaction": {**TRANSACTION, "time": 10**18}}, "no time of a commit"),
        ({"transaction": {**TRANSACTION, "clock": [1]}}, "clock must be a list of two whole numbers"),
        ({"columns": [*COLUMNS[1:], ["c"]]}, "columns must be a list of names"),
        ({"columns": COLUMNS[1:]}, "types of"),
        ({"key": ["other"]}, "of the key is no column"),
        ({"bn_file": {"fileName": "binlog", "offset": 4}}, "no binlog file"),
        ({"foreign_key_checks": True}, "foreign_key_checks cannot be True"),
        ({"operation": {}}, "operation must be an object with one key"),
        ({"operation": {"Upsert": {}}}, "operation must be Query, Add, Update, Delete or Heartbeat"),
        ({"operation": {"Add": []}}, r"operation\.Add must be an object, not \[\]"),
        ({"operation": {"Add": {"rows": [{"cols": VALUES}, 7]}}}, r"row 1 an object with a list as cols"),
        ({"operation": {"Query": "x"}}, "the key database is missing"),
    ],
)
def test_what_is_wrong_is_said(change: Any, words: str) -> None:
    with pytest.raises(EventError, match=words):
        decode(json.dumps({**RECORDS[0], **change}).encode(), "here")


def test_values_are_checked_where_nobody_else_does() -> None:
    wrong = [{"String": ["x"]}, *VALUES[1:]]
    value = json.dumps(record({"Add": {"rows": [{"cols": wrong}]}})).encode()
    with pytest.raises(EventError, match="is no value"):
        decode(value, "here")


def test_a_deep_document_is_refused() -> None:
    with pytest.raises(EventError):
        decode(b'{"uri":' * 100_000 + b"1" + b"}" * 100_000, "here")
