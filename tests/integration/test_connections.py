"""Connections to a server that is there: how long they last, and which are encrypted."""

from __future__ import annotations

import pytest

from docker.local.mysql_servers import NativeServer, Server
from shared import mysql
from shared.profile import Database, DatabaseTls


@pytest.mark.parametrize("tls", [None, DatabaseTls("off")], ids=["encrypted", "plain"])
def test_an_answer_may_take_longer_than_the_login(
    leader: Server, tls: DatabaseTls | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mysql, "CONNECT_SECONDS", 1.0)
    connection = mysql.connect(Database("root", leader.host, leader.port, tls=tls))
    assert mysql.rows(connection, "SELECT SLEEP(1.5)") == [(0,)]
    connection.close()


@pytest.mark.parametrize(("tls", "encrypted"), [(None, False), (DatabaseTls("required"), True)])
def test_a_socket_is_encrypted_where_it_is_told_so(leader: Server, tls: DatabaseTls | None, encrypted: bool) -> None:
    if not isinstance(leader, NativeServer):
        pytest.skip("the socket of a container is inside of it")
    connection = mysql.connect(Database("root", unix_socket=str(leader.socket), tls=tls))
    ((_, cipher),) = mysql.rows(connection, "SHOW SESSION STATUS LIKE 'Ssl_cipher'")
    assert (cipher != "") == encrypted
    connection.close()
