"""Rows that change with the row they refer to, of which the binlog may have no event."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fix_mysql import StartServer
from fix_replication import Replicate
from kit.programs import binlog_end

from cdc_consumer.parity.model import Column, Shape, TableName
from cdc_consumer.parity.servers.pair import LeaderConnection
from cdc_consumer.parity.witness.answers import UNKNOWN
from cdc_consumer.parity.witness.cascades import silent_cascades
from cdc_consumer.parity.witness.history import History
from docker.local.mysql_servers import LEADER, Server
from shared.events import Position


@pytest.mark.parametrize("native", ["ON", "OFF"])
def test_rows_that_change_with_the_row_they_refer_to(
    native: str,
    replicate: Replicate,
    own_server: StartServer,
    follower: Server,
    database: str,
    connect: Callable[..., LeaderConnection],
) -> None:
    """What InnoDB cascades, as all of it before MySQL 9.6, is in no event: those of the row above must do."""
    leader = own_server((*LEADER, f"--loose-innodb-native-foreign-keys={native}"), server_id=11)
    replication = replicate(leader, follower, [database])
    replication.play(f"CREATE DATABASE {database}")
    low, key = TableName(database, "low"), ("7",)
    replication.play(
        "CREATE TABLE top (id INT PRIMARY KEY)",
        "CREATE TABLE middle (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES top (id) ON UPDATE CASCADE)",
        "CREATE TABLE low (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES middle (id) ON UPDATE CASCADE)",
        "INSERT INTO top VALUES (1)", "INSERT INTO middle VALUES (1)", "INSERT INTO low VALUES (7, 1)",
    )  # fmt: skip
    before = Position.parse(binlog_end(leader))
    replication.play("UPDATE top SET id = 2")
    after = Position.parse(binlog_end(leader))
    assert replication.produce().returncode == 0

    columns = tuple(Column(name, "int", "int", None, True, False) for name in ("id", "up"))
    with History(replication.topic, {low: Shape(low, columns, ("id",))}) as history:
        history.know_cascades(silent_cascades(connect(leader)))
        assert history.touched({low: [key]}, before, after, 5.0).keys[low] == {key}
        first, last = (history.images_at({low: [key]}, until)[low][key] for until in (before, after))
        assert first == {"id": {"SignedInteger": 7}, "up": {"SignedInteger": 1}}
        assert last is UNKNOWN if native == "ON" else last == {"id": {"SignedInteger": 7}, "up": {"SignedInteger": 2}}
