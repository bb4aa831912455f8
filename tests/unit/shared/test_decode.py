"""Reading a record: whatever its bytes are, an exact event or the named error, and nothing untyped behind it."""

from __future__ import annotations

import json
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


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sequence": "0"}, "a number was expected"),
        ({"sequence": 0.0}, "a number was expected"),
        ({"sequence": True}, "a number was expected"),
        ({"sequence": -2}, "a number was expected"),
        ({"transaction": {**TRANSACTION, "gtid": ["x"]}}, "expected string"),
        ({"transaction": {**TRANSACTION, "gtid": "x"}}, "no GTID"),
        ({"transaction": {**TRANSACTION, "time": "now"}}, "a number was expected"),
        ({"transaction": {**TRANSACTION, "time": 10**18}}, "no time of a commit"),
        ({"columns": [*COLUMNS[1:], ["c"]]}, "expected str instance, list found"),
        ({"columns": COLUMNS[1:]}, "types of"),
        ({"key": ["other"]}, "of the key is no column"),
        ({"bn_file": {"fileName": "binlog", "offset": 4}}, "no binlog file"),
        ({"foreign_key_checks": True}, "foreign_key_checks cannot be True"),
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
