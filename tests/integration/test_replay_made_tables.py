"""A table that is made and filled by one statement, under one GTID of the leader."""

from __future__ import annotations

import json

import pytest
from fix_replication import Replicate, Replication
from kit.helpers import tables_of
from kit.written_topic import TABLE, lines, open_topic_anew, records, rewrite

from docker.local.mysql_servers import Server
from shared.topic import Record
from shared.topic.record import Sealed


def binlog_of(server: Server, gtid: str) -> list[str]:
    """What stands in a server's newest binlog file under a GTID: types of binlog events, and the text of statements."""
    found: list[str] = []
    inside = False
    file = server.execute("SHOW BINARY LOGS")[-1][0]
    for _, _, kind, _, _, info in server.execute(f"SHOW BINLOG EVENTS IN '{file}'"):
        inside = gtid in info if kind == "Gtid" else inside
        if inside and kind != "Gtid":
            found.append(info.split(" (", 1)[0] if kind == "Query" else kind)
    return found


def test_a_table_that_somebody_else_has_executed(replication: Replication) -> None:
    """Under GTIDs what somebody has executed on the follower is passed over: the statement, and the rows behind it."""
    replication.play(
        "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", "CREATE TABLE c AS SELECT * FROM t",
        "INSERT INTO t VALUES (2)",
    )  # fmt: skip
    assert replication.produce().returncode == 0
    gtid = replication.events()[-2]["transaction"]["gtid"]
    replication.follower.execute(f"SET gtid_next = '{gtid}'", "BEGIN", "COMMIT", "SET gtid_next = 'AUTOMATIC'")
    result = replication.consume()
    assert result.returncode == 0, result.stderr
    assert f"{gtid} was executed before: passed over" in result.stderr
    assert replication.follower.execute(f"SHOW TABLES IN {replication.database}") == [("t",)]
    assert replication.follower.execute(f"SELECT id FROM {replication.database}.t") == [(1,), (2,)]


@pytest.mark.parametrize("workers", [1, 4])
def test_a_table_and_its_rows_are_one_transaction(replicate: Replicate, replication: Replication, workers: int) -> None:
    """Under the leader's GTID the follower's binlog tells of both and of the position, in this order, or of nothing."""
    consumer = {"topic": {"path": replication.topic.path}, "apply": {"workers": workers}}
    leader, follower, database = replication.leader, replication.follower, replication.database
    # statements of other tests may be no UTF-8
    follower.execute("FLUSH BINARY LOGS")
    other = replicate(leader, follower, [database], name="other", consumer=consumer)
    replication.play(
        f"CREATE TABLE t {TABLE}", "INSERT INTO t VALUES (1, 'a'), (2, 'b')", "CREATE TABLE c AS SELECT * FROM t",
        "INSERT INTO c VALUES (3, 'c')",
    )  # fmt: skip
    assert replication.produce().returncode == 0
    whole = records(replication)
    making, filling = replication.events()[-3:-1]
    with open_topic_anew(replication) as writer:
        writer.append([lines(record) for record in whole[:-2]])
    result = other.consume()
    assert result.returncode == 0, result.stderr
    assert "the last transaction has no end in the topic yet" in result.stderr
    assert other.sequence() == making["sequence"] - 1
    assert follower.execute(f"SHOW TABLES IN {database}") == [("t",)]
    assert replication.produce().returncode == 0
    result = other.consume()
    assert result.returncode == 0, result.stderr
    other.same()
    assert "outside" not in result.stderr
    told = binlog_of(follower, filling["transaction"]["gtid"])
    assert (told[0], told[1].split("; ")[1], told[-2:]) == ("BEGIN", "CREATE TABLE `c`", ["Update_rows", "Xid"])
    assert "Write_rows" in told


def test_a_table_whose_rows_are_found_to_go_by_sql(replication: Replication) -> None:
    """The transaction begins anew, and the table is made by itself."""
    replication.play(f"CREATE TABLE t {TABLE}", "INSERT INTO t VALUES (1, 'a')", "CREATE TABLE c AS SELECT * FROM t")
    assert replication.produce().returncode == 0
    last = replication.events()[-1]["sequence"]
    rewrite(replication, lambda record: lines(record, binlog=b"") if record.offset == last else lines(record))
    result = replication.consume()
    assert result.returncode == 0, result.stderr
    assert "go by SQL" in result.stderr and "made outside of the follower's binlog" in result.stderr
    replication.same()


@pytest.mark.parametrize("raw", [True, False], ids=["by binlog events", "by SQL"])
@pytest.mark.parametrize("left_out", ["made", "t"])
def test_the_table_of_what_is_left_out_is_undone(replication: Replication, raw: bool, left_out: str) -> None:
    """A transaction is left out from its second rows on; a table that was made for another one before stays."""
    replication.play(
        f"CREATE TABLE t {TABLE}", f"CREATE TABLE s {TABLE}", "INSERT INTO s VALUES (1, 'a')",
        "CREATE TABLE made AS SELECT * FROM s", "BEGIN", "INSERT INTO t VALUES (1, 'a')", "INSERT INTO t VALUES (2, 'b')",
        "COMMIT", "INSERT INTO s VALUES (2, 'b')",
    )  # fmt: skip
    assert replication.produce().returncode == 0
    last = next(
        event
        for event in reversed(replication.events())
        if event["uri"].endswith(f"/{left_out}") and "columns" in event
    )

    def leaves_out(record: Record) -> Sealed:
        binlog = record.binlog if raw else b""
        if record.offset != last["sequence"]:
            return lines(record, binlog=binlog)
        event = {key: last[key] for key in ("uri", "sequence", "bn_file")}
        event["operation"] = {"Query": "/* left out */"}
        event |= {"database": "", "writes": [], "session": {}, "skipped": "why", "transaction": last["transaction"]}
        return lines(record, binlog=binlog, value=json.dumps(event, separators=(",", ":")).encode())

    rewrite(replication, leaves_out)
    result = replication.consume()
    assert result.returncode == 0, result.stderr
    found = tables_of(replication.follower, replication.database)
    assert ("made" in found) == (left_out == "t")
    rows = f"SELECT COUNT(*) FROM {replication.database}"
    assert replication.follower.value(f"{rows}.t") == (2 if left_out == "made" else 0)
    assert replication.follower.value(f"{rows}.s") == 2
